//! From a rule to a plan: the rank's steps, and the registers that its slots name.

use std::ops::ControlFlow;

use hashbrown::HashMap;
use topocoll_schedule::{Block, Collective, LocalCopy, Part, Schedule, SlotSet, Step};
use topocoll_topology::Rank;

use crate::PlanError;
use crate::places::Places;
use crate::plan::{MessageRow, Moves, NONE, Names, Plan, RunRow, SetRow, Slots, StepRow};

pub(crate) fn compile(schedule: &Schedule, rank: Rank) -> Result<Plan, PlanError> {
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
    let mut plan = Plan {
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

/// A step and its copies: slots, or later registers, (from, to).
type StepMoves = (u32, Vec<(u32, u32)>);

/// Collected while steps are recorded, and dropped afterwards.
struct Found {
    /// Slots of the schedule.
    slots: u64,
    /// The numbers of parts of blocks: first byte, and end.
    parts: HashMap<(u64, u64), u32>,
    /// Steps whose copies permute the slots: the new slot of each.
    renamings: Vec<(u32, Vec<u32>)>,
    /// Those whose copies do not.
    moves: Vec<StepMoves>,
}

/// Writes down the rank's steps.
fn record(plan: &mut Plan, schedule: &Schedule, found: &mut Found) -> Result<(), PlanError> {
    let (rule, rank) = (schedule.rule(), plan.rank);
    let steps = rule.steps();
    if steps >= NONE / 2 - 1 {
        let most = u64::from(NONE / 2) - 2;
        return Err(PlanError::TooMany { what: "steps", count: steps.into(), most });
    }
    plan.steps.reserve_exact(steps as usize);
    let mut recorded = Ok(());
    rule.each_step(rank, &mut |number, step| {
        recorded = plan.record_step(number, step, found);
        if recorded.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    recorded.map(|()| plan.idle_until(steps))
}

impl Plan {
    /// Writes down a step in which the rank does something.
    fn record_step(
        &mut self,
        number: u32,
        step: &Step,
        found: &mut Found,
    ) -> Result<(), PlanError> {
        self.idle_until(number);
        if !step.copies.is_empty() {
            found.add(self.rank, number, step)?;
        }
        let first_send = self.messages.len() as u32;
        for send in &step.sends {
            let slots = self.slots(found, number, &send.slots)?;
            self.messages.push(MessageRow { peer: send.peer.0, slots });
        }
        let first_receive = self.messages.len() as u32;
        for receive in &step.receives {
            let slots = self.slots(found, number, &receive.slots)?;
            self.messages.push(MessageRow { peer: receive.peer.0, slots });
        }
        self.steps.push(StepRow { first_send, first_receive });
        self.most_messages = self.most_messages.max(self.messages.len() as u32 - first_send);
        if self.messages.len() as u64 > Slots::MOST {
            let count = self.messages.len() as u64;
            return Err(PlanError::TooMany { what: "messages", count, most: Slots::MOST });
        }
        Ok(())
    }

    /// Writes down steps without messages.
    fn idle_until(&mut self, step: u32) {
        let next = self.messages.len() as u32;
        self.steps.resize(step as usize, StepRow { first_send: next, first_receive: next });
    }

    /// The slots of a message, its set written down unless it is that of the message before.
    fn slots(&mut self, found: &mut Found, step: u32, set: &SlotSet) -> Result<Slots, PlanError> {
        if let [run] = set.runs()
            && run.slots.len() == 1
            && run.part == Part::Whole
            && run.slots.base < found.slots
        {
            return Ok(Slots::single(run.slots.base as u32));
        }
        inside(self.rank, step, set, found.slots)?;
        let (first_run, mut whole) = (self.runs.len(), 0);
        for run in set.runs() {
            let part = match run.part {
                Part::Whole => {
                    whole += run.slots.len() as u32;
                    NONE
                }
                Part::Bytes { first, end } => {
                    *found.parts.entry((first, end)).or_insert_with(|| {
                        self.parts.push((first, end));
                        self.parts.len() as u32 - 1
                    })
                }
            };
            let (outer, inner) = (RunRow::axes(run.slots.outer), RunRow::axes(run.slots.inner));
            self.runs.push(RunRow { base: run.slots.base as u32, outer, inner, part });
        }
        // A message is often received into the slots just sent, or those of the step before.
        if let Some(last) = self.sets.last()
            && self.runs[last.first_run as usize..last.end_run as usize] == self.runs[first_run..]
        {
            self.runs.truncate(first_run);
            return Ok(Slots::set(self.sets.len() as u32 - 1));
        }
        let (first_run, end_run) = (first_run as u32, self.runs.len() as u32);
        self.sets.push(SetRow { first_run, end_run, whole });
        Ok(Slots::set(self.sets.len() as u32 - 1))
    }
}

/// Whether a set lies within the slots.
fn inside(rank: Rank, step: u32, set: &SlotSet, slots: u64) -> Result<(), PlanError> {
    for run in set.runs() {
        let (low, high) = run.slots.span().unwrap_or_default();
        if low < 0 || high >= i128::from(slots) {
            let slot = if low < 0 { low } else { high } as u64;
            return Err(PlanError::Slot { rank, step, slot, slots });
        }
    }
    Ok(())
}

impl Found {
    fn add(&mut self, rank: Rank, number: u32, step: &Step) -> Result<(), PlanError> {
        for copy in &step.copies {
            inside(rank, number, &copy.from, self.slots)?;
            inside(rank, number, &copy.to, self.slots)?;
        }
        const READ: u8 = 1;
        const WRITTEN: u8 = 2;
        let mut new_slot: Vec<u32> = (0..self.slots as u32).collect();
        let mut marks = vec![0; self.slots as usize];
        let mut permutes = true;
        for copy in &step.copies {
            each_pair(copy, |from, to| {
                permutes &= marks[from as usize] & READ == 0;
                marks[from as usize] |= READ;
                marks[to as usize] |= WRITTEN;
                new_slot[from as usize] = to;
            });
        }
        // Each slot that is read is written, and each that is written is read.
        permutes &= !marks.iter().any(|&mark| mark == READ || mark == WRITTEN);
        if permutes {
            self.renamings.push((number, new_slot));
        } else {
            let copied = step.copies.iter().map(|copy| copy.from.len() as usize);
            let mut pairs = Vec::with_capacity(copied.sum());
            for copy in &step.copies {
                each_pair(copy, |from, to| pairs.push((from, to)));
            }
            self.moves.push((number, pairs));
        }
        Ok(())
    }
}

/// Calls `each` with the slots of a copy in order, from and to.
#[inline]
fn each_pair(copy: &LocalCopy, mut each: impl FnMut(u32, u32)) {
    if let ([from], [to]) = (copy.from.runs(), copy.to.runs())
        && (from.slots.outer.count, from.slots.inner.count)
            == (to.slots.outer.count, to.slots.inner.count)
    {
        let (from, to) = (from.slots, to.slots);
        for i in 0..from.outer.count as i64 {
            let mut a = from.base as i64 + i * from.outer.stride;
            let mut b = to.base as i64 + i * to.outer.stride;
            for _ in 0..from.inner.count {
                each(a as u32, b as u32);
                a += from.inner.stride;
                b += to.inner.stride;
            }
        }
        return;
    }
    for ((from, _), (to, _)) in copy.from.slots().zip(copy.to.slots()) {
        each(from as u32, to as u32);
    }
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

impl Plan {
    pub(crate) fn stage(&mut self, message: u32) {
        let row = &mut self.messages[message as usize];
        row.slots = row.slots.staged();
    }

    /// Whether the bytes of a message lie in one piece of one buffer; read at `time`, or written
    /// if that is [`NONE`].
    pub(crate) fn in_one_piece(&self, message: u32, step: u32, time: u32) -> bool {
        let mut regions = 0;
        let places = Places { plan: self, block_bytes: self.problem.block_bytes };
        places.regions(message, step, time, |_| regions += 1);
        regions <= 1
    }
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
