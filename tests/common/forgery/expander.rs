//! Certificates read without any shortcut: every rank of the machine by itself, every message hop by
//! hop, every place in a map. It shares no code with the checker or the writer, only the format.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::Peekable;
use std::str::FromStr;

/// A fault of a certificate: it cannot be read, or it is false.
pub type Untrue = &'static str;

/// More ranks or places than are expanded.
const MOST: u64 = 1 << 16;

/// The fault of a way that is not followed.
pub(super) const TOO_LONG: &str = "a way of so many hops";

type Rank = u64;
/// Coordinate by coordinate.
type Sides = Vec<u64>;
/// By node or switch and port, messages and bytes.
type Loads = BTreeMap<(u64, u64), (u128, u128)>;
/// Dimension or port, and hops, in order.
type Way = Vec<(usize, i64)>;

struct Machine {
    network: Network,
    /// The node of each rank.
    nodes: Vec<u64>,
    /// Whether nodes have ports of their own.
    several: bool,
}

enum Network {
    Complete,
    /// Sides, which of them wrap, and whether half a ring is travelled in both directions.
    Grid(Sides, Vec<bool>, bool),
    Graph(Graph),
}

#[derive(Default)]
struct Graph {
    vertices: u64,
    /// By vertex and port.
    links: BTreeMap<(u64, u64), Link>,
    /// By vertex and destination, the ports of a message, taken in turn.
    next: BTreeMap<(u64, u64), Vec<u64>>,
}

struct Link {
    to: u64,
    /// Times and over.
    capacity: (u128, u128),
    length: u64,
}

#[derive(Default)]
struct Step {
    copies: Vec<(Vec<u64>, Vec<u64>)>,
    sends: Vec<(Rank, Option<Way>, Vec<u64>)>,
    receives: Vec<(Rank, Vec<u64>)>,
}

struct Class {
    /// Slots and displacements.
    start: Vec<(u64, Rank)>,
    finish: Vec<(u64, Rank)>,
    steps: BTreeMap<u64, Step>,
}

struct Certificate {
    machine: Machine,
    gathers: bool,
    ports: u64,
    node_ports: u64,
    block: u128,
    radix: Radix,
    periods: Sides,
    slots: u64,
    pieces: Vec<u128>,
    counts: Vec<u128>,
    bounds: Vec<u128>,
    classes: Vec<Class>,
}

/// Sides, and how far a turn around each leads along the longest.
struct Radix {
    sides: Sides,
    twists: Sides,
}

const COUNTS: [&str; 11] = [
    "steps",
    "messages",
    "bytes",
    "link_bytes",
    "hops",
    "link_conflicts",
    "max_link_sharing",
    "contended_steps",
    "contention_free_steps",
    "port_violations",
    "inter_node_steps",
];

/// Whether a certificate is true; its digest is ignored.
pub fn expand(text: &str) -> Result<(), Untrue> {
    let certificate = read(text)?;
    let counts = certificate.replay()?;
    if counts != certificate.counts {
        return Err("the counts");
    }
    let bounds = certificate.bounds();
    if bounds != certificate.bounds {
        return Err("the bounds");
    }
    let [steps, .., link_bytes] = bounds[..] else { return Err("the bounds") };
    let violations = counts[9];
    if violations == 0 && (counts[0] < steps || counts[3] < link_bytes) {
        return Err("counts below the bounds");
    }
    Ok(())
}

fn number<N: FromStr>(word: &str) -> Result<N, Untrue> {
    word.parse().map_err(|_| "a number")
}

fn numbers<N: FromStr>(words: &str, between: char) -> Result<Vec<N>, Untrue> {
    words.split(between).map(number).collect()
}

/// The values of `name=value` in this order.
fn named(text: &str, names: &[&str]) -> Result<Vec<u128>, Untrue> {
    let words: Vec<&str> = text.split(' ').collect();
    if words.len() != names.len() {
        return Err("as many values as names");
    }
    let value = |(word, name): (&&str, &&str)| match word.split_once('=') {
        Some((found, value)) if found == *name => number(value),
        _ => Err("a value with its name"),
    };
    words.iter().zip(names).map(value).collect()
}

/// The text after the first word of a line.
fn after<'t>(line: Option<&'t str>, word: &str) -> Result<&'t str, Untrue> {
    let begins = |line: &'t str| line.strip_prefix(word)?.strip_prefix(' ');
    line.and_then(begins).ok_or("another line")
}

fn read(text: &str) -> Result<Certificate, Untrue> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // The digest is the last line, and a newline ends it.
    if lines.len() < 2 || lines.pop() != Some("") || lines.remove(0) != "topocoll certificate 1" {
        return Err("the first line or the last");
    }
    lines.pop();
    let mut lines = lines.into_iter().peekable();
    let machine = machine(&mut lines)?;
    let ranks = machine.nodes.len() as u64;
    let mut next = |word| after(lines.next(), word);
    let gathers = match next("operation")? {
        "alltoall" => false,
        "allgather" => true,
        _ => return Err("the operation"),
    };
    let ports: u64 = number(next("ports")?)?;
    let line = lines.next();
    let (node_ports, line) = match after(line, "node_ports") {
        Ok(text) if machine.several => (number(text)?, lines.next()),
        _ => (ports, line),
    };
    let block: u64 = number(after(line, "block")?)?;
    let mut next = |word| after(lines.next(), word);
    let algorithm = next("algorithm")?;
    if !algorithm.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("control characters");
    }
    let (sides, periods) = next("ranks")?.split_once(" by ").ok_or("sides and periods")?;
    let (radix, periods) = (radix(sides)?, numbers::<u64>(periods, 'x')?);
    let sides = &radix.sides;
    if ports == 0
        || node_ports == 0
        || block == 0
        || sides.len() != periods.len()
        || product(sides)? != ranks
    {
        return Err("ports, a block, and a period for each side");
    }
    if sides.iter().zip(&periods).any(|(side, period)| *period == 0 || side % period != 0) {
        return Err("periods that divide their sides");
    }
    if radix.twists.iter().any(|twist| *twist > 0) && periods.iter().any(|period| *period != 1) {
        return Err("periods of twisted sides");
    }
    let slots: u64 = number(next("slots")?)?;
    let pieces: Vec<u64> = numbers(next("pieces")?, ';')?;
    let pieces: Vec<u128> = pieces.into_iter().map(u128::from).collect();
    if pieces.iter().sum::<u128>() != block.into() {
        return Err("the pieces of a block");
    }
    let places = slots.checked_mul(pieces.len() as u64).ok_or("so many slots")?;
    let counts = named(next("counts")?, &COUNTS)?;
    let bounds = named(next("bounds")?, &["steps", "link_bytes"])?;
    let mut classes = Vec::new();
    for class in 0..product(&periods)? {
        let mut next = |word| after(lines.next(), word);
        if number::<u64>(next("class")?)? != class {
            return Err("the next class");
        }
        let (start, finish) = (next("start")?, next("finish")?);
        let start = layout(start, slots, &radix)?;
        let finish = layout(finish, slots, &radix)?;
        let mut steps = BTreeMap::new();
        let mut last = None;
        while let Some(text) = lines.next_if(|line| line.starts_with("step ")) {
            let at: u64 = number(&text["step ".len()..])?;
            if last.is_some_and(|last| at <= last) {
                return Err("the order of steps");
            }
            last = Some(at);
            let mut step = Step::default();
            let kinds = ["copy ", "send ", "receive "];
            for (kind, word) in kinds.into_iter().enumerate() {
                while let Some(text) = lines.next_if(|line| line.starts_with(word)) {
                    let words: Vec<&str> = text.split(' ').collect();
                    match (kind, &words[1..]) {
                        (0, [from, to]) => step.copies.push((set(from, places)?, set(to, places)?)),
                        (1, [to, by, slots]) => {
                            step.sends.push((number(to)?, way(by)?, set(slots, places)?));
                        }
                        (2, [from, slots]) => {
                            step.receives.push((number(from)?, set(slots, places)?));
                        }
                        _ => return Err("the words of a line"),
                    }
                }
            }
            let peers = step.sends.iter().map(|send| send.0);
            let peers = peers.chain(step.receives.iter().map(|receive| receive.0));
            if peers.into_iter().any(|peer| peer == 0 || peer >= ranks) {
                return Err("a message to the same rank, or to none");
            }
            steps.insert(at, step);
        }
        classes.push(Class { start, finish, steps });
    }
    if lines.next().is_some() {
        return Err("lines after the last class");
    }
    let block = block.into();
    Ok(Certificate {
        machine,
        gathers,
        ports,
        node_ports,
        block,
        radix,
        periods,
        slots,
        pieces,
        counts,
        bounds,
        classes,
    })
}

/// The product of sides, if it can be expanded.
fn product(sides: &[u64]) -> Result<u64, Untrue> {
    let product = sides.iter().try_fold(1u64, |product, side| product.checked_mul(*side));
    product.filter(|ranks| (1..=MOST).contains(ranks)).ok_or("so many ranks")
}

/// Sides as `side` or `side+twist`.
fn radix(text: &str) -> Result<Radix, Untrue> {
    let side = |word: &str| -> Result<(u64, u64), Untrue> {
        let (side, twist) = word.split_once('+').unwrap_or((word, "0"));
        Ok((number(side)?, number(twist)?))
    };
    let both = text.split('x').map(side).collect::<Result<Vec<_>, _>>()?;
    let longest = both.iter().map(|(side, _)| *side).max().unwrap_or(0);
    if both.iter().any(|(side, twist)| *twist > 0 && (*side == longest || *twist >= longest)) {
        return Err("a twist of a longest side, or as long");
    }
    if both.iter().any(|(side, twist)| side.max(twist) > &u32::MAX.into()) {
        return Err("so long sides");
    }
    let (sides, twists) = both.into_iter().unzip();
    Ok(Radix { sides, twists })
}

fn machine<'t>(lines: &mut Peekable<impl Iterator<Item = &'t str>>) -> Result<Machine, Untrue> {
    let (kind, shape) = after(lines.next(), "machine")?.split_once(' ').ok_or("the machine")?;
    let (shape, several) = match (kind, shape.split_once(" nodes ")) {
        ("cluster", _) => ("", Some(nodes(shape)?)),
        ("grid" | "graph", Some((shape, several))) => (shape, Some(nodes(several)?)),
        _ => (shape, None),
    };
    let mut count = several.as_ref().and_then(|nodes| nodes.last()).map_or(0, |last| last + 1);
    let network = match kind {
        "cluster" => Network::Complete,
        "complete" => {
            count = product(&[number(shape)?])?;
            Network::Complete
        }
        "grid" => {
            let sides = shape.strip_suffix(" balanced").unwrap_or(shape);
            let words: Vec<&str> = sides.split('x').collect();
            let wraps = words.iter().map(|word| word.ends_with('~')).collect();
            let side = |word: &&str| number(word.strip_suffix('~').unwrap_or(word));
            let sides = words.iter().map(side).collect::<Result<Sides, _>>()?;
            let places = product(&sides)?;
            if several.is_some() && count != places {
                return Err("other nodes than places");
            }
            count = places;
            Network::Grid(sides, wraps, shape.ends_with(" balanced"))
        }
        "graph" => {
            let (listed, switches) = shape.split_once('+').ok_or("nodes and switches")?;
            let (listed, switches): (u64, u64) = (number(listed)?, number(switches)?);
            if several.is_some() && count != listed {
                return Err("other nodes than listed");
            }
            count = product(&[listed])?;
            Network::Graph(graph(lines, listed, product(&[listed.saturating_add(switches)])?)?)
        }
        _ => return Err("the kind of machine"),
    };
    let is_several = several.is_some();
    let nodes = several.unwrap_or_else(|| (0..count).collect());
    Ok(Machine { network, nodes, several: is_several })
}

/// The node of each rank.
fn nodes(text: &str) -> Result<Vec<u64>, Untrue> {
    let mut nodes = Vec::new();
    let mut count = 0;
    for group in text.split(',') {
        let [times, size] = numbers::<u64>(group, '*')?[..] else {
            return Err("nodes and their ranks");
        };
        product(&[times, size, nodes.len().max(1) as u64])?;
        for _ in 0..times {
            nodes.extend(std::iter::repeat_n(count, size as usize));
            count += 1;
        }
    }
    product(&[nodes.len() as u64])?;
    Ok(nodes)
}

fn graph<'t>(
    lines: &mut Peekable<impl Iterator<Item = &'t str>>,
    nodes: u64,
    vertices: u64,
) -> Result<Graph, Untrue> {
    let mut graph = Graph { vertices, ..Graph::default() };
    for vertex in 0..vertices {
        let words: Vec<&str> = after(lines.next(), "vertex")?.split(' ').collect();
        if number::<u64>(words[0])? != vertex {
            return Err("the next vertex");
        }
        for (port, word) in (0..).zip(&words[1..]).filter(|(_, word)| **word != "-") {
            let (word, length) = word.split_once(':').unwrap_or((word, "0"));
            let (to, capacity) = word.split_once('*').unwrap_or((word, "1/1"));
            let (times, over) = capacity.split_once('/').unwrap_or((capacity, "1"));
            let (times, over): (u32, u32) = (number(times)?, number(over)?);
            let (to, length): (u64, u64) = (number(to)?, number(length)?);
            if to >= vertices || to == vertex || times == 0 || over == 0 || length > 1 << 24 {
                return Err("a link");
            }
            let link = Link { to, capacity: (times.into(), over.into()), length };
            graph.links.insert((vertex, port), link);
        }
        let Some(line) = lines.next_if(|line| line.starts_with("next ")) else { continue };
        let mut to = 0;
        for word in line["next ".len()..].split(' ') {
            let (ports, times) = word.split_once('*').unwrap_or((word, "1"));
            let ports: Vec<u32> = numbers(ports, '/')?;
            let ports: Vec<u64> = ports.into_iter().map(u64::from).collect();
            for _ in 0..number::<u32>(times)? {
                if to == nodes {
                    return Err("a next link to no node");
                }
                graph.next.insert((vertex, to), ports.clone());
                to += 1;
            }
        }
        if to < nodes {
            return Err("a next link to each node");
        }
    }
    Ok(graph)
}

fn way(text: &str) -> Result<Option<Way>, Untrue> {
    let part = |part: &str| {
        let (dimension, hops) = part.split_once(':').ok_or("a way")?;
        Ok((number(dimension)?, number(hops)?))
    };
    if text == "own" {
        Ok(None)
    } else {
        text.split(';').map(part).collect::<Result<_, _>>().map(Some)
    }
}

/// The places of a set, in order.
fn set(text: &str, places: u64) -> Result<Vec<u64>, Untrue> {
    let mut out = Vec::new();
    for run in text.split(';') {
        let (first, outer, inner) = match numbers::<i64>(run, ',')?[..] {
            [first] => (first, (1, 0), (1, 0)),
            [first, count, stride] => (first, (count, stride), (1, 0)),
            [first, count, stride, inner, by] => (first, (count, stride), (inner, by)),
            _ => return Err("the numbers of a run"),
        };
        if outer.0 < 1 || inner.0 < 1 {
            return Err("a run without places");
        }
        for i in 0..outer.0 {
            for j in 0..inner.0 {
                let along = |i: i64, stride: i64| i128::from(i) * i128::from(stride);
                let place = i128::from(first) + along(i, outer.1) + along(j, inner.1);
                let inside = u64::try_from(place).is_ok_and(|place| place < places);
                if !inside || out.len() as u64 >= MOST {
                    return Err("a place that a rank does not have");
                }
                out.push(place as u64);
            }
        }
    }
    Ok(out)
}

/// The slots of a layout and their displacements.
fn layout(text: &str, slots: u64, radix: &Radix) -> Result<Vec<(u64, Rank)>, Untrue> {
    let mut out = Vec::new();
    for row in text.split(' ') {
        let numbers: Vec<u64> = numbers(row, ',')?;
        if numbers.len() < 2 || numbers.len() % 3 != 2 {
            return Err("the numbers of a row");
        }
        let mut listed = vec![(u128::from(numbers[0]), numbers[1])];
        for axis in numbers[2..].chunks(3) {
            if axis[0] == 0 {
                return Err("a row without slots");
            }
            let mut more = Vec::new();
            for (slot, displacement) in listed {
                let mut displacement = displacement;
                for i in 0..axis[0] {
                    if more.len() as u64 > MOST || i > slots {
                        return Err("a slot that a rank does not have");
                    }
                    more.push((slot + u128::from(i) * u128::from(axis[1]), displacement));
                    displacement = sum(radix, displacement, axis[2])?;
                }
            }
            listed = more;
        }
        for (slot, displacement) in listed {
            if slot >= slots.into() || displacement >= product(&radix.sides)? {
                return Err("a slot or a rank that there is not");
            }
            out.push((slot as u64, displacement));
        }
    }
    Ok(out)
}

/// Two ranks added coordinate by coordinate, turn by turn.
fn sum(radix: &Radix, a: Rank, b: Rank) -> Result<Rank, Untrue> {
    let Radix { sides, twists } = radix;
    if a >= product(sides)? || b >= product(sides)? {
        return Err("a rank that there is not");
    }
    let (a, b) = (coordinates(sides, a), coordinates(sides, b));
    let mut at: Sides = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let longest = sides.iter().copied().max();
    while let Some(u) = (0..at.len()).find(|&u| at[u] >= sides[u]) {
        at[u] -= sides[u];
        for v in (0..at.len()).filter(|&v| Some(sides[v]) == longest) {
            at[v] += twists[u];
        }
    }
    Ok(rank(sides, &at))
}

fn coordinates(sides: &[u64], mut rank: Rank) -> Sides {
    let mut at = vec![0; sides.len()];
    for u in (0..sides.len()).rev() {
        at[u] = rank % sides[u];
        rank /= sides[u];
    }
    at
}

fn rank(sides: &[u64], at: &[u64]) -> Rank {
    at.iter().zip(sides).fold(0, |rank, (at, side)| rank * side + at)
}

/// The neighbour along a dimension, if there is one.
fn neighbour(sides: &[u64], wraps: &[bool], from: Rank, u: usize, up: bool) -> Option<Rank> {
    let mut at = coordinates(sides, from);
    let side = sides[u];
    let edge = if up { at[u] + 1 == side } else { at[u] == 0 };
    if edge && (!wraps[u] || side == 1) {
        return None;
    }
    at[u] = if up { (at[u] + 1) % side } else { (at[u] + side - 1) % side };
    Some(rank(sides, &at))
}

/// A part of a block: its source, its destination in an all-to-all, and which piece.
type Held = (Rank, Option<Rank>, u64);

impl Certificate {
    fn ranks(&self) -> u64 {
        self.radix.sides.iter().product()
    }

    fn class(&self, of: Rank) -> &Class {
        let at = coordinates(&self.radix.sides, of);
        let at: Sides = at.iter().zip(&self.periods).map(|(at, period)| at % period).collect();
        &self.classes[rank(&self.periods, &at) as usize]
    }

    /// Takes every step of every rank, and counts.
    fn replay(&self) -> Result<Vec<u128>, Untrue> {
        let (ranks, pieces) = (self.ranks(), self.pieces.len() as u64);
        let mut held: HashMap<(Rank, u64), Held> = HashMap::new();
        for rank in 0..ranks {
            let mut blocks = BTreeSet::new();
            for &(slot, displacement) in &self.class(rank).start {
                let to = sum(&self.radix, rank, displacement)?;
                if self.gathers && to != rank || !blocks.insert(to) {
                    return Err("a block at the start");
                }
                for piece in 0..pieces {
                    let block = (rank, (!self.gathers).then_some(to), piece);
                    if held.insert((rank, piece * self.slots + slot), block).is_some() {
                        return Err("a slot twice at the start");
                    }
                }
            }
            if blocks.len() as u64 != if self.gathers { 1 } else { ranks } {
                return Err("a block missing at the start");
            }
        }
        let steps: BTreeSet<u64> =
            self.classes.iter().flat_map(|class| class.steps.keys().copied()).collect();
        let mut counts = vec![0; COUNTS.len()];
        for step in steps {
            self.copy(step, &mut held)?;
            self.exchange(step, &mut held, &mut counts)?;
        }
        for rank in 0..ranks {
            let (mut sources, mut slots) = (BTreeSet::new(), BTreeSet::new());
            for &(slot, displacement) in &self.class(rank).finish {
                let from = sum(&self.radix, rank, displacement)?;
                if !sources.insert(from) || !slots.insert(slot) {
                    return Err("a block or a slot twice at the end");
                }
                for piece in 0..pieces {
                    let wanted = (from, (!self.gathers).then_some(rank), piece);
                    if held.get(&(rank, piece * self.slots + slot)) != Some(&wanted) {
                        return Err("a block is not where it should be");
                    }
                }
            }
            if sources.len() as u64 != ranks {
                return Err("a block missing at the end");
            }
        }
        Ok(counts)
    }

    fn copy(&self, step: u64, held: &mut HashMap<(Rank, u64), Held>) -> Result<(), Untrue> {
        let mut moving = HashMap::new();
        for rank in 0..self.ranks() {
            let Some(does) = self.class(rank).steps.get(&step) else { continue };
            for (from, to) in &does.copies {
                self.carry((rank, from), (rank, to), held, &mut moving)?;
            }
        }
        held.extend(moving);
        Ok(())
    }

    /// Translates the places of one rank to those of another.
    fn carry(
        &self,
        (from, taken): (Rank, &[u64]),
        (to, put): (Rank, &[u64]),
        held: &HashMap<(Rank, u64), Held>,
        moving: &mut HashMap<(Rank, u64), Held>,
    ) -> Result<(), Untrue> {
        if taken.len() != put.len() {
            return Err("other places sent than received");
        }
        for (taken, put) in taken.iter().zip(put) {
            let block = *held.get(&(from, *taken)).ok_or("an empty place is sent")?;
            if put / self.slots != block.2 {
                return Err("a piece in the place of another");
            }
            if moving.insert((to, *put), block).is_some() {
                return Err("a place is written twice at once");
            }
        }
        Ok(())
    }

    fn exchange(
        &self,
        step: u64,
        held: &mut HashMap<(Rank, u64), Held>,
        counts: &mut [u128],
    ) -> Result<(), Untrue> {
        type Ends<'c> = (Vec<&'c [u64]>, Vec<&'c [u64]>);
        let mut pairs: BTreeMap<(Rank, Rank), Ends<'_>> = BTreeMap::new();
        let mut links = Loads::new();
        // The bytes of messages by rank or node, sent or received.
        let mut ports: BTreeMap<(&str, Rank, bool), Vec<u128>> = BTreeMap::new();
        let (mut messages, mut largest, mut hops, mut between) = (0, 0, 0, 0);
        let bytes = |slots: &[u64]| -> u128 {
            slots.iter().map(|place| self.pieces[(place / self.slots) as usize]).sum()
        };
        for rank in 0..self.ranks() {
            let Some(does) = self.class(rank).steps.get(&step) else { continue };
            for (to, way, slots) in &does.sends {
                let to = sum(&self.radix, rank, *to)?;
                pairs.entry((rank, to)).or_default().0.push(slots);
                let bytes = bytes(slots);
                messages += 1;
                largest = largest.max(bytes);
                hops = hops.max(self.travel(rank, to, way.as_ref(), bytes, &mut links)?);
                ports.entry(("rank", rank, true)).or_default().push(bytes);
                let [from, to] = [rank, to].map(|rank| self.machine.nodes[rank as usize]);
                if self.machine.several && from != to {
                    between = 1;
                    ports.entry(("node", from, true)).or_default().push(bytes);
                    ports.entry(("node", to, false)).or_default().push(bytes);
                }
            }
            for (from, slots) in &does.receives {
                let from = sum(&self.radix, rank, *from)?;
                pairs.entry((from, rank)).or_default().1.push(slots);
                ports.entry(("rank", rank, false)).or_default().push(bytes(slots));
            }
        }
        let mut moving = HashMap::new();
        for ((from, to), (sent, received)) in pairs {
            if sent.len() != received.len() {
                return Err("a message without its other end");
            }
            for (sent, received) in sent.into_iter().zip(received) {
                self.carry((from, sent), (to, received), held, &mut moving)?;
            }
        }
        held.extend(moving);
        if messages == 0 {
            return Ok(());
        }
        let sharing = links.values().map(|link| link.0).max().unwrap_or(0);
        let load = links.iter().map(|(&(at, port), link)| self.charged(at, port, link.1));
        let load = load.max().unwrap_or(0);
        let mut over = 0;
        for ((of, ..), bytes) in &ports {
            let most = if *of == "node" { self.node_ports } else { self.ports };
            if bytes.len() as u64 <= most {
                continue;
            }
            over += 1;
            let least = bytes.iter().min().copied().unwrap_or(0);
            let whole = (bytes.len() as u128).div_ceil(most.into()) * least;
            largest = largest.max(whole).max(bytes.iter().sum::<u128>().div_ceil(most.into()));
        }
        let found = [
            1,
            messages,
            largest,
            largest.max(load),
            hops,
            links.values().filter(|link| link.0 > 1).count() as u128,
            sharing,
            u128::from(sharing > 1),
            sharing.max(1),
            over,
            between,
        ];
        for ((count, found), name) in counts.iter_mut().zip(found).zip(COUNTS) {
            *count = if name == "max_link_sharing" { found.max(*count) } else { found + *count };
        }
        Ok(())
    }

    /// The bytes that a link is charged for.
    fn charged(&self, at: u64, port: u64, bytes: u128) -> u128 {
        match &self.machine.network {
            Network::Graph(graph) => {
                let (times, over) = graph.links[&(at, port)].capacity;
                (bytes * over).div_ceil(times)
            }
            _ => bytes,
        }
    }

    /// Loads the links of a message's route; returns its hops.
    fn travel(
        &self,
        from: Rank,
        to: Rank,
        way: Option<&Way>,
        bytes: u128,
        links: &mut Loads,
    ) -> Result<u128, Untrue> {
        let [mut at, to] = [from, to].map(|rank| self.machine.nodes[rank as usize]);
        let mut hops = 0;
        let mut take = |at, port| {
            let (messages, load) = links.entry((at, port)).or_default();
            *messages += 1;
            *load += bytes;
            hops += 1;
            if hops > u128::from(MOST) { Err("so long a way") } else { Ok(()) }
        };
        match &self.machine.network {
            Network::Complete if way.is_some() => return Err("a way without links"),
            Network::Complete => return Ok(0),
            Network::Grid(sides, wraps, balanced) => {
                let way = way.cloned().unwrap_or_else(|| own_way(sides, wraps, *balanced, at, to));
                for (u, along) in way {
                    let side = *sides.get(u).ok_or("a way along no side")?;
                    if along.unsigned_abs() >= side {
                        return Err("a way around a side");
                    }
                    for _ in 0..along.unsigned_abs() {
                        take(at, 2 * u as u64 + u64::from(along < 0))?;
                        at = neighbour(sides, wraps, at, u, along > 0)
                            .ok_or("a way that leaves the grid")?;
                    }
                }
            }
            Network::Graph(graph) => {
                let first = at;
                let mut listed = Vec::new();
                for &(port, times) in way.into_iter().flatten() {
                    if times < 1 {
                        return Err("a way of no hops");
                    }
                    if listed.len() as i64 + times.min(1 << 20) > MOST as i64 {
                        return Err(TOO_LONG);
                    }
                    listed.extend((0..times).map(|_| port as u64));
                }
                let mut listed = listed.into_iter();
                while way.is_none() && at != to || listed.len() > 0 {
                    let port = match way {
                        Some(_) => listed.next().ok_or("the end of a way")?,
                        None => {
                            let ports = graph.next.get(&(at, to)).ok_or("no next link")?;
                            ports[((first + to) % ports.len() as u64) as usize]
                        }
                    };
                    let link = graph.links.get(&(at, port)).ok_or("a way over no link")?;
                    take(at, port)?;
                    at = link.to;
                }
            }
        }
        if at == to { Ok(hops) } else { Err("a way to another rank") }
    }

    /// The least steps and link bytes.
    fn bounds(&self) -> Vec<u128> {
        let ranks = u128::from(self.ranks());
        let ports = u128::from(self.ports);
        let reached = |all: u128, ports: u128| {
            let (mut known, mut steps) = (1u128, 0);
            while known < all {
                known += known.saturating_mul(ports);
                steps += 1;
            }
            steps
        };
        let node_ports = u128::from(self.node_ports);
        let mut steps: u128 = reached(ranks, ports);
        if self.machine.several {
            let nodes: BTreeSet<_> = self.machine.nodes.iter().collect();
            steps = steps.max(reached(nodes.len() as u128, node_ports));
        }
        let all = || 0..self.ranks();
        let mut least = vec![((ranks - 1) * self.block).div_ceil(ports)];
        // Blocks that enter a set of ranks, over its ports or links, or parts of these.
        let mut enters = |inside: &dyn Fn(Rank) -> bool, doors: u128, parts: u128| {
            let within = all().filter(|rank| inside(*rank)).count() as u128;
            let blocks = (ranks - within) * if self.gathers { 1 } else { within };
            if within > 0 && blocks > 0 && doors > 0 {
                least.push((blocks * self.block * parts).div_ceil(doors));
            }
        };
        let node_of = |rank: Rank| self.machine.nodes[rank as usize];
        if self.machine.several {
            for node in &self.machine.nodes {
                enters(&|rank| node_of(rank) == *node, node_ports, 1);
            }
        }
        match &self.machine.network {
            Network::Complete => {}
            Network::Grid(sides, wraps, _) => {
                let places = || 0..sides.iter().product::<u64>();
                let into = |inside: &dyn Fn(u64) -> bool| {
                    let mut links = 0;
                    for from in places().filter(|place| !inside(*place)) {
                        for (u, up) in (0..sides.len()).flat_map(|u| [(u, false), (u, true)]) {
                            let to = neighbour(sides, wraps, from, u, up);
                            links += u128::from(to.is_some_and(inside));
                        }
                    }
                    links
                };
                let doors = |place: u64| into(&|other| other == place);
                let ranks_of = |place| self.machine.nodes.iter().filter(|at| **at == place).count();
                let equal = places().all(|place| ranks_of(place) == ranks_of(0));
                let most = places().map(doors).max().unwrap_or(0);
                for place in places() {
                    let doors = if equal { doors(place) } else { most };
                    enters(&|rank| node_of(rank) == place, doors, 1);
                }
                for (u, side) in sides.iter().enumerate() {
                    for lower in [true, false] {
                        // The middle place of a line is in its upper half.
                        let half = |place| (coordinates(sides, place)[u] < side / 2) == lower;
                        enters(&|rank| half(node_of(rank)), into(&half), 1);
                    }
                }
            }
            Network::Graph(graph) => {
                let common = graph.common();
                for node in all().map(node_of) {
                    let is_node = |rank| node_of(rank) == node;
                    let sum = |at_end: &dyn Fn(u64, &Link) -> bool| {
                        let links =
                            graph.links.iter().filter(|((from, _), link)| at_end(*from, link));
                        links.map(|(_, link)| link.units(common)).sum()
                    };
                    enters(&is_node, sum(&|_, link| link.to == node), common);
                    if !self.gathers {
                        enters(&is_node, sum(&|from, _| from == node), common);
                    }
                }
                let units = |link: &Link| u128::from(link.length) * link.units(common);
                let lengths: u128 = graph.links.values().map(units).sum();
                if lengths > 0 && !self.gathers {
                    let far = graph.far();
                    let pairs = all().flat_map(|a| all().map(move |b| [a, b]));
                    let far = |pair: [Rank; 2]| {
                        let [from, to] = pair.map(|rank| node_of(rank) as usize);
                        far[from][to].unwrap_or(0)
                    };
                    let travelled: u128 = pairs.map(far).sum();
                    least.push((travelled * self.block * common).div_ceil(lengths));
                }
            }
        }
        vec![steps, least.into_iter().max().unwrap_or(0)]
    }
}

impl Graph {
    /// The common denominator of capacities, if it is no more than 2^32, and else this.
    fn common(&self) -> u128 {
        let most = 1 << 32;
        let mut overs = self.links.values().map(|link| link.capacity.1);
        let multiple = |common: u128, over: u128| {
            let (mut shared, mut rest) = (common, over);
            while rest > 0 {
                (shared, rest) = (rest, shared % rest);
            }
            let multiple = common * (over / shared);
            (multiple <= most).then_some(multiple)
        };
        overs.try_fold(1, multiple).unwrap_or(most)
    }

    /// The distances of vertices that reach each other, by way of more and more vertices (Floyd
    /// 1962).
    fn far(&self) -> Vec<Vec<Option<u128>>> {
        let vertices = 0..self.vertices as usize;
        let mut far = vec![vec![None; vertices.len()]; vertices.len()];
        let shorter = |known: &mut Option<u128>, length: u128| {
            *known = Some(known.map_or(length, |known| known.min(length)));
        };
        vertices.clone().for_each(|at| far[at][at] = Some(0));
        for (&(from, _), link) in &self.links {
            shorter(&mut far[from as usize][link.to as usize], link.length.into());
        }
        for by in vertices.clone() {
            for from in vertices.clone() {
                for to in vertices.clone() {
                    if let (Some(a), Some(b)) = (far[from][by], far[by][to]) {
                        shorter(&mut far[from][to], a + b);
                    }
                }
            }
        }
        far
    }
}

impl Link {
    /// The capacity in units of 1 over a denominator.
    fn units(&self, denominator: u128) -> u128 {
        (self.capacity.0 * denominator).div_ceil(self.capacity.1)
    }
}

/// Dimension 0 first, the nearer way; at half a ring upwards, or downwards from odd places if balanced.
fn own_way(sides: &[u64], wraps: &[bool], balanced: bool, from: Rank, to: Rank) -> Way {
    let (from, to) = (coordinates(sides, from), coordinates(sides, to));
    let mut way = Vec::new();
    for u in 0..sides.len() {
        let (from, to, side) = (from[u] as i64, to[u] as i64, sides[u] as i64);
        let up = if to >= from { to - from } else { to - from + side };
        let down = up > side - up || up == side - up && balanced && from % 2 != 0;
        let nearer = if down { up - side } else { up };
        let hops = if wraps[u] { nearer } else { to - from };
        if hops != 0 {
            way.push((u, hops));
        }
    }
    way
}
