//! The neighbor exchange of Open MPI's all-gather (Chen et al. 2005), for an even number of ranks. Rank 2q
//! exchanges with rank 2q + 1, then with rank 2q - 1, and so on in turns: first its own block, then the two
//! blocks that the step before brought.

use topocoll_schedule::{
    Block, Origin, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, MixedRadix, Rank, Route};

pub(super) const NAME: &str = "neighbor-exchange";

struct Neighbor {
    ranks: u32,
}

/// The schedule of an all-gather.
pub(super) fn schedule(problem: &Problem) -> Schedule {
    let origin = Origin { algorithm: NAME.to_owned(), parameters: Parameters::new() };
    Schedule::new(*problem, origin, Neighbor { ranks: problem.ranks })
}

impl Rule for Neighbor {
    fn steps(&self) -> u32 {
        self.ranks / 2
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let upwards = rank.0.is_multiple_of(2) == step.is_multiple_of(2);
        let by = if upwards { 1 } else { self.ranks - 1 };
        let peer = Rank((rank.0 + by) % self.ranks);
        let slots = |first: u32, number| SlotSet::of(Strided::contiguous(first.into(), number));
        let (sent, brought) = match step {
            0 => (slots(rank.0 % 2, 1), slots(peer.0 % 2, 1)),
            _ => (slots(2 * step - 2, 2), slots(2 * step, 2)),
        };
        out.send(peer, sent, Route::default());
        out.receive(peer, brought);
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == Slot::from(rank.0 % 2)).then_some(Block::of(rank))
    }

    /// Step s brings the blocks of a pair of ranks: the one s / 2 after its own, or (s + 1) / 2 before it.
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (pairs, step) = (self.ranks / 2, slot as u32 / 2);
        let away = step.div_ceil(2);
        let after = rank.0.is_multiple_of(2) == step.is_multiple_of(2);
        let pair = (rank.0 / 2 + if after { away } else { pairs - away }) % pairs;
        Some(Block::of(Rank(2 * pair + slot as u32 % 2)))
    }

    fn classes(&self) -> RankClasses {
        let radix = MixedRadix::new(&[self.ranks / 2, 2]).expect("bug: a pair of ranks");
        RankClasses::translations(radix, Coordinates::from_slice(&[1, 2]))
    }

    fn class_of_step(&self, step: u32) -> Option<u64> {
        Some(if step == 0 { 0 } else { 1 + u64::from(step % 2) })
    }
}

#[cfg(test)]
mod tests {
    use topocoll_schedule::Collective;

    use super::*;
    use crate::{Exchange, machine};

    #[test]
    fn every_rank_gets_every_block() {
        for ranks in [2, 4, 6, 10, 16, 34] {
            let machine = machine(&format!("full:{ranks}")).unwrap();
            let problem = Problem::new(Collective::AllGather, ranks, machine.ports, 8).unwrap();
            let exchange = Exchange::new(&machine, &problem).unwrap();
            for method in [topocoll_analysis::Method::Replay, topocoll_analysis::Method::Classes] {
                let found = exchange.verify(&schedule(&problem), Some(method)).unwrap();
                assert_eq!(found.violation, None, "{ranks}");
                let counts = (found.counts.steps, found.counts.bytes);
                assert_eq!(counts, (u64::from(ranks / 2), 8 * u128::from(ranks - 1)));
            }
        }
    }
}
