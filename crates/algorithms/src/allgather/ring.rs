//! All-gather around a ring: every rank forwards the block received last.
//!
//! Claim: n - 1 steps of one block, through one port: the least volume with the most startups.
//! Listed beside `concat` for comparison. On a torus of one dimension every step goes to a
//! neighbour.

use topocoll_schedule::{Block, Collective, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct Ring;

struct Passing {
    ranks: u32,
}

impl Rule for Passing {
    fn steps(&self) -> u32 {
        self.ranks - 1
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let n = u64::from(self.ranks);
        let at = |hops: u64| Rank(((u64::from(rank.0) + hops) % n) as u32);
        let slot = |slot: u32| SlotSet::of(Strided::contiguous(slot.into(), 1));
        out.send(at(1), slot(step), Route::default());
        out.receive(at(n - 1), slot(step + 1));
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    /// Slot t is for the block of rank - t.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == 0).then_some(Block::of(rank))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let n = u64::from(self.ranks);
        Some(Block::of(Rank(((u64::from(rank.0) + n - slot) % n) as u32)))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(self.ranks)
    }
}

static INFO: Info =
    Info::new("ring", "every rank forwards to the next the block received last", "folklore")
        .performing(Collective::AllGather);

impl Algorithm for Ring {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        request.ports_per_rank()?;
        let ranks = request.problem.ranks;
        let steps = ranks - 1;
        let claims =
            Claims { rearrangements: Some(0), ..Claims::new(steps.into(), request.bytes(steps)) };
        Ok(Solution::new(request, values, Passing { ranks }, claims))
    }
}
