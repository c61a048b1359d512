//! Full replay: moves every block of every rank as the schedule says.

mod labels;

use rayon::prelude::*;
use topocoll_schedule::{Block, Collective, Part, Schedule, Slot, SlotSet, Step, Transfer};
use topocoll_topology::{Machine, Rank, Route, parallel};

use self::labels::{
    Label, NOTHING, block, check_ends, for_each_range, gather, label, pieces_of, scatter,
};
use crate::checks::first_violation;
use crate::error::{check_memory, check_work};
use crate::pairs::ByPeer;
use crate::paths::WORK_LIMIT;
use crate::written::Written;
use crate::{AnalysisError, Progress, Violation, checks, pairs};
/// Ranks handled together by one thread.
const CHUNK: usize = 32;

/// The most ranks: labels of blocks have 32 bits.
const MAX_RANKS: u32 = 65_535;

/// The state of all buffers during a schedule.
pub(crate) struct Replay<'a> {
    schedule: &'a Schedule,
    /// Block labels, a row of slots * pieces per rank. A block that is split has a label per piece.
    labels: Vec<Label>,
    row: usize,
    /// The bounds of the pieces of a block, from 0 to `block_bytes`.
    bounds: Vec<u64>,
    /// The current step of each rank.
    pub(crate) steps: Vec<Step>,
    /// The sends and receives of each rank in it, by peer.
    ends: Vec<Ends>,
    /// The labels that the ranks of each chunk receive in the current step.
    arriving: Vec<Vec<Label>>,
    /// By label, whether its rank sent it on; empty in an all-gather.
    passed_on: Vec<bool>,
    /// Blocks that a rank sent again.
    resent: u64,
}

#[derive(Clone, Default)]
struct Ends {
    sends: ByPeer,
    receives: ByPeer,
}

/// The most bytes that a replay takes.
pub(crate) fn memory(schedule: &Schedule) -> u128 {
    let pieces = schedule.rule().cuts().len() as u128 + 1;
    let labels = u128::from(schedule.problem.ranks) * u128::from(schedule.rule().slots()) * pieces;
    // Labels, equally many in flight, the marks of an all-to-all, and a step per rank, whose
    // vectors have up to twice their length as capacity.
    let marks = u128::from(schedule.problem.operation == Collective::AllToAll);
    let ports = schedule.problem.ports as usize;
    let step = 1024 + 4 * ports * size_of::<Transfer>() + 2 * pairs::memory(ports);
    labels * (4 * 2 + marks) + u128::from(schedule.problem.ranks) * step as u128
}

/// Checks that blocks have labels and that the replay fits in `limit` bytes.
pub(crate) fn check_fits(schedule: &Schedule, limit: u128) -> Result<(), AnalysisError> {
    let ranks = schedule.problem.ranks;
    if ranks > MAX_RANKS {
        return Err(AnalysisError::Replayed { ranks, most: MAX_RANKS });
    }
    check_memory("a full replay", memory(schedule), limit)
}

/// Checks that a replay takes minutes at most, by the slots that ranks send and copy.
pub(crate) fn check_replaying(schedule: &Schedule) -> Result<(), AnalysisError> {
    let (rule, classes) = (schedule.rule(), schedule.rule().classes());
    let (ranks, slots) = (u128::from(schedule.problem.ranks), u128::from(rule.slots()));
    if ranks * u128::from(rule.steps()) * slots <= WORK_LIMIT {
        return Ok(());
    }
    let visits_of = |class| {
        let mut does = Step::default();
        let visits_in = |step| {
            rule.step(classes.representative(class), step, &mut does);
            let sent = does.sends.iter().map(|send| send.slots.len());
            let copied = does.copies.iter().map(|copy| copy.to.len());
            sent.chain(copied).map(u128::from).sum::<u128>()
        };
        (0..rule.steps()).map(visits_in).sum::<u128>() + slots
    };
    let visits: u128 = parallel::each(0..classes.count()).map(visits_of).sum();
    let needed = visits * (ranks / u128::from(classes.count()));
    check_work("a full replay", needed, WORK_LIMIT)
}

impl<'a> Replay<'a> {
    /// The state before the first step.
    pub(crate) fn new(schedule: &'a Schedule, memory_limit: u128) -> Result<Self, AnalysisError> {
        check_fits(schedule, memory_limit)?;
        let problem = schedule.problem;
        let mut bounds = vec![0];
        bounds.extend(schedule.rule().cuts());
        bounds.push(problem.block_bytes);
        let pieces = bounds.len() - 1;
        let (ranks, slots) = (problem.ranks as usize, schedule.rule().slots());
        let row = slots as usize * pieces;
        let mut labels = vec![NOTHING; ranks * row];
        parallel::chunks_mut(&mut labels, row).enumerate().for_each_init(
            Vec::new,
            |starts, (rank, row)| {
                schedule.rule().initial_layout(Rank(rank as u32), starts);
                for (places, start) in row.chunks_mut(pieces).zip(starts) {
                    if let Some(block) = *start {
                        places.fill(label(problem, block));
                    }
                }
            },
        );
        let arriving = vec![Vec::new(); ranks.div_ceil(CHUNK)];
        let (steps, ends) = (vec![Step::default(); ranks], vec![Ends::default(); ranks]);
        let (passed_on, resent) = (Vec::new(), 0);
        Ok(Self { schedule, labels, row, bounds, steps, ends, arriving, passed_on, resent })
    }

    /// Marks, from now on, the blocks that are sent on in an all-to-all.
    fn mark_passed_on(&mut self) {
        if self.schedule.problem.operation == Collective::AllToAll {
            self.passed_on = vec![false; self.labels.len()];
        }
    }

    /// Counts the blocks sent again in the step just performed, and marks those sent on. A copy has
    /// the mark of its source; a received block has no mark.
    fn count_resent(&mut self) {
        if self.passed_on.is_empty() {
            return;
        }
        let slots = self.schedule.rule().slots();
        let (pieces, bounds, steps) = (self.pieces(), &self.bounds, &self.steps);
        let each = |set: &SlotSet, visit: &mut dyn FnMut(std::ops::Range<usize>)| {
            let visited = for_each_range(pieces, bounds, set, slots, |range| {
                visit(range);
                Ok(())
            });
            assert!(visited.is_ok(), "bug: slots of a performed step are out of range");
        };
        let ranks =
            parallel::chunks_mut(&mut self.passed_on, self.row).zip(steps).with_min_len(CHUNK);
        let resent = ranks.map_init(Vec::new, |copied, (marks, does)| {
            copied.clear();
            for copy in &does.copies {
                each(&copy.from, &mut |range| copied.extend_from_slice(&marks[range]));
            }
            let mut copied = copied.iter();
            for copy in &does.copies {
                each(&copy.to, &mut |range| {
                    marks[range].iter_mut().zip(&mut copied).for_each(|(mark, &of)| *mark = of);
                });
            }
            let mut resent = 0;
            for send in &does.sends {
                each(&send.slots, &mut |range| {
                    // Block by block, or the pieces of a part.
                    for marks in marks[range].chunks_mut(pieces) {
                        resent += u64::from(marks.contains(&true));
                        marks.fill(true);
                    }
                });
            }
            for receive in &does.receives {
                each(&receive.slots, &mut |range| marks[range].fill(false));
            }
            resent
        });
        self.resent += resent.sum::<u64>();
    }

    /// The block in a slot, by the first piece of `part`.
    pub(crate) fn block(&self, rank: Rank, slot: Slot, part: Part) -> Option<Block> {
        let (first, _) = pieces_of(&self.bounds, part);
        block(
            self.schedule.problem,
            self.labels[rank.index() * self.row + slot as usize * self.pieces() + first],
        )
    }

    /// Reads `step` of every rank.
    pub(crate) fn look(&mut self, step: u32) {
        let rule = self.schedule.rule();
        let ranks = parallel::each(&mut self.steps).zip(&mut self.ends).enumerate();
        ranks.with_min_len(CHUNK).for_each(|(rank, (out, ends))| {
            rule.step(Rank(rank as u32), step, out);
            ends.sends.list(&out.sends);
            ends.receives.list(&out.receives);
        });
    }

    /// Performs the local copies of the step read.
    pub(crate) fn copy(&mut self, step: u32) -> Result<(), Violation> {
        let slots = self.schedule.rule().slots();
        let (pieces, bounds, steps) = (self.pieces(), &self.bounds, &self.steps);
        let found = parallel::chunks_mut(&mut self.labels, self.row)
            .enumerate()
            .with_min_len(CHUNK)
            .map_init(
                || (Vec::new(), Written::new(slots)),
                |(staged, written), (rank, row)| {
                    let (copies, rank) = (&steps[rank].copies, Rank(rank as u32));
                    staged.clear();
                    for copy in copies {
                        check_ends(bounds, &copy.from, &copy.to)
                            .map_err(|()| Violation::Sizes { step, from: rank, to: rank })?;
                        gather(row, pieces, bounds, &copy.from, slots, staged)
                            .map_err(|fault| fault.violation(step, rank, slots))?;
                    }
                    let mut from = staged.as_slice();
                    for copy in copies {
                        written.mark(&copy.to).map_err(|slot| Violation::WrittenTwice {
                            step,
                            rank,
                            slot,
                        })?;
                        from = scatter(row, pieces, bounds, &copy.to, slots, from)
                            .map_err(|fault| fault.violation(step, rank, slots))?;
                    }
                    written.clear(copies.iter().map(|copy| &copy.to));
                    Ok(())
                },
            );
        first_violation(found)
    }

    /// Performs the transfers of the step read, after checking that both ends agree.
    pub(crate) fn transfer(&mut self, step: u32, machine: &Machine) -> Result<(), Violation> {
        self.check_sends(step, machine)?;
        let slots = self.schedule.rule().slots();
        let (pieces, bounds, labels, length) =
            (self.pieces(), &self.bounds, &self.labels, self.row);
        let (steps, ends) = (&self.steps, &self.ends);
        let found = parallel::each(&mut self.arriving)
            .zip(parallel::chunks(steps, CHUNK))
            .enumerate()
            .map(|(chunk, (staged, does))| {
                staged.clear();
                for (i, does) in does.iter().enumerate() {
                    let to = Rank((chunk * CHUNK + i) as u32);
                    let receives = &ends[to.index()].receives;
                    for (place, receive) in does.receives.iter().enumerate() {
                        let from = receive.peer;
                        let send = (ends.get(from.index()))
                            .and_then(|peers| receives.other_end(place, to, from, &peers.sends))
                            .map(|place| &steps[from.index()].sends[place])
                            .ok_or(Violation::NoSend { step, from, to })?;
                        check_ends(bounds, &send.slots, &receive.slots)
                            .map_err(|()| Violation::Sizes { step, from, to })?;
                        gather(
                            &labels[from.index() * length..][..length],
                            pieces,
                            bounds,
                            &send.slots,
                            slots,
                            staged,
                        )
                        .map_err(|fault| fault.violation(step, from, slots))?;
                    }
                }
                Ok(())
            });
        first_violation(found)?;
        let rows = parallel::chunks_mut(&mut self.labels, length * CHUNK);
        let found = rows.zip(parallel::each(&self.arriving)).enumerate().map_init(
            || Written::new(slots),
            |written, (chunk, (rows, staged))| {
                let mut from = staged.as_slice();
                for (i, row) in rows.chunks_mut(length).enumerate() {
                    let rank = Rank((chunk * CHUNK + i) as u32);
                    let receives = &steps[rank.index()].receives;
                    for receive in receives {
                        if receives.len() > 1 {
                            let twice = |slot| Violation::WrittenTwice { step, rank, slot };
                            written.mark(&receive.slots).map_err(twice)?;
                        }
                        from = scatter(row, pieces, bounds, &receive.slots, slots, from)
                            .map_err(|fault| fault.violation(step, rank, slots))?;
                    }
                    if receives.len() > 1 {
                        written.clear(receives.iter().map(|receive| &receive.slots));
                    }
                }
                Ok(())
            },
        );
        first_violation(found)
    }

    /// Checks that every send has a receive, and that its route leads there.
    fn check_sends(&self, step: u32, machine: &Machine) -> Result<(), Violation> {
        let ranks = parallel::each(&self.steps).zip(&self.ends).enumerate().with_min_len(CHUNK);
        let found = ranks.map_init(Route::default, |route, (from, (does, ends))| {
            let from = Rank(from as u32);
            for send in &does.sends {
                let to = send.peer;
                let sent = ends.sends.count(to);
                let received = self.ends.get(to.index()).map(|ends| ends.receives.count(from));
                if received.is_none_or(|received| received < sent) || to == from {
                    return Err(Violation::NoReceive { step, from, to });
                }
                if !checks::leads_to_peer(machine, from, send, route) {
                    return Err(Violation::Misrouted { step, from, to });
                }
            }
            Ok(())
        });
        first_violation(found)
    }

    /// Checks that every rank holds its own blocks once, and nothing else.
    pub(crate) fn check_start(&self) -> Result<(), Violation> {
        let (problem, pieces) = (self.schedule.problem, self.pieces());
        let found = parallel::chunks(&self.labels, self.row).enumerate().map(|(rank, row)| {
            let held = row.iter().step_by(pieces).filter_map(|&label| block(problem, label));
            checks::check_start(self.schedule, Rank(rank as u32), held)
        });
        first_violation(found)
    }

    /// Checks that every rank holds its final layout, with a block from every rank.
    pub(crate) fn check_finish(&self) -> Result<(), Violation> {
        let (problem, pieces, rule) = (self.schedule.problem, self.pieces(), self.schedule.rule());
        let found = parallel::chunks(&self.labels, self.row).enumerate().map_init(
            || (vec![false; problem.ranks as usize], Vec::new()),
            |(held, finishes), (rank, row)| {
                let rank = Rank(rank as u32);
                held.fill(false);
                rule.final_layout(rank, finishes);
                for (slot, places) in row.chunks(pieces).enumerate() {
                    let slot = slot as Slot;
                    let Some(expected) = finishes[slot as usize] else { continue };
                    for &found in places {
                        if found != label(problem, expected) {
                            let found = block(problem, found);
                            return Err(Violation::Undelivered {
                                rank,
                                slot,
                                expected,
                                found,
                                written: None,
                            });
                        }
                    }
                    if problem.wanted(expected.from, rank) == expected {
                        held[expected.from.index()] = true;
                    }
                }
                let missing =
                    |(from, &held): (u32, &bool)| !held && self.schedule.wants(Rank(from), rank);
                match (0..).zip(held.iter()).position(missing) {
                    None => Ok(()),
                    Some(from) => Err(Violation::NoPlace {
                        rank,
                        block: problem.wanted(Rank(from as u32), rank),
                    }),
                }
            },
        );
        first_violation(found)
    }

    fn pieces(&self) -> usize {
        self.bounds.len() - 1
    }
}

/// Replays a schedule and reports the first violation; for an all-to-all without one, also the
/// number of blocks sent again.
pub(crate) fn run(
    schedule: &Schedule,
    machine: &Machine,
    memory: u128,
    progress: &Progress<'_>,
) -> Result<(Result<(), Violation>, Option<u64>), AnalysisError> {
    let mut replay = Replay::new(schedule, memory)?;
    replay.mark_passed_on();
    let mut resent = None;
    (progress.starting)("replaying steps", schedule.rule().steps().into());
    let mut follow = || {
        replay.check_start()?;
        for step in 0..schedule.rule().steps() {
            replay.look(step);
            replay.copy(step)?;
            replay.transfer(step, machine)?;
            replay.count_resent();
            (progress.done)(1);
        }
        resent = (!replay.passed_on.is_empty()).then_some(replay.resent);
        replay.check_finish()
    };
    let outcome = follow().map_err(|violation| explain(schedule, violation));
    Ok((outcome, resent))
}

/// Adds to a wrong slot the step and rank that last wrote it, and to a listed message its number.
fn explain(schedule: &Schedule, mut violation: Violation) -> Violation {
    if let Violation::Undelivered { rank, slot, ref mut written, .. } = violation {
        let mut does = Step::default();
        for step in (0..schedule.rule().steps()).rev() {
            schedule.rule().step(rank, step, &mut does);
            let writes = |set: &SlotSet| set.slots().any(|(written, _)| written == slot);
            let copied = does.copies.iter().any(|copy| writes(&copy.to));
            let from = does
                .receives
                .iter()
                .find(|receive| writes(&receive.slots))
                .map(|receive| receive.peer);
            if let Some(from) = from.or(copied.then_some(rank)) {
                *written = Some((step, from));
                break;
            }
        }
    }
    violation.in_list(schedule.rule())
}
