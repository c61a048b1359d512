//! 1-factorization of the complete graph (Sanders and Traeff 2002, section 2, Lemma 1).
//!
//! For an odd number p of ranks, factor i pairs u with (i - u) mod p; the self-loop of u lies in
//! factor 2u mod p, so in every round one rank is idle. For even p the construction is made on
//! p - 1 ranks and the idle one pairs with the last, which concentrates all self-loops in one more
//! factor that needs no message (the paper's small modification).
//!
//! Claim: p rounds for odd p, p - 1 for even p, of one block each, every round an exchange
//! between pairs.

use topocoll_schedule::RankClasses;
use topocoll_topology::{Rank, Shape};

use crate::factor::direct_exchange::{self, DirectExchange, Partners};
use crate::{Algorithm, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct OneFactor;

pub(crate) struct Factors {
    pub(crate) ranks: u32,
}

impl Partners for Factors {
    fn to(&self, rank: Rank, round: u32) -> Rank {
        if self.ranks % 2 == 1 {
            return Rank(reflected(rank.0, round, self.ranks));
        }
        let last = self.ranks - 1;
        match (round == last, rank.0 == last) {
            (true, _) => rank,
            // 2u = round (mod p - 1), and p/2 is the inverse of 2.
            (false, true) => {
                Rank((u64::from(round) * u64::from(self.ranks / 2) % u64::from(last)) as u32)
            }
            (false, false) => match reflected(rank.0, round, last) {
                partner if partner == rank.0 => Rank(last),
                partner => Rank(partner),
            },
        }
    }

    fn from(&self, rank: Rank, round: u32) -> Rank {
        self.to(rank, round)
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.ranks)
    }

    fn rounds(&self) -> std::ops::Range<u32> {
        0..if self.ranks % 2 == 1 && self.ranks > 1 { self.ranks } else { self.ranks - 1 }
    }
}

/// `(i - u) mod modulus`.
fn reflected(u: u32, i: u32, modulus: u32) -> u32 {
    if u <= i { i - u } else { modulus - (u - i) }
}

static INFO: Info = Info::new(
    "one-factor",
    "every block straight to its destination, the pairs of a round a factor of the complete graph",
    "Sanders and Traeff 2002, section 2",
);

impl Algorithm for OneFactor {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, ports) = (&request.problem, request.ports_per_rank()?);
        let partners = Factors { ranks: problem.ranks };
        let mut claims = direct_exchange::claims(request, &partners.rounds(), ports);
        if let Shape::Grid(grid) = request.topology.shape() {
            let blocks = u128::from(claims.steps) * least_load(grid.sides()[0], problem.ranks);
            claims.link_bytes_floor = claims.bytes.max(blocks * u128::from(problem.block_bytes));
        }
        Ok(Solution::new(
            request,
            values,
            DirectExchange { ranks: problem.ranks, ports, partners },
            claims,
        ))
    }
}

/// A floor of the busiest link's load in every round on a grid of slowest side N: N/4, wherever
/// there are four lines along it.
///
/// At most one coordinate of the faster sides (that of the round's number) mixes two reflections,
/// and at most two ranks pair outside them; so on some line along the slowest side every position
/// x sends to K - x (mod N), and floor(N/4) messages or more cross one of the two mirrors.
pub(crate) fn least_load(side: u32, ranks: u32) -> u128 {
    if ranks / side >= 4 { u128::from(side / 4) } else { 1 }
}
