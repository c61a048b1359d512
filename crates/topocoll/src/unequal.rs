use topocoll_algorithms::{ALGORITHMS, Algorithm, find};
use topocoll_analysis::{best_bounds, count, counting_work};
use topocoll_schedule::{Demand, Parameters, Problem};
use topocoll_topology::Machine;

use crate::plan::{check_planning, refused};
use crate::price::Price;
use crate::select::{Choice, Selection, bound_ratio, ranked, reject, select};
use crate::{Error, PartlyPriced, Rejected, plan};

/// Slots that pricing the settings of an algorithm may look at: a second or two.
const WORK_PER_ALGORITHM: u128 = 1 << 24;

/// Ranks algorithms and settings by predicted time for blocks of the sizes of a demand.
///
/// Where combining stops paying depends on the sizes: a step is as long as its largest message,
/// and a huge block makes every step long that carries it, while many small blocks still share a
/// startup. So nothing is scaled: every step of every choice is counted with the bytes that its
/// messages have.
///
/// Looked at are the choices of [`select()`] for equal blocks of the problem's size; of an
/// algorithm with too many of them a part, evenly spread by steps, both ends included; and those of
/// algorithms whose schedules depend on the sizes. Those whose blocks are split, or too many to
/// follow, are rejected with the reason.
#[must_use]
pub fn select_unequal(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    memory: u128,
) -> Selection {
    let equal = select(machine, problem);
    let bound = best_bounds(problem, machine, Some(demand));
    let (mut choices, mut rejected, mut subsets) = (Vec::new(), equal.rejected, equal.subsets);
    let mut refused = Vec::new();
    for choice in spread(machine, problem, demand, equal.choices, &mut subsets) {
        let algorithm = find(choice.algorithm).expect("bug: a choice of no algorithm");
        match price_unequal(machine, problem, demand, algorithm, &choice.parameters, memory) {
            Ok(price) => choices.push(Choice { price, ..choice }),
            Err(reason) => refused.push(Rejected::new(choice.algorithm, &reason)),
        }
    }
    for &algorithm in ALGORITHMS {
        let name = algorithm.name();
        if let Err(reason) = check_planning(algorithm, problem, memory) {
            rejected.retain(|rejected| rejected.algorithm != name);
            refused.push(Rejected::new(name, &reason));
            continue;
        }
        let settings = algorithm.settings_for(problem, &*machine.topology, demand);
        if !settings.is_empty() {
            rejected.retain(|rejected| rejected.algorithm != name);
        }
        for parameters in settings {
            match price_unequal(machine, problem, demand, algorithm, &parameters, memory) {
                Ok(price) => {
                    choices.push(Choice { algorithm: name, parameters, price, bound_ratio: 0.0 });
                }
                Err(reason) => refused.push(Rejected::new(name, &reason)),
            }
        }
    }
    reject(&mut rejected, refused, &choices);
    let mut choices = ranked(choices);
    for choice in &mut choices {
        choice.bound_ratio = bound_ratio(&choice.price, &bound);
    }
    Selection {
        choices,
        rejected,
        bound,
        crossovers: Vec::new(),
        split: Vec::new(),
        extremes: Vec::new(),
        subsets,
    }
}

/// The choices that are looked at.
fn spread(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    mut choices: Vec<Choice>,
    subsets: &mut Vec<PartlyPriced>,
) -> Vec<Choice> {
    choices.sort_by_key(|choice| choice.price.steps);
    let mut kept = Vec::new();
    while let Some(algorithm) = choices.first().map(|choice| choice.algorithm) {
        let (own, others): (Vec<_>, Vec<_>) =
            choices.into_iter().partition(|choice| choice.algorithm == algorithm);
        choices = others;
        // The setting of the fewest steps combines most, and looks at most slots.
        let setting = &own[0].parameters;
        let work = plan(machine, problem, algorithm, setting)
            .map_or(0, |s| counting_work(&s, machine, Some(demand)));
        let most = (WORK_PER_ALGORITHM / work.max(1)).max(2) as usize;
        let (all, every) = (own.len(), own.len().div_ceil(most));
        let before = kept.len();
        let chosen = own.into_iter().enumerate();
        kept.extend(chosen.filter(|(i, _)| i % every == 0 || i + 1 == all).map(|(_, own)| own));
        let priced = kept.len() - before;
        if priced < all {
            subsets.retain(|subset| subset.algorithm != algorithm);
            subsets.push(PartlyPriced { algorithm, priced, settings: all });
        }
    }
    kept
}

/// The price of a setting for blocks of these sizes, every step counted.
pub(crate) fn price_unequal(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    algorithm: &dyn Algorithm,
    setting: &Parameters,
    memory: u128,
) -> Result<Price, Error> {
    let schedule = algorithm
        .plan_for(problem, &*machine.topology, demand, setting)
        .map_err(|reason| refused(algorithm.name(), reason))?;
    let memory = memory.saturating_sub(algorithm.memory_for(problem));
    let counts = count(&schedule, machine, Some(demand), memory)?;
    Ok(Price::counted(&counts))
}
