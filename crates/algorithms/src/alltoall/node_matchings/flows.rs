//! Who carries which blocks between nodes, and their slots.
//!
//! Every message is sent from consecutive slots. Four rooms: blocks to give away, by carrier, first the one for the
//! carrier itself; flows that the rank carries, each by source and then destination, its own blocks there from the
//! start; flows that it receives, by destination and then source; blocks that have arrived, by carrier and then source,
//! and those of the own node.

use topocoll_schedule::{Axis, Block, Demand, Slot, SlotSet, Strided};
use topocoll_topology::{Clusters, Rank, Topology};

/// Blocks of consecutive ranks of a node for the ranks of another one.
#[derive(Clone, Default)]
pub(super) struct Flow {
    first: u32,
    sources: u32,
    node: u32,
    pub(super) bytes: u64,
    /// The carriers.
    pub(super) from: u32,
    pub(super) to: u32,
    /// The place of the first rank's blocks among all that it gives away.
    given: u32,
    /// The place among the flows that the sending carrier carries, in slots.
    carried: u32,
    /// The place of the first source among all ranks whose blocks arrive at the node.
    arrives: u32,
}

pub(super) struct Flows {
    pub(super) nodes: Clusters,
    /// Whether each rank has flows of its own.
    of_ranks: bool,
    /// By node or rank, then destination's node; the one for the own node is not used.
    pub(super) all: Vec<Flow>,
    /// By node or rank as in `all`, those of it in order of `given`.
    given: Vec<Vec<u32>>,
    /// By rank, those it carries in order of `carried`.
    carried: Vec<Vec<u32>>,
    /// By node, those for it in order of `arrives`.
    pub(super) arriving: Vec<Vec<u32>>,
    /// By rank, of the flows that it receives the first place of a source, and the sources.
    received: Vec<(u32, u32)>,
    /// The first slots of the rooms after the first, and the end of the last.
    pub(super) rooms: [Slot; 4],
}

impl Flows {
    pub(super) fn new(nodes: &Clusters, demand: &Demand, of_ranks: bool, startup: u64) -> Self {
        let (ranks, count) = (nodes.ranks(), nodes.nodes());
        let groups: Vec<(u32, u32)> = match of_ranks {
            true => (0..ranks).map(|rank| (rank, 1)).collect(),
            false => (0..count).map(|node| (nodes.first_rank(node).0, nodes.size(node))).collect(),
        };
        let to_nodes = |&(first, sources): &(u32, u32)| {
            (0..count).map(move |node| Flow { first, sources, node, ..Flow::default() })
        };
        let mut flows = Self {
            nodes: nodes.clone(),
            of_ranks,
            all: groups.iter().flat_map(to_nodes).collect(),
            given: vec![Vec::new(); groups.len()],
            carried: vec![Vec::new(); ranks as usize],
            arriving: vec![Vec::new(); count as usize],
            received: vec![(0, 0); ranks as usize],
            rooms: [0; 4],
        };
        for from in (0..ranks).map(Rank) {
            for (to, bytes) in (0..).zip(demand.row(from)) {
                let flow = flows.number(from, nodes.node_of(Rank(to)));
                flows.all[flow].bytes += bytes;
            }
        }
        let of = |i: u32| &flows.all[i as usize];
        let between = |&i: &u32| nodes.node_of(Rank(of(i).first)) != of(i).node;
        let between: Vec<u32> = (0..flows.all.len() as u32).filter(between).collect();
        flows.choose_carriers(&between, startup);
        flows.place(&between);
        flows
    }

    /// The number of the flow of a rank's blocks for a node.
    pub(super) fn number(&self, from: Rank, node: u32) -> usize {
        let group = if self.of_ranks { from.0 } else { self.nodes.node_of(from) };
        (group * self.nodes.nodes() + node) as usize
    }

    fn choose_carriers(&mut self, between: &[u32], startup: u64) {
        let nodes = &self.nodes;
        let mut order = between.to_vec();
        order.sort_by_key(|&i| std::cmp::Reverse(self.all[i as usize].bytes));
        let ends_of = |flow: &Flow| [nodes.node_of(Rank(flow.first)), flow.node];
        // Of each node the bytes, of each rank the bytes and flows that it carries; by direction.
        let mut all = [(); 2].map(|()| vec![0u64; nodes.nodes() as usize]);
        let mut load = [(); 2].map(|()| vec![(0u64, 0u32); self.carried.len()]);
        for flow in order.iter().map(|&i| &self.all[i as usize]) {
            let ends = ends_of(flow);
            (0..2).for_each(|side| all[side][ends[side] as usize] += flow.bytes);
        }
        for i in order {
            let flow = &mut self.all[i as usize];
            let ends = ends_of(flow);
            let sizes = ends.map(|node| nodes.size(node));
            let carriers = |lane: u32| ends.map(|node| nodes.first_rank(node).0 + lane);
            let lanes = sizes[0].min(sizes[1]);
            let own = (flow.first - carriers(0)[0]) % lanes;
            let fits = |side: usize| {
                let share = all[side][ends[side] as usize] / u64::from(sizes[side]);
                let carried = load[side][carriers(own)[side] as usize].0;
                carried + flow.bytes <= share.saturating_add(startup)
            };
            let least = |&lane: &u32| {
                let [from, to] = carriers(lane).map(|rank| rank as usize);
                let (out, back) = (load[0][from], load[1][to]);
                (out.0.max(back.0), out.1 + back.1)
            };
            let stays = self.of_ranks && (flow.bytes == 0 || fits(0) && fits(1));
            let lane = if stays { own } else { (0..lanes).min_by_key(least).unwrap_or(own) };
            [flow.from, flow.to] = carriers(lane);
            for (load, rank) in load.iter_mut().zip(carriers(lane)) {
                let (bytes, flows) = &mut load[rank as usize];
                (*bytes, *flows) = (*bytes + flow.bytes, *flows + 1);
            }
        }
    }

    /// Gives all blocks their slots.
    fn place(&mut self, between: &[u32]) {
        let Self { nodes, all, given, carried, arriving, received, .. } = self;
        let (mut out, mut back) = (0, 0);
        for &i in between {
            let flow = &mut all[i as usize];
            given[(i / nodes.nodes()) as usize].push(i);
            arriving[flow.node as usize].push(i);
            let list = &mut carried[flow.from as usize];
            let slots = |flow: &Flow| flow.sources * nodes.size(flow.node);
            let last = list.last().copied();
            list.push(i);
            let end =
                last.map_or(0, |last: u32| all[last as usize].carried + slots(&all[last as usize]));
            let flow = &mut all[i as usize];
            flow.carried = end;
            out = out.max(end + slots(flow));
        }
        for list in given {
            list.sort_by_key(|&i| all[i as usize].from);
            let mut before = 0;
            for &i in &*list {
                let flow = &mut all[i as usize];
                let first = nodes.first_rank(nodes.node_of(Rank(flow.first)));
                flow.given = before + flow.from - first.0 + 1;
                before += nodes.size(flow.node);
            }
        }
        for list in arriving {
            list.sort_by_key(|&i| all[i as usize].to);
            let mut end = 0;
            for &i in &*list {
                let flow = &mut all[i as usize];
                flow.arrives = end;
                end += flow.sources;
                let (first, sources) = &mut received[flow.to as usize];
                *first = if *sources == 0 { flow.arrives } else { *first };
                *sources += flow.sources;
                back = back.max(*sources * nodes.size(flow.node));
            }
        }
        let (ranks, out, back) = (received.len() as u64, u64::from(out), u64::from(back));
        self.rooms = [ranks, ranks + out, ranks + out + back, 2 * ranks + out + back];
    }

    /// The first rank of a rank's node, and the ranks there.
    pub(super) fn node(&self, rank: Rank) -> (u32, u32) {
        let node = self.nodes.node_of(rank);
        (self.nodes.first_rank(node).0, self.nodes.size(node))
    }

    /// The flows of a list in order, those before the first that is not `before`, and from it on.
    fn split<'f>(
        &'f self,
        list: &'f [u32],
        before: impl Fn(&Flow) -> bool,
    ) -> [impl DoubleEndedIterator<Item = &'f Flow>; 2] {
        let first = list.partition_point(|&i| before(&self.all[i as usize]));
        [&list[..first], &list[first..]].map(|part| part.iter().map(|&i| &self.all[i as usize]))
    }

    /// Those with blocks of a rank, in order of their carriers.
    fn of(&self, from: Rank) -> &[u32] {
        &self.given[self.number(from, 0) / self.nodes.nodes() as usize]
    }

    /// The flows that a rank gives to a carrier of its node.
    fn given_to(&self, from: Rank, carrier: u32) -> impl Iterator<Item = &Flow> {
        let [_, flows] = self.split(self.of(from), move |flow| flow.from < carrier);
        flows.take_while(move |flow| flow.from == carrier)
    }

    /// The slots that a rank gives to another one of its node.
    pub(super) fn gives(&self, from: Rank, carrier: u32) -> Strided {
        let own = carrier - self.node(from).0;
        let size = |flow: &Flow| self.nodes.size(flow.node);
        let [mut before, _] = self.split(self.of(from), |flow| flow.from < carrier);
        let first = before
            .next_back()
            .map_or(own, |flow| flow.given + size(flow) + carrier - flow.from - 1);
        let given: u32 = self.given_to(from, carrier).map(size).sum();
        Strided::contiguous(first.into(), (given + 1).into())
    }

    /// The slots into which a carrier receives them.
    pub(super) fn takes(&self, from: Rank, carrier: u32) -> SlotSet {
        let (first, size) = self.node(from);
        let own = self.rooms[3] - u64::from(size) + u64::from(from.0 - first);
        let mut slots = SlotSet::of(Strided::contiguous(own, 1));
        for flow in self.given_to(from, carrier) {
            let width = u64::from(self.nodes.size(flow.node));
            let row = u64::from(flow.carried) + u64::from(from.0 - flow.first) * width;
            slots.push(Strided::contiguous(self.rooms[0] + row, width));
        }
        slots
    }

    /// The slots of a flow at its carrier, and where it is received.
    pub(super) fn sent(&self, flow: &Flow) -> [Strided; 2] {
        let (width, count) = (u64::from(self.nodes.size(flow.node)), u64::from(flow.sources));
        let (first, sources) = self.received[flow.to as usize];
        let rows = Strided {
            base: self.rooms[1] + u64::from(flow.arrives - first),
            outer: Axis { count, stride: 1 },
            inner: Axis { count: width, stride: sources.into() },
        };
        [Strided::contiguous(self.rooms[0] + u64::from(flow.carried), count * width), rows]
    }

    /// The slots that a carrier distributes to another rank of its node, and where they arrive.
    pub(super) fn dealt(&self, carrier: u32, to: u32) -> [Strided; 2] {
        let (first, sources) = self.received[carrier as usize];
        let row = u64::from(to - self.node(Rank(to)).0) * u64::from(sources);
        [self.rooms[1] + row, self.rooms[2] + u64::from(first)]
            .map(|base| Strided::contiguous(base, sources.into()))
    }

    /// The source of a block that arrives at a place of its node's, and the carrier that receives it.
    fn source(&self, node: u32, place: u32) -> Option<(Rank, u32)> {
        let list = &self.arriving[node as usize];
        let flow = self.split(list, |flow| flow.arrives <= place)[0].next_back()?;
        Some((Rank(flow.first + place - flow.arrives), flow.to))
    }

    pub(super) fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let size = |flow: &Flow| self.nodes.size(flow.node);
        let to = |to: u32| Block { from: rank, to: Rank(to) };
        let of_node = |flow: &Flow, local: u32| to(self.nodes.first_rank(flow.node).0 + local);
        let Some(carried) = slot.checked_sub(self.rooms[0]) else {
            let slot = slot as u32;
            let Some(flow) = self.split(self.of(rank), |flow| flow.given <= slot)[0].next_back()
            else {
                return Some(to(self.node(rank).0 + slot));
            };
            // After a flow come the blocks for the carriers up to that of the next one.
            return match (slot - flow.given).checked_sub(size(flow)) {
                Some(after) => Some(to(flow.from + 1 + after)),
                None => (flow.from != rank.0).then(|| of_node(flow, slot - flow.given)),
            };
        };
        let list = &self.carried[rank.index()];
        let [mut before, _] = self.split(list, |flow| u64::from(flow.carried) <= carried);
        let flow = before.next_back()?;
        let place = u32::try_from(carried).ok()? - flow.carried;
        let (row, local) = (place / size(flow), place % size(flow));
        (row < flow.sources && flow.first + row == rank.0).then(|| of_node(flow, local))
    }

    pub(super) fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (node, (first, size)) = (self.nodes.node_of(rank), self.node(rank));
        let [out, back, arrived, end] = self.rooms;
        let from = |from: Rank| Block { from, to: rank };
        if slot < back {
            let is_own = slot < out && slot == self.gives(rank, rank.0).base;
            return is_own.then(|| from(rank));
        }
        let Some(place) = slot.checked_sub(arrived) else {
            let row = self.dealt(rank.0, rank.0)[0].position(slot)?;
            let place = self.received[rank.index()].0 + row as u32;
            return self.source(node, place).map(|(source, _)| from(source));
        };
        let (source, carrier) = match (place + u64::from(size)).checked_sub(end - arrived) {
            Some(local) => (Rank(first + local as u32), first + local as u32),
            None => self.source(node, place as u32)?,
        };
        (carrier != rank.0).then(|| from(source))
    }
}
