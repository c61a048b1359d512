//! Paths for pieces that have none: as few steps as possible get a larger message, and connections are few.
//!
//! The least cost from each rank before each step to a few destinations is found over all connections, the last step
//! first. A path follows these costs, depth first. Connections have filled up since by other pieces: it avoids them
//! where it makes no more steps longer than the costs say. If no such path is found soon, the costs are found again.

use std::cmp::Reverse;

use super::Paths;
use crate::alltoall::repair::follow::NONE;

/// The steps that get a larger message by a path, times [`LARGER`], and its connections.
type Cost = u32;
/// More than the connections of a path.
const LARGER: Cost = 1 << 13;
const NO_WAY: Cost = 1 << 30;

/// Destinations whose costs are found at once.
const AT_ONCE: usize = 4;

/// Ranks that a search visits beyond the steps, at most.
const MOST_VISITED: usize = 1000;

#[derive(Default)]
struct Ahead {
    /// By step and rank, the least cost from there to each destination.
    costs: Vec<[Cost; AT_ONCE]>,
    /// By step and rank, the last search that visited it.
    visited: Vec<u32>,
    searches: u32,
}

impl Paths<'_> {
    /// Gives each piece without a path one that makes the fewest steps longer.
    pub(super) fn insert_together(&mut self) {
        let open = self.pieces.iter().enumerate().filter(|(_, piece)| piece.path.is_empty());
        let mut open: Vec<(usize, u32, usize)> =
            open.map(|(number, piece)| (piece.part, piece.to, number)).collect();
        open.sort_unstable();
        let mut ahead = Ahead::default();
        for of_part in open.chunk_by(|a, b| a.0 == b.0) {
            let of_destinations: Vec<_> = of_part.chunk_by(|a, b| a.1 == b.1).collect();
            for some in of_destinations.chunks(AT_ONCE) {
                let destinations: Vec<u32> = some.iter().map(|open| open[0].1).collect();
                let size = self.pieces[some[0][0].2].size;
                self.look(&destinations, size, &mut ahead);
                for (place, open) in some.iter().enumerate() {
                    for &(_, _, piece) in *open {
                        let path = self.find(piece, place, &mut ahead).or_else(|| {
                            self.look(&destinations, size, &mut ahead);
                            self.find(piece, place, &mut ahead)
                        });
                        let path = path.expect("bug: a piece without a path");
                        self.put_longer(piece, path);
                    }
                }
            }
        }
    }

    /// Gives a piece a path on which messages may get larger than the largest of their steps.
    pub(super) fn put_longer(&mut self, piece: usize, path: Vec<u32>) {
        for &one in &path {
            let step = self.connections.step_of(one);
            let load = self.loads[one as usize] + self.pieces[piece].size;
            self.largest[step] = self.largest[step].max(load);
        }
        self.put(piece, path);
    }

    fn cost(&self, number: usize, step: usize, size: u64) -> Cost {
        let larger = self.loads[number] + size > self.largest[step];
        if larger { LARGER + 1 } else { 1 }
    }

    /// Finds the costs to some destinations of pieces of a size.
    fn look(&self, destinations: &[u32], size: u64, ahead: &mut Ahead) {
        let (steps, ranks) = (self.largest.len(), self.reached.len());
        ahead.visited.resize(steps * ranks, 0);
        ahead.costs.resize((steps + 1) * ranks, [NO_WAY; AT_ONCE]);
        let last = &mut ahead.costs[steps * ranks..];
        last.fill([NO_WAY; AT_ONCE]);
        for (place, &to) in destinations.iter().enumerate() {
            last[to as usize][place] = 0;
        }
        for step in (0..steps).rev() {
            let (own, later) = ahead.costs[step * ranks..][..2 * ranks].split_at_mut(ranks);
            own.copy_from_slice(later);
            let of = self.connections.of_step(step);
            for (number, &[from, to]) in of.clone().zip(&self.connections.ends[of]) {
                let cost = self.cost(number, step, size);
                let (own, later) = (&mut own[from as usize], &later[to as usize]);
                own.iter_mut().zip(later).for_each(|(own, later)| *own = (later + cost).min(*own));
            }
        }
    }

    /// A path that makes no more steps longer than the cost to one of the destinations says, if it is found soon.
    /// The piece is on none.
    fn find(&mut self, piece: usize, place: usize, ahead: &mut Ahead) -> Option<Vec<u32>> {
        let (from, to, size) =
            (self.pieces[piece].from, self.pieces[piece].to, self.pieces[piece].size);
        let (steps, ranks) = (self.largest.len(), self.reached.len());
        let least = ahead.costs[from as usize][place];
        let most = (least / LARGER + 1) * LARGER;
        ahead.searches += 1;
        self.ends.clear();
        let mut left = steps + MOST_VISITED;
        // Steps, ranks, costs to these and paths, those to go on with first at the end.
        let mut open = vec![(0, from, 0, NONE)];
        while let Some((step, at, cost, last)) = open.pop() {
            if at == to {
                return Some(self.path(last));
            }
            if step == steps {
                continue;
            }
            left = left.checked_sub(1)?;
            let visited = &mut ahead.visited[step * ranks + at as usize];
            if std::mem::replace(visited, ahead.searches) == ahead.searches {
                continue;
            }
            let first = open.len();
            for number in self.connections.of_sender(step, at) {
                let cost = cost + self.cost(number, step, size);
                let [_, next] = self.connections.ends[number];
                open.push((step + 1, next, cost, self.ends.len() as u32));
                self.ends.push((number as u32, last));
            }
            open.push((step + 1, at, cost, last));
            let all = |&(step, at, cost, _): &(usize, u32, Cost, u32)| {
                cost + ahead.costs[step * ranks + at as usize][place]
            };
            open[first..].sort_by_key(|one| Reverse(all(one)));
            let dear = open[first..].partition_point(|one| all(one) >= most);
            open.drain(first..first + dear);
        }
        None
    }
}
