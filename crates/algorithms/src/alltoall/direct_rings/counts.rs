//! Counts: steps without messages, and the sum over steps of the most hops.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::DirectRule;
use super::ring::Ring;
use crate::factor::direct_exchange;

/// The most sums of hops for which claims are computed.
const WORK: u128 = 1 << 25;

impl DirectRule {
    /// Steps without messages: along the longest sides all blocks stay, and others have fewer
    /// tours.
    pub(super) fn empty_steps(&self) -> u64 {
        // Two slots with common steps have such steps only there.
        if self.merged > 0 || self.rings.iter().any(|ring| ring.paired) {
            return 0;
        }
        let subsets = 0..1u32 << self.rings.len();
        let empty = subsets.map(|moving| {
            let moves = |u: &usize| moving >> u & 1 == 1;
            if moving == 0 || (0..self.rings.len()).any(|u| !moves(&u) && !self.rings[u].stays()) {
                return 0;
            }
            let rings = || (0..self.rings.len()).filter(moves).map(|u| self.rings[u]);
            let up: u64 = rings().map(|ring| u64::from(ring.rounds())).product();
            let turns = up << moving.count_ones() >> 1;
            // Sums of tours, and one less for reversed ranks; unless these go - alone, and ranks
            // whose tours are all 0 keep their own.
            let sums = rings().map(|ring| ring.tours() - 1).sum::<u32>() + 1;
            let own = rings().all(|ring| !ring.is_odd() && ring.half % 2 == 1);
            let alike = if own { up } else { 0 };
            let empty = |sums| u64::from(self.tours.saturating_sub(sums));
            alike * empty(sums) + (turns - alike) * empty(sums + 1)
        });
        empty.sum()
    }

    /// The sum over steps of the most hops, if that is little work: equal turns are counted
    /// together.
    pub(super) fn hops(&self) -> Option<u128> {
        let work = |ring: &Ring| u128::from(ring.side) * u128::from(ring.rounds());
        if self.rings.iter().any(|ring| work(ring) > WORK) {
            return None;
        }
        let mut all = 0;
        for turns in self.first_half() {
            let of = |tours: u32, short: bool| {
                let kinds = self.rings.iter().zip(&turns).map(|(ring, turns)| {
                    let mut alike: BTreeMap<Farthest, u128> = BTreeMap::new();
                    for &turn in turns {
                        if short && self.decides(ring) && ring.is_longer(turn) {
                            continue;
                        }
                        *alike.entry(ring.farthest(turn, tours)).or_default() += 1;
                    }
                    alike.into_iter().collect()
                });
                hops_of(kinds.collect(), tours)
            };
            all += if self.rings.iter().any(|ring| self.decides(ring)) {
                of(self.tours + 1, false)? + of(self.tours, true)? - of(self.tours + 1, true)?
            } else {
                of(self.tours, false)?
            };
        }
        Some(all + (0..self.merged).map(|turn| self.merged_hops(turn)).sum::<u128>())
    }

    /// A floor of the same. Ranks that send along the longest side in a step are of one tour in
    /// each direction on every line of it, so at most eight; the farthest goes at least the
    /// average.
    pub(super) fn hops_floor(&self) -> u128 {
        let longest = self.rings.iter().max_by_key(|ring| ring.side);
        longest.map_or(0, |ring| {
            let (all, along) = (
                direct_exchange::hops_of_a_rank(&self.grid),
                direct_exchange::hops_along(&self.grid, ring.dimension),
            );
            let side = u128::from(ring.side);
            // Along other sides, a fixed part of the blocks stays along this one.
            (all - (all - along) / side) * side / 8
        })
    }

    /// The slots of the first half that do not share their steps, as turns along each dimension.
    fn first_half(&self) -> Vec<Vec<Vec<u32>>> {
        let rounds = |u: usize| self.rings[u].rounds();
        if self.merged > 0 {
            let moving = (0..self.rings[1].turns()).filter(|&turn| turn != rounds(1)).collect();
            return vec![
                vec![(0..rounds(0)).collect(), moving],
                vec![(self.merged..rounds(0)).collect(), vec![rounds(1)]],
                vec![vec![rounds(0)], (self.merged..rounds(1)).collect()],
            ];
        }
        // These go + along the first dimension in which they do not stay.
        let boxes = (0..self.rings.len()).map(|first| {
            let turns = self.rings.iter().enumerate().map(|(u, ring)| match u.cmp(&first) {
                Ordering::Less => (ring.rounds()..ring.turns() - ring.rounds()).collect(),
                Ordering::Equal => (0..ring.rounds()).collect(),
                Ordering::Greater => (0..ring.turns()).collect(),
            });
            turns.collect()
        });
        boxes.collect()
    }

    /// The same for the steps that two slots share, each of one dimension alone.
    fn merged_hops(&self, turn: u32) -> u128 {
        let tours = self.tours;
        let [a, b] = [self.rings[0], self.rings[1]];
        let [of_a, of_b] = [a, b].map(|ring| ring.farthest(turn, tours));
        let any =
            |[most, _]: &Farthest| most.iter().map(|most| most.map(|_| 0)).collect::<Vec<_>>();
        let [first, second] = of_a.each_ref().map(|most| most_by_sum(most, &any(&of_b)));
        let [third, fourth] = of_b.each_ref().map(|most| most_by_sum(&any(&of_a), most));
        let of_step = |r: usize| {
            let of = |most: &[Option<u64>], more: usize| most[(r + more) % tours as usize];
            let most = of(&first, 0).max(of(&second, 1)).max(of(&third, 2)).max(of(&fourth, 3));
            u128::from(most.unwrap_or(0))
        };
        (0..tours as usize).map(of_step).sum()
    }
}

/// The sum of the most hops over all combinations of turns, one along each dimension.
fn hops_of(kinds: Vec<Vec<(Farthest, u128)>>, tours: u32) -> Option<u128> {
    let tours = tours as usize;
    let combinations: u128 = kinds.iter().map(|kinds| kinds.len() as u128).product();
    if combinations * (tours * tours) as u128 > WORK {
        return None;
    }
    let mut kinds = kinds.into_iter();
    let mut sums = kinds.next()?;
    for kinds in kinds {
        let pairs = sums.iter().flat_map(|before| kinds.iter().map(move |kind| (before, kind)));
        sums = pairs
            .map(|(([first, second], times), ([own, reversed], more))| {
                let both = most_by_sum(first, own);
                let alike = first == second && own == reversed;
                let other = if alike { both.clone() } else { most_by_sum(second, reversed) };
                ([both, other], times * more)
            })
            .collect();
    }
    let of_step =
        |[first, second]: &Farthest, r: usize| first[r].max(second[(r + 1) % tours]).unwrap_or(0);
    let of_all = |(both, times): &(Farthest, u128)| {
        times * (0..tours).map(|r| u128::from(of_step(both, r))).sum::<u128>()
    };
    Some(sums.iter().map(of_all).sum())
}

/// The most hops by the sum of tours, of ranks that go first and of ranks that go reversed.
pub(super) type Farthest = [Vec<Option<u64>>; 2];

/// The largest sums of a value of each, by the sum of their places around.
fn most_by_sum(a: &[Option<u64>], b: &[Option<u64>]) -> Vec<Option<u64>> {
    let places = a.len();
    let mut most: Vec<Option<u64>> = vec![None; places];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            let sum = a.zip(*b).map(|(a, b)| a + b);
            most[(i + j) % places] = most[(i + j) % places].max(sum);
        }
    }
    most
}
