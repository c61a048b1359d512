//! Quantities with units, such as `75us` and `10GB/s`.

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

/// The largest timing value, about eleven days: larger values are taken for typing errors.
const MAX_SECONDS: f64 = 1e6;

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
    const UNITS: [(&str, f64); 5] =
        [("ps", 1e-12), ("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    if text.trim() == "0" {
        return Ok(0.0);
    }
    let (number, unit) = split(text);
    let &(_, scale) = (UNITS.iter().find(|(name, _)| *name == unit)).ok_or_else(|| {
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

/// Reads the time one byte takes: a duration, or a bandwidth such as `8.5MB/s`. Seconds.
///
/// # Errors
/// A text that is not one.
pub fn parse_seconds_per_byte(text: &str) -> Result<f64, UnitError> {
    const UNITS: [(&str, f64); 8] = [
        ("B/s", 1.0),
        ("kB/s", 1e3),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("TB/s", 1e12),
        ("KiB/s", 1024.0),
        ("MiB/s", 1_048_576.0),
        ("GiB/s", 1_073_741_824.0),
    ];
    let (number, unit) = split(text);
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return match parse_seconds(text) {
            Err(_) if !unit.ends_with('s') || number.is_none() => Err(format!(
                "`{text}` is neither a bandwidth such as 10GB/s nor the time of one byte such as 0.1ns"
            )
            .into()),
            seconds => seconds,
        };
    };
    let bandwidth = number
        .ok_or_else(|| format!("`{text}` is not a bandwidth: `{unit}` needs a number"))?
        * scale;
    if bandwidth > 0.0 && bandwidth.is_finite() && 1.0 / bandwidth <= MAX_SECONDS {
        Ok(1.0 / bandwidth)
    } else {
        Err(format!("`{text}` is out of range: a bandwidth is above 0 and finite").into())
    }
}

/// Splits `1e9B/s` into its number, if it is one, and its unit.
fn split(text: &str) -> (Option<f64>, &str) {
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
        assert_eq!(parse_signed_seconds("-113us"), Ok(-113e-6));
        assert_eq!(parse_seconds("0"), Ok(0.0));
        assert_eq!(parse_seconds_per_byte("1e9B/s"), Ok(1e-9));
        assert_eq!(parse_seconds_per_byte("10GB/s"), Ok(1.0 / 10e9));
        assert_eq!(parse_seconds_per_byte("0.12us"), Ok(0.12e-6));
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
        for (text, neither) in [("3", true), ("us", true), ("3 GB", true), ("-1ns", false)] {
            let said = parse_seconds_per_byte(text).unwrap_err().to_string();
            assert_eq!(said.contains("neither a bandwidth"), neither, "{text}: {said}");
        }
    }
}
