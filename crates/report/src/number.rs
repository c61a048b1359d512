//! Numbers for people.

use serde::{Serialize, Serializer};
use topocoll::Parameters;

/// A number of blocks in JSON: whole where it is whole.
#[derive(Clone, Copy, Debug)]
pub struct Blocks(pub f64);

impl Serialize for Blocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// A number of blocks, possibly fractional: whole ones in full, others to four significant digits.
#[must_use]
pub fn blocks(value: f64) -> String {
    match value.fract() {
        0.0 if value < 1e15 => (value as u64).to_string(),
        _ => plain(value),
    }
}

/// A size for people.
#[must_use]
pub fn bytes(value: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| value >= *unit && value % unit == 0) {
        Some((unit, name)) => format!("{} {name}", value / unit),
        None => format!("{value} B"),
    }
}

/// A duration in a suitable unit.
#[must_use]
pub fn seconds(value: f64) -> String {
    let (scale, unit) = time_unit(value);
    format!("{} {unit}", significant(value / scale))
}

/// A given duration, without needless digits.
#[must_use]
pub fn duration(value: f64) -> String {
    let (scale, unit) = time_unit(value);
    match value {
        0.0 => "0".to_owned(),
        nanoseconds if nanoseconds < 1e-6 => format!("{} ns", plain(value * 1e9)),
        _ => format!("{} {unit}", plain(value / scale)),
    }
}

/// A bandwidth, given as the seconds of one byte.
#[must_use]
pub fn bandwidth(per_byte: f64) -> String {
    if per_byte == 0.0 {
        return "no time for bytes".to_owned();
    }
    let units = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    let rate = 1.0 / per_byte;
    // A rate that is written as 1 GB/s may be stored a little below.
    let unit = units.into_iter().find(|(unit, _)| rate > unit * 0.99999);
    let (unit, name) = unit.unwrap_or((1.0, "B/s"));
    format!("{} {name}", plain(rate / unit))
}

/// At most four significant digits, without zeros at the end.
fn plain(value: f64) -> String {
    let text = significant(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The suitable unit of a duration: its length in seconds, and its name.
#[must_use]
pub fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e-3, "ms"),
        _ => (1e-6, "us"),
    }
}

/// Four significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.digits$}")
}

/// Parameters as `key=value`, or a dash.
#[must_use]
pub fn parameters(parameters: &Parameters) -> String {
    if parameters.is_empty() {
        return "-".to_owned();
    }
    parameters.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// `1 step`, `24 steps`.
#[must_use]
pub fn in_steps(steps: u64) -> String {
    format!("{steps} step{}", if steps == 1 { "" } else { "s" })
}

/// An algorithm and its setting, if it has one: `bruck (radix=2)`.
#[must_use]
pub fn named(algorithm: &str, setting: &Parameters) -> String {
    match setting.is_empty() {
        true => algorithm.to_owned(),
        false => format!("{algorithm} ({})", parameters(setting)),
    }
}
