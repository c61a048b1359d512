//! Rankings with choices counted again: for groups of the ranks, as far as the budget goes, and for a demand matrix.

use topocoll_algorithms::Algorithm;
use topocoll_analysis::BestBounds;
use topocoll_analysis::contention::Sync;
use topocoll_schedule::{Parameters, Schedule};

use crate::exchange::refused;
use crate::grouped::Grouped;
use crate::pool::fewer_ports::{fewer_of_both, is_limited, limit};
use crate::price::{Price, Priced, best_time};
use crate::select::{Selection, ranked, reject};
use crate::{Choice, Error, Exchange, PartlyPriced, Rejected, Unsearched};

/// The most slots for counting the settings of an algorithm for a demand matrix: a second or two.
const SLOTS_PER_ALGORITHM: u128 = 1 << 24;
/// The most route segments for counting those of groups: part of a second.
const SEGMENTS_PER_ALGORITHM: u128 = 1 << 18;

/// The most slots, or route segments of groups, for counting schedules for fewer ports.
const WORK_FOR_FEWER_PORTS: u128 = 1 << 24;
/// The most ranks among which schedules for fewer ports are tried.
const FEWER_PORTS_UP_TO: u32 = 512;

/// What was counted, and what was not.
#[derive(Default)]
struct Counted {
    choices: Vec<Choice>,
    rejected: Vec<Rejected>,
    partly_priced: Vec<PartlyPriced>,
    unsearched: Vec<Unsearched>,
    refusals: Vec<Rejected>,
}

/// Counts the choices for equal blocks on the machine that the ranks form, and those of algorithms
/// whose schedules depend on the sizes, and then the same for fewer ports. If an algorithm has too many
/// choices, counts a sample that is evenly spread by steps and includes both ends.
pub(crate) fn select(exchange: &Exchange<'_>) -> Result<Selection, Error> {
    let (own, bound) = (exchange.own(), exchange.bounds());
    let nothing = Selection::nothing(bound);
    let apart = |of: &Grouped| of.are_apart(&*exchange.whole().topology);
    if exchange.sizes().is_none() && exchange.groups.as_deref().is_some_and(apart) {
        let Selection { choices, rejected, partly_priced, unsearched, .. } =
            crate::select::select(&own.sync(Sync::Barrier));
        let choices = ranked(choices, &bound, &[]);
        return Ok(Selection { choices, rejected, partly_priced, unsearched, ..nothing });
    }
    let budget = match exchange.sizes() {
        Some(_) => u128::MAX,
        None => exchange.limits().work,
    };
    let mut left = budget;
    let Counted { mut choices, mut rejected, partly_priced, unsearched, refusals } =
        counted(exchange, &own, &Parameters::new(), (&bound, &mut left))?;
    let of_all = choices.len();
    if own.problem().ranks <= FEWER_PORTS_UP_TO && budget >= WORK_FOR_FEWER_PORTS {
        left = WORK_FOR_FEWER_PORTS;
        for ports in fewer_of_both(own.problem().both_ports()) {
            let limit = limit(ports, own.has_nodes());
            let counted =
                counted(exchange, &own.with_ports(ports), &limit, (&bound, &mut left))?.choices;
            choices.extend(counted.into_iter().filter(|one| one.price.priced == Priced::Exactly));
        }
    }
    // Of those for fewer ports, the ones that are faster than all before them.
    for choice in choices.split_off(of_all) {
        let own = choices.iter().filter(|other| other.algorithm == choice.algorithm);
        if choice.price.time.total() < best_time(own.map(|other| &other.price)) {
            choices.push(choice);
        }
    }
    reject(&mut rejected, refusals, &choices);
    let choices = ranked(choices, &bound, &[]);
    Ok(Selection { choices, rejected, partly_priced, unsearched, ..nothing })
}

/// Counts the choices of an exchange with `limited` ports, the fastest of a group by itself first, as far as the
/// work that is left. The time of a group by itself is a floor of the time with all others, with at least the
/// transmission of the bound; much work is only for those whose floors are below the best.
fn counted(
    exchange: &Exchange<'_>,
    limited: &Exchange<'_>,
    limit: &Parameters,
    (bound, left): (&BestBounds, &mut u128),
) -> Result<Counted, Error> {
    let own = exchange.own();
    let equal = crate::select::select(&limited.without_demand().sync(Sync::Barrier));
    let mut out = Counted {
        rejected: equal.rejected,
        partly_priced: equal.partly_priced,
        unsearched: equal.unsearched,
        ..Counted::default()
    };
    let mut choices = equal.choices;
    choices.retain(|choice| !is_limited(&choice.parameters));
    let choices = spread((exchange, limited), choices, &mut out.partly_priced);
    let alone = |Choice { algorithm, parameters, mut price, .. }: Choice| {
        price.time.transmission = price.time.transmission.max(bound.transmission);
        price.priced = Priced::AtLeast;
        (algorithm, parameters, Some(price))
    };
    let mut settings: Vec<_> = choices.into_iter().map(alone).collect();
    let by_demand =
        |algorithm: &&dyn Algorithm| exchange.sizes().is_some() && algorithm.info().by_demand;
    for algorithm in own.algorithms().filter(by_demand) {
        let name = &algorithm.info().name;
        out.rejected.retain(|rejected| rejected.algorithm != **name);
        let refusal = |reason: &dyn std::fmt::Display| Rejected::new(name, &reason.to_string());
        let solvable = own.check_solving(algorithm).map_err(|reason| refusal(&reason));
        let found = solvable.and_then(|()| {
            limited.request().candidates(algorithm).map_err(|reason| refusal(&reason))
        });
        match found {
            Ok(found) => {
                settings
                    .extend(found.into_iter().map(|one| (name.clone().into_owned(), one, None)));
            }
            Err(refused) => out.refusals.push(refused),
        }
    }
    let mut best = f64::INFINITY;
    for (name, mut setting, floor) in settings {
        setting.extend(limit.clone());
        let solution = own.request().solve(own.find(&name)?, &setting);
        let priced = solution.map_err(|reason| refused(&name, reason)).and_then(|solution| {
            let work = exchange.counting_work(&solution.schedule)?;
            let is_open = |floor: &Price| floor.time.total() < best || exchange.sizes().is_some();
            let is_little = work <= SEGMENTS_PER_ALGORITHM;
            let fits = work <= *left && (is_little || floor.as_ref().is_none_or(is_open));
            *left -= if fits { work } else { 0 };
            fits.then(|| price(exchange, &solution.schedule)).transpose()
        });
        match priced {
            Ok(Some(price)) => {
                best = best.min(price.time.total());
                out.choices.push(Choice::new(&name, setting, price));
            }
            Ok(None) => {
                out.choices.extend(floor.map(|price| Choice::new(&name, setting, price)));
            }
            Err(reason) => out.refusals.push(Rejected::new(&name, &reason)),
        }
    }
    Ok(out)
}

/// The price of a schedule, every step counted. A subset's may not exceed the ports of the whole machine;
/// groups that share ports take them in turn.
fn price(exchange: &Exchange<'_>, schedule: &Schedule) -> Result<Price, Error> {
    let counts = exchange.count(schedule)?;
    let alone = exchange.grouped().is_some_and(|groups| groups.count() == 1);
    if alone && counts.port_violations > 0 {
        return Err(Error::PortsOfWhole { ports: exchange.machine().ports });
    }
    Ok(Price::counted(&counts))
}

/// The choices to count, in their order: of an algorithm with too many the first, and those that are evenly spread by
/// steps.
fn spread(
    (exchange, limited): (&Exchange<'_>, &Exchange<'_>),
    choices: Vec<Choice>,
    partly_priced: &mut Vec<PartlyPriced>,
) -> Vec<Choice> {
    let mut choices: Vec<_> = choices.into_iter().enumerate().collect();
    choices.sort_by_key(|(_, choice)| choice.price.steps);
    let mut kept = Vec::new();
    while let Some(algorithm) = choices.first().map(|(_, choice)| choice.algorithm.clone()) {
        let (own, others): (Vec<_>, Vec<_>) =
            choices.into_iter().partition(|(_, choice)| choice.algorithm == algorithm);
        choices = others;
        let work = |(_, one): &(usize, Choice)| {
            let schedule = limited.schedule(&algorithm, &one.parameters);
            schedule.and_then(|schedule| exchange.counting_work(&schedule)).unwrap_or(0)
        };
        // The setting with the fewest steps combines most, and has the most slots.
        let (work, most) = match exchange.sizes() {
            Some(_) => (work(&own[0]), SLOTS_PER_ALGORITHM),
            None => (work(&own[own.len() - 1]), SEGMENTS_PER_ALGORITHM),
        };
        let most = (most / work.max(1)).max(2) as usize;
        let (all, every) = (own.len(), own.len().div_ceil(most));
        let (before, first) = (kept.len(), own.iter().map(|(place, _)| *place).min());
        let chosen = |&(i, (place, _)): &(usize, (usize, Choice))| {
            i % every == 0 || i + 1 == all || Some(place) == first
        };
        kept.extend(own.into_iter().enumerate().filter(chosen).map(|(_, own)| own));
        let priced = kept.len() - before;
        if priced < all {
            partly_priced.retain(|partly| partly.algorithm != algorithm);
            partly_priced.push(PartlyPriced { algorithm, priced, settings: all });
        }
    }
    kept.sort_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, choice)| choice).collect()
}
