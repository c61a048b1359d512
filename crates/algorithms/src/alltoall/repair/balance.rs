//! The pieces on the connections: small largest messages, summed over steps.

use super::connections::{Connections, NONE};

/// How often each piece gets another path.
const ROUNDS: usize = 12;

/// Paths over connections.
pub(super) struct Paths<'c> {
    connections: &'c Connections,
    ranks: usize,
    /// By connection.
    loads: Vec<f64>,
    lengths: Vec<f64>,
    /// By rank, its distance; by step and rank, the connection over which it came.
    distances: Vec<f64>,
    came: Vec<u32>,
    arrived: Vec<(u32, f64, u32)>,
}

impl<'c> Paths<'c> {
    pub(super) fn new(connections: &'c Connections, ranks: usize) -> Self {
        Self {
            connections,
            ranks,
            loads: vec![0.0; connections.all.len()],
            lengths: vec![0.0; connections.all.len()],
            distances: vec![0.0; ranks],
            came: vec![NONE; ranks * connections.steps()],
            arrived: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, path: &[u32], pieces: f64) {
        path.iter().for_each(|&connection| self.loads[connection as usize] += pieces);
    }

    /// The derivatives of the smooth maximum of each step, of this width.
    fn measure(&mut self, width: f64) {
        for ends in self.connections.first.windows(2) {
            let loads = &self.loads[ends[0]..ends[1]];
            let lengths = &mut self.lengths[ends[0]..ends[1]];
            let most = loads.iter().copied().fold(0.0, f64::max);
            let mut sum = 0.0;
            for (length, load) in lengths.iter_mut().zip(loads) {
                *length = ((load - most) / width).exp();
                sum += *length;
            }
            lengths.iter_mut().for_each(|length| *length = *length / sum + 1e-6);
        }
    }

    /// The shortest paths from a rank.
    fn search(&mut self, from: usize) {
        self.distances.fill(f64::INFINITY);
        self.distances[from] = 0.0;
        self.came.fill(NONE);
        for step in 0..self.connections.steps() {
            let range = self.connections.first[step]..self.connections.first[step + 1];
            self.arrived.clear();
            for c in range {
                let connection = &self.connections.all[c];
                let distance = self.distances[connection.from as usize] + self.lengths[c];
                if distance < self.distances[connection.to as usize] {
                    self.arrived.push((connection.to, distance, c as u32));
                }
            }
            for &(to, distance, c) in &self.arrived {
                if distance < self.distances[to as usize] {
                    self.distances[to as usize] = distance;
                    self.came[step * self.ranks + to as usize] = c;
                }
            }
        }
    }

    /// The path to a rank, if there is one.
    fn path(&self, from: usize, to: usize, path: &mut Vec<u32>) -> bool {
        path.clear();
        let mut at = to;
        for step in (0..self.connections.steps()).rev() {
            let c = self.came[step * self.ranks + at];
            if c != NONE {
                path.push(c);
                at = self.connections.all[c as usize].from as usize;
            }
        }
        path.reverse();
        at == from
    }

    /// Gives pieces paths, each with its ends; false if one has none.
    pub(super) fn balance(&mut self, pieces: &mut [(usize, usize, Vec<u32>)], group: usize) -> bool {
        let mut best: Option<(f64, Vec<Vec<u32>>)> = None;
        if std::env::var("REPAIR_INSERT").is_ok() {
            for number in 0..pieces.len() {
                if !pieces[number].2.is_empty() { continue; }
                let caps: Vec<f64> = self.most().collect();
                self.measure_raise(&caps);
                let (from, to, _) = pieces[number];
                self.search(from);
                let mut path = Vec::new();
                if !self.path(from, to, &mut path) { return false; }
                self.add(&path, 1.0);
                pieces[number].2 = path;
            }
            if std::env::var("REPAIR_TRACE").is_ok() { eprintln!("inserted volume {} steps {}", self.volume(), self.used()); }
            self.tighten(pieces);
            let shuffles: usize = std::env::var("REPAIR_SHUFFLE").map_or(0, |s| s.parse().unwrap());
            for round in 0..shuffles {
                self.shuffle(pieces, round);
                self.tighten(pieces);
            }
            return true;
        }
        for round in 0..ROUNDS {
            let steps = self.connections.steps() as f64;
            let mean = self.volume() / steps;
            let width = (mean / 4.0 * 0.6f64.powi(round as i32)).max(0.35);
            let mut first = 0;
            while first < pieces.len() {
                let from = pieces[first].0;
                let mut end = first;
                while end < pieces.len() && pieces[end].0 == from && end - first < group {
                    let path = std::mem::take(&mut pieces[end].2);
                    self.add(&path, -1.0);
                    end += 1;
                }
                self.measure(width);
                self.search(from);
                for piece in &mut pieces[first..end] {
                    let mut path = Vec::new();
                    if !self.path(from, piece.1, &mut path) {
                        return false;
                    }
                    self.add(&path, 1.0);
                    piece.2 = path;
                }
                first = end;
            }
            if std::env::var("REPAIR_TRACE").is_ok() {
                eprintln!("round {round} width {width:.2} volume {} steps {}", self.volume(), self.used());
            }
            if best.as_ref().is_none_or(|(volume, _)| self.volume() < *volume) {
                best = Some((self.volume(), pieces.iter().map(|piece| piece.2.clone()).collect()));
            }
        }
        if let Some((_, paths)) = best {
            for (piece, path) in pieces.iter_mut().zip(paths) {
                self.add(&piece.2, -1.0);
                piece.2 = path;
                self.add(&piece.2, 1.0);
            }
        }
        self.tighten(pieces);
        true
    }

    /// Lowers the largest messages of steps one by one, as long as others need not grow.
    fn tighten(&mut self, pieces: &mut [(usize, usize, Vec<u32>)]) {
        let steps = self.connections.steps();
        let mut on = vec![Vec::new(); self.connections.all.len()];
        for (number, (_, _, path)) in (0u32..).zip(&*pieces) {
            path.iter().for_each(|&c| on[c as usize].push(number));
        }
        let mut failed = vec![false; steps];
        loop {
            let mosts: Vec<f64> = self.most().collect();
            // The step with the fewest pieces in excess.
            let excess = |step: usize| {
                let range = self.connections.first[step]..self.connections.first[step + 1];
                self.loads[range].iter().filter(|&&load| load >= mosts[step]).count()
            };
            let open = (0..steps).filter(|&step| !failed[step] && mosts[step] > 0.0);
            let Some(step) = open.min_by_key(|&step| excess(step)) else { break };
            let mut caps = mosts.clone();
            caps[step] -= 1.0;
            let range = self.connections.first[step]..self.connections.first[step + 1];
            let full: Vec<usize> = range.filter(|&c| self.loads[c] > caps[step]).collect();
            let mut done: Vec<(u32, Vec<u32>)> = Vec::new();
            let mut all = true;
            'full: for c in full {
                // Any of the pieces of this connection.
                let candidates = on[c].clone();
                for number in candidates {
                    let (from, to, _) = pieces[number as usize];
                    let old = std::mem::take(&mut pieces[number as usize].2);
                    self.add(&old, -1.0);
                    self.measure_free(&caps);
                    self.search(from);
                    let mut path = Vec::new();
                    if self.path(from, to, &mut path) && self.distances[to].is_finite() {
                        self.add(&path, 1.0);
                        old.iter().for_each(|&c| on[c as usize].retain(|&one| one != number));
                        path.iter().for_each(|&c| on[c as usize].push(number));
                        pieces[number as usize].2 = path;
                        done.push((number, old));
                        continue 'full;
                    }
                    self.add(&old, 1.0);
                    pieces[number as usize].2 = old;
                }
                all = false;
                break;
            }
            if all {
                failed.fill(false);
            } else {
                failed[step] = true;
                for (number, old) in done.into_iter().rev() {
                    let path = std::mem::replace(&mut pieces[number as usize].2, old);
                    self.add(&path, -1.0);
                    path.iter().for_each(|&c| on[c as usize].retain(|&one| one != number));
                    let old = pieces[number as usize].2.clone();
                    self.add(&old, 1.0);
                    old.iter().for_each(|&c| on[c as usize].push(number));
                }
            }
        }
        if std::env::var("REPAIR_TRACE").is_ok() {
            eprintln!("tightened: volume {} steps {}", self.volume(), self.used());
        }
    }

    /// Other paths, while no step grows.
    fn shuffle(&mut self, pieces: &mut [(usize, usize, Vec<u32>)], round: usize) {
        let caps: Vec<f64> = self.most().collect();
        let count = pieces.len();
        for place in 0..count {
            let number = (place * 7919 + round * 104729) % count;
            let (from, to, _) = pieces[number];
            let old = std::mem::take(&mut pieces[number].2);
            self.add(&old, -1.0);
            for (ends, cap) in self.connections.first.windows(2).zip(&caps) {
                for c in ends[0]..ends[1] {
                    let load = self.loads[c];
                    let mut h = (c as u64).wrapping_mul(0x9E3779B97F4A7C15) ^ ((round * count + place) as u64).wrapping_mul(0xC2B2AE3D27D4EB4F);
                    h ^= h >> 29; h = h.wrapping_mul(0xBF58476D1CE4E5B9); h ^= h >> 32;
                    let noise = (h % 1024) as f64 / 1024.0;
                    self.lengths[c] = if load + 1.0 > *cap { f64::INFINITY } else { 1.0 + 0.3 * noise + (load + 1.0) / cap };
                }
            }
            self.search(from);
            let mut path = Vec::new();
            let found = self.path(from, to, &mut path) && self.distances[to].is_finite();
            let path = if found { path } else { old };
            self.add(&path, 1.0);
            pieces[number].2 = path;
        }
    }

    fn measure_raise(&mut self, caps: &[f64]) {
        for (ends, cap) in self.connections.first.windows(2).zip(caps) {
            for c in ends[0]..ends[1] {
                let load = self.loads[c];
                self.lengths[c] = if load + 1.0 > *cap { 1.0 } else { 0.002 * (1.0 + load / cap) };
            }
        }
    }

    fn measure_free(&mut self, caps: &[f64]) {
        for (ends, cap) in self.connections.first.windows(2).zip(caps) {
            for c in ends[0]..ends[1] {
                let load = self.loads[c];
                self.lengths[c] = if load + 1.0 > *cap { f64::INFINITY } else { 1.0 + load / cap };
            }
        }
    }

    pub(super) fn most(&self) -> impl Iterator<Item = f64> + '_ {
        self.connections.first.windows(2).map(|ends| {
            self.loads[ends[0]..ends[1]].iter().copied().fold(0.0, f64::max)
        })
    }

    pub(super) fn volume(&self) -> f64 {
        self.most().sum()
    }

    pub(super) fn used(&self) -> usize {
        self.most().filter(|&most| most > 0.0).count()
    }
}
