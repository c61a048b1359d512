//! Networks as lists of links: nodes, switches, and the routes between the nodes.

mod known;
mod levels;
mod links;
mod listed;
mod shortest;
mod symmetry;
mod table;
mod tree;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::lattice::Lattice;
use super::lattice::placed::OnGrid;
use crate::{Link, LinkId, MixedRadix, Rank, Route, Segment, Shape, Topology, TopologyError};

pub(crate) use known::Known;
pub use levels::{Level, Takes};
pub use links::{Capacity, LinkKind};
pub(crate) use links::{Links, ListedLinks};
pub use listed::ListedGraph;
pub(crate) use listed::MOST_VERTICES;
use symmetry::Symmetries;
pub use symmetry::{Orbit, Orbits, Translation};

/// The most directed links of a graph.
pub(crate) const MOST_LINKS: u64 = 1 << 26;

/// The most nodes of a graph whose routes are a formula, and vertices of a tree.
const MOST_NODES: u64 = 1 << 20;

/// The rule that gives the routes of a graph.
pub(crate) trait Routes: fmt::Debug + Send + Sync {
    /// The place, among the links that leave `at`, of the next link of a message between two nodes;
    /// `at` is on the route and is not `to`.
    fn next(&self, links: &Links, at: u32, from: u32, to: u32) -> usize;

    /// A number: messages to `to` leave another vertex `at` by the same link if their sources are
    /// equal modulo this. 0 if no message passes, and `None` if no such number is known.
    fn modulus(&self, _links: &Links, _at: u32, _to: u32) -> Option<u32> {
        Some(1)
    }

    /// The grid whose links and routes these are, if its nodes and links have other numbers.
    fn on_grid(&self) -> Option<OnGrid<'_>> {
        None
    }

    /// The most links on a route.
    fn diameter(&self) -> u32;

    /// Whether links alone give the routes, as those of a [`ListedGraph`].
    fn are_of_links(&self) -> bool {
        false
    }

    /// Whether no two nodes are joined by fewer links than their route has.
    fn are_shortest(&self) -> bool {
        false
    }

    /// Whether every renaming of vertices that keeps links and their kinds keeps all routes.
    fn follow_links(&self) -> bool {
        false
    }

    /// The images of all vertices under a renaming of nodes, if it keeps all routes where it keeps links.
    fn vertex_images(&self, _nodes: &[u32]) -> Option<Vec<u32>> {
        None
    }

    /// The groups of nodes any two of which have links of their own, the routers of each, and the nodes of each
    /// router, numbered in this order.
    fn groups(&self) -> Option<[u32; 3]> {
        None
    }

    /// The [levels](Graph::levels), if the rule gives them.
    fn levels(&self, _links: &Links) -> Option<Vec<Level>> {
        None
    }

    /// The name of a vertex, if the rule gives one.
    fn vertex_name(&self, _vertex: u32) -> Option<String> {
        None
    }
}

/// Refuses a network of a family with too many nodes or links, before memory is taken.
pub(crate) fn check_size(
    family: &'static str,
    nodes: u128,
    links: u128,
) -> Result<(), TopologyError> {
    let limits = [("nodes", nodes, MOST_NODES), ("directed links", links, MOST_LINKS)];
    match limits.iter().find(|(_, size, most)| *size > u128::from(*most)) {
        Some((what, size, most)) => {
            Err(format!("a {family} cannot have {size} {what}: the limit is {most}").into())
        }
        None => Ok(()),
    }
}

/// What the graph is seen as, by the kinds of links that it is seen without.
type Views = Mutex<HashMap<Vec<usize>, Arc<dyn Any + Send + Sync>>>;

/// A network as a list of directed links between vertices.
///
/// Vertices are the nodes, in order, and after them the switches. Ranks are the nodes. The links
/// that leave a vertex have consecutive numbers; their places among them are the ports that the
/// segments of routes name: a segment `{ dimension: port, hops: 1 }` is one link. On a
/// [`Lattice`] segments name a dimension and a direction, as on a grid.
#[derive(Debug)]
pub struct Graph {
    pub(crate) form: String,
    pub(crate) nodes: u32,
    /// By vertex; empty for numbers.
    pub(crate) names: Vec<String>,
    pub(crate) classes: Vec<String>,
    pub(crate) links: Links,
    pub(crate) routes: Box<dyn Routes>,
    pub(crate) lattice: Option<Lattice>,
    /// The numbering of nodes whose translations keep all links, by port, and all routes.
    pub(crate) translations: Option<MixedRadix>,
    pub(crate) least_load: Known<f64>,
    pub(crate) routed_load: Known<f64>,
    pub(crate) farthest: OnceLock<Option<u32>>,
    pub(crate) kinds_of_nodes: OnceLock<Vec<usize>>,
    pub(crate) levels: OnceLock<Option<Vec<Level>>>,
    pub(crate) symmetries: Symmetries,
    pub(crate) views: Views,
    pub(crate) number: u64,
}

impl Graph {
    /// A graph of numbered vertices, without translations.
    pub(crate) fn new(
        form: String,
        nodes: u32,
        classes: Vec<String>,
        links: Links,
        routes: Box<dyn Routes>,
    ) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self {
            form,
            nodes,
            names: Vec::new(),
            classes,
            links,
            routes,
            lattice: None,
            translations: None,
            least_load: Known::default(),
            routed_load: Known::default(),
            farthest: OnceLock::new(),
            kinds_of_nodes: OnceLock::new(),
            levels: OnceLock::new(),
            symmetries: Symmetries::default(),
            views: Views::default(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Number of vertices: nodes and switches.
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.links.vertices()
    }

    /// The links that leave a vertex, each with the vertex that it leads to.
    pub fn leaving(&self, vertex: u32) -> impl ExactSizeIterator<Item = (LinkId, u32)> + '_ {
        self.links.leaving(vertex).map(|link| (LinkId(link as u64), self.links.to(link)))
    }

    /// The grid that it is made from, if it is a twisted torus or has failed nodes or links.
    #[must_use]
    pub fn lattice(&self) -> Option<&Lattice> {
        self.lattice.as_ref()
    }

    /// The grid whose links and routes it has, if it is [placed](Self::placed) on one. Segments of routes are
    /// those of that grid.
    #[must_use]
    pub fn on_grid(&self) -> Option<OnGrid<'_>> {
        self.routes.on_grid()
    }

    /// The groups of a dragonfly, the routers of each, and the nodes of each router: nodes are numbered in this order.
    #[must_use]
    pub fn groups(&self) -> Option<[u32; 3]> {
        self.routes.groups()
    }

    /// The numbering of nodes whose translations keep all links and routes, if there is one.
    #[must_use]
    pub fn translations(&self) -> Option<&MixedRadix> {
        self.translations.as_ref()
    }

    /// The node at the other end of the link of a lattice that leaves `from` along `dimension`,
    /// `direction` +1 or -1.
    #[must_use]
    pub fn neighbour(&self, from: Rank, dimension: usize, direction: i64) -> Option<Rank> {
        let segment = Segment { dimension: dimension as u32, hops: direction };
        self.step(from.0, segment).map(|link| Rank(self.links.to(link)))
    }

    /// Adds the ports of all links that messages to a node may take next from another vertex: of c
    /// ports a message takes number (source + destination) mod c, and none are added where no message
    /// passes. Returns false if the routes follow no such rule.
    pub fn onward(&self, at: u32, to: Rank, out: &mut Vec<usize>) -> bool {
        let Some(modulus) = self.routes.modulus(&self.links, at, to.0) else { return false };
        for number in 0..modulus {
            let source = (number + modulus - to.0 % modulus) % modulus;
            out.push(self.routes.next(&self.links, at, source, to.0));
        }
        true
    }

    /// Links of the route between two nodes.
    #[must_use]
    pub fn distance(&self, from: Rank, to: Rank) -> u32 {
        let mut hops = 0;
        self.walk(from, to, |_, _| hops += 1);
        hops
    }

    /// The kinds of the links that leave nodes, ascending.
    pub(crate) fn kinds_of_nodes(&self) -> &[usize] {
        self.kinds_of_nodes.get_or_init(|| {
            let mut kinds = vec![false; self.links.kinds().len()];
            let leaving = (0..self.nodes).flat_map(|node| self.links.leaving(node));
            leaving.for_each(|link| kinds[self.links.kind_number(link)] = true);
            (0..kinds.len()).filter(|&kind| kinds[kind]).collect()
        })
    }

    /// Links that the route between two nodes has at least, up to 3.
    #[must_use]
    pub fn least_distance(&self) -> u32 {
        let mut seen = vec![false; self.vertices() as usize];
        let mut distance = 3;
        for node in 0..self.nodes {
            let mut ends = self.links.ends(self.links.leaving(node)).to_vec();
            ends.sort_unstable();
            ends.dedup();
            for to in ends {
                if to < self.nodes {
                    return 1;
                }
                if std::mem::replace(&mut seen[to as usize], true) {
                    distance = 2;
                }
            }
        }
        distance
    }

    /// The most links on a route.
    #[must_use]
    pub fn diameter(&self) -> u32 {
        self.routes.diameter()
    }

    /// The most links between two nodes over the shortest way, which routes by a rule or a table may
    /// miss; `None` if that would take long to find.
    ///
    /// Computed once, on first use.
    #[must_use]
    pub fn farthest(&self) -> Option<u32> {
        /// The most visits of links.
        const VISITED: usize = 1 << 27;
        *self.farthest.get_or_init(|| {
            if self.routes.are_shortest() {
                return Some(self.diameter());
            }
            let sources = if self.translations.is_some() { 1 } else { self.nodes };
            if (sources as usize).saturating_mul(self.links.count()) > VISITED {
                return None;
            }
            let farthest = |from| {
                let hops = self.links.hops_from(from);
                hops[..self.nodes as usize].iter().copied().fold(0, u32::max)
            };
            Some((0..sources).map(farthest).fold(0, u32::max))
        })
    }

    /// The fewest links that leave a node.
    #[must_use]
    pub fn fewest_links(&self) -> u32 {
        let out = |node| self.links.leaving(node).len() as u32;
        (0..self.nodes).map(out).min().unwrap_or(0)
    }

    /// A value that takes long to compute, for these capacities by kind of links and ranks on each
    /// node: a bound on the load of the busiest link. Computed on first use.
    pub fn least_load(
        &self,
        capacities: &[(u32, u32)],
        ranks: &[u32],
        compute: impl FnOnce() -> f64,
    ) -> f64 {
        self.least_load.of(capacities, ranks, compute)
    }

    /// The load of the busiest link, in blocks for each unit of capacity, when every rank sends a
    /// block straight to every other by the machine's routes; `None` if that would take long to
    /// add up. `capacities` are fractions by kind of links, `ranks` those on each node, or none for one
    /// on each.
    ///
    /// Computed once, on first use.
    ///
    /// # Panics
    /// Another number of kinds or nodes than there are.
    #[must_use]
    pub fn routed_load(&self, capacities: &[(u32, u32)], ranks: &[u32]) -> Option<f64> {
        /// The most links of all routes that are visited.
        const VISITED: u64 = 1 << 28;
        let equivalent = self.translations.is_some() && ranks.is_empty();
        let sources = if equivalent { 1 } else { self.nodes };
        let hops = u64::from(self.diameter()) * u64::from(self.nodes);
        if hops.saturating_mul(sources.into()) > VISITED {
            return None;
        }
        Some(self.routed_load.of(capacities, ranks, || {
            let ranks = self.ranks_on_nodes(ranks);
            let mut carried = vec![0u64; self.links.count()];
            for to in 0..self.nodes {
                for from in (0..sources).filter(|&from| from != to) {
                    let blocks = u64::from(ranks[from as usize]) * u64::from(ranks[to as usize]);
                    self.walk(Rank(from), Rank(to), |at, port| {
                        // Where all vertices are equivalent, links of one port carry equally much.
                        let at = if equivalent { 0 } else { at };
                        carried[self.links.leaving(at).start + port] += blocks;
                    });
                }
            }
            let over = |(link, &blocks): (usize, &u64)| {
                let (times, over) = capacities[self.links.kind_number(link)];
                blocks as f64 * f64::from(over) / f64::from(times)
            };
            carried.iter().enumerate().map(over).fold(0.0, f64::max)
        }))
    }

    /// A number that no other graph of this process has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    fn ranks_on_nodes(&self, ranks: &[u32]) -> Vec<u32> {
        assert!(ranks.is_empty() || ranks.len() == self.nodes as usize, "ranks of other nodes");
        if ranks.is_empty() { vec![1; self.nodes as usize] } else { ranks.to_vec() }
    }

    /// The route over some links from a node, in order.
    ///
    /// # Errors
    /// The first link that does not leave the vertex that the one before leads to.
    pub fn route_over(&self, from: Rank, links: &[LinkId]) -> Result<Route, LinkId> {
        let (mut at, mut route) = (from.0, RouteBuilder::default());
        for &link in links {
            let place = usize::try_from(link.0).ok().filter(|place| *place < self.links.count());
            let place = place.filter(|place| self.links.leaving(at).contains(place)).ok_or(link)?;
            route.push(self, self.segment(at, place - self.links.leaving(at).start));
            at = self.links.to(place);
        }
        Ok(route.done())
    }

    /// Appends the links of the machine's own route between two nodes.
    pub fn own_links(&self, from: Rank, to: Rank, links: &mut Vec<LinkId>) {
        let link = |at, port| LinkId((self.links.leaving(at).start + port) as u64);
        self.walk(from, to, |at, port| links.push(link(at, port)));
    }

    /// Calls `visit` with the vertex and port of every link of the route between two nodes.
    fn walk(&self, from: Rank, to: Rank, mut visit: impl FnMut(u32, usize)) {
        let mut at = from.0;
        while at != to.0 {
            let port = self.routes.next(&self.links, at, from.0, to.0);
            visit(at, port);
            at = self.links.to(self.links.leaving(at).start + port);
        }
    }

    /// The link of one hop of a segment.
    fn step(&self, at: u32, segment: Segment) -> Option<usize> {
        let mut leaving = self.links.leaving(at);
        if self.lattice.is_none() {
            return Some(leaving.start + segment.dimension as usize)
                .filter(|link| segment.hops == 1 && leaving.contains(link));
        }
        leaving.find(|&link| {
            let kind = self.links.kind(link);
            kind.class == segment.dimension && kind.direction == segment.hops.signum()
        })
    }

    /// The segment of the link at a port of a vertex.
    pub(crate) fn segment(&self, at: u32, port: usize) -> Segment {
        if self.lattice.is_none() {
            return Segment { dimension: port as u32, hops: 1 };
        }
        let kind = self.links.kind(self.links.leaving(at).start + port);
        Segment { dimension: kind.class, hops: kind.direction }
    }
}

impl Topology for Graph {
    fn ranks(&self) -> u32 {
        self.nodes
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Graph(self)
    }

    fn logical(&self) -> Option<&Arc<dyn Topology>> {
        self.lattice.as_ref()?.logical()
    }

    fn short_form(&self) -> String {
        self.form.clone()
    }

    fn link_classes(&self) -> Vec<String> {
        self.classes.clone()
    }

    fn links(&self) -> u64 {
        self.links.count() as u64
    }

    fn link_numbers(&self) -> u64 {
        self.links()
    }

    fn link_kinds(&self) -> &[LinkKind] {
        self.links.kinds()
    }

    fn most_links_out(&self) -> u64 {
        (0..self.nodes).map(|node| self.links.leaving(node).len() as u64).max().unwrap_or(0)
    }

    fn link(&self, LinkId(number): LinkId) -> Option<Link> {
        let link = usize::try_from(number).ok().filter(|&link| link < self.links.count())?;
        let LinkKind { class, direction, .. } = *self.links.kind(link);
        let (from, to) = (self.links.from(link), self.links.to(link));
        Some(Link { from, to, class, direction })
    }

    fn link_kind(&self, LinkId(number): LinkId) -> usize {
        self.links.kind_number(number as usize)
    }

    fn vertex_name(&self, vertex: u32) -> String {
        let listed = || self.names.get(vertex as usize).cloned();
        let named = match &self.lattice {
            Some(lattice) => Some(lattice.place_name(vertex)),
            None => listed().or_else(|| self.routes.vertex_name(vertex)),
        };
        named.unwrap_or_else(|| match vertex.checked_sub(self.nodes) {
            None => vertex.to_string(),
            Some(switch) => format!("switch {switch}"),
        })
    }

    fn link_name(&self, link: LinkId) -> String {
        let Some(Link { from, to, class, direction, .. }) = self.link(link) else {
            return format!("link {link}");
        };
        if self.lattice.is_some() {
            let sign = if direction > 0 { '+' } else { '-' };
            return format!("{}{sign}{class}", self.vertex_name(from));
        }
        let parallel: Vec<_> = self.leaving(from).filter(|(_, other)| *other == to).collect();
        let ends = format!("{} -> {}", self.vertex_name(from), self.vertex_name(to));
        match parallel.iter().position(|(other, _)| *other == link) {
            Some(place) if parallel.len() > 1 => format!("{ends} #{place}"),
            _ => ends,
        }
    }

    fn route(&self, from: Rank, to: Rank, out: &mut Route) {
        if let Some(OnGrid { grid, nodes, .. }) = self.on_grid() {
            let [from, to] = [from, to].map(|node| Rank(nodes[node.index()]));
            return grid.route(from, to, out);
        }
        let mut route = RouteBuilder { route: std::mem::take(out), last: Segment::default() };
        route.route.clear();
        self.walk(from, to, |at, port| route.push(self, self.segment(at, port)));
        *out = route.done();
    }

    /// A segment is valid if all its links exist and it has at most as many hops as there are
    /// vertices.
    fn follow(&self, from: Rank, route: &Route) -> Result<u32, Segment> {
        let mut at = from.0;
        for &segment in route.segments() {
            if segment.hops.unsigned_abs() > u64::from(self.vertices()) {
                return Err(segment);
            }
            for _ in 0..segment.hops.unsigned_abs() {
                at = self.links.to(self.step(at, segment).ok_or(segment)?);
            }
        }
        Ok(at)
    }

    fn for_each_link(&self, from: Rank, route: &Route, visit: &mut dyn FnMut(LinkId)) {
        let mut at = from.0;
        for &segment in route.segments() {
            for _ in 0..segment.hops.unsigned_abs() {
                let link = self.step(at, segment).expect("bug: a route over a missing link");
                visit(LinkId(link as u64));
                at = self.links.to(link);
            }
        }
    }
}

/// A route, hop by hop; hops of a lattice in one direction form one segment.
#[derive(Default)]
struct RouteBuilder {
    route: Route,
    last: Segment,
}

impl RouteBuilder {
    fn push(&mut self, graph: &Graph, hop: Segment) {
        let Self { route, last } = self;
        if graph.lattice.is_some()
            && (last.dimension, last.hops.signum()) == (hop.dimension, hop.hops)
        {
            last.hops += hop.hops;
            return;
        }
        route.push(last.dimension, last.hops);
        *last = hop;
    }

    fn done(mut self) -> Route {
        self.route.push(self.last.dimension, self.last.hops);
        self.route
    }
}
