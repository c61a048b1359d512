//! Graphs from lists of links.

use super::shortest::Shortest;
use super::tree::Tree;
use super::{Capacity, Graph, LinkKind, ListedLinks, MOST_LINKS, MOST_NODES, Routes};
use crate::error::check_limit;
use crate::text::printable;
use crate::{MAX_DIMENSIONS, TopologyError};

/// The most vertices of a graph whose links are listed and are not those of a tree.
pub(crate) const MOST_VERTICES: u64 = 1 << 15;

/// The most pairs of a node and a vertex between which routes are kept.
const MOST_PAIRS: u64 = 1 << 27;

/// A network as a list of directed links.
#[derive(Clone, Debug, Default)]
pub struct ListedGraph {
    /// The short form that names it.
    pub form: String,
    /// Nodes, the first vertices.
    pub nodes: u32,
    /// The vertices after the nodes.
    pub switches: u32,
    /// The names of vertices in order, or none for numbers.
    pub names: Vec<String>,
    /// The names of the link classes.
    pub classes: Vec<String>,
    /// The vertices that each link leaves and enters, in any order, and its kind.
    pub links: Vec<(u32, u32, LinkKind)>,
}

impl ListedGraph {
    /// The graph whose routes have the fewest links. Where several links of a vertex lead nearer to
    /// the destination, c of them, a message takes number (source + destination) mod c, in the
    /// order of their numbers. A tree has at most 2^20 vertices, another graph 2^15, and 2^27 pairs of a node
    /// and a vertex.
    ///
    /// # Errors
    /// No nodes, a link of a vertex that is not there, to itself or without capacity, a node that
    /// cannot reach another, or too many vertices, links, classes or kinds of links.
    pub fn with_shortest_routes(mut self) -> Result<Graph, TopologyError> {
        let vertices = u64::from(self.nodes) + u64::from(self.switches);
        let links = self.links.len() as u64;
        check_limit("vertices", vertices, MOST_NODES)?;
        check_limit("links", links, MOST_LINKS)?;
        check_limit("link classes", self.classes.len() as u64, MAX_DIMENSIONS as u64)?;
        if self.nodes == 0 {
            return Err(TopologyError::no_nodes());
        }
        let refuse = |from, to, rule| -> Result<Graph, TopologyError> {
            Err(format!("link {from} -> {to}: {rule}").into())
        };
        // Stable: parallel links keep their order.
        self.links.sort_by_key(|&(from, ..)| from);
        let mut listed = ListedLinks::new(vertices as usize, self.links.len());
        let mut links = self.links.iter().peekable();
        for vertex in 0..vertices as u32 {
            while let Some(&(from, to, kind)) = links.next_if(|(from, ..)| *from == vertex) {
                let refuse = |rule| refuse(from, to, rule);
                if u64::from(to) >= vertices {
                    return refuse("every link joins two vertices of the graph");
                }
                if from == to {
                    return refuse("no link joins a vertex to itself");
                }
                let has_capacity = match kind.capacity {
                    Capacity::Relative { times, over } => times > 0 && over > 0,
                    Capacity::BytesPerSecond(bandwidth) => bandwidth > 0.0 && bandwidth.is_finite(),
                };
                if !has_capacity {
                    return refuse("every link has a capacity above 0");
                }
                if kind.class as usize >= self.classes.len() {
                    return refuse("every link has a class of the graph");
                }
                if !listed.link(to, kind) {
                    return refuse("at most 65,535 kinds of links, by class, capacity and latency");
                }
            }
            listed.next_vertex();
        }
        if let Some(&(from, to, _)) = links.next() {
            return refuse(from, to, "every link joins two vertices of the graph");
        }
        let links = listed.done();
        let name = |vertex: u32| match self.names.get(vertex as usize) {
            Some(name) => name.clone(),
            None => vertex.to_string(),
        };
        let routes: Box<dyn Routes> = match Tree::of(&links, self.nodes) {
            Some(tree) => Box::new(tree),
            None => {
                let pairs = u64::from(self.nodes) * vertices;
                check_limit("pairs of a node and a vertex", pairs, MOST_PAIRS)?;
                check_limit("vertices", vertices, MOST_VERTICES)?;
                let shortest = Shortest::new(&links, self.nodes).map_err(|(from, to)| {
                    let (from, to) = (name(from), name(to));
                    format!("not connected: node {from} cannot reach node {to}")
                })?;
                Box::new(shortest)
            }
        };
        Ok(Graph {
            names: self.names.iter().map(|name| printable(name)).collect(),
            ..Graph::new(
                self.form,
                self.nodes,
                self.classes.iter().map(|class| printable(class)).collect(),
                links,
                routes,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkId, Rank, Route, Topology};

    fn graph(nodes: u32, switches: u32, links: &[(u32, u32)]) -> Result<Graph, TopologyError> {
        let links = links.iter().map(|&(from, to)| (from, to, LinkKind::of_class(0))).collect();
        let (form, classes) = ("graph:test".to_owned(), vec!["link".to_owned()]);
        let listed = ListedGraph { form, nodes, switches, classes, links, ..Default::default() };
        listed.with_shortest_routes()
    }

    /// Two leaf switches 4 and 5 of two nodes each, two parallel links between them.
    fn tree() -> Graph {
        let down = [(4, 0), (4, 1), (5, 2), (5, 3)];
        let up = down.map(|(switch, node)| (node, switch));
        let across = [(4, 5), (4, 5), (5, 4), (5, 4)];
        graph(4, 2, &[&down[..], &up, &across].concat()).unwrap()
    }

    #[test]
    fn parallel_links_are_taken_by_source_plus_destination() {
        let tree = tree();
        let mut route = Route::default();
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
            tree.route(Rank(from), Rank(to), &mut route);
            assert_eq!(tree.follow(Rank(from), &route), Ok(to));
            assert_eq!(route.hops(), u64::from(tree.distance(Rank(from), Rank(to))));
            let mut names = Vec::new();
            tree.for_each_link(Rank(from), &route, &mut |link| names.push(tree.link_name(link)));
            if from / 2 != to / 2 {
                let (near, far) = (from / 2, to / 2);
                let across = format!("switch {near} -> switch {far} #{}", (from + to) % 2);
                let [up, middle, down] = &names[..] else { panic!("{names:?}") };
                assert_eq!(*middle, across);
                assert_eq!(*up, format!("{from} -> switch {near}"));
                assert_eq!(*down, format!("switch {far} -> {to}"));
            }
        }
        assert_eq!((tree.diameter(), tree.links(), tree.fewest_links()), (3, 12, 1));
        assert_eq!(tree.link(LinkId(12)), None);
    }

    #[test]
    fn graphs_that_are_wrong_are_refused() {
        let refused = |nodes, links: &[(u32, u32)]| graph(nodes, 1, links).unwrap_err().to_string();
        assert_eq!(
            refused(2, &[(0, 1), (1, 2), (2, 1)]),
            "not connected: node 1 cannot reach node 0"
        );
        assert_eq!(
            refused(2, &[(0, 1), (1, 0), (0, 0)]),
            "link 0 -> 0: no link joins a vertex to itself"
        );
        let rule = "every link joins two vertices of the graph";
        assert_eq!(refused(2, &[(0, 3)]), format!("link 0 -> 3: {rule}"));
        assert_eq!(refused(2, &[(3, 0)]), format!("link 3 -> 0: {rule}"));
        assert_eq!(
            refused(1 << 15, &[]),
            "1073774592 pairs of a node and a vertex: a machine has at most 134217728"
        );
    }
}
