//! Link loads of a uniform shift on a tree, in closed form.
//!
//! In a step of a cyclic rule each of P nodes x sends a message of equal size to x + s (mod P). Of the S nodes
//! behind a vertex, which have consecutive numbers, those at places max(0, S - s) to min(S, P - s) send to nodes
//! elsewhere, and those at max(0, S + s - P) to min(S, s) receive from there. Of c parallel links a message takes
//! number 2x + s, or 2x + s - P, mod c: in turn one of c, or of every other. Some message passes the root, and its
//! route is a longest one. Time per step is proportional to levels and messages, and where links are parallel to
//! all of these.

use std::ops::Range;

use topocoll_topology::Level;

use super::Shift;
use crate::charges::Rates;
use crate::loads::Busiest;
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

/// The links of a level in one direction that are counted: all, or one of equal ones.
pub(super) fn counted(level: &Level, direction: usize) -> usize {
    match level.links[direction].1 {
        1 => 1,
        parallel => level.vertices as usize * parallel as usize,
    }
}

/// The work of a shift, as of this number of links that are visited by routes.
pub(super) fn segments(levels: &[Level]) -> u128 {
    /// Links that take as long together as one on a route.
    const FAST: usize = 16;
    let links = levels.iter().map(|level| counted(level, 0) + counted(level, 1));
    links.sum::<usize>().div_ceil(FAST) as u128
}

/// Calls `each` with the place among the [`counted`] links and the messages of a shift that pass it.
pub(super) fn passing(
    levels: &[Level],
    level: &Level,
    direction: usize,
    shift: u32,
    each: &mut dyn FnMut(usize, u64),
) {
    let (up, (_, parallel)) = (direction == 0, level.links[direction]);
    let crossing = crossing(levels, level, shift, up);
    if parallel == 1 {
        return each(0, crossing.len() as u64);
    }
    let nodes = levels[0].vertices;
    let behind = nodes / level.vertices;
    // Two nodes further both ends are, and every other link is passed over.
    let period = if parallel % 2 == 0 { parallel / 2 } else { parallel };
    for vertex in 0..level.vertices {
        // The nodes that cross, as those that send; from `wraps` on a message goes around.
        let first = vertex * behind + if up { 0 } else { nodes - shift };
        let senders = first + crossing.start..first + crossing.end;
        let wraps = (if up { nodes - shift } else { nodes }).clamp(senders.start, senders.end);
        for part in [senders.start..wraps, wraps..senders.end] {
            let ends = |sender: u32| {
                let from = sender % nodes;
                (u64::from(from) + u64::from((from + shift) % nodes)) % u64::from(parallel)
            };
            for turn in 0..period.min(part.len() as u32) {
                let messages = (part.len() as u32 - turn).div_ceil(period);
                let link = vertex * parallel + ends(part.start + turn) as u32;
                each(link as usize, messages.into());
            }
        }
    }
}

/// Adds the link loads of a step in which every node sends these messages.
pub(super) fn count(levels: &[Level], rates: &Rates<'_>, messages: &[Shift], step: &mut StepCount) {
    if messages.is_empty() {
        return;
    }
    step.hops = step.hops.max(2 * levels.len() as u64);
    let mut busiest: Vec<Busiest> = Vec::new();
    let links = || levels.iter().flat_map(|level| [0, 1].map(|direction| (level, direction)));
    for (level, direction) in links() {
        let (link, parallel) = level.links[direction];
        let mut loads = vec![(0u64, 0u128); counted(level, direction)];
        for message in messages {
            passing(levels, level, direction, message.node, &mut |place, messages| {
                let times = messages * u64::from(message.times);
                loads[place].0 += times;
                loads[place].1 += u128::from(times) * message.bytes;
            });
        }
        let class = rates.class_of(link);
        if busiest.len() <= class {
            busiest.resize(class + 1, Busiest::default());
        }
        let equal = if parallel == 1 { level.vertices.into() } else { 1 };
        for (messages, bytes) in loads {
            busiest[class].add(messages, rates.over_capacity(|| link, bytes), equal);
        }
    }
    for message in messages {
        let passing = links().map(|(level, direction)| {
            let crossing = crossing(levels, level, message.node, direction == 0).len() as u64;
            let times = u64::from(level.vertices) * u64::from(message.times);
            (level.links[direction].0, times * crossing)
        });
        step.charges.links_of(rates, passing, message.bytes);
    }
    step.load_busiest(rates, &busiest, 1);
}
