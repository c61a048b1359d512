//! Link loads of a uniform shift on a tree, in closed form.
//!
//! In a step of a cyclic rule each of P nodes x sends a message of equal size to x + s (mod P). Of the S nodes
//! behind a vertex, which have consecutive numbers, S - max(0, S - s) - max(0, S - (P - s)) send to nodes
//! elsewhere, and as many receive from there. Some message passes the root, and its route is a longest one.
//! Time per step is proportional to levels and messages.

use topocoll_topology::Level;

use super::Shift;
use crate::charges::Rates;
use crate::loads::Busiest;
use crate::step_count::StepCount;

/// The messages of all nodes to node + shift that leave those behind a vertex.
pub(super) fn leaving(levels: &[Level], level: &Level, shift: u32) -> u64 {
    let nodes = levels[0].vertices;
    let behind = nodes / level.vertices;
    (behind - behind.saturating_sub(shift) - behind.saturating_sub(nodes - shift)).into()
}

/// Adds the link loads of a step in which every node sends these messages.
pub(super) fn count(levels: &[Level], rates: &Rates<'_>, messages: &[Shift], step: &mut StepCount) {
    if messages.is_empty() {
        return;
    }
    step.hops = step.hops.max(2 * levels.len() as u64);
    let mut busiest: Vec<Busiest> = Vec::new();
    let links = levels.iter().flat_map(|level| level.links.map(|link| (level, link)));
    for (level, link) in links.clone() {
        let (mut passing, mut bytes) = (0u64, 0u128);
        for message in messages {
            let times = leaving(levels, level, message.node) * u64::from(message.times);
            passing += times;
            bytes += u128::from(times) * message.bytes;
        }
        let class = rates.class_of(link);
        if busiest.len() <= class {
            busiest.resize(class + 1, Busiest::default());
        }
        let charged = rates.over_capacity(|| link, bytes);
        busiest[class].add(passing, charged, level.vertices.into());
    }
    for message in messages {
        let passing = links.clone().map(|(level, link)| {
            let times = u64::from(level.vertices) * u64::from(message.times);
            (link, times * leaving(levels, level, message.node))
        });
        step.charges.links_of(rates, passing, message.bytes);
    }
    step.load_busiest(rates, &busiest, 1);
}
