//! All-gather by the folklore algorithm: gather to rank 0 along a binomial tree, then broadcast
//! along the same tree (Bruck et al. 1997, section 4, the first known algorithm).
//!
//! Claim: 2 ceil(log2 n) steps at one port. The gathering moves n - 1 blocks. The paper charges the
//! broadcast n - 1 as well, but each of its ceil(log2 n) steps carries all blocks missing in the
//! receiver's subtree, n - 2^i blocks in the step over distance 2^i, more where the subtree is cut
//! off by the number of ranks. Listed beside `concat` for comparison.

use topocoll_schedule::{Block, Collective, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct GatherBroadcast;

struct Tree {
    ranks: u32,
}

impl Tree {
    /// Steps of each half: `ceil(log2 n)`.
    fn height(&self) -> u32 {
        u64::from(self.ranks).next_power_of_two().ilog2()
    }

    /// Ranks of the subtree that `rank` roots below an edge of length `distance`.
    fn subtree(&self, rank: u64, distance: u64) -> u64 {
        distance.min(u64::from(self.ranks) - rank)
    }

    /// The lower rank of the edge of length `distance` that ends at `rank`, and the upper one.
    fn edge(&self, rank: u64, distance: u64) -> Option<(u64, u64)> {
        let (lower, upper) = match rank % (2 * distance) {
            0 => (rank, rank + distance),
            r if r == distance => (rank - distance, rank),
            _ => return None,
        };
        (upper < u64::from(self.ranks)).then_some((lower, upper))
    }

    /// The most blocks that a broadcast message over `distance` carries: to the last subtree, the
    /// one that may be cut off.
    fn broadcast_blocks(&self, distance: u64) -> u64 {
        let n = u64::from(self.ranks);
        let last = (n - 1 - distance) / (2 * distance) * (2 * distance) + distance;
        n - self.subtree(last, distance)
    }
}

impl Rule for Tree {
    fn steps(&self) -> u32 {
        2 * self.height()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let height = self.height();
        let gathers = step < height;
        let distance = 1 << if gathers { step } else { 2 * height - 1 - step };
        let Some((lower, upper)) = self.edge(rank.0.into(), distance) else { return };
        let (n, held) = (u64::from(self.ranks), self.subtree(upper, distance));
        let mut slots = SlotSet::default();
        if gathers {
            slots.push(Strided::contiguous(upper, held));
        } else {
            slots.push(Strided::contiguous(0, upper));
            slots.push(Strided::contiguous(upper + held, n - upper - held));
        }
        // Up the tree when gathering, down when broadcasting.
        let (from, to) = if gathers { (upper, lower) } else { (lower, upper) };
        if u64::from(rank.0) == from {
            out.send(Rank(to as u32), slots, Route::default());
        } else {
            out.receive(Rank(from as u32), slots);
        }
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    /// Slot t is for the block of rank t.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == u64::from(rank.0)).then_some(Block::of(rank))
    }

    fn final_block(&self, _rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block::of(Rank(slot as u32)))
    }
}

static INFO: Info = Info::new(
    "gather-broadcast",
    "all blocks gathered at rank 0 along a binomial tree, and broadcast along it",
    "folklore (Bruck et al. 1997, section 4)",
)
.performing(Collective::AllGather);

impl Algorithm for GatherBroadcast {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        request.ports_per_rank()?;
        let tree = Tree { ranks: request.problem.ranks };
        let gathered = u64::from(tree.ranks) - 1;
        let broadcast: u64 = (0..tree.height()).map(|i| tree.broadcast_blocks(1 << i)).sum();
        let claims = Claims {
            rearrangements: Some(0),
            ..Claims::new(tree.steps().into(), request.bytes(gathered + broadcast))
        };
        Ok(Solution::new(request, values, tree, claims))
    }
}
