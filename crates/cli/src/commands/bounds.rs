use anyhow::Context;
use serde::Serialize;
use topocoll::{LowerBound, Measure, asymptotic_bounds, bounds};
use topocoll_report::words::rate;

use super::heading::{about_demand, assumed_by};
use super::plural;
use super::repairs::{self, Repair};
use super::request;
use super::whole::Whole;
use crate::bar::starting;
use crate::demand::sizes;
use crate::machine::{exchange, machine};
use crate::render::{Answer, Blocks, Bounds, Field, Head, blocks, print, seconds, table};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    bounds: Vec<Bound>,
    asymptotic: Vec<Asymptotic>,
    best: Bounds,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_steps: Option<InSteps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Vec<Repair>>,
}

#[derive(Serialize)]
struct Bound {
    measure: &'static str,
    value: Blocks,
    theorem: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    condition: String,
}

/// Schedules of at most a number of steps.
#[derive(Serialize)]
struct InSteps {
    steps: u64,
    /// Whether there may be any.
    possible: bool,
}

/// A bound without a value.
#[derive(Serialize)]
struct Asymptotic {
    measure: &'static str,
    order: &'static str,
    theorem: &'static str,
    condition: &'static str,
}

pub(crate) fn run(args: &args::Bounds) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let machine = request::placed(machine(&args.common.machine, options)?, &args.placing)?;
    let mut exchange = exchange(&machine, options, &args.part)?;
    let sizes = sizes(&exchange, options, &args.sizes, false)?;
    if let Some(sizes) = &sizes {
        exchange = exchange.demand(&sizes.demand)?;
    }
    starting("computing bounds", 0);
    let (best, problem) = (exchange.bounds(), *exchange.problem());
    // Of a subset, and of sizes, only the strongest bounds are known.
    let is_listed = problem.ranks == machine.ranks() && sizes.is_none();
    let (mut all, orders) = match is_listed {
        true => (bounds(&problem, &machine), asymptotic_bounds(&problem)),
        false => Default::default(),
    };
    let (part, whole) = (exchange.machine(), Some(&machine).filter(|_| is_listed));
    let mut in_steps = None;
    if let Some(steps) = args.steps {
        let trade_off = best.trade_off.context("--steps: the bound is one of an all-to-all")?;
        let traded = trade_off.bound(steps);
        in_steps = Some(InSteps { steps, possible: traded.is_some() });
        all.extend(traded);
    }
    let strongest = best;
    let best = args.steps.map_or(best.into(), |steps| Bounds::in_steps(best, steps));
    let report = Report {
        head: Head::new(part, &problem).in_groups(&args.part),
        demand: args.sizes.demand.clone(),
        bounds: all.iter().map(bound).collect(),
        asymptotic: (orders.iter())
            .map(|bound| Asymptotic {
                measure: bound.measure.name(),
                order: bound.order,
                theorem: bound.theorem,
                condition: bound.condition,
            })
            .collect(),
        best,
        in_steps,
        whole: whole.and_then(|whole| Whole::of(whole, &problem)),
        repairs: args.repair.then(|| repairs::of(&machine, &problem)).transpose()?,
    };
    let at_most = match sizes {
        None if best.time_seconds > 0.0 => {
            format!(" At most {}.", rate(&problem, &strongest, best.time_seconds))
        }
        _ => String::new(),
    };
    print(options.json, &report, || {
        let rows = all.iter().map(|bound| {
            let condition = if bound.condition.is_empty() {
                "every schedule".to_owned()
            } else {
                bound.condition.clone()
            };
            vec![
                measured(bound.measure).to_owned().into(),
                match bound.measure {
                    Measure::Seconds => seconds(bound.value),
                    _ => blocks(bound.value),
                }
                .into(),
                Field::Prose(condition),
                Field::Prose(bound.theorem.clone()),
            ]
        });
        let answer = Answer::new(
            format!(
                "At least {}, {} step{}, volume {} and charged volume {} (in blocks).",
                seconds(best.time_seconds),
                best.steps,
                plural(best.steps as usize),
                blocks(best.blocks.0),
                blocks(best.link_blocks.0),
            ) + &at_most
                + &report.in_steps.as_ref().map_or(String::new(), |of| in_words(of, best)),
        )
        .about(about_demand(part, &problem, sizes.as_ref()) + ".")
        .assuming(assumed_by(&machine, problem.both_ports(), options));
        let answer = match is_listed {
            true => answer.table(&table(&["bounds", "at least", "holds for", "by"], 1, rows)),
            false => answer,
        }
        .notes(report.whole.as_ref().map_or(String::new(), |whole| whole.text(best, None)));
        match &report.repairs {
            Some(repairs) => answer.table(&repairs::listed(repairs)),
            None => answer,
        }
    })?;
    Ok(Outcome::Fine)
}

/// What schedules of at most a number of steps cost.
fn in_words(of: &InSteps, best: Bounds) -> String {
    let steps = format!("{} step{}", of.steps, plural(of.steps as usize));
    match best.tradeoff_link_blocks {
        Some(Blocks(least)) => format!(" In at most {steps}: charged volume {}.", blocks(least)),
        None => format!(" No schedule has at most {steps}."),
    }
}

/// The count that a bound limits, in words.
fn measured(measure: Measure) -> &'static str {
    match measure {
        Measure::Steps => "steps",
        Measure::Blocks => "volume [blocks]",
        Measure::LinkBlocks => "charged volume [blocks]",
        Measure::Hops => "hops",
        Measure::Seconds => "time",
        other => other.name(),
    }
}

fn bound(bound: &LowerBound) -> Bound {
    Bound {
        measure: bound.measure.name(),
        value: Blocks(bound.value),
        theorem: bound.theorem.clone(),
        condition: bound.condition.clone(),
    }
}
