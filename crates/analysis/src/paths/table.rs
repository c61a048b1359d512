//! The steps of one rank of each class, as moves of slots.

use rayon::prelude::*;
use smallvec::SmallVec;
use topocoll_schedule::{Collective, RankClasses, Schedule, SlotSet, Step, Strided};
use topocoll_topology::{Machine, Rank, Route, parallel};

use super::touches::{Span, Touches};
use crate::boxes::Map;
use crate::written::written_twice;
use crate::{Violation, checks, pairs};

/// The steps of the representative of each class.
pub(super) struct Table {
    pub(super) classes: RankClasses,
    each: Vec<ClassSteps>,
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
    /// Bytes of a table if messages have one run.
    pub(super) fn memory(schedule: &Schedule) -> u128 {
        let rule = schedule.rule();
        let message = (size_of::<Move>() + size_of::<Strided>()) as u128;
        let step = (size_of::<Entry>() + 2 * size_of::<Span>()) as u128
            + u128::from(schedule.problem.ports) * message;
        u128::from(rule.classes().count()) * u128::from(rule.steps()) * step
    }

    pub(super) fn new(
        schedule: &Schedule,
        machine: &Machine,
        classes: &RankClasses,
    ) -> Result<Self, Violation> {
        let steps = schedule.rule().steps();
        let of_class = |class: u32| {
            let (mut does, mut peer_does) = (Step::default(), Step::default());
            let mut entries = Vec::with_capacity(steps as usize);
            let mut touches = Vec::with_capacity(steps as usize);
            for step in 0..steps {
                let rank = classes.representative(class);
                schedule.rule().step(rank, step, &mut does);
                entries.push(Self::entry(
                    schedule,
                    machine,
                    classes,
                    (rank, step),
                    &does,
                    &mut peer_does,
                )?);
                touches.push(touched(&does));
            }
            Ok(ClassSteps { entries, touches: Touches::new(touches) })
        };
        let each: Vec<Result<_, _>> = parallel::each(0..classes.count()).map(of_class).collect();
        let each = each.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { classes: classes.clone(), each })
    }

    fn entry(
        schedule: &Schedule,
        machine: &Machine,
        classes: &RankClasses,
        (rank, step): (Rank, u32),
        does: &Step,
        peer_does: &mut Step,
    ) -> Result<Entry, Violation> {
        let mut entry = Entry { copies: !does.copies.is_empty(), ..Entry::default() };
        let slots = schedule.rule().slots();
        for transfer in does.sends.iter().chain(&does.receives) {
            check_range(&transfer.slots, slots).map_err(|slot| Violation::OutOfRange {
                step,
                rank,
                slot,
                slots,
            })?;
        }
        check_writes(slots, rank, step, does)?;
        for (i, send) in does.sends.iter().enumerate() {
            let to = send.peer;
            if !checks::leads_to_peer(machine, rank, send, &mut Route::default()) {
                return Err(Violation::Misrouted { step, from: rank, to });
            }
            schedule.rule().step(to, step, peer_does);
            let receive = pairs::other_end(&does.sends, i, rank, &peer_does.receives)
                .ok_or(Violation::NoReceive { step, from: rank, to })?;
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
        for (i, receive) in does.receives.iter().enumerate() {
            let from = receive.peer;
            schedule.rule().step(from, step, peer_does);
            if pairs::other_end(&does.receives, i, rank, &peer_does.sends).is_none() {
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
