//! The planner: the caller's algorithms, and what they have planned.

mod catalogue;

use std::any::Any;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use topocoll_schedule::{Parameters, Problem};
use topocoll_topology::{Grid, Shape, Topology};

use crate::{Algorithm, NotApplicable, Request, Solution, Values};

pub use catalogue::Catalogue;

/// The algorithms that may be inner exchanges of others, and the results of their searches: inner exchanges,
/// matchings, routes and repairs are computed once for a machine. The latest used are kept.
#[derive(Debug)]
pub struct Planner {
    catalogue: Catalogue,
    kept: Mutex<Vec<(Key, Arc<dyn Any + Send + Sync>)>>,
}

/// A machine, its ranks, and all else that a value depends on, with the name of what it is.
type Key = (Identity, u32, String);

/// Equal only for equal machines.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Identity {
    Complete(u32),
    Grid(Grid),
    /// A graph's own number.
    Graph(u64),
    /// A network, nodes as (first node, number of nodes, ranks on each), and the nodes of placed ranks.
    Nodes(Box<Self>, Vec<(u32, u32, u32)>, Option<Vec<u32>>),
}

impl Identity {
    fn of(topology: &dyn Topology) -> Self {
        match topology.shape() {
            Shape::Complete => Self::Complete(topology.ranks()),
            Shape::Grid(grid) => Self::Grid(grid.clone()),
            Shape::Graph(graph) => Self::Graph(graph.number()),
            Shape::Clustered(clusters) => {
                let network = Self::of(&**clusters.network());
                let groups = clusters.groups().collect();
                Self::Nodes(Box::new(network), groups, clusters.placement())
            }
        }
    }
}

impl Planner {
    /// Values that are kept of any machines, and the most of small ones.
    const KEPT: usize = 64;
    const MOST_KEPT: usize = 1024;
    /// Pairs of ranks, with which values grow, of the machines of more values than [`KEPT`](Self::KEPT).
    const PAIRS: u128 = 1 << 24;

    /// A planner with the algorithms of a catalogue.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        Self { catalogue, kept: Mutex::default() }
    }

    /// The planner of the [standard catalogue](Catalogue::standard), one for all its users.
    #[must_use]
    pub fn standard() -> &'static Arc<Self> {
        static STANDARD: LazyLock<Arc<Planner>> =
            LazyLock::new(|| Arc::new(Planner::new(Catalogue::standard())));
        &STANDARD
    }

    /// Its algorithms.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The value of a key, which is the latest used now; the new one unless there is one.
    fn keep<V: Send + Sync + 'static>(&self, key: &Key, new: Option<Arc<V>>) -> Option<Arc<V>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(known, value)| known == key && value.is::<V>());
        let (key, value) = match place {
            Some(place) => kept.remove(place),
            None => (key.clone(), new? as _),
        };
        let pairs = |(_, ranks, _): &Key| u128::from(*ranks).pow(2);
        let mut all = pairs(&key) + kept.iter().map(|(key, _)| pairs(key)).sum::<u128>();
        while kept.len() >= Self::KEPT && (all > Self::PAIRS || kept.len() == Self::MOST_KEPT) {
            all -= pairs(&kept.remove(0).0);
        }
        kept.push((key, Arc::clone(&value)));
        value.downcast().ok()
    }
}

impl<'r> Request<'r> {
    /// The value that `compute` gives for the machine and all that `of` names, computed once while it is kept.
    /// Others may be computed at the same time.
    pub fn kept<V: Send + Sync + 'static>(
        &self,
        of: impl Into<String>,
        compute: impl FnOnce() -> V,
    ) -> Arc<V> {
        let key = (Identity::of(self.topology), self.topology.ranks(), of.into());
        self.planner.keep(&key, None).unwrap_or_else(|| {
            let new = Arc::new(compute());
            self.planner.keep(&key, Some(new)).expect("bug: nothing is kept")
        })
    }

    /// The request for an inner exchange of blocks of `bytes`; `None` if these are too large.
    #[must_use]
    pub fn part<'p>(
        &self,
        topology: &'p dyn Topology,
        ports: u32,
        bytes: u128,
    ) -> Option<Request<'p>>
    where
        'r: 'p,
    {
        let bytes = u64::try_from(bytes).ok()?;
        let problem = Problem::new(self.problem.operation, topology.ranks(), ports, bytes).ok()?;
        Some(Request::new(&problem, topology).with(self.planner))
    }

    /// The algorithms that may be an inner exchange.
    pub(crate) fn inner(&self) -> impl Iterator<Item = &'r dyn Algorithm> + use<'r> {
        self.planner.catalogue.iter().filter(|algorithm| !algorithm.info().by_demand)
    }

    /// The solution of an inner exchange, solved once while it is kept.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub(crate) fn solve_inner(
        &self,
        algorithm: &dyn Algorithm,
        own: &Parameters,
    ) -> Result<Solution, NotApplicable> {
        let of = format!("{} {own:?} {:?}", algorithm.info().name, self.problem);
        Result::clone(&self.kept(of, || self.solve(algorithm, own)))
    }
}

impl Values<'_> {
    /// The solution of a part of a problem by the algorithm that a parameter names, if given.
    ///
    /// # Errors
    /// It is this algorithm, or requires the sizes of blocks, or does not apply to the part.
    pub(crate) fn solve_named(
        &self,
        parameter: &'static str,
        part: &Request<'_>,
    ) -> Result<Option<Solution>, NotApplicable> {
        let Some((named, own)) = self.algorithm(parameter) else { return Ok(None) };
        let refused = |reason| NotApplicable::Named {
            parameter,
            named: named.clone(),
            reason: Box::new(reason),
        };
        let algorithm = part.planner.catalogue().find(&named).map_err(refused)?;
        if algorithm.info().by_demand {
            return Err(self.refused(parameter, "an algorithm for blocks of equal sizes"));
        }
        if algorithm.info().name == self.info().name {
            return Err(self.refused(parameter, "another algorithm"));
        }
        part.solve_inner(algorithm, &own).map(Some).map_err(refused)
    }
}
