use topocoll_algorithms::Info;
use topocoll_analysis::BestBounds;
use topocoll_schedule::Parameters;

use crate::envelope::{first_below, is_below};
use crate::exchange::agrees;
use crate::free_running::{FreeRuns, Of, all_at_once};
use crate::pool::{Found, Pool, Winner};
use crate::price::{Price, Priced, best_time};
use crate::{Choice, Exchange, Fastest, PartlyPriced, Rejected, Unsearched};

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

/// What the simulations of a ranking say besides the times of its choices.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct WithoutBarriers {
    /// The model that simulated the choices.
    pub model: &'static str,
    /// Another model, and its seconds for the best choice, if it differs by more than a tenth.
    pub otherwise: Option<(&'static str, f64)>,
    /// The last power of 2 at which the fastest in step was looked at, if the budget was not enough for all.
    pub up_to: Option<u64>,
}

/// The fastest choice in step, which wins where barriers cost little.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct InStep {
    /// Its position.
    pub choice: usize,
    /// Seconds of a barrier below which it wins.
    pub barrier: f64,
}

/// The settings that apply, ranked by predicted time.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Selection {
    /// By ascending [time](Choice::ranked_seconds) or floor; at equal times, exact prices come first. Has
    /// the best setting of every algorithm, and every setting on the Pareto front of steps and link blocks.
    pub choices: Vec<Choice>,
    /// The simulations, if choices are ranked by them too.
    pub without_barriers: Option<WithoutBarriers>,
    /// Seconds of all messages posted at once over all ports, by the fluid model, if they were simulated.
    pub all_at_once: Option<f64>,
    /// Algorithms that do not apply, and the reasons.
    pub rejected: Vec<Rejected>,
    /// The lower bound.
    pub bound: BestBounds,
    /// The fastest choice by block size, ascending, from 1 byte to the largest; the same for every
    /// block size. Only exact prices: sizes at which a floor is below are left out.
    pub crossovers: Vec<Fastest>,
    /// Algorithms with a candidate that splits blocks, so that its volume does not grow in proportion
    /// to them. Their crossovers are exact to the bytes of a part.
    pub split: Vec<String>,
    /// One crossover for each algorithm that trades startups for volume.
    pub extremes: Vec<Extremes>,
    /// Algorithms of which only some settings were priced; the floors of the others are above the
    /// best price.
    pub partly_priced: Vec<PartlyPriced>,
    /// Searches that may find a faster schedule and exceed the budget.
    pub unsearched: Vec<Unsearched>,
}

impl Selection {
    /// A selection without choices.
    pub(crate) fn nothing(bound: BestBounds) -> Self {
        Self {
            choices: Vec::new(),
            without_barriers: None,
            all_at_once: None,
            rejected: Vec::new(),
            bound,
            crossovers: Vec::new(),
            split: Vec::new(),
            extremes: Vec::new(),
            partly_priced: Vec::new(),
            unsearched: Vec::new(),
        }
    }

    /// The best choice: the first with an exact price, or without exact prices the one with the
    /// least floor.
    #[must_use]
    pub fn best(&self) -> Option<&Choice> {
        self.choices.get(self.undecided().len()).or(self.choices.first())
    }

    /// The fastest in step of the choices with an exact price, for blocks of `to` bytes and priced for these; the
    /// selection is for blocks of `from` bytes.
    pub(crate) fn fastest_at(&self, from: u64, to: u64) -> Option<Choice> {
        let exact = self.choices.iter().filter(|choice| choice.price.priced == Priced::Exactly);
        let scaled = exact.map(|choice| {
            let price = choice.price.scaled(from, to);
            Choice { price, free_running: None, ..choice.clone() }
        });
        scaled.min_by(|a, b| a.price.time.total().total_cmp(&b.price.time.total()))
    }

    /// The first choice of an algorithm that takes at most a number of steps and has the given parameters;
    /// one with an exact price, if there is one.
    #[must_use]
    pub fn in_steps(&self, algorithm: &Info, most: u64, given: &Parameters) -> Option<&Choice> {
        let own = || {
            self.choices.iter().filter(|choice| {
                choice.algorithm == algorithm.name
                    && choice.price.steps <= most
                    && agrees(algorithm, &choice.parameters, given)
            })
        };
        let exact = own().find(|choice| choice.price.priced == Priced::Exactly);
        exact.or_else(|| own().next())
    }

    /// The choices that may be faster than the best: their floors are below its price, and exact
    /// prices exceed the budget. All choices if no price is exact.
    #[must_use]
    pub fn undecided(&self) -> &[Choice] {
        let floor = |choice: &&Choice| choice.price.priced == Priced::AtLeast;
        &self.choices[..self.choices.iter().take_while(floor).count()]
    }

    /// The fastest choice in step, if it is not the best, and the cost of a barrier below which it is.
    #[must_use]
    pub fn in_step(&self) -> Option<InStep> {
        let (best, time) =
            (self.best()?.ranked_seconds(), |choice: &Choice| choice.price.time.total());
        let exact = self.choices.iter().enumerate();
        let exact = exact.filter(|(_, choice)| choice.price.priced == Priced::Exactly);
        let (choice, fastest) = exact.min_by(|a, b| time(a.1).total_cmp(&time(b.1)))?;
        let barriers = fastest.price.steps.saturating_sub(1).max(1) as f64;
        let barrier = (best - time(fastest)) / barriers;
        (fastest.ranked_seconds() > best).then_some(InStep { choice, barrier })
    }
}

/// Ranks the settings that apply to blocks of equal sizes.
pub(crate) fn select(exchange: &Exchange<'_>) -> Selection {
    let reference = exchange.at_reference();
    let mut pool = Pool::new(&reference, &[], &[exchange.problem().block_bytes])
        .expect("bug: no algorithm is asked for");
    (exchange.limits().progress.starting)("computing bounds", 0);
    let bound = exchange.bounds();
    let found = pool.at(exchange.problem().block_bytes);
    let fastest = pool.fastest();
    let choices = listed(found, &fastest).into_iter().map(|one| pool.choice(one)).collect();
    let mut selection = Selection::nothing(bound);
    selection.crossovers = (fastest.into_iter())
        .map(|one| Fastest {
            block_bytes: one.sizes.from,
            to_bytes: one.sizes.to,
            algorithm: pool.name(one.asked).to_owned(),
            parameters: one.parameters,
            seconds: one.seconds,
            published: false,
            changes: Vec::new(),
        })
        .collect();
    selection.choices = ranked(choices, &bound, &selection.crossovers);
    if exchange.runs_freely() {
        run_freely(exchange, &mut selection, &mut pool);
    }
    selection.split = pool.split();
    selection.partly_priced = pool.partly_priced();
    selection.unsearched = pool.unsearched().to_vec();
    selection.rejected = pool.rejected;
    selection.extremes = extremes(&selection.choices, exchange);
    selection
}

/// Ranks the choices by what runs without barriers, and looks at the fastest at powers of 2.
fn run_freely(exchange: &Exchange<'_>, selection: &mut Selection, pool: &mut Pool<'_>) {
    /// The powers.
    const SIZES: std::ops::RangeInclusive<u32> = 6..=20;
    (exchange.limits().progress.starting)("simulating choices", 0);
    selection.all_at_once = all_at_once(exchange);
    let schedule = |choice: &Choice| pool.schedule(exchange, choice);
    let of = Of { exchange, schedule: &schedule };
    let Some(mut runs) = FreeRuns::rank(of, &mut selection.choices) else { return };
    // Floors may be higher.
    selection.choices =
        selection.choices.drain(..).map(|choice| choice.over(&selection.bound)).collect();
    let otherwise = selection.best().and_then(|best| runs.otherwise(of, best));
    let model = runs.model();
    let mut up_to = None;
    for bytes in SIZES.map(|power| 1 << power) {
        let within = |one: &&mut Fastest| {
            one.block_bytes <= bytes && one.to_bytes.is_none_or(|last| bytes <= last)
        };
        // The last that begins before it.
        let Some(fastest) = selection.crossovers.iter_mut().rev().find(within) else { continue };
        let (sized, found) = (exchange.sized(bytes), pool.at(bytes));
        let choices = listed(found, &[]).into_iter().map(|one| pool.choice(one));
        let schedule = |choice: &Choice| pool.schedule(&sized, choice);
        let of = Of { exchange: &sized, schedule: &schedule };
        match runs.is_first_best(of, ranked(choices.collect(), &selection.bound, &[])) {
            Some(true) => {}
            Some(false) => fastest.changes.push(bytes),
            None => {
                up_to = Some(bytes / 2);
                break;
            }
        }
    }
    selection.without_barriers = Some(WithoutBarriers { model, otherwise, up_to });
}

/// The candidates that a ranking looks at. Settings that others of their algorithm beat, and schedules for
/// fewer ports or other views, are left out unless they may be the fastest, or are the fastest of their
/// algorithm or at some block size.
fn listed(found: Vec<Found>, fastest: &[Winner]) -> Vec<Found> {
    let best = best_time(found.iter().map(|found| &found.price));
    let least = |asked: usize, other: bool| {
        let own = found.iter().filter(|found| found.asked == asked && (other || !found.other));
        best_time(own.map(|found| &found.price))
    };
    let algorithms = found.iter().map(|found| found.asked + 1).max().unwrap_or(0);
    let least: Vec<_> =
        (0..algorithms).map(|asked| [false, true].map(|fewer| least(asked, fewer))).collect();
    let mut listed = Vec::new();
    for found in found {
        let time = found.price.time.total();
        let is_exact = found.price.priced != Priced::AtLeast;
        let [own, of_all] = least[found.asked];
        let wins = |one: &Winner| one.asked == found.asked && one.parameters == found.parameters;
        if !is_exact && time < best
            || is_exact && found.other && time <= of_all && of_all < own
            || !found.other && (is_exact || !found.beaten)
            || fastest.iter().any(wins)
        {
            listed.push(found);
        }
    }
    listed
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

/// Sorts by time. Keeps the best of every algorithm, settings that may be faster than the best
/// exact price, the Pareto front of steps and link blocks, and the fastest of other block sizes.
pub(crate) fn ranked(
    mut choices: Vec<Choice>,
    bound: &BestBounds,
    fastest: &[Fastest],
) -> Vec<Choice> {
    let floor = |choice: &Choice| choice.price.priced == Priced::AtLeast;
    let best = best_time(choices.iter().map(|choice| &choice.price));
    let is_open = |choice: &Choice| floor(choice) && is_below(choice.price.time.total(), best);
    // Ties keep the order of the table; an exact price comes before a floor.
    let time = |choice: &Choice| match choice.price.time.total() {
        time if floor(choice) && !is_open(choice) => time.max(best),
        time => time,
    };
    choices.sort_by(|a, b| time(a).total_cmp(&time(b)).then(floor(a).cmp(&floor(b))));
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
    let mut seen = Vec::new();
    choices.retain(|choice| {
        // The first choice of an algorithm, and its first choice with an exact price.
        let kind = (choice.algorithm.clone(), floor(choice));
        let first = !seen.contains(&kind) && !seen.contains(&(choice.algorithm.clone(), false));
        if first {
            seen.push(kind);
        }
        let price = &choice.price;
        let wins = |one: &Fastest| {
            (&one.algorithm, &one.parameters) == (&choice.algorithm, &choice.parameters)
        };
        let unbeaten = if floor(choice) { is_open(choice) } else { !beaten(price) };
        first || unbeaten || fastest.iter().any(wins)
    });
    choices.into_iter().map(|choice| choice.over(bound)).collect()
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
