//! The clustered 1-factor algorithm (Sanders and Traeff 2002, section 3, Figure 2).
//!
//! Nodes leave in order of size. Phase i treats the ranks whose local index lies between the
//! (i-1)-th and the i-th node size, `done <= l(u) < current`: the nodes still active, those of that
//! size or more, run through a 1-factorization of their complete graph with self-loops, and a pair
//! (U, V), U no larger than V, exchanges for each such u of U and every v of V in turn. A node
//! paired with itself sends intra-node. At no time does a node exchange with more than one other.
//!
//! Claim: with every rank's copy to itself counted as a message, max(size) * p steps (Theorem 1).
//! Here a rank keeps its own block, so a round is one step per such rank shorter where every
//! active node of the largest size is paired with itself: at most one round of each phase. Sizes
//! 1, 2, 3 take 15 steps (Figure 3) where 18 are counted with self copies.
//!
//! # Parameters
//! - `inside=early` is the refinement of section 4: all ranks of a node exchange at once
//!   intra-node, when it is first paired with itself. Later phases then need no factor of
//!   self-loops, which saves a round where the number of active nodes is even, and the whole phase
//!   where it is one. Where it is even in the first phase too, that ends with size - 1 more steps.
//! - `rounds=permutations` is the generalisation that ends section 3: in round i a node sends to
//!   the i-th node after it and receives from the i-th before it. Together with `inside=early` no
//!   round is idle for any number of nodes: max(size) (p - max(size)) inter-node steps, the bound
//!   of the largest node's port, and max(size) - 1 intra-node.
//! - With k ports a node takes part in k rounds at once, a graph of degree k.

use topocoll_schedule::{Block, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Clusters, Rank, Route, Topology};

use crate::alltoall::one_factor::Factors;
use crate::factor::direct_exchange::Partners;
use crate::factor::node_rounds::Rounds;
use crate::layout::matching_layout::MatchingLayout;
use crate::layout::node_rows::{Nodes, each_with, node_classes};
use crate::{
    Algorithm, ByLinks, Claims, Info, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

pub(crate) struct ClusteredFactor;

struct Clustered {
    nodes: Nodes,
    ports: u32,
    /// Whether nodes complete the intra-node exchange when first paired with themselves.
    early: bool,
    /// Whether rounds are permutations of the nodes, not factors.
    permutations: bool,
    phases: Vec<Phase>,
    steps: u32,
}

struct Phase {
    /// Local indices treated: `done..current`.
    done: u32,
    current: u32,
    /// The number of active nodes, which are the first.
    active: u32,
    first_step: u32,
    /// Factors or permutations, `ports` of them a round.
    factors: std::ops::Range<u32>,
    /// Steps of the first round, which may be without the largest nodes, and of each other.
    first_round: u32,
    round: u32,
}

impl Phase {
    fn steps_of_rounds(&self, ports: u32) -> u64 {
        match self.factors.len().div_ceil(ports as usize) as u64 {
            0 => 0,
            rounds => u64::from(self.first_round) + (rounds - 1) * u64::from(self.round),
        }
    }

    /// The places of the sender and the receiver of the j-th message inside a node of some ranks.
    fn ends_inside(&self, j: u32, size: u32) -> Option<[u32; 2]> {
        let others = size - 1;
        let from = self.done + j.checked_div(others)?;
        let to = j % others;
        (from < self.current).then_some([from, to + u32::from(to >= from)])
    }

    /// The round of a step and the step's number in it, or its number after all rounds.
    fn round_of(&self, step: u32, ports: u32) -> Result<(u32, u32), u32> {
        let in_phase = step - self.first_step;
        match u64::from(in_phase).checked_sub(self.steps_of_rounds(ports)) {
            Some(after) => Err(after as u32),
            None => Ok(match in_phase.checked_sub(self.first_round) {
                None => (0, in_phase),
                Some(after) => (1 + after / self.round, after % self.round),
            }),
        }
    }
}

/// A node's part in a factor.
enum NodeRole {
    Inside,
    /// Exchange with one node, or send to one and receive from another.
    Between {
        to: u32,
        from: u32,
    },
}

impl Clustered {
    /// The phases, or `None` if there are more steps than are numbered.
    fn new(clusters: &Clusters, ports: u32, early: bool, permutations: bool) -> Option<Self> {
        let (nodes, phases, steps) = (Nodes::new(clusters), Vec::new(), 0);
        let mut clustered = Self { nodes, ports, early, permutations, phases, steps };
        for (done, current, active) in clustered.nodes.sizes() {
            clustered.add_phase(done, current, active)?;
        }
        Some(clustered)
    }

    fn add_phase(&mut self, done: u32, current: u32, active: u32) -> Option<()> {
        let (largest, treated) = (self.clusters().largest(), current - done);
        let largest_nodes = self.nodes.largest_nodes();
        // Factors without inter-node messages are left out after the intra-node exchange.
        let factors = match (self.early, self.permutations) {
            (false, _) => 0..active,
            (true, true) => 1..active,
            (true, false) => Factors { ranks: active }.rounds(),
        };
        let round = treated.checked_mul(largest)?;
        // Node 0, the largest, is paired with itself in factor 0; with several ports, only where
        // that is the only one.
        let alone = factors.start == 0 && (self.ports == 1 || active == 1);
        let first_round = match (self.early, self.permutations) {
            (false, true) if alone => round - treated,
            (false, false)
                if alone && (largest_nodes == 1 || largest_nodes == 2 && active == 2) =>
            {
                round - treated
            }
            (true, false) if alone && largest_nodes == 1 && active % 2 == 1 && active > 1 => {
                let inside = if done == 0 { largest - 1 } else { 0 };
                (treated * self.clusters().size(self.nodes.node_at(1))).max(inside)
            }
            _ => round,
        };
        let phase =
            Phase { done, current, active, first_step: self.steps, factors, first_round, round };
        let inside =
            if self.closes_inside(&phase) { (largest - 1).div_ceil(self.ports) } else { 0 };
        let steps = phase.steps_of_rounds(self.ports).checked_add(inside.into())?;
        self.steps = self.steps.checked_add(u32::try_from(steps).ok()?)?;
        self.phases.push(phase);
        Some(())
    }

    /// Whether a phase ends with an intra-node round of all nodes: the first, unless every node is
    /// paired with itself in some factor of it.
    fn closes_inside(&self, phase: &Phase) -> bool {
        let paired = !self.permutations && phase.active % 2 == 1 && phase.active > 1;
        self.early && phase.done == 0 && !paired
    }

    fn clusters(&self) -> &Clusters {
        self.nodes.clusters()
    }

    /// Whether a node may be paired with itself in a round of a phase.
    fn pairs_inside(&self, phase: &Phase, round: u32) -> bool {
        match self.permutations {
            true => !self.early && round == 0,
            false => !self.closes_inside(phase),
        }
    }

    /// The steps by links where all nodes are equal: every pair of nodes exchanges in every step of
    /// its round.
    fn by_links(&self, block_bytes: u64) -> Option<ByLinks> {
        let [phase] = &self.phases[..] else { return None };
        let (nodes, size, ports) = (phase.active, self.clusters().largest(), self.ports);
        let factors = phase.factors.len() as u32;
        let rounds = factors.div_ceil(ports);
        // Rounds with a node that is paired with itself, and whether there are no others.
        let paired = match (self.early, self.permutations) {
            (false, true) => 1,
            (true, true) => 0,
            (early, false) if nodes % 2 == 1 && !(early && nodes == 1) => rounds,
            (true, false) => 0,
            // Two nodes in every other factor.
            (false, false) if ports == 1 => nodes / 2,
            (false, false) => rounds - u32::from(factors % ports == 1),
        };
        let alone = match (self.early, self.permutations) {
            (true, _) => nodes == 1 && paired > 0,
            (false, true) => nodes == 1 || ports == 1,
            (false, false) => nodes == 1 || nodes == 2 && ports == 1,
        };
        let inside = if self.early { size - 1 } else { size * (size - 1) };
        let both = (paired - u32::from(alone)) * inside;
        let closing = if self.closes_inside(phase) { (size - 1).div_ceil(ports) } else { 0 };
        let intra_node = closing + if alone { phase.first_round } else { 0 };
        let of = |steps: u32| StepsOf::new(steps.into(), steps.into(), block_bytes);
        Some(ByLinks {
            intra_node: of(intra_node),
            inter_node: of(self.steps - intra_node - both),
            both: of(both),
        })
    }

    /// The role of the node at position a in a factor.
    fn part(&self, a: u32, factor: u32, active: u32) -> NodeRole {
        let (to, from) = if self.permutations {
            let before = if factor <= a { a - factor } else { active - (factor - a) };
            let after = if factor < active - a { a + factor } else { factor - (active - a) };
            (after, before)
        } else {
            let partner = if self.early {
                Factors { ranks: active }.to(Rank(a), factor).0
            } else if factor >= a {
                factor - a
            } else {
                active - (a - factor)
            };
            (partner, partner)
        };
        if to == a {
            return NodeRole::Inside;
        }
        NodeRole::Between { to: self.nodes.node_at(to), from: self.nodes.node_at(from) }
    }

    /// The j-th message of a phase from node U to node V: for each treated rank of the smaller, of equal ones
    /// the first in the paper's node order, or in permutations the sender, every rank of the larger.
    fn message(&self, phase: &Phase, from: u32, to: u32, j: u32) -> Option<(Rank, Rank)> {
        let size = |node| self.clusters().size(node);
        let sends = if self.permutations {
            size(from) <= size(to)
        } else {
            (size(from), from) < (size(to), to)
        };
        let (small, large) = if sends { (from, to) } else { (to, from) };
        let size = self.clusters().size(large);
        if j >= (phase.current - phase.done) * size {
            return None;
        }
        let u = self.nodes.local(small, phase.done + j / size);
        let v = self.nodes.local(large, j % size);
        Some(if small == from { (u, v) } else { (v, u) })
    }

    /// The slots of blocks before the first step; where nodes are equivalent, by the distance of their nodes.
    fn places(&self) -> MatchingLayout {
        let ranks = self.clusters().ranks();
        let size = self.clusters().equal_size().filter(|_| self.permutations);
        MatchingLayout::by_node(ranks, size.unwrap_or(ranks))
    }

    /// The slot at `rank` of the block received from another: where its own block for that rank
    /// was, if the two exchange; behind all blocks, if not.
    fn slot_from(&self, rank: Rank, from: Rank) -> Slot {
        let ranks = self.clusters().ranks();
        let node = self.clusters().node_of(rank);
        if self.permutations {
            u64::from(ranks) + self.places().place(rank, from)
        } else if self.clusters().node_of(from) == node {
            u64::from(ranks) + u64::from(from.0 - self.clusters().first_rank(node).0)
        } else {
            from.0.into()
        }
    }

    fn send(&self, rank: Rank, to: Rank, out: &mut Step) {
        self.places().send(rank, to, Route::default(), out);
    }

    fn receive(&self, rank: Rank, from: Rank, out: &mut Step) {
        out.receive(from, SlotSet::of(Strided::contiguous(self.slot_from(rank, from), 1)));
    }

    /// The j-th step of an intra-node exchange of all ranks at once, each over `ports`.
    fn inside(&self, rank: Rank, j: u32, ports: u32, out: &mut Step) {
        let node = self.clusters().node_of(rank);
        let (first, size) = (self.clusters().first_rank(node).0, self.clusters().size(node));
        let l = rank.0 - first;
        for distance in (1 + j * ports..size).take(ports as usize) {
            self.send(rank, self.nodes.local(node, (l + distance) % size), out);
            self.receive(rank, self.nodes.local(node, (l + size - distance) % size), out);
        }
    }

    /// Whether the node at position a is paired with itself in some factor of a round.
    fn is_inside(&self, phase: &Phase, round: u32, a: u32) -> bool {
        let inside = |factor| matches!(self.part(a, factor, phase.active), NodeRole::Inside);
        self.factors_of(phase, round).any(inside)
    }

    /// The factors of a round.
    fn factors_of(&self, phase: &Phase, round: u32) -> std::ops::Range<u32> {
        let first = phase.factors.start + round * self.ports;
        first..first.saturating_add(self.ports).min(phase.factors.end)
    }

    /// The j-th message of a node paired with itself, one at a time.
    fn inside_in_turn(&self, phase: &Phase, rank: Rank, j: u32, out: &mut Step) {
        let node = self.clusters().node_of(rank);
        let Some(ends) = phase.ends_inside(j, self.clusters().size(node)) else { return };
        let [u, v] = ends.map(|end| self.nodes.local(node, end));
        if rank == u {
            self.send(rank, v, out);
        } else if rank == v {
            self.receive(v, u, out);
        }
    }
}

impl Rule for Clustered {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let i = self.phases.partition_point(|phase| phase.first_step <= step) - 1;
        let phase = &self.phases[i];
        let own = self.clusters().node_of(rank);
        let a = self.nodes.position(own);
        if a >= phase.active {
            return;
        }
        let (round, j) = match phase.round_of(step, self.ports) {
            Ok(round) => round,
            Err(j) => return self.inside(rank, j, self.ports, out),
        };
        for factor in self.factors_of(phase, round) {
            match self.part(a, factor, phase.active) {
                NodeRole::Inside if !self.early => self.inside_in_turn(phase, rank, j, out),
                NodeRole::Inside if phase.done == 0 => self.inside(rank, j, 1, out),
                NodeRole::Inside => {}
                NodeRole::Between { to, from } => {
                    if let Some((sender, v)) = self.message(phase, own, to, j)
                        && sender == rank
                    {
                        self.send(rank, v, out);
                    }
                    if let Some((u, receiver)) = self.message(phase, from, own, j)
                        && receiver == rank
                    {
                        self.receive(rank, u, out);
                    }
                }
            }
        }
    }

    /// In a round of equal nodes two ranks of each take part, and two of a node paired with itself.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let [phase] = &self.phases[..] else { return classes.representatives().for_each(each) };
        let size = self.clusters().largest();
        let Ok((round, j)) = phase.round_of(step, self.ports) else {
            return classes.representatives().for_each(each);
        };
        let pairs = self.pairs_inside(phase, round);
        if self.early && pairs && j + 1 < size {
            return classes.representatives().for_each(each);
        }
        let mut locals = vec![j / size, j % size];
        let inside = phase.ends_inside(j, size).filter(|_| pairs && !self.early);
        let mut ends: Vec<u32> =
            inside.into_iter().flatten().filter(|end| !locals.contains(end)).collect();
        if self.permutations {
            locals.append(&mut ends);
        }
        // Without permutations all ranks are in classes of their own.
        for a in (0..phase.active).filter(|&a| !ends.is_empty() && self.is_inside(phase, round, a))
        {
            ends.iter().for_each(|&end| each(self.nodes.local(self.nodes.node_at(a), end)));
        }
        each_with(self.clusters(), &mut locals, classes, each);
    }

    /// In a round of equal nodes, steps differ in which ranks of a node take part, and whether some of them
    /// are the same.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let [phase] = &self.phases[..] else { return None };
        let Ok((round, j)) = phase.round_of(step, self.ports) else {
            return Some(1 << 40 | u64::from(step));
        };
        let size = self.clusters().largest();
        let (u, v) = (j / size, j % size);
        let inside = match phase.ends_inside(j, size) {
            _ if !self.pairs_inside(phase, round) => 0,
            _ if self.early => u64::from(j + 1 < size),
            Some([from, to]) => {
                let same = [from == u, from == v, to == u, to == v].into_iter();
                same.fold(1, |bits, same| 2 * bits + u64::from(same))
            }
            None => 0,
        };
        Some(u64::from(round) << 6 | inside << 1 | u64::from(u == v))
    }

    fn slots(&self) -> u64 {
        let ranks = u64::from(self.clusters().ranks());
        ranks + if self.permutations { ranks } else { u64::from(self.clusters().largest()) }
    }

    /// A slot for every destination; the last ones are for blocks that cannot replace one that
    /// leaves at the same time.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let ranks = u64::from(self.clusters().ranks());
        if self.permutations {
            return self.places().final_block(rank, slot);
        }
        let from = match slot.checked_sub(ranks) {
            None => Rank(slot as u32),
            Some(l) => {
                let node = self.clusters().node_of(rank);
                if l >= u64::from(self.clusters().size(node)) {
                    return None;
                }
                self.nodes.local(node, l as u32)
            }
        };
        let at = if from == rank { u64::from(rank.0) } else { self.slot_from(rank, from) };
        (at == slot).then_some(Block { from, to: rank })
    }

    /// In permutations nodes of equal sizes are equivalent.
    fn classes(&self) -> RankClasses {
        if self.permutations {
            return node_classes(self.nodes.clusters());
        }
        RankClasses::distinct(self.clusters().ranks())
    }
}

static INFO: Info = Info::new(
    "clustered-factor",
    "pairs of nodes by a factor of their complete graph, one pair of ranks at a time",
    "Sanders and Traeff 2002, sections 3 and 4",
)
.by_node()
.with_internal(&[
    Parameter::words(
        "inside",
        &[
            ("paired", "a node paired with itself sends intra-node, one message at a time"),
            ("early", "the whole intra-node exchange in the first such round"),
        ],
    ),
    Parameter::words(
        "rounds",
        &[
            ("factors", "nodes exchange in pairs"),
            ("permutations", "they send to one and receive from another"),
        ],
    ),
]);

impl Algorithm for ClusteredFactor {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let problem = &request.problem;
        let (early, permutations) =
            (values.is("inside", "early"), values.is("rounds", "permutations"));
        let clustered =
            Clustered::new(request.clusters()?, request.carrier_ports(), early, permutations)
                .ok_or(NotApplicable::Ranks {
                    rule: "max(size) * p steps to be numbered in 32 bits",
                    ranks: problem.ranks,
                })?;
        let claims = match clustered.by_links(problem.block_bytes) {
            Some(by_links) => Claims::of_cluster(by_links, false),
            None => Claims {
                rearrangements: Some(0),
                ..Claims::new(clustered.steps.into(), request.bytes(clustered.steps))
            },
        };
        let rounds = if permutations { Rounds::Shifts } else { Rounds::Factors };
        let claims = claims.of_rounds(request, rounds, problem.ports);
        Ok(Solution::new(request, values, clustered, claims))
    }
}
