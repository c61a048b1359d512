//! Every algorithm over block sizes, each at its best setting for each of them.

use rayon::prelude::*;
use topocoll_algorithms::{ALGORITHMS, Algorithm, NotApplicable, PUBLISHED, Published, find};
use topocoll_analysis::{BestBounds, best_bounds};
use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::Machine;

use crate::plan::refused;
use crate::price::{MEMORY, Pricing, least, published_price};
use crate::select::{Budget, bound_ratio, crossovers, decide, prices};
use crate::{Choice, Error, PartlyPriced, Priced, Rejected};

/// An algorithm at its best over block sizes, or a published formula.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The parameters asked for; the others are chosen by cost at each size.
    pub given: Parameters,
    /// Whether it is a formula without a schedule.
    pub published: bool,
    /// The best setting at each block size.
    pub points: Vec<Choice>,
}

/// From this block size on, up to the next, a setting is the fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fastest {
    /// The first block size, in bytes.
    pub block_bytes: u64,
    /// The algorithm.
    pub algorithm: &'static str,
    /// Its setting.
    pub parameters: Parameters,
    /// Whether it is a formula without a schedule.
    pub published: bool,
}

/// Predicted times over block sizes.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sweep {
    /// The block sizes, ascending, in bytes.
    pub block_sizes: Vec<u64>,
    /// What none can beat, by block size.
    pub bounds: Vec<BestBounds>,
    /// Schedules in the order of the table or as asked for, then published formulas.
    pub lines: Vec<Line>,
    /// What does not serve, and why.
    pub rejected: Vec<Rejected>,
    /// The fastest schedule from the first block size to the last; only exact prices.
    pub crossovers: Vec<Fastest>,
    /// The same with published formulas among the schedules.
    pub crossovers_with_published: Vec<Fastest>,
    /// Algorithms of which only some settings were priced.
    pub subsets: Vec<PartlyPriced>,
    /// Algorithms with a setting priced by a floor that is below the best price of some size.
    pub undecided: Vec<&'static str>,
    /// Algorithms that split blocks, so that counts do not grow in proportion to the size: they are
    /// priced at every size, and cross others where lines through their last price do.
    pub split: Vec<&'static str>,
}

/// What may bear a name.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Schedule(&'static dyn Algorithm),
    Formula(&'static Published),
}

/// Settings that share a line, priced at one block size.
pub(crate) struct Group {
    pub(crate) entry: Entry,
    given: Parameters,
    pub(crate) choices: Vec<Choice>,
    /// Settings that there are.
    pub(crate) all: usize,
}

/// Prices over ascending `block_sizes` what serves: every algorithm and formula, or those `asked`
/// for by name, with the parameters that are not to be chosen.
///
/// An algorithm is priced once, at the largest size, where its counts grow with the size.
///
/// # Errors
/// Something asked for by a name that nobody has, or that does not serve.
///
/// # Panics
/// No block sizes.
pub fn sweep(
    machine: &Machine,
    problem: &Problem,
    block_sizes: &[u64],
    asked: &[(String, Parameters)],
) -> Result<Sweep, Error> {
    let largest = *block_sizes.last().expect("a sweep over no block sizes");
    let at = |block_bytes| with_blocks(problem, block_bytes);
    let base = at(largest);
    let (groups, rejected) = groups(machine, &base, asked)?;
    let (schedules, formulas): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| matches!(group.entry, Entry::Schedule(_)));

    let of = |groups: &[Group]| -> Vec<Choice> {
        groups.iter().flat_map(|group| group.choices.iter().cloned()).collect()
    };
    let mut choices = of(&schedules);
    let budget = Budget::quick();
    let pricing = Pricing::new(machine, &base, budget.memory);
    decide(&mut choices, &pricing, block_sizes, &budget);
    let crossovers = fastest(&choices, block_sizes);
    let undecided = undecided(&choices, block_sizes);

    let bounds: Vec<_> =
        block_sizes.iter().map(|&bytes| best_bounds(&at(bytes), machine, None)).collect();
    let mut decided = choices.iter().cloned();
    let (mut lines, mut subsets, mut split) = (Vec::new(), Vec::new(), Vec::new());
    for group in schedules.iter().chain(&formulas) {
        let (name, published) = group.entry.named();
        let own: Vec<_> = match group.entry {
            Entry::Schedule(_) => decided.by_ref().take(group.choices.len()).collect(),
            Entry::Formula(_) => group.choices.clone(),
        };
        let subset = PartlyPriced { algorithm: name, priced: own.len(), settings: group.all };
        if own.len() < group.all && !subsets.contains(&subset) {
            subsets.push(subset);
        }
        let whole = group.moves_whole_blocks(machine, problem, block_sizes);
        if !whole && !split.contains(&name) {
            split.push(name);
        }
        let points = block_sizes.iter().zip(&bounds).map(|(&bytes, bound)| {
            let mut choices = own.clone();
            if whole {
                let scaled =
                    |choice: &mut Choice| choice.price = choice.price.scaled(largest, bytes);
                choices.iter_mut().for_each(scaled);
            } else {
                choices = group.entry.price(machine, &at(bytes), &group.given).0;
            }
            best(choices, bound)
        });
        let points = points.collect();
        lines.push(Line { algorithm: name, given: group.given.clone(), published, points });
    }
    choices.extend(of(&formulas));
    Ok(Sweep {
        block_sizes: block_sizes.to_vec(),
        bounds,
        lines,
        rejected,
        crossovers,
        crossovers_with_published: fastest(&choices, block_sizes),
        subsets,
        undecided,
        split,
    })
}

/// The problem with blocks of another size.
fn with_blocks(problem: &Problem, block_bytes: u64) -> Problem {
    let mut problem = *problem;
    problem.block_bytes = block_bytes;
    problem
}

/// What serves, priced, and what does not.
pub(crate) fn groups(
    machine: &Machine,
    problem: &Problem,
    asked: &[(String, Parameters)],
) -> Result<(Vec<Group>, Vec<Rejected>), Error> {
    let every = || {
        let schedules = ALGORITHMS.iter().map(|&algorithm| Entry::Schedule(algorithm));
        schedules.chain(PUBLISHED.iter().map(Entry::Formula))
    };
    let none = Parameters::new();
    let (mut serving, mut rejected) = (Vec::new(), Vec::new());
    let mut add = |entry: Entry, given| -> Result<(), NotApplicable> {
        let (algorithm, published) = entry.named();
        if let Err(reason) = entry.serves(machine, problem, given) {
            rejected.push(Rejected { algorithm, published, reason: reason.to_string() });
            return Err(reason);
        }
        serving.push((entry, given));
        Ok(())
    };
    if asked.is_empty() {
        for entry in every() {
            // What does not serve is told among the rejected.
            let _ = add(entry, &none);
        }
    }
    for (name, given) in asked {
        let served: Vec<_> = every()
            .filter(|entry| entry.named().0 == name)
            .map(|entry| add(entry, given))
            .collect();
        if served.iter().all(Result::is_err) {
            let unknown = || find(name).err().map(Error::from);
            let first = served.into_iter().find_map(Result::err);
            return Err(first
                .map(|reason| refused(name, reason))
                .or_else(unknown)
                .expect("bug: an algorithm that find finds alone"));
        }
    }
    let groups = serving.into_par_iter().map(|(entry, given)| {
        let (choices, all) = entry.price(machine, problem, given);
        Group { entry, given: given.clone(), choices, all }
    });
    Ok((groups.collect(), rejected))
}

impl Entry {
    /// Its name, and whether it is a formula.
    pub(crate) fn named(self) -> (&'static str, bool) {
        match self {
            Self::Schedule(algorithm) => (algorithm.name(), false),
            Self::Formula(row) => (row.name, true),
        }
    }

    fn serves(
        self,
        machine: &Machine,
        problem: &Problem,
        given: &Parameters,
    ) -> Result<(), NotApplicable> {
        match (self, given.keys().next()) {
            (Self::Schedule(algorithm), _) => {
                algorithm.claims(problem, &*machine.topology, given).map(drop)
            }
            (Self::Formula(row), None) => row.counts(problem, &*machine.topology).map(drop),
            (Self::Formula(row), Some(name)) => Err(NotApplicable::Parameter {
                algorithm: row.name,
                name: name.clone(),
                known: Vec::new(),
            }),
        }
    }

    /// The prices of its settings where it serves, and how many settings there are.
    fn price(
        self,
        machine: &Machine,
        problem: &Problem,
        given: &Parameters,
    ) -> (Vec<Choice>, usize) {
        let algorithm = self.named().0;
        let choice =
            |parameters, price| Choice { algorithm, parameters, price, bound_ratio: f64::NAN };
        match self {
            Self::Schedule(writer) => {
                let pricing = Pricing::new(machine, problem, MEMORY);
                let prices = prices(writer, &pricing, given);
                let all = prices.subset(algorithm).settings;
                let choices = prices.priced.into_iter();
                (choices.map(|(setting, price)| choice(setting, price)).collect(), all)
            }
            Self::Formula(row) => {
                let counts = row.counts(problem, &*machine.topology).expect("bug: it serves");
                let price = published_price(machine, problem, &counts);
                (vec![choice(Parameters::new(), price)], 1)
            }
        }
    }
}

impl Group {
    /// Whether at every block size the settings are the same and move the same whole blocks.
    fn moves_whole_blocks(
        &self,
        machine: &Machine,
        problem: &Problem,
        block_sizes: &[u64],
    ) -> bool {
        let Entry::Schedule(algorithm) = self.entry else { return true };
        let topology = &*machine.topology;
        let counts = |setting: &Parameters, block_bytes: u64| {
            let problem = with_blocks(problem, block_bytes);
            let schedule = algorithm.plan(&problem, topology, setting).ok()?;
            let claims = algorithm.claims(&problem, topology, setting).ok()?;
            let bytes = u128::from(block_bytes);
            (schedule.rule().cuts().is_empty() && claims.bytes % bytes == 0)
                .then_some((claims.steps, claims.bytes / bytes))
        };
        self.choices.iter().all(|choice| {
            let first = counts(&choice.parameters, block_sizes[0]);
            first.is_some()
                && block_sizes[1..].iter().all(|&size| counts(&choice.parameters, size) == first)
        })
    }
}

/// The best of a line's settings.
fn best(choices: Vec<Choice>, bound: &BestBounds) -> Choice {
    let best = least(choices, |choice| &choice.price);
    let mut best = best.expect("bug: an algorithm that serves at no setting");
    best.bound_ratio = bound_ratio(&best.price, bound);
    best
}

/// The fastest of `choices`, priced at the largest block size, from the smallest on.
fn fastest(choices: &[Choice], block_sizes: &[u64]) -> Vec<Fastest> {
    let (smallest, largest) = (block_sizes[0], block_sizes[block_sizes.len() - 1]);
    let all = crossovers(choices, largest);
    let before = all.partition_point(|crossover| crossover.block_bytes <= smallest);
    let inside = all[before.saturating_sub(1)..].iter();
    inside
        .take_while(|crossover| crossover.block_bytes <= largest)
        .map(|crossover| {
            let choice = &choices[crossover.choice];
            Fastest {
                block_bytes: crossover.block_bytes.max(smallest),
                algorithm: choice.algorithm,
                parameters: choice.parameters.clone(),
                published: choice.price.priced == Priced::Published,
            }
        })
        .collect()
}

/// The algorithms of which a setting's floor is below the best exact price at some block size.
fn undecided(choices: &[Choice], block_sizes: &[u64]) -> Vec<&'static str> {
    let largest = block_sizes[block_sizes.len() - 1];
    let mut names: Vec<&'static str> = Vec::new();
    for &bytes in block_sizes {
        let at = |choice: &Choice| choice.price.scaled(largest, bytes).time.total();
        let exact = choices.iter().filter(|choice| choice.price.priced == Priced::Exactly);
        let best = exact.map(at).fold(f64::INFINITY, f64::min);
        let floors = choices.iter().filter(|choice| choice.price.priced == Priced::AtLeast);
        for choice in floors.filter(|choice| at(choice) < best) {
            if !names.contains(&choice.algorithm) {
                names.push(choice.algorithm);
            }
        }
    }
    names
}
