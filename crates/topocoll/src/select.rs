use rayon::prelude::*;
use topocoll_algorithms::{ALGORITHMS, Algorithm, NotApplicable, find};
use topocoll_analysis::{BestBounds, Progress, best_bounds, counting_work};
use topocoll_schedule::{MAX_BLOCK_BYTES, Parameters, Problem};
use topocoll_topology::Machine;

use crate::price::{MEMORY, Price, Priced, Pricing};
use crate::{PartlyPriced, Rejected};

/// Segments that pricing one setting may look at.
const WORK_PER_SETTING: u128 = 1 << 21;
/// Segments that pricing all settings of an algorithm may look at.
const WORK_PER_ALGORITHM: u128 = 1 << 23;

/// What a ranking may take, beyond a second.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Budget<'p> {
    /// Bytes of memory that counting one setting may take.
    pub memory: u128,
    /// Route segments looked at in all for settings whose floors are below the best exact price.
    pub work: u128,
    /// Hears of these segments.
    pub progress: Progress<'p>,
}

/// 1 GiB, and some 10 seconds on two cores.
impl Default for Budget<'_> {
    fn default() -> Self {
        Self { memory: MEMORY, work: 1 << 28, progress: Progress::UNHEARD }
    }
}

impl Budget<'_> {
    /// The same memory, and part of a second.
    #[must_use]
    pub fn quick() -> Self {
        Self { work: 1 << 24, ..Self::default() }
    }
}

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
    /// By rising time, or by the floor of a time; of equal ones an exact price comes first. Of every
    /// algorithm the best setting, and every setting that no other of any algorithm beats in both
    /// steps and link blocks.
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
    /// Algorithms of which only some settings were priced; the floors of the others are above the
    /// best price.
    pub subsets: Vec<PartlyPriced>,
}

impl Selection {
    /// The choice to take: the fastest that is priced exactly; where nothing is, the one of the
    /// least floor.
    #[must_use]
    pub fn best(&self) -> Option<&Choice> {
        self.choices.get(self.undecided().len()).or(self.choices.first())
    }

    /// The choices that may be faster than the best: their floors are below its price, and to price
    /// them exactly takes more than the budget. All choices where nothing is priced exactly.
    #[must_use]
    pub fn undecided(&self) -> &[Choice] {
        let floor = |choice: &&Choice| choice.price.priced == Priced::AtLeast;
        &self.choices[..self.choices.iter().take_while(floor).count()]
    }
}

/// Ranks every algorithm and setting that serves a problem on a machine, within the default
/// [`Budget`].
///
/// # Panics
/// A problem of other ranks than the machine's.
#[must_use]
pub fn select(machine: &Machine, problem: &Problem) -> Selection {
    select_within(machine, problem, &Budget::default())
}

/// Ranks every algorithm and setting that serves a problem on a machine.
///
/// A setting that takes too long to count has a floor for a price. Those whose floors are below the
/// best exact price are counted, the least floor first, as far as the budget goes: see
/// [`Selection::undecided`].
///
/// # Panics
/// A problem of other ranks than the machine's.
#[must_use]
pub fn select_within(machine: &Machine, problem: &Problem, budget: &Budget<'_>) -> Selection {
    assert_eq!(problem.ranks, machine.ranks(), "a problem of the machine's ranks");
    let bound = best_bounds(problem, machine, None);
    let pricing = Pricing::new(machine, problem, budget.memory);
    let none = Parameters::new();
    let priced: Vec<_> = (ALGORITHMS.par_iter())
        .map(|&algorithm| -> Result<_, NotApplicable> {
            algorithm.claims(problem, &*machine.topology, &none)?;
            Ok(prices(algorithm, &pricing, &none))
        })
        .collect();
    let (mut choices, mut rejected, mut subsets) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = Vec::new();
    for (algorithm, priced) in ALGORITHMS.iter().zip(priced) {
        let name = algorithm.name();
        let prices = match priced {
            Ok(priced) => priced,
            Err(reason) => {
                rejected.push(Rejected::new(name, &reason));
                continue;
            }
        };
        if !prices.left.is_empty() {
            subsets.push(prices.subset(name));
        }
        let choice =
            |(parameters, price)| Choice { algorithm: name, parameters, price, bound_ratio: 0.0 };
        choices.extend(prices.priced.into_iter().map(choice));
        left.extend(prices.left.into_iter().map(choice));
    }
    let looked_at = choices.len();
    choices.extend(left);
    decide(&mut choices, &pricing, &[problem.block_bytes], budget);
    let best = best_time(&choices);
    let mut position = 0;
    choices.retain(|choice| {
        position += 1;
        let price = &choice.price;
        position <= looked_at || price.priced == Priced::Exactly || price.time.total() < best
    });
    for choice in &mut choices {
        choice.bound_ratio = bound_ratio(&choice.price, &bound);
    }
    let choices = ranked(choices);
    let split = split(&choices, machine, problem);
    let crossovers = match split.is_empty() {
        true => crossovers(&choices, problem.block_bytes),
        false => Vec::new(),
    };
    let extremes = extremes(&choices, problem.block_bytes);
    Selection { choices, rejected, bound, crossovers, split, extremes, subsets }
}

/// The least exact time.
fn best_time(choices: &[Choice]) -> f64 {
    let exact = choices.iter().filter(|choice| choice.price.priced == Priced::Exactly);
    exact.map(|choice| choice.price.time.total()).fold(f64::INFINITY, f64::min)
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

/// The settings of an algorithm with their prices.
pub(crate) struct Prices {
    /// Those that were looked at.
    pub(crate) priced: Vec<(Parameters, Price)>,
    /// The others, by floors: one that was looked at is claimed to take no more steps and bytes.
    pub(crate) left: Vec<(Parameters, Price)>,
}

impl Prices {
    /// How many were looked at.
    pub(crate) fn subset(&self, algorithm: &'static str) -> PartlyPriced {
        let priced = self.priced.len();
        PartlyPriced { algorithm, priced, settings: priced + self.left.len() }
    }
}

/// Prices the settings of an algorithm that serves, of those that agree with `given`, or `given`
/// alone if none worth pricing does.
///
/// Where pricing all would take too long, only those are looked at that no other of the algorithm
/// beats in both claimed steps and claimed blocks.
pub(crate) fn prices(
    algorithm: &'static dyn Algorithm,
    pricing: &Pricing<'_>,
    given: &Parameters,
) -> Prices {
    let machine = pricing.machine;
    let mut settings = algorithm.settings(pricing.problem, &*machine.topology);
    settings.retain(|setting| given.iter().all(|(name, value)| setting.get(name) == Some(value)));
    if settings.is_empty() {
        settings.push(pricing.schedule(algorithm, given).origin.parameters);
    }
    let claimed = settings.into_iter().map(|setting| {
        let claims = pricing.claims(algorithm, &setting);
        (setting, claims)
    });
    let mut claimed: Vec<_> = claimed.collect();
    let work = |setting: &Parameters| {
        counting_work(&pricing.schedule(algorithm, setting), machine, None).min(WORK_PER_SETTING)
    };
    let mut left = Vec::new();
    if claimed.iter().map(|(setting, _)| work(setting)).sum::<u128>() > WORK_PER_ALGORITHM {
        claimed.sort_by_key(|(_, claims)| (claims.steps, claims.bytes));
        let mut least = u128::MAX;
        (claimed, left) = claimed.into_iter().partition(|(_, claims)| {
            let better = claims.bytes < least;
            least = least.min(claims.bytes);
            better
        });
    }
    let most = WORK_PER_SETTING.min(WORK_PER_ALGORITHM / claimed.len().max(1) as u128);
    let priced = claimed.into_par_iter().map(|(setting, claims)| {
        let price = pricing.price(algorithm, &setting, &claims, most);
        (setting, price)
    });
    let floors = left.into_iter().map(|(setting, claims)| (setting, pricing.claimed(&claims)));
    Prices { priced: priced.collect(), left: floors.collect() }
}

/// Counts what is priced by a floor below the best exact price at one of the block sizes, the least
/// floor first, as far as the budget goes.
pub(crate) fn decide(
    choices: &mut [Choice],
    pricing: &Pricing<'_>,
    block_sizes: &[u64],
    budget: &Budget<'_>,
) {
    let priced_at = pricing.problem.block_bytes;
    let at = |price: &Price, bytes| price.scaled(priced_at, bytes).time.total();
    let mut best = vec![f64::INFINITY; block_sizes.len()];
    let lower = |best: &mut [f64], price: &Price| {
        for (best, &bytes) in best.iter_mut().zip(block_sizes) {
            *best = best.min(at(price, bytes));
        }
    };
    for choice in choices.iter().filter(|choice| choice.price.priced == Priced::Exactly) {
        lower(&mut best, &choice.price);
    }
    // Its least part of the best price.
    let promise = |best: &[f64], price: &Price| {
        let parts = best.iter().zip(block_sizes).map(|(best, &bytes)| (at(price, bytes), *best));
        let open = parts.filter(|(floor, best)| floor < best);
        open.map(|(floor, best)| floor / best).fold(f64::INFINITY, f64::min)
    };
    let mut open: Vec<_> = (choices.iter().enumerate())
        .filter(|(_, choice)| choice.price.priced == Priced::AtLeast)
        .map(|(i, choice)| (promise(&best, &choice.price), i))
        .filter(|(promise, _)| promise.is_finite())
        .collect();
    open.sort_by(|a, b| a.0.total_cmp(&b.0));
    let open = open.into_iter().map(|(_, i)| {
        let algorithm = find(choices[i].algorithm).expect("bug: a choice of no algorithm");
        let schedule = pricing.schedule(algorithm, &choices[i].parameters);
        let work = counting_work(&schedule, pricing.machine, None);
        (i, schedule, work)
    });
    let open: Vec<_> = open.filter(|(.., work)| *work <= budget.work).collect();
    let all = open.iter().fold(0u128, |all, (.., work)| all.saturating_add(*work));
    let mut left = budget.work;
    let length = |work: u128| u64::try_from(work).unwrap_or(u64::MAX);
    if !open.is_empty() {
        (budget.progress.starting)(length(all.min(budget.work)));
    }
    for (i, schedule, work) in open {
        let price = &mut choices[i].price;
        if !promise(&best, price).is_finite() || work > left {
            continue;
        }
        left -= work;
        let per_step = length(work / u128::from(schedule.rule().steps()).max(1));
        if let Some(exact) = pricing.counted(&schedule, || (budget.progress.done)(per_step)) {
            *price = exact;
            lower(&mut best, &exact);
        }
    }
}

/// Sorts by time and keeps the best of every algorithm, what might be faster than the best exact
/// price, and what nothing beats in both steps and link blocks.
pub(crate) fn ranked(mut choices: Vec<Choice>) -> Vec<Choice> {
    let floor = |choice: &Choice| choice.price.priced == Priced::AtLeast;
    // Ties go to the order of the table; an exact price comes before a floor.
    choices.sort_by(|a, b| {
        let by_time = a.price.time.total().total_cmp(&b.price.time.total());
        by_time.then(floor(a).cmp(&floor(b)))
    });
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
    let best = best_time(&choices);
    let mut seen = Vec::new();
    choices.retain(|choice| {
        // The first of an algorithm, and the first of it that is priced exactly.
        let kind = (choice.algorithm, floor(choice));
        let first = !seen.contains(&kind) && !seen.contains(&(choice.algorithm, false));
        if first {
            seen.push(kind);
        }
        let price = &choice.price;
        first || if floor(choice) { price.time.total() < best } else { !beaten(price) }
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
