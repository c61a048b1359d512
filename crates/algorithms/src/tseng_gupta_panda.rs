//! Complete exchange on a 2^d x 2^d torus (Tseng, Gupta and Panda 1995, as told by Suh and Shin
//! 2001, section 1): ranks are partitioned into four groups, exchange inside their group, rearrange,
//! and exchange with ranks of other groups.
//!
//! The groups are the four parities of row and column. No text at hand gives the partners; this
//! is the [cyclic exchange](crate::cyclic_exchange) inside each group, a torus of side 2^(d-1) and
//! stride 2, where a block goes bits of its distance around the ring instead of to mirror places:
//! the two groups that share a line go opposite ways, and each covers all links of its way once.
//! Two steps of distance 1 follow, along rows and along columns.
//!
//! Claim, for d >= 2, all as Suh and Shin print it (Table 2): 2^(d-1) + 2 steps,
//! 2^(3d-2) + 2^(2d) blocks, (2^(2d-1) + 10)/3 hops, 2^(d-1) + 1 rearrangements of P blocks, no link
//! shared. For d = 1 the two last steps alone.

use topocoll_schedule::{Parameters, Problem, Schedule};
use topocoll_topology::Topology;

use crate::cyclic_exchange::Cyclic;
use crate::parameters::{check, origin};
use crate::squares::Square;
use crate::{Algorithm, Claims, NotApplicable};

pub(crate) struct TsengGuptaPanda;

impl TsengGuptaPanda {
    fn rule(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Cyclic, NotApplicable> {
        check(self, problem, given)?;
        Ok(Cyclic { square: Square::of(topology, Some(true))? })
    }
}

impl Algorithm for TsengGuptaPanda {
    fn name(&self) -> &'static str {
        "tseng-gupta-panda"
    }

    fn summary(&self) -> &'static str {
        "cyclic exchange inside four groups by parity, then between them"
    }

    fn source(&self) -> &'static str {
        "Tseng, Gupta and Panda 1995, as told by Suh and Shin 2001"
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        let rule = self.rule(problem, topology, given)?;
        Ok(Schedule::new(*problem, origin(self, Parameters::new()), rule))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        Ok(self.rule(problem, topology, given)?.claims(problem))
    }
}
