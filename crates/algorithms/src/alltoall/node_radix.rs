//! All-to-all on clusters with one inter-node phase for each radix-r digit of the distance: the
//! blocks of a node are gathered, travel from node to node, and are distributed on arrival (the
//! index algorithm of Bruck et al. 1997, section 3, on nodes; leaders as in `node_aware.rs`).
//!
//! The ranks of a node are divided into `lanes` parts of nearly equal size. The first rank of a
//! part carries the part's blocks, those for their own node included. One lane is the node's
//! leader; with more, that number of ranks send to other nodes at once, each through its share of
//! the node's ports. Intra-node, blocks are gathered and distributed along trees.
//!
//! Claim, on N nodes of s ranks with one port and one lane: 2 ceil(log_2 s) steps intra-node, in
//! which the largest messages are s - 1 times all p = N s blocks of a rank, and again; inter-node,
//! with h = r but for the top digit, the sum over digits of h - 1 steps, each of s^2 blocks times
//! the distances that have the digit. With k ports of a rank, k' of a node and l lanes, trees gather
//! to the base k + 1 from ceil(s / l) ranks, min(k, floor(k' / l)) digits make a step, and trees
//! distribute to the base floor(k / l) + 1.
//!
//! # Nodes of different sizes
//! A message has the blocks of its nodes, and a step is as long as the largest. No node has fewer
//! ranks than lanes.
//!
//! # The layout
//! A block never changes its slot: lane, distance from its first node to its last, source among the
//! lane's of its node, and destination in its node. So nothing is copied, and a block is sent from
//! the slot that received it.

use std::ops::Range;

use topocoll_schedule::{Axis, Block, Parameters, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Clusters, Ports, Rank, Route, Topology};

use crate::layout::digits::{Digit, Digits};
use crate::layout::node_rows::node_classes;
use crate::layout::tree::{digits, passed};
use crate::{
    Algorithm, ByLinks, Claims, Info, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

pub(crate) struct NodeRadix;

/// Slots of a rank, at most.
const MOST_SLOTS: u128 = 1 << 26;

/// Nodes of different sizes whose messages are counted pair by pair, at most.
const MOST_PAIRED: u32 = 256;

/// The most nodes for which every radix is priced; beyond, the powers of two and N.
const EVERY_RADIX_UP_TO: u32 = 16;

struct Lanes {
    clusters: Clusters,
    ports: Ports,
    lanes: u32,
    /// Of the distance between nodes.
    digits: Digits,
    /// Steps of gathering, inter-node, and of distributing.
    steps: [u32; 3],
}

/// A rank's place.
#[derive(Clone, Copy)]
struct Place {
    node: u32,
    local: u32,
    /// Ranks of the node.
    size: u32,
}

impl Lanes {
    fn new(clusters: &Clusters, ports: Ports, lanes: u32, radix: u32) -> Self {
        let (nodes, largest) = (clusters.nodes(), clusters.largest());
        let share = ports.rank.min(ports.node / lanes);
        let between = Digits::new(nodes, radix, share);
        let gather = digits(u64::from(ports.rank) + 1, largest.div_ceil(lanes));
        let deal = digits(u64::from(ports.rank / lanes) + 1, largest);
        let steps = [gather, between.steps, deal];
        Self { clusters: clusters.clone(), ports, lanes, digits: between, steps }
    }

    /// Ports of a lane to other nodes.
    fn share(&self) -> u32 {
        self.ports.rank.min(self.ports.node / self.lanes)
    }

    /// Ports of a rank in each tree of its node.
    fn dealt(&self) -> u32 {
        self.ports.rank / self.lanes
    }

    fn nodes(&self) -> u32 {
        self.clusters.nodes()
    }

    /// Sources of a lane on the largest node.
    fn width(&self) -> u32 {
        self.clusters.largest().div_ceil(self.lanes)
    }

    fn place(&self, rank: Rank) -> Place {
        let node = self.clusters.node_of(rank);
        let local = rank.0 - self.clusters.first_rank(node).0;
        Place { node, local, size: self.clusters.size(node) }
    }

    fn rank(&self, node: u32, local: u32) -> Rank {
        Rank(self.clusters.first_rank(node).0 + local)
    }

    /// The ranks that a lane carries for, on a node of a size; the first of them carries.
    fn sources(&self, lane: u32, size: u32) -> Range<u32> {
        let first = |lane: u32| (u64::from(lane) * u64::from(size) / u64::from(self.lanes)) as u32;
        first(lane)..first(lane + 1)
    }

    fn before(&self, node: u32, distance: u64) -> u32 {
        let nodes = u64::from(self.nodes());
        ((u64::from(node) + nodes - distance % nodes) % nodes) as u32
    }

    fn after(&self, node: u32, distance: u64) -> u32 {
        ((u64::from(node) + distance) % u64::from(self.nodes())) as u32
    }

    /// The first slot of a source of a lane's blocks that travel a distance.
    fn slot(&self, lane: u32, distance: u64, source: u32) -> Slot {
        let room = u64::from(lane) * u64::from(self.nodes()) + distance;
        (room * u64::from(self.width()) + u64::from(source)) * u64::from(self.clusters.largest())
    }

    /// The slots of some sources and destinations of a lane's blocks that travel a distance.
    fn push(&self, rows: &mut Rows, lane: u32, distance: u32, from: Range<u32>, to: Range<u32>) {
        let first = self.slot(lane, distance.into(), from.start) + u64::from(to.start);
        rows.push_rows(first, to.len() as u64, self.clusters.largest().into(), from.len() as u64);
    }

    /// Slots of a distance where all nodes are equal.
    fn room(&self) -> Option<u64> {
        let size = self.clusters.equal_size()?;
        Some(u64::from(self.width()) * u64::from(size))
    }

    /// A step in which carriers gather.
    fn gather(&self, place: Place, step: u32, out: &mut Step) {
        let base = u64::from(self.ports.rank) + 1;
        let weight = base.pow(step);
        let lane = (0..self.lanes).find(|&c| self.sources(c, place.size).contains(&place.local));
        let lane = lane.expect("bug: a rank in no lane");
        let sources = self.sources(lane, place.size);
        let (own, count) = (u64::from(place.local - sources.start), sources.len() as u64);
        if own % weight > 0 {
            return;
        }
        // The blocks gathered below a rank, for all nodes.
        let below = |first: u64| {
            let part = first as u32..(first + weight).min(count) as u32;
            if let Some(room) = self.room() {
                let length = part.len() as u64 * u64::from(place.size);
                let base = self.slot(lane, 0, part.start);
                return SlotSet::of(Strided::runs(base, self.nodes().into(), room, length));
            }
            let mut rows = Rows::default();
            for distance in 0..self.nodes() {
                let to = self.clusters.size(self.after(place.node, distance.into()));
                self.push(&mut rows, lane, distance, part.clone(), 0..to);
            }
            rows.finish()
        };
        let rank = |own: u64| self.rank(place.node, sources.start + own as u32);
        let digit = own / weight % base;
        if digit > 0 {
            out.send(rank(own - digit * weight), below(own), Route::default());
            return;
        }
        for child in (1..base).map(|z| own + z * weight).take_while(|&child| child < count) {
            out.receive(rank(child), below(child));
        }
    }

    /// The blocks with digit z that the carrier of a lane forwards.
    fn passed(&self, lane: u32, node: u32, digit: Digit, z: u32) -> SlotSet {
        let all = self.sources(lane, self.clusters.size(node)).len() as u32 == self.width();
        if let Some(room) = self.room().filter(|_| all) {
            return self.passed_by_equal(lane, digit, z, room);
        }
        let mut rows = Rows::default();
        for distance in self.distances(digit, z) {
            let first = self.before(node, u64::from(distance) % digit.weight);
            let from = self.sources(lane, self.clusters.size(first)).len() as u32;
            let to = self.clusters.size(self.after(first, distance.into()));
            self.push(&mut rows, lane, distance, 0..from, 0..to);
        }
        rows.finish()
    }

    /// The same where all nodes are equal and the lane has all its sources: runs of consecutive
    /// distances, the last of them perhaps shorter.
    fn passed_by_equal(&self, lane: u32, digit: Digit, z: u32, room: u64) -> SlotSet {
        let (nodes, weight) = (u64::from(self.nodes()), digit.weight);
        let (first, period) = (u64::from(z) * weight, self.digits.period(digit));
        let whole = (nodes + period).saturating_sub(first + weight) / period;
        let mut slots = SlotSet::default();
        if whole > 0 {
            let base = self.slot(lane, first, 0);
            slots.push(Strided::runs(base, whole, period * room, weight * room));
        }
        let last = first + whole * period;
        if last < nodes {
            slots.push(Strided::contiguous(self.slot(lane, last, 0), (nodes - last) * room));
        }
        slots
    }

    /// The distances that have the value z of a digit.
    fn distances(&self, digit: Digit, z: u32) -> impl Iterator<Item = u32> {
        let (nodes, weight) = (u64::from(self.nodes()), digit.weight);
        let period = self.digits.period(digit);
        let firsts = (u64::from(z) * weight..nodes).step_by(period as usize);
        firsts.flat_map(move |first| (first..(first + weight).min(nodes)).map(|d| d as u32))
    }

    /// An inter-node step.
    fn cross(&self, place: Place, step: u32, out: &mut Step) {
        let (digit, values) = self.digits.of_step(step);
        for lane in 0..self.lanes {
            if self.sources(lane, place.size).start != place.local {
                continue;
            }
            let carrier =
                |node: u32| self.rank(node, self.sources(lane, self.clusters.size(node)).start);
            for z in values.clone() {
                let hops = u64::from(z) * digit.weight;
                let (to, from) = (self.after(place.node, hops), self.before(place.node, hops));
                let sent = self.passed(lane, place.node, digit, z);
                out.send(carrier(to), sent, Route::default());
                out.receive(carrier(from), self.passed(lane, from, digit, z));
            }
        }
    }

    /// A step in which carriers distribute.
    fn deal(&self, place: Place, step: u32, out: &mut Step) {
        let base = u64::from(self.dealt()) + 1;
        let weight = base.pow(self.steps[2] - 1 - step);
        let size = u64::from(place.size);
        for lane in 0..self.lanes {
            let carrier = u64::from(self.sources(lane, place.size).start);
            // Ranks are numbered around the node from the carrier on.
            let local = |own: u64| ((carrier + own) % size) as u32;
            let own = (u64::from(place.local) + size - carrier) % size;
            if own % weight > 0 {
                continue;
            }
            // The blocks for a rank and those below it, from all nodes.
            let below = |first: u64| {
                let count = weight.min(size - first);
                let (start, ahead) = (local(first), count.min(size - u64::from(local(first))));
                let all = self.sources(lane, place.size).len() as u32 == self.width();
                if let Some(room) = self.room().filter(|_| all) {
                    // A row of destinations for each distance and source.
                    let (base, times) =
                        (self.slot(lane, 0, 0), u64::from(self.nodes()) * room / size);
                    let mut slots =
                        SlotSet::of(Strided::runs(base + u64::from(start), times, size, ahead));
                    if ahead < count {
                        slots.push(Strided::runs(base, times, size, count - ahead));
                    }
                    return slots;
                }
                let mut rows = Rows::default();
                for distance in 0..self.nodes() {
                    let node = self.before(place.node, distance.into());
                    let from = self.sources(lane, self.clusters.size(node)).len() as u32;
                    let here = start..start + ahead as u32;
                    self.push(&mut rows, lane, distance, 0..from, here);
                    if ahead < count {
                        self.push(&mut rows, lane, distance, 0..from, 0..(count - ahead) as u32);
                    }
                }
                rows.finish()
            };
            let digit = own / weight % base;
            if digit > 0 {
                let parent = local(own - digit * weight);
                out.receive(self.rank(place.node, parent), below(own));
                continue;
            }
            for child in (1..base).map(|z| own + z * weight).take_while(|&child| child < size) {
                out.send(self.rank(place.node, local(child)), below(child), Route::default());
            }
        }
    }

    /// The largest message of each value of a digit, in blocks.
    fn largest(&self, digit: Digit) -> Vec<u64> {
        let mut sizes = self.clusters.groups().map(|(.., size)| size);
        let size = sizes.next().expect("a cluster has nodes");
        if sizes.all(|other| other == size) {
            let blocks = u64::from(self.width()) * u64::from(size);
            // Of the distances below the number of nodes, those with the value z of the digit.
            let (nodes, weight) = (u64::from(self.nodes()), digit.weight);
            let period = self.digits.period(digit);
            let count = |z: u32| {
                let last = (nodes % period).saturating_sub(u64::from(z) * weight).min(weight);
                nodes / period * weight + last
            };
            return (1..digit.values).map(|z| count(z) * blocks).collect();
        }
        let sizes: Vec<u32> = self.clusters.sizes().collect();
        let message = |node: u32, lane: u32, z: u32| {
            let blocks = self.distances(digit, z).map(|distance| {
                let first = self.before(node, u64::from(distance) % digit.weight);
                let to = sizes[self.after(first, distance.into()) as usize];
                self.sources(lane, sizes[first as usize]).len() as u64 * u64::from(to)
            });
            blocks.sum::<u64>()
        };
        let all = |z: u32| {
            let lanes = (0..self.nodes()).flat_map(|node| (0..self.lanes).map(move |c| (node, c)));
            lanes.map(|(node, lane)| message(node, lane, z)).max().unwrap_or(0)
        };
        (1..digit.values).map(all).collect()
    }

    /// The intra-node and the inter-node steps.
    fn by_links(&self, block_bytes: u64) -> ByLinks {
        let (ports, share) = (u64::from(self.ports.rank), self.share());
        let ranks = u128::from(self.clusters.ranks());
        let mut inside = passed(ports + 1, self.width()) * ranks;
        let mut between = 0;
        for &digit in &self.digits.all {
            let largest = self.largest(digit);
            let together = largest.chunks(share as usize);
            between +=
                together.map(|z| u128::from(z.iter().copied().max().unwrap_or(0))).sum::<u128>();
        }
        let carried = |lane: u32| {
            let groups = self.clusters.groups();
            let nodes = groups
                .map(|(_, nodes, size)| u64::from(nodes) * self.sources(lane, size).len() as u64);
            nodes.sum::<u64>()
        };
        let most = (0..self.lanes).map(carried).max().unwrap_or(0);
        inside += passed(u64::from(self.dealt()) + 1, self.clusters.largest()) * u128::from(most);
        let [gather, cross, deal] = self.steps;
        ByLinks {
            intra_node: StepsOf::new((gather + deal).into(), inside, block_bytes),
            inter_node: StepsOf::new(cross.into(), between, block_bytes),
            ..ByLinks::default()
        }
    }
}

/// Rows of slots, as they are pushed, in few runs.
#[derive(Default)]
struct Rows {
    set: SlotSet,
    /// Runs of one length at one distance from each other.
    last: Option<Strided>,
    /// The first slot and the slots that follow it.
    open: (Slot, u64),
}

impl Rows {
    fn push(&mut self, first: Slot, count: u64) {
        if self.open.1 > 0 && self.open.0 + self.open.1 == first {
            self.open.1 += count;
            return;
        }
        self.close();
        self.open = (first, count);
    }

    /// Rows of `count` slots, `apart` slots from one to the next.
    fn push_rows(&mut self, first: Slot, count: u64, apart: u64, rows: u64) {
        if count == apart {
            return self.push(first, rows * count);
        }
        let mut row = 0;
        while row < rows {
            let at = first + row * apart;
            self.push(at, count);
            row += 1;
            // All but the last, which may go on, where they continue the runs before.
            let more = rows.saturating_sub(row + 1);
            if more > 0 {
                self.close();
                row += self.extend(at + apart, count, apart, more);
            }
        }
    }

    /// Adds runs to the last ones if they continue them: how many.
    fn extend(&mut self, base: Slot, count: u64, apart: u64, runs: u64) -> u64 {
        let Some(last) = &mut self.last else { return 0 };
        let stride = if last.outer.count == 1 { apart as i64 } else { last.outer.stride };
        let next = last.base + last.outer.count * apart;
        if last.inner.count != count || stride != apart as i64 || next != base {
            return 0;
        }
        last.outer = Axis { count: last.outer.count + runs, stride };
        runs
    }

    fn close(&mut self) {
        let (base, count) = std::mem::take(&mut self.open);
        if count == 0 {
            return;
        }
        // The second run says how far all are apart.
        let apart = self.last.as_ref().map_or(0, |last| match last.outer.count {
            1 => base.saturating_sub(last.base),
            _ => last.outer.stride as u64,
        });
        if self.extend(base, count, apart, 1) == 1 {
            return;
        }
        if let Some(last) = self.last.replace(Strided::contiguous(base, count)) {
            self.set.push(last);
        }
    }

    fn finish(mut self) -> SlotSet {
        self.close();
        if let Some(last) = self.last {
            self.set.push(last);
        }
        self.set
    }
}

impl Rule for Lanes {
    fn steps(&self) -> u32 {
        self.steps.iter().sum()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (place, [gather, between, _]) = (self.place(rank), self.steps);
        if step < gather {
            self.gather(place, step, out);
        } else if step - gather < between {
            self.cross(place, step - gather, out);
        } else {
            self.deal(place, step - gather - between, out);
        }
    }

    fn slots(&self) -> u64 {
        let rows = u64::from(self.lanes) * u64::from(self.nodes()) * u64::from(self.width());
        rows * u64::from(self.clusters.largest())
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (place, (lane, distance, source, to)) = (self.place(rank), self.parts(slot));
        let node = self.after(place.node, distance.into());
        let sources = self.sources(lane, place.size);
        let own = source < sources.len() as u32 && sources.start + source == place.local;
        (own && to < self.clusters.size(node))
            .then(|| Block { from: rank, to: self.rank(node, to) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (place, (lane, distance, source, to)) = (self.place(rank), self.parts(slot));
        let node = self.before(place.node, distance.into());
        let sources = self.sources(lane, self.clusters.size(node));
        let own = to == place.local && source < sources.len() as u32;
        own.then(|| Block { from: self.rank(node, sources.start + source), to: rank })
    }

    fn names_routes(&self, _: &RankClasses) -> bool {
        false
    }

    /// Slots are by distance, so that nodes of equal size are equivalent.
    fn classes(&self) -> RankClasses {
        node_classes(&self.clusters)
    }
}

impl Lanes {
    /// The lane, distance, source and destination of a slot's block.
    fn parts(&self, slot: Slot) -> (u32, u32, u32, u32) {
        let [nodes, width, largest] =
            [self.nodes(), self.width(), self.clusters.largest()].map(u64::from);
        let (row, to) = (slot / largest, slot % largest);
        let (room, source) = (row / width, row % width);
        ((room / nodes) as u32, (room % nodes) as u32, source as u32, to as u32)
    }
}

/// Lanes that the ports and the smallest node have room for.
fn most_lanes(ports: u32, clusters: &Clusters) -> u32 {
    clusters.groups().map(|(.., size)| size).fold(ports, u32::min)
}

/// A cluster of several nodes.
fn nodes_of<'r>(request: &Request<'r>) -> Result<&'r Clusters, NotApplicable> {
    let clusters = request.clusters()?;
    if clusters.nodes() < 2 {
        Err(request.requires("a cluster of several nodes"))
    } else {
        Ok(clusters)
    }
}

static INFO: Info = Info::new(
    "node-radix",
    "nodes gather, combine and rotate blocks one radix-r digit at a time, and distribute them",
    "Bruck et al. 1997, section 3, between the leaders of nodes",
)
.by_node()
.taking(&[
    Parameter::number("lanes", "ranks of a node that send at once, 1 (a leader) to its ports")
        .by_cost(),
    Parameter::number("radix", "2 (fewest steps) to the number of nodes (least volume)").by_cost(),
]);

impl Algorithm for NodeRadix {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let clusters = nodes_of(request)?;
        let (nodes, most) = (clusters.nodes(), most_lanes(request.carrier_ports(), clusters));
        let powers = |most: u32| (0..32).map(|i| 1 << i).take_while(move |&power| power < most);
        let radices: Vec<u32> = match nodes <= EVERY_RADIX_UP_TO {
            // The last but one is the largest with the last message alone.
            true => (2..=nodes).filter(|radix| radix + 1 != nodes).collect(),
            false => powers(nodes).skip(1).chain([nodes]).collect(),
        };
        let setting = |lanes: u32, radix: u32| {
            [("lanes", lanes), ("radix", radix)]
                .map(|(name, value)| (name.to_owned(), u64::from(value).into()))
                .into()
        };
        let settings = powers(most)
            .chain([most])
            .flat_map(|lanes| radices.iter().map(move |&radix| setting(lanes, radix)));
        Ok(settings.collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, clusters) = (&request.problem, nodes_of(request)?);
        let nodes = clusters.nodes();
        let (most, ports) = (most_lanes(request.carrier_ports(), clusters), problem.both_ports());
        let lanes = values.number("lanes", 1, most.into())?.unwrap_or(1) as u32;
        let usual = u64::from(nodes.min(ports.rank.min(ports.node / lanes) + 1));
        let radix = values.number("radix", 2, nodes.into())?.unwrap_or(usual) as u32;
        let largest = u128::from(clusters.largest());
        let equal = clusters.groups().all(|(.., size)| u128::from(size) == largest);
        let too_many = if u128::from(nodes) * (largest + u128::from(lanes)) * largest > MOST_SLOTS {
            Some("nodes times ranks of the largest squared to be at most 2^26")
        } else if !equal && nodes > MOST_PAIRED {
            Some("nodes of one size, or at most 256 of them")
        } else {
            None
        };
        if let Some(rule) = too_many {
            return Err(NotApplicable::Ranks { rule, ranks: problem.ranks });
        }
        let rule = Lanes::new(clusters, ports, lanes, radix);
        let claims = Claims::of_cluster(rule.by_links(problem.block_bytes), true);
        let solution = Solution::new(request, values, rule, claims);
        Ok(solution.with("lanes", u64::from(lanes)).with("radix", u64::from(radix)))
    }
}
