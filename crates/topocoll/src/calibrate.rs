//! Measures exchanges by the threaded driver, and fits the terms of the steps model.
//!
//! P ranks on T threads take P/T times as long as one, so a machine of P such ranks has the fitted
//! values times P/T. Starting and ending threads is a fixed cost of an exchange, independent of the
//! algorithm.

use serde::{Deserialize, Serialize};
use topocoll_algorithms::Solution;
use topocoll_analysis::check_memory;
use topocoll_exec::{ThreadedDriver, pattern, plan_all, worthwhile_threads};
use topocoll_schedule::{Collective, Origin, Parameters, Problem, Schedule};
use topocoll_topology::spec::write_file;
use topocoll_topology::text::printable;
use topocoll_topology::{Machine, PerClass, Timing};

use crate::{Error, Exchange, machine};

/// One setting of an algorithm, measured and counted.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sample {
    /// Ranks, fully connected.
    pub ranks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Threads that moved them.
    pub threads: u32,
    /// The algorithm.
    pub algorithm: String,
    /// Its setting.
    pub parameters: Parameters,
    /// Steps.
    pub steps: u64,
    /// Sum over steps of the largest message, in bytes.
    pub link_bytes: u128,
    /// Bytes rearranged and packed.
    pub copied_bytes: u128,
    /// The least time of several exchanges.
    pub seconds: f64,
}

/// The terms of the steps model for one rank on its own thread, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// A message's startup.
    pub startup: f64,
    /// A byte's transmission.
    pub per_byte: f64,
    /// A byte's rearrangement.
    pub rearrangement: f64,
    /// A copied block, beside its bytes.
    pub per_block: f64,
    /// The fixed cost of an exchange.
    pub exchange: f64,
    /// The most threads that moved bytes.
    pub threads: u32,
    /// Root of the mean square of the relative errors.
    pub error: f64,
}

/// The measured time of the predicted choice, and of the best.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Regret {
    /// Ranks, fully connected.
    pub ranks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The choice of `select`, measured.
    pub chosen: Sample,
    /// The fastest sample.
    pub best: Sample,
}

impl Regret {
    /// The chosen time over the best, less 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.chosen.seconds / self.best.seconds - 1.0
    }
}

/// Every all-to-all and setting that applies to a machine on a number of threads, counted and not
/// yet measured.
///
/// # Errors
/// The machine or problem is invalid.
pub fn samples(
    machine: &Machine,
    block_bytes: u64,
    threads: u32,
) -> Result<Vec<(Sample, Schedule)>, Error> {
    let ranks = machine.ranks();
    let problem = Problem::new(Collective::AllToAll, ranks, machine.ports, block_bytes)?;
    let exchange = Exchange::new(machine, &problem)?;
    let sample = |solution: Solution| {
        let schedule = solution.schedule;
        let counts = exchange.count(&schedule)?;
        let Origin { algorithm, parameters } = schedule.origin.clone();
        let sample = Sample {
            ranks,
            block_bytes,
            threads,
            algorithm,
            parameters,
            steps: counts.steps,
            link_bytes: counts.link_bytes,
            copied_bytes: counts.rearranged_bytes + counts.packed_bytes,
            seconds: f64::INFINITY,
        };
        Ok((sample, schedule))
    };
    exchange.solutions().map(sample).collect()
}

/// Runs every all-to-all and setting that applies to `ranks` fully connected ranks, `rounds` times
/// in turn, so that disturbances affect all equally. Returns the least time of each. At most
/// `threads` threads move the bytes; small exchanges use fewer.
///
/// # Errors
/// The machine, problem or plan is invalid, or the blocks exceed the address space.
pub fn measure(
    ranks: u32,
    block_bytes: u64,
    threads: usize,
    rounds: usize,
) -> Result<Vec<Sample>, Error> {
    let machine = machine(&format!("full:{ranks}"))?;
    let bytes = u128::from(ranks) * u128::from(ranks) * u128::from(block_bytes);
    check_memory("the blocks of all ranks", bytes, isize::MAX as u128)?;
    let threads = threads.min(worthwhile_threads(bytes));
    let (mut samples, mut plans) = (Vec::new(), Vec::new());
    for (sample, schedule) in self::samples(&machine, block_bytes, threads as u32)? {
        plans.push(plan_all(&schedule)?);
        samples.push(sample);
    }
    let (mut input, mut output) = (vec![0; bytes as usize], vec![0; bytes as usize]);
    pattern::fill(&plans[0], block_bytes, &mut input);
    for _ in 0..rounds {
        for (sample, plans) in samples.iter_mut().zip(&plans) {
            // Its buffers last for one round, and are warm after one exchange.
            let mut driver = ThreadedDriver::new(plans.clone(), threads);
            driver.exchange(block_bytes, &input, &mut output)?;
            let timed = driver.exchange(block_bytes, &input, &mut output)?;
            sample.seconds = sample.seconds.min(timed.elapsed.as_secs_f64());
        }
    }
    Ok(samples)
}

/// Fits nonnegative terms by the least squares of relative errors.
#[must_use]
pub fn fit(samples: &[Sample]) -> Fit {
    least_squares(samples, 5)
}

/// Fits the terms for ranks that are processes, each counted as a thread: the times include
/// contention, and an exchange has no fixed cost.
#[must_use]
pub fn fit_processes(samples: &[Sample]) -> Fit {
    least_squares(samples, 4)
}

/// Fits the first terms; the others are 0.
fn least_squares(samples: &[Sample], fitted: usize) -> Fit {
    let [startup, per_byte, rearrangement, per_block, exchange] =
        nonnegative(samples.iter().map(|sample| {
            let mut terms = terms(sample).map(|term| term / sample.seconds);
            terms[fitted..].fill(0.0);
            (terms, 1.0)
        }));
    let threads = samples.iter().map(|sample| sample.threads).max().unwrap_or(1);
    let mut fit =
        Fit { startup, per_byte, rearrangement, per_block, exchange, threads, error: 0.0 };
    let square = |sample: &Sample| (fit.seconds(sample) / sample.seconds - 1.0).powi(2);
    fit.error = (samples.iter().map(square).sum::<f64>() / samples.len().max(1) as f64).sqrt();
    fit
}

/// The values, not negative, for which sums of terms times values come nearest to targets, by the sum of
/// squares. A value whose terms are all 0 is 0.
pub(crate) fn nonnegative<const N: usize>(rows: impl Iterator<Item = ([f64; N], f64)>) -> [f64; N] {
    let (mut products, mut sums) = ([[0.0; N]; N], [0.0; N]);
    for (terms, target) in rows {
        for i in 0..N {
            sums[i] += terms[i] * target;
            for j in 0..N {
                products[i][j] += terms[i] * terms[j];
            }
        }
    }
    // Optimizes one value after the other; the sum of squares is convex, so this converges to the
    // minimum.
    let mut values = [0.0f64; N];
    for _ in 0..SWEEPS {
        for i in (0..N).filter(|&i| products[i][i] > 0.0) {
            let others: f64 = (0..N).filter(|&j| j != i).map(|j| products[i][j] * values[j]).sum();
            values[i] = ((sums[i] - others) / products[i][i]).max(0.0);
        }
    }
    values
}

/// Passes over the values in a fit, far more than five values need.
const SWEEPS: usize = 20_000;

/// Seconds in which a rank or node injects a byte, where a byte on one of its links takes `per_byte`;
/// 0 if only the links limit it.
///
/// `in_turn` has the seconds of rounds in which as many long messages as `links` follow each other,
/// `at_once` those of rounds in which they are concurrent. Injection limits them if they are fewer
/// than `links` times as fast at once, by more than the noise: the median round over the fastest,
/// of both.
///
/// # Panics
/// No rounds.
#[must_use]
pub fn injection_of(links: u32, per_byte: f64, in_turn: &[f64], at_once: &[f64]) -> f64 {
    let [(in_turn, calm), (at_once, also_calm)] = [in_turn, at_once].map(|rounds| {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[0], sorted[sorted.len() / 2] / sorted[0])
    });
    let speedup = in_turn / at_once;
    let is_limited = speedup * calm * also_calm < f64::from(links);
    if is_limited { per_byte / speedup.max(1.0) } else { 0.0 }
}

/// The factors of each value of a fit.
fn terms(sample: &Sample) -> [f64; 5] {
    let turns = turns(sample.ranks, sample.threads);
    let Sample { steps, link_bytes, copied_bytes, block_bytes, .. } = *sample;
    let copied = copied_bytes as f64;
    let of_ranks = [steps as f64, link_bytes as f64, copied, copied / block_bytes as f64];
    let [steps, link_bytes, copied, blocks] = of_ranks.map(|term| turns * term);
    [steps, link_bytes, copied, blocks, 1.0]
}

/// Ranks that take turns on one thread.
fn turns(ranks: u32, threads: u32) -> f64 {
    (f64::from(ranks) / f64::from(threads)).max(1.0)
}

impl Fit {
    /// The predicted time of a sample.
    #[must_use]
    pub fn seconds(&self, sample: &Sample) -> f64 {
        let Self { startup, per_byte, rearrangement, per_block, exchange, .. } = *self;
        let values = [startup, per_byte, rearrangement, per_block, exchange];
        terms(sample).iter().zip(values).map(|(term, value)| term * value).sum()
    }

    /// The timing values of a machine of `ranks` on this computer, for blocks large enough to use
    /// all threads; fewer threads slow all algorithms equally.
    #[must_use]
    pub fn timing(&self, ranks: u32) -> Timing {
        let turns = turns(ranks, self.threads);
        let mut timing = Timing::generic();
        timing.name = "this computer".to_owned();
        timing.startup = PerClass::uniform(turns * self.startup);
        timing.per_byte = PerClass::uniform(turns * self.per_byte);
        timing.per_hop = PerClass::uniform(0.0);
        timing.rearrangement_per_byte = turns * self.rearrangement;
        timing.per_block = turns * self.per_block;
        timing
    }
}

/// The machine file of a machine whose values were measured, to four digits; `sources` has those of the values
/// that change.
///
/// # Errors
/// A file that would be longer than any that is read.
pub fn measured_file<'s>(
    mut machine: Machine,
    sources: impl IntoIterator<Item = (&'static str, &'s str)>,
) -> Result<String, Error> {
    let four = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
    // Bandwidths are written.
    let per_byte = |value: f64| 1.0 / four(1.0 / value);
    let timing = &mut machine.timing;
    timing.startup = timing.startup.map(four);
    timing.per_byte = timing.per_byte.map(per_byte);
    timing.rearrangement_per_byte = per_byte(timing.rearrangement_per_byte);
    timing.per_block = four(timing.per_block);
    timing.injection.rank = per_byte(timing.injection.rank);
    timing.injection.node = per_byte(timing.injection.node);
    for (key, source) in sources {
        machine.cite(key, printable(source));
    }
    write_file(&machine).map_err(Error::ShortForm)
}

/// The choice of [`Exchange::select`](crate::Exchange::select) by the fit, for one number of ranks
/// and block size, and the fastest sample there.
///
/// # Errors
/// The machine or problem is invalid.
///
/// # Panics
/// No samples.
pub fn regret(cell: &[Sample], fit: &Fit) -> Result<Regret, Error> {
    let best = cell.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("samples");
    let (ranks, block_bytes) = (best.ranks, best.block_bytes);
    let mut machine = machine(&format!("full:{ranks}"))?;
    machine.timing = fit.timing(ranks);
    let problem = Problem::new(Collective::AllToAll, ranks, 1, block_bytes)?;
    let selection = Exchange::new(&machine, &problem)?.select()?;
    let choice = selection.best().expect("bug: no algorithm applies to a complete graph");
    let chosen = (cell.iter())
        .find(|s| s.algorithm == choice.algorithm && s.parameters == choice.parameters)
        .expect("bug: a choice that was not measured");
    Ok(Regret { ranks, block_bytes, chosen: chosen.clone(), best: best.clone() })
}
