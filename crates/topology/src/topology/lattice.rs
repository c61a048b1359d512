//! Twisted tori, grids with failed nodes or links, and grids on other grids.

mod fault;
mod first_links;
pub(crate) mod placed;

use std::sync::Arc;

use super::graph::{Graph, LinkKind, Links, ListedLinks, Routes};
use crate::number::{number, sides, whole};
use crate::{Grid, MixedRadix, Rank, Topology, TopologyError};

pub use fault::{Failure, Fault};
use first_links::FirstLinks;

/// No node.
const NONE: u32 = u32::MAX;

/// The most nodes of a twisted torus, and of a machine with faults.
const MOST_TWISTED: u32 = 1 << 20;
const MOST_FAULTY: u32 = 1 << 12;

/// The grid from which a [`Graph`] is made: a twisted torus, or a grid with failed nodes or links.
///
/// Around a twisted side a message arrives shifted along the longest sides (Camara et al. 2010).
/// Places are those of the grid, numbered as on the grid. Nodes are the places that are present, in
/// that order. A broken link fails in both directions, and the links of an absent node are absent
/// too. There is no link from a node to itself.
///
/// Routes are shortest. Among shortest routes each hop takes the lowest dimension, and + before -.
/// Without twists and faults these are the routes of the grid.
#[derive(Debug)]
pub struct Lattice {
    radix: MixedRadix,
    wrap: Vec<bool>,
    /// Ascending, each once.
    faults: Vec<Fault>,
    /// The same, with lines and optical switches by their names.
    failures: Vec<Failure>,
    /// By node.
    places: Vec<u32>,
    /// The grid that algorithms see, if its ranks are the nodes.
    logical: Option<Arc<dyn Topology>>,
}

impl Graph {
    /// The torus on which one turn around side u adds `shifts[u]` along each of the longest sides.
    ///
    /// # Errors
    /// As [`MixedRadix::twisted`], or more than 2^20 nodes.
    ///
    /// # Panics
    /// `sides` and `shifts` differ in length.
    pub fn twisted_torus(sides: &[u32], shifts: &[u32]) -> Result<Self, TopologyError> {
        let radix = MixedRadix::twisted(sides, shifts)?;
        check_nodes(&radix, "a twisted torus", MOST_TWISTED)?;
        of_places(radix, vec![true; sides.len()], Vec::new())
    }

    /// The grid with these faults.
    ///
    /// # Errors
    /// All nodes absent, some unreachable from the others, or more than 4,096 nodes.
    ///
    /// # Panics
    /// A fault of a node or link that the grid does not have.
    pub fn of_grid(grid: &Grid, faults: &[Fault]) -> Result<Self, TopologyError> {
        of_places(grid.radix().clone(), grid.wrap().to_vec(), faults.to_vec())
    }
}

impl Lattice {
    /// This grid with these faults added.
    ///
    /// # Errors
    /// As [`Graph::of_grid`].
    ///
    /// # Panics
    /// A fault of a node or link that it does not have.
    pub fn without(&self, faults: &[Fault]) -> Result<Graph, TopologyError> {
        let faults = [&self.faults, faults].concat();
        of_places(self.radix.clone(), self.wrap.clone(), faults)
    }

    /// The numbering of places by coordinates.
    #[must_use]
    pub fn radix(&self) -> &MixedRadix {
        &self.radix
    }

    /// Which sides wrap, dimension 0 first.
    #[must_use]
    pub fn wrap(&self) -> &[bool] {
        &self.wrap
    }

    /// The place of a node, as the rank of the grid that has it.
    #[must_use]
    pub fn place(&self, node: Rank) -> Rank {
        Rank(self.places[node.index()])
    }

    /// The coordinates of a node, such as `(0,1)`.
    pub(crate) fn place_name(&self, node: u32) -> String {
        self.radix.name(self.place(Rank(node)))
    }

    /// What has failed: nodes, links, lines, optical switches.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The nodes and links of all failures, ascending, each once.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether it has no faults, all sides wrap and nodes are numbered as places. Then every translation keeps
    /// its links.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failures.is_empty() && self.logical.is_none() && self.wrap.iter().all(|&wraps| wraps)
    }

    /// The grid that algorithms see, if it is [placed](Graph::placed) on this one.
    pub(crate) fn logical(&self) -> Option<&Arc<dyn Topology>> {
        self.logical.as_ref()
    }

    /// The grid or twisted torus without faults.
    #[must_use]
    pub fn unbroken(&self) -> Arc<dyn Topology> {
        let sides = self.radix.sides();
        match self.radix.shifts() {
            [] => Arc::new(Grid::new(sides, &self.wrap).expect("bug: a lattice without a grid")),
            shifts => Arc::new(
                Graph::twisted_torus(sides, shifts).expect("bug: a lattice without a torus"),
            ),
        }
    }

    /// The same without one of its failures.
    ///
    /// # Errors
    /// The rest cuts the machine, as where a node is present again whose links have all failed.
    pub fn repaired(&self, failure: &Failure) -> Result<Arc<dyn Topology>, TopologyError> {
        let others = self.failures.iter().filter(|other| *other != failure);
        let others: Vec<Fault> = others.flat_map(Failure::faults).copied().collect();
        if others.is_empty() {
            return Ok(self.unbroken());
        }
        Ok(Arc::new(of_places(self.radix.clone(), self.wrap.clone(), others)?))
    }

    /// The links between nodes, given by place the node there.
    fn links(&self, node_at: &[u32]) -> Links {
        let Self { radix, wrap, faults, places, .. } = self;
        let directions = 2 * radix.dimensions();
        let mut listed = ListedLinks::new(places.len(), places.len() * directions);
        for &place in places {
            for outgoing in 0..directions {
                let to = fault::beyond(radix, wrap, place, outgoing)
                    .map_or(NONE, |to| node_at[to as usize]);
                if to != NONE && faults.binary_search(&Fault::link(radix, place, outgoing)).is_err()
                {
                    let direction = if outgoing % 2 == 0 { 1 } else { -1 };
                    let kind = LinkKind { direction, ..LinkKind::of_class((outgoing / 2) as u32) };
                    listed.link(to, kind);
                }
            }
            listed.next_vertex();
        }
        listed.done()
    }

    /// The graph of these links.
    fn graph(self, form: String, links: Links, routes: Box<dyn Routes>) -> Graph {
        let classes = (0..self.radix.dimensions()).map(|u| format!("dimension {u}")).collect();
        let nodes = links.vertices();
        Graph { lattice: Some(self), ..Graph::new(form, nodes, classes, links, routes) }
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
        let failures = self.failures.iter().map(|failure| format!("/{}", failure.name()));
        base + &failures.collect::<String>()
    }
}

/// Refuses a lattice with too many nodes to keep all links and routes.
fn check_nodes(radix: &MixedRadix, what: &str, most: u32) -> Result<(), TopologyError> {
    match radix.ranks() {
        nodes if nodes > most => Err(format!("{nodes} nodes: {what} has at most {most}").into()),
        _ => Ok(()),
    }
}

fn of_places(
    radix: MixedRadix,
    wrap: Vec<bool>,
    mut faults: Vec<Fault>,
) -> Result<Graph, TopologyError> {
    // Without faults and ends, translations map all nodes onto each other: routes to one suffice.
    let whole = faults.is_empty() && wrap.iter().all(|&wraps| wraps);
    if !whole {
        check_nodes(&radix, "a machine with failed nodes or links", MOST_FAULTY)?;
    }
    faults.sort_unstable();
    faults.dedup();
    let mut node_at = vec![0; radix.ranks() as usize];
    for fault in &faults {
        if let Fault::Absent { node } = *fault {
            node_at[node as usize] = NONE;
        }
    }
    let present = |place: &u32| node_at[*place as usize] != NONE;
    let places: Vec<u32> = (0..radix.ranks()).filter(present).collect();
    if places.is_empty() {
        let rule = "a machine has at least one node";
        return Err(format!("all {} nodes are absent: {rule}", radix.ranks()).into());
    }
    for (node, &place) in (0..).zip(&places) {
        node_at[place as usize] = node;
    }
    let failures = Failure::all(&faults, &radix, &wrap);
    let lattice = Lattice { radix, wrap, faults, failures, places, logical: None };
    let links = lattice.links(&node_at);
    let Lattice { radix, wrap, failures, places, .. } = &lattice;
    fault::check_connected(radix, wrap, (places, &links), failures)?;
    let translations = whole.then(|| radix.clone());
    let routes = FirstLinks::new(&links, translations.as_ref());
    let form = lattice.short_form();
    Ok(Graph { translations, ..lattice.graph(form, links, Box::new(routes)) })
}

/// Reads sides separated by `x`. A side of `4+2` shifts by 2. A side without a shift that is
/// shorter than the longest shifts by its own length.
pub(crate) fn twisted_torus(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let read = sides(rest, |name, side| match side.split_once('+') {
        Some((side, shift)) => {
            let shift = whole(&format!("shift of {name}"), shift, 0)?;
            Ok((number(name, side)?, Some(shift)))
        }
        None => Ok((number(name, side)?, None)),
    })?;
    let (sides, shifts): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    let longest = sides.iter().copied().max().expect("split gives a part");
    if sides.iter().all(|&side| side == longest) {
        return Err(format!("all sides have length {longest}: only shorter sides can be twisted"));
    }
    let own = |&side: &u32| if side == longest { 0 } else { side };
    let shifts: Vec<u32> =
        shifts.iter().zip(&sides).map(|(shift, side)| shift.unwrap_or_else(|| own(side))).collect();
    Ok(Arc::new(Graph::twisted_torus(&sides, &shifts)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse_short_form;
    use crate::{LinkId, Route, Segment, Shape};

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
            let lattice = Graph::of_grid(&grid, &[]).unwrap();
            assert_eq!(routes(&lattice), routes(&grid), "{sides:?}");
            assert_eq!((lattice.links(), lattice.short_form()), (grid.links(), grid.short_form()));
            assert_eq!(lattice.link_classes(), grid.link_classes());
            // In the same order, without the numbers that a grid leaves out.
            let numbered = |topology: &dyn Topology| {
                let numbers = (0..=topology.link_numbers()).map(LinkId);
                let links = numbers.filter_map(|number| topology.link(number));
                links.map(|l| (l.from, l.to, l.class, l.direction)).collect::<Vec<_>>()
            };
            assert_eq!(numbered(&lattice), numbered(&grid));
        }
    }

    #[test]
    fn routes_avoid_failed_nodes_and_links() {
        let machine = parse_short_form("torus:4x4/1,1/0,0+0/2,3+1").unwrap();
        let Shape::Graph(lattice) = machine.shape() else { panic!("a lattice") };
        assert_eq!((lattice.ranks(), lattice.links()), (15, 2 * (32 - 4 - 2)));
        assert_eq!(
            (lattice.lattice().unwrap().place(Rank(5)), lattice.fewest_links()),
            (Rank(6), 2)
        );
        for (i, route) in routes(lattice).iter().enumerate() {
            let (from, to) = (Rank(i as u32 / 15), Rank(i as u32 % 15));
            assert_eq!(lattice.follow(from, route), Ok(to.0));
            assert_eq!(route.hops(), u64::from(lattice.distance(from, to)));
            assert!(lattice.distance(from, to) <= lattice.diameter());
            lattice.for_each_link(from, route, &mut |link| {
                let link = lattice.link(link).unwrap();
                let back = lattice.neighbour(Rank(link.to), link.class as usize, -link.direction);
                assert_eq!(back, Some(Rank(link.from)));
            });
        }
    }

    #[test]
    fn routes_off_the_lattice_are_found() {
        let torus = Graph::twisted_torus(&[2, 4], &[2, 0]).unwrap();
        let follow = |dimension, hops| torus.follow(Rank(0), &Route::straight(dimension, hops));
        assert_eq!((follow(1, 8), follow(1, -8), follow(0, 4)), (Ok(0), Ok(0), Ok(0)));
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

    /// The links of a line and of an optical switch, listed one by one.
    #[test]
    fn lines_and_optical_switches_are_named_where_all_of_their_links_failed() {
        let switch: String = [3, 7]
            .into_iter()
            .flat_map(|x| [1, 5].map(|y| [2, 6].map(|z| format!("/{x},{y},{z}+0"))).concat())
            .collect();
        for (listed, named) in [
            ("torus:4x4/0,1+1/0,0+1/0,2+1/0,3+1", "torus:4x4/line:0,0+1"),
            ("torus:4x4/line:2,3+0", "torus:4x4/line:0,3+0"),
            ("torus:4x4/0,1+1/0,0+1/0,2+1", "torus:4x4/0,0+1/0,1+1/0,2+1"),
            ("mesh:4x4/0,2/1,2+1/line:3,3+1", "mesh:4x4/0,2/1,2+1/line:3,0+1"),
            ("grid:3x2~/line:2,1+1", "grid:3x2~/line:2,0+1"),
            // Of a single link.
            ("mesh:2x4/line:1,3+0", "mesh:2x4/0,3+0"),
            ("torus:4x4x4/optical-switch:0,1,2+0", "torus:4x4x4/3,1,2+0"),
            ("mesh:8x4x4/optical-switch:6,1,2+0", "mesh:8x4x4/3,1,2+0"),
            ("torus:8x8x8/optical-switch:6,5,2+0", "torus:8x8x8/optical-switch:0,1,2+0"),
            ("torus:8x4x4/optical-switch:2,0,1+1", "torus:8x4x4/optical-switch:2,0,1+1"),
            (&format!("torus:8x8x8{switch}"), "torus:8x8x8/optical-switch:0,1,2+0"),
            // A turn around the twisted side leads 2 along the other.
            ("twisted-torus:2x4/line:1,3+0", "twisted-torus:2x4/line:0,1+0"),
            // A switch of which two links belong to a line.
            (
                "torus:8x8x8/line:1,1,2+0/optical-switch:0,1,2+0",
                "torus:8x8x8/line:0,1,2+0/optical-switch:0,1,2+0",
            ),
        ] {
            let machine = parse_short_form(listed).unwrap();
            assert_eq!(machine.short_form(), named, "{listed}");
            let again = parse_short_form(named).unwrap();
            assert_eq!((again.short_form(), again.links()), (named.to_owned(), machine.links()));
        }
        let links = |text: &str| parse_short_form(text).unwrap().links();
        assert_eq!(links("torus:8x8x8/optical-switch:0,1,2+0"), 2 * (3 * 512 - 8));
        assert_eq!(links("torus:4x4x8/line:0,1,2+2"), 2 * (3 * 128 - 8));
        assert_eq!(links("twisted-torus:4x4x8/line:0,0,0+0"), 2 * (3 * 128 - 8));
        assert_eq!(
            links("torus:8x8x8/line:1,1,2+0/optical-switch:0,1,2+0"),
            2 * (3 * 512 - 8 - 8 + 2)
        );
    }

    #[test]
    fn failures_that_contain_each_other_and_words_without_links_are_refused() {
        for (text, told) in [
            ("torus:4x4/line:0,1+0/2,1+0", "`2,1+0` has failed already: `line:0,1+0` contains it"),
            (
                "torus:4x4/2,1+0/line:0,1+0",
                "`line:0,1+0` contains `2,1+0`, which has failed already",
            ),
            (
                "torus:4x4/line:0,1+0/line:3,1+0",
                "`line:3,1+0` has failed already: a line fails in both directions",
            ),
            (
                "torus:8x4x4/optical-switch:0,1,2+0/optical-switch:4,1,2+0",
                "`optical-switch:4,1,2+0` has failed already: an optical switch fails in both directions",
            ),
            (
                "torus:4x4x4/line:0,1,2+0/optical-switch:0,1,2+0",
                "`optical-switch:0,1,2+0` has failed already: `line:0,1,2+0` contains it",
            ),
            ("torus:4x4/line:0,1", "`line:0,1` is not a line: it is named as `line:0,0+0`"),
            ("torus:4x4/line:0,1-0", "`line:0,1-0` is not a line: it is named as `line:0,0+0`"),
            ("torus:4x4/line:0,1+2", "`line:0,1+2`: dimension 2: the last dimension is 1"),
            (
                "torus:4x4/line:0,4+0",
                "`line:0,4+0`: coordinate 4 along dimension 1: the side has length 4",
            ),
            ("torus:1x4/line:0,1+0", "`line:0,1+0`: a line without a link"),
            (
                "torus:4x4/cable:0,1+0",
                "`cable:0,1+0` is not a failure: several links fail together as `line:0,0+0` or `optical-switch:0,0+0`",
            ),
            (
                "torus:16x16/optical-switch:0,1+0",
                "`optical-switch:0,1+0`: optical switches join cubes of 4x4x4: three sides must be multiples of 4",
            ),
            (
                "torus:4x4x6/optical-switch:0,1,2+0",
                "`optical-switch:0,1,2+0`: optical switches join cubes of 4x4x4: three sides must be multiples of 4",
            ),
            (
                "mesh:4x4x8/optical-switch:0,1,2+0",
                "`optical-switch:0,1,2+0`: an optical switch without a link",
            ),
            (
                "torus:4x4/line:0,0+0/line:0,0+1",
                "not connected: node 0,0 cannot reach the other 15 nodes; failed between them: line:0,0+0 line:0,0+1",
            ),
        ] {
            let message = parse_short_form(text).unwrap_err().message;
            assert_eq!(message, format!("`{text}`: {told}"));
        }
    }

    #[test]
    fn a_repair_of_a_line_keeps_the_links_of_an_optical_switch_failed() {
        let machine =
            parse_short_form("torus:8x8x8/0,0,0/line:1,1,2+0/optical-switch:0,1,2+0").unwrap();
        let Shape::Graph(graph) = machine.shape() else { panic!("a lattice") };
        let lattice = graph.lattice().unwrap();
        let repaired = |failure: &Failure| lattice.repaired(failure).unwrap().short_form();
        let repaired: Vec<_> = lattice.failures().iter().map(repaired).collect();
        assert_eq!(
            repaired,
            [
                "torus:8x8x8/line:0,1,2+0/optical-switch:0,1,2+0",
                "torus:8x8x8/0,0,0/optical-switch:0,1,2+0",
                "torus:8x8x8/0,0,0/line:0,1,2+0",
            ]
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
}
