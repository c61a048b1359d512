use std::sync::Arc;

use topocoll_analysis::{AnalysisError, Counts, best_bounds, count, counting_work};
use topocoll_exec::Members;
use topocoll_schedule::{Problem, Schedule};
use topocoll_topology::{FullyConnected, Machine, Rank, Shape};

use crate::price::Price;
use crate::select::{Choice, Selection, bound_ratio, ranked, reject, select};
use crate::{Error, plan};

/// Segments that counting one choice may look at: some seconds.
const WORK_PER_CHOICE: u128 = 1 << 26;

/// Counts a schedule of some ranks on the links of the whole machine: what leaves their part of it
/// does so by the machine's own routes, and shares links with what passes there.
///
/// # Errors
/// Too many segments to look at, or more link counters than `memory` bytes hold.
pub fn count_among(
    machine: &Machine,
    members: &[Rank],
    schedule: &Schedule,
    memory: u128,
) -> Result<Counts, AnalysisError> {
    let placed = schedule.placed(members, machine.ranks());
    let needed = counting_work(&placed, machine);
    if needed > WORK_PER_CHOICE {
        let what = "counting on the links of the whole machine";
        return Err(AnalysisError::Work { what, needed, limit: WORK_PER_CHOICE });
    }
    let mut counts = count(&placed, machine, memory)?;
    // Barriers are among those that take part.
    let barriers = counts.steps.saturating_sub(1) as f64;
    counts.time.barrier = machine.timing.barrier.seconds(schedule.problem.ranks) * barriers;
    Ok(counts)
}

/// The machine that some ranks of one are by themselves, in their order.
///
/// # Errors
/// No ranks, one that the machine lacks, or one twice.
pub fn part(machine: &Machine, members: &[Rank]) -> Result<Machine, Error> {
    let members = Members::new(members, machine.ranks())?;
    Ok(machine.among(members.ranks())?)
}

/// Ranks algorithms and settings for an exchange among some ranks of a machine, the i-th of them its
/// rank i, by predicted time on the links of the whole machine.
///
/// Looked at are the choices of [`select()`] on the machine that they are by themselves
/// ([`Machine::among`]), each counted exactly. The bounds are those of ports and startups, as
/// messages may leave the part of a grid that the ranks are.
///
/// # Errors
/// No ranks, one that the machine lacks, or one twice.
pub fn select_among(
    machine: &Machine,
    members: &[Rank],
    problem: &Problem,
    memory: u128,
) -> Result<Selection, Error> {
    let own = part(machine, members)?;
    let equal = select(&own, problem);
    let bound = match own.topology.shape() {
        Shape::Grid(_) => {
            let full = FullyConnected::new(problem.ranks).expect("bug: ranks that there are");
            best_bounds(problem, &Machine { topology: Arc::new(full), ..own.clone() })
        }
        _ => best_bounds(problem, &own),
    };
    let (mut choices, mut rejected) = (Vec::new(), equal.rejected);
    let mut refused: Vec<(&'static str, String)> = Vec::new();
    for choice in equal.choices {
        let schedule = plan(&own, problem, choice.algorithm, &choice.parameters)?;
        match count_among(machine, members, &schedule, memory) {
            Ok(counts) if counts.port_violations > 0 => {
                let rule = "ranks or nodes of the whole machine send or receive more messages";
                let reason = format!("{rule} in a step than the {} they have ports for", own.ports);
                refused.push((choice.algorithm, reason));
            }
            Ok(counts) => choices.push(Choice { price: Price::counted(&counts), ..choice }),
            Err(reason) => refused.push((choice.algorithm, reason.to_string())),
        }
    }
    reject(&mut rejected, refused, &choices);
    let mut choices = ranked(choices);
    for choice in &mut choices {
        choice.bound_ratio = bound_ratio(&choice.price, &bound);
    }
    Ok(Selection {
        choices,
        rejected,
        bound,
        crossovers: Vec::new(),
        extremes: Vec::new(),
        subsets: equal.subsets,
        undecided: Vec::new(),
    })
}
