//! Direct exchange in cyclic order: in round s every rank sends to rank + s.
//!
//! Claim: ceil((n - 1) / k) steps of one block each, both optimal together (Bruck et al. 1997,
//! Propositions 2.4 and Theorem 2.6; it is their index algorithm at radix n without its local
//! phases, the special case of section 3.3).

use topocoll_schedule::RankClasses;
use topocoll_topology::{Rank, Shape};

use crate::factor::direct_exchange::{self, DirectExchange, Partners};
use crate::{Algorithm, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct Direct;

struct Cyclic {
    ranks: u32,
}

impl Partners for Cyclic {
    fn to(&self, rank: Rank, round: u32) -> Rank {
        // Both are below the number of ranks, and their sum may be too large for u32.
        let to = u64::from(rank.0) + u64::from(round);
        let ranks = u64::from(self.ranks);
        Rank(if to < ranks { to } else { to - ranks } as u32)
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

static INFO: Info = Info::new(
    "direct",
    "every block straight to its destination, to rank + s in round s",
    "Bruck et al. 1997, section 3.3 (radix n)",
);

impl Algorithm for Direct {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, ports) = (&request.problem, request.ports_per_rank()?);
        let mut claims = direct_exchange::claims(request, &(1..problem.ranks), ports);
        if let Shape::Grid(grid) = request.topology.shape() {
            let blocks = link_load(grid.sides()) / u128::from(ports);
            claims.link_bytes_floor = claims.bytes.max(blocks * u128::from(problem.block_bytes));
        }
        let ranks = problem.ranks;
        let rule = DirectExchange { ranks, ports, partners: Cyclic { ranks } };
        Ok(Solution::new(request, values, rule, claims))
    }
}

/// A floor of the sum over rounds of the busiest link's load on a grid with these sides.
///
/// Round s moves coordinate x of side N by some d, the same for all ranks of the lines that no
/// carry from faster sides enters: then the link contention is min(d, N - d) there, whether the
/// side wraps or not. Over all rounds every combination of d occurs once, so the sum of the maximum
/// over the sides follows from how often it is at most v: the product of min(N, 2v + 1).
pub(crate) fn link_load(sides: &[u32]) -> u128 {
    /// The most values of v; between two of them the later, smaller term is used for all.
    const TERMS: u128 = 1 << 14;
    let ranks: u128 = sides.iter().map(|&side| u128::from(side)).product();
    let most = sides.iter().map(|&side| u128::from(side / 2)).max().unwrap_or(0);
    let stride = most.div_ceil(TERMS).max(1);
    let above = |v: u128| {
        ranks - sides.iter().map(|&side| u128::from(side).min(2 * v + 1)).product::<u128>()
    };
    (1..=most / stride).map(|i| stride * above(i * stride - 1)).sum()
}
