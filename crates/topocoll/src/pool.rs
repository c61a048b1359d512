//! The candidates of an exchange and their prices, for any block size.
//!
//! Rankings, sweeps and Pareto fronts ask a pool, so they have the same candidates and the same prices. All
//! candidates are solved once, for blocks of a reference size. The counts of those that move whole blocks grow
//! with the size, so their times are lines. Others are solved and priced again at each size.
//!
//! A candidate that takes long to count has a floor as its price. It is counted if its floor is below the least
//! exact time at some block size ([`Pool::new`]), and once more with a budget of its own at a size that is
//! asked for ([`Pool::at`]): what is known at a size does not depend on the sizes asked before.
//!
//! Schedules for fewer ports and for other views of the machine are candidates too, if a lower bound of all of
//! them is below the least time, and as far as a small part of the budget is enough to count them.

mod candidate;
mod deciding;
pub(crate) mod fewer_ports;
mod search;
pub(crate) mod views;

use rayon::prelude::*;
use topocoll_algorithms::{Algorithm, NotApplicable, Solution};
use topocoll_analysis::largest_messages;
use topocoll_schedule::{MAX_BLOCK_BYTES, Parameters, Schedule};
use topocoll_topology::parallel;

use candidate::{Candidate, Solved};
use search::Searches;

use crate::envelope::{Lowest, TimeLine, at, envelope, without_open};
use crate::price::{Price, Priced, Pricing};
use crate::{Choice, Exchange, PartlyPriced, Rejected, Unsearched};

/// The most segments for pricing one setting.
const WORK_PER_SETTING: u128 = 1 << 21;
/// The part of the budget for candidates that may be the fastest at some block size. The rest is for one size.
const PART_FOR_ALL_SIZES: u128 = 2;
/// Segments that are counted to the end, part of a second, even if a schedule turns out to be slower.
const MUCH_WORK: u128 = 1 << 23;

/// Reference sizes of blocks: powers of 2, so that prices of other sizes are rounded little.
const REFERENCES: [u64; 3] = [1 << 20, 1 << 13, 1 << 7];

/// A requested algorithm with its fixed parameters, or every algorithm.
pub(crate) struct Asked<'x> {
    pub(crate) algorithm: &'x dyn Algorithm,
    pub(crate) given: Parameters,
    /// Settings refused at the reference size.
    refused: Vec<Parameters>,
    pub(crate) partly_priced: Option<PartlyPriced>,
}

/// A candidate at a block size.
pub(crate) struct Found {
    pub(crate) asked: usize,
    pub(crate) parameters: Parameters,
    pub(crate) price: Price,
    pub(crate) beaten: bool,
    pub(crate) other: bool,
    /// The place in the pool.
    candidate: Option<usize>,
    schedule: Option<Schedule>,
}

/// A fastest candidate over block sizes.
pub(crate) struct Winner {
    pub(crate) sizes: Lowest,
    /// At the first block size.
    pub(crate) seconds: f64,
    pub(crate) asked: usize,
    pub(crate) parameters: Parameters,
}

pub(crate) struct Pool<'x> {
    pricing: Pricing<'x>,
    pub(crate) asked: Vec<Asked<'x>>,
    /// Algorithms that do not apply, and the reasons.
    pub(crate) rejected: Vec<Rejected>,
    candidates: Vec<Candidate>,
    /// The schedules that were solved again at the latest size, with the places of their algorithms.
    latest: Vec<(usize, Schedule)>,
    searches: Searches,
    /// Segments that may be counted for all block sizes.
    left: u128,
    /// Floors that may be raised by many ranks.
    samples: u128,
}

impl<'m> Exchange<'m> {
    /// The same with the blocks for which a [`Pool`] solves.
    pub(crate) fn at_reference(&self) -> Self {
        let pairs = u128::from(self.problem().ranks).pow(2);
        let fits = |bytes: &u64| pairs * u128::from(*bytes) <= MAX_BLOCK_BYTES.into();
        self.sized(REFERENCES.into_iter().find(fits).unwrap_or(REFERENCES[2]))
    }
}

impl<'x> Pool<'x> {
    /// The candidates of every algorithm, or of those `asked` with their fixed parameters, for an
    /// exchange [at the reference size](Exchange::at_reference), and for these block sizes those that refuse
    /// the reference size.
    ///
    /// # Errors
    /// The first algorithm that is asked for and does not apply, and why not.
    pub(crate) fn new(
        reference: &'x Exchange<'x>,
        asked: &[(&'x dyn Algorithm, Parameters)],
        block_sizes: &[u64],
    ) -> Result<Self, (String, NotApplicable)> {
        (reference.limits().progress.starting)("building candidates", 0);
        let pricing = Pricing::new(reference);
        let every = match asked {
            [] => reference.algorithms().map(|algorithm| (algorithm, Parameters::new())).collect(),
            asked => asked.to_vec(),
        };
        // Searches come last, as they are run only where they may find a faster schedule.
        let search = |algorithm| match asked {
            [] => reference.request().search(algorithm, &Parameters::new()),
            _ => None,
        };
        let (searched, every): (Vec<_>, Vec<_>) =
            every.into_iter().partition(|(algorithm, _)| search(*algorithm).is_some());
        let solved = parallel::each(&every).map(|(algorithm, given)| {
            Solved::new(*algorithm, &pricing, (given, !asked.is_empty()), block_sizes)
        });
        let solved: Vec<Result<Solved, NotApplicable>> = solved.collect();
        let left = reference.limits().work / PART_FOR_ALL_SIZES;
        let (own, rejected, candidates, latest) = Default::default();
        let searches = Searches::within(reference.limits().search);
        let samples = left / (4 * MUCH_WORK);
        let mut pool =
            Self { pricing, asked: own, rejected, candidates, latest, searches, left, samples };
        for ((algorithm, given), solved) in every.into_iter().zip(solved) {
            let name = algorithm.info().name.clone();
            match solved {
                Ok(Solved { refused, partly_priced, unsearched, candidates }) => {
                    pool.searches.left_out.extend(unsearched);
                    let place = pool.asked.len();
                    let placed = candidates.into_iter();
                    let placed = placed.map(|candidate| Candidate { asked: place, ..candidate });
                    pool.candidates.extend(placed);
                    pool.asked.push(Asked { algorithm, given, refused, partly_priced });
                }
                Err(reason) if asked.is_empty() => {
                    pool.rejected.push(Rejected::new(&name, &reason));
                }
                Err(reason) => return Err((name.into_owned(), reason)),
            }
        }
        pool.mark_solved_again();
        pool.decide();
        let views = if asked.is_empty() { pool.try_views() } else { Vec::new() };
        for (algorithm, _) in searched {
            (reference.limits().progress.starting)("searching for schedules", 0);
            let first = search(algorithm).expect("bug: not a search");
            pool.search(algorithm, &first);
        }
        if asked.is_empty() {
            (reference.limits().progress.starting)("trying views and fewer ports", 0);
            pool.search_views(&views);
            pool.try_fewer_ports(&views);
        }
        Ok(pool)
    }

    fn exchange(&self) -> &'x Exchange<'x> {
        self.pricing.exchange
    }

    fn reference(&self) -> u64 {
        self.exchange().problem().block_bytes
    }

    /// The lines of exact prices, each with the place of its candidate.
    fn lines(&self) -> (Vec<TimeLine>, Vec<usize>) {
        let exact = |(place, candidate): (usize, &Candidate)| {
            let seconds = candidate.price.line(self.reference());
            let least = candidate.least.unwrap_or(1);
            let exact = candidate.price.priced == Priced::Exactly;
            exact.then_some((TimeLine { seconds, least }, place))
        };
        self.candidates.iter().enumerate().filter_map(exact).unzip()
    }

    /// Marks all settings of an algorithm of which one splits blocks, because they may refuse some sizes, and
    /// those of a caller's algorithms or with one as an inner exchange, whose schedules may depend on the size:
    /// they are solved again at each.
    fn mark_solved_again(&mut self) {
        let exchange = self.exchange();
        let is_own = |asked: &Asked<'_>| exchange.is_own(&asked.algorithm.info().name);
        let own: Vec<bool> = self.asked.iter().map(is_own).collect();
        let mut again = vec![false; own.len()];
        self.candidates.iter().for_each(|candidate| again[candidate.asked] |= !candidate.whole);
        for candidate in &mut self.candidates {
            let mut values = candidate.parameters.values();
            let mut has_own = || values.any(|value| exchange.is_own(&value.to_string()));
            candidate.own = own[candidate.asked] || has_own();
            candidate.again |= again[candidate.asked] || candidate.own;
        }
    }

    /// All candidates at a block size, with prices as far as the budget goes.
    pub(crate) fn at(&mut self, bytes: u64) -> Vec<Found> {
        (self.exchange().limits().progress.starting)("pricing candidates", 0);
        let sized = self.exchange().sized(bytes);
        let pricing = Pricing::new(&sized);
        let pairs = u128::from(sized.problem().ranks).pow(2);
        // A block of several blocks may be too large.
        let checked =
            bytes > self.reference() && pairs * u128::from(bytes) > MAX_BLOCK_BYTES.into();
        let solve = |asked: usize, parameters: &Parameters| {
            sized.request().solve(self.asked[asked].algorithm, parameters).ok()
        };
        let found = |candidate: Option<usize>, asked: usize, solution: Solution| Found {
            asked,
            price: pricing.price(&solution, WORK_PER_SETTING),
            parameters: solution.schedule.origin.parameters.clone(),
            beaten: candidate.is_some_and(|place| self.candidates[place].beaten),
            other: candidate.is_some_and(|place| self.candidates[place].other),
            candidate,
            schedule: Some(solution.schedule),
        };
        let known =
            parallel::each(&self.candidates).enumerate().filter_map(|(place, candidate)| {
                let Candidate { asked, parameters, .. } = candidate;
                if candidate.again {
                    let solution = solve(*asked, parameters)?;
                    if candidate.own || !candidate.is_scaled_to(&solution, self.reference()) {
                        let parameters = parameters.clone();
                        return Some(Found { parameters, ..found(Some(place), *asked, solution) });
                    }
                } else if checked {
                    solve(*asked, parameters)?;
                }
                Some(Found {
                    asked: *asked,
                    parameters: parameters.clone(),
                    price: self.sized(place, candidate.price, bytes),
                    beaten: candidate.beaten,
                    other: candidate.other,
                    candidate: Some(place),
                    schedule: None,
                })
            });
        let mut all: Vec<Found> = known.collect();
        for (place, asked) in self.asked.iter().enumerate() {
            let solved = asked.refused.iter().filter_map(|setting| solve(place, setting));
            all.extend(solved.map(|solution| found(None, place, solution)));
        }
        for Found { price, .. } in &mut all {
            *price = pricing.raised(*price);
        }
        // The order of algorithms decides between equal times.
        all.sort_by_key(|found| found.asked);
        all.retain(|found| !found.other || found.price.priced == Priced::Exactly);
        let again = all.iter().filter_map(|found| Some((found.asked, found.schedule.clone()?)));
        self.latest = again.collect();
        self.decide_at(&mut all, &pricing, bytes);
        all
    }

    /// The price of a candidate of whole blocks at another block size, with its rendezvous where it is exact.
    fn sized(&self, place: usize, price: Price, bytes: u64) -> Price {
        let (reference, rendezvous) =
            (self.reference(), self.exchange().machine().timing.rendezvous);
        let sized = price.scaled(reference, bytes);
        if price.priced != Priced::Exactly || rendezvous.time == 0.0 {
            return sized;
        }
        sized.waiting(rendezvous, (bytes, true), || {
            let Candidate { asked, parameters, schedule, largest, .. } = &self.candidates[place];
            let largest = largest.get_or_init(|| {
                let solved = || {
                    let solved = self.exchange().schedule(self.name(*asked), parameters);
                    solved.expect("bug: no longer applies")
                };
                largest_messages(&schedule.get().cloned().unwrap_or_else(solved))
            });
            let at = |of: u128| of / u128::from(reference) * u128::from(bytes);
            let above = largest.iter().filter(|(of, _)| rendezvous.of(at(*of)) > 0.0);
            above.map(|(_, steps)| steps).sum()
        })
    }

    /// The name of an algorithm that is asked for.
    pub(crate) fn name(&self, asked: usize) -> &str {
        &self.asked[asked].algorithm.info().name
    }

    /// A candidate as a choice.
    pub(crate) fn choice(&self, found: Found) -> Choice {
        Choice::new(self.name(found.asked), found.parameters, found.price)
    }

    /// The schedule of a choice for an exchange with blocks of another size, and whether its messages are
    /// the same at all sizes.
    pub(crate) fn schedule(
        &self,
        exchange: &Exchange<'_>,
        choice: &Choice,
    ) -> Option<(Schedule, bool)> {
        let Choice { algorithm, parameters, .. } = choice;
        let is =
            |asked: usize, own: &Parameters| self.name(asked) == algorithm && own == parameters;
        let mut same = self.candidates.iter().filter(|candidate| !candidate.again);
        if let Some(same) = same.find(|one| is(one.asked, &one.parameters)) {
            let mut schedule = same.schedule.get().cloned().or_else(|| {
                let solved = self.exchange().schedule(algorithm, parameters).ok()?;
                Some(same.schedule.get_or_init(|| solved).clone())
            })?;
            schedule.problem = *exchange.problem();
            return Some((schedule, true));
        }
        let mut latest = self.latest.iter();
        let latest = latest.find(|(asked, own)| {
            own.problem == *exchange.problem() && is(*asked, &own.origin.parameters)
        });
        let solved = || exchange.schedule(algorithm, parameters).ok();
        Some((latest.map(|(_, own)| own.clone()).or_else(solved)?, false))
    }

    /// The fastest candidates over block sizes, without the sizes at which a floor is below. Those of
    /// candidates that split blocks are exact to the bytes of a part.
    pub(crate) fn fastest(&mut self) -> Vec<Winner> {
        let (lines, places, lowest) = loop {
            let (lines, places) = self.lines();
            let lowest = envelope(&lines);
            let unchecked = lowest.iter().map(|one| places[one.line]).find(|&place| {
                let candidate = &self.candidates[place];
                candidate.again && candidate.least.is_none()
            });
            match unchecked {
                Some(place) => self.candidates[place].least = Some(self.least_accepted(place)),
                None => break (lines, places, lowest),
            }
        };
        let floors = self.candidates.iter().filter(|one| one.price.priced == Priced::AtLeast);
        let floors: Vec<_> = floors.map(|one| one.price.line(self.reference())).collect();
        let found = without_open(&lines, &lowest, &floors).into_iter().map(|sizes| {
            let Candidate { asked, parameters, .. } = &self.candidates[places[sizes.line]];
            let seconds = at(lines[sizes.line].seconds, sizes.from);
            Winner { sizes, seconds, asked: *asked, parameters: parameters.clone() }
        });
        found.collect()
    }

    /// The lines of exact prices, with the place of the algorithm and the setting.
    pub(crate) fn exact(&self) -> impl Iterator<Item = (TimeLine, usize, &Parameters)> {
        let (lines, places) = self.lines();
        lines.into_iter().zip(places).map(|(line, place)| {
            let Candidate { asked, parameters, .. } = &self.candidates[place];
            (line, *asked, parameters)
        })
    }

    /// The least block size that a candidate accepts.
    fn least_accepted(&self, place: usize) -> u64 {
        let Candidate { asked, parameters, .. } = &self.candidates[place];
        let accepts = |bytes: u64| {
            let sized = self.exchange().sized(bytes);
            sized.request().solve(self.asked[*asked].algorithm, parameters).is_ok()
        };
        let (mut refused, mut accepted) = (0, self.reference());
        while accepted - refused > 1 {
            let middle = refused + (accepted - refused) / 2;
            if accepts(middle) { accepted = middle } else { refused = middle }
        }
        accepted
    }

    /// The algorithms of which only some settings were counted.
    pub(crate) fn partly_priced(&self) -> Vec<PartlyPriced> {
        let mut partly: Vec<PartlyPriced> = Vec::new();
        for one in self.asked.iter().filter_map(|asked| asked.partly_priced.clone()) {
            if !partly.contains(&one) {
                partly.push(one);
            }
        }
        partly
    }

    /// Searches that the budget leaves out.
    pub(crate) fn unsearched(&self) -> &[Unsearched] {
        &self.searches.left_out
    }

    /// The algorithms with a candidate that splits blocks.
    pub(crate) fn split(&self) -> Vec<String> {
        let split = self.candidates.iter().filter(|candidate| !candidate.whole);
        let names =
            split.map(|candidate| self.asked[candidate.asked].algorithm.info().name.clone());
        let mut names: Vec<String> = names.map(Into::into).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        names
    }
}
