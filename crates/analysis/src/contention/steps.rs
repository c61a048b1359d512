//! The steps model of traffic that no rule describes: the counterpart of [`count`](crate::count).

use topocoll_schedule::RankClasses;
use topocoll_topology::{Machine, Rank, Topology};

use super::traffic::{Share, Traffic};
use crate::charges::Rates;
use crate::counts::{Counts, StepCount, Sums, Time};
use crate::error::{by_all_threads, check_memory};
use crate::loads::Loads;
use crate::{AnalysisError, symmetry};

/// The result of the steps model: barriers between steps, and a shared link charged its whole load.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StepsModel {
    /// The predicted time, term by term.
    pub time: Time,
    /// Steps in which a message moves.
    pub steps: u64,
    /// Messages.
    pub messages: u128,
    /// Seconds that links are busy, summed over links.
    pub link_seconds: f64,
    /// The most bytes on one link in a step.
    pub largest_load: u128,
}

/// Prices traffic by the steps model, node by node.
///
/// # Errors
/// Link counters beyond `memory` bytes.
pub fn steps_model(
    traffic: &dyn Traffic,
    machine: &Machine,
    memory: u128,
) -> Result<StepsModel, AnalysisError> {
    // The bytes that a rank receives are known where they are sent, so all ranks are visited.
    let limited = !machine.timing.injection.is_unlimited();
    let classes = match limited {
        true => RankClasses::distinct(traffic.nodes()),
        false => traffic.classes(),
    };
    let classes = symmetry::common(&classes, &*machine.topology);
    let injected = if limited { traffic.nodes() as usize } else { 0 };
    let loads = Loads::memory(&classes, &*machine.topology);
    let needed = by_all_threads(loads + (injected * size_of::<Injected>()) as u128);
    check_memory("link counters", needed, memory)?;
    let rates = Rates::new(machine);
    let scratch = || Scratch {
        loads: Loads::new(&classes, &*machine.topology),
        share: Share::default(),
        injected: vec![Injected::default(); injected],
    };
    let sums = Sums::of(traffic.steps(), scratch, |step, scratch| {
        one_step(traffic, machine, &rates, &classes, step, scratch)
    });
    let largest_load = sums.largest_load;
    let counts = sums.charge(machine.ranks(), &machine.timing);
    let Counts { time, steps, messages, link_seconds, .. } = counts;
    Ok(StepsModel { time, steps, messages, link_seconds, largest_load })
}

struct Scratch {
    loads: Loads,
    share: Share,
    /// By rank, or the node of that number; empty if injection is not limited.
    injected: Vec<Injected>,
}

/// Bytes sent and received.
#[derive(Clone, Copy, Default)]
struct Injected {
    rank: [u128; 2],
    node: [u128; 2],
}

fn one_step(
    traffic: &dyn Traffic,
    machine: &Machine,
    rates: &Rates<'_>,
    classes: &RankClasses,
    step: u32,
    scratch: &mut Scratch,
) -> StepCount {
    let Scratch { loads, share, injected } = scratch;
    let topology = &*machine.topology;
    let mut out = StepCount::default();
    let (node_classes, _) = symmetry::of_nodes(classes, topology);
    let alike = u64::from(traffic.nodes() / classes.count());
    for node in (0..classes.count()).map(|class| classes.representative(class)) {
        traffic.share(node, step, share);
        out.copied = out.copied.max(share.copied);
        out.messages += share.sends.len() as u128 * u128::from(alike);
        for send in &share.sends {
            let bytes = u128::from(send.bytes);
            out.largest_message = out.largest_message.max(bytes);
            out.packed = out.packed.max(send.packed.into());
            out.hops = out.hops.max(send.route.hops());
            // Numbered links are charged by their loads.
            if send.route.is_empty() {
                out.charges.link(rates, topology.link_class(node, send.to), bytes);
            }
            out.charges.route(rates, node, &send.route, alike, bytes);
            loads.add(topology, node, &send.route, bytes);
            if !injected.is_empty() {
                inject(injected, topology, [node, send.to], bytes);
            }
        }
    }
    for injected in injected.iter_mut() {
        let Injected { rank, node } = std::mem::take(injected);
        rank.into_iter().for_each(|bytes| out.charges.rank(rates, bytes, false));
        node.into_iter().for_each(|bytes| out.charges.node(rates, bytes));
    }
    let mut busiest = Vec::new();
    loads.take(rates, &mut busiest);
    out.load_busiest(rates, &busiest, u64::from(topology.nodes() / node_classes.count()));
    out
}

/// Adds a message to the bytes of its ends, and of their nodes if it leaves one.
fn inject(injected: &mut [Injected], topology: &dyn Topology, ends: [Rank; 2], bytes: u128) {
    let nodes = ends.map(|rank| topology.node_of(rank) as usize);
    for (direction, (rank, node)) in ends.into_iter().zip(nodes).enumerate() {
        injected[rank.index()].rank[direction] += bytes;
        if nodes[0] != nodes[1] {
            injected[node].node[direction] += bytes;
        }
    }
}
