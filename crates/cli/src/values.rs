//! Parsers of option values.

use std::fmt;
use std::ops::Deref;

use clap::ValueEnum;
use indicatif::HumanCount;
use topocoll::spec::parse_ranks;
use topocoll::units::{parse_bytes, parse_ports, parse_seconds, parse_seconds_per_byte};
use topocoll::{Injection, PerClass, Ports, Rank, Setting, Topology, TopologyError};

/// Ranks of a machine in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RankList(pub(crate) Vec<Rank>);

/// As an option has it: runs as ranges.
impl fmt::Display for RankList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0));
        for (run, comma) in runs.zip(std::iter::once("").chain(std::iter::repeat(","))) {
            match run {
                [first, .., last] => write!(out, "{comma}{first}-{last}")?,
                rank => write!(out, "{comma}{}", rank[0])?,
            }
        }
        Ok(())
    }
}

/// One timing value, or one intra-node and one inter-node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum PerNode {
    Same(f64),
    Each([f64; 2]),
}

impl PerNode {
    /// The values of the link classes.
    pub(crate) fn on(self, topology: &dyn Topology) -> Result<PerClass, TopologyError> {
        match self {
            Self::Same(value) => Ok(PerClass::uniform(value)),
            Self::Each(values) => PerClass::of_nodes(values, topology),
        }
    }

    fn read(text: &str, one: impl Fn(&str) -> Result<f64, String>) -> Result<Self, String> {
        match text.split(',').collect::<Vec<_>>()[..] {
            [value] => one(value).map(Self::Same),
            [inside, between] => Ok(Self::Each([one(inside)?, one(between)?])),
            ref all => {
                Err(format!("{} values: one, or one intra-node and one inter-node", all.len()))
            }
        }
    }
}

/// The value of an option, and the text that gave it.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    value: T,
    text: String,
}

/// The text of an option, if it is given.
pub(crate) fn text_of<T>(given: &Option<Given<T>>) -> Option<String> {
    given.as_ref().map(|given| given.text.clone())
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A parser that keeps the text, without blanks.
pub(crate) fn given<T, E>(
    parse: impl Fn(&str) -> Result<T, E> + Clone,
) -> impl Fn(&str) -> Result<Given<T>, E> + Clone {
    move |text| Ok(Given { value: parse(text)?, text: text.split_whitespace().collect() })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Model {
    /// A barrier after each step; a shared link is charged its whole load
    Steps,
    /// Headers take channels one by one and hold them until the tail has passed
    Wormhole,
    /// Virtual-channel routers with credits, cycle by cycle
    Flit,
    /// Messages flow at max-min fair rates
    Fluid,
}

/// The traffic of all messages of an all-to-all.
pub(crate) const ALL_TO_ALL: &str = "alltoall";

/// Block sizes of a sweep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SweptSizes {
    FromTo(u64, u64),
    List(Vec<u64>),
}

/// Values of one parameter; each makes its own line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings(pub(crate) Vec<Setting>);

pub(crate) fn rank_list(text: &str) -> Result<RankList, String> {
    let mut ranks = parse_ranks(text).map_err(|e| e.message)?;
    ranks.sort_unstable();
    Ok(RankList(ranks))
}

pub(crate) fn block(text: &str) -> Result<u64, String> {
    match parse_bytes(text).map_err(|e| e.message)? {
        0 => Err("a block has at least 1 byte: an empty exchange has no cost".to_owned()),
        bytes if bytes > topocoll::MAX_BLOCK_BYTES => {
            Err(format!("a block has at most {} bytes", topocoll::MAX_BLOCK_BYTES))
        }
        bytes => Ok(bytes),
    }
}

/// A note on the first of these sizes whose unit is only a letter, such as `1M`: it is decimal.
/// `b` counts bytes here, so `1Mb` has the note too.
pub(crate) fn note_on_sizes(text: &str) -> Option<String> {
    text.split([':', ',']).find_map(|size| {
        let size = size.trim();
        let unit = size.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = size.strip_suffix(unit)?.trim_end();
        let letter = unit.trim().strip_suffix('b').unwrap_or(unit.trim()).to_ascii_uppercase();
        if !["K", "M", "G", "T"].contains(&letter.as_str()) {
            return None;
        }
        let decimal = HumanCount(parse_bytes(size).ok()?);
        let binary = |number: &str| {
            let bytes = parse_bytes(&format!("{number}{letter}iB")).ok()?;
            Some(format!("{number}{letter}iB is {}", HumanCount(bytes)))
        };
        let binary = binary(number).or_else(|| binary("1"))?;
        Some(format!("note: {size} is {decimal} bytes; {binary}"))
    })
}

pub(crate) fn ports(text: &str) -> Result<Ports, String> {
    parse_ports(text).map_err(|e| e.message)
}

pub(crate) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000_000) => Ok(count),
        _ => Err("not a whole number from 1 to 1000000".to_owned()),
    }
}

/// A positive number of seconds.
pub(crate) fn budget(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let seconds = number.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "not a positive number of seconds such as 60 or 60s".to_owned())
}

pub(crate) fn bandwidth(text: &str) -> Result<f64, String> {
    match text.trim() {
        "0" => Err("0 needs a unit: write 0s for a byte that takes no time".to_owned()),
        text => parse_seconds_per_byte(text).map_err(|e| e.message),
    }
}

/// Bytes a second of an NVLink.
pub(crate) fn nvlink(text: &str) -> Result<f64, String> {
    match bandwidth(text)? {
        0.0 => Err("an NVLink has a bandwidth".to_owned()),
        per_byte => Ok(1.0 / per_byte),
    }
}

pub(crate) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("not yes or no".to_owned()),
    }
}

pub(crate) fn bandwidths(text: &str) -> Result<PerNode, String> {
    PerNode::read(text, bandwidth)
}

pub(crate) fn startups(text: &str) -> Result<PerNode, String> {
    PerNode::read(text, |text| parse_seconds(text).map_err(|e| e.message))
}

pub(crate) fn injection(text: &str) -> Result<Injection, String> {
    match text.split_once(',') {
        Some((rank, node)) => Ok(Injection { rank: bandwidth(rank)?, node: bandwidth(node)? }),
        None => Ok(Injection { rank: bandwidth(text)?, node: 0.0 }),
    }
}

pub(crate) fn setting(text: &str) -> Result<(String, Setting), String> {
    let (key, value) = text.split_once('=').ok_or("a parameter is set as key=value")?;
    Ok((key.to_owned(), value_of(value)))
}

pub(crate) fn settings(text: &str) -> Result<(String, Settings), String> {
    let (key, values) = text.split_once('=').ok_or("a parameter is set as key=value")?;
    if values.split(',').any(str::is_empty) {
        return Err(format!("`{text}`: a value is missing"));
    }
    let values: Vec<_> = values.split(',').map(value_of).collect();
    match (1..values.len()).find(|&i| values[..i].contains(&values[i])) {
        Some(twice) => Err(format!("{key}={} is given twice", values[twice])),
        None => Ok((key.to_owned(), Settings(values))),
    }
}

fn value_of(text: &str) -> Setting {
    text.parse().map_or_else(|_| Setting::Text(text.to_owned()), Setting::Integer)
}

/// The most block sizes of a sweep.
const MAX_SIZES: usize = 256;

pub(crate) fn points(text: &str) -> Result<u32, String> {
    let points = text.parse().ok().filter(|&points| (2..=MAX_SIZES as u32).contains(&points));
    points.ok_or_else(|| format!("not a whole number from 2 to {MAX_SIZES}"))
}

pub(crate) fn block_sizes(text: &str) -> Result<SweptSizes, String> {
    let size = |text: &str| block(text).map_err(|reason| format!("`{text}`: {reason}"));
    if let Some((from, to)) = text.split_once(':') {
        let (from, to) = (size(from)?, size(to)?);
        return match from <= to {
            true => Ok(SweptSizes::FromTo(from, to)),
            false => Err(format!("the first size, {from} B, is above the last, {to} B")),
        };
    }
    let list = text.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
    if let Some(pair) = list.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("sizes must increase, but {} B follows {} B", pair[1], pair[0]));
    }
    match list.len() {
        0..=MAX_SIZES => Ok(SweptSizes::List(list)),
        many => Err(format!("{many} sizes: at most {MAX_SIZES} are allowed")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use topocoll::MAX_BLOCK_BYTES;

    use super::*;

    /// Increasing, disjoint ranges.
    fn ranges() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let lengths = proptest::collection::vec((1..1000u32, 0..1000u32), 1..20);
        lengths.prop_map(|lengths| {
            let mut next = 0;
            let range = |(gap, length)| {
                let first = next + gap;
                next = first + length + 1;
                (first, first + length)
            };
            lengths.into_iter().map(range).collect()
        })
    }

    proptest! {
        #[test]
        fn a_rank_list_has_the_ranks_it_names(ranges in ranges(), turn in 0..20usize) {
            let named = |&(first, last): &(u32, u32)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            };
            let mut text: Vec<_> = ranges.iter().map(named).collect();
            // In any order.
            let turn = turn % text.len();
            text.rotate_left(turn);
            let ranks = ranges.iter().flat_map(|&(first, last)| (first..=last).map(Rank)).collect();
            let ranks = RankList(ranks);
            prop_assert_eq!(rank_list(&ranks.to_string()), Ok(ranks.clone()));
            prop_assert_eq!(rank_list(&text.join(",")), Ok(ranks));
        }

        #[test]
        fn a_block_of_so_many_units_has_so_many_times_the_unit(
            number in 0..=1u64 << 41,
            unit in 0..UNITS.len(),
        ) {
            let (unit, scale) = UNITS[unit];
            let bytes = u128::from(number) * u128::from(scale);
            let found = block(&format!("{number}{unit}"));
            if (1..=u128::from(MAX_BLOCK_BYTES)).contains(&bytes) {
                prop_assert_eq!(found.map(u128::from), Ok(bytes));
            } else {
                let limit = if bytes == 0 { "at least 1 byte" } else { "at most 1099511627776 bytes" };
                prop_assert!(found.is_err_and(|refused| refused.contains(limit)));
            }
        }

        #[test]
        fn a_block_of_thousandths_of_a_unit_is_exact(
            number in 1..=1u64 << 30,
            unit in 0..UNITS.len(),
        ) {
            let (unit, scale) = UNITS[unit];
            let text = format!("{}.{:03}{}", number / 1000, number % 1000, unit);
            let thousandths = u128::from(number) * u128::from(scale);
            match block(&text) {
                Ok(bytes) => prop_assert_eq!(u128::from(bytes) * 1000, thousandths),
                Err(refused) if refused.contains("at most") => {
                    prop_assert!(thousandths > u128::from(MAX_BLOCK_BYTES) * 1000);
                }
                Err(refused) => {
                    prop_assert_eq!(refused, "not a whole number of bytes");
                    prop_assert!(!thousandths.is_multiple_of(1000));
                }
            }
        }

        #[test]
        fn a_size_with_a_bare_letter_is_decimal_and_has_a_note(
            number in 1..=1u64 << 20,
            unit in 0..UNITS.len(),
            other in proptest::option::of(1..9u64),
        ) {
            let (unit, scale) = UNITS[unit];
            let letter = unit.strip_suffix('B').unwrap_or(unit);
            let text = format!("{number}{letter}");
            let bytes = u128::from(number) * u128::from(scale);
            if bytes <= u128::from(MAX_BLOCK_BYTES) {
                prop_assert_eq!(block(&text).map(u128::from), Ok(bytes));
            }
            let note = note_on_sizes(&other.map_or(text.clone(), |first| format!("{first}:{text}")));
            if ["k", "M", "G", "T"].contains(&letter) {
                let note = note.unwrap().replace(',', "");
                let binary = format!("{number}{}iB", letter.to_ascii_uppercase());
                let larger = parse_bytes(&binary).unwrap();
                prop_assert_eq!(note, format!("note: {text} is {bytes} bytes; {binary} is {larger}"));
            } else {
                prop_assert_eq!(note, None);
            }
            // The full unit is clear.
            prop_assert_eq!(note_on_sizes(&format!("{number}{unit}")), None);
        }

        #[test]
        fn a_bandwidth_in_bits_is_an_eighth_of_one_in_bytes(
            number in 1..=1u64 << 40,
            prefix in prop::sample::select(vec!["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"]),
            byte in prop::sample::select(vec!["B/s", "Bps"]),
            bit in prop::sample::select(vec!["b/s", "bps", "bit/s", "bits/s"]),
            space in prop::sample::select(vec!["", " "]),
        ) {
            let bytes = bandwidth(&format!("{number}{space}{prefix}{byte}")).unwrap();
            // Powers of two are exact.
            prop_assert_eq!(bandwidth(&format!("{number}{space}{prefix}{bit}")), Ok(8.0 * bytes));
            let expected = bandwidth(&format!("{number}B/s")).unwrap();
            let scale = match prefix.strip_suffix('i') {
                Some(letter) => 1024f64.powi("KMGT".find(letter).unwrap() as i32 + 1),
                None => 1000f64.powi(" kMGT".find(prefix).filter(|_| !prefix.is_empty()).unwrap_or(0) as i32),
            };
            prop_assert!((bytes * scale / expected - 1.0).abs() < 1e-12);
        }

        #[test]
        fn sizes_from_one_to_another_rise(from in 1..=MAX_BLOCK_BYTES, to in 1..=MAX_BLOCK_BYTES) {
            let found = block_sizes(&format!("{from}:{to}"));
            let listed = block_sizes(&format!("{from},{to}"));
            prop_assert_eq!(found.is_ok(), from <= to);
            prop_assert_eq!(listed.is_ok(), from < to);
            if from < to {
                prop_assert_eq!(found, Ok(SweptSizes::FromTo(from, to)));
                prop_assert_eq!(listed, Ok(SweptSizes::List(vec![from, to])));
            }
        }

        #[test]
        fn a_parameter_is_a_number_where_it_is_written_as_one(key in "[a-z_]{0,9}", value in ".*") {
            let text = format!("{key}={value}");
            let (name, found) = setting(&text).unwrap();
            prop_assert_eq!(&name, &key);
            match value.parse::<u64>() {
                Ok(number) => prop_assert_eq!(found, Setting::Integer(number)),
                Err(_) => prop_assert_eq!(found.to_string(), value),
            }
        }
    }

    /// Units of sizes and their bytes.
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("B", 1),
        ("kB", 1000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ];

    #[test]
    fn a_rank_list_is_refused_by_the_part_that_is_none() {
        for text in ["", ",", "1,", "1,,2", "2-1", "1-2-3", "-1", "1-", "a", "4294967296", "1 2"] {
            let refused = rank_list(text).unwrap_err();
            let part = text.split(',').find(|part| part.parse::<u32>().is_err()).unwrap();
            assert!(
                refused.starts_with(&format!("`{part}` is neither a rank")),
                "{text}: {refused}"
            );
        }
    }

    #[test]
    fn a_rank_list_ends_at_its_most() {
        assert_eq!(rank_list("0-1048575").map(|list| list.0.len()), Ok(1 << 20));
        for text in ["0-1048576", "0-4294967295", "0-1048575,7", "7,1-1048576"] {
            assert_eq!(rank_list(text), Err("more than 1048576 ranks".to_owned()), "{text}");
        }
    }

    #[test]
    fn the_first_size_with_a_bare_letter_has_the_note() {
        let note = |text| note_on_sizes(text);
        let mega = "note: 1M is 1,000,000 bytes; 1MiB is 1,048,576";
        for text in ["1M", "1:1M", "64,1M,2M", " 1M"] {
            assert_eq!(note(text).as_deref(), Some(mega), "{text}");
        }
        let fraction = "note: 0.3K is 300 bytes; 1KiB is 1,024";
        assert_eq!(note("0.3K").as_deref(), Some(fraction));
        let bits = "note: 2 kb is 2,000 bytes; 2KiB is 2,048";
        assert_eq!(note("2 kb").as_deref(), Some(bits));
        for text in ["", "64", "1MB", "1MiB", "1Mi", "1x", "k", "1:2", "é"] {
            assert_eq!(note(text), None, "{text}");
        }
    }

    #[test]
    fn values_of_a_parameter_are_not_empty() {
        for text in ["radix=4,", "radix=,4", "radix=2,,4", "radix="] {
            assert!(settings(text).unwrap_err().contains("a value is missing"));
        }
    }

    #[test]
    fn numbers_end_where_they_say() {
        assert_eq!(ports("4294967295"), Ok(Ports::ALL));
        assert_eq!(ports("1,all"), Ok(Ports { rank: 1, node: u32::MAX }));
        assert!(ports("4294967296").unwrap_err().contains("4294967295"));
        assert_eq!(count("1000000"), Ok(1_000_000));
        assert!(count("1000001").unwrap_err().contains("1000000"));
        assert_eq!((points("2"), points("256")), (Ok(2), Ok(256)));
        assert!(points("1").is_err() && points("257").unwrap_err().contains("256"));
        let sizes = |most: u32| (1..=most).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        assert!(block_sizes(&sizes(256)).is_ok());
        assert!(block_sizes(&sizes(257)).unwrap_err().contains("257 sizes: at most 256"));
    }
}
