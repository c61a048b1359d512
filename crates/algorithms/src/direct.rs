//! Direct exchange in cyclic order: in round s every rank sends to rank + s.
//!
//! Claim: ceil((n - 1) / k) steps of one block each, both optimal together (Bruck et al. 1997,
//! Propositions 2.4 and Theorem 2.6; it is their index algorithm at radix n without its local
//! phases, the special case of section 3.3).

use topocoll_schedule::{Parameters, Problem, RankClasses, Schedule};
use topocoll_topology::{Rank, Topology};

use crate::parameters::{check, origin, ports_per_rank};
use crate::rounds::{self, Partners, Rounds};
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct Direct;

struct Cyclic {
    ranks: u32,
}

impl Partners for Cyclic {
    fn to(&self, rank: Rank, round: u32) -> Rank {
        Rank(((u64::from(rank.0) + u64::from(round)) % u64::from(self.ranks)) as u32)
    }

    fn from(&self, rank: Rank, round: u32) -> Rank {
        self.to(rank, self.ranks - round)
    }

    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(self.ranks)
    }

    fn rounds(&self) -> std::ops::Range<u32> {
        1..self.ranks
    }
}

impl Algorithm for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn summary(&self) -> &'static str {
        "every block straight to its destination, to rank + s in round s"
    }

    fn source(&self) -> &'static str {
        "Bruck et al. 1997, section 3.3 (radix n)"
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        check(self, problem, given)?;
        let ports = ports_per_rank(problem, topology)?;
        let rule =
            Rounds { ranks: problem.ranks, ports, partners: Cyclic { ranks: problem.ranks } };
        Ok(Schedule::new(*problem, origin(self, Parameters::new()), rule))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        check(self, problem, given)?;
        Ok(rounds::claims(
            problem,
            topology,
            &(1..problem.ranks),
            ports_per_rank(problem, topology)?,
        ))
    }
}
