//! The machine of a communicator's ranks.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use topocoll::{
    Clusters, Collective, Error, Exchange, FullyConnected, Grid, Groups, INTRA_NODE, Machine,
    PerClass, Rank, Shape, Subset, Timing, Topology,
};

use super::ours::problem;

/// A machine, and the positions of the communicator's ranks on it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) machine: Machine,
    /// By rank of the machine, the communicator's rank; `None` if they are equal.
    pub(crate) order: Option<Vec<u32>>,
    /// The source of this knowledge.
    pub(crate) source: &'static str,
    /// Whether all ranks are on one node.
    pub(crate) is_one_node: bool,
    /// The whole machine, and the groups that exchange on it at the same time, the communicator's the first.
    together: Option<(Machine, Groups)>,
}

/// The machine, and the source of this knowledge.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.machine.topology.short_form(), self.source)?;
        if let Some((_, groups)) = &self.together {
            write!(f, ", {} groups at once", groups.count())?;
        }
        write!(f, ")")
    }
}

impl Place {
    fn new(machine: Machine, order: Option<Vec<u32>>, source: &'static str) -> Self {
        Self { machine, order, source, is_one_node: false, together: None }
    }

    /// The machine and the order of ranks: on places of the same shape the same calls take the same
    /// time.
    pub(crate) fn shape(&self) -> String {
        let mut form = self.machine.topology.short_form();
        if let Some((_, groups)) = &self.together {
            form += &format!(" in {} groups", groups.count());
        }
        match &self.order {
            None => form,
            Some(order) => format!("{form} {order:?}"),
        }
    }

    /// The exchange of the communicator, or of all groups.
    pub(super) fn exchange(
        &self,
        operation: Collective,
        block_bytes: u64,
    ) -> Result<Exchange<'_>, Error> {
        let machine = self.together.as_ref().map_or(&self.machine, |(whole, _)| whole);
        let exchange = Exchange::new(machine, &problem(machine, operation, block_bytes)?)?;
        match &self.together {
            Some((_, groups)) => exchange.groups(groups),
            None => Ok(exchange),
        }
    }
}

/// Known facts about the ranks of a communicator.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    /// By rank, the lowest rank that shares memory with it.
    pub(crate) nodes: &'a [u32],
    /// Of a Cartesian communicator.
    pub(crate) grid: Option<Grid>,
    /// By rank, its rank in the world.
    pub(crate) world: &'a [u32],
    /// The machine of the world, if one was given.
    pub(crate) given: Option<&'a Machine>,
    /// The groups of ranks of the world that exchange at the same time, if they are known.
    pub(crate) groups: Option<Vec<Vec<u32>>>,
}

/// The machines for which a schedule may be chosen. Predictions use the first.
pub(crate) fn places(known: &Known<'_>) -> Vec<Place> {
    let several = known.nodes.iter().any(|&node| node != known.nodes[0]);
    let is_one_node = !several;
    if let Some(place) = known.given.and_then(|machine| given(machine, known)) {
        return vec![Place { is_one_node, ..place }];
    }
    let found = by_nodes(known.nodes);
    let Some(grid) = known.grid.clone() else { return vec![found] };
    let ranks = grid.ranks();
    let boxes = by_boxes(&grid, known.nodes);
    let timing = if several { timing("tcp", TCP) } else { shared_memory(ranks) };
    let machine = timed(grid, timing);
    let grid = Place { is_one_node, ..Place::new(machine, None, "MPI_Cart_get") };
    // Ranks that share memory have no link contention.
    match boxes {
        Some(boxes) => vec![boxes, grid, found],
        None if several => vec![grid, found],
        None => vec![found, grid],
    }
}

/// The grid of nodes, if each holds a box of the ranks' grid, all boxes equal.
fn by_boxes(grid: &Grid, nodes: &[u32]) -> Option<Place> {
    let radix = grid.radix();
    let coordinates = |rank: u32| radix.coordinates(Rank(rank));
    let first = (0..).zip(nodes).filter(|(_, node)| **node == nodes[0]);
    let mut of_box = vec![0; grid.sides().len()];
    for (rank, _) in first {
        let at = coordinates(rank);
        of_box.iter_mut().zip(&at).for_each(|(side, &at)| *side = at.max(*side));
    }
    of_box.iter_mut().for_each(|side| *side += 1);
    let size: u32 = of_box.iter().product();
    if size == 1 || size == grid.ranks() {
        return None;
    }
    if grid.sides().iter().zip(&of_box).any(|(side, part)| side % part != 0) {
        return None;
    }
    let sides: Vec<u32> =
        grid.sides().iter().zip(&of_box).map(|(side, part)| side / part).collect();
    let between = Grid::new(&sides, grid.wrap()).ok()?;
    let inside = Grid::mesh(&of_box).ok()?;
    let mut order = Vec::with_capacity(nodes.len());
    let mut seen = HashSet::new();
    for node in 0..between.ranks() {
        let corner = between.radix().coordinates(Rank(node));
        let ranks = (0..size).map(|local| {
            let local = inside.radix().coordinates(Rank(local));
            let at = corner.iter().zip(&of_box).zip(&local).map(|((at, side), l)| at * side + l);
            radix.rank(&at.collect::<Vec<_>>()).0
        });
        order.extend(ranks);
        let own = &order[order.len() - size as usize..];
        let shared = nodes[own[0] as usize];
        if own.iter().any(|&rank| nodes[rank as usize] != shared) || !seen.insert(shared) {
            return None;
        }
    }
    let classes = sides.len();
    let nodes = Clusters::on(Arc::new(between), &[(sides.iter().product(), size)]).ok()?;
    let machine = of_nodes(nodes, size, classes);
    Some(Place::new(machine, unless_identity(order), "MPI_Cart_get, MPI_Comm_split_type"))
}

/// Nodes of at most `largest` ranks on a network of `classes` link classes. All ranks of a node send
/// at once; they share its memory and its network interface.
fn of_nodes(nodes: Clusters, largest: u32, classes: usize) -> Machine {
    let share = f64::from(largest);
    let each = |inside: f64, between: f64| {
        let between = std::iter::repeat_n(between, classes);
        PerClass::each(&std::iter::once(inside).chain(between).collect::<Vec<_>>())
    };
    let mut timing = timing("shared memory and tcp", TCP);
    timing.startup = each(SHARED_MEMORY.0, TCP.0);
    timing.per_byte = each(SHARED_MEMORY.1 * share, TCP.1 * share);
    let mut machine = timed(nodes, timing);
    machine.set_ports(largest);
    machine
}

/// Startup in seconds and seconds per byte: assumed values, of a typical order.
type Values = (f64, f64);
const SHARED_MEMORY: Values = (1e-6, 0.2e-9);
const TCP: Values = (30e-6, 1e-9);
/// Seconds to copy a byte.
const COPY: f64 = 0.1e-9;

fn timing(name: &str, (startup, per_byte): Values) -> Timing {
    let mut timing = Timing::generic();
    timing.name = name.to_owned();
    timing.startup = PerClass::uniform(startup);
    timing.per_byte = PerClass::uniform(per_byte);
    timing.per_hop = PerClass::uniform(0.0);
    timing.rearrangement_per_byte = COPY;
    timing
}

/// All messages of a step may be under way at once; they share the memory.
fn shared_memory(ranks: u32) -> Timing {
    let (startup, per_byte) = SHARED_MEMORY;
    timing("shared memory", (startup, per_byte * f64::from(ranks.max(2) - 1)))
}

/// Nodes by shared memory: one node is fully connected, several are a cluster.
fn by_nodes(nodes: &[u32]) -> Place {
    let (sizes, order) = grouped(nodes);
    let source = "MPI_Comm_split_type";
    let ranks = nodes.len() as u32;
    if let [_] = sizes[..] {
        let mut machine = full(ranks, shared_memory(ranks));
        machine.set_ports(ranks);
        return Place { is_one_node: true, ..Place::new(machine, None, source) };
    }
    if sizes.iter().all(|&size| size == 1) {
        return Place::new(full(ranks, timing("tcp", TCP)), None, source);
    }
    let nodes: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
    let nodes = Clusters::new(&nodes).expect("bug: invalid nodes");
    let largest = nodes.largest();
    let machine = of_nodes(nodes, largest, 1);
    Place::new(machine, order, source)
}

/// The machine of the world, or the communicator's subset of it. `None` if the communicator has
/// processes of several worlds.
fn given(machine: &Machine, known: &Known<'_>) -> Option<Place> {
    let (source, world) = ("TOPOCOLL_MACHINE", known.world);
    // The communicator's ranks in the order of the machine.
    let mut order: Vec<u32> = (0..world.len() as u32).collect();
    order.sort_by_key(|&rank| world[rank as usize]);
    let members: Vec<Rank> = order.iter().map(|&rank| Rank(world[rank as usize])).collect();
    let subset = Subset::new(&members, machine.ranks()).ok()?;
    if members.len() == machine.ranks() as usize {
        return Some(Place::new(machine.clone(), unless_identity(order), source));
    }
    if let Some(groups) = known.groups.as_ref().and_then(|all| equal(machine, &subset, all)) {
        let place = Place::new(machine.subset(&subset), unless_identity(order), source);
        return Some(Place { together: Some((machine.clone(), groups)), ..place });
    }
    if let Shape::Clustered(whole) = machine.topology.shape() {
        let node = |&rank: &u32| whole.node_of(Rank(rank));
        let (sizes, order) = grouped(&world.iter().map(node).collect::<Vec<_>>());
        let part = match sizes[..] {
            [ranks] => {
                let class = |value: &PerClass| PerClass::uniform(value.of(INTRA_NODE));
                let mut inside = machine.timing.clone();
                inside.startup = class(&inside.startup);
                inside.per_byte = class(&inside.per_byte);
                inside.per_hop = class(&inside.per_hop);
                full(ranks, inside)
            }
            _ => machine.subset(&subset),
        };
        return Some(Place::new(part, order, source));
    }
    Some(Place::new(machine.subset(&subset), unless_identity(order), source))
}

/// Groups of a machine's ranks, `own` the first, if they form equal machines.
fn equal(machine: &Machine, own: &Subset, groups: &[Vec<u32>]) -> Option<Groups> {
    let subset = |ranks: &Vec<u32>| {
        let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
        Subset::new(&ranks, machine.ranks()).ok()
    };
    let mut all = groups.iter().map(subset).collect::<Option<Vec<_>>>()?;
    all.retain(|one| one != own);
    all.insert(0, own.clone());
    let form = |one: &Subset| machine.subset(one).topology.short_form();
    let first = form(own);
    all.iter().all(|one| form(one) == first).then(|| Groups::listed(all).ok())?
}

fn full(ranks: u32, timing: Timing) -> Machine {
    timed(FullyConnected::new(ranks).expect("bug: a communicator without ranks"), timing)
}

fn timed(topology: impl Topology + 'static, timing: Timing) -> Machine {
    let mut machine = Machine::of(Arc::new(topology));
    machine.timing = timing;
    machine
}

/// Sizes of the groups of equal numbers in ascending order, and the ranks group by group.
fn grouped(of: &[u32]) -> (Vec<u32>, Option<Vec<u32>>) {
    let mut order: Vec<u32> = (0..of.len() as u32).collect();
    order.sort_by_key(|&rank| of[rank as usize]);
    let same = |a: &u32, b: &u32| of[*a as usize] == of[*b as usize];
    let sizes = order.chunk_by(same).map(|group| group.len() as u32).collect();
    (sizes, unless_identity(order))
}

fn unless_identity(order: Vec<u32>) -> Option<Vec<u32>> {
    (0..).zip(&order).any(|(i, &rank)| i != rank).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known<'a>(nodes: &'a [u32], world: &'a [u32], given: Option<&'a Machine>) -> Known<'a> {
        Known { nodes, grid: None, world, given, groups: None }
    }

    #[test]
    fn nodes_of_any_sizes_and_orders_are_a_cluster() {
        let found = places(&known(&[0, 1, 0, 3, 1, 0], &[0, 1, 2, 3, 4, 5], None));
        assert_eq!(found[0].machine.name, "cluster:3,2,1");
        assert_eq!(found[0].order.as_deref(), Some(&[0, 2, 5, 1, 4, 3][..]));
        let found = places(&known(&[0, 0, 0, 3], &[0, 1, 2, 3], None));
        assert_eq!((found[0].machine.name.as_str(), &found[0].order), ("cluster:3,1", &None));
        let found = places(&known(&[0, 0, 0], &[0, 1, 2], None));
        assert_eq!((found[0].machine.name.as_str(), found[0].machine.ports.rank), ("full:3", 2));
        let found = places(&known(&[0, 1, 2], &[0, 1, 2], None));
        assert_eq!((found[0].machine.name.as_str(), found[0].machine.ports.rank), ("full:3", 1));
    }

    #[test]
    fn a_grid_comes_first_where_there_are_links() {
        let grid = || Some(Grid::new(&[3, 2], &[true, false]).unwrap());
        let world = [0, 1, 2, 3, 4, 5];
        let apart = places(&Known { grid: grid(), ..known(&[0, 0, 0, 3, 3, 3], &world, None) });
        let names = |found: &[Place]| -> Vec<String> {
            found.iter().map(|place| place.machine.name.clone()).collect()
        };
        assert_eq!(names(&apart), ["grid:3~x2", "cluster:2*3"]);
        // Each node holds a row of three, then rows of two by coordinates that do not form boxes.
        let cart = |nodes: &[u32], sides: &[u32]| {
            let world: Vec<u32> = (0..nodes.len() as u32).collect();
            let grid = Some(Grid::torus(sides).unwrap());
            let found = places(&Known { grid, ..known(nodes, &world, None) });
            (found[0].machine.name.clone(), found[0].order.clone())
        };
        assert_eq!(cart(&[0, 0, 2, 2, 4, 4, 6, 6], &[4, 2]), ("torus:4x1*2".to_owned(), None));
        let columns = cart(&[0, 1, 0, 1, 4, 5, 4, 5], &[4, 2]);
        assert_eq!(columns, ("torus:2x2*2".to_owned(), Some(vec![0, 2, 1, 3, 4, 6, 5, 7])));
        assert_eq!(cart(&[0, 1, 1, 0, 4, 4, 6, 6], &[4, 2]).0, "torus:4x2");
        assert_eq!(cart(&[0, 0, 0, 0, 4, 4, 6, 6], &[4, 2]).0, "torus:4x2");
        let together = places(&Known { grid: grid(), ..known(&[0; 6], &world, None) });
        assert_eq!(names(&together), ["full:6", "grid:3~x2"]);
    }

    #[test]
    fn a_communicator_is_a_subset_of_the_given_machine() {
        let machine = topocoll::machine("cluster:4,2").unwrap();
        let all = places(&known(&[0; 6], &[5, 4, 3, 2, 1, 0], Some(&machine)));
        assert_eq!(all[0].order.as_deref(), Some(&[5, 4, 3, 2, 1, 0][..]));
        let part = places(&known(&[0; 3], &[4, 0, 1], Some(&machine)));
        assert_eq!(part[0].machine.topology.short_form(), "cluster:2,1");
        assert_eq!(part[0].order.as_deref(), Some(&[1, 2, 0][..]));
        let node = places(&known(&[0; 2], &[1, 3], Some(&machine)));
        assert_eq!(node[0].machine.topology.short_form(), "full:2");
        let torus = topocoll::machine("torus:4x2").unwrap();
        let row = places(&known(&[0; 4], &[0, 2, 4, 6], Some(&torus)));
        assert_eq!(row[0].machine.topology.short_form(), "grid:4~x1");
        // The machine says nothing of the nodes of this run.
        let nodes =
            |nodes: &[u32]| places(&known(nodes, &[0, 2, 4, 6], Some(&torus)))[0].is_one_node;
        assert!(nodes(&[0; 4]) && !nodes(&[0, 0, 2, 2]));
        let merged = places(&known(&[0; 4], &[0, 1, 0, 1], Some(&torus)));
        assert_eq!(merged[0].source, "MPI_Comm_split_type");
    }

    #[test]
    fn groups_that_exchange_at_the_same_time_are_priced_together() {
        let machine = topocoll::machine("mesh:8").unwrap();
        let seconds = |groups: Option<Vec<Vec<u32>>>, said: bool| {
            let of = Known { groups, ..known(&[0; 4], &[1, 3, 5, 7], Some(&machine)) };
            let place = &places(&of)[0];
            assert_eq!(place.to_string().ends_with("(TOPOCOLL_MACHINE, 2 groups at once)"), said);
            assert_eq!(place.shape().ends_with(" in 2 groups"), said);
            let exchange = place.exchange(Collective::AllToAll, 1 << 16).unwrap();
            let own = exchange.select().unwrap().best().unwrap().price.time.total();
            [own, topocoll::tune::unaware(&exchange, "direct").unwrap().price.time.total()]
        };
        let alone = seconds(None, false);
        let together = seconds(Some(vec![vec![0, 2, 4, 6], vec![1, 3, 5, 7]]), true);
        assert!((0..2).all(|i| together[i] > 1.5 * alone[i]), "{alone:?} {together:?}");
        // Groups that form other machines, or have ranks that the machine does not have.
        for other in [vec![0, 2, 4], vec![0, 2, 4, 8]] {
            assert_eq!(seconds(Some(vec![other, vec![1, 3, 5, 7]]), false), alone);
        }
    }
}
