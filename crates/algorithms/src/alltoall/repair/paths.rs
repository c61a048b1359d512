//! The pieces of blocks on the connections of all steps, so that the largest messages are small.

mod insert;

use std::sync::Arc;

use smallvec::SmallVec;
use topocoll_topology::{MixedRadix, Rank, Route, Segment, Topology};

use super::MOST_LISTED;
use super::connections::Connections;
use super::equivalent::Equivalent;
use super::follow::NONE;
use crate::drawn::{SPREAD, drawn};

/// Visits of connections after which no other paths are tried.
const MOST_VISITS: usize = 1 << 27;
/// Rounds, at most; those in a row that find little; and the inverse share of the volume that is little.
const ROUNDS: usize = 10;
const IN_VAIN: usize = 3;
const ENOUGH: u64 = 512;

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

/// A torus on which blocks go hop by hop, near their shortest routes.
pub(super) struct Near<'c> {
    equivalent: &'c Equivalent,
    radix: &'c MixedRadix,
    /// By rank of the machine without failures, its node if it has not failed; by node, that rank.
    nodes: &'c [Option<u32>],
    places: &'c [Rank],
    /// The shortest routes from rank 0 there.
    routes: Vec<Route>,
}

impl<'c> Near<'c> {
    /// `None` if ranks differ or send over several hops.
    pub(super) fn new(
        equivalent: &'c Equivalent,
        (nodes, places): (&'c [Option<u32>], &'c [Rank]),
        machine: &dyn Topology,
    ) -> Option<Self> {
        let radix = equivalent.hop_by_hop()?;
        let routes = (0..equivalent.ranks).map(|rank| {
            let mut route = Route::default();
            machine.route(Rank(0), Rank(rank), &mut route);
            route
        });
        Some(Self { equivalent, radix, nodes, places, routes: routes.collect() })
    }

    fn route(&self, from: u32, to: u32) -> &Route {
        let [from, to] = [from, to].map(|node| self.places[node as usize]);
        &self.routes[self.equivalent.translated(to, from, Rank(0)).index()]
    }

    /// The next node along a dimension, if it has not failed.
    fn beyond(&self, node: u32, dimension: usize, hops: i64) -> Option<u32> {
        let place = self.places[node as usize];
        self.nodes[self.radix.shifted(place, dimension, hops).index()]
    }
}

/// A shortest path to a rank: its length, its last connection with the path before it, and whether it may lead on.
#[derive(Clone, Copy)]
struct Reached {
    length: Length,
    last: u32,
    is_open: bool,
}

const UNSEEN: Reached = Reached { length: UNREACHED, last: NONE, is_open: false };

/// By step and rank, the fewest connections from there to one destination, at most 254, or [`NO_WAY`].
#[derive(Clone)]
struct Hops(Arc<[u8]>);

const NO_WAY: u8 = u8::MAX;

/// Bytes of the tables that are kept.
const MOST_KEPT: usize = 1 << 27;

impl Hops {
    fn new(connections: &Connections, ranks: usize, to: u32) -> Self {
        let steps = connections.count();
        let mut hops = vec![NO_WAY; (steps + 1) * ranks];
        hops[steps * ranks + to as usize] = 0;
        for step in (0..steps).rev() {
            let (own, later) = hops[step * ranks..].split_at_mut(ranks);
            own.copy_from_slice(&later[..ranks]);
            for [from, to] in &connections.ends[connections.of_step(step)] {
                let own = &mut own[*from as usize];
                if later[*to as usize] != NO_WAY {
                    *own = later[*to as usize].saturating_add(1).min(NO_WAY - 1).min(*own);
                }
            }
        }
        Self(hops.into())
    }

    /// The least length from a rank before a step to the destination.
    fn ahead(&self, step: usize, rank: u32, ranks: usize) -> Option<Length> {
        let hops = self.0[step * ranks + rank as usize];
        (hops != NO_WAY).then(|| Length::from(hops) * UNIT)
    }
}

pub(super) struct Paths<'c> {
    connections: &'c Connections,
    near: Option<Near<'c>>,
    pub(super) pieces: Vec<Piece>,
    /// By connection, the size of its message.
    pub(super) loads: Vec<u64>,
    /// By step, the size of its largest message.
    largest: Vec<u64>,
    /// By destination, the hops to it. Some are kept.
    hops: Vec<Option<Hops>>,
    kept: usize,
    /// By rank, the shortest path to it; the ranks that have one, and those that may lead on.
    reached: Vec<Reached>,
    seen: Vec<u32>,
    open: Vec<u32>,
    /// Paths: the last connection, and the path before it.
    ends: Vec<(u32, u32)>,
    /// By connection that is tried in a step: its number, the length to its end, and the path before it.
    arrived: Vec<(u32, Length, u32)>,
    visits: usize,
}

impl<'c> Paths<'c> {
    /// Pieces without a path get one; then the largest messages are lowered. `loads` has the sizes of messages
    /// without these pieces, by connection.
    pub(super) fn new(
        connections: &'c Connections,
        near: Option<Near<'c>>,
        (ranks, moves_all): (usize, bool),
        pieces: Vec<Piece>,
        loads: Vec<u64>,
    ) -> Self {
        let mut paths = Self {
            connections,
            near,
            pieces,
            loads,
            largest: vec![0; connections.count()],
            hops: vec![None; ranks],
            kept: 0,
            reached: vec![UNSEEN; ranks],
            seen: Vec::new(),
            open: Vec::new(),
            ends: Vec::new(),
            arrived: Vec::new(),
            visits: 0,
        };
        for piece in &paths.pieces {
            piece.path.iter().for_each(|&one| paths.loads[one as usize] += piece.size);
        }
        paths.measure();
        if moves_all {
            paths.insert_each();
        } else {
            paths.insert_together();
        }
        if !moves_all && paths.near.is_none() && ranks > MOST_LISTED as usize {
            return paths;
        }
        paths.lower();
        let rounds = if moves_all { ROUNDS } else { 0 };
        let mut in_vain = 0;
        for place in 0..rounds {
            let (before, visits) = (paths.volume(), paths.visits);
            paths.shuffle(place);
            // A round takes about as many visits as the last.
            let is_last = 2 * paths.visits - visits > MOST_VISITS;
            paths.lower();
            let lowered = before - paths.volume();
            in_vain = if lowered * ENOUGH > before { 0 } else { in_vain + 1 };
            if in_vain == IN_VAIN || is_last {
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

    /// The hops to a destination.
    fn hops(&mut self, to: u32) -> Hops {
        if self.hops[to as usize].is_none() {
            if self.kept > MOST_KEPT {
                self.hops.fill(None);
                self.kept = 0;
            }
            let hops = Hops::new(self.connections, self.hops.len(), to);
            self.kept += hops.0.len();
            self.hops[to as usize] = Some(hops);
        }
        self.hops[to as usize].clone().expect("bug: hops that are not kept")
    }

    /// The shortest path of a piece, which is on none, if it is shorter than `most`. `length` is that of a
    /// connection: by its number, its load with the piece, and the largest message of its step.
    fn shortest(
        &mut self,
        piece: usize,
        most: Length,
        length: impl Fn(usize, u64, u64) -> Option<Length>,
    ) -> Option<Vec<u32>> {
        let Piece { from, to, size, .. } = self.pieces[piece];
        let (hops, ranks) = (self.hops(to), self.reached.len());
        let ahead = |step, rank| hops.ahead(step, rank, ranks);
        self.ends.clear();
        self.reached[from as usize] = Reached { length: 0, is_open: true, ..UNSEEN };
        self.seen.push(from);
        self.open.push(from);
        for (step, &largest) in self.largest.iter().enumerate() {
            let best = self.reached[to as usize].length.min(most);
            self.open.retain(|&rank| {
                let Reached { length, is_open, .. } = &mut self.reached[rank as usize];
                let ahead = ahead(step, rank).map(|ahead| *length + ahead);
                *is_open = ahead.is_some_and(|all| all < best);
                *is_open
            });
            for &from in &self.open {
                let before = self.reached[from as usize];
                for number in self.connections.of_sender(step, from) {
                    self.visits += 1;
                    let [_, next] = self.connections.ends[number];
                    let after = ahead(step + 1, next).map(|ahead| before.length + UNIT + ahead);
                    let reached = self.reached[next as usize].length;
                    if before.length >= reached || after.is_none_or(|after| after >= best) {
                        continue;
                    }
                    if let Some(length) = length(number, self.loads[number] + size, largest) {
                        self.arrived.push((number as u32, before.length + length, before.last));
                    }
                }
            }
            for (number, length, last) in self.arrived.drain(..) {
                let [_, rank] = self.connections.ends[number as usize];
                let reached = &mut self.reached[rank as usize];
                if length < reached.length {
                    if reached.length == UNREACHED {
                        self.seen.push(rank);
                    }
                    if !std::mem::replace(&mut reached.is_open, true) {
                        self.open.push(rank);
                    }
                    (reached.length, reached.last) = (length, self.ends.len() as u32);
                    self.ends.push((number, last));
                }
            }
        }
        let Reached { length, last, .. } = self.reached[to as usize];
        self.open.clear();
        for rank in self.seen.drain(..) {
            self.reached[rank as usize] = UNSEEN;
        }
        (length < most).then(|| self.path(last))
    }

    /// The connections of a path.
    fn path(&self, mut last: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while last != NONE {
            let (number, before) = self.ends[last as usize];
            path.push(number);
            last = before;
        }
        path.reverse();
        path
    }

    /// A path of few turns, with a detour of a hop or without one, on which no message gets larger than the
    /// largest of its step. The piece is on none.
    fn straight(&self, piece: usize) -> Option<Vec<u32>> {
        let near = self.near.as_ref()?;
        let Piece { from, to, .. } = self.pieces[piece];
        let segments = near.route(from, to).segments();
        let turns = if segments.len() < 3 { segments.len() } else { 2 * segments.len() };
        let dimensions = 0..near.radix.dimensions() as u32;
        let detours = dimensions.flat_map(|dimension| [(dimension, 1), (dimension, -1)]);
        let mut moves: SmallVec<[Segment; 8]> = SmallVec::new();
        for detour in std::iter::once(None).chain(detours.map(Some)) {
            for turn in 0..turns {
                let hop = |sign| {
                    let segment =
                        |(dimension, hops): (u32, i64)| Segment { dimension, hops: sign * hops };
                    detour.map(segment)
                };
                moves.clear();
                moves.extend(segments.iter().copied());
                moves.rotate_left((turn + piece) % segments.len());
                if turn >= segments.len() {
                    moves.reverse();
                }
                let moves = hop(1).into_iter().chain(moves.iter().copied()).chain(hop(-1));
                if let Some(path) = self.fit(piece, near, moves) {
                    return Some(path);
                }
            }
        }
        None
    }

    /// The path over some links, each taken as early as no message gets larger than the largest of its step.
    fn fit(
        &self,
        piece: usize,
        near: &Near<'_>,
        moves: impl Iterator<Item = Segment>,
    ) -> Option<Vec<u32>> {
        let Piece { from, size, .. } = self.pieces[piece];
        let (mut at, mut steps, mut path) = (from, 0..self.largest.len(), Vec::new());
        for Segment { dimension, hops } in moves {
            for _ in 0..hops.unsigned_abs() {
                let next = near.beyond(at, dimension as usize, hops.signum())?;
                let number = steps.find_map(|step| {
                    let most = self.largest[step];
                    self.connections.of_sender(step, at).find(|&number| {
                        self.connections.ends[number] == [at, next]
                            && self.loads[number] + size <= most
                    })
                })?;
                path.push(number as u32);
                at = next;
            }
        }
        Some(path)
    }

    /// Gives each piece without a path the one on which it makes the fewest steps longer. Later all may move.
    fn insert_each(&mut self) {
        for piece in 0..self.pieces.len() {
            if self.pieces[piece].path.is_empty() {
                let length =
                    |_, load, most| Some(if load > most { LARGER } else { relative(load, most) });
                let path = self.shortest(piece, UNREACHED, length);
                self.put_longer(piece, path.expect("bug: a piece without a path"));
            }
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
        if full.iter().any(|&one| on[one].is_empty()) {
            return false;
        }
        let mut moved: Vec<(usize, Vec<u32>)> = Vec::new();
        self.largest[step] = most - 1;
        for one in full {
            let found = on[one].clone().into_iter().find_map(|piece| {
                let piece = piece as usize;
                let old = self.remove(piece);
                let path = match self.near {
                    Some(_) => self.straight(piece),
                    None => self.shortest(piece, UNREACHED, |_, load, most| {
                        (load <= most).then(|| relative(load, most))
                    }),
                };
                match path {
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
            let seed = ((round * count + place) as u64).wrapping_mul(SPREAD);
            let length = |number: usize, load, most| {
                let chance = drawn(seed ^ (number as u64) << 20) % (UNIT / 2);
                (load <= most).then(|| relative(load, most) + chance)
            };
            let size = self.pieces[piece].size;
            let lengths = old.iter().map(|&one| {
                let most = self.largest[self.connections.step_of(one)];
                length(one as usize, self.loads[one as usize] + size, most)
            });
            let most = lengths.sum::<Option<Length>>().unwrap_or(UNREACHED);
            let path = self.shortest(piece, most, length);
            self.put(piece, path.unwrap_or(old));
        }
        self.measure();
    }
}

/// The length of a connection by the share of the largest message that it carries.
fn relative(load: u64, most: u64) -> Length {
    UNIT + UNIT * load / most.max(1)
}

/// Moves a piece from the connections of a path to those of another.
fn renumber(on: &mut [Vec<u32>], piece: usize, old: &[u32], path: &[u32]) {
    old.iter().for_each(|&one| on[one as usize].retain(|&other| other != piece as u32));
    path.iter().for_each(|&one| on[one as usize].push(piece as u32));
}
