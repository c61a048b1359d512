//! Traffic patterns: permutations and uniform random messages, named as in BookSim.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use topocoll_topology::{Machine, Rank, Route, Shape};

use super::settings::Settings;
use crate::AnalysisError;
use crate::error::check_memory;
use crate::traffic::{Posted, Share, Traffic};

/// A pattern's name and its destinations.
struct Permutation {
    name: &'static str,
    what: &'static str,
    destinations: fn(&Machine) -> Result<Vec<Rank>, &'static str>,
}

/// The permutations, in the order in which help lists them.
const PERMUTATIONS: &[Permutation] = &[
    Permutation {
        name: "neighbor",
        what: "+1 in every dimension",
        destinations: |machine| moved(machine, |side| u32::from(side > 1)),
    },
    Permutation {
        name: "tornado",
        what: "+(ceil(side / 2) - 1) in every dimension",
        destinations: |machine| moved(machine, |side| side.div_ceil(2) - 1),
    },
    Permutation {
        name: "transpose",
        what: "coordinates in opposite order",
        destinations: transposed,
    },
    Permutation {
        name: "bitcomp",
        what: "rank i to the last but i",
        destinations: |machine| Ok((0..machine.ranks()).rev().map(Rank).collect()),
    },
];

/// A pattern on a machine.
#[derive(Debug)]
pub struct Pattern<'a> {
    machine: &'a Machine,
    /// By node: destinations, and the flit times of the messages.
    sends: Vec<Vec<(Rank, u64)>>,
    receives: Vec<u32>,
    bytes: u64,
    /// The flit times for which it sends at a rate.
    cycles: Option<u64>,
}

impl<'a> Pattern<'a> {
    /// The pattern with a name such as `tornado`, `random:7` or `uniform:0.05`, and messages of
    /// `bytes`.
    ///
    /// `uniform:RATE` sends RATE flits per node and flit time for `cycles` flit times, to uniformly
    /// random other nodes; `neighbor:RATE` and other permutations likewise, to the node of the
    /// permutation. Without a rate permutations send one message from every node at time 0. A node
    /// that is its own destination sends to itself through its own ports.
    ///
    /// # Errors
    /// An unknown pattern, one that does not fit the machine, a rate or number of cycles out of
    /// range, or more than `memory` bytes for the messages.
    pub fn new(
        machine: &'a Machine,
        text: &str,
        bytes: u64,
        flit_bytes: u64,
        cycles: Option<u64>,
        memory: u128,
    ) -> Result<Self, AnalysisError> {
        /// Bytes of a node, and of a message in a list that doubles as it grows.
        const NODE: u128 = 64;
        const MESSAGE: u128 = 32;
        Settings { flit_bytes, ..Settings::default() }.check()?;
        let ranks = machine.ranks();
        let check = |messages: u128| {
            let needed = u128::from(ranks) * NODE + messages;
            check_memory("the messages of all nodes", needed, memory)
        };
        check(0)?;
        let refuse = |rule: String| AnalysisError::Pattern { text: text.to_owned(), rule };
        let (name, argument) = text.split_once(':').map_or((text, None), |(n, a)| (n, Some(a)));
        let permutation = PERMUTATIONS.iter().find(|permutation| permutation.name == name);
        let has_rate = name == "uniform" || permutation.is_some() && argument.is_some();
        if cycles.is_some() && !has_rate {
            let rule = "--cycles requires a rate, such as uniform:RATE or tornado:RATE";
            return Err(refuse(rule.to_owned()));
        }
        let open = |rate: &str| {
            let flits = bytes.div_ceil(flit_bytes);
            let open = OpenLoop::new(name, ranks, rate, flits, cycles).map_err(refuse)?;
            check(open.expected(ranks) as u128 * MESSAGE)?;
            Ok(open)
        };
        let sends: Vec<Vec<_>> = match (permutation, name, argument) {
            (Some(permutation), _, rate) => {
                let to = (permutation.destinations)(machine).map_err(|e| refuse(e.to_owned()))?;
                let open = rate.map(open).transpose()?;
                let sends = to.into_iter().zip(0..).map(|(to, node)| match &open {
                    None => vec![(to, 0)],
                    Some(open) => open.sends(node, |_| to),
                });
                sends.collect()
            }
            (None, "random", Some(seed)) => {
                let seed = seed
                    .parse()
                    .map_err(|_| refuse("the seed must be a whole number".to_owned()))?;
                shuffled(machine, seed).into_iter().map(|to| vec![(to, 0)]).collect()
            }
            (None, "uniform", Some(rate)) => {
                if ranks < 2 {
                    return Err(refuse("requires two nodes".to_owned()));
                }
                let open = open(rate)?;
                let other = |node: u32, random: &mut Pcg64| {
                    let other = below(random, u64::from(ranks) - 1) as u32;
                    Rank(other + u32::from(other >= node))
                };
                (0..ranks).map(|node| open.sends(node, |random| other(node, random))).collect()
            }
            _ => {
                let known: Vec<_> = (PERMUTATIONS.iter())
                    .map(|permutation| format!("{} ({})", permutation.name, permutation.what))
                    .collect();
                return Err(refuse(format!(
                    "one of {}, all of them also as NAME:RATE, random:SEED, uniform:RATE; and alltoall, which is no pattern of single messages",
                    known.join(", ")
                )));
            }
        };
        let mut receives = vec![0; ranks as usize];
        for &(to, _) in sends.iter().flatten() {
            receives[to.index()] += 1;
        }
        Ok(Self { machine, sends, receives, bytes, cycles })
    }
}

impl Pattern<'_> {
    /// The machine's own route, but at exactly half a ring upwards from even positions and
    /// downwards from odd ones. This balances the load as random routers do.
    fn route(&self, node: Rank, to: Rank, route: &mut Route) {
        let mut upwards = Route::default();
        self.machine.topology.route(node, to, &mut upwards);
        route.clear();
        let Shape::Grid(grid) = self.machine.topology.shape() else {
            route.clone_from(&upwards);
            return;
        };
        for segment in upwards.segments() {
            let u = segment.dimension as usize;
            let half = grid.wrap()[u] && 2 * segment.hops == i64::from(grid.sides()[u]);
            let odd = grid.radix().coordinate(node, u) % 2 == 1;
            route.push(segment.dimension, if half && odd { -segment.hops } else { segment.hops });
        }
    }
}

impl Traffic for Pattern<'_> {
    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }

    fn steps(&self) -> u32 {
        1
    }

    fn share(&self, node: Rank, _step: u32, out: &mut Share) {
        out.copied = 0;
        out.receives = self.receives[node.index()];
        out.sends.clear();
        for &(to, cycle) in &self.sends[node.index()] {
            let mut route = Route::default();
            self.route(node, to, &mut route);
            out.sends.push(Posted { to, bytes: self.bytes, route, free: true, packed: 0, cycle });
        }
    }

    fn sends_for(&self) -> Option<u64> {
        self.cycles
    }
}

/// Every node sends to the node `hops(side)` further in every dimension, counted around the side.
fn moved(machine: &Machine, hops: impl Fn(u32) -> u32) -> Result<Vec<Rank>, &'static str> {
    let Shape::Grid(grid) = machine.topology.shape() else { return Err("requires a grid") };
    let to = |rank: u32| {
        (0..grid.sides().len())
            .fold(Rank(rank), |at, u| grid.radix().shifted(at, u, hops(grid.sides()[u]).into()))
    };
    Ok((0..machine.ranks()).map(to).collect())
}

fn transposed(machine: &Machine) -> Result<Vec<Rank>, &'static str> {
    let Shape::Grid(grid) = machine.topology.shape() else { return Err("requires a grid") };
    if grid.sides().iter().ne(grid.sides().iter().rev()) {
        return Err("requires sides that read the same backwards");
    }
    let to = |rank: u32| {
        let mut coordinates = grid.radix().coordinates(Rank(rank));
        coordinates.reverse();
        grid.radix().rank(&coordinates)
    };
    Ok((0..machine.ranks()).map(to).collect())
}

/// A random permutation.
fn shuffled(machine: &Machine, seed: u64) -> Vec<Rank> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut to: Vec<Rank> = (0..machine.ranks()).map(Rank).collect();
    shuffle(&mut random, &mut to);
    to
}

/// Puts items into a random order (Fisher and Yates).
pub(super) fn shuffle<T>(random: &mut Pcg64, items: &mut [T]) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(random, i as u64 + 1) as usize);
    }
}

/// Messages from every node at random times.
struct OpenLoop {
    /// The probability that a node begins a message in a flit time.
    chance: f64,
    cycles: u64,
}

impl OpenLoop {
    fn new(
        name: &str,
        ranks: u32,
        rate: &str,
        flits: u64,
        cycles: Option<u64>,
    ) -> Result<Self, String> {
        /// The most messages of a run.
        const MOST: f64 = 2e8;
        let rate: f64 =
            rate.parse().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0).ok_or_else(|| {
                "the rate must be above 0 and at most 1 flit per node and flit time".to_owned()
            })?;
        let cycles = cycles.ok_or_else(|| format!("{name}:RATE requires --cycles N"))?;
        let open = Self { chance: rate / flits as f64, cycles };
        match open.expected(ranks) {
            expected if expected > MOST => {
                Err(format!("{expected:.0} messages, more than the limit of {MOST:.0}"))
            }
            _ => Ok(open),
        }
    }

    /// The expected number of messages.
    fn expected(&self, ranks: u32) -> f64 {
        self.chance * self.cycles as f64 * f64::from(ranks)
    }

    /// The messages of a node, to `destination` each.
    fn sends(&self, node: u32, destination: impl Fn(&mut Pcg64) -> Rank) -> Vec<(Rank, u64)> {
        // Every node has its own random stream.
        let mut random = Pcg64::seed_from_u64(u64::from(node) + 1);
        let mut sends = Vec::new();
        let mut cycle = 0.0;
        loop {
            // The time to the next message of a memoryless source.
            let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            let pause = |chance: f64| (uniform.ln() / (-chance).ln_1p()).floor();
            cycle += if self.chance < 1.0 { pause(self.chance) } else { 0.0 };
            if cycle >= self.cycles as f64 {
                return sends;
            }
            sends.push((destination(&mut random), cycle as u64));
            cycle += 1.0;
        }
    }
}

/// A random number below `limit`, uniform to within 2^-32.
fn below(random: &mut Pcg64, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use topocoll_topology::Grid;

    use super::*;

    const MEMORY: u128 = 1 << 30;

    fn machine(sides: &[u32]) -> Machine {
        Machine::of(Arc::new(Grid::torus(sides).unwrap()))
    }

    #[test]
    fn uniform_traffic_comes_at_its_rate_at_any_time_to_anybody_else() {
        let (machine, mut share) = (machine(&[4, 4]), Share::default());
        // A message is 4 flits, one in 20 cycles: 2,000 a node, of which 100 follow at once.
        let pattern = Pattern::new(&machine, "uniform:0.2", 64, 16, Some(40_000), MEMORY).unwrap();
        let about = |found: usize, expected: f64| {
            assert!((found as f64 - expected).abs() < 5.0 * expected.sqrt(), "{found} {expected}");
        };
        let mut got = [0; 16];
        for node in (0..16).map(Rank) {
            pattern.share(node, 0, &mut share);
            let sends = &share.sends;
            about(sends.len(), 2000.0);
            about(sends.iter().filter(|send| send.cycle < 20_000).count(), 1000.0);
            about(sends.windows(2).filter(|two| two[1].cycle == two[0].cycle + 1).count(), 100.0);
            assert!(sends.is_sorted_by(|a, b| a.cycle < b.cycle));
            for send in sends {
                assert!(send.to != node && send.cycle < 40_000 && send.bytes == 64);
                got[send.to.index()] += 1;
            }
        }
        got.iter().for_each(|&count| about(count, 2000.0));

        let always = Pattern::new(&machine, "uniform:1", 16, 16, Some(100), MEMORY).unwrap();
        always.share(Rank(3), 0, &mut share);
        assert!(share.sends.iter().map(|send| send.cycle).eq(0..100));
    }

    #[test]
    fn uniform_traffic_that_is_too_much_or_of_one_is_refused() {
        let refused = |sides: &[u32], cycles| {
            let machine = machine(sides);
            Pattern::new(&machine, "uniform:1", 16, 16, cycles, MEMORY).unwrap_err().to_string()
        };
        let many = refused(&[4, 4], Some(12_500_001));
        assert!(many.contains("200000016 messages, more than the limit of 200000000"), "{many}");
        assert!(refused(&[1], Some(9)).contains("requires two nodes"));
        assert!(refused(&[4, 4], None).contains("requires --cycles"));
        // 16 nodes of 64 bytes, and 16,000 messages of 32.
        let (machine, cycles) = (machine(&[4, 4]), Some(1000));
        let taken = |memory| Pattern::new(&machine, "uniform:1", 16, 16, cycles, memory);
        assert!(taken(1024 + 512_000).is_ok());
        assert!(matches!(taken(1023 + 512_000), Err(AnalysisError::Memory { .. })));
    }
}
