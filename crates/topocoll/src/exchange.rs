use std::borrow::Cow;
use std::sync::Arc;

use topocoll_algorithms::{Algorithm, Catalogue, Info, NotApplicable, Planner, Request, Solution};
use topocoll_analysis::contention::Sync;
use topocoll_analysis::{
    AnalysisError, BestBounds, Counts, Method, Progress, Verification, best_bounds,
    best_bounds_of_subset, check_counting_work, check_memory, check_ranks, check_work, count,
    counting_work, verify_watched,
};
use topocoll_schedule::{Collective, Demand, Parameters, Problem, Schedule};
use topocoll_topology::{Machine, Ports, Rank, Shape, Subset};

use crate::pool::Pool;
use crate::price::{Price, Pricing, least};
use crate::{Choice, Error, Selection};

/// Default limit of the bytes of memory for reading a schedule.
const MEMORY: u128 = 1 << 30;

/// Default bytes of a block.
const BLOCK_BYTES: u64 = 1024;

/// The most route segments for counting a schedule of a subset: some seconds.
const WORK_OF_SUBSET: u128 = 1 << 26;

/// Limits of the memory and work of a reading or ranking.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Budget<'p> {
    /// The most bytes of memory for reading one schedule.
    pub memory: u128,
    /// The most route segments, in all, for settings whose floors are below the best exact price.
    pub work: u128,
    /// The most seconds of one core, as estimated, for one search of a ranking. It is run if it may find a
    /// schedule more than 2 % faster than the best.
    pub search: f64,
    /// The most messages of all simulations that decide a ranking [without barriers](Exchange::sync).
    pub messages: u64,
    /// The most seconds of one core, as estimated, for all simulations of a ranking or sweep together.
    /// `None` is 10 seconds, and no limit on machines of up to 256 ranks.
    pub simulation: Option<f64>,
    /// Receives progress.
    pub progress: Progress<'p>,
}

/// 1 GiB, and some 10 seconds on two cores.
impl Default for Budget<'_> {
    fn default() -> Self {
        let (work, search, messages) = (1 << 28, 0.4, 1 << 20);
        let (simulation, progress) = (None, Progress::UNHEARD);
        Self { memory: MEMORY, work, search, messages, simulation, progress }
    }
}

impl Budget<'_> {
    /// The same memory, and part of a second.
    #[must_use]
    pub fn quick() -> Self {
        Self { work: 1 << 24, messages: 1 << 16, ..Self::default() }
    }
}

/// One exchange: a machine, an operation, sizes of blocks, a subset of the ranks and a budget.
///
/// Its methods find the best schedule, or one by name, and their costs.
#[derive(Clone, Debug)]
pub struct Exchange<'m> {
    machine: &'m Machine,
    problem: Problem,
    /// The ranks that take part, and the machine that they form.
    subset: Option<(Subset, Machine)>,
    demand: Option<&'m Demand>,
    planner: Arc<Planner>,
    sync: Sync,
    budget: Budget<'m>,
}

impl<'m> Exchange<'m> {
    /// A problem of all ranks of a machine.
    ///
    /// # Errors
    /// The problem has other ranks than the machine.
    pub fn new(machine: &'m Machine, problem: &Problem) -> Result<Self, Error> {
        check_ranks(problem.ranks, machine)?;
        Ok(Self {
            machine,
            problem: *problem,
            subset: None,
            demand: None,
            planner: Arc::clone(Planner::standard()),
            sync: Sync::Free,
            budget: Budget::default(),
        })
    }

    /// An all-to-all of blocks of 1 KiB among all ranks of a machine.
    ///
    /// # Errors
    /// Ports or ranks outside the limits of a [`Problem`].
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
    /// A block of no bytes, or of more than
    /// [`MAX_BLOCK_BYTES`](topocoll_schedule::MAX_BLOCK_BYTES).
    pub fn block_bytes(mut self, bytes: u64) -> Result<Self, Error> {
        let Problem { operation, ranks, .. } = self.problem;
        self.problem = Problem::new(operation, ranks, self.problem.both_ports(), bytes)?;
        Ok(self)
    }

    /// The same among some ranks of the machine; unchanged for all of them in order.
    ///
    /// # Errors
    /// The subset is of a machine with other ranks.
    pub fn subset(mut self, subset: &Subset) -> Result<Self, Error> {
        check_ranks(subset.machine_ranks(), self.machine)?;
        if subset.is_whole() {
            return Ok(self);
        }
        let own = self.machine.subset(subset);
        let Problem { operation, block_bytes, .. } = self.problem;
        self.problem = Problem::new(operation, own.ranks(), own.ports, block_bytes)?;
        self.subset = Some((subset.clone(), own));
        self.check_demand()
    }

    /// The same with blocks of the sizes of a demand matrix; the block of the problem is their
    /// mean.
    ///
    /// # Errors
    /// The demand matrix has other ranks.
    pub fn demand(mut self, demand: &'m Demand) -> Result<Self, Error> {
        self.problem.block_bytes = demand.mean();
        self.demand = Some(demand);
        self.check_demand()
    }

    /// Checks that the demand matrix has the ranks that take part.
    fn check_demand(self) -> Result<Self, Error> {
        match self.demand.map_or(self.problem.ranks, Demand::ranks) {
            ranks if ranks == self.problem.ranks => Ok(self),
            ranks => Err(AnalysisError::Ranks { ranks, machine: self.problem.ranks }.into()),
        }
    }

    /// The same with algorithms of the caller's choice, and a new planner for them.
    #[must_use]
    pub fn catalogue(mut self, catalogue: &Catalogue) -> Self {
        self.planner = Arc::new(Planner::new(catalogue.clone()));
        self
    }

    /// The same, with or without barriers between the steps of the schedules that are ranked. Without them,
    /// the default, [`select`](Self::select) looks at what runs.
    #[must_use]
    pub fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// The same with another budget.
    #[must_use]
    pub fn budget(mut self, budget: Budget<'m>) -> Self {
        self.budget = budget;
        self
    }

    /// The same with blocks of another size within the limits.
    pub(crate) fn sized(&self, block_bytes: u64) -> Self {
        let mut other = self.clone();
        other.problem.block_bytes = block_bytes;
        other
    }

    /// The problem.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The machine of the ranks that take part: the whole machine, or the one that a subset forms.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.subset.as_ref().map_or(self.machine, |(_, own)| own)
    }

    /// The exchange of the ranks that take part, on the machine that they form.
    pub(crate) fn own(&self) -> Exchange<'_> {
        Exchange { machine: self.machine(), subset: None, ..self.clone() }
    }

    /// The algorithm called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<&dyn Algorithm, NotApplicable> {
        self.planner.catalogue().find(name)
    }

    pub(crate) fn algorithms(&self) -> impl Iterator<Item = &dyn Algorithm> {
        self.planner.catalogue().iter()
    }

    /// Whether an algorithm of this name is the caller's.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.planner.catalogue().is_own(name)
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

    /// The request to algorithms.
    pub(crate) fn request(&self) -> Request<'_> {
        Request::new(&self.problem, &*self.machine().topology).of(self.demand).with(&self.planner)
    }

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
        if most_steps.is_none() && !is_open {
            return request.solve(algorithm, given).map_err(refused);
        }
        let setting = match info.by_demand {
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
        let quick = Budget { search: self.budget.search, ..Budget::quick() };
        let reference = self.at_reference().budget(quick);
        let mut pool =
            Pool::new(&reference, &[(algorithm, given.clone())], &[self.problem.block_bytes])
                .map_err(|(_, reason)| reason)?;
        let found = pool.at(self.problem.block_bytes);
        let priced = found.into_iter().map(|found| (found.parameters, found.price));
        match least(priced, |(_, price)| price) {
            Some(cheapest) => Ok(cheapest),
            // Why none applies at this size.
            None => {
                let (most_steps, own) = algorithm.info().most_steps(given)?;
                let solution = self.request().solve(algorithm, &own)?;
                let price = Pricing::new(self).claimed(&solution.claims);
                let found = vec![(solution.schedule.origin.parameters, price)];
                let mut found = in_steps(found, |(_, price)| price.steps, algorithm, most_steps)?;
                Ok(found.remove(0))
            }
        }
    }

    /// The setting of an algorithm that is fastest for the demand matrix.
    fn cheapest_counted(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<Parameters, Error> {
        let (name, request) = (&*algorithm.info().name, self.request());
        let (most_steps, own) = algorithm.info().most_steps(given).map_err(|r| refused(name, r))?;
        let mut settings = request.candidates(algorithm).map_err(|r| refused(name, r))?;
        settings.retain(|setting| agrees(algorithm.info(), setting, &own));
        let prices = settings.into_iter().map(|setting| {
            let solution = request.solve(algorithm, &setting).map_err(|r| refused(name, r))?;
            Ok((setting, Price::counted(&self.count(&solution.schedule)?)))
        });
        let prices = prices.collect::<Result<Vec<_>, Error>>()?;
        let prices = in_steps(prices, |(_, price)| price.steps, algorithm, most_steps);
        let prices = prices.map_err(|reason| refused(name, reason))?;
        Ok(least(prices, |(_, price)| price).map_or(own, |(setting, _)| setting))
    }

    pub(crate) fn without_demand(&self) -> Self {
        Self { demand: None, ..self.clone() }
    }

    /// Whether solving fits in memory.
    pub(crate) fn check_solving(&self, algorithm: &dyn Algorithm) -> Result<(), Error> {
        let needed = match self.demand {
            None if algorithm.info().by_demand => 0,
            _ => algorithm.memory(&self.request()),
        };
        let what = match self.demand {
            None => "planning the schedule",
            Some(_) => "planning for the sizes of all blocks",
        };
        Ok(check_memory(what, needed, self.budget.memory)?)
    }

    /// A schedule as the links of the whole machine see it: a subset's on the subset's ranks.
    ///
    /// # Panics
    /// A schedule of another number of ranks than take part.
    #[must_use]
    pub fn placed<'s>(&self, schedule: &'s Schedule) -> Cow<'s, Schedule> {
        match &self.subset {
            Some((subset, _)) => Cow::Owned(schedule.on_subset(subset)),
            None => Cow::Borrowed(schedule),
        }
    }

    /// Counts a schedule: steps, volume, link loads and time by the steps model. A subset's
    /// schedule is counted on the links of the whole machine: messages that leave the subset's part
    /// take the machine's own routes, and contend for links there.
    ///
    /// # Errors
    /// Too much work or memory.
    pub fn count(&self, schedule: &Schedule) -> Result<Counts, Error> {
        let (machine, memory) = (self.machine, self.budget.memory);
        let Some((subset, _)) = &self.subset else {
            if self.demand.is_none() {
                check_counting_work(schedule, machine)?;
            }
            return Ok(count(schedule, machine, self.demand, memory)?);
        };
        // Twice: for blocks and for their sizes.
        let needed = u128::from(machine.ranks()) * 2 * size_of::<Option<Rank>>() as u128;
        check_memory("the positions of all ranks in the subset", needed, memory)?;
        let schedule = self.placed(schedule);
        let demand = self.demand.map(|demand| demand.on_subset(subset));
        if demand.is_none() {
            let what = "counting on the links of the whole machine";
            check_work(what, counting_work(&schedule, machine, None), WORK_OF_SUBSET)?;
        }
        Ok(count(&schedule, machine, demand.as_ref(), memory)?)
    }

    /// The price of an algorithm with these parameters: by claims if they give all terms, otherwise
    /// counted. `None` if it is not exact and counting is too much work.
    ///
    /// # Errors
    /// An unknown algorithm, or one that does not apply.
    pub fn priced(&self, name: &str, given: &Parameters) -> Result<Option<Choice>, Error> {
        let solution = self.solve(name, given)?;
        let price = match Pricing::new(self).exactly(&solution.claims) {
            Some(price) => Some(price),
            None => self.count(&solution.schedule).ok().map(|counts| Price::counted(&counts)),
        };
        let parameters = solution.schedule.origin.parameters;
        Ok(price.map(|price| Choice::new(name, parameters, price).over(&self.bounds())))
    }

    /// Proves or refutes that a schedule delivers every block, by the method given or the cheaper
    /// one.
    ///
    /// # Errors
    /// The schedule names no blocks or has other ranks, or too much work or memory.
    pub fn verify(
        &self,
        schedule: &Schedule,
        method: Option<Method>,
    ) -> Result<Verification, Error> {
        let Budget { memory, ref progress, .. } = self.budget;
        Ok(verify_watched(schedule, self.machine(), method, memory, progress)?)
    }

    /// The lower bounds of all schedules. Those of a subset are of startups, ports and injection, and of
    /// cuts of the whole machine's network, because messages may leave the subset's part.
    #[must_use]
    pub fn bounds(&self) -> BestBounds {
        match (&self.subset, self.demand) {
            (Some((subset, _)), None) => best_bounds_of_subset(&self.problem, self.machine, subset),
            _ => best_bounds(&self.problem, self.machine(), self.demand),
        }
    }

    /// Whether nodes hold several ranks, so that they have ports of their own.
    pub(crate) fn has_nodes(&self) -> bool {
        matches!(self.machine().topology.shape(), Shape::Clustered(_))
    }

    /// The same with fewer ports.
    pub(crate) fn with_ports(&self, ports: Ports) -> Self {
        let mut other = self.clone();
        (other.problem.ports, other.problem.node_ports) = (ports.rank, ports.node);
        other
    }

    /// The lower bounds of a problem of the machine's ranks.
    pub(crate) fn bounds_of(&self, problem: &Problem) -> BestBounds {
        best_bounds(problem, self.machine(), None)
    }

    /// Whether choices are ranked by simulations without barriers: where messages take links, a barrier
    /// costs nothing, and all ranks exchange blocks of one size.
    pub(crate) fn runs_freely(&self) -> bool {
        let (machine, ranks) = (self.machine(), self.problem.ranks);
        self.sync == Sync::Free
            && machine.topology.links() > 0
            && machine.timing.barrier.seconds(ranks) == 0.0
            && self.is_whole()
            && self.demand.is_none()
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
        if self.is_whole() && self.demand.is_none() {
            return Ok(crate::select::select(self));
        }
        crate::recount::select(self)
    }
}

/// Whether a setting has all given values.
pub(crate) fn agrees(info: &Info, setting: &Parameters, given: &Parameters) -> bool {
    given.iter().all(|(name, value)| match setting.get(name) {
        Some(own) => own == value,
        None => info.is_default(name, value),
    })
}

/// Those of some settings of an algorithm that take at most a number of steps.
///
/// # Errors
/// All take more.
pub(crate) fn in_steps<T>(
    mut found: Vec<T>,
    steps: impl Fn(&T) -> u64,
    algorithm: &dyn Algorithm,
    most: Option<u64>,
) -> Result<Vec<T>, NotApplicable> {
    let (Some(most), Some(fewest)) = (most, found.iter().map(&steps).min()) else {
        return Ok(found);
    };
    if fewest > most {
        let rule = format!("at least {fewest}, the fewest steps of its settings");
        return Err(algorithm.info().wrong_steps(&most.into(), rule));
    }
    found.retain(|one| steps(one) <= most);
    Ok(found)
}

/// The error of an algorithm or formula called `name` that does not apply.
pub(crate) fn refused(name: &str, reason: NotApplicable) -> Error {
    match reason {
        // These name the algorithm themselves.
        NotApplicable::Removed { .. }
        | NotApplicable::Parameter { .. }
        | NotApplicable::Setting { .. }
        | NotApplicable::Alone { .. } => Error::Algorithm(reason),
        reason => Error::NotApplicable { algorithm: name.to_owned(), reason },
    }
}
