use std::sync::Arc;

use topocoll_analysis::{
    AnalysisError, BestBounds, Counts, best_bounds, check_memory, check_work, count, counting_work,
};
use topocoll_schedule::{Demand, Problem, Schedule};
use topocoll_topology::{FullyConnected, Machine, Rank, Shape, Subset};

use crate::price::Price;
use crate::select::{Choice, Selection, bound_ratio, ranked, reject, select};
use crate::unequal::select_unequal;
use crate::{Error, Rejected, plan, plan_unequal};

/// Segments that counting one choice may look at: some seconds.
const WORK_PER_CHOICE: u128 = 1 << 26;

/// Counts a schedule of a subset on the links of the whole machine. The sizes of a demand matrix
/// are those of the subset.
///
/// # Errors
/// As [`count`], or too many route segments to visit.
pub fn count_among(
    machine: &Machine,
    subset: &Subset,
    schedule: &Schedule,
    demand: Option<&Demand>,
    memory: u128,
) -> Result<Counts, AnalysisError> {
    check_placing(machine, memory)?;
    let placed = schedule.on_subset(subset);
    let demand = demand.map(|demand| demand.on_subset(subset));
    if demand.is_none() {
        let what = "counting on the links of the whole machine";
        check_work(what, counting_work(&placed, machine, None), WORK_PER_CHOICE)?;
    }
    count(&placed, machine, demand.as_ref(), memory)
}

/// Whether it fits in `memory` bytes which of the machine's ranks are whose, for blocks and their
/// sizes.
fn check_placing(machine: &Machine, memory: u128) -> Result<(), AnalysisError> {
    let what = "the positions of all ranks in the subset";
    let needed = u128::from(machine.ranks()) * 2 * size_of::<Option<Rank>>() as u128;
    check_memory(what, needed, memory)
}

/// Ranks algorithms and settings for an exchange among a subset of a machine's ranks, by predicted
/// time on the links of the whole machine.
///
/// The choices are those of [`select()`] on the machine that the subset is by itself
/// ([`Machine::subset`]), each counted exactly. The bounds are those of ports and startups, as
/// messages may leave the box of a grid that the subset is.
///
/// # Errors
/// A choice that cannot be scheduled.
pub fn select_among(
    machine: &Machine,
    subset: &Subset,
    problem: &Problem,
    memory: u128,
) -> Result<Selection, Error> {
    let own = machine.subset(subset);
    let bound = best_bounds(problem, &without_links(&own), None);
    again(select(&own, problem), bound, &own, |choice| {
        let schedule = plan(&own, problem, choice.algorithm, &choice.parameters)?;
        Ok(count_among(machine, subset, &schedule, None, memory)?)
    })
}

/// The same for blocks of the sizes of a demand: looked at are the choices of [`select_unequal`].
///
/// # Errors
/// As [`select_among`].
pub fn select_unequal_among(
    machine: &Machine,
    subset: &Subset,
    problem: &Problem,
    demand: &Demand,
    memory: u128,
) -> Result<Selection, Error> {
    let own = machine.subset(subset);
    let bound = best_bounds(problem, &own, Some(demand));
    again(select_unequal(&own, problem, demand, memory), bound, &own, |choice| {
        let (name, setting) = (choice.algorithm, &choice.parameters);
        let schedule = plan_unequal(&own, problem, demand, name, setting, memory)?;
        Ok(count_among(machine, subset, &schedule, Some(demand), memory)?)
    })
}

/// A machine whose messages may leave the part of a grid that it is.
fn without_links(own: &Machine) -> Machine {
    match own.topology.shape() {
        Shape::Grid(_) => {
            let full = FullyConnected::new(own.ranks()).expect("bug: ranks that there are");
            let mut alone = own.clone();
            alone.topology = Arc::new(full);
            alone
        }
        _ => own.clone(),
    }
}

/// The choices of a part by itself, priced anew.
fn again(
    alone: Selection,
    bound: BestBounds,
    own: &Machine,
    counted: impl Fn(&Choice) -> Result<Counts, Error>,
) -> Result<Selection, Error> {
    let (mut choices, mut rejected) = (Vec::new(), alone.rejected);
    let mut refused = Vec::new();
    for choice in alone.choices {
        match counted(&choice) {
            Ok(counts) if counts.port_violations > 0 => {
                let rule = "ranks or nodes of the whole machine send or receive more messages";
                let reason = format!("{rule} in a step than the {} they have ports for", own.ports);
                refused.push(Rejected::new(choice.algorithm, &reason));
            }
            Ok(counts) => choices.push(Choice { price: Price::counted(&counts), ..choice }),
            Err(reason @ Error::Analysis(_)) => {
                refused.push(Rejected::new(choice.algorithm, &reason));
            }
            Err(error) => return Err(error),
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
        split: Vec::new(),
        extremes: Vec::new(),
        subsets: alone.subsets,
    })
}
