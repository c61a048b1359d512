//! Numbers in texts that name machines.

use crate::MAX_DIMENSIONS;

/// What `read` reads of each side, separated by `x`; it gets the name of the side.
pub(crate) fn sides<S>(
    text: &str,
    read: impl Fn(&str, &str) -> Result<S, String>,
) -> Result<Vec<S>, String> {
    if text.split('x').nth(MAX_DIMENSIONS).is_some() {
        return Err(format!("more than {MAX_DIMENSIONS} sides"));
    }
    text.split('x').enumerate().map(|(u, side)| read(&format!("side {u}"), side)).collect()
}

/// A whole number from 1.
pub(crate) fn number(what: &str, text: &str) -> Result<u32, String> {
    whole(what, text, 1)
}

/// A whole number from `least`.
pub(crate) fn whole(what: &str, text: &str, least: u32) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(value) if value >= least && !text.starts_with('+') => Ok(value),
        _ => Err(format!("{what} is `{text}`, not a whole number from {least} to {}", u32::MAX)),
    }
}

/// A fraction such as `3/2`, `1.5` or `2`.
pub(crate) fn fraction(text: &str) -> Result<(u32, u32), String> {
    /// More digits are not told apart.
    const DIGITS: usize = 9;
    if let Some((over, times)) = text.split_once('/') {
        return Ok((number("taper", over)?, number("denominator of the taper", times)?));
    }
    let Some((units, decimals)) = text.split_once('.') else {
        return Ok((number("taper", text)?, 1));
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(units) || !is_number(decimals) || units.len() + decimals.len() > DIGITS {
        let rule = format!("a number such as 2, 1.5 or 3/2, of at most {DIGITS} digits");
        return Err(format!("taper is `{text}`, not {rule}"));
    }
    Ok((whole("taper", &format!("{units}{decimals}"), 0)?, 10u32.pow(decimals.len() as u32)))
}
