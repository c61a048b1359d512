//! Schedules over a trace of demand matrices, one for each step of a program.

use rayon::prelude::*;
use topocoll_schedule::{Demand, Parameters, Schedule};
use topocoll_topology::parallel;

use crate::{Choice, Error, Exchange};

/// Most choices that are counted for every matrix.
const CHOICES: usize = 8;

/// Times over the matrices of a trace, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct TraceTimes {
    /// The sum over all matrices.
    pub total: f64,
    /// The time that half of them do not exceed.
    pub median: f64,
    /// The time that 99 % of them do not exceed.
    pub p99: f64,
}

/// One schedule for all matrices of a trace.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TraceChoice {
    /// The algorithm.
    pub algorithm: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its times.
    pub times: TraceTimes,
}

/// What schedules cost over a trace.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Trace {
    /// Schedules that stay the same, by falling speed. Those whose schedules depend on the sizes are planned for
    /// the mean of all matrices.
    pub choices: Vec<TraceChoice>,
    /// The best for each matrix of these schedules, and of those planned for it.
    pub changing: TraceTimes,
    /// Matrices for which that is another one than the best for all.
    pub changes: usize,
    /// By algorithm whose schedules depend on the sizes: times planned for the mean, and for each matrix.
    pub planned: Vec<(String, [TraceTimes; 2])>,
}

impl TraceTimes {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |percent: usize| seconds[(seconds.len() * percent).div_ceil(100).max(1) - 1];
        Self { total: seconds.iter().sum(), median: at(50), p99: at(99) }
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
        order.sort_by(|a, b| a.1.total.total_cmp(&b.1.total));
        let best = order[0].0;
        let least = |of: &Vec<[f64; 2]>| of.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let changes = times.iter().filter(|of| least(of) < of[best][0]).count();
        let planned = (0..choices.len()).filter(|&choice| by_demand(&choices[choice].algorithm));
        Ok(Some(Trace {
            planned: planned
                .map(|choice| {
                    (choices[choice].algorithm.clone(), [0, 1].map(|i| column(choice, i)))
                })
                .collect(),
            choices: order
                .into_iter()
                .map(|(choice, times)| TraceChoice {
                    algorithm: choices[choice].algorithm.clone(),
                    parameters: choices[choice].parameters.clone(),
                    times,
                })
                .collect(),
            changing: TraceTimes::of(times.iter().map(least).collect()),
            changes,
        }))
    }
}
