//! Checks of both methods of verification.

use rayon::prelude::*;
use topocoll_schedule::{Block, Collective, Problem, Transfer};
use topocoll_topology::{Machine, Rank, Route};

use crate::Violation;

/// The first violation in order, independent of the threads.
pub(crate) fn first_violation(
    found: impl ParallelIterator<Item = Result<(), Violation>>,
) -> Result<(), Violation> {
    found.find_map_first(Result::err).map_or(Ok(()), Err)
}

/// Checks that `held`, the blocks of `rank` before the first step, has each of its own blocks once.
pub(crate) fn check_start(
    problem: Problem,
    rank: Rank,
    held: impl Iterator<Item = Block>,
) -> Result<(), Violation> {
    let gathers = problem.operation == Collective::AllGather;
    let mut times = vec![0u32; problem.blocks_at_start() as usize];
    for block in held {
        if block.from != rank {
            return Err(Violation::Start { rank, block, times: 1 });
        }
        times[if gathers { 0 } else { block.to.index() }] += 1;
    }
    match times.iter().position(|&times| times != 1) {
        None => Ok(()),
        Some(i) => {
            let block =
                if gathers { Block::of(rank) } else { Block { from: rank, to: Rank(i as u32) } };
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
