//! All-gather on a hypercube: in step i every rank exchanges all its blocks with rank XOR 2^i.
//!
//! Claim: log2 n steps and n - 1 blocks for n a power of two, both optimal at one port (Bruck et
//! al. 1997, section 4, the second known algorithm). Listed beside `concat` for comparison.

use topocoll_schedule::{Block, Collective, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, MixedRadix, Rank, Route};

use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct RecursiveDoubling;

struct Doubling {
    ranks: u32,
}

impl Rule for Doubling {
    fn steps(&self) -> u32 {
        self.ranks.ilog2()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let held = 1u32 << step;
        let peer = Rank(rank.0 ^ held);
        out.send(peer, SlotSet::of(Strided::contiguous(0, held.into())), Route::default());
        out.receive(peer, SlotSet::of(Strided::contiguous(held.into(), held.into())));
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    /// Slot t is for the block of rank XOR t.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == 0).then_some(Block::of(rank))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block::of(Rank(rank.0 ^ slot as u32)))
    }

    /// XOR is translation in as many coordinates of side 2 as a rank has bits.
    fn classes(&self) -> RankClasses {
        xor_classes(self.ranks)
    }
}

/// The classes of a rule that XOR with any rank maps onto itself.
pub(crate) fn xor_classes(ranks: u32) -> RankClasses {
    if ranks == 1 {
        return RankClasses::cyclic(1);
    }
    let bits = ranks.ilog2() as usize;
    let radix = MixedRadix::new(&vec![2; bits]).expect("at most 31 bits");
    RankClasses::translations(radix, Coordinates::from_elem(1, bits))
}

static INFO: Info = Info::new(
    "recursive-doubling",
    "every rank exchanges all its blocks with rank XOR 1, 2, 4, ..",
    "Bruck et al. 1997, section 4 (reference 20)",
)
.performing(Collective::AllGather);

impl Algorithm for RecursiveDoubling {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let ranks = request.problem.ranks;
        if !ranks.is_power_of_two() {
            return Err(NotApplicable::Ranks { rule: "a power of two", ranks });
        }
        request.ports_per_rank()?;
        let claims = Claims {
            rearrangements: Some(0),
            ..Claims::new(ranks.ilog2().into(), request.bytes(ranks - 1))
        };
        Ok(Solution::new(request, values, Doubling { ranks }, claims))
    }
}
