//! Quantities with units, such as `4KiB`, `75us` and `10GB/s`.

use bytesize::ByteSize;

use crate::Ports;

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct UnitError {
    /// The text and the rule.
    pub message: String,
}

impl From<String> for UnitError {
    fn from(message: String) -> Self {
        Self { message }
    }
}

/// Reads a size such as `64`, `4KiB` or `1MB`. Bytes, exactly: `1.5KiB` is 1,536, and `0.9KiB` is an
/// error.
///
/// # Errors
/// A text that is not one, or not a whole number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let rule = || UnitError::from("not a size such as 64, 4KiB or 1MiB".to_owned());
    let whole = |text: &str| text.parse().map(|size: ByteSize| size.as_u64()).map_err(|_| rule());
    let Some((before, after)) = text.split_once('.') else { return whole(text) };
    // The library rounds fractions down (2.3kB to 2,299), so it only reads the unit.
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (fraction, unit) = after.split_at(end);
    if unit.contains('.') {
        return Err(rule());
    }
    let unit = u128::from(whole(&format!("1{unit}"))?);
    let digits: u128 = format!("{before}{fraction}").parse().map_err(|_| rule())?;
    let scale = 10u128.checked_pow(fraction.len() as u32).ok_or_else(rule)?;
    let scaled = digits.checked_mul(unit).ok_or_else(rule)?;
    if !scaled.is_multiple_of(scale) {
        return Err("not a whole number of bytes".to_owned().into());
    }
    Ok(u64::try_from(scaled / scale).unwrap_or(u64::MAX))
}

/// Reads the ports of a rank and of a node, such as `8,64` or `1,all`; one number is that of both.
///
/// # Errors
/// A text that is not one or two of whole numbers and `all`, or 0.
pub fn parse_ports(text: &str) -> Result<Ports, UnitError> {
    match text.split_once(',') {
        Some((rank, node)) => Ok(Ports { rank: port_count(rank)?, node: port_count(node)? }),
        None => port_count(text).map(Ports::from),
    }
}

/// Reads a number of ports, or `all`.
pub(crate) fn port_count(text: &str) -> Result<u32, UnitError> {
    match text.parse() {
        Ok(0) => {
            Err("a rank or node needs at least one port to send and receive".to_owned().into())
        }
        Ok(ports) => Ok(ports),
        Err(_) if text == "all" => Ok(u32::MAX),
        Err(_) => Err(format!("not a whole number from 1 to {}, or all", u32::MAX).into()),
    }
}

/// The largest timing value, about eleven days: larger values are taken for typing errors.
const MAX_SECONDS: f64 = 1e6;

/// Units of durations, in seconds; micro is also the micro sign and the Greek letter.
const DURATIONS: [(&str, f64); 7] = [
    ("ps", 1e-12),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
];

/// Reads a duration such as `75us`, 0 or more; a bare `0` needs no unit. Seconds.
///
/// # Errors
/// A text that is not one.
pub fn parse_seconds(text: &str) -> Result<f64, UnitError> {
    match parse_signed_seconds(text)? {
        seconds if seconds < 0.0 => {
            Err(format!("`{text}` is negative: times are 0 or more").into())
        }
        seconds => Ok(seconds),
    }
}

/// Reads a duration that may be negative. Seconds.
///
/// # Errors
/// A text that is not one.
pub(crate) fn parse_signed_seconds(text: &str) -> Result<f64, UnitError> {
    if text.trim() == "0" {
        return Ok(0.0);
    }
    let (number, unit) = split(text);
    let &(_, scale) = (DURATIONS.iter().find(|(name, _)| *name == unit)).ok_or_else(|| {
        format!("`{text}` is not a duration: a number and one of ps, ns, us, ms, s")
    })?;
    let seconds = number
        .ok_or_else(|| format!("`{text}` is not a duration: `{unit}` needs a number"))?
        * scale;
    if seconds.is_finite() && seconds.abs() <= MAX_SECONDS {
        Ok(seconds)
    } else {
        Err(format!("`{text}` is out of range: a duration is at most {MAX_SECONDS} s").into())
    }
}

/// The bytes of a unit of bandwidth, if the text is one: a prefix, then bytes (`B/s`, `Bps`) or bits
/// (`b/s`, `bps`, `bit/s`).
pub(crate) fn bytes_per_second(unit: &str) -> Option<f64> {
    const COUNTED: [(&str, f64); 6] =
        [("B/s", 1.0), ("Bps", 1.0), ("b/s", 8.0), ("bps", 8.0), ("bit/s", 8.0), ("bits/s", 8.0)];
    let (prefix, bits) =
        COUNTED.iter().find_map(|(name, bits)| Some((unit.strip_suffix(name)?, bits)))?;
    Some(scale(prefix)? / bits)
}

/// The factor of a decimal or binary prefix of a unit; none is 1.
pub(crate) fn scale(prefix: &str) -> Option<f64> {
    const PREFIXES: [(&str, f64); 9] = [
        ("", 1.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
    ];
    PREFIXES.iter().find(|(name, _)| *name == prefix).map(|(_, scale)| *scale)
}

/// Reads the time one byte takes: a duration, or a bandwidth in bytes such as `8.5MB/s` or in bits
/// such as `400Gb/s`. Seconds.
///
/// # Errors
/// A text that is not one.
pub fn parse_seconds_per_byte(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text);
    let Some(scale) = bytes_per_second(unit) else {
        let is_duration = DURATIONS.iter().any(|(name, _)| *name == unit) && number.is_some();
        return match is_duration || text.trim() == "0" {
            true => parse_seconds(text),
            false => Err(format!(
                "`{text}` is neither a bandwidth such as 50GB/s or 400Gb/s nor the time of one byte such as 0.1ns"
            )
            .into()),
        };
    };
    bandwidth(text, number, unit, scale).map(|bandwidth| 1.0 / bandwidth)
}

/// Reads the same as bytes a second; infinite where a byte takes no time.
///
/// # Errors
/// A text that is not one.
pub(crate) fn parse_bytes_per_second(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text);
    match bytes_per_second(unit) {
        Some(scale) => bandwidth(text, number, unit, scale),
        None => parse_seconds_per_byte(text).map(|seconds| 1.0 / seconds),
    }
}

fn bandwidth(text: &str, number: Option<f64>, unit: &str, scale: f64) -> Result<f64, UnitError> {
    let bandwidth = number
        .ok_or_else(|| format!("`{text}` is not a bandwidth: `{unit}` needs a number"))?
        * scale;
    if bandwidth > 0.0 && bandwidth.is_finite() && 1.0 / bandwidth <= MAX_SECONDS {
        Ok(bandwidth)
    } else {
        Err(format!("`{text}` is out of range: a bandwidth is above 0 and finite").into())
    }
}

/// Splits `1e9B/s` into its number, if it is one, and its unit.
pub(crate) fn split(text: &str) -> (Option<f64>, &str) {
    /// Longer than any meaningful number.
    const LONGEST: usize = 64;
    let text = text.trim();
    // The number is the longest prefix that parses as one, as `1e9B/s` has an `e`.
    let end = (0..=text.len().min(LONGEST))
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find(|&end| text[..end].trim_end().parse::<f64>().is_ok());
    match end {
        Some(end) => (text[..end].trim_end().parse().ok(), text[end..].trim_start()),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_quantities() {
        assert_eq!(parse_seconds("75us"), Ok(75e-6));
        assert_eq!(parse_seconds(" 1.5 ms "), Ok(1.5e-3));
        for micro in ["75\u{b5}s", "75\u{3bc}s", "75 \u{b5}s"] {
            assert_eq!(parse_seconds(micro), Ok(75e-6), "{micro}");
            assert_eq!(parse_seconds_per_byte(micro), Ok(75e-6), "{micro}");
        }
        assert_eq!(parse_signed_seconds("-113us"), Ok(-113e-6));
        assert_eq!(parse_seconds("0"), Ok(0.0));
        assert_eq!(parse_seconds_per_byte("1e9B/s"), Ok(1e-9));
        assert_eq!(parse_seconds_per_byte("10GB/s"), Ok(1.0 / 10e9));
        assert_eq!(parse_seconds_per_byte("0.12us"), Ok(0.12e-6));
        assert_eq!(parse_seconds_per_byte("0"), Ok(0.0));
    }

    #[test]
    fn a_lower_case_b_counts_bits() {
        for (bits, bytes) in [
            ("100Gb/s", "12.5GB/s"),
            ("400Gbps", "50GB/s"),
            ("100 Gbit/s", "12.5GB/s"),
            ("8 kbits/s", "1kB/s"),
            ("8Mib/s", "1MiB/s"),
            ("8bps", "1Bps"),
            ("2TiB/s", "2048GiB/s"),
        ] {
            assert_eq!(parse_seconds_per_byte(bits), parse_seconds_per_byte(bytes), "{bits}");
        }
    }

    #[test]
    fn refuses_other_text() {
        for text in ["", "us", "75", "-1us", "NaNs", "infs", "1e300s", "1 fortnight", "é"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
        for text in ["0B/s", "-1GB/s", "inf GB/s", "GB/s", "3", "-1ns", "1e-300GB/s", "NaNGB/s"] {
            assert!(parse_seconds_per_byte(text).is_err(), "{text}");
        }
        // A refused number of seconds is reported as a duration.
        for (text, neither) in [
            ("3", true),
            ("us", true),
            ("3 GB", true),
            ("-1ns", false),
            ("3gbps", true),
            ("3Gs", true),
        ] {
            let said = parse_seconds_per_byte(text).unwrap_err().to_string();
            assert_eq!(said.contains("neither a bandwidth"), neither, "{text}: {said}");
        }
    }
}
