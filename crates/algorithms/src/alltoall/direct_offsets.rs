//! Every block straight to its destination, all ranks at the same offsets at once: the direct
//! complete exchange of a twisted torus, whose links are equivalent under any translation.
//!
//! In a step every rank sends to itself + o, for up to k offsets o on k ports, by the same route
//! each. So a link along u upwards carries as many messages as the routes of the step have hops
//! along u upwards, and the load of all links is known from one rank. A step costs as many blocks
//! as its busiest direction has messages, so the steps are to be balanced: offsets are assigned to
//! as few steps as the ports allow, the longest routes first. Then two are exchanged between steps,
//! or an offset takes another of its shortest routes, wherever that makes the two steps no worse:
//! by their busiest directions, then by the sum of squared loads. The exchanges tried are drawn
//! with a fixed seed, equally many on every machine.
//!
//! Claim: ceil((P - 1) / k) steps of a block each; the sum over steps of the busiest direction's
//! messages is as counted from one rank. On 4x4x8, both short sides shifting by 4, with 6 ports it is
//! 1.05 of the bound; `tests/correctness/lattices.rs` counts others.

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Graph, MixedRadix, Rank, Route, Shape, Topology};

use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct DirectOffsets;

/// Every offset is assigned to a step.
const MOST_RANKS: u32 = 1 << 14;

/// The most routes of an offset that are examined.
const ROUTES: usize = 16;

/// Signed hops along each dimension.
type SignedHops = SmallVec<[i32; 6]>;

/// Exchanges that are tried.
const TRIED: u32 = 1 << 17;

/// Shortest routes from rank 0 to every rank, at most [`ROUTES`] to each.
fn shortest_routes(lattice: &Graph) -> Vec<Vec<SignedHops>> {
    let ranks = lattice.ranks() as usize;
    let dimensions = lattice.link_classes().len();
    let mut hops = vec![u32::MAX; ranks];
    let mut routes: Vec<Vec<SignedHops>> = vec![Vec::new(); ranks];
    hops[0] = 0;
    routes[0].push(SmallVec::from_elem(0, dimensions));
    let mut open = VecDeque::from([Rank(0)]);
    while let Some(at) = open.pop_front() {
        let own = routes[at.index()].clone();
        for u in 0..dimensions {
            for direction in [1, -1] {
                let Some(to) = lattice.neighbour(at, u, direction) else { continue };
                if hops[to.index()] == u32::MAX {
                    hops[to.index()] = hops[at.index()] + 1;
                    open.push_back(to);
                }
                if hops[to.index()] == hops[at.index()] + 1 {
                    for route in &own {
                        let mut route = route.clone();
                        route[u] += direction as i32;
                        let known = &mut routes[to.index()];
                        if known.len() < ROUTES && !known.contains(&route) {
                            known.push(route);
                        }
                    }
                }
            }
        }
    }
    routes
}

/// An offset, or an unused port, and its route.
struct Sent {
    offset: Option<Rank>,
    routes: Vec<SignedHops>,
    taken: usize,
}

impl Sent {
    fn taken_route(&self) -> &SignedHops {
        &self.routes[self.taken]
    }

    fn hops(&self) -> u32 {
        self.taken_route().iter().map(|hops| hops.unsigned_abs()).sum()
    }

    fn route(&self) -> Route {
        let mut route = Route::default();
        for (u, &hops) in (0..).zip(self.taken_route()) {
            route.push(u, hops.into());
        }
        route
    }
}

/// Messages of a link in each direction: by dimension up and down.
type Carried = SmallVec<[u32; 12]>;

fn carried<'r>(routes: impl Iterator<Item = &'r SignedHops>, dimensions: usize) -> Carried {
    let mut carried = SmallVec::from_elem(0, 2 * dimensions);
    for route in routes {
        for (u, &hops) in route.iter().enumerate() {
            carried[2 * u + usize::from(hops < 0)] += hops.unsigned_abs();
        }
    }
    carried
}

/// The cost of a step: its busiest direction, then the squares of all.
fn cost(carried: &Carried) -> (u64, u64) {
    let all = carried.iter().map(|&messages| u64::from(messages));
    (all.clone().max().unwrap_or(0), all.map(|messages| messages * messages).sum())
}

/// Offsets assigned to steps.
struct Dealt {
    radix: MixedRadix,
    ports: u32,
    /// Step by step as many as there are ports.
    sent: Vec<Sent>,
}

impl Dealt {
    fn new(lattice: &Graph, radix: &MixedRadix, ports: u32) -> Self {
        let radix = radix.clone();
        let routes = shortest_routes(lattice).into_iter().zip((0..).map(Rank)).skip(1);
        let mut all: Vec<Sent> = routes
            .map(|(routes, offset)| Sent { offset: Some(offset), routes, taken: 0 })
            .collect();
        all.sort_by_key(|sent| (std::cmp::Reverse(sent.hops()), sent.offset));
        // To and fro, so that all steps begin with as many hops.
        let steps = all.len().div_ceil(ports as usize);
        let mut by_step: Vec<Vec<Sent>> = (0..steps).map(|_| Vec::new()).collect();
        for (i, sent) in all.into_iter().enumerate() {
            let (round, place) = (i / steps, i % steps);
            by_step[if round % 2 == 0 { place } else { steps - 1 - place }].push(sent);
        }
        let rest = || Sent {
            offset: None,
            routes: vec![SignedHops::from_elem(0, radix.dimensions())],
            taken: 0,
        };
        for step in &mut by_step {
            step.resize_with(ports as usize, rest);
        }
        let mut dealt = Self { radix, ports, sent: by_step.into_iter().flatten().collect() };
        dealt.exchange();
        dealt
    }

    /// Exchanges offsets that make no two steps worse.
    fn exchange(&mut self) {
        let ports = self.ports as usize;
        let mut steps: Vec<Carried> =
            self.sent.chunks(ports).map(|step| self.carried(step)).collect();
        let mut random = fastrand::Rng::with_seed(0);
        for _ in 0..if steps.is_empty() { 0 } else { TRIED } {
            let [a, b] = [0; 2].map(|_| random.usize(..self.sent.len()));
            let (from, to) = (a / ports, b / ports);
            if from == to && a != b {
                continue;
            }
            let [x, y] = [a, b].map(|i| random.usize(..self.sent[i].routes.len()));
            let changed = |step: usize, out: usize, into: &SignedHops| {
                let mut carried = steps[step].clone();
                for (u, &hops) in self.sent[out].taken_route().iter().enumerate() {
                    carried[2 * u + usize::from(hops < 0)] -= hops.unsigned_abs();
                }
                for (u, &hops) in into.iter().enumerate() {
                    carried[2 * u + usize::from(hops < 0)] += hops.unsigned_abs();
                }
                carried
            };
            let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
            if a == b {
                let after = changed(from, a, &self.sent[a].routes[x]);
                if cost(&after) <= cost(&steps[from]) {
                    steps[from] = after;
                    self.sent[a].taken = x;
                }
                continue;
            }
            let after = [
                changed(from, a, &self.sent[b].routes[y]),
                changed(to, b, &self.sent[a].routes[x]),
            ];
            if sum(cost(&after[0]), cost(&after[1])) <= sum(cost(&steps[from]), cost(&steps[to])) {
                [steps[from], steps[to]] = after;
                (self.sent[a].taken, self.sent[b].taken) = (x, y);
                self.sent.swap(a, b);
            }
        }
    }

    fn carried(&self, step: &[Sent]) -> Carried {
        carried(step.iter().map(Sent::taken_route), self.radix.dimensions())
    }

    fn by_step(&self) -> std::slice::Chunks<'_, Sent> {
        self.sent.chunks(self.ports as usize)
    }

    /// The sum over steps of the busiest direction's messages.
    fn link_blocks(&self) -> u64 {
        self.by_step().map(|step| cost(&self.carried(step)).0).sum()
    }

    /// The sum over steps of the longest route.
    fn hops(&self) -> u64 {
        self.by_step().map(|step| u64::from(step.iter().map(Sent::hops).max().unwrap_or(0))).sum()
    }

    /// The rank at the offset of a slot from `rank`, or against it; slot 0 is that of its own block.
    fn across(&self, rank: Rank, slot: Slot, sign: i64) -> Option<Rank> {
        let Some(i) = (slot as usize).checked_sub(1) else { return Some(rank) };
        let offset = self.sent[i].offset?;
        let along = |rank, u| {
            self.radix.shifted(rank, u, sign * i64::from(self.radix.coordinate(offset, u)))
        };
        Some((0..self.radix.dimensions()).fold(rank, along))
    }
}

impl Rule for Dealt {
    fn steps(&self) -> u32 {
        (self.sent.len() / self.ports as usize) as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let first = step * self.ports;
        for i in first..first + self.ports {
            let slot = Slot::from(i) + 1;
            let slots = || SlotSet::of(Strided::contiguous(slot, 1));
            if let (Some(to), Some(from)) =
                (self.across(rank, slot, 1), self.across(rank, slot, -1))
            {
                out.send(to, slots(), self.sent[i as usize].route());
                out.receive(from, slots());
            }
        }
    }

    fn slots(&self) -> u64 {
        self.sent.len() as u64 + 1
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.across(rank, slot, 1)? })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.across(rank, slot, -1)?, to: rank })
    }

    fn classes(&self) -> RankClasses {
        let periods = Coordinates::from_elem(1, self.radix.dimensions());
        RankClasses::translations(self.radix.clone(), periods)
    }
}

static INFO: Info = Info::new(
    "direct-offsets",
    "every block straight to its destination, all ranks of a twisted torus at the same offsets",
    "own construction; the twist is that of Camara et al. 2010",
);

impl Algorithm for DirectOffsets {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (lattice, radix) = match request.topology.shape() {
            Shape::Graph(graph)
                if graph.lattice().is_some()
                    && let Some(radix) = graph.translations() =>
            {
                (graph, radix)
            }
            _ => {
                let needs = "a twisted torus without missing nodes or failed links";
                return Err(request.requires(needs));
            }
        };
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS {
            let rule = "at most 16384 ranks";
            return Err(NotApplicable::Ranks { rule, ranks });
        }
        let dealt = Dealt::new(lattice, radix, request.problem.ports);
        let claims = Claims {
            hops: Some(dealt.hops().into()),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            link_bytes_floor: request.bytes(dealt.link_blocks()),
            hops_floor: dealt.hops().into(),
            ..Claims::new(dealt.steps().into(), request.bytes(dealt.steps()))
        };
        Ok(Solution::new(request, values, dealt, claims))
    }
}
