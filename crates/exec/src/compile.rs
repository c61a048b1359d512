//! From a rule to a plan: the rank's steps, and the registers that its slots name.

mod record;

use std::sync::Arc;

use hashbrown::HashMap;
use rayon::prelude::*;
use topocoll_schedule::{Block, Collective, Schedule};
use topocoll_topology::{Rank, Subset, parallel};

use crate::PlanError;
use crate::plan::{Moves, NONE, Names, Plan, Slots, all_or_first_error};

use record::{Found, StepMoves, record};

impl Plan {
    /// The plan of `rank`. It takes the time and memory of the rank's own slots and steps.
    ///
    /// # Errors
    /// No such rank; a schedule that names no blocks, is too large to number, reads an empty slot, or
    /// leaves a block of the output missing. The verifier finds other wrong deliveries.
    pub fn new(schedule: &Schedule, rank: Rank) -> Result<Self, PlanError> {
        let problem = schedule.problem;
        if rank.0 >= problem.ranks {
            return Err(PlanError::Rank { rank, ranks: problem.ranks });
        }
        if !schedule.rule().names_blocks() {
            return Err(PlanError::NoBlocks);
        }
        let (slots, ranks) = (schedule.rule().slots(), problem.ranks);
        if slots.saturating_add(ranks.into()) > Slots::MOST {
            return Err(PlanError::Slots { slots, ranks, most: Slots::MOST });
        }
        let mut plan = Self {
            problem,
            rank,
            subset: None,
            steps: Vec::new(),
            messages: Vec::new(),
            sets: Vec::new(),
            runs: Vec::new(),
            parts: Vec::new(),
            names: Vec::new(),
            origin: Vec::new(),
            first_write: Vec::new(),
            kept: Vec::new(),
            moves: Vec::new(),
            extra: 0,
            aside: None,
            most_messages: 0,
        };
        let mut found =
            Found { slots, parts: HashMap::new(), renamings: Vec::new(), moves: Vec::new() };
        record(&mut plan, schedule, &mut found)?;
        let (moves, first_slot) = name(&mut plan, schedule, found)?;
        follow(&mut plan, moves, &first_slot)?;
        settle(&mut plan)?;
        Ok(plan)
    }

    /// The plan of the machine's rank `own` by a schedule for a subset: rank i of the schedule is
    /// the i-th of the subset. Messages name their peers as the machine numbers them.
    ///
    /// # Errors
    /// As [`new`](Self::new); a subset of another number of ranks than the schedule's, or without
    /// `own`.
    pub fn in_subset(schedule: &Schedule, own: Rank, subset: &Subset) -> Result<Self, PlanError> {
        let (ranks, size) = (schedule.problem.ranks, subset.ranks().len());
        if size != ranks as usize {
            return Err(PlanError::SubsetSize { size, ranks });
        }
        let rank = subset.position(own).ok_or(PlanError::NotInSubset { rank: own, size })?;
        Ok(Self { subset: Some(subset.clone()), ..Self::new(schedule, Rank(rank))? })
    }
}

/// The plans of all ranks, made by all threads.
///
/// # Errors
/// As [`Plan::new`], of the first rank refused.
pub fn plan_all(schedule: &Schedule) -> Result<Vec<Arc<Plan>>, PlanError> {
    let ranks = parallel::each(0..schedule.problem.ranks);
    all_or_first_error(ranks.map(|rank| Plan::new(schedule, Rank(rank)).map(Arc::new)))
}

/// The plans of all ranks of a subset, in its order, made by all threads.
///
/// # Errors
/// As [`Plan::in_subset`], of the first rank refused.
pub fn plan_subset(schedule: &Schedule, subset: &Subset) -> Result<Vec<Arc<Plan>>, PlanError> {
    let ranks = parallel::each(subset.ranks());
    all_or_first_error(ranks.map(|&rank| Plan::in_subset(schedule, rank, subset).map(Arc::new)))
}

/// Names the registers by slot: at the end by the blocks they hold, and backwards through the
/// renamings. Writes down the input that they hold at first. Returns the moves by register, and by
/// register the slot that it is called by at first, for messages to people.
fn name(
    plan: &mut Plan,
    schedule: &Schedule,
    found: Found,
) -> Result<(Vec<StepMoves>, Vec<u32>), PlanError> {
    let (rule, rank, ranks) = (schedule.rule(), plan.rank, plan.problem.ranks);
    let slots = found.slots as u32;
    let (mut taken, mut count) = (vec![false; ranks as usize], ranks);
    let mut layout = Vec::with_capacity(slots as usize);
    rule.final_layout(rank, &mut layout);
    let register = |block: &Option<Block>| match block {
        Some(block) if !std::mem::replace(&mut taken[block.from.index()], true) => block.from.0,
        _ => {
            count += 1;
            count - 1
        }
    };
    let mut names: Vec<u32> = layout.iter().map(register).collect();
    if let Some(from) = taken.iter().position(|taken| !taken) {
        return Err(PlanError::NotDelivered { rank, from: Rank(from as u32) });
    }
    let mut moves = found.moves;
    let mut name_moves = |names: &[u32], from: u32, before: u32| {
        for (_, pairs) in moves.iter_mut().filter(|(step, _)| (from..before).contains(step)) {
            for (a, b) in pairs {
                (*a, *b) = (names[*a as usize], names[*b as usize]);
            }
        }
    };
    let mut end = plan.steps.len() as u32;
    for (step, new_slot) in found.renamings.into_iter().rev() {
        name_moves(&names, step, end);
        let earlier = new_slot.iter().map(|&to| names[to as usize]).collect();
        let later = std::mem::replace(&mut names, earlier);
        if plan.step_messages(step).start < plan.step_messages(end).start {
            plan.names.push(Names { first_step: step, registers: later });
        }
        end = step;
    }
    name_moves(&names, 0, end);

    plan.origin = vec![NONE; count as usize];
    plan.first_write = vec![NONE; count as usize];
    let mut first_slot = vec![NONE; count as usize];
    rule.initial_layout(rank, &mut layout);
    for ((slot, &register), start) in (0..).zip(&names).zip(&layout) {
        first_slot[register as usize] = slot;
        if let Some(block) = start {
            plan.origin[register as usize] = match plan.problem.operation {
                Collective::AllToAll => block.to.0,
                Collective::AllGather => 0,
            };
        }
    }
    if plan.names.last().is_none_or(|first| first.first_step > 0) {
        plan.names.push(Names { first_step: 0, registers: names });
    }
    plan.names.reverse();
    Ok((moves, first_slot))
}

/// Follows the registers through the steps: when each is first written, which messages lie in one
/// piece and may be sent from and received where they are.
fn follow(plan: &mut Plan, moves: Vec<StepMoves>, first_slot: &[u32]) -> Result<(), PlanError> {
    let (rank, count) = (plan.rank, first_slot.len());
    let mut moves = moves.into_iter().peekable();
    let complete = plan.origin.iter().all(|&origin| origin != NONE);
    // The step, from 1, in which a message is last sent from a register without being packed.
    let mut sent = vec![0; count];
    // The same of the copies into a register, if there are copies.
    let mut moved =
        vec![0; if moves.peek().is_some() || !plan.parts.is_empty() { count } else { 0 }];
    for step in 0..plan.steps.len() as u32 {
        let moves_now = moves.peek().is_some_and(|(at, _)| *at == step);
        if !moves_now && plan.step_messages(step).is_empty() {
            continue;
        }
        let mut pairs = moves.next_if(|_| moves_now).map_or(Vec::new(), |(_, pairs)| pairs);
        let empty = |register: u32| {
            let slot = first_slot[register as usize].into();
            PlanError::Empty { rank, step, slot }
        };
        let nothing = |register: usize| [plan.origin[register], plan.first_write[register]];
        if let Some(&(from, _)) = pairs.iter().find(|pair| nothing(pair.0 as usize) == [NONE; 2]) {
            return Err(empty(from));
        }
        for &(_, to) in &pairs {
            let time = &mut plan.first_write[to as usize];
            *time = (*time).min(2 * step);
        }
        let planned = plan.problem.block_bytes;
        // A block that is received in part lies in the output as a whole.
        for receive in plan.receives(step).filter(|_| !plan.parts.is_empty()) {
            let mut filled = Vec::new();
            plan.pieces(receive, step, planned, |register, first, end| {
                let part = (first, end) != (0, planned);
                let untouched = plan.untouched(register, 2 * step + 1);
                if part && untouched && plan.origin[register as usize] != NONE {
                    filled.push((register, register));
                }
            });
            for &(register, _) in &filled {
                plan.first_write[register as usize] = 2 * step;
            }
            pairs.extend(filled);
        }
        for send in plan.sends(step) {
            let mut nothing = NONE;
            if !complete {
                plan.pieces(send, step, planned, |register, _, _| {
                    let holds = plan.origin[register as usize] != NONE
                        || !plan.untouched(register, 2 * step + 1);
                    if nothing == NONE && !holds {
                        nothing = register;
                    }
                });
            }
            if nothing != NONE {
                return Err(empty(nothing));
            }
            if !plan.in_one_piece(send, step, 2 * step + 1) {
                plan.stage(send);
                continue;
            }
            plan.pieces(send, step, planned, |register, _, _| {
                // The input is never written: no receive endangers it.
                if !plan.untouched(register, 2 * step + 1) {
                    sent[register as usize] = step + 1;
                }
            });
        }
        for receive in plan.receives(step) {
            let mut clear = true;
            let mut times = std::mem::take(&mut plan.first_write);
            plan.pieces(receive, step, planned, |register, _, _| {
                let time = &mut times[register as usize];
                // A register that is sent unpacked keeps its block until then; the input always does.
                clear &= sent[register as usize] != step + 1 || *time > 2 * step;
                *time = (*time).min(2 * step + 1);
            });
            plan.first_write = times;
            if !clear || !plan.in_one_piece(receive, step, NONE) {
                plan.stage(receive);
            }
        }
        if !pairs.is_empty() {
            for &(_, to) in &pairs {
                moved[to as usize] = step + 1;
            }
            let scratch = pairs.iter().any(|&(from, _)| {
                !plan.untouched(from, 2 * step) && moved[from as usize] == step + 1
            });
            plan.moves.push(Moves { step, registers: pairs, scratch });
        }
    }
    Ok(())
}

/// Finds the blocks of the input that stay, and numbers the registers behind the output anew: only
/// those that are ever written need memory.
fn settle(plan: &mut Plan) -> Result<(), PlanError> {
    let ranks = plan.problem.ranks as usize;
    for register in 0..ranks {
        if plan.first_write[register] == NONE {
            if plan.origin[register] == NONE {
                let from = Rank(register as u32);
                return Err(PlanError::NotDelivered { rank: plan.rank, from });
            }
            plan.kept.push(register as u32);
        }
    }
    let behind = ranks..plan.first_write.len();
    let written = |register: &usize| plan.first_write[*register] != NONE;
    let order: Vec<usize> =
        behind.clone().filter(written).chain(behind.clone().filter(|r| !written(r))).collect();
    plan.extra = behind.clone().filter(written).count() as u32;
    if order.iter().copied().eq(behind) {
        return Ok(());
    }
    let mut renumbered = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        renumbered[old - ranks] = (ranks + new) as u32;
    }
    let renumber = |register: &mut u32| {
        if let Some(behind) = (*register as usize).checked_sub(ranks) {
            *register = renumbered[behind];
        }
    };
    plan.names.iter_mut().flat_map(|names| &mut names.registers).for_each(renumber);
    for (from, to) in plan.moves.iter_mut().flat_map(|moves| &mut moves.registers) {
        renumber(from);
        renumber(to);
    }
    for table in [&mut plan.origin, &mut plan.first_write] {
        let behind: Vec<u32> = order.iter().map(|&old| table[old]).collect();
        table[ranks..].copy_from_slice(&behind);
    }
    Ok(())
}
