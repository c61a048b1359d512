use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::number::{number, sides};
use crate::{
    Coordinates, Link, LinkId, MixedRadix, Rank, Route, Segment, Shape, Topology, TopologyError,
};

/// The direction of routes between nodes at exactly half a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ties {
    /// Upwards, always.
    #[default]
    Up,
    /// Upwards where the source's coordinate in that dimension is even, and downwards where it is
    /// odd: both directions carry equal loads if a side is a multiple of 4.
    Balanced,
    /// Upwards, but downwards from the middle of a side to its beginning, as in SimGrid's torus.
    #[serde(skip)]
    SimGrid,
}

/// An n-dimensional grid: all sides wrap (torus), none does (mesh), or some do.
///
/// A wrapping side of 2 has two distinct links each way between its ranks, +1 and -1; a side of 1
/// has none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    radix: MixedRadix,
    wrap: Vec<bool>,
    ties: Ties,
}

impl Grid {
    /// The grid with these sides; side u wraps if `wrap[u]`.
    ///
    /// # Errors
    /// As [`MixedRadix::new`].
    ///
    /// # Panics
    /// `sides` and `wrap` differ in length.
    pub fn new(sides: &[u32], wrap: &[bool]) -> Result<Self, TopologyError> {
        assert_eq!(sides.len(), wrap.len(), "one wrap flag per side");
        let radix = MixedRadix::new(sides)?;
        Ok(Self { radix, wrap: wrap.to_vec(), ties: Ties::Up })
    }

    /// The grid of which all sides wrap.
    ///
    /// # Errors
    /// As [`MixedRadix::new`].
    pub fn torus(sides: &[u32]) -> Result<Self, TopologyError> {
        Self::new(sides, &vec![true; sides.len()])
    }

    /// The grid of which no side wraps.
    ///
    /// # Errors
    /// As [`MixedRadix::new`].
    pub fn mesh(sides: &[u32]) -> Result<Self, TopologyError> {
        Self::new(sides, &vec![false; sides.len()])
    }

    /// The same grid, with these directions at half a ring.
    #[must_use]
    pub fn with_ties(self, ties: Ties) -> Self {
        Self { ties, ..self }
    }

    /// The directions at half a ring.
    #[must_use]
    pub fn ties(&self) -> Ties {
        self.ties
    }

    /// The numbering of ranks by coordinates.
    #[must_use]
    #[inline]
    pub fn radix(&self) -> &MixedRadix {
        &self.radix
    }

    /// The sides, dimension 0 first.
    #[must_use]
    #[inline]
    pub fn sides(&self) -> &[u32] {
        self.radix.sides()
    }

    /// Which sides wrap, dimension 0 first.
    #[must_use]
    #[inline]
    pub fn wrap(&self) -> &[bool] {
        &self.wrap
    }

    /// The grid that `ranks` form, if they are all ranks of a box in ascending order.
    pub(crate) fn boxed(&self, ranks: &[Rank]) -> Option<Self> {
        let (&first, &last) = (ranks.first()?, ranks.last()?);
        let (low, high) = (self.radix.coordinates(first), self.radix.coordinates(last));
        let side = |(low, high): (&u32, &u32)| (high + 1).checked_sub(*low);
        let sides: Option<Coordinates> = low.iter().zip(&high).map(side).collect();
        let radix = MixedRadix::new(&sides?).ok()?;
        let at = |i: u32| -> Coordinates {
            radix.coordinates(Rank(i)).iter().zip(&low).map(|(x, low)| x + low).collect()
        };
        let all = radix.ranks() as usize == ranks.len()
            && (0..).zip(ranks).all(|(i, &rank)| self.radix.rank(&at(i)) == rank);
        let wrap = radix.sides().iter().zip(self.sides()).zip(&self.wrap);
        let wrap = wrap.map(|((side, whole), wrap)| side == whole && *wrap).collect();
        all.then_some(Self { radix, wrap, ties: self.ties })
    }

    /// The most links between two ranks along `dimension`.
    #[must_use]
    pub fn diameter_along(&self, dimension: usize) -> u32 {
        let side = self.sides()[dimension];
        if self.wrap[dimension] { side / 2 } else { side - 1 }
    }

    /// The number of the link that leaves `from` along `dimension`, `direction` +1 or -1.
    #[must_use]
    #[inline]
    pub fn link_id(&self, from: Rank, dimension: usize, direction: i64) -> LinkId {
        let links_per_rank = 2 * self.sides().len() as u64;
        LinkId(u64::from(from.0) * links_per_rank + 2 * dimension as u64 + u64::from(direction < 0))
    }

    /// Directed links along `dimension`.
    fn links_along(&self, dimension: usize) -> u64 {
        let (ranks, side) = (u64::from(self.radix.ranks()), u64::from(self.sides()[dimension]));
        match side {
            1 => 0,
            _ if self.wrap[dimension] => 2 * ranks,
            _ => 2 * (ranks / side) * (side - 1),
        }
    }

    /// Messages on the busiest link along `dimension` if every node sends one to every other by
    /// [`route`](Topology::route).
    ///
    /// A line of a nodes carries N/a times its own all-to-all: a message on it can come from any
    /// coordinates of the dimensions before, and go to any of those after.
    #[must_use]
    pub fn routed_load(&self, dimension: usize) -> u128 {
        let side = u128::from(self.sides()[dimension]);
        let half = side / 2;
        let of_a_line = match self.ties {
            _ if !self.wrap[dimension] => half * (side - half),
            // Every second source of the half ring before a link goes up.
            Ties::Balanced if side % 2 == 0 => half * (half - 1) / 2 + half.div_ceil(2),
            _ => half * (half + 1) / 2,
        };
        of_a_line * (u128::from(self.ranks()) / side)
    }

    /// The signed hops from `from` to `to` along one side: in the nearer direction where it wraps,
    /// and by [`ties`](Self::ties) at exactly half.
    #[must_use]
    #[inline]
    pub fn nearest(&self, dimension: usize, from: u32, to: u32) -> i64 {
        let side = i64::from(self.sides()[dimension]);
        let hops = i64::from(to) - i64::from(from);
        if !self.wrap[dimension] {
            return hops;
        }
        let forward = hops.rem_euclid(side);
        let up = match (2 * forward).cmp(&side) {
            Ordering::Less => true,
            Ordering::Equal => match self.ties {
                Ties::Up => true,
                Ties::Balanced => from % 2 == 0,
                Ties::SimGrid => to > 0,
            },
            Ordering::Greater => false,
        };
        if up { forward } else { forward - side }
    }
}

impl Topology for Grid {
    fn ranks(&self) -> u32 {
        self.radix.ranks()
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Grid(self)
    }

    fn short_form(&self) -> String {
        let all = |wraps: bool| self.wrap.iter().all(|&wrap| wrap == wraps);
        let (kind, mark) = match () {
            () if all(true) => ("torus", ""),
            () if all(false) => ("mesh", ""),
            () => ("grid", "~"),
        };
        let sides: Vec<_> = (self.sides().iter().zip(&self.wrap))
            .map(|(side, &wraps)| format!("{side}{}", if wraps { mark } else { "" }))
            .collect();
        format!("{kind}:{}", sides.join("x"))
    }

    fn link_classes(&self) -> Vec<String> {
        (0..self.sides().len()).map(|u| format!("dimension {u}")).collect()
    }

    fn links(&self) -> u64 {
        (0..self.sides().len()).map(|u| self.links_along(u)).sum()
    }

    /// Those of a node inside: at no end of a side that does not wrap.
    fn most_links_out(&self) -> u64 {
        let along = |(&side, &wraps): (&u32, &bool)| match side {
            1 => 0,
            2 if !wraps => 1,
            _ => 2,
        };
        self.sides().iter().zip(&self.wrap).map(along).sum()
    }

    fn link_numbers(&self) -> u64 {
        u64::from(self.ranks()) * 2 * self.sides().len() as u64
    }

    fn link(&self, link: LinkId) -> Option<Link> {
        let links_per_rank = 2 * self.sides().len() as u64;
        let from = u32::try_from(link.0 / links_per_rank).ok().filter(|&r| r < self.ranks())?;
        let class = (link.0 % links_per_rank / 2) as u32;
        let direction = if link.0 % 2 == 0 { 1 } else { -1 };
        let to = self.follow(Rank(from), &Route::straight(class, direction)).ok()?;
        Some(Link { from, to, class, direction })
    }

    fn vertex_name(&self, vertex: u32) -> String {
        self.radix.name(Rank(vertex))
    }

    fn link_name(&self, link: LinkId) -> String {
        let links_per_rank = 2 * self.sides().len() as u64;
        let (from, dimension) = (link.0 / links_per_rank, link.0 % links_per_rank / 2);
        let sign = if link.0 % 2 == 0 { '+' } else { '-' };
        format!("{}{sign}{dimension}", self.vertex_name(from as u32))
    }

    /// Dimension order, dimension 0 first; in the nearer direction, and by [`ties`](Grid::ties) at
    /// exactly half a ring.
    #[inline]
    fn route(&self, from: Rank, to: Rank, out: &mut Route) {
        out.clear();
        let (mut from, mut to) = (from.0, to.0);
        for u in 0..self.sides().len() {
            let stride = self.radix.stride(u);
            out.push(u as u32, self.nearest(u, from / stride, to / stride));
            (from, to) = (from % stride, to % stride);
        }
    }

    /// A segment is valid if the grid has its dimension, it does not leave a side that does not
    /// wrap, and it is shorter than one turn around a side that wraps.
    #[inline]
    fn follow(&self, from: Rank, route: &Route) -> Result<u32, Segment> {
        let mut at = from;
        for &segment in route.segments() {
            let u = segment.dimension as usize;
            let Some(&side) = self.sides().get(u) else { return Err(segment) };
            let to = i64::from(self.radix.coordinate(at, u)).checked_add(segment.hops);
            let inside = match to {
                Some(to) if !self.wrap[u] => (0..i64::from(side)).contains(&to),
                Some(_) => segment.hops.unsigned_abs() < u64::from(side),
                None => false,
            };
            if !inside {
                return Err(segment);
            }
            at = self.radix.shifted(at, u, segment.hops);
        }
        Ok(at.0)
    }

    fn for_each_link(&self, from: Rank, route: &Route, visit: &mut dyn FnMut(LinkId)) {
        let mut at = from;
        for segment in route.segments() {
            let (u, direction) = (segment.dimension as usize, segment.hops.signum());
            for _ in 0..segment.hops.unsigned_abs() {
                visit(self.link_id(at, u, direction));
                at = self.radix.shifted(at, u, direction);
            }
        }
    }
}

pub(crate) fn torus(rest: &str) -> Result<Arc<dyn Topology>, String> {
    of_sides(rest, Some(true))
}

pub(crate) fn mesh(rest: &str) -> Result<Arc<dyn Topology>, String> {
    of_sides(rest, Some(false))
}

pub(crate) fn grid(rest: &str) -> Result<Arc<dyn Topology>, String> {
    of_sides(rest, None)
}

/// Reads sides that all wrap or do not wrap; if `wraps` is not given, a `~` marks those that wrap.
fn of_sides(rest: &str, wraps: Option<bool>) -> Result<Arc<dyn Topology>, String> {
    let (sides, wrap) = marked_sides(rest, wraps)?;
    Ok(Arc::new(Grid::new(&sides, &wrap)?))
}

/// The sides of [`of_sides`], and which of them wrap.
pub(crate) fn marked_sides(
    rest: &str,
    wraps: Option<bool>,
) -> Result<(Vec<u32>, Vec<bool>), String> {
    let read = sides(rest, |name, side| match (side.strip_suffix('~'), wraps) {
        (Some(_), Some(_)) => Err(format!(
            "{name} `{side}` is marked `~`: only grid: mixes sides that wrap with others"
        )),
        (marked, _) => {
            Ok((number(name, marked.unwrap_or(side))?, wraps.unwrap_or(marked.is_some())))
        }
    })?;
    Ok(read.into_iter().unzip())
}

/// The network of Tofu: units of 2 x 3 x 2 nodes, the side of 3 a ring, on a grid of three sides.
pub(crate) fn tofu(rest: &str) -> Result<Arc<dyn Topology>, String> {
    let (sides, wrap) = tofu_sides(rest)?;
    Ok(Arc::new(Grid::new(&sides, &wrap)?))
}

/// The sides X, Y, Z, A, B and C of [`tofu`], and which of them wrap.
pub(crate) fn tofu_sides(rest: &str) -> Result<(Vec<u32>, Vec<bool>), String> {
    let (mut sides, mut wrap) = marked_sides(rest, None)?;
    if sides.len() != 3 {
        return Err(format!("{} sides of units: Tofu has X, Y and Z", sides.len()));
    }
    sides.extend([2, 3, 2]);
    wrap.extend([false, true, false]);
    Ok((sides, wrap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_its_ranks_in_order() {
        let grid = Grid::mesh(&[4, 4]).unwrap();
        let boxed = |ranks: &[u32]| {
            let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
            grid.boxed(&ranks).map(|part| part.sides().to_vec())
        };
        assert_eq!(boxed(&[1, 2, 5, 6]), Some(vec![2, 2]));
        assert_eq!(boxed(&[1, 5, 2, 6]), None);
        assert_eq!(boxed(&[1, 2, 6]), None);
    }

    #[test]
    fn links_are_numbered_apart_and_counted() {
        let grids = [
            Grid::torus(&[4, 3]),
            Grid::mesh(&[4, 3]),
            Grid::new(&[2, 1, 3], &[true, true, false]),
            Grid::torus(&[2, 2]),
            Grid::mesh(&[2, 3, 1]),
        ];
        for grid in grids.map(Result::unwrap) {
            let numbers = 0..u64::from(grid.ranks()) * 2 * grid.sides().len() as u64;
            assert_eq!(grid.link(LinkId(numbers.end)), None);
            let links: Vec<_> = numbers.filter_map(|id| grid.link(LinkId(id))).collect();
            assert_eq!(links.len() as u64, grid.links(), "{}", grid.short_form());
            let out = |from| links.iter().filter(|link| link.from == from).count() as u64;
            assert_eq!((0..grid.ranks()).map(out).max(), Some(grid.most_links_out()));
            for link in links {
                let id = grid.link_id(Rank(link.from), link.class as usize, link.direction);
                assert_eq!(grid.link(id), Some(link));
            }
        }
    }

    #[test]
    fn routes_are_shortest_and_end_at_their_destination() {
        let grid = Grid::new(&[5, 4, 2], &[true, false, true]).unwrap();
        let mut route = Route::default();
        for from in (0..grid.ranks()).map(Rank) {
            for to in (0..grid.ranks()).map(Rank) {
                grid.route(from, to, &mut route);
                assert_eq!(grid.follow(from, &route), Ok(to.0));
                let mut links = 0;
                grid.for_each_link(from, &route, &mut |id| {
                    assert!(grid.link(id).is_some());
                    links += 1;
                });
                assert_eq!(links, route.hops());
                let limit: u32 = (0..3).map(|u| grid.diameter_along(u)).sum();
                assert!(route.hops() <= u64::from(limit));
            }
        }
    }

    #[test]
    fn half_a_ring_is_travelled_by_ties() {
        let grid = Grid::torus(&[8]).unwrap();
        let balanced = grid.clone().with_ties(Ties::Balanced);
        for (from, to, up, by_parity) in [(6, 2, 4, 4), (2, 6, 4, 4), (3, 7, 4, -4), (2, 7, -3, -3)]
        {
            assert_eq!(grid.nearest(0, from, to), up);
            assert_eq!(balanced.nearest(0, from, to), by_parity);
        }
    }

    /// 4x4x4 has 48 messages on its busiest link with ties upwards, and 32 with balanced ties.
    #[test]
    fn the_busiest_link_of_the_routes_is_known() {
        let counted = |grid: &Grid| {
            let mut loads = vec![0u128; grid.link_numbers() as usize];
            let mut route = Route::default();
            for from in (0..grid.ranks()).map(Rank) {
                for to in (0..grid.ranks()).map(Rank) {
                    grid.route(from, to, &mut route);
                    grid.for_each_link(from, &route, &mut |link| loads[link.0 as usize] += 1);
                }
            }
            let links_per_rank = 2 * grid.sides().len();
            let along = |u| loads.chunks(links_per_rank).flat_map(move |of| &of[2 * u..2 * u + 2]);
            (0..grid.sides().len()).map(|u| *along(u).max().unwrap()).collect::<Vec<_>>()
        };
        let grids = [
            (Grid::torus(&[4, 4, 4]), Some([48, 32])),
            (Grid::torus(&[6, 5]), None),
            (Grid::torus(&[10, 2, 3]), None),
            (Grid::new(&[8, 1, 4], &[true, true, false]), None),
            (Grid::mesh(&[5, 4]), None),
        ];
        for (grid, known) in grids {
            let grid = grid.unwrap();
            for (i, ties) in [Ties::Up, Ties::Balanced].into_iter().enumerate() {
                let grid = grid.clone().with_ties(ties);
                let loads: Vec<_> = (0..grid.sides().len()).map(|u| grid.routed_load(u)).collect();
                assert_eq!(loads, counted(&grid), "{} {ties:?}", grid.short_form());
                assert!(known.is_none_or(|known| loads.iter().max() == Some(&known[i])));
            }
        }
    }

    #[test]
    fn routes_off_the_grid_are_found() {
        let grid = Grid::new(&[4, 4], &[false, true]).unwrap();
        for (dimension, hops) in [(0, 4), (0, -1), (1, 4), (2, 1), (0, i64::MAX)] {
            assert!(grid.follow(Rank(0), &Route::straight(dimension, hops)).is_err());
        }
        assert_eq!(grid.follow(Rank(0), &Route::straight(1, -3)), Ok(1));
    }

    #[test]
    fn the_largest_grid_does_not_overflow() {
        let grid = Grid::torus(&[65535, 65537]).unwrap();
        let last = Rank(grid.ranks() - 1);
        let mut route = Route::default();
        grid.route(last, Rank(0), &mut route);
        assert_eq!(
            route.segments(),
            [Segment { dimension: 0, hops: 1 }, Segment { dimension: 1, hops: 1 }]
        );
        assert_eq!(grid.links(), 4 * u64::from(u32::MAX));
        assert_eq!(Grid::torus(&[65536, 65536]), Err(TopologyError::too_many_ranks()));
    }
}
