//! Every block straight to its destination, all ranks at the same offsets at once: the direct
//! complete exchange of a torus, whose links are equivalent under any translation.
//!
//! In a step every rank sends to itself + o, for up to k offsets o on k ports, by the same shortest
//! route each. So a link along u upwards carries as many messages as the routes of the step have hops
//! along u upwards, and the load of all links is known from one rank. A step costs as many blocks
//! as its busiest direction has messages, so the steps are to be balanced.
//!
//! - On a torus `direct_offsets/walk.rs` puts the offsets in an order. With k a multiple of 4 on even sides,
//!   and of 2n on n equal ones, its volume is the least for the hops that there are, but for the last
//!   steps. Where it is not, on at most 2^14 ranks and with three ports or more, a search follows.
//! - On a twisted torus offsets are assigned to as few steps as the ports allow, the longest routes first,
//!   and the search follows.
//! - The search is in `direct_offsets/search.rs`.
//!
//! Claim: ceil((P - 1) / k) steps of a block each; the sum over steps of the busiest direction's
//! messages is as counted from one rank. On NxN with N even and k = 4 it is N^3 / 8, the bisection bound,
//! for k = 2 about N^3 / 6, for k = 1 about N^3 / 3, as the longer of the two coordinates counts. On the
//! twisted 4x4x8, both short sides shifting by 4, with 6 ports it is 1.05 of the bound;
//! `tests/correctness/lattices.rs` counts others.

mod search;
mod walk;

use smallvec::SmallVec;
use topocoll_schedule::{Block, Parameters, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Graph, Grid, MixedRadix, Rank, Route, Shape};

use crate::error::check_sides;
use crate::offsets::{SignedHops, Torus, directions};
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};
use search::Sent;

pub(crate) struct DirectOffsets;

/// Up to this number of ranks offsets are exchanged between steps.
const MOST_EXCHANGED: u32 = 1 << 14;
/// No exchanges are tried on a torus if the volume exceeds its bound by one part of this many.
const CLOSE: u64 = 64;
/// Exchanges tried on a torus, for each rank.
const EXCHANGES: u32 = 64;
/// The most ranks of a torus that are ranked.
const MOST_RANKED: u32 = 128;

/// Messages of a link in each direction: by dimension up and down.
type Carried = SmallVec<[u64; 12]>;

fn carried<'r>(routes: impl Iterator<Item = &'r SignedHops>, dimensions: usize) -> Carried {
    let mut carried = SmallVec::from_elem(0, 2 * dimensions);
    for route in routes {
        add(&mut carried, route.iter().copied());
    }
    carried
}

fn add(carried: &mut Carried, route: impl Iterator<Item = i32>) {
    directions(route).for_each(|(direction, hops)| carried[direction] += hops);
}

/// The cost of a step: its busiest direction, then the squares of all.
fn cost(carried: &Carried) -> (u64, u64) {
    let all = carried.iter().copied();
    (all.clone().max().unwrap_or(0), all.map(|messages| messages * messages).sum())
}

/// The routes of offsets.
enum Routes {
    /// Of each.
    Listed(Vec<SignedHops>),
    /// The nearer direction along each side of a torus.
    Nearest,
}

/// Offsets assigned to steps.
struct Dealt {
    radix: MixedRadix,
    /// Offsets in a step, at most.
    ports: u32,
    /// Step by step as many as there are ports; 0 for an unused port.
    offsets: Vec<Rank>,
    routes: Routes,
}

/// Sums over steps.
struct Sums {
    /// Messages of the busiest direction.
    link_blocks: u64,
    /// Hops of the longest route.
    hops: u64,
    /// Most messages of a direction in a step.
    most: u64,
}

impl Dealt {
    /// Of a twisted torus.
    fn twisted(lattice: &Graph, radix: &MixedRadix, ports: u32) -> Self {
        let mut sent = search::dealt(lattice, ports as usize);
        search::exchange(&mut sent, ports as usize, search::TRIED);
        Self::listed(radix, ports, &sent)
    }

    /// Of a torus.
    fn torus(grid: &Grid, ports: u32) -> Self {
        let radix = grid.radix();
        let ports = ports.min(radix.ranks() - 1).max(1);
        let offsets = walk::ordered(radix, ports as usize);
        let dealt = Self { radix: radix.clone(), ports, offsets, routes: Routes::Nearest };
        // With one port or two an offset and its negative cannot be improved.
        if ports <= 2 || radix.ranks() > MOST_EXCHANGED {
            return dealt;
        }
        let found = dealt.sums().link_blocks;
        let least = dealt.least_link_blocks();
        if found <= least + least / CLOSE {
            return dealt;
        }
        let dimensions = radix.dimensions();
        let mut sent: Vec<Sent> =
            dealt.offsets.iter().map(|&offset| Sent::on_torus(radix, offset)).collect();
        let steps = sent.len().div_ceil(ports as usize);
        sent.resize_with(steps * ports as usize, || Sent::unused(dimensions));
        let tried = search::TRIED.min(EXCHANGES * radix.ranks());
        search::exchange(&mut sent, ports as usize, tried);
        let searched = Self::listed(radix, ports, &sent);
        if searched.sums().link_blocks < found { searched } else { dealt }
    }

    fn listed(radix: &MixedRadix, ports: u32, sent: &[Sent]) -> Self {
        let offsets = sent.iter().map(|sent| sent.offset).collect();
        let routes = Routes::Listed(sent.iter().map(|sent| sent.taken_route().clone()).collect());
        Self { radix: radix.clone(), ports, offsets, routes }
    }

    /// The hops of an offset along a dimension.
    fn hops(&self, i: usize, u: usize) -> i32 {
        match &self.routes {
            Routes::Listed(routes) => routes[i][u],
            Routes::Nearest => walk::hops_along(&self.radix, self.offsets[i], u),
        }
    }

    fn route(&self, i: usize) -> Route {
        let mut route = Route::default();
        for u in 0..self.radix.dimensions() {
            route.push(u as u32, self.hops(i, u).into());
        }
        route
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums { link_blocks: 0, hops: 0, most: 0 };
        let ports = self.ports as usize;
        let mut all = Carried::from_elem(0, 2 * self.radix.dimensions());
        for first in (0..self.offsets.len()).step_by(ports) {
            let mut longest = 0;
            all.fill(0);
            for i in first..(first + ports).min(self.offsets.len()) {
                let hops = (0..self.radix.dimensions()).map(|u| self.hops(i, u));
                add(&mut all, hops.clone());
                longest = hops.map(|hops| u64::from(hops.unsigned_abs())).sum::<u64>().max(longest);
            }
            let busiest = all.iter().copied().max().unwrap_or(0);
            sums.link_blocks += busiest;
            sums.hops += longest;
            sums.most = sums.most.max(busiest);
        }
        sums
    }

    /// A bound on the sum of the busiest direction's messages on a torus: half of the hops of all offsets
    /// along its longest side.
    fn least_link_blocks(&self) -> u64 {
        let ranks = u64::from(self.radix.ranks());
        let along = |&side: &u32| {
            let (half, side) = (u64::from(side / 2), u64::from(side));
            let hops = half * (half + 1) - if side % 2 == 0 { half } else { 0 };
            (ranks / side * hops).div_ceil(2)
        };
        self.radix.sides().iter().map(along).max().unwrap_or(0)
    }

    /// The rank at the offset of a slot from `rank`, or against it; slot 0 is that of its own block.
    fn across(&self, rank: Rank, slot: Slot, sign: i64) -> Option<Rank> {
        let Some(i) = (slot as usize).checked_sub(1) else { return Some(rank) };
        let offset = self.offsets[i];
        if offset.0 == 0 {
            return None;
        }
        let along = |rank, u| {
            self.radix.shifted(rank, u, sign * i64::from(self.radix.coordinate(offset, u)))
        };
        Some((0..self.radix.dimensions()).fold(rank, along))
    }
}

impl Rule for Dealt {
    fn steps(&self) -> u32 {
        self.offsets.len().div_ceil(self.ports as usize) as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (ports, all) = (u64::from(self.ports), self.offsets.len() as u64);
        let first = u64::from(step) * ports;
        for slot in first + 1..=(first + ports).min(all) {
            let slots = || SlotSet::of(Strided::contiguous(slot, 1));
            if let (Some(to), Some(from)) =
                (self.across(rank, slot, 1), self.across(rank, slot, -1))
            {
                out.send(to, slots(), self.route(slot as usize - 1));
                out.receive(from, slots());
            }
        }
    }

    fn slots(&self) -> u64 {
        self.offsets.len() as u64 + 1
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
    "every block straight to its destination, all ranks of a torus at the same offsets",
    "own construction; the twist is that of Camara et al. 2010",
);

fn torus<'r>(request: &Request<'r>) -> Result<Torus<'r>, NotApplicable> {
    if let Shape::Grid(grid) = request.topology.shape() {
        check_sides(grid, "sides that wrap", |u| !grid.wrap()[u] && grid.sides()[u] > 1)?;
    }
    let needs = "a torus, which may be twisted, without missing nodes or failed links";
    let torus = Torus::of(request.topology).ok_or_else(|| request.requires(needs))?;
    let ranks = request.problem.ranks;
    if matches!(torus, Torus::Twisted(..)) && ranks > MOST_EXCHANGED {
        let rule = "at most 16384 ranks on a twisted torus";
        return Err(NotApplicable::Ranks { rule, ranks });
    }
    Ok(torus)
}

impl Algorithm for DirectOffsets {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        if matches!(torus(request)?, Torus::Plain(_)) && request.problem.ranks > MOST_RANKED {
            return Err(NotApplicable::Unranked { why: "more than 128 ranks take many steps" });
        }
        Ok(vec![Parameters::new()])
    }

    /// Offsets, once as a walk finds them and once in order.
    fn memory(&self, request: &Request<'_>) -> u128 {
        const OFFSET: u128 = 8;
        OFFSET * u128::from(request.problem.ranks)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let ports = request.problem.ports;
        let dealt = match torus(request)? {
            Torus::Plain(grid) => Dealt::torus(grid, ports),
            Torus::Twisted(lattice, radix) => Dealt::twisted(lattice, radix, ports),
        };
        let (steps, Sums { link_blocks, hops, most }) = (dealt.steps(), dealt.sums());
        let claims = Claims {
            hops: Some(hops.into()),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: most <= 1,
            link_bytes_floor: request.bytes(link_blocks),
            hops_floor: hops.into(),
            ..Claims::new(steps.into(), request.bytes(steps))
        };
        Ok(Solution::new(request, values, dealt, claims))
    }
}
