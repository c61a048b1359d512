//! The labels of blocks in slots, and how sets of slots are read and written.

use topocoll_schedule::{Block, Collective, Part, Problem, Slot, SlotSet};
use topocoll_topology::Rank;

use crate::Violation;

/// The identity of a block, or [`NOTHING`].
pub(super) type Label = u32;

pub(super) const NOTHING: Label = Label::MAX;

pub(super) fn label(problem: Problem, block: Block) -> Label {
    match problem.operation {
        Collective::AllToAll => block.from.0 * problem.ranks + block.to.0,
        Collective::AllGather => block.from.0,
    }
}

pub(super) fn block(problem: Problem, label: Label) -> Option<Block> {
    if label == NOTHING {
        return None;
    }
    Some(match problem.operation {
        Collective::AllToAll => {
            Block { from: Rank(label / problem.ranks), to: Rank(label % problem.ranks) }
        }
        Collective::AllGather => Block::of(Rank(label)),
    })
}

/// Checks that both ends list equally many slots and, if blocks are split, the same parts.
pub(super) fn check_ends(bounds: &[u64], from: &SlotSet, to: &SlotSet) -> Result<(), ()> {
    let agree = from.len() == to.len()
        && (bounds.len() == 2
            || from.slots().map(|(_, part)| part).eq(to.slots().map(|(_, part)| part)));
    if agree { Ok(()) } else { Err(()) }
}

/// The pieces of a block that a part covers, first and one past the last.
pub(super) fn pieces_of(bounds: &[u64], part: Part) -> (usize, usize) {
    let piece =
        |byte| bounds.binary_search(&byte).expect("bug: a part that no cut of the rule bounds");
    match part {
        Part::Whole => (0, bounds.len() - 1),
        Part::Bytes { first, end } => (piece(first), piece(end)),
    }
}

/// An error about a slot that is read or written.
pub(super) enum Fault {
    OutOfRange(i128),
    Empty(Slot),
}

impl Fault {
    pub(super) fn violation(self, step: u32, rank: Rank, slots: u64) -> Violation {
        match self {
            Self::OutOfRange(slot) => Violation::OutOfRange { step, rank, slot, slots },
            Self::Empty(slot) => Violation::Empty { step, rank, slot },
        }
    }
}

/// Calls `visit` with the range of labels of each contiguous run of a set.
pub(super) fn for_each_range(
    pieces: usize,
    bounds: &[u64],
    set: &SlotSet,
    slots: u64,
    mut visit: impl FnMut(std::ops::Range<usize>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for run in set.runs() {
        let (low, high) = run.slots.span().expect("bug: an empty run in a set");
        if low < 0 || high >= i128::from(slots) {
            return Err(Fault::OutOfRange(if low < 0 { low } else { high }));
        }
        let (first, end) = pieces_of(bounds, run.part);
        for (slot, length) in run.slots.contiguous_runs() {
            let (slot, length) = (slot as usize * pieces, length as usize * pieces);
            if end - first == pieces {
                visit(slot..slot + length)?;
            } else {
                (slot..slot + length)
                    .step_by(pieces)
                    .try_for_each(|slot| visit(slot + first..slot + end))?;
            }
        }
    }
    Ok(())
}

pub(super) fn gather(
    row: &[Label],
    pieces: usize,
    bounds: &[u64],
    set: &SlotSet,
    slots: u64,
    staged: &mut Vec<Label>,
) -> Result<(), Fault> {
    let before = staged.len();
    for_each_range(pieces, bounds, set, slots, |range| {
        staged.extend_from_slice(&row[range]);
        Ok(())
    })?;
    if staged[before..].contains(&NOTHING) {
        // Rare: find the slot.
        for_each_range(pieces, bounds, set, slots, |range| {
            match row[range.clone()].iter().position(|&l| l == NOTHING) {
                Some(i) => Err(Fault::Empty(((range.start + i) / pieces) as Slot)),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

pub(super) fn scatter<'l>(
    row: &mut [Label],
    pieces: usize,
    bounds: &[u64],
    set: &SlotSet,
    slots: u64,
    mut from: &'l [Label],
) -> Result<&'l [Label], Fault> {
    for_each_range(pieces, bounds, set, slots, |range| {
        let (head, rest) = from.split_at(range.len());
        row[range].copy_from_slice(head);
        from = rest;
        Ok(())
    })?;
    Ok(from)
}
