//! The text of `select` over a trace of demand matrices.

use topocoll::{Trace, TraceChoice, TraceTimes};
use topocoll_report::number::named;

use crate::render::{Answer, Field, seconds, table};

fn name(of: &TraceChoice) -> String {
    named(&of.algorithm, &of.parameters)
}

/// How many times one takes as long as the other.
fn ratio(one: &TraceTimes, other: &TraceTimes) -> f64 {
    let (one, other) = (one.total_seconds, other.total_seconds);
    if one > 0.0 { one / other } else { 1.0 }
}

/// `Use X for all 12 matrices: 1.08x the best for each, which differs for 5 of them.`
pub(super) fn verdict(trace: &Trace) -> String {
    format!(
        "Use {} for all {} matrices: {:.2}x the best for each, which differs for {} of them.",
        name(&trace.choices[0]),
        trace.matrices,
        ratio(&trace.choices[0].times, &trace.best_for_each),
        trace.changes
    )
}

/// Adds the times of all choices, and what plans for the mean lose.
pub(super) fn add_to(answer: Answer, trace: &Trace) -> Answer {
    let row = |name: String, times: &TraceTimes| -> Vec<Field> {
        let each = [times.median_seconds, times.p99_seconds, times.total_seconds];
        [Field::from(name)].into_iter().chain(each.map(|time| seconds(time).into())).collect()
    };
    let mut rows: Vec<_> = trace.choices.iter().map(|of| row(name(of), &of.times)).collect();
    rows.push(row("the best for each matrix".to_owned(), &trace.best_for_each));
    let loss = trace.choices.iter().filter_map(|of| {
        let times = ratio(&of.times, of.planned_for_each.as_ref()?);
        let name = &of.algorithm;
        Some(format!("{name} planned for the mean takes {times:.2}x the time planned for each.\n"))
    });
    let heads = ["over the trace", "median", "p99", "sum"];
    answer.table(&table(&heads, 1, rows)).notes(loss.collect::<String>())
}
