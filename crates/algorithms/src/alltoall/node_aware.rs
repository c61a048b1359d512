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
//! many of s c, c = ceil((N - 1) / lanes). With k ports, k rounds make a step; if the ports of a
//! node are more and no node has fewer ranks than lanes, k rounds of each of several carriers, all
//! of them where a node has as many ports: then ceil(c / k) steps inter-node.
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
//! Every message is sent from consecutive slots. Four rooms: by rank of the node, the block for it
//! and those it carries; at a carrier the blocks it sends, by destination's node and then source (by
//! source last from a larger node, which cuts a message by destination), its own there from the
//! start; the blocks it receives, by rank of its node and then source; blocks that have arrived, by
//! source. Nodes are in order of distance from the own node in the order of falling sizes, and those
//! of a carrier are next to each other in it, so that what is received lands in a few strided runs,
//! and nothing is copied.

use topocoll_schedule::{
    Axis, Block, Parameters, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided, Transfer,
};
use topocoll_topology::{Coordinates, Ports, Rank, Route, Topology};

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
    /// Rounds of a carrier in a step between nodes.
    carrier_ports: u32,
    lanes: u32,
    /// Parts of the rounds, each with carriers of its own, and how many of them share steps.
    parts: u32,
    at_once: u32,
    cut: bool,
    /// The exchange between nodes, if it is not in the rounds of the phases.
    between_nodes: Option<Schedule>,
    /// Ranges of node sizes, the nodes active in each, and its first inter-node step; by the parts
    /// of the rounds that share steps.
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
    /// The first of its parts of the rounds.
    part: u32,
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
        ports: Ports,
        lanes: u32,
        cut: bool,
        between_nodes: Option<Schedule>,
    ) -> Self {
        let largest = nodes.clusters().largest();
        let count = nodes.clusters().nodes();
        let smallest = nodes.sizes()[0].1;
        let sizes = if cut { nodes.sizes() } else { vec![(0, largest, count)] };
        let carrier_ports = ports.rank.min(ports.node);
        let mut all = Self {
            row: Row::new(nodes),
            ports: ports.rank,
            carrier_ports,
            lanes,
            parts: 1,
            at_once: 1,
            cut,
            between_nodes,
            phases: Vec::new(),
            inside: (largest - 1).div_ceil(ports.rank),
            between: 0,
            rooms: [0; 2],
        };
        // Where a round has the same carrier on all nodes, several carriers send at once. A part
        // has as many rounds as a carrier has ports, or is a carrier's.
        let at_once = ports.node / carrier_ports;
        if !cut && lanes <= smallest && count > 1 && at_once > 1 {
            all.parts = lanes.min((count - 1).div_ceil(carrier_ports));
            all.at_once = at_once.min(all.parts);
        }
        for (done, current, active) in sizes {
            for part in (0..all.parts).step_by(all.at_once as usize) {
                let phase = Phase { done, current, active, part, first: all.between };
                all.between += all.steps_of(&phase);
                all.phases.push(phase);
            }
        }
        if let Some(schedule) = &all.between_nodes {
            all.between = schedule.rule().steps();
        }
        for position in 0..all.row.count() {
            let size = u64::from(all.row.size(position));
            let (out, back) = all.most_carried(position);
            all.rooms = [all.rooms[0].max(size * out), all.rooms[1].max(size * back)];
        }
        all
    }

    /// The rounds of the parts of a phase.
    fn parts_of(&self, phase: &Phase) -> impl Iterator<Item = std::ops::Range<u32>> {
        let active = phase.active;
        let parts = phase.part..self.parts.min(phase.part + self.at_once);
        parts.map(move |part| match self.parts {
            1 => 1..active,
            parts => self.row.distances(parts, part),
        })
    }

    fn steps_of(&self, phase: &Phase) -> u32 {
        let longest = self.parts_of(phase).map(|rounds| rounds.len() as u32).max();
        longest.unwrap_or(0).div_ceil(self.carrier_ports)
    }

    /// The rounds of a step of a phase.
    fn rounds(&self, phase: &Phase, step: u32) -> impl Iterator<Item = u32> {
        let ports = self.carrier_ports;
        self.parts_of(phase).flat_map(move |rounds| {
            let first = rounds.start.saturating_add(step.saturating_mul(ports));
            first..rounds.end.min(first.saturating_add(ports))
        })
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

    /// The node at a distance.
    fn ahead(&self, position: u32, distance: u32) -> u32 {
        (position + distance) % self.row.count()
    }

    /// The distance from a node to another.
    fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.row.count() - from) % self.row.count()
    }

    /// The position and local index of the rank that stands a number of ranks after the first of a
    /// node.
    fn standing_after(&self, position: u32, ranks: u64) -> (u32, u32) {
        let place = u64::from(self.row.before(position)) + ranks;
        self.row.standing((place % u64::from(self.row.ranks())) as u32)
    }

    /// The slot of the block for a rank of the node; those that it carries follow.
    fn first_for(&self, position: u32, local: u32) -> Slot {
        let carriers = self.carriers(position);
        let before = match local < carriers {
            true => self.row.distances(carriers, local).start - 1,
            false => self.row.count() - 1,
        };
        u64::from(local) + u64::from(self.row.ranks_on(position + 1, before))
    }

    /// Whether the blocks of a node for another are by source and then destination.
    fn by_source(&self, from: u32, to: u32) -> bool {
        self.row.size(from) <= self.row.size(to)
    }

    /// The slots of a source's blocks among those that a rank of its node carries away.
    fn carried(&self, position: u32, chunk: &Chunk, source: u32, out: &mut SlotSet) {
        let size = u64::from(self.row.size(position));
        let (mut first, mut distance) = (self.room(0), chunk.distances.start);
        while distance < chunk.distances.end {
            let to = self.ahead(position, distance);
            let (length, by_source) = (self.row.size(to), self.by_source(position, to));
            // The nodes that follow and have as many ranks.
            let same = (distance..chunk.distances.end)
                .take_while(|&distance| self.row.size(self.ahead(position, distance)) == length)
                .count() as u64;
            let (source, length) = (u64::from(source), u64::from(length));
            out.push(if by_source {
                Strided::runs(first + source * length, same, size * length, length)
            } else {
                Strided::runs(first + source, same * length, size, 1)
            });
            first += size * length * same;
            distance += same as u32;
        }
    }

    /// A round of the first intra-node exchange.
    fn collect(&self, rank: Rank, round: u32, out: &mut Step) {
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        if round >= size {
            return;
        }
        let (to, from) = ((l + round) % size, (l + size - round) % size);
        let [away, _] = self.chunks(position, to);
        let sent = Strided::contiguous(self.first_for(position, to), 1 + u64::from(away.ranks));
        out.send(self.row.rank(position, to), SlotSet::of(sent), Route::default());
        let mut received = SlotSet::of(Strided::contiguous(self.room(2) + u64::from(from), 1));
        self.carried(position, &self.chunks(position, l)[0], from, &mut received);
        out.receive(self.row.rank(position, from), received);
    }

    /// The ranks at either end, sources and destinations, of an inter-node message.
    fn ends(&self, phase: &Phase, from: u32, to: u32) -> [std::ops::Range<u32>; 2] {
        let (s, t) = (self.row.size(from), self.row.size(to));
        let part = phase.done..phase.current;
        match (self.cut, self.by_source(from, to)) {
            (false, _) => [0..s, 0..t],
            (true, true) => [part, 0..t],
            (true, false) => [0..s, part],
        }
    }

    /// The message of a rank for the node at a position, if it carries it: the receiver, and the
    /// slots.
    fn sent(&self, rank: Rank, phase: &Phase, to: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = self.distance(position, to);
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, position, to);
        let [chunk, _] = self.chunks(position, l);
        let before = self.row.ranks_on(chunk.first, distance - chunk.distances.start);
        let size = u64::from(self.row.size(position));
        let skipped = if self.by_source(position, to) {
            u64::from(sources.start) * destinations.len() as u64
        } else {
            u64::from(destinations.start) * size
        };
        let first = self.room(0) + u64::from(before) * size + skipped;
        let slots = Strided::contiguous(first, (sources.len() * destinations.len()) as u64);
        let to = self.row.rank(to, self.row.carrier(self.carriers(to), distance));
        Some((to, SlotSet::of(slots)))
    }

    /// The message for a rank from the node at a position, if it carries it: the sender, and the
    /// slots.
    fn received(&self, rank: Rank, phase: &Phase, from: u32) -> Option<(Rank, SlotSet)> {
        let (position, l) = self.row.place(rank);
        let distance = self.distance(from, position);
        if self.row.carrier(self.carriers(position), distance) != l {
            return None;
        }
        let [sources, destinations] = self.ends(phase, from, position);
        let [_, chunk] = self.chunks(position, l);
        let before = self.row.ranks_on(chunk.first, chunk.distances.end - 1 - distance);
        let stride = u64::from(chunk.ranks);
        let base = self.room(1)
            + u64::from(destinations.start) * stride
            + u64::from(before + sources.start);
        let by_source = Axis { count: sources.len() as u64, stride: 1 };
        let by_destination = Axis { count: destinations.len() as u64, stride: stride as i64 };
        let slots = if self.by_source(from, position) {
            Strided { base, outer: by_source, inner: by_destination }
        } else {
            Strided { base, outer: by_destination, inner: by_source }
        };
        let from = self.row.rank(from, self.row.carrier(self.carriers(from), distance));
        Some((from, SlotSet::of(slots)))
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
        let carried = u64::from(self.chunks(position, l)[1].ranks);
        if carried > 0 {
            let slots = Strided::contiguous(self.room(1) + u64::from(to) * carried, carried);
            out.send(self.row.rank(position, to), SlotSet::of(slots), Route::default());
        }
        let [_, chunk] = self.chunks(position, from);
        if chunk.ranks > 0 {
            let nodes = self.distance(position, chunk.first);
            let first = self.room(2) + u64::from(self.row.ranks_on(position, nodes));
            let slots = Strided::contiguous(first, chunk.ranks.into());
            out.receive(self.row.rank(position, from), SlotSet::of(slots));
        }
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
            for step in 0..self.steps_of(phase) {
                let rounds = self.rounds(phase, step);
                let most = rounds.map(|round| self.largest(phase, round, &sizes)).max();
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
            for round in self.rounds(phase, step - phase.first) {
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
        let (position, l) = self.row.place(rank);
        let size = self.row.size(position);
        let block = |(position, local)| Block { from: rank, to: self.row.rank(position, local) };
        let Some(carried) = slot.checked_sub(self.room(0)) else {
            let (mut to, mut end) = (0, size);
            while end - to > 1 {
                let middle = to.midpoint(end);
                match self.first_for(position, middle) <= slot {
                    true => to = middle,
                    false => end = middle,
                }
            }
            let [chunk, _] = self.chunks(position, to);
            return match slot - self.first_for(position, to) {
                0 => Some(block((position, to))),
                // A carrier's own blocks are where it sends them from.
                _ if to == l => None,
                after => Some(block(self.standing_after(chunk.first, after - 1))),
            };
        };
        let ([chunk, _], size) = (self.chunks(position, l), u64::from(size));
        let before = carried / size;
        if before >= chunk.ranks.into() {
            return None;
        }
        let (to, local) = self.standing_after(chunk.first, before);
        let at = carried - (before - u64::from(local)) * size;
        let (source, to_local) = if self.by_source(position, to) {
            let length = u64::from(self.row.size(to));
            (at / length, at % length)
        } else {
            (at % size, at / size)
        };
        (source == u64::from(l)).then(|| block((to, to_local as u32)))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (position, l) = self.row.place(rank);
        let block = |(position, local)| Block { from: self.row.rank(position, local), to: rank };
        if slot < self.room(0) {
            return (slot == self.first_for(position, l)).then(|| block((position, l)));
        }
        let Some(arrived) = slot.checked_sub(self.room(2)) else {
            // A carrier's own blocks stay where they arrived.
            let [_, chunk] = self.chunks(position, l);
            let carried = u64::from(chunk.ranks);
            let own = slot.checked_sub(self.room(1) + u64::from(l) * carried)?;
            return (own < carried).then(|| block(self.standing_after(chunk.first, own)));
        };
        let (from, local) = self.standing_after(position, arrived);
        if from == position {
            return (local != l).then(|| block((from, local)));
        }
        let distance = self.distance(from, position);
        let carrier = self.row.carrier(self.carriers(position), distance);
        (carrier != l).then(|| block((from, local)))
    }

    /// Slots are by distance, so that nodes of equal size are equivalent.
    fn classes(&self) -> RankClasses {
        let clusters = self.row.nodes().clusters();
        match clusters.by_node().filter(|_| self.between_nodes.is_none()) {
            Some(radix) => {
                let periods = Coordinates::from_slice(&[1, clusters.largest()]);
                RankClasses::translations(radix, periods)
            }
            None => RankClasses::distinct(clusters.ranks()),
        }
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
        let ports = request.problem.both_ports();
        if let (Some(between), Some(inner)) = (&between, &straight) {
            values.number(TURNS.name, 1, 1)?;
            let rule = Lanes::new(nodes, ports, lanes, false, Some(inner.schedule.clone()));
            let inside = rule.inside(request.problem.block_bytes);
            // The copies of the exchange between nodes are left out.
            let claims = Claims {
                rearrangements: Some(0),
                copied_bytes: Some(0),
                ..between.claims(inside, &inner.claims, 1, 1)
            };
            let solution = Solution::new(request, values, rule, claims);
            return Ok(between.named(solution, inner).with("lanes", u64::from(lanes)));
        }
        let cut = values.is("rounds", "cut");
        let rule = Lanes::new(nodes, ports, lanes, cut, None);
        let together = request.problem.ports.max(rule.at_once * rule.carrier_ports);
        let claims = Claims::of_cluster(rule.by_links(request.problem.block_bytes), false);
        let claims = claims.of_rounds(request, Rounds::Shifts, together);
        Ok(Solution::new(request, values, rule, claims).with("lanes", u64::from(lanes)))
    }
}
