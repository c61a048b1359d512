use crate::radix::Radix;

/// The machine that a schedule is for.
pub(crate) enum Machine {
    /// Every rank has a direct link to every other.
    Complete(u32),
    /// A grid: its sides as a radix, and which of them wrap.
    Grid(Radix, Vec<bool>),
    /// Nodes, as (number of nodes, ranks on each), numbered node by node.
    Cluster(Vec<(u32, u32)>),
}

/// Hops along a dimension.
pub(crate) type Segment = (usize, i64);

impl Machine {
    pub(crate) fn ranks(&self) -> Option<u32> {
        match self {
            Self::Complete(ranks) => Some(*ranks),
            Self::Grid(radix, _) => Some(radix.ranks()),
            Self::Cluster(nodes) => nodes.iter().try_fold(0u32, |ranks, &(nodes, size)| {
                ranks.checked_add(nodes.checked_mul(size)?)
            }),
        }
    }

    /// The machine as written in a certificate.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Complete(ranks) => format!("complete {ranks}"),
            Self::Grid(radix, wraps) => {
                let side = |(side, wraps): (&u32, &bool)| {
                    format!("{side}{}", if *wraps { "~" } else { "" })
                };
                let sides: Vec<_> = radix.sides.iter().zip(wraps).map(side).collect();
                format!("grid {}", sides.join("x"))
            }
            Self::Cluster(nodes) => {
                let nodes: Vec<_> =
                    nodes.iter().map(|(nodes, size)| format!("{nodes}*{size}")).collect();
                format!("cluster {}", nodes.join(","))
            }
        }
    }

    /// Whether the translations of a schedule's classes keep the links, so that one period is
    /// enough: always without numbered links, and on a grid along sides that wrap.
    pub(crate) fn keeps(&self, classes: &Radix) -> bool {
        match self {
            Self::Complete(_) => true,
            Self::Cluster(_) => classes.members() == 1,
            Self::Grid(radix, wraps) => {
                let fixed = |u: usize| wraps[u] || classes.periods[u] == classes.sides[u];
                radix.sides == classes.sides && (0..wraps.len()).all(fixed)
            }
        }
    }
}

/// Writes the machine's own route on a grid: dimension 0 first, in the nearer direction, upwards at
/// half a ring.
pub(crate) fn own_route(
    grid: &Radix,
    wraps: &[bool],
    from: u32,
    to: u32,
    route: &mut Vec<Segment>,
) {
    route.clear();
    for (u, &wraps) in wraps.iter().enumerate() {
        let side = i64::from(grid.sides[u]);
        let straight = i64::from(grid.coordinate(to, u)) - i64::from(grid.coordinate(from, u));
        let hops = match straight.rem_euclid(side) {
            _ if !wraps => straight,
            up if 2 * up <= side => up,
            up => up - side,
        };
        if hops != 0 {
            route.push((u, hops));
        }
    }
}

/// Calls `each` with the segments of a route and the rank that each of them leaves. Returns the
/// rank where the route ends; `None` if it leaves the grid or goes all around a side.
pub(crate) fn walk(
    grid: &Radix,
    wraps: &[bool],
    from: u32,
    route: &[Segment],
    mut each: impl FnMut(u32, Segment),
) -> Option<u32> {
    let mut rank = from;
    for &(u, hops) in route {
        let side = i64::from(*grid.sides.get(u)?);
        let at = i64::from(grid.coordinate(rank, u));
        let to = at.checked_add(hops)?;
        let stays = if wraps[u] { hops > -side && hops < side } else { to >= 0 && to < side };
        if !stays {
            return None;
        }
        each(rank, (u, hops));
        let moved = (to.rem_euclid(side) - at) * i64::from(grid.strides[u]);
        rank = (i64::from(rank) + moved) as u32;
    }
    Some(rank)
}
