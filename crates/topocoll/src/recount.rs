//! Rankings with every choice counted: for a subset of the ranks, and for a demand matrix.

use topocoll_algorithms::Algorithm;
use topocoll_analysis::counting_work;
use topocoll_schedule::Schedule;

use crate::exchange::refused;
use crate::price::Price;
use crate::select::{Choice, Selection, ranked, reject};
use crate::{Error, Exchange, PartlyPriced, Rejected};

/// The most slots for counting the settings of an algorithm: a second or two.
const WORK_PER_ALGORITHM: u128 = 1 << 24;

/// Counts the choices for equal blocks on the machine that the ranks form, and those of algorithms
/// whose schedules depend on the sizes. If an algorithm has too many choices, counts a sample that
/// is evenly spread by steps and includes both ends.
pub(crate) fn select(exchange: &Exchange<'_>) -> Result<Selection, Error> {
    let own = exchange.own();
    let equal = crate::select::select(&own.without_demand());
    let (mut choices, mut rejected) = (equal.choices, equal.rejected);
    let (mut partly_priced, mut refusals) = (equal.partly_priced, Vec::new());
    if exchange.sizes().is_some() {
        choices = spread(&own, choices, &mut partly_priced);
    }
    let mut counted = Vec::new();
    for choice in choices {
        let request = own.request();
        let algorithm = own.find(&choice.algorithm)?;
        let solution = request.solve(algorithm, &choice.parameters);
        let solution = solution.map_err(|reason| refused(&choice.algorithm, reason))?;
        match price(exchange, &solution.schedule) {
            Ok(price) => counted.push(Choice { price, ..choice }),
            Err(reason) => refusals.push(Rejected::new(&choice.algorithm, &reason)),
        }
    }
    let by_demand =
        |algorithm: &&dyn Algorithm| exchange.sizes().is_some() && algorithm.info().by_demand;
    for algorithm in own.algorithms().filter(by_demand) {
        let name = &algorithm.info().name;
        rejected.retain(|rejected| rejected.algorithm != **name);
        if let Err(reason) = own.check_solving(algorithm) {
            refusals.push(Rejected::new(name, &reason));
            continue;
        }
        let request = own.request();
        let settings = match request.candidates(algorithm) {
            Ok(settings) => settings,
            Err(reason) => {
                refusals.push(Rejected::new(name, &reason));
                continue;
            }
        };
        for setting in settings {
            let solution = request.solve(algorithm, &setting);
            let solution = solution.map_err(|reason| refused(name, reason));
            match solution.and_then(|solution| price(exchange, &solution.schedule)) {
                Ok(price) => counted.push(Choice::new(name, setting, price)),
                Err(reason) => refusals.push(Rejected::new(name, &reason)),
            }
        }
    }
    reject(&mut rejected, refusals, &counted);
    let bound = exchange.bounds();
    let choices = ranked(counted, &bound, &[]);
    Ok(Selection { choices, rejected, partly_priced, ..Selection::nothing(bound) })
}

/// The price of a schedule, every step counted, unless it exceeds the ports of the whole machine.
fn price(exchange: &Exchange<'_>, schedule: &Schedule) -> Result<Price, Error> {
    let counts = exchange.count(schedule)?;
    if !exchange.is_whole() && counts.port_violations > 0 {
        return Err(Error::PortsOfWhole { ports: exchange.machine().ports });
    }
    Ok(Price::counted(&counts))
}

/// The choices to count.
fn spread(
    exchange: &Exchange<'_>,
    mut choices: Vec<Choice>,
    partly_priced: &mut Vec<PartlyPriced>,
) -> Vec<Choice> {
    choices.sort_by_key(|choice| choice.price.steps);
    let mut kept = Vec::new();
    while let Some(algorithm) = choices.first().map(|choice| choice.algorithm.clone()) {
        let (own, others): (Vec<_>, Vec<_>) =
            choices.into_iter().partition(|choice| choice.algorithm == algorithm);
        choices = others;
        // The setting with the fewest steps combines most, and has the most slots.
        let schedule = exchange.schedule(&algorithm, &own[0].parameters);
        let work = schedule
            .map_or(0, |schedule| counting_work(&schedule, exchange.machine(), exchange.sizes()));
        let most = (WORK_PER_ALGORITHM / work.max(1)).max(2) as usize;
        let (all, every) = (own.len(), own.len().div_ceil(most));
        let before = kept.len();
        let chosen = own.into_iter().enumerate();
        kept.extend(chosen.filter(|(i, _)| i % every == 0 || i + 1 == all).map(|(_, own)| own));
        let priced = kept.len() - before;
        if priced < all {
            partly_priced.retain(|partly| partly.algorithm != algorithm);
            partly_priced.push(PartlyPriced { algorithm, priced, settings: all });
        }
    }
    kept
}
