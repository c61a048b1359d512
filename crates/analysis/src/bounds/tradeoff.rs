//! The least volume of an all-to-all of equal blocks in a number of steps.
//!
//! Follow a byte from its source. In each step it stays where it is, or one of the k ports of the
//! rank that holds it sends it on. So the steps in which it moves, each with its port, fix where it
//! ends, and different destinations need different sets of such choices. In T steps `C(T, j) k^j`
//! sets have j moves. The P bytes at one place of the blocks of a source, its own included, take P
//! different sets, and together move at least as often as the P sets with the fewest moves, m times.
//! A byte that is copied has one such set for the copy that arrives, and the others add to the moves.
//!
//! With blocks of b bytes the P sources send at least `P m b` bytes, each counted once for each move.
//! In a step they send at most `k P` messages, none longer than the largest. So `k P C2 >= P m b`:
//! the volume is at least `m / k` blocks. If `(1 + k)^T < P` there are fewer sets than destinations,
//! and no schedule exists.
//!
//! The same holds of N nodes of s ranks each, of which a node has s^2 blocks for each other: in T steps in which
//! nodes send to each other, at most k messages each, they send at least `s^2 m b` bytes each in the mean.

use topocoll_schedule::{Collective, Problem};
use topocoll_topology::{Machine, Shape};

use super::{LowerBound, Measure};

/// The trade-off of steps and volume of an all-to-all of equal blocks, for schedules that exceed no
/// ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TradeOff {
    ranks: u64,
    ports: u64,
}

impl TradeOff {
    /// The trade-off of a problem; `None` of an all-gather, of which nothing is known.
    pub(super) fn of(problem: &Problem) -> Option<Self> {
        let Problem { operation, ranks, ports, .. } = *problem;
        (operation == Collective::AllToAll)
            .then_some(Self { ranks: ranks.into(), ports: ports.into() })
    }

    /// The trade-off of the steps between nodes of equal sizes, each of several ranks, and the blocks that a node has
    /// for another.
    pub(super) fn between(problem: &Problem, machine: &Machine) -> Option<(Self, f64)> {
        let Shape::Clustered(clusters) = machine.topology.shape() else { return None };
        let size = clusters.equal_size().filter(|_| problem.operation == Collective::AllToAll)?;
        let trade_off = Self { ranks: clusters.nodes().into(), ports: sent_by_node(problem, size) };
        (clusters.nodes() > 1).then_some((trade_off, f64::from(size).powi(2)))
    }

    /// The least volume C2, in blocks, of a schedule of at most this number of steps; `None` if there
    /// is no such schedule.
    ///
    /// It falls with the number of steps to (P - 1) / k.
    #[must_use]
    pub fn blocks(&self, steps: u64) -> Option<f64> {
        Some(self.moves(steps)? as f64 / self.ports as f64)
    }

    /// The same with its argument.
    #[must_use]
    pub fn bound(&self, steps: u64) -> Option<LowerBound> {
        Some(LowerBound {
            measure: Measure::Blocks,
            value: self.blocks(steps)?,
            theorem: "the steps and ports by which blocks move, counted".to_owned(),
            condition: format!("schedules of at most {steps} steps"),
        })
    }

    /// The fewest moves of the bytes at one place of all blocks of a source.
    pub(super) fn moves(&self, steps: u64) -> Option<u128> {
        let (mut left, mut moves) = (u128::from(self.ranks), 0u128);
        // The number of sets with this number of moves.
        let mut sets = 1u128;
        for number in 0..=steps {
            let taken = sets.min(left);
            moves += u128::from(number) * taken;
            left -= taken;
            if left == 0 {
                return Some(moves);
            }
            // C(T, j) k^j from C(T, j - 1) k^(j - 1), below 2^32.
            let further = sets * u128::from(steps - number) / u128::from(number + 1);
            sets = further.saturating_mul(self.ports.into());
        }
        None
    }

    /// The number of steps from which the volume is the least of all.
    pub(super) fn last(&self) -> u64 {
        (self.ranks - 1).div_ceil(self.ports)
    }
}

/// The most messages to other nodes that a node of some ranks sends in a step.
pub(super) fn sent_by_node(problem: &Problem, ranks: u32) -> u64 {
    u64::from(problem.node_ports).min(u64::from(ranks) * u64::from(problem.ports))
}

/// A lower bound on `at(steps, volume(steps))` from `first` to `last` steps, where `at` grows with
/// both, and `volume` does not grow: the least value, or a little less if many values are near it.
pub(super) fn least(
    (first, last): (u64, u64),
    volume: impl Fn(u64) -> f64,
    at: impl Fn(u64, f64) -> f64,
) -> f64 {
    /// The most intervals that are divided.
    const DIVIDED: usize = 2048;
    let exact = |steps| at(steps, volume(steps));
    // The ends of intervals, after the least that there may be between them.
    let within = |(low, high): (u64, u64)| match high - low {
        0 | 1 => (f64::INFINITY, low, high),
        _ => (at(low + 1, volume(high - 1)), low, high),
    };
    let mut best = exact(first).min(exact(last));
    let mut open = vec![within((first, last))];
    for _ in 0..DIVIDED {
        open.retain(|&(least, ..)| least < best);
        let lowest = (0..open.len()).min_by(|&a, &b| open[a].0.total_cmp(&open[b].0));
        let Some((_, low, high)) = lowest.map(|place| open.swap_remove(place)) else {
            return best;
        };
        let middle = low + (high - low) / 2;
        best = best.min(exact(middle));
        open.extend([(low, middle), (middle, high)].map(within));
    }
    open.into_iter().map(|(least, ..)| least).fold(best, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(ranks: u64, ports: u64, steps: u64) -> Option<u128> {
        TradeOff { ranks, ports }.moves(steps)
    }

    /// The numbers of moves of all sets of choices, listed one by one.
    #[test]
    fn moves_are_those_of_the_sets_with_the_fewest() {
        for (ports, steps) in [(1, 0), (1, 1), (1, 7), (2, 4), (3, 3), (4, 2), (5, 1)] {
            let mut listed = vec![0u128];
            for _ in 0..steps {
                let moved = listed.iter().flat_map(|&moves| (0..ports).map(move |_| moves + 1));
                listed = listed.iter().copied().chain(moved).collect();
            }
            listed.sort_unstable();
            for ranks in 1..=listed.len() {
                let least = listed[..ranks].iter().sum();
                assert_eq!(
                    moves(ranks as u64, ports, steps),
                    Some(least),
                    "{ranks} {ports} {steps}"
                );
            }
            assert_eq!(moves(listed.len() as u64 + 1, ports, steps), None);
        }
    }

    #[test]
    fn known_schedules_reach_the_least_volume() {
        for (ranks, steps, volume) in [(16, 6, 24), (64, 6, 192), (512, 9, 2304), (64, 14, 112)] {
            assert_eq!(moves(ranks, 1, steps), Some(volume));
        }
        // Bruck et al. 1997, Theorem 2.5 and Proposition 2.4.
        for (ports, steps) in [(1u64, 10u32), (2, 6), (7, 4)] {
            let ranks = (ports + 1).pow(steps);
            let fewest = TradeOff { ranks, ports }.blocks(steps.into()).unwrap();
            assert_eq!(fewest, (ranks * u64::from(steps)) as f64 / (ports + 1) as f64);
            let of = TradeOff { ranks, ports };
            for many in [of.last(), of.last() + 1, u64::MAX] {
                assert_eq!(of.blocks(many), Some((ranks - 1) as f64 / ports as f64));
            }
            assert!(of.blocks(of.last() - 1) > of.blocks(of.last()));
        }
        let largest = u64::from(u32::MAX);
        assert_eq!(moves(largest, largest, 1), Some(u128::from(largest) - 1));
    }

    #[test]
    fn the_least_time_is_that_of_the_best_number_of_steps() {
        for ranks in [1u64, 2, 3, 17, 256, 1000] {
            for ports in [1, 2, 5] {
                let of = TradeOff { ranks, ports };
                let first = (0..).find(|&steps| of.blocks(steps).is_some()).unwrap();
                let last = of.last().max(first);
                for startup in [0.0, 0.01, 0.5, 3.0, 40.0, 1e6] {
                    let volume = |steps| of.blocks(steps).unwrap();
                    let at = |steps: u64, volume: f64| startup * steps as f64 + volume;
                    let every = (first..=last).map(|steps| at(steps, volume(steps)));
                    let least = every.fold(f64::INFINITY, f64::min);
                    let found = super::least((first, last), volume, at);
                    assert_eq!(found, least, "{ranks} {ports} {startup}");
                }
            }
        }
        // Where all numbers of steps are about as good, a little less.
        let found = super::least(
            (0, 1 << 32),
            |steps| ((1u64 << 32) - steps) as f64,
            |steps, volume| steps as f64 + volume,
        );
        assert!(found <= (1u64 << 32) as f64 && found > 0.99 * (1u64 << 32) as f64, "{found}");
    }
}
