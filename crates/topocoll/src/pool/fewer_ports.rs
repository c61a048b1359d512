//! Schedules for fewer ports than there are.

use rayon::prelude::*;
use topocoll_algorithms::FEWER_PORTS;
use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::{Ports, parallel};

use super::Pool;
use super::candidate::Candidate;
use crate::envelope::{bends, envelope, time};
use crate::price::Priced;

/// The part of the budget for schedules for fewer ports.
const PART_FOR_FEWER_PORTS: u128 = 64;
/// Ports of a rank, or of a node, up to which all smaller numbers are tried together.
const FEW_PORTS: u32 = 8;

impl Pool<'_> {
    /// Adds the schedules for fewer ports, as far as their lower bound is below the least exact time at
    /// some block size.
    pub(super) fn try_fewer_ports(&mut self) {
        let several = self.exchange().has_nodes();
        let ports = self.exchange().problem().both_ports();
        let fewer = match several {
            false => (1..ports.rank).rev().map(Ports::from).collect(),
            true => fewer_of_both(ports),
        };
        self.left = self.exchange().limits().work / PART_FOR_FEWER_PORTS;
        for ports in fewer {
            if !self.may_gain(ports) {
                // The bounds grow as ports get fewer.
                if several { continue } else { break }
            }
            self.add_with(ports, several);
            if !self.decide() {
                break;
            }
        }
        self.candidates.retain(|one| !one.fewer || one.price.priced == Priced::Exactly);
    }

    /// Whether the lower bound of all schedules with these ports is below the least exact time at some
    /// block size, of powers of 2 and where the fastest candidate changes.
    fn may_gain(&self, ports: Ports) -> bool {
        let (lines, _) = self.lines();
        let lowest = envelope(&lines);
        if lowest.is_empty() {
            return false;
        }
        let Problem { operation, ranks, .. } = *self.exchange().problem();
        let sizes = bends(&lowest).into_iter().chain((0..=40).map(|power| 1 << power));
        sizes.into_iter().any(|bytes: u64| {
            let problem = Problem::new(operation, ranks, ports, bytes);
            let problem = problem.expect("bug: fewer ports or another size");
            let bound = self.exchange().bounds_of(&problem).seconds;
            bound < time(&lines, &lowest, bytes) * (1.0 - 1e-9)
        })
    }

    /// Adds the candidates for these ports that differ from those of more ports.
    fn add_with(&mut self, ports: Ports, several: bool) {
        let limit = limit(ports, several);
        let (request, worth) = (self.exchange().request(), self.worth());
        let new: Vec<Vec<Candidate>> = parallel::each(&self.asked)
            .enumerate()
            .map(|(place, asked)| {
                let info = asked.algorithm.info();
                let Ok((fewer, _)) = request.fewer_ports(info, &limit) else { return Vec::new() };
                let may = |setting: &Parameters| {
                    let search = fewer.search(asked.algorithm, setting);
                    let expected = || fewer.expected(asked.algorithm, setting);
                    search.is_none_or(|search| {
                        worth(&search.least)
                            && self.searches.may(&search)
                            && expected().is_none_or(|claims| worth(&claims))
                    })
                };
                if !may(&Parameters::new()) {
                    return Vec::new();
                }
                let mut settings = fewer.candidates(asked.algorithm).unwrap_or_default();
                settings.retain(may);
                let known: Vec<_> = self.candidates.iter().filter(|c| c.asked == place).collect();
                let solve = |setting: Parameters| {
                    let given: Parameters = setting.into_iter().chain(limit.clone()).collect();
                    let solution = request.solve(asked.algorithm, &given).ok()?;
                    let price = self.pricing.claimed(&solution.claims);
                    let new = Candidate::new(&solution, price, &self.pricing);
                    let same = known.iter().any(|known| known.costs_as_much_as(&new));
                    (!same).then_some(Candidate { asked: place, fewer: true, ..new })
                };
                settings.into_iter().filter_map(solve).collect()
            })
            .collect();
        drop(worth);
        self.candidates.extend(new.into_iter().flatten());
        self.mark_solved_again();
    }
}

/// Whether parameters are those of a schedule for fewer ports.
pub(crate) fn is_limited(parameters: &Parameters) -> bool {
    FEWER_PORTS.iter().any(|ports| parameters.contains_key(*ports))
}

/// The parameters of schedules for these ports.
pub(crate) fn limit(ports: Ports, several: bool) -> Parameters {
    let numbers = FEWER_PORTS.into_iter().zip([ports.rank, ports.node]);
    let numbers = numbers.take(if several { 2 } else { 1 });
    numbers.map(|(name, ports)| (name.to_owned(), u64::from(ports).into())).collect()
}

/// Fewer ports of a rank, of a node, and of both, where they are not the same: all numbers up to a few, and
/// then powers of 2.
pub(crate) fn fewer_of_both(ports: Ports) -> Vec<Ports> {
    let powers = (0..32).rev().map(|i| 1 << i).filter(|&power| FEW_PORTS < power);
    let numbers: Vec<u32> = powers.chain((1..=FEW_PORTS).rev()).collect();
    let Ports { rank, node } = ports;
    let both = numbers.iter().map(|&k| Ports { rank: rank.min(k), node: node.min(k) });
    let of_rank = numbers.iter().map(|&k| Ports { rank: rank.min(k), node });
    let of_node = numbers.iter().map(|&k| Ports { rank, node: node.min(k) });
    let one = of_rank.chain(of_node).filter(|_| rank != node);
    let mut all: Vec<Ports> = Vec::new();
    for fewer in both.chain(one) {
        if fewer != ports && !all.contains(&fewer) {
            all.push(fewer);
        }
    }
    all
}
