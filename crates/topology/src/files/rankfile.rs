//! Rankfiles of Open MPI, such as `rank 0=node1 slot=0:0`: hosts are nodes.
//!
//! Slots bind ranks to cores, and have no effect here.

use std::collections::BTreeMap;

use super::hosts::Hosts;
use super::{Beginning, MAX_NODES, Source, shown, uncommented, wrong};
use crate::Machine;
use crate::error::SpecError;

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    let mut words = begins.first().split_whitespace();
    words.next() == Some("rank") && words.next().is_some_and(|word| word.contains('='))
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, .. } = *file;
    listed(text)?.cluster(name, ["slot"].into())
}

/// The hosts of a file in the order of ranks.
pub(super) fn listed(text: &str) -> Result<Hosts<'_>, SpecError> {
    let mut ranks = BTreeMap::new();
    for (line, at) in uncommented(text) {
        let refuse = |message: String| wrong(at, line, message);
        let (rank, host) = rank(line).map_err(refuse)?;
        if ranks.len() == MAX_NODES {
            return Err(refuse(format!("more than {MAX_NODES} ranks")));
        }
        if ranks.insert(rank, (host, line, at)).is_some() {
            return Err(refuse(format!("rank {rank} is listed twice")));
        }
    }
    let mut hosts = Hosts::default();
    for (next, (rank, (host, line, at))) in (0..).zip(ranks) {
        if rank != next {
            let message = format!("rank {rank}, but no rank {next}: ranks are numbered from 0");
            return Err(wrong(at, line, message));
        }
        hosts.add(host, 1, at).map_err(|message| wrong(at, line, message))?;
    }
    Ok(hosts)
}

/// The rank and the host of a line.
fn rank(line: &str) -> Result<(u32, &str), String> {
    let wrong = || format!("`{}` is not a line such as `rank 0=node1 slot=0:0`", shown(line));
    let mut words = line.split_whitespace();
    let (Some("rank"), Some(place)) = (words.next(), words.next()) else { return Err(wrong()) };
    let (rank, host) = place.split_once('=').ok_or_else(wrong)?;
    let rank = rank.parse().map_err(|_| wrong())?;
    match words.find(|word| !word.starts_with("slot=") && !word.starts_with("slots=")) {
        None if !host.is_empty() => Ok((rank, host)),
        None => Err(wrong()),
        Some(word) => Err(format!("`{}` is not slot=..", shown(word))),
    }
}
