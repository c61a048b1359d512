//! All-gather on a hypercube: in step i every rank exchanges all it has with rank XOR 2^i.
//!
//! Claim: log2 n steps and n - 1 blocks for n a power of two, both optimal at one port (Bruck et
//! al. 1997, section 4, the second known algorithm). Listed beside `concat` for comparison.

use topocoll_schedule::{
    Block, Collective, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step,
    Strided,
};
use topocoll_topology::{Coordinates, MixedRadix, Rank, Route, Topology};

use crate::parameters::{check, origin, ports_per_rank};
use crate::{Algorithm, Claims, NotApplicable};

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

impl Algorithm for RecursiveDoubling {
    fn name(&self) -> &'static str {
        "recursive-doubling"
    }

    fn summary(&self) -> &'static str {
        "every rank exchanges all it has with rank XOR 1, 2, 4, .."
    }

    fn source(&self) -> &'static str {
        "Bruck et al. 1997, section 4 (reference 20)"
    }

    fn operation(&self) -> Collective {
        Collective::AllGather
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        self.claims(problem, topology, given)?;
        Ok(Schedule::new(
            *problem,
            origin(self, Parameters::new()),
            Doubling { ranks: problem.ranks },
        ))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        check(self, problem, given)?;
        if !problem.ranks.is_power_of_two() {
            return Err(NotApplicable::Ranks { rule: "a power of two", ranks: problem.ranks });
        }
        ports_per_rank(problem, topology)?;
        let bytes = u128::from(problem.ranks - 1) * u128::from(problem.block_bytes);
        Ok(Claims { rearrangements: Some(0), ..Claims::new(problem.ranks.ilog2().into(), bytes) })
    }
}
