use std::collections::BTreeMap;

use rayon::prelude::*;
use topocoll_algorithms::{ALGORITHMS, Algorithm, NotApplicable, find};
use topocoll_analysis::{BestBounds, best_bounds, counting_work};
use topocoll_schedule::{MAX_BLOCK_BYTES, Parameters, Problem};
use topocoll_topology::Machine;

use crate::price::{Price, Priced, price};
use crate::{Rejected, Subset};

/// Segments that pricing one setting may look at.
const WORK_PER_SETTING: u128 = 1 << 21;
/// Segments that pricing all settings of an algorithm may look at.
const WORK_PER_ALGORITHM: u128 = 1 << 23;
/// Segments looked at in all for settings whose floors are below the best price.
const WORK_TO_DECIDE: u128 = 1 << 24;

/// An algorithm with a setting, and its price.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The setting.
    pub parameters: Parameters,
    /// What it costs.
    pub price: Price,
    /// Predicted time over the time that none can beat.
    pub bound_ratio: f64,
}

/// From this block size on, up to the next crossover, a choice is the fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Crossover {
    /// The first block size, in bytes.
    pub block_bytes: u64,
    /// The position in [`Selection::choices`].
    pub choice: usize,
}

/// Where the two ends of an algorithm's trade of startups for volume cross.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Extremes {
    /// The choice of the fewest steps.
    pub fewest_steps: usize,
    /// The choice of the least volume.
    pub least_volume: usize,
    /// The first block size, in bytes, at which the latter is the faster.
    pub block_bytes: u64,
}

/// All that serves, ranked by predicted time.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Selection {
    /// Best first: of every algorithm the best setting, and every setting that no other of any
    /// algorithm beats in both steps and link blocks. The first is priced exactly wherever
    /// anything is.
    pub choices: Vec<Choice>,
    /// The algorithms that do not serve, and why.
    pub rejected: Vec<Rejected>,
    /// What none can beat.
    pub bound: BestBounds,
    /// The fastest choice by block size, ascending from 1 byte; only exact prices. Empty where a
    /// choice splits blocks.
    pub crossovers: Vec<Crossover>,
    /// Algorithms with a choice that splits blocks, so that what it moves does not grow in proportion
    /// to them.
    pub split: Vec<&'static str>,
    /// Of every algorithm that trades startups for volume.
    pub extremes: Vec<Extremes>,
    /// Algorithms of which only some settings were priced.
    pub subsets: Vec<Subset>,
    /// Choices priced by a floor that is below the best price: they might be better.
    pub undecided: Vec<usize>,
}

/// Ranks every algorithm and setting that serves a problem on a machine.
///
/// # Panics
/// A problem of other ranks than the machine's.
#[must_use]
pub fn select(machine: &Machine, problem: &Problem) -> Selection {
    assert_eq!(problem.ranks, machine.ranks(), "a problem of the machine's ranks");
    let bound = best_bounds(problem, machine);
    let none = Parameters::new();
    let priced: Vec<_> = (ALGORITHMS.par_iter())
        .map(|&algorithm| -> Result<_, NotApplicable> {
            algorithm.claims(problem, &*machine.topology, &none)?;
            Ok(prices(algorithm, machine, problem, &none))
        })
        .collect();
    let (mut choices, mut rejected, mut subsets) = (Vec::new(), Vec::new(), Vec::new());
    for (algorithm, priced) in ALGORITHMS.iter().zip(priced) {
        let (prices, all) = match priced {
            Ok(priced) => priced,
            Err(reason) => {
                rejected.push(Rejected::new(algorithm.name(), &reason));
                continue;
            }
        };
        if prices.len() < all {
            let algorithm = algorithm.name();
            subsets.push(Subset { algorithm, priced: prices.len(), settings: all });
        }
        choices.extend(prices.into_iter().map(|(parameters, price)| Choice {
            algorithm: algorithm.name(),
            parameters,
            price,
            bound_ratio: 0.0,
        }));
    }
    decide(&mut choices, machine, problem, &[problem.block_bytes]);
    let mut choices = ranked(choices);
    for choice in &mut choices {
        choice.bound_ratio = bound_ratio(&choice.price, &bound);
    }
    let best = choices.first().map_or(0.0, |choice| choice.price.time.total());
    let undecided = (0..choices.len())
        .filter(|&i| {
            choices[i].price.priced == Priced::AtLeast && choices[i].price.time.total() < best
        })
        .collect();
    let split = split(&choices, machine, problem);
    let crossovers = match split.is_empty() {
        true => crossovers(&choices, problem.block_bytes),
        false => Vec::new(),
    };
    let extremes = extremes(&choices, problem.block_bytes);
    Selection { choices, rejected, bound, crossovers, split, extremes, subsets, undecided }
}

/// The algorithms of which a choice moves no whole number of blocks of most sizes.
fn split(choices: &[Choice], machine: &Machine, problem: &Problem) -> Vec<&'static str> {
    /// A size that parts of no kind make up evenly: a prime.
    const PRIME: u64 = 1_048_573;
    let mut problem = *problem;
    problem.block_bytes = PRIME;
    let splits = |choice: &&Choice| {
        let algorithm = find(choice.algorithm).expect("bug: a choice of no algorithm");
        let claims = algorithm.claims(&problem, &*machine.topology, &choice.parameters);
        claims.is_ok_and(|claims| claims.bytes % u128::from(PRIME) != 0)
    };
    let mut names: Vec<_> = choices.iter().filter(splits).map(|choice| choice.algorithm).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A price over the time that none can beat.
pub(crate) fn bound_ratio(price: &Price, bound: &BestBounds) -> f64 {
    if bound.seconds > 0.0 { price.time.total() / bound.seconds } else { 1.0 }
}

/// Adds the algorithms of which no setting was priced, with the first reason.
pub(crate) fn reject(rejected: &mut Vec<Rejected>, refused: Vec<Rejected>, choices: &[Choice]) {
    for refused in refused {
        let algorithm = refused.algorithm;
        let known = rejected.iter().any(|rejected| rejected.algorithm == algorithm);
        if !known && choices.iter().all(|choice| choice.algorithm != algorithm) {
            rejected.push(refused);
        }
    }
}

/// Prices the settings of an algorithm that serves, of those that agree with `given`, or `given`
/// alone if none worth pricing does; also how many such settings there are.
///
/// Where pricing all would take too long, only those are priced that no other of the algorithm
/// beats in both claimed steps and claimed blocks.
pub(crate) fn prices(
    algorithm: &'static dyn Algorithm,
    machine: &Machine,
    problem: &Problem,
    given: &Parameters,
) -> (Vec<(Parameters, Price)>, usize) {
    let topology = &*machine.topology;
    let mut settings = algorithm.settings(problem, topology);
    settings.retain(|setting| given.iter().all(|(name, value)| setting.get(name) == Some(value)));
    if settings.is_empty() {
        let schedule = algorithm
            .plan(problem, topology, given)
            .expect("bug: an algorithm that does not serve");
        settings.push(schedule.origin.parameters);
    }
    let all = settings.len();
    let mut claimed: Vec<_> = (settings.into_iter())
        .map(|setting| {
            let claims = algorithm
                .claims(problem, topology, &setting)
                .expect("bug: a setting that does not serve");
            (setting, claims)
        })
        .collect();
    let work = |setting: &Parameters| {
        let schedule =
            algorithm.plan(problem, topology, setting).expect("bug: claims where no plan is");
        counting_work(&schedule, machine).min(WORK_PER_SETTING)
    };
    if claimed.iter().map(|(setting, _)| work(setting)).sum::<u128>() > WORK_PER_ALGORITHM {
        claimed.sort_by_key(|(_, claims)| (claims.steps, claims.bytes));
        let mut least = u128::MAX;
        claimed.retain(|(_, claims)| {
            let better = claims.bytes < least;
            least = least.min(claims.bytes);
            better
        });
    }
    let most = WORK_PER_SETTING.min(WORK_PER_ALGORITHM / claimed.len().max(1) as u128);
    let prices = claimed.into_par_iter().map(|(setting, claims)| {
        let price = price(algorithm, machine, problem, &setting, &claims, most);
        (setting, price)
    });
    (prices.collect(), all)
}

/// Counts what is priced by a floor below the best exact price at one of the block sizes, where
/// that is affordable: of every algorithm the most promising setting first, then the second.
pub(crate) fn decide(
    choices: &mut [Choice],
    machine: &Machine,
    problem: &Problem,
    block_sizes: &[u64],
) {
    let at = |price: &Price, bytes| price.scaled(problem.block_bytes, bytes).time.total();
    let mut best = vec![f64::INFINITY; block_sizes.len()];
    let lower = |best: &mut [f64], price: &Price| {
        for (best, &bytes) in best.iter_mut().zip(block_sizes) {
            *best = best.min(at(price, bytes));
        }
    };
    for choice in choices.iter().filter(|choice| choice.price.priced == Priced::Exactly) {
        lower(&mut best, &choice.price);
    }
    let promise = |choice: &Choice| {
        let ratios = best.iter().zip(block_sizes).map(|(best, &b)| at(&choice.price, b) / best);
        ratios.fold(f64::INFINITY, f64::min)
    };
    let mut floors: Vec<_> = (choices.iter().enumerate())
        .filter(|(_, choice)| choice.price.priced == Priced::AtLeast)
        .map(|(i, choice)| (promise(choice), choice.algorithm, i))
        .collect();
    floors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = BTreeMap::new();
    let mut order: Vec<_> = (floors.into_iter())
        .map(|(_, algorithm, i)| {
            let place = seen.entry(algorithm).or_insert(0);
            *place += 1;
            (*place, i)
        })
        .collect();
    order.sort_by_key(|&(place, _)| place);
    let mut work = WORK_TO_DECIDE;
    for (_, i) in order {
        let choice = &mut choices[i];
        if best.iter().zip(block_sizes).all(|(best, &bytes)| at(&choice.price, bytes) >= *best) {
            continue;
        }
        let algorithm = find(choice.algorithm).expect("bug: a choice of no algorithm");
        let (topology, setting) = (&*machine.topology, &choice.parameters);
        let claims = algorithm.claims(problem, topology, setting).expect("bug: it was priced");
        let schedule = algorithm.plan(problem, topology, setting).expect("bug: it was priced");
        let needed = counting_work(&schedule, machine);
        if needed <= work {
            work -= needed;
            choice.price = price(algorithm, machine, problem, setting, &claims, needed);
            if choice.price.priced == Priced::Exactly {
                lower(&mut best, &choice.price);
            }
        }
    }
}

/// Sorts by time and keeps the best of every algorithm and what nothing beats in both steps and
/// link blocks.
pub(crate) fn ranked(mut choices: Vec<Choice>) -> Vec<Choice> {
    // Ties go to the order of the table; an exact price comes before a floor.
    choices.sort_by(|a, b| {
        let key =
            |choice: &Choice| (choice.price.time.total(), choice.price.priced == Priced::AtLeast);
        key(a).0.total_cmp(&key(b).0).then(key(a).1.cmp(&key(b).1))
    });
    if let Some(first) = choices.iter().position(|choice| choice.price.priced == Priced::Exactly) {
        choices[..=first].rotate_right(1);
    }
    // The fewest link blocks of all with fewer steps than a choice tell whether it is beaten.
    let mut by_steps: Vec<(u64, f64)> = (choices.iter())
        .filter(|choice| choice.price.priced == Priced::Exactly)
        .map(|choice| (choice.price.steps, choice.price.link_blocks))
        .collect();
    by_steps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut least = f64::INFINITY;
    for (_, link_blocks) in &mut by_steps {
        least = least.min(*link_blocks);
        *link_blocks = least;
    }
    let beaten = |price: &Price| {
        let fewer = by_steps.partition_point(|&(steps, _)| steps < price.steps);
        fewer > 0 && by_steps[fewer - 1].1 < price.link_blocks
    };
    let mut seen = Vec::new();
    choices.retain(|choice| {
        let first = !seen.contains(&choice.algorithm);
        if first {
            seen.push(choice.algorithm);
        }
        first || choice.price.priced == Priced::Exactly && !beaten(&choice.price)
    });
    choices
}

/// The fastest choice of every block size: the lower envelope of lines in the block size.
pub(crate) fn crossovers(choices: &[Choice], block_bytes: u64) -> Vec<Crossover> {
    let lines: Vec<_> = choices.iter().map(|choice| choice.price.line(block_bytes)).collect();
    let exact = |i: &usize| choices[*i].price.priced != Priced::AtLeast;
    let at = |i: usize, bytes: u64| lines[i].0 + lines[i].1 * bytes as f64;
    let mut out = Vec::new();
    let mut bytes = 1;
    // Of those as fast the flattest, which stays so.
    let faster = |&a: &usize, &b: &usize, bytes: u64| {
        at(a, bytes).total_cmp(&at(b, bytes)).then(lines[a].1.total_cmp(&lines[b].1))
    };
    let mut fastest = (0..choices.len()).filter(exact).min_by(|a, b| faster(a, b, 1));
    while let Some(now) = fastest {
        out.push(Crossover { block_bytes: bytes, choice: now });
        // The first line to come below the present one; of several the one that is fastest there.
        let next = (0..choices.len())
            .filter(exact)
            .filter_map(|i| Some((first_below(lines[now], lines[i], bytes)?, i)))
            .min_by(|a, b| a.0.cmp(&b.0).then_with(|| faster(&a.1, &b.1, a.0)));
        fastest = next.map(|(from, i)| {
            bytes = from;
            i
        });
    }
    out
}

/// The first block size after `bytes` at which the line `other` is below `line`.
fn first_below(line: (f64, f64), other: (f64, f64), bytes: u64) -> Option<u64> {
    let (saved, excess) = (line.1 - other.1, other.0 - line.0);
    if saved <= 0.0 {
        return None;
    }
    let cross = excess / saved;
    let from = (cross.floor() + 1.0).max(bytes as f64 + 1.0);
    (from <= MAX_BLOCK_BYTES as f64).then_some(from as u64)
}

fn extremes(choices: &[Choice], block_bytes: u64) -> Vec<Extremes> {
    let mut out = Vec::new();
    for algorithm in ALGORITHMS {
        let own = || {
            let own = |i: &usize| choices[*i].algorithm == algorithm.name();
            (0..choices.len()).filter(own).filter(|&i| choices[i].price.priced == Priced::Exactly)
        };
        let line = |i: usize| choices[i].price.line(block_bytes);
        let fewest = own().min_by(|&a, &b| {
            let key = |i: usize| (choices[i].price.steps, choices[i].price.link_blocks);
            key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
        });
        // Of equals the last, the largest radix.
        let least = own().rev().min_by(|&a, &b| {
            let key = |i: usize| (choices[i].price.link_blocks, choices[i].price.steps);
            key(a).0.total_cmp(&key(b).0).then(key(a).1.cmp(&key(b).1))
        });
        if let (Some(fewest_steps), Some(least_volume)) = (fewest, least)
            && fewest_steps != least_volume
            && let Some(block_bytes) = first_below(line(fewest_steps), line(least_volume), 0)
        {
            out.push(Extremes { fewest_steps, least_volume, block_bytes });
        }
    }
    out
}
