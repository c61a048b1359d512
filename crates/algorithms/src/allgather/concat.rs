//! The concatenation algorithm of Bruck et al. 1997, section 4, for any ranks, ports and block.
//!
//! With d = ceil(log_(k+1) n) and n1 = (k+1)^(d-1), the first d - 1 rounds run on a circulant
//! graph: in round r every rank sends all its blocks to the ranks j (k+1)^r further, j = 1 .. k,
//! and holds the n1 blocks up to its own afterwards (Theorem 4.1, with negative offsets as in
//! Figure 9). The last round is a table of b rows, the bytes, and n2 = n - n1 columns, the ranks
//! still to be reached: its entries are divided among the k ports, and a port whose leftmost column
//! is L takes them from L ranks back, which holds n1 columns from there. So an area may span n1
//! columns at most.
//!
//! Claim: ceil(log_(k+1) n) steps and ceil(b (n - 1) / k) bytes, both optimal (Theorem 4.3), outside
//! the special range; at k = 1 and n a power of two this is the form of the IBM disclosure of 1993.
//! With k >= n - 1 it is one round of single blocks.
//!
//! # The table
//! The table is cut in column order, so an area is one contiguous run of bytes. The paper's cut
//! gives every port ceil(b n2 / k) bytes as long as there are any (Table 1), or as many as n1
//! columns hold; where columns remain, the even cut after floor(m b n2 / k) bytes is tried. With s
//! = (k+1)^d - n that one succeeds whenever (k - s) divides k: its areas then form k - s chains in
//! which neighbours share one column, which the even cut divides (14 ranks, 3 ports, 3 bytes: 2
//! rounds, 13 bytes). So the special range is narrower than Proposition 4.2 has it.
//!
//! # The special range
//! Where both cuts fail, `last=rounds` keeps the steps optimal with at most b - 1 bytes more: areas
//! as large as they may be, by the least excess with which they cover the table. `last=bytes` keeps
//! the bytes optimal with one round more: first the columns that k divides, whole, then the fewer
//! than k others, whose areas span two columns at most (section 4.2, Remark). Outside the range both settings
//! are the schedule that is optimal in both.

use smallvec::SmallVec;
use topocoll_schedule::{
    Block, Collective, Parameters, Part, Problem, RankClasses, Rule, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Rank, Route};

use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct Concat;

/// The most ports: a plan keeps an area for each.
const MAX_PORTS: u32 = 1 << 16;

/// The bytes that one port sends in a closing round: bytes `first..end` of the blocks in slots
/// counted from the leftmost column, which is also how many ranks further they go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Area {
    /// The leftmost column touched.
    column: u64,
    /// The first byte, counted from the top of that column.
    first: u64,
    /// One past the last byte, counted likewise.
    end: u64,
}

struct Rounds {
    ranks: u32,
    ports: u32,
    block_bytes: u64,
    /// Rounds on the circulant graph, d - 1.
    doubling: u32,
    /// The areas of each closing round.
    closing: SmallVec<[Vec<Area>; 2]>,
    cuts: Vec<u64>,
    /// Whether neither measure could be optimal with the other.
    special: bool,
}

impl Rounds {
    fn new(problem: &Problem, ports: u32, few_rounds: bool) -> Self {
        let (n, k, b) = (u64::from(problem.ranks), u64::from(ports), problem.block_bytes);
        let (mut doubling, mut held) = (0, 1u64);
        while held * (k + 1) < n {
            held *= k + 1;
            doubling += 1;
        }
        let mut closing = SmallVec::new();
        let mut special = false;
        if n > 1 {
            match optimal(held, n, k, b) {
                Some(areas) => closing.push(areas),
                None => {
                    special = true;
                    if few_rounds {
                        closing.push(least_excess(held, n, k, b));
                    } else {
                        let reached = n - (n - held) % k;
                        for (from, to) in [(held, reached), (reached, n)] {
                            closing.push(
                                optimal(from, to, k, b).expect("bug: columns that ports divide"),
                            );
                        }
                    }
                }
            }
        }
        let mut cuts: Vec<u64> =
            closing.iter().flatten().flat_map(|area: &Area| [area.first, area.end % b]).collect();
        cuts.retain(|&cut| cut > 0);
        cuts.sort_unstable();
        cuts.dedup();
        Self { ranks: problem.ranks, ports, block_bytes: b, doubling, closing, cuts, special }
    }

    /// C2: the blocks held before each round, then the largest area of each closing round.
    fn bytes(&self) -> u128 {
        let held: u128 =
            (0..self.doubling).map(|round| (u128::from(self.ports) + 1).pow(round)).sum();
        let closing: u64 = self
            .closing
            .iter()
            .map(|areas| areas.iter().map(|area| area.end - area.first).max().unwrap_or(0))
            .sum();
        held * u128::from(self.block_bytes) + u128::from(closing)
    }

    /// The slots of an area from slot `from` on, as runs of whole blocks and the parts at its ends.
    fn slots(&self, area: Area, from: Slot) -> SlotSet {
        let b = self.block_bytes;
        let mut set = SlotSet::default();
        let mut push = |column: u64, count: u64, first: u64, end: u64| {
            let part =
                if (first, end) == (0, b) { Part::Whole } else { Part::Bytes { first, end } };
            set.push_part(Strided::contiguous(from + column, count), part);
        };
        let (last, rest) = (area.end / b, area.end % b);
        if last == 0 {
            push(0, 1, area.first, area.end);
            return set;
        }
        let whole = u64::from(area.first > 0);
        if whole == 1 {
            push(0, 1, area.first, b);
        }
        push(whole, last - whole, 0, b);
        if rest > 0 {
            push(last, 1, 0, rest);
        }
        set
    }
}

/// Cuts the columns `held..n` into areas for k ports within `held` columns each, all of the least
/// size that k ports can divide them into; none if neither the paper's cut nor the even one does.
fn optimal(held: u64, n: u64, k: u64, b: u64) -> Option<Vec<Area>> {
    let bytes = u128::from(b) * u128::from(n - held);
    let even = || {
        let cuts: Vec<u128> = (0..=k).map(|m| bytes * u128::from(m) / u128::from(k)).collect();
        let used = cuts.windows(2).filter(|cut| cut[0] < cut[1]);
        let areas: Vec<Area> = used.map(|cut| area(held, b, cut[0], cut[1])).collect();
        areas.iter().all(|area| area.end.div_ceil(b) <= held).then_some(areas)
    };
    cover(held, n, k, b, bytes.div_ceil(k.into())).or_else(even)
}

/// The paper's cut: areas of `size` bytes in column order, each ending earlier where it would span
/// more than `held` columns; none if k of them do not cover the columns `held..n`.
fn cover(held: u64, n: u64, k: u64, b: u64, size: u128) -> Option<Vec<Area>> {
    let bytes = u128::from(b) * u128::from(n - held);
    let (mut areas, mut at) = (Vec::new(), 0);
    while at < bytes && areas.len() < k as usize {
        let columns_end = (at / u128::from(b) + u128::from(held)) * u128::from(b);
        let end = (at + size).min(columns_end).min(bytes);
        areas.push(area(held, b, at, end));
        at = end;
    }
    (at == bytes).then_some(areas)
}

/// The area of the table's bytes `first..end` in column order.
fn area(held: u64, b: u64, first: u128, end: u128) -> Area {
    let column = (first / u128::from(b)) as u64;
    let top = u128::from(column) * u128::from(b);
    Area { column: held + column, first: (first - top) as u64, end: (end - top) as u64 }
}

/// Areas by the least size with which k of them cover the table. Whole columns do with b - 1 bytes
/// more than the least at most.
fn least_excess(held: u64, n: u64, k: u64, b: u64) -> Vec<Area> {
    let least = (u128::from(b) * u128::from(n - held)).div_ceil(k.into());
    // If a size covers, any larger size does.
    let (mut low, mut high) = (least, least + u128::from(b) - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if cover(held, n, k, b, middle).is_some() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    cover(held, n, k, b, low).expect("bug: whole columns cover the table")
}

impl Rule for Rounds {
    fn steps(&self) -> u32 {
        self.doubling + self.closing.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (n, r) = (u64::from(self.ranks), u64::from(rank.0));
        let ahead = |hops: u64| Rank(((r + hops) % n) as u32);
        let behind = |hops: u64| Rank(((r + n - hops) % n) as u32);
        if step < self.doubling {
            let held = (u64::from(self.ports) + 1).pow(step);
            for hops in (1..=u64::from(self.ports)).map(|j| j * held) {
                out.send(ahead(hops), SlotSet::of(Strided::contiguous(0, held)), Route::default());
                out.receive(behind(hops), SlotSet::of(Strided::contiguous(hops, held)));
            }
            return;
        }
        for &area in &self.closing[(step - self.doubling) as usize] {
            out.send(ahead(area.column), self.slots(area, 0), Route::default());
            out.receive(behind(area.column), self.slots(area, area.column));
        }
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    /// Slot t is for the block of rank - t.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot == 0).then_some(Block::of(rank))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let n = u64::from(self.ranks);
        Some(Block::of(Rank(((u64::from(rank.0) + n - slot) % n) as u32)))
    }

    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(self.ranks)
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }
}

static INFO: Info = Info::new(
    "concat",
    "blocks multiplied by k + 1 in each round on a circulant graph, the last round's bytes divided among the ports",
    "Bruck et al. 1997, section 4; IBM disclosure 1993 (k = 1)",
)
.performing(Collective::AllGather)
.with_internal(&[Parameter::words(
    "last",
    &[
        ("rounds", "fewest steps in the special range, where no schedule is optimal in both"),
        ("bytes", "least volume there"),
    ],
)
.by_cost()]);

impl Algorithm for Concat {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let concat = Rounds::new(&request.problem, request.ports_per_rank()?.min(MAX_PORTS), true);
        Ok(if concat.special { self.info().combinations() } else { vec![Parameters::new()] })
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let ports = request.ports_per_rank()?;
        if ports > MAX_PORTS {
            return Err(NotApplicable::Ports { most: MAX_PORTS, ports });
        }
        let concat = Rounds::new(&request.problem, ports, values.is("last", "rounds"));
        let claims = Claims {
            rearrangements: Some(0),
            ..Claims::new(concat.steps().into(), concat.bytes())
        };
        let special = concat.special;
        let solution = Solution::new(request, values, concat, claims);
        Ok(if special { solution } else { solution.without("last") })
    }
}
