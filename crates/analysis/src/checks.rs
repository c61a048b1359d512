//! Checks of both methods of verification.

use rayon::prelude::*;
use topocoll_schedule::{Block, Collective, Schedule, Transfer};
use topocoll_topology::{Machine, Rank, Route};

use crate::Violation;

/// The first violation in order, independent of the threads.
pub(crate) fn first_violation(
    found: impl ParallelIterator<Item = Result<(), Violation>>,
) -> Result<(), Violation> {
    found.find_map_first(Result::err).map_or(Ok(()), Err)
}

/// Checks that `held`, the blocks of `rank` before the first step, has each of its own blocks once. Blocks for
/// ranks of other groups may be missing.
pub(crate) fn check_start(
    schedule: &Schedule,
    rank: Rank,
    held: impl Iterator<Item = Block>,
) -> Result<(), Violation> {
    let problem = schedule.problem;
    let gathers = problem.operation == Collective::AllGather;
    let mut times = vec![0u32; problem.blocks_at_start() as usize];
    for block in held {
        if block.from != rank {
            return Err(Violation::Start { rank, block, times: 1 });
        }
        times[if gathers { 0 } else { block.to.index() }] += 1;
    }
    let to = |i: usize| if gathers { rank } else { Rank(i as u32) };
    let missing = |i, times| times == 0 && schedule.wants(rank, to(i));
    match (0..).zip(&times).position(|(i, &times)| times > 1 || missing(i, times)) {
        None => Ok(()),
        Some(i) => {
            let block = problem.wanted(rank, to(i));
            Err(Violation::Start { rank, block, times: times[i] })
        }
    }
}

/// Whether the route of a send stays on the machine and ends at its receiver.
pub(crate) fn leads_to_peer(
    machine: &Machine,
    from: Rank,
    send: &Transfer,
    own: &mut Route,
) -> bool {
    let topology = &*machine.topology;
    let route = send.route_from(from, topology, own);
    topology.link_numbers() == 0 || topology.follow(from, route) == Ok(topology.node_of(send.peer))
}
