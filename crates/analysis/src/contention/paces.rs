//! The pace of each channel: the time of a byte on a link, or on the injection or ejection channel
//! of a rank or node, as a whole number of one unit.
//!
//! A channel of twice the pace has half the rate. Equal times have equal paces, and only ratios
//! matter, which are exact to one part in 2^32 of the slowest channel.

use super::kinds::Kinds;

/// The pace of the slowest channel, before common factors are removed.
const SLOWEST: u64 = 1 << 32;

pub(crate) struct Paces {
    /// Seconds of a byte on the slowest channel, and its pace.
    seconds: f64,
    pub(super) slowest: u64,
    pub(super) fastest: u64,
    /// By kind of links, or one for all.
    links: Vec<u64>,
    /// Of the injection and the ejection of a rank and a node; 0 where only the links limit them.
    pub(super) rank: u64,
    pub(super) node: u64,
}

impl Paces {
    pub(crate) fn new(kinds: &Kinds<'_>) -> Self {
        let machine = kinds.machine;
        let limits = machine.injection();
        let limits = [limits.rank, limits.node];
        let mut links: Vec<f64> = kinds.values().iter().map(|values| values.per_byte).collect();
        if links.iter().all(|value| *value == links[0]) {
            links.truncate(1);
        }
        // Messages that share no numbered link have the values of their class.
        let classes = machine.timing.per_byte.values().iter().copied();
        let limited = limits.into_iter().filter(|&limit| limit > 0.0);
        let all = links.iter().copied().chain(classes).chain(limited);
        let seconds = all.clone().fold(0.0, f64::max);
        let mut paces =
            Self { seconds, slowest: SLOWEST, fastest: 0, links: Vec::new(), rank: 0, node: 0 };
        let common = all.clone().map(|value| paces.of(value)).fold(SLOWEST, common_divisor);
        paces.slowest /= common;
        paces.fastest = all.map(|value| paces.of(value)).fold(paces.slowest, u64::min);
        paces.links = links.iter().map(|&value| paces.of(value)).collect();
        [paces.rank, paces.node] =
            limits.map(|limit| if limit > 0.0 { paces.of(limit) } else { 0 });
        paces
    }

    /// The pace of a channel that takes these seconds for a byte, at least 1.
    pub(super) fn of(&self, seconds: f64) -> u64 {
        if seconds == self.seconds {
            return self.slowest;
        }
        ((seconds / self.seconds * self.slowest as f64).round() as u64).max(1)
    }

    /// The pace of all links, if it is one.
    pub(super) fn of_links(&self) -> Option<u64> {
        (self.links.len() == 1).then(|| self.links[0])
    }

    /// The pace of the links of a kind.
    pub(super) fn link(&self, kind: usize) -> u64 {
        self.of_links().unwrap_or_else(|| self.links[kind])
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use topocoll_topology::{Grid, Injection, Machine, PerClass};

    use super::*;

    fn paces(per_byte: &[f64], rank: f64, node: f64) -> [u64; 4] {
        let mut machine = Machine::of(Arc::new(Grid::torus(&[4, 4]).unwrap()));
        machine.timing.per_byte = PerClass::each(per_byte);
        machine.timing.injection = Injection { rank, node };
        let paces = Paces::new(&Kinds::new(&machine));
        [paces.link(0), paces.link(1), paces.rank, paces.slowest]
    }

    #[test]
    fn paces_have_the_ratios_of_the_times() {
        assert_eq!(paces(&[3e-9], 0.0, 0.0), [1, 1, 0, 1]);
        assert_eq!(paces(&[0.0], 0.0, 0.0), [1, 1, 0, 1]);
        assert_eq!(paces(&[1e-9, 4e-9], 2e-9, 0.0), [1, 4, 2, 4]);
        // A rank that is a node by itself has the slower of both limits.
        assert_eq!(paces(&[1e-9], 2e-9, 4e-9), [1, 1, 4, 4]);
        let [third, slow, rank, slowest] = paces(&[1e-9, 3e-9], 3e-9, 0.0);
        assert_eq!((slow, rank), (slowest, slowest));
        assert!((3.0 * third as f64 / slowest as f64 - 1.0).abs() < 1e-9);
        // No channel takes no time.
        assert_eq!(paces(&[1e-12, 1.0], 0.0, 0.0)[0], 1);
    }
}
