//! Host files of MPIs: hosts are nodes, slots are ranks.
//!
//! Those of Open MPI (`user@node1 slots=4`), MPICH (`node1:4:binding=..`) and Torque (`node1 np=4 gpus=4`,
//! or a line for each rank) are read. A line without a number of slots adds as many ranks as it has
//! `max_slots`, otherwise one. `^node1` excludes a host. Ranks are numbered in the order of lines: where hosts are
//! listed in turn, ranks are on them in turn, but for files with slots: Open MPI fills a host before the next.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use super::{Beginning, MAX_NODES, Source, cluster, shown, uncommented, without_effect, wrong};
use crate::error::SpecError;
use crate::spec::with_placement;
use crate::topology::clusters::MOST_PLACED;
use crate::{Machine, Rank};

/// Keys of the number of ranks, and of the most ranks, of a host.
const RANKS: [&str; 5] = ["slots", "slot", "cpu", "count", "np"];
const MOST: [&str; 5] = ["max_slots", "max-slots", "slots_max", "max_cpu", "max_count"];

/// Keys that may follow a host and are ignored.
const OTHERS: [&str; 8] =
    ["ifname", "binding", "user", "username", "user_name", "port", "gpus", "mics"];

/// Whether the first line has a host, and some line more than a word, a name with a digit or a dot, or
/// a host again.
pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    let mut seen = HashSet::new();
    is_host(begins.first())
        && begins.lines.iter().copied().filter(|line| is_host(line)).map(before_comment).any(
            |line| {
                let says = line.contains(|c: char| c.is_ascii_digit() || ".=:@^".contains(c));
                says || !seen.insert(line)
            },
        )
}

/// Whether a line has a host and what may follow it.
pub(super) fn is_host(line: &str) -> bool {
    let mut words = before_comment(line).split_whitespace();
    let word = words.next().unwrap_or_default().trim_start_matches('^');
    let word = word.rsplit('@').next().unwrap_or_default();
    let (host, ranks) = word.split_once(':').unwrap_or((word, "1"));
    let named = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(named)
        && (host.contains(|c: char| c.is_ascii_alphabetic()) || host.parse::<Ipv4Addr>().is_ok());
    // Properties in a file of Torque are words.
    let is_torque = words.clone().any(|word| word.starts_with("np="));
    is_name
        && ranks.starts_with(|c: char| c.is_ascii_digit())
        && words.all(|word| is_torque || word.find('=').is_some_and(|at| at > 0))
}

fn before_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// Hosts and their ranks, in the order in which they are first listed.
#[derive(Default)]
pub(super) struct Hosts<'a> {
    numbers: HashMap<&'a str, usize>,
    /// Each host, its ranks, and the place of its first line.
    pub(super) sizes: Vec<(&'a str, u32, usize)>,
    /// Hosts by their numbers, and the ranks that are added, in order.
    added: Vec<(usize, u32)>,
    /// Whether the file is one of Open MPI, which fills the slots of a host before those of the next.
    fills: bool,
}

impl<'a> Hosts<'a> {
    /// Adds ranks of a host from a line.
    pub(super) fn add(&mut self, host: &'a str, ranks: u32, at: usize) -> Result<(), String> {
        let next = self.sizes.len();
        let number = *self.numbers.entry(host).or_insert(next);
        if number == MAX_NODES {
            return Err(format!("more than {MAX_NODES} hosts"));
        }
        if number == next {
            self.sizes.push((host, 0, at));
        }
        self.added.push((number, ranks));
        let size = &mut self.sizes[number].1;
        let sum = size.checked_add(ranks);
        *size = sum.ok_or_else(|| format!("too many ranks on {}", shown(host)))?;
        Ok(())
    }

    /// The cluster of these hosts, where words of the file are ignored.
    pub(super) fn cluster(
        &self,
        name: &str,
        ignored: BTreeSet<&str>,
    ) -> Result<Machine, SpecError> {
        let sizes: Vec<_> = self.sizes.iter().map(|(_, size, _)| *size).collect();
        self.placed(cluster(name, &sizes)?, ignored)
    }

    /// A machine whose nodes are these hosts, with ranks where the file puts them and what is said of the file.
    pub(super) fn placed(
        &self,
        mut machine: Machine,
        ignored: BTreeSet<&str>,
    ) -> Result<Machine, SpecError> {
        let in_turn = !self.added.is_sorted_by_key(|(number, _)| number);
        if in_turn && self.fills {
            machine.assume("the slots of a host are filled before those of the next, as Open MPI does by default");
        } else if in_turn {
            let node = |&(host, ranks): &(usize, u32)| (0..ranks).map(move |_| Rank(host as u32));
            let nodes = self.added.iter().flat_map(node).take(MOST_PLACED as usize + 1);
            machine = with_placement(&machine, &nodes.collect::<Vec<_>>())?;
        }
        Ok(without_effect(machine, ignored, "hosts"))
    }
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let (hosts, ignored) = listed(file.text)?;
    hosts.cluster(file.name, ignored)
}

/// The hosts of a file, and the keys that are ignored.
pub(super) fn listed(text: &str) -> Result<(Hosts<'_>, BTreeSet<&str>), SpecError> {
    let (mut all, mut excluded, mut ignored) = (Vec::new(), HashSet::new(), BTreeSet::new());
    for (line, at) in uncommented(text) {
        let (host, ranks) = host(line, &mut ignored).map_err(|message| wrong(at, line, message))?;
        match host.strip_prefix('^') {
            Some(host) => drop(excluded.insert(host)),
            None => all.push((host, ranks, line, at)),
        }
    }
    let is_open_mpi = |word: &str| {
        let key = word.split('=').next().unwrap_or_default();
        key != "np" && (RANKS.contains(&key) || MOST.contains(&key))
    };
    let fills = all.iter().any(|(_, _, line, _)| line.split_whitespace().any(is_open_mpi));
    let mut hosts = Hosts { fills, ..Hosts::default() };
    for (host, ranks, line, at) in all {
        if !excluded.contains(host) {
            hosts.add(host, ranks, at).map_err(|message| wrong(at, line, message))?;
        }
    }
    Ok((hosts, ignored))
}

/// A host, after a `^` if it is excluded, and its ranks. Adds the keys that are ignored.
fn host<'a>(line: &'a str, ignored: &mut BTreeSet<&'a str>) -> Result<(&'a str, u32), String> {
    let mut words = line.split_whitespace();
    let mut parts = words.next().unwrap_or_default().splitn(3, ':');
    let host = parts.next().unwrap_or_default();
    let ranks = |text: &str| match text.parse() {
        Ok(ranks) if ranks > 0 => Ok(ranks),
        _ => Err(format!("`{}` is not a number of ranks, 1 or more", shown(text))),
    };
    let host = match host.split_once('@') {
        Some((_, host)) => {
            ignored.insert("user@");
            host
        }
        None => host,
    };
    let mut said = parts.next().map(ranks).transpose()?;
    let mut most = None;
    let is_torque = line.split_whitespace().any(|word| word.starts_with("np="));
    for word in parts.chain(words) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            key if RANKS.contains(&key) && said.is_none() => said = Some(ranks(value)?),
            key if RANKS.contains(&key) => return Err("a second number of ranks".to_owned()),
            key if MOST.contains(&key) => most = Some(ranks(value)?),
            key if OTHERS.contains(&key) || is_torque && key == word => drop(ignored.insert(key)),
            key => {
                let known = [&RANKS[..], &MOST[..1], &OTHERS].concat().join(", ");
                return Err(format!("`{}` is not one of {known}", shown(key)));
            }
        }
    }
    if said.is_some() && most.is_some() {
        ignored.insert("max_slots");
    }
    Ok((host, said.or(most).unwrap_or(1)))
}
