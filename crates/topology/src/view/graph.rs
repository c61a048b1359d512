//! A graph's nodes and links as those of another graph, or of a grid.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::coordinates::{self, End};
use super::order::{Hops, labels, scattered};
use crate::{
    Graph, LinkId, LinkKind, ListedGraph, Machine, PerClass, Rank, Route, Segment, Shape, Topology,
};

/// A graph that is seen as another, with the same links or fewer.
#[derive(Debug)]
pub(crate) struct GraphView {
    shown: Arc<dyn Topology>,
    words: [Option<String>; 2],
    /// By node shown, the node that it is, and back.
    to_machine: Vec<u32>,
    in_view: Vec<u32>,
    /// By link shown, its segment on the machine.
    segments: Vec<Segment>,
    /// Whether hops in one direction are one segment.
    joins: bool,
    /// Whether the machine's own routes are those shown.
    has_own_routes: bool,
    /// Whether links shown are of the kinds of the graph.
    has_own_kinds: bool,
    /// The graph.
    number: u64,
}

/// Views in their order.
type Listed = Vec<Arc<GraphView>>;

/// The most nodes and links of a graph whose nodes are put in order.
const MOST_NODES: u32 = 128;
const MOST_LINKS: u64 = 1 << 15;

/// How much slower links are than half of all, that a graph is seen without.
const SLOW: f64 = 10.0;

impl GraphView {
    /// The view of a graph without some kinds of links, and of a name.
    ///
    /// # Errors
    /// The place of the word that is refused, and the rule that it breaks.
    pub(super) fn of(
        topology: &dyn Topology,
        [without, seen]: [Option<&str>; 2],
    ) -> Result<Arc<Self>, (usize, String)> {
        let place = usize::from(without.is_none());
        let Shape::Graph(graph) = topology.shape() else {
            return Err((place, "for a graph".to_owned()));
        };
        let kinds = graph.link_kinds().len();
        let number = |text: &str| text.parse().ok().filter(|kind: &usize| *kind < kinds);
        let without: Option<Vec<_>> =
            without.map_or(Some(Vec::new()), |without| without.split(':').map(number).collect());
        let rule = || (0, format!("kinds of links from 0 to {}, such as 0:2", kinds - 1));
        let views = graph.views(without.ok_or_else(rule)?);
        if let (true, 0) = (views.is_empty(), place) {
            return Err((0, "for a graph that stays connected".to_owned()));
        }
        let view = views.iter().find(|view| view.words[1].as_deref() == seen);
        view.cloned().ok_or_else(|| {
            let known: Vec<_> = views.iter().filter_map(|view| view.words[1].as_deref()).collect();
            (1, if known.is_empty() { "for this graph".to_owned() } else { known.join(" or ") })
        })
    }

    /// The views of a graph, with all its links and without those of the slowest bandwidths.
    pub(super) fn all(machine: &Machine) -> Vec<Arc<Self>> {
        let Shape::Graph(graph) = machine.topology.shape() else { return Vec::new() };
        let mut views = graph.views(Vec::new()).as_ref().clone();
        for without in slow(machine, graph) {
            views.extend(graph.views(without).iter().cloned());
        }
        views
    }

    pub(super) fn words(&self) -> [Option<String>; 2] {
        self.words.clone()
    }

    pub(super) fn shown(&self) -> &dyn Topology {
        &*self.shown
    }

    pub(super) fn on_machine(&self, rank: Rank) -> Rank {
        Rank(self.to_machine[rank.index()])
    }

    pub(super) fn in_view(&self, rank: Rank) -> Rank {
        Rank(self.in_view[rank.index()])
    }

    /// As [`View::route`](super::View::route).
    pub(super) fn route(&self, from: Rank, to: Rank, route: &Route, out: &mut Route) {
        out.clear();
        let mut own = Route::default();
        let route = if route.is_empty() {
            if self.has_own_routes {
                return;
            }
            self.shown.route(from, to, &mut own);
            &own
        } else {
            route
        };
        let mut last = Segment::default();
        self.shown.for_each_link(from, route, &mut |link| {
            let segment = self.segments[link.0 as usize];
            if self.joins
                && (last.dimension, last.hops.signum()) == (segment.dimension, segment.hops)
            {
                last.hops += segment.hops;
            } else {
                out.push(last.dimension, last.hops);
                last = segment;
            }
        });
        out.push(last.dimension, last.hops);
    }

    /// The machine with the topology that is shown, whose links have the least values of all unless they are of
    /// the graph's kinds.
    pub(super) fn machine(&self, machine: &Machine) -> Machine {
        let mut other = machine.clone();
        if !self.has_own_kinds {
            let timing = &mut other.timing;
            for values in [&mut timing.startup, &mut timing.per_byte, &mut timing.per_hop] {
                *values = PerClass::uniform(values.least());
            }
        }
        other.topology = Arc::clone(&self.shown);
        other
    }

    /// The same if the machine is of this graph, and no link has other values there.
    pub(super) fn on(&self, machine: &Machine) -> Option<Machine> {
        let Shape::Graph(graph) = machine.topology.shape() else { return None };
        let mut other = self.machine(machine);
        if !self.has_own_kinds {
            let [kind] = graph.link_kinds() else { return None };
            let (class, timing) = (kind.class as usize, &machine.timing);
            let per_byte = timing.per_byte.of(class);
            if kind.capacity.relative(per_byte) != (1, 1) {
                return None;
            }
            other.timing.startup = PerClass::uniform(timing.startup.of(class));
            other.timing.per_byte = PerClass::uniform(per_byte);
            let latency = kind.latency.unwrap_or(timing.per_hop.of(class));
            other.timing.per_hop = PerClass::uniform(latency);
        }
        (graph.number() == self.number).then_some(other)
    }
}

/// The kinds of links that are slower than a tenth of half of all links: those of the lowest bandwidth, of the
/// two lowest, and so on.
fn slow(machine: &Machine, graph: &Graph) -> Vec<Vec<usize>> {
    let seconds = |kind: &LinkKind| {
        let own = machine.timing.per_byte.of(kind.class as usize);
        kind.capacity.seconds_per_byte(own)
    };
    let kinds: Vec<f64> = graph.link_kinds().iter().map(seconds).collect();
    let mut all: Vec<f64> =
        (0..graph.links()).map(|link| kinds[graph.link_kind(LinkId(link))]).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let middle = all.len() / 2;
    let median = *all.select_nth_unstable_by(middle, f64::total_cmp).1;
    let mut slow: Vec<f64> = kinds.iter().copied().filter(|&own| own > SLOW * median).collect();
    slow.sort_by(|a, b| b.total_cmp(a));
    slow.dedup();
    let from = |&least: &f64| (0..kinds.len()).filter(|&kind| kinds[kind] >= least).collect();
    slow.iter().map(from).collect()
}

impl Graph {
    /// The views without some kinds of links; none if nodes cannot reach each other.
    fn views(&self, without: Vec<usize>) -> Arc<Listed> {
        let known = || self.views.lock().unwrap_or_else(PoisonError::into_inner);
        let views = known().get(&without).cloned();
        let views = views.unwrap_or_else(|| {
            let new: Listed = Views::new(self, &without).all().into_iter().map(Arc::new).collect();
            known().entry(without).or_insert(Arc::new(new)).clone()
        });
        views.downcast().expect("bug: other than views")
    }
}

/// What views of a graph are made from.
struct Views<'g> {
    graph: &'g Graph,
    without: Option<String>,
    /// Those that are seen: from, to, the place of the kind by its key, and the number.
    links: Vec<(u32, u32, usize, usize)>,
}

impl<'g> Views<'g> {
    fn new(graph: &'g Graph, without: &[usize]) -> Self {
        let kinds = graph.link_kinds();
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        order.sort_by_key(|&kind| kinds[kind].key());
        let mut places = vec![0; kinds.len()];
        (0..).zip(order).for_each(|(place, kind)| places[kind] = place);
        let leaving = |from: u32| graph.links.leaving(from).map(move |link| (from, link));
        let mut links = Vec::new();
        for (from, link) in (0..graph.vertices()).flat_map(leaving) {
            let kind = graph.links.kind_number(link);
            if !without.contains(&kind) {
                links.push((from, graph.links.to(link), places[kind], link));
            }
        }
        let names: Vec<String> = without.iter().map(usize::to_string).collect();
        let without = (!names.is_empty()).then(|| names.join(":"));
        Self { graph, without, links }
    }

    fn all(&self) -> Vec<GraphView> {
        let nodes = self.graph.nodes;
        let mut views: Vec<GraphView> = Vec::new();
        let own: Vec<u32> = (0..self.graph.vertices()).collect();
        let listed = match &self.without {
            None => None,
            // Not a way between all nodes.
            Some(_) => match self.listed(None, &own) {
                None => return views,
                listed => listed,
            },
        };
        let grids = coordinates::found(&self.ends());
        for (shown, to_machine) in &grids {
            let name = shown.short_form();
            views.extend(self.view(Some(name), Arc::clone(shown), to_machine.clone()));
        }
        views.extend(listed);
        if nodes > MOST_NODES || self.graph.links() > MOST_LINKS {
            return views;
        }
        let links: Vec<_> =
            self.links.iter().map(|&(from, to, kind, _)| (from, to, kind)).collect();
        let labels = labels(nodes, self.graph.vertices(), &links);
        let mut orders: Vec<(&str, Vec<u32>)> = Vec::new();
        match &grids[..] {
            [(_, to_machine), ..] => orders.push(("coordinates", to_machine.clone())),
            [] => {
                let hops = Hops::new(self.hops());
                let near = hops.near(&labels);
                orders.extend(hops.dealt(&near).map(|dealt| ("dealt", dealt)));
                orders.push(("near", near));
                orders.push(("scattered-1", scattered(nodes, &labels, 1)));
                orders.push(("scattered-2", scattered(nodes, &labels, 2)));
            }
        }
        for (name, mut order) in orders {
            let mut switches: Vec<u32> = (nodes..self.graph.vertices()).collect();
            switches.sort_unstable_by_key(|&switch| labels[switch as usize]);
            order.extend(switches);
            views.extend(self.listed(Some(name), &order));
        }
        views
    }

    /// By node, the nodes next to it, ascending; none where links lead to switches.
    fn ends(&self) -> Vec<Vec<End>> {
        if self.graph.vertices() > self.graph.nodes {
            return Vec::new();
        }
        let mut links: Vec<_> =
            self.links.iter().map(|&(from, node, kind, _)| (from, node, kind)).collect();
        links.sort_unstable();
        let mut ends: Vec<Vec<End>> = (0..self.graph.nodes).map(|_| Vec::new()).collect();
        for parallel in links.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (from, node, kind) = parallel[0];
            ends[from as usize].push(End { node, kind, links: parallel.len() });
        }
        ends
    }

    /// By node, the links to each node over the shortest way.
    fn hops(&self) -> Vec<Vec<u32>> {
        let mut next = vec![Vec::new(); self.graph.vertices() as usize];
        self.links.iter().for_each(|&(from, to, ..)| next[from as usize].push(to));
        let from = |node: u32| {
            let mut hops = vec![u32::MAX; next.len()];
            hops[node as usize] = 0;
            let mut open = std::collections::VecDeque::from([node]);
            while let Some(at) = open.pop_front() {
                for &to in &next[at as usize] {
                    if hops[to as usize] == u32::MAX {
                        hops[to as usize] = hops[at as usize] + 1;
                        open.push_back(to);
                    }
                }
            }
            hops.truncate(self.graph.nodes as usize);
            hops
        };
        (0..self.graph.nodes).map(from).collect()
    }

    /// The view as a graph whose vertices are these, if every node reaches all others.
    fn listed(&self, name: Option<&str>, order: &[u32]) -> Option<GraphView> {
        let mut place = vec![0; order.len()];
        (0..).zip(order).for_each(|(new, &vertex)| place[vertex as usize] = new);
        let mut links: Vec<_> = (self.links.iter())
            .map(|&(from, to, kind, link)| (place[from as usize], place[to as usize], kind, link))
            .collect();
        links.sort_unstable();
        let Graph { nodes, classes, .. } = self.graph;
        let listed = ListedGraph {
            form: self.graph.form.clone(),
            nodes: *nodes,
            switches: order.len() as u32 - nodes,
            names: order.iter().map(|&vertex| self.graph.vertex_name(vertex)).collect(),
            classes: classes.clone(),
            links: (links.iter())
                .map(|&(from, to, _, link)| (from, to, *self.graph.links.kind(link)))
                .collect(),
        };
        let shown = Arc::new(listed.with_shortest_routes().ok()?);
        let segments = links.iter().map(|&(.., link)| self.segment(link)).collect();
        let to_machine = order[..*nodes as usize].to_vec();
        let alone = self.without.is_none() && self.graph.routes.follow_links();
        Some(GraphView {
            has_own_routes: alone && shown.routes.follow_links(),
            has_own_kinds: true,
            ..self.with(name.map(str::to_owned), shown, to_machine, segments)
        })
    }

    /// The view as a topology whose nodes are these, and whose links are those between them.
    fn view(
        &self,
        name: Option<String>,
        shown: Arc<dyn Topology>,
        to_machine: Vec<u32>,
    ) -> Option<GraphView> {
        let mut between: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
        for &(from, to, _, link) in &self.links {
            between.entry((from, to)).or_default().push(link);
        }
        let node = |rank: u32| to_machine[rank as usize];
        let segment = |number: u64| match shown.link(LinkId(number)) {
            None => Some(Segment::default()),
            Some(link) => {
                let parallel = between.get_mut(&(node(link.from), node(link.to)))?;
                Some(self.segment(parallel.pop()?))
            }
        };
        let segments = (0..shown.link_numbers()).map(segment).collect::<Option<_>>()?;
        Some(self.with(name, shown, to_machine, segments))
    }

    fn with(
        &self,
        name: Option<String>,
        shown: Arc<dyn Topology>,
        to_machine: Vec<u32>,
        segments: Vec<Segment>,
    ) -> GraphView {
        let mut in_view = vec![0; to_machine.len()];
        (0..).zip(&to_machine).for_each(|(rank, &node)| in_view[node as usize] = rank);
        GraphView {
            shown,
            words: [self.without.clone(), name],
            to_machine,
            in_view,
            segments,
            joins: self.graph.lattice.is_some(),
            has_own_routes: false,
            has_own_kinds: false,
            number: self.graph.number(),
        }
    }

    fn segment(&self, link: usize) -> Segment {
        let from = self.graph.links.from(link);
        self.graph.segment(from, link - self.graph.links.leaving(from).start)
    }
}
