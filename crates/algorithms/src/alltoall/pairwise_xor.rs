//! Pairwise exchange: in round s every rank exchanges with rank XOR s (Thakur and Choudhary 1994,
//! as told by Suh and Shin 2001, section 1).
//!
//! Claim: n - 1 rounds of one block for n a power of two. On grids many rounds have link
//! contention; on a 2x4 mesh 4 of the 7 do, and 11 contention-free steps are needed (Suh and Shin,
//! Figure 1).

use topocoll_schedule::RankClasses;
use topocoll_topology::{Clusters, Rank, Shape};

use crate::allgather::recursive_doubling::xor_classes;
use crate::factor::direct_exchange::{self, DirectExchange, Partners};
use crate::{Algorithm, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct PairwiseXor;

struct Xor {
    ranks: u32,
    /// The ranks on each node, if they are equally many.
    size: u32,
}

impl Partners for Xor {
    fn to(&self, rank: Rank, round: u32) -> Rank {
        Rank(rank.0 ^ round)
    }

    fn from(&self, rank: Rank, round: u32) -> Rank {
        self.to(rank, round)
    }

    fn classes(&self) -> RankClasses {
        xor_classes(self.ranks)
    }

    fn rounds(&self) -> std::ops::Range<u32> {
        1..self.ranks
    }

    /// Nodes are XORed with the higher bits of the round.
    fn class_of_round(&self, round: u32) -> Option<u64> {
        (self.size > 1).then(|| (round / self.size).into())
    }
}

static INFO: Info = Info::new(
    "pairwise-xor",
    "every block straight to its destination, exchanged with rank XOR s in round s",
    "Thakur and Choudhary 1994 (Suh and Shin 2001, reference 17)",
);

impl Algorithm for PairwiseXor {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let problem = &request.problem;
        let ranks = problem.ranks;
        if !ranks.is_power_of_two() {
            return Err(NotApplicable::Ranks { rule: "a power of two", ranks });
        }
        let ports = request.ports_per_rank()?;
        let size = request.clusters().ok().and_then(Clusters::equal_size).unwrap_or(1);
        let mut claims = direct_exchange::claims(request, &(1..ranks), ports);
        if let Shape::Grid(grid) = request.topology.shape() {
            let sides = grid.sides().iter().copied().zip(grid.wrap().iter().copied());
            let blocks = link_load(&sides) / u128::from(ports);
            claims.link_bytes_floor = claims.bytes.max(blocks * u128::from(problem.block_bytes));
        }
        let rule = DirectExchange { ranks, ports, partners: Xor { ranks, size } };
        Ok(Solution::new(request, values, rule, claims))
    }
}

/// A floor of the sum over rounds of the busiest link's load on a grid of (side, wraps).
///
/// A round XORs coordinate x of side N with some a, independently along each side, and every line
/// carries the same traffic. Where a < N/2 or the side does not wrap, the lower half of a window
/// of 2h positions, h the top bit of a, all crosses its middle: load h. Where a > N/2 on a ring,
/// N/4 of the lower half cross the middle upwards; where a = N/2, all N/2 do. So the load takes
/// few values, and the sum of the maximum over the sides follows from how often each is not
/// exceeded.
fn link_load(sides: &(impl Iterator<Item = (u32, bool)> + Clone)) -> u128 {
    let at_most = |load: u128| -> u128 {
        sides
            .clone()
            .map(|(side, wraps)| {
                let side = u128::from(side);
                let half = side / 2;
                // The values of a with top bit h below half: h of them, of load h each; and a = 0.
                let low = if load == 0 { 1 } else { (2 << load.ilog2()).min(half.max(1)) };
                let high = match () {
                    () if side == 1 => 0,
                    () if !wraps => {
                        if load >= half {
                            half
                        } else {
                            0
                        }
                    }
                    () => {
                        let most = if load >= (side / 4).max(1) { half - 1 } else { 0 };
                        most + u128::from(load >= half)
                    }
                };
                low + high
            })
            .product()
    };
    let mut sum = 0;
    let mut below = at_most(0);
    for load in (0..32).map(|bit| 1u128 << bit) {
        let up_to = at_most(load);
        sum += load * (up_to - below);
        below = up_to;
    }
    sum
}
