use topocoll_algorithms::{Algorithm, Claims, NotApplicable, find};
use topocoll_analysis::{check_memory, check_ranks};
use topocoll_schedule::{Demand, Parameters, Problem, Schedule};
use topocoll_topology::Machine;

use crate::price::{MEMORY, Pricing, least};
use crate::select::prices;
use crate::unequal::price_unequal;
use crate::{Error, Price};

/// The schedule of an algorithm on a machine; parameters that are to be chosen by cost and are not
/// given are chosen by the machine's timing values.
///
/// # Errors
/// No such algorithm, one that does not serve this problem on this machine, or a problem of other ranks
/// than the machine's.
pub fn plan(
    machine: &Machine,
    problem: &Problem,
    name: &str,
    given: &Parameters,
) -> Result<Schedule, Error> {
    check_ranks(problem.ranks, machine)?;
    let algorithm = find(name)?;
    let parameters = complete(machine, problem, algorithm, given)?;
    algorithm
        .plan(problem, &*machine.topology, &parameters)
        .map_err(|reason| refused(algorithm.name(), reason))
}

/// The schedule of an algorithm for blocks of the sizes of a demand; parameters that are to be
/// chosen by cost are chosen by those very sizes where the schedule depends on them, else as
/// [`plan`] does.
///
/// # Errors
/// As [`plan`], and of pricing settings by more than `memory` bytes or too much work.
pub fn plan_unequal(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    name: &str,
    given: &Parameters,
    memory: u128,
) -> Result<Schedule, Error> {
    check_ranks(problem.ranks, machine)?;
    let algorithm = find(name)?;
    let topology = &*machine.topology;
    check_planning(algorithm, problem, memory)?;
    let mut settings = algorithm.settings_for(problem, topology, demand);
    if settings.is_empty() {
        return plan(machine, problem, name, given);
    }
    settings.retain(|setting| given.iter().all(|(name, value)| setting.get(name) == Some(value)));
    let prices: Result<Vec<_>, Error> = (settings.into_iter())
        .map(|setting| {
            let price = price_unequal(machine, problem, demand, algorithm, &setting, memory)?;
            Ok((setting, price))
        })
        .collect();
    let best = least(prices?, |(_, price)| price);
    let parameters = best.map_or_else(|| given.clone(), |(setting, _)| setting);
    (algorithm.plan_for(problem, topology, demand, &parameters))
        .map_err(|reason| refused(algorithm.name(), reason))
}

/// Whether planning for the sizes of a demand fits in `memory` bytes.
pub(crate) fn check_planning(
    algorithm: &dyn Algorithm,
    problem: &Problem,
    memory: u128,
) -> Result<(), Error> {
    let needed = algorithm.memory_for(problem);
    Ok(check_memory("planning for the sizes of all blocks", needed, memory)?)
}

/// The claims of an algorithm on a machine, with parameters as [`plan`] returns them.
///
/// # Errors
/// As [`plan`].
pub fn claims(
    machine: &Machine,
    problem: &Problem,
    name: &str,
    parameters: &Parameters,
) -> Result<Claims, Error> {
    check_ranks(problem.ranks, machine)?;
    let algorithm = find(name)?;
    algorithm
        .claims(problem, &*machine.topology, parameters)
        .map_err(|reason| refused(algorithm.name(), reason))
}

/// The best setting of an algorithm by predicted time, and its price.
///
/// # Errors
/// Why the algorithm does not serve this problem on this machine.
pub fn cheapest(
    machine: &Machine,
    problem: &Problem,
    algorithm: &'static dyn Algorithm,
) -> Result<(Parameters, Price), NotApplicable> {
    let given = Parameters::new();
    algorithm.claims(problem, &*machine.topology, &given)?;
    let pricing = Pricing::new(machine, problem, MEMORY);
    let prices = prices(algorithm, &pricing, &given).priced;
    Ok(least(prices, |(_, price)| price).expect("bug: an algorithm that serves at no setting"))
}

fn complete(
    machine: &Machine,
    problem: &Problem,
    algorithm: &'static dyn Algorithm,
    given: &Parameters,
) -> Result<Parameters, Error> {
    let open = algorithm.parameters().iter().any(|p| p.by_cost && !given.contains_key(p.name));
    if !open {
        return Ok(given.clone());
    }
    algorithm
        .claims(problem, &*machine.topology, given)
        .map_err(|reason| refused(algorithm.name(), reason))?;
    let pricing = Pricing::new(machine, problem, MEMORY);
    let prices = prices(algorithm, &pricing, given).priced;
    Ok(least(prices, |(_, price)| price).map_or_else(|| given.clone(), |(setting, _)| setting))
}

/// The error of an algorithm or formula called `name` that does not serve.
pub(crate) fn refused(name: &str, reason: NotApplicable) -> Error {
    match reason {
        // These name the algorithm themselves.
        NotApplicable::Parameter { .. } | NotApplicable::Setting { .. } => Error::Algorithm(reason),
        reason => Error::NotApplicable { algorithm: name.to_owned(), reason },
    }
}
