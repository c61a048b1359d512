use topocoll_topology::Rank;

use crate::{Block, Problem, RankClasses, Rule, Schedule, Slot, Step};

impl Schedule {
    /// This schedule on some ranks of a machine of `ranks`: rank i of it is the i-th of `on`, the
    /// others take no part. Readers that look at links then see those of the whole machine.
    ///
    /// # Panics
    /// Not as many places as ranks, or a place that the machine lacks or that has two ranks.
    #[must_use]
    pub fn placed(&self, on: &[Rank], ranks: u32) -> Self {
        let at = places(on, self.problem.ranks, ranks);
        let rule = Placed { schedule: self.clone(), on: on.to_vec(), at };
        let problem = Problem { ranks, ..self.problem };
        Self::new(problem, self.origin.clone(), rule)
    }
}

/// By rank of a machine of `ranks`, which of the members it is that have their places `on` it.
pub(crate) fn places(on: &[Rank], members: u32, ranks: u32) -> Vec<Option<Rank>> {
    assert_eq!(on.len(), members as usize, "bug: a place for each rank");
    let mut at = vec![None; ranks as usize];
    for (rank, place) in (0..).map(Rank).zip(on) {
        let taken = at[place.index()].replace(rank);
        assert_eq!(taken, None, "bug: two ranks on {place}");
    }
    at
}

struct Placed {
    schedule: Schedule,
    on: Vec<Rank>,
    /// By rank of the machine.
    at: Vec<Option<Rank>>,
}

impl Placed {
    fn moved(&self, block: Block) -> Block {
        Block { from: self.on[block.from.index()], to: self.on[block.to.index()] }
    }
}

impl Rule for Placed {
    fn steps(&self) -> u32 {
        self.schedule.rule().steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let Some(rank) = self.at[rank.index()] else { return out.clear() };
        self.schedule.rule().step(rank, step, out);
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            transfer.peer = self.on[transfer.peer.index()];
        }
    }

    fn slots(&self) -> u64 {
        self.schedule.rule().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule
            .rule()
            .initial_block(self.at[rank.index()]?, slot)
            .map(|block| self.moved(block))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule
            .rule()
            .final_block(self.at[rank.index()]?, slot)
            .map(|block| self.moved(block))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.at.len() as u32)
    }

    fn cuts(&self) -> &[u64] {
        self.schedule.rule().cuts()
    }
}
