use std::sync::Arc;

use topocoll_topology::Rank;

use crate::PlanError;

/// Ranks of a larger machine that exchange among themselves, in an order of their own: block i is
/// for the i-th. Made once for all their plans, which share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    ranks: Arc<[Rank]>,
    /// Positions in the order of ranks.
    sorted: Arc<[u32]>,
}

impl Members {
    /// These ranks of a machine that has `ranks`, in any order.
    ///
    /// # Errors
    /// [`PlanError::Rank`] for a rank that the machine does not have, [`PlanError::Twice`] for one
    /// that is listed twice.
    pub fn new(members: &[Rank], ranks: u32) -> Result<Self, PlanError> {
        if let Some(&rank) = members.iter().find(|member| member.0 >= ranks) {
            return Err(PlanError::Rank { rank, ranks });
        }
        let mut sorted: Vec<u32> = (0..members.len() as u32).collect();
        sorted.sort_unstable_by_key(|&i| (members[i as usize], i));
        let twice =
            sorted.windows(2).find(|two| members[two[0] as usize] == members[two[1] as usize]);
        if let Some(&[first, second]) = twice {
            return Err(PlanError::Twice {
                rank: members[first as usize],
                places: (first, second),
            });
        }
        Ok(Self { ranks: members.into(), sorted: sorted.into() })
    }

    /// The ranks, in their own order.
    #[must_use]
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// Where a rank of the machine stands among them.
    #[must_use]
    pub fn position(&self, rank: Rank) -> Option<u32> {
        let at = self.sorted.binary_search_by_key(&rank, |&i| self.ranks[i as usize]);
        at.ok().map(|at| self.sorted[at])
    }
}
