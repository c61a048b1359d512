//! Demand matrices of tokens that a mixture of experts routes.

use std::fmt;
use std::str::FromStr;

use topocoll_topology::Rank;

use super::{Demand, Sizes, mixed};
use crate::{Collective, MAX_BLOCK_BYTES, Problem, ScheduleError};

/// Most ranks, whose matrix is kept.
const MOST_RANKS: u32 = 1024;

/// Most experts that all tokens together are routed to: some seconds.
const MOST_ROUTED: u64 = 1 << 26;

/// The keys after the exponent, with the largest value of each.
const KEYS: [(&str, u64); 5] = [
    ("tokens", 1 << 20),
    ("hidden", 1 << 20),
    ("experts", 1 << 16),
    ("top", 64),
    ("seed", u64::MAX),
];

/// Bytes of the numbers of a token.
const TYPES: [(&str, u64); 4] = [("fp32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1)];

/// Tokens that a mixture of experts routes, as on the command line:
/// `zipf:1.2,tokens=4096,hidden=7168,dtype=bf16,experts=256,top=8,seed=1`.
///
/// Each rank has `tokens` tokens of `hidden` numbers. A token goes to `top` different experts, drawn one
/// after the other; the i-th most popular expert has a weight of i^-exponent. The seed draws which expert is how
/// popular. Of n ranks and E experts, expert e is on rank floor(e n / E). A token is sent once to each rank
/// that has one of its experts.
#[derive(Clone, PartialEq, Debug)]
pub struct Routed {
    exponent: f64,
    /// In the order of [`KEYS`].
    values: [u64; 5],
    dtype: usize,
}

impl fmt::Display for Routed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tokens, hidden, experts, top, seed] = self.values;
        let (exponent, dtype) = (self.exponent, TYPES[self.dtype].0);
        write!(
            f,
            "zipf:{exponent},tokens={tokens},hidden={hidden},dtype={dtype},experts={experts},top={top},seed={seed}"
        )
    }
}

impl FromStr for Routed {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |key: &str, value: &str, rule: String| {
            let (key, value) = (key.to_owned(), value.to_owned());
            ScheduleError::Routed { key, value, rule }
        };
        let mut words = text.split(',');
        let first = words.next().unwrap_or_default();
        let exponent = first.strip_prefix("zipf:").unwrap_or(first);
        let number = exponent.parse().ok().filter(|number| (0.0..=10.0).contains(number));
        let rule = || refused("zipf", exponent, "an exponent from 0 to 10".to_owned());
        let exponent = number.ok_or_else(rule)?;
        let (mut values, mut dtype) = ([None; 5], None);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let twice = || refused(key, value, "a key that is given once".to_owned());
            if key == "dtype" {
                let found = TYPES.iter().position(|(name, _)| *name == value);
                let names = TYPES.map(|(name, _)| name).join(", ");
                let found = found.ok_or_else(|| refused(key, value, format!("one of {names}")))?;
                if dtype.replace(found).is_some() {
                    return Err(twice());
                }
                continue;
            }
            let Some(place) = KEYS.iter().position(|(name, _)| *name == key) else {
                let names = KEYS.map(|(name, _)| name).join(", ");
                return Err(refused(key, value, format!("the keys are {names}, dtype")));
            };
            let (least, most) = (u64::from(key != "seed"), KEYS[place].1);
            let rule = || refused(key, value, format!("a whole number from {least} to {most}"));
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            if values[place].replace(number.ok_or_else(rule)?).is_some() {
                return Err(twice());
            }
        }
        let missing = |key: &str| refused(key, "", "required".to_owned());
        let dtype = dtype.ok_or_else(|| missing("dtype"))?;
        if let Some(place) = values.iter().position(Option::is_none) {
            return Err(missing(KEYS[place].0));
        }
        let values = values.map(Option::unwrap_or_default);
        let [.., experts, top, _] = values;
        if top > experts {
            let rule = format!("at most the {experts} experts");
            return Err(refused("top", &top.to_string(), rule));
        }
        Ok(Self { exponent, values, dtype })
    }
}

impl Demand {
    /// The bytes of routed tokens among a problem's ranks. They depend on nothing else than `routed` and the
    /// number of ranks.
    ///
    /// # Errors
    /// [`ScheduleError::Routed`] for an all-gather, more than 1,024 ranks, and more than 2^26 experts of
    /// all tokens; [`ScheduleError::BlockBytes`] where a block may have more than [`MAX_BLOCK_BYTES`].
    pub fn routed(problem: &Problem, routed: &Routed) -> Result<Self, ScheduleError> {
        let [tokens, hidden, experts, top, seed] = routed.values;
        let refused = |key: &str, value: u64, rule: String| ScheduleError::Routed {
            key: key.to_owned(),
            value: value.to_string(),
            rule,
        };
        if problem.operation != Collective::AllToAll {
            let rule = "an all-to-all: tokens are sent to ranks".to_owned();
            return Err(refused("operation", 0, rule));
        }
        if problem.ranks > MOST_RANKS {
            return Err(refused("ranks", problem.ranks.into(), format!("at most {MOST_RANKS}")));
        }
        let ranks = u64::from(problem.ranks);
        if tokens * top * ranks > MOST_ROUTED {
            let rule = format!("tokens x top x {ranks} ranks are at most {MOST_ROUTED}");
            return Err(refused("tokens", tokens, rule));
        }
        let token = hidden * TYPES[routed.dtype].1;
        if tokens * token > MAX_BLOCK_BYTES {
            return Err(ScheduleError::BlockBytes(tokens * token));
        }
        let mut drawn = 0;
        let mut draw = |below: u64| {
            drawn += 1;
            ((u128::from(mixed(mixed(seed) ^ drawn)) * u128::from(below)) >> 64) as u64
        };
        let mut order: Vec<u64> = (0..experts).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, draw(i as u64 + 1) as usize);
        }
        let rank_of: Vec<usize> =
            order.into_iter().map(|expert| (expert * ranks / experts) as usize).collect();
        // Whole numbers, so that rounding is the same on all computers.
        let weight = |i: u64| ((i as f64).powf(-routed.exponent) * 2f64.powi(40)).round() as u64;
        let weights: Vec<u64> = (1..=experts).map(|i| weight(i).max(1)).collect();
        let mut before: Vec<u64> = vec![0];
        before.extend(weights.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }));
        let mut sizes = vec![0; (ranks * ranks) as usize];
        let (mut chosen, mut sent_to) = (Vec::new(), vec![u64::MAX; ranks as usize]);
        for (row, own) in sizes.chunks_mut(ranks as usize).zip((0..ranks).map(|rank| rank * tokens))
        {
            for token_of_all in own..own + tokens {
                chosen.clear();
                let mut left = before[experts as usize];
                for _ in 0..top {
                    // A place among the weights that are not chosen yet.
                    let mut place = draw(left);
                    for &expert in &chosen {
                        place += if place >= before[expert] { weights[expert] } else { 0 };
                    }
                    let expert = before.partition_point(|&sum| sum <= place) - 1;
                    chosen.insert(chosen.partition_point(|&other| other < expert), expert);
                    left -= weights[expert];
                    let to = rank_of[expert];
                    if std::mem::replace(&mut sent_to[to], token_of_all) != token_of_all {
                        row[to] += token;
                    }
                }
            }
        }
        Ok(Self::listed(problem, sizes))
    }

    /// The mean of matrices of equal problems, each size rounded up.
    ///
    /// # Panics
    /// No matrices.
    #[must_use]
    pub fn mean_of(matrices: &[Self]) -> Self {
        let first = &matrices[0];
        let columns = if first.operation == Collective::AllToAll { first.ranks } else { 1 };
        let mut sums = vec![0u128; first.ranks as usize * columns as usize];
        for matrix in matrices {
            let sizes = (0..matrix.ranks).flat_map(|rank| matrix.row(Rank(rank)));
            sums.iter_mut().zip(sizes).for_each(|(sum, bytes)| *sum += u128::from(bytes));
        }
        let count = matrices.len() as u128;
        let sizes: Vec<u64> = sums.into_iter().map(|sum| sum.div_ceil(count) as u64).collect();
        Self { sizes: Sizes::Listed(sizes.into()), ..first.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::*;

    const TEXT: &str = "zipf:1.2,tokens=64,hidden=100,dtype=bf16,experts=32,top=4,seed=1";

    fn drawn(text: &str, ranks: u32) -> Result<Demand, ScheduleError> {
        Demand::routed(&problem(Collective::AllToAll, ranks, 1), &text.parse()?)
    }

    fn rows(demand: &Demand) -> Vec<Vec<u64>> {
        (0..demand.ranks()).map(|rank| demand.row(Rank(rank)).collect()).collect()
    }

    #[test]
    fn a_token_is_sent_once_to_each_rank_of_its_experts() {
        assert_eq!(TEXT.parse::<Routed>().unwrap().to_string(), TEXT);
        let demand = drawn(TEXT, 8).unwrap();
        assert_eq!(demand, drawn(TEXT, 8).unwrap());
        assert_ne!(demand, drawn(&TEXT.replace("seed=1", "seed=2"), 8).unwrap());
        for row in rows(&demand) {
            // A token goes to 1 to 4 ranks, and at most once to each.
            assert!(row.iter().all(|bytes| bytes % 200 == 0 && *bytes <= 64 * 200));
            let tokens = row.iter().sum::<u64>() / 200;
            assert!((64..=4 * 64).contains(&tokens), "{tokens}");
        }
        // All experts of each token: every rank has one.
        let all = TEXT.replace("experts=32", "experts=4");
        assert!(rows(&drawn(&all, 4).unwrap()).iter().flatten().all(|&bytes| bytes == 64 * 200));
        // Ranks without experts receive nothing.
        let few: Vec<u64> = rows(&drawn(&all, 8).unwrap()).concat();
        assert_eq!(few.iter().filter(|&&bytes| bytes == 0).count(), 32);
    }

    #[test]
    fn popularity_follows_the_exponent() {
        let text = "zipf:1,tokens=20000,hidden=1,dtype=fp8,experts=8,top=1,seed=5";
        let mut received: Vec<u64> =
            (0..8).map(|rank| drawn(text, 8).unwrap().column(Rank(rank)).sum::<u64>()).collect();
        received.sort_unstable_by(|a, b| b.cmp(a));
        let all: f64 = (1..=8).map(|i| 1.0 / f64::from(i)).sum();
        for (i, found) in (1..).zip(received) {
            let expected = 160_000.0 / f64::from(i) / all;
            assert!((found as f64 / expected - 1.0).abs() < 0.03, "{i}: {found} of {expected}");
        }
        // Without an exponent all are equal.
        let even = drawn(&text.replace("zipf:1,", "zipf:0,"), 8).unwrap();
        let one = even.column(Rank(3)).sum::<u64>() as f64 / 20_000.0;
        assert!((one - 1.0).abs() < 0.03);
    }

    #[test]
    fn the_mean_is_rounded_up() {
        let of = |text: &str| {
            Demand::read(&problem(Collective::AllToAll, 2, 1), text.as_bytes()).unwrap()
        };
        let mean = Demand::mean_of(&[of("0 1\n2 3\n"), of("0 2\n8 3\n")]);
        assert_eq!(rows(&mean), [[0, 2], [5, 3]]);
    }

    #[test]
    fn errors_name_key_value_and_rule() {
        for (from, to, expected) in [
            ("zipf:1.2", "zipf:-1", "zipf is `-1`: an exponent from 0 to 10"),
            ("tokens=64", "tokens=0", "tokens is `0`: a whole number from 1 to 1048576"),
            ("tokens=64", "tokens=6.5", "tokens is `6.5`: a whole number from 1 to 1048576"),
            ("top=4", "top=33", "top is `33`: at most the 32 experts"),
            ("dtype=bf16", "dtype=int4", "dtype is `int4`: one of fp32, bf16, fp16, fp8"),
            (",dtype=bf16", "", "dtype is ``: required"),
            (",hidden=100", "", "hidden is ``: required"),
            ("seed=1", "seed=1,seed=1", "seed is `1`: a key that is given once"),
            (
                "seed",
                "seeds",
                "seeds is `1`: the keys are tokens, hidden, experts, top, seed, dtype",
            ),
            (
                "tokens=64",
                "tokens=1048576",
                "tokens is `1048576`: tokens x top x 64 ranks are at most 67108864",
            ),
        ] {
            let error = drawn(&TEXT.replace(from, to), 64).unwrap_err().to_string();
            assert_eq!(error, format!("demand zipf: {expected}"));
        }
        let error = drawn(TEXT, 1025).unwrap_err().to_string();
        assert_eq!(error, "demand zipf: ranks is `1025`: at most 1024");
        let gather = problem(Collective::AllGather, 8, 1);
        assert!(Demand::routed(&gather, &TEXT.parse().unwrap()).is_err());
    }
}
