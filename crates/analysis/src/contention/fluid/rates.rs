//! Max-min fair rates in whole numbers, kept up to date as flows come and go.
//!
//! The rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2):
//! repeatedly, the links with the least capacity per open flow fix the rates of their open flows at
//! this *level*. A flow is fixed at its full rate where no link limits it. Levels are fractions and
//! are compared exactly. Only a rate is rounded, down to a whole number, so rates depend neither on
//! the order of flows nor on flows that share no link with them.

mod filling;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The limit of a bundle that runs at its full rate.
const FULL: u32 = u32::MAX;

/// The end of the places of a bundle.
const NOWHERE: u32 = u32::MAX;

/// A level of the filling, as a fraction: capacity by open flows. The rate is the whole part.
#[derive(Clone, Copy, Debug)]
struct Level {
    rate: u64,
    left: u64,
    open: u64,
}

impl Level {
    fn new(left: u64, open: u64) -> Self {
        Self { rate: left / open, left, open }
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |left: u64, open: u64| u128::from(left) * u128::from(open);
        self.rate
            .cmp(&other.rate)
            .then_with(|| product(self.left, other.open).cmp(&product(other.left, self.open)))
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}

/// A link of a bundle.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    /// How often each flow takes it.
    times: u32,
}

/// How a bundle was fixed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fixed {
    level: Level,
    rate: u64,
    /// A hop that limits it, or [`FULL`].
    limit: u32,
}

/// Flows over the same links, which have equal rates.
struct Bundle {
    hops: Vec<Hop>,
    /// By hop, the place among the link's members.
    places: Vec<u32>,
    full: u64,
    fixed: Fixed,
    /// How it was fixed before this filling, and whether flows came or went since the last one.
    before: Fixed,
    disturbed: bool,
    /// The update that visited it, and whether its flows came or went before that.
    update: u32,
    came_or_went: bool,
    /// Whether only the region or its full rate can limit it now.
    is_free: bool,
    /// The rate that the links count.
    counted: u64,
}

/// What every visit of a bundle reads.
#[derive(Clone, Copy)]
struct Hot {
    flows: u32,
    /// The filling that visited it, and the one that has fixed it.
    visit: u32,
    filling: u32,
    /// Its first place in the region, or [`NOWHERE`].
    first: u32,
}

impl Hot {
    /// Its flows over a link.
    fn over(self, times: u32) -> u64 {
        u64::from(times) * u64::from(self.flows)
    }
}

/// A bundle that takes a link: the number of the hop, and how often each flow takes it.
#[derive(Clone, Copy)]
struct Member {
    bundle: u32,
    hop: u32,
    times: u32,
}

/// A bundle on a link of the region, and the next link of the bundle.
#[derive(Clone, Copy)]
struct Place {
    inside: u32,
    times: u32,
    next: u32,
}

struct Link {
    capacity: u64,
    flows: u64,
    /// The sum of all rates over it, while it is not saturated.
    used: u128,
}

/// What every visit of a link reads.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// The filling whose region it is in.
    visit: u32,
    is_tight: bool,
}

/// A link of the region.
struct Inside {
    link: u32,
    /// The state of the filling.
    left: u64,
    open: u64,
}

/// The rates of bundles of flows on links.
pub(super) struct Rates {
    links: Vec<Link>,
    /// By link: the bundles that flow over it, and the level at which it was saturated last.
    members: Vec<Vec<Member>>,
    levels: Vec<Level>,
    marks: Vec<Mark>,
    bundles: Vec<Bundle>,
    hot: Vec<Hot>,
    idle: Vec<u32>,
    /// Bundles whose flows came or went since the last update, and their saturated links.
    disturbed: Vec<u32>,
    seeds: Vec<u32>,
    update: u32,
    visit: u32,
    region: Vec<Inside>,
    places: Vec<Place>,
    visited: Vec<u32>,
    by_links: BinaryHeap<Reverse<(u64, u32)>>,
    by_others: BinaryHeap<Reverse<(u64, u32)>>,
    /// Bundles that are not fixed yet, and the links and bundles of a level.
    open: usize,
    tight: Vec<u32>,
    others: Vec<u32>,
    fixed: Vec<u32>,
    /// Bundles whose level rises above this one.
    freed: Vec<u32>,
    /// Bundles with a higher rate, on links outside the regions so far that may be saturated.
    grown: Vec<Member>,
}

impl Rates {
    /// Bytes of a link, of a bundle, and of a link of a bundle.
    pub(super) const LINK: usize = size_of::<(Link, Vec<Member>, Level, Mark)>();
    pub(super) const BUNDLE: usize =
        size_of::<Bundle>() + size_of::<Hot>() + 4 * size_of::<(Level, u32)>();
    pub(super) const HOP: usize = size_of::<Hop>() + size_of::<u32>() + size_of::<Member>();

    pub(super) fn new(capacities: impl Iterator<Item = u64>) -> Self {
        let link = |capacity| Link { capacity, flows: 0, used: 0 };
        let links: Vec<_> = capacities.map(link).collect();
        Self {
            members: links.iter().map(|_| Vec::new()).collect(),
            levels: vec![Level::new(1, 1); links.len()],
            marks: vec![Mark::default(); links.len()],
            links,
            bundles: Vec::new(),
            hot: Vec::new(),
            idle: Vec::new(),
            disturbed: Vec::new(),
            seeds: Vec::new(),
            update: 0,
            visit: 0,
            region: Vec::new(),
            places: Vec::new(),
            visited: Vec::new(),
            by_links: BinaryHeap::new(),
            by_others: BinaryHeap::new(),
            open: 0,
            tight: Vec::new(),
            others: Vec::new(),
            fixed: Vec::new(),
            freed: Vec::new(),
            grown: Vec::new(),
        }
    }

    /// Adds a bundle without flows over `(link, times)`, with the rate that it has alone.
    pub(super) fn add(&mut self, over: &[(u32, u32)], full: u64) -> u32 {
        let fixed = Fixed { level: Level::new(full, 1), rate: full, limit: FULL };
        let number = self.idle.pop().unwrap_or_else(|| {
            self.bundles.push(Bundle {
                hops: Vec::new(),
                places: Vec::new(),
                full,
                fixed,
                before: fixed,
                disturbed: false,
                update: 0,
                came_or_went: false,
                is_free: false,
                counted: 0,
            });
            self.hot.push(Hot { flows: 0, visit: 0, filling: 0, first: NOWHERE });
            self.bundles.len() as u32 - 1
        });
        let bundle = &mut self.bundles[number as usize];
        (bundle.full, bundle.fixed, bundle.counted) = (full, fixed, 0);
        bundle.hops.clear();
        bundle.hops.extend(over.iter().map(|&(link, times)| Hop { link, times }));
        number
    }

    /// Removes a bundle without flows.
    pub(super) fn remove(&mut self, number: u32) {
        self.idle.push(number);
    }

    /// Adds flows to a bundle, or takes them away. Rates are stale until [`Self::update`].
    pub(super) fn change(&mut self, number: u32, by: i32) {
        if by == 0 {
            return;
        }
        let Self { links, members, marks, bundles, hot, disturbed, seeds, .. } = self;
        let bundle = &mut bundles[number as usize];
        if !std::mem::replace(&mut bundle.disturbed, true) {
            disturbed.push(number);
        }
        let hot = &mut hot[number as usize];
        let before = hot.flows;
        hot.flows = before.strict_add_signed(by);
        for &Hop { link, times } in &bundle.hops {
            let by = i64::from(by) * i64::from(times);
            let used = &mut links[link as usize];
            used.flows = used.flows.strict_add_signed(by);
            if marks[link as usize].is_tight {
                seeds.push(link);
            } else {
                let by = i128::from(by) * i128::from(bundle.counted);
                used.used = used.used.strict_add_signed(by);
            }
        }
        if before == 0 {
            bundle.places.clear();
            for (hop, &Hop { link, times }) in (0..).zip(&bundle.hops) {
                let members = &mut members[link as usize];
                bundle.places.push(members.len() as u32);
                members.push(Member { bundle: number, hop, times });
            }
        } else if hot.flows == 0 {
            for hop in 0..bundles[number as usize].hops.len() {
                let bundle = &bundles[number as usize];
                let (link, place) = (bundle.hops[hop].link, bundle.places[hop]);
                let members = &mut members[link as usize];
                members.swap_remove(place as usize);
                if let Some(&Member { bundle, hop, .. }) = members.get(place as usize) {
                    bundles[bundle as usize].places[hop as usize] = place;
                }
            }
        }
    }

    /// Whether flows came or went since the last update.
    pub(super) fn is_stale(&self) -> bool {
        !self.disturbed.is_empty()
    }

    /// The rate of each flow of a bundle.
    pub(super) fn rate(&self, bundle: u32) -> u64 {
        self.bundles[bundle as usize].fixed.rate
    }

    /// The rate that each flow of a bundle has alone.
    pub(super) fn full(&self, bundle: u32) -> u64 {
        self.bundles[bundle as usize].full
    }

    /// The first link that limits a bundle, and its place among the links of the bundle.
    pub(super) fn limit(&self, bundle: u32) -> Option<(usize, u32)> {
        let bundle = &self.bundles[bundle as usize];
        let limits = |link: u32| {
            self.marks[link as usize].is_tight && self.levels[link as usize] == bundle.fixed.level
        };
        if bundle.fixed.level == bundle.at_full() {
            return None;
        }
        let hop = bundle.hops.iter().position(|hop| limits(hop.link))?;
        Some((hop, bundle.hops[hop].link))
    }

    /// The links of a bundle, each with how often a flow takes it.
    pub(super) fn over(&self, bundle: u32) -> impl Iterator<Item = (u32, u32)> {
        self.bundles[bundle as usize].hops.iter().map(|hop| (hop.link, hop.times))
    }

    /// Whether a bundle has these links and this full rate.
    pub(super) fn is(&self, bundle: u32, over: &[(u32, u32)], full: u64) -> bool {
        self.bundles[bundle as usize].full == full && self.over(bundle).eq(over.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of a bundle, its full rate, and its flows.
    type Known = (Vec<(u32, u32)>, u64, u32);

    /// The rates by filling all links anew.
    fn filled(capacities: &[u64], bundles: &[Known]) -> Vec<u64> {
        let mut rates: Vec<Option<u64>> =
            bundles.iter().map(|of| (of.2 == 0).then_some(0)).collect();
        let over = |of: &Known, link: usize| {
            let times = of.0.iter().filter(|hop| hop.0 as usize == link).map(|hop| hop.1);
            u64::from(times.sum::<u32>()) * u64::from(of.2)
        };
        while rates.contains(&None) {
            let levels: Vec<Option<Level>> = (0..capacities.len())
                .map(|link| {
                    let (mut left, mut open) = (capacities[link], 0);
                    for (of, rate) in bundles.iter().zip(&rates) {
                        match rate {
                            Some(rate) => left -= over(of, link) * rate,
                            None => open += over(of, link),
                        }
                    }
                    (open > 0).then(|| Level::new(left, open))
                })
                .collect();
            let open = |i: &usize| rates[*i].is_none();
            let fulls = (0..bundles.len()).filter(open).map(|i| Level::new(bundles[i].1, 1));
            let least = levels.iter().flatten().copied().chain(fulls).min().unwrap();
            for (of, rate) in bundles.iter().zip(&mut rates).filter(|(_, rate)| rate.is_none()) {
                let tight = of.0.iter().any(|hop| levels[hop.0 as usize] == Some(least));
                if tight || Level::new(of.1, 1) == least {
                    *rate = Some(least.rate);
                }
            }
        }
        rates.into_iter().flatten().collect()
    }

    #[test]
    fn updated_rates_are_those_of_filling_all_links_anew() {
        for seed in 0..400 {
            let mut random = fastrand::Rng::with_seed(seed);
            let unit = [12, 1_000, 1 << 40][seed as usize % 3] * 5_040;
            let links = random.u32(2..14);
            let capacities: Vec<u64> = (0..links)
                .map(|_| unit * if seed % 2 == 0 { 1 } else { random.u64(1..5) })
                .collect();
            let mut rates = Rates::new(capacities.iter().copied());
            let (mut bundles, mut numbers, mut changed) = (Vec::new(), Vec::new(), Vec::new());
            let mut known: Vec<u64> = Vec::new();
            for _ in 0..60 {
                for _ in 0..random.u32(1..4) {
                    if bundles.len() < 25 && random.bool() {
                        // As on a ring: some links in a row, or any.
                        let first = random.u32(..links);
                        let over: Vec<(u32, u32)> = (0..random.u32(0..links))
                            .map(|i| ((first + i) % links, random.u32(1..3)))
                            .collect();
                        let slowest = over.iter().map(|hop| capacities[hop.0 as usize]).min();
                        let full = slowest.unwrap_or(unit);
                        numbers.push(rates.add(&over, full));
                        known.push(0);
                        bundles.push((over, full, 0));
                    } else if !bundles.is_empty() {
                        let i = random.usize(..bundles.len());
                        let flows = random.u32(0..3);
                        rates.change(numbers[i], flows as i32 - bundles[i].2 as i32);
                        bundles[i].2 = flows;
                        if flows == 0 && random.bool() {
                            rates.remove(numbers[i]);
                            numbers.swap_remove(i);
                            bundles.swap_remove(i);
                            known.swap_remove(i);
                        }
                    }
                }
                rates.update(&mut changed);
                for &(number, _) in &changed {
                    let at = numbers.iter().position(|&other| other == number).unwrap();
                    known[at] = rates.rate(number);
                }
                let expected = filled(&capacities, &bundles);
                for (i, (_, _, flows)) in bundles.iter().enumerate().filter(|of| of.1.2 > 0) {
                    assert_eq!(rates.rate(numbers[i]), expected[i], "seed {seed}, {flows} flows");
                    // Every change was told.
                    assert_eq!(known[i], expected[i], "seed {seed}, {flows} flows");
                }
            }
        }
    }
}
