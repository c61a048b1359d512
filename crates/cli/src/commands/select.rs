mod answer;
mod over;

use anyhow::Context;
use serde::Serialize;
use topocoll::contention::{ContentionModel, Estimate, Sync};
use topocoll::tune::Modelled;
use topocoll::{
    AnalysisError, Budget, Choice, Error, Exchange, Machine, NotSimulated, Parameters, Priced,
    Problem, Selection, Solution, Trace,
};

use topocoll_report::words::{in_full, reason};

use self::answer::answer;
use super::gains::{Gains, compared};
use super::request;
use super::say_refused;
use super::whole::Whole;
use super::within::{self, Left};
use crate::demand::sizes;
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine, ranked};
use crate::render::{
    Bandwidth, Blocks, Bounds, Crossover, Head, PartlyPriced, Rejected, Seconds, Unsearched, print,
    seconds,
};
use crate::{Outcome, args};

/// The best choice is verified at once up to this number of ranks,
const VERIFY_UP_TO: u32 = 1024;
/// and up to these sums of steps and of blocks sent over all ranks: a tenth of a second.
const VERIFY: [u64; 2] = [1 << 22, 1 << 25];

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    /// Whether no choice may be faster than the one recommended.
    decided: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    recommended: Option<Chosen>,
    choices: Vec<Entry>,
    rejected: Vec<Rejected>,
    bound: Bounds,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_delivers: Option<bool>,
    crossovers: Vec<Crossover>,
    /// The size up to which they are decided, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    crossovers_to_bytes: Option<u64>,
    /// The size up to which their times without barriers were looked at, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_running_to_bytes: Option<u64>,
    split: Vec<String>,
    extremes: Vec<Extremes>,
    subsets: Vec<PartlyPriced>,
    not_searched: Vec<Unsearched>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Simulated>,
    /// Another model's time of the best choice without barriers, where the models differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    otherwise: Option<Otherwise>,
    /// The choice that would win if barriers cost little.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_step: Option<InStep>,
    /// All messages posted at once over all ports, by the fluid model.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_at_once_seconds: Option<f64>,
    /// What an MPI library would gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<Gains>,
    /// Times over the matrices of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Trace>,
}

/// The time of the best choice by another model.
#[derive(Serialize)]
struct Otherwise {
    model: &'static str,
    free_running_seconds: f64,
}

/// A choice that wins if a barrier costs less.
#[derive(Serialize)]
struct InStep {
    #[serde(flatten)]
    chosen: Chosen,
    barrier_seconds: f64,
}

/// A ranking by simulation.
#[derive(Serialize)]
struct Simulated {
    model: &'static str,
    sync: &'static str,
    order_differs: bool,
    /// Seconds of one core; none is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_seconds: Option<f64>,
    /// Whether no choice that is not simulated may be faster than the one recommended.
    decided: bool,
    /// Positions among the choices of the steps model of those simulated, best first.
    #[serde(skip)]
    order: Vec<usize>,
    /// By position, with the estimates.
    #[serde(skip)]
    found: Vec<(Estimate, Result<f64, NotSimulated>)>,
    /// The option that simulates all choices.
    #[serde(skip)]
    raise: String,
}

/// An algorithm and its setting.
#[derive(Serialize)]
struct Chosen {
    algorithm: String,
    parameters: Parameters,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    chosen: Chosen,
    #[serde(flatten)]
    seconds: Seconds,
    /// Without barriers; none where it was not simulated, or in a deadlock.
    free_running_seconds: Option<f64>,
    free_running_model: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deadlock: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_channels: Option<u32>,
    /// None in a deadlock.
    ranked_seconds: Option<f64>,
    /// By that.
    #[serde(flatten)]
    bandwidth: Option<Bandwidth>,
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    max_link_sharing: u64,
    bound_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tradeoff_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_seconds: Option<f64>,
    /// The estimate of a choice that is not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_simulated: Option<Left>,
}

#[derive(Serialize)]
struct Extremes {
    algorithm: String,
    fewest_steps: Parameters,
    least_volume: Parameters,
    cross_bytes: u64,
}

pub(crate) fn run(args: &args::Select) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let whole = request::placed(machine(&args.common.machine, options)?, &args.placing)?;
    let model = args.model.and_then(request::model);
    within::check(model, &whole)?;
    let mut exchange = self::exchange(&whole, options, &args.part)?;
    let catalogue = catalogue(exchange.machine(), options, &args.schedule)?;
    exchange = exchange.catalogue(&catalogue);
    let against = compared(args.against.as_deref(), args.release.as_deref())?;
    let sizes = sizes(&exchange, options, &args.sizes, true)?;
    if let Some(sizes) = &sizes {
        exchange = exchange.demand(&sizes.demand)?;
    }
    exchange = exchange.sync(sync(args, &whole)?);
    let selection = ranked(&exchange, args.budget)?;
    say_refused(&args.schedule, &selection.rejected);
    let mut report = report(&exchange, &selection, args);
    // These are bounds for equal blocks.
    report.whole = report.whole.filter(|_| args.sizes.demand.is_none());
    if let Some(found) = &mut report.whole
        && let Some(whole) = whole.unbroken()
    {
        let exchange =
            self::exchange(&whole, options, &args::Part::WHOLE)?.sync(sync(args, &whole)?);
        let best = ranked(&exchange, args.budget)?;
        found.compare(&selection, &best);
    }
    if let Some(model) = model {
        rank_by(model, args.budget, &exchange, &selection, &mut report)?;
    }
    if let Some((library, release)) = against {
        let (machine, operation) = (exchange.machine(), exchange.problem().operation);
        let modelled = Modelled::new(library, machine, operation).context("--against")?;
        report.library = Some(Gains::new(library, release, &modelled, &exchange, &selection));
    }
    if let Some(sizes) = &sizes {
        report.trace = exchange.over(&sizes.trace, &selection.choices).context("--demand")?;
        let best = report.trace.as_ref().map(|trace| Chosen {
            algorithm: trace.choices[0].algorithm.clone(),
            parameters: trace.choices[0].parameters.clone(),
        });
        report.recommended = best.or(report.recommended);
    }
    report.best_delivers = prove(&exchange, report.recommended.as_ref())?;
    print(options.json, &report, || {
        let answer = answer(args, &exchange, sizes.as_ref(), &catalogue, &selection, &report);
        report.trace.iter().fold(answer, over::add_to)
    })?;
    Ok(if report.best_delivers == Some(false) || selection.choices.is_empty() {
        Outcome::Failed
    } else {
        Outcome::Fine
    })
}

/// Whether ranks keep in step in the ranking.
fn sync(args: &args::Select, machine: &Machine) -> anyhow::Result<Sync> {
    if args.model.is_some() {
        return Ok(Sync::Barrier);
    }
    let barrier = machine.timing.barrier.seconds(machine.ranks());
    match args.sync {
        Some(args::Sync::Free) if barrier > 0.0 => anyhow::bail!(
            "--sync free: a barrier of {} costs {}: --barrier 0 ranks without it",
            machine.name,
            seconds(barrier)
        ),
        Some(args::Sync::Barrier) => Ok(Sync::Barrier),
        Some(args::Sync::Free) | None => Ok(Sync::Free),
    }
}

/// Ranks the choices by simulation, those that are not simulated last.
fn rank_by(
    model: &'static ContentionModel,
    seconds: Option<f64>,
    exchange: &Exchange<'_>,
    selection: &Selection,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut budget = Budget::default();
    (budget.memory, budget.simulation) = (memory(), seconds);
    let exchange = exchange.clone().budget(budget);
    let simulations = within::named(exchange.simulations(selection, model), model)?;
    let found = within::run(&simulations, model, "choice")?;
    let estimates = simulations.estimates().map(|(estimate, _)| estimate);
    let found: Vec<_> = estimates.zip(found).collect();
    let time = |i: usize| found[i].1.as_ref().copied().unwrap_or(f64::INFINITY);
    let mut order: Vec<usize> = (0..found.len()).filter(|&i| found[i].1.is_ok()).collect();
    order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
    for (entry, (estimate, found)) in report.choices.iter_mut().zip(&found) {
        match found {
            Ok(seconds) => entry.simulated_seconds = Some(*seconds),
            Err(reason) => entry.not_simulated = Some(Left::new(estimate, reason)),
        }
    }
    report.recommended = order.first().map(|&first| Chosen::from(&selection.choices[first]));
    let by_time = |entry: &Entry| entry.simulated_seconds.unwrap_or(f64::INFINITY);
    report.choices.sort_by(|a, b| by_time(a).total_cmp(&by_time(b)));
    report.simulated = Some(Simulated {
        model: model.name,
        sync: "free",
        order_differs: !order.is_sorted(),
        budget_seconds: simulations.budget(),
        decided: !found.iter().any(|(_, found)| found.as_ref().is_err_and(within::is_open)),
        raise: within::raise(&simulations),
        order,
        found,
    });
    Ok(())
}

/// Verifies the recommended choice by full replay where that is instant and fits in memory.
fn prove(exchange: &Exchange<'_>, chosen: Option<&Chosen>) -> anyhow::Result<Option<bool>> {
    let ranks = exchange.problem().ranks;
    let Some(best) = chosen.filter(|_| ranks <= VERIFY_UP_TO) else {
        return Ok(None);
    };
    let Solution { schedule, claims, .. } = exchange.solve(&best.algorithm, &best.parameters)?;
    let blocks = (claims.bytes / u128::from(schedule.problem.block_bytes)) as u64;
    let most = VERIFY.map(|sum| sum / u64::from(ranks));
    if u64::from(schedule.rule().steps()) > most[0] || blocks > most[1] {
        return Ok(None);
    }
    match exchange.verify(&schedule, None) {
        Ok(found) => Ok(Some(found.violation.is_none() && found.exceeded == 0)),
        // `verify` reports the memory that it needs.
        Err(Error::Analysis(AnalysisError::Memory { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn report(exchange: &Exchange<'_>, selection: &Selection, args: &args::Select) -> Report {
    let demand = args.sizes.demand.clone();
    let (machine, problem) = (exchange.machine(), exchange.problem());
    // Bandwidths are of blocks of one size.
    let sized = Some(problem).filter(|_| demand.is_none());
    let of = |i: usize| &selection.choices[i];
    Report {
        head: Head::new(machine, problem).in_groups(&args.part),
        demand,
        decided: selection.undecided().is_empty(),
        recommended: selection.best().map(Chosen::from),
        choices: selection.choices.iter().map(|choice| entry((selection, sized), choice)).collect(),
        rejected: selection.rejected.iter().map(Rejected::from).collect(),
        bound: selection.bound.into(),
        whole: Whole::of(machine, problem),
        reason: reason(selection, in_full),
        best_delivers: None,
        crossovers: (selection.crossovers.iter())
            .map(|crossover| Crossover {
                block_bytes: crossover.block_bytes,
                to_bytes: crossover.to_bytes,
                algorithm: crossover.algorithm.clone(),
                kind: None,
                parameters: crossover.parameters.clone(),
                changes_free_running: crossover.changes.clone(),
            })
            .collect(),
        crossovers_to_bytes: selection.crossovers.last().and_then(|last| last.to_bytes),
        free_running_to_bytes: selection.without_barriers.as_ref().and_then(|found| found.up_to),
        split: selection.split.clone(),
        extremes: (selection.extremes.iter())
            .map(|extremes| Extremes {
                algorithm: of(extremes.fewest_steps).algorithm.clone(),
                fewest_steps: of(extremes.fewest_steps).parameters.clone(),
                least_volume: of(extremes.least_volume).parameters.clone(),
                cross_bytes: extremes.block_bytes,
            })
            .collect(),
        subsets: selection.partly_priced.iter().map(PartlyPriced::from).collect(),
        not_searched: selection.unsearched.iter().map(Unsearched::from).collect(),
        simulated: None,
        otherwise: selection.without_barriers.as_ref().and_then(|found| {
            let (model, free_running_seconds) = found.otherwise?;
            Some(Otherwise { model, free_running_seconds })
        }),
        in_step: (selection.in_step()).map(|found| InStep {
            chosen: of(found.choice).into(),
            barrier_seconds: found.barrier,
        }),
        all_at_once_seconds: selection.all_at_once,
        library: None,
        trace: None,
    }
}

fn entry((selection, sized): (&Selection, Option<&Problem>), choice: &Choice) -> Entry {
    let price = &choice.price;
    let model = selection.without_barriers.as_ref().map(|found| found.model);
    let run = choice.free_running;
    let deadlock = run.is_some_and(|run| run.seconds.is_infinite());
    let ends = run.filter(|_| !deadlock);
    Entry {
        chosen: choice.into(),
        seconds: price.time.into(),
        free_running_seconds: ends.map(|run| run.seconds),
        free_running_model: run.and(model),
        deadlock,
        virtual_channels: ends
            .map(|run| run.virtual_channels)
            .filter(|_| model == Some("wormhole")),
        ranked_seconds: (!deadlock).then(|| choice.ranked_seconds()),
        bandwidth: (sized.filter(|_| !deadlock))
            .map(|problem| Bandwidth::new(problem, choice.ranked_seconds())),
        steps: price.steps,
        blocks: Blocks(price.blocks),
        link_blocks: Blocks(price.link_blocks),
        max_link_sharing: price.link_contention,
        bound_ratio: choice.bound_ratio,
        tradeoff_ratio: choice.tradeoff_ratio,
        priced: (price.priced == Priced::AtLeast).then_some("at_least"),
        simulated_seconds: None,
        not_simulated: None,
    }
}

impl From<&Choice> for Chosen {
    fn from(choice: &Choice) -> Self {
        Self { algorithm: choice.algorithm.clone(), parameters: choice.parameters.clone() }
    }
}
