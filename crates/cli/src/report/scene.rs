//! What of a machine is drawn: all of it, one period of it, or a smaller one like it.

use std::sync::Arc;

use serde::Serialize;
use topocoll::{
    Clusters, Exchange, FullyConnected, Grid, Machine, MixedRadix, Parameters, Problem,
    RankClasses, Schedule, Shape, Topology,
};

/// The most ranks that are drawn by grids of one, two, three and more sides longer than 1, and by
/// all other machines.
const GRIDS: [u32; 4] = [128, 1024, 512, 256];
const OTHERS: u32 = 128;

/// The longest side of a period, or of a smaller machine, by the same dimensions.
const SIDES: [u32; 4] = [64, 16, 8, 4];

/// Nodes of a smaller cluster, and ranks on each at most.
const NODES: u32 = 8;

/// What is drawn of a schedule.
pub(super) struct Scene {
    /// The machine that it runs on.
    pub(super) machine: Machine,
    /// Its schedule.
    pub(super) schedule: Schedule,
    /// On a grid the sides that are drawn; where they are shorter than the machine's, what leaves on
    /// one side enters at the other, as its like does.
    pub(super) window: Vec<u32>,
    /// What is left out.
    pub(super) part: Extent,
}

/// How much of a machine is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// A part that repeats itself: links carry there what their likes carry anywhere.
    Period,
    /// A smaller machine of the same kind.
    Smaller,
}

/// The scene of an algorithm with a setting; none where it is too large, ranks differ without a
/// period, and the setting means nothing on a smaller machine.
pub(super) fn scene(
    exchange: &Exchange<'_>,
    algorithm: &str,
    setting: &Parameters,
) -> Option<Scene> {
    let (machine, problem) = (exchange.machine(), exchange.problem());
    let schedule = exchange.schedule(algorithm, setting).ok()?;
    let sides = sides(&*machine.topology);
    if machine.ranks() <= limit(&*machine.topology) {
        return Some(Scene {
            machine: machine.clone(),
            schedule,
            window: sides,
            part: Extent::Whole,
        });
    }
    if let Shape::Grid(grid) = machine.topology.shape()
        && let Some(window) = period(grid, &schedule.rule().classes())
    {
        return Some(Scene { machine: machine.clone(), schedule, window, part: Extent::Period });
    }
    let smaller = smaller(machine)?;
    let problem =
        Problem::new(problem.operation, smaller.ranks(), smaller.ports, problem.block_bytes);
    let schedule =
        Exchange::new(&smaller, &problem.ok()?).ok()?.schedule(algorithm, setting).ok()?;
    let window = self::sides(&*smaller.topology);
    Some(Scene { machine: smaller, schedule, window, part: Extent::Smaller })
}

/// The sides of a grid, or of what a lattice is on.
fn sides(topology: &dyn Topology) -> Vec<u32> {
    match topology.shape() {
        Shape::Grid(grid) => grid.sides().to_vec(),
        Shape::Lattice(lattice) => lattice.radix().sides().to_vec(),
        Shape::Complete | Shape::Clustered(_) => Vec::new(),
    }
}

/// Which entry of a list by dimensions is that of these sides.
fn by_dimensions(radix: &MixedRadix) -> usize {
    let long = radix.long_dimensions().count();
    long.clamp(1, GRIDS.len()) - 1
}

fn limit(topology: &dyn Topology) -> u32 {
    match topology.shape() {
        Shape::Grid(grid) => GRIDS[by_dimensions(grid.radix())],
        Shape::Lattice(lattice) => GRIDS[by_dimensions(lattice.radix())],
        Shape::Complete | Shape::Clustered(_) => OTHERS,
    }
}

/// Sides of a part that repeats itself, each a multiple of a period.
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

/// A machine of the same kind that is small enough to draw; sides and nodes keep their remainders
/// by 4, on which algorithms depend. `None` for twisted machines and machines with faults.
fn smaller(machine: &Machine) -> Option<Machine> {
    let reduced = |size: u32, most: u32| match size <= most {
        true => size,
        false => most - (most - size % 4) % 4,
    };
    let small = "bug: a small machine that cannot be";
    let topology: Arc<dyn Topology> = match machine.topology.shape() {
        Shape::Complete => {
            Arc::new(FullyConnected::new(reduced(machine.ranks(), 32)).expect(small))
        }
        Shape::Grid(grid) => {
            let longest = SIDES[by_dimensions(grid.radix())];
            let sides: Vec<u32> = grid.sides().iter().map(|&side| reduced(side, longest)).collect();
            Arc::new(Grid::new(&sides, grid.wrap()).expect(small))
        }
        Shape::Lattice(_) => return None,
        Shape::Clustered(clusters) => {
            let sizes = (0..reduced(clusters.nodes(), NODES)).map(|node| clusters.size(node));
            let groups: Vec<_> = sizes.map(|size| (1, reduced(size, NODES))).collect();
            Arc::new(Clusters::new(&groups).expect(small))
        }
    };
    let mut smaller = machine.clone();
    (smaller.name, smaller.topology) = (topology.short_form(), topology);
    smaller.set_ports(machine.ports);
    Some(smaller)
}

#[cfg(test)]
mod tests {
    use topocoll::machine;

    use super::*;

    /// The scene of the best choice that has one.
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
    }
}
