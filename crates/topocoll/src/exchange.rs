use std::sync::Arc;

use topocoll_algorithms::{Algorithm, Catalogue, Info, NotApplicable, Planner, Request};
use topocoll_analysis::contention::Sync;
use topocoll_analysis::{
    AnalysisError, BestBounds, Counts, Method, Progress, Verification, best_bounds,
    best_bounds_of_groups, check_counting_work, check_memory, check_ranks, check_work, count,
    counting_work, verify_watched,
};
use topocoll_schedule::{Collective, Demand, Parameters, Problem, Schedule};
use topocoll_topology::{Groups, Machine, Ports, Shape, Subset};

use crate::Error;
use crate::grouped::Grouped;

/// Default limit of the bytes of memory for reading a schedule.
const MEMORY: u128 = 1 << 30;

/// Default bytes of a block.
const BLOCK_BYTES: u64 = 1024;

/// The most route segments for counting a schedule of groups: some seconds.
const WORK_OF_GROUPS: u128 = 1 << 26;

/// Limits of the memory and work of a reading or ranking.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Budget<'p> {
    /// The most bytes of memory for reading one schedule.
    pub memory: u128,
    /// The most route segments, in all, for settings whose floors are below the best exact price.
    pub work: u128,
    /// The most seconds of one core, as estimated, for one search of a ranking, and as many times more as the schedule
    /// that it may find is faster than the best. It is run if that is more than 2 %.
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

/// One exchange: a machine, an operation, sizes of blocks, groups or a subset of the ranks, and a budget.
///
/// Its methods find the best schedule, or one by name, and their costs.
#[derive(Clone, Debug)]
pub struct Exchange<'m> {
    machine: &'m Machine,
    problem: Problem,
    /// The ranks that take part, if not all with all.
    pub(crate) groups: Option<Arc<Grouped>>,
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
            groups: None,
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
    pub fn subset(self, subset: &Subset) -> Result<Self, Error> {
        self.groups(&Groups::one(subset))
    }

    /// The same among the ranks of each of some groups, all groups at the same time; unchanged for one group
    /// of all ranks in order. The problem and its schedules are those of the largest group. Others that form
    /// another machine have schedules of the same algorithm.
    ///
    /// # Errors
    /// Groups of a machine with other ranks, or of different sizes where there is a demand matrix.
    pub fn groups(mut self, groups: &Groups) -> Result<Self, Error> {
        check_ranks(groups.machine_ranks(), self.machine)?;
        if groups.only().is_some_and(|only| only.is_whole()) {
            return Ok(self);
        }
        let grouped = Grouped::new(groups, self.machine);
        self.problem = self.problem_on(&grouped.machines[0])?;
        self.groups = Some(Arc::new(grouped));
        self.check_demand()
    }

    /// The problem of all ranks of another machine.
    fn problem_on(&self, machine: &Machine) -> Result<Problem, Error> {
        let Problem { operation, block_bytes, .. } = self.problem;
        Ok(Problem::new(operation, machine.ranks(), machine.ports, block_bytes)?)
    }

    /// The same with blocks of the sizes of a demand matrix; the block of the problem is their
    /// mean.
    ///
    /// # Errors
    /// The demand matrix has other ranks, or there are groups of different sizes.
    pub fn demand(mut self, demand: &'m Demand) -> Result<Self, Error> {
        self.problem.block_bytes = demand.mean();
        self.demand = Some(demand);
        self.check_demand()
    }

    /// Checks that the demand matrix has the ranks that take part, or of every group.
    fn check_demand(self) -> Result<Self, Error> {
        let (all, demand) = (self.problem.ranks, self.demand.map(Demand::ranks));
        if let Some(ranks) = demand.filter(|&ranks| ranks != all) {
            return Err(AnalysisError::Ranks { ranks, machine: all }.into());
        }
        let sizes = self.grouped().into_iter().flat_map(Groups::sizes);
        let other = (0..).zip(sizes).find(|&(_, ranks)| demand.is_some() && ranks != all);
        match other {
            Some((group, ranks)) => Err(Error::DemandOfGroups { group, ranks, largest: all }),
            None => Ok(self),
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

    /// The machine of the ranks that take part: the whole machine, or the one that a subset or the largest
    /// group forms.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.groups.as_ref().map_or(self.machine, |of| &of.machines[0])
    }

    /// The whole machine.
    #[must_use]
    pub fn whole(&self) -> &Machine {
        self.machine
    }

    /// The groups that exchange, if not all ranks do with all.
    #[must_use]
    pub fn grouped(&self) -> Option<&Groups> {
        self.groups.as_ref().map(|of| &of.groups)
    }

    /// The exchange of the ranks that take part, on the machine that they form.
    pub(crate) fn own(&self) -> Exchange<'_> {
        Exchange { machine: self.machine(), groups: None, ..self.clone() }
    }

    /// The exchange of the ranks of a group that forms this machine.
    pub(crate) fn of_group<'a>(&'a self, machine: &'a Machine) -> Result<Exchange<'a>, Error> {
        let problem = self.problem_on(machine)?;
        Ok(Exchange { machine, problem, groups: None, ..self.clone() })
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
        self.groups.is_none()
    }

    /// The request to algorithms.
    pub(crate) fn request(&self) -> Request<'_> {
        let request = Request::new(&self.problem, &*self.machine().topology);
        request.of(self.demand).startup(self.machine().startup_bytes()).with(&self.planner)
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

    /// Counts a schedule: steps, volume, link loads and time by the steps model. A group's schedule is counted
    /// on the links of the whole machine, with those of all other groups: messages that leave a group's part
    /// take the machine's own routes, and contend for links there.
    ///
    /// # Errors
    /// Too much work or memory, or as [`placed`](Self::placed).
    pub fn count(&self, schedule: &Schedule) -> Result<Counts, Error> {
        let (machine, memory) = (self.machine, self.budget.memory);
        if self.is_whole() {
            if self.demand.is_none() {
                check_counting_work(schedule, machine)?;
            }
            return Ok(count(schedule, machine, self.demand, memory)?);
        }
        let (schedule, demand) = (self.placed(schedule)?, self.placed_demand());
        if demand.is_none() {
            let what = "counting on the links of the whole machine";
            check_work(what, counting_work(&schedule, machine, None), WORK_OF_GROUPS)?;
        }
        Ok(count(&schedule, machine, demand.as_deref(), memory)?)
    }

    /// The work of [`count`](Self::count): of a demand matrix slots of a group, otherwise route segments of all.
    pub(crate) fn counting_work(&self, schedule: &Schedule) -> Result<u128, Error> {
        Ok(match self.demand {
            Some(_) => counting_work(schedule, self.machine(), self.demand),
            None => counting_work(&*self.placed(schedule)?, self.machine, None),
        })
    }

    /// Proves or refutes that a schedule delivers every block, by the method given or the cheaper
    /// one; of groups that form different machines, those of each.
    ///
    /// # Errors
    /// The schedule names no blocks or has other ranks, or too much work or memory.
    pub fn verify(
        &self,
        schedule: &Schedule,
        method: Option<Method>,
    ) -> Result<Verification, Error> {
        let Budget { memory, ref progress, .. } = self.budget;
        let mut found = verify_watched(schedule, self.machine(), method, memory, progress)?;
        for machine in self.groups.iter().flat_map(|of| of.others()) {
            let other = self.on_group(machine, schedule)?;
            let other = verify_watched(&other, machine, method, memory, progress)?;
            found.violation = found.violation.or(other.violation);
            found.exceeded += other.exceeded;
        }
        Ok(found)
    }

    /// The lower bounds of all schedules. Those of groups are of startups, ports and injection, and of
    /// cuts of the whole machine's network, because messages may leave a group's part.
    #[must_use]
    pub fn bounds(&self) -> BestBounds {
        match (&self.groups, self.demand) {
            (Some(of), sizes) => {
                best_bounds_of_groups(&self.problem, self.machine, &of.groups, sizes)
            }
            (None, sizes) => best_bounds(&self.problem, self.machine(), sizes),
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
