use std::borrow::Cow;

use topocoll_schedule::{Collective, Demand, Origin, Parameters, Problem, Rule, Schedule, Setting};
use topocoll_topology::{Clusters, Grid, Shape, Topology};

use crate::{Claims, NotApplicable, Parameter, Values};

/// A writer of schedules: those of this crate stand in the standard
/// [`Catalogue`](crate::Catalogue), which takes more.
pub trait Algorithm: Send + Sync {
    /// Its name, source, operation and parameters.
    fn info(&self) -> &Info;

    /// The settings worth pricing for this request, each complete, the default one first. Settings
    /// that [`solve`](Self::solve) refuses are skipped.
    ///
    /// All combinations of the words of its parameters unless an algorithm says otherwise.
    ///
    /// # Errors
    /// The reason no setting applies, where it is known without solving one.
    fn candidates(&self, _request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        Ok(self.info().combinations())
    }

    /// The schedule and its claims for values that fit [`info`](Self::info). Called through
    /// [`Request::solve`], which checks them.
    ///
    /// # Errors
    /// The algorithm, or one of the values, does not apply.
    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable>;

    /// Bytes that [`solve`](Self::solve) needs besides its solution, if large enough to check.
    fn memory(&self, _request: &Request<'_>) -> u128 {
        0
    }
}

/// The description of an algorithm: its row in lists, help and checks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The name on the command line and in files.
    pub name: Cow<'static, str>,
    /// One line for lists.
    pub summary: Cow<'static, str>,
    /// The paper and place it comes from.
    pub source: Cow<'static, str>,
    /// The operation it performs.
    pub operation: Collective,
    /// The parameters it takes.
    pub parameters: &'static [Parameter],
    /// Whether its schedules depend on the sizes of blocks, which it requires.
    pub by_demand: bool,
}

impl Info {
    /// An all-to-all without parameters.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, source: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            summary: Cow::Borrowed(summary),
            source: Cow::Borrowed(source),
            operation: Collective::AllToAll,
            parameters: &[],
            by_demand: false,
        }
    }

    /// The same for another operation.
    #[must_use]
    pub const fn performing(mut self, operation: Collective) -> Self {
        self.operation = operation;
        self
    }

    /// The same with these parameters.
    #[must_use]
    pub const fn taking(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    /// The same for schedules that depend on the sizes of blocks.
    #[must_use]
    pub const fn by_demand(mut self) -> Self {
        self.by_demand = true;
        self
    }
}

/// A problem on a topology, and the sizes of blocks where they differ.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'r> {
    /// The problem; blocks of a demand matrix have their own sizes.
    pub problem: Problem,
    /// Ranks and links.
    pub topology: &'r dyn Topology,
    /// The sizes of all blocks.
    pub demand: Option<&'r Demand>,
}

impl<'r> Request<'r> {
    /// A request for blocks of equal sizes.
    #[must_use]
    pub fn new(problem: &Problem, topology: &'r dyn Topology) -> Self {
        Self { problem: *problem, topology, demand: None }
    }

    /// The same for blocks of these sizes.
    #[must_use]
    pub fn of(self, demand: Option<&'r Demand>) -> Self {
        Self { demand, ..self }
    }

    /// Solves the request with the values given; parameters that are not given have their defaults.
    ///
    /// # Errors
    /// The algorithm, or one of the values, does not apply.
    pub fn solve(
        &self,
        algorithm: &dyn Algorithm,
        given: &Parameters,
    ) -> Result<Solution, NotApplicable> {
        let info = self.asked(algorithm)?;
        algorithm.solve(self, &Values::new(info, given)?)
    }

    /// The algorithm's settings worth pricing; [`solve`](Self::solve) may refuse some.
    ///
    /// # Errors
    /// The reason no setting applies, where it is known without solving one.
    pub fn candidates(&self, algorithm: &dyn Algorithm) -> Result<Vec<Parameters>, NotApplicable> {
        self.asked(algorithm)?;
        algorithm.candidates(self)
    }

    /// The candidates of an algorithm that apply, solved.
    pub fn solutions(self, algorithm: &dyn Algorithm) -> impl Iterator<Item = Solution> {
        let candidates = self.candidates(algorithm).unwrap_or_default();
        candidates.into_iter().filter_map(move |setting| self.solve(algorithm, &setting).ok())
    }

    /// An algorithm that performs the operation.
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

    /// The topology as a cluster.
    ///
    /// # Errors
    /// Another topology.
    pub fn clusters(&self) -> Result<&'r Clusters, NotApplicable> {
        match self.topology.shape() {
            Shape::Clustered(clusters) => Ok(clusters),
            _ => Err(self.requires("a cluster")),
        }
    }

    /// The error of a topology of another kind than an algorithm requires.
    #[must_use]
    pub fn requires(&self, needs: &'static str) -> NotApplicable {
        NotApplicable::Shape { needs, topology: self.topology.short_form() }
    }

    /// The bytes of blocks.
    pub fn bytes(&self, blocks: impl Into<u128>) -> u128 {
        blocks.into() * u128::from(self.problem.block_bytes)
    }

    /// Messages that each rank may send in a step when all of them send to other nodes at once: the
    /// ports, shared by the ranks of the largest node.
    ///
    /// # Errors
    /// Fewer ports than ranks of a node.
    pub fn ports_per_rank(&self) -> Result<u32, NotApplicable> {
        let ports = self.problem.ports;
        match self.topology.shape() {
            Shape::Clustered(clusters) if clusters.nodes() > 1 => {
                match ports / clusters.largest() {
                    0 => Err(NotApplicable::NodePorts { size: clusters.largest(), ports }),
                    ports => Ok(ports),
                }
            }
            _ => Ok(ports),
        }
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
        Self::of(Schedule::new(request.problem, origin, rule), claims)
    }

    /// A schedule that is written already.
    #[must_use]
    pub fn of(schedule: Schedule, claims: Claims) -> Self {
        Self { schedule, claims }
    }

    /// The same with a parameter that was chosen, or is a number.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Setting>) -> Self {
        self.schedule.origin.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// The same without a parameter that does not apply.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.schedule.origin.parameters.remove(name);
        self
    }
}
