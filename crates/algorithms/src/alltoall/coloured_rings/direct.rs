//! The residual exchange straight to the destination, on grids of two sides.
//!
//! Along either dimension the residual exchange of a line has slots of steps: in slot i a position
//! sends the group of one offset, and slot 0 is that in which all stay. In step (i, j), all but (0,
//! 0) and i before j, a rank sends the blocks that go with slot i of its row and with slot j of its
//! column, first along dimension 0. There is no link contention: in slot i every position of a line
//! is reached from one position alone, so that of the ranks that go on along a line of dimension 1
//! no two come from the same rank of it, and they use its links as slot j does.
//!
//! A slot of the buffer is a digit of either dimension in the layout of its line's exchange, and
//! received blocks go where the lines' exchanges place them: a digit that is free from slot i on is
//! one of a group that slot i or an earlier one sends, so that by step (i, j) whatever had the
//! digit i and any of slots 0 to j has left; or a digit that was never used.

use topocoll_schedule::{Block, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use super::Rings;
use super::counts::Cost;
use super::line::Digits;

impl Rings {
    /// The lines' slots of a step: 0 where all stay.
    pub(super) fn slots_of_direct(&self, step: u32) -> [u32; 2] {
        let columns = self.lines[1].residual_steps() + 1;
        [(step + 1) / columns, (step + 1) % columns]
    }

    /// Steps of the direct residual exchange.
    pub(super) fn direct_steps(&self) -> u32 {
        (self.lines[0].residual_steps() + 1) * (self.lines[1].residual_steps() + 1) - 1
    }

    /// A step of the direct residual exchange.
    pub(super) fn direct_step(&self, rank: Rank, at: &[u32], step: u32, out: &mut Step) {
        let slots = self.slots_of_direct(step);
        let of = |u: usize| self.lines[u].part(at[u], slots[u]);
        let [first, second] = [of(0), of(1)];
        let moved = |offsets: [i32; 2]| {
            offsets.into_iter().enumerate().fold(rank, |rank, (u, offset)| {
                self.grid.radix().shifted(rank, self.long[u], offset.into())
            })
        };
        if let (Some((a, rows)), Some((b, columns))) = (first.receive, second.receive) {
            out.receive(moved([-a, -b]), self.block_of(rows, columns));
        }
        if let (Some((a, rows)), Some((b, columns))) = (first.send, second.send) {
            let mut route = Route::straight(self.long[0] as u32, a.into());
            route.push(self.long[1] as u32, b.into());
            out.send(moved([a, b]), self.block_of(rows, columns), route);
        }
    }

    fn block_of(&self, rows: Digits, columns: Digits) -> SlotSet {
        let room = self.lines[1].residual_digits();
        let base = rows.first * room + columns.first;
        SlotSet::of(Strided::runs(base, rows.count, room, columns.count))
    }

    /// The block in a slot after the direct residual exchange.
    pub(super) fn direct_finish(&self, rank: Rank, at: &[u32], slot: Slot) -> Option<Block> {
        let room = self.lines[1].residual_digits();
        let [row, column] = [slot / room, slot % room];
        let from = self.moved(rank, 0, self.lines[0].source_at(at[0], row)?);
        let from = self.moved(from, 1, self.lines[1].source_at(at[1], column)?);
        Some(Block { from, to: rank })
    }

    /// The blocks in all slots after the direct residual exchange.
    pub(super) fn direct_final_layout(&self, rank: Rank, at: &[u32], out: &mut Vec<Option<Block>>) {
        let room = self.lines[1].residual_digits();
        let [rows, columns] = [0, 1].map(|u| self.grid.radix().stride(self.long[u]));
        let corner = rank.0 - at[0] * rows - at[1] * columns;
        let sources: Vec<_> =
            (0..room).map(|column| self.lines[1].source_at(at[1], column)).collect();
        out.clear();
        for row in 0..self.slots.div_ceil(room) {
            let source = self.lines[0].source_at(at[0], row);
            out.extend(sources.iter().map(|&column| {
                let from = Rank(corner + source? * rows + column? * columns);
                Some(Block { from, to: rank })
            }));
        }
        out.truncate(self.slots as usize);
    }

    /// The counts of the direct residual exchange: any position of one line meets any of the other.
    pub(super) fn add_direct(&self, cost: &mut Cost) {
        let room = self.lines[1].residual_digits();
        for step in 0..self.direct_steps() {
            let slots = self.slots_of_direct(step);
            let sent = |u: usize| {
                let line = &self.lines[u];
                (0..line.period()).filter_map(move |x| line.part(x, slots[u]).send)
            };
            let most = |u: usize, counts: &dyn Fn(u64) -> bool| {
                let counts = sent(u).map(|(_, digits)| digits.count).filter(|&c| counts(c));
                u128::from(counts.max().unwrap_or(0))
            };
            let hops = |u: usize| sent(u).map(|(offset, _)| offset.unsigned_abs()).max();
            cost.steps += 1;
            cost.blocks += most(0, &|_| true) * most(1, &|_| true);
            cost.packed += most(0, &|rows| rows > 1) * most(1, &|columns| columns < room);
            cost.hops += u128::from(hops(0).unwrap_or(0) + hops(1).unwrap_or(0));
        }
    }
}
