//! Schedules for fewer ports than there are.

use rayon::prelude::*;
use topocoll_algorithms::{Algorithm, FEWER_PORTS};
use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::{Ports, View, parallel};

use super::candidate::Candidate;
use super::views::{Kind, of_view};
use super::{Asked, Pool};
use crate::envelope::{bends, envelope, promise, time};

/// The part of the budget for schedules for fewer ports.
const PART_FOR_FEWER_PORTS: u128 = 64;
/// Ports of a rank, or of a node, up to which all smaller numbers are tried together.
const FEW_PORTS: u32 = 8;

impl Pool<'_> {
    /// Adds the schedules for fewer ports, on the machine and on these views, as far as their lower bound is
    /// below the least exact time at some block size.
    pub(super) fn try_fewer_ports(&mut self, views: &[View]) {
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
            let limit = limit(ports, several);
            self.add_with(&limit, None);
            views.iter().for_each(|view| self.add_with(&limit, Some((view, Kind::Rules))));
            if !self.decide() {
                break;
            }
        }
        self.drop_uncounted();
    }

    /// Whether the lower bound of all schedules with these ports is below the least exact time at some
    /// block size, of powers of 2 and where the fastest candidate changes.
    pub(super) fn may_gain(&self, ports: Ports) -> bool {
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

    /// Adds the candidates for these ports, on the machine or of one kind on a view, that differ from those
    /// known; on a view those that may be the fastest.
    pub(super) fn add_with(&mut self, limit: &Parameters, on: Option<(&View, Kind)>) {
        let (view, kind) = on.unzip();
        let (request, worth) = (self.exchange().request(), self.worth());
        let mut limit = limit.clone();
        limit.extend(view.map(of_view).into_iter().flatten());
        let (lines, _) = self.lines();
        let lowest = envelope(&lines);
        let sizes = bends(&lowest);
        let place_of = |asked: &[Asked<'_>], name: &str| {
            asked.iter().position(|a| a.algorithm.info().name == name)
        };
        let algorithms: Vec<&dyn Algorithm> = match on {
            None => self.asked.iter().map(|asked| asked.algorithm).collect(),
            Some((view, kind)) => {
                let fits = |one: &&dyn Algorithm| kind.may_differ(view, *one, &request, &limit);
                self.exchange().algorithms().filter(fits).collect()
            }
        };
        let new: Vec<Vec<Candidate>> = parallel::each(&algorithms)
            .map(|&algorithm| {
                let info = algorithm.info();
                let seen = request.seen(view);
                let Ok((fewer, _)) = seen.fewer_ports(info, &limit) else { return Vec::new() };
                let may = |setting: &Parameters| {
                    let expected = || fewer.expected(algorithm, setting);
                    fewer.search(algorithm, setting).is_none_or(|search| {
                        kind != Some(Kind::Rules)
                            && worth(&search.least)
                                .is_some_and(|share| self.searches.may(&search, share))
                            && expected().is_none_or(|claims| worth(&claims).is_some())
                    })
                };
                if !may(&Parameters::new()) {
                    return Vec::new();
                }
                let mut settings = fewer.candidates(algorithm).unwrap_or_default();
                settings.retain(may);
                let place = place_of(&self.asked, &info.name);
                let known: Vec<_> =
                    self.candidates.iter().filter(|one| Some(one.asked) == place).collect();
                let solve = |setting: Parameters| {
                    let given: Parameters = setting.into_iter().chain(limit.clone()).collect();
                    let solution = request.solve(algorithm, &given).ok()?;
                    let price = self.pricing.claimed(&solution);
                    let floor = price.line(self.reference());
                    if view.is_some() && promise(floor, &lines, &lowest, &sizes).is_none() {
                        return None;
                    }
                    let new = Candidate::new(&solution, price, &self.pricing);
                    let same = known.iter().any(|known| known.costs_as_much_as(&new, view));
                    (!same).then_some(Candidate { other: true, ..new })
                };
                settings.into_iter().filter_map(solve).collect()
            })
            .collect();
        drop(worth);
        for (algorithm, new) in algorithms.into_iter().zip(new) {
            if new.is_empty() {
                continue;
            }
            let name = &*algorithm.info().name;
            let place = place_of(&self.asked, name).unwrap_or_else(|| {
                // It does not apply to the machine itself.
                self.rejected.retain(|rejected| rejected.algorithm != name);
                let (given, refused) = (Parameters::new(), Vec::new());
                self.asked.push(Asked { algorithm, given, refused, partly_priced: None });
                self.asked.len() - 1
            });
            self.candidates.extend(new.into_iter().map(|new| Candidate { asked: place, ..new }));
        }
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
