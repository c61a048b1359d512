//! The index algorithm of Bruck et al. 1997, section 3, for any ranks, radix and ports.
//!
//! Phase 1 rotates every rank's blocks so that slot j holds the block for rank + j. Phase 2 writes
//! j in radix r and, digit by digit, rotates the blocks whose digit x is z by z r^x ranks; k such
//! messages make a step (section 3.4). Phase 3 puts the blocks in order of their sources.
//!
//! Claim, with h = r but for the top digit, where h = ceil(n / r^(w-1)): C1 is the sum over digits
//! of ceil((h - 1) / k), and C2 the sum over digits of the largest message of each group of k
//! values 1 .. h - 1 in that order. The paper prints upper bounds: ceil((r - 1) / k) ceil(log_r n)
//! and b ceil((r - 1) / k) ceil(n / r) ceil(log_r n).
//!
//! # Digits of coordinates
//! With `digits=coordinates`, on grids, j is an offset by coordinates, and the digits are those of each
//! coordinate in turn, the last dimension first. A message goes straight along one dimension, and all
//! ranks of a torus are equivalent, at any size. The sum of ranks carries from one side to the next, so
//! with `digits=rank` only ranks that differ along dimension 0 are equivalent.
//!
//! Claim: along a side of n ranks, of P in all, the steps of the index algorithm for n ranks, and P / n
//! times its blocks. A message by s of n ranks, a side that wraps, crosses each link along s or n - s times in the
//! nearer direction; on a mesh, the link in the middle min(s, n - s) times in both.
//!
//! # Graphs
//! The busiest link of a step carries at least the blocks of the messages to one offset that meet on it, and the mean
//! over all links. With one port this floor is the volume itself. It decides selection on machines of up to 2048
//! ranks without equivalent ranks, whose 2047 radices would take long to count.
//!
//! Departure: the layouts before and after are by offsets, so Phases 1 and 3 copy nothing.

use smallvec::SmallVec;
use topocoll_schedule::{
    Block, Parameters, RankClasses, Rule, Setting, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{
    Capacity, Coordinates, Graph, Grid, LinkId, MixedRadix, Rank, Route, Shape, Topology,
};

use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct Bruck;

/// The most ranks for which every radix is priced.
const EVERY_RADIX_UP_TO: u32 = 2048;
/// The largest radix below which every one is priced on more ranks.
const SMALL_RADIX: u64 = 16;
/// The same for coordinates.
const SMALL_RADIX_OF_SIDES: u64 = 8;
/// The longest side for which every radix is priced, on as few ranks.
const EVERY_RADIX_OF_SIDES_UP_TO: u32 = 64;
/// The largest radix of the subset.
const MAX_RADIX_OF_SUBSET: u64 = 1 << 20;

/// A digit of the block number j, along a dimension.
#[derive(Clone, Copy)]
struct Digit {
    dimension: usize,
    /// r^x.
    weight: u64,
    /// h: the digit is below it.
    values: u32,
    /// The first step of its subphase.
    first_step: u32,
}

struct Index {
    /// The ranks as one side, or by their coordinates.
    numbers: MixedRadix,
    by_coordinates: bool,
    radix: u32,
    ports: u32,
    digits: SmallVec<[Digit; 8]>,
    /// Steps with messages; one more closes with Phase 3.
    steps: u32,
}

impl Index {
    fn new(numbers: MixedRadix, by_coordinates: bool, radix: u32, ports: u32) -> Self {
        let mut digits = SmallVec::new();
        let mut steps = 0;
        for dimension in (0..numbers.dimensions()).rev() {
            let side = u64::from(numbers.sides()[dimension]);
            let mut weight = 1;
            while weight < side {
                let values = side.div_ceil(weight).min(radix.into()) as u32;
                digits.push(Digit { dimension, weight, values, first_step: steps });
                steps += (values - 1).div_ceil(ports);
                weight *= u64::from(radix);
            }
        }
        Self { numbers, by_coordinates, radix, ports, digits, steps }
    }

    /// The ranks along the side of a digit.
    fn side(&self, digit: Digit) -> u64 {
        self.numbers.sides()[digit.dimension].into()
    }

    /// The slots j whose digit is z. Along its side whole runs, and the one cut off by the number of
    /// ranks, of as many slots each as the ranks of the dimensions after it.
    fn slots_of(&self, digit: Digit, z: u32) -> SlotSet {
        let (side, stride) = (self.side(digit), u64::from(self.numbers.stride(digit.dimension)));
        let lines = u64::from(self.numbers.ranks()) / (side * stride);
        let (length, period) = (digit.weight, digit.weight * u64::from(self.radix));
        let base = u64::from(z) * length;
        let cut = (side % period).saturating_sub(base).min(length);
        let (runs, cut) = if cut == length { (side / period + 1, 0) } else { (side / period, cut) };
        let [side, length, period, base, cut] =
            [side, length, period, base, cut].map(|ranks| ranks * stride);
        let mut set = SlotSet::default();
        let mut push = |base, count, stride, length| {
            if count > 0 {
                set.push(Strided::runs(base, count, stride, length));
            }
        };
        if side % period == 0 {
            // The runs of a line continue those of the line before.
            push(base, lines * runs, period, length);
        } else if lines <= runs {
            for line in 0..lines {
                push(base + line * side, runs, period, length);
                push(base + line * side + runs * period, 1, side, cut);
            }
        } else {
            for run in 0..runs {
                push(base + run * period, lines, side, length);
            }
            push(base + runs * period, lines, side, cut);
        }
        set
    }

    /// C2 of one digit. The messages of the values 1 .. h - 1 never grow, so the largest of each
    /// group of k is its first; only one value may be cut short.
    fn blocks(&self, digit: Digit) -> u128 {
        let (side, period) = (self.side(digit), digit.weight * u64::from(self.radix));
        let (runs, rest) = (side / period, side % period);
        let cut_value = rest / digit.weight;
        let groups = u64::from((digit.values - 1).div_ceil(self.ports));
        // Group g opens with the value 1 + g k: those below the cut value have a run more.
        let longer = (cut_value.saturating_sub(1)).div_ceil(self.ports.into()).min(groups);
        let at_cut =
            cut_value >= 1 && (cut_value - 1) % u64::from(self.ports) == 0 && longer < groups;
        let of_a_line = u128::from(groups) * u128::from(runs * digit.weight)
            + u128::from(longer) * u128::from(digit.weight)
            + if at_cut { u128::from(rest % digit.weight) } else { 0 };
        of_a_line * u128::from(u64::from(self.numbers.ranks()) / side)
    }

    /// Blocks of the messages of a digit's value.
    fn blocks_of(&self, digit: Digit, z: u32) -> u64 {
        let (side, period) = (self.side(digit), digit.weight * u64::from(self.radix));
        let rest = (side % period).saturating_sub(u64::from(z) * digit.weight);
        let of_a_line = side / period * digit.weight + rest.min(digit.weight);
        of_a_line * (u64::from(self.numbers.ranks()) / side)
    }

    /// By step: its digit, and the values of the digit that move.
    fn steps(&self) -> impl Iterator<Item = (Digit, std::ops::Range<u32>)> {
        self.digits.iter().flat_map(move |&digit| {
            let steps = (digit.values - 1).div_ceil(self.ports);
            let steps = digit.first_step..digit.first_step + steps;
            steps.map(move |step| (digit, self.values(digit, step)))
        })
    }

    /// The values of a digit that move in a step.
    fn values(&self, digit: Digit, step: u32) -> std::ops::Range<u32> {
        let first = 1 + (step - digit.first_step) * self.ports;
        first..first.saturating_add(self.ports).min(digit.values)
    }

    /// The claims about the links of a grid.
    fn on_links(&self, grid: &Grid, request: &Request<'_>, claims: Claims) -> Claims {
        let (mut link_blocks, mut hops, mut most) = (0u128, 0u128, 0);
        for (digit, values) in self.steps() {
            let side = self.side(digit);
            // Up and down, blocks and messages of the busiest link.
            let (mut blocks, mut messages) = ([0u128; 2], [0u64; 2]);
            let (mut largest, mut longest) = (0, 0);
            for z in values {
                let shift = u64::from(z) * digit.weight;
                let own = self.blocks_of(digit, z);
                let (ends, farthest) = match grid.wrap()[digit.dimension] {
                    true if 2 * shift <= side => (0..1, shift),
                    true => (1..2, side - shift),
                    false => (0..2, shift.max(side - shift)),
                };
                let nearer = shift.min(side - shift);
                for end in ends {
                    blocks[end] += u128::from(own) * u128::from(nearer);
                    messages[end] += nearer;
                }
                (largest, longest) = (own.max(largest), farthest.max(longest));
            }
            link_blocks += blocks[0].max(blocks[1]).max(largest.into());
            hops += u128::from(longest);
            most = messages[0].max(messages[1]).max(most);
        }
        Claims {
            hops: Some(hops),
            contention_free: most <= 1,
            link_bytes_floor: request.bytes(link_blocks),
            hops_floor: hops,
            ..claims
        }
    }

    /// The claims about the links of a graph. In each step the messages to one offset meet on a link, and all links
    /// share the hops.
    fn on_graph(&self, graph: &Graph, request: &Request<'_>, claims: Claims) -> Claims {
        let offsets = request.kept("bruck offsets", || Offsets::new(graph, self.numbers.ranks()));
        let (links, mut floor, mut hops_floor) = (graph.links().into(), 0, 0);
        for (digit, values) in self.steps() {
            let (mut carried, mut most, mut farthest) = (0u128, 0u128, 0);
            for z in values {
                let own = u128::from(self.blocks_of(digit, z));
                let on_links = offsets.0[z as usize * digit.weight as usize];
                carried += own * u128::from(on_links.hops);
                most = most.max(own * u128::from(on_links.meeting));
                farthest = on_links.farthest.max(farthest);
            }
            floor += carried.div_ceil(links).max(most);
            hops_floor += u128::from(farthest);
        }
        let link_bytes_floor = claims.link_bytes_floor.max(request.bytes(floor));
        Claims { link_bytes_floor, hops_floor, ..claims }
    }

    /// The rank at the offset of a slot, or against it.
    fn across(&self, rank: Rank, slot: Slot, sign: i64) -> Rank {
        let offset = Rank(slot as u32);
        (0..self.numbers.dimensions()).fold(rank, |rank, u| {
            let along = i64::from(self.numbers.coordinate(offset, u));
            self.numbers.shifted(rank, u, sign * along)
        })
    }
}

/// The messages from some ranks to the rank at one offset: their hops in all and the most of one, and how many meet
/// on a link.
#[derive(Clone, Copy, Default)]
struct OnLinks {
    hops: u64,
    farthest: u32,
    meeting: u32,
}

/// By offset, its messages on the links of a graph; only the farthest where links differ in bandwidth.
struct Offsets(Vec<OnLinks>);

impl Offsets {
    /// Ranks up to which the routes of all are followed, and of how many beyond.
    const MOST: [u32; 2] = [2048, 4];
    /// The most links of the routes that are followed: part of a second.
    const VISITED: u64 = 1 << 26;

    fn new(graph: &Graph, ranks: u32) -> Self {
        let most = Self::MOST[usize::from(ranks > Self::MOST[0])].min(ranks);
        let links = u64::from(ranks) * u64::from(graph.diameter().max(1));
        let some = u64::from(most).min(Self::VISITED / links);
        let are_equal = graph.link_kinds().iter().all(|kind| kind.capacity == Capacity::CLASS);
        let (mut carried, mut links) = (vec![0; graph.links() as usize], Vec::new());
        let mut of = |offset| {
            let mut found = OnLinks::default();
            // With the first and the last one, since offsets carry from digit to digit.
            let last = u64::from(ranks) - 1;
            for from in (0..some).map(|i| (i * last / (some - 1).max(1)) as u32) {
                let before = links.len();
                graph.own_links(Rank(from), Rank((from + offset) % ranks), &mut links);
                found.farthest = found.farthest.max((links.len() - before) as u32);
            }
            if !are_equal {
                links.clear();
            }
            found.hops = links.len() as u64;
            for &LinkId(link) in &links {
                carried[link as usize] += 1;
                found.meeting = found.meeting.max(carried[link as usize]);
            }
            links.drain(..).for_each(|LinkId(link)| carried[link as usize] = 0);
            found
        };
        Self((0..ranks).map(&mut of).collect())
    }
}

impl Rule for Index {
    fn steps(&self) -> u32 {
        if self.steps == 0 || self.by_coordinates { self.steps } else { self.steps + 1 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        if !self.by_coordinates {
            let (n, r) = (u64::from(self.numbers.ranks()), u64::from(rank.0));
            let contiguous = |base, count| SlotSet::of(Strided::contiguous(base, count));
            if step == 0 {
                out.copy(contiguous(r, n - r), contiguous(0, n - r));
                out.copy(contiguous(0, r), contiguous(n - r, r));
            }
            if step == self.steps {
                let descending = |base, count| SlotSet::of(Strided::descending(base, count));
                out.copy(contiguous(0, r + 1), descending(r, r + 1));
                out.copy(contiguous(r + 1, n - 1 - r), descending(n - 1, n - 1 - r));
                return;
            }
        }
        let x = self.digits.partition_point(|digit| digit.first_step <= step) - 1;
        let digit = self.digits[x];
        for z in self.values(digit, step) {
            let hops = (u64::from(z) * digit.weight) as i64;
            let shifted = |hops| self.numbers.shifted(rank, digit.dimension, hops);
            let slots = self.slots_of(digit, z);
            out.receive(shifted(-hops), slots.clone());
            out.send(shifted(hops), slots, Route::default());
        }
    }

    fn slots(&self) -> u64 {
        self.numbers.ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = if self.by_coordinates { self.across(rank, slot, 1) } else { Rank(slot as u32) };
        Some(Block { from: rank, to })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from =
            if self.by_coordinates { self.across(rank, slot, -1) } else { Rank(slot as u32) };
        Some(Block { from, to: rank })
    }

    fn names_routes(&self, _: &RankClasses) -> bool {
        false
    }

    fn classes(&self) -> RankClasses {
        let periods = Coordinates::from_elem(1, self.numbers.dimensions());
        RankClasses::translations(self.numbers.clone(), periods)
    }
}

const DIGITS: Parameter = Parameter::words(
    "digits",
    &[
        ("rank", "of the distance between ranks"),
        ("coordinates", "of the distance along each dimension of a grid in turn"),
    ],
);

static INFO: Info = Info::new(
    "bruck",
    "blocks combined and rotated one radix-r digit at a time",
    "Bruck et al. 1997, section 3",
)
.taking(&[Parameter::number(
    "radix",
    "2 (fewest steps) to the number of ranks (least volume), or with coordinates to the longest side",
)
.by_cost()])
.with_internal(&[DIGITS]);

/// The longest side, at least 2.
fn longest(grid: &Grid) -> u32 {
    grid.sides().iter().copied().fold(2, u32::max)
}

impl Algorithm for Bruck {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let radix = |radix| ("radix".to_owned(), Setting::Integer(radix));
        let of_ranks = radices(request.problem.ranks, EVERY_RADIX_UP_TO, SMALL_RADIX);
        let mut settings: Vec<_> =
            of_ranks.into_iter().map(|of| Parameters::from([radix(of)])).collect();
        let few = request.problem.ranks <= EVERY_RADIX_UP_TO;
        // On a large mesh counting takes long, and more settings would leave others uncounted.
        if let Shape::Grid(grid) = request.topology.shape()
            && grid.radix().long_dimensions().count() > 1
            && (few || grid.radix().long_dimensions().all(|u| grid.wrap()[u]))
        {
            let digits = || (DIGITS.name.to_owned(), "coordinates".into());
            let every = if few { EVERY_RADIX_OF_SIDES_UP_TO } else { 0 };
            let of_sides = radices(longest(grid), every, SMALL_RADIX_OF_SIDES);
            settings.extend(of_sides.into_iter().map(|of| Parameters::from([digits(), radix(of)])));
        }
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (ranks, ports) = (request.problem.ranks, request.ports_per_rank()?);
        let grid = match values.is(DIGITS.name, "coordinates") {
            true => Some(request.grid("a torus, mesh or grid, for digits=coordinates")?),
            false => None,
        };
        let most = u64::from(grid.map_or(ranks.max(2), longest));
        let radix = values.number("radix", 2, most)?.unwrap_or(most.min(u64::from(ports) + 1));
        let numbers = match grid {
            Some(grid) => grid.radix().clone(),
            None => MixedRadix::new(&[ranks]).expect("bug: a machine without ranks"),
        };
        let index = Index::new(numbers, grid.is_some(), radix as u32, ports);
        let blocks: u128 = index.digits.iter().map(|&digit| index.blocks(digit)).sum();
        let copies = index.steps > 0 && grid.is_none();
        let rearrangements = Some(if copies { 2 } else { 0 });
        let mut claims =
            Claims { rearrangements, ..Claims::new(index.steps.into(), request.bytes(blocks)) };
        if let Some(grid) = grid {
            claims = index.on_links(grid, request, claims);
        }
        if let Shape::Graph(graph) = request.topology.shape() {
            claims = index.on_graph(graph, request, claims);
        }
        let solution = Solution::new(request, values, index, claims).with("radix", radix);
        Ok(if grid.is_some() { solution } else { solution.without(DIGITS.name) })
    }
}

/// The radices worth pricing: all of them, or beyond `every` ranks 2 to `small`, the powers of two,
/// the least radix of every number of digits, and n, as far as [`MAX_RADIX_OF_SUBSET`]. (Radix n is
/// the direct exchange with two rearrangements more; radix n - 1 is the same with the last message alone.)
fn radices(ranks: u32, every: u32, small: u64) -> Vec<u64> {
    let n = u64::from(ranks.max(2));
    if ranks <= every {
        return (2..=n).filter(|radix| radix + 1 != n).collect();
    }
    // The least r with r^digits >= n: a rounded root, off by one at most.
    let root = |digits: u32| {
        let near = (n as f64).powf(1.0 / f64::from(digits)) as u64;
        (near.saturating_sub(1).max(2)..)
            .find(|r| r.checked_pow(digits).is_none_or(|power| power >= n))
            .unwrap_or(n)
    };
    let mut radices: Vec<u64> =
        (2..=small).chain((1..32).map(|bit| 1 << bit)).chain((2..32).map(root)).collect();
    radices.push(n);
    radices.retain(|&radix| radix <= n.min(MAX_RADIX_OF_SUBSET));
    radices.sort_unstable();
    radices.dedup();
    radices
}
