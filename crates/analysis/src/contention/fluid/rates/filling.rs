//! Progressive filling of the links whose rates change.
//!
//! A *region* of links: at first the saturated links of the flows that came or went. The filling
//! begins anew for the flows on these links. A flow that a link outside the region limits is fixed at
//! its known level, unless it is fixed before. Where the level of a flow changes, its saturated links
//! enter the region: at its new level if that is lower, at the old one if it is higher. Up to there
//! they are as they were. Links that were not saturated are left out. Of those that the new rates
//! overflow, the fullest of each flow begin another region, in which only these links are new, until
//! none overflows. The result is that of filling the whole machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::{Bundle, FULL, Fixed, Hop, Inside, Level, Link, Mark, Member, NOWHERE, Place, Rates};

impl Rates {
    /// Brings all rates up to date. Writes the bundles with another rate, or more or fewer flows,
    /// and their rates before.
    pub(in crate::contention::fluid) fn update(&mut self, changed: &mut Vec<(u32, u64)>) {
        changed.clear();
        self.update += 1;
        while !self.disturbed.is_empty() || !self.seeds.is_empty() {
            self.begin();
            self.fill();
            self.overflow();
            for &number in &self.visited {
                let bundle = &mut self.bundles[number as usize];
                if std::mem::replace(&mut bundle.update, self.update) != self.update {
                    bundle.came_or_went = false;
                    changed.push((number, bundle.before.rate));
                }
                bundle.came_or_went |= std::mem::take(&mut bundle.disturbed);
            }
        }
        changed.retain(|&(number, before)| {
            let bundle = &self.bundles[number as usize];
            let other = bundle.came_or_went || bundle.fixed.rate != before;
            self.hot[number as usize].flows > 0 && other
        });
    }

    /// Begins a region with the saturated links of the flows that came or went, or with those that
    /// overflow.
    fn begin(&mut self) {
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
        let (filling, inside) = (self.visit, self.region.len() as u32);
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
        if hot.filling != self.visit {
            hot.filling = self.visit;
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
        if self.hot[number as usize].filling == self.visit {
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
    /// saturated. Of those that a bundle may saturate, the fullest begin the next region: once they
    /// limit the bundle, most others are no longer full.
    fn overflow(&mut self) {
        let Self { links, marks, bundles, hot, visited, grown, visit, seeds, .. } = self;
        for &number in &*visited {
            let bundle = &mut bundles[number as usize];
            let by = i128::from(bundle.fixed.rate) - i128::from(bundle.counted);
            let higher = bundle.disturbed || bundle.fixed.level > bundle.before.level;
            bundle.counted = bundle.fixed.rate;
            let hot = hot[number as usize];
            if hot.flows == 0 || by == 0 && !higher {
                continue;
            }
            let (level, full) = (bundle.fixed.level, bundle.at_full());
            for (hop, &Hop { link, times }) in (0..).zip(&bundle.hops) {
                let mark = marks[link as usize];
                if !mark.is_tight && mark.visit != *visit {
                    let (link, flows) = (&mut links[link as usize], hot.over(times));
                    link.used = link.used.strict_add_signed(i128::from(flows) * by);
                    if higher && link.may_be_tight(flows, level, full) {
                        grown.push(Member { bundle: number, hop, times });
                    }
                }
            }
        }
        let link = |&Member { bundle, hop, .. }: &Member| {
            bundles[bundle as usize].hops[hop as usize].link as usize
        };
        // The last bundle with a higher rate on a link that overflows is among them.
        grown.retain(|member| {
            let (mark, bundle) = (marks[link(member)], &bundles[member.bundle as usize]);
            let flows = hot[member.bundle as usize].over(member.times);
            let (level, full) = (bundle.fixed.level, bundle.at_full());
            let is_open = !mark.is_tight && mark.visit != *visit;
            is_open && links[link(member)].may_be_tight(flows, level, full)
        });
        for members in grown.chunk_by(|a, b| a.bundle == b.bundle) {
            let fullness = |member| links[link(member)].fullness();
            let most = members.iter().map(fullness).fold(0.0, f64::max);
            let fullest = members.iter().filter(|member| fullness(member) >= most);
            seeds.extend(fullest.map(|member| link(member) as u32));
        }
    }
}

impl Bundle {
    /// The level at which something besides the region limits it.
    fn event(&self) -> Level {
        if self.is_free { self.at_full() } else { self.before.level }
    }

    /// The level of its full rate.
    pub(super) fn at_full(&self) -> Level {
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

impl Link {
    /// The part of its capacity that is used.
    fn fullness(&self) -> f64 {
        u64::try_from(self.used).unwrap_or(u64::MAX) as f64 / self.capacity as f64
    }

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
