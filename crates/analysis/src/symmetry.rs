use std::sync::Arc;

use topocoll_schedule::RankClasses;
use topocoll_topology::{
    Coordinates, Graph, MixedRadix, Orbits, Rank, Shape, Topology, Translation,
};

/// The translations that map both a rule and the machine's links onto themselves.
///
/// On a complete network every renaming of nodes keeps the links. On a grid these are the
/// translations along sides that wrap, on a graph those that it has. Where nodes hold equally many
/// ranks, they move whole nodes, or all ranks within their nodes; where not, there are none.
pub(crate) fn common(classes: &RankClasses, topology: &dyn Topology) -> RankClasses {
    match topology.shape() {
        Shape::Complete => classes.clone(),
        Shape::Grid(grid) => classes.along(grid.radix(), grid.wrap()).keeping_ties(grid),
        Shape::Graph(graph) => match graph.translations() {
            Some(radix) if classes.radix() == radix => classes.clone(),
            Some(radix) if !is_twisted(radix) => classes.along(radix, &all(radix)),
            _ => RankClasses::distinct(topology.ranks()),
        },
        Shape::Clustered(clusters) => {
            if clusters.equal_size().is_none() {
                return RankClasses::distinct(topology.ranks());
            }
            let (radix, (_, mut wrap)) = (numbering(topology), nodes(topology));
            wrap.push(true);
            let classes = classes.along(&radix, &wrap);
            match topology.network() {
                Shape::Grid(grid) => classes.keeping_ties(grid),
                _ => classes,
            }
        }
    }
}

/// Equivalent ranks of the messages on a machine.
#[derive(Clone)]
pub(crate) struct Equivalent {
    /// Classes of translations that map the messages, the links and the routes onto themselves.
    pub(crate) classes: RankClasses,
    /// The equivalent nodes and links of a graph, where classes are more than its numbering gives.
    pub(crate) orbits: Option<Arc<Orbits>>,
}

impl Equivalent {
    /// Of messages with these classes. `own_routes` tells whether all of them take the machine's own.
    pub(crate) fn of(
        classes: &RankClasses,
        topology: &dyn Topology,
        own_routes: impl FnOnce() -> bool,
    ) -> Self {
        match orbits(classes, topology) {
            Some((classes, orbits)) if orbits.keep_ports || own_routes() => {
                Self { classes, orbits: Some(orbits) }
            }
            _ => Self::by_numbering(classes, topology),
        }
    }

    /// No more than the numbering of the machine gives.
    pub(crate) fn by_numbering(classes: &RankClasses, topology: &dyn Topology) -> Self {
        Self { classes: common(classes, topology), orbits: None }
    }

    /// Of each rank alone.
    pub(crate) fn every(topology: &dyn Topology) -> Self {
        Self::by_numbering(&RankClasses::distinct(topology.ranks()), topology)
    }
}

/// Classes of equivalent nodes.
pub(crate) enum NodeClasses {
    /// Those of translations, and the ranks of a class on each node where links are counted.
    Translations(RankClasses, u32),
    /// The orbits of nodes, and the number of translations.
    Orbits(Arc<Orbits>, u32),
}

impl NodeClasses {
    /// The classes that those of ranks give.
    pub(crate) fn new(ranks: &Equivalent, topology: &dyn Topology) -> Self {
        match &ranks.orbits {
            Some(orbits) => Self::Orbits(orbits.clone(), topology.ranks() / ranks.classes.count()),
            None => {
                let (nodes, of_class) = of_nodes(&ranks.classes, topology);
                Self::Translations(nodes, of_class)
            }
        }
    }

    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::Translations(classes, _) => classes.count(),
            Self::Orbits(orbits, _) => orbits.nodes.classes.len() as u32,
        }
    }

    /// The class of a node, and how many equivalents of one of its ranks are on it.
    pub(crate) fn of(&self, node: u32) -> (usize, u32) {
        match self {
            Self::Translations(classes, of_class) => {
                (classes.class_of(Rank(node)) as usize, *of_class)
            }
            Self::Orbits(orbits, translations) => {
                let class = orbits.nodes.class_of(node as usize);
                (class, translations / orbits.nodes.classes[class].1)
            }
        }
    }

    /// The first node of a class.
    pub(crate) fn representative(&self, class: u32) -> u32 {
        match self {
            Self::Translations(classes, _) => classes.representative(class).0,
            Self::Orbits(orbits, _) => orbits.nodes.classes[class as usize].0,
        }
    }

    /// The nodes of a class, of all nodes of the machine.
    pub(crate) fn size(&self, class: usize, all: u32) -> u64 {
        match self {
            Self::Translations(classes, _) => (all / classes.count()).into(),
            Self::Orbits(orbits, _) => orbits.nodes.classes[class].1.into(),
        }
    }
}

/// The translations of a rule that a graph is proved to keep, with the orbits of its nodes and links, if
/// they are more than those that its [numbering](Graph::translations) gives.
fn orbits(classes: &RankClasses, topology: &dyn Topology) -> Option<(RankClasses, Arc<Orbits>)> {
    let Shape::Graph(graph) = topology.network() else { return None };
    let size = match topology.shape() {
        Shape::Clustered(clusters) => clusters.equal_size()?,
        _ => 1,
    };
    // Rules for lattices name routes by dimensions.
    if graph.lattice().is_some() || folds(classes, graph).is_some() {
        return None;
    }
    let radix = classes.radix();
    let (mut periods, mut kept) = (Coordinates::from_slice(classes.periods()), Vec::new());
    for (u, &side) in radix.sides().iter().enumerate() {
        let multiples = (periods[u]..side).step_by(periods[u] as usize);
        let translation = |by| Translation { stride: radix.stride(u), side, by };
        let mut translations = multiples.filter(|by| side % by == 0).map(translation);
        let found = translations.find(|&translation| graph.is_kept_by(translation, size));
        periods[u] = found.map_or(side, |translation| translation.by);
        kept.extend(found);
    }
    let found = RankClasses::translations(radix.clone(), periods);
    let more = found.count() < common(classes, topology).count();
    if more { Some((found, graph.orbits(&kept, size)?)) } else { None }
}

/// The numbering of ranks whose translations may keep the links: by the coordinates of nodes, where
/// they have them, and of the rank on its node.
pub(crate) fn numbering(topology: &dyn Topology) -> MixedRadix {
    let radix =
        |sides: &[u32]| MixedRadix::new(sides).expect("bug: more ranks than the machine has");
    match topology.shape() {
        Shape::Grid(grid) => grid.radix().clone(),
        Shape::Graph(graph) if graph.translations().is_some() => {
            graph.translations().expect("bug: no translations").clone()
        }
        Shape::Clustered(clusters) if clusters.equal_size().is_some() => {
            let (of_nodes, _) = nodes(topology);
            let size = clusters.equal_size();
            radix(&of_nodes.sides().iter().copied().chain(size).collect::<Vec<_>>())
        }
        Shape::Complete | Shape::Graph(_) | Shape::Clustered(_) => radix(&[topology.ranks()]),
    }
}

/// The classes of nodes that classes of ranks give, and the ranks of a class on each node. The
/// classes must be [`common`] to a rule and the topology.
pub(crate) fn of_nodes(classes: &RankClasses, topology: &dyn Topology) -> (RankClasses, u32) {
    let Shape::Clustered(clusters) = topology.shape() else { return (classes.clone(), 1) };
    let (radix, _) = nodes(topology);
    let sides = Coordinates::from_slice(radix.sides());
    let Some(size) = clusters.equal_size() else {
        return (RankClasses::translations(radix, sides), 1);
    };
    let (inside, between) = classes.periods().split_last().expect("bug: classes of no ranks");
    (RankClasses::translations(radix, Coordinates::from_slice(between)), size / inside)
}

/// The numbering of nodes, and along which sides translations keep the links.
fn nodes(topology: &dyn Topology) -> (MixedRadix, Vec<bool>) {
    let one_side = |wraps| {
        let radix = MixedRadix::new(&[topology.nodes()]).expect("a machine has nodes");
        (radix, vec![wraps])
    };
    match topology.network() {
        Shape::Grid(grid) => (grid.radix().clone(), grid.wrap().to_vec()),
        Shape::Graph(graph) => match graph.translations() {
            Some(radix) if !is_twisted(radix) => (radix.clone(), all(radix)),
            _ => one_side(false),
        },
        Shape::Complete | Shape::Clustered(_) => one_side(true),
    }
}

/// The numbering of the vertices whose translations keep the links of a graph, if the classes are
/// translations of it.
pub(crate) fn folds<'g>(classes: &RankClasses, graph: &'g Graph) -> Option<&'g MixedRadix> {
    graph.translations().filter(|&radix| radix == classes.radix())
}

fn is_twisted(radix: &MixedRadix) -> bool {
    radix.shifts().iter().any(|&shift| shift > 0)
}

fn all(radix: &MixedRadix) -> Vec<bool> {
    vec![true; radix.dimensions()]
}
