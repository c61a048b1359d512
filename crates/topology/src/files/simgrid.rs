//! SimGrid platforms that consist of one TORUS cluster.
//!
//! Its first dimension is the fastest, and so our last. A link has the cluster's bandwidth and
//! latency; startup, rearrangement and barriers take no time. At exactly half a ring the direction
//! of a SimGrid route depends on the position; ours is +.

use std::sync::Arc;

use super::xml::{Element, elements};
use crate::spec::SpecError;
use crate::{Barrier, Grid, Injection, Machine, PerClass, Timing, Topology};

pub(super) fn knows(text: &str, first: &str) -> bool {
    first.starts_with('<') && text.contains("<platform")
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    let mut machine = None;
    elements(text, |element, _| match element.name.as_str() {
        "cluster" if machine.is_some() => Err(element
            .wrong("a second <cluster>: only platforms of one torus are supported".to_owned())),
        "cluster" => {
            machine = Some(torus(name, element).map_err(|message| element.wrong(message))?);
            Ok(())
        }
        "host" | "link" | "router" | "route" | "zoneRoute" | "ASroute" => {
            Err(element.wrong(format!(
                "<{}> is not supported: a platform must be one <cluster topology=\"TORUS\">",
                element.name
            )))
        }
        _ => Ok(()),
    })?;
    let none = || SpecError {
        message: "no <cluster topology=\"TORUS\">: other platforms are not supported".to_owned(),
        span: None,
    };
    machine.ok_or_else(none)
}

fn torus(name: &str, cluster: &Element) -> Result<Machine, String> {
    let given = |name: &str| cluster.get(name).ok_or_else(|| format!("no {name}"));
    match cluster.get("topology").unwrap_or("FLAT") {
        "TORUS" => {}
        other => return Err(format!("topology {other} is not supported: use TORUS")),
    }
    match cluster.get("sharing_policy").unwrap_or("SPLITDUPLEX") {
        "SPLITDUPLEX" => {}
        other => {
            return Err(format!(
                "sharing_policy {other} is not supported: use SPLITDUPLEX, a link in each direction"
            ));
        }
    }
    if cluster.get("limiter_link").is_some() {
        return Err(
            "limiter_link is not supported: only links limit the bandwidth of a torus".to_owned()
        );
    }
    let mut sides = Vec::new();
    for side in given("topo_parameters")?.split(',').take(crate::MAX_DIMENSIONS + 1) {
        let side = side.trim();
        sides.push(side.parse().map_err(|_| format!("side `{side}` is not a whole number"))?);
    }
    sides.reverse();
    let grid = Grid::torus(&sides).map_err(|e| e.to_string())?;
    let hosts = hosts(given("radical")?)?;
    if hosts != u64::from(grid.ranks()) {
        return Err(format!(
            "radical names {hosts} hosts, but {} has {}",
            grid.short_form(),
            grid.ranks()
        ));
    }
    let timing = Timing {
        name: name.to_owned(),
        startup: PerClass::uniform(0.0),
        per_byte: PerClass::uniform(1.0 / bandwidth(given("bw")?)?),
        per_hop: PerClass::uniform(seconds(given("lat")?)?),
        rearrangement_per_byte: 0.0,
        barrier: Barrier::default(),
        gather: false,
        injection: Injection::default(),
    };
    Ok(Machine { name: name.to_owned(), timing, ..Machine::of(Arc::new(grid)) })
}

/// The hosts of a list such as `0-127,130`.
fn hosts(radical: &str) -> Result<u64, String> {
    let number = |text: &str| text.trim().parse::<u32>().map(u64::from);
    radical.split(',').try_fold(0, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (number(first), number(last)) {
            (Ok(first), Ok(last)) if first <= last => Ok(sum + last - first + 1),
            _ => Err(format!("radical `{}` is not a list such as 0-255", super::shown(range))),
        }
    })
}

/// A number and its unit.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.len()
        - text.trim_start_matches(|c: char| c.is_ascii_digit() || ".+-eE".contains(c)).len();
    // No unit begins with `e`.
    let number = text[..end].parse().ok().filter(|number: &f64| number.is_finite());
    let number =
        number.ok_or_else(|| format!("`{}` is not a number with a unit", super::shown(text)))?;
    Ok((number, text[end..].trim()))
}

/// Bytes a second, as SimGrid writes them: `1GBps`, `125MiBps`, `10Gbps` (bits), bytes without.
fn bandwidth(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let (prefix, each) = match (unit, unit.strip_suffix("Bps"), unit.strip_suffix("bps")) {
        ("", _, _) => (Some(""), 1.0),
        (_, Some(prefix), _) => (Some(prefix), 1.0),
        (_, _, prefix) => (prefix, 0.125),
    };
    match prefix.and_then(crate::units::scale).map(|scale| number * scale * each) {
        Some(bandwidth) if bandwidth > 1e-6 && bandwidth.is_finite() => Ok(bandwidth),
        _ => Err(format!("bw `{}` is not a bandwidth such as 1GBps or 10Gbps", super::shown(text))),
    }
}

/// Seconds, as SimGrid writes them: `1us`, seconds without a unit.
fn seconds(text: &str) -> Result<f64, String> {
    let (_, unit) = split(text)?;
    let seconds = if unit.is_empty() { format!("{}s", text.trim()) } else { text.to_owned() };
    crate::units::parse_seconds(&seconds).map_err(|reason| format!("lat: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_one_torus_of_at_most_the_sides_of_a_grid() {
        let cluster = |sides: usize| {
            let ones = vec!["1"; sides].join(",");
            format!(
                "<cluster topology=\"TORUS\" radical=\"0\" bw=\"1GBps\" lat=\"1us\" topo_parameters=\"{ones}\"/>"
            )
        };
        let platform = |text: &str| {
            let text = format!("<platform>{text}</platform>");
            read("some", &text).map(|machine| machine.ranks()).map_err(|error| error.message)
        };
        let most = crate::MAX_DIMENSIONS;
        assert_eq!(platform(&cluster(most)), Ok(1));
        let refused = platform(&cluster(most + 1)).unwrap_err();
        assert!(refused.contains(&format!("a grid has between 1 and {most}")), "{refused}");
        let refused = platform(&cluster(1).repeat(2)).unwrap_err();
        assert!(refused.contains("a second <cluster>"), "{refused}");
    }

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
        assert_eq!(hosts("0-127,130"), Ok(129));
        assert!(hosts("5-2").is_err() && hosts("0-").is_err());
    }
}
