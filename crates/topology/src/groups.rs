use std::sync::Arc;

use hashbrown::HashMap;

use crate::error::check_limit;
use crate::number::{number, sides, whole};
use crate::spec::parse_ranks;
use crate::text::{line_at, uncommented};
use crate::{Clusters, Grid, Machine, MixedRadix, Rank, Shape, Subset, Topology, TopologyError};

/// The most ranks of groups that follow no pattern and are listed rank by rank.
const LISTED: u64 = 1 << 24;

/// How groups are named.
const NAMES: &str = "nodes, peers, dim:0,2, tiles:2x2, consecutive:8, stride:8";

/// Disjoint groups of a machine's ranks, which exchange at the same time, each among its own ranks.
///
/// Rank i of a group is its i-th in the group's own order. Ranks in no group take no part. Groups that
/// follow the coordinates of the ranks take no memory; others take some bytes for each of their ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    machine_ranks: u32,
    by: By,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum By {
    Pattern(Arc<Pattern>),
    Listed {
        groups: Arc<[Subset]>,
        /// By rank, its group and its position there.
        places: Arc<HashMap<Rank, (u32, Rank)>>,
    },
}

/// Groups by the coordinates of the ranks: along each side a group has some of the positions, the nearest
/// ones or those that are equally far apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    radix: MixedRadix,
    sides: Vec<Along>,
    /// The network, where ranks or nodes are on one.
    grid: Option<Grid>,
}

/// The positions of a group along one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Along {
    /// Their number, a divisor of the side.
    pub inside: u32,
    /// The distance from one to the next.
    pub apart: u32,
}

impl Along {
    /// All positions of a side, or each by itself.
    fn all(side: u32, inside: bool) -> Self {
        Self { inside: if inside { side } else { 1 }, apart: 1 }
    }

    /// The group and the position in it, along the side.
    fn place(self, x: u32) -> (u32, u32) {
        match self.apart {
            1 => (x / self.inside, x % self.inside),
            apart => (x % apart, x / apart),
        }
    }

    fn at(self, group: u32, position: u32) -> u32 {
        match self.apart {
            1 => group * self.inside + position,
            apart => position * apart + group,
        }
    }
}

impl Groups {
    /// A single group.
    #[must_use]
    pub fn one(subset: &Subset) -> Self {
        Self::listed(vec![subset.clone()]).expect("bug: one group meets another")
    }

    /// These groups.
    ///
    /// # Errors
    /// No group, groups of different machines, or a rank in two groups.
    pub fn listed(groups: Vec<Subset>) -> Result<Self, TopologyError> {
        let Some(first) = groups.first() else {
            return Err("0 groups: there is at least one".to_owned().into());
        };
        let machine_ranks = first.machine_ranks();
        let mut places = HashMap::new();
        for (group, subset) in (0..).zip(&groups) {
            if subset.machine_ranks() != machine_ranks {
                let other = subset.machine_ranks();
                return Err(format!("groups of {machine_ranks} and of {other} ranks").into());
            }
            for (position, &rank) in (0..).map(Rank).zip(subset.ranks()) {
                if let Some((other, _)) = places.insert(rank, (group, position)) {
                    return Err(format!("rank {rank} is in groups {other} and {group}").into());
                }
            }
        }
        Ok(Self {
            machine_ranks,
            by: By::Listed { groups: groups.into(), places: Arc::new(places) },
        })
    }

    /// The groups of a [name](Self::named), or of a text with the ranks of a group in each line, such as
    /// `0-3,8` or `0 1 2 3 8`; what follows `#` is a comment.
    ///
    /// # Errors
    /// As [`named`](Self::named) and [`listed`](Self::listed), or a line that lists no ranks of the machine.
    pub fn read(text: &str, machine: &Machine) -> Result<Self, TopologyError> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with(char::is_alphabetic) {
            return Self::named(text.trim(), machine);
        }
        let group = |(line, at): (&str, usize)| {
            let words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let ranks = parse_ranks(&words.collect::<Vec<_>>().join(","));
            let group = ranks.map_err(|e| e.message.into());
            let group = group.and_then(|ranks| Subset::new(&ranks, machine.ranks()));
            group.map_err(|e: TopologyError| {
                format!("line {}: {}", line_at(text, at), e.message).into()
            })
        };
        Self::listed(uncommented(text).map(group).collect::<Result<_, TopologyError>>()?)
    }

    /// The groups of a name: `nodes`, the ranks of each node; `peers`, ranks of equal number on all nodes;
    /// `dim:0,2`, ranks that differ along these dimensions of a grid; `tiles:2x2`, boxes of a grid;
    /// `consecutive:8`, 8 ranks each; `stride:8`, ranks that are 8 apart.
    ///
    /// # Errors
    /// Another name, a machine without nodes or dimensions, or a number that does not divide what it groups.
    pub fn named(name: &str, machine: &Machine) -> Result<Self, TopologyError> {
        let topology = &*machine.topology;
        let (kind, given) = name.split_once(':').unwrap_or((name, ""));
        let clusters = || match topology.shape() {
            Shape::Clustered(clusters) => Ok(clusters),
            _ => Err(format!("`{name}`: {} has no nodes of several ranks", machine.name)),
        };
        let (radix, grid) = coordinates(topology);
        let pattern =
            |sides: Vec<Along>| Pattern { radix: radix.clone(), sides, grid: grid.clone() };
        let of_nodes = |inside: bool| {
            let last = radix.dimensions() - 1;
            let along = |(u, &side)| Along::all(side, (u == last) == inside);
            pattern(radix.sides().iter().enumerate().map(along).collect())
        };
        let refused = |what: &str| format!("`{name}`: {what}");
        let by = match kind {
            "nodes" | "peers" if given.is_empty() => {
                let (clusters, inside) = (clusters()?, kind == "nodes");
                match clusters.equal_size() {
                    Some(_) => of_nodes(inside),
                    None => return Self::of_uneven(clusters, inside),
                }
            }
            "dim" | "tiles" => {
                let Some(grid) = &grid else {
                    return Err(refused(&format!("{} is no grid", machine.name)).into());
                };
                let inside = match kind {
                    "dim" => dimensions(given, grid),
                    _ => tiles(given, grid),
                };
                let inside = inside.map_err(|rule| refused(&rule))?;
                let near = |inside| Along { inside, apart: 1 };
                // The ranks of a node are in groups of their own.
                let ranks = radix.dimensions() - grid.sides().len();
                pattern(inside.into_iter().chain(vec![1; ranks]).map(near).collect())
            }
            "consecutive" | "stride" => {
                let size = number("number of ranks", given).map_err(|e| refused(&e))?;
                let ranks = topology.ranks();
                if ranks % size != 0 {
                    let rule = format!("{size} does not divide the {ranks} ranks of {}", machine.name);
                    return Err(refused(&rule).into());
                }
                let apart = kind == "stride";
                match (topology.shape(), along_sides(radix.sides(), size, apart)) {
                    // Every numbering of its ranks is one of equivalent ranks.
                    (Shape::Complete, _) => Pattern {
                        radix: MixedRadix::new(&[ranks / size, size])?,
                        sides: vec![Along::all(ranks / size, apart), Along::all(size, !apart)],
                        grid: None,
                    },
                    (_, Some(sides)) => pattern(sides),
                    (_, None) => return Self::numbered(ranks, size, apart),
                }
            }
            _ => return Err(format!("`{name}` names no groups: {NAMES}, or a file with the ranks of a group in each line").into()),
        };
        Ok(Self { machine_ranks: topology.ranks(), by: By::Pattern(Arc::new(by)) })
    }

    /// Nodes that differ, or the ranks of equal number on them.
    fn of_uneven(clusters: &Clusters, inside: bool) -> Result<Self, TopologyError> {
        let nodes = || (0..clusters.nodes()).map(|node| clusters.ranks_of(node));
        match inside {
            true => Self::of_ranks(clusters.ranks(), nodes().map(Iterator::collect)),
            false => Self::of_ranks(
                clusters.ranks(),
                (0..clusters.largest())
                    .map(|i| nodes().filter_map(|mut ranks| ranks.nth(i as usize)).collect()),
            ),
        }
    }

    /// Groups by rank numbers that follow no coordinates.
    fn numbered(ranks: u32, size: u32, apart: bool) -> Result<Self, TopologyError> {
        let (count, along) = match apart {
            true => (size, Along { inside: ranks / size, apart: size }),
            false => (ranks / size, Along { inside: size, apart: 1 }),
        };
        Self::of_ranks(
            ranks,
            (0..count).map(|group| (0..along.inside).map(|i| Rank(along.at(group, i))).collect()),
        )
    }

    fn of_ranks(
        machine_ranks: u32,
        groups: impl Iterator<Item = Vec<Rank>>,
    ) -> Result<Self, TopologyError> {
        check_limit("ranks in listed groups", machine_ranks.into(), LISTED)?;
        let groups = groups.map(|ranks| Subset::new(&ranks, machine_ranks));
        Self::listed(groups.collect::<Result<_, _>>()?)
    }

    /// Ranks of the whole machine.
    #[must_use]
    pub fn machine_ranks(&self) -> u32 {
        self.machine_ranks
    }

    /// The number of groups.
    #[must_use]
    pub fn count(&self) -> u32 {
        match &self.by {
            By::Pattern(of) => of.sides().map(|(side, along)| side / along.inside).product(),
            By::Listed { groups, .. } => groups.len() as u32,
        }
    }

    /// The number of ranks of each group; of those that follow a pattern, which are equal, once.
    pub fn sizes(&self) -> impl Iterator<Item = u32> + Clone {
        let (equal, groups): (_, &[Subset]) = match &self.by {
            By::Pattern(of) => (Some(of.sides.iter().map(|along| along.inside).product()), &[]),
            By::Listed { groups, .. } => (None, groups),
        };
        equal.into_iter().chain(groups.iter().map(|group| group.ranks().len() as u32))
    }

    /// The first group with the most ranks.
    #[must_use]
    pub fn largest(&self) -> u32 {
        match self.by {
            By::Pattern(_) => 0,
            By::Listed { .. } => {
                let most = self.sizes().max();
                self.sizes().position(|size| Some(size) == most).unwrap_or(0) as u32
            }
        }
    }

    /// The ranks of a group, in its order.
    ///
    /// # Panics
    /// There are fewer groups.
    #[must_use]
    pub fn group(&self, group: u32) -> Subset {
        match &self.by {
            By::Pattern(of) => {
                let size = self.sizes().next().unwrap_or(0);
                let ranks: Vec<Rank> = (0..size).map(|i| of.rank(group, Rank(i))).collect();
                Subset::new(&ranks, self.machine_ranks).expect("bug: groups meet")
            }
            By::Listed { groups, .. } => groups[group as usize].clone(),
        }
    }

    /// The group of a rank and its position there, if it is in one.
    #[must_use]
    #[inline]
    pub fn place(&self, rank: Rank) -> Option<(u32, Rank)> {
        match &self.by {
            By::Pattern(of) => Some(of.place(rank)),
            By::Listed { places, .. } => places.get(&rank).copied(),
        }
    }

    /// Whether two ranks are in one group.
    #[must_use]
    pub fn joins(&self, one: Rank, other: Rank) -> bool {
        let group = |rank| self.place(rank).map(|(group, _)| group);
        group(one).is_some() && group(one) == group(other)
    }

    /// The rank at a position of a group.
    ///
    /// # Panics
    /// The group has fewer ranks.
    #[must_use]
    #[inline]
    pub fn rank(&self, group: u32, position: Rank) -> Rank {
        match &self.by {
            By::Pattern(of) => of.rank(group, position),
            By::Listed { groups, .. } => groups[group as usize].ranks()[position.index()],
        }
    }

    /// The pattern of the coordinates that they follow, if they do.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        match &self.by {
            By::Pattern(of) => Some(of),
            By::Listed { .. } => None,
        }
    }

    /// The group, if it is the only one.
    #[must_use]
    pub fn only(&self) -> Option<Subset> {
        (self.count() == 1).then(|| self.group(0))
    }
}

impl Pattern {
    /// The numbering of the coordinates.
    #[must_use]
    pub fn radix(&self) -> &MixedRadix {
        &self.radix
    }

    /// The grid whose coordinates these are; the rank on its node may follow.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    /// The sides, and the positions of a group along each.
    pub fn sides(&self) -> impl Iterator<Item = (u32, Along)> {
        self.radix.sides().iter().copied().zip(self.sides.iter().copied())
    }

    fn place(&self, rank: Rank) -> (u32, Rank) {
        let (mut group, mut position) = (0, 0);
        for (u, (side, along)) in self.sides().enumerate() {
            let (outside, inside) = along.place(self.radix.coordinate(rank, u));
            group = group * (side / along.inside) + outside;
            position = position * along.inside + inside;
        }
        (group, Rank(position))
    }

    fn rank(&self, mut group: u32, position: Rank) -> Rank {
        let (mut rank, mut position) = (0, position.0);
        for (u, along) in self.sides.iter().enumerate().rev() {
            let groups = self.radix.sides()[u] / along.inside;
            rank += along.at(group % groups, position % along.inside) * self.radix.stride(u);
            (group, position) = (group / groups, position / along.inside);
        }
        Rank(rank)
    }
}

/// The coordinates of the ranks: those of their node on a grid, and the rank on the node.
fn coordinates(topology: &dyn Topology) -> (MixedRadix, Option<Grid>) {
    let flat = || MixedRadix::new(&[topology.ranks()]).expect("a machine has ranks");
    match topology.shape() {
        Shape::Grid(grid) => (grid.radix().clone(), Some(grid.clone())),
        Shape::Clustered(clusters) => {
            let Some(by_node) = clusters.by_node() else { return (flat(), None) };
            let Shape::Grid(grid) = topology.network() else { return (by_node, None) };
            let sides = [grid.sides(), &by_node.sides()[1..]].concat();
            match MixedRadix::new(&sides) {
                Ok(radix) => (radix, Some(grid.clone())),
                Err(_) => (by_node, None),
            }
        }
        Shape::Complete | Shape::Graph(_) => (flat(), None),
    }
}

/// By dimension of a grid, its side if it is listed, else 1.
fn dimensions(given: &str, grid: &Grid) -> Result<Vec<u32>, String> {
    let mut inside = vec![1; grid.sides().len()];
    for text in given.split(',') {
        let dimension = whole("dimension", text, 0)? as usize;
        let Some(&side) = grid.sides().get(dimension) else {
            let last = inside.len() - 1;
            return Err(format!("dimension {dimension}: there are dimensions 0 to {last}"));
        };
        inside[dimension] = side;
    }
    Ok(inside)
}

fn tiles(given: &str, grid: &Grid) -> Result<Vec<u32>, String> {
    let inside = sides(given, number)?;
    let (given, own) = (inside.len(), grid.sides().len());
    if given != own {
        return Err(format!("{given} sides: the grid has {own}"));
    }
    match inside.iter().zip(grid.sides()).find(|(tile, side)| *side % *tile != 0) {
        Some((tile, side)) => Err(format!("{tile} does not divide the side {side}")),
        None => Ok(inside),
    }
}

/// The positions along each side of groups of `size` consecutive ranks, or of ranks `size` apart, where
/// these are boxes of the coordinates.
fn along_sides(sides: &[u32], size: u32, apart: bool) -> Option<Vec<Along>> {
    let mut rest = size;
    let mut along: Vec<Along> = Vec::with_capacity(sides.len());
    for &side in sides.iter().rev() {
        along.push(match () {
            () if rest % side == 0 => {
                rest /= side;
                Along::all(side, !apart)
            }
            () if side % rest == 0 => {
                let near = std::mem::replace(&mut rest, 1);
                match (apart, near) {
                    (true, 1) => Along::all(side, true),
                    (true, _) => Along { inside: side / near, apart: near },
                    (false, _) => Along { inside: near, apart: 1 },
                }
            }
            () => return None,
        });
    }
    along.reverse();
    Some(along)
}
