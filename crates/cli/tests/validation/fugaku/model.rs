//! The predicted time of a row as a formula of what is counted, and its constants fitted to measured rows.

use std::collections::BTreeMap;

use serde::Deserialize;
use topocoll::{Contention, Machine};

use super::counted::Case;

/// A measured implementation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Way {
    Pairwise,
    Linear,
    Bruck,
    ModifiedBruck,
    Bine,
    Doublespread,
    Blacc3d,
}

/// The constants: the machine's, and those of implementations. Microseconds, and exponents.
pub(super) const NAMES: [&str; 16] = [
    "per_byte",
    "message_overhead",
    "rendezvous",
    "per_block",
    "rearrangement",
    "contention",
    "dependent",
    "many_peers",
    "modified_step",
    "doublespread_start",
    "doublespread_message",
    "doublespread_exponent",
    "blacc3d_message",
    "blacc3d_above_1KiB",
    "utofu_step",
    "utofu_block",
];

/// The constants of a model, and whether loads of axes add up in steps of one message.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Constants {
    pub(super) values: [f64; 16],
    pub(super) adds_up: bool,
}

impl Default for Constants {
    fn default() -> Self {
        Self { values: [0.0; 16], adds_up: true }
    }
}

/// `validation/fugaku-rows.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) fitted: BTreeMap<String, Vec<u64>>,
    implementation: BTreeMap<String, f64>,
}

/// The values of an implementation, in microseconds.
pub(super) struct Own {
    /// Of a step, besides the overheads of its messages.
    pub(super) step: f64,
    pub(super) message: f64,
    pub(super) above: u64,
    pub(super) per_block: f64,
    pub(super) exponent: f64,
    pub(super) injects: bool,
}

/// Messages above this size have a rendezvous; of a rank with many peers those above the other.
const EAGER: [u64; 2] = [32 << 10, 1 << 10];
const MANY: u32 = 256;

impl Constants {
    pub(super) fn read(machine: &Machine, file: &File) -> Self {
        let timing = &machine.timing;
        let of_machine = [
            timing.per_byte.least() * 1e6,
            machine.endpoint.message_overhead * 1e6,
            timing.rendezvous.time * 1e6,
            timing.per_block * 1e6,
            timing.rearrangement_per_byte * 1e6,
            timing.contention.several,
        ];
        assert_eq!(timing.rendezvous.above, EAGER[0]);
        let own = NAMES[of_machine.len()..].iter().map(|name| file.implementation[*name]);
        let values: Vec<f64> = of_machine.into_iter().chain(own).collect();
        Self { values: values.try_into().unwrap(), adds_up: timing.contention.alone == 1.0 }
    }

    pub(super) fn of(&self, name: &str) -> f64 {
        self.values[NAMES.iter().position(|other| *other == name).unwrap()]
    }

    /// The values of a case for blocks of a size.
    pub(super) fn values(&self, case: Case, bytes: u64) -> Own {
        let many = case.ranks() - 1 > MANY;
        let above_1_kib = |time: &str| if bytes > 1 << 10 { self.of(time) } else { 0.0 };
        let own = Own {
            step: 0.0,
            message: self.of("message_overhead"),
            above: EAGER[usize::from(many)],
            per_block: self.of("per_block"),
            exponent: self.of("contention"),
            injects: true,
        };
        let never = Own { above: u64::MAX, injects: false, ..own };
        let dependent = self.of("dependent");
        match case.way {
            Way::Pairwise => Own { step: if many { self.of("many_peers") } else { 0.0 }, ..own },
            Way::Linear => {
                let more = if many { above_1_kib("many_peers") } else { 0.0 };
                Own { message: own.message + more, ..own }
            }
            Way::Bruck => Own { step: dependent, above: EAGER[0], ..own },
            Way::ModifiedBruck => {
                Own { step: dependent + self.of("modified_step"), above: EAGER[0], ..own }
            }
            Way::Bine => {
                let step = dependent + self.of("utofu_step");
                Own { step, per_block: self.of("utofu_block"), ..never }
            }
            Way::Doublespread => Own {
                step: self.of("doublespread_start"),
                message: self.of("doublespread_message"),
                exponent: self.of("doublespread_exponent"),
                ..never
            },
            Way::Blacc3d => {
                let message = self.of("blacc3d_message") + above_1_kib("blacc3d_above_1KiB");
                Own { message, exponent: f64::INFINITY, ..never }
            }
        }
    }
}

/// What is counted of a case; amounts in blocks.
pub(super) struct Features {
    pub(super) steps: f64,
    /// In a message.
    pub(super) blocks: f64,
    /// Over links, summed over steps: with loads of axes that add up, and the largest alone.
    pub(super) link_blocks: f64,
    pub(super) largest: f64,
    /// Of all messages at once, on the busiest link of each axis.
    pub(super) loads: Vec<f64>,
    pub(super) copies: f64,
}

/// A measured time.
pub(super) struct Row {
    pub(super) shape: &'static str,
    pub(super) algorithm: String,
    pub(super) case: Case,
    pub(super) features: std::sync::Arc<Features>,
    pub(super) bytes: u64,
    pub(super) us: f64,
    /// Whether it fixes constants.
    pub(super) fixes: bool,
}

impl Row {
    /// Predicted microseconds.
    pub(super) fn predicted(&self, constants: &Constants) -> f64 {
        let (of, own) = (&self.features, constants.values(self.case, self.bytes));
        let message = of.blocks * self.bytes as f64;
        let rendezvous = match message > own.above as f64 {
            true => constants.of("rendezvous"),
            false => 0.0,
        };
        let (bytes, per_byte) = (self.bytes as f64, constants.of("per_byte"));
        if self.case.is_at_once() {
            let messages = f64::from(self.case.ranks() - 1);
            let injected = if own.injects { messages } else { 0.0 };
            let beyond = of.loads.iter().map(|load| (load - 1.0).max(0.0));
            let over = injected.max(1.0 + Contention::norm(own.exponent, beyond));
            return own.step + messages * own.message + rendezvous + over * bytes * per_byte;
        }
        let link_blocks = if constants.adds_up { of.link_blocks } else { of.largest };
        of.steps * (own.step + own.message + rendezvous)
            + link_blocks * bytes * per_byte
            + of.copies * (own.per_block + constants.of("rearrangement") * bytes)
    }

    /// Predicted over measured, less 1.
    pub(super) fn error(&self, constants: &Constants) -> f64 {
        self.predicted(constants) / self.us - 1.0
    }
}

/// The constants of least squares of logarithms of ratios, where residuals above 0.15 count about linearly
/// (soft L1), from some constants on. Those that `keeps` are not fitted.
pub(super) fn fit(rows: &[&Row], from: &Constants, keeps: &[&str]) -> Constants {
    /// Residuals above it count linearly, and a constant moves at most by a factor of e^3.
    const SCALE: f64 = 0.15;
    const MOST: f64 = 3.0;
    let is_free = |i: &usize| !keeps.contains(&NAMES[*i]) && from.values[*i].is_finite();
    let free: Vec<usize> = (0..NAMES.len()).filter(is_free).collect();
    let at = |moved: &[f64]| {
        let mut constants = from.clone();
        for (&i, by) in free.iter().zip(moved) {
            // Exponents are at least 1.
            let least =
                if NAMES[i].ends_with("exponent") || NAMES[i] == "contention" { 1.0 } else { 0.0 };
            constants.values[i] = (from.values[i] * by.exp()).max(least);
        }
        constants
    };
    let residuals = |moved: &[f64]| -> Vec<f64> {
        let constants = at(moved);
        rows.iter().map(|row| (row.predicted(&constants) / row.us).ln()).collect()
    };
    let cost = |residuals: &[f64]| -> f64 {
        residuals.iter().map(|r| (1.0 + (r / SCALE).powi(2)).sqrt() - 1.0).sum()
    };
    let (mut moved, mut damping) = (vec![0.0; free.len()], 1e-3);
    let mut now = residuals(&moved);
    for _ in 0..200 {
        let columns: Vec<Vec<f64>> = (0..free.len())
            .map(|i| {
                let mut beside = moved.clone();
                beside[i] += 1e-6;
                residuals(&beside).iter().zip(&now).map(|(a, b)| (a - b) * 1e6).collect()
            })
            .collect();
        let weights: Vec<f64> =
            now.iter().map(|r| (1.0 + (r / SCALE).powi(2)).sqrt().recip()).collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().zip(b).zip(&weights).map(|((a, b), weight)| a * b * weight).sum()
        };
        let mut normal: Vec<Vec<f64>> = columns
            .iter()
            .map(|a| columns.iter().map(|b| dot(a, b)).chain([-dot(a, &now)]).collect())
            .collect();
        for (i, row) in normal.iter_mut().enumerate() {
            row[i] = row[i] * (1.0 + damping) + 1e-12;
        }
        let step = solved(normal);
        let next: Vec<f64> =
            moved.iter().zip(&step).map(|(at, by)| (at + by).clamp(-MOST, MOST)).collect();
        let then = residuals(&next);
        let gain = cost(&now) - cost(&then);
        if gain < 0.0 {
            damping *= 4.0;
            if damping > 1e9 {
                break;
            }
            continue;
        }
        (moved, now, damping) = (next, then, damping / 3.0);
        if gain < 1e-9 {
            break;
        }
    }
    at(&moved)
}

/// The solution of linear equations, each with its right side at the end.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for i in 0..count {
        let pivot = (i..count).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs()));
        rows.swap(i, pivot.unwrap());
        let own = rows[i].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i] / own[i];
            row.iter_mut().zip(&own).for_each(|(to, from)| *to -= factor * from);
        }
    }
    (0..count).map(|i| rows[i][count] / rows[i][i]).collect()
}
