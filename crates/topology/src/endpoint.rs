//! The endpoint of a rank: what is between its messages and the network.

use std::fmt;

use crate::units::parse_seconds;

/// How a rank hands the messages of a step to the network.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Endpoint {
    /// The most messages that a rank has outstanding: handed to the network, and the last byte not yet
    /// delivered. `None` is no limit.
    pub window: Option<u32>,
    /// Bytes of a packet; `None` sends each message as one packet.
    pub packet_bytes: Option<u64>,
    /// Seconds of a rank for each packet that it sends, one packet at a time.
    pub packet_overhead: f64,
    /// Seconds of a rank for each message that it sends, one message at a time.
    pub message_overhead: f64,
    /// The order of a rank's messages, where no schedule gives it.
    pub order: Order,
    /// Whether the packets of outstanding messages take turns. If not, one message leaves after the
    /// other.
    pub interleave: bool,
}

/// The order in which a rank sends to all others. Offsets are differences of coordinates, counted
/// around the sides, or of numbers where ranks have no coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Order {
    /// That of a schedule, or by ascending offset.
    #[default]
    Schedule,
    /// By ascending offset, the last coordinate fastest.
    Rotation,
    /// A random order of each rank.
    Random(u64),
    /// By descending number of links, then by ascending offset.
    FarthestFirst,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule => f.write_str("schedule"),
            Self::Rotation => f.write_str("rotation"),
            Self::Random(seed) => write!(f, "random:{seed}"),
            Self::FarthestFirst => f.write_str("farthest-first"),
        }
    }
}

/// A value of an [`Endpoint`] as text.
#[derive(Clone, Copy, Debug)]
pub struct EndpointParameter {
    /// The name in machine files and in `--set name=value`.
    pub name: &'static str,
    /// Its values and its default.
    pub values: &'static str,
    rule: &'static str,
    /// Sets it; `None` for a text that breaks the rule.
    set: fn(&mut Endpoint, &str) -> Option<()>,
}

/// The values of an endpoint, in the order in which help lists them.
pub const ENDPOINT_PARAMETERS: &[EndpointParameter] = &[
    EndpointParameter {
        name: "window",
        values: "messages of a step that a rank has outstanding, or all; default all",
        rule: "a whole number from 1 to 4294967295, or all",
        set: |endpoint, text| {
            endpoint.window = unless_all(text, |text| text.parse().ok().filter(|&n| n > 0))?;
            Some(())
        },
    },
    EndpointParameter {
        name: "packet_bytes",
        values: "bytes of a packet, or all: a message is one packet (flit, fluid); default all",
        rule: "1 byte or more, such as 512 or 32KiB, or all",
        set: |endpoint, text| {
            endpoint.packet_bytes = unless_all(text, packet_bytes)?;
            Some(())
        },
    },
    EndpointParameter {
        name: "packet_overhead",
        values: "time of a rank for each packet that it sends, such as 100ns; default 0",
        rule: TIME,
        set: |endpoint, text| {
            endpoint.packet_overhead = parse_seconds(text).ok()?;
            Some(())
        },
    },
    EndpointParameter {
        name: "message_overhead",
        values: "time of a rank for each message that it sends, such as 1us; default 0",
        rule: TIME,
        set: |endpoint, text| {
            endpoint.message_overhead = parse_seconds(text).ok()?;
            Some(())
        },
    },
    EndpointParameter {
        name: "order",
        values: "schedule, rotation, random:SEED or farthest-first: the order of a rank's messages in --traffic alltoall; default schedule, which is rotation there",
        rule: "one of schedule, rotation, random:SEED, farthest-first",
        set: |endpoint, text| {
            endpoint.order = match text.split_once(':') {
                None if text == "schedule" => Order::Schedule,
                None if text == "rotation" => Order::Rotation,
                None if text == "farthest-first" => Order::FarthestFirst,
                Some(("random", seed)) => Order::Random(seed.parse().ok()?),
                _ => return None,
            };
            Some(())
        },
    },
    EndpointParameter {
        name: "interleave",
        values: "on or off: packets of outstanding messages in turn, or one message after the other (flit, fluid); default on",
        rule: "on or off",
        set: |endpoint, text| {
            endpoint.interleave = match text {
                "on" => true,
                "off" => false,
                _ => return None,
            };
            Some(())
        },
    },
];

const TIME: &str = "a time of 0 or more, such as 100ns";

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            window: None,
            packet_bytes: None,
            packet_overhead: 0.0,
            message_overhead: 0.0,
            order: Order::Schedule,
            interleave: true,
        }
    }
}

impl Endpoint {
    /// Whether it has a value of this name.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        ENDPOINT_PARAMETERS.iter().any(|parameter| parameter.name == name)
    }

    /// Sets the value of a name that it [`knows`](Self::knows).
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let known = ENDPOINT_PARAMETERS.iter().find(|parameter| parameter.name == name);
        let parameter = known.ok_or_else(|| format!("an endpoint has no `{name}`"))?;
        (parameter.set)(self, text)
            .ok_or_else(|| format!("{name} is `{text}`, not {}", parameter.rule))
    }

    /// The packets of a message.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u64 {
        self.packet_bytes.map_or(1, |size| bytes.div_ceil(size).max(1))
    }

    /// Seconds of a byte at which the overheads of full packets follow each other.
    #[must_use]
    pub fn overhead_per_byte(&self) -> f64 {
        self.packet_bytes.map_or(0.0, |size| self.packet_overhead / size as f64)
    }
}

/// `None` for `all`, or the value of any other text; no result if it has none.
fn unless_all<N>(text: &str, value: impl Fn(&str) -> Option<N>) -> Option<Option<N>> {
    if text == "all" { Some(None) } else { value(text).map(Some) }
}

/// A whole number of bytes, with a binary or decimal unit or none.
fn packet_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.strip_suffix('B') {
        _ if unit.is_empty() => 1.0,
        Some(prefix) => crate::units::scale(prefix)?,
        None => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale as u64).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused_by_their_rules() {
        let mut endpoint = Endpoint::default();
        for (name, text) in [
            ("window", "4"),
            ("packet_bytes", "32KiB"),
            ("packet_overhead", "100ns"),
            ("message_overhead", "1us"),
            ("order", "random:7"),
            ("interleave", "off"),
        ] {
            assert_eq!(endpoint.set(name, text), Ok(()), "{name}");
        }
        let expected = Endpoint {
            window: Some(4),
            packet_bytes: Some(32_768),
            packet_overhead: endpoint.packet_overhead,
            message_overhead: endpoint.message_overhead,
            order: Order::Random(7),
            interleave: false,
        };
        assert_eq!(endpoint, expected);
        assert!((endpoint.packet_overhead - 1e-7).abs() < 1e-15);
        assert!((endpoint.overhead_per_byte() * 32_768.0 - 1e-7).abs() < 1e-15);
        assert_eq!([0, 1, 32_768, 32_769].map(|bytes| endpoint.packets(bytes)), [1, 1, 1, 2]);
        assert_eq!(endpoint.set("window", "all").map(|()| endpoint.window), Ok(None));
        for (name, text) in [
            ("window", "0"),
            ("window", "-1"),
            ("window", "4294967296"),
            ("packet_bytes", "0"),
            ("packet_bytes", "0KiB"),
            ("packet_bytes", "32Ki"),
            ("packet_bytes", "20000000TiB"),
            ("packet_overhead", "-1ns"),
            ("packet_overhead", "7"),
            ("message_overhead", "1e99s"),
            ("order", "random"),
            ("order", "nearest-first"),
            ("interleave", "yes"),
        ] {
            let message = endpoint.set(name, text).unwrap_err();
            assert!(message.starts_with(&format!("{name} is `{text}`, not ")), "{message}");
        }
        assert!(endpoint.set("ports", "1").is_err());
    }
}
