//! The choices as the answer of `select` has them: in the order of the model, floors last.

use topocoll::contention::Estimate;
use topocoll::{Choice, NotSimulated, Priced, Selection};

use super::super::Simulated;
use crate::commands::within::is_open;

/// The choices in the order of the model, each with its predicted time; floors come last.
pub(super) struct Ranking<'s> {
    pub(super) choices: Vec<(&'s Choice, f64)>,
    /// Choices whose floors are below the best.
    pub(super) undecided: usize,
    pub(super) model: Option<&'static str>,
    /// Choices that are not simulated.
    pub(super) left: Vec<Unsimulated<'s>>,
}

/// A choice that is not simulated, with its estimate.
pub(super) struct Unsimulated<'s> {
    pub(super) choice: &'s Choice,
    pub(super) estimate: &'s Estimate,
    pub(super) reason: &'s NotSimulated,
}

impl<'s> Ranking<'s> {
    pub(super) fn new(selection: &'s Selection, simulated: Option<&'s Simulated>) -> Self {
        match simulated {
            Some(Simulated { model, order, found, .. }) => {
                let timed = |&i: &usize| Some((&selection.choices[i], *found[i].1.as_ref().ok()?));
                let all = selection.choices.iter().zip(found);
                let left = all.filter_map(|(choice, (estimate, found))| {
                    Some(Unsimulated { choice, estimate, reason: found.as_ref().err()? })
                });
                Self {
                    choices: order.iter().filter_map(timed).collect(),
                    undecided: 0,
                    model: Some(model),
                    left: left.collect(),
                }
            }
            None => {
                let timed = |choice: &'s Choice| (choice, choice.ranked_seconds());
                let mut choices: Vec<_> = selection.choices.iter().map(timed).collect();
                choices.sort_by_key(|(choice, _)| choice.price.priced == Priced::AtLeast);
                Self {
                    choices,
                    undecided: selection.undecided().len(),
                    model: None,
                    left: Vec::new(),
                }
            }
        }
    }

    /// The choices that may be faster than those simulated, by the steps model's time.
    pub(super) fn open(&self) -> Vec<&'s Choice> {
        let open = self.left.iter().filter(|left| is_open(left.reason));
        open.map(|left| left.choice).collect()
    }
}
