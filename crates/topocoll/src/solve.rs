//! Schedules and rankings of an exchange.

use topocoll_algorithms::{Algorithm, NotApplicable, Solution};
use topocoll_schedule::{Parameters, Schedule};

use crate::exchange::{in_steps, refused};
use crate::pool::Pool;
use crate::price::{Price, Pricing, least};
use crate::{Budget, Choice, Error, Exchange, Selection};

impl Exchange<'_> {
    /// The solution of an algorithm. Parameters that are chosen by cost, and are not given, depend
    /// on the machine's timing values, and on the sizes of blocks if the schedule depends on them.
    /// [`STEPS`](crate::STEPS) limits the steps: it is the first such choice of a [selection](Self::select), or
    /// the cheapest such setting if the selection lists none.
    ///
    /// # Errors
    /// No such algorithm, one that does not apply, or too much memory or work.
    pub fn solve(&self, name: &str, given: &Parameters) -> Result<Solution, Error> {
        let algorithm = self.find(name)?;
        let request = self.request();
        self.check_solving(algorithm)?;
        let refused = |reason| refused(name, reason);
        let info = algorithm.info();
        let (most_steps, own) = info.most_steps(given).map_err(refused)?;
        if let Some(most) = most_steps
            && let Some(choice) = self.select()?.in_steps(info, most, &own)
        {
            return request.solve(algorithm, &choice.parameters).map_err(refused);
        }
        let is_open = info.all().any(|p| p.by_cost && !given.contains_key(p.name));
        if info.by_demand || most_steps.is_none() && !is_open {
            let found = vec![request.solve(algorithm, &own).map_err(refused)?];
            let found = in_steps(found, |one| one.claims.steps, algorithm, most_steps);
            return Ok(found.map_err(refused)?.remove(0));
        }
        let setting = self.without_demand().cheapest_of(algorithm, given).map_err(refused)?.0;
        request.solve(algorithm, &setting).map_err(refused)
    }

    /// The schedule of an algorithm, with parameters as [`solve`](Self::solve) chooses them.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub fn schedule(&self, name: &str, given: &Parameters) -> Result<Schedule, Error> {
        Ok(self.solve(name, given)?.schedule)
    }

    /// The solutions of all candidates of all algorithms that apply.
    pub fn solutions(&self) -> impl Iterator<Item = Solution> {
        self.algorithms().flat_map(|algorithm| self.request().solutions(algorithm))
    }

    /// The best setting of an algorithm by predicted time, and its price.
    ///
    /// # Errors
    /// The algorithm does not apply.
    pub fn cheapest(&self, name: &str) -> Result<(Parameters, Price), NotApplicable> {
        self.cheapest_of(self.find(name)?, &Parameters::new())
    }

    fn cheapest_of(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<(Parameters, Price), NotApplicable> {
        let Budget { search, progress, .. } = *self.limits();
        let quick = Budget { search, progress, ..Budget::quick() };
        let reference = self.at_reference().budget(quick);
        let mut pool =
            Pool::new(&reference, &[(algorithm, given.clone())], &[self.problem().block_bytes])
                .map_err(|(_, reason)| reason)?;
        let found = pool.at(self.problem().block_bytes);
        let priced = found.into_iter().map(|found| (found.parameters, found.price));
        match least(priced, |(_, price)| price) {
            Some(cheapest) => Ok(cheapest),
            // Why none applies at this size.
            None => {
                let (most_steps, own) = algorithm.info().most_steps(given)?;
                let solution = self.request().solve(algorithm, &own)?;
                let price = Pricing::new(self).claimed(&solution);
                let found = vec![(solution.schedule.origin.parameters, price)];
                let mut found = in_steps(found, |(_, price)| price.steps, algorithm, most_steps)?;
                Ok(found.remove(0))
            }
        }
    }

    /// The price of an algorithm with these parameters: by claims if they give all terms, otherwise
    /// counted. `None` if it is not exact and counting is too much work.
    ///
    /// # Errors
    /// An unknown algorithm, or one that does not apply.
    pub fn priced(&self, name: &str, given: &Parameters) -> Result<Option<Choice>, Error> {
        let solution = self.solve(name, given)?;
        // Claims are of equal blocks, and of a group by itself.
        let is_claimed = self.is_whole() && self.sizes().is_none();
        let claimed = Pricing::new(self).exactly(&solution).filter(|_| is_claimed);
        let price = match claimed {
            Some(price) => Some(price),
            None => self.count(&solution.schedule).ok().map(|counts| Price::counted(&counts)),
        };
        let parameters = solution.schedule.origin.parameters;
        Ok(price.map(|price| Choice::new(name, parameters, price).over(&self.bounds())))
    }

    /// Ranks every algorithm and setting that applies, by predicted time.
    ///
    /// Times count as if ranks kept in step at no cost. Programs have no barriers, so choices that take at
    /// most twice the least time are also simulated without them, and ranked by the larger of both times:
    /// by the wormhole model if its messages fit the budget, else by the fluid model, else only in step. The
    /// links have as many virtual channels as the routes require. Choices are ranked in step where a machine
    /// gives a barrier, has no links, and [on request](Self::sync).
    ///
    /// A setting that takes too long to count gets a floor as its price. Settings with floors below
    /// the best exact price are counted, the least floor first, within the budget: see
    /// [`Selection::undecided`].
    ///
    /// For a subset or a demand matrix, the choices for equal blocks on the machine that the ranks
    /// form are counted again: every step with the bytes of its messages, on the links of the whole
    /// machine. The sizes decide whether combining pays: a step is as long as its largest message.
    /// A huge block lengthens every step that carries it, while many small blocks still share a
    /// startup.
    ///
    /// # Errors
    /// An algorithm of the catalogue cannot be counted, for another reason than its size.
    pub fn select(&self) -> Result<Selection, Error> {
        if self.is_whole() && self.sizes().is_none() {
            return Ok(crate::select::select(self));
        }
        crate::recount::select(self)
    }
}
