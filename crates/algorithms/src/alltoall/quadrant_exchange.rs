//! Quadrant exchange on a 2^d x 2^d mesh (Bokhari and Berryman 1992, as told by Suh and Shin 2001,
//! section 1): the mesh is treated as groups of 2 x 2 submeshes, the ranks of each exchange, and
//! successive groups are interleaved until all blocks are exchanged.
//!
//! The reading: for k = 0 .. d-1 the 2 x 2 submeshes are those of ranks 2^k apart in aligned
//! submeshes of side 2^(k+1). Two in one row or column would contend for its middle links, so those
//! with (c - r) mod 2^k = t take turns, t = 0 .. 2^k - 1. In its turn a submesh exchanges along
//! rows, along columns and across, a quarter of the blocks each.
//!
//! Claim: 3 (2^d - 1) steps, 3/4 (2^d - 1) P blocks, 4/3 (4^d - 1) hops, no link contention. The
//! paper prints only the number of phases, that of the cyclic exchange; with 2 submeshes of a row a
//! phase it is 1 + 1 + 2 + 4 + .. = 2^(d-1) here too.

use topocoll_schedule::{Block, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::layout::square_grid::SquareGrid;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct QuadrantExchange;

struct Quadrants {
    square: SquareGrid,
}

impl Rule for Quadrants {
    fn steps(&self) -> u32 {
        3 * ((1 << self.square.d) - 1)
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        // Turns before spacing 2^k: 2^k - 1.
        let k = (step / 3 + 1).ilog2();
        let (turn, z) = (step / 3 + 1 - (1 << k), step % 3 + 1);
        let (r, c) = self.square.at(rank);
        if c.wrapping_sub(r) % (1 << k) != turn {
            return;
        }
        let peer = self.square.rank((r ^ (z >> 1) << k, c ^ (z & 1) << k));
        // Digit k in radix 4 is z.
        let weight = 1 << (2 * k);
        let runs = self.square.ranks() / (4 * weight);
        let slots = SlotSet::of(Strided::runs(u64::from(z) * weight, runs, 4 * weight, weight));
        out.receive(peer, slots.clone());
        out.send(peer, slots, Route::default());
    }

    fn slots(&self) -> u64 {
        self.square.ranks()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.other_end(rank, slot) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.other_end(rank, slot), to: rank })
    }
}

impl Quadrants {
    fn other_end(&self, rank: Rank, slot: Slot) -> Rank {
        let ((r, c), (row, column)) = (self.square.at(rank), self.square.bits(slot));
        self.square.rank((r ^ row, c ^ column))
    }
}

static INFO: Info = Info::new(
    "quadrant-exchange",
    "2 x 2 submeshes of growing spacing, submeshes with common links in turn",
    "Bokhari and Berryman 1992, as told by Suh and Shin 2001",
);

impl Algorithm for QuadrantExchange {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let square = SquareGrid::of(request, Some(false))?;
        let (turns, ranks) = ((1u64 << square.d) - 1, u128::from(request.problem.ranks));
        let hops = 4 * (ranks - 1) / 3;
        let claims = Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: true,
            ..Claims::new(3 * turns, request.bytes(u128::from(turns) * 3 * ranks / 4))
        };
        Ok(Solution::new(request, values, Quadrants { square }, claims))
    }
}
