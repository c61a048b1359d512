use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Grid, Shape, Topology};

/// The translations that map both a rule and the machine's links onto themselves: what a reader
/// of links may rely on.
///
/// On a complete graph every renaming of ranks keeps the links; on a cluster none is assumed; on a
/// grid they are the translations along sides that wrap; on a lattice all, if it lacks nothing.
pub(crate) fn common(classes: &RankClasses, topology: &dyn Topology) -> RankClasses {
    match topology.shape() {
        Shape::Complete => classes.clone(),
        Shape::Clustered(_) => RankClasses::distinct(topology.ranks()),
        Shape::Grid(grid) => on_grid(classes, grid),
        Shape::Lattice(lattice) if lattice.is_whole() && classes.radix() == lattice.radix() => {
            classes.clone()
        }
        Shape::Lattice(_) => RankClasses::distinct(topology.ranks()),
    }
}

fn on_grid(classes: &RankClasses, grid: &Grid) -> RankClasses {
    let (radix, sides) = (grid.radix(), grid.sides());
    let mut periods = Coordinates::from_slice(sides);
    if classes.radix() == radix {
        for u in (0..sides.len()).filter(|&u| grid.wrap()[u]) {
            periods[u] = classes.periods()[u];
        }
    } else if classes.radix().dimensions() == 1 && grid.wrap()[0] {
        // A shift of the ranks by whole lines along the slowest side.
        let (period, stride) = (u64::from(classes.periods()[0]), u64::from(radix.stride(0)));
        periods[0] = (period / gcd(period, stride)) as u32;
    }
    RankClasses::translations(radix.clone(), periods)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
