//! The host files of Open MPI (`node1 slots=4`) and MPICH (`node1:4`): hosts are nodes, slots are
//! ranks.
//!
//! A line without a number of slots adds as many ranks as it has `max_slots`, otherwise one. Ranks are numbered node by node, so the lines of
//! a host must be consecutive.

use std::collections::HashSet;

use super::{MAX_NODES, cluster, lines, shown, wrong};
use crate::Machine;
use crate::error::SpecError;

/// Keys that may follow a host and are ignored.
const OTHERS: [&str; 4] = ["ifname", "binding", "user", "port"];

pub(super) fn knows(_: &str, first: &str) -> bool {
    let mut words = first.split_whitespace();
    let host = words.next().and_then(|word| word.split(':').next()).unwrap_or_default();
    let named = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !host.is_empty()
        && host.chars().all(named)
        && words.all(|word| word.split_once('=').is_some_and(|(key, _)| !key.is_empty()))
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    let mut sizes: Vec<u32> = Vec::new();
    let mut seen = HashSet::new();
    let mut last = "";
    for (line, at) in lines(text) {
        let (host, ranks) = host(line).map_err(|message| wrong(at, line, message))?;
        if host == last {
            let size = sizes.last_mut().expect("a host came before");
            *size = size
                .checked_add(ranks)
                .ok_or_else(|| wrong(at, line, format!("too many ranks on {}", shown(host))))?;
            continue;
        }
        if !seen.insert(host) {
            let rule = "lines of one host must be consecutive: write slots=N, or `host:N`, once";
            return Err(wrong(at, line, format!("host {} is listed again: {rule}", shown(host))));
        }
        if sizes.len() == MAX_NODES {
            return Err(wrong(at, line, format!("more than {MAX_NODES} hosts")));
        }
        last = host;
        sizes.push(ranks);
    }
    Ok(cluster(name, &sizes)?)
}

/// A host and its ranks.
fn host(line: &str) -> Result<(&str, u32), String> {
    let mut words = line.split_whitespace();
    let host = words.next().unwrap_or_default();
    let ranks = |text: &str| match text.parse() {
        Ok(ranks) if ranks > 0 => Ok(ranks),
        _ => Err(format!("`{}` is not a number of ranks, 1 or more", shown(text))),
    };
    let (host, mut said) = match host.split_once(':') {
        Some((host, text)) => (host, Some(ranks(text)?)),
        None => (host, None),
    };
    let mut most = None;
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "slots" if said.is_none() => said = Some(ranks(value)?),
            "slots" => return Err("a second number of ranks".to_owned()),
            "max_slots" | "max-slots" => most = Some(ranks(value)?),
            key if OTHERS.contains(&key) => {}
            key => {
                return Err(format!(
                    "`{}` is not one of slots, max_slots, {}",
                    shown(key),
                    OTHERS.join(", ")
                ));
            }
        }
    }
    Ok((host, said.or(most).unwrap_or(1)))
}
