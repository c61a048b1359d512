//! Max-min fair rates in whole numbers, kept up to date as flows come and go.
//!
//! The rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2):
//! repeatedly, the links with the least capacity per open flow fix the rates of their open flows at
//! this *level*. A flow is fixed at its full rate where no link limits it. Levels are fractions and
//! are compared exactly. Only a rate is rounded, down to a whole number, so rates depend neither on
//! the order of flows nor on flows that share no link with them.
//!
//! # What an update visits
//! A *region* of links: at first the saturated links of the flows that came or went. The filling is
//! repeated for the flows on these links. Another saturated link takes part in it at its known level,
//! as long as the levels of all flows on it stay the same, and enters the region if one changes. A
//! link that is not saturated enters it if too little capacity is left. The result is that of
//! filling the whole machine.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The limit of a bundle that runs at its full rate.
const FULL: u32 = u32::MAX;

/// A level of the filling, as a fraction: capacity by open flows.
#[derive(Clone, Copy, Debug)]
struct Level {
    left: u64,
    open: u64,
}

impl Level {
    fn rate(self) -> u64 {
        (self.left / self.open).max(1)
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |left: u64, open: u64| u128::from(left) * u128::from(open);
        product(self.left, other.open).cmp(&product(other.left, self.open))
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
    /// The place among the link's members.
    place: u32,
}

/// How a bundle was fixed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fixed {
    level: Level,
    rate: u64,
    /// The hop that limits it, or [`FULL`].
    limit: u32,
}

/// Flows over the same links, which have equal rates.
struct Bundle {
    hops: Vec<Hop>,
    full: u64,
    flows: u32,
    fixed: Fixed,
    /// The update that visited it, how it was fixed before, and whether flows came or went.
    visit: u32,
    before: Fixed,
    disturbed: bool,
    /// The filling that has fixed it, and the rate that the links count.
    filling: u32,
    counted: u64,
}

/// The place of a bundle among the members of a link.
#[derive(Clone, Copy)]
struct Member {
    bundle: u32,
    hop: u32,
}

struct Link {
    capacity: u64,
    /// The sum of all rates over it, and the number of flows.
    used: u128,
    flows: u64,
    /// The level at which it is saturated.
    tight: Option<Level>,
    members: Vec<Member>,
    /// The update whose region it is in, and its state in the filling.
    visit: u32,
    left: u64,
    open: u64,
}

impl Link {
    /// Whether it may be saturated when all rates are known. Rates are rounded down, by less than 1
    /// for each flow. A bundle alone fills it only at the level of the link.
    fn may_be_tight(&self, bundle: &Bundle, times: u32) -> bool {
        if self.used + u128::from(self.flows) <= u128::from(self.capacity) {
            return false;
        }
        let alone = self.flows == u64::from(times) * u64::from(bundle.flows);
        !(alone && Level { left: self.capacity, open: self.flows } >= bundle.fixed.level)
    }
}

/// The rates of bundles of flows on links.
pub(super) struct Rates {
    links: Vec<Link>,
    bundles: Vec<Bundle>,
    idle: Vec<u32>,
    /// Bundles whose flows came or went since the last update, and their saturated links.
    disturbed: Vec<u32>,
    seeds: Vec<u32>,
    visit: u32,
    filling: u32,
    region: Vec<u32>,
    visited: Vec<u32>,
    by_links: BinaryHeap<Reverse<(Level, u32)>>,
    by_others: BinaryHeap<Reverse<(Level, u32)>>,
    tight: Vec<u32>,
    fixed: Vec<u32>,
}

impl Rates {
    /// Bytes of a link, of a bundle, and of a link of a bundle.
    pub(super) const LINK: usize = size_of::<Link>();
    pub(super) const BUNDLE: usize = size_of::<Bundle>() + 4 * size_of::<(Level, u32)>();
    pub(super) const HOP: usize = size_of::<Hop>() + size_of::<Member>();

    pub(super) fn new(capacities: impl Iterator<Item = u64>) -> Self {
        let link = |capacity| Link {
            capacity,
            used: 0,
            flows: 0,
            tight: None,
            members: Vec::new(),
            visit: 0,
            left: 0,
            open: 0,
        };
        Self {
            links: capacities.map(link).collect(),
            bundles: Vec::new(),
            idle: Vec::new(),
            disturbed: Vec::new(),
            seeds: Vec::new(),
            visit: 0,
            filling: 0,
            region: Vec::new(),
            visited: Vec::new(),
            by_links: BinaryHeap::new(),
            by_others: BinaryHeap::new(),
            tight: Vec::new(),
            fixed: Vec::new(),
        }
    }

    /// Adds a bundle without flows over `(link, times)`, with the rate that it has alone.
    pub(super) fn add(&mut self, over: &[(u32, u32)], full: u64) -> u32 {
        let fixed = Fixed { level: Level { left: full, open: 1 }, rate: full, limit: FULL };
        let number = self.idle.pop().unwrap_or_else(|| {
            self.bundles.push(Bundle {
                hops: Vec::new(),
                full,
                flows: 0,
                fixed,
                visit: 0,
                before: fixed,
                disturbed: false,
                filling: 0,
                counted: 0,
            });
            self.bundles.len() as u32 - 1
        });
        let bundle = &mut self.bundles[number as usize];
        (bundle.full, bundle.fixed, bundle.counted) = (full, fixed, 0);
        bundle.hops.clear();
        for (hop, &(link, times)) in (0..).zip(over) {
            let members = &mut self.links[link as usize].members;
            bundle.hops.push(Hop { link, times, place: members.len() as u32 });
            members.push(Member { bundle: number, hop });
        }
        number
    }

    /// Removes a bundle without flows.
    pub(super) fn remove(&mut self, number: u32) {
        let hops = std::mem::take(&mut self.bundles[number as usize].hops);
        for &Hop { link, place, .. } in &hops {
            let members = &mut self.links[link as usize].members;
            members.swap_remove(place as usize);
            if let Some(&Member { bundle, hop }) = members.get(place as usize)
                && bundle != number
            {
                self.bundles[bundle as usize].hops[hop as usize].place = place;
            }
        }
        self.bundles[number as usize].hops = hops;
        self.idle.push(number);
    }

    /// Adds flows to a bundle, or takes them away. Rates are stale until [`Self::update`].
    pub(super) fn change(&mut self, number: u32, by: i32) {
        let Self { links, bundles, disturbed, seeds, .. } = self;
        let bundle = &mut bundles[number as usize];
        if !std::mem::replace(&mut bundle.disturbed, true) {
            disturbed.push(number);
        }
        bundle.flows = bundle.flows.strict_add_signed(by);
        for hop in &bundle.hops {
            let link = &mut links[hop.link as usize];
            let by = i64::from(by) * i64::from(hop.times);
            link.flows = link.flows.strict_add_signed(by);
            link.used = link.used.strict_add_signed(i128::from(by) * i128::from(bundle.counted));
            if link.tight.is_some() {
                seeds.push(hop.link);
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

    /// The link that limits a bundle, and its place among the links of the bundle.
    pub(super) fn limit(&self, bundle: u32) -> Option<(usize, u32)> {
        let bundle = &self.bundles[bundle as usize];
        let hop = bundle.fixed.limit as usize;
        bundle.hops.get(hop).map(|of| (hop, of.link))
    }

    /// The links of a bundle, each with how often a flow takes it.
    pub(super) fn over(&self, bundle: u32) -> impl Iterator<Item = (u32, u32)> {
        self.bundles[bundle as usize].hops.iter().map(|hop| (hop.link, hop.times))
    }

    /// Whether a bundle has these links and this full rate.
    pub(super) fn is(&self, bundle: u32, over: &[(u32, u32)], full: u64) -> bool {
        self.bundles[bundle as usize].full == full && self.over(bundle).eq(over.iter().copied())
    }

    /// Brings all rates up to date. Writes the bundles with another rate, or more or fewer flows,
    /// and their rates before.
    pub(super) fn update(&mut self, changed: &mut Vec<(u32, u64)>) {
        self.visit += 1;
        self.region.clear();
        self.visited.clear();
        while let Some(number) = self.disturbed.pop() {
            self.touch(number);
        }
        while let Some(link) = self.seeds.pop() {
            self.enter(link);
        }
        loop {
            self.fill();
            if !self.spread() {
                break;
            }
        }
        changed.clear();
        for &number in &self.visited {
            let bundle = &mut self.bundles[number as usize];
            let disturbed = std::mem::take(&mut bundle.disturbed);
            if bundle.flows > 0 && (disturbed || bundle.fixed.rate != bundle.before.rate) {
                changed.push((number, bundle.before.rate));
            }
        }
    }

    /// Visits a bundle.
    fn touch(&mut self, number: u32) {
        let bundle = &mut self.bundles[number as usize];
        if bundle.visit != self.visit {
            (bundle.visit, bundle.before) = (self.visit, bundle.fixed);
            self.visited.push(number);
        }
    }

    /// Takes a link into the region.
    fn enter(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        if link.visit == self.visit {
            return;
        }
        link.visit = self.visit;
        self.region.push(number);
        for member in 0..self.links[number as usize].members.len() {
            let bundle = self.links[number as usize].members[member].bundle;
            if self.bundles[bundle as usize].flows > 0 {
                self.touch(bundle);
            }
        }
    }

    /// The filling of the bundles visited, on the links of the region.
    fn fill(&mut self) {
        self.filling += 1;
        let Self { links, bundles, region, visited, by_links, by_others, tight, fixed, .. } = self;
        let mut entries = std::mem::take(by_links).into_vec();
        entries.clear();
        for &number in &*region {
            let link = &mut links[number as usize];
            (link.left, link.open, link.tight) = (link.capacity, link.flows, None);
            if link.open > 0 {
                entries.push(Reverse((Level { left: link.left, open: link.open }, number)));
            }
        }
        *by_links = entries.into();
        let mut entries = std::mem::take(by_others).into_vec();
        entries.clear();
        let mut open = 0;
        for &number in &*visited {
            let bundle = &bundles[number as usize];
            if bundle.flows > 0 {
                open += 1;
                let other = bundle.before_by_others(links, self.visit);
                let full = Level { left: bundle.full, open: 1 };
                let level = other.map_or(full, |fixed| fixed.level);
                entries.push(Reverse((level, number)));
            }
        }
        *by_others = entries.into();
        while open > 0 {
            let of_links = first(by_links, links);
            let of_others = by_others.peek().map(|Reverse(entry)| entry.0);
            let level = match (of_links, of_others) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b).expect("bug: nothing limits a flow"),
            };
            tight.clear();
            while first(by_links, links) == Some(level) {
                tight.extend(by_links.pop().map(|Reverse(entry)| entry.1));
            }
            fixed.clear();
            for &number in &*tight {
                links[number as usize].tight = Some(level);
                for &Member { bundle: member, hop } in &links[number as usize].members {
                    let bundle = &mut bundles[member as usize];
                    if bundle.flows == 0 {
                        continue;
                    }
                    if bundle.filling != self.filling {
                        bundle.filling = self.filling;
                        bundle.fixed = Fixed { level, rate: level.rate(), limit: hop };
                        fixed.push(member);
                    } else if bundle.fixed.level == level {
                        bundle.fixed.limit = bundle.fixed.limit.min(hop);
                    }
                }
            }
            while let Some(&Reverse((other, number))) = by_others.peek()
                && other <= level
            {
                by_others.pop();
                let bundle = &mut bundles[number as usize];
                let limit = bundle.before_by_others(links, self.visit).map_or(FULL, |of| of.limit);
                if bundle.filling != self.filling {
                    bundle.filling = self.filling;
                    bundle.fixed = Fixed { level, rate: level.rate(), limit };
                    fixed.push(number);
                } else if bundle.fixed.level == level {
                    bundle.fixed.limit = bundle.fixed.limit.min(limit);
                }
            }
            open -= fixed.len();
            for &number in &*fixed {
                let bundle = &bundles[number as usize];
                for hop in &bundle.hops {
                    let link = &mut links[hop.link as usize];
                    if link.visit == self.visit {
                        let flows = u64::from(hop.times) * u64::from(bundle.flows);
                        let taken = flows.saturating_mul(bundle.fixed.rate);
                        link.left = link.left.saturating_sub(taken);
                        link.open -= flows;
                    }
                }
            }
        }
    }

    /// Counts the rates of the bundles visited, and takes the links into the region that they
    /// change. Returns whether there are any.
    fn spread(&mut self) -> bool {
        for &number in &self.visited {
            let bundle = &mut self.bundles[number as usize];
            let by = i128::from(bundle.fixed.rate) - i128::from(bundle.counted);
            if by != 0 {
                bundle.counted = bundle.fixed.rate;
                for hop in &bundle.hops {
                    let flows = i128::from(hop.times) * i128::from(bundle.flows);
                    let used = &mut self.links[hop.link as usize].used;
                    *used = used.strict_add_signed(flows * by);
                }
            }
        }
        let before = self.region.len();
        for at in 0..self.visited.len() {
            let number = self.visited[at] as usize;
            let bundle = &self.bundles[number];
            let same = bundle.fixed.level == bundle.before.level;
            if bundle.flows == 0 || (same && !bundle.disturbed) {
                continue;
            }
            for hop in 0..self.bundles[number].hops.len() {
                let bundle = &self.bundles[number];
                let Hop { link: place, times, .. } = bundle.hops[hop];
                let link = &self.links[place as usize];
                if link.visit != self.visit
                    && (link.tight.is_some() || link.may_be_tight(bundle, times))
                {
                    self.enter(place);
                }
            }
        }
        self.region.len() > before
    }
}

impl Bundle {
    /// How a link outside the region fixed it before; `None` if no such link did.
    fn before_by_others(&self, links: &[Link], visit: u32) -> Option<Fixed> {
        let hop = self.hops.get(self.before.limit as usize)?;
        (!self.disturbed && links[hop.link as usize].visit != visit).then_some(self.before)
    }
}

/// The least level of the links with open flows. A link's level only rises.
fn first(by_links: &mut BinaryHeap<Reverse<(Level, u32)>>, links: &[Link]) -> Option<Level> {
    while let Some(mut top) = by_links.peek_mut() {
        let Reverse((level, number)) = *top;
        let link = &links[number as usize];
        if link.open == 0 {
            std::collections::binary_heap::PeekMut::pop(top);
        } else if (level.left, level.open) == (link.left, link.open) {
            return Some(level);
        } else {
            top.0.0 = Level { left: link.left, open: link.open };
        }
    }
    None
}
