use std::sync::Arc;

use crate::{Rank, TopologyError};

/// Some of a machine's ranks, at least one and each once, in an order of their own.
///
/// They exchange among themselves: rank i of a schedule for the subset is the i-th of them. A clone
/// shares the lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subset {
    ranks: Arc<[Rank]>,
    /// Positions in ascending order of ranks.
    sorted: Arc<[u32]>,
    machine_ranks: u32,
}

impl Subset {
    /// These ranks, in any order, of a machine of `machine_ranks`.
    ///
    /// # Errors
    /// No ranks, a rank that the machine does not have, or one that is listed twice.
    pub fn new(ranks: &[Rank], machine_ranks: u32) -> Result<Self, TopologyError> {
        if ranks.is_empty() {
            return Err("0 ranks: a subset has at least one".to_owned().into());
        }
        if let Some(&rank) = ranks.iter().find(|rank| rank.0 >= machine_ranks) {
            let last = i64::from(machine_ranks) - 1;
            return Err(format!("rank {rank}: there are ranks 0 to {last}").into());
        }
        let mut sorted: Vec<u32> = (0..ranks.len() as u32).collect();
        sorted.sort_unstable_by_key(|&i| (ranks[i as usize], i));
        let twice = sorted.windows(2).find(|two| ranks[two[0] as usize] == ranks[two[1] as usize]);
        if let Some(&[first, second]) = twice {
            let rank = ranks[first as usize];
            let positions = format!("positions {first} and {second}, counted from 0");
            return Err(format!("rank {rank} is listed at {positions}").into());
        }
        Ok(Self { ranks: ranks.into(), sorted: sorted.into(), machine_ranks })
    }

    /// The ranks, in their own order.
    #[must_use]
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// Ranks of the whole machine.
    #[must_use]
    pub fn machine_ranks(&self) -> u32 {
        self.machine_ranks
    }

    /// Whether it is all ranks of the machine in order.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        (0..self.machine_ranks).map(Rank).eq(self.ranks.iter().copied())
    }

    /// The position of a rank of the machine in the subset, if it is in it.
    #[must_use]
    pub fn position(&self, rank: Rank) -> Option<u32> {
        let at = self.sorted.binary_search_by_key(&rank, |&i| self.ranks[i as usize]);
        at.ok().map(|at| self.sorted[at])
    }
}
