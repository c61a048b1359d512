//! All-gather on clusters: inter-node messages of whole nodes, intra-node doubling.
//!
//! First the ranks of a node gather their blocks; then nodes send these to other nodes; last, the
//! ranks of a node gather the received blocks. Intra-node, a rank has the blocks of 1, 2, 4 ..
//! ranks before it around the node and sends them to the rank as many after it, in the last round
//! only the missing blocks: the circulant graph of `concat` (Bruck et al. 1997, section 4).
//!
//! Claim, on N nodes of s ranks, p in all:
//! - `rounds=direct`: 2 ceil(log2 s) + N - 1 steps. In round i a node sends its s blocks to the
//!   i-th after it, its ranks carrying in turn. The inter-node volume is p - s blocks, which a node
//!   must receive through its port. The intra-node volume is s - 1 before and, where s divides N -
//!   1, (p - s) (s - 1) / s after. With k ports k inter-node rounds make a step.
//! - `rounds=doubling`: 2 ceil(log2 s) + ceil(log2 N) steps. The first rank of each node gathers
//!   among nodes as ranks do intra-node, p - s blocks, and broadcasts them along a binomial tree,
//!   (p - s) ceil(log2 s) blocks: for small blocks.
//!
//! Nodes may have any sizes; then a round is as long as its largest message.
//!
//! # The layout
//! A slot for each rank's block, by falling size of its node, the same for all: every message is a
//! run or two, three where it is of ranks on either side of its node. Nothing is copied.

use topocoll_schedule::{Block, Collective, Parameters, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::hierarchical::{BETWEEN, InterNode, TURNS, candidates};
use crate::layout::node_rows::{Nodes, Row};
use crate::{
    Algorithm, ByLinks, Claims, Info, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

pub(crate) struct NodeGather;

struct Gather {
    row: Row,
    ports: u32,
    doubling: bool,
    /// Steps of an intra-node gathering, and inter-node.
    inside: u32,
    between: u32,
}

/// `ceil(log2 n)`.
fn doublings(n: u32) -> u32 {
    n.next_power_of_two().ilog2()
}

/// The blocks that a round of doubling among n adds: as many as before it, or the missing ones.
fn added(n: u32, round: u32) -> Option<(u32, u32)> {
    let before = 1 << round;
    (before < n).then(|| (before, before.min(n - before)))
}

impl Gather {
    fn new(nodes: Nodes, ports: u32, doubling: bool) -> Self {
        let row = Row::new(nodes);
        let (largest, count) = (row.size(0), row.count());
        let between = if doubling { doublings(count) } else { (count - 1).div_ceil(ports) };
        Self { row, ports, doubling, inside: doublings(largest), between }
    }

    /// Appends the slots of a number of ranks from one on, around all ranks.
    fn push(&self, slots: &mut SlotSet, first: u32, ranks: u32) {
        let ahead = ranks.min(self.row.ranks() - first);
        slots.push(Strided::contiguous(first.into(), ahead.into()));
        slots.push(Strided::contiguous(0, (ranks - ahead).into()));
    }

    /// The slots of a number of nodes that end at a position.
    fn nodes_to(&self, slots: &mut SlotSet, position: u32, nodes: u32) {
        let first = (position + self.row.count() + 1 - nodes) % self.row.count();
        self.push(slots, self.row.before(first), self.row.ranks_on(first, nodes));
    }

    /// The first round: the slots of a number of ranks of a node that end at a local index.
    fn locals_to(&self, position: u32, l: u32, ranks: u32) -> SlotSet {
        let (base, size) = (self.row.before(position), self.row.size(position));
        let mut slots = SlotSet::default();
        if ranks > l + 1 {
            let around = ranks - l - 1;
            self.push(&mut slots, base + size - around, around);
        }
        let first = (l + 1).saturating_sub(ranks);
        self.push(&mut slots, base + first, l + 1 - first);
        slots
    }

    /// The last round: the slots that a number of ranks of a node have received, the last at a
    /// local index.
    fn received_to(&self, position: u32, l: u32, ranks: u32) -> SlotSet {
        let size = self.row.size(position);
        let mut slots = SlotSet::default();
        let mut push = |first: u32, last: u32| {
            let near = self.row.distances(size, first).start;
            let far = self.row.distances(size, last).end;
            let all = self.row.count();
            self.nodes_to(&mut slots, (position + all - near) % all, far - near);
        };
        if ranks > l + 1 {
            push(size - (ranks - l - 1), size - 1);
        }
        push((l + 1).saturating_sub(ranks), l);
        slots
    }

    /// An intra-node round of doubling, of the `slots` of a rank and a number of ranks.
    fn double(
        &self,
        rank: Rank,
        round: u32,
        slots: impl Fn(u32, u32, u32) -> SlotSet,
        out: &mut Step,
    ) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        let Some((distance, ranks)) = added(size, round) else { return };
        let (to, from) = ((l + distance) % size, (l + size - distance) % size);
        out.send(self.row.rank(position, to), slots(position, l, ranks), Route::default());
        out.receive(self.row.rank(position, from), slots(position, from, ranks));
    }

    /// A round of single nodes' messages.
    fn direct(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let all = self.row.count();
        let carrier = |position: u32| self.row.carrier(self.row.size(position), round);
        if carrier(position) != l {
            return;
        }
        let (to, from) = ((position + round) % all, (position + all - round) % all);
        let of = |position: u32| {
            let mut slots = SlotSet::default();
            self.nodes_to(&mut slots, position, 1);
            slots
        };
        out.send(self.row.rank(to, carrier(to)), of(position), Route::default());
        out.receive(self.row.rank(from, carrier(from)), of(from));
    }

    /// A round of doubling among the first ranks of nodes.
    fn double_nodes(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let all = self.row.count();
        let Some((distance, nodes)) = added(all, round).filter(|_| l == 0) else { return };
        let (to, from) = ((position + distance) % all, (position + all - distance) % all);
        let of = |position: u32| {
            let mut slots = SlotSet::default();
            self.nodes_to(&mut slots, position, nodes);
            slots
        };
        out.send(self.row.rank(to, 0), of(position), Route::default());
        out.receive(self.row.rank(from, 0), of(from));
    }

    /// A round of the intra-node broadcast.
    fn broadcast(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let all = self.row.count();
        let mut slots = SlotSet::default();
        self.nodes_to(&mut slots, (position + all - 1) % all, all - 1);
        let reached = 1 << round;
        if l < reached && l + reached < self.row.size(position) {
            out.send(self.row.rank(position, l + reached), slots, Route::default());
        } else if (reached..2 * reached).contains(&l) {
            out.receive(self.row.rank(position, l - reached), slots);
        }
    }

    /// The intra-node and the inter-node steps.
    fn by_links(&self, block_bytes: u64) -> ByLinks {
        let (all, ranks) = (self.row.count(), self.row.ranks());
        let (mut inside, mut between) = (u128::from(self.row.size(0) - 1), 0);
        for round in 0..self.between {
            let of_nodes =
                |nodes| (0..all).map(|first| self.row.ranks_on(first, nodes)).max().unwrap_or(0);
            let most = if self.doubling {
                added(all, round).map_or(0, |(_, nodes)| of_nodes(nodes))
            } else {
                self.row.size(0)
            };
            between += u128::from(most);
        }
        for round in 0..if all > 1 { self.inside } else { 0 } {
            let of_node = |position: u32| {
                let size = self.row.size(position);
                let Some((_, together)) = added(size, round) else { return 0 };
                if self.doubling {
                    return u64::from(ranks - size);
                }
                let of_rank = |l| self.received_to(position, l, together).len();
                (0..size).map(of_rank).max().unwrap_or(0)
            };
            inside += u128::from((0..all).map(of_node).max().unwrap_or(0));
        }
        let steps = self.steps() - self.between;
        ByLinks {
            intra_node: StepsOf::new(steps.into(), inside, block_bytes),
            inter_node: StepsOf::new(self.between.into(), between, block_bytes),
            ..ByLinks::default()
        }
    }
}

impl Rule for Gather {
    fn steps(&self) -> u32 {
        self.inside + self.between + if self.row.count() > 1 { self.inside } else { 0 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        if step < self.inside {
            return self.double(rank, step, |at, l, ranks| self.locals_to(at, l, ranks), out);
        }
        let step = step - self.inside;
        match step.checked_sub(self.between) {
            None if self.doubling => self.double_nodes(rank, step, out),
            None => {
                let first = 1 + step * self.ports;
                for round in first..first.saturating_add(self.ports).min(self.row.count()) {
                    self.direct(rank, round, out);
                }
            }
            Some(step) if self.doubling => self.broadcast(rank, step, out),
            Some(step) => {
                self.double(rank, step, |at, l, ranks| self.received_to(at, l, ranks), out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.row.ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.final_block(rank, slot).filter(|block| block.from == rank)
    }

    fn final_block(&self, _rank: Rank, slot: Slot) -> Option<Block> {
        let (position, local) = self.row.standing(slot as u32);
        Some(Block::of(self.row.rank(position, local)))
    }
}

static INFO: Info = Info::new(
    "node-gather",
    "intra-node doubling, messages of whole nodes' blocks, and intra-node doubling again",
    "two levels of Bruck et al. 1997, section 4; locality-aware as Bienz et al. 2022",
)
.by_node()
.performing(Collective::AllGather)
.taking(&[
    BETWEEN,
    Parameter::number(
        "lanes",
        "with between, ranks of a node that carry for it, a divisor of its ranks; by default as \
         many as the ports allow",
    ),
    TURNS,
])
.with_internal(&[Parameter::words(
    "rounds",
    &[
        ("direct", "every node sends to every other"),
        ("doubling", "one rank of each node gathers, and broadcasts intra-node"),
    ],
)]);

impl Algorithm for NodeGather {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let mut settings = self.info().combinations();
        settings.truncate(if request.clusters()?.nodes() > 1 { 2 } else { 1 });
        settings.extend(candidates(request));
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let clusters = request.clusters()?;
        if let Some(between) = InterNode::of(request, values)? {
            return between.hierarchical();
        }
        if values.is_given("lanes") {
            return Err(values.alone("lanes", format!("{}=NAME", BETWEEN.name)));
        }
        Row::check(clusters)?;
        let doubling = values.is("rounds", "doubling");
        let rule = Gather::new(Nodes::new(clusters), request.carrier_ports(), doubling);
        let claims = Claims::of_cluster(rule.by_links(request.problem.block_bytes), true);
        Ok(Solution::new(request, values, rule, claims))
    }
}
