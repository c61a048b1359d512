//! The bound on the load of the busiest link of a lattice, as [`lengths`](super) explains it.
//!
//! Where translations keep all links, all links of a dimension may have one length: the mean over
//! translations is no worse. Kelley's cutting planes find these few lengths exactly. The shortest
//! routes under some lengths give the hops of blocks along each dimension, which bound the load
//! under all other lengths. The lengths that are best under the bounds so far come next, until they
//! reach the bound. Where links are missing, the lattice is a graph as any other.
//! `tests/correctness/lattices.rs` compares the results with linear programs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use topocoll_topology::{Graph, Lattice, LinkId, MixedRadix, Rank, Topology as _};

use super::{Channel, LeastLoad, Proof};

/// No node.
const NONE: u32 = u32::MAX;

/// The most cutting planes.
const PLANES: usize = 100;

/// Lengths are multiples of 1 over at most this.
const FRACTIONS: u64 = 1 << 16;

/// The bound of a whole lattice.
pub(super) fn least_load(graph: &Graph) -> Proof {
    let (load, weights) = by_dimensions(&Places::of(graph));
    let links = (0..graph.links()).map(|link| graph.link_kinds()[graph.link_kind(LinkId(link))]);
    let lengths = links.map(|kind| weights.get(kind.class as usize).copied().unwrap_or(0));
    Proof { load, lengths: lengths.collect() }
}

/// Raises a bound by cuts of a lattice with these links.
pub(super) fn raise_by_cuts(graph: &Graph, lattice: &Lattice, links: &[Channel], best: &mut Proof) {
    for (cut, inside) in cuts(graph, lattice) {
        let leaves = |link: &Channel| inside(link.from) && !inside(link.to);
        best.raise(cut, || links.iter().map(|link| u64::from(leaves(link))).collect());
    }
}

/// The loads of cuts around all nodes up to a place along a side, and around half of a side that
/// wraps, and which nodes are inside. Cuts by distances alone bend around missing nodes.
fn cuts<'g>(
    graph: &'g Graph,
    lattice: &'g Lattice,
) -> impl Iterator<Item = (LeastLoad, impl Fn(u32) -> bool + 'g)> + 'g {
    let sides = lattice.radix().sides().iter().enumerate();
    let parts = sides.flat_map(|(u, &side)| (0..side).map(move |place| (u, side, place)));
    parts.map(move |(u, side, place)| {
        let (first, length) = if lattice.wrap()[u] { (place, side / 2) } else { (0, place) };
        let inside = move |node: u32| {
            let at = lattice.radix().coordinate(lattice.place(Rank(node)), u);
            (at + side - first) % side < length
        };
        let (mut members, mut links) = (0, 0);
        for node in (0..graph.ranks()).filter(|&node| inside(node)) {
            members += 1;
            links += graph.leaving(node).filter(|(_, to)| !inside(*to)).count() as u128;
        }
        let distances = members * (u128::from(graph.ranks()) - members);
        (LeastLoad { distances, lengths: links }, inside)
    })
}

/// The nodes and links of a lattice.
struct Places<'a> {
    radix: &'a MixedRadix,
    /// By node, dimension and direction (+, -), the node that the link leads to.
    next: Vec<u32>,
}

impl<'a> Places<'a> {
    fn of(graph: &'a Graph) -> Self {
        let lattice = graph.lattice().expect("bug: the load of another graph");
        let outgoing = |node: u32| {
            (0..lattice.radix().dimensions()).flat_map(move |u| [1, -1].map(|way| (node, u, way)))
        };
        let next = (0..graph.ranks()).flat_map(outgoing).map(|(node, u, direction)| {
            graph.neighbour(Rank(node), u, direction).map_or(NONE, |to| to.0)
        });
        Self { radix: lattice.radix(), next: next.collect() }
    }

    fn per_rank(&self) -> usize {
        2 * self.radix.dimensions()
    }
}

/// The blocks that each link carries on shortest routes from rank 0 to all others.
fn carried(lattice: &Places<'_>, lengths: &[u64]) -> Vec<u64> {
    let per_rank = lattice.per_rank();
    let ranks = lattice.next.len() / per_rank;
    let mut carried = vec![0; lattice.next.len()];
    let mut order = Vec::new();
    // Length first, then links, so that routes take no needless links of length 0.
    let mut found = vec![(u64::MAX, u32::MAX, usize::MAX); ranks];
    found[0] = (0, 0, usize::MAX);
    let mut open = BinaryHeap::from([Reverse((0, 0, 0))]);
    while let Some(Reverse((length, links, at))) = open.pop() {
        if (length, links) != (found[at].0, found[at].1) {
            continue;
        }
        order.push(at);
        let leaving = lattice.next.iter().enumerate().skip(at * per_rank).take(per_rank);
        for (link, &to) in leaving.filter(|(_, to)| **to != NONE) {
            let (length, links) = (length + lengths[link], links + 1);
            let known = &mut found[to as usize];
            if (length, links) < (known.0, known.1) {
                *known = (length, links, link);
                open.push(Reverse((length, links, to as usize)));
            }
        }
    }
    let mut blocks = vec![1u64; ranks];
    for &at in order.iter().rev() {
        let link = found[at].2;
        if link != usize::MAX {
            carried[link] += blocks[at];
            blocks[link / per_rank] += blocks[at];
        }
    }
    carried
}

/// The bound by lengths of dimensions, and these lengths.
fn by_dimensions(lattice: &Places<'_>) -> (LeastLoad, Vec<u64>) {
    let per_rank = lattice.per_rank();
    let moving: Vec<usize> = (0..per_rank / 2).filter(|&u| lattice.next[2 * u] != NONE).collect();
    let turns = turns_around(lattice.radix);
    let mut best = Proof::NONE;
    let mut weights = vec![1; moving.len()];
    let mut planes: Vec<Vec<f64>> = Vec::new();
    while !moving.is_empty() && planes.len() < PLANES {
        let mut by_dimension = vec![0; per_rank / 2];
        moving.iter().zip(&weights).for_each(|(&u, &weight)| by_dimension[u] = weight);
        let along = match &turns {
            Some(turns) => hops_along(lattice.radix, turns, &by_dimension),
            None => {
                let lengths = (0..lattice.next.len()).map(|link| by_dimension[link % per_rank / 2]);
                let carried = carried(lattice, &lengths.collect::<Vec<_>>());
                let mut along = vec![0; per_rank / 2];
                carried.iter().enumerate().for_each(|(i, more)| along[i % per_rank / 2] += more);
                along
            }
        };
        let product = |(weight, hops): (&u64, &u64)| u128::from(*weight) * u128::from(*hops);
        let load = LeastLoad {
            distances: by_dimension.iter().zip(&along).map(product).sum(),
            lengths: weights.iter().map(|&weight| 2 * u128::from(weight)).sum(),
        };
        best.raise(load, || by_dimension);
        // Of the blocks that a source sends along u, half go in each direction.
        planes.push(moving.iter().map(|&u| along[u] as f64 / 2.0).collect());
        let Some((bound, next)) = best_weights(&planes) else { break };
        if bound <= best.load.blocks() * (1.0 + 1e-9) || next == weights {
            break;
        }
        weights = next;
    }
    (best.load, best.lengths)
}

/// Turns around the twisted sides, and the shift of all of them along the longest sides.
struct Turns {
    times: Vec<(usize, i64)>,
    shift: i64,
}

/// Combinations of turns around the twisted sides that suffice for a shortest route to any rank;
/// `None` if there are too many to try.
fn turns_around(radix: &MixedRadix) -> Option<Vec<Turns>> {
    /// The most combinations tried for each rank.
    const MOST: usize = 64;
    let longest = i64::from(*radix.sides().iter().max()?);
    let mut turns = vec![Turns { times: Vec::new(), shift: 0 }];
    for (u, &shift) in radix.shifts().iter().enumerate().filter(|(_, shift)| **shift > 0) {
        // `period` turns lead back. From a coordinate c of 0 to side - 1, r turns and r - period
        // turns lead to the same place, with c + r side or (period - r) side - c hops. The former
        // is no longer only if 2 r < period, the latter only if 2 r > period - 2.
        let period = (1..=longest).find(|times| times * i64::from(shift) % longest == 0)?;
        let more = turns.iter().flat_map(|before| {
            (-(period + 1) / 2..=(period - 1) / 2).map(move |times| Turns {
                times: before.times.iter().copied().chain([(u, times)]).collect(),
                shift: before.shift + times * i64::from(shift),
            })
        });
        turns = more.take(MOST + 1).collect();
    }
    (turns.len() <= MOST).then_some(turns)
}

/// The hops along each dimension from rank 0 to all others on shortest routes under the lengths of
/// the dimensions; among these, on routes of the fewest links.
fn hops_along(radix: &MixedRadix, turns: &[Turns], lengths: &[u64]) -> Vec<u64> {
    let sides: Vec<i64> = radix.sides().iter().map(|&side| side.into()).collect();
    let longest = sides.iter().copied().max().unwrap_or(1);
    let mut along = vec![0; sides.len()];
    let (mut hops, mut best) = (vec![0; sides.len()], vec![0; sides.len()]);
    for rank in 0..radix.ranks() {
        let at = radix.coordinates(Rank(rank));
        let mut least = (u64::MAX, u64::MAX);
        for Turns { times, shift } in turns {
            for (u, &side) in sides.iter().enumerate() {
                let moved = if side == longest { i64::from(at[u]) - shift } else { at[u].into() };
                let moved = moved.rem_euclid(side);
                hops[u] = moved.min(side - moved) as u64;
            }
            for &(u, times) in times {
                hops[u] = (i64::from(at[u]) + times * sides[u]).unsigned_abs();
            }
            let length = hops.iter().zip(lengths).map(|(hops, length)| hops * length).sum();
            let key = (length, hops.iter().sum());
            if key < least {
                least = key;
                best.copy_from_slice(&hops);
            }
        }
        along.iter_mut().zip(&best).for_each(|(sum, hops)| *sum += hops);
    }
    along
}

/// The weights at which the least of the planes is greatest, and its value there for weights of sum
/// 1.
///
/// Weights and planes are the strategies of a matrix game. The simplex method solves its linear
/// program (Dantzig 1951): the largest sum of multiples of planes that is at most 1 along every
/// dimension. Bland's rule prevents cycles; `PIVOTS` ends those that rounding causes.
fn best_weights(planes: &[Vec<f64>]) -> Option<(f64, Vec<u64>)> {
    const ROUNDING: f64 = 1e-9;
    const PIVOTS: usize = 10_000;
    let (rows, columns) = (planes[0].len(), planes.len());
    let largest = planes.iter().flatten().copied().fold(0.0, f64::max);
    // A row per dimension, then the prices; a column per plane and dimension, then the limits.
    let mut table = vec![vec![0.0; columns + rows + 1]; rows + 1];
    for (i, row) in table.iter_mut().enumerate().take(rows) {
        row.iter_mut().zip(planes).for_each(|(entry, plane)| *entry = plane[i] / largest);
        row[columns + i] = 1.0;
        row[columns + rows] = 1.0;
    }
    table[rows][..columns].fill(-1.0);
    let mut basis: Vec<usize> = (columns..columns + rows).collect();
    for _ in 0..PIVOTS {
        let prices = &table[rows][..columns + rows];
        let Some(enters) = prices.iter().position(|&price| price < -ROUNDING) else {
            let total = table[rows][columns + rows];
            let found: Vec<f64> = prices[columns..].iter().map(|price| price / total).collect();
            return Some((largest / total, fractions(&found)));
        };
        let ratio = |i: &usize| table[*i][columns + rows] / table[*i][enters];
        let leaves = (0..rows)
            .filter(|&i| table[i][enters] > ROUNDING)
            .min_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(basis[*a].cmp(&basis[*b])))?;
        basis[leaves] = enters;
        let pivot = table[leaves][enters];
        table[leaves].iter_mut().for_each(|entry| *entry /= pivot);
        let chosen = table[leaves].clone();
        for (_, row) in table.iter_mut().enumerate().filter(|(i, _)| *i != leaves) {
            let times = row[enters];
            row.iter_mut().zip(&chosen).for_each(|(entry, chosen)| *entry -= times * chosen);
        }
    }
    None
}

/// Whole numbers in the proportion of weights of sum 1, exact where these have a small common
/// denominator.
fn fractions(weights: &[f64]) -> Vec<u64> {
    let times = |n: u64| weights.iter().map(move |weight| weight * n as f64);
    let whole = |n: &u64| times(*n).all(|value| (value - value.round()).abs() < 1e-6);
    let denominator = (1..=256).find(whole).unwrap_or(FRACTIONS);
    times(denominator).map(|value| value.round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use topocoll_topology::{Shape, spec::parse_short_form};

    use super::super::prove;
    use super::*;

    #[test]
    fn hops_along_dimensions_are_those_of_shortest_routes() {
        for (sides, shifts) in [
            (&[4u32, 8][..], &[4u32, 0][..]),
            (&[3, 6], &[2, 0]),
            (&[3, 8], &[2, 0]),
            (&[3, 10], &[4, 0]),
            (&[4, 4, 8], &[4, 4, 0]),
            (&[2, 6, 6], &[3, 0, 0]),
            (&[5, 3, 9], &[3, 6, 0]),
            (&[4, 6], &[0, 0]),
        ] {
            let graph = Graph::twisted_torus(sides, shifts).unwrap();
            let lattice = Places::of(&graph);
            let turns = turns_around(lattice.radix).unwrap();
            for weights in [[1, 1, 1], [3, 1, 2], [0, 1, 5], [7, 0, 0], [1, 9, 0]] {
                let per_rank = lattice.per_rank();
                let lengths = (0..lattice.next.len()).map(|link| weights[link % per_rank / 2]);
                let lengths: Vec<u64> = lengths.collect();
                let carried = carried(&lattice, &lengths);
                let travelled =
                    carried.iter().zip(&lengths).map(|(blocks, length)| blocks * length);
                let along = hops_along(lattice.radix, &turns, &weights[..sides.len()]);
                let distances = along.iter().zip(weights).map(|(hops, weight)| hops * weight);
                let place = format!("{sides:?} {shifts:?} {weights:?}");
                assert_eq!(distances.sum::<u64>(), travelled.sum::<u64>(), "{place}");
                assert_eq!(along.iter().sum::<u64>(), carried.iter().sum::<u64>(), "{place}");
            }
        }
        // A shift by one has the longest period.
        assert!(turns_around(&MixedRadix::twisted(&[2, 128], &[1, 0]).unwrap()).is_none());
    }

    #[test]
    fn the_least_load_of_a_torus_is_that_of_its_bisection() {
        let least = |text: &str| {
            let machine = parse_short_form(text).unwrap();
            let Shape::Graph(lattice) = machine.shape() else { panic!("a lattice") };
            prove(lattice, &vec![(1, 1); lattice.link_kinds().len()], &[]).load
        };
        let fraction = |text| (least(text).distances, least(text).lengths);
        assert_eq!(fraction("twisted-torus:4+0x4+0x8"), (256, 2));
        assert_eq!(fraction("twisted-torus:4x4x8"), (440, 6));
        assert_eq!(fraction("twisted-torus:8x8x16"), (7136, 6));
        assert!(least("torus:4x8/0,0+1").blocks() > 32.0);
        // Cut at the middle of a side of 32 that does not wrap.
        assert_eq!(fraction("mesh:32x32/0,0"), (511 * 512, 32));
    }
}
