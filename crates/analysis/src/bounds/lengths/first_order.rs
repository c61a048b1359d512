//! Good lengths of links by a first-order method.
//!
//! The program is that of [`interior`](super::interior), as a game. Flows fall where a link is
//! longer than the potentials of their source rise along it. Potentials rise where blocks are
//! missing, and lengths where flows are large. Each change of lengths and potentials looks ahead to
//! the next change of flows (Chambolle and Pock 2011), in steps by the size of each variable (Pock
//! and Chambolle 2011). The size of flows against that of lengths follows how far both move
//! (Applegate et al. 2021). The last lengths give a bound, and so does their mean since an earlier
//! look.

use super::core::Core;

/// The most changes of a flow: about a second.
const WORK: usize = 200_000_000;

/// The fewest changes of all flows that are useful, and the most.
const FEWEST: usize = 300;
const MOST: usize = 10_000;

/// The changes before the first look.
const FIRST: usize = 16;

/// The first size of flows for lengths around 1.
const SIZE: f64 = 0.3;

pub(super) fn is_useful(core: &Core) -> bool {
    changes(core) >= FEWEST
}

fn changes(core: &Core) -> usize {
    (WORK / (core.sources.len() * core.links.len())).min(MOST)
}

/// A link, in few bytes.
struct Narrow {
    from: u32,
    to: u32,
    class: u32,
    /// Its part of all capacities.
    share: f64,
}

/// Looks at lengths of classes now and then.
pub(super) fn search(core: &Core, look: &mut dyn FnMut(&[f64])) {
    let (vertices, links) = (core.ranks.len(), core.links.len());
    let scale = core.hops() as f64;
    let shares = core.shares();
    let narrow = core.links.iter().map(|link| Narrow {
        from: link.from as u32,
        to: link.to as u32,
        class: link.class as u32,
        share: link.capacity as f64 / core.capacity(),
    });
    let narrow: Vec<Narrow> = narrow.collect();
    // By vertex, the shares of the links that meet there.
    let mut met = vec![0.0; vertices];
    for link in &narrow {
        met[link.from as usize] += link.share;
        met[link.to as usize] += link.share;
    }
    let sent: Vec<f64> = core.sources.iter().map(|&source| core.sent(source)).collect();
    let all: f64 = sent.iter().sum();

    // Flows on routes of the fewest links, their lengths, and potentials that fit both.
    let mut lengths = vec![1.0; core.classes];
    let mut flows = vec![0.0; core.sources.len() * links];
    let mut potentials = Vec::with_capacity(core.sources.len() * vertices);
    for (&source, flows) in core.sources.iter().zip(flows.chunks_mut(links)) {
        let hops = core.spread(source, flows);
        flows.iter_mut().for_each(|flow| *flow /= scale);
        potentials.extend(hops.iter().map(|&hops| hops as f64));
    }

    let mut size = SIZE;
    let (mut flows_moved, mut lengths_moved) = (0.0, 0.0);
    let (mut carried, mut brought) = (vec![0.0; core.classes], vec![0.0; vertices]);
    let (mut sum, mut since, mut next) = (vec![0.0; core.classes], 0, FIRST);
    for change in 1..=changes(core) {
        carried.fill(0.0);
        for (s, &source) in core.sources.iter().enumerate() {
            let part = sent[s] / all;
            let unit = size * part;
            let potentials = &mut potentials[s * vertices..][..vertices];
            brought.fill(0.0);
            let mut moved = 0.0;
            for (link, flow) in narrow.iter().zip(&mut flows[s * links..]) {
                let (from, to) = (link.from as usize, link.to as usize);
                let excess = lengths[link.class as usize] + potentials[from] - potentials[to];
                let before = *flow;
                *flow = (before - unit / 3.0 * link.share * excess).max(0.0);
                let more = *flow - before;
                let ahead = *flow + more;
                carried[link.class as usize] += ahead;
                brought[to] += ahead;
                brought[from] -= ahead;
                moved += more * more / link.share;
            }
            flows_moved += moved / part;
            for (v, potential) in potentials.iter_mut().enumerate() {
                if v != source {
                    let missing = core.demand(source, v) / scale - brought[v];
                    let more = missing / (unit * met[v]);
                    *potential += more;
                    lengths_moved += more * more * met[v] * part;
                }
            }
        }
        for ((length, carried), share) in lengths.iter_mut().zip(&carried).zip(&shares) {
            *length += carried / (size * share);
        }
        normalize(&mut lengths, &shares);
        sum.iter_mut().zip(&lengths).for_each(|(sum, length)| *sum += length);
        since += 1;
        if change == next || change == changes(core) {
            look(&lengths);
            look(&sum);
            next += next / 2;
            if since > change / 2 {
                sum.fill(0.0);
                since = 0;
            }
            if flows_moved > 0.0 && lengths_moved > 0.0 {
                size = (size * f64::sqrt(flows_moved / lengths_moved)).sqrt();
            }
            (flows_moved, lengths_moved) = (0.0, 0.0);
        }
    }
}

/// Takes an amount from all lengths, none of which falls below 0, so that the mean is 1.
fn normalize(lengths: &mut [f64], shares: &[f64]) {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_unstable_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
    let (mut sum, mut share, mut less) = (-1.0, 0.0, 0.0);
    for k in order {
        sum += shares[k] * lengths[k];
        share += shares[k];
        if lengths[k] * share <= sum {
            break;
        }
        less = sum / share;
    }
    lengths.iter_mut().for_each(|length| *length = (*length - less).max(0.0));
}
