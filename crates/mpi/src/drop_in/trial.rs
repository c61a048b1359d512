//! Decides by measuring: the library's call and a few schedules take turns during the program's own
//! calls.
//!
//! The ranks follow a [`Course`](super::course::Course), which says who performs the next calls and which of them are
//! timed. At its end every rank reports its times, and the first rank gives the next course.
//! [`Trial`] is the first rank's part (Faraj, Yuan and Lowenthal, STAR-MPI, 2006, decide in the same
//! way by measured times).
//!
//! # Time
//! A candidate makes its calls in runs. The time of a call is the mean over all ranks, and that of a
//! run is the median of its calls. While ranks make the same calls again and again, the mean over
//! ranks is the program's time for a call, less a constant: its own work. The time of the slowest rank
//! is not: a rank that is early in one call waits in the next, so the slowest times of some calls have
//! more in sum than the calls take. The median leaves out calls that other programs delay.
//!
//! # Rules
//! - A candidate is dropped after its first two calls if both take more than [`HOPELESS`] times the
//!   library's. After [`FINAL`] rounds all except the best are dropped, and the best if its median is
//!   more than [`SLOW`] times the library's.
//! - The library's call is kept unless the best is faster by more than the noise: in the median by
//!   [`GAIN`], and in each of at least five rounds, or in nine of ten. This holds for noise of any
//!   distribution, and for times that change during the trial.
//! - Each run begins with calls that are not timed.
//! - A schedule is kept if two of at most three longer runs, right after the trial, find it faster than
//!   the library's call: messages of one candidate may disturb those of the next.
//! - The kept candidate is checked at growing intervals. If two checks in sequence find it slower by
//!   half, all candidates are tried again, and the longest interval doubles.

use std::ops::Range;

use super::course::Calls;
use crate::protocol::Sample;

/// The first rank's part.
pub(crate) struct Trial {
    /// By candidate; the first is the library.
    tried: Vec<Tried>,
    /// Timed runs under way: candidates and calls.
    timed: Vec<(usize, usize)>,
    phase: Progress,
    /// Calls between checks, and the most.
    interval: u64,
    most: u64,
    /// Checks in sequence that found the kept candidate slower.
    slow: u32,
    /// Checks that compare the kept schedule with the library still to be made, and those that found
    /// the library faster.
    unsure: u32,
    doubts: u32,
    /// Rounds whose blocks differed too much in size.
    incomparable: u32,
}

#[derive(Default)]
struct Tried {
    /// Nanoseconds of a call, by run.
    times: Vec<u64>,
    is_dropped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Rounds that have ended.
    Trying(u32),
    Keeping(Kept),
}

/// A decision by measured times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) candidate: usize,
    /// Median nanoseconds of the library, and of the candidate.
    pub(crate) library: u64,
    pub(crate) own: u64,
}

/// News of a settlement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A decision; for each candidate its median and the number of its timed runs.
    Kept(Kept, Vec<(u64, usize)>),
    /// The kept candidate now takes these nanoseconds, and all are tried again.
    Slower(Kept, u64),
    /// The library's call is kept in place of this one, which takes these nanoseconds.
    Doubted(Kept, usize, u64),
}

/// Timed calls of a run, after one that is not timed.
const TIMED: u64 = 3;
/// Rounds after which only the best candidate takes turns with the library.
const FINAL: u32 = 2;
/// Rounds before the first decision, and the last round.
const ROUNDS: Range<u32> = 5..10;
/// A candidate that first takes this many times as long as the library is dropped.
const HOPELESS: f64 = 3.0;
/// A candidate whose median is more than this many times the library's is dropped.
const SLOW: f64 = 1.25;
/// The least gain over the library's call, as a share.
const GAIN: f64 = 0.02;
/// Rounds for each round in which a candidate may be slower than the library.
const WON: usize = 10;
/// Calls of a check that are not timed, and then timed ones.
const BEFORE: u64 = 2;
const CHECKED: u64 = 5;
/// Checks in sequence that must find it.
const CHECKS: u32 = 2;
/// Nanoseconds of the calls before the first check, and at most between later ones.
const FIRST: u64 = 2_000_000;
const MOST: u64 = 100_000_000;
/// The fewest calls between checks.
const LEAST: u64 = 100;
/// Rounds of blocks that differ by more than a factor of two, after which the library's call is kept.
const INCOMPARABLE: u32 = 3;

impl Trial {
    /// A trial of the library and of `candidates` schedules.
    pub(crate) fn new(candidates: usize) -> Self {
        Self {
            tried: (0..=candidates).map(|_| Tried::default()).collect(),
            timed: Vec::new(),
            phase: Progress::Trying(0),
            interval: 0,
            most: 0,
            slow: 0,
            unsure: 0,
            doubts: 0,
            incomparable: 0,
        }
    }

    /// A trial that has ended before, with this decision.
    pub(crate) fn ended(candidates: usize, kept: Kept) -> Self {
        let mut trial = Self { phase: Progress::Keeping(kept), ..Self::new(candidates) };
        trial.check_from(kept.own);
        trial
    }

    /// The next calls.
    pub(crate) fn course(&mut self) -> Vec<Calls> {
        let turn = |candidate, calls, timed| Calls { candidate, calls, timed };
        let turns = match self.phase {
            Progress::Keeping(Kept { candidate, .. }) => {
                let check = |i, before| [turn(i, before, false), turn(i, CHECKED, true)];
                match self.unsure {
                    0 => check(candidate, self.interval).to_vec(),
                    _ => [check(candidate, BEFORE), check(0, BEFORE)].concat(),
                }
            }
            Progress::Trying(0) => {
                (0..self.tried.len()).flat_map(|i| [turn(i, 1, true); 2]).collect()
            }
            Progress::Trying(round) => {
                let mut alive: Vec<usize> =
                    (0..self.tried.len()).filter(|&i| !self.tried[i].is_dropped).collect();
                let begin = round as usize % alive.len();
                alive.rotate_left(begin);
                let each = |i| [turn(i, 1, false), turn(i, TIMED, true)];
                alive.into_iter().flat_map(each).collect()
            }
        };
        let timed = turns.iter().filter(|turn| turn.timed);
        self.timed = timed.map(|turn| (turn.candidate, turn.calls as usize)).collect();
        turns
    }

    /// Takes the ranks' reports of the last course.
    pub(crate) fn settle(&mut self, reports: &[&[Sample]]) -> Option<News> {
        let Some(runs) = runs(reports, &self.timed) else {
            // Some ranks did not time these calls: they are made again.
            return None;
        };
        match self.phase {
            Progress::Keeping(kept) => {
                let times = |of: usize| {
                    let run = self.timed.iter().zip(&runs).find(|(timed, _)| timed.0 == of);
                    run.map_or(0, |(_, run)| run.nanoseconds)
                };
                let (now, library) = (times(kept.candidate), times(0));
                if self.unsure > 0 {
                    let doubted = library < now;
                    self.doubts += u32::from(doubted);
                    self.unsure -= u32::from(!doubted);
                    if self.doubts == CHECKS {
                        self.unsure = 0;
                        let replaced = (kept.candidate, now);
                        let kept = Kept { candidate: 0, library, own: library };
                        self.phase = Progress::Keeping(kept);
                        return Some(News::Doubted(kept, replaced.0, replaced.1));
                    }
                }
                self.slow = if now / 3 > kept.own / 2 { self.slow + 1 } else { 0 };
                if self.slow < CHECKS || self.incomparable >= INCOMPARABLE {
                    if self.slow == 0 && self.unsure == 0 {
                        self.interval = self.most.min(2 * self.interval);
                    }
                    return None;
                }
                let candidates = self.tried.len() - 1;
                let most = self.most.saturating_mul(2);
                *self = Self { interval: most, most, ..Self::new(candidates) };
                Some(News::Slower(kept, now))
            }
            Progress::Trying(round) => self.round(round, &runs),
        }
    }

    fn round(&mut self, round: u32, runs: &[Run]) -> Option<News> {
        let least = runs.iter().map(|run| run.bytes.0).min().unwrap_or(0);
        let most = runs.iter().map(|run| run.bytes.1).max().unwrap_or(0);
        if most / 2 > least {
            self.incomparable += 1;
            return (self.incomparable >= INCOMPARABLE).then(|| self.keep(0));
        }
        for (&(i, _), run) in self.timed.iter().zip(runs) {
            self.tried[i].times.push(run.nanoseconds);
        }
        let (library, others) = self.tried.split_first_mut().expect("bug: a trial of nothing");
        let typical = |tried: &Tried| match round {
            0 => tried.times.iter().min().copied().unwrap_or(0) as f64,
            _ => median(tried.times.clone()) as f64,
        };
        let limit = match round {
            0 => HOPELESS,
            _ if round < FINAL => f64::INFINITY,
            _ => SLOW,
        } * typical(library);
        others.iter_mut().for_each(|tried| tried.is_dropped |= typical(tried) > limit);
        self.phase = Progress::Trying(round + 1);
        let alive = (1..self.tried.len()).filter(|&i| !self.tried[i].is_dropped);
        let Some(best) = alive.min_by_key(|&i| self.median(i)) else { return Some(self.keep(0)) };
        if round == 0 {
            // First calls open connections.
            self.tried.iter_mut().for_each(|tried| tried.times.clear());
        }
        if round >= FINAL {
            let others = self.tried.iter_mut().enumerate().skip(1);
            others.for_each(|(i, tried)| tried.is_dropped |= i != best);
        }
        if round < ROUNDS.start {
            return None;
        }
        let library = self.median(0) as f64;
        let gain = library - self.median(best) as f64;
        if gain <= GAIN * library {
            return Some(self.keep(0));
        }
        let rounds = self.tried[0].times.iter().zip(&self.tried[best].times);
        let lost = rounds.filter(|(library, own)| own >= library).count();
        if WON * lost <= self.tried[best].times.len() {
            return Some(self.keep(best));
        }
        (round >= ROUNDS.end).then(|| self.keep(0))
    }

    fn keep(&mut self, candidate: usize) -> News {
        let kept = Kept { candidate, library: self.median(0), own: self.median(candidate) };
        self.phase = Progress::Keeping(kept);
        self.check_from(kept.own);
        (self.unsure, self.doubts) = (if candidate == 0 { 0 } else { CHECKS }, 0);
        let tried = (0..self.tried.len()).map(|i| (self.median(i), self.tried[i].times.len()));
        News::Kept(kept, tried.collect())
    }

    /// Begins checks of a candidate that takes this long.
    fn check_from(&mut self, nanoseconds: u64) {
        let calls = |time: u64| (time / nanoseconds.max(1)).max(LEAST);
        self.interval = self.interval.max(calls(FIRST));
        self.most = self.most.max(calls(MOST));
    }

    fn median(&self, candidate: usize) -> u64 {
        median(self.tried[candidate].times.clone())
    }
}

/// The middle of the values, 0 without values.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// A run of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    /// Of a call: the mean over ranks, and the median of the calls.
    nanoseconds: u64,
    /// The fewest and the most bytes that a rank with the most bytes sends in a call.
    bytes: (u64, u64),
}

/// The runs of some candidates and calls. `None` if a rank has another number of samples.
fn runs(reports: &[&[Sample]], timed: &[(usize, usize)]) -> Option<Vec<Run>> {
    let count: usize = timed.iter().map(|(_, calls)| calls).sum();
    let mut calls = vec![Sample { nanoseconds: 0, bytes: 0 }; count];
    for report in reports {
        if report.len() != count {
            return None;
        }
        for (call, own) in calls.iter_mut().zip(*report) {
            call.nanoseconds = call.nanoseconds.saturating_add(own.nanoseconds);
            call.bytes = call.bytes.max(own.bytes);
        }
    }
    let (mut rest, ranks) = (&calls[..], reports.len());
    let runs = timed.iter().map(|&(_, count)| {
        let run = rest.split_off(..count).unwrap_or_default();
        let nanoseconds = run.iter().map(|call| call.nanoseconds / ranks.max(1) as u64).collect();
        let bytes = || run.iter().map(|call| call.bytes);
        let bytes = (bytes().min().unwrap_or(0), bytes().max().unwrap_or(0));
        Run { nanoseconds: median(nanoseconds), bytes }
    });
    Some(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::super::course::Course;
    use super::*;

    /// Two ranks follow a trial; `time` gives nanoseconds by candidate, rank and call. Returns all
    /// news, and the calls of each candidate.
    fn tried(
        mut trial: Trial,
        calls: u64,
        bytes: impl Fn(u64) -> u64,
        time: impl Fn(usize, usize, u64) -> u64,
    ) -> (Vec<News>, Vec<u64>) {
        let mut ranks = [(); 2].map(|()| Course::new(&trial.course()));
        let (mut news, mut made) = (Vec::new(), vec![0; trial.tried.len()]);
        for call in 0..calls {
            let turns = ranks.each_mut().map(Course::turn);
            assert_eq!(turns[0], turns[1]);
            if turns[0].is_none() {
                let reports = ranks.each_ref().map(Course::samples);
                news.extend(trial.settle(&reports));
                let turns = trial.course();
                ranks = [(); 2].map(|()| Course::new(&turns));
            }
            for (rank, course) in ranks.iter_mut().enumerate() {
                let turn = course.turn().expect("a turn");
                made[turn.candidate] += u64::from(rank == 0);
                course.count();
                if turn.timed {
                    let nanoseconds = time(turn.candidate, rank, call);
                    course.time(Sample { nanoseconds, bytes: bytes(call) });
                }
            }
        }
        (news, made)
    }

    fn kept(news: &[News]) -> Vec<usize> {
        let kept = news.iter().filter_map(|news| match news {
            News::Kept(kept, _) => Some(kept.candidate),
            News::Doubted(kept, ..) => Some(kept.candidate),
            News::Slower(..) => None,
        });
        kept.collect()
    }

    #[test]
    fn the_fastest_by_the_mean_of_all_ranks_is_kept() {
        let time = |candidate: usize, rank: usize, _| {
            [[1000, 1000], [800, 700], [300, 1300]][candidate][rank]
        };
        let (news, made) = tried(Trial::new(2), 300, |_| 64, time);
        assert_eq!(kept(&news), [1]);
        let News::Kept(kept, tried) = &news[0] else { panic!("{news:?}") };
        assert_eq!((kept.library, kept.own), (1000, 750));
        assert_eq!(tried, &[(1000, 5), (750, 5), (800, 2)]);
        // Two calls, and two runs of four.
        assert_eq!(made[2], 10);
    }

    #[test]
    fn a_large_gain_is_found_although_some_calls_take_far_longer() {
        // One call in nine takes ten times as long, and all become slower.
        let time = |candidate: usize, _, call: u64| {
            let time = [1000, 400][candidate] * (100 + call);
            if call % 9 == 3 { 10 * time } else { time }
        };
        assert_eq!(kept(&tried(Trial::new(1), 300, |_| 64, time).0), [1]);
    }

    /// Ranks that take turns in being early wait in the next call: each call takes one rank long, but
    /// two calls together take no longer than two of the schedule's.
    #[test]
    fn ranks_that_are_early_in_turn_do_not_make_the_library_slow() {
        let time = |candidate: usize, rank: usize, call: u64| match candidate {
            0 if rank as u64 == call % 2 => 1700,
            0 => 300,
            _ => 1100,
        };
        assert_eq!(kept(&tried(Trial::new(1), 300, |_| 64, time).0), [0]);
    }

    #[test]
    fn a_trial_of_four_schedules_ends_within_114_calls() {
        for (gain, (schedules, calls)) in
            [0, 30, 60, 100, 200].into_iter().flat_map(|gain| [(gain, (3, 104)), (gain, (4, 114))])
        {
            let noise = |call: u64| call * 7919 % 509;
            let time = |candidate: usize, _, call| match candidate {
                0 => 1000 + noise(call),
                i => 1000 - gain + i as u64 + noise(call),
            };
            let (news, _) = tried(Trial::new(schedules), calls + 1, |_| 64, time);
            assert_eq!(kept(&news).len(), 1, "{gain}");
        }
    }

    #[test]
    fn the_library_is_kept_unless_the_gain_exceeds_the_noise() {
        // One percent faster; then a fifth faster, but with noise of half the time.
        let small = |candidate, _, _| [1000, 990][candidate];
        assert_eq!(kept(&tried(Trial::new(1), 300, |_| 64, small).0), [0]);
        let noise = |call: u64| call * 7919 % 1009;
        let noisy = |candidate: usize, _, call| [1000, 900][candidate] + noise(call);
        assert_eq!(kept(&tried(Trial::new(1), 300, |_| 64, noisy).0), [0]);
        let less = |candidate: usize, _, call| [1000, 900][candidate] + noise(call) / 20;
        assert_eq!(kept(&tried(Trial::new(1), 300, |_| 64, less).0), [1]);
    }

    #[test]
    fn trying_slow_schedules_costs_few_calls() {
        let time = |candidate, _, _| [1000, 1300, 4000, 900_000][candidate];
        let (news, made) = tried(Trial::new(3), 60, |_| 64, time);
        assert_eq!(kept(&news), [0]);
        assert_eq!(made[1..], [10, 2, 2]);
    }

    #[test]
    fn a_kept_schedule_that_slows_down_is_tried_again() {
        let limit = |slower| {
            move |candidate, _, call| match (candidate, call) {
                (1, 5_000..) => slower,
                _ => [100_000, 80_000][candidate],
            }
        };
        let (news, _) = tried(Trial::new(1), 20_000, |_| 64, limit(130_000));
        assert_eq!(kept(&news), [1, 0]);
        assert!(news.iter().any(|news| matches!(news, News::Slower(_, 130_000))), "{news:?}");
        let (news, _) = tried(Trial::new(1), 20_000, |_| 64, limit(115_000));
        assert_eq!(kept(&news), [1]);
    }

    #[test]
    fn the_library_is_kept_after_all_if_it_is_faster_without_turns() {
        // While they take turns, calls of the library are disturbed.
        let time = |candidate, _, call| match (candidate, call) {
            (0, ..60) => 1000,
            (0, _) => 600,
            _ => 700,
        };
        let (news, made) = tried(Trial::new(1), 20_000, |_| 64, time);
        assert_eq!(kept(&news), [1, 0]);
        assert!(matches!(news[1], News::Doubted(_, 1, 700)), "{news:?}");
        assert!(made[1] < 9_000, "{made:?}");
    }

    #[test]
    fn trials_that_change_nothing_become_rare() {
        // All calls become slower and slower.
        let time = |_, _, call: u64| 1_000_000 + 50_000 * call;
        let (news, _) = tried(Trial::new(1), 20_000, |_| 64, time);
        assert!(kept(&news).len() < 9, "{news:?}");
    }

    #[test]
    fn blocks_of_very_different_sizes_are_not_compared() {
        let time = |candidate: usize, _, _| [1000, 100][candidate];
        let (news, _) = tried(Trial::new(1), 20_000, |call| 1 << (call % 8), time);
        assert_eq!(kept(&news), [0]);
    }

    #[test]
    fn a_known_decision_is_followed_at_once() {
        let known = Kept { candidate: 1, library: 1000, own: 500 };
        let (news, made) = tried(Trial::ended(1, known), 20_000, |_| 64, |_, _, _| 500);
        assert_eq!((news, made), (vec![], vec![0, 20_000]));
    }

    #[test]
    fn a_report_that_does_not_fit_is_ignored() {
        let call = Sample { nanoseconds: 9, bytes: 1 };
        assert_eq!(runs(&[&[call], &[]], &[(0, 1)]), None);
        assert_eq!(runs(&[&[call; 2]], &[(0, 1)]), None);
    }
}
