//! The counts of a schedule.

use std::iter::repeat_n;

use crate::Fault;
use crate::machine::{Machine, Segment, own_route, walk};
use crate::parse::{Certificate, Send, Slots, Step};
use crate::radix::{Radix, limited};

/// The most blocks moved by representatives, and links visited: some minutes each.
const MOST_WORK: u128 = 1 << 36;

/// A segment of a route takes as long as visiting this many links.
const SEGMENT: u128 = 16;

/// The most links counted one by one, at 32 bytes each.
const MOST_LINKS: u128 = 1 << 26;

/// The most ranks counted one by one.
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
    pub link_contention: u128,
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

    /// The counts with their names in a certificate, in order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u128); 11] {
        [
            ("steps", self.steps),
            ("messages", self.messages),
            ("bytes", self.bytes),
            ("link_bytes", self.link_bytes),
            ("hops", self.hops),
            ("link_conflicts", self.link_conflicts),
            ("max_link_sharing", self.link_contention),
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
    /// Links whose coordinates are equal modulo these are counted as one.
    periods: &'c [u32],
    /// The number of links that one represents.
    each: u128,
    /// By dimension and direction, then by the lower position of a link's two ends: the messages
    /// and bytes that it carries more than the link before it on its line.
    more: Vec<(i64, i128)>,
    /// Whether a line, named by its first link, has messages, and the lines that have.
    used: Vec<bool>,
    lines: Vec<usize>,
    /// The number of positions.
    positions: usize,
    /// Memory for the machine's own route.
    own: Vec<Segment>,
}

impl<'c> Links<'c> {
    fn new(grid: &'c Radix, wraps: &'c [bool], periods: &'c [u32], each: u128) -> Self {
        let positions: usize = periods.iter().map(|&period| period as usize).product();
        let count = 2 * periods.len() * positions;
        let (more, used) = (vec![(0, 0); count], vec![false; count]);
        let (lines, own) = (Vec::new(), Vec::new());
        Self { grid, wraps, periods, each, more, used, lines, positions, own }
    }

    /// The distance of neighbouring positions along dimension u.
    fn stride(&self, u: usize) -> usize {
        self.periods[u + 1..].iter().map(|&period| period as usize).product()
    }

    /// Adds a message from a rank and returns its hops; `None` if it does not end at `to`.
    fn add(&mut self, from: u32, to: u32, send: &Send, bytes: u128) -> Option<u128> {
        let (grid, wraps) = (self.grid, self.wraps);
        let mut own = std::mem::take(&mut self.own);
        let route = match &send.route {
            Some(route) => route,
            None => {
                own_route(grid, wraps, from, to, &mut own);
                &own
            }
        };
        let mut hops = 0;
        let end = walk(grid, wraps, from, route, |rank, segment| {
            self.add_segment(rank, segment, bytes as i128);
            hops += u128::from(segment.1.unsigned_abs());
        });
        self.own = own;
        (end == Some(to)).then_some(hops)
    }

    /// Adds a segment of a message from a rank: the load grows where it enters a line and falls
    /// where it leaves.
    fn add_segment(&mut self, rank: u32, (u, hops): Segment, bytes: i128) {
        let (side, period) = (i64::from(self.grid.sides[u]), i64::from(self.periods[u]));
        let first = (0..self.periods.len()).fold(0, |position, v| {
            let at = if v == u { 0 } else { self.grid.coordinate(rank, v) % self.periods[v] };
            position * self.periods[v] as usize + at as usize
        });
        let line = (2 * u + usize::from(hops < 0)) * self.positions + first;
        if !std::mem::replace(&mut self.used[line], true) {
            self.lines.push(line);
        }
        let stride = self.stride(u);
        let mut enter = |position: i64, times: i64| {
            let (messages, load) = &mut self.more[line + position as usize * stride];
            *messages += times;
            *load += i128::from(times) * bytes;
        };
        let lowest = i64::from(self.grid.coordinate(rank, u)) + hops.min(0);
        let begin = lowest.rem_euclid(side) % period;
        let (rounds, end) = (hops.abs() / period, begin + hops.abs() % period);
        enter(0, rounds + i64::from(end > period));
        enter(begin, 1);
        match end {
            end if end > period => enter(end - period, -1),
            end if end < period => enter(end, -1),
            _ => {}
        }
    }

    /// The most messages on a link, the largest load, and the number of links with several
    /// messages. Resets all loads.
    fn busiest(&mut self) -> (u128, u128, u128) {
        let (mut most, mut largest, mut shared) = (0, 0, 0);
        while let Some(line) = self.lines.pop() {
            let u = line / self.positions / 2;
            let stride = self.stride(u);
            let (mut messages, mut load) = (0, 0);
            for position in 0..self.periods[u] as usize {
                let more = std::mem::take(&mut self.more[line + position * stride]);
                (messages, load) = (messages + more.0, load + more.1);
                most = most.max(messages as u128);
                largest = largest.max(load as u128);
                shared += if messages > 1 { self.each } else { 0 };
            }
            self.used[line] = false;
        }
        (most, largest, shared)
    }
}

/// The ranks that are counted for all others, and the periods of a grid that they fill.
pub(crate) struct Counted {
    ranks: u32,
    periods: Vec<u32>,
}

/// The ranks to count. Refuses certificates that would take more than some minutes, or too much
/// memory, to follow and to count.
pub(crate) fn counted(certificate: &Certificate) -> Result<Counted, Fault> {
    let Certificate { machine, radix, .. } = certificate;
    let (mut ranks, mut periods) = (radix.ranks(), Vec::new());
    if machine.keeps(radix) {
        (ranks, periods) = (radix.classes(), radix.periods.clone());
    } else if let Machine::Grid(grid, wraps) = machine {
        periods.clone_from(&grid.sides);
        // Translations by whole lines along side 0 keep the order of ranks in a row.
        if let ([period], true) = (&radix.periods[..], wraps[0]) {
            let line = grid.strides[0];
            periods[0] = (1..=grid.sides[0])
                .find(|lines| lines * line % period == 0)
                .expect("bug: the ranks are a multiple of the period");
            ranks = periods[0] * line;
        }
    }
    limited("ranks one by one", ranks.into(), MOST_RANKS)?;
    limit_work(certificate, ranks.into())?;
    Ok(Counted { ranks, periods })
}

/// Counts the steps of all ranks.
pub(crate) fn count(certificate: &Certificate, counted: &Counted) -> Result<Counts, Fault> {
    let Certificate { machine, radix, .. } = certificate;
    let each = u128::from(radix.ranks() / counted.ranks);
    let mut members = vec![Vec::new(); radix.classes() as usize];
    if counted.ranks == radix.classes() {
        (0..).zip(&mut members).for_each(|(class, of)| of.push(radix.representative(class)));
    } else {
        (0..counted.ranks).for_each(|rank| members[radix.class_of(rank) as usize].push(rank));
    }
    let mut links = match machine {
        Machine::Grid(grid, wraps) => Some(Links::new(grid, wraps, &counted.periods, each)),
        Machine::Complete(_) | Machine::Cluster(_) => None,
    };
    let mut ports = Ports::new(certificate);
    let mut counts = Counts::default();
    for step in certificate.in_order() {
        let (mut messages, mut largest, mut hops) = (0, 0, 0);
        for does in step {
            let members = &members[does.class as usize];
            let is = |rule| Fault::Step { step: does.number, class: does.class, rule };
            for send in &does.sends {
                let bytes = bytes(certificate, &send.slots)
                    .ok_or_else(|| is("a run of slots is of several pieces"))?;
                if links.is_none() && send.route.is_some() {
                    return Err(is("a message has a route on a machine without links"));
                }
                let by = radix.shift(send.to);
                for &rank in members {
                    let to = by.apply(rank);
                    if let Some(links) = &mut links {
                        let route = links.add(rank, to, send, bytes);
                        hops = route
                            .ok_or_else(|| is("a message's route does not lead to its receiver"))?
                            .max(hops);
                    }
                    ports.send(rank, to);
                }
                messages += each * members.len() as u128;
                largest = bytes.max(largest);
            }
            ports.ranks(each * members.len() as u128, does);
        }
        let (violations, crosses) = ports.counted();
        if messages == 0 {
            continue;
        }
        let (contention, load, shared) = links.as_mut().map_or((0, 0, 0), Links::busiest);
        counts.steps += 1;
        counts.messages += messages;
        counts.bytes += largest;
        counts.link_bytes += largest.max(load);
        counts.hops += hops;
        counts.link_conflicts += shared;
        counts.link_contention = counts.link_contention.max(contention);
        counts.contended_steps += u128::from(contention > 1);
        counts.contention_free_steps += contention.max(1);
        counts.port_violations += violations;
        counts.inter_node_steps += u128::from(crosses);
    }
    Ok(counts)
}

/// Refuses certificates that would take more than some minutes, or too much memory, to follow and
/// to count for `ranks` ranks.
fn limit_work(certificate: &Certificate, ranks: u128) -> Result<(), Fault> {
    let (dimensions, hops) = match &certificate.machine {
        Machine::Grid(grid, _) => {
            (grid.sides.len(), grid.sides.iter().map(|&side| u128::from(side)).sum())
        }
        Machine::Complete(_) | Machine::Cluster(_) => (0, 0),
    };
    let links = 2 * dimensions as u128 * ranks;
    limited("links", links, MOST_LINKS)?;
    let repeats = ranks / u128::from(certificate.radix.classes());
    let (mut moved, mut visited) = (0, 0);
    for step in certificate.in_order() {
        let mut messages = 0;
        for does in step {
            let slots = does.sends.iter().map(|send| &send.slots);
            let copied = does.copies.iter().map(|(from, _)| from);
            moved += slots.chain(copied).map(|slots| u128::from(slots.count())).sum::<u128>();
            messages += repeats * does.sends.len() as u128;
            let segments = |send: &Send| send.route.as_ref().map_or(dimensions, Vec::len).max(1);
            visited += repeats * SEGMENT * does.sends.iter().map(segments).sum::<usize>() as u128;
        }
        visited += links.min(messages * hops);
    }
    limited("blocks moved", moved, MOST_WORK)?;
    limited("links visited", visited, MOST_WORK)
}

/// Bytes of a message; `None` if a run spans several pieces.
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

/// Counts messages against ports: by rank, and on a cluster by node to and from other nodes.
struct Ports {
    ports: u64,
    over: u128,
    /// On a cluster, the node of each rank.
    nodes: Option<Vec<u32>>,
    /// By node, messages out and in.
    crossing: Vec<(u64, u64)>,
    /// The nodes with messages.
    used: Vec<u32>,
}

impl Ports {
    fn new(certificate: &Certificate) -> Self {
        let (mut nodes, mut count) = (None, 0);
        if let Machine::Cluster(groups) = &certificate.machine {
            let sizes = groups.iter().flat_map(|&(nodes, size)| repeat_n(size, nodes as usize));
            let of_rank = (0..).zip(sizes).flat_map(|(node, size)| repeat_n(node, size as usize));
            nodes = Some(of_rank.collect());
            count = groups.iter().map(|(nodes, _)| *nodes as usize).sum();
        }
        let crossing = vec![(0, 0); count];
        Self { ports: certificate.ports, over: 0, nodes, crossing, used: Vec::new() }
    }

    fn send(&mut self, from: u32, to: u32) {
        let Some(nodes) = &self.nodes else { return };
        let [from, to] = [from, to].map(|rank| nodes[rank as usize]);
        if from != to {
            for node in [from, to] {
                if self.crossing[node as usize] == (0, 0) {
                    self.used.push(node);
                }
            }
            self.crossing[from as usize].0 += 1;
            self.crossing[to as usize].1 += 1;
        }
    }

    /// Adds a step that `ranks` ranks have in common.
    fn ranks(&mut self, ranks: u128, does: &Step) {
        for messages in [does.sends.len(), does.receives.len()] {
            self.over += if messages as u64 > self.ports { ranks } else { 0 };
        }
    }

    /// The number of violations of ports, and whether a message crosses between nodes. Resets all
    /// counters.
    fn counted(&mut self) -> (u128, bool) {
        let (mut over, crosses) = (std::mem::take(&mut self.over), !self.used.is_empty());
        for node in self.used.drain(..) {
            let (out, into) = std::mem::take(&mut self.crossing[node as usize]);
            over += u128::from(out > self.ports) + u128::from(into > self.ports);
        }
        (over, crosses)
    }
}
