//! What a schedule costs, and the least that any costs.

use crate::Fault;
use crate::machine::{Machine, node_of, own_way, walk};
use crate::parse::{Certificate, Send, Slots, Step};
use crate::radix::{Radix, limited};

/// Blocks moved by representatives, and links travelled by messages, at most: some minutes each.
const MOST_WORK: u128 = 1 << 36;

/// Links that are counted one by one, at most: 16 bytes each.
const MOST_LINKS: u128 = 1 << 26;

/// Ranks that are counted one by one, at most.
const MOST_RANKS: u128 = 1 << 24;

/// Counts as `topocoll verify` defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Steps in which a message moves.
    pub steps: u128,
    /// Messages of all ranks.
    pub messages: u128,
    /// Sum over steps of the largest message, in bytes.
    pub bytes: u128,
    /// Sum over steps of the largest message or load of a directed link, in bytes.
    pub link_bytes: u128,
    /// Sum over steps of the largest hop count.
    pub hops: u128,
    /// Pairs of a step and a directed link that carries several messages.
    pub link_conflicts: u128,
    /// Most messages on one directed link in one step.
    pub max_link_sharing: u128,
    /// Steps with a link that carries several messages.
    pub contended_steps: u128,
    /// Steps needed when every contended step is split.
    pub contention_free_steps: u128,
    /// Cases of a step, a rank or node, and a direction that exceed the ports.
    pub port_violations: u128,
    /// Steps in which a message crosses between nodes.
    pub inter_node_steps: u128,
}

impl Counts {
    pub(crate) const RULE: &str = "the counts are steps= messages= bytes= link_bytes= hops= \
         link_conflicts= max_link_sharing= contended_steps= contention_free_steps= \
         port_violations= inter_node_steps=";

    /// The counts by the names that they are listed by, in order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u128); 11] {
        [
            ("steps", self.steps),
            ("messages", self.messages),
            ("bytes", self.bytes),
            ("link_bytes", self.link_bytes),
            ("hops", self.hops),
            ("link_conflicts", self.link_conflicts),
            ("max_link_sharing", self.max_link_sharing),
            ("contended_steps", self.contended_steps),
            ("contention_free_steps", self.contention_free_steps),
            ("port_violations", self.port_violations),
            ("inter_node_steps", self.inter_node_steps),
        ]
    }

    /// The counts of a line, in the order of [`named`](Self::named).
    pub(crate) fn parse(text: &str) -> Option<[u128; 11]> {
        let mut words = text.split(' ');
        let mut listed = [0; 11];
        for (count, (name, _)) in listed.iter_mut().zip(Self::default().named()) {
            *count = words.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()?;
        }
        words.next().is_none().then_some(listed)
    }

    pub(crate) fn compare(&self, listed: &[u128; 11]) -> Result<(), Fault> {
        for ((name, found), &listed) in self.named().into_iter().zip(listed) {
            if found != listed {
                return Err(Fault::Count { name, listed, found });
            }
        }
        Ok(())
    }
}

/// The links of a grid, up to the translations that keep them.
struct Links<'c> {
    grid: &'c Radix,
    wraps: &'c [bool],
    /// Links whose coordinates are alike modulo these are counted as one.
    periods: Vec<u32>,
    /// How many links one stands for.
    each: u128,
    /// By position, dimension and direction: messages and bytes.
    loads: Vec<(u32, u128)>,
    used: Vec<usize>,
}

impl Links<'_> {
    /// Adds a message from a rank; its hops, or none if it does not end at `to`.
    fn add(&mut self, from: u32, to: u32, send: &Send, bytes: u128) -> Option<u128> {
        let Self { grid, wraps, periods, loads, used, .. } = self;
        let own;
        let way = match &send.way {
            Some(way) => way,
            None => {
                own = own_way(grid, wraps, from, to);
                &own
            }
        };
        let mut hops = 0;
        let end = walk(grid, wraps, from, way, |at, u, up| {
            let position = at.iter().zip(periods.iter()).fold(0, |position, (at, period)| {
                position * *period as usize + (at % period) as usize
            });
            let link = (position * periods.len() + u) * 2 + usize::from(up);
            let (messages, load) = &mut loads[link];
            if *messages == 0 {
                used.push(link);
            }
            *messages += 1;
            *load += bytes;
            hops += 1;
        });
        (end == Some(to)).then_some(hops)
    }

    /// The most messages on a link, the largest load, and links with several; and none are loaded.
    fn busiest(&mut self) -> (u128, u128, u128) {
        let (mut most, mut largest, mut shared) = (0, 0, 0);
        for link in self.used.drain(..) {
            let (messages, load) = std::mem::take(&mut self.loads[link]);
            most = most.max(messages.into());
            largest = largest.max(load);
            shared += if messages > 1 { self.each } else { 0 };
        }
        (most, largest, shared)
    }
}

/// Counts the steps of all ranks.
pub(crate) fn count(certificate: &Certificate) -> Result<Counts, Fault> {
    let Certificate { machine, radix, .. } = certificate;
    let keeps = machine.keeps(radix);
    if !keeps {
        limited("ranks one by one", radix.ranks().into(), MOST_RANKS)?;
    }
    let classes: Vec<(u32, u32)> = if keeps {
        (0..radix.classes()).map(|class| (radix.representative(class), class)).collect()
    } else {
        (0..radix.ranks()).map(|rank| (rank, radix.class_of(rank))).collect()
    };
    let each = u128::from(radix.ranks()) / classes.len() as u128;
    limit_work(certificate, classes.len() as u128 / u128::from(radix.classes()))?;
    let mut links = match machine {
        Machine::Grid(grid, wraps) => {
            let periods = if keeps { radix.periods.clone() } else { grid.sides.clone() };
            let count = 2 * wraps.len() as u128 * classes.len() as u128;
            limited("links", count, MOST_LINKS)?;
            let loads = vec![(0, 0); count as usize];
            Some(Links { grid, wraps, periods, each, loads, used: Vec::new() })
        }
        Machine::Complete(_) | Machine::Cluster(_) => None,
    };
    let mut counts = Counts::default();
    for (number, step) in certificate.in_order() {
        let mut ports = Ports::new(certificate, each);
        let (mut messages, mut largest, mut hops) = (0, 0, 0);
        for &(rank, class) in &classes {
            let Some(does) = step[class as usize] else { continue };
            for send in &does.sends {
                let is = |rule| Fault::Step { step: number, class, rule };
                let to = radix.sum(rank, send.to);
                let bytes = bytes(certificate, &send.slots)
                    .ok_or_else(|| is("a run of slots is of several pieces"))?;
                if let Some(links) = &mut links {
                    let way = links.add(rank, to, send, bytes);
                    hops = way
                        .ok_or_else(|| is("a message's way does not lead to its receiver"))?
                        .max(hops);
                } else if send.way.is_some() {
                    return Err(is("a message has a way where there are no links"));
                }
                ports.send(rank, to);
                messages += each;
                largest = bytes.max(largest);
            }
            ports.rank(does);
        }
        if messages == 0 {
            continue;
        }
        let (sharing, load, shared) = links.as_mut().map_or((1, 0, 0), Links::busiest);
        counts.steps += 1;
        counts.messages += messages;
        counts.bytes += largest;
        counts.link_bytes += largest.max(load);
        counts.hops += hops;
        counts.link_conflicts += shared;
        counts.max_link_sharing = counts.max_link_sharing.max(sharing);
        counts.contended_steps += u128::from(sharing > 1);
        counts.contention_free_steps += sharing;
        counts.port_violations += ports.violations();
        counts.inter_node_steps += u128::from(ports.crosses);
    }
    Ok(counts)
}

/// Refuses what would take more than some minutes.
fn limit_work(certificate: &Certificate, repeats: u128) -> Result<(), Fault> {
    let hops = match &certificate.machine {
        Machine::Grid(grid, _) => grid.sides.iter().map(|side| u128::from(*side)).sum(),
        Machine::Complete(_) | Machine::Cluster(_) => 1,
    };
    let (mut moved, mut travelled) = (0, 0);
    for step in certificate.classes.iter().flat_map(|class| &class.steps) {
        let slots = step.sends.iter().map(|send| &send.slots);
        let copied = step.copies.iter().map(|(from, _)| from);
        moved += slots.chain(copied).map(|slots| u128::from(slots.count())).sum::<u128>();
        travelled += repeats * hops * step.sends.len() as u128;
    }
    limited("blocks moved", moved, MOST_WORK)?;
    limited("links travelled", travelled, MOST_WORK)
}

/// Bytes of a message; none where a run spans several pieces.
fn bytes(certificate: &Certificate, slots: &Slots) -> Option<u128> {
    if let [block] = certificate.pieces[..] {
        return Some(u128::from(slots.count()) * u128::from(block));
    }
    slots.0.iter().try_fold(0, |sum, run| {
        let (low, high) = run.span();
        let piece = (low / certificate.slots) as usize;
        let one = high / certificate.slots == piece as u64;
        one.then(|| sum + u128::from(run.count()) * u128::from(certificate.pieces[piece]))
    })
}

/// Messages by rank, and on a cluster those that leave and enter nodes.
struct Ports<'c> {
    ports: u64,
    each: u128,
    over: u128,
    nodes: Option<&'c [(u32, u32)]>,
    /// By node, messages out and in.
    crossing: Vec<(u64, u64)>,
    crosses: bool,
}

impl<'c> Ports<'c> {
    fn new(certificate: &'c Certificate, each: u128) -> Self {
        let nodes = match &certificate.machine {
            Machine::Cluster(nodes) => Some(&nodes[..]),
            Machine::Complete(_) | Machine::Grid(..) => None,
        };
        let count: u32 = nodes.unwrap_or_default().iter().map(|(count, _)| count).sum();
        let crossing = vec![(0, 0); count as usize];
        Self { ports: certificate.ports, each, over: 0, nodes, crossing, crosses: false }
    }

    fn send(&mut self, from: u32, to: u32) {
        let Some(nodes) = self.nodes else { return };
        let (from, to) = (node_of(nodes, from), node_of(nodes, to));
        if from != to {
            self.crossing[from as usize].0 += 1;
            self.crossing[to as usize].1 += 1;
            self.crosses = true;
        }
    }

    fn rank(&mut self, does: &Step) {
        for messages in [does.sends.len(), does.receives.len()] {
            let over = self.nodes.is_none() && messages as u64 > self.ports;
            self.over += if over { self.each } else { 0 };
        }
    }

    fn violations(&self) -> u128 {
        let over = |&(out, into): &(u64, u64)| {
            u128::from(out > self.ports) + u128::from(into > self.ports)
        };
        self.over + self.crossing.iter().map(over).sum::<u128>()
    }
}

/// The least steps and link bytes of any schedule: n blocks are known to n ranks, each reached by
/// multiplying by k + 1 in a step; and what a rank, a grid's corner, the middle of its side, or a node
/// must let through.
pub(crate) fn bounds(certificate: &Certificate) -> (u64, u128) {
    let n = u128::from(certificate.radix.ranks());
    let (k, b) = (u128::from(certificate.ports), u128::from(certificate.block));
    let (mut steps, mut reached) = (0, 1u128);
    while reached < n {
        reached = reached.saturating_mul(k + 1);
        steps += 1;
    }
    let gathers = certificate.gathers;
    let injected = ((n - 1) * b).div_ceil(k);
    let narrowest = match &certificate.machine {
        Machine::Complete(_) => 0,
        Machine::Grid(grid, wraps) => {
            let across = |(&side, &wraps): (&u32, &bool)| {
                let (side, links) = (u128::from(side), if wraps { 2 } else { 1 });
                let lines = n / side;
                let crossing = if gathers { side.div_ceil(2) } else { side * side / 4 * lines };
                if side == 1 { 0 } else { (crossing * b).div_ceil(links) }
            };
            let sides = || grid.sides.iter().zip(wraps);
            // A corner has a link along each side, and a second one where it wraps.
            let links =
                |(&side, &wraps): (&u32, &bool)| u128::from(side > 1) * if wraps { 2 } else { 1 };
            let corner = ((n - 1) * b).div_ceil(sides().map(links).sum::<u128>().clamp(1, k));
            sides().map(across).fold(corner, u128::max)
        }
        Machine::Cluster(nodes) => {
            let through = |&(_, size): &(u32, u32)| {
                let others = n - u128::from(size);
                let crossing = if gathers { others } else { u128::from(size) * others };
                (crossing * b).div_ceil(k)
            };
            nodes.iter().map(through).max().unwrap_or(0)
        }
    };
    (steps, injected.max(narrowest))
}
