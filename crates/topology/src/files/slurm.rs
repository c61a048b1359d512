//! Slurm's `topology.conf`: a leaf switch, or block, becomes a node, and each of its hosts a rank.
//!
//! Switches above the leaves are ignored: links between hosts of different leaves are inter-node.

use std::collections::HashSet;

use super::{MAX_NODES, cluster, lines, shown, wrong};
use crate::Machine;
use crate::spec::SpecError;

pub(super) fn knows(_: &str, first: &str) -> bool {
    let first = first.to_ascii_lowercase();
    ["switchname=", "blockname="].iter().any(|begins| first.starts_with(begins))
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    let (mut sizes, mut hosts, mut switches) = (Vec::new(), HashSet::new(), HashSet::new());
    for (line, at) in lines(text) {
        let refuse = |message: String| wrong(at, line, message);
        let (mut named, mut nodes, mut above) = (None, None, false);
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key.to_ascii_lowercase().as_str() {
                "switchname" | "blockname" => named = Some(value),
                "nodes" => nodes = Some(value),
                "switches" => above = true,
                "linkspeed" | "blocksizes" => {}
                _ => {
                    let known = "SwitchName, BlockName, Nodes, Switches, LinkSpeed, BlockSizes";
                    return Err(refuse(format!("`{}` is not one of {known}", shown(key))));
                }
            }
        }
        if let Some(switch) = named
            && !switches.insert(switch)
        {
            return Err(refuse(format!("{} is listed twice", shown(switch))));
        }
        let Some(nodes) = nodes else {
            if named.is_some() && !above {
                return Err(refuse(
                    "no Nodes and no Switches: a switch has one of them".to_owned(),
                ));
            }
            continue;
        };
        let before = hosts.len();
        expand(nodes, MAX_NODES - before, &mut |host| match hosts.insert(host) {
            true => Ok(()),
            false => Err("a node is listed twice: each node is under one switch".to_owned()),
        })
        .map_err(refuse)?;
        sizes.push((hosts.len() - before) as u32);
    }
    cluster(name, &sizes).map_err(|e| SpecError { message: e.to_string(), span: None })
}

/// The hosts of a list such as `login,dev[0-5,08-11]x[0-1]`, at most `most`.
fn expand(
    list: &str,
    most: usize,
    each: &mut impl FnMut(String) -> Result<(), String>,
) -> Result<(), String> {
    let mut left = most;
    let mut rest = list;
    loop {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ',' && depth == 0
        });
        let (item, after) = rest.split_at(end.unwrap_or(rest.len()));
        let hosts = hosts(item, left)?;
        left -= hosts.len();
        hosts.into_iter().try_for_each(&mut *each)?;
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok(()),
        }
    }
}

/// The most characters of a host name, as in `HOST_NAME_MAX`.
const LONGEST: usize = 64;

/// The hosts of one item.
fn hosts(item: &str, most: usize) -> Result<Vec<String>, String> {
    let bad = || format!("`{}` is not a host list such as dev[0-5],login", shown(item));
    let too_many = || format!("more than {MAX_NODES} nodes");
    let mut hosts = vec![String::new()];
    let (mut rest, mut length) = (item, 0);
    if item.is_empty() {
        return Err(bad());
    }
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']').ok_or_else(bad)?;
        let mut numbers: Vec<String> = Vec::new();
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if length + before.len() + first.len() > LONGEST {
                return Err(bad());
            }
            let value = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
            let (from, to) = value(first).zip(value(last)).ok_or_else(bad)?;
            if from > to {
                return Err(bad());
            }
            let count = (to - from) as usize + 1;
            if numbers.len().saturating_add(count).saturating_mul(hosts.len()) > most {
                return Err(too_many());
            }
            // Numbers keep leading zeros.
            let width = first.len();
            numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
        }
        length += before.len() + numbers.iter().map(String::len).max().unwrap_or(0);
        hosts = (hosts.iter())
            .flat_map(|host| numbers.iter().map(move |number| format!("{host}{before}{number}")))
            .collect();
        rest = after;
    }
    if rest.contains(']') || length + rest.len() > LONGEST {
        return Err(bad());
    }
    if hosts.len() > most {
        return Err(too_many());
    }
    hosts.iter_mut().for_each(|host| host.push_str(rest));
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: &str) -> Result<Vec<String>, String> {
        let mut out = Vec::new();
        expand(list, 100, &mut |host| {
            out.push(host);
            Ok(())
        })
        .map(|()| out)
    }

    #[test]
    fn lists_have_at_most_the_given_number_of_hosts() {
        let count = |list: &str, most: usize| {
            let mut hosts = 0;
            expand(list, most, &mut |_| {
                hosts += 1;
                Ok(())
            })
            .map(|()| hosts)
            .ok()
        };
        let lists = [("a", 1), ("a,b", 2), ("a[1-4]", 4), ("a[1-2]x[1-3]", 6), ("a[1-2,5-6],c", 5)];
        for (list, hosts) in lists {
            assert_eq!(count(list, hosts), Some(hosts), "{list}");
            assert_eq!(count(list, hosts - 1), None, "{list}");
        }
    }

    #[test]
    fn host_lists_are_those_of_slurm() {
        assert_eq!(all("login,dev[8-10]").unwrap(), ["login", "dev8", "dev9", "dev10"]);
        let longest = format!("{}[08]", "a".repeat(62));
        assert_eq!(all(&longest).unwrap(), [longest.replace(['[', ']'], "")]);
        assert_eq!(all("n[08-10,3]").unwrap(), ["n08", "n09", "n10", "n3"]);
        assert_eq!(all("r[0-1]n[0-1]x").unwrap(), ["r0n0x", "r0n1x", "r1n0x", "r1n1x"]);
        for bad in [
            "",
            "a,",
            "a[",
            "a]",
            "a[]",
            "a[1-]",
            "a[2-1]",
            "a[0-4294967295]",
            "a[0-9]b[0-9]c[0-9]",
            &"a".repeat(65),
            &format!("{}[1]", "a".repeat(64)),
            &format!("a[{}]", "0".repeat(70_000)),
            &"a[0]".repeat(70_000),
        ] {
            assert!(all(bad).is_err(), "{bad}");
        }
    }
}
