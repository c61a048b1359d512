//! Max-min fair rates in whole numbers, kept up to date as flows come and go.
//!
//! The rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2):
//! repeatedly, the links with the least capacity per open flow fix the rates of their open flows at
//! this *level*. A flow is fixed at its full rate where no link limits it. Levels are fractions and
//! are compared exactly. Only a rate is rounded, down to a whole number, so rates depend neither on
//! the order of flows nor on flows that share no link with them.
//!
//! # What an update visits
//! A *region* of links: at first the saturated links of the flows that came or went. The filling
//! begins anew for the flows on these links. A flow that a link outside the region limits is fixed at
//! its known level, unless it is fixed before. Where the level of a flow changes, its saturated links
//! enter the region: at its new level if that is lower, at the old one if it is higher. Up to there
//! they are as they were. A link that is not saturated takes part from the beginning, in a second
//! filling, if the first one leaves it too little capacity. The result is that of filling the whole
//! machine.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

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
    /// By hop, the place among the link's members.
    places: Vec<u32>,
    /// By link of the region, its number there and the hop's number.
    inside: Vec<(u32, u32)>,
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
    flows: u64,
    /// The sum of all rates over it, while it is not saturated.
    used: u128,
    /// The level at which it was saturated last.
    level: Level,
    members: Vec<Member>,
}

/// What every visit of a link reads.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// The update whose region it is in.
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

impl Link {
    /// Whether it may be saturated when all rates are known. Rates are rounded down, by less than 1
    /// for each flow. A bundle alone fills it only at the level of the link.
    fn may_be_tight(&self, bundle: &Bundle, hop: Hop) -> bool {
        if self.used + u128::from(self.flows) <= u128::from(self.capacity) {
            return false;
        }
        let alone = self.flows == bundle.over(hop);
        !(alone && Level { left: self.capacity, open: self.flows } >= bundle.fixed.level)
    }
}

/// The rates of bundles of flows on links.
pub(super) struct Rates {
    links: Vec<Link>,
    marks: Vec<Mark>,
    bundles: Vec<Bundle>,
    idle: Vec<u32>,
    /// Bundles whose flows came or went since the last update, and their saturated links.
    disturbed: Vec<u32>,
    seeds: Vec<u32>,
    visit: u32,
    filling: u32,
    region: Vec<Inside>,
    visited: Vec<u32>,
    by_links: BinaryHeap<Reverse<(Level, u32)>>,
    by_others: BinaryHeap<Reverse<(Level, u32)>>,
    /// Bundles that are not fixed yet, and the links and bundles of a level.
    open: usize,
    tight: Vec<u32>,
    fixed: Vec<u32>,
    /// Bundles whose level rises above this one.
    freed: Vec<u32>,
}

impl Rates {
    /// Bytes of a link, of a bundle, and of a link of a bundle.
    pub(super) const LINK: usize = size_of::<Link>() + size_of::<Mark>();
    pub(super) const BUNDLE: usize = size_of::<Bundle>() + 4 * size_of::<(Level, u32)>();
    pub(super) const HOP: usize = size_of::<Hop>() + size_of::<u32>() + size_of::<Member>();

    pub(super) fn new(capacities: impl Iterator<Item = u64>) -> Self {
        let link = |capacity| {
            let level = Level { left: capacity, open: 1 };
            Link { capacity, flows: 0, used: 0, level, members: Vec::new() }
        };
        let links: Vec<_> = capacities.map(link).collect();
        Self {
            marks: vec![Mark::default(); links.len()],
            links,
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
            open: 0,
            tight: Vec::new(),
            fixed: Vec::new(),
            freed: Vec::new(),
        }
    }

    /// Adds a bundle without flows over `(link, times)`, with the rate that it has alone.
    pub(super) fn add(&mut self, over: &[(u32, u32)], full: u64) -> u32 {
        let fixed = Fixed { level: Level { left: full, open: 1 }, rate: full, limit: FULL };
        let number = self.idle.pop().unwrap_or_else(|| {
            self.bundles.push(Bundle {
                hops: Vec::new(),
                places: Vec::new(),
                inside: Vec::new(),
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
        bundle.places.clear();
        for (hop, &(link, times)) in (0..).zip(over) {
            let members = &mut self.links[link as usize].members;
            bundle.hops.push(Hop { link, times });
            bundle.places.push(members.len() as u32);
            members.push(Member { bundle: number, hop });
        }
        number
    }

    /// Removes a bundle without flows.
    pub(super) fn remove(&mut self, number: u32) {
        for hop in 0..self.bundles[number as usize].hops.len() {
            let bundle = &self.bundles[number as usize];
            let (link, place) = (bundle.hops[hop].link, bundle.places[hop]);
            let members = &mut self.links[link as usize].members;
            members.swap_remove(place as usize);
            if let Some(&Member { bundle, hop }) = members.get(place as usize) {
                self.bundles[bundle as usize].places[hop as usize] = place;
            }
        }
        self.idle.push(number);
    }

    /// Adds flows to a bundle, or takes them away. Rates are stale until [`Self::update`].
    pub(super) fn change(&mut self, number: u32, by: i32) {
        let Self { links, marks, bundles, disturbed, seeds, .. } = self;
        let bundle = &mut bundles[number as usize];
        if !std::mem::replace(&mut bundle.disturbed, true) {
            disturbed.push(number);
        }
        bundle.flows = bundle.flows.strict_add_signed(by);
        for hop in &bundle.hops {
            let link = &mut links[hop.link as usize];
            let by = i64::from(by) * i64::from(hop.times);
            link.flows = link.flows.strict_add_signed(by);
            if marks[hop.link as usize].is_tight {
                seeds.push(hop.link);
            } else {
                let by = i128::from(by) * i128::from(bundle.counted);
                link.used = link.used.strict_add_signed(by);
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
            if !self.overflow() {
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

    /// Visits a bundle. Returns whether for the first time.
    fn touch(&mut self, number: u32) -> bool {
        let bundle = &mut self.bundles[number as usize];
        if bundle.visit == self.visit {
            return false;
        }
        (bundle.visit, bundle.before) = (self.visit, bundle.fixed);
        bundle.inside.clear();
        self.visited.push(number);
        true
    }

    /// Takes a link into the region, before a filling.
    fn enter(&mut self, number: u32) {
        let mark = &mut self.marks[number as usize];
        if std::mem::replace(&mut mark.visit, self.visit) == self.visit {
            return;
        }
        let inside = self.region.len() as u32;
        self.region.push(Inside { link: number, left: 0, open: 0 });
        for member in 0..self.links[number as usize].members.len() {
            let Member { bundle, hop } = self.links[number as usize].members[member];
            if self.bundles[bundle as usize].flows > 0 {
                self.touch(bundle);
                self.bundles[bundle as usize].inside.push((inside, hop));
            }
        }
    }

    /// Takes a saturated link into the region when the filling is at `level`, which is below its
    /// own.
    fn enter_at(&mut self, number: u32, level: Level) {
        let (filling, inside) = (self.filling, self.region.len() as u32);
        let mark = &mut self.marks[number as usize];
        *mark = Mark { visit: self.visit, is_tight: false };
        let link = &self.links[number as usize];
        let (mut left, mut open) = (link.capacity, link.flows);
        for member in 0..link.members.len() {
            let Member { bundle: member, hop } = self.links[number as usize].members[member];
            if self.bundles[member as usize].flows == 0 {
                continue;
            }
            let first = self.touch(member);
            let bundle = &mut self.bundles[member as usize];
            bundle.inside.push((inside, hop));
            if first && bundle.before.level < level {
                bundle.filling = filling;
            }
            if bundle.filling == filling {
                let flows = bundle.over(bundle.hops[hop as usize]);
                left = left.saturating_sub(flows.saturating_mul(bundle.fixed.rate));
                open -= flows;
            } else if first {
                self.by_others.push(Reverse((bundle.before.level, member)));
                self.open += 1;
            }
        }
        self.region.push(Inside { link: number, left, open });
        if open > 0 {
            self.by_links.push(Reverse((Level { left, open }, inside)));
        }
    }

    /// The filling of the bundles visited, on the links of the region.
    fn fill(&mut self) {
        self.filling += 1;
        self.by_links.clear();
        self.by_others.clear();
        for (number, inside) in (0..).zip(&mut self.region) {
            let link = &self.links[inside.link as usize];
            (inside.left, inside.open) = (link.capacity, link.flows);
            self.marks[inside.link as usize].is_tight = false;
            if inside.open > 0 {
                let level = Level { left: inside.left, open: inside.open };
                self.by_links.push(Reverse((level, number)));
            }
        }
        for &number in &self.visited {
            let bundle = &self.bundles[number as usize];
            if bundle.flows > 0 {
                let level = if bundle.disturbed { bundle.at_full() } else { bundle.before.level };
                self.by_others.push(Reverse((level, number)));
            }
        }
        self.open = self.by_others.len();
        while self.open > 0 {
            let of_links = first(&mut self.by_links, &self.region);
            let of_others = self.by_others.peek().map(|Reverse(entry)| entry.0);
            let level = match (of_links, of_others) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b).expect("bug: nothing limits a flow"),
            };
            self.fix_at(level);
        }
        for inside in &self.region {
            let link = &mut self.links[inside.link as usize];
            link.used = u128::from(link.capacity - inside.left);
        }
    }

    /// Fixes the bundles of a level.
    fn fix_at(&mut self, level: Level) {
        self.tight.clear();
        self.fixed.clear();
        self.freed.clear();
        while first(&mut self.by_links, &self.region) == Some(level) {
            let link = self.by_links.pop().map(|Reverse(entry)| self.region[entry.1 as usize].link);
            self.tight.extend(link);
        }
        for at in 0..self.tight.len() {
            let link = self.tight[at] as usize;
            (self.marks[link].is_tight, self.links[link].level) = (true, level);
            for member in 0..self.links[link].members.len() {
                let Member { bundle, hop } = self.links[link].members[member];
                if self.bundles[bundle as usize].flows > 0 {
                    self.fix(bundle, level, hop);
                }
            }
        }
        while let Some(&Reverse((other, number))) = self.by_others.peek()
            && other <= level
        {
            self.by_others.pop();
            self.fix_by_others(number, level);
        }
        self.open -= self.fixed.len();
        for at in 0..self.fixed.len() {
            let bundle = &self.bundles[self.fixed[at] as usize];
            for &(inside, hop) in &bundle.inside {
                let inside = &mut self.region[inside as usize];
                let flows = bundle.over(bundle.hops[hop as usize]);
                inside.left = inside.left.saturating_sub(flows.saturating_mul(bundle.fixed.rate));
                inside.open -= flows;
            }
        }
        for at in 0..self.freed.len() {
            self.enter_all(self.freed[at] as usize, level);
        }
        for at in 0..self.fixed.len() {
            let number = self.fixed[at] as usize;
            if !self.bundles[number].disturbed && level < self.bundles[number].before.level {
                self.enter_all(number, level);
            }
        }
    }

    /// Takes all saturated links of a bundle into the region.
    fn enter_all(&mut self, bundle: usize, level: Level) {
        for hop in 0..self.bundles[bundle].hops.len() {
            let link = self.bundles[bundle].hops[hop].link;
            let mark = self.marks[link as usize];
            if mark.is_tight && mark.visit != self.visit {
                self.enter_at(link, level);
            }
        }
    }

    fn fix(&mut self, number: u32, level: Level, limit: u32) {
        let bundle = &mut self.bundles[number as usize];
        if bundle.filling != self.filling {
            bundle.filling = self.filling;
            bundle.fixed = Fixed { level, rate: level.rate(), limit };
            self.fixed.push(number);
        } else if bundle.fixed.level == level {
            bundle.fixed.limit = bundle.fixed.limit.min(limit);
        }
    }

    /// Fixes a bundle at its known level, by a link outside the region, or at its full rate. If its
    /// limit is in the region and does not limit it at this level any more, it is freed.
    fn fix_by_others(&mut self, number: u32, level: Level) {
        let bundle = &self.bundles[number as usize];
        let limit = bundle.before.limit;
        let full = bundle.at_full();
        if bundle.disturbed || level == full {
            return self.fix(number, level, FULL);
        }
        let outside = |hop: Hop| self.marks[hop.link as usize].visit != self.visit;
        if bundle.hops.get(limit as usize).is_some_and(|&hop| outside(hop)) {
            return self.fix(number, level, limit);
        }
        if bundle.filling == self.filling {
            return;
        }
        let tied = bundle.hops.iter().position(|&hop| {
            let is_tight = self.marks[hop.link as usize].is_tight;
            is_tight && outside(hop) && self.links[hop.link as usize].level == level
        });
        if let Some(hop) = tied {
            return self.fix(number, level, hop as u32);
        }
        self.by_others.push(Reverse((full, number)));
        self.freed.push(number);
    }

    /// Counts the rates of the bundles visited on the links outside the region that are not
    /// saturated, and takes those into the region that they may saturate. Returns whether there
    /// are any.
    fn overflow(&mut self) -> bool {
        let Self { links, marks, bundles, visited, visit, .. } = self;
        let outside = |link: u32| {
            let mark = marks[link as usize];
            !mark.is_tight && mark.visit != *visit
        };
        for &number in &*visited {
            let bundle = &mut bundles[number as usize];
            let by = i128::from(bundle.fixed.rate) - i128::from(bundle.counted);
            if by != 0 {
                bundle.counted = bundle.fixed.rate;
                for hop in bundle.hops.iter().filter(|hop| outside(hop.link)) {
                    let flows = i128::from(bundle.over(*hop));
                    let used = &mut links[hop.link as usize].used;
                    *used = used.strict_add_signed(flows * by);
                }
            }
        }
        let before = self.region.len();
        for at in 0..self.visited.len() {
            let bundle = &self.bundles[self.visited[at] as usize];
            let higher = bundle.disturbed || bundle.fixed.level > bundle.before.level;
            if bundle.flows == 0 || !higher {
                continue;
            }
            for hop in 0..bundle.hops.len() {
                let bundle = &self.bundles[self.visited[at] as usize];
                let Hop { link, .. } = bundle.hops[hop];
                let mark = self.marks[link as usize];
                if !mark.is_tight
                    && mark.visit != self.visit
                    && self.links[link as usize].may_be_tight(bundle, bundle.hops[hop])
                {
                    self.enter(link);
                }
            }
        }
        self.region.len() > before
    }
}

impl Bundle {
    /// Its flows over a link.
    fn over(&self, hop: Hop) -> u64 {
        u64::from(hop.times) * u64::from(self.flows)
    }

    /// The level of its full rate.
    fn at_full(&self) -> Level {
        Level { left: self.full, open: 1 }
    }
}

/// The least level of the links with open flows. A link's level only rises.
fn first(by_links: &mut BinaryHeap<Reverse<(Level, u32)>>, region: &[Inside]) -> Option<Level> {
    while let Some(mut top) = by_links.peek_mut() {
        let Reverse((level, number)) = *top;
        let Inside { left, open, .. } = region[number as usize];
        if open == 0 {
            PeekMut::pop(top);
        } else if (level.left, level.open) == (left, open) {
            return Some(level);
        } else {
            top.0.0 = Level { left, open };
        }
    }
    None
}
