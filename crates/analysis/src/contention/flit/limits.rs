//! The flits that ranks and nodes may inject and eject, where injection is limited.

use topocoll_topology::{Machine, Rank};

use super::rate::{Rate, Through};
use crate::contention::kinds::Kinds;

/// An end of a message: the rank, and its node if the message leaves or enters one.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) rank: Rank,
    pub(super) node: Option<u32>,
}

/// The two directions of injection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Injected,
    Ejected,
}

/// The limit of each rank, or of each node.
struct Limit {
    rate: Rate,
    passed: [Vec<Through>; 2],
}

impl Limit {
    fn new(rate: Rate, of: u32) -> Self {
        Self { rate, passed: [(); 2].map(|()| vec![Through::default(); of as usize]) }
    }

    fn room(&self, way: Way, number: u32, cycle: u64, most: u32) -> u32 {
        self.rate.room(self.passed[way as usize][number as usize], cycle, most)
    }

    fn pass(&mut self, way: Way, number: u32, cycle: u64) {
        self.rate.pass(&mut self.passed[way as usize][number as usize], cycle);
    }
}

/// Whose turn it is to eject at a rank: messages inside a node and those from the network alternate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ejection {
    Free,
    /// Free, and the last flit was of a message inside the node.
    FreeAfterInside,
    /// A flit from the network has waited since then.
    Network,
}

pub(super) struct Limits {
    rank: Option<Limit>,
    node: Option<Limit>,
    /// By rank; empty if no rank is limited.
    turns: Vec<Ejection>,
}

/// The rates of a rank and of a node, where they limit the ports.
fn rates(kinds: &Kinds<'_>) -> [Option<Rate>; 2] {
    let (machine, limits) = (kinds.machine, kinds.machine.injection());
    let flits = |seconds: f64| kinds.fastest() / seconds;
    let below_ports = |flits: f64| flits < f64::from(machine.ports.node);
    // Messages inside a node take no port of it.
    let inside = machine.topology.nodes() < machine.ranks() && limits.rank > 0.0;
    let rank = Some(flits(limits.rank)).filter(|&flits| inside || below_ports(flits));
    let node = Some(flits(limits.node)).filter(|&flits| below_ports(flits));
    [rank, node].map(|flits| flits.map(Rate::near))
}

impl Limits {
    /// Bytes for the ranks and nodes of a machine.
    pub(super) fn memory(kinds: &Kinds<'_>) -> u128 {
        let topology = &kinds.machine.topology;
        let limited = |rate: Option<Rate>, of: u32| rate.map_or(0, |_| u128::from(of));
        let [rank, node] = rates(kinds);
        let channels = 2 * (limited(rank, topology.ranks()) + limited(node, topology.nodes()));
        channels * size_of::<Through>() as u128 + limited(rank, topology.ranks())
    }

    pub(super) fn new(kinds: &Kinds<'_>) -> Self {
        let Machine { topology, .. } = kinds.machine;
        let [rank, node] = rates(kinds);
        let turns = if rank.is_some() { topology.ranks() } else { 0 };
        Self {
            turns: vec![Ejection::Free; turns as usize],
            rank: rank.map(|rate| Limit::new(rate, topology.ranks())),
            node: node.map(|rate| Limit::new(rate, topology.nodes())),
        }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.rank.is_none() && self.node.is_none()
    }

    /// The number of flits, at most `most`, that may pass in a cycle.
    pub(super) fn room(&self, way: Way, end: End, cycle: u64, most: u32) -> u32 {
        let of = |limit: &Option<Limit>, number: Option<u32>| match (limit, number) {
            (Some(limit), Some(number)) => limit.room(way, number, cycle, most),
            _ => most,
        };
        of(&self.rank, Some(end.rank.0)).min(of(&self.node, end.node))
    }

    /// Whether a flit from the network may eject in a cycle in which some others do, at its rank and
    /// at its node.
    pub(super) fn may_eject(&self, end: End, cycle: u64, at_rank: u32, at_node: u32) -> bool {
        let room = |limit: &Option<Limit>, number: Option<u32>, others: u32| match (limit, number) {
            (Some(limit), Some(number)) => {
                limit.room(Way::Ejected, number, cycle, others + 1) > others
            }
            _ => true,
        };
        room(&self.rank, Some(end.rank.0), at_rank) && room(&self.node, end.node, at_node)
    }

    /// Whether a message inside a node may eject at a rank.
    pub(super) fn inside_may_eject(&self, rank: Rank) -> bool {
        self.turns.get(rank.index()) != Some(&Ejection::Network)
    }

    /// A flit from the network found no room to eject.
    pub(super) fn held(&mut self, rank: Rank) {
        if let Some(turn) = self.turns.get_mut(rank.index())
            && *turn == Ejection::FreeAfterInside
        {
            *turn = Ejection::Network;
        }
    }

    /// A flit passes, for which there is room.
    pub(super) fn pass(&mut self, way: Way, end: End, cycle: u64) {
        if way == Way::Ejected
            && let Some(turn) = self.turns.get_mut(end.rank.index())
        {
            *turn = if end.node.is_none() { Ejection::FreeAfterInside } else { Ejection::Free };
        }
        if let Some(limit) = &mut self.rank {
            limit.pass(way, end.rank.0, cycle);
        }
        if let (Some(limit), Some(node)) = (&mut self.node, end.node) {
            limit.pass(way, node, cycle);
        }
    }
}
