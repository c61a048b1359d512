//! Simulations within a budget, for `select` and `sweep`.

use anyhow::Context;
use serde::Serialize;
use topocoll::contention::{ContentionModel, Estimate, Settings, check_model};
use topocoll::{Error, Machine, NotSimulated, Simulations};

use super::{plural, request};
use crate::bar::PROGRESS;
use crate::error::say;
use crate::render::duration;

/// The cost of a simulation that was not run or not finished.
#[derive(Serialize)]
pub(super) struct Left {
    /// Messages and seconds of one core, estimated.
    messages: u64,
    seconds: f64,
    reason: String,
}

impl Left {
    pub(super) fn new(estimate: &Estimate, reason: &NotSimulated) -> Self {
        let messages = u64::try_from(estimate.messages).unwrap_or(u64::MAX);
        Self { messages, seconds: estimate.seconds, reason: reason.to_string() }
    }
}

/// Checks that a model, if asked for, supports a machine.
pub(super) fn check(model: Option<&ContentionModel>, machine: &Machine) -> anyhow::Result<()> {
    match model {
        Some(model) => {
            request::check_order(machine, false)?;
            named(check_model(model, machine, &Settings::default()), model)
        }
        None => Ok(()),
    }
}

/// Runs the simulations that fit the budget. A note says first how many do not.
pub(super) fn run(
    simulations: &Simulations<'_>,
    model: &ContentionModel,
    what: &str,
) -> anyhow::Result<Vec<Result<f64, NotSimulated>>> {
    let (all, refused) = counts(simulations);
    if let Some(budget) = simulations.budget().filter(|_| refused > 0) {
        let are = if refused == 1 { "is" } else { "are" };
        say(&format!(
            "note: {refused} of {all} {what}{} {are} not simulated: by estimate they exceed the budget of {}; {}",
            plural(all),
            duration(budget),
            raise(simulations),
        ));
    }
    named(simulations.run(&PROGRESS), model)
}

/// An error of a simulation, with the option that asks for it.
pub(super) fn named<T>(
    found: Result<T, impl Into<Error>>,
    model: &ContentionModel,
) -> anyhow::Result<T> {
    found.map_err(Into::into).with_context(|| format!("--model {}", model.name))
}

/// All choices, and those that exceed the budget.
fn counts(simulations: &Simulations<'_>) -> (usize, usize) {
    let all = simulations.estimates();
    (all.len(), all.filter(|(_, fits)| !fits).count())
}

/// `--budget 140 simulates all`.
pub(super) fn raise(simulations: &Simulations<'_>) -> String {
    let seconds: f64 = simulations.estimates().map(|(estimate, _)| estimate.seconds).sum();
    format!("--budget {} simulates all", two_digits(seconds, f64::ceil))
}

/// `not simulated: about 16773120 messages, 100 s`.
pub(super) fn about(estimate: &Estimate, reason: &NotSimulated) -> String {
    let cost = || {
        let seconds = duration(two_digits(estimate.seconds, f64::round));
        format!("about {} messages, {seconds}", estimate.messages)
    };
    match reason {
        NotSimulated::Budget => format!("not simulated: {}", cost()),
        NotSimulated::Limit(_) => format!("not simulated: {}; {reason}", cost()),
        _ => reason.to_string(),
    }
}

/// The heading of a list of choices that are not simulated.
pub(super) fn heading(budget: Option<f64>, raise: &str) -> String {
    match budget {
        Some(budget) => format!("The budget is {} of one core; {raise}:", duration(budget)),
        None => "Without a time:".to_owned(),
    }
}

/// Whether a choice might have been faster than those simulated.
pub(super) fn is_open(reason: &NotSimulated) -> bool {
    !matches!(reason, NotSimulated::Channels(_))
}

/// A number rounded to two significant digits.
pub(super) fn two_digits(value: f64, round: fn(f64) -> f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let places = 1 - value.log10().floor() as i32;
    // A power of ten with a positive exponent is exact.
    match places {
        0.. => round(value * 10f64.powi(places)) / 10f64.powi(places),
        _ => round(value / 10f64.powi(-places)) * 10f64.powi(-places),
    }
}
