use std::borrow::Cow;
use std::sync::Arc;

use topocoll_algorithms::{Algorithm, Catalogue, Info, NotApplicable, Planner, Request};
use topocoll_analysis::contention::Sync;
use topocoll_analysis::{
    AnalysisError, BestBounds, Counts, Method, Progress, Verification, best_bounds,
    best_bounds_of_subset, check_counting_work, check_memory, check_ranks, check_work, count,
    counting_work, verify_watched,
};
use topocoll_schedule::{Collective, Demand, Parameters, Problem, Schedule};
use topocoll_topology::{Machine, Ports, Rank, Shape, Subset};

use crate::Error;

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
