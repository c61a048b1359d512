//! Positions for the vertices of a graph: by coordinates, in levels, in groups, or by distances.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use topocoll::{Graph, Rank, Topology};

type Place = [f64; 2];

/// Rounds of the layout by distances.
const ROUNDS: usize = 80;

/// A level is drawn so far above the one below, as a part of the width over the number of levels.
const RISE: f64 = 0.45;

/// Half the distance of the first two nodes of a switch, and how much more that of the next is.
const FIRST_PAIR: f64 = 0.4;
const WIDER: f64 = 0.5;

/// The class of links between the groups of a dragonfly.
const GLOBAL: &str = "global";

/// Where the vertices of a graph are drawn.
pub(super) struct Layout {
    /// By vertex, its position, y downwards, in units of the distance between neighbours.
    pub(super) places: Vec<[f32; 2]>,
    /// By vertex, links to the nearest node, if each link leads one level up or down.
    pub(super) levels: Vec<u32>,
    /// Whether links pass over other vertices, so that they are drawn as curves.
    pub(super) curved: bool,
}

pub(super) fn layout(graph: &Graph) -> Layout {
    let joined = neighbours(graph);
    let nodes = graph.ranks() as usize;
    let curved = joined.len() == nodes && graph.translations().is_some();
    let levels = levels(&joined, nodes);
    let places = match &levels {
        _ if curved => by_coordinates(graph),
        Some(levels) => in_levels(&joined, nodes, levels),
        None if graph.link_classes().iter().any(|class| class == GLOBAL) => {
            in_groups(graph, &joined)
        }
        None => by_distances(&joined),
    };
    let hundredths = |x: f64| (x * 100.0).round() as f32 / 100.0;
    Layout {
        places: places.into_iter().map(|place| place.map(hundredths)).collect(),
        levels: levels.unwrap_or_default(),
        curved,
    }
}

/// By vertex, the vertices that links join to it, ascending.
fn neighbours(graph: &Graph) -> Vec<Vec<usize>> {
    let mut joined = vec![Vec::new(); graph.vertices() as usize];
    for from in 0..graph.vertices() {
        for (_, to) in graph.leaving(from) {
            joined[from as usize].push(to as usize);
            joined[to as usize].push(from as usize);
        }
    }
    for list in &mut joined {
        list.sort_unstable();
        list.dedup();
    }
    joined
}

/// Links to the nearest of some vertices.
fn distances(joined: &[Vec<usize>], from: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut hops = vec![u32::MAX; joined.len()];
    let mut open: VecDeque<usize> = from.collect();
    open.iter().for_each(|&vertex| hops[vertex] = 0);
    while let Some(at) = open.pop_front() {
        for &to in &joined[at] {
            if hops[to] == u32::MAX {
                hops[to] = hops[at] + 1;
                open.push_back(to);
            }
        }
    }
    hops
}

/// The levels of a network whose links each lead one level up or down; nodes are level 0.
fn levels(joined: &[Vec<usize>], nodes: usize) -> Option<Vec<u32>> {
    let levels = distances(joined, 0..nodes);
    let climbs = |(from, list): (usize, &Vec<usize>)| {
        list.iter().all(|&to| levels[from].abs_diff(levels[to]) == 1)
    };
    joined.iter().enumerate().all(climbs).then_some(levels)
}

/// A grid in the plane: dimensions run along x and y in turn, the last along x.
fn by_coordinates(graph: &Graph) -> Vec<Place> {
    let radix = graph.translations().expect("bug: a graph without coordinates");
    let mut extent = [1.0, 1.0];
    let mut pitches = Vec::new();
    let mut long: Vec<usize> = radix.long_dimensions().collect();
    long.reverse();
    for (i, &u) in long.iter().enumerate() {
        let extent = &mut extent[i % 2];
        pitches.push((i % 2, u, *extent));
        let apart = if *extent > 1.0 { 0.5 } else { 0.0 };
        *extent *= f64::from(radix.sides()[u]) + apart;
    }
    let place = |rank| {
        let mut place = [0.0, 0.0];
        for &(axis, u, pitch) in &pitches {
            place[axis] += pitch * f64::from(radix.coordinate(rank, u));
        }
        place
    };
    (0..graph.ranks()).map(|rank| place(Rank(rank))).collect()
}

/// Nodes below their switches in blocks, other levels in rows, each vertex near those below it.
fn in_levels(joined: &[Vec<usize>], nodes: usize, levels: &[u32]) -> Vec<Place> {
    let top = levels.iter().copied().max().unwrap_or(0);
    let mut places = vec![[0.0, 0.0]; joined.len()];
    let row = |level| (0..joined.len()).filter(|&v| levels[v] == level).collect::<Vec<_>>();
    let below =
        |v: usize| joined[v].iter().copied().filter(|&w| levels[w] < levels[v]).collect::<Vec<_>>();
    let mean = |list: &[usize], x: &dyn Fn(usize) -> f64| {
        list.iter().map(|&v| x(v)).sum::<f64>() / list.len().max(1) as f64
    };
    let mut width = nodes as f64;
    let mut first = row(1);
    first.sort_by(|&a, &b| {
        let at = |v| mean(&below(v), &|node| node as f64);
        at(a).total_cmp(&at(b)).then(a.cmp(&b))
    });
    let alone = (0..nodes).all(|node| joined[node].len() == 1);
    if alone {
        // Pairs of nodes, each wider apart than the one above, so that no link passes a node.
        let mut left = 0.0;
        for &switch in &first {
            let own = below(switch);
            let aside = |i: usize| FIRST_PAIR + WIDER * (i / 2) as f64;
            let reach = if own.len() > 1 { aside(own.len() - 1) } else { 0.0 };
            let middle = left + reach;
            for (i, &node) in own.iter().enumerate() {
                let side = if i % 2 == 0 { -aside(i) } else { aside(i) };
                let x = middle + if own.len() > 1 { side } else { 0.0 };
                places[node] = [x, (i / 2) as f64];
            }
            places[switch][0] = middle;
            left = middle + reach + 1.0;
        }
        width = left - 1.0;
    } else {
        for (node, place) in places.iter_mut().enumerate().take(nodes) {
            place[0] = node as f64;
        }
    }
    let rise = (RISE * width / f64::from(top.max(1))).max(1.6);
    for level in 1..=top {
        let mut list = if level == 1 { first.clone() } else { row(level) };
        let x = |v: usize| places[v][0];
        if level > 1 || !alone {
            let at: Vec<f64> = (0..joined.len()).map(|v| mean(&below(v), &x)).collect();
            list.sort_by(|&a, &b| at[a].total_cmp(&at[b]).then(a.cmp(&b)));
            let apart = width / list.len() as f64;
            for (i, &v) in list.iter().enumerate() {
                places[v][0] = (i as f64 + 0.5) * apart;
            }
        }
        list.iter().for_each(|&v| places[v][1] = -rise * f64::from(level));
    }
    places
}

/// Groups on a circle; the switches of a group on a circle, and the nodes of a switch outside it.
fn in_groups(graph: &Graph, joined: &[Vec<usize>]) -> Vec<Place> {
    let nodes = graph.ranks() as usize;
    let classes = graph.link_classes();
    let mut inside = vec![Vec::new(); joined.len()];
    for from in 0..graph.vertices() {
        for (link, to) in graph.leaving(from) {
            let class = graph.link(link).map_or(0, |link| link.class as usize);
            if classes[class] != GLOBAL {
                inside[from as usize].push(to as usize);
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut seen = vec![false; joined.len()];
    for vertex in 0..joined.len() {
        if !seen[vertex] {
            let hops = distances(&inside, std::iter::once(vertex));
            let group: Vec<usize> = (0..joined.len()).filter(|&v| hops[v] != u32::MAX).collect();
            group.iter().for_each(|&v| seen[v] = true);
            groups.push(group);
        }
    }
    let switches = |group: &[usize]| group.iter().filter(|&&v| v >= nodes).count().max(1);
    let own = |v: usize| joined[v].iter().copied().filter(move |&w| v >= nodes && w < nodes);
    let most = (nodes..joined.len()).map(|v| own(v).count()).max().unwrap_or(0);
    // Nodes of a switch are in rows of two or more, one unit apart.
    let columns = (most as f64).sqrt().ceil().max(1.0);
    let depth = (most as f64 / columns).ceil();
    let small = |group: &[usize]| {
        let count = switches(group) as f64;
        if count > 1.0 { ((columns + 0.6) * count / TAU).max(0.8) } else { 0.0 }
    };
    let reach = groups.iter().map(|group| small(group) + 0.6 + depth).fold(0.0, f64::max);
    let large = match groups.len() {
        1 => 0.0,
        count => (reach + 0.4) / (TAU / (2 * count) as f64).sin(),
    };
    let mut places = vec![[0.0, 0.0]; joined.len()];
    for (g, group) in groups.iter().enumerate() {
        let towards = TAU * g as f64 / groups.len() as f64 - TAU / 4.0;
        let centre = [large * towards.cos(), large * towards.sin()];
        let list: Vec<usize> = group.iter().copied().filter(|&v| v >= nodes).collect();
        for (i, &switch) in list.iter().enumerate() {
            let angle = towards + TAU * (i as f64 + 0.5) / list.len() as f64;
            let (out, side) = ([angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]);
            let at = |far: f64, aside: f64| {
                [0, 1].map(|u| centre[u] + out[u] * (small(group) + far) + side[u] * aside)
            };
            places[switch] = at(0.0, 0.0);
            for (j, node) in own(switch).enumerate() {
                let (column, line) = (j as f64 % columns, (j as f64 / columns).floor());
                places[node] = at(0.8 + line, column - (columns - 1.0) / 2.0);
            }
        }
    }
    places
}

/// Distances in the plane near those in the network: stress majorization (Gansner, Koren and North
/// 2005), from a circle.
fn by_distances(joined: &[Vec<usize>]) -> Vec<Place> {
    let count = joined.len();
    let hops: Vec<Vec<u32>> =
        (0..count).map(|vertex| distances(joined, std::iter::once(vertex))).collect();
    let far = hops.iter().flatten().copied().filter(|&d| d != u32::MAX).max().unwrap_or(1);
    let distance = |a: usize, b: usize| f64::from(hops[a][b].min(far + 1));
    let radius = f64::from(far) / 2.0;
    // The vertices on the circle are in the order of a search, so that neighbours are near.
    let order = searched(joined);
    let mut places = vec![[0.0, 0.0]; count];
    for (i, &vertex) in order.iter().enumerate() {
        let angle = TAU * i as f64 / count as f64;
        places[vertex] = [radius * angle.cos(), radius * angle.sin()];
    }
    for _ in 0..ROUNDS {
        for vertex in 0..count {
            let (mut pull, mut weights) = ([0.0, 0.0], 0.0);
            for other in (0..count).filter(|&other| other != vertex) {
                let wanted = distance(vertex, other);
                let apart = [0, 1].map(|u| places[vertex][u] - places[other][u]);
                let now = apart[0].hypot(apart[1]).max(1e-6);
                let weight = wanted.powi(-2);
                for u in 0..2 {
                    pull[u] += weight * (places[other][u] + wanted * apart[u] / now);
                }
                weights += weight;
            }
            if weights > 0.0 {
                places[vertex] = pull.map(|sum| sum / weights);
            }
        }
    }
    places
}

/// All vertices in the order of a depth-first search.
fn searched(joined: &[Vec<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; joined.len()]);
    for first in 0..joined.len() {
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                order.push(at);
                open.extend(joined[at].iter().rev().filter(|&&to| !seen[to]));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use topocoll::{Shape, machine};

    use super::*;

    fn placed(name: &str) -> Layout {
        let machine = machine(name).unwrap();
        let Shape::Graph(graph) = machine.topology.network() else { panic!("{name} is no graph") };
        layout(graph)
    }

    fn apart([a, b]: [f32; 2], [c, d]: [f32; 2]) -> f32 {
        (a - c).hypot(b - d)
    }

    #[test]
    fn no_two_vertices_are_drawn_at_one_place() {
        for name in [
            "fat-tree:4,3",
            "fat-tree:2,5",
            "fat-tree:16,1",
            "dragonfly:2,4,2",
            "hypercube:6",
            "hyperx:4x4x4",
            "hyperx:5x3*2",
        ] {
            let places = placed(name).places;
            let pairs = (0..places.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
            let least = pairs.map(|(a, b)| apart(places[a], places[b])).fold(f32::MAX, f32::min);
            assert!(least >= 0.79, "{name}: {least}");
        }
    }

    #[test]
    fn the_switches_of_a_fat_tree_are_in_levels() {
        let Layout { places, levels, .. } = placed("fat-tree:4,3");
        for (place, level) in places.iter().zip(&levels).skip(64) {
            let higher = |other: u32| places[64 + 16 * (other as usize - 1)][1] > place[1];
            assert!((1..*level).all(higher), "level {level}");
        }
        // A switch of the lowest level is in the middle of its four nodes.
        assert_eq!(places[64][0], (0..4).map(|node| places[node][0]).sum::<f32>() / 4.0);
    }

    #[test]
    fn the_groups_of_a_dragonfly_do_not_overlap() {
        let Layout { places, levels, .. } = placed("dragonfly:2,4,2");
        assert!(levels.is_empty());
        // 9 groups of 8 nodes.
        let centre = |group: usize| {
            let own = &places[72 + 4 * group..72 + 4 * group + 4];
            [0, 1].map(|u| own.iter().map(|place| place[u]).sum::<f32>() / 4.0)
        };
        for (node, &place) in places[..72].iter().enumerate() {
            let near =
                (0..9).min_by(|&a, &b| apart(place, centre(a)).total_cmp(&apart(place, centre(b))));
            assert_eq!(near, Some(node / 8));
        }
    }

    #[test]
    fn neighbours_in_a_ring_are_about_one_unit_apart() {
        let ring: Vec<Vec<usize>> = (0..12).map(|v| vec![(v + 11) % 12, (v + 1) % 12]).collect();
        let places = by_distances(&ring);
        for v in 0..12 {
            let next = places[(v + 1) % 12];
            let length = (places[v][0] - next[0]).hypot(places[v][1] - next[1]);
            assert!((0.6..1.6).contains(&length), "{v}: {length}");
        }
    }
}
