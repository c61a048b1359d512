//! All-gather of whole blocks on a torus, hop by hop, in both directions of all dimensions at once.
//!
//! A block's offset o is receiver minus source. All ranks are equivalent: each offset has a round
//! of arrival and one of the 2n directions, from the neighbour that has offset o less one hop. An
//! offset may arrive over any direction of a shortest route, and not before round |o|, its hops. So
//! the rounds are the spheres around a rank. Each sphere is divided evenly among the directions: a
//! matching of offsets to directions with the same number for each, found by augmenting paths among
//! the 2n directions. Where a sphere is no multiple of 2n, the few offsets left over wait for the
//! next one.
//!
//! Claim: with 2n ports no link contention, and both measures meet their bounds: as many steps as
//! the diameter has hops, and ceil((P - 1) / 2n) blocks, which a rank must receive over its 2n
//! links. Counted: on all tori of two sides from 2 to 24 the blocks are the bound (or one a step,
//! where that is more), and the steps the diameter on 251, one more on 25; on 76 of the 84 of three
//! sides from 2 to 8 both are met, on the others they are at most one above. With k < 2n ports a
//! round is ceil(2n / k) steps; where k divides 2n they carry (P - 1) / k blocks but for what is
//! rounded, with one port exactly P - 1, the injection bound.
//!
//! Yang and Wang 2001 and 2002 reach the same bound by pipelining on all-port tori; their pattern is
//! not in the text at hand, and this one is another.
//!
//! # The layout
//! Slots are numbered as offsets arrive: a message is received into one run; its blocks to send are
//! sorted into runs.

use topocoll_schedule::{Block, Collective, Part, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, Rank, Route};

use crate::error::check_sides;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct NeighbourGather;

/// Every offset is assigned and stored.
const MOST_RANKS: u32 = 1 << 16;

/// One direction along one dimension.
#[derive(Clone, Copy)]
struct Direction {
    dimension: usize,
    sign: i64,
}

/// The slots that all ranks send over one direction.
struct DirectionMessage {
    direction: Direction,
    takes: SlotSet,
    brings: Strided,
}

struct Spheres {
    grid: Grid,
    /// The offsets in the order of their slots, as the rank at each from rank 0.
    offsets: Vec<Rank>,
    steps: Vec<Vec<DirectionMessage>>,
}

impl Spheres {
    fn new(grid: Grid, ports: u32) -> Self {
        let directions: Vec<Direction> = grid
            .radix()
            .long_dimensions()
            .flat_map(|dimension| [1, -1].map(|sign| Direction { dimension, sign }))
            .collect();
        let mut spheres = Self { grid, offsets: vec![Rank(0)], steps: Vec::new() };
        let by_hops = spheres.by_hops();
        let mut slots: Vec<Option<Slot>> = vec![None; spheres.grid.radix().ranks() as usize];
        slots[0] = Some(0);
        let mut waiting: Vec<Rank> = Vec::new();
        let mut hops = 1;
        while hops < by_hops.len() || !waiting.is_empty() {
            // Those that waited first, as the next sphere may need them.
            waiting.extend(by_hops.get(hops).into_iter().flatten());
            let candidates = |&offset: &Rank| {
                let from = |direction: &Direction| spheres.from(offset, *direction);
                let open = |(_, direction): &(usize, &Direction)| {
                    from(direction).is_some_and(|from| slots[from.index()].is_some())
                };
                directions.iter().enumerate().filter(open).map(|(i, _)| i).collect()
            };
            let directions_of: Vec<Vec<usize>> = waiting.iter().map(candidates).collect();
            let share = (directions_of.len() / directions.len()).max(1);
            let dealt =
                Deal::new(&directions_of, directions.len(), share, hops + 1 >= by_hops.len());
            let mut messages = Vec::new();
            for (i, &direction) in directions.iter().enumerate() {
                let mut moved: Vec<(Slot, Rank)> = (waiting.iter().zip(&dealt.taker))
                    .filter(|&(_, taker)| *taker == Some(i))
                    .map(|(&offset, _)| {
                        let from = spheres.from(offset, direction).expect("bug: on its way");
                        (slots[from.index()].expect("bug: it is there"), offset)
                    })
                    .collect();
                moved.sort_unstable();
                messages.push((direction, moved));
            }
            messages.retain(|(_, moved)| !moved.is_empty());
            messages.sort_by_key(|(_, moved)| std::cmp::Reverse(moved.len()));
            for together in messages.chunks(ports as usize) {
                let step = together.iter().map(|(direction, moved)| {
                    let first = spheres.offsets.len() as Slot;
                    let mut takes = SlotSet::default();
                    for &(slot, offset) in moved {
                        takes.push_slot(slot, Part::Whole);
                        slots[offset.index()] = Some(spheres.offsets.len() as Slot);
                        spheres.offsets.push(offset);
                    }
                    let brings = Strided::contiguous(first, moved.len() as u64);
                    DirectionMessage { direction: *direction, takes, brings }
                });
                let step = step.collect();
                spheres.steps.push(step);
            }
            waiting.retain(|offset| slots[offset.index()].is_none());
            hops += 1;
        }
        spheres
    }

    /// All offsets by their hops.
    fn by_hops(&self) -> Vec<Vec<Rank>> {
        let diameter: u32 = (0..self.grid.sides().len()).map(|u| self.grid.diameter_along(u)).sum();
        let mut by_hops = vec![Vec::new(); diameter as usize + 1];
        for offset in (0..self.grid.radix().ranks()).map(Rank) {
            let at = self.grid.radix().coordinates(offset);
            let hops: u64 = (at.iter().enumerate())
                .map(|(u, &x)| self.grid.nearest(u, 0, x).unsigned_abs())
                .sum();
            by_hops[hops as usize].push(offset);
        }
        // The last ones wait: offsets with the most directions.
        for sphere in &mut by_hops {
            sphere.sort_by_key(|&offset| {
                self.grid.radix().coordinates(offset).iter().filter(|&&x| x > 0).count()
            });
        }
        by_hops
    }

    /// The offset one hop before this one, if it lies on a shortest route.
    fn from(&self, offset: Rank, direction: Direction) -> Option<Rank> {
        let (u, side) = (direction.dimension, self.grid.sides()[direction.dimension]);
        let x = u64::from(self.grid.radix().coordinate(offset, u));
        let ahead = if direction.sign > 0 { x } else { u64::from(side) - x };
        (x > 0 && 2 * ahead <= u64::from(side))
            .then(|| self.grid.radix().shifted(offset, u, -direction.sign))
    }
}

/// Things dealt to takers, each of which takes some of those that list it.
struct Deal<'a> {
    lists: &'a [Vec<usize>],
    takers: usize,
    /// By thing.
    taker: Vec<Option<usize>>,
    /// By taker, how many it has.
    taken: Vec<usize>,
    /// By two takers, what the first has and the second lists; on top may lie what has moved on.
    movable: Vec<Vec<usize>>,
}

impl<'a> Deal<'a> {
    /// At most `share` for each, as many as can be, those that come first at any rate; or everything
    /// that somebody lists, in shares that grow as they must.
    fn new(lists: &'a [Vec<usize>], takers: usize, mut share: usize, everything: bool) -> Self {
        let mut deal = Self {
            lists,
            takers,
            taker: vec![None; lists.len()],
            taken: vec![0; takers],
            movable: vec![Vec::new(); takers * takers],
        };
        for (thing, takers) in lists.iter().enumerate() {
            while !deal.place(thing, share) && everything && !takers.is_empty() {
                share += 1;
            }
        }
        deal
    }

    /// Finds room for a thing, others moving on if they must: breadth first from the takers that it
    /// lists to one with room.
    fn place(&mut self, thing: usize, share: usize) -> bool {
        let mut reached: Vec<(usize, Option<usize>)> =
            self.lists[thing].iter().map(|&taker| (taker, None)).collect();
        let mut next = 0;
        while let Some(&(at, _)) = reached.get(next) {
            if self.taken[at] < share {
                self.taken[at] += 1;
                self.shift(thing, &reached, next);
                return true;
            }
            for other in 0..self.takers {
                let held = &mut self.movable[at * self.takers + other];
                while held.last().is_some_and(|&held| self.taker[held] != Some(at)) {
                    held.pop();
                }
                if !held.is_empty() && reached.iter().all(|&(known, _)| known != other) {
                    reached.push((other, Some(next)));
                }
            }
            next += 1;
        }
        false
    }

    /// Moves what lies on the path to the taker reached at `end` one on, and the thing to its start.
    fn shift(&mut self, thing: usize, reached: &[(usize, Option<usize>)], mut end: usize) {
        while let (to, Some(before)) = reached[end] {
            let movable = &mut self.movable[reached[before].0 * self.takers + to];
            let held = movable.pop().expect("bug: a path with nothing to move");
            self.give(held, to);
            end = before;
        }
        self.give(thing, reached[end].0);
    }

    fn give(&mut self, thing: usize, to: usize) {
        self.taker[thing] = Some(to);
        for &other in self.lists[thing].iter().filter(|&&other| other != to) {
            self.movable[to * self.takers + other].push(thing);
        }
    }
}

impl Rule for Spheres {
    fn steps(&self) -> u32 {
        self.steps.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let radix = self.grid.radix();
        for message in &self.steps[step as usize] {
            let Direction { dimension, sign } = message.direction;
            let route = Route::straight(dimension as u32, sign);
            out.send(radix.shifted(rank, dimension, sign), message.takes.clone(), route);
            out.receive(radix.shifted(rank, dimension, -sign), SlotSet::of(message.brings));
        }
    }

    fn slots(&self) -> u64 {
        self.offsets.len() as u64
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == 0).then_some(Block::of(rank))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let radix = self.grid.radix();
        let offset = self.offsets[slot as usize];
        let from = (0..radix.dimensions())
            .fold(rank, |from, u| radix.shifted(from, u, -i64::from(radix.coordinate(offset, u))));
        Some(Block::of(from))
    }

    fn classes(&self) -> RankClasses {
        let radix = self.grid.radix();
        let periods = Coordinates::from_elem(1, radix.dimensions());
        RankClasses::translations(radix.clone(), periods)
    }
}

static INFO: Info = Info::new(
    "neighbour-gather",
    "every block hop by hop, in both directions of all dimensions at once, over equally loaded links",
    "spheres divided among directions; the bound of Yang and Wang 2002",
)
.performing(Collective::AllGather);

impl Algorithm for NeighbourGather {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus")?;
        check_sides(grid, "sides that wrap", |u| grid.sides()[u] > 1 && !grid.wrap()[u])?;
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS {
            let rule = "at most 65536 ranks";
            return Err(NotApplicable::Ranks { rule, ranks });
        }
        let rule = Spheres::new(grid.clone(), request.problem.ports);
        let most =
            |step: &Vec<DirectionMessage>| step.iter().map(|m| m.brings.len()).max().unwrap_or(0);
        let blocks: u128 = rule.steps.iter().map(|step| u128::from(most(step))).sum();
        let steps = rule.steps.len() as u64;
        let claims = Claims {
            hops: Some(steps.into()),
            hops_floor: steps.into(),
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(steps, request.bytes(blocks))
        };
        Ok(Solution::new(request, values, rule, claims))
    }
}
