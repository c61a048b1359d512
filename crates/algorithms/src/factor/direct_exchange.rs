//! The common rule of direct exchanges: in each round every rank has one partner to send to and one
//! to receive from, and every block goes straight to its destination.
//!
//! Slot i holds the block for the partner of round i, and after the round the block from the
//! partner of round i, so nothing is ever copied or packed. With k ports, k rounds make a step.

use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Grid, Rank, Route, Shape, Topology};

use crate::{Claims, Request};

/// The partners of a direct exchange, one per rank and round, over all `ranks` rounds.
pub(crate) trait Partners: Send + Sync {
    /// The rank to which `rank` sends in `round`; itself where it keeps its own block.
    fn to(&self, rank: Rank, round: u32) -> Rank;

    /// The rank from which `rank` receives in `round`.
    fn from(&self, rank: Rank, round: u32) -> Rank;

    /// The route of a message between two ranks; by default the machine's own.
    fn route(&self, _from: Rank, _to: Rank) -> Route {
        Route::default()
    }

    /// Equivalent ranks.
    fn classes(&self) -> RankClasses;

    /// The rounds in which messages move; in the others all ranks keep their own block.
    fn rounds(&self) -> std::ops::Range<u32>;

    /// The class of a round, less than 2^63, if rounds are known in which the same pairs of nodes exchange equally
    /// many messages by the machine's own routes, and equally many ranks are idle.
    fn class_of_round(&self, _round: u32) -> Option<u64> {
        None
    }

    /// The dragonfly of whose routers, and not nodes, these classes are.
    fn equivalent_on_routers(&self) -> Option<[u32; 3]> {
        None
    }
}

/// The rule of a direct exchange.
pub(crate) struct DirectExchange<P> {
    pub(crate) ranks: u32,
    pub(crate) ports: u32,
    pub(crate) partners: P,
}

impl<P: Partners> DirectExchange<P> {
    /// The rounds of a step.
    fn rounds(&self, step: u32) -> std::ops::Range<u32> {
        let rounds = self.partners.rounds();
        let first = rounds.start + step * self.ports;
        first..first.saturating_add(self.ports).min(rounds.end)
    }
}

impl<P: Partners> Rule for DirectExchange<P> {
    fn steps(&self) -> u32 {
        steps(&self.partners.rounds(), self.ports)
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for round in self.rounds(step) {
            let slot = || SlotSet::of(Strided::contiguous(Slot::from(round), 1));
            let (to, from) = (self.partners.to(rank, round), self.partners.from(rank, round));
            if to != rank {
                out.send(to, slot(), self.partners.route(rank, to));
            }
            if from != rank {
                out.receive(from, slot());
            }
        }
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.partners.to(rank, slot as u32) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.partners.from(rank, slot as u32), to: rank })
    }

    fn classes(&self) -> RankClasses {
        self.partners.classes()
    }

    /// Steps of as many rounds of one class as there are ports.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let mut rounds = self.rounds(step);
        let whole = rounds.len() == self.ports as usize;
        let class = self.partners.class_of_round(rounds.start)?;
        let is_one =
            whole && rounds.all(|round| self.partners.class_of_round(round) == Some(class));
        Some(if is_one { class } else { 1 << 63 | u64::from(step) })
    }

    fn equivalent_on_routers(&self) -> Option<[u32; 3]> {
        self.partners.equivalent_on_routers()
    }
}

fn steps(rounds: &std::ops::Range<u32>, ports: u32) -> u32 {
    rounds.len().div_ceil(ports as usize) as u32
}

/// The claims of a direct exchange of `rounds`: a block a step.
pub(crate) fn claims(request: &Request<'_>, rounds: &std::ops::Range<u32>, ports: u32) -> Claims {
    let steps = steps(rounds, ports);
    let hops_floor = match request.topology.shape() {
        Shape::Grid(grid) => hops_of_a_rank(grid) / u128::from(ports),
        _ => 0,
    };
    let shares_none = request.topology.links() == 0;
    Claims {
        hops: shares_none.then_some(0),
        rearrangements: Some(0),
        copied_bytes: Some(0),
        contention_free: shares_none,
        hops_floor,
        ..Claims::new(steps.into(), request.bytes(steps))
    }
}

/// The hops of all messages of rank 0, one to each rank: a floor of the sum over steps of the
/// largest hop count where each is a step of its own.
pub(crate) fn hops_of_a_rank(grid: &Grid) -> u128 {
    (0..grid.sides().len()).map(|u| hops_along(grid, u)).sum()
}

/// The same along one dimension.
pub(crate) fn hops_along(grid: &Grid, u: usize) -> u128 {
    let side = u128::from(grid.sides()[u]);
    let around = if grid.wrap()[u] { side * side / 4 } else { side * (side - 1) / 2 };
    around * (u128::from(grid.ranks()) / side)
}
