//! The best lengths of links by an interior-point method.
//!
//! The linear program: each source s sends flows x(s, e) over the links e, so that its blocks
//! arrive, and the flows of all sources on the links of a class k are at most y C(k), where C(k) is
//! the capacity of the class; y is least. Its dual: lengths l(k) of which the sum of C(k) l(k) is 1,
//! and potentials p(s, v) that no link e from u to v raises by more than its length, z(s, e) =
//! l(e) - p(s, v) + p(s, u) >= 0; the sum of blocks times potentials is greatest.
//!
//! The predictor-corrector method follows the path on which all products x z, and those of lengths
//! and spare capacities, are equal (Mehrotra 1992). A step solves linear equations. For given
//! lengths those of a source are a Laplacian of the graph, with the weights x / z. Its inverse
//! leaves a dense matrix for the lengths. Steps start at lengths of 1 and half the distances, so
//! the dual is always feasible, and about ten steps reach seven digits.

use super::core::Core;

/// The most multiplications of a step.
const QUICK: usize = 250_000_000;

/// The most steps.
const STEPS: usize = 50;

/// The relative difference between the program and its dual at which the search ends.
const CLOSE: f64 = 1e-8;

/// The largest part of the way to the end of the feasible region in a step.
const PART: f64 = 0.995;

pub(super) fn is_quick(core: &Core) -> bool {
    let (vertices, links) = (core.ranks.len(), core.links.len());
    let product = |sizes: [usize; 3]| sizes.into_iter().fold(1, usize::saturating_mul);
    let source = (product([vertices; 3]) / 2).saturating_add(product([
        2 * links,
        vertices + core.classes,
        1,
    ]));
    let all = product([core.sources.len(), source, 1]);
    all.saturating_add(product([core.classes; 3]) / 2) <= QUICK
}

/// Looks at the lengths of classes after each step.
pub(super) fn search(core: &Core, look: &mut dyn FnMut(&[f64])) {
    let program = Program::new(core);
    let mut at = program.start();
    for _ in 0..STEPS {
        look(&at.lengths);
        let gap = at.gap();
        if gap < CLOSE * at.most || !gap.is_finite() {
            break;
        }
        let equations = Equations::new(&program, &at);
        let mean = gap / at.products() as f64;
        let aim = |product: f64| -product;
        let predicted = equations
            .solve(|i| aim(at.flows[i] * at.slack[i]), |k| aim(at.spare[k] * at.lengths[k]));
        let mut there = at.clone();
        there.add(&predicted, at.feasible(&predicted, 1.0));
        let aim = mean * (there.gap() / gap).powi(3);
        let step = equations.solve(
            |i| aim - at.flows[i] * at.slack[i] - predicted.flows[i] * predicted.slack[i],
            |k| aim - at.spare[k] * at.lengths[k] - predicted.spare[k] * predicted.lengths[k],
        );
        let parts = at.feasible(&step, PART);
        at.add(&step, parts);
    }
}

struct Program<'a> {
    core: &'a Core,
    /// By class, the sum of capacities; of all classes, 1.
    capacities: Vec<f64>,
    /// By source and vertex, the blocks to it. Their sum, times hops, is 1.
    blocks: Vec<f64>,
}

/// A point, or a step between two.
#[derive(Clone)]
struct Point {
    /// By source and link.
    flows: Vec<f64>,
    /// By source and link, its length less the rise of the potential.
    slack: Vec<f64>,
    /// By source and vertex.
    potentials: Vec<f64>,
    /// By class, its capacity at the most load less its flows.
    spare: Vec<f64>,
    /// By class.
    lengths: Vec<f64>,
    /// The load of the busiest class.
    most: f64,
}

impl Point {
    /// The number of products that are equal on the path.
    fn products(&self) -> usize {
        self.flows.len() + self.spare.len()
    }

    /// The sum of these products: how far the program and its dual differ.
    fn gap(&self) -> f64 {
        dot(&self.flows, &self.slack) + dot(&self.spare, &self.lengths)
    }

    /// How many times the program's variables, and the dual's, may take a part of a step: at most
    /// once.
    fn feasible(&self, step: &Self, part: f64) -> (f64, f64) {
        let times = |values: &[f64], steps: &[f64]| {
            let falling = values.iter().zip(steps).filter(|(_, step)| **step < 0.0);
            falling.map(|(value, step)| -value / step * part).fold(1.0, f64::min)
        };
        (
            times(&self.flows, &step.flows).min(times(&self.spare, &step.spare)),
            times(&self.slack, &step.slack).min(times(&self.lengths, &step.lengths)),
        )
    }

    fn add(&mut self, step: &Self, (program, dual): (f64, f64)) {
        add(&mut self.flows, &step.flows, program);
        add(&mut self.spare, &step.spare, program);
        self.most += step.most * program;
        add(&mut self.slack, &step.slack, dual);
        add(&mut self.potentials, &step.potentials, dual);
        add(&mut self.lengths, &step.lengths, dual);
    }
}

impl<'a> Program<'a> {
    fn new(core: &'a Core) -> Self {
        let scale = core.hops() as f64;
        let vertices = 0..core.ranks.len();
        let blocks = core
            .sources
            .iter()
            .flat_map(|&source| vertices.clone().map(move |to| core.demand(source, to) / scale));
        Self { core, capacities: core.shares(), blocks: blocks.collect() }
    }

    fn start(&self) -> Point {
        let core = self.core;
        let lengths = vec![1.0; core.classes];
        let all: f64 = core.sources.iter().map(|&source| core.sent(source)).sum();
        let capacity = core.capacity();
        let (mut flows, mut slack, mut potentials) = (Vec::new(), Vec::new(), Vec::new());
        for &source in &core.sources {
            let (_, hops) = core.nearest(source);
            let part = core.sent(source) / all / capacity;
            flows.extend(core.links.iter().map(|link| part * link.capacity as f64));
            let rise = |from: usize, to: usize| (hops[to] as f64 - hops[from] as f64) / 2.0;
            slack.extend(core.links.iter().map(|link| 1.0 - rise(link.from, link.to)));
            potentials.extend(hops.iter().map(|&hops| hops as f64 / 2.0));
        }
        // Twice the load of these flows.
        Point { flows, slack, potentials, spare: self.capacities.clone(), lengths, most: 2.0 }
    }
}

/// The equations of a step.
struct Equations<'a> {
    program: &'a Program<'a>,
    at: &'a Point,
    /// By source and link, flow over slack.
    weights: Vec<f64>,
    /// By source, the inverse of the Laplacian; zero at the source.
    inverses: Vec<f64>,
    /// By source and vertex, blocks that flows do not yet bring.
    missing: Vec<f64>,
    /// The inverse of the matrix for lengths.
    lengths: Vec<f64>,
    /// The change of lengths by that of the most load.
    by_most: Vec<f64>,
}

impl<'a> Equations<'a> {
    fn new(program: &'a Program<'a>, at: &'a Point) -> Self {
        let core = program.core;
        let (vertices, links, classes) = (core.ranks.len(), core.links.len(), core.classes);
        let weights: Vec<f64> =
            at.flows.iter().zip(&at.slack).map(|(flow, slack)| flow / slack).collect();
        let mut inverses = vec![0.0; core.sources.len() * vertices * vertices];
        let mut missing = program.blocks.clone();
        let mut matrix = vec![0.0; classes * classes];
        for k in 0..classes {
            matrix[k * classes + k] = at.spare[k] / at.lengths[k];
        }
        let mut raised = vec![0.0; vertices * classes];
        for (s, &source) in core.sources.iter().enumerate() {
            let weights = &weights[s * links..][..links];
            let inverse = &mut inverses[s * vertices * vertices..][..vertices * vertices];
            let missing = &mut missing[s * vertices..][..vertices];
            for ((link, weight), flow) in core.links.iter().zip(weights).zip(&at.flows[s * links..])
            {
                let (from, to) = (link.from, link.to);
                inverse[from * vertices + from] += weight;
                inverse[to * vertices + to] += weight;
                inverse[from * vertices + to] -= weight;
                inverse[to * vertices + from] -= weight;
                missing[from] += flow;
                missing[to] -= flow;
                matrix[link.class * classes + link.class] += weight;
            }
            missing[source] = 0.0;
            clear(inverse, vertices, source, 1.0);
            invert(inverse, vertices);
            clear(inverse, vertices, source, 0.0);
            // Potentials by the length of each class, then flows by them.
            raised.fill(0.0);
            for (link, weight) in core.links.iter().zip(weights) {
                let (from, to) = (&inverse[link.from * vertices..], &inverse[link.to * vertices..]);
                for (v, (from, to)) in from.iter().zip(to).enumerate().take(vertices) {
                    raised[v * classes + link.class] += weight * (to - from);
                }
            }
            for (link, weight) in core.links.iter().zip(weights) {
                let (from, to) = (&raised[link.from * classes..], &raised[link.to * classes..]);
                let row = &mut matrix[link.class * classes..][..classes];
                for (entry, (from, to)) in row.iter_mut().zip(from.iter().zip(to)) {
                    *entry -= weight * (to - from);
                }
            }
        }
        invert(&mut matrix, classes);
        let by_most = times(&matrix, &program.capacities).collect();
        Self { program, at, weights, inverses, missing, lengths: matrix, by_most }
    }

    /// The step that changes the products by these amounts, to first order.
    fn solve(&self, product: impl Fn(usize) -> f64, spare_product: impl Fn(usize) -> f64) -> Point {
        let (core, at) = (self.program.core, self.at);
        let (vertices, links) = (core.ranks.len(), core.links.len());
        let mut flows: Vec<f64> = (0..at.flows.len()).map(|i| product(i) / at.slack[i]).collect();
        let mut free: Vec<f64> =
            (0..at.spare.len()).map(|k| spare_product(k) / at.lengths[k]).collect();
        // First with the lengths unchanged.
        let mut potentials = self.missing.clone();
        for (s, potentials) in potentials.chunks_mut(vertices).enumerate() {
            self.pass(potentials, &flows[s * links..][..links]);
            self.settle(s, potentials);
            for (i, link) in core.links.iter().enumerate() {
                let rise = potentials[link.to] - potentials[link.from];
                free[link.class] += flows[s * links + i] + self.weights[s * links + i] * rise;
            }
        }
        let capacities = &self.program.capacities;
        let mut lengths: Vec<f64> = times(&self.lengths, &free).collect();
        let most = dot(capacities, &lengths) / dot(capacities, &self.by_most);
        add(&mut lengths, &self.by_most, -most);
        let mut slack = vec![0.0; flows.len()];
        let mut longer = vec![0.0; links];
        let mut more = vec![0.0; vertices];
        for (s, potentials) in potentials.chunks_mut(vertices).enumerate() {
            let weights = &self.weights[s * links..][..links];
            for ((longer, link), weight) in longer.iter_mut().zip(&core.links).zip(weights) {
                *longer = -weight * lengths[link.class];
            }
            more.fill(0.0);
            self.pass(&mut more, &longer);
            self.settle(s, &mut more);
            add(potentials, &more, 1.0);
            for (i, link) in core.links.iter().enumerate() {
                let rise = potentials[link.to] - potentials[link.from];
                slack[s * links + i] = lengths[link.class] - rise;
                flows[s * links + i] -= weights[i] * slack[s * links + i];
            }
        }
        let spare = (0..at.spare.len())
            .map(|k| (spare_product(k) - at.spare[k] * lengths[k]) / at.lengths[k]);
        let spare = spare.collect();
        Point { flows, slack, potentials, spare, lengths, most }
    }

    /// Takes what flows bring from what is missing.
    fn pass(&self, missing: &mut [f64], flows: &[f64]) {
        for (link, flow) in self.program.core.links.iter().zip(flows) {
            missing[link.to] -= flow;
            missing[link.from] += flow;
        }
    }

    /// The potentials of a source whose flows bring what is missing.
    fn settle(&self, s: usize, missing: &mut [f64]) {
        let size = missing.len() * missing.len();
        let found: Vec<f64> = times(&self.inverses[s * size..][..size], missing).collect();
        missing.copy_from_slice(&found);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], more: &[f64], times: f64) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += times * more);
}

/// The product of a square matrix and a vector.
fn times(matrix: &[f64], vector: &[f64]) -> impl Iterator<Item = f64> {
    matrix.chunks(vector.len()).map(|row| dot(row, vector))
}

/// Sets a row and column to zero outside the diagonal.
fn clear(matrix: &mut [f64], size: usize, row: usize, diagonal: f64) {
    for i in 0..size {
        matrix[row * size + i] = 0.0;
        matrix[i * size + row] = 0.0;
    }
    matrix[row * size + row] = diagonal;
}

/// Inverts a symmetric positive definite matrix: sweeps of its lower triangle (Goodnight 1979).
fn invert(matrix: &mut [f64], size: usize) {
    let mut column = vec![0.0; size];
    for p in 0..size {
        for (i, entry) in column.iter_mut().enumerate() {
            *entry = matrix[i.max(p) * size + i.min(p)];
        }
        let pivot = 1.0 / column[p];
        for (i, row) in matrix.chunks_mut(size).enumerate() {
            let times = column[i] * pivot;
            row[..=i].iter_mut().zip(&column).for_each(|(entry, other)| *entry -= times * other);
        }
        for (i, entry) in column.iter().enumerate() {
            matrix[i.max(p) * size + i.min(p)] = entry * pivot;
        }
        matrix[p * size + p] = -pivot;
    }
    for i in 0..size {
        for j in 0..=i {
            let entry = -matrix[i * size + j];
            matrix[i * size + j] = entry;
            matrix[j * size + i] = entry;
        }
    }
}
