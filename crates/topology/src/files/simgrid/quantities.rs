//! Quantities as SimGrid writes them.

use super::super::{MAX_NODES, shown};
use crate::units;

/// The numbers of a list such as `0-127,130`.
pub(super) fn radical(radical: &str) -> Result<Vec<u32>, String> {
    let number = |text: &str| text.trim().parse::<u32>();
    let mut numbers = Vec::new();
    for range in radical.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (number(first), number(last)) {
            (Ok(first), Ok(last)) if first <= last => {
                if (last - first) as usize >= MAX_NODES - numbers.len() {
                    return Err(format!("more than {MAX_NODES} hosts"));
                }
                numbers.extend(first..=last);
            }
            _ => return Err(format!("radical `{}` is not a list such as 0-255", shown(range))),
        }
    }
    Ok(numbers)
}

/// A number and its unit.
fn split(text: &str) -> Result<(f64, &str), String> {
    let (number, unit) = units::split(text);
    let number = number.filter(|number| number.is_finite());
    Ok((
        number.ok_or_else(|| format!("`{}` is not a number with a unit", shown(text.trim())))?,
        unit,
    ))
}

/// Bytes a second, as SimGrid writes them: `1GBps`, `125MiBps`, `10Gbps` (bits), bytes without.
pub(super) fn bandwidth(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let each = match unit {
        "" => Some(1.0),
        unit if unit.ends_with("ps") => units::bytes_per_second(unit),
        _ => None,
    };
    match each.map(|each| number * each) {
        Some(bandwidth) if bandwidth > 1e-6 && bandwidth.is_finite() => Ok(bandwidth),
        _ => Err(format!("bw `{}` is not a bandwidth such as 1GBps or 10Gbps", shown(text))),
    }
}

/// Seconds, as SimGrid writes them: `1us`, seconds without a unit.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let (_, unit) = split(text)?;
    let seconds = if unit.is_empty() { format!("{}s", text.trim()) } else { text.to_owned() };
    units::parse_seconds(&seconds).map_err(|reason| format!("lat: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_simgrid() {
        let bandwidths =
            [("1GBps", 1e9), ("10Gbps", 1.25e9), ("125MiBps", 131_072_000.0), ("1e9", 1e9)];
        for (text, expected) in bandwidths {
            assert_eq!(bandwidth(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("1us", 1e-6), ("0.5ms", 5e-4), ("0", 0.0), ("2", 2.0)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "fast", "1GB", "0Bps", "-1GBps", "1e999GBps", "0.000001Bps"] {
            assert!(bandwidth(text).is_err(), "{text}");
        }
        assert_eq!(radical("0-127,130").map(|all| all.len()), Ok(129));
        assert!(
            radical("5-2").is_err() && radical("0-").is_err() && radical("0-4294967295").is_err()
        );
    }
}
