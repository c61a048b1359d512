use crate::Fault;
use crate::certificate::{Axis, Certificate, Layout, LayoutRow, Send, SlotRun, Slots, Step};
use crate::count::Counts;
use crate::graph::{Graph, Link};
use crate::lines::Grid;
use crate::machine::{Machine, Network, Nodes};
use crate::radix::{Radix, limited};

/// The most slots of all classes together, at 16 bytes each.
const MOST_SLOTS: u128 = 1 << 27;

/// The most sides of a radix, and axes of a row: each of length at least 2.
const MOST_AXES: usize = 32;

/// The most ranks of a graph, and its vertices.
const MOST_GRAPH_RANKS: u128 = 1 << 12;
const MOST_VERTICES: u128 = 1 << 16;

/// The most ports of all vertices of a graph, and the most runs of destinations.
const MOST_PORTS: u128 = 1 << 26;

/// The longest link.
const LONGEST: u32 = 1 << 24;

/// The last possible step, so that twice as many times have different numbers.
const MOST_STEPS: u32 = 1 << 30;

/// A line, for errors.
#[derive(Clone, Copy)]
struct TextLine<'t> {
    number: usize,
    text: &'t str,
}

impl TextLine<'_> {
    fn is(self, rule: &'static str) -> Fault {
        const SHOWN: usize = 60;
        let text = self.text.chars().take(SHOWN).collect();
        Fault::Line { line: self.number, rule, text }
    }

    /// The two parts of a text.
    fn split<'t>(
        self,
        text: &'t str,
        at: &str,
        rule: &'static str,
    ) -> Result<(&'t str, &'t str), Fault> {
        text.split_once(at).ok_or_else(|| self.is(rule))
    }

    fn number<N: std::str::FromStr>(self, word: &str) -> Result<N, Fault> {
        word.parse().map_err(|_| self.is("not a whole number, or too large"))
    }

    fn numbers<N: std::str::FromStr>(self, words: &str, between: char) -> Result<Vec<N>, Fault> {
        words.split(between).map(|word| self.number(word)).collect()
    }
}

struct Lines<'t> {
    rest: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'t>>>,
    count: usize,
}

impl<'t> Lines<'t> {
    /// The next line, if it begins with `word`, and the text after the word.
    fn next_if(&mut self, word: &str) -> Option<(TextLine<'t>, &'t str)> {
        let begins = |text: &'t str| text.strip_prefix(word)?.strip_prefix(' ');
        let (number, text) = self.rest.next_if(|(_, text)| begins(text).is_some())?;
        // The first line of the file is not counted here.
        Some((TextLine { number: number + 2, text }, begins(text)?))
    }

    fn next(&mut self, word: &str, rule: &'static str) -> Result<(TextLine<'t>, &'t str), Fault> {
        self.next_if(word).ok_or_else(|| self.here(rule))
    }

    fn here(&mut self, rule: &'static str) -> Fault {
        let (number, text) = self.rest.peek().copied().unwrap_or((self.count, "the end"));
        TextLine { number: number + 2, text }.is(rule)
    }
}

/// Reads all lines but the first and the last.
pub(crate) fn parse(body: &str) -> Result<Certificate, Fault> {
    let mut lines =
        Lines { rest: body.lines().enumerate().peekable(), count: body.lines().count() };
    let (line, text) = lines.next("machine", "the machine is to be named here")?;
    let machine = machine(&mut lines, line, text)?;
    let ranks = machine.ranks();
    if ranks == 0 {
        return Err(line.is(RANKS));
    }
    let (line, text) = lines.next("operation", "the operation is to be named here")?;
    let gathers = match text {
        "alltoall" => false,
        "allgather" => true,
        _ => return Err(line.is("the operation is alltoall or allgather")),
    };
    let (line, text) = lines.next("ports", "ports are to be listed here")?;
    let ports = line.number(text)?;
    if ports == 0 {
        return Err(line.is("there is at least one port"));
    }
    let node_ports = match lines.next_if("node_ports") {
        None => ports,
        Some((line, _)) if machine.nodes.is_none() => {
            return Err(line.is("only nodes of several ranks have ports of their own"));
        }
        Some((line, text)) => match line.number(text)? {
            0 => return Err(line.is("there is at least one port")),
            node_ports => node_ports,
        },
    };
    let (line, text) = lines.next("block", "the bytes of a block are to be listed here")?;
    let block: u64 = line.number(text)?;
    let algorithm = lines.next("algorithm", "the algorithm is to be named here")?.1.to_owned();
    let (line, text) =
        lines.next("ranks", "the sides and periods of ranks are to be listed here")?;
    let (sides, periods) = line.split(text, " by ", "sides `by` periods are to be listed")?;
    limited("sides", sides.split('x').count() as u128, MOST_AXES as u128)?;
    let (mut lengths, mut twists) = (Vec::new(), Vec::new());
    for side in sides.split('x') {
        let (side, twist) = side.split_once('+').unwrap_or((side, "0"));
        lengths.push(line.number(side)?);
        twists.push(line.number(twist)?);
    }
    let radix = Radix::new(lengths, twists, line.numbers(periods, 'x')?);
    let radix = radix.filter(|radix| radix.ranks() == ranks).ok_or_else(|| {
        line.is("periods divide their sides, and are 1 if sides are twisted by less than the longest; the sides multiply to the machine's ranks")
    })?;
    let (line, text) = lines.next("slots", "slots are to be listed here")?;
    let slots: u64 = line.number(text)?;
    let (line, text) = lines.next("pieces", "the pieces of a block are to be listed here")?;
    let pieces: Vec<u64> = line.numbers(text, ';')?;
    let sum = pieces.iter().try_fold(0u64, |sum, &piece| sum.checked_add(piece));
    if block == 0 || sum != Some(block) {
        return Err(line.is("the pieces are to make up a block of at least 1 byte"));
    }
    let places = u128::from(slots) * pieces.len() as u128;
    limited("slots of all classes", places * u128::from(radix.classes()), MOST_SLOTS)?;
    let (line, text) = lines.next("counts", "the counts are to be listed here")?;
    let counts = Counts::parse(text).ok_or_else(|| line.is(Counts::RULE))?;
    let (line, text) = lines.next("bounds", "the bounds are to be listed here")?;
    let bounds = text
        .strip_prefix("steps=")
        .and_then(|text| text.split_once(" link_bytes="))
        .ok_or_else(|| line.is("the bounds are steps= and link_bytes="))?;
    let bounds = (line.number(bounds.0)?, line.number(bounds.1)?);
    let (mut layouts, mut steps) = (Vec::new(), Vec::new());
    for class in 0..radix.classes() {
        let (line, text) = lines.next("class", "the next class is to begin here")?;
        if line.number::<u32>(text)? != class {
            return Err(line.is("classes are numbered from 0"));
        }
        layouts.push(read_layout(&mut lines, slots, ranks)?);
        read_steps(&mut lines, class, places as u64, ranks, &mut steps)?;
    }
    steps.sort_by_key(|step: &Step| step.number);
    if lines.rest.peek().is_some() {
        return Err(lines.here("this line says nothing known here"));
    }
    Ok(Certificate {
        machine,
        gathers,
        ports,
        node_ports,
        block,
        algorithm,
        radix,
        slots,
        pieces,
        counts,
        bounds,
        layouts,
        steps,
    })
}

const RANKS: &str = "a machine has 1 to 2^32 - 1 ranks";

fn machine(lines: &mut Lines<'_>, line: TextLine<'_>, text: &str) -> Result<Machine, Fault> {
    let (kind, shape) = line.split(text, " ", "a machine has a kind and a shape")?;
    if kind == "cluster" {
        let nodes = nodes(line, shape)?;
        return Ok(Machine { network: Network::Complete(nodes.nodes()), nodes: Some(nodes) });
    }
    if kind == "complete" {
        return Ok(Machine { network: Network::Complete(line.number(shape)?), nodes: None });
    }
    let (shape, several) = match shape.split_once(" nodes ") {
        Some((shape, several)) => (shape, Some(nodes(line, several)?)),
        None => (shape, None),
    };
    let network = match kind {
        "grid" => {
            let (shape, balanced) = match shape.strip_suffix(" balanced") {
                Some(shape) => (shape, true),
                None => (shape, false),
            };
            limited("sides", shape.split('x').count() as u128, MOST_AXES as u128)?;
            let wraps: Vec<bool> = shape.split('x').map(|side| side.ends_with('~')).collect();
            let side = |side: &str| line.number::<u32>(side.strip_suffix('~').unwrap_or(side));
            let sides = shape.split('x').map(side).collect::<Result<Vec<_>, _>>()?;
            let places = Radix::new(sides.clone(), vec![0; sides.len()], sides)
                .ok_or_else(|| line.is("a grid has 1 to 2^32 - 1 ranks"))?;
            Network::Grid(Grid { places, wraps, balanced })
        }
        "graph" => {
            let (nodes, switches) = line.split(shape, "+", "a graph has nodes+switches")?;
            let (nodes, switches): (u32, u32) = (line.number(nodes)?, line.number(switches)?);
            let ranks = several.as_ref().map_or(nodes, Nodes::ranks);
            limited("ranks of a graph", ranks.into(), MOST_GRAPH_RANKS)?;
            let vertices = u128::from(nodes) + u128::from(switches);
            limited("vertices of a graph", vertices, MOST_VERTICES)?;
            Network::Graph(graph(lines, nodes, vertices as u32)?)
        }
        _ => return Err(line.is("a machine is complete, grid, graph or cluster")),
    };
    if several.as_ref().is_some_and(|nodes| nodes.nodes() != network.nodes()) {
        return Err(line.is("the network has as many nodes as have ranks"));
    }
    Ok(Machine { network, nodes: several })
}

fn nodes(line: TextLine<'_>, text: &str) -> Result<Nodes, Fault> {
    let group = |group: &str| {
        let (nodes, size) = line.split(group, "*", "nodes are listed as count*ranks")?;
        match (line.number(nodes)?, line.number(size)?) {
            (0, _) | (_, 0) => Err(line.is("nodes have ranks")),
            group => Ok(group),
        }
    };
    let groups: Vec<_> = text.split(',').map(group).collect::<Result<_, _>>()?;
    Nodes::new(&groups).ok_or_else(|| line.is(RANKS))
}

/// Reads the links and routes of each vertex.
fn graph(lines: &mut Lines<'_>, nodes: u32, vertices: u32) -> Result<Graph, Fault> {
    let mut graph = Graph::new(nodes);
    let mut runs = 0;
    for vertex in 0..vertices {
        let (line, text) = lines.next("vertex", "the next vertex is to be listed here")?;
        let mut words = text.split(' ');
        if line.number::<u32>(words.next().unwrap_or_default())? != vertex {
            return Err(line.is("vertices are numbered from 0"));
        }
        let link = |word: &str| match word {
            "-" => Ok(None),
            word => link(line, word, vertex, vertices).map(Some),
        };
        let ports = words.map(link).collect::<Result<Vec<_>, _>>()?;
        limited("ports", (graph.ports() + ports.len()) as u128, MOST_PORTS)?;
        graph.add_vertex(ports.into_iter());
        let Some((line, text)) = lines.next_if("next") else { continue };
        let mut all = 0;
        for word in text.split(' ') {
            let (ports, destinations) = word.split_once('*').unwrap_or((word, "1"));
            let ports: Vec<u32> = line.numbers(ports, '/')?;
            all = graph.add_next(line.number(destinations)?, &ports);
            runs += ports.len() + 1;
            limited("ports of routes", runs as u128, MOST_PORTS)?;
        }
        if all != nodes {
            return Err(line.is("the next links are listed for each node once"));
        }
    }
    Ok(graph)
}

/// A link as `vertex`, `vertex*capacity` or `vertex:length`.
fn link(line: TextLine<'_>, word: &str, from: u32, vertices: u32) -> Result<Link, Fault> {
    let (word, length) = word.split_once(':').unwrap_or((word, "0"));
    let (to, capacity) = word.split_once('*').unwrap_or((word, "1"));
    let (times, over) = capacity.split_once('/').unwrap_or((capacity, "1"));
    let (to, length) = (line.number(to)?, line.number(length)?);
    let (times, over) = (line.number(times)?, line.number(over)?);
    if to >= vertices || to == from {
        return Err(line.is("a link leads to another vertex"));
    }
    if times == 0 || over == 0 {
        return Err(line.is("a link has a capacity above 0"));
    }
    if length > LONGEST {
        return Err(line.is("a link has a length of at most 2^24"));
    }
    Ok(Link { to, times, over, length })
}

fn read_layout(lines: &mut Lines<'_>, slots: u64, ranks: u32) -> Result<Layout, Fault> {
    let mut layout = |word, rule| {
        let (line, text) = lines.next(word, rule)?;
        rows(line, text, slots, ranks)
    };
    let start = layout("start", "the layout at the start is to be listed here")?;
    Ok(Layout { start, finish: layout("finish", "the layout at the end is to be listed here")? })
}

/// Adds the steps of a class to those of the others.
fn read_steps(
    lines: &mut Lines<'_>,
    class: u32,
    places: u64,
    ranks: u32,
    steps: &mut Vec<Step>,
) -> Result<(), Fault> {
    let mut next = 0;
    while let Some((line, text)) = lines.next_if("step") {
        let number: u32 = line.number(text)?;
        if number > MOST_STEPS {
            return Err(line.is("steps are numbered from 0 to 2^30"));
        }
        if number < next {
            return Err(line.is("steps are listed in order"));
        }
        next = number + 1;
        steps.push(read_step(lines, number, class, places, ranks)?);
    }
    Ok(())
}

fn read_step(
    lines: &mut Lines<'_>,
    number: u32,
    class: u32,
    places: u64,
    ranks: u32,
) -> Result<Step, Fault> {
    let mut step = Step { number, class, copies: vec![], sends: vec![], receives: vec![] };
    let peer = |line: TextLine<'_>, word: &str| {
        let displacement = line.number::<u32>(word)?;
        let moves = displacement > 0 && displacement < ranks;
        if moves { Ok(displacement) } else { Err(line.is("a message goes to another rank")) }
    };
    while let Some((line, text)) = lines.next_if("copy") {
        let (from, to) = line.split(text, " ", "a copy has slots from and to")?;
        step.copies.push((sets(line, from, places)?, sets(line, to, places)?));
    }
    while let Some((line, text)) = lines.next_if("send") {
        let words: Vec<_> = text.split(' ').collect();
        let [to, route, slots] = words[..] else {
            return Err(line.is("a message sent has a receiver, a route and slots"));
        };
        let segment = |segment: &str| {
            let (u, hops) = line.split(segment, ":", "a route is dimension:hops")?;
            Ok((line.number(u)?, line.number(hops)?))
        };
        let route = match route {
            "own" => None,
            route => Some(route.split(';').map(segment).collect::<Result<_, _>>()?),
        };
        step.sends.push(Send { to: peer(line, to)?, route, slots: sets(line, slots, places)? });
    }
    while let Some((line, text)) = lines.next_if("receive") {
        let (from, slots) = line.split(text, " ", "a message received has a sender and slots")?;
        step.receives.push((peer(line, from)?, sets(line, slots, places)?));
    }
    Ok(step)
}

fn rows(line: TextLine<'_>, text: &str, slots: u64, ranks: u32) -> Result<Vec<LayoutRow>, Fault> {
    let row = |word: &str| {
        let numbers: Vec<u64> = line.numbers(word, ',')?;
        let [slot, displacement, axes @ ..] = &numbers[..] else {
            return Err(line.is("a row has a slot and a displacement"));
        };
        let few = axes.len() % 3 == 0 && axes.len() / 3 <= MOST_AXES;
        let axes = axes.chunks_exact(3);
        let reach = axes.clone().try_fold(*slot, |reach, axis| {
            reach.checked_add(axis[0].checked_sub(1)?.checked_mul(axis[1])?)
        });
        let count = axes.clone().try_fold(1u64, |count, axis| count.checked_mul(axis[0]));
        let inside = [reach.map(|last| last.saturating_add(1)), count];
        let inside = inside.iter().all(|end| end.is_some_and(|end| end <= slots));
        let mut displacements = axes.clone().map(|axis| axis[2]).chain([*displacement]);
        if !few || !inside || displacements.any(|displacement| displacement >= ranks.into()) {
            return Err(line.is("a row lies within the slots, and its displacements are ranks"));
        }
        let axes =
            axes.map(|axis| Axis { count: axis[0], slots: axis[1], displacement: axis[2] as u32 });
        Ok(LayoutRow { slot: *slot, displacement: *displacement as u32, axes: axes.collect() })
    };
    text.split(' ').map(row).collect()
}

fn sets(line: TextLine<'_>, text: &str, places: u64) -> Result<Slots, Fault> {
    let run = |word: &str| {
        let numbers: Vec<i64> = line.numbers(word, ',')?;
        let (base, outer, inner) = match numbers[..] {
            [base] => (base, (1, 0), (1, 0)),
            [base, count, stride] => (base, (1, 0), (count, stride)),
            [base, count, stride, inner, by] => (base, (count, stride), (inner, by)),
            _ => return Err(line.is("a run has one, three or five numbers")),
        };
        let counts = outer.0 > 0 && inner.0 > 0;
        let few = i128::from(outer.0) * i128::from(inner.0) <= i128::from(places);
        let run = SlotRun { base, outer, inner };
        let (low, high) = run.span();
        if counts && few && low >= 0 && high < i128::from(places) {
            Ok(run)
        } else {
            Err(line.is("a run has slots, and lies within them"))
        }
    };
    Ok(Slots(text.split(';').map(run).collect::<Result<_, _>>()?))
}
