//! The complete exchange of a cluster in as many steps as its largest node has messages for others.
//!
//! The inter-node messages are the edges of a bipartite multigraph, nodes that send on one side and
//! nodes that receive on the other: s(U) s(V) of them from U to V. In a step each node sends one
//! and receives one, a matching, and the two partners may differ. Koenig's theorem (1916) says that
//! as many matchings suffice as the largest node has edges, and here they have a closed form. It is
//! the generalisation that ends section 3 of Sanders and Traeff 2002 (a node sends to the i-th
//! after it, and receives from the i-th before it) with another order of a pair's messages, so that
//! the intra-node exchange takes no step of its own.
//!
//! Claim: max(size) (p - max(size)) steps on two or more nodes of p ranks, the bound of the largest
//! node's port, and no more for the intra-node exchange; for N nodes of s ranks each, s^2 (N - 1).
//! A node by itself takes p - 1. With k ports the k-th part, rounded up. No node of s' <= s ranks
//! has more to send: s (p - s) - s' (p - s') = (s - s') (p - s - s').
//!
//! # The order of a pair's messages
//! Nodes leave in order of size. A phase treats the messages that one more range of sizes,
//! `done..current`, adds: of the messages from U to V, m the smaller and l the larger size of the
//! two, those number e = q l + r with q in `done..current`. Round i of a phase has (current - done)
//! max(size) steps, in which U sends to the i-th node after it. Message e goes from local index r,
//! turned by q on the smaller node, to local index -1 - r, turned equally: a node's ranks take
//! turns.
//! # Intra-node
//! So in step t < s of the first round rank t of a node of s is the one that sends to another node,
//! and rank s - 1 - t the one that receives from one. In a cyclic exchange of s + 1 ranks, the last
//! of them for all other nodes, i sends to i + s - t in step t: rank t to the last one, and the
//! last one to rank s - 1 - t. So the intra-node exchange takes these s steps, through ports that
//! are free.

use std::ops::ControlFlow;

use topocoll_schedule::{Block, RankClasses, Rule, Slot, Step};
use topocoll_topology::{Rank, Route, Topology};

use crate::factor::node_rounds::Rounds;
use crate::layout::matching_layout::MatchingLayout;
use crate::layout::node_rows::{Nodes, each_with, node_classes};
use crate::{Algorithm, ByLinks, Claims, Info, NotApplicable, Request, Solution, StepsOf, Values};

pub(crate) struct ClusteredMatchings;

struct Matchings {
    nodes: Nodes,
    ports: u32,
    phases: Vec<Phase>,
    /// Steps of one port, of which `ports` make a step.
    matchings: u32,
}

struct Phase {
    done: u32,
    current: u32,
    /// The number of active nodes, the first by falling size.
    active: u32,
    first: u32,
    /// Matchings of a round.
    round: u32,
}

/// One rank's end of a message.
struct NodeMessage {
    matching: u32,
    receives: bool,
    peer: Rank,
}

impl Phase {
    /// The positions at a distance after and before one of the nodes active.
    fn around(&self, position: u32, distance: u32) -> [u32; 2] {
        let left = self.active - position;
        let after = if distance < left { position + distance } else { distance - left };
        let before = if distance <= position {
            position - distance
        } else {
            self.active - (distance - position)
        };
        [after, before]
    }
}

impl Matchings {
    /// `None` if there are more matchings than are numbered.
    fn new(nodes: Nodes, ports: u32) -> Option<Self> {
        let (clusters, mut phases, mut matchings) = (nodes.clusters(), Vec::new(), 0u32);
        for (done, current, active) in nodes.sizes() {
            let round = (current - done).checked_mul(clusters.largest())?;
            phases.push(Phase { done, current, active, first: matchings, round });
            matchings = matchings.checked_add(round.checked_mul(active - 1)?)?;
        }
        // The intra-node exchange of a single node.
        let matchings = if clusters.nodes() == 1 { clusters.ranks() - 1 } else { matchings };
        Some(Self { nodes, ports, phases, matchings })
    }

    fn steps(&self) -> u32 {
        self.matchings.div_ceil(self.ports)
    }

    /// The largest node sends inter-node in every matching, and intra-node in as many as it has
    /// ranks.
    fn by_links(&self, block_bytes: u64) -> ByLinks {
        let clusters = self.nodes.clusters();
        let of = |steps: u32| StepsOf::new(steps.into(), steps.into(), block_bytes);
        let all = self.steps();
        if clusters.nodes() == 1 {
            return ByLinks { intra_node: of(all), ..ByLinks::default() };
        }
        let largest = clusters.largest();
        let both = if largest > 1 { largest.div_ceil(self.ports) } else { 0 };
        ByLinks { inter_node: of(all - both), both: of(both), ..ByLinks::default() }
    }

    /// The j-th message from node U to node V in a round, if it exists.
    fn message(&self, phase: &Phase, from: u32, to: u32, j: u32) -> Option<(Rank, Rank)> {
        let clusters = self.nodes.clusters();
        let (s, t) = (clusters.size(from), clusters.size(to));
        let larger = s.max(t);
        let (q, r) = (phase.done + j / larger, j % larger);
        if q >= phase.current {
            return None;
        }
        let sender = (r + if s < t { q } else { 0 }) % s;
        let receiver = t - 1 - (r + if t <= s { q } else { 0 }) % t;
        Some((self.nodes.local(from, sender), self.nodes.local(to, receiver)))
    }

    fn matching(&self, rank: Rank, number: u32, out: &mut Step) {
        let clusters = self.nodes.clusters();
        let own = clusters.node_of(rank);
        let (first, size) = (clusters.first_rank(own).0, clusters.size(own));
        let cycle = self.cycle(size);
        if number + 1 < cycle {
            let (l, distance) = (rank.0 - first, cycle - 1 - number);
            let to = if l < cycle - distance { l + distance } else { l - (cycle - distance) };
            let from = if l >= distance { l - distance } else { l + (cycle - distance) };
            if to < size {
                self.places().send(rank, Rank(first + to), Route::default(), out);
            }
            if from < size {
                self.places().receive(rank, Rank(first + from), out);
            }
        }
        if clusters.nodes() == 1 {
            return;
        }
        let phase = &self.phases[self.phases.partition_point(|phase| phase.first <= number) - 1];
        let position = self.nodes.position(own);
        if position >= phase.active {
            return;
        }
        let (i, j) =
            (1 + (number - phase.first) / phase.round, (number - phase.first) % phase.round);
        let [after, before] = phase.around(position, i);
        if let Some((sender, to)) = self.message(phase, own, self.nodes.node_at(after), j)
            && sender == rank
        {
            self.places().send(rank, to, Route::default(), out);
        }
        if let Some((from, receiver)) = self.message(phase, self.nodes.node_at(before), own, j)
            && receiver == rank
        {
            self.places().receive(rank, from, out);
        }
    }

    /// Appends a rank's intra-node messages.
    fn ends_inside(&self, rank: Rank, ends: &mut Vec<NodeMessage>) {
        let clusters = self.nodes.clusters();
        let own = clusters.node_of(rank);
        let (first, size) = (clusters.first_rank(own).0, clusters.size(own));
        let (l, cycle) = (rank.0 - first, self.cycle(size));
        for other in (0..size).filter(|&other| other != l) {
            let apart = other.abs_diff(l);
            let (up, down) = (cycle - 1 - apart, apart - 1);
            let peer = Rank(first + other);
            let (sent, received) = if other > l { (up, down) } else { (down, up) };
            ends.push(NodeMessage { matching: sent, receives: false, peer });
            ends.push(NodeMessage { matching: received, receives: true, peer });
        }
    }

    /// Appends a rank's messages in a round with the nodes at a distance.
    fn ends_between(&self, rank: Rank, phase: &Phase, distance: u32, ends: &mut Vec<NodeMessage>) {
        let clusters = self.nodes.clusters();
        let own = clusters.node_of(rank);
        let (l, size) = (rank.0 - clusters.first_rank(own).0, clusters.size(own));
        let position = self.nodes.position(own);
        let first = phase.first + (distance - 1) * phase.round;
        let [after, before] = phase.around(position, distance);
        for (receives, at) in [(false, after), (true, before)] {
            let node = self.nodes.node_at(at);
            let (there, other) = (clusters.first_rank(node).0, clusters.size(node));
            // The smaller of sender and receiver turns; of equals the receiver.
            let turns = if receives { size <= other } else { size < other };
            let place = if receives { size - 1 - l } else { l };
            for q in phase.done..phase.current {
                // No node that is active has fewer than `current` ranks.
                let turned = if turns { q } else { 0 };
                let r = if place >= turned { place - turned } else { size - (turned - place) };
                for r in (r..size.max(other)).step_by(size as usize) {
                    let met = (r + if turns { 0 } else { q }) % other;
                    let local = if receives { met } else { other - 1 - met };
                    let matching = first + (q - phase.done) * size.max(other) + r;
                    ends.push(NodeMessage { matching, receives, peer: Rank(there + local) });
                }
            }
        }
    }

    /// The ranks of a node, and one more for all others.
    fn cycle(&self, size: u32) -> u32 {
        size + u32::from(self.nodes.clusters().nodes() > 1)
    }

    fn places(&self) -> MatchingLayout {
        let clusters = self.nodes.clusters();
        MatchingLayout::by_node(clusters.ranks(), clusters.equal_size().unwrap_or(clusters.ranks()))
    }
}

impl Rule for Matchings {
    fn steps(&self) -> u32 {
        self.steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let first = step * self.ports;
        for number in first..first.saturating_add(self.ports).min(self.matchings) {
            self.matching(rank, number, out);
        }
    }

    /// A message of a node leaves one of its ranks and reaches another.
    fn active(&self, step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        let ([phase], clusters) = (&self.phases[..], self.nodes.clusters()) else {
            return classes.representatives().for_each(each);
        };
        let size = clusters.largest();
        let first = step * self.ports;
        let numbers = first..first.saturating_add(self.ports).min(self.matchings);
        if first + 1 < self.cycle(size) || self.ports >= size {
            return classes.representatives().for_each(each);
        }
        let ends = numbers.flat_map(|number| {
            let j = (number - phase.first) % phase.round;
            [j % size, size - 1 - (j % size + j / size) % size]
        });
        each_with(clusters, &mut ends.collect(), classes, each);
    }

    /// Nodes of equal sizes are equivalent.
    fn classes(&self) -> RankClasses {
        node_classes(self.nodes.clusters())
    }

    /// In a round of equal nodes all steps have as many messages between the same nodes, each of other ranks.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let ([phase], clusters) = (&self.phases[..], self.nodes.clusters()) else { return None };
        let size = clusters.largest();
        let first = step * self.ports;
        let last = first.saturating_add(self.ports).min(self.matchings) - 1;
        let round = |matching: u32| (matching - phase.first) / phase.round;
        let whole = clusters.nodes() > 1 && round(first) == round(last) && self.ports <= size;
        Some(match whole && first + 1 >= self.cycle(size) {
            true => u64::from(round(first)) << 32 | u64::from(last - first),
            false => 1 << 63 | u64::from(step),
        })
    }

    /// A rank takes part in two of s matchings.
    fn each_step(&self, rank: Rank, each: &mut dyn FnMut(u32, &Step) -> ControlFlow<()>) {
        let position = self.nodes.position(self.nodes.clusters().node_of(rank));
        let (mut ends, mut does, mut step) = (Vec::new(), Step::default(), 0);
        self.ends_inside(rank, &mut ends);
        let taking_part = self.phases.iter().filter(|phase| position < phase.active);
        let rounds = taking_part.flat_map(|phase| (1..phase.active).map(move |i| (phase, i)));
        // A single node has no round.
        for round in rounds.map(Some).chain([None]) {
            if let Some((phase, distance)) = round {
                self.ends_between(rank, phase, distance, &mut ends);
            }
            ends.sort_unstable_by_key(|end| end.matching);
            for NodeMessage { matching, receives, peer } in ends.drain(..) {
                if matching / self.ports > step {
                    if !does.is_idle() && each(step, &does).is_break() {
                        return;
                    }
                    step = matching / self.ports;
                    does.clear();
                }
                if receives {
                    self.places().receive(rank, peer, &mut does);
                } else {
                    self.places().send(rank, peer, Route::default(), &mut does);
                }
            }
        }
        if !does.is_idle() {
            let _ = each(step, &does);
        }
    }

    fn slots(&self) -> u64 {
        self.places().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().final_block(rank, slot)
    }
}

static INFO: Info = Info::new(
    "clustered-matchings",
    "every node sends to one and receives from another, and exchanges intra-node at the same time",
    "after Sanders and Traeff 2002, end of section 3, without separate intra-node steps",
)
.by_node();

impl Algorithm for ClusteredMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let problem = &request.problem;
        let matchings = Matchings::new(Nodes::new(request.clusters()?), request.carrier_ports())
            .ok_or(NotApplicable::Ranks {
                rule: "max(size) * (p - max(size)) messages of a node to be numbered in 32 bits",
                ranks: problem.ranks,
            })?;
        let claims = Claims::of_cluster(matchings.by_links(problem.block_bytes), false);
        let claims = claims.of_rounds(request, Rounds::Shifts, problem.ports);
        Ok(Solution::new(request, values, matchings, claims))
    }
}
