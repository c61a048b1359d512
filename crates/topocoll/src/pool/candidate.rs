//! The candidates of one algorithm: each solved once, with its price or a floor.

use std::sync::OnceLock;

use rayon::prelude::*;
use topocoll_algorithms::{Algorithm, Claims, NotApplicable, Solution, VIEW, of_every_algorithm};
use topocoll_analysis::counting_work;
use topocoll_schedule::{Parameters, Schedule, Step};
use topocoll_topology::{Rank, View, parallel};

use super::WORK_PER_SETTING;
use super::search::Searches;
use crate::exchange::{agrees, in_steps};
use crate::price::{Price, Pricing, moves_whole_blocks};
use crate::{PartlyPriced, Unsearched};

/// The most segments for pricing all settings of an algorithm.
const WORK_PER_ALGORITHM: u128 = 1 << 23;

pub(super) struct Candidate {
    /// The place of its algorithm.
    pub(super) asked: usize,
    pub(super) parameters: Parameters,
    pub(super) claims: Claims,
    /// At the reference size; a floor is a line too.
    pub(super) price: Price,
    /// The schedule; where the claims give the price, from when it is asked for.
    pub(super) schedule: OnceLock<Schedule>,
    /// The largest messages of its steps, from when they are asked for.
    pub(super) largest: OnceLock<Vec<(u128, u64)>>,
    /// Its exact price where it was counted for one block size.
    pub(super) counted: Option<Price>,
    /// The work of counting it.
    pub(super) work: OnceLock<u128>,
    /// The samples of its ranks that have raised its floor.
    pub(super) samples: u8,
    /// Whether it moves whole blocks.
    pub(super) whole: bool,
    /// Whether it is solved again at each block size.
    pub(super) again: bool,
    /// Whether an algorithm of the caller's is part of it, whose schedule may depend on the block size.
    pub(super) own: bool,
    /// Whether another setting of its algorithm claims no more steps and bytes.
    pub(super) beaten: bool,
    /// Whether it leaves ports unused, or is for another view of the machine.
    pub(super) other: bool,
    /// The least block size that it accepts, if it was looked for.
    pub(super) least: Option<u64>,
}

impl Candidate {
    pub(super) fn new(solution: &Solution, price: Price, pricing: &Pricing<'_>) -> Self {
        let claimed = pricing.by_claims(solution).is_some();
        Self {
            asked: 0,
            parameters: solution.schedule.origin.parameters.clone(),
            claims: solution.claims,
            price,
            schedule: match claimed {
                true => OnceLock::new(),
                false => solution.schedule.clone().into(),
            },
            largest: OnceLock::new(),
            counted: None,
            work: OnceLock::new(),
            samples: 0,
            whole: moves_whole_blocks(solution),
            again: false,
            own: false,
            beaten: false,
            other: false,
            least: None,
        }
    }

    /// Whether another solution of its setting sends the same blocks, in a block size of its own.
    pub(super) fn is_scaled_to(&self, solution: &Solution, reference: u64) -> bool {
        let (own, other) = (&self.claims, &solution.claims);
        let bytes = u128::from(solution.schedule.problem.block_bytes);
        self.whole
            && moves_whole_blocks(solution)
            && own.steps == other.steps
            && own.bytes / u128::from(reference) == other.bytes / bytes
    }

    /// Whether its claims, which give the price, are those of another candidate of its algorithm, or its
    /// schedule is another one's. If they are on different views, that is known only where a view has the
    /// machine's own ranks.
    pub(super) fn costs_as_much_as(&self, other: &Self, view: Option<&View>) -> bool {
        let same = |name: &str| self.parameters.get(name) == other.parameters.get(name);
        self.claims == other.claims
            && match (self.schedule.get(), other.schedule.get()) {
                (None, None) => true,
                (Some(own), Some(other)) if VIEW.iter().all(|name| same(name)) => {
                    does_the_same(own, other)
                }
                (Some(_), Some(_)) => {
                    let own_ranks = view.is_some_and(View::is_of_own_ranks);
                    own_ranks && self.parameters.keys().all(|name| same(name))
                }
                _ => false,
            }
    }
}

/// Whether ranks do the same in two schedules of one machine, as far as the first steps of the first ranks show.
fn does_the_same(one: &Schedule, other: &Schedule) -> bool {
    /// The most steps, and the most ranks, that are looked at.
    const SOME: u32 = 32;
    let (steps, ranks) = (one.rule().steps(), one.problem.ranks);
    let (mut does, mut others) = (Step::default(), Step::default());
    let mut same = |rank: Rank, step: u32| {
        one.rule().step(rank, step, &mut does);
        other.rule().step(rank, step, &mut others);
        does == others
    };
    let mut step_is_same = |step: u32| (0..ranks.min(SOME)).all(|rank| same(Rank(rank), step));
    steps == other.rule().steps() && (0..steps.min(SOME)).all(&mut step_is_same)
}

/// The solved candidates of an algorithm.
pub(super) struct Solved {
    pub(super) refused: Vec<Parameters>,
    pub(super) partly_priced: Option<PartlyPriced>,
    pub(super) unsearched: Vec<Unsearched>,
    pub(super) candidates: Vec<Candidate>,
}

impl Solved {
    /// Solves the candidates of an algorithm that agree with what is given, or only this if none agrees.
    /// An algorithm that is not asked for by name may be left out of the ranking.
    ///
    /// [`STEPS`](topocoll_algorithms::STEPS) drops the candidates that take more steps.
    ///
    /// If counting all settings without an exact price by claims takes too long, it counts only those on
    /// the algorithm's Pareto front of claimed steps and claimed blocks.
    ///
    /// # Errors
    /// No setting applies.
    pub(super) fn new(
        algorithm: &dyn Algorithm,
        pricing: &Pricing<'_>,
        (given, is_asked): (&Parameters, bool),
        block_sizes: &[u64],
    ) -> Result<Self, NotApplicable> {
        let (request, machine) = (pricing.exchange.request(), pricing.exchange.machine());
        let (most_steps, given) = &algorithm.info().most_steps(given)?;
        let (view, own) = request.view(algorithm.info(), given)?;
        let (fewer, own) = request.seen(view.as_ref()).fewer_ports(algorithm.info(), &own)?;
        let mut settings = match fewer.candidates(algorithm) {
            Err(NotApplicable::Unranked { .. }) if is_asked => Vec::new(),
            candidates => candidates?,
        };
        settings.retain(|setting| agrees(algorithm.info(), setting, &own));
        let mut searches = Searches::within(pricing.exchange.limits().search);
        let mut is_first = true;
        settings.retain(|setting| {
            let search = fewer.search(algorithm, setting);
            let fits = search
                .is_none_or(|search| searches.may_or_listed(&algorithm.info().name, &search, 1.0));
            std::mem::replace(&mut is_first, false) || fits
        });
        settings.iter_mut().for_each(|setting| setting.extend(of_every_algorithm(given)));
        let solve = |setting: &Parameters| request.solve(algorithm, setting);
        let solved: Vec<_> = parallel::each(&settings).map(|setting| solve(setting).ok()).collect();
        let (mut solutions, mut refused) = (Vec::new(), Vec::new());
        for (setting, solution) in settings.iter().zip(solved) {
            match solution {
                Some(solution) => solutions.push(solution),
                None => refused.push(setting.clone()),
            }
        }
        if solutions.is_empty() {
            let setting = settings.first().unwrap_or(given);
            match solve(setting) {
                Ok(solution) => solutions.push(solution),
                Err(_) => {
                    // A schedule from a file may take the one size that it was written for.
                    let at = |&bytes: &u64| {
                        let sized = pricing.exchange.sized(bytes);
                        sized.request().solve(algorithm, setting).map(|_| ())
                    };
                    if let Some(Err(reason)) =
                        block_sizes.iter().map(at).reduce(|a, b| if a.is_ok() { a } else { b })
                    {
                        return Err(reason);
                    }
                    refused = vec![setting.clone()];
                }
            }
        }
        let steps = |solution: &Solution| solution.claims.steps;
        let mut solutions = in_steps(solutions, steps, algorithm, *most_steps)?;
        if most_steps.is_some() {
            // Their steps are not known.
            refused.clear();
        }
        let work =
            |schedule: &Schedule| counting_work(schedule, machine, None).min(WORK_PER_SETTING);
        let open = solutions.iter().filter(|solution| pricing.by_claims(solution).is_none());
        let mut left = Vec::new();
        if open.map(|solution| work(&solution.schedule)).sum::<u128>() > WORK_PER_ALGORITHM {
            solutions.sort_by_key(|solution| (solution.claims.steps, solution.claims.bytes));
            let mut least = u128::MAX;
            (solutions, left) = solutions.into_iter().partition(|solution| {
                let better = solution.claims.bytes < least;
                least = least.min(solution.claims.bytes);
                better
            });
        }
        let (priced, settings) = (solutions.len(), solutions.len() + left.len());
        let name = algorithm.info().name.clone().into_owned();
        let partly_priced =
            (priced < settings).then_some(PartlyPriced { algorithm: name, priced, settings });
        let most = WORK_PER_SETTING.min(WORK_PER_ALGORITHM / priced.max(1) as u128);
        let mut candidates: Vec<Candidate> = parallel::each(&solutions)
            .map(|solution| Candidate::new(solution, pricing.price(solution, most), pricing))
            .collect();
        candidates.extend(left.iter().map(|solution| Candidate {
            beaten: true,
            ..Candidate::new(solution, pricing.claimed(solution), pricing)
        }));
        Ok(Self { refused, partly_priced, unsearched: searches.left_out, candidates })
    }
}
