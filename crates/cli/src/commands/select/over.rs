//! `select` over a trace of demand matrices.

use serde::Serialize;
use topocoll::{Trace, TraceTimes};
use topocoll_report::number::named;

use super::Chosen;
use crate::render::{Answer, Field, seconds, table};

#[derive(Serialize)]
pub(super) struct Over {
    matrices: usize,
    /// Best first.
    choices: Vec<Fixed>,
    changing: Changing,
    planned: Vec<Planned>,
}

#[derive(Serialize)]
struct Times {
    total_seconds: f64,
    median_seconds: f64,
    p99_seconds: f64,
}

/// One schedule for all matrices.
#[derive(Serialize)]
struct Fixed {
    #[serde(flatten)]
    chosen: Chosen,
    #[serde(flatten)]
    times: Times,
}

/// The best schedule of each matrix.
#[derive(Serialize)]
struct Changing {
    changes: usize,
    #[serde(flatten)]
    times: Times,
}

/// An algorithm that plans for the sizes.
#[derive(Serialize)]
struct Planned {
    algorithm: String,
    for_mean: Times,
    for_each: Times,
    loss_of_mean: f64,
}

impl From<TraceTimes> for Times {
    fn from(times: TraceTimes) -> Self {
        let (total_seconds, median_seconds) = (times.total, times.median);
        Self { total_seconds, median_seconds, p99_seconds: times.p99 }
    }
}

/// How many times one takes as long as the other.
fn over(one: &Times, other: &Times) -> f64 {
    let (one, other) = (one.total_seconds, other.total_seconds);
    if one > 0.0 { one / other } else { 1.0 }
}

impl Over {
    pub(super) fn new(matrices: usize, trace: Trace) -> Self {
        let fixed = trace.choices.into_iter().map(|choice| Fixed {
            chosen: Chosen { algorithm: choice.algorithm, parameters: choice.parameters },
            times: choice.times.into(),
        });
        let planned = trace.planned.into_iter().map(|(algorithm, times)| {
            let [for_mean, for_each] = times.map(Times::from);
            Planned {
                algorithm,
                loss_of_mean: over(&for_mean, &for_each) - 1.0,
                for_mean,
                for_each,
            }
        });
        let changing = Changing { changes: trace.changes, times: trace.changing.into() };
        Self { matrices, choices: fixed.collect(), changing, planned: planned.collect() }
    }

    pub(super) fn best(&self) -> Chosen {
        self.choices[0].chosen.clone()
    }

    /// `Use X for all 12 matrices: 1.08x the best for each, which differs for 5 of them.`
    pub(super) fn verdict(&self) -> String {
        let (best, changing) = (&self.choices[0], &self.changing);
        format!(
            "Use {} for all {} matrices: {:.2}x the best for each, which differs for {} of them.",
            best.name(),
            self.matrices,
            over(&best.times, &changing.times),
            changing.changes
        )
    }

    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        let row = |name: String, times: &Times| -> Vec<Field> {
            let each = [times.median_seconds, times.p99_seconds, times.total_seconds];
            [Field::from(name)].into_iter().chain(each.map(|time| seconds(time).into())).collect()
        };
        let mut rows: Vec<_> = self.choices.iter().map(|of| row(of.name(), &of.times)).collect();
        rows.push(row("the best for each matrix".to_owned(), &self.changing.times));
        let loss = self.planned.iter().map(|of| {
            let ratio = 1.0 + of.loss_of_mean;
            format!(
                "{} planned for the mean takes {ratio:.2}x the time planned for each.\n",
                of.algorithm
            )
        });
        let heads = ["over the trace", "median", "p99", "sum"];
        answer.table(&table(&heads, 1, rows)).notes(loss.collect::<String>())
    }
}

impl Fixed {
    fn name(&self) -> String {
        named(&self.chosen.algorithm, &self.chosen.parameters)
    }
}
