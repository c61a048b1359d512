use std::borrow::Cow;

use topocoll_algorithms::{Algorithm, Catalogue, NotApplicable, Request, Solution};
use topocoll_analysis::{
    AnalysisError, BestBounds, Counts, Method, Progress, Verification, best_bounds, check_memory,
    check_ranks, check_work, count, counting_work, verify_watched,
};
use topocoll_schedule::{Collective, Demand, Parameters, Problem, Schedule};
use topocoll_topology::{FullyConnected, Machine, Rank, Shape, Subset};

use crate::price::{Price, Pricing, least};
use crate::select::prices;
use crate::{Error, Selection};

/// Bytes of memory that reading may take unless a caller says otherwise.
const MEMORY: u128 = 1 << 30;

/// Bytes of a block unless a caller says otherwise.
const BLOCK_BYTES: u64 = 1024;

/// Route segments that counting a schedule of a subset may look at: some seconds.
const WORK_OF_SUBSET: u128 = 1 << 26;

/// What a reading or a ranking may take, beyond a second.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Budget<'p> {
    /// Bytes of memory that reading one schedule may take.
    pub memory: u128,
    /// Route segments looked at in all for settings whose floors are below the best exact price.
    pub work: u128,
    /// Hears of what is done.
    pub progress: Progress<'p>,
}

/// 1 GiB, and some 10 seconds on two cores.
impl Default for Budget<'_> {
    fn default() -> Self {
        Self { memory: MEMORY, work: 1 << 28, progress: Progress::UNHEARD }
    }
}

impl Budget<'_> {
    /// The same memory, and part of a second.
    #[must_use]
    pub fn quick() -> Self {
        Self { work: 1 << 24, ..Self::default() }
    }
}

/// One exchange: a machine, an operation, sizes of blocks, the ranks that take part, and what may be
/// spent on answers.
///
/// Everything that is asked of an exchange is asked of this value: the best schedule, one by name, and
/// what they cost.
#[derive(Clone, Debug)]
pub struct Exchange<'m> {
    machine: &'m Machine,
    problem: Problem,
    /// The ranks that take part, and the machine that they are by themselves.
    subset: Option<(Subset, Machine)>,
    demand: Option<&'m Demand>,
    catalogue: Cow<'m, Catalogue>,
    budget: Budget<'m>,
}

impl<'m> Exchange<'m> {
    /// A problem of all ranks of a machine.
    ///
    /// # Errors
    /// A problem of other ranks than the machine's.
    pub fn new(machine: &'m Machine, problem: &Problem) -> Result<Self, Error> {
        check_ranks(problem.ranks, machine)?;
        Ok(Self {
            machine,
            problem: *problem,
            subset: None,
            demand: None,
            catalogue: Cow::Owned(Catalogue::standard()),
            budget: Budget::default(),
        })
    }

    /// An all-to-all of blocks of 1 KiB among all ranks of a machine.
    ///
    /// # Errors
    /// Ports or ranks that no problem has.
    pub fn all_to_all(machine: &'m Machine) -> Result<Self, Error> {
        Self::of(machine, Collective::AllToAll)
    }

    /// An all-gather of blocks of 1 KiB among all ranks of a machine.
    ///
    /// # Errors
    /// As [`all_to_all`](Self::all_to_all).
    pub fn all_gather(machine: &'m Machine) -> Result<Self, Error> {
        Self::of(machine, Collective::AllGather)
    }

    fn of(machine: &'m Machine, operation: Collective) -> Result<Self, Error> {
        let problem = Problem::new(operation, machine.ranks(), machine.ports, BLOCK_BYTES)?;
        Self::new(machine, &problem)
    }

    /// The same with blocks of `bytes`.
    ///
    /// # Errors
    /// A block of no bytes, or of more than [`MAX_BLOCK_BYTES`](topocoll_schedule::MAX_BLOCK_BYTES).
    pub fn block_bytes(mut self, bytes: u64) -> Result<Self, Error> {
        let Problem { operation, ranks, ports, .. } = self.problem;
        self.problem = Problem::new(operation, ranks, ports, bytes)?;
        Ok(self)
    }

    /// The same among some ranks of the machine.
    ///
    /// # Errors
    /// A subset of a machine of other ranks.
    pub fn subset(mut self, subset: &Subset) -> Result<Self, Error> {
        check_ranks(subset.machine_ranks(), self.machine)?;
        let own = self.machine.subset(subset);
        let Problem { operation, block_bytes, .. } = self.problem;
        self.problem = Problem::new(operation, own.ranks(), own.ports, block_bytes)?;
        self.subset = Some((subset.clone(), own));
        self.check_demand()
    }

    /// The same with blocks of the sizes of a demand matrix; the block of the problem is their mean.
    ///
    /// # Errors
    /// A demand of other ranks.
    pub fn demand(mut self, demand: &'m Demand) -> Result<Self, Error> {
        self.problem.block_bytes = demand.mean();
        self.demand = Some(demand);
        self.check_demand()
    }

    /// Whether sizes are those of the ranks that take part.
    fn check_demand(self) -> Result<Self, Error> {
        match self.demand.map_or(self.problem.ranks, Demand::ranks) {
            ranks if ranks == self.problem.ranks => Ok(self),
            ranks => Err(AnalysisError::Ranks { ranks, machine: self.problem.ranks }.into()),
        }
    }

    /// The same with algorithms of the caller's choice.
    #[must_use]
    pub fn catalogue(mut self, catalogue: &'m Catalogue) -> Self {
        self.catalogue = Cow::Borrowed(catalogue);
        self
    }

    /// The same with another budget.
    #[must_use]
    pub fn budget(mut self, budget: Budget<'m>) -> Self {
        self.budget = budget;
        self
    }

    /// The same with blocks of another size, which is within the limits.
    pub(crate) fn sized(&self, block_bytes: u64) -> Self {
        let mut other = self.clone();
        other.problem.block_bytes = block_bytes;
        other
    }

    /// What is exchanged.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The machine of the ranks that take part: the whole, or what a subset is by itself.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.subset.as_ref().map_or(self.machine, |(_, own)| own)
    }

    /// The exchange of the ranks that take part on the machine that they are by themselves.
    pub(crate) fn own(&self) -> Exchange<'_> {
        Exchange { machine: self.machine(), subset: None, ..self.clone() }
    }

    /// The algorithm called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<&dyn Algorithm, NotApplicable> {
        self.catalogue.find(name)
    }

    pub(crate) fn algorithms(&self) -> impl Iterator<Item = &dyn Algorithm> {
        self.catalogue.iter()
    }

    pub(crate) fn limits(&self) -> &Budget<'m> {
        &self.budget
    }

    pub(crate) fn sizes(&self) -> Option<&'m Demand> {
        self.demand
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.subset.is_none()
    }

    /// What algorithms are asked.
    pub(crate) fn request(&self) -> Request<'_> {
        Request::new(&self.problem, &*self.machine().topology).of(self.demand)
    }

    /// The solution of an algorithm. Parameters that are to be chosen by cost and are not given are
    /// chosen by the machine's timing values, and by the sizes of blocks where the schedule depends
    /// on them.
    ///
    /// # Errors
    /// No such algorithm, one that does not apply, or too much memory or work.
    pub fn solve(&self, name: &str, given: &Parameters) -> Result<Solution, Error> {
        let algorithm = self.find(name)?;
        let request = self.request();
        self.check_solving(algorithm)?;
        let refused = |reason| refused(name, reason);
        let parameters = algorithm.info().parameters.iter();
        let is_open = parameters.clone().any(|p| p.by_cost && !given.contains_key(p.name));
        if !is_open {
            return request.solve(algorithm, given).map_err(refused);
        }
        let setting = match algorithm.info().by_demand {
            true => self.cheapest_counted(algorithm, given)?,
            false => self.without_demand().cheapest_of(algorithm, given).map_err(refused)?.0,
        };
        request.solve(algorithm, &setting).map_err(refused)
    }

    /// The schedule of an algorithm, with parameters as [`solve`](Self::solve) chooses them.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub fn schedule(&self, name: &str, given: &Parameters) -> Result<Schedule, Error> {
        Ok(self.solve(name, given)?.schedule)
    }

    /// All that applies: every candidate of every algorithm, solved.
    pub fn solutions(&self) -> impl Iterator<Item = Solution> {
        self.algorithms().flat_map(|algorithm| self.request().solutions(algorithm))
    }

    /// The best setting of an algorithm by predicted time, and its price.
    ///
    /// # Errors
    /// Why the algorithm does not apply.
    pub fn cheapest(&self, name: &str) -> Result<(Parameters, Price), NotApplicable> {
        self.cheapest_of(self.find(name)?, &Parameters::new())
    }

    fn cheapest_of(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<(Parameters, Price), NotApplicable> {
        let candidates = prices(algorithm, &Pricing::new(self), given)?.priced;
        let priced =
            candidates.into_iter().map(|candidate| (candidate.parameters, candidate.price));
        Ok(least(priced, |(_, price)| price).expect("bug: prices of no setting"))
    }

    /// The setting of an algorithm that is fastest for the very sizes of blocks.
    fn cheapest_counted(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<Parameters, Error> {
        let (name, request) = (&*algorithm.info().name, self.request());
        let mut settings = request.candidates(algorithm).map_err(|r| refused(name, r))?;
        settings.retain(|setting| agrees(setting, given));
        let prices = settings.into_iter().map(|setting| {
            let solution = request.solve(algorithm, &setting).map_err(|r| refused(name, r))?;
            Ok((setting, Price::counted(&self.count(&solution.schedule)?)))
        });
        let prices = prices.collect::<Result<Vec<_>, Error>>()?;
        Ok(least(prices, |(_, price)| price).map_or_else(|| given.clone(), |(setting, _)| setting))
    }

    pub(crate) fn without_demand(&self) -> Self {
        Self { demand: None, ..self.clone() }
    }

    /// Whether solving fits in memory.
    pub(crate) fn check_solving(&self, algorithm: &dyn Algorithm) -> Result<(), Error> {
        let needed = self.demand.map_or(0, |_| algorithm.memory(&self.request()));
        Ok(check_memory("planning for the sizes of all blocks", needed, self.budget.memory)?)
    }

    /// Counts a schedule: steps, volume, link loads and time by the steps model. That of a subset is
    /// counted on the links of the whole machine: what leaves their part of it takes the machine's own
    /// routes, and shares links with what passes there.
    ///
    /// # Errors
    /// Too much work or memory.
    pub fn count(&self, schedule: &Schedule) -> Result<Counts, Error> {
        let (machine, memory) = (self.machine, self.budget.memory);
        let Some((subset, _)) = &self.subset else {
            return Ok(count(schedule, machine, self.demand, memory)?);
        };
        // For blocks and their sizes.
        let needed = u128::from(machine.ranks()) * 2 * size_of::<Option<Rank>>() as u128;
        check_memory("the positions of all ranks in the subset", needed, memory)?;
        let schedule = schedule.on_subset(subset);
        let demand = self.demand.map(|demand| demand.on_subset(subset));
        if demand.is_none() {
            let what = "counting on the links of the whole machine";
            check_work(what, counting_work(&schedule, machine, None), WORK_OF_SUBSET)?;
        }
        Ok(count(&schedule, machine, demand.as_ref(), memory)?)
    }

    /// Proves or refutes that a schedule delivers every block, by the method given or the cheaper one.
    ///
    /// # Errors
    /// A schedule that names no blocks or has other ranks, or too much work or memory.
    pub fn verify(
        &self,
        schedule: &Schedule,
        method: Option<Method>,
    ) -> Result<Verification, Error> {
        let Budget { memory, ref progress, .. } = self.budget;
        Ok(verify_watched(schedule, self.machine(), method, memory, progress)?)
    }

    /// What no schedule can beat. For a subset these are the bounds of ports and startups, as messages
    /// may leave the part of a grid that its ranks are.
    #[must_use]
    pub fn bounds(&self) -> BestBounds {
        match (&self.subset, self.demand) {
            (Some((_, own)), None) => best_bounds(&self.problem, &without_links(own), None),
            _ => best_bounds(&self.problem, self.machine(), self.demand),
        }
    }

    /// Ranks every algorithm and setting that applies, by predicted time.
    ///
    /// A setting that takes too long to count has a floor for a price. Those whose floors are below the
    /// best exact price are counted, the least floor first, as far as the budget goes: see
    /// [`Selection::undecided`].
    ///
    /// For a subset, and where blocks have sizes of their own, the choices for equal blocks on the
    /// machine that the ranks are by themselves are counted once more: every step with the bytes that
    /// its messages have, on the links of the whole machine. Where combining stops paying depends on
    /// the sizes: a step is as long as its largest message, and a huge block makes every step long
    /// that carries it, while many small blocks still share a startup.
    ///
    /// # Errors
    /// An algorithm of the catalogue that cannot be counted for another reason than its size.
    pub fn select(&self) -> Result<Selection, Error> {
        if self.is_whole() && self.demand.is_none() {
            return Ok(crate::select::select(self));
        }
        crate::recount::select(self)
    }
}

/// Whether a setting has all values given.
pub(crate) fn agrees(setting: &Parameters, given: &Parameters) -> bool {
    given.iter().all(|(name, value)| setting.get(name) == Some(value))
}

/// A machine whose messages may leave the part of a grid that it is.
fn without_links(own: &Machine) -> Machine {
    let mut alone = own.clone();
    if let Shape::Grid(_) = own.topology.shape() {
        let full = FullyConnected::new(own.ranks()).expect("bug: ranks that there are");
        alone.topology = std::sync::Arc::new(full);
    }
    alone
}

/// The error of an algorithm or formula called `name` that does not apply.
pub(crate) fn refused(name: &str, reason: NotApplicable) -> Error {
    match reason {
        // These name the algorithm themselves.
        NotApplicable::Parameter { .. } | NotApplicable::Setting { .. } => Error::Algorithm(reason),
        reason => Error::NotApplicable { algorithm: name.to_owned(), reason },
    }
}
