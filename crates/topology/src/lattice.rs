//! Twisted tori, and grids with failed nodes or links.

mod fault;
mod load;
mod shortest_routes;

use std::sync::{Arc, OnceLock};

use crate::{Grid, Link, LinkId, MixedRadix, Rank, Route, Segment, Shape, Topology, TopologyError};

pub use fault::Fault;
pub use load::LeastLoad;
use shortest_routes::ShortestRoutes;

/// No rank.
const NONE: u32 = u32::MAX;

/// The most nodes of a twisted torus, and of a machine with faults.
const MOST_TWISTED: u32 = 1 << 20;
const MOST_FAULTY: u32 = 1 << 12;

/// A twisted torus, or a grid with failed nodes or links.
///
/// Around a twisted side a message arrives shifted along the longest sides (Camara et al. 2010).
/// Nodes are the places of the grid, numbered as on the grid. Ranks are the nodes that are present,
/// in that order. A broken link fails in both directions, and the links of an absent node are
/// absent too. There is no link from a node to itself.
///
/// Routes are shortest. Among shortest routes each hop takes the lowest dimension, and + before -.
/// Without twists and faults these are the routes of the grid.
#[derive(Debug)]
pub struct Lattice {
    radix: MixedRadix,
    wrap: Vec<bool>,
    /// Ascending, each once.
    faults: Vec<Fault>,
    /// By rank.
    nodes: Vec<u32>,
    /// By rank, dimension and direction (+, -), the rank that the link leads to.
    next: Vec<u32>,
    routes: ShortestRoutes,
    least_load: OnceLock<LeastLoad>,
}

impl Lattice {
    /// The torus on which one turn around side u adds `shifts[u]` along each of the longest sides.
    ///
    /// # Errors
    /// As [`MixedRadix::twisted`], or more than 2^20 nodes.
    ///
    /// # Panics
    /// `sides` and `shifts` differ in length.
    pub fn twisted_torus(sides: &[u32], shifts: &[u32]) -> Result<Self, TopologyError> {
        let radix = MixedRadix::twisted(sides, shifts)?;
        if radix.ranks() > MOST_TWISTED {
            let (what, nodes) = ("a twisted torus", radix.ranks());
            return Err(TopologyError::TooManyNodes { what, nodes, most: MOST_TWISTED });
        }
        Self::new(radix, vec![true; sides.len()], Vec::new())
    }

    /// The grid with these faults.
    ///
    /// # Errors
    /// All nodes absent, some unreachable from the others, or more than 4,096 nodes.
    ///
    /// # Panics
    /// A fault of a node or link that the grid does not have.
    pub fn of_grid(grid: &Grid, faults: &[Fault]) -> Result<Self, TopologyError> {
        Self::new(grid.radix().clone(), grid.wrap().to_vec(), faults.to_vec())
    }

    /// This lattice with these faults added.
    ///
    /// # Errors
    /// As [`of_grid`](Self::of_grid).
    ///
    /// # Panics
    /// A fault of a node or link that the lattice does not have.
    pub fn without(&self, faults: &[Fault]) -> Result<Self, TopologyError> {
        let faults = self.faults.iter().chain(faults).copied().collect();
        Self::new(self.radix.clone(), self.wrap.clone(), faults)
    }

    fn new(
        radix: MixedRadix,
        wrap: Vec<bool>,
        mut faults: Vec<Fault>,
    ) -> Result<Self, TopologyError> {
        // Without faults and ends, translations map all nodes onto each other: routes to one
        // suffice.
        let whole = faults.is_empty() && wrap.iter().all(|&wraps| wraps);
        if !whole && radix.ranks() > MOST_FAULTY {
            let (what, nodes) = ("a machine with failed nodes or links", radix.ranks());
            return Err(TopologyError::TooManyNodes { what, nodes, most: MOST_FAULTY });
        }
        faults.sort_unstable();
        faults.dedup();
        let mut rank_at = vec![0; radix.ranks() as usize];
        for fault in &faults {
            if let Fault::Absent { node } = *fault {
                rank_at[node as usize] = NONE;
            }
        }
        let present = |node: &u32| rank_at[*node as usize] != NONE;
        let nodes: Vec<u32> = (0..radix.ranks()).filter(present).collect();
        if nodes.is_empty() {
            return Err(TopologyError::AllAbsent(radix.ranks()));
        }
        for (rank, &node) in (0..).zip(&nodes) {
            rank_at[node as usize] = rank;
        }
        let per_rank = 2 * radix.dimensions();
        let mut next = vec![NONE; nodes.len() * per_rank];
        for (from, &node) in nodes.iter().enumerate() {
            for outgoing in 0..per_rank {
                let to = fault::beyond(&radix, &wrap, node, outgoing)
                    .map_or(NONE, |to| rank_at[to as usize]);
                let link = Fault::link(&radix, node, outgoing);
                if to != NONE && faults.binary_search(&link).is_err() {
                    next[from * per_rank + outgoing] = to;
                }
            }
        }
        fault::check_connected(&radix, &wrap, &nodes, &next)?;
        let routes = ShortestRoutes::new(&next, per_rank, whole.then_some(&radix));
        Ok(Self { radix, wrap, faults, nodes, next, routes, least_load: OnceLock::new() })
    }

    /// The numbering of nodes by coordinates.
    #[must_use]
    pub fn radix(&self) -> &MixedRadix {
        &self.radix
    }

    /// Which sides wrap, dimension 0 first.
    #[must_use]
    pub fn wrap(&self) -> &[bool] {
        &self.wrap
    }

    /// The node of a rank.
    #[must_use]
    pub fn node(&self, rank: Rank) -> Rank {
        Rank(self.nodes[rank.index()])
    }

    /// Its faults, ascending.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether it has no faults and all sides wrap. Then every translation keeps its links.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.wrap.iter().all(|&wraps| wraps)
    }

    /// The grid or lattice without faults.
    #[must_use]
    pub fn unbroken(&self) -> Arc<dyn Topology> {
        let sides = self.radix.sides();
        match self.radix.shifts() {
            [] => Arc::new(Grid::new(sides, &self.wrap).expect("bug: a lattice without a grid")),
            shifts => Arc::new(
                Self::twisted_torus(sides, shifts).expect("bug: a lattice without a torus"),
            ),
        }
    }

    /// The rank at the other end of the link that leaves `from` along `dimension`, `direction` +1
    /// or -1.
    #[must_use]
    pub fn neighbour(&self, from: Rank, dimension: usize, direction: i64) -> Option<Rank> {
        let outgoing = 2 * dimension + usize::from(direction < 0);
        Some(Rank(self.next[from.index() * self.per_rank() + outgoing])).filter(|to| to.0 != NONE)
    }

    /// Hops of the route between two ranks.
    #[must_use]
    pub fn distance(&self, from: Rank, to: Rank) -> u32 {
        let (mut at, mut hops) = (from, 0);
        while at != to {
            at = self.beyond(at, self.routes.first(at, to));
            hops += 1;
        }
        hops
    }

    /// The most hops between two ranks.
    #[must_use]
    pub fn diameter(&self) -> u32 {
        self.routes.diameter()
    }

    /// The fewest links that leave a rank.
    #[must_use]
    pub fn fewest_links(&self) -> u32 {
        let links = |next: &[u32]| next.iter().filter(|&&to| to != NONE).count() as u32;
        self.next.chunks(self.per_rank()).map(links).min().unwrap_or(0)
    }

    /// A lower bound on the load of the busiest link when every rank sends a block to every other.
    ///
    /// Computed once, on first use, in bounded time.
    #[must_use]
    pub fn least_load(&self) -> LeastLoad {
        *self.least_load.get_or_init(|| load::least(self))
    }

    fn per_rank(&self) -> usize {
        2 * self.radix.dimensions()
    }

    fn beyond(&self, at: Rank, outgoing: usize) -> Rank {
        Rank(self.next[at.index() * self.per_rank() + outgoing])
    }
}

impl Topology for Lattice {
    fn ranks(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Lattice(self)
    }

    fn short_form(&self) -> String {
        let sides = self.radix.sides();
        let base = if self.radix.shifts().is_empty() {
            self.unbroken().short_form()
        } else {
            let longest = sides.iter().max().expect("a lattice has a side");
            let side = |(side, shift): (&u32, &u32)| match shift {
                _ if side == longest => side.to_string(),
                shift if shift == side => side.to_string(),
                shift => format!("{side}+{shift}"),
            };
            let sides: Vec<_> = sides.iter().zip(self.radix.shifts()).map(side).collect();
            format!("twisted-torus:{}", sides.join("x"))
        };
        let faults = self.faults.iter().map(|fault| format!("/{}", fault.named(&self.radix)));
        base + &faults.collect::<String>()
    }

    fn link_classes(&self) -> Vec<String> {
        (0..self.dimensions()).map(|u| format!("dimension {u}")).collect()
    }

    fn links(&self) -> u64 {
        self.next.iter().filter(|&&to| to != NONE).count() as u64
    }

    fn most_links_out(&self) -> u64 {
        let out = |next: &[u32]| next.iter().filter(|&&to| to != NONE).count() as u64;
        self.next.chunks(self.per_rank()).map(out).max().unwrap_or(0)
    }

    fn dimensions(&self) -> usize {
        self.radix.dimensions()
    }

    fn link(&self, link: LinkId) -> Option<Link> {
        let per_rank = self.per_rank() as u64;
        let from = u32::try_from(link.0 / per_rank).ok().filter(|&r| r < self.ranks())?;
        let dimension = (link.0 % per_rank / 2) as u32;
        let direction = if link.0 % 2 == 0 { 1 } else { -1 };
        let to = self.neighbour(Rank(from), dimension as usize, direction)?;
        Some(Link { from: Rank(from), to, dimension, direction })
    }

    fn route(&self, from: Rank, to: Rank, out: &mut Route) {
        out.clear();
        let (mut at, mut last, mut hops) = (from, 0, 0);
        while at != to {
            let outgoing = self.routes.first(at, to);
            if outgoing != last {
                push(out, last, hops);
                (last, hops) = (outgoing, 0);
            }
            hops += 1;
            at = self.beyond(at, outgoing);
        }
        push(out, last, hops);
    }

    /// A segment is valid if all its links exist and it has at most as many hops as there are
    /// ranks.
    fn follow(&self, from: Rank, route: &Route) -> Result<Rank, Segment> {
        let mut at = from;
        for &segment in route.segments() {
            let u = segment.dimension as usize;
            if u >= self.dimensions() || segment.hops.unsigned_abs() > u64::from(self.ranks()) {
                return Err(segment);
            }
            for _ in 0..segment.hops.unsigned_abs() {
                at = self.neighbour(at, u, segment.hops.signum()).ok_or(segment)?;
            }
        }
        Ok(at)
    }

    fn for_each_link(&self, from: Rank, route: &Route, visit: &mut dyn FnMut(LinkId)) {
        let mut at = from;
        for segment in route.segments() {
            let (u, direction) = (segment.dimension as usize, segment.hops.signum());
            for _ in 0..segment.hops.unsigned_abs() {
                visit(self.link_id(at, u, direction));
                at = self.neighbour(at, u, direction).expect("bug: a route over a missing link");
            }
        }
    }
}

fn push(out: &mut Route, outgoing: usize, hops: i64) {
    out.push((outgoing / 2) as u32, if outgoing % 2 == 0 { hops } else { -hops });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse_short_form;

    fn routes(topology: &dyn Topology) -> Vec<Route> {
        let mut routes = Vec::new();
        for from in (0..topology.ranks()).map(Rank) {
            for to in (0..topology.ranks()).map(Rank) {
                let mut route = Route::default();
                topology.route(from, to, &mut route);
                routes.push(route);
            }
        }
        routes
    }

    #[test]
    fn without_twists_and_faults_routes_are_those_of_the_grid() {
        for (sides, wrap) in [
            (&[4, 3][..], &[true, true][..]),
            (&[4, 4], &[false, true]),
            (&[2, 1, 5], &[true, true, false]),
            (&[2, 2, 2], &[true; 3]),
        ] {
            let grid = Grid::new(sides, wrap).unwrap();
            let lattice = Lattice::of_grid(&grid, &[]).unwrap();
            assert_eq!(routes(&lattice), routes(&grid), "{sides:?}");
            assert_eq!((lattice.links(), lattice.short_form()), (grid.links(), grid.short_form()));
            assert_eq!(lattice.link_classes(), grid.link_classes());
            let mut numbers = (0..=u64::from(grid.ranks()) * 2 * sides.len() as u64).map(LinkId);
            assert!(numbers.all(|number| lattice.link(number) == grid.link(number)));
        }
    }

    #[test]
    fn routes_avoid_failed_nodes_and_links() {
        let machine = parse_short_form("torus:4x4/1,1/0,0+0/2,3+1").unwrap();
        let Shape::Lattice(lattice) = machine.shape() else { panic!("a lattice") };
        assert_eq!((lattice.ranks(), lattice.links()), (15, 2 * (32 - 4 - 2)));
        assert_eq!((lattice.node(Rank(5)), lattice.fewest_links()), (Rank(6), 2));
        for (i, route) in routes(lattice).iter().enumerate() {
            let (from, to) = (Rank(i as u32 / 15), Rank(i as u32 % 15));
            assert_eq!(lattice.follow(from, route), Ok(to));
            assert_eq!(route.hops(), u64::from(lattice.distance(from, to)));
            assert!(lattice.distance(from, to) <= lattice.diameter());
            lattice.for_each_link(from, route, &mut |link| {
                let link = lattice.link(link).unwrap();
                let back = lattice.neighbour(link.to, link.dimension as usize, -link.direction);
                assert_eq!(back, Some(link.from));
            });
        }
    }

    #[test]
    fn routes_off_the_lattice_are_found() {
        let torus = Lattice::twisted_torus(&[2, 4], &[2, 0]).unwrap();
        let follow = |dimension, hops| torus.follow(Rank(0), &Route::straight(dimension, hops));
        assert_eq!(
            (follow(1, 8), follow(1, -8), follow(0, 4)),
            (Ok(Rank(0)), Ok(Rank(0)), Ok(Rank(0)))
        );
        for (dimension, hops) in [(1, 9), (1, -9), (0, i64::MAX), (2, 1), (2, 9)] {
            assert_eq!(follow(dimension, hops), Err(Segment { dimension, hops }));
        }
    }

    #[test]
    fn wrong_faults_are_refused_with_an_example() {
        let refused = |text: &str| parse_short_form(text).unwrap_err().message;
        let told = "is not a link: a node is named as `0,0,0`, a link as `0,0,0+0`";
        assert_eq!(refused("mesh:3x3x3/1,1+0"), format!("`mesh:3x3x3/1,1+0`: `1,1+0` {told}"));
        let told = "dimension 3: the last dimension is 2";
        assert_eq!(
            refused("mesh:3x3x3/1,1,1+3"),
            format!("`mesh:3x3x3/1,1,1+3`: `1,1,1+3`: {told}")
        );
    }

    #[test]
    fn nodes_that_are_cut_off_are_named() {
        let refused = |text: &str| parse_short_form(text).unwrap_err().message;
        // At most eight are named.
        for (links, more) in [(8, ""), (9, " and 1 more"), (12, " and 4 more")] {
            let broken: String = (0..links).map(|row| format!("/0,{row}+0")).collect();
            let message = refused(&format!("mesh:2x{links}{broken}"));
            assert!(message.ends_with(&format!(" 0,7+0{more}")), "{message}");
        }
        assert_eq!(
            refused("mesh:3x3/0,1/0,0+0"),
            "`mesh:3x3/0,1/0,0+0`: not connected: node 0,0 cannot reach the other 7 nodes; failed \
             between them: 0,0+0; missing between them: 0,1"
        );
        assert_eq!(
            refused("torus:6/0+0/4+0"),
            "`torus:6/0+0/4+0`: not connected: 2 nodes 0 5 cannot reach the other 4 nodes; failed \
             between them: 0+0 4+0"
        );
    }

    #[test]
    fn the_least_load_of_a_torus_is_that_of_its_bisection() {
        let least = |text: &str| {
            let machine = parse_short_form(text).unwrap();
            let Shape::Lattice(lattice) = machine.shape() else { panic!("a lattice") };
            lattice.least_load()
        };
        let fraction = |text| (least(text).distances, least(text).lengths);
        assert_eq!(fraction("twisted-torus:4+0x4+0x8"), (256, 2));
        assert_eq!(fraction("twisted-torus:4x4x8"), (440, 6));
        assert_eq!(fraction("twisted-torus:8x8x16"), (7136, 6));
        assert!(least("torus:4x8/0,0+1").blocks() > 32.0);
        // Cut at the middle of a side of 32 that does not wrap.
        assert_eq!(fraction("mesh:32x32/0,0"), (511 * 512, 32));
    }
}
