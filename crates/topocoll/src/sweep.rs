//! Every algorithm over block sizes, with its best setting at each size.

use rayon::prelude::*;
use topocoll_algorithms::{Algorithm, NotApplicable};
use topocoll_analysis::BestBounds;
use topocoll_schedule::Parameters;

use crate::exchange::{Budget, refused};
use crate::price::{Pricing, least};
use crate::select::{Candidate, crossovers, decide, prices};
use crate::{Choice, Error, Exchange, PartlyPriced, Priced, Rejected};

/// An algorithm over block sizes, with its best setting at each.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The algorithm.
    pub algorithm: String,
    /// The requested parameters; the others are chosen by cost at each size.
    pub given: Parameters,
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
    pub algorithm: String,
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
    /// The lower bound, by block size.
    pub bounds: Vec<BestBounds>,
    /// In the order of the catalogue or of the request.
    pub lines: Vec<Line>,
    /// Algorithms that do not apply, and the reasons.
    pub rejected: Vec<Rejected>,
    /// The fastest schedule from the first block size to the last; only exact prices.
    pub crossovers: Vec<Fastest>,
    /// Algorithms of which only some settings were priced.
    pub partly_priced: Vec<PartlyPriced>,
    /// Algorithms with a setting priced by a floor that is below the best price of some size.
    pub undecided: Vec<String>,
    /// Algorithms that split blocks, so their counts do not grow in proportion to the size. They
    /// are priced at every size; lines through their last prices give their crossovers.
    pub split: Vec<String>,
    /// All settings, priced at the largest block size.
    choices: Vec<Choice>,
}

/// The settings of an algorithm that agree with the request, priced at one block size.
pub(crate) struct Group<'x> {
    pub(crate) algorithm: &'x dyn Algorithm,
    given: Parameters,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) partly_priced: Option<PartlyPriced>,
}

impl Exchange<'_> {
    /// Prices over ascending `block_sizes`: every algorithm, or the `asked` ones by name, with
    /// their fixed parameters.
    ///
    /// An algorithm whose counts grow with the size is priced once, at the largest size.
    ///
    /// # Errors
    /// A requested algorithm does not exist or does not apply.
    ///
    /// # Panics
    /// No block sizes.
    pub fn sweep(
        &self,
        block_sizes: &[u64],
        asked: &[(String, Parameters)],
    ) -> Result<Sweep, Error> {
        let largest = *block_sizes.last().expect("a sweep without block sizes");
        let at_largest = self.sized(largest).budget(Budget::quick());
        let pricing = Pricing::new(&at_largest);
        let (groups, rejected) = groups(&pricing, asked)?;
        let (lengths, mut candidates, lines) = flattened(groups);
        decide(&mut candidates, &pricing, block_sizes);
        let choices: Vec<Choice> = candidates.into_iter().map(Choice::from).collect();

        let bounds: Vec<_> = block_sizes.iter().map(|&bytes| self.sized(bytes).bounds()).collect();
        let mut rest = &choices[..];
        let mut sweep = Sweep {
            block_sizes: block_sizes.to_vec(),
            lines: Vec::new(),
            rejected,
            crossovers: fastest(&choices, block_sizes),
            partly_priced: Vec::new(),
            undecided: undecided(&choices, block_sizes),
            split: Vec::new(),
            bounds,
            choices: Vec::new(),
        };
        for (line, length) in lines.into_iter().zip(lengths) {
            let (own, others) = rest.split_at(length);
            rest = others;
            let name = &*line.algorithm.info().name;
            if let Some(partly) = line.partly_priced.filter(|p| !sweep.partly_priced.contains(p)) {
                sweep.partly_priced.push(partly);
            }
            let whole = moves_whole_blocks(self, line.algorithm, own, block_sizes);
            if !whole && !sweep.split.iter().any(|split| split == name) {
                sweep.split.push(name.to_owned());
            }
            let points = block_sizes.iter().zip(&sweep.bounds).map(|(&bytes, bound)| {
                let mut choices = own.to_vec();
                if whole {
                    for choice in &mut choices {
                        choice.price = choice.price.scaled(largest, bytes);
                    }
                } else {
                    let exchange = self.sized(bytes);
                    let prices =
                        prices(line.algorithm, &Pricing::new(&exchange), Some(&line.given));
                    let priced = prices.map_or(Vec::new(), |prices| prices.priced);
                    choices = priced.into_iter().map(Choice::from).collect();
                }
                let best = least(choices, |choice| &choice.price);
                best.expect("bug: an algorithm without a setting").over(bound)
            });
            let points = points.collect();
            sweep.lines.push(Line { algorithm: name.to_owned(), given: line.given, points });
        }
        sweep.choices = choices;
        Ok(sweep)
    }
}

impl Sweep {
    /// The fastest line from the first block size to the last, among the schedules and other lines
    /// whose counts grow with the size.
    #[must_use]
    pub fn crossovers_with(&self, lines: &[Line]) -> Vec<Fastest> {
        let others = lines.iter().filter_map(|line| line.points.last().cloned());
        let choices: Vec<_> = self.choices.iter().cloned().chain(others).collect();
        fastest(&choices, &self.block_sizes)
    }
}

/// A group without its candidates.
struct Asked<'x> {
    algorithm: &'x dyn Algorithm,
    given: Parameters,
    partly_priced: Option<PartlyPriced>,
}

/// The candidates of all groups in a row, and the number of each group.
fn flattened<'x>(groups: Vec<Group<'x>>) -> (Vec<usize>, Vec<Candidate>, Vec<Asked<'x>>) {
    let (mut lengths, mut candidates, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for Group { algorithm, given, candidates: own, partly_priced } in groups {
        lengths.push(own.len());
        candidates.extend(own);
        lines.push(Asked { algorithm, given, partly_priced });
    }
    (lengths, candidates, lines)
}

/// The algorithms that apply, with prices, and those that do not.
pub(crate) fn groups<'x>(
    pricing: &Pricing<'x>,
    asked: &[(String, Parameters)],
) -> Result<(Vec<Group<'x>>, Vec<Rejected>), Error> {
    let price = |(algorithm, given): (&'x dyn Algorithm, Parameters)| {
        let prices = prices(algorithm, pricing, (!asked.is_empty()).then_some(&given))?;
        let partly_priced = prices.partly(&algorithm.info().name);
        Ok(Group { algorithm, given, candidates: prices.priced, partly_priced })
    };
    let every: Vec<(&dyn Algorithm, Parameters)> = match asked.is_empty() {
        true => {
            let all = pricing.exchange.algorithms();
            all.map(|algorithm| (algorithm, Parameters::new())).collect()
        }
        false => {
            let find = |(name, given): &(String, Parameters)| {
                Ok((pricing.exchange.find(name)?, given.clone()))
            };
            asked.iter().map(find).collect::<Result<_, Error>>()?
        }
    };
    let names: Vec<_> = every.iter().map(|(algorithm, _)| algorithm.info().name.clone()).collect();
    let priced: Vec<Result<_, NotApplicable>> = every.into_par_iter().map(price).collect();
    let (mut groups, mut rejected) = (Vec::new(), Vec::new());
    for (name, priced) in names.into_iter().zip(priced) {
        match priced {
            Ok(group) => groups.push(group),
            Err(reason) if asked.is_empty() => rejected.push(Rejected::new(&name, &reason)),
            Err(reason) => return Err(refused(&name, reason)),
        }
    }
    Ok((groups, rejected))
}

/// Whether the settings are the same at every block size, and move the same whole blocks.
fn moves_whole_blocks(
    exchange: &Exchange<'_>,
    algorithm: &dyn Algorithm,
    choices: &[Choice],
    block_sizes: &[u64],
) -> bool {
    let counts = |setting: &Parameters, block_bytes: u64| {
        let exchange = exchange.sized(block_bytes);
        let solution = exchange.request().solve(algorithm, setting).ok()?;
        let (claims, bytes) = (solution.claims, u128::from(block_bytes));
        (solution.schedule.rule().cuts().is_empty() && claims.bytes % bytes == 0)
            .then_some((claims.steps, claims.bytes / bytes))
    };
    choices.iter().all(|choice| {
        let first = counts(&choice.parameters, block_sizes[0]);
        first.is_some()
            && block_sizes[1..].iter().all(|&size| counts(&choice.parameters, size) == first)
    })
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
                algorithm: choice.algorithm.clone(),
                parameters: choice.parameters.clone(),
                published: choice.price.priced == Priced::Published,
            }
        })
        .collect()
}

/// The algorithms with a setting whose floor is below the best exact price at some block size.
fn undecided(choices: &[Choice], block_sizes: &[u64]) -> Vec<String> {
    let largest = block_sizes[block_sizes.len() - 1];
    let mut names: Vec<String> = Vec::new();
    for &bytes in block_sizes {
        let at = |choice: &Choice| choice.price.scaled(largest, bytes).time.total();
        let exact = choices.iter().filter(|choice| choice.price.priced == Priced::Exactly);
        let best = exact.map(at).fold(f64::INFINITY, f64::min);
        let floors = choices.iter().filter(|choice| choice.price.priced == Priced::AtLeast);
        for choice in floors.filter(|choice| at(choice) < best) {
            if !names.contains(&choice.algorithm) {
                names.push(choice.algorithm.clone());
            }
        }
    }
    names
}
