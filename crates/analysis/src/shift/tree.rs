//! Link loads of a uniform shift on a tree, in closed form.
//!
//! In a step of a cyclic rule each of P nodes x sends a message of equal size to x + s (mod P). Of the S nodes
//! behind a vertex, which have consecutive numbers, those at places max(0, S - s) to min(S, P - s) send to nodes
//! elsewhere, and those at max(0, S + s - P) to min(S, s) receive from there. Of c parallel links a message takes
//! number x, x + s or 2x + s, the latter two perhaps less P, mod c: in turn one of c, or of every other. Some message
//! passes the root, and its route is a longest one. Time per step is proportional to levels and messages, and to the
//! vertices of a level where these differ.

use std::ops::Range;

use topocoll_topology::{Level, Takes};

use super::Shift;
use crate::charges::Rates;
use crate::loads::{Busiest, LineLoads};
use crate::step_count::StepCount;

/// The places of the nodes behind a vertex that send to nodes elsewhere in a shift, or receive from them.
fn crossing(levels: &[Level], level: &Level, shift: u32, up: bool) -> Range<u32> {
    let nodes = levels[0].vertices;
    let behind = nodes / level.vertices;
    match up {
        true => behind.saturating_sub(shift)..behind.min(nodes - shift),
        false => (behind + shift).saturating_sub(nodes)..behind.min(shift),
    }
}

/// The vertices of a level whose links in one direction are counted: one, if the links of all others are loaded
/// equally.
fn vertices(levels: &[Level], level: &Level, direction: usize) -> u32 {
    let (nodes, parallel) = (levels[0].vertices, level.links[direction].1);
    // From the next vertex, or to one node around, messages take the same links again.
    let next = u64::from(nodes / level.vertices) * u64::from(apart(level, direction));
    let again = next.is_multiple_of(parallel.into()) && nodes.is_multiple_of(parallel);
    if again { 1 } else { level.vertices }
}

/// How far apart the parallel links are that messages of two nodes in a row take.
fn apart(level: &Level, direction: usize) -> u32 {
    match level.takes[direction] {
        Takes::Source | Takes::Destination => 1,
        Takes::Sum => 2,
    }
}

/// The messages of nodes in a row that take different links of a vertex.
pub(super) fn period(level: &Level, direction: usize) -> u32 {
    let (parallel, apart) = (level.links[direction].1, apart(level, direction));
    if parallel.is_multiple_of(apart) { parallel / apart } else { parallel }
}

/// The links of a level in one direction that are counted.
fn counted(levels: &[Level], level: &Level, direction: usize) -> u64 {
    u64::from(vertices(levels, level, direction)) * u64::from(level.links[direction].1)
}

/// The levels, each in both directions.
pub(super) fn directions(levels: &[Level]) -> impl Iterator<Item = (&Level, usize)> {
    levels.iter().flat_map(|level| [0, 1].map(|direction| (level, direction)))
}

/// The bytes of the loads of all links that are counted.
pub(super) fn memory(levels: &[Level]) -> u128 {
    let links = directions(levels).map(|(level, direction)| counted(levels, level, direction));
    links.map(LineLoads::memory).sum()
}

/// The work of a shift, as of this number of links that are visited by routes.
pub(super) fn segments(levels: &[Level]) -> u128 {
    /// Vertices, or words of bits of links, that take as long together as a link on a route.
    const FAST: u64 = 4;
    let work = directions(levels).map(|(level, direction)| {
        u64::from(vertices(levels, level, direction)) + counted(levels, level, direction) / 64
    });
    work.sum::<u64>().div_ceil(FAST).into()
}

/// Enters the messages of a shift that pass a level in one direction. Links stand in the order in which nodes in a
/// row take them, vertex by vertex.
pub(super) fn enter(
    levels: &[Level],
    (level, direction): (&Level, usize),
    message: Shift,
    line: &mut LineLoads,
) {
    let (up, (_, parallel)) = (direction == 0, level.links[direction]);
    let (nodes, shift) = (levels[0].vertices, message.node);
    let crossing = crossing(levels, level, shift, up);
    let (behind, apart) = (nodes / level.vertices, apart(level, direction));
    let period = period(level, direction);
    let load = (message.times.into(), message.bytes as i128);
    line.open(counted(levels, level, direction) as usize, load.1);
    for vertex in 0..vertices(levels, level, direction) {
        // The nodes that cross, as those that send; from `wraps` on a message goes around.
        let first = vertex * behind + if up { 0 } else { nodes - shift };
        let senders = first + crossing.start..first + crossing.end;
        let wraps = (if up { nodes - shift } else { nodes }).clamp(senders.start, senders.end);
        for part in [senders.start..wraps, wraps..senders.end] {
            let from = u64::from(part.start % nodes);
            let to = (from + u64::from(shift)) % u64::from(nodes);
            let end = match level.takes[direction] {
                Takes::Source => from,
                Takes::Destination => to,
                Takes::Sum => from + to,
            };
            let link = (end % u64::from(parallel)) as u32;
            let (row, place) = match apart {
                2 if period < parallel => (link % 2, link / 2),
                // The odd ones come after the even ones.
                2 => (0, link / 2 + (link % 2) * parallel.div_ceil(2)),
                _ => (0, link),
            };
            let base = vertex * parallel + row * period;
            let along = (base as usize, 1, period as usize);
            line.add_range(along, place as usize, part.len() as u64, load);
        }
    }
}

/// Adds the link loads of a step in which every node sends these messages. `lines` and `busiest` are those of an
/// earlier step.
pub(super) fn count(
    levels: &[Level],
    rates: &Rates<'_>,
    messages: &[Shift],
    (lines, busiest): (&mut Vec<LineLoads>, &mut Vec<Busiest>),
    step: &mut StepCount,
) {
    if messages.is_empty() {
        return;
    }
    step.hops = step.hops.max(2 * levels.len() as u64);
    busiest.clear();
    lines.resize_with(2 * levels.len(), LineLoads::default);
    for ((level, direction), line) in directions(levels).zip(lines) {
        for message in messages {
            enter(levels, (level, direction), *message, line);
        }
        let (link, _) = level.links[direction];
        let most = Busiest::of_class(busiest, rates.class_of(link));
        let equal = level.vertices / vertices(levels, level, direction);
        line.drain(period(level, direction), 1, |_, count, messages, bytes| {
            let count = u64::from(count) * u64::from(equal);
            most.add(messages, rates.over_capacity(|| link, bytes), count);
        });
    }
    for message in messages {
        let passing = directions(levels).map(|(level, direction)| {
            let crossing = crossing(levels, level, message.node, direction == 0).len() as u64;
            let times = u64::from(level.vertices) * u64::from(message.times);
            (level.links[direction].0, times * crossing)
        });
        step.charges.links_of(rates, passing, message.bytes);
    }
    step.load_busiest(rates, busiest, 1);
}
