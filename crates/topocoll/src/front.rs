//! Startups against volume: the Pareto front.

use topocoll_analysis::BestBounds;
use topocoll_schedule::Parameters;

use crate::exchange::Budget;
use crate::pool::fewer_ports::is_limited;
use crate::pool::views::is_on_view;
use crate::{Choice, Error, Exchange, PartlyPriced, Priced, Rejected, Selection, Unsearched};

/// Settings that apply, by startups and volume: C1, and charged C2.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Front {
    /// Settings that no other beats, by steps and then by link blocks. A setting beats another if
    /// it has no more of both and less of one; only exactly priced schedules beat others.
    pub points: Vec<Choice>,
    /// Settings priced by a floor that no point beats: they may be on the front.
    pub undecided: Vec<Choice>,
    /// Settings that some point beats, in the same order.
    pub beaten: Vec<Choice>,
    /// Algorithms that do not apply, and the reasons.
    pub rejected: Vec<Rejected>,
    /// Algorithms of which only some settings were priced.
    pub partly_priced: Vec<PartlyPriced>,
    /// Searches that may find a faster schedule and exceed the budget.
    pub unsearched: Vec<Unsearched>,
    /// The lower bound.
    pub bound: BestBounds,
}

impl Front {
    /// The least charged volume, in blocks, of any schedule of at most a number of steps: for some
    /// numbers, from the least to the most steps of any setting.
    #[must_use]
    pub fn least_volumes(&self) -> Vec<(u64, f64)> {
        let known = self.points.iter().chain(&self.beaten).map(|choice| choice.price.steps);
        let (bound, most) = (&self.bound, known.max().unwrap_or(0));
        let mut curve: Vec<(u64, f64)> = Vec::new();
        let mut steps = bound.steps;
        while steps <= most {
            let least = bound.link_blocks_in(steps).unwrap_or(bound.link_blocks);
            // For numbers that are left out, the least volume of the next one holds.
            if let Some(&(before, _)) = curve.last().filter(|&&(before, _)| before + 1 < steps) {
                curve.push((before + 1, least));
            }
            curve.push((steps, least));
            // Each 4 % above the one before.
            steps = (steps + 1 + steps / 25).min(most.max(steps + 1));
        }
        curve
    }
}

impl Exchange<'_> {
    /// The Pareto front of startups and volume: every algorithm, or the `asked` ones by name, with
    /// their fixed parameters. For groups and demand matrices, see [`Selection::front`].
    ///
    /// # Errors
    /// A requested algorithm does not exist or does not apply.
    pub fn front(&self, asked: &[(String, Parameters)]) -> Result<Front, Error> {
        let Budget { search, progress, .. } = *self.limits();
        let quick = Budget { search, progress, ..Budget::quick() };
        let reference = self.at_reference().budget(quick);
        let (mut pool, bound) =
            (self.pool(&reference, asked, &[self.problem().block_bytes])?, self.bounds());
        let choices = pool
            .at(self.problem().block_bytes)
            .into_iter()
            .map(|found| pool.choice(found).over(&bound));
        let (points, undecided, mut beaten) = split(choices.collect());
        let own = |set: &Parameters| !is_limited(set) && !is_on_view(set);
        beaten.retain(|choice| own(&choice.parameters));
        let (partly_priced, unsearched) = (pool.partly_priced(), pool.unsearched().to_vec());
        let rejected = pool.rejected;
        Ok(Front { points, undecided, beaten, rejected, partly_priced, unsearched, bound })
    }
}

impl Selection {
    /// The Pareto front of startups and volume of its choices: for groups and for demand matrices, whose choices are
    /// all counted.
    #[must_use]
    pub fn front(&self) -> Front {
        let (points, undecided, beaten) = split(self.choices.clone());
        let Self { rejected, partly_priced, unsearched, bound, .. } = self.clone();
        Front { points, undecided, beaten, rejected, partly_priced, unsearched, bound }
    }
}

/// Settings on the front, settings that may be, and beaten settings.
fn split(mut choices: Vec<Choice>) -> (Vec<Choice>, Vec<Choice>, Vec<Choice>) {
    // Equal settings stay in the order of the table.
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
    (points, undecided, beaten)
}
