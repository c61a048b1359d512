//! Startups against volume: what no other schedule beats in both.

use topocoll_analysis::{BestBounds, best_bounds};
use topocoll_schedule::{MAX_BLOCK_BYTES, Parameters, Problem};
use topocoll_topology::Machine;

use crate::price::Pricing;
use crate::select::{Budget, bound_ratio, decide};
use crate::sweep::groups;
use crate::{Choice, Error, PartlyPriced, Priced, Rejected};

/// What serves, by startups and volume: C1, and C2 with shared links charged in full.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Front {
    /// Settings that none beats, by steps and then by link blocks. Who has no more of either and
    /// less of one beats another; only a schedule that is priced exactly beats anything.
    pub points: Vec<Choice>,
    /// Settings priced by a floor that no point beats: they might be on the front.
    pub undecided: Vec<Choice>,
    /// Settings that some point beats, in the same order.
    pub beaten: Vec<Choice>,
    /// What does not serve, and why.
    pub rejected: Vec<Rejected>,
    /// Algorithms of which only some settings were priced.
    pub subsets: Vec<PartlyPriced>,
    /// What none can beat.
    pub bound: BestBounds,
}

/// The Pareto front of startups and volume of what serves: every algorithm and formula, or those
/// `asked` for by name, with the parameters that are not to be chosen.
///
/// # Errors
/// Something asked for by a name that nobody has, or that does not serve.
pub fn front(
    machine: &Machine,
    problem: &Problem,
    asked: &[(String, Parameters)],
) -> Result<Front, Error> {
    let bound = best_bounds(problem, machine, None);
    let (groups, rejected) = groups(machine, problem, asked)?;
    let mut subsets = Vec::new();
    for group in &groups {
        let (algorithm, _) = group.entry.named();
        let subset = PartlyPriced { algorithm, priced: group.choices.len(), settings: group.all };
        if subset.priced < subset.settings && !subsets.contains(&subset) {
            subsets.push(subset);
        }
    }
    let mut choices: Vec<_> = groups.into_iter().flat_map(|group| group.choices).collect();
    let budget = Budget::quick();
    let pricing = Pricing::new(machine, problem, budget.memory);
    let sizes = [problem.block_bytes, MAX_BLOCK_BYTES];
    decide(&mut choices, &pricing, &sizes, &budget);
    for choice in &mut choices {
        choice.bound_ratio = bound_ratio(&choice.price, &bound);
    }
    // Equals stay in the order of the table.
    choices.sort_by(|a, b| {
        let by_steps = a.price.steps.cmp(&b.price.steps);
        by_steps.then(a.price.link_blocks.total_cmp(&b.price.link_blocks))
    });
    // The steps and link blocks of the last exact price with fewer link blocks than all before it.
    let mut least = (0, f64::INFINITY);
    let (mut points, mut undecided, mut beaten) = (Vec::new(), Vec::new(), Vec::new());
    for choice in choices {
        let (steps, link_blocks) = (choice.price.steps, choice.price.link_blocks);
        let priced = choice.price.priced;
        if least.1 < link_blocks || least.1 <= link_blocks && least.0 < steps {
            beaten.push(choice);
        } else if priced == Priced::AtLeast {
            undecided.push(choice);
        } else {
            if priced == Priced::Exactly && link_blocks < least.1 {
                least = (steps, link_blocks);
            }
            points.push(choice);
        }
    }
    Ok(Front { points, undecided, beaten, rejected, subsets, bound })
}
