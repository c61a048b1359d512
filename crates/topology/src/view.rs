//! A machine's ranks and links as those of another topology.

mod coordinates;
mod graph;
mod grid;
mod order;

use std::sync::Arc;

use crate::topology::clusters::Order;
use crate::{Coordinates, Grid, Machine, Rank, Route, Shape, Ties, Topology};

use graph::GraphView;
use grid::GridView;

/// A machine whose ranks and links are seen as those of another topology, for which algorithms give other
/// schedules.
///
/// A graph is seen with its nodes in another order, as the grid or HyperX network that it is, or without its
/// slowest links. A grid or a hypercube, also one that a graph is seen as, is seen with its dimensions in
/// another order, and with other directions at half a ring. Every link of a view is a link of the machine.
///
/// A grid that is [placed](crate::Graph::placed) on the machine's network is a view too, with the machine's ranks and
/// routes; and nodes whose ranks are [placed](crate::Clusters::placed), with ranks numbered node by node.
#[derive(Clone, Debug)]
pub struct View {
    /// What the machine is seen as.
    graph: Option<Arc<GraphView>>,
    /// What that, or the machine, is seen as.
    grid: Option<GridView>,
    /// The grid that is placed on the machine's network, or the nodes; then it is neither of these.
    logical: Option<Arc<dyn Topology>>,
    /// The numbers of ranks that are seen node by node.
    order: Option<Arc<Order>>,
}

impl View {
    /// The grid that is placed on a machine's network.
    #[must_use]
    pub fn placed(logical: &Arc<dyn Topology>) -> Self {
        Self { graph: None, grid: None, logical: Some(Arc::clone(logical)), order: None }
    }

    /// The nodes of a machine whose ranks are placed, with ranks numbered node by node; `None` of other machines.
    #[must_use]
    pub fn by_nodes(topology: &dyn Topology) -> Option<Self> {
        let Shape::Clustered(clusters) = topology.shape() else { return None };
        let mut by_nodes = clusters.clone();
        let order = Some(by_nodes.order.take()?);
        Some(Self { graph: None, grid: None, logical: Some(Arc::new(by_nodes)), order })
    }

    /// Whether it is a grid that is placed on the machine's network.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.logical.is_some() && self.order.is_none()
    }

    /// What words ask for, in their order: the kinds of links that a graph is seen without, such as `0` or
    /// `0:2`; what it is seen as; the dimensions of a grid in their order, such as `1:0`; and its directions at
    /// half a ring, `up` or `balanced`.
    pub const WORDS: [&str; 4] = ["without", "seen", "axes", "ties"];

    /// The view that [words](Self::WORDS) ask for; `None` without words.
    ///
    /// A side of 1 may be left out of the dimensions. A ring of 4 that is named twice is two sides of 2, the
    /// higher bit first; `0+1` joins two such sides to a ring.
    ///
    /// # Errors
    /// The place of the word that is refused, and the rule that it breaks.
    pub fn new(
        topology: &dyn Topology,
        words: [Option<&str>; 4],
    ) -> Result<Option<Self>, (usize, String)> {
        let [without, seen, axes, ties] = words;
        let graph = match (without, seen) {
            (None, None) => None,
            _ => Some(GraphView::of(topology, [without, seen])?),
        };
        let directions = match ties {
            None => None,
            Some("up") => Some(Ties::Up),
            Some("balanced") => Some(Ties::Balanced),
            Some(_) => return Err((3, "up or balanced".to_owned())),
        };
        let shown = graph.as_ref().map_or(topology, |graph| graph.shown());
        let grid = match (axes, directions) {
            (None, None) => None,
            (Some(axes), _) => Some(GridView::new(shown, axes, directions).map_err(|e| (2, e))?),
            (None, Some(ties)) => Some(GridView::with_ties(shown, ties).map_err(|e| (3, e))?),
        };
        let is_view = graph.is_some() || grid.is_some();
        Ok(is_view.then_some(Self { graph, grid, logical: None, order: None }))
    }

    /// The words that [`new`](Self::new) reads.
    #[must_use]
    pub fn words(&self) -> [Option<String>; 4] {
        let [without, seen] = self.graph.as_ref().map(|graph| graph.words()).unwrap_or_default();
        let [axes, ties] = self.grid.as_ref().map(GridView::words).unwrap_or_default();
        [without, seen, axes, ties]
    }

    /// The views that may give other schedules than the machine itself. Those of a grid are at most 24, and
    /// those of equal sides, timing values and ties are one; they are the same for all orders of its dimensions.
    /// Those of a graph are the same for all orders of its nodes, as far as its links tell nodes apart.
    #[must_use]
    pub fn all(machine: &Machine) -> Vec<Self> {
        let mut views: Vec<_> = (GridView::all(machine).into_iter())
            .map(|grid| Self { graph: None, grid: Some(grid), logical: None, order: None })
            .collect();
        // Nodes of a lattice, and those that translations map onto each other, are in a good order.
        let in_order = match machine.topology.shape() {
            Shape::Graph(graph) => graph.lattice().is_some() || graph.translations().is_some(),
            _ => true,
        };
        if in_order || !views.is_empty() {
            return views;
        }
        for graph in GraphView::all(machine) {
            let shown = graph.machine(machine);
            let axes = if let Shape::Grid(_) = graph.shown().shape() {
                GridView::all(&shown)
            } else {
                Vec::new()
            };
            let graph = Some(graph);
            let of_graph = Self { graph, grid: None, logical: None, order: None };
            views.push(of_graph.clone());
            views
                .extend(axes.into_iter().map(|grid| Self { grid: Some(grid), ..of_graph.clone() }));
        }
        views
    }

    /// What algorithms see.
    #[must_use]
    pub fn shown(&self) -> &dyn Topology {
        match (&self.grid, &self.graph) {
            (Some(grid), _) => grid.grid(),
            (None, Some(graph)) => graph.shown(),
            (None, None) => self.logical.as_deref().expect("bug: a view of nothing"),
        }
    }

    /// Whether it shows a graph.
    #[must_use]
    pub fn is_of_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Whether directions at half a ring are those of the machine.
    #[must_use]
    pub fn has_own_ties(&self) -> bool {
        self.grid.as_ref().is_none_or(|grid| grid.grid().ties() == grid.machine().ties())
    }

    /// Whether ranks have the same numbers, and messages the same routes, as on a hypercube.
    #[must_use]
    pub fn is_of_own_ranks(&self) -> bool {
        self.graph.is_none() && self.grid.as_ref().is_some_and(GridView::is_of_own_ranks)
    }

    /// Whether its rings are not those of a grid: it joins or splits some, or is of a hypercube.
    #[must_use]
    pub fn has_other_rings(&self) -> bool {
        self.grid.as_ref().is_some_and(GridView::has_other_rings)
    }

    /// The machine's rank that a rank of the view is.
    #[must_use]
    pub fn on_machine(&self, rank: Rank) -> Rank {
        if let Some(order) = &self.order {
            return Rank(order.ranks[rank.index()]);
        }
        let rank = self.grid.as_ref().map_or(rank, |grid| grid.on_machine(rank));
        self.graph.as_ref().map_or(rank, |graph| graph.on_machine(rank))
    }

    /// The rank of the view that a rank of the machine is.
    #[must_use]
    pub fn in_view(&self, rank: Rank) -> Rank {
        if let Some(order) = &self.order {
            return Rank(order.by_node[rank.index()]);
        }
        let rank = self.graph.as_ref().map_or(rank, |graph| graph.in_view(rank));
        self.grid.as_ref().map_or(rank, |grid| grid.in_view(rank))
    }

    /// Overwrites `out` with the machine's route of a message between two ranks of the view, of which
    /// `route` is the route there, empty for that of the view. It is empty only where it is the machine's own.
    pub fn route(&self, from: Rank, to: Rank, route: &Route, out: &mut Route) {
        match (&self.logical, &self.order) {
            (None, _) => {}
            (Some(_), None) => return out.clear(),
            // Nodes and links are the machine's.
            (Some(_), Some(_)) => return out.clone_from(route),
        }
        let Some(graph) = &self.graph else {
            let grid = self.grid.as_ref().expect("bug: a view of nothing");
            return grid.route(from, to, route, out);
        };
        let Some(grid) = &self.grid else { return graph.route(from, to, route, out) };
        let mut between = Route::default();
        grid.route(from, to, route, &mut between);
        graph.route(grid.on_machine(from), grid.on_machine(to), &between, out);
    }

    /// The grid that is seen in another way, if it is the machine itself, and the grid that it is seen as.
    #[must_use]
    pub fn grids(&self) -> Option<(&Grid, &Grid)> {
        let grid = self.grid.as_ref().filter(|_| self.graph.is_none())?;
        Some((grid.machine(), grid.grid()))
    }

    /// By dimension of the machine, the period of that dimension in the view; the whole side if the view
    /// has others.
    ///
    /// # Panics
    /// The machine is not a [grid](Self::grids).
    #[must_use]
    pub fn along(&self, periods: &[u32]) -> Coordinates {
        self.grid.as_ref().expect("bug: no grid").along(periods)
    }

    /// The machine, seen as what algorithms see; `None` if it is another machine than the view is of, or if
    /// its links have several timing values that the view does not show.
    #[must_use]
    pub fn on(&self, machine: &Machine) -> Option<Machine> {
        if self.logical.is_some() {
            return None;
        }
        let shown = self.graph.as_ref().map(|graph| graph.on(machine));
        let shown = shown.map_or(Some(None), |shown| shown.map(Some))?;
        match &self.grid {
            None => shown,
            Some(grid) => grid.on(shown.as_ref().unwrap_or(machine)),
        }
    }
}
