//! The drawn machine: the whole machine, one period of it, or a smaller machine of the same kind.

use std::sync::Arc;

use serde::Serialize;
use topocoll::{
    Clusters, Exchange, FullyConnected, Grid, Machine, MixedRadix, Parameters, Problem,
    RankClasses, Schedule, Shape, Topology,
};

/// The most drawn ranks of grids with one, two, three and more sides longer than 1, and of all
/// other machines.
const GRIDS: [u32; 4] = [128, 1024, 512, 256];
const OTHERS: u32 = 128;

/// The most drawn ranks where nodes hold several, and vertices of a graph.
const RANKS: u32 = 1024;
const VERTICES: u32 = 1024;

/// The longest side of a period or a smaller machine, by the same dimensions.
const SIDES: [u32; 4] = [64, 16, 8, 4];

/// The most nodes of a smaller cluster, and ranks on each.
const NODES: u32 = 8;

/// The drawing of a schedule.
pub(super) struct Scene {
    /// The machine that it runs on.
    pub(super) machine: Machine,
    /// Its schedule.
    pub(super) schedule: Schedule,
    /// On a grid, the drawn sides. If they are shorter than the machine's, a message that leaves
    /// on one side enters at the other.
    pub(super) window: Vec<u32>,
    /// The omitted part.
    pub(super) part: Extent,
}

/// The drawn part of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// A period: its links represent all equivalent links.
    Period,
    /// A smaller machine of the same kind.
    Smaller,
}

/// The scene of an algorithm with a setting. `None` if the machine is too large, has no period for
/// it, and no smaller machine has the setting.
pub(super) fn scene(
    exchange: &Exchange<'_>,
    algorithm: &str,
    setting: &Parameters,
) -> Option<Scene> {
    let machine = exchange.whole().clone();
    let schedule = exchange.schedule(algorithm, setting).ok()?;
    let schedule = exchange.placed(&schedule).ok()?.into_owned();
    let (window, part) = match machine.topology.shape() {
        _ if is_small(&*machine.topology) => (Some(sides(&*machine.topology)), Extent::Whole),
        Shape::Grid(grid) => (period(grid, &schedule.rule().classes()), Extent::Period),
        _ => (None, Extent::Smaller),
    };
    match window {
        Some(window) => Some(Scene { machine, schedule, window, part }),
        None => stand_in(exchange, algorithm, setting),
    }
}

/// The scene of an algorithm on a smaller machine, with its best setting there if it does not take this
/// one. `None` for groups, and if no smaller machine has the algorithm.
pub(super) fn stand_in(
    exchange: &Exchange<'_>,
    algorithm: &str,
    setting: &Parameters,
) -> Option<Scene> {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let smaller = smaller(machine).filter(|_| exchange.grouped().is_none())?;
    let problem =
        Problem::new(problem.operation, smaller.ranks(), smaller.ports, problem.block_bytes);
    let exchange = Exchange::new(&smaller, &problem.ok()?).ok()?;
    let schedule = (exchange.schedule(algorithm, setting))
        .or_else(|_| {
            let (setting, _) = exchange.cheapest(algorithm)?;
            exchange.schedule(algorithm, &setting)
        })
        .ok()?;
    let window = self::sides(&*smaller.topology);
    Some(Scene { machine: smaller, schedule, window, part: Extent::Smaller })
}

/// The sides of the network between the nodes, if it is a grid, whether or not nodes are missing.
fn sides(topology: &dyn Topology) -> Vec<u32> {
    match topology.network() {
        Shape::Grid(grid) => grid.sides().to_vec(),
        Shape::Graph(graph) => {
            graph.lattice().map_or_else(Vec::new, |lattice| lattice.radix().sides().to_vec())
        }
        Shape::Complete | Shape::Clustered(_) => Vec::new(),
    }
}

/// The index of these sides in a list by dimensions.
fn by_dimensions(radix: &MixedRadix) -> usize {
    let long = radix.long_dimensions().count();
    long.clamp(1, GRIDS.len()) - 1
}

/// Whether all of a machine is drawn.
fn is_small(topology: &dyn Topology) -> bool {
    let most = match topology.network() {
        Shape::Grid(grid) => GRIDS[by_dimensions(grid.radix())],
        Shape::Graph(graph) if graph.vertices() > VERTICES => 0,
        Shape::Graph(graph) => {
            graph.lattice().map_or(OTHERS, |lattice| GRIDS[by_dimensions(lattice.radix())])
        }
        Shape::Complete | Shape::Clustered(_) => OTHERS,
    };
    topology.nodes() <= most && topology.ranks() <= RANKS
}

/// Sides of a repeating part, each a multiple of a period.
fn period(grid: &Grid, classes: &RankClasses) -> Option<Vec<u32>> {
    if classes.radix() != grid.radix() {
        return None;
    }
    let longest = SIDES[by_dimensions(grid.radix())];
    let side = |u: usize| match (grid.sides()[u], classes.periods()[u]) {
        (side, _) if side <= longest => Some(side),
        (_, period) if grid.wrap()[u] && period <= longest => Some(longest - longest % period),
        _ => None,
    };
    (0..grid.sides().len()).map(side).collect()
}

/// A machine of the same kind that is small enough to draw. `None` for graphs of no family.
fn smaller(machine: &Machine) -> Option<Machine> {
    let topology = smaller_topology(&*machine.topology)?;
    let mut smaller = machine.clone();
    (smaller.name, smaller.topology) = (topology.short_form(), topology);
    smaller.set_ports(machine.ports);
    Some(smaller)
}

/// Sides and nodes keep their remainders modulo 4, on which algorithms depend.
fn smaller_topology(topology: &dyn Topology) -> Option<Arc<dyn Topology>> {
    let reduced = |size: u32, most: u32| match size <= most {
        true => size,
        false => most - (most - size % 4) % 4,
    };
    let small = "bug: an invalid small machine";
    Some(match topology.shape() {
        Shape::Complete => {
            Arc::new(FullyConnected::new(reduced(topology.ranks(), 32)).expect(small))
        }
        Shape::Grid(grid) => {
            let longest = SIDES[by_dimensions(grid.radix())];
            let sides: Vec<u32> = grid.sides().iter().map(|&side| reduced(side, longest)).collect();
            Arc::new(Grid::new(&sides, grid.wrap()).expect(small).with_ties(grid.ties()))
        }
        Shape::Graph(_) => return smaller_of_family(&topology.short_form()),
        Shape::Clustered(clusters) if clusters.is_placed() => return None,
        Shape::Clustered(clusters) => {
            let network: Arc<dyn Topology> = match clusters.network().shape() {
                Shape::Complete => {
                    let nodes = reduced(clusters.nodes(), NODES);
                    Arc::new(FullyConnected::new(nodes).expect(small))
                }
                _ => smaller_topology(&**clusters.network())?,
            };
            let sizes = (0..network.ranks()).map(|node| clusters.size(node));
            let groups: Vec<_> = sizes.map(|size| (1, reduced(size, NODES))).collect();
            Arc::new(Clusters::on(network, &groups).expect(small))
        }
    })
}

/// A graph of a family with its largest numbers made smaller until it is small enough. `None` for other graphs,
/// which have no numbers to make smaller.
fn smaller_of_family(form: &str) -> Option<Arc<dyn Topology>> {
    let (family, _) = form.split_once(':')?;
    let families = ["fat-tree", "dragonfly", "hyperx"];
    let apart = |c: char| !c.is_ascii_digit();
    let mut form = families.contains(&family).then(|| form.to_owned())?;
    loop {
        let topology = topocoll::machine(&form).ok()?.topology;
        if is_small(&*topology) {
            return Some(topology);
        }
        let numbers = &form[family.len() + 1..];
        let value = |text: &&str| text.parse::<u32>().ok();
        let largest = numbers.split(apart).filter_map(|text| value(&text)).max()?;
        let smaller = largest.checked_sub(1)?;
        let places = numbers.split_inclusive(apart).map(|part| {
            let digits = part.trim_end_matches(apart);
            match value(&digits) == Some(largest) {
                true => part.replace(digits, &smaller.to_string()),
                false => part.to_owned(),
            }
        });
        form = format!("{family}:{}", places.collect::<String>());
    }
}

#[cfg(test)]
mod tests {
    use topocoll::machine;

    use super::*;

    /// The scene of the best choice with a scene.
    fn best(name: &str) -> Option<(Extent, Vec<u32>, String)> {
        let machine = machine(name).unwrap();
        let exchange = Exchange::all_to_all(&machine).unwrap();
        let scene = (exchange.select().unwrap().choices.iter())
            .find_map(|best| scene(&exchange, &best.algorithm, &best.parameters))?;
        Some((scene.part, scene.window, scene.machine.name))
    }

    #[test]
    fn large_machines_show_a_period_or_a_smaller_one() {
        let shown = |name| best(name).unwrap();
        assert_eq!(shown("torus:16x16"), (Extent::Whole, vec![16, 16], "torus:16x16".into()));
        let (part, window, name) = shown("torus:256x256");
        assert_eq!((part, name.as_str()), (Extent::Period, "torus:256x256"));
        assert!(window.iter().all(|&side| side <= 16));
        assert_eq!(shown("mesh:62x64").2, "mesh:14x16");
        assert_eq!(shown("full:201").2, "full:29");
        assert_eq!(shown("cluster:100*32").2, "cluster:8*8");
        let smaller = |name| smaller_topology(&*machine(name).unwrap().topology).unwrap();
        assert_eq!(smaller("torus:64x64*4").short_form(), "torus:16x16*4");
        assert_eq!(smaller("fat-tree:16,2").short_form(), "fat-tree:11,2");
        assert_eq!(smaller("dragonfly:4,8,4*2").short_form(), "dragonfly:3,3,3*2");
        for name in ["cluster:20x48", "dragonfly:2,4,2", "torus:4x4*4", "fat-tree:4,3"] {
            assert!(is_small(&*machine(name).unwrap().topology), "{name}");
        }
    }
}
