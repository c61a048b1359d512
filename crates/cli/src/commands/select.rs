use anyhow::Context;
use serde::Serialize;
use topocoll::contention::ContentionModel;
use topocoll::{
    AnalysisError, Budget, Choice, Error, Exchange, Parameters, Priced, Selection,
    check_counting_work, check_demand_work,
};

use super::whole::Whole;
use super::{command_line, request, title_of_sizes, watch};
use crate::demand::{Named, sizes};
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine};
use crate::render::{
    Bar, Blocks, Bounds, Crossover, Field, Head, PartlyPriced, Rejected, Seconds, blocks, bytes,
    parameters, print, seconds, table, time_unit,
};
use crate::{Outcome, args};

/// Choices in the table without `--all`.
const SHOWN: usize = 12;

/// The best choice is verified at once up to this number of ranks,
const VERIFY_UP_TO: u32 = 1024;
/// and up to this sum of steps over all ranks: part of a second.
const VERIFY_STEPS: u64 = 1 << 22;

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
    split: Vec<String>,
    extremes: Vec<Extremes>,
    subsets: Vec<PartlyPriced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Simulated>,
}

/// A ranking by simulation.
#[derive(Serialize)]
struct Simulated {
    model: &'static str,
    sync: &'static str,
    order_differs: bool,
    /// Positions among the choices of the steps model, best first.
    #[serde(skip)]
    order: Vec<usize>,
    /// By position.
    #[serde(skip)]
    seconds: Vec<f64>,
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
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    max_link_sharing: u64,
    bound_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_seconds: Option<f64>,
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
    let whole = machine(&args.common.machine, options)?;
    anyhow::ensure!(
        args.ranks.is_none() || args.model == args::Model::Steps,
        "--ranks: only the steps model prices a subset"
    );
    anyhow::ensure!(
        args.demand.is_none() || args.model == args::Model::Steps,
        "--demand: only the steps model prices a demand matrix"
    );
    let model = request::model(args.model);
    let catalogue = catalogue(&whole, options, &args.schedule)?;
    let mut exchange = exchange(&whole, options, args.ranks.as_ref())?.catalogue(&catalogue);
    if let Some(model) = model {
        exchange.check_simulation().with_context(|| format!("--model {}", model.name))?;
    }
    let sizes = sizes(exchange.problem(), options, args.demand.as_deref())?;
    if let Some(sizes) = &sizes {
        check_demand_work(exchange.problem()).map_err(Error::from).context("--demand")?;
        exchange = exchange.demand(&sizes.demand)?;
    }
    let selection = ranked(&exchange)?;
    let delivers = prove_best(&exchange, &selection)?;
    let mut report = report(&exchange, &selection, delivers);
    report.demand.clone_from(&args.demand);
    // These are bounds for equal blocks.
    report.whole = report.whole.filter(|_| args.demand.is_none());
    if let Some(model) = model {
        rank_by(model, &exchange, &selection, &mut report)?;
    }
    let shown = if args.all { usize::MAX } else { SHOWN };
    print(options.json, &report, || {
        text(args, &exchange, sizes.as_ref(), &selection, &report, shown)
    })?;
    Ok(if delivers == Some(false) || selection.choices.is_empty() {
        Outcome::Failed
    } else {
        Outcome::Fine
    })
}

/// Ranks the choices, as far as memory and some seconds allow.
fn ranked(exchange: &Exchange<'_>) -> Result<Selection, Error> {
    let bar = Bar::new("{wide_bar} {percent} % of the candidates counted, {eta} left");
    bar.of(|&progress| {
        let mut budget = Budget::default();
        (budget.memory, budget.progress) = (memory(), progress);
        exchange.clone().budget(budget).select()
    })
}

/// Ranks the choices by simulation.
fn rank_by(
    model: &'static ContentionModel,
    exchange: &Exchange<'_>,
    selection: &Selection,
    report: &mut Report,
) -> anyhow::Result<()> {
    let seconds = Bar::new(watch::MESSAGES)
        .of(|&progress| {
            let mut budget = Budget::default();
            (budget.memory, budget.progress) = (memory(), progress);
            exchange.clone().budget(budget).simulate_choices(selection, model)
        })
        .with_context(|| format!("--model {}", model.name))?;
    let mut order: Vec<usize> = (0..seconds.len()).collect();
    order.sort_by(|&a, &b| seconds[a].total_cmp(&seconds[b]));
    for (entry, &seconds) in report.choices.iter_mut().zip(&seconds) {
        entry.simulated_seconds = Some(seconds);
    }
    let by_time = |entry: &Entry| entry.simulated_seconds.unwrap_or(f64::INFINITY);
    report.choices.sort_by(|a, b| by_time(a).total_cmp(&by_time(b)));
    let order_differs = !order.is_sorted();
    report.simulated =
        Some(Simulated { model: model.name, sync: "free", order_differs, order, seconds });
    Ok(())
}

/// Verifies the best choice by full replay where that is instant and fits in memory.
fn prove_best(exchange: &Exchange<'_>, selection: &Selection) -> anyhow::Result<Option<bool>> {
    let ranks = exchange.problem().ranks;
    let Some(best) = selection.best().filter(|_| ranks <= VERIFY_UP_TO) else {
        return Ok(None);
    };
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    if u64::from(schedule.rule().steps()) * u64::from(ranks) > VERIFY_STEPS {
        return Ok(None);
    }
    match exchange.verify(&schedule, None) {
        Ok(found) => Ok(Some(found.violation.is_none() && found.counts.port_violations == 0)),
        // `verify` reports the memory that it needs.
        Err(Error::Analysis(AnalysisError::Memory { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn report(exchange: &Exchange<'_>, selection: &Selection, best_delivers: Option<bool>) -> Report {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let of = |i: usize| &selection.choices[i];
    Report {
        head: Head::new(machine, problem),
        demand: None,
        decided: selection.undecided().is_empty(),
        recommended: selection.best().map(Chosen::from),
        choices: selection.choices.iter().map(entry).collect(),
        rejected: selection.rejected.iter().map(Rejected::from).collect(),
        bound: selection.bound.into(),
        whole: Whole::of(machine, problem),
        reason: reason(selection),
        best_delivers,
        crossovers: (selection.crossovers.iter())
            .map(|crossover| Crossover {
                block_bytes: crossover.block_bytes,
                algorithm: of(crossover.choice).algorithm.clone(),
                kind: None,
                parameters: of(crossover.choice).parameters.clone(),
            })
            .collect(),
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
        simulated: None,
    }
}

fn entry(choice: &Choice) -> Entry {
    let price = &choice.price;
    Entry {
        chosen: choice.into(),
        seconds: price.time.into(),
        steps: price.steps,
        blocks: Blocks(price.blocks),
        link_blocks: Blocks(price.link_blocks),
        max_link_sharing: price.link_contention,
        bound_ratio: choice.bound_ratio,
        priced: (price.priced == Priced::AtLeast).then_some("at_least"),
        simulated_seconds: None,
    }
}

impl From<&Choice> for Chosen {
    fn from(choice: &Choice) -> Self {
        Self { algorithm: choice.algorithm.clone(), parameters: choice.parameters.clone() }
    }
}

/// An algorithm with its setting, as text.
fn named(choice: &Choice) -> String {
    match choice.parameters.is_empty() {
        true => choice.algorithm.clone(),
        false => format!("{} ({})", choice.algorithm, parameters(&choice.parameters)),
    }
}

/// One sentence: why the winner wins over the best of the other algorithms.
pub(crate) fn reason(selection: &Selection) -> String {
    let Some(best) = selection.best() else {
        return "no algorithm serves this exchange".to_owned();
    };
    if best.price.priced == Priced::AtLeast {
        return format!(
            "{} has the lowest minimum cost; no algorithm can be priced exactly on a machine of this size",
            named(best)
        );
    }
    let mut behind = selection.choices.iter().skip(selection.undecided().len());
    let Some(next) = behind.find(|choice| choice.algorithm != best.algorithm) else {
        return format!("{} wins: no other algorithm serves this exchange", named(best));
    };
    let (a, b) = (&best.price, &next.price);
    let steps = if a.steps == b.steps {
        "equal steps over faster links".to_owned()
    } else {
        format!("{} against {} steps", a.steps, b.steps)
    };
    let terms = [
        ("startup", b.time.startup - a.time.startup, steps.clone()),
        (
            "transmission",
            b.time.transmission - a.time.transmission,
            format!(
                "{} against {} blocks over the busiest links",
                blocks(a.link_blocks),
                blocks(b.link_blocks)
            ),
        ),
        ("propagation", b.time.propagation - a.time.propagation, "fewer hops".to_owned()),
        (
            "rearrangement",
            b.time.rearrangement - a.time.rearrangement,
            "fewer blocks copied".to_owned(),
        ),
        ("barriers", b.time.barrier - a.time.barrier, steps.clone()),
    ];
    let against = match b.priced == Priced::AtLeast {
        true => format!("the minimum cost of {}", named(next)),
        false => named(next),
    };
    let Some((term, saved, how)) =
        terms.iter().max_by(|x, y| x.1.total_cmp(&y.1)).filter(|term| term.1 > 0.0)
    else {
        return format!("{} and {against} are a tie: both cost the same", named(best));
    };
    // Net loss over the other terms.
    let lost: f64 = saved - terms.iter().map(|term| term.1).sum::<f64>();
    let lost = if lost > 0.0 {
        format!(", more than the {} it loses elsewhere", seconds(lost))
    } else {
        String::new()
    };
    format!(
        "{} wins over {against}: it saves {} of {term} ({how}){lost}",
        named(best),
        seconds(*saved)
    )
}

/// The choices that may be faster than the best, and the command that decides.
fn undecided(args: &args::Select, exchange: &Exchange<'_>, selection: &Selection) -> String {
    let (Some(best), [first, ..]) = (selection.best(), selection.undecided()) else {
        return String::new();
    };
    let least = |choice: &Choice| seconds(choice.price.time.total());
    let others = match selection.undecided().len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more such settings)"),
    };
    let exact = match best.price.priced {
        Priced::AtLeast => "no choice is priced exactly".to_owned(),
        _ => format!("{} takes {}", named(best), least(best)),
    };
    let simulate =
        command_line("simulate", &args.common, Some(&first.algorithm), &first.parameters);
    let counting = exchange
        .schedule(&first.algorithm, &first.parameters)
        .and_then(|schedule| Ok(check_counting_work(&schedule, exchange.machine())?));
    let settle = match counting {
        Ok(()) => format!("To decide: {simulate}"),
        Err(error) => format!("`{simulate}` is refused: {error}."),
    };
    format!(
        "Undecided: {exact}; {} takes at least {} and is not priced exactly{others}.\n{settle}\n\n",
        named(first),
        least(first),
    )
}

fn text(
    args: &args::Select,
    exchange: &Exchange<'_>,
    sizes: Option<&Named>,
    selection: &Selection,
    report: &Report,
    shown: usize,
) -> String {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let mut out = format!("{}\n\n", title_of_sizes(machine, problem, sizes));
    out += &undecided(args, exchange, selection);
    let slowest = selection
        .choices
        .iter()
        .take(shown)
        .map(|choice| choice.price.time.total())
        .fold(0.0, f64::max);
    let (scale, unit) = time_unit(slowest);
    let time = |seconds: f64| format!("{:.3}", seconds / scale);
    let headers = [
        format!("time [{unit}]"),
        format!("startup [{unit}]"),
        format!("volume [{unit}]"),
        format!("other [{unit}]"),
    ];
    let [total, startup, volume, other] = headers.each_ref().map(String::as_str);
    let header = [
        "algorithm",
        "parameters",
        total,
        "x bound",
        startup,
        volume,
        other,
        "steps",
        "blocks",
        "link blocks",
        "sharing",
    ];
    let rows = selection.choices.iter().take(shown).map(|choice| {
        let price = &choice.price;
        let floor = if price.priced == Priced::AtLeast { ">= " } else { "" };
        let sharing = match price.link_contention {
            0 if machine.topology.links() == 0 => "-".to_owned(),
            0 => "?".to_owned(),
            most => most.to_string(),
        };
        vec![
            Field::Setting(Some(choice.algorithm.clone()), Parameters::new()),
            Field::Setting(None, choice.parameters.clone()),
            format!("{floor}{}", time(price.time.total())).into(),
            format!("{:.2}", choice.bound_ratio).into(),
            time(price.time.startup).into(),
            time(price.time.transmission).into(),
            time(price.time.propagation + price.time.rearrangement + price.time.barrier).into(),
            price.steps.to_string().into(),
            blocks(price.blocks).into(),
            format!("{floor}{}", blocks(price.link_blocks)).into(),
            sharing.into(),
        ]
    });
    out += &table(&header, 2, rows);
    if selection.choices.len() > shown {
        let more = selection.choices.len() - shown;
        out +=
            &format!("  and {more} more settings that trade steps for volume (--all shows them)\n");
    }
    out += &format!("\n{}.\n", report.reason);
    let by = if report.simulated.is_some() { " by the steps model" } else { "" };
    out += &format!(
        "No schedule is predicted{by} to end before {}, takes fewer than {} steps, or has a volume below {} blocks or a charged volume (link blocks) below {}.\n",
        seconds(selection.bound.seconds),
        selection.bound.steps,
        blocks(selection.bound.blocks),
        blocks(selection.bound.link_blocks),
    );
    if let Some(whole) = &report.whole {
        out += &whole.text(report.bound, None);
    }
    out += &proof(args, selection, report);
    if sizes.is_some() {
        out += &format!(
            "Each message counts with its own bytes; both ends know the sizes. A block is the mean size, rounded up: {}.\n",
            bytes(problem.block_bytes)
        );
    }
    out += &by_block_size(selection);
    for topocoll::PartlyPriced { algorithm, priced, settings: all, .. } in &selection.partly_priced
    {
        out += &format!(
            "Of the {all} settings of {algorithm}, {priced} were counted: those that trade steps for blocks best.\n"
        );
    }
    out += &by_simulation(selection, report, shown);
    if !selection.rejected.is_empty() {
        out += "\ndoes not apply:\n";
        for rejected in &selection.rejected {
            out += &format!("  {}: {}\n", rejected.algorithm, rejected.reason);
        }
    }
    out
}

/// The proof that the best choice delivers, or the command that proves it.
fn proof(args: &args::Select, selection: &Selection, report: &Report) -> String {
    let Some(best) = selection.best() else { return String::new() };
    match report.best_delivers {
        Some(true) => {
            "Proof: its schedule was replayed, and every block of every rank arrives.\n".to_owned()
        }
        Some(false) => "Its schedule was replayed and does NOT deliver.\n".to_owned(),
        None => {
            let (name, setting) = (&*best.algorithm, &best.parameters);
            let verify = command_line("verify", &args.common, Some(name), setting);
            format!("Proof: {verify}\n")
        }
    }
}

/// The ranking by simulation, and whether its order differs.
fn by_simulation(selection: &Selection, report: &Report, shown: usize) -> String {
    let Some(simulated) = &report.simulated else { return String::new() };
    let rows = simulated.order.iter().take(shown).map(|&i| {
        let choice = &selection.choices[i];
        vec![
            Field::Setting(Some(choice.algorithm.clone()), Parameters::new()),
            Field::Setting(None, choice.parameters.clone()),
            seconds(simulated.seconds[i]).into(),
            seconds(choice.price.time.total()).into(),
        ]
    });
    let header = ["algorithm", "parameters", simulated.model, "steps"];
    let mut out = format!(
        "\nSimulated by the {} model, no barriers between steps:\n\n{}\n",
        simulated.model,
        table(&header, 2, rows)
    );
    match simulated.order.first() {
        Some(&first) if first != 0 => {
            out += &format!(
                "Its order differs from the steps model's: {} comes first, not {}.\n",
                named(&selection.choices[first]),
                named(&selection.choices[0])
            );
        }
        _ if simulated.order_differs => {
            out += "Its order differs from the steps model's after the first.\n";
        }
        _ => out += "Its order is that of the steps model.\n",
    }
    out
}

/// The fastest choice by block size.
fn by_block_size(selection: &Selection) -> String {
    let mut out = String::new();
    if selection.crossovers.len() > 1 {
        out += "Fastest by block size: ";
        let parts: Vec<_> = (selection.crossovers.iter())
            .map(|crossover| {
                format!(
                    "{} from {}",
                    named(&selection.choices[crossover.choice]),
                    bytes(crossover.block_bytes)
                )
            })
            .collect();
        out += &parts.join(", ");
        out += ".\n";
    }
    if !selection.split.is_empty() {
        let (names, verb) = (
            selection.split.join(" and "),
            if selection.split.len() > 1 { "split" } else { "splits" },
        );
        out += &format!(
            "{names} {verb} blocks: `topocoll sweep` prices each block size separately.\n"
        );
    }
    for extremes in &selection.extremes {
        out += &format!(
            "{} and {} cross at a block of {}.\n",
            named(&selection.choices[extremes.fewest_steps]),
            named(&selection.choices[extremes.least_volume]),
            bytes(extremes.block_bytes),
        );
    }
    out
}
