//! The index algorithm of Bruck et al. 1997, section 3, for any ranks, radix and ports.
//!
//! Phase 1 rotates every rank's blocks so that slot j holds the block for rank + j. Phase 2 writes
//! j in radix r and, digit by digit, rotates the blocks whose digit x is z by z r^x ranks; k such
//! messages make a step (section 3.4). Phase 3 puts the blocks in order of their sources.
//!
//! Claim, with h = r but for the top digit, where h = ceil(n / r^(w-1)): C1 is the sum over digits
//! of ceil((h - 1) / k), and C2 the sum over digits of the largest message of each group of k
//! values 1 .. h - 1 in that order. The paper prints upper bounds: ceil((r - 1) / k) ceil(log_r n)
//! and b ceil((r - 1) / k) ceil(n / r) ceil(log_r n).

use smallvec::SmallVec;
use topocoll_schedule::{
    Block, Parameters, RankClasses, Rule, Setting, Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Rank, Route};

use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct Bruck;

/// The most ranks for which every radix is priced.
const EVERY_RADIX_UP_TO: u32 = 2048;
/// The largest radix of the subset.
const MAX_RADIX_OF_SUBSET: u64 = 1 << 20;

/// A digit of the block number j.
#[derive(Clone, Copy)]
struct Digit {
    /// r^x.
    weight: u64,
    /// h: the digit is below it.
    values: u32,
    /// The first step of its subphase.
    first_step: u32,
}

struct Index {
    ranks: u32,
    radix: u32,
    ports: u32,
    digits: SmallVec<[Digit; 8]>,
    /// Steps with messages; one more closes with Phase 3.
    steps: u32,
}

impl Index {
    fn new(ranks: u32, radix: u32, ports: u32) -> Self {
        let mut digits = SmallVec::new();
        let (mut weight, mut steps) = (1, 0);
        while weight < u64::from(ranks) {
            let values = u64::from(ranks).div_ceil(weight).min(radix.into()) as u32;
            digits.push(Digit { weight, values, first_step: steps });
            steps += (values - 1).div_ceil(ports);
            weight *= u64::from(radix);
        }
        Self { ranks, radix, ports, digits, steps }
    }

    /// The slots j whose digit is z: whole runs, and the one cut off by the number of ranks.
    fn slots_of(&self, digit: Digit, z: u32) -> SlotSet {
        let (length, period) = (digit.weight, digit.weight * u64::from(self.radix));
        let (base, ranks) = (u64::from(z) * length, u64::from(self.ranks));
        let cut = (ranks % period).saturating_sub(base).min(length);
        let (runs, cut) =
            if cut == length { (ranks / period + 1, 0) } else { (ranks / period, cut) };
        let mut set = SlotSet::default();
        if runs > 0 {
            set.push(Strided::runs(base, runs, period, length));
        }
        set.push(Strided::contiguous(base + runs * period, cut));
        set
    }

    /// C2 of one digit. The messages of the values 1 .. h - 1 never grow, so the largest of each
    /// group of k is its first; only one value may be cut short.
    fn blocks(&self, digit: Digit) -> u128 {
        let period = digit.weight * u64::from(self.radix);
        let (runs, rest) = (u64::from(self.ranks) / period, u64::from(self.ranks) % period);
        let cut_value = rest / digit.weight;
        let groups = u64::from((digit.values - 1).div_ceil(self.ports));
        // Group g opens with the value 1 + g k: those below the cut value have a run more.
        let longer = (cut_value.saturating_sub(1)).div_ceil(self.ports.into()).min(groups);
        let at_cut =
            cut_value >= 1 && (cut_value - 1) % u64::from(self.ports) == 0 && longer < groups;
        u128::from(groups) * u128::from(runs * digit.weight)
            + u128::from(longer) * u128::from(digit.weight)
            + if at_cut { u128::from(rest % digit.weight) } else { 0 }
    }
}

impl Rule for Index {
    fn steps(&self) -> u32 {
        if self.steps == 0 { 0 } else { self.steps + 1 }
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (n, r) = (u64::from(self.ranks), u64::from(rank.0));
        let contiguous = |base, count| SlotSet::of(Strided::contiguous(base, count));
        if step == 0 {
            out.copy(contiguous(r, n - r), contiguous(0, n - r));
            out.copy(contiguous(0, r), contiguous(n - r, r));
        }
        if step == self.steps {
            let descending = |base, count| SlotSet::of(Strided::descending(base, count));
            out.copy(contiguous(0, r + 1), descending(r, r + 1));
            out.copy(contiguous(r + 1, n - 1 - r), descending(n - 1, n - 1 - r));
            return;
        }
        let x = self.digits.partition_point(|digit| digit.first_step <= step) - 1;
        let digit = self.digits[x];
        let first = 1 + (step - digit.first_step) * self.ports;
        for z in first..first.saturating_add(self.ports).min(digit.values) {
            let hops = u64::from(z) * digit.weight;
            out.send(Rank(((r + hops) % n) as u32), self.slots_of(digit, z), Route::default());
            out.receive(Rank(((r + n - hops) % n) as u32), self.slots_of(digit, z));
        }
    }

    fn slots(&self) -> u64 {
        self.ranks.into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: Rank(slot as u32) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: Rank(slot as u32), to: rank })
    }

    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(self.ranks)
    }
}

static INFO: Info = Info::new(
    "bruck",
    "blocks combined and rotated one radix-r digit at a time",
    "Bruck et al. 1997, section 3",
)
.taking(&[Parameter::number("radix", "2 to the number of ranks").by_cost()]);

impl Algorithm for Bruck {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let setting = |radix| Parameters::from([("radix".to_owned(), Setting::Integer(radix))]);
        Ok(radices(request.problem.ranks).into_iter().map(setting).collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (ranks, ports) = (request.problem.ranks, request.ports_per_rank()?);
        let most = u64::from(ranks.max(2));
        let radix = values.number("radix", 2, most)?.unwrap_or(most.min(u64::from(ports) + 1));
        let index = Index::new(ranks, radix as u32, ports);
        let blocks: u128 = index.digits.iter().map(|&digit| index.blocks(digit)).sum();
        let rearrangements = Some(if index.steps == 0 { 0 } else { 2 });
        let claims =
            Claims { rearrangements, ..Claims::new(index.steps.into(), request.bytes(blocks)) };
        Ok(Solution::new(request, values, index, claims).with("radix", radix))
    }
}

/// The radices worth pricing: all of them, or beyond [`EVERY_RADIX_UP_TO`] ranks 2 to 16, the
/// powers of two, the least radix of every number of digits, and n, as far as
/// [`MAX_RADIX_OF_SUBSET`]. (Radix n is the direct exchange with two rearrangements more.)
fn radices(ranks: u32) -> Vec<u64> {
    let n = u64::from(ranks.max(2));
    if ranks <= EVERY_RADIX_UP_TO {
        return (2..=n).collect();
    }
    // The least r with r^digits >= n: a rounded root, off by one at most.
    let root = |digits: u32| {
        let near = (n as f64).powf(1.0 / f64::from(digits)) as u64;
        (near.saturating_sub(1).max(2)..)
            .find(|r| r.checked_pow(digits).is_none_or(|power| power >= n))
            .unwrap_or(n)
    };
    let mut radices: Vec<u64> =
        (2..=16).chain((5..32).map(|bit| 1 << bit)).chain((2..32).map(root)).collect();
    radices.push(n);
    radices.retain(|&radix| radix <= n.min(MAX_RADIX_OF_SUBSET));
    radices.sort_unstable();
    radices.dedup();
    radices
}
