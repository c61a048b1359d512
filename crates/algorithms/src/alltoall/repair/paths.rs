//! The pieces of blocks on the connections of all steps, so that the largest messages are small.

use super::connections::{Connections, NONE};

/// Visits of connections after which no other paths are tried.
const MOST_VISITS: usize = 1 << 32;
/// Rounds, at most, and those in a row that find nothing better.
const ROUNDS: usize = 10;
const IN_VAIN: usize = 3;

/// A length, with room for sums over all steps.
type Length = u64;
const UNREACHED: Length = Length::MAX;
/// The length of a connection without load; it is up to twice as long with.
const UNIT: Length = 1 << 10;
/// The length of a connection whose step would get a larger message: more than any path without.
const LARGER: Length = 1 << 36;

/// A piece of a block.
pub(super) struct Piece {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Its number among the parts of a block.
    pub(super) part: usize,
    pub(super) size: u64,
    /// Connections, in order of steps.
    pub(super) path: Vec<u32>,
}

/// Whether every rank can reach every other.
pub(super) fn reach_all(connections: &Connections, ranks: usize) -> bool {
    let words = ranks.div_ceil(64);
    // By rank, the sources that reach it.
    let mut reached = vec![0u64; ranks * words];
    for rank in 0..ranks {
        reached[rank * words + rank / 64] |= 1 << (rank % 64);
    }
    for step in 0..connections.count() {
        let before = reached.clone();
        for one in &connections.all[connections.of_step(step)] {
            let from = &before[one.from as usize * words..][..words];
            let to = &mut reached[one.to as usize * words..][..words];
            to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
        }
    }
    let pairs: usize = reached.iter().map(|word| word.count_ones() as usize).sum();
    pairs == ranks * ranks
}

pub(super) struct Paths<'c> {
    connections: &'c Connections,
    ranks: usize,
    pub(super) pieces: Vec<Piece>,
    /// By connection, the size of its message.
    loads: Vec<u64>,
    /// By step, the size of its largest message.
    largest: Vec<u64>,
    /// By rank, the length of the shortest path to it; by step and rank, the connection over which it comes.
    lengths: Vec<Length>,
    came: Vec<u32>,
    arrived: Vec<(u32, Length, u32)>,
    visits: usize,
}

impl<'c> Paths<'c> {
    /// Pieces without a path get one; then the largest messages are lowered.
    pub(super) fn new(connections: &'c Connections, ranks: usize, pieces: Vec<Piece>) -> Self {
        let mut paths = Self {
            connections,
            ranks,
            pieces,
            loads: vec![0; connections.all.len()],
            largest: vec![0; connections.count()],
            lengths: vec![0; ranks],
            came: vec![NONE; ranks * connections.count()],
            arrived: Vec::new(),
            visits: 0,
        };
        for piece in &paths.pieces {
            piece.path.iter().for_each(|&one| paths.loads[one as usize] += piece.size);
        }
        paths.measure();
        paths.insert();
        paths.lower();
        // The visits of a round, about.
        let round = paths.pieces.len() * connections.all.len();
        let mut in_vain = 0;
        for place in 0..ROUNDS {
            if paths.visits + round > MOST_VISITS {
                break;
            }
            let before = paths.volume();
            paths.shuffle(place);
            paths.lower();
            in_vain = if paths.volume() < before { 0 } else { in_vain + 1 };
            if in_vain == IN_VAIN {
                break;
            }
        }
        paths
    }

    /// The sum over steps of the largest message.
    pub(super) fn volume(&self) -> u64 {
        self.largest.iter().sum()
    }

    /// Finds the largest message of each step.
    fn measure(&mut self) {
        for (step, largest) in self.largest.iter_mut().enumerate() {
            let loads = &self.loads[self.connections.of_step(step)];
            *largest = loads.iter().copied().max().unwrap_or(0);
        }
    }

    fn remove(&mut self, piece: usize) -> Vec<u32> {
        let Piece { path, size, .. } = &mut self.pieces[piece];
        path.iter().for_each(|&one| self.loads[one as usize] -= *size);
        std::mem::take(path)
    }

    fn put(&mut self, piece: usize, path: Vec<u32>) {
        let size = self.pieces[piece].size;
        path.iter().for_each(|&one| self.loads[one as usize] += size);
        self.pieces[piece].path = path;
    }

    /// The shortest path of a piece, which is on none. `length` is that of a connection: by its number, its
    /// load with the piece, and the largest message of its step.
    fn shortest(
        &mut self,
        piece: usize,
        length: impl Fn(usize, u64, u64) -> Option<Length>,
    ) -> Option<Vec<u32>> {
        let Piece { from, to, size, .. } = self.pieces[piece];
        self.visits += self.connections.all.len();
        self.lengths.fill(UNREACHED);
        self.lengths[from as usize] = 0;
        self.came.fill(NONE);
        for (step, &most) in self.largest.iter().enumerate() {
            self.arrived.clear();
            for number in self.connections.of_step(step) {
                let one = &self.connections.all[number];
                let before = self.lengths[one.from as usize];
                if before >= self.lengths[one.to as usize] {
                    continue;
                }
                if let Some(length) = length(number, self.loads[number] + size, most) {
                    self.arrived.push((one.to, before + length, number as u32));
                }
            }
            for &(rank, length, number) in &self.arrived {
                if length < self.lengths[rank as usize] {
                    self.lengths[rank as usize] = length;
                    self.came[step * self.ranks + rank as usize] = number;
                }
            }
        }
        if self.lengths[to as usize] == UNREACHED {
            return None;
        }
        let (mut at, mut path) = (to, Vec::new());
        for step in (0..self.connections.count()).rev() {
            let number = self.came[step * self.ranks + at as usize];
            if number != NONE {
                path.push(number);
                at = self.connections.all[number as usize].from;
            }
        }
        path.reverse();
        Some(path)
    }

    /// Gives each piece without a path the one on which it makes the fewest steps longer.
    fn insert(&mut self) {
        for piece in 0..self.pieces.len() {
            if !self.pieces[piece].path.is_empty() {
                continue;
            }
            let path = self.shortest(piece, |_, load, most| {
                Some(if load > most { LARGER } else { relative(load, most) })
            });
            let path = path.expect("bug: a piece without a path");
            for &one in &path {
                let step = self.connections.step_of(one);
                let load = self.loads[one as usize] + self.pieces[piece].size;
                self.largest[step] = self.largest[step].max(load);
            }
            self.put(piece, path);
        }
    }

    /// Makes the largest messages of steps smaller, one step after the other, as long as the pieces in excess
    /// find paths on which no message gets larger than the largest of its step.
    fn lower(&mut self) {
        let mut on = vec![Vec::new(); self.loads.len()];
        for (piece, Piece { path, .. }) in self.pieces.iter().enumerate() {
            path.iter().for_each(|&one| on[one as usize].push(piece as u32));
        }
        let mut failed = vec![false; self.largest.len()];
        loop {
            let full = |step: usize| {
                let loads = &self.loads[self.connections.of_step(step)];
                loads.iter().filter(|&&load| load == self.largest[step]).count()
            };
            if self.visits > MOST_VISITS {
                return;
            }
            let open = (0..failed.len()).filter(|&step| !failed[step] && self.largest[step] > 0);
            let Some(step) = open.min_by_key(|&step| full(step)) else { return };
            if self.lower_step(step, &mut on) {
                failed.fill(false);
            } else {
                failed[step] = true;
            }
        }
    }

    /// Takes a piece off each of the largest messages of a step.
    fn lower_step(&mut self, step: usize, on: &mut [Vec<u32>]) -> bool {
        let most = self.largest[step];
        let full: Vec<usize> =
            self.connections.of_step(step).filter(|&one| self.loads[one] == most).collect();
        let mut moved: Vec<(usize, Vec<u32>)> = Vec::new();
        self.largest[step] = most - 1;
        for one in full {
            let found = on[one].clone().into_iter().find_map(|piece| {
                let piece = piece as usize;
                let old = self.remove(piece);
                match self
                    .shortest(piece, |_, load, most| (load <= most).then(|| relative(load, most)))
                {
                    Some(path) => Some((piece, old, path)),
                    None => {
                        self.put(piece, old);
                        None
                    }
                }
            });
            let Some((piece, old, path)) = found else {
                for (piece, old) in moved.into_iter().rev() {
                    let path = self.remove(piece);
                    renumber(on, piece, &path, &old);
                    self.put(piece, old);
                }
                self.largest[step] = most;
                return false;
            };
            renumber(on, piece, &old, &path);
            self.put(piece, path);
            moved.push((piece, old));
        }
        self.measure();
        true
    }

    /// Gives every piece another path on which no message gets larger than the largest of its step.
    fn shuffle(&mut self, round: usize) {
        let count = self.pieces.len();
        for place in 0..count {
            let piece = (place * 7919 + round * 104_729) % count;
            let old = self.remove(piece);
            let seed = (round * count + place) as u64;
            let path = self.shortest(piece, |number, load, most| {
                (load <= most).then(|| relative(load, most) + drawn(seed, number) % (UNIT / 2))
            });
            self.put(piece, path.unwrap_or(old));
        }
        self.measure();
    }
}

/// The length of a connection by the share of the largest message that it carries.
fn relative(load: u64, most: u64) -> Length {
    UNIT + UNIT * load / most.max(1)
}

/// A number that depends on both in no simple way (the finalizer of splitmix64).
fn drawn(seed: u64, number: usize) -> u64 {
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number as u64) << 20;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Moves a piece from the connections of a path to those of another.
fn renumber(on: &mut [Vec<u32>], piece: usize, old: &[u32], path: &[u32]) {
    old.iter().for_each(|&one| on[one as usize].retain(|&other| other != piece as u32));
    path.iter().for_each(|&one| on[one as usize].push(piece as u32));
}
