use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, MixedRadix, Shape, Topology};

/// The translations that map both a rule and the machine's links onto themselves.
///
/// On a complete graph every renaming of ranks keeps the links. On a cluster of equal nodes the
/// translations move whole nodes, or all ranks within their nodes; on other clusters there are
/// none. On a grid they are the translations along sides that wrap; on a lattice without faults
/// all.
pub(crate) fn common(classes: &RankClasses, topology: &dyn Topology) -> RankClasses {
    match topology.shape() {
        Shape::Complete => classes.clone(),
        Shape::Clustered(clusters) => match clusters.by_node() {
            Some(radix) => along(classes, &radix, &[true, true]),
            None => RankClasses::distinct(topology.ranks()),
        },
        Shape::Grid(grid) => along(classes, grid.radix(), grid.wrap()),
        Shape::Lattice(lattice) if lattice.is_whole() && classes.radix() == lattice.radix() => {
            classes.clone()
        }
        Shape::Lattice(_) => RankClasses::distinct(topology.ranks()),
    }
}

/// The translations of `classes` along those sides of a radix that wrap.
fn along(classes: &RankClasses, radix: &MixedRadix, wrap: &[bool]) -> RankClasses {
    let sides = radix.sides();
    let mut periods = Coordinates::from_slice(sides);
    if classes.radix() == radix {
        for u in (0..sides.len()).filter(|&u| wrap[u]) {
            periods[u] = classes.periods()[u];
        }
    } else if classes.radix().dimensions() == 1 && wrap[0] {
        // A shift of the ranks by whole lines along the slowest side.
        let (period, stride) = (u64::from(classes.periods()[0]), u64::from(radix.stride(0)));
        periods[0] = (period / gcd(period, stride)) as u32;
    }
    RankClasses::translations(radix.clone(), periods)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
