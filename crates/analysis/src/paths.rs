//! The classes method: the path of every block of one rank of each class.
//!
//! Slots that have travelled together so far are followed together, as a box: a set of slots in a
//! few strided axes. A message that takes part of a box cuts it, and both parts are followed. Steps
//! that touch none of its slots are skipped. So time is proportional to boxes and the steps that
//! touch them, not to blocks times steps. Boxes are followed one after another, so memory does not
//! grow with them.

mod boxes;
mod table;
mod touches;

use rayon::prelude::*;
use smallvec::SmallVec;
use topocoll_schedule::{Block, Collective, RankClasses, Schedule, Step, Strided, Transfer};
use topocoll_topology::{Machine, Rank, parallel};

use self::boxes::{Map, SlotBox};
use self::table::{Entry, Move, Table, check_writes, touched};
pub(crate) use self::touches::Span;
use crate::checks::first_violation;
use crate::error::{by_all_threads, check_memory, check_work};
use crate::{AnalysisError, Progress, Violation, checks};

/// The number of members of each class whose steps are compared with those of its representative.
pub(crate) const MEMBERS_COMPARED: u32 = 4;

/// Slots that arrive between two reports of progress.
const REPORT: u64 = 4096;

/// The most slot steps followed by default: minutes.
pub(crate) const WORK_LIMIT: u128 = 20_000_000_000;

/// The work named in errors.
const FOLLOWING: &str = "following every class";

/// Checks that following fits in `limit` bytes if messages have one run: the steps of every class,
/// and per thread a layout and the messages of two steps, sent and received.
pub(crate) fn check_fits(schedule: &Schedule, limit: u128) -> Result<(), AnalysisError> {
    let slots = u128::from(schedule.rule().slots());
    let ports = u128::from(schedule.problem.ports);
    let layout = slots * size_of::<Option<Block>>() as u128;
    let messages = 4 * ports * size_of::<Transfer>() as u128;
    let needed = Table::memory(schedule) + by_all_threads(layout + messages);
    check_memory(FOLLOWING, needed, limit)
}

/// Checks that following takes minutes at most, and fits in `memory` bytes.
///
/// Every slot of a rank holds at most one block, and a step visits those that it touches.
pub(crate) fn check_following(schedule: &Schedule, memory: u128) -> Result<(), AnalysisError> {
    check_fits(schedule, memory)?;
    let (rule, classes) = (schedule.rule(), schedule.rule().classes());
    let (steps, slots) = (rule.steps(), rule.slots());
    if u128::from(classes.count()) * u128::from(steps) * u128::from(slots) <= WORK_LIMIT {
        return Ok(());
    }
    let visits_of = |class| {
        let mut does = Step::default();
        let visits_in = |step| {
            rule.step(classes.representative(class), step, &mut does);
            u128::from(touched(&does).len().min(slots))
        };
        (0..steps).map(visits_in).sum::<u128>() + u128::from(slots)
    };
    let needed = parallel::each(0..classes.count()).map(visits_of).sum();
    check_work(FOLLOWING, needed, WORK_LIMIT)
}

/// Follows every block of every representative and reports the first violation.
pub(crate) fn run(
    schedule: &Schedule,
    machine: &Machine,
    memory: u128,
    progress: &Progress<'_>,
) -> Result<Result<(), Violation>, AnalysisError> {
    let rule = schedule.rule();
    if let Some(&cut) = rule.cuts().first() {
        return Err(AnalysisError::Split { cut });
    }
    if schedule.groups().is_some() {
        return Err(AnalysisError::Groups);
    }
    check_fits(schedule, memory)?;
    let classes = rule.classes();
    let slots = u64::from(classes.count()) * u64::from(schedule.problem.ranks);
    (progress.starting)("following blocks", slots);
    let follow = || -> Result<(), Violation> {
        let table = Table::new(schedule, machine, &classes)?;
        let each = || parallel::each(0..classes.count());
        first_violation(each().map(|class| compare_members(schedule, &classes, class)))?;
        first_violation(each().map(|class| follow_all(schedule, &table, class, progress)))
    };
    Ok(follow())
}

/// Compares seeded members of a class with its representative, in every step.
fn compare_members(
    schedule: &Schedule,
    classes: &RankClasses,
    class: u32,
) -> Result<(), Violation> {
    let representative = classes.representative(class);
    let (mut does, mut expected) = (Step::default(), Step::default());
    for member in 0..MEMBERS_COMPARED {
        let rank = classes.member(class, member);
        let moved = |peer| classes.translated(peer, representative, rank);
        let agree = |theirs: &[Transfer], own: &[Transfer]| {
            theirs.len() == own.len()
                && theirs.iter().zip(own).all(|(theirs, own)| {
                    moved(theirs.peer) == own.peer
                        && theirs.slots == own.slots
                        && theirs.route == own.route
                })
        };
        for step in 0..schedule.rule().steps() {
            schedule.rule().step(representative, step, &mut expected);
            schedule.rule().step(rank, step, &mut does);
            check_writes(schedule.rule().slots(), rank, step, &does)?;
            let copies = expected.copies.is_empty() == does.copies.is_empty();
            if !copies
                || !agree(&expected.sends, &does.sends)
                || !agree(&expected.receives, &does.receives)
            {
                return Err(Violation::ClassBroken { step, rank, representative });
            }
        }
    }
    Ok(())
}

/// A box during the schedule.
struct Group {
    slots: SlotBox,
    holder: Rank,
    class: u32,
    step: u32,
    /// Whether the copies of the step are done.
    copied: bool,
}

struct Follower<'a> {
    schedule: &'a Schedule,
    table: &'a Table,
    source: Rank,
    /// The initial layout of the source.
    layout: Vec<Option<Block>>,
    pending: Vec<Group>,
    step: Step,
    /// By rank, whether the block of an all-gather reached its slot in the final layout.
    reached: Vec<bool>,
    /// Slots that arrived since the last report.
    arrived: u64,
}

fn follow_all(
    schedule: &Schedule,
    table: &Table,
    class: u32,
    progress: &Progress<'_>,
) -> Result<(), Violation> {
    let source = table.classes.representative(class);
    let gathers = schedule.problem.operation == Collective::AllGather;
    let mut layout = Vec::new();
    schedule.rule().initial_layout(source, &mut layout);
    checks::check_start(schedule, source, layout.iter().flatten().copied())?;
    let reached = vec![false; if gathers { schedule.problem.ranks as usize } else { 0 }];
    let step = Step::default();
    let mut follower = Follower {
        schedule,
        table,
        source,
        layout,
        pending: Vec::new(),
        step,
        reached,
        arrived: 0,
    };
    let mut slot = 0;
    while slot < follower.layout.len() {
        let count = follower.layout[slot..].iter().take_while(|block| block.is_some()).count();
        if count > 0 {
            let slots = SlotBox::contiguous(slot as u64, count as u64);
            follower.pending.push(Group { slots, holder: source, class, step: 0, copied: false });
        }
        slot += count + 1;
    }
    while let Some(group) = follower.pending.pop() {
        follower.follow(group)?;
        if follower.arrived > REPORT {
            (progress.done)(std::mem::take(&mut follower.arrived));
        }
    }
    (progress.done)(follower.arrived);
    match follower.reached.iter().position(|&reached| !reached) {
        Some(rank) => Err(Violation::NoPlace { rank: Rank(rank as u32), block: Block::of(source) }),
        None => Ok(()),
    }
}

impl Follower<'_> {
    fn gathers(&self) -> bool {
        !self.reached.is_empty()
    }

    /// Follows a group until the schedule ends. Parts that are cut off wait in `pending`.
    fn follow(&mut self, mut group: Group) -> Result<(), Violation> {
        loop {
            let touched = self.table.next_touch(group.class, group.step, group.slots.span());
            let Some(step) = touched else { return self.arrive(&group) };
            group.step = step;
            let entry = self.table.entry_of(group.class, group.step);
            if entry.copies && !group.copied {
                match self.copy(group)? {
                    Some(rest) => group = rest,
                    None => return Ok(()),
                }
            }
            if !self.passes_whole(&mut group, entry) {
                match self.transfer(group, entry)? {
                    Some(rest) => group = rest,
                    None => return Ok(()),
                }
            }
            group.step += 1;
            group.copied = false;
        }
    }

    /// Performs the local copies of the holder and returns one part of the group after them, if
    /// any.
    fn copy(&mut self, group: Group) -> Result<Option<Group>, Violation> {
        let mut does = std::mem::take(&mut self.step);
        self.schedule.rule().step(group.holder, group.step, &mut does);
        let (rank, step) = (group.holder, group.step);
        let mut rest = vec![group.slots];
        let mut moved = Vec::new();
        for copy in &does.copies {
            let maps = Map::between(&copy.from, &copy.to).ok_or(Violation::Sizes {
                step,
                from: rank,
                to: rank,
            })?;
            for map in maps {
                let mut outside = Vec::new();
                // In an all-gather a copied block also stays in its slot.
                let keeps = self.gathers().then(|| rest.clone());
                for slots in rest {
                    slots.split(&map, &mut |inside| moved.push(inside), &mut |part| {
                        outside.push(part);
                    });
                }
                rest = keeps.unwrap_or(outside);
            }
        }
        for slots in rest {
            let lands = does.copies.iter().flat_map(|copy| copy.to.runs()).map(|run| run.slots);
            moved.extend(self.survivors(slots, lands, rank, step)?);
        }
        self.step = does;
        let mut groups = moved.into_iter().map(|slots| Group { slots, copied: true, ..group });
        let first = groups.next();
        self.pending.extend(groups);
        Ok(first)
    }

    /// The common case: the holder sends one message, and the group lies wholly inside or outside.
    fn passes_whole(&self, group: &mut Group, entry: &Entry) -> bool {
        let [message] = entry.moves.as_slice() else {
            return entry.moves.is_empty() && entry.lands.is_empty();
        };
        // In an all-gather the sender keeps the block as well.
        if !entry.lands.is_empty() || self.gathers() {
            return false;
        }
        let moved = group.slots.pass_whole(&message.map);
        if moved == Some(true) {
            (group.holder, group.class) = self.after(message, group.holder);
        }
        moved.is_some()
    }

    /// The receiver of a message of `holder`, and its class.
    fn after(&self, message: &Move, holder: Rank) -> (Rank, u32) {
        let radix = self.table.classes.radix();
        let to = message.shift.iter().fold(holder, |rank, &(u, hops)| radix.shifted(rank, u, hops));
        (to, message.class_after)
    }

    /// Performs the messages of the holder and returns one part of the group that stays with it, if
    /// any.
    fn transfer(&mut self, group: Group, entry: &Entry) -> Result<Option<Group>, Violation> {
        let (holder, class, step) = (group.holder, group.class, group.step);
        let mut rest: SmallVec<[SlotBox; 2]> = SmallVec::new();
        rest.push(group.slots);
        for message in &entry.moves {
            let (to, class_after) = self.after(message, holder);
            let mut outside = SmallVec::new();
            let keeps = if self.gathers() { Some(rest.clone()) } else { None };
            for slots in rest {
                let pending = &mut self.pending;
                slots.split(
                    &message.map,
                    &mut |slots| {
                        let group = Group {
                            slots,
                            holder: to,
                            class: class_after,
                            step: step + 1,
                            copied: false,
                        };
                        pending.push(group);
                    },
                    &mut |part| outside.push(part),
                );
            }
            // A sender keeps what it sends; in an all-to-all this copy is not followed.
            rest = keeps.unwrap_or(outside);
        }
        let mut kept: SmallVec<[SlotBox; 2]> = SmallVec::new();
        for slots in rest {
            if entry.lands.is_empty() {
                kept.push(slots);
            } else {
                kept.extend(self.survivors(slots, entry.lands.iter().copied(), holder, step)?);
            }
        }
        let mut kept =
            kept.into_iter().map(|slots| Group { slots, holder, class, step, copied: false });
        match kept.next() {
            Some(first) => {
                self.pending.extend(kept.map(|group| Group { step: step + 1, ..group }));
                Ok(Some(first))
            }
            None => Ok(None),
        }
    }

    /// The parts of a waiting box that are not overwritten. In an all-to-all none may be.
    fn survivors(
        &self,
        slots: SlotBox,
        lands: impl Iterator<Item = Strided>,
        rank: Rank,
        step: u32,
    ) -> Result<Vec<SlotBox>, Violation> {
        let mut rest = vec![slots];
        for map in lands.flat_map(Map::identity) {
            let (mut outside, mut hit) = (Vec::new(), None);
            for slots in rest {
                slots.split(&map, &mut |inside| hit = Some(inside), &mut |part| outside.push(part));
            }
            match hit {
                Some(inside) if !self.gathers() => {
                    let (start, slot) = inside.slots().next().expect("bug: a box without slots");
                    return Err(Violation::Overwritten {
                        step,
                        rank,
                        slot,
                        from: self.source,
                        start,
                    });
                }
                _ => rest = outside,
            }
        }
        Ok(rest)
    }

    /// Checks at the end of the schedule that every slot of the group has its place in the final
    /// layout.
    fn arrive(&mut self, group: &Group) -> Result<(), Violation> {
        let (rule, problem, rank) = (self.schedule.rule(), self.schedule.problem, group.holder);
        for (start, slot) in group.slots.slots() {
            self.arrived += 1;
            let block = self.layout[start as usize].expect("bug: an empty slot is followed");
            let place = rule.final_block(rank, slot);
            if self.gathers() {
                self.reached[rank.index()] |= place == Some(block);
            } else if block != problem.wanted(self.source, rank) || place != Some(block) {
                let expected = place.unwrap_or(problem.wanted(self.source, rank));
                return Err(Violation::Undelivered {
                    rank,
                    slot,
                    expected,
                    found: Some(block),
                    written: None,
                });
            }
        }
        Ok(())
    }
}
