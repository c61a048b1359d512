//! Bounds by cuts: links that leave, or enter, a part have length 1.

use super::core::{Core, Link, blocks};
use super::{LeastLoad, Proof};

/// The most visits of links while cuts are looked for.
const CUTS: usize = 6_000_000;

/// Cuts around each vertex and, within a limit of work, around those near each vertex, and
/// those nearer to one end of a link than to the other.
pub(super) fn raise(core: &Core, best: &mut Proof) {
    let mut sweep = Sweep::new(core);
    (0..core.ranks.len()).for_each(|vertex| sweep.tightest(&[vertex], best));
    let sweeps = CUTS / (core.links.len() + core.ranks.len());
    let every = |all: usize| (0..all).step_by(all.div_ceil(sweeps.max(1)));
    for start in every(core.ranks.len()) {
        sweep.tightest(&core.nearest(start).0, best);
    }
    for link in every(core.links.len()) {
        let Link { from, to, .. } = core.links[link];
        let (mut order, near) = core.nearest(from);
        let (_, far) = core.nearest(to);
        order.sort_by_key(|&vertex| near[vertex] as i64 - far[vertex] as i64);
        sweep.tightest(&order, best);
    }
}

/// Cuts around more and more vertices.
struct Sweep<'a> {
    graph: &'a Core,
    /// By vertex, the links that lead to it.
    entering: Vec<Vec<usize>>,
    inside: Vec<bool>,
    all: u64,
}

impl<'a> Sweep<'a> {
    fn new(graph: &'a Core) -> Self {
        let mut entering = vec![Vec::new(); graph.ranks.len()];
        graph.links.iter().enumerate().for_each(|(i, link)| entering[link.to].push(i));
        let inside = vec![false; graph.ranks.len()];
        Self { graph, entering, inside, all: graph.ranks.iter().sum() }
    }

    /// Bounds by the best cut around the first vertices, however many.
    fn tightest(&mut self, order: &[usize], best: &mut Proof) {
        let Self { graph, entering, inside, all } = self;
        let (mut ranks, mut out, mut into) = (0, 0u128, 0u128);
        let mut tightest = (0.0, LeastLoad::NONE, 0, true);
        for (&vertex, count) in order.iter().zip(1..) {
            inside[vertex] = true;
            ranks += graph.ranks[vertex];
            for link in &graph.links[graph.leaving(vertex)] {
                if inside[link.to] { into -= link.capacity } else { out += link.capacity }
            }
            for &link in &entering[vertex] {
                let link = &graph.links[link];
                if inside[link.from] { out -= link.capacity } else { into += link.capacity }
            }
            let (blocks, lengths) = (blocks(ranks, *all - ranks), out.min(into));
            let load = blocks as f64 / lengths as f64;
            if load.is_finite() && load > tightest.0 {
                let distances = blocks.saturating_mul(graph.denominator);
                tightest = (load, LeastLoad { distances, lengths }, count, out <= into);
            }
        }
        order.iter().for_each(|&vertex| inside[vertex] = false);
        let (_, load, count, leaves) = tightest;
        best.raise(load, || {
            let part = &order[..count];
            part.iter().for_each(|&vertex| inside[vertex] = true);
            let crosses = |link: &Link| {
                let ends = [link.from, link.to].map(|vertex| inside[vertex]);
                u64::from(ends == [leaves, !leaves])
            };
            let lengths = graph.links.iter().map(crosses).collect();
            part.iter().for_each(|&vertex| inside[vertex] = false);
            lengths
        });
    }
}
