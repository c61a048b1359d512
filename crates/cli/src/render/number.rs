use topocoll::Parameters;

/// A number of blocks, possibly fractional.
pub(crate) fn blocks(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e15 {
        (value as u64).to_string()
    } else {
        format!("{value:.3}")
    }
}

/// A size for people.
pub(crate) fn bytes(value: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| value >= *unit && value % unit == 0) {
        Some((unit, name)) => format!("{} {name}", value / unit),
        None => format!("{value} B"),
    }
}

/// A duration in a suitable unit.
pub(crate) fn seconds(value: f64) -> String {
    let (scale, unit) = time_unit(value);
    format!("{} {unit}", significant(value / scale))
}

/// The suitable unit of a duration: its length in seconds, and its name.
pub(crate) fn time_unit(seconds: f64) -> (f64, &'static str) {
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
pub(crate) fn parameters(parameters: &Parameters) -> String {
    if parameters.is_empty() {
        return "-".to_owned();
    }
    parameters.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
