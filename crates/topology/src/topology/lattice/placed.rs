//! Grids whose ranks are placed on the nodes of another grid.
//!
//! Algorithms see the logical grid. Links are those of the physical one, and all messages take its routes, in
//! dimension order: those that a schedule names on the logical grid are left out.
//!
//! A logical side is a walk over some physical sides. Where it does not wrap, it is a snake: up the first
//! side, down beside it, and so on. Where it wraps, it is a ring (m nodes of a snake over all sides but the last)
//! x (k of the last). The first node of each row of one factor is left for the way back, and a snake visits the
//! others: rows over the snake if k is even, so for k = 2 out along it and back beside it; else over the last
//! side. The latter closes if m is even or the last side wraps. A ring on one side is that side.

use std::sync::Arc;

use super::{Lattice, MOST_TWISTED, NONE, check_nodes};
use crate::topology::graph::{Links, Routes};
use crate::topology::grid::{marked_sides, tofu_sides};
use crate::{Graph, Grid, LinkKind, Rank, Route, Segment, Shape, Ties, Topology, TopologyError};

/// The subject of a limit.
const WHAT: &str = "a grid on another one";

/// The axes of a torus with SimGrid's routes.
pub(crate) const SIMGRID: &str = "simgrid";

/// Sides, and which of them wrap.
type Sides = (Vec<u32>, Vec<bool>);

impl Graph {
    /// The ranks of a logical grid on these nodes of a physical one, as the machine `form`.
    ///
    /// # Errors
    /// More than 2^20 ranks, balanced ties, another number of nodes than ranks, a node that the
    /// physical grid does not have, or two ranks on one node.
    pub fn placed(
        form: String,
        logical: &Grid,
        physical: &Grid,
        nodes: &[u32],
    ) -> Result<Self, TopologyError> {
        let all = physical.ranks();
        check_nodes(physical.radix(), WHAT, MOST_TWISTED)?;
        if physical.ties() == Ties::Balanced {
            return Err("a placement requires ties that are not balanced".to_owned().into());
        }
        if logical.ranks() != all || nodes.len() != all as usize {
            let (shown, on) = (logical.short_form(), physical.short_form());
            let (ranks, listed) = (logical.ranks(), nodes.len());
            return Err(format!(
                "{listed} nodes for the {ranks} ranks of {shown} on the {all} nodes of {on}: each node has one rank"
            )
            .into());
        }
        let mut rank_on = vec![NONE; all as usize];
        for (rank, &node) in (0..).zip(nodes) {
            let rule = match rank_on.get(node as usize) {
                None => format!("the last node is {}", all - 1),
                Some(&NONE) => {
                    rank_on[node as usize] = rank;
                    continue;
                }
                Some(other) => format!("which has rank {other}"),
            };
            return Err(format!("rank {rank} on node {node}, {rule}").into());
        }
        let lattice = Lattice {
            radix: physical.radix().clone(),
            wrap: physical.wrap().to_vec(),
            faults: Vec::new(),
            failures: Vec::new(),
            places: nodes.to_vec(),
            logical: Some(Arc::new(logical.clone())),
        };
        let links = lattice.links(&rank_on);
        let routes = DimensionOrder::new(physical, nodes, &links);
        Ok(lattice.graph(form, links, Box::new(routes)))
    }
}

/// The logical grid on physical sides: a list for each of its sides, such as `16x2x2,16x2x2`, or `tofu:XxYxZ`
/// for `Xx2,Yx3~,Zx2`. Lists in sequence are one where a side has the nodes of all. Or `simgrid`, for
/// SimGrid's routes: its first side is the last of ours. The grid itself if its sides are the physical ones.
pub(crate) fn on_axes(
    topology: Arc<dyn Topology>,
    text: &str,
) -> Result<Arc<dyn Topology>, String> {
    let Shape::Grid(logical) = topology.shape() else { return Ok(topology) };
    check_nodes(logical.radix(), WHAT, MOST_TWISTED).map_err(|e| e.message)?;
    let (physical, nodes) =
        if text == SIMGRID { simgrid(logical)? } else { by_walks(logical, text)? };
    if physical == *logical && (0..).zip(&nodes).all(|(rank, &node)| rank == node) {
        return Ok(topology);
    }
    let form = format!("{}@{text}", logical.short_form());
    Ok(Arc::new(Graph::placed(form, logical, &physical, &nodes)?))
}

/// The grid with the routes of SimGrid's torus, and the nodes there.
fn simgrid(logical: &Grid) -> Result<(Grid, Vec<u32>), String> {
    let mut sides = logical.sides().to_vec();
    sides.reverse();
    let has_ties = sides.iter().any(|side| side % 2 == 0);
    let ties = if has_ties { Ties::SimGrid } else { Ties::Up };
    let physical = Grid::torus(&sides)?.with_ties(ties);
    let node = |rank| {
        let mut coordinates = logical.radix().coordinates(Rank(rank));
        coordinates.reverse();
        physical.radix().rank(&coordinates).0
    };
    let nodes = (0..logical.ranks()).map(node).collect();
    match logical.wrap().contains(&false) {
        true => Err(format!("{} is not a torus, as those of SimGrid are", logical.short_form())),
        false => Ok((physical, nodes)),
    }
}

/// The grid of the axes of each side, and the nodes of walks through these.
fn by_walks(logical: &Grid, text: &str) -> Result<(Grid, Vec<u32>), String> {
    let mut lists = lists(text)?.into_iter();
    let (mut all, mut nodes): (Sides, _) = (Sides::default(), vec![0]);
    for (u, (&side, &wraps)) in logical.sides().iter().zip(logical.wrap()).enumerate() {
        let wrong = |rule: String| format!("side {u} of {}: {rule}", logical.short_form());
        let (mut own, mut count) = (Sides::default(), 1u64);
        while own.0.is_empty() || count < side.into() {
            let rule = || wrong(format!("its axes have {count} nodes in place of {side}"));
            let (sides, wrap) = lists.next().ok_or_else(rule)?;
            count = sides.iter().fold(count, |all, &side| all.saturating_mul(side.into()));
            own.0.extend(sides);
            own.1.extend(wrap);
        }
        if count > side.into() {
            return Err(wrong(format!("its axes have {count} nodes in place of {side}")));
        }
        let along = walk(&own, wraps).ok_or_else(|| {
            wrong("it wraps, and its axes have no ring: they have an even number of nodes and two sides \
                   longer than 1, or the last of these wraps (`~`)".to_owned())
        })?;
        nodes =
            nodes.iter().flat_map(|node| along.iter().map(move |at| node * side + at)).collect();
        all.0.extend(own.0);
        all.1.extend(own.1);
    }
    if lists.next().is_some() {
        return Err(format!("more axes than {} has nodes for", logical.short_form()));
    }
    Ok((Grid::new(&all.0, &all.1)?, nodes))
}

fn lists(text: &str) -> Result<Vec<Sides>, String> {
    let Some(units) = text.strip_prefix("tofu:") else {
        let list = |list| marked_sides(list, None).map_err(|rule| format!("axis `{list}`: {rule}"));
        return text.split(',').map(list).collect();
    };
    let (sides, wrap) = tofu_sides(units)?;
    // X and A, Y and B, Z and C.
    Ok((0..3).map(|u| (vec![sides[u], sides[u + 3]], vec![wrap[u], wrap[u + 3]])).collect())
}

/// The nodes of a walk over sides, numbered row-major; `None` if there is no ring.
fn walk((sides, wrap): &Sides, ring: bool) -> Option<Vec<u32>> {
    let stride = |u: usize| sides[u + 1..].iter().product::<u32>();
    let long: Vec<usize> = (0..sides.len()).filter(|&u| sides[u] > 1).collect();
    let snake = |over: &[usize]| {
        over.iter().fold(vec![0], |row: Vec<u32>, &u| {
            let forth = (0..sides[u]).map(|j| (j * stride(u), j % 2 == 0));
            let rows = forth.flat_map(|(first, up)| {
                let at = |i: usize| if up { row[i] } else { row[row.len() - 1 - i] };
                (0..row.len()).map(|i| first + at(i)).collect::<Vec<_>>()
            });
            rows.collect()
        })
    };
    let Some((&last, rest)) = long.split_last().filter(|_| ring) else { return Some(snake(&long)) };
    let (line, k) = (snake(rest), sides[last]);
    let at = |i: u32, j: u32| line[i as usize] + j * stride(last);
    let m = line.len() as u32;
    Some(match k % 2 == 0 && m > 1 {
        true => there_and_back(k, m, |row, x| at(x, row)),
        false if wrap[last] || m % 2 == 0 => there_and_back(m, k, at),
        false => return None,
    })
}

/// A ring over rows: the first of row 0, a snake over all but the first of each, and these back.
fn there_and_back(rows: u32, length: u32, at: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    let mut ring = vec![at(0, 0)];
    for row in 0..rows {
        let x = |x: u32| if row % 2 == 0 { x } else { length - x };
        ring.extend((1..length).map(|i| at(row, x(i))));
    }
    ring.extend((1..rows).rev().map(|row| at(row, 0)));
    ring
}

/// The routes of a grid whose nodes have other numbers.
#[derive(Debug)]
struct DimensionOrder {
    grid: Grid,
    /// By node, its number on the grid.
    places: Vec<u32>,
    /// By [`LinkId`] on the grid.
    links: Arc<[u32]>,
}

impl DimensionOrder {
    fn new(grid: &Grid, places: &[u32], links: &Links) -> Self {
        let mut numbers = vec![NONE; grid.link_numbers() as usize];
        for (node, &place) in (0..).zip(places) {
            for link in links.leaving(node) {
                let LinkKind { class, direction, .. } = *links.kind(link);
                let on_grid = grid.link_id(Rank(place), class as usize, direction);
                numbers[on_grid.0 as usize] = link as u32;
            }
        }
        Self { grid: grid.clone(), places: places.to_vec(), links: numbers.into() }
    }
}

impl Routes for DimensionOrder {
    fn next(&self, links: &Links, at: u32, _from: u32, to: u32) -> usize {
        let [here, there] = [at, to].map(|node| Rank(self.places[node as usize]));
        let mut route = Route::default();
        self.grid.route(here, there, &mut route);
        let Segment { dimension, hops } = route.segments()[0];
        let link = self.grid.link_id(here, dimension as usize, hops.signum());
        self.links[link.0 as usize] as usize - links.leaving(at).start
    }

    fn diameter(&self) -> u32 {
        (0..self.grid.sides().len()).map(|u| self.grid.diameter_along(u)).sum()
    }

    fn are_shortest(&self) -> bool {
        true
    }

    fn on_grid(&self) -> Option<OnGrid<'_>> {
        Some(OnGrid { grid: &self.grid, nodes: &self.places, links: &self.links })
    }
}

/// A graph whose links and routes are those of a grid with other numbers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OnGrid<'g> {
    /// The grid.
    pub grid: &'g Grid,
    /// By node of the graph, its number on the grid.
    pub nodes: &'g [u32],
    /// By number of a link on the grid, its number on the graph.
    pub links: &'g Arc<[u32]>,
}
