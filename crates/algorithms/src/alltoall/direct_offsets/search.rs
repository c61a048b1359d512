//! Offsets assigned to steps by exchanges between them.
//!
//! Two offsets are exchanged between steps, or an offset takes another of its shortest routes, wherever
//! that makes the two steps no worse: by their busiest directions, then by the sum of squared loads. The
//! exchanges tried are drawn with a fixed seed, equally many on every machine.

use topocoll_topology::{Graph, MixedRadix, Rank, Topology};

use super::{Carried, add, carried, cost, walk};
use crate::offsets::{self, SignedHops, directions};

/// Exchanges that are tried.
pub(super) const TRIED: u32 = 1 << 17;

/// An offset, or an unused port as offset 0, and its routes.
pub(super) struct Sent {
    pub(super) offset: Rank,
    pub(super) routes: Vec<SignedHops>,
    pub(super) taken: usize,
}

impl Sent {
    pub(super) fn taken_route(&self) -> &SignedHops {
        &self.routes[self.taken]
    }

    fn hops(&self) -> u32 {
        self.taken_route().iter().map(|hops| hops.unsigned_abs()).sum()
    }

    /// An offset of a torus; at half a side it may take either direction.
    pub(super) fn on_torus(radix: &MixedRadix, offset: Rank) -> Self {
        let routes = offsets::on_torus(radix, walk::hops(radix, offset));
        Self { offset, routes, taken: 0 }
    }

    /// An unused port.
    pub(super) fn unused(dimensions: usize) -> Self {
        Self { offset: Rank(0), routes: vec![SignedHops::from_elem(0, dimensions)], taken: 0 }
    }
}

/// The offsets of a twisted torus, step by step as many as there are ports: the longest routes first,
/// to and fro, so that all steps begin with as many hops.
pub(super) fn dealt(lattice: &Graph, ports: usize) -> Vec<Sent> {
    let dimensions = lattice.link_classes().len();
    let routes = offsets::on_twisted(lattice).into_iter().zip((0..).map(Rank)).skip(1);
    let mut all: Vec<Sent> =
        routes.map(|(routes, offset)| Sent { offset, routes, taken: 0 }).collect();
    all.sort_by_key(|sent| (std::cmp::Reverse(sent.hops()), sent.offset));
    let steps = all.len().div_ceil(ports);
    let mut by_step: Vec<Vec<Sent>> = (0..steps).map(|_| Vec::new()).collect();
    for (i, sent) in all.into_iter().enumerate() {
        let (round, place) = (i / steps, i % steps);
        by_step[if round % 2 == 0 { place } else { steps - 1 - place }].push(sent);
    }
    for step in &mut by_step {
        step.resize_with(ports, || Sent::unused(dimensions));
    }
    by_step.into_iter().flatten().collect()
}

/// Exchanges offsets that make no two steps worse.
pub(super) fn exchange(sent: &mut [Sent], ports: usize, tried: u32) {
    let Some(dimensions) = sent.first().map(|sent| sent.taken_route().len()) else { return };
    let mut steps: Vec<Carried> = sent
        .chunks(ports)
        .map(|step| carried(step.iter().map(Sent::taken_route), dimensions))
        .collect();
    let mut random = fastrand::Rng::with_seed(0);
    for _ in 0..tried {
        let [a, b] = [0; 2].map(|_| random.usize(..sent.len()));
        let (from, to) = (a / ports, b / ports);
        if from == to && a != b {
            continue;
        }
        let [x, y] = [a, b].map(|i| random.usize(..sent[i].routes.len()));
        let changed = |step: usize, out: usize, into: &SignedHops| {
            let mut carried = steps[step].clone();
            for (direction, hops) in directions(sent[out].taken_route().iter().copied()) {
                carried[direction] -= hops;
            }
            add(&mut carried, into.iter().copied());
            carried
        };
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        if a == b {
            let after = changed(from, a, &sent[a].routes[x]);
            if cost(&after) <= cost(&steps[from]) {
                steps[from] = after;
                sent[a].taken = x;
            }
            continue;
        }
        let after = [changed(from, a, &sent[b].routes[y]), changed(to, b, &sent[a].routes[x])];
        if sum(cost(&after[0]), cost(&after[1])) <= sum(cost(&steps[from]), cost(&steps[to])) {
            [steps[from], steps[to]] = after;
            (sent[a].taken, sent[b].taken) = (x, y);
            sent.swap(a, b);
        }
    }
}
