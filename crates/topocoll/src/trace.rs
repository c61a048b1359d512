//! Schedules over a trace of demand matrices, one for each step of a program.

use rayon::prelude::*;
use serde::Serialize;
use topocoll_schedule::{Demand, Parameters, Schedule};
use topocoll_topology::parallel;

use crate::{Choice, Error, Exchange};

/// Most choices that are counted for every matrix.
const CHOICES: usize = 8;

/// Times over the matrices of a trace, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct TraceTimes {
    /// The sum over all matrices.
    pub total_seconds: f64,
    /// The time that half of them do not exceed.
    pub median_seconds: f64,
    /// The time that 99 % of them do not exceed.
    pub p99_seconds: f64,
}

/// One schedule for all matrices of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct TraceChoice {
    /// The algorithm.
    pub algorithm: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its times. An algorithm whose schedules depend on the sizes plans for the mean of all matrices.
    #[serde(flatten)]
    pub times: TraceTimes,
    /// Its times where it plans for each matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_for_each: Option<TraceTimes>,
}

/// What schedules cost over a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// The number of matrices.
    pub matrices: usize,
    /// Schedules that stay the same, by falling speed.
    pub choices: Vec<TraceChoice>,
    /// The best for each matrix of these schedules, and of those planned for it.
    pub best_for_each: TraceTimes,
    /// Matrices for which that is another one than the best for all.
    pub changes: usize,
}

impl TraceTimes {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |percent: usize| seconds[(seconds.len() * percent).div_ceil(100).max(1) - 1];
        let total_seconds = seconds.iter().sum();
        Self { total_seconds, median_seconds: at(50), p99_seconds: at(99) }
    }
}

impl Exchange<'_> {
    /// The first of the `choices`, which are ranked for the mean of a trace of demand matrices, and those whose
    /// schedules depend on the sizes, over all its matrices.
    ///
    /// # Errors
    /// Matrices of other ranks, no matrices or choices, or too much work or memory.
    pub fn over(&self, trace: &[Demand], choices: &[Choice]) -> Result<Option<Trace>, Error> {
        let by_demand = |name: &str| self.find(name).is_ok_and(|of| of.info().by_demand);
        let kept = choices.iter().enumerate();
        let kept = kept.filter(|(i, choice)| *i < CHOICES || by_demand(&choice.algorithm));
        let choices: Vec<&Choice> = kept.map(|(_, choice)| choice).collect();
        if trace.is_empty() || choices.is_empty() {
            return Ok(None);
        }
        let of = |exchange: &Exchange<'_>, choice: &Choice| {
            exchange.schedule(&choice.algorithm, &choice.parameters)
        };
        let schedules: Vec<Schedule> =
            choices.iter().map(|choice| of(self, choice)).collect::<Result<_, _>>()?;
        // By matrix: each schedule as it is, and planned for it.
        let times = |demand: &Demand| -> Result<Vec<[f64; 2]>, Error> {
            let one = self.clone().demand(demand)?;
            let pairs = choices.iter().zip(&schedules);
            let seconds = |schedule: &Schedule| -> Result<f64, Error> {
                Ok(one.count(schedule)?.time.total())
            };
            pairs
                .map(|(choice, schedule)| {
                    let kept = seconds(schedule)?;
                    let again = match by_demand(&choice.algorithm) {
                        true => seconds(&of(&one, choice)?)?,
                        false => kept,
                    };
                    Ok([kept, again])
                })
                .collect()
        };
        let times: Vec<Vec<[f64; 2]>> =
            parallel::each(trace).map(times).collect::<Result<_, Error>>()?;
        let column = |choice: usize, again: usize| {
            TraceTimes::of(times.iter().map(|of| of[choice][again]).collect())
        };
        let mut order: Vec<(usize, TraceTimes)> =
            (0..choices.len()).map(|choice| (choice, column(choice, 0))).collect();
        order.sort_by(|a, b| a.1.total_seconds.total_cmp(&b.1.total_seconds));
        let best = order[0].0;
        let least = |of: &Vec<[f64; 2]>| of.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let changes = times.iter().filter(|of| least(of) < of[best][0]).count();
        let found = order.into_iter().map(|(place, times)| {
            let Choice { algorithm, parameters, .. } = choices[place];
            let planned_for_each = by_demand(algorithm).then(|| column(place, 1));
            let (algorithm, parameters) = (algorithm.clone(), parameters.clone());
            TraceChoice { algorithm, parameters, times, planned_for_each }
        });
        Ok(Some(Trace {
            matrices: trace.len(),
            choices: found.collect(),
            best_for_each: TraceTimes::of(times.iter().map(least).collect()),
            changes,
        }))
    }
}
