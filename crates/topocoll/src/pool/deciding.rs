//! Which candidates are counted: those whose floors are below the best, as far as the budget goes.

use rayon::prelude::*;
use topocoll_analysis::{RankSample, counting_work};
use topocoll_schedule::Schedule;
use topocoll_topology::parallel;

use super::candidate::Candidate;
use super::{Found, MUCH_WORK, PART_FOR_ALL_SIZES, Pool, WORK_PER_SETTING};
use crate::envelope::{bends, envelope, is_below, promise};
use crate::price::{Price, Priced, Pricing, best_time};

/// The floors that are raised at once: the same number on every computer.
const RAISED: usize = 8;
/// The most ranks that raise a floor at first, and then.
const SOME: [u32; 2] = [4, 64];

impl Pool<'_> {
    /// Counts candidates whose floor is below the least exact time at some block size, within a part of
    /// the budget, the lowest share first, and as far as it may still be below. Returns whether it was enough.
    pub(super) fn decide(&mut self) -> bool {
        let mut announced = false;
        loop {
            let (lines, _) = self.lines();
            let lowest = envelope(&lines);
            let sizes = bends(&lowest);
            let reference = self.reference();
            let promise = |price: &Price| match price.priced {
                Priced::AtLeast => promise(price.line(reference), &lines, &lowest, &sizes),
                _ => None,
            };
            let mut open: Vec<(f64, usize)> = (self.candidates.iter().enumerate())
                .filter_map(|(place, candidate)| {
                    let price = &candidate.price;
                    Some((promise(price)?, place))
                })
                .collect();
            open.sort_by(|a, b| a.0.total_cmp(&b.0));
            let works = open.iter().filter_map(|&(_, place)| Some((place, self.work_of(place)?)));
            let works: Vec<(usize, u128)> = works.collect();
            let is_new = |&&(place, work): &&(usize, u128)| {
                work > MUCH_WORK && self.candidates[place].samples < 2
            };
            // No floor is raised of those behind the one to count.
            let next = works.iter().position(|(_, work)| *work <= self.left);
            let before = &works[..next.map_or(works.len(), |next| next + 1)];
            let new = before.iter().filter(is_new).map(|&(place, _)| place).take(RAISED);
            let new: Vec<usize> = new.collect();
            if !new.is_empty() {
                self.raise_floors(&new);
                continue;
            }
            let Some((place, work)) = next.map(|next| works[next]) else {
                // The least floors of those that take too long to count are raised once more.
                let is_new = |&&(place, _): &&(usize, u128)| self.candidates[place].samples < 3;
                let Some(&(place, _)) = works.iter().find(is_new).filter(|_| self.samples > 0)
                else {
                    return open.is_empty();
                };
                self.samples -= 1;
                self.raise_floors(&[place]);
                continue;
            };
            if !std::mem::replace(&mut announced, true) {
                self.announce(works.iter().map(|(_, work)| *work), self.left);
            }
            let Candidate { schedule, price: floor, .. } = &self.candidates[place];
            let (schedule, floor) = (schedule.get().expect("bug: no schedule").clone(), *floor);
            let go_on = |_: f64, price: &Price| promise(price).is_some();
            let (price, done) = self.counted(&schedule, &floor, work, None, &go_on);
            self.left -= done;
            match price {
                Some(price) => self.candidates[place].price = price,
                None => self.left = 0,
            }
        }
    }

    /// The work of counting a candidate.
    fn work_of(&self, place: usize) -> Option<u128> {
        let Candidate { schedule, work, .. } = &self.candidates[place];
        let (schedule, machine) = (schedule.get()?, self.exchange().machine());
        Some(*work.get_or_init(|| counting_work(schedule, machine, None)))
    }

    /// Raises the floors of candidates by some of their ranks, and those that take too long to count by more.
    fn raise_floors(&mut self, places: &[usize]) {
        let raised = parallel::each(places).map(|&place| {
            let Candidate { schedule, price, samples, .. } = &self.candidates[place];
            let ranks = |of: u128| {
                let all = self.work_of(place).unwrap_or(u128::MAX);
                u128::from(self.exchange().problem().ranks) * of / all
            };
            let sample = match samples {
                0 | 1 => {
                    let few = u32::try_from(ranks(WORK_PER_SETTING)).ok()?;
                    RankSample::Spread(few.min(SOME[usize::from(*samples)]))
                }
                _ => RankSample::Near(u32::try_from(ranks(2 * MUCH_WORK)).ok()?),
            };
            self.pricing.counted(schedule.get()?, price, Some(sample), |_, _| true)
        });
        let raised: Vec<Option<Price>> = raised.collect();
        for (&place, raised) in places.iter().zip(raised) {
            let candidate = &mut self.candidates[place];
            candidate.samples += 1;
            candidate.price = raised.unwrap_or(candidate.price);
        }
    }

    /// Counts candidates whose floor is below the least exact time, the least floors of all algorithms
    /// first, within the budget.
    pub(super) fn decide_at(&mut self, all: &mut [Found], pricing: &Pricing<'_>, bytes: u64) {
        let budget = self.exchange().limits();
        let most = budget.work - budget.work / PART_FOR_ALL_SIZES;
        let mut best = best_time(all.iter().map(|found| &found.price));
        let floor = |found: &Found| found.price.priced == Priced::AtLeast;
        let mut open: Vec<usize> = (0..all.len())
            .filter(|&i| floor(&all[i]) && is_below(all[i].price.time.total(), best))
            .collect();
        open.sort_by(|&a, &b| all[a].price.time.total().total_cmp(&all[b].price.time.total()));
        // The best of every algorithm, the second of every algorithm, and so on.
        let mut number = vec![0; self.asked.len()];
        let mut open: Vec<(u32, usize)> = (open.into_iter())
            .map(|i| {
                number[all[i].asked] += 1;
                (number[all[i].asked], i)
            })
            .collect();
        open.sort_by_key(|&(number, _)| number);
        let machine = self.exchange().machine();
        let schedule = |found: &Found| match (&found.schedule, found.candidate) {
            (None, Some(place)) => self.candidates[place].schedule.get().cloned(),
            (own, _) => own.clone(),
        };
        let open = open.into_iter().filter_map(|(_, i)| {
            let schedule = schedule(&all[i])?;
            let known = all[i].candidate.filter(|_| all[i].schedule.is_none());
            let known = known.and_then(|place| self.work_of(place));
            let work = known.unwrap_or_else(|| counting_work(&schedule, machine, None));
            Some((i, schedule, work))
        });
        // Those last that are counted in part at most.
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|&(.., work)| work > most);
        if !open.is_empty() {
            self.announce(open.iter().map(|(.., work)| *work), most);
        }
        let mut left = most;
        for (i, schedule, work) in open {
            let floor = all[i].price;
            if !is_below(floor.time.total(), best) || left == 0 {
                continue;
            }
            let place = all[i].candidate.filter(|_| all[i].schedule.is_none());
            let known = place.and_then(|place| self.candidates[place].counted);
            let reference = self.reference();
            let (price, done) = match known {
                Some(_) => (known, 0),
                None => {
                    let by = if place.is_some() { None } else { Some(pricing) };
                    let at = if place.is_some() { reference } else { bytes };
                    // If it takes longer than the best, this share of it is enough to see that.
                    let go_on = |counted: f64, price: &Price| {
                        let share = best / price.scaled(at, bytes).time.total();
                        share > 1.0
                            && (work <= left || work as f64 * counted * share <= left as f64)
                    };
                    self.counted(&schedule, &floor.scaled(bytes, at), work, by, &go_on)
                }
            };
            left = left.saturating_sub(done);
            let Some(mut price) = price else { continue };
            if let Some(place) = place {
                self.candidates[place].counted =
                    Some(price).filter(|of| of.priced == Priced::Exactly);
                price = self.sized(place, price, bytes);
            }
            if price.priced == Priced::Exactly {
                best = best.min(price.time.total());
            }
            all[i].price = price;
        }
        self.count_listed(all, left.min(MUCH_WORK), bytes);
    }

    /// Counts the least floor of each algorithm, if it is below the exact prices of its other settings, within a
    /// small part of the budget: the best of each algorithm is listed.
    fn count_listed(&mut self, all: &mut [Found], mut left: u128, bytes: u64) {
        for asked in 0..self.asked.len() {
            let own = || (0..all.len()).filter(|&i| all[i].asked == asked);
            let time = |&i: &usize| all[i].price.time.total();
            let is_exact = |i: usize| all[i].price.priced == Priced::Exactly;
            let least = own().min_by(|a, b| time(a).total_cmp(&time(b)));
            let Some(i) = least.filter(|&i| !is_exact(i)) else { continue };
            // One with a schedule of its own was counted if it is little work.
            let Found { candidate: Some(place), schedule: None, .. } = all[i] else { continue };
            let Some(work) = self.work_of(place).filter(|&work| work <= left) else { continue };
            self.announce(std::iter::once(work), left);
            left -= work;
            let Candidate { schedule, price: floor, .. } = &self.candidates[place];
            let (schedule, floor) = (schedule.get().expect("bug: no schedule").clone(), *floor);
            if let (Some(price), _) = self.counted(&schedule, &floor, work, None, &|_, _| true) {
                self.candidates[place].counted = Some(price);
                all[i].price = self.sized(place, price, bytes);
            }
        }
    }

    /// Says how much may be counted.
    fn announce(&self, work: impl Iterator<Item = u128>, most: u128) {
        let sum = work.fold(0u128, u128::saturating_add).min(most);
        (self.exchange().limits().progress.starting)("counting candidates", clipped(sum));
    }

    /// The price of a schedule at the reference size, or by another pricing, counted step by step, and the
    /// segments visited. If it is much work, only as long as `go_on` of the share that was counted and the
    /// floor by then.
    fn counted(
        &mut self,
        schedule: &Schedule,
        floor: &Price,
        work: u128,
        by: Option<&Pricing<'_>>,
        go_on: &dyn Fn(f64, &Price) -> bool,
    ) -> (Option<Price>, u128) {
        let all = schedule.rule().steps();
        let per_step = work / u128::from(all).max(1);
        let progress = &self.exchange().limits().progress;
        let mut steps = 0;
        let pricing = by.unwrap_or(&self.pricing);
        let price = pricing.counted(schedule, floor, None, |counted, price| {
            (progress.done)(clipped(per_step * u128::from(counted - steps)));
            steps = counted;
            work < MUCH_WORK || go_on(f64::from(steps) / f64::from(all), price)
        });
        let whole = price.is_none_or(|price| price.priced == Priced::Exactly);
        let done = if whole { work } else { per_step * u128::from(steps) };
        (price, done)
    }
}

fn clipped(work: u128) -> u64 {
    u64::try_from(work).unwrap_or(u64::MAX)
}
