//! Questions in one call.

use std::sync::LazyLock;

use topocoll::contention::Sync;
use topocoll::{
    Algorithm, Budget, Catalogue, Choice, Claims, Collective, Counts, Demand, Error, Exchange,
    Fastest, Front, Machine, NotApplicable, Parameters, Problem, Request, Schedule, Selection,
    Setting, Subset, Sweep, Topology,
};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::standard);

pub fn algorithms() -> impl Iterator<Item = &'static dyn Algorithm> {
    CATALOGUE.iter()
}

pub fn find(name: &str) -> Result<&'static dyn Algorithm, NotApplicable> {
    CATALOGUE.find(name)
}

/// The exchange of a problem of the machine's ranks.
pub fn exchange<'m>(machine: &'m Machine, problem: &Problem) -> Exchange<'m> {
    Exchange::new(machine, problem).unwrap()
}

/// The schedule of an algorithm.
pub fn schedule_of(
    machine: &Machine,
    problem: &Problem,
    name: &str,
    given: &Parameters,
) -> Result<Schedule, Error> {
    Exchange::new(machine, problem)?.schedule(name, given)
}

/// The schedule of an algorithm for blocks of these sizes.
pub fn schedule_for(
    machine: &Machine,
    problem: &Problem,
    demand: &Demand,
    name: &str,
    given: &Parameters,
) -> Result<Schedule, Error> {
    Exchange::new(machine, problem)?.demand(demand)?.schedule(name, given)
}

/// The parameters of words `key=value`, between spaces or commas.
pub fn setting(words: &str) -> Parameters {
    let pairs = words.split([' ', ',']).filter(|pair| !pair.is_empty());
    let set = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap();
        let number = value.parse().map(Setting::Integer);
        (key.to_owned(), number.unwrap_or_else(|_| value.into()))
    });
    set.collect()
}

/// The claims of an algorithm; parameters that are not given have their defaults.
pub fn claims(
    machine: &Machine,
    problem: &Problem,
    name: &str,
    given: &Parameters,
) -> Result<Claims, NotApplicable> {
    Ok(Request::new(problem, &*machine.topology).solve(find(name)?, given)?.claims)
}

/// The settings of an algorithm that apply, complete.
pub fn all_settings(
    algorithm: &dyn Algorithm,
    problem: &Problem,
    topology: &dyn Topology,
) -> Vec<Parameters> {
    let solutions = Request::new(problem, topology).solutions(algorithm);
    solutions.map(|solution| solution.schedule.origin.parameters).collect()
}

/// The ranking in step.
pub fn select(machine: &Machine, problem: &Problem) -> Selection {
    exchange(machine, problem).sync(Sync::Barrier).select().unwrap()
}

/// The ranking of an operation of all ranks of a machine.
pub fn on(machine: &Machine, operation: Collective, block_bytes: u64) -> Selection {
    let problem = Problem::new(operation, machine.ranks(), machine.ports, block_bytes).unwrap();
    select(machine, &problem)
}

/// The best time of a ranking.
pub fn time(selection: &Selection) -> f64 {
    selection.best().unwrap().price.time.total()
}

/// The choice that a list of the fastest by block size names.
pub fn choice_of<'s>(selection: &'s Selection, named: &Fastest) -> &'s Choice {
    let is = |choice: &&Choice| {
        (&choice.algorithm, &choice.parameters) == (&named.algorithm, &named.parameters)
    };
    selection.choices.iter().find(is).unwrap()
}

pub fn select_within(machine: &Machine, problem: &Problem, budget: &Budget<'_>) -> Selection {
    exchange(machine, problem).sync(Sync::Barrier).budget(*budget).select().unwrap()
}

pub fn sweep(
    machine: &Machine,
    problem: &Problem,
    block_sizes: &[u64],
    asked: &[(String, Parameters)],
) -> Result<Sweep, Error> {
    Exchange::new(machine, problem)?.sweep(block_sizes, asked)
}

pub fn front(
    machine: &Machine,
    problem: &Problem,
    asked: &[(String, Parameters)],
) -> Result<Front, Error> {
    Exchange::new(machine, problem)?.front(asked)
}

/// The exchange of some ranks.
pub fn among<'m>(
    machine: &'m Machine,
    subset: &Subset,
    block_bytes: u64,
) -> Result<Exchange<'m>, Error> {
    Exchange::all_to_all(machine)?.block_bytes(block_bytes)?.subset(subset)
}

/// What a schedule of some ranks costs on the links of the whole machine.
pub fn count_among(
    machine: &Machine,
    subset: &Subset,
    schedule: &Schedule,
    demand: Option<&Demand>,
) -> Result<Counts, Error> {
    let exchange = among(machine, subset, schedule.problem.block_bytes)?;
    match demand {
        Some(demand) => exchange.demand(demand)?.count(schedule),
        None => exchange.count(schedule),
    }
}
