//! Rankings of what runs: programs put no barriers between steps.
//!
//! Choices that take at most twice the least time in step are simulated without barriers, all by one model,
//! and ordered by the larger of both times. As no time is below that in step, a choice is simulated first
//! where it may still be the best; the others follow as far as the messages of the budget go. A choice of which
//! only a floor is known is counted on, until it is slower than the best: that takes a part of its simulation.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use topocoll_analysis::contention::{
    AllToAll, ChannelClasses, ContentionModel, Control, MODELS, Request, Settings, estimate,
    in_seconds, simulate,
};
use topocoll_analysis::{Counts, count_while};
use topocoll_schedule::{Parameters, Schedule};
use topocoll_topology::parallel;

use crate::price::{Price, Priced, best_time};
use crate::simulated::{FreeRunning, NotSimulated, free_running};
use crate::{Choice, Exchange};

/// Choices are simulated up to this multiple of the least time in step.
const WITHIN: f64 = 2.0;
/// Choices that are simulated at once: the same on every computer.
const BATCH: usize = 4;
/// The models differ on a choice by more than this share.
const DIFFER: f64 = 0.1;
/// The most messages that are sent all at once: the time grows with their square.
const AT_ONCE: u64 = 1 << 14;

/// An exchange, and the schedules of its choices.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) exchange: &'a Exchange<'a>,
    /// The schedule, and whether its messages are the same at all sizes.
    pub(crate) schedule: &'a dyn Fn(&Choice) -> Option<(Schedule, bool)>,
}

/// Simulates choices without barriers, as far as the messages go that are left.
pub(crate) struct FreeRuns {
    model: &'static ContentionModel,
    /// Messages that may be simulated.
    left: u128,
    /// Classes of virtual channels, by choice.
    kept: BTreeMap<(String, Parameters), Kept>,
}

type Kept = Arc<OnceLock<Arc<ChannelClasses>>>;

/// A schedule to simulate.
struct Case {
    schedule: Schedule,
    messages: u128,
    channels: Kept,
}

impl FreeRuns {
    /// The first model that simulates all choices that may be the best, with the choices in the order of the
    /// larger of both times. `None` where no model does: then the order stays.
    pub(crate) fn rank(of: Of<'_>, choices: &mut [Choice]) -> Option<Self> {
        models().find_map(|model| {
            let (left, kept) = (of.exchange.limits().messages.into(), BTreeMap::new());
            let mut runs = Self { model, left, kept };
            let mut ranked = choices.to_vec();
            let rest = runs.decide(of, &mut ranked)?;
            let most = WITHIN * best_time(ranked.iter().map(|choice| &choice.price));
            runs.simulate_rest(of, &mut ranked[rest..], most);
            sort(&mut ranked);
            choices.clone_from_slice(&ranked);
            Some(runs)
        })
    }

    /// Whether the first choice is the best of what runs, if the messages that are left tell.
    pub(crate) fn is_first_best(&mut self, of: Of<'_>, mut choices: Vec<Choice>) -> Option<bool> {
        let first = choices.first()?.clone();
        self.decide(of, &mut choices)?;
        sort(&mut choices);
        let is = |choice: &Choice| {
            (&choice.algorithm, &choice.parameters) == (&first.algorithm, &first.parameters)
        };
        choices.first().map(is)
    }

    pub(crate) fn model(&self) -> &'static str {
        self.model.name
    }

    /// Simulates choices, which are in the order of times in step, until no other one may be the best.
    /// Returns the first that is not simulated, or `None` if the messages are not enough.
    fn decide(&mut self, of: Of<'_>, choices: &mut [Choice]) -> Option<usize> {
        let mut next = 0;
        loop {
            let best =
                choices[..next].iter().map(Choice::ranked_seconds).fold(f64::INFINITY, f64::min);
            let Some(choice) = choices.get(next) else { return Some(next) };
            let time = |choice: &Choice| choice.price.time.total();
            if time(choice) >= best {
                return Some(next);
            }
            // The first ones only as far as they are simulated in any case.
            let most = if next == 0 { WITHIN * time(choice) } else { best };
            if next > 0 && is_floor(choice) {
                let case = self.case(of, choice)?;
                self.left.checked_sub(case.messages)?;
                count_on(of.exchange, &case.schedule, &mut choices[next], best);
                if time(&choices[next]) >= best {
                    next += 1;
                    continue;
                }
            }
            let open = choices[next..].iter().take(BATCH).skip(1);
            let open: Vec<_> = open.take_while(|choice| time(choice) <= most).collect();
            // No time is spent on the others if a floor cannot be decided.
            for floor in open.iter().filter(|choice| is_floor(choice)) {
                self.left.checked_sub(self.case(of, floor)?.messages)?;
            }
            let end = next + 1 + open.iter().take_while(|choice| !is_floor(choice)).count();
            let batch = &mut choices[next..end];
            let cases: Vec<_> = batch.iter().map(|choice| self.case(of, choice)).collect();
            let cases: Vec<Case> = cases.into_iter().collect::<Option<_>>()?;
            let messages: u128 = cases.iter().map(|case| case.messages).sum();
            self.left = self.left.checked_sub(messages)?;
            let exchange = of.exchange;
            let runs = parallel::each(&cases).map(|case| self.run(exchange, case));
            let runs: Vec<_> = runs.collect();
            for (choice, run) in batch.iter_mut().zip(runs) {
                choice.free_running = Some(run?);
            }
            next = end;
        }
    }

    /// Simulates the other choices that take at most that many seconds, as far as the messages go.
    fn simulate_rest(&mut self, of: Of<'_>, choices: &mut [Choice], most: f64) {
        let mut cases = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            if !is_floor(choice)
                && choice.price.time.total() <= most
                && let Some(case) = self.case(of, choice)
                && let Some(left) = self.left.checked_sub(case.messages)
            {
                self.left = left;
                cases.push((place, case));
            }
        }
        let exchange = of.exchange;
        let run = |(place, case): &(usize, Case)| (*place, self.run(exchange, case));
        let runs: Vec<_> = parallel::each(&cases).map(run).collect();
        for (place, run) in runs {
            choices[place].free_running = run;
        }
    }

    /// The simulation of a choice.
    fn case(&mut self, of: Of<'_>, choice: &Choice) -> Option<Case> {
        let (schedule, is_same) = (of.schedule)(choice)?;
        let (machine, settings) = (of.exchange.machine(), Settings::default());
        let messages = estimate(&schedule, machine, self.model, &settings, 0).ok()?.messages;
        let name = || (choice.algorithm.clone(), choice.parameters.clone());
        let channels = match is_same {
            true => Arc::clone(self.kept.entry(name()).or_default()),
            false => Kept::default(),
        };
        Some(Case { schedule, messages, channels })
    }

    /// The time of a schedule; a deadlock never ends.
    fn run(&self, exchange: &Exchange<'_>, case: &Case) -> Option<FreeRunning> {
        let (machine, memory) = (exchange.machine(), exchange.limits().memory);
        let Case { schedule, channels, .. } = case;
        let found =
            free_running(schedule, machine, self.model, memory, Some(channels), Control::NONE);
        match found.ok()? {
            Ok(run) => Some(run),
            Err(NotSimulated::Deadlock) => Some(FreeRunning::DEADLOCK),
            Err(_) => None,
        }
    }

    /// Seconds of the best choice by another model, if that differs by more than a little.
    pub(crate) fn otherwise(&mut self, of: Of<'_>, best: &Choice) -> Option<(&'static str, f64)> {
        let own = best.free_running?.seconds;
        let model = models().find(|model| model.name != self.model.name)?;
        let mut other = Self { model, left: self.left, kept: BTreeMap::new() };
        let case = other.case(of, best)?;
        self.left = self.left.checked_sub(case.messages)?;
        let seconds = other.run(of.exchange, &case)?.seconds;
        ((seconds - own).abs() > DIFFER * own).then_some((model.name, seconds))
    }
}

/// The models that are fast enough, the one to try first at the head.
fn models() -> impl Iterator<Item = &'static ContentionModel> {
    MODELS.iter().filter(|model| model.simulates_schedules())
}

fn is_floor(choice: &Choice) -> bool {
    choice.price.priced == Priced::AtLeast
}

/// Counts the steps of a choice until they take `most` seconds: its price, or a higher floor.
fn count_on(exchange: &Exchange<'_>, schedule: &Schedule, choice: &mut Choice, most: f64) {
    let (machine, memory) = (exchange.machine(), exchange.limits().memory);
    let go_on = |_, counts: &Counts| counts.time.total() < most;
    let Ok((steps, counts)) = count_while(schedule, machine, memory, None, go_on) else { return };
    if steps == schedule.rule().steps() {
        choice.price = Price::counted(&counts);
    } else {
        let time = &mut choice.price.time;
        time.transmission += (counts.time.total() - time.total()).max(0.0);
    }
}

/// By the larger of both times; equal ones keep their order.
fn sort(choices: &mut [Choice]) {
    choices.sort_by(|a, b| a.ranked_seconds().total_cmp(&b.ranked_seconds()));
}

/// Seconds of all messages of an exchange, posted at once over all ports, by the fluid model; `None` where it
/// takes long.
pub(crate) fn all_at_once(exchange: &Exchange<'_>) -> Option<f64> {
    let (machine, memory) = (exchange.machine(), exchange.limits().memory);
    let traffic = AllToAll::new(machine, exchange.problem().block_bytes, memory).ok()?;
    let model = MODELS.iter().find(|model| model.name == "fluid")?;
    let few = traffic.messages() <= AT_ONCE;
    let found = few.then(|| simulate(&Request::new(&traffic, machine, model, memory)));
    found?.ok().map(|found| in_seconds(found.time))
}
