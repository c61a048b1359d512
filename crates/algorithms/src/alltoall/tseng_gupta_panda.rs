//! Complete exchange on a 2^d x 2^d torus (Tseng, Gupta and Panda 1995, as told by Suh and Shin
//! 2001, section 1): ranks are partitioned into four groups, exchange within their group,
//! rearrange, and exchange with ranks of other groups.
//!
//! The groups are the four parities of row and column. No text at hand gives the partners; this is
//! the [cyclic exchange](crate::cyclic_exchange) within each group, a torus of side 2^(d-1) and
//! stride 2, where a block goes bits of its distance around the ring instead of to mirror places:
//! the two groups on a line go in opposite directions, and each covers all links of its direction
//! once. Two steps of distance 1 follow, along rows and along columns.
//!
//! Claim, for d >= 2, all as Suh and Shin print it (Table 2): 2^(d-1) + 2 steps, 2^(3d-2) + 2^(2d)
//! blocks, (2^(2d-1) + 10)/3 hops, 2^(d-1) + 1 rearrangements of P blocks, no link contention. For
//! d = 1 the two last steps alone.

use crate::alltoall::cyclic_exchange::Cyclic;
use crate::layout::square_grid::SquareGrid;
use crate::{Algorithm, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct TsengGuptaPanda;

static INFO: Info = Info::new(
    "tseng-gupta-panda",
    "cyclic exchange within four groups by parity, then between the groups",
    "Tseng, Gupta and Panda 1995, as told by Suh and Shin 2001",
);

impl Algorithm for TsengGuptaPanda {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let rule = Cyclic { square: SquareGrid::of(request, Some(true))? };
        let claims = rule.claims(&request.problem);
        Ok(Solution::new(request, values, rule, claims))
    }
}
