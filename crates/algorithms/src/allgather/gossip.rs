//! Gossip: all-gather hop by hop over any links between ranks. In each step a rank receives some of its
//! missing blocks, each over one of its links (Fraigniaud and Lazard, Discrete Applied Mathematics 53, 1994, survey
//! gossiping; Won et al., TACOS, MICRO 2024, match blocks to the links of a step in the same way).
//!
//! `target` is a volume. The messages of each step are the largest after which every rank can still receive
//! the rest within it. Where even single blocks are too large, as some rank finds too few useful ones at its
//! neighbours, it grows by a block. A larger target takes fewer steps. With fewer ports than links the links
//! of a step are matched to ranks by augmenting paths. Blocks are matched to links in the same way, those
//! that the fewest ranks have first.
//!
//! Claim: as many steps as are used, and in each the largest message. No link carries two messages of a
//! step. The bound is P - 1 blocks over the links, or the ports, of the rank that has the fewest. On
//! `torus:4x4x4` with a failed link it takes 6 steps and 13 blocks with 6 ports, and 63 blocks, the bound,
//! in 11 steps with one. `tests/correctness/gossip.rs` has other networks.

mod step;

use topocoll_schedule::{Block, Collective, Parameters, Setting};
use topocoll_topology::Rank;

use self::step::{Network, State};
use crate::hops::{self, Links, Sent};
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Search, Solution, Values};

pub(crate) struct Gossip;

const TARGET: Parameter = Parameter::number(
    "target",
    "blocks of the largest messages of all steps together, if possible; by default the bound",
);

static INFO: Info = Info::new(
    "gossip",
    "every rank receives its missing blocks, each over one of its links, hop by hop",
    "blocks matched to links step by step, as Won et al. 2024",
)
.performing(Collective::AllGather)
.taking(&[TARGET]);

/// The messages of an all-gather.
fn sent(network: &Network, target: u64) -> Vec<Sent> {
    let (mut state, mut left, mut sent) = (State::new(network), target, Vec::new());
    for step in 0.. {
        if state.is_done() {
            break;
        }
        let useful = state.useful();
        let largest = useful.iter().copied().max().unwrap_or(0);
        let messages = loop {
            let mut sizes = (1..=largest.min(left)).rev();
            match sizes.find_map(|most| state.messages(&useful, most, left)) {
                Some(messages) => break messages,
                None => left += 1,
            }
        };
        left -= messages.iter().map(|(_, blocks)| blocks.len() as u64).max().unwrap_or(0);
        for (link, blocks) in messages {
            state.deliver(link, &blocks);
            sent.push(Sent { step, link, blocks });
        }
    }
    sent
}

/// The most ranks: every block that a rank receives is stored, which takes 1.2 GB.
const MOST_RANKS: (u32, &str) = (4096, "at most 4096 ranks");

/// The most ranks where the links of a step are matched, which takes over a minute for twice as many.
const MOST_MATCHED: u32 = 512;

/// The network of a request.
fn network<'r>(request: &Request<'r>) -> Result<(Links<'r>, Network), NotApplicable> {
    let graph = hops::network(request, MOST_RANKS)?;
    let (ranks, ports) = (request.problem.ranks, request.problem.ports);
    if ranks > MOST_MATCHED && ports < hops::all_ports(&graph) {
        let rule = "at most 512 ranks, or a port for each link";
        return Err(NotApplicable::Ranks { rule, ranks });
    }
    let network = Network::new(&graph, ports);
    Ok((graph, network))
}

impl Algorithm for Gossip {
    fn info(&self) -> &Info {
        &INFO
    }

    /// From the bound to half as much again.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let (_, network) = network(request)?;
        let bound = network.bound();
        let mut targets: Vec<u64> =
            [0, 1, 2, 4, 8].iter().map(|share| bound + bound * share / 16).collect();
        targets.dedup();
        let setting = |target: u64| Parameters::from([(TARGET.name.to_owned(), target.into())]);
        Ok(targets.into_iter().map(setting).collect())
    }

    /// The bound of the volume, in as many steps as the longest route has links.
    fn search(&self, request: &Request<'_>, setting: &Parameters) -> Option<Search> {
        let (graph, network) = network(request).ok()?;
        let (target, seconds) = match setting.get(TARGET.name) {
            Some(Setting::Integer(target)) => (u128::from(*target), network.seconds()),
            _ => (network.bound().into(), 0.0),
        };
        let steps = graph.diameter();
        let hops = u128::from(steps);
        let least = Claims { hops_floor: hops, ..Claims::new(steps.into(), request.bytes(target)) };
        Some(Search { seconds, least })
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (graph, network) = network(request)?;
        let bound = network.bound();
        let target = values.number(TARGET.name, bound, u32::MAX.into())?.unwrap_or(bound);
        let of = format!("gossip {} {target}", request.problem.ports);
        let sent = request.kept(of, || sent(&network, target));
        let of = (&*graph, network.ends());
        let solution = hops::solution(request, values, of, &sent, |rank| Block::of(Rank(rank)));
        Ok(solution.with(TARGET.name, target))
    }
}
