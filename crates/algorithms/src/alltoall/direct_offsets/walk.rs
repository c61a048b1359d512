//! The offsets of a torus in the order in which steps take them, without a search, and their routes.
//!
//! # Routes
//! Along each side the nearer direction. At half a side both are as near: -o takes the other direction than o.
//!
//! # Around half of all sides
//! On even sides let H be half of each. Of o and o + H one has a hops along a side of 2h and the other h - a.
//! So o, -o, o + H and -o - H have h hops along each side in each direction: the steps of four ports,
//! or of a multiple of four, are balanced. On an odd side the hops of o and o + H sum to h or to
//! h + 1. The offsets o, o + H, o + 2H, ... are a cycle, and each next two of it share a step with their
//! negatives.
//!
//! With 4m + 2 ports two steps share two offsets and their negatives. For those the offsets are
//! taken that make the two steps cost the least.
//!
//! # Rotated
//! On n equal sides with 2n ports, or a multiple of them: o and the offsets with its coordinates
//! rotated, and their negatives, have equally many hops in all 2n directions.

use std::cmp::Ordering;

use smallvec::SmallVec;
use topocoll_topology::{Coordinates, MixedRadix, Rank};

use crate::offsets::SignedHops;

/// The hops of an offset along each dimension.
pub(super) fn hops(radix: &MixedRadix, offset: Rank) -> SignedHops {
    (0..radix.dimensions()).map(|u| hops_along(radix, offset, u)).collect()
}

/// The hops of an offset along a dimension.
pub(super) fn hops_along(radix: &MixedRadix, offset: Rank, u: usize) -> i32 {
    let (at, side) = (radix.coordinate(offset, u), radix.sides()[u]);
    match at.cmp(&(side - at)) {
        Ordering::Less => at as i32,
        Ordering::Equal if tie_is_up(radix, offset, u) => at as i32,
        _ => -((side - at) as i32),
    }
}

/// The direction at half of side u: that of the next dimension in which an offset is not its own
/// negative. If there is none, the directions of S and S + H are equal, and of four such offsets
/// two and two.
fn tie_is_up(radix: &MixedRadix, offset: Rank, u: usize) -> bool {
    let (all, sides) = (radix.dimensions(), radix.sides());
    let at = |v: usize| radix.coordinate(offset, v);
    let next = (u + 1..all).chain(0..u).find(|&v| at(v) != 0 && at(v) != sides[v] - at(v));
    if let Some(v) = next {
        return at(v) < sides[v] - at(v);
    }
    let mut even = (0..all).filter(|&v| sides[v] % 2 == 0);
    let first = even.next();
    let last = even.next_back().or(first);
    first.zip(last).is_none_or(|(first, last)| (at(first) == 0) == (at(last) == 0))
}

/// Offsets that are in a step already, as bits.
struct Taken(Vec<u64>);

impl Taken {
    fn new(ranks: u32) -> Self {
        Self(vec![0; ranks as usize / 64 + 1])
    }

    fn contains(&self, offset: Rank) -> bool {
        self.0[offset.index() / 64] >> (offset.0 % 64) & 1 == 1
    }

    fn insert(&mut self, offset: Rank) {
        self.0[offset.index() / 64] |= 1 << (offset.0 % 64);
    }
}

/// The offset of the negative coordinates.
fn negative(radix: &MixedRadix, offset: Rank) -> Rank {
    let at = radix.coordinates(offset);
    let sides = radix.sides().iter();
    let negative: Coordinates = at.iter().zip(sides).map(|(x, side)| (side - x) % side).collect();
    radix.rank(&negative)
}

/// All offsets but 0, for steps of as many as there are ports.
pub(super) fn ordered(radix: &MixedRadix, ports: usize) -> Vec<Rank> {
    let long: SmallVec<[usize; 6]> = radix.long_dimensions().collect();
    let equal = long.windows(2).all(|two| radix.sides()[two[0]] == radix.sides()[two[1]]);
    if equal && !long.is_empty() && ports % (2 * long.len()) == 0 {
        return rotated(radix, &long);
    }
    around_half(radix, ports)
}

/// Offsets and their rotations and negatives, those that are equal to one of their own last.
fn rotated(radix: &MixedRadix, long: &[usize]) -> Vec<Rank> {
    let mut taken = Taken::new(radix.ranks());
    let mut order = Vec::with_capacity(radix.ranks() as usize - 1);
    let mut short: Vec<(usize, Rank)> = Vec::new();
    for offset in (1..radix.ranks()).map(Rank) {
        if taken.contains(offset) {
            continue;
        }
        let first = order.len();
        let mut at = radix.coordinates(offset);
        for _ in long {
            let last = at[long[long.len() - 1]];
            for i in (1..long.len()).rev() {
                at[long[i]] = at[long[i - 1]];
            }
            at[long[0]] = last;
            let rotated = radix.rank(&at);
            for one in [rotated, negative(radix, rotated)] {
                if !taken.contains(one) {
                    taken.insert(one);
                    order.push(one);
                }
            }
        }
        let size = order.len() - first;
        if size < 2 * long.len() {
            let rest = if negative(radix, offset) == offset { 2 * long.len() } else { 0 };
            short.extend(order.drain(first..).map(|one| (rest + 2 * long.len() - size, one)));
        }
    }
    short.sort_by_key(|(key, _)| *key);
    order.extend(short.into_iter().map(|(_, offset)| offset));
    order
}

/// Offsets along the cycles of o + H, each with its negative.
fn around_half(radix: &MixedRadix, ports: usize) -> Vec<Rank> {
    let ranks = radix.ranks();
    let half: Coordinates = radix.sides().iter().map(|side| side / 2).collect();
    let beyond =
        |offset| (0..half.len()).fold(offset, |at, u| radix.shifted(at, u, half[u].into()));
    let own = |offset| negative(radix, offset) == offset;
    let mut taken = Taken::new(ranks);
    // Next to each other on a cycle; those left over; and those that are their own negatives.
    let (mut twos, mut ones, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    let mut walk = |start: Rank, taken: &mut Taken| {
        let (mut offset, mut before) = (start, None);
        while !taken.contains(offset) {
            let negative = negative(radix, offset);
            if negative == offset {
                break;
            }
            taken.insert(offset);
            taken.insert(negative);
            match before.take() {
                Some(before) => twos.push([before, offset]),
                None => before = Some(offset),
            }
            offset = beyond(offset);
        }
        ones.extend(before);
    };
    walk(beyond(Rank(0)), &mut taken);
    for offset in (1..ranks).map(Rank).filter(|&offset| own(offset)) {
        walk(beyond(offset), &mut taken);
    }
    for offset in (1..ranks).map(Rank) {
        walk(offset, &mut taken);
    }
    for offset in (1..ranks).map(Rank).filter(|&offset| own(offset)) {
        if !taken.contains(offset) {
            let other = beyond(offset);
            taken.insert(offset);
            alone.push(offset);
            if other.0 > 0 && own(other) {
                taken.insert(other);
                alone.push(other);
            }
        }
    }
    if ports % 4 == 2 && ports > 2 {
        twos = split_evenly(radix, twos, ports / 4);
    }
    // Not a multiple of two in the middle of others.
    alone.sort_by_key(|&offset| beyond(offset).0 == 0);
    let mut order = Vec::with_capacity(ranks as usize - 1);
    for offset in twos.into_iter().flatten().chain(ones) {
        order.extend([offset, negative(radix, offset)]);
    }
    order.extend(alone);
    order
}

/// The same, of each 2m + 1 the middle one the best to divide between two steps.
fn split_evenly(radix: &MixedRadix, mut twos: Vec<[Rank; 2]>, m: usize) -> Vec<[Rank; 2]> {
    let whole = m as u64;
    let cost = |&[one, _]: &[Rank; 2]| {
        let along = hops(radix, one);
        let loads = || radix.sides().iter().map(|&side| u64::from(side / 2)).zip(&along);
        let first = loads().map(|(half, own)| whole * half + u64::from(own.unsigned_abs())).max();
        let second =
            loads().map(|(half, own)| (whole + 1) * half - u64::from(own.unsigned_abs())).max();
        first.unwrap_or(0) + second.unwrap_or(0)
    };
    twos.sort_by_cached_key(cost);
    let rest = twos.split_off(twos.len() / (2 * m + 1));
    let mut rest = rest.into_iter();
    let mut order = Vec::with_capacity(twos.len() + rest.len());
    for two in twos {
        order.extend(rest.by_ref().take(m));
        order.push(two);
        order.extend(rest.by_ref().take(m));
    }
    order.extend(rest);
    order
}
