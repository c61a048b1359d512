//! The clustered 1-factor algorithm (Sanders and Traeff 2002, section 3, Figure 2).
//!
//! Nodes leave in order of size. Phase i treats the ranks whose local index lies between the
//! (i-1)-th and the i-th node size, `done <= l(u) < current`: the nodes still active, those of
//! that size or more, run through a 1-factorization of their complete graph with self-loops, and a
//! pair (U, V), U no larger than V, exchanges for each such u of U and every v of V in turn. A node
//! paired with itself sends inside. At no time does a node exchange with more than one other.
//!
//! Claim: with every rank's copy to itself counted as a message, max(size) * p steps (Theorem 1).
//! Here a rank keeps its own block, so a round is one step per such rank shorter where every
//! active node of the largest size is paired with itself: at most one round of each phase. Sizes
//! 1, 2, 3 take 15 steps (Figure 3) where 18 are counted with self copies.

use topocoll_schedule::{
    Block, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Clusters, Rank, Route, Shape, Topology};

use crate::parameters::{check, origin};
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct ClusteredFactor;

struct Clustered {
    clusters: Clusters,
    /// Nodes of equal size in a row, by falling size: the active nodes always come first.
    falling: Vec<Group>,
    /// The same by first node.
    numbered: Vec<Group>,
    phases: Vec<Phase>,
    steps: u32,
}

#[derive(Clone, Copy)]
struct Group {
    first_node: u32,
    nodes: u32,
    size: u32,
    /// The position of its first node among the nodes by falling size.
    first_position: u32,
}

struct Phase {
    /// Local indices treated: `done..current`.
    done: u32,
    current: u32,
    /// Nodes active: the first so many.
    active: u32,
    first_step: u32,
    /// Whether in round 0 every largest node is paired with itself, which ends it earlier.
    short: bool,
}

impl Clustered {
    /// The phases, or `None` if there are more steps than are numbered.
    fn new(clusters: &Clusters) -> Option<Self> {
        let mut falling: Vec<Group> = (clusters.groups())
            .map(|(first_node, nodes, size)| Group { first_node, nodes, size, first_position: 0 })
            .collect();
        falling.sort_by_key(|group| std::cmp::Reverse(group.size));
        let mut active = 0;
        for group in &mut falling {
            group.first_position = active;
            active += group.nodes;
        }
        let mut numbered = falling.clone();
        numbered.sort_by_key(|group| group.first_node);

        let largest = clusters.largest();
        let largest_nodes: u32 =
            falling.iter().filter(|group| group.size == largest).map(|group| group.nodes).sum();
        let (mut phases, mut steps, mut done) = (Vec::new(), 0u32, 0);
        for group in falling.iter().rev() {
            let current = group.size;
            if current > done {
                // Node a is paired with itself in round 2a (mod active), and the largest come first.
                let short = largest_nodes == 1 || largest_nodes == 2 && active == 2;
                phases.push(Phase { done, current, active, first_step: steps, short });
                let rounds = u64::from(active) * u64::from(largest) - u64::from(short);
                let phase_steps = rounds.checked_mul(u64::from(current - done))?;
                steps = u32::try_from(phase_steps).ok()?.checked_add(steps)?;
                done = current;
            }
            active -= group.nodes;
        }
        Some(Self { clusters: clusters.clone(), falling, numbered, phases, steps })
    }

    /// The position of `node` among the nodes by falling size.
    fn position(&self, node: u32) -> u32 {
        let group =
            self.numbered[self.numbered.partition_point(|group| group.first_node <= node) - 1];
        group.first_position + (node - group.first_node)
    }

    /// The node at a position.
    fn node_at(&self, position: u32) -> u32 {
        let group = self.falling
            [self.falling.partition_point(|group| group.first_position <= position) - 1];
        group.first_node + (position - group.first_position)
    }

    /// The slot at `rank` of the block received from another rank of its node.
    fn inside_slot(&self, rank: Rank, from: Rank) -> Slot {
        let first = self.clusters.first_rank(self.clusters.node_of(rank));
        u64::from(self.clusters.ranks()) + u64::from(from.0 - first.0)
    }
}

impl Rule for Clustered {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let clusters = &self.clusters;
        let i = self.phases.partition_point(|phase| phase.first_step <= step) - 1;
        let &Phase { done, current, active, first_step, short } = &self.phases[i];
        let (own, treated, largest) = (clusters.node_of(rank), current - done, clusters.largest());
        let a = self.position(own);
        if a >= active {
            return;
        }
        // The round and the step j within it, as if round 0 were no shorter than the others.
        let mut j = step - first_step;
        if short && j >= treated * (largest - 1) {
            j += treated;
        }
        let round = j / (treated * largest);
        j %= treated * largest;

        let other = self.node_at(if round >= a { round - a } else { active - (a - round) });
        let local = |node: u32, index: u32| Rank(clusters.first_rank(node).0 + index);
        let block_of = |peer: Rank| SlotSet::of(Strided::contiguous(peer.0.into(), 1));
        if other == own {
            let peers = clusters.size(own) - 1;
            if peers == 0 || j >= treated * peers {
                return;
            }
            let (u, v) = (done + j / peers, j % peers);
            let (u, v) = (local(own, u), local(own, v + u32::from(v >= u)));
            if rank == u {
                out.send(v, block_of(v), Route::default());
            } else if rank == v {
                out.receive(u, SlotSet::of(Strided::contiguous(self.inside_slot(v, u), 1)));
            }
            return;
        }
        // The paper's node order: smaller first, then by number.
        let key = |node| (clusters.size(node), node);
        let (small, large) = if key(own) < key(other) { (own, other) } else { (other, own) };
        let size = clusters.size(large);
        if j >= treated * size {
            return;
        }
        let (u, v) = (local(small, done + j / size), local(large, j % size));
        let peer = match rank {
            _ if rank == u => v,
            _ if rank == v => u,
            _ => return,
        };
        out.send(peer, block_of(peer), Route::default());
        out.receive(peer, block_of(peer));
    }

    fn slots(&self) -> u64 {
        u64::from(self.clusters.ranks()) + u64::from(self.clusters.largest())
    }

    /// A slot for every destination; the last ones await the blocks of the rank's own node.
    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < u64::from(self.clusters.ranks()))
            .then_some(Block { from: rank, to: Rank(slot as u32) })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let own = self.clusters.node_of(rank);
        let inside = |from: Rank| self.clusters.node_of(from) == own && from != rank;
        let from = match slot.checked_sub(self.clusters.ranks().into()) {
            None => Some(Rank(slot as u32)).filter(|&from| !inside(from)),
            Some(i) if i >= u64::from(self.clusters.size(own)) => None,
            Some(i) => {
                Some(Rank(self.clusters.first_rank(own).0 + i as u32)).filter(|&from| inside(from))
            }
        };
        from.map(|from| Block { from, to: rank })
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.clusters.ranks())
    }
}

impl ClusteredFactor {
    fn clustered(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Clustered, NotApplicable> {
        check(self, problem, given)?;
        let Shape::Clustered(clusters) = topology.shape() else {
            return Err(NotApplicable::Shape {
                needs: "a cluster",
                topology: topology.short_form(),
            });
        };
        Clustered::new(clusters).ok_or(NotApplicable::Ranks {
            rule: "max(size) * p steps to be numbered in 32 bits",
            ranks: problem.ranks,
        })
    }
}

impl Algorithm for ClusteredFactor {
    fn name(&self) -> &'static str {
        "clustered-factor"
    }

    fn summary(&self) -> &'static str {
        "pairs of nodes by a factor of their complete graph, one pair of ranks at a time"
    }

    fn source(&self) -> &'static str {
        "Sanders and Traeff 2002, section 3"
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        let clustered = self.clustered(problem, topology, given)?;
        Ok(Schedule::new(*problem, origin(self, Parameters::new()), clustered))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        let steps = self.clustered(problem, topology, given)?.steps;
        Ok(Claims {
            rearrangements: Some(0),
            ..Claims::new(steps.into(), u128::from(steps) * u128::from(problem.block_bytes))
        })
    }
}
