//! All-to-all on clusters in messages of whole nodes: few startups, for small blocks (the leader,
//! multi-leader and node-aware exchanges; Bienz, Gropp and Olson 2019, Kinkead et al. 2025).
//!
//! First the ranks of a node exchange: blocks for their own node go to their destination, blocks
//! for other nodes to the rank that carries them. Then nodes exchange: the blocks of U for V are
//! one message, from a carrier of U to a carrier of V. Last, carriers distribute the received
//! blocks intra-node. `lanes` ranks of a node carry, or all if it has fewer. One is the node's
//! leader; several are leaders for a part of the other nodes each; with as many lanes as ranks, all
//! carry equally.
//!
//! Claim, on N nodes of s ranks: with one port 2 (s - 1) + N - 1 steps, and s^2 (N - 1) blocks
//! inter-node, the bound of the node's port; intra-node s - 1 messages of 1 + s c blocks and as
//! many of s c, c = ceil((N - 1) / lanes). With k ports, k rounds make a step.
//!
//! # Nodes of different sizes
//! Nodes leave in order of size. With `rounds=whole` a round is as long as the largest of all
//! messages of nodes i apart. With `rounds=cut` messages are cut where the clustered 1-factor
//! algorithm cuts them (`clustered_factor.rs`): the phase of node sizes done to current is for the
//! ranks done..current of the smaller node and all of the larger. That takes a round for every
//! phase and other node of its, and exactly max(size) (p - max(size)) blocks, the bound of the
//! largest node.
//!
//! # The layout
//! Four rooms: blocks to be sent, by destination; at a carrier the blocks it sends, by source rank
//! and then destination; the blocks it receives, by source and then the ranks of its node; blocks
//! that have arrived, by source. Ranks are in the order of their nodes by falling size, and the
//! nodes of a carrier are next to each other in it: so every message is a run or two at either end,
//! and nothing is copied.

use topocoll_schedule::{
    Block, Parameters, Rule, Schedule, Slot, SlotSet, Step, Strided, Transfer,
};
use topocoll_topology::{Rank, Route};

use crate::factor::node_rounds::Rounds;
use crate::hierarchical::{BETWEEN, InterNode, TURNS, candidates};
use crate::layout::node_rows::{Nodes, Row};
use crate::{
    Algorithm, ByLinks, Claims, Info, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

pub(crate) struct NodeAware;

struct Lanes {
    row: Row,
    ports: u32,
    /// Rounds between nodes in a step.
    carrier_ports: u32,
    lanes: u32,
    cut: bool,
    /// The exchange between nodes, if it is not in the rounds of the phases.
    between_nodes: Option<Schedule>,
    /// Ranges of node sizes, the nodes active in each, and its first inter-node step.
    phases: Vec<Phase>,
    /// Steps of an intra-node exchange, and inter-node.
    inside: u32,
    between: u32,
    /// Slots of the two rooms of a carrier.
    rooms: [u64; 2],
}

#[derive(Clone, Copy)]
struct Phase {
    done: u32,
    current: u32,
    active: u32,
    first: u32,
}

/// Nodes of a carrier: those at these distances, and their ranks in a row.
struct Chunk {
    distances: std::ops::Range<u32>,
    /// The position of the first of them.
    first: u32,
    ranks: u32,
}

impl Lanes {
    fn new(
        nodes: Nodes,
        [ports, carrier_ports]: [u32; 2],
        lanes: u32,
        cut: bool,
        between_nodes: Option<Schedule>,
    ) -> Self {
        let largest = nodes.clusters().largest();
        let count = nodes.clusters().nodes();
        let sizes = if cut { nodes.sizes() } else { vec![(0, largest, count)] };
        let (mut phases, mut between) = (Vec::new(), 0);
        for (done, current, active) in sizes {
            phases.push(Phase { done, current, active, first: between });
            between += (active - 1).div_ceil(carrier_ports);
        }
        if let Some(schedule) = &between_nodes {
            between = schedule.rule().steps();
        }
        let inside = (largest - 1).div_ceil(ports);
        let (row, rooms) = (Row::new(nodes), [0; 2]);
        let mut all = Self {
            row,
            ports,
            carrier_ports,
            lanes,
            cut,
            between_nodes,
            phases,
            inside,
            between,
            rooms,
        };
        for position in 0..all.row.count() {
            let size = u64::from(all.row.size(position));
            let (out, back) = all.most_carried(position);
            all.rooms = [all.rooms[0].max(size * out), all.rooms[1].max(size * back)];
        }
        all
    }

    fn carriers(&self, position: u32) -> u32 {
        self.lanes.min(self.row.size(position))
    }

    /// The nodes for which a rank carries away, and from which it carries in.
    fn chunks(&self, position: u32, carrier: u32) -> [Chunk; 2] {
        let all = self.row.count();
        let distances = self.row.distances(self.carriers(position), carrier);
        let nodes = distances.len() as u32;
        [(position + distances.start) % all, (position + all + 1 - distances.end) % all].map(
            |first| Chunk {
                distances: distances.clone(),
                first,
                ranks: self.row.ranks_on(first, nodes),
            },
        )
    }

    /// The most ranks for which a rank of a node carries away, and from which it carries in.
    fn most_carried(&self, position: u32) -> (u64, u64) {
        (0..self.carriers(position))
            .map(|carrier| self.chunks(position, carrier))
            .fold((0, 0), |(out, back), [away, home]| {
                (out.max(away.ranks.into()), back.max(home.ranks.into()))
            })
    }

    /// The first slots of the rooms of blocks carried away, carried in, and arrived.
    fn room(&self, number: usize) -> Slot {
        let carried: u64 = self.rooms[..number].iter().sum();
        u64::from(self.row.ranks()) + carried
    }

    /// Appends the slots of a chunk's ranks in a room that is by rank.
    fn push_ranks(&self, slots: &mut SlotSet, room: Slot, chunk: &Chunk) {
        let first = self.row.before(chunk.first);
        let ahead = chunk.ranks.min(self.row.ranks() - first);
        slots.push(Strided::contiguous(room + u64::from(first), ahead.into()));
        slots.push(Strided::contiguous(room, (chunk.ranks - ahead).into()));
    }

    /// A round of the first intra-node exchange.
    fn collect(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        if round >= size {
            return;
        }
        let (to, from) = ((l + round) % size, (l + size - round) % size);
        let first = u64::from(self.row.before(position));
        let mut sent = SlotSet::of(Strided::contiguous(first + u64::from(to), 1));
        self.push_ranks(&mut sent, 0, &self.chunks(position, to)[0]);
        out.send(self.row.rank(position, to), sent, Route::default());
        let mut received =
            SlotSet::of(Strided::contiguous(self.room(2) + first + u64::from(from), 1));
        let carried = u64::from(self.chunks(position, l)[0].ranks);
        received.push(Strided::contiguous(self.room(0) + u64::from(from) * carried, carried));
        out.receive(self.row.rank(position, from), received);
    }

    /// The ranks at either end, sources and destinations, of an inter-node message.
    fn ends(&self, phase: &Phase, from: u32, to: u32) -> [std::ops::Range<u32>; 2] {
        let (s, t) = (self.row.size(from), self.row.size(to));
        let part = phase.done..phase.current;
        match (self.cut, s <= t) {
            (false, _) => [0..s, 0..t],
            (true, true) => [part, 0..t],
            (true, false) => [0..s, part],
        }
    }

    /// The message of a rank for the node at a position, if it carries it: the receiver, and the
    /// slots.
    fn sent(&self, rank: Rank, phase: &Phase, to: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = (to + self.row.count() - position) % self.row.count();
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, position, to);
        let [chunk, _] = self.chunks(position, l);
        let stride = u64::from(chunk.ranks);
        let before = self.row.ranks_on(chunk.first, distance - chunk.distances.start);
        let first = self.room(0) + u64::from(before + destinations.start);
        let length = destinations.len() as u64;
        let rows = |rows: std::ops::Range<u32>| {
            let first = first + u64::from(rows.start) * stride;
            Strided::runs(first, rows.len() as u64, stride, length)
        };
        let mut slots = SlotSet::default();
        slots.push(rows(sources.start..sources.end.min(l).max(sources.start)));
        if sources.contains(&l) {
            let own = u64::from(self.row.before(to) + destinations.start);
            slots.push(Strided::contiguous(own, length));
        }
        slots.push(rows((l + 1).max(sources.start).min(sources.end)..sources.end));
        Some((self.row.rank(to, self.row.carrier(self.carriers(to), distance)), slots))
    }

    /// The message for a rank from the node at a position, if it carries it: the sender, and the
    /// slots.
    fn received(&self, rank: Rank, phase: &Phase, from: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = (position + self.row.count() - from) % self.row.count();
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, from, position);
        let [_, chunk] = self.chunks(position, l);
        let before = self.row.ranks_on(chunk.first, chunk.distances.end - 1 - distance);
        let size = u64::from(self.row.size(position));
        let first =
            self.room(1) + u64::from(before + sources.start) * size + u64::from(destinations.start);
        let (count, length) = (sources.len() as u64, destinations.len() as u64);
        let slots = SlotSet::of(Strided::runs(first, count, size, length));
        Some((self.row.rank(from, self.row.carrier(self.carriers(from), distance)), slots))
    }

    /// An inter-node round.
    fn cross(&self, rank: Rank, phase: &Phase, round: u32, out: &mut Step) {
        let (position, _) = self.row.place(rank);
        if position >= phase.active {
            return;
        }
        if let Some((peer, slots)) = self.sent(rank, phase, (position + round) % phase.active) {
            out.send(peer, slots, Route::default());
        }
        let from = (position + phase.active - round) % phase.active;
        if let Some((peer, slots)) = self.received(rank, phase, from) {
            out.receive(peer, slots);
        }
    }

    /// A step of the exchange between nodes, in which every message is of a block by itself.
    fn between_nodes(&self, rank: Rank, schedule: &Schedule, step: u32, out: &mut Step) {
        let (nodes, phase) = (self.row.nodes(), &self.phases[0]);
        let node = Rank(nodes.clusters().node_of(rank));
        schedule.rule().step(node, step, out);
        out.copies.clear();
        let carry = |transfer: &mut Transfer, message: Option<(Rank, SlotSet)>| {
            let carries = message.is_some();
            if let Some(message) = message {
                (transfer.peer, transfer.slots) = message;
            }
            carries
        };
        out.sends
            .retain_mut(|send| carry(send, self.sent(rank, phase, nodes.position(send.peer.0))));
        out.receives.retain_mut(|receive| {
            carry(receive, self.received(rank, phase, nodes.position(receive.peer.0)))
        });
    }

    /// A round of the last intra-node exchange.
    fn deal(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        if round >= size {
            return;
        }
        let (to, from) = ((l + round) % size, (l + size - round) % size);
        let [_, chunk] = self.chunks(position, l);
        if chunk.ranks > 0 {
            let first = self.room(1) + u64::from(to);
            let slots = Strided::runs(first, chunk.ranks.into(), size.into(), 1);
            out.send(self.row.rank(position, to), SlotSet::of(slots), Route::default());
        }
        let mut received = SlotSet::default();
        self.push_ranks(&mut received, self.room(2), &self.chunks(position, from)[1]);
        out.receive(self.row.rank(position, from), received);
    }

    /// The largest message of a round between nodes of these sizes, in blocks.
    fn largest(&self, phase: &Phase, round: u32, sizes: &[(u32, u32, u32)]) -> u64 {
        if self.cut {
            // The largest node takes part in every round.
            return u64::from(phase.current - phase.done) * u64::from(self.row.size(0));
        }
        // Nodes stand by falling size: of those of one size the first sends to the largest, unless
        // the last of them reach around.
        let larger = sizes[1..].iter().map(|&(.., nodes)| nodes).chain([0]);
        let product = |(&(_, size, end), first): (&(u32, u32, u32), u32)| {
            let to = first + round;
            let to = if to < phase.active && end + round > phase.active { 0 } else { to };
            u64::from(size) * u64::from(self.row.size(to % phase.active))
        };
        sizes.iter().zip(larger).map(product).max().unwrap_or(0)
    }

    /// The intra-node steps.
    fn inside(&self, block_bytes: u64) -> StepsOf {
        let mut inside = 0u128;
        // Every carrier takes part in all intra-node rounds.
        let carried: Vec<(u32, (u64, u64))> = (0..self.row.count())
            .map(|position| (self.row.size(position), self.most_carried(position)))
            .collect();
        for step in 0..self.inside {
            let round = 1 + step * self.ports;
            let (out, back) = (carried.iter().filter(|(size, _)| *size > round))
                .fold((0, 0), |most, (_, carried)| (carried.0.max(most.0), carried.1.max(most.1)));
            inside += u128::from(1 + out) + u128::from(back);
        }
        StepsOf::new((self.steps() - self.between).into(), inside, block_bytes)
    }

    /// The intra-node and the inter-node steps of the phases.
    fn by_links(&self, block_bytes: u64) -> ByLinks {
        let mut between = 0u128;
        let sizes = self.row.nodes().sizes();
        for phase in &self.phases {
            let rounds: Vec<u32> = (1..phase.active).collect();
            for together in rounds.chunks(self.carrier_ports as usize) {
                let most = together.iter().map(|&round| self.largest(phase, round, &sizes)).max();
                between += u128::from(most.unwrap_or(0));
            }
        }
        ByLinks {
            intra_node: self.inside(block_bytes),
            inter_node: StepsOf::new(self.between.into(), between, block_bytes),
            ..ByLinks::default()
        }
    }
}

impl Rule for Lanes {
    fn steps(&self) -> u32 {
        self.between + self.inside * if self.row.count() > 1 { 2 } else { 1 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let together =
            |first: u32, end: u32, ports: u32| first..end.min(first.saturating_add(ports));
        let largest = self.row.size(0);
        if step < self.inside {
            for round in together(1 + step * self.ports, largest, self.ports) {
                self.collect(rank, round, out);
            }
        } else if step - self.inside < self.between {
            let step = step - self.inside;
            if let Some(schedule) = &self.between_nodes {
                return self.between_nodes(rank, schedule, step, out);
            }
            let phase = self.phases.partition_point(|phase| phase.first <= step) - 1;
            let phase = &self.phases[phase];
            for round in together(
                1 + (step - phase.first) * self.carrier_ports,
                phase.active,
                self.carrier_ports,
            ) {
                self.cross(rank, phase, round, out);
            }
        } else {
            let step = step - self.inside - self.between;
            for round in together(1 + step * self.ports, largest, self.ports) {
                self.deal(rank, round, out);
            }
        }
    }

    fn slots(&self) -> u64 {
        self.room(2) + u64::from(self.row.ranks())
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (position, local) =
            self.row.standing(u32::try_from(slot).ok().filter(|&s| s < self.row.ranks())?);
        Some(Block { from: rank, to: self.row.rank(position, local) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (position, l) = self.row.place(rank);
        let block = |(position, local)| Block { from: self.row.rank(position, local), to: rank };
        if slot < self.room(0) {
            return self.initial_block(rank, slot).filter(|block| block.to == rank);
        }
        let Some(arrived) = slot.checked_sub(self.room(2)) else {
            // A carrier's own blocks stay where they arrived.
            let (size, slot) =
                (u64::from(self.row.size(position)), slot.checked_sub(self.room(1))?);
            let [_, chunk] = self.chunks(position, l);
            let here = slot / size < u64::from(chunk.ranks) && slot % size == u64::from(l);
            let place = u64::from(self.row.before(chunk.first)) + slot / size;
            return here
                .then(|| block(self.row.standing((place % u64::from(self.row.ranks())) as u32)));
        };
        let (from, local) = self.row.standing(arrived as u32);
        if from == position {
            return (local != l).then(|| block((from, local)));
        }
        let distance = (position + self.row.count() - from) % self.row.count();
        let carrier = self.row.carrier(self.carriers(position), distance);
        (carrier != l).then(|| block((from, local)))
    }
}

static INFO: Info = Info::new(
    "node-aware",
    "ranks of a node collect the blocks for another node, one message between any two nodes",
    "after Bienz, Gropp and Olson 2019 and Kinkead et al. 2025; rounds of Sanders and Traeff 2002",
)
.taking(&[
    Parameter::number(
        "lanes",
        "ranks of a node that carry for it, 1 (a leader) to those of the largest node; by default \
         all, or with a between that forwards blocks as many as the ports allow",
    ),
    BETWEEN,
    TURNS,
])
.with_internal(&[Parameter::words(
    "rounds",
    &[
        ("whole", "one message from node to node"),
        ("cut", "by node sizes, so that no node waits for larger ones"),
    ],
)]);

impl Algorithm for NodeAware {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let clusters = request.clusters()?;
        let largest = clusters.largest();
        let powers = (0..32).map(|i| 1 << i).take_while(|&lanes| lanes < largest);
        let differ = clusters.groups().any(|(.., size)| size != largest);
        let mut rounds = self.info().combinations();
        rounds.truncate(if differ { 2 } else { 1 });
        let setting = |lanes: u32, rounds: &Parameters| {
            let mut setting = rounds.clone();
            setting.insert("lanes".to_owned(), u64::from(lanes).into());
            setting
        };
        let settings = powers
            .chain([largest])
            .flat_map(|lanes| rounds.iter().map(move |rounds| setting(lanes, rounds)));
        Ok(settings.chain(candidates(request)).collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let clusters = request.clusters()?;
        let largest = clusters.largest();
        let between = InterNode::of(request, values)?;
        let straight = between.as_ref().map_or(Ok(None), InterNode::straight)?;
        if let (Some(between), None) = (&between, &straight) {
            return between.hierarchical();
        }
        let lanes = values.number("lanes", 1, largest.into())?;
        Row::check(clusters)?;
        let lanes = lanes.map_or(largest, |lanes| lanes as u32);
        let nodes = Nodes::new(clusters);
        let ports = [request.problem.ports, request.carrier_ports()];
        if let (Some(between), Some(inner)) = (&between, &straight) {
            values.number(TURNS.name, 1, 1)?;
            let rule = Lanes::new(nodes, ports, lanes, false, Some(inner.schedule.clone()));
            let inside = rule.inside(request.problem.block_bytes);
            // The copies of the exchange between nodes are left out.
            let claims =
                Claims { rearrangements: Some(0), ..between.claims(inside, &inner.claims, 1, 1) };
            let solution = Solution::new(request, values, rule, claims);
            return Ok(between.named(solution, inner).with("lanes", u64::from(lanes)));
        }
        let cut = values.is("rounds", "cut");
        let rule = Lanes::new(nodes, ports, lanes, cut, None);
        let claims = Claims::of_cluster(rule.by_links(request.problem.block_bytes), true);
        let claims = claims.of_rounds(request, Rounds::Shifts);
        Ok(Solution::new(request, values, rule, claims).with("lanes", u64::from(lanes)))
    }
}
