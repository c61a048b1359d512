//! The steps of one rank of each class, as moves of slots.

use rayon::prelude::*;
use smallvec::SmallVec;
use topocoll_schedule::{
    Collective, Period, RankClasses, Schedule, SlotSet, Step, Strided, Transfer,
};
use topocoll_topology::{Machine, Rank, Route, parallel};

use super::boxes::Map;
use super::touches::{Span, Touches};
use crate::checks::first_violation;
use crate::written::written_twice;
use crate::{Violation, checks};

/// The steps of the representative of each class.
pub(super) struct Table {
    pub(super) classes: RankClasses,
    each: Vec<ClassSteps>,
}

/// Steps that are read at once, for a few dozen of all classes.
fn steps_at_once(classes: u32) -> u32 {
    (64 / classes).max(1)
}

/// The steps of one class.
struct ClassSteps {
    entries: Vec<Entry>,
    touches: Touches,
}

#[derive(Default)]
pub(super) struct Entry {
    pub(super) moves: Vec<Move>,
    /// The slots that messages land in, except slots sent in the same step.
    pub(super) lands: Vec<Strided>,
    pub(super) copies: bool,
}

/// A part of a message.
pub(super) struct Move {
    pub(super) map: Map,
    /// Hops along each coordinate of the classes from the sender to the receiver.
    pub(super) shift: SmallVec<[(usize, i64); 2]>,
    pub(super) class_after: u32,
}

impl Table {
    /// Bytes of a table if messages have one run, and of the steps that are read at once.
    pub(super) fn memory(schedule: &Schedule) -> u128 {
        let (rule, ports) = (schedule.rule(), u128::from(schedule.problem.ports));
        let classes = rule.classes().count();
        let message = (size_of::<Move>() + size_of::<Strided>()) as u128;
        let step = (size_of::<Entry>() + 2 * size_of::<Span>()) as u128 + ports * message;
        let at_once = steps_at_once(classes).min(rule.steps());
        let at_once = u128::from(classes) * u128::from(at_once);
        u128::from(classes) * u128::from(rule.steps()) * step
            + at_once * 2 * ports * size_of::<Transfer>() as u128
    }

    pub(super) fn new(
        schedule: &Schedule,
        machine: &Machine,
        classes: &RankClasses,
    ) -> Result<Self, Violation> {
        let (rule, steps) = (schedule.rule(), schedule.rule().steps());
        let mut each: Vec<(Vec<Entry>, Vec<Span>)> =
            (0..classes.count()).map(|_| (Vec::new(), Vec::new())).collect();
        let at_once = steps_at_once(classes.count());
        for first in (0..steps).step_by(at_once as usize) {
            let read = first..steps.min(first.saturating_add(at_once));
            let period = Period::of_steps(rule, classes.clone(), read.clone());
            let add = |(class, (entries, touches)): (usize, &mut (Vec<Entry>, Vec<Span>))| {
                for step in read.clone() {
                    let does = period.step_of(class as u32, step);
                    let entry = does.map(|does| {
                        Self::entry(schedule, machine, &period, (class as u32, step), does)
                    });
                    entries.push(entry.transpose()?.unwrap_or_default());
                    touches.push(does.map_or(Span::NONE, touched));
                }
                Ok(())
            };
            first_violation(parallel::each(&mut each).enumerate().map(add))?;
        }
        let each = each.into_iter().map(|(entries, touches)| {
            let touches = Touches::new(touches);
            ClassSteps { entries, touches }
        });
        Ok(Self { classes: classes.clone(), each: each.collect() })
    }

    fn entry(
        schedule: &Schedule,
        machine: &Machine,
        period: &Period,
        (class, step): (u32, u32),
        does: &Step,
    ) -> Result<Entry, Violation> {
        let mut entry = Entry { copies: !does.copies.is_empty(), ..Entry::default() };
        let (classes, slots) = (period.classes(), schedule.rule().slots());
        let rank = classes.representative(class);
        for transfer in does.sends.iter().chain(&does.receives) {
            check_range(&transfer.slots, slots).map_err(|slot| Violation::OutOfRange {
                step,
                rank,
                slot,
                slots,
            })?;
        }
        check_writes(slots, rank, step, does)?;
        for (place, send) in does.sends.iter().enumerate() {
            let placed = classes.placed(rank, send);
            let to = placed.peer;
            if !checks::leads_to_peer(machine, rank, &placed, &mut Route::default()) {
                return Err(Violation::Misrouted { step, from: rank, to });
            }
            let receive = period.received(class, step, place).ok_or(Violation::NoReceive {
                step,
                from: rank,
                to,
            })?;
            let maps = Map::between(&send.slots, &receive.slots).ok_or(Violation::Sizes {
                step,
                from: rank,
                to,
            })?;
            let shift: SmallVec<[(usize, i64); 2]> = (0..classes.periods().len())
                .map(|u| {
                    let at = |rank| i64::from(classes.radix().coordinate(rank, u));
                    (u, at(to) - at(rank))
                })
                .filter(|(_, hops)| *hops != 0)
                .collect();
            let class_after = classes.class_of(to);
            entry.moves.extend(maps.into_iter().map(|map| Move {
                map,
                shift: shift.clone(),
                class_after,
            }));
        }
        for (place, receive) in does.receives.iter().enumerate() {
            if period.sent(class, step, place).is_none() {
                let from = classes.moved(rank, receive.peer);
                return Err(Violation::NoSend { step, from, to: rank });
            }
        }
        let same = does.sends.len() == does.receives.len()
            && does
                .sends
                .iter()
                .zip(&does.receives)
                .all(|(send, receive)| send.slots == receive.slots);
        if !same || schedule.problem.operation == Collective::AllGather {
            entry.lands = does
                .receives
                .iter()
                .flat_map(|receive| receive.slots.runs())
                .map(|run| run.slots)
                .collect();
        }
        entry.moves.shrink_to_fit();
        entry.lands.shrink_to_fit();
        Ok(entry)
    }

    pub(super) fn entry_of(&self, class: u32, step: u32) -> &Entry {
        &self.each[class as usize].entries[step as usize]
    }

    /// The first step of a class from `step` on that may touch these slots, if any does.
    pub(super) fn next_touch(&self, class: u32, step: u32, slots: Span) -> Option<u32> {
        self.each[class as usize].touches.next(step, slots)
    }
}

/// The slots that messages of a step read or write; all slots if the step has copies.
pub(super) fn touched(does: &Step) -> Span {
    if !does.copies.is_empty() {
        return Span::ALL;
    }
    let runs = does.sends.iter().chain(&does.receives).flat_map(|transfer| transfer.slots.runs());
    runs.fold(Span::NONE, |all, run| all.and(Span::of(run.slots)))
}

/// Checks that no slot is written by two copies or two messages of a step.
pub(super) fn check_writes(
    slots: u64,
    rank: Rank,
    step: u32,
    does: &Step,
) -> Result<(), Violation> {
    let copied = written_twice(slots, does.copies.iter().map(|copy| &copy.to));
    let twice =
        copied.or_else(|| written_twice(slots, does.receives.iter().map(|receive| &receive.slots)));
    twice.map_or(Ok(()), |slot| Err(Violation::WrittenTwice { step, rank, slot }))
}

fn check_range(set: &SlotSet, slots: u64) -> Result<(), i128> {
    for run in set.runs() {
        let (low, high) = run.slots.span().expect("bug: an empty run in a set");
        if low < 0 || high >= i128::from(slots) {
            return Err(if low < 0 { low } else { high });
        }
    }
    Ok(())
}
