use topocoll_topology::{Rank, Subset};

use crate::{Block, Problem, RankClasses, Rule, Schedule, Slot, Step};

impl Schedule {
    /// This schedule on a subset of a machine's ranks: its rank i is the i-th of the subset, and the
    /// others take no part. Readers that look at links then see those of the whole machine.
    ///
    /// # Panics
    /// A subset of another number of ranks than the schedule's.
    #[must_use]
    pub fn on_subset(&self, subset: &Subset) -> Self {
        let positions = positions(subset, self.problem.ranks);
        let rule = OnSubset { schedule: self.clone(), subset: subset.clone(), positions };
        let problem = Problem { ranks: subset.machine_ranks(), ..self.problem };
        let mut placed = Self::new(problem, self.origin.clone(), rule);
        placed.participants = self.problem.ranks;
        placed
    }
}

/// By rank of the machine, its position in a subset of `ranks`.
pub(crate) fn positions(subset: &Subset, ranks: u32) -> Vec<Option<Rank>> {
    assert_eq!(subset.ranks().len(), ranks as usize, "a subset of as many ranks");
    let mut positions = vec![None; subset.machine_ranks() as usize];
    for (position, rank) in (0..).map(Rank).zip(subset.ranks()) {
        positions[rank.index()] = Some(position);
    }
    positions
}

struct OnSubset {
    schedule: Schedule,
    subset: Subset,
    /// By rank of the machine, its position in the subset.
    positions: Vec<Option<Rank>>,
}

impl OnSubset {
    fn moved(&self, block: Block) -> Block {
        let ranks = self.subset.ranks();
        Block { from: ranks[block.from.index()], to: ranks[block.to.index()] }
    }
}

impl Rule for OnSubset {
    fn steps(&self) -> u32 {
        self.schedule.rule().steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let Some(rank) = self.positions[rank.index()] else { return out.clear() };
        self.schedule.rule().step(rank, step, out);
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            transfer.peer = self.subset.ranks()[transfer.peer.index()];
        }
    }

    fn slots(&self) -> u64 {
        self.schedule.rule().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule
            .rule()
            .initial_block(self.positions[rank.index()]?, slot)
            .map(|block| self.moved(block))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule
            .rule()
            .final_block(self.positions[rank.index()]?, slot)
            .map(|block| self.moved(block))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.positions.len() as u32)
    }

    fn cuts(&self) -> &[u64] {
        self.schedule.rule().cuts()
    }
}
