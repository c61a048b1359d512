//! Binary exchange on a 2^d x 2^d mesh (Bokhari and Berryman 1992, as told by Suh and Shin 2001,
//! section 1): the mesh is recursively halved, and ranks symmetrically located about each cut
//! exchange.
//!
//! The reading: for k = d-1 .. 0 a cut between columns, then one between rows, of all submeshes of
//! side 2^(k+1) at once. A rank exchanges with its mirror image about the cut, the coordinate that
//! changes xor 2^(k+1) - 1, all blocks whose destination is beyond the cut: half of its blocks.
//! Mirror pairs are nested, so the link on the cut carries 2^k messages in each direction; the
//! paper's machine switches circuits and runs them one after the other.
//!
//! Claim: 2d steps, d P blocks, (2^d - 1) P blocks over the busiest links, 2 (2 (2^d - 1) - d) hops.
//!
//! A mirror image changes all bits below k too. With m_k whether a block crosses cut k, the bits of
//! `src xor dst` are `e_j = m_j xor m_(j+1) xor ..`: m is the Gray code of e, constant for a block's
//! life, and its slot.

use topocoll_schedule::{Block, Rule, Slot, Step};
use topocoll_topology::{Rank, Route};

use crate::layout::square_grid::{Along, SquareGrid};
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct BinaryExchange;

struct Halving {
    square: SquareGrid,
}

impl Rule for Halving {
    fn steps(&self) -> u32 {
        2 * self.square.d
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let k = self.square.d - 1 - step / 2;
        let along = if step % 2 == 0 { Along::Row } else { Along::Column };
        let mirror = (2 << k) - 1;
        let (r, c) = self.square.at(rank);
        let (to, from, at) = match along {
            Along::Row => ((r, c ^ mirror), c, c ^ mirror),
            Along::Column => ((r ^ mirror, c), r, r ^ mirror),
        };
        let (peer, hops) = (self.square.rank(to), i64::from(at) - i64::from(from));
        let slots = self.square.set(along, k);
        out.receive(peer, slots.clone());
        out.send(peer, slots, Route::straight(self.square.dimension(along) as u32, hops));
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

impl Halving {
    /// The other end of a block that crosses the cuts of its slot.
    fn other_end(&self, rank: Rank, slot: Slot) -> Rank {
        let ((r, c), (row, column)) = (self.square.at(rank), self.square.bits(slot));
        self.square.rank((r ^ from_gray(row), c ^ from_gray(column)))
    }
}

fn from_gray(code: u32) -> u32 {
    (0..5).fold(code, |bits, i| bits ^ bits >> (1 << i))
}

static INFO: Info = Info::new(
    "binary-exchange",
    "the mesh halved again and again, mirror images about each cut exchanging what crosses it",
    "Bokhari and Berryman 1992, as told by Suh and Shin 2001",
);

impl Algorithm for BinaryExchange {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let square = SquareGrid::of(request, Some(false))?;
        let (d, side) = (u128::from(square.d), 1u128 << square.d);
        let ranks = u128::from(request.problem.ranks);
        let hops = 2 * (2 * (side - 1) - d);
        let claims = Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: square.d <= 1,
            link_bytes_floor: request.bytes((side - 1) * ranks),
            ..Claims::new(2 * u64::from(square.d), request.bytes(d * ranks))
        };
        Ok(Solution::new(request, values, Halving { square }, claims))
    }
}
