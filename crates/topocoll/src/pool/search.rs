//! Candidates that are searched for, where a search may find a faster schedule within the budget.

use topocoll_algorithms::{Algorithm, Claims, NotApplicable, Search};
use topocoll_schedule::Parameters;

use super::candidate::Candidate;
use super::{Asked, Pool, WORK_PER_SETTING};
use crate::envelope::{bends, envelope, promise};
use crate::{Rejected, Unsearched};

/// A search is run if it may find a schedule that takes less than this share of the best time.
const WORTH: f64 = 0.98;

/// The searches that may be run.
pub(super) struct Searches {
    /// The most seconds of one.
    most: f64,
    pub(super) left_out: Vec<Unsearched>,
}

impl Searches {
    pub(super) fn within(seconds: f64) -> Self {
        Self { most: seconds, left_out: Vec::new() }
    }

    /// Whether a search that may find a schedule of this share of the best time is within the budget: what may be
    /// twice as fast may take twice as long.
    pub(super) fn may(&self, search: &Search, share: f64) -> bool {
        search.seconds * share <= self.most
    }

    /// The same; if it is not, it is listed.
    pub(super) fn may_or_listed(&mut self, name: &str, search: &Search, share: f64) -> bool {
        if self.may(search, share) {
            return true;
        }
        let seconds = search.seconds;
        match self.left_out.iter_mut().find(|one| one.algorithm == name) {
            Some(known) => known.seconds = known.seconds.max(seconds),
            None => self.left_out.push(Unsearched { algorithm: name.to_owned(), seconds }),
        }
        false
    }

    /// The reason that an algorithm is left out.
    fn reason(&self, name: &str) -> NotApplicable {
        match self.left_out.iter().find(|one| one.algorithm == name) {
            Some(one) => NotApplicable::Search { milliseconds: (one.seconds * 1e3).ceil() as u64 },
            None => NotApplicable::Slower,
        }
    }
}

impl<'x> Pool<'x> {
    /// Searches for those schedules of an algorithm that may be faster than the best at some block size, as
    /// far as the budget goes.
    pub(super) fn search(&mut self, algorithm: &'x dyn Algorithm, first: &Search) {
        let (name, request) = (&*algorithm.info().name, self.exchange().request());
        let before = self.candidates.len();
        let mut settings = Vec::new();
        let share = self.worth()(&first.least);
        if share.is_some_and(|share| self.searches.may_or_listed(name, first, share)) {
            match request.candidates(algorithm) {
                Ok(candidates) => settings = candidates,
                Err(reason) => return self.rejected.push(Rejected::new(name, &reason)),
            }
        }
        for setting in settings {
            if self.may_search(algorithm, &setting)
                && let Ok(solution) = request.solve(algorithm, &setting)
            {
                let price = self.pricing.price(&solution, WORK_PER_SETTING);
                let asked = self.asked.len();
                let new = Candidate::new(&solution, price, &self.pricing);
                let schedule = solution.schedule.into();
                self.candidates.push(Candidate { asked, schedule, ..new });
                self.decide();
            }
        }
        if self.candidates.len() == before {
            let reason = self.searches.reason(name);
            return self.rejected.push(Rejected::new(name, &reason));
        }
        let (given, refused) = (Parameters::new(), Vec::new());
        self.asked.push(Asked { algorithm, given, refused, partly_priced: None });
    }

    /// Whether the search for a setting is worth it, and within the budget; if it is not, it is listed.
    fn may_search(&mut self, algorithm: &'x dyn Algorithm, setting: &Parameters) -> bool {
        let request = self.exchange().request();
        let Some(search) = request.search(algorithm, setting) else { return false };
        let Some(share) = self.worth()(&search.least) else { return false };
        self.searches.may_or_listed(&algorithm.info().name, &search, share)
            && request
                .expected(algorithm, setting)
                .is_none_or(|claims| self.worth()(&claims).is_some())
    }

    /// The least share of the best time at some block size that a schedule of at least some claims may take, if it
    /// may be faster by more than a little.
    pub(super) fn worth(&self) -> impl Fn(&Claims) -> Option<f64> + Sync {
        let (lines, _) = self.lines();
        let lowest = envelope(&lines);
        let sizes = bends(&lowest);
        move |least| {
            let floor = self.pricing.at_least(least).line(self.reference());
            let promise = promise(floor, &lines, &lowest, &sizes).filter(|&share| share < WORTH);
            if lines.is_empty() { Some(1.0) } else { promise }
        }
    }
}
