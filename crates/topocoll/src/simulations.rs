//! Simulations of all choices of a ranking or sweep, within a budget.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use topocoll_analysis::contention::{ContentionModel, Control, Estimate, Settings, estimate};
use topocoll_analysis::{AnalysisError, Progress};
use topocoll_schedule::Schedule;
use topocoll_topology::{Machine, parallel};

use crate::simulated::{NotSimulated, free_running};
use crate::{Choice, Error, Exchange, Selection, Sweep};

/// Without a budget, the most estimated seconds of simulations,
const SECONDS: f64 = 10.0;
/// and the most ranks of a machine on which all choices are simulated.
const ALL_UP_TO: u32 = 256;

/// Simulations of choices, with their estimated costs; they have not begun.
#[derive(Clone, Debug)]
pub struct Simulations<'x> {
    machine: &'x Machine,
    model: &'static ContentionModel,
    memory: u128,
    budget: Option<f64>,
    cases: Vec<Case>,
}

#[derive(Clone, Debug)]
struct Case {
    schedule: Schedule,
    estimate: Estimate,
    fits: bool,
    /// Groups share ports.
    in_turn: bool,
}

impl Exchange<'_> {
    /// Simulations of all choices of a selection, in the order of [`Selection::choices`], of groups
    /// with the messages of all of them. In this order choices fit the budget as long as the sum of their estimates does.
    ///
    /// # Errors
    /// The model does not support the machine, or a choice is not of this exchange.
    pub fn simulations(
        &self,
        selection: &Selection,
        model: &'static ContentionModel,
    ) -> Result<Simulations<'_>, Error> {
        let cases = selection.choices.iter().map(|choice| self.case(choice, model));
        let mut simulations = self.of_cases(model, cases.collect::<Result<_, _>>()?);
        simulations.fit(0..selection.choices.len());
        Ok(simulations)
    }

    /// Simulations of all points of a sweep: line by line, each in the order of its block sizes.
    /// The fastest point of each size by the steps model fits the budget first, then the second of
    /// each size, as long as the sum of the estimates does.
    ///
    /// # Errors
    /// The model does not support the machine, or the sweep is not of this exchange.
    pub fn sweep_simulations(
        &self,
        sweep: &Sweep,
        model: &'static ContentionModel,
    ) -> Result<Simulations<'_>, Error> {
        let sizes = sweep.block_sizes.len();
        let exchanges: Vec<_> = sweep.block_sizes.iter().map(|&size| self.sized(size)).collect();
        let points = sweep.lines.iter().flat_map(|line| exchanges.iter().zip(&line.points));
        let cases = points.map(|(exchange, choice)| exchange.case(choice, model));
        let mut simulations = self.of_cases(model, cases.collect::<Result<_, _>>()?);
        let mut order = Vec::new();
        for size in 0..sizes {
            let time = |line: &usize| sweep.lines[*line].points[size].price.time.total();
            let mut lines: Vec<usize> = (0..sweep.lines.len()).collect();
            lines.sort_by(|a, b| time(a).total_cmp(&time(b)));
            order.extend(lines.iter().enumerate().map(|(place, line)| (place, size, *line)));
        }
        order.sort_unstable();
        simulations.fit(order.into_iter().map(|(_, size, line)| line * sizes + size));
        Ok(simulations)
    }

    fn case(&self, choice: &Choice, model: &'static ContentionModel) -> Result<Case, Error> {
        let schedule = self.schedule(&choice.algorithm, &choice.parameters)?;
        let exceeds = || Ok::<_, Error>(self.count(&schedule)?.port_violations > 0);
        let in_turn = !self.is_whole() && exceeds()?;
        let schedule = self.placed(&schedule)?.into_owned();
        let bytes = (choice.price.blocks * self.problem().block_bytes as f64).ceil() as u128;
        let estimate = estimate(&schedule, self.whole(), model, &Settings::default(), bytes)?;
        Ok(Case { schedule, estimate, fits: false, in_turn })
    }

    fn of_cases(&self, model: &'static ContentionModel, cases: Vec<Case>) -> Simulations<'_> {
        let (machine, limits) = (self.whole(), self.limits());
        let few = machine.ranks() <= ALL_UP_TO;
        let budget = limits.simulation.or((!few).then_some(SECONDS));
        Simulations { machine, model, memory: limits.memory, budget, cases }
    }
}

impl Simulations<'_> {
    /// The most estimated seconds of all simulations together; `None` is no limit.
    #[must_use]
    pub fn budget(&self) -> Option<f64> {
        self.budget
    }

    /// The estimated costs, and whether each fits the budget.
    #[must_use]
    pub fn estimates(&self) -> impl ExactSizeIterator<Item = (Estimate, bool)> {
        self.cases.iter().map(|case| (case.estimate, case.fits))
    }

    /// Seconds of every choice that fits the budget, simulated with link contention and without
    /// barriers. Choices are simulated on all threads at once. Progress counts the messages of the
    /// simulated ranks.
    ///
    /// # Errors
    /// [`simulate`](topocoll_analysis::contention::simulate) refuses a choice, for another reason than memory or work.
    pub fn run(
        &self,
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<f64, NotSimulated>>, AnalysisError> {
        let clipped = |messages: u128| u64::try_from(messages).unwrap_or(u64::MAX);
        let fits = self.cases.iter().filter(|case| case.fits);
        let messages = clipped(fits.map(|case| case.estimate.messages).sum());
        (progress.starting)("simulating messages", messages);
        let run = |case: &Case, memory: u128| {
            match case {
                Case { in_turn: true, .. } => return Ok(Err(NotSimulated::Ports)),
                Case { fits: false, .. } => return Ok(Err(NotSimulated::Budget)),
                _ => {}
            }
            let equivalent = u64::from(self.machine.ranks() / case.estimate.ranks).max(1);
            let delivered = AtomicU64::new(0);
            let done = |messages: u64| {
                delivered.fetch_add(messages / equivalent, Ordering::Relaxed);
                (progress.done)(messages / equivalent);
            };
            let mut control = Control::NONE;
            control.progress = Progress { starting: &|_, _| (), done: &done };
            let found =
                free_running(&case.schedule, self.machine, self.model, memory, None, control)?;
            let rest = clipped(case.estimate.messages).saturating_sub(delivered.into_inner());
            (progress.done)(rest);
            Ok(found.map(|found| found.seconds))
        };
        // All threads share the memory; a choice that needs more than its share runs alone.
        let share = self.memory / parallel::threads() as u128;
        let cases = parallel::each(&self.cases).with_max_len(1);
        let found: Vec<_> = cases.map(|case| run(case, share)).collect();
        let alone = self.cases.iter().zip(found).map(|(case, found)| match found {
            Ok(Err(NotSimulated::Limit(AnalysisError::Memory { .. }))) => run(case, self.memory),
            found => found,
        });
        alone.collect()
    }

    /// Marks the cases that fit the budget, in this order.
    fn fit(&mut self, order: impl Iterator<Item = usize>) {
        let mut left = self.budget.unwrap_or(f64::INFINITY);
        for i in order {
            let Case { estimate, fits, .. } = &mut self.cases[i];
            *fits = estimate.seconds <= left;
            if *fits {
                left -= estimate.seconds;
            }
        }
    }
}
