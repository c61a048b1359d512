//! All-to-all-v on nodes of several ranks, in messages of whole nodes and matchings coloured for the demand
//! (after FAST, Lei et al. 2025, arXiv 2505.09764, and DeepEP, DeepSeek 2025).
//!
//! Three phases. Ranks of a node give their blocks for another node to the rank that carries them, and those for
//! each other to their destinations. Carriers exchange combined messages inter-node. They distribute what they have
//! received intra-node. The messages of a phase are coloured as `demand-matchings` colours blocks (`colouring.rs`).
//!
//! A *flow* is what some ranks of a node have for another node: with `collect=node` all its ranks, for the fewest
//! startups; with `collect=rank` each rank has a flow of its own, as in DeepEP. A flow is one message, from a carrier
//! to the rank with the same number on the other node. Flows come by falling size. One of several ranks goes to the
//! carriers with the least bytes so far. One of a single rank stays with it unless either end has more than the mean
//! of its node, and a startup; as in FAST the others get the rest.
//!
//! Inter-node a node sends one flow and receives one in a step, or as many as a rank has ports; where a node
//! has the ports of all its ranks together, each rank does so.
//!
//! Claim: of each phase, its matchings in which bytes move and the sum of their largest messages. No plan with
//! these messages costs less than startup x the most messages of a rank (inter-node: node) + the sum over i of the
//! largest i-th largest message of one, each summed over the phases; `tests/correctness/node_matchings.rs` counts how
//! far the cost is above.

mod flows;

use topocoll_schedule::{Block, Demand, Rule, Slot, SlotSet, Step};
use topocoll_topology::{Rank, Route};

use self::flows::{Flow, Flows};
use super::demand_matchings::{STARTUP, STARTUP_PARAMETER, at, check_ranks, startup_bytes};
use crate::factor::colouring::{Colouring, Edge, in_steps};
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct NodeMatchings;

/// A message to be matched: its bytes, its ends, the vertices that they are, and what they need to know.
type Pending = (u64, [u32; 2], [u32; 2], [u32; 2]);

struct NodePlan {
    flows: Flows,
    /// The steps after each phase.
    ends: [u32; 3],
    /// By rank the step of each message, with its peer or in the second phase its flow.
    sends: Vec<Vec<(u32, u32)>>,
    receives: Vec<Vec<(u32, u32)>>,
}

impl NodePlan {
    fn new(request: &Request<'_>, demand: &Demand, flows: Flows, startup: u64) -> (Self, Claims) {
        let (ranks, ports) = (request.problem.ranks, request.problem.both_ports());
        let (nodes, width) = (&flows.nodes, flows.nodes.largest());
        // By rank, the bytes given to and dealt to each rank of its node.
        let mut given = vec![0u64; (ranks * width) as usize];
        let mut dealt = given.clone();
        let place = |at: u32, other: u32| (at * width + other - flows.node(Rank(other)).0) as usize;
        for from in 0..ranks {
            for (to, bytes) in (0..).zip(demand.row(Rank(from))) {
                let node = nodes.node_of(Rank(to));
                if nodes.node_of(Rank(from)) == node {
                    given[place(from, to)] += bytes;
                } else {
                    let flow = &flows.all[flows.number(Rank(from), node)];
                    given[place(from, flow.from)] += bytes;
                    dealt[place(flow.to, to)] += bytes;
                }
            }
        }
        let inside = |bytes: &[u64]| -> Vec<Pending> {
            let others = |from| {
                let (first, size) = flows.node(Rank(from));
                (first..first + size).filter(move |&to| to != from).map(move |to| [from, to])
            };
            let message =
                |[from, to]: [u32; 2]| (bytes[place(from, to)], [from, to], [from, to], [to, from]);
            (0..ranks).flat_map(others).map(message).collect()
        };
        // Where a node has the ports of all its ranks, ranks are matched inter-node too.
        let by_rank = u64::from(ports.node) >= u64::from(ports.rank) * u64::from(width);
        let between = flows.arriving.iter().flatten().map(|&i| {
            let Flow { bytes, from, to, .. } = flows.all[i as usize];
            let vertex = |rank| if by_rank { rank } else { nodes.node_of(Rank(rank)) };
            (bytes, [from, to], [from, to].map(vertex), [i; 2])
        });
        let phases = [inside(&given), between.collect(), inside(&dealt)];
        let lists = || vec![Vec::new(); ranks as usize];
        let mut plan = Self { flows, ends: [0; 3], sends: lists(), receives: lists() };
        let (mut colouring, mut cost) = (Colouring::default(), (0, 0));
        for (phase, messages) in phases.into_iter().enumerate() {
            let ports = if phase == 1 { request.carrier_ports() } else { ports.rank };
            let added = plan.add(phase, messages, &mut colouring, (ports, startup));
            cost = (cost.0 + added.0, cost.1 + added.1);
        }
        plan.sends.iter_mut().chain(&mut plan.receives).for_each(|list| list.sort());
        (plan, Claims::new(cost.0, cost.1))
    }

    /// Adds a phase, its messages without bytes last. Gives its steps, and the sum of their largest messages.
    fn add(
        &mut self,
        phase: usize,
        mut messages: Vec<Pending>,
        colouring: &mut Colouring,
        (ports, startup): (u32, u64),
    ) -> (u64, u128) {
        messages.sort_by_key(|message| std::cmp::Reverse(message.0));
        let (mut falling, mut step_of) = (Vec::new(), Vec::new());
        let mut end = phase.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut cost = (0, 0);
        for messages in messages.chunk_by(|a, b| (a.0 > 0) == (b.0 > 0)) {
            colouring.edges.clear();
            let edges = messages.iter().map(|&(weight, _, ends, _)| Edge { ends, weight });
            colouring.edges.extend(edges);
            colouring.colour(self.sends.len(), startup);
            let weights = &colouring.colours.weights;
            let added = in_steps(weights, ports as usize, &mut falling, &mut step_of);
            cost = (cost.0 + added.0, cost.1 + added.1);
            for (&(_, [from, to], _, known), &colour) in messages.iter().zip(&colouring.colours.of)
            {
                let step = end + step_of[colour as usize];
                self.sends[from as usize].push((step, known[0]));
                self.receives[to as usize].push((step, known[1]));
            }
            end += weights.len().div_ceil(ports as usize) as u32;
        }
        self.ends[phase] = end;
        cost
    }
}

impl Rule for NodePlan {
    fn steps(&self) -> u32 {
        self.ends[2]
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let flows = &self.flows;
        let phase = self.ends.iter().filter(|&&end| end <= step).count();
        for known in at(&self.sends[rank.index()], step) {
            let (to, slots) = match phase {
                0 => (known, flows.gives(rank, known)),
                1 => (flows.all[known as usize].to, flows.sent(&flows.all[known as usize])[0]),
                _ => (known, flows.dealt(rank.0, known)[0]),
            };
            out.send(Rank(to), SlotSet::of(slots), Route::default());
        }
        for known in at(&self.receives[rank.index()], step) {
            let flow = |i: u32| &flows.all[i as usize];
            let (from, slots) = match phase {
                0 => (known, flows.takes(Rank(known), rank.0)),
                1 => (flow(known).from, SlotSet::of(flows.sent(flow(known))[1])),
                _ => (known, SlotSet::of(flows.dealt(known, rank.0)[1])),
            };
            out.receive(Rank(from), slots);
        }
    }

    fn slots(&self) -> u64 {
        self.flows.rooms[3]
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.flows.initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.flows.final_block(rank, slot)
    }
}

const COLLECT: &str = "collect";

static INFO: Info = Info::new(
    "node-matchings",
    "blocks of a node for another one in one message, in matchings coloured for the demand",
    "after FAST, Lei et al. 2025 (arXiv 2505.09764), and DeepEP, DeepSeek 2025; edge colouring (Koenig 1916)",
)
.by_node()
.taking(&[
    Parameter::words(
        COLLECT,
        &[
            ("node", "a message has the blocks of all ranks of a node for another one"),
            ("rank", "it has those of one rank, which sends it unless its share is too large"),
        ],
    ),
    STARTUP_PARAMETER,
])
.by_demand();

impl Algorithm for NodeMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let nodes = request.clusters()?;
        if nodes.nodes() == 1 {
            return Err(request.requires("a cluster of several nodes"));
        }
        check_ranks(request.problem.ranks)?;
        let demand = request.demand.ok_or(NotApplicable::NoDemand)?;
        let startup = startup_bytes(request, values)?;
        let flows = Flows::new(nodes, demand, values.is(COLLECT, "rank"), startup);
        let (plan, claims) = NodePlan::new(request, demand, flows, startup);
        Ok(Solution::new(request, values, plan, claims).with(STARTUP, startup))
    }
}
