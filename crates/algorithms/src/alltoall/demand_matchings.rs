//! All-to-all-v: every block straight to its destination, in matchings coloured for the demand.
//!
//! A step is as long as its largest message, so matchings of blocks of nearly equal size have the
//! least volume; but each costs a startup, so fewer may be better. The algorithm minimises
//! matchings x startup + sum of largest messages x per byte, over the number of matchings allowed:
//! `matchings` from the fewest there can be, the most messages of a rank (on a cluster of a node,
//! to other nodes), up to as many as the colouring would open by itself. The caller chooses by
//! cost.
//!
//! Blocks that have bytes come by falling size, and each goes into the first matching in which both
//! ends are free; see `colouring.rs` for the other case. On clusters this applies inter-node, where
//! each node sends one message and receives one; intra-node messages go where their ranks are free,
//! then into further matchings. Empty blocks come last: they are not messages, and the schedule is
//! valid for equal blocks too. With k ports, k matchings of nearly equal weight make a step.
//!
//! Claim: with `matchings` at its least as many inter-node steps as the busiest one has messages
//! (Koenig 1916), on ranks without nodes as many steps in all. For no number of matchings can the
//! sum of largest messages be below the sum over i of the largest i-th largest block of a rank, as
//! a rank's blocks are in as many matchings; `tests/correctness/matchings.rs` counts how far it is
//! above.

use topocoll_schedule::{Block, Parameters, Rule, Setting, Slot, Step};
use topocoll_topology::{Clusters, Rank, Route, Shape};

use crate::factor::colouring::{Colours, Edge, coloured, degree, first_free};
use crate::layout::matching_layout::MatchingLayout;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct DemandMatchings;

/// Every message is coloured and stored.
const MOST_RANKS: u32 = 2048;

/// Numbers of matchings to price, the ends included.
const NUMBERS: u32 = 6;

/// A message's step and other end.
type Partner = (u32, Rank);

struct Matchings {
    steps: u32,
    /// By rank, in order of steps.
    sends: Vec<Vec<Partner>>,
    receives: Vec<Vec<Partner>>,
}

/// A block that one rank has for another.
#[derive(Clone, Copy)]
struct SizedBlock {
    from: Rank,
    to: Rank,
    bytes: u64,
}

/// The messages of a demand by falling size, inter-node ones first, empty ones last.
struct SizedBlocks<'a> {
    /// Where there is more than one node.
    clusters: Option<&'a Clusters>,
    vertices: u32,
    between: Vec<SizedBlock>,
    inside: Vec<SizedBlock>,
    empty: Vec<SizedBlock>,
}

impl<'a> SizedBlocks<'a> {
    fn of(request: &Request<'a>) -> Result<Self, NotApplicable> {
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS {
            let rule = "at most 2048 ranks, whose messages it keeps";
            return Err(NotApplicable::Ranks { rule, ranks });
        }
        let demand = request.demand.ok_or(NotApplicable::NoDemand)?;
        let clusters = match request.topology.shape() {
            Shape::Clustered(clusters) if clusters.nodes() > 1 => Some(clusters),
            _ => None,
        };
        let vertices = clusters.map_or(ranks, Clusters::nodes);
        let (between, inside, empty) = (Vec::new(), Vec::new(), Vec::new());
        let mut messages = Self { clusters, vertices, between, inside, empty };
        // Blocks of one size around the ranks, which colours equal blocks by distance.
        for distance in 1..ranks {
            for from in (0..ranks).map(Rank) {
                let to = Rank((from.0 + distance) % ranks);
                let message = SizedBlock { from, to, bytes: demand.bytes(Block { from, to }) };
                let list = match (message.bytes, messages.crosses(message)) {
                    (0, _) => &mut messages.empty,
                    (_, true) => &mut messages.between,
                    (_, false) => &mut messages.inside,
                };
                list.push(message);
            }
        }
        for list in [&mut messages.between, &mut messages.inside] {
            list.sort_by_key(|message| std::cmp::Reverse(message.bytes));
        }
        Ok(messages)
    }

    fn vertex(&self, rank: Rank) -> u32 {
        self.clusters.map_or(rank.0, |clusters| clusters.node_of(rank))
    }

    fn crosses(&self, message: SizedBlock) -> bool {
        self.vertex(message.from) != self.vertex(message.to)
    }

    fn edges(&self) -> Vec<Edge> {
        let edge = |message: &SizedBlock| Edge {
            ends: [self.vertex(message.from), self.vertex(message.to)],
            weight: message.bytes,
        };
        self.between.iter().map(edge).collect()
    }

    fn fewest(&self) -> u32 {
        degree(self.vertices, &self.edges())
    }

    /// How many matchings the colouring opens by itself.
    fn unlimited(&self) -> u32 {
        let colours = coloured(self.vertices, &self.edges(), u32::MAX);
        colours.into_iter().max().map_or(0, |last| last + 1)
    }

    fn matchings(&self, ranks: u32, ports: u32, most: u32) -> (Matchings, Claims) {
        let colours = coloured(self.vertices, &self.edges(), most);
        let mut all: Vec<(SizedBlock, u32)> = self.between.iter().copied().zip(colours).collect();
        // By side, the colours of ranks and of vertices.
        let none = |count: u32| vec![Colours::default(); count as usize];
        let mut ranks_use = [none(ranks), none(ranks)];
        let mut vertices_use = [none(self.vertices), none(self.vertices)];
        let ends = |message: SizedBlock| [message.from, message.to];
        for &(message, colour) in &all {
            for (side, rank) in ends(message).into_iter().enumerate() {
                ranks_use[side][rank.index()].insert(colour);
                vertices_use[side][self.vertex(rank) as usize].insert(colour);
            }
        }
        for &message in self.inside.iter().chain(&self.empty) {
            let crosses = self.crosses(message);
            let (from, to) = (message.from, message.to);
            let by_rank = [&ranks_use[0][from.index()], &ranks_use[1][to.index()]];
            let (u, v) = (self.vertex(from) as usize, self.vertex(to) as usize);
            let colour = if crosses {
                first_free(&[by_rank[0], by_rank[1], &vertices_use[0][u], &vertices_use[1][v]])
            } else {
                first_free(&by_rank)
            };
            ranks_use[0][from.index()].insert(colour);
            ranks_use[1][to.index()].insert(colour);
            if crosses {
                vertices_use[0][u].insert(colour);
                vertices_use[1][v].insert(colour);
            }
            all.push((message, colour));
        }
        in_steps(&all, ranks, ports)
    }
}

/// Matchings by falling weight, `ports` of them a step.
fn in_steps(all: &[(SizedBlock, u32)], ranks: u32, ports: u32) -> (Matchings, Claims) {
    let matchings = all.iter().map(|&(_, colour)| colour + 1).max().unwrap_or(0);
    let mut weights = vec![0; matchings as usize];
    for &(message, colour) in all {
        let weight = &mut weights[colour as usize];
        *weight = message.bytes.max(*weight);
    }
    let mut falling: Vec<u32> = (0..matchings).collect();
    falling.sort_by_key(|&colour| std::cmp::Reverse(weights[colour as usize]));
    let mut step_of = vec![0; matchings as usize];
    for (place, &colour) in (0..).zip(&falling) {
        step_of[colour as usize] = place / ports;
    }
    let none = || vec![Vec::new(); ranks as usize];
    let (mut sends, mut receives) = (none(), none());
    for &(message, colour) in all {
        let step = step_of[colour as usize];
        sends[message.from.index()].push((step, message.to));
        receives[message.to.index()].push((step, message.from));
    }
    sends.iter_mut().chain(&mut receives).for_each(|ends: &mut Vec<Partner>| ends.sort_unstable());
    // The heaviest matching of a step is its first; nothing moves in steps of empty blocks.
    let largest = falling.iter().step_by(ports as usize).map(|&colour| weights[colour as usize]);
    let (moving, bytes) = largest
        .filter(|&weight| weight > 0)
        .fold((0, 0), |(steps, bytes), weight| (steps + 1, bytes + u128::from(weight)));
    let rule = Matchings { steps: matchings.div_ceil(ports), sends, receives };
    (rule, Claims::new(moving, bytes))
}

impl Matchings {
    fn places(&self) -> MatchingLayout {
        MatchingLayout::of(self.sends.len() as u32)
    }
}

fn at(ends: &[Partner], step: u32) -> impl Iterator<Item = Rank> + '_ {
    let first = ends.partition_point(|end| end.0 < step);
    ends[first..].iter().take_while(move |end| end.0 == step).map(|end| end.1)
}

impl Rule for Matchings {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for to in at(&self.sends[rank.index()], step) {
            self.places().send(rank, to, Route::default(), out);
        }
        for from in at(&self.receives[rank.index()], step) {
            self.places().receive(rank, from, out);
        }
    }

    fn slots(&self) -> u64 {
        self.places().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().final_block(rank, slot)
    }
}

fn setting(matchings: u32) -> Parameters {
    Parameters::from([("matchings".to_owned(), Setting::Integer(matchings.into()))])
}

static INFO: Info = Info::new(
    "demand-matchings",
    "every block straight to its destination, blocks of nearly equal size at the same time",
    "edge colouring (Koenig 1916), largest first",
)
.taking(&[Parameter::number(
    "matchings",
    "the most matchings, at least the messages of the busiest rank or node",
)
.by_cost()])
.by_demand();

impl Algorithm for DemandMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, messages) = (&request.problem, SizedBlocks::of(request)?);
        let fewest = messages.fewest();
        let most = values.number("matchings", fewest.into(), u32::MAX.into())?;
        let most = most.map_or(fewest, |most| most as u32);
        let (rule, claims) = messages.matchings(problem.ranks, request.carrier_ports(), most);
        Ok(Solution::new(request, values, rule, claims).with("matchings", u64::from(most)))
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let messages = SizedBlocks::of(request)?;
        let fewest = messages.fewest();
        let more = messages.unlimited().max(fewest) - fewest;
        let mut numbers: Vec<u32> = (0..NUMBERS)
            .map(|i| fewest + (u64::from(more) * u64::from(i) / u64::from(NUMBERS - 1)) as u32)
            .collect();
        numbers.dedup();
        Ok(numbers.into_iter().map(setting).collect())
    }

    fn memory(&self, request: &Request<'_>) -> u128 {
        // Sizes, what remains of them, and a colour for each pair: measured up to 2,000 ranks.
        const PAIR: u128 = 96;
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS { 0 } else { PAIR * u128::from(ranks).pow(2) }
    }
}
