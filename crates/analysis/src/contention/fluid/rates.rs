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
    /// How it was fixed before this update, and whether flows came or went.
    before: Fixed,
    disturbed: bool,
    /// Whether only the region or its full rate can limit it now.
    is_free: bool,
    /// The rate that the links count.
    counted: u64,
}

/// What every visit of a bundle reads.
#[derive(Clone, Copy)]
struct Hot {
    flows: u32,
    /// The update that visited it, and the filling that has fixed it.
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
    /// for each flow. A bundle alone, with these flows, fills it only at the level of the link, which
    /// says nothing new at its full rate.
    fn may_be_tight(&self, flows: u64, level: Level, full: Level) -> bool {
        if self.used + u128::from(self.flows) <= u128::from(self.capacity) {
            return false;
        }
        let alone = (self.flows == flows).then(|| Level::new(self.capacity, flows));
        alone.is_none_or(|own| own < level || own == level && level != full)
    }
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
    visit: u32,
    filling: u32,
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
    /// Bundles with a higher rate, on links outside the region.
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
            visit: 0,
            filling: 0,
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

    /// Brings all rates up to date. Writes the bundles with another rate, or more or fewer flows,
    /// and their rates before.
    pub(super) fn update(&mut self, changed: &mut Vec<(u32, u64)>) {
        self.visit += 1;
        self.region.clear();
        self.places.clear();
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
            if self.hot[number as usize].flows > 0
                && (disturbed || bundle.fixed.rate != bundle.before.rate)
            {
                changed.push((number, bundle.before.rate));
            }
        }
    }

    /// Visits a bundle. Returns whether for the first time.
    fn touch(&mut self, number: u32) -> bool {
        let hot = &mut self.hot[number as usize];
        if hot.visit == self.visit {
            return false;
        }
        (hot.visit, hot.first) = (self.visit, NOWHERE);
        let bundle = &mut self.bundles[number as usize];
        bundle.before = bundle.fixed;
        self.visited.push(number);
        true
    }

    /// Notes that a bundle is on a link of the region.
    fn place(&mut self, member: Member, inside: u32) {
        let first = &mut self.hot[member.bundle as usize].first;
        self.places.push(Place { inside, times: member.times, next: *first });
        *first = self.places.len() as u32 - 1;
    }

    /// Takes a link into the region, before a filling.
    fn enter(&mut self, number: u32) {
        let mark = &mut self.marks[number as usize];
        if std::mem::replace(&mut mark.visit, self.visit) == self.visit {
            return;
        }
        let inside = self.region.len() as u32;
        self.region.push(Inside { link: number, left: 0, open: 0 });
        for at in 0..self.members[number as usize].len() {
            let member = self.members[number as usize][at];
            self.touch(member.bundle);
            self.place(member, inside);
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
        for at in 0..self.members[number as usize].len() {
            let member = self.members[number as usize][at];
            let first = self.touch(member.bundle);
            self.place(member, inside);
            let bundle = &mut self.bundles[member.bundle as usize];
            let hot = &mut self.hot[member.bundle as usize];
            bundle.is_free &= !first;
            if first && bundle.before.level < level {
                hot.filling = filling;
            }
            if hot.filling == filling {
                let flows = hot.over(member.times);
                left = left.saturating_sub(flows.saturating_mul(bundle.fixed.rate));
                open -= flows;
            } else if first {
                self.by_others.push(Reverse((bundle.before.level.rate, member.bundle)));
                self.open += 1;
            }
        }
        self.region.push(Inside { link: number, left, open });
        let rate = left.checked_div(open);
        self.by_links.extend(rate.map(|rate| Reverse((rate, inside))));
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
            let rate = inside.left.checked_div(inside.open);
            self.by_links.extend(rate.map(|rate| Reverse((rate, number))));
        }
        for &number in &self.visited {
            let bundle = &mut self.bundles[number as usize];
            if self.hot[number as usize].flows > 0 {
                bundle.is_free = bundle.disturbed;
                self.by_others.push(Reverse((bundle.event().rate, number)));
            }
        }
        self.open = self.by_others.len();
        while self.open > 0 {
            self.fix_least();
        }
        for inside in &self.region {
            let link = &mut self.links[inside.link as usize];
            link.used = u128::from(link.capacity - inside.left);
        }
    }

    /// Fixes the bundles of the least level.
    fn fix_least(&mut self) {
        let of_links = first(&mut self.by_links, &self.region);
        let of_others = self.by_others.peek().map(|Reverse(entry)| entry.0);
        let rate = of_links.unwrap_or(u64::MAX).min(of_others.unwrap_or(u64::MAX));
        // All of this rate, and of them those of the least level.
        self.tight.clear();
        self.others.clear();
        while first(&mut self.by_links, &self.region) == Some(rate) {
            self.tight.extend(self.by_links.pop().map(|Reverse((_, inside))| inside));
        }
        while let Some(other) = self.by_others.peek_mut()
            && other.0.0 == rate
        {
            self.others.push(PeekMut::pop(other).0.1);
        }
        let level_of = |inside: u32| self.region[inside as usize].level();
        let of_links = self.tight.iter().map(|&inside| level_of(inside));
        let of_others = self.others.iter().map(|&number| self.bundles[number as usize].event());
        let level = of_links.chain(of_others).min().expect("bug: nothing limits a flow");
        self.tight.retain(|&inside| {
            let least = self.region[inside as usize].level() == level;
            if !least {
                self.by_links.push(Reverse((rate, inside)));
            }
            least
        });
        self.others.retain(|&number| {
            let least = self.bundles[number as usize].event() == level;
            if !least {
                self.by_others.push(Reverse((rate, number)));
            }
            least
        });
        self.fix_at(level);
    }

    /// Fixes the bundles of a level.
    fn fix_at(&mut self, level: Level) {
        self.fixed.clear();
        self.freed.clear();
        for at in 0..self.tight.len() {
            let link = self.region[self.tight[at] as usize].link as usize;
            (self.marks[link].is_tight, self.levels[link]) = (true, level);
            for at in 0..self.members[link].len() {
                let Member { bundle, hop, .. } = self.members[link][at];
                self.fix(bundle, level, hop);
            }
        }
        for at in 0..self.others.len() {
            self.fix_by_others(self.others[at], level);
        }
        self.open -= self.fixed.len();
        for at in 0..self.fixed.len() {
            let number = self.fixed[at] as usize;
            let (hot, rate) = (self.hot[number], self.bundles[number].fixed.rate);
            let mut place = hot.first;
            while let Some(&Place { inside, times, next }) = self.places.get(place as usize) {
                let inside = &mut self.region[inside as usize];
                let flows = hot.over(times);
                inside.left = inside.left.saturating_sub(flows.saturating_mul(rate));
                inside.open -= flows;
                place = next;
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
        let hot = &mut self.hot[number as usize];
        let bundle = &mut self.bundles[number as usize];
        if hot.filling != self.filling {
            hot.filling = self.filling;
            bundle.fixed = Fixed { level, rate: level.rate.max(1), limit };
            self.fixed.push(number);
        }
    }

    /// Fixes a bundle at its known level, by a link outside the region, or at its full rate. If its
    /// limit is in the region and does not limit it at this level any more, it is freed.
    fn fix_by_others(&mut self, number: u32, level: Level) {
        let bundle = &self.bundles[number as usize];
        let limit = bundle.before.limit;
        let full = bundle.at_full();
        if bundle.is_free || level == full {
            return self.fix(number, level, FULL);
        }
        let bundle = &self.bundles[number as usize];
        let outside = |hop: Hop| self.marks[hop.link as usize].visit != self.visit;
        if bundle.hops.get(limit as usize).is_some_and(|&hop| outside(hop)) {
            return self.fix(number, level, limit);
        }
        if self.hot[number as usize].filling == self.filling {
            return;
        }
        let tied = bundle.hops.iter().position(|&hop| {
            let is_tight = self.marks[hop.link as usize].is_tight;
            is_tight && outside(hop) && self.levels[hop.link as usize] == level
        });
        if let Some(hop) = tied {
            return self.fix(number, level, hop as u32);
        }
        self.by_others.push(Reverse((full.rate, number)));
        self.bundles[number as usize].is_free = true;
        self.freed.push(number);
    }

    /// Counts the rates of the bundles visited on the links outside the region that are not
    /// saturated, and takes those into the region that they may saturate. Returns whether there
    /// are any.
    fn overflow(&mut self) -> bool {
        let Self { links, marks, bundles, hot, visited, grown, visit, .. } = self;
        grown.clear();
        for &number in &*visited {
            let bundle = &mut bundles[number as usize];
            let by = i128::from(bundle.fixed.rate) - i128::from(bundle.counted);
            let higher = bundle.disturbed || bundle.fixed.level > bundle.before.level;
            bundle.counted = bundle.fixed.rate;
            let hot = hot[number as usize];
            if hot.flows == 0 || by == 0 && !higher {
                continue;
            }
            for (hop, &Hop { link, times }) in (0..).zip(&bundle.hops) {
                let mark = marks[link as usize];
                if !mark.is_tight && mark.visit != *visit {
                    let used = &mut links[link as usize].used;
                    *used = used.strict_add_signed(i128::from(hot.over(times)) * by);
                    if higher {
                        grown.push(Member { bundle: number, hop, times });
                    }
                }
            }
        }
        let before = self.region.len();
        for at in 0..self.grown.len() {
            let Member { bundle: number, hop, times } = self.grown[at];
            let bundle = &self.bundles[number as usize];
            let link = bundle.hops[hop as usize].link;
            let flows = self.hot[number as usize].over(times);
            let (level, full) = (bundle.fixed.level, bundle.at_full());
            if self.links[link as usize].may_be_tight(flows, level, full) {
                self.enter(link);
            }
        }
        self.region.len() > before
    }
}

impl Bundle {
    /// The level at which something besides the region limits it.
    fn event(&self) -> Level {
        if self.is_free { self.at_full() } else { self.before.level }
    }

    /// The level of its full rate.
    fn at_full(&self) -> Level {
        Level::new(self.full, 1)
    }
}

impl Inside {
    fn level(&self) -> Level {
        Level::new(self.left, self.open)
    }
}

/// The least rate of the links with open flows. The rate of a link only rises.
fn first(by_links: &mut BinaryHeap<Reverse<(u64, u32)>>, region: &[Inside]) -> Option<u64> {
    while let Some(mut top) = by_links.peek_mut() {
        let Reverse((rate, number)) = *top;
        let Inside { left, open, .. } = region[number as usize];
        match left.checked_div(open) {
            None => _ = PeekMut::pop(top),
            Some(now) if now == rate => return Some(rate),
            Some(now) => top.0.0 = now,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates by filling all links anew: by bundle of (links, full rate, flows).
    fn filled(capacities: &[u64], bundles: &[(Vec<(u32, u32)>, u64, u32)]) -> Vec<u64> {
        let mut rates: Vec<Option<u64>> =
            bundles.iter().map(|of| (of.2 == 0).then_some(0)).collect();
        let over = |of: &(Vec<(u32, u32)>, u64, u32), link: usize| {
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
                            (numbers.swap_remove(i), bundles.swap_remove(i), known.swap_remove(i));
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
