use serde::Serialize;
use topocoll::{BestBounds, LowerBound, asymptotic_bounds, best_bounds, bounds};

use super::exchange;
use super::whole::Whole;
use crate::machine::{machine, problem};
use crate::render::{Blocks, Head, blocks, print, seconds, table};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    bounds: Vec<Bound>,
    asymptotic: Vec<Asymptotic>,
    best: Best,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
}

#[derive(Serialize)]
struct Bound {
    measure: &'static str,
    value: Blocks,
    theorem: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    condition: String,
}

/// A bound without a value.
#[derive(Serialize)]
struct Asymptotic {
    measure: &'static str,
    order: &'static str,
    theorem: &'static str,
    condition: &'static str,
}

#[derive(Serialize)]
struct Best {
    steps: u64,
    blocks: Blocks,
    time_seconds: f64,
}

pub(crate) fn run(args: &args::Bounds) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let machine = machine(&args.common.machine, options)?;
    let problem = problem(&machine, options)?;
    let all = bounds(&problem, &machine);
    let orders = asymptotic_bounds(&problem);
    let BestBounds { steps, blocks: volume, seconds: time, .. } = best_bounds(&problem, &machine);
    let report = Report {
        head: Head::new(&machine, &problem),
        bounds: all.iter().map(bound).collect(),
        asymptotic: (orders.iter())
            .map(|bound| Asymptotic {
                measure: bound.measure.name(),
                order: bound.order,
                theorem: bound.theorem,
                condition: bound.condition,
            })
            .collect(),
        best: Best { steps, blocks: Blocks(volume), time_seconds: time },
        whole: Whole::of(&machine, &problem),
    };
    print(options.json, &report, || {
        let rows = all.iter().map(|bound| {
            let condition = if bound.condition.is_empty() {
                "every schedule".to_owned()
            } else {
                bound.condition.clone()
            };
            vec![
                bound.measure.name().to_owned(),
                bound.theorem.clone(),
                condition,
                blocks(bound.value),
            ]
        });
        let orders = orders.iter().map(|bound| {
            format!(
                "{}: {}, for {}; a constant is not stated.\n",
                bound.theorem, bound.order, bound.condition
            )
        });
        format!(
            "{}\n\n{}\n{}No schedule takes fewer than {steps} steps, carries less than {} blocks over its busiest links, \
             or is predicted to end before {}.\n{}",
            exchange(&machine, &problem),
            table(&["bounds", "by", "holds for", "at least"], 3, rows),
            orders.collect::<String>(),
            blocks(volume),
            seconds(time),
            report.whole.as_ref().map_or(String::new(), |whole| whole.text(volume, None)),
        )
    })?;
    Ok(Outcome::Fine)
}

fn bound(bound: &LowerBound) -> Bound {
    Bound {
        measure: bound.measure.name(),
        value: Blocks(bound.value),
        theorem: bound.theorem.clone(),
        condition: bound.condition.clone(),
    }
}
