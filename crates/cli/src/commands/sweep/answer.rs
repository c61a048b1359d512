//! The text of `sweep`: the fastest schedule of each block size, and the points that are missing.

use topocoll::{Catalogue, Exchange, Fastest, Parameters};
use topocoll_report::names::Names;

use super::{Found, Simulated, Timed, named, two_of};
use crate::args;
use crate::commands::heading::{about_sizes, assumed_by};
use crate::commands::within::{self, two_digits};
use crate::commands::{of_operation, refused};
use crate::render::{Answer, Field, bytes, seconds, table};

/// Points without a time that the text names.
const SHOWN: usize = 6;

/// `1 B to 1 MiB`.
pub(super) fn range(found: &Found) -> String {
    let sizes = &found.sweep.block_sizes;
    match sizes.len() {
        1 => bytes(sizes[0]),
        many => format!("{} to {}", bytes(sizes[0]), bytes(sizes[many - 1])),
    }
}

pub(super) fn text(
    exchange: &Exchange<'_>,
    found: &Found,
    args: &args::Sweep,
    catalogue: &Catalogue,
) -> Answer {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let best: Vec<_> = (0..found.sweep.block_sizes.len()).map(|i| found.best_two(i)).collect();
    let choices = best.iter().flatten().flatten().map(|timed| timed.choice);
    let choices = choices.chain(found.missing().take(SHOWN).map(|(_, choice, ..)| choice));
    let choices = choices.map(|choice| (&*choice.algorithm, &choice.parameters));
    let winners = found.sweep.crossovers.iter().filter(|_| found.simulated.is_none());
    let winners = winners.map(|won| (&*won.algorithm, &won.parameters));
    let names = Names::new(catalogue, choices.chain(winners));
    let model = found.simulated.as_ref().map(|simulated| simulated.model.name);
    let formulas = !found.formulas().is_empty();
    let mut header = vec![
        "block",
        "fastest",
        "runner-up",
        "time",
        "bandwidth",
        "of the bound",
        "runner-up time",
    ];
    if let Some(model) = model {
        (header[3], header[5]) = (model, "steps model");
    }
    if formulas {
        header.insert(3, "published formula");
        header.push("formula time");
    }
    let rows = best.iter().enumerate().map(|(i, &[first, second])| {
        let name = |timed: Option<Timed<'_>>| match timed {
            Some(Timed { choice, .. }) => {
                let setting = names.setting(&choice.algorithm, &choice.parameters);
                Field::Setting(Some(choice.algorithm.clone()), setting)
            }
            None => "-".to_owned().into(),
        };
        let ratio = first.map_or("-".to_owned(), |Timed { choice, .. }| match model {
            Some(_) => seconds(choice.price.time.total()),
            None => format!("{:.2}x", choice.bound_ratio),
        });
        let size = bytes(found.sweep.block_sizes[i]);
        let [quickest, other] = [time(first), time(second)].map(Field::from);
        let rate = first
            .filter(|first| !first.floor)
            .map_or("-".to_owned(), |first| found.bandwidth(problem, i, first.seconds).rate());
        let (rate, ratio) = (rate.into(), ratio.into());
        let mut row = vec![size.into(), name(first), name(second), quickest, rate, ratio, other];
        if formulas {
            let [formula, _] = two_of(found.formulas().iter().map(|line| {
                let choice = &line.points[i];
                Timed { choice, seconds: choice.price.time.total(), floor: false }
            }));
            row.insert(3, name(formula));
            row.push(time(formula).into());
        }
        row
    });
    let table = table(&header, if formulas { 4 } else { 3 }, rows);
    let mut winners = match &found.simulated {
        Some(simulated) => by_simulation(simulated, found, &names),
        None => fastest("Fastest", found.sweep.block_sizes[0], &found.sweep.crossovers, &names),
    };
    if winners.is_empty() {
        winners = "The fastest schedule of each block size:".to_owned();
    }
    let mut answer = Answer::new(winners);
    if formulas {
        let crossovers = found.sweep.crossovers_with(found.formulas());
        answer = answer.about(fastest(
            "With published formulas",
            found.sweep.block_sizes[0],
            &crossovers,
            &names,
        ));
    }
    answer
        .about(about_sizes(machine, problem, &range(found)) + ".")
        .assuming(assumed_by(machine, problem.both_ports(), &args.common.options))
        .table(&table)
        .notes(notes(found))
        .list(&heading(found), missing(found, &names))
        .list("Does not apply:", why(args, exchange, &found.sweep.rejected, found.rejected()))
}

/// `X from 1 B, Y from 1 KiB to 4 KiB, undecided from 4097 B, Z from 1 MiB`: names from a block size on,
/// some of them to a last one.
fn by_size(least: u64, parts: &[(u64, Option<u64>, String)]) -> String {
    let mut out = Vec::new();
    if let Some(&(first, ..)) = parts.first().filter(|&&(first, ..)| first > least) {
        out.push(format!("undecided to {}", bytes(first - 1)));
    }
    for (from, to, name) in parts {
        match to {
            None => out.push(format!("{name} from {}", bytes(*from))),
            Some(to) => {
                out.push(format!("{name} from {} to {}", bytes(*from), bytes(*to)));
                out.push(format!("undecided from {}", bytes(to + 1)));
            }
        }
    }
    out.join(", ")
}

/// The time of a point.
fn time(timed: Option<Timed<'_>>) -> String {
    let Some(Timed { seconds: time, floor, .. }) = timed else { return "-".to_owned() };
    format!("{}{}", if floor { ">= " } else { "" }, seconds(time))
}

/// The fastest simulated points, and how many points may be faster.
fn by_simulation(simulated: &Simulated, found: &Found, names: &Names<'_>) -> String {
    let parts = found.winners().into_iter().map(|(from, choice)| {
        let name = choice.map_or("nothing simulated".to_owned(), |choice| names.of(choice));
        format!("{name} from {}", bytes(from))
    });
    let parts: Vec<_> = parts.collect();
    let open = found.missing().filter(|(.., reason)| within::is_open(reason)).count();
    let open = match open {
        0 => String::new(),
        1 => "; 1 point is not simulated, and may be faster".to_owned(),
        many => format!("; {many} points are not simulated, and may be faster"),
    };
    let model = simulated.model.name;
    format!("Fastest by the {model} model: {}{open}.\n", parts.join(", "))
}

/// The heading of the points without a time.
fn heading(found: &Found) -> String {
    found
        .simulated
        .as_ref()
        .map_or(String::new(), |simulated| within::heading(simulated.budget, &simulated.raise))
}

/// The points without a time, with their estimates.
fn missing(found: &Found, names: &Names<'_>) -> String {
    let mut out = String::new();
    for (size, choice, estimate, reason) in found.missing().take(SHOWN) {
        let about = within::about(estimate, reason);
        out += &format!("  {} at {}: {about}\n", names.of(choice), bytes(size));
    }
    let rest = found.missing().count().saturating_sub(SHOWN);
    if rest > 0 {
        out += &format!("  and {rest} more, which --json lists\n");
    }
    out
}

fn fastest(what: &str, least: u64, list: &[Fastest], names: &Names<'_>) -> String {
    if list.is_empty() {
        return String::new();
    }
    let parts: Vec<_> = (list.iter())
        .map(|fastest| {
            let setting = names.setting(&fastest.algorithm, &fastest.parameters);
            let name = named(&fastest.algorithm, &setting, fastest.published);
            (fastest.block_bytes, fastest.to_bytes, name)
        })
        .collect();
    format!("{what}: {}.\n", by_size(least, &parts))
}

fn notes(found: &Found) -> String {
    let mut out = String::new();
    for name in &found.sweep.split {
        out += &format!(
            "{name} splits blocks: it is priced at every size, and its crossovers are exact to the bytes of a part.\n"
        );
    }
    for name in &found.sweep.undecided {
        out += &format!("{name} is too large here to be priced exactly, and might be better.\n");
    }
    out + &partly(&found.sweep.partly_priced) + &not_searched(&found.sweep.unsearched)
}

/// Searches that exceed the budget.
pub(in crate::commands) fn not_searched(unsearched: &[topocoll::Unsearched]) -> String {
    let line = |one: &topocoll::Unsearched| {
        let (name, budget) = (&one.algorithm, two_digits(one.seconds, f64::ceil));
        format!(
            "{name} may be faster, and searching exceeds the budget: --budget {budget}s searches.\n"
        )
    };
    unsearched.iter().map(line).collect()
}

/// Settings that were not priced.
pub(in crate::commands) fn partly(partly_priced: &[topocoll::PartlyPriced]) -> String {
    let mut out = String::new();
    for topocoll::PartlyPriced { algorithm, priced, settings: all, .. } in partly_priced {
        out += &format!(
            "Of the {all} settings of {algorithm}, {priced} were priced: those that trade steps for blocks best.\n"
        );
    }
    out
}

/// With `--why`, or where all lines are named, the algorithms of the operation that do not apply.
pub(in crate::commands) fn why(
    args: &args::Sweep,
    exchange: &Exchange<'_>,
    rejected: &[topocoll::Rejected],
    formulas: &[topocoll::Rejected],
) -> String {
    if !args.why && args.algorithm.is_empty() {
        return String::new();
    }
    let rejected =
        of_operation(exchange, rejected).map(|row| (row.algorithm.clone(), &*row.reason));
    let formulas =
        formulas.iter().map(|row| (named(&row.algorithm, &Parameters::new(), true), &*row.reason));
    let all: Vec<_> = rejected.chain(formulas).collect();
    refused(all.iter().map(|(name, reason)| (&**name, *reason)))
}
