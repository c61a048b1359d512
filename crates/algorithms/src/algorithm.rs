use topocoll_schedule::{Demand, Origin, Parameters, Problem, Rule, Schedule, Setting};
use topocoll_topology::{Clusters, Grid, Shape, Topology, View};

use crate::parameters::{FEWER_PORTS, VIEW};
use crate::{Claims, Info, NotApplicable, Parameter, Planner, Values, of_every_algorithm};

/// A generator of schedules. Those of this crate are in the standard
/// [`Catalogue`](crate::Catalogue), to which callers add their own.
pub trait Algorithm: Send + Sync {
    /// Its name, source, operation and parameters.
    fn info(&self) -> &Info;

    /// The settings worth pricing for this request, each complete, the default one first. Settings
    /// that [`solve`](Self::solve) refuses are skipped.
    ///
    /// By default, all combinations of the words of its parameters.
    ///
    /// # Errors
    /// No setting applies, if that is known without solving one.
    fn candidates(&self, _request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        Ok(self.info().combinations())
    }

    /// The schedule and its claims, for values that fit [`info`](Self::info). Callers use
    /// [`Request::solve`], which checks the values.
    ///
    /// # Errors
    /// The algorithm, or one of the values, does not apply.
    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable>;

    /// The search that finds the schedule of a setting, or with an empty one the search that precedes a list
    /// of [`candidates`](Self::candidates). `None`, the default, if schedules follow from a rule.
    fn search(&self, _request: &Request<'_>, _setting: &Parameters) -> Option<Search> {
        None
    }

    /// Claims that the search for a setting is not expected to beat, after a small part of its work.
    fn expected(&self, _request: &Request<'_>, _setting: &Parameters) -> Option<Claims> {
        None
    }

    /// Bytes that [`solve`](Self::solve) needs in addition to its solution, if worth checking.
    fn memory(&self, _request: &Request<'_>) -> u128 {
        0
    }
}

/// The cost of a search for schedules.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Search {
    /// Estimated seconds of one core, by a formula: equal on all computers.
    pub seconds: f64,
    /// Claims that no schedule can beat; with an empty setting, no candidate.
    pub least: Claims,
}

/// A problem on a topology, with the sizes of blocks if they differ.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'r> {
    /// The problem; a demand matrix overrides its block size.
    pub problem: Problem,
    /// Ranks and links, as algorithms see them.
    pub topology: &'r dyn Topology,
    /// The network of the messages, which is another one if the topology is placed on it.
    network: &'r dyn Topology,
    /// The sizes of all blocks.
    pub demand: Option<&'r Demand>,
    /// Bytes that take as long as a startup, for schedules that depend on the sizes of blocks.
    pub startup_bytes: u64,
    /// What gives inner exchanges, and keeps the results of searches.
    pub planner: &'r Planner,
}

impl<'r> Request<'r> {
    /// A request for blocks of equal sizes, by the [standard planner](Planner::standard).
    #[must_use]
    pub fn new(problem: &Problem, topology: &'r dyn Topology) -> Self {
        let (network, topology) = (topology, topology.logical().map_or(topology, |seen| &**seen));
        Self {
            problem: *problem,
            topology,
            network,
            demand: None,
            startup_bytes: 0,
            planner: Planner::standard(),
        }
    }

    /// The same by another planner.
    #[must_use]
    pub fn with(self, planner: &'r Planner) -> Self {
        Self { planner, ..self }
    }

    /// The same, for blocks of these sizes.
    #[must_use]
    pub fn of(self, demand: Option<&'r Demand>) -> Self {
        Self { demand, ..self }
    }

    /// The same, where a startup takes as long as some bytes.
    #[must_use]
    pub fn startup(self, startup_bytes: u64) -> Self {
        Self { startup_bytes, ..self }
    }

    /// Solves the request with the given values; other parameters have their defaults. With
    /// [`FEWER_PORTS`] it is the schedule for that many, with [`VIEW`] the one for that view.
    ///
    /// # Errors
    /// The algorithm, or one of the values, does not apply.
    pub fn solve(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<Solution, NotApplicable> {
        let info = self.asked(algorithm)?;
        let (view, of_view) = self.view(info, given)?;
        let (fewer, own) = self.seen(view.as_ref()).fewer_ports(info, &of_view)?;
        let mut solution = algorithm.solve(&fewer, &Values::new(info, &own)?)?;
        if own.len() == given.len() && view.is_none() {
            return Ok(solution);
        }
        solution.claims = self.on_network(solution.claims);
        solution.schedule.problem = self.problem;
        if let Some(view) = view {
            solution.schedule = solution.schedule.on_view(view);
        }
        solution.schedule.origin.parameters.extend(of_every_algorithm(given));
        Ok(solution)
    }

    /// The view that parameters give, that of a topology placed on its network, or that of the nodes of placed ranks
    /// for an algorithm [by node](Info::by_node), and the other parameters.
    ///
    /// # Errors
    /// No such view of the topology, or an algorithm for blocks of several sizes.
    pub fn view(
        &self,
        info: &Info,
        given: &Parameters,
    ) -> Result<(Option<View>, Parameters), NotApplicable> {
        let mut own = given.clone();
        let words = VIEW.map(|name| own.remove(name).map(|value| value.to_string()));
        let refused = |(place, rule): (usize, String)| {
            let (algorithm, name) = (info.name.clone().into_owned(), VIEW[place]);
            let value = words[place].clone().unwrap_or_default();
            NotApplicable::Setting { algorithm, name, value, rule }
        };
        match words.iter().position(Option::is_some) {
            Some(place) if info.by_demand => {
                Err(refused((place, "for blocks of several sizes".to_owned())))
            }
            _ => {
                let words = words.each_ref().map(Option::as_deref);
                let view = View::new(self.network, words).map_err(refused)?;
                let placed = || self.network.logical().map(View::placed);
                Ok((view.or_else(placed).or_else(|| self.by_nodes(info)), own))
            }
        }
    }

    /// The view of the nodes of placed ranks, for an algorithm by node.
    fn by_nodes(&self, info: &Info) -> Option<View> {
        View::by_nodes(self.topology).filter(|_| info.by_node)
    }

    /// Claims on the network of the messages.
    fn on_network(&self, claims: Claims) -> Claims {
        match self.network.logical() {
            Some(_) => claims.without_links(),
            None => claims,
        }
    }

    /// The request on the topology that a view shows, if there is one.
    #[must_use]
    pub fn seen<'s>(&'s self, view: Option<&'s View>) -> Request<'s> {
        let topology = view.map_or(self.topology, View::shown);
        Request { topology, ..*self }
    }

    /// The request with the fewer ports that parameters give, and the other parameters.
    ///
    /// # Errors
    /// No ports, or more than there are.
    pub fn fewer_ports(
        &self,
        info: &Info,
        given: &Parameters,
    ) -> Result<(Self, Parameters), NotApplicable> {
        let (mut fewer, mut own) = (*self, given.clone());
        let several = matches!(self.topology.shape(), Shape::Clustered(_));
        let Problem { ports, node_ports, .. } = &mut fewer.problem;
        for (name, ports) in FEWER_PORTS.into_iter().zip([ports, node_ports]) {
            let Some(value) = own.remove(name) else { continue };
            let most = if name == FEWER_PORTS[1] && !several { 0 } else { u64::from(*ports) };
            match value {
                Setting::Integer(value) if (1..=most).contains(&value) => *ports = value as u32,
                value => {
                    let algorithm = info.name.clone().into_owned();
                    let (value, rule) = (
                        value.to_string(),
                        match most {
                            0 => "for nodes of one rank".to_owned(),
                            most => format!("a whole number from 1 to {most}"),
                        },
                    );
                    return Err(NotApplicable::Setting { algorithm, name, value, rule });
                }
            }
        }
        Ok((fewer, own))
    }

    /// The algorithm's settings worth pricing; [`solve`](Self::solve) may refuse some.
    ///
    /// # Errors
    /// No setting applies, if that is known without solving one.
    pub fn candidates(&self, algorithm: &dyn Algorithm) -> Result<Vec<Parameters>, NotApplicable> {
        let view = self.by_nodes(self.asked(algorithm)?);
        algorithm.candidates(&self.seen(view.as_ref()))
    }

    /// The search for the schedule of a setting, or with an empty one the search before candidates are listed,
    /// if the algorithm searches.
    #[must_use]
    pub fn search(&self, algorithm: &dyn Algorithm, setting: &Parameters) -> Option<Search> {
        let Search { seconds, least } =
            self.asked(algorithm).ok().and_then(|_| algorithm.search(self, setting))?;
        Some(Search { seconds, least: self.on_network(least) })
    }

    /// Claims that the [`search`](Self::search) for a setting is not expected to beat, if its algorithm knows
    /// better ones after a small part of the work.
    #[must_use]
    pub fn expected(&self, algorithm: &dyn Algorithm, setting: &Parameters) -> Option<Claims> {
        let claims = self.asked(algorithm).ok().and_then(|_| algorithm.expected(self, setting))?;
        Some(self.on_network(claims))
    }

    /// The solved candidates of an algorithm; those that do not apply are skipped.
    pub fn solutions(self, algorithm: &dyn Algorithm) -> impl Iterator<Item = Solution> {
        let candidates = self.candidates(algorithm).unwrap_or_default();
        candidates.into_iter().filter_map(move |setting| self.solve(algorithm, &setting).ok())
    }

    /// Checks that the algorithm performs the operation and the request is valid.
    fn asked<'a>(&self, algorithm: &'a dyn Algorithm) -> Result<&'a Info, NotApplicable> {
        let (info, asked, ranks) = (algorithm.info(), self.problem.operation, self.problem.ranks);
        if ranks != self.topology.ranks() {
            return Err(NotApplicable::Ranks { rule: "a problem of the topology's ranks", ranks });
        }
        match info.operation {
            performs if performs == asked => Ok(info),
            performs => Err(NotApplicable::Operation { performs, asked }),
        }
    }

    /// The topology as a grid; `needs` names the required topology.
    ///
    /// # Errors
    /// Another topology.
    pub fn grid(&self, needs: &'static str) -> Result<&'r Grid, NotApplicable> {
        match self.topology.shape() {
            Shape::Grid(grid) => Ok(grid),
            _ => Err(self.requires(needs)),
        }
    }

    /// The topology as a cluster whose ranks are numbered node by node.
    ///
    /// # Errors
    /// Another topology.
    pub fn clusters(&self) -> Result<&'r Clusters, NotApplicable> {
        match self.topology.shape() {
            Shape::Clustered(clusters) if !clusters.is_placed() => Ok(clusters),
            Shape::Clustered(_) => Err(self.requires("ranks that are numbered node by node")),
            _ => Err(self.requires("a cluster")),
        }
    }

    /// The error of an algorithm that requires another kind of topology.
    #[must_use]
    pub fn requires(&self, needs: &'static str) -> NotApplicable {
        NotApplicable::Shape { needs, topology: self.topology.short_form() }
    }

    /// The bytes of blocks.
    pub fn bytes(&self, blocks: impl Into<u128>) -> u128 {
        blocks.into() * u128::from(self.problem.block_bytes)
    }

    /// Messages that each rank may send in a step if all of them may be for other nodes: the ports
    /// of a rank, and not more than its share of its node's. A node with a port for each message to
    /// other nodes does not limit its ranks.
    ///
    /// # Errors
    /// A node has more ranks than ports.
    pub fn ports_per_rank(&self) -> Result<u32, NotApplicable> {
        let Problem { ranks, ports, node_ports, .. } = self.problem;
        let Shape::Clustered(clusters) = self.topology.shape() else { return Ok(ports) };
        let limited = |size: &u32| u64::from(*size) * u64::from(ranks - size) > node_ports.into();
        let largest = clusters.groups().map(|(.., size)| size).filter(limited).max();
        match largest.map(|size| (size, node_ports / size)) {
            None => Ok(ports),
            Some((size, 0)) => Err(NotApplicable::NodePorts { size, ports: node_ports }),
            Some((_, share)) => Ok(ports.min(share)),
        }
    }

    /// Messages that one rank may send to other nodes in a step for its whole node.
    #[must_use]
    pub fn carrier_ports(&self) -> u32 {
        self.problem.ports.min(self.problem.node_ports)
    }
}

/// A schedule and its claims.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Solution {
    /// The schedule; its origin has all parameters.
    pub schedule: Schedule,
    /// Its counts by closed form.
    pub claims: Claims,
}

impl Solution {
    /// The schedule that `rule` describes. Its origin has the parameters that are words, defaults
    /// included; [`with`](Self::with) adds others.
    pub fn new(
        request: &Request<'_>,
        values: &Values<'_>,
        rule: impl Rule + 'static,
        claims: Claims,
    ) -> Self {
        let algorithm = values.info().name.clone().into_owned();
        let origin = Origin { algorithm, parameters: values.words() };
        Self::of(Schedule::new(request.problem, origin, rule), claims.on(request.topology))
    }

    /// An existing schedule.
    #[must_use]
    pub fn of(schedule: Schedule, claims: Claims) -> Self {
        Self { schedule, claims }
    }

    /// The same with a chosen parameter, or one that is a number.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Setting>) -> Self {
        self.schedule.origin.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// The same with a parameter that names the algorithm of an inner solution, and with its own
    /// parameters.
    pub(crate) fn with_named(mut self, parameter: &Parameter, inner: &Self) -> Self {
        let Origin { algorithm, parameters } = &inner.schedule.origin;
        self.schedule.origin.parameters.extend(parameter.naming(algorithm, parameters));
        self
    }

    /// The same without a parameter that does not apply.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.schedule.origin.parameters.remove(name);
        self
    }
}
