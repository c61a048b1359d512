use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;
use topocoll_algorithms::{Algorithm, NotApplicable};
use topocoll_analysis::{BestBounds, counting_work};
use topocoll_schedule::{MAX_BLOCK_BYTES, Parameters, Schedule};

use crate::exchange::{Budget, agrees};
use crate::price::{Price, Priced, Pricing};
use crate::{Exchange, PartlyPriced, Rejected};

/// The most segments for pricing one setting.
const WORK_PER_SETTING: u128 = 1 << 21;
/// The most segments for pricing all settings of an algorithm.
const WORK_PER_ALGORITHM: u128 = 1 << 23;

/// An algorithm with a setting, and its price.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The algorithm.
    pub algorithm: String,
    /// The setting.
    pub parameters: Parameters,
    /// Its cost.
    pub price: Price,
    /// Predicted time divided by the lower bound.
    pub bound_ratio: f64,
    /// Its charged volume divided by the least of any schedule of as many steps; `None` where that is
    /// not known, or the price is a floor.
    pub tradeoff_ratio: Option<f64>,
}

impl Choice {
    /// A choice not yet compared with the bound.
    pub(crate) fn new(algorithm: &str, parameters: Parameters, price: Price) -> Self {
        let (algorithm, bound_ratio) = (algorithm.to_owned(), f64::NAN);
        Self { algorithm, parameters, price, bound_ratio, tradeoff_ratio: None }
    }

    /// The same, compared with a bound.
    pub(crate) fn over(mut self, bound: &BestBounds) -> Self {
        let time = self.price.time.total();
        self.bound_ratio = if bound.seconds > 0.0 { time / bound.seconds } else { 1.0 };
        let Price { steps, link_blocks, priced, .. } = self.price;
        self.tradeoff_ratio = (bound.link_blocks_in(steps))
            .filter(|&least| least > 0.0 && priced == Priced::Exactly)
            .map(|least| link_blocks / least);
        self
    }
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

/// The crossover of an algorithm's settings with the fewest startups and with the least volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Extremes {
    /// The choice with the fewest steps.
    pub fewest_steps: usize,
    /// The choice with the least volume.
    pub least_volume: usize,
    /// The first block size, in bytes, at which the latter is faster.
    pub block_bytes: u64,
}

/// The settings that apply, ranked by predicted time.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Selection {
    /// By ascending time or floor; at equal times, exact prices come first. Has the best setting of
    /// every algorithm, and every setting on the Pareto front of steps and link blocks.
    pub choices: Vec<Choice>,
    /// Algorithms that do not apply, and the reasons.
    pub rejected: Vec<Rejected>,
    /// The lower bound.
    pub bound: BestBounds,
    /// The fastest choice by block size, ascending; only exact prices. From 1 byte, or the least size from which no
    /// floor is below. Empty if a choice splits blocks, or the best is undecided.
    pub crossovers: Vec<Crossover>,
    /// The size up to which they hold, if a floor is below beyond.
    pub crossovers_to: Option<u64>,
    /// Algorithms with a choice that splits blocks, so that its volume does not grow in proportion
    /// to them.
    pub split: Vec<String>,
    /// One crossover for each algorithm that trades startups for volume.
    pub extremes: Vec<Extremes>,
    /// Algorithms of which only some settings were priced; the floors of the others are above the
    /// best price.
    pub partly_priced: Vec<PartlyPriced>,
}

impl Selection {
    /// A selection without choices.
    pub(crate) fn nothing(bound: BestBounds) -> Self {
        Self {
            choices: Vec::new(),
            rejected: Vec::new(),
            bound,
            crossovers: Vec::new(),
            crossovers_to: None,
            split: Vec::new(),
            extremes: Vec::new(),
            partly_priced: Vec::new(),
        }
    }

    /// The best choice: the fastest with an exact price, or without exact prices the one with the
    /// least floor.
    #[must_use]
    pub fn best(&self) -> Option<&Choice> {
        self.choices.get(self.undecided().len()).or(self.choices.first())
    }

    /// The choices that may be faster than the best: their floors are below its price, and exact
    /// prices exceed the budget. All choices if no price is exact.
    #[must_use]
    pub fn undecided(&self) -> &[Choice] {
        let floor = |choice: &&Choice| choice.price.priced == Priced::AtLeast;
        &self.choices[..self.choices.iter().take_while(floor).count()]
    }

    /// Whether one choice is the fastest at every block size.
    #[must_use]
    pub fn is_for_all_sizes(&self) -> bool {
        let from = |crossover: &Crossover| crossover.block_bytes;
        self.crossovers.iter().map(from).eq([1]) && self.crossovers_to.is_none()
    }

    /// Keeps the crossovers around `block_bytes` at which no floor is below.
    fn keep_decided(&mut self, floors: &[Line], block_bytes: u64) {
        let line = |crossover: &Crossover| self.choices[crossover.choice].price.line(block_bytes);
        let lines: Vec<Line> = self.crossovers.iter().map(line).collect();
        let crossed: Vec<u64> = self.crossovers.iter().map(|one| one.block_bytes).collect();
        let Some(sizes) = decided(&lines, &crossed, floors, block_bytes) else {
            self.crossovers.clear();
            return;
        };
        let (from, to) = sizes.into_inner();
        self.crossovers.retain(|crossover| crossover.block_bytes <= to);
        let before = self.crossovers.partition_point(|crossover| crossover.block_bytes <= from);
        self.crossovers.drain(..before.saturating_sub(1));
        if let Some(first) = self.crossovers.first_mut() {
            first.block_bytes = first.block_bytes.max(from);
        }
        self.crossovers_to = (to < MAX_BLOCK_BYTES).then_some(to);
    }
}

/// Seconds, and seconds per byte of block.
type Line = (f64, f64);

/// The block sizes around `bytes` at which no floor is below the fastest of `lines`, which changes at `crossed`. `None`
/// if one is below at `bytes`.
fn decided(
    lines: &[Line],
    crossed: &[u64],
    floors: &[Line],
    bytes: u64,
) -> Option<RangeInclusive<u64>> {
    /// What rounding may take from a floor that equals the fastest time.
    const ROUNDED: f64 = 1e-9;
    let at = |line: &Line, bytes: u64| line.0 + line.1 * bytes as f64;
    let fastest = |bytes| lines.iter().map(|line| at(line, bytes)).fold(f64::INFINITY, f64::min);
    let ends = crossed.iter().flat_map(|&size| [size.saturating_sub(1).max(1), size]);
    let mut sizes: Vec<u64> = [1].into_iter().chain(ends).chain([MAX_BLOCK_BYTES]).collect();
    sizes.sort_unstable();
    let (mut from, mut to) = (1, MAX_BLOCK_BYTES);
    for floor in floors {
        // The fastest time is concave, so a floor is below it in one interval, and if so at one of the sizes.
        let is_open = |bytes: u64| at(floor, bytes) < fastest(bytes) * (1.0 - ROUNDED);
        if is_open(bytes) {
            return None;
        }
        let (below, above) = sizes.split_at(sizes.partition_point(|&size| size < bytes));
        if let Some(&open) = below.iter().rev().find(|&&size| is_open(size)) {
            from = from.max(first(open..bytes, |bytes| !is_open(bytes)));
        }
        if let Some(&open) = above.iter().find(|&&size| is_open(size)) {
            to = to.min(first(bytes..open, is_open) - 1);
        }
    }
    Some(from..=to)
}

/// The first number of a range of which something holds, if it holds of all after it too; or the end.
fn first(mut range: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    while !range.is_empty() {
        let middle = range.start + (range.end - range.start) / 2;
        if holds(middle) {
            range.end = middle;
        } else {
            range.start = middle + 1;
        }
    }
    range.start
}

/// Ranks the settings that apply to blocks of equal sizes.
pub(crate) fn select(exchange: &Exchange<'_>) -> Selection {
    let bound = exchange.bounds();
    let pricing = Pricing::new(exchange);
    let algorithms: Vec<_> = exchange.algorithms().collect();
    let all: Vec<_> =
        algorithms.par_iter().map(|&algorithm| prices(algorithm, &pricing, None)).collect();
    let mut selection = Selection::nothing(bound);
    let (mut candidates, mut left) = (Vec::new(), Vec::new());
    for (algorithm, prices) in algorithms.iter().zip(all) {
        let name = &algorithm.info().name;
        match prices {
            Ok(prices) => {
                selection.partly_priced.extend(prices.partly(name));
                candidates.extend(prices.priced);
                left.extend(prices.left);
            }
            Err(reason) => selection.rejected.push(Rejected::new(name, &reason)),
        }
    }
    let looked_at = candidates.len();
    candidates.extend(left);
    decide(&mut candidates, &pricing, &[exchange.problem().block_bytes]);
    let best = best_time(candidates.iter().map(|candidate| &candidate.price));
    let floors: Vec<Price> = (candidates.iter().map(|candidate| candidate.price))
        .filter(|price| price.priced == Priced::AtLeast)
        .collect();
    let mut position = 0;
    candidates.retain(|Candidate { price, .. }| {
        position += 1;
        position <= looked_at || price.priced == Priced::Exactly || price.time.total() < best
    });
    let choices = candidates.into_iter().map(Choice::from).collect();
    selection.choices = ranked(choices, &bound);
    selection.split = split(&selection.choices, exchange);
    let block_bytes = exchange.problem().block_bytes;
    if selection.split.is_empty() {
        selection.crossovers = crossovers(&selection.choices, block_bytes);
        let per_block_byte = exchange.machine().least_per_byte();
        let floors = floors
            .iter()
            .map(|floor| (floor.line(block_bytes).0, floor.link_blocks * per_block_byte));
        selection.keep_decided(&floors.collect::<Vec<_>>(), block_bytes);
    }
    selection.extremes = extremes(&selection.choices, exchange);
    selection
}

/// The least exact time.
fn best_time<'p>(prices: impl Iterator<Item = &'p Price>) -> f64 {
    let exact = prices.filter(|price| price.priced == Priced::Exactly);
    exact.map(|price| price.time.total()).fold(f64::INFINITY, f64::min)
}

/// The algorithms with a choice that splits blocks of most sizes.
fn split(choices: &[Choice], exchange: &Exchange<'_>) -> Vec<String> {
    /// A prime size, which no number of parts divides evenly.
    const PRIME: u64 = 1_048_573;
    let exchange = exchange.sized(PRIME);
    let splits = |choice: &&Choice| {
        let algorithm = exchange.find(&choice.algorithm).expect("bug: an unknown algorithm");
        let solution = exchange.request().solve(algorithm, &choice.parameters);
        solution.is_ok_and(|solution| solution.claims.bytes % u128::from(PRIME) != 0)
    };
    let split = choices.iter().filter(splits).map(|choice| choice.algorithm.clone());
    let mut names: Vec<_> = split.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Adds the algorithms without a priced setting, with the first reason.
pub(crate) fn reject(rejected: &mut Vec<Rejected>, refused: Vec<Rejected>, choices: &[Choice]) {
    for refused in refused {
        let algorithm = refused.algorithm.clone();
        let known = rejected.iter().any(|rejected| rejected.algorithm == algorithm);
        if !known && choices.iter().all(|choice| choice.algorithm != algorithm) {
            rejected.push(refused);
        }
    }
}

/// A setting with its price.
pub(crate) struct Candidate {
    algorithm: String,
    pub(crate) parameters: Parameters,
    pub(crate) price: Price,
    /// The schedule to count if the price is a floor.
    schedule: Option<Schedule>,
}

impl From<Candidate> for Choice {
    fn from(candidate: Candidate) -> Self {
        Self::new(&candidate.algorithm, candidate.parameters, candidate.price)
    }
}

/// The settings of an algorithm with their prices.
pub(crate) struct Prices {
    /// The priced settings.
    pub(crate) priced: Vec<Candidate>,
    /// Settings left out, by floors: for each, a priced setting claims no more steps and bytes.
    pub(crate) left: Vec<Candidate>,
}

impl Prices {
    /// The number priced, if not all.
    pub(crate) fn partly(&self, algorithm: &str) -> Option<PartlyPriced> {
        let (priced, left) = (self.priced.len(), self.left.len());
        let algorithm = algorithm.to_owned();
        (left > 0).then(|| PartlyPriced { algorithm, priced, settings: priced + left })
    }
}

/// Prices the candidates of an algorithm that agree with what is asked for, or only this if none
/// agrees. Each is solved once. Without a question an algorithm may be left out of the ranking.
///
/// If counting all settings without an exact price by claims takes too long, it counts only those
/// on the algorithm's Pareto front of claimed steps and claimed blocks.
///
/// # Errors
/// No setting applies.
pub(crate) fn prices(
    algorithm: &dyn Algorithm,
    pricing: &Pricing<'_>,
    asked: Option<&Parameters>,
) -> Result<Prices, NotApplicable> {
    let (request, machine) = (pricing.exchange.request(), pricing.exchange.machine());
    let all = Parameters::new();
    let given = asked.unwrap_or(&all);
    let mut settings = match request.candidates(algorithm) {
        Err(NotApplicable::Unranked { .. }) if asked.is_some() => Vec::new(),
        candidates => candidates?,
    };
    settings.retain(|setting| agrees(algorithm.info(), setting, given));
    let solve = |setting: &Parameters| request.solve(algorithm, setting);
    let solved = settings.par_iter().map(|setting| solve(setting).ok());
    let mut solutions: Vec<_> = solved.flatten().collect();
    if solutions.is_empty() {
        solutions.push(solve(settings.first().unwrap_or(given))?);
    }
    let candidate = |(schedule, price): (Schedule, Price)| Candidate {
        algorithm: algorithm.info().name.clone().into_owned(),
        parameters: schedule.origin.parameters.clone(),
        price,
        schedule: (price.priced == Priced::AtLeast).then_some(schedule),
    };
    let work = |schedule: &Schedule| counting_work(schedule, machine, None).min(WORK_PER_SETTING);
    let open = solutions.iter().filter(|solution| pricing.exactly(&solution.claims).is_none());
    let mut left = Vec::new();
    if open.map(|solution| work(&solution.schedule)).sum::<u128>() > WORK_PER_ALGORITHM {
        solutions.sort_by_key(|solution| (solution.claims.steps, solution.claims.bytes));
        let mut least = u128::MAX;
        (solutions, left) = solutions.into_iter().partition(|solution| {
            let better = solution.claims.bytes < least;
            least = least.min(solution.claims.bytes);
            better
        });
    }
    let most = WORK_PER_SETTING.min(WORK_PER_ALGORITHM / solutions.len().max(1) as u128);
    let priced = solutions.into_par_iter().map(|solution| {
        let price = pricing.price(&solution, most);
        candidate((solution.schedule, price))
    });
    let left = left.into_iter().map(|solution| {
        let price = pricing.claimed(&solution.claims);
        candidate((solution.schedule, price))
    });
    Ok(Prices { priced: priced.collect(), left: left.collect() })
}

/// Counts settings whose floor is below the best exact price at one of the block sizes, the least
/// floor first, within the budget.
pub(crate) fn decide(candidates: &mut [Candidate], pricing: &Pricing<'_>, block_sizes: &[u64]) {
    let budget: &Budget<'_> = pricing.exchange.limits();
    let priced_at = pricing.exchange.problem().block_bytes;
    let at = |price: &Price, bytes| price.scaled(priced_at, bytes).time.total();
    let mut best = vec![f64::INFINITY; block_sizes.len()];
    let lower = |best: &mut [f64], price: &Price| {
        for (best, &bytes) in best.iter_mut().zip(block_sizes) {
            *best = best.min(at(price, bytes));
        }
    };
    for candidate in candidates.iter().filter(|candidate| candidate.price.priced == Priced::Exactly)
    {
        lower(&mut best, &candidate.price);
    }
    // Its least share of the best price.
    let promise = |best: &[f64], price: &Price| {
        let parts = best.iter().zip(block_sizes).map(|(best, &bytes)| (at(price, bytes), *best));
        let open = parts.filter(|(floor, best)| floor < best);
        open.map(|(floor, best)| floor / best).fold(f64::INFINITY, f64::min)
    };
    let mut open: Vec<_> = (candidates.iter().enumerate())
        .filter(|(_, candidate)| candidate.price.priced == Priced::AtLeast)
        .map(|(i, candidate)| (promise(&best, &candidate.price), i))
        .filter(|(promise, _)| promise.is_finite())
        .collect();
    open.sort_by(|a, b| a.0.total_cmp(&b.0));
    let open = open.into_iter().map(|(_, i)| {
        let schedule = candidates[i].schedule.clone().expect("bug: a floor without a schedule");
        let work = counting_work(&schedule, pricing.exchange.machine(), None);
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
        let price = &mut candidates[i].price;
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

/// Sorts by time. Keeps the best of every algorithm, settings that may be faster than the best
/// exact price, and the Pareto front of steps and link blocks.
pub(crate) fn ranked(mut choices: Vec<Choice>, bound: &BestBounds) -> Vec<Choice> {
    let floor = |choice: &Choice| choice.price.priced == Priced::AtLeast;
    // Ties keep the order of the table; an exact price comes before a floor.
    choices.sort_by(|a, b| {
        let by_time = a.price.time.total().total_cmp(&b.price.time.total());
        by_time.then(floor(a).cmp(&floor(b)))
    });
    // A choice is compared with the fewest link blocks of all choices with fewer steps.
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
    let best = best_time(choices.iter().map(|choice| &choice.price));
    let mut seen = Vec::new();
    choices.retain(|choice| {
        // The first choice of an algorithm, and its first choice with an exact price.
        let kind = (choice.algorithm.clone(), floor(choice));
        let first = !seen.contains(&kind) && !seen.contains(&(choice.algorithm.clone(), false));
        if first {
            seen.push(kind);
        }
        let price = &choice.price;
        first || if floor(choice) { price.time.total() < best } else { !beaten(price) }
    });
    choices.into_iter().map(|choice| choice.over(bound)).collect()
}

/// The fastest choice at every block size: the lower envelope of lines in the block size.
pub(crate) fn crossovers(choices: &[Choice], block_bytes: u64) -> Vec<Crossover> {
    let lines: Vec<_> = choices.iter().map(|choice| choice.price.line(block_bytes)).collect();
    let exact = |i: &usize| choices[*i].price.priced != Priced::AtLeast;
    let at = |i: usize, bytes: u64| lines[i].0 + lines[i].1 * bytes as f64;
    let mut out = Vec::new();
    let mut bytes = 1;
    // Of equally fast lines the flattest, which stays the fastest.
    let faster = |&a: &usize, &b: &usize, bytes: u64| {
        at(a, bytes).total_cmp(&at(b, bytes)).then(lines[a].1.total_cmp(&lines[b].1))
    };
    let mut fastest = (0..choices.len()).filter(exact).min_by(|a, b| faster(a, b, 1));
    while let Some(now) = fastest {
        out.push(Crossover { block_bytes: bytes, choice: now });
        // The first line to cross below the current one; of several, the fastest there.
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

fn extremes(choices: &[Choice], exchange: &Exchange<'_>) -> Vec<Extremes> {
    let block_bytes = exchange.problem().block_bytes;
    let mut out = Vec::new();
    for algorithm in exchange.algorithms() {
        let own = || {
            let own = |i: &usize| choices[*i].algorithm == algorithm.info().name;
            (0..choices.len()).filter(own).filter(|&i| choices[i].price.priced == Priced::Exactly)
        };
        let line = |i: usize| choices[i].price.line(block_bytes);
        let fewest = own().min_by(|&a, &b| {
            let key = |i: usize| (choices[i].price.steps, choices[i].price.link_blocks);
            key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
        });
        // Of equal choices the last, which has the largest radix.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(most: usize) -> impl Strategy<Value = Vec<Line>> {
        let line = (0..200u32, 0..20u32).prop_map(|(fixed, slope)| (fixed.into(), slope.into()));
        proptest::collection::vec(line, 1..most)
    }

    proptest! {
        #[test]
        fn decided_sizes_end_where_the_first_floor_is_below(
            lines in lines(6),
            floors in lines(4),
            bytes in 1..100u64,
        ) {
            let at = |line: &Line, size: u64| line.0 + line.1 * size as f64;
            let least = |lines: &[Line], size| {
                lines.iter().map(|line| at(line, size)).fold(f64::INFINITY, f64::min)
            };
            let is_open = |size| least(&floors, size) < least(&lines, size);
            // Beyond these sizes the flattest line is the fastest.
            let all = 1..=400u64;
            let bends = |size: u64| {
                let rise = |from: u64| least(&lines, from + 1) - least(&lines, from);
                rise(size - 1) != rise(size)
            };
            let crossed: Vec<u64> =
                (2..=400).filter(|&size| bends(size) || bends(size - 1)).collect();
            let found = decided(&lines, &crossed, &floors, bytes);
            prop_assert_eq!(found.is_none(), is_open(bytes));
            if let Some(found) = found {
                let expected = |size: &u64| {
                    let (low, high) = (bytes.min(*size), bytes.max(*size));
                    !(low..=high).any(is_open)
                };
                for size in all {
                    prop_assert_eq!(found.contains(&size), expected(&size), "{}", size);
                }
            }
        }
    }
}
