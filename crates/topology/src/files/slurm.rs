//! Slurm's `topology.conf`, and what `scontrol show topology` prints.
//!
//! With lines of `Switches` it is a tree of switches: its hosts are nodes, numbered in the order of
//! the file, and a link each way joins a switch to each of its hosts and switches. The links below
//! the leaf switches are the class `level 0`, those below a switch above them `level 1`, and so on.
//! `LinkSpeed` is the speed of the links below a switch; the least of a file is the bandwidth of
//! the class. Without it links to hosts have that bandwidth, and the links from a switch upwards carry
//! together what the hosts below it can send, over the taper: files list switches, not links.
//!
//! Without such lines, nothing is known of links between leaf switches, or blocks: each becomes a
//! node, its hosts are ranks, and each rank has a port of its own.
//!
//! `scontrol` repeats below upper switches the nodes of lower ones. It prints `LinkSpeed=1` for a switch
//! without a speed.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::hostlist::expand;
use super::{Beginning, MAX_NODES, Source, cluster, shown, uncommented, without_effect};
use crate::error::SpecError;
use crate::graph_file::Listing;
use crate::number::number;
use crate::reading::{Reading, Taper};
use crate::{Capacity, Machine, Ports};

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    const KEYS: [&str; 4] = ["switchname=", "blockname=", "blocksizes=", "aggregatedblock="];
    let first = begins.first().to_ascii_lowercase();
    KEYS.iter().any(|begins| first.starts_with(begins))
}

/// A switch or a block.
#[derive(Default)]
pub(super) struct Entry<'a> {
    pub(super) span: Range<usize>,
    pub(super) name: Option<&'a str>,
    pub(super) nodes: Option<&'a str>,
    pub(super) switches: Option<&'a str>,
    pub(super) speed: Option<&'a str>,
    /// Whether its nodes are those of others.
    pub(super) repeats: bool,
    /// Places of its own nodes in the list of all hosts.
    hosts: Range<usize>,
}

impl<'a> Entry<'a> {
    pub(super) fn at(span: Range<usize>, name: Option<&'a str>) -> Self {
        Self { span, name, ..Self::default() }
    }

    fn wrong(&self, message: String) -> SpecError {
        SpecError { message, span: Some(self.span.clone()) }
    }

    fn name(&self) -> &'a str {
        shown(self.name.unwrap_or_default())
    }
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let lines = logical(text);
    let (mut entries, mut printed, mut ignored) = (Vec::new(), false, BTreeSet::new());
    for (line, span) in &lines {
        let mut entry = Entry::at(span.clone(), None);
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let value = Some(value).filter(|value| !matches!(*value, "(null)" | "(NULL)"));
            match key.to_ascii_lowercase().as_str() {
                "switchname" | "blockname" => entry.name = value,
                "aggregatedblock" => (entry.name, entry.repeats) = (value, true),
                "nodes" => entry.nodes = value,
                "switches" => entry.switches = value,
                "linkspeed" => entry.speed = value,
                "level" | "blockindex" => printed = ignored.insert(key) || printed,
                "blocksizes" | "blocksize" => drop(ignored.insert(key)),
                _ => {
                    let known = "SwitchName, BlockName, Nodes, Switches, LinkSpeed, BlockSizes";
                    return Err(entry.wrong(format!("`{}` is not one of {known}", shown(key))));
                }
            }
        }
        entries.push(entry);
    }
    if printed {
        let unsaid = entries.iter().all(|entry| entry.speed.is_none_or(|speed| speed == "1"));
        for entry in &mut entries {
            entry.repeats |= entry.switches.is_some();
            if entry.speed.take_if(|_| unsaid).is_some() {
                ignored.insert("LinkSpeed");
            }
        }
    }
    let machine = machine(name, entries, reading)?;
    Ok(without_effect(machine, ignored, "switches or blocks"))
}

/// The lines, each with those that follow a backslash at its end, and their places.
fn logical(text: &str) -> Vec<(Cow<'_, str>, Range<usize>)> {
    let mut all: Vec<(Cow<'_, str>, Range<usize>)> = Vec::new();
    let mut open = false;
    for (line, at) in uncommented(text) {
        let (said, goes_on) = line.strip_suffix('\\').map_or((line, false), |said| (said, true));
        match all.last_mut().filter(|_| open) {
            Some((joined, span)) => {
                *joined.to_mut() += said;
                span.end = at + line.len();
            }
            None => all.push((Cow::Borrowed(said), at..at + line.len())),
        }
        open = goes_on;
    }
    all
}

/// The machine of these switches or blocks.
pub(super) fn machine(
    name: &str,
    mut entries: Vec<Entry<'_>>,
    reading: &Reading,
) -> Result<Machine, SpecError> {
    let (mut hosts, mut seen, mut names) = (Vec::new(), HashSet::new(), HashSet::new());
    for entry in &mut entries {
        let before = hosts.len();
        if entry.name.is_some_and(|name| !names.insert(name)) {
            return Err(entry.wrong(format!("{} is listed twice", entry.name())));
        }
        if entry.name.is_some() && entry.nodes.is_none() && entry.switches.is_none() {
            let message = "no Nodes and no Switches: a switch has one of them";
            return Err(entry.wrong(message.to_owned()));
        }
        if let Some(nodes) = entry.nodes.filter(|_| !entry.repeats) {
            let nodes = expand(nodes, MAX_NODES - before);
            hosts.extend(nodes.map_err(|message| entry.wrong(message))?);
            if let Some(host) = hosts[before..].iter().find(|host| !seen.insert((*host).clone())) {
                let rule = "each node is under one switch";
                return Err(entry.wrong(format!("{} is listed twice: {rule}", shown(host))));
            }
        }
        entry.hosts = before..hosts.len();
    }
    let mut left = MAX_NODES;
    for entry in entries.iter().filter(|entry| entry.repeats) {
        let nodes = entry.nodes.map(|nodes| expand(nodes, left)).transpose();
        let nodes = nodes.map_err(|message| entry.wrong(message))?.unwrap_or_default();
        left -= nodes.len();
        if let Some(host) = nodes.iter().find(|host| !seen.contains(*host)) {
            return Err(entry.wrong(format!("{} is under no leaf switch", shown(host))));
        }
    }
    entries.retain(|entry| !entry.hosts.is_empty() || entry.switches.is_some());
    if entries.iter().any(|entry| entry.switches.is_some()) {
        return tree(name, &entries, hosts, reading);
    }
    reading.refuse_but("")?;
    let sizes: Vec<u32> = entries.iter().map(|entry| entry.hosts.len() as u32).collect();
    let mut machine = cluster(name, &sizes)?;
    machine.set_ports(Ports { rank: 1, node: u32::MAX });
    let speeds = entries.iter().any(|entry| entry.speed.is_some()).then_some("LinkSpeed");
    machine = without_effect(machine, speeds, "leaf switches");
    if sizes.len() > 1 {
        machine.assume(
            "each host has a link of its own, and links between leaf switches or blocks, which are not \
             listed, carry all that hosts send",
        );
    }
    Ok(machine)
}

/// The machine of the links between hosts and switches.
fn tree(
    name: &str,
    switches: &[Entry<'_>],
    hosts: Vec<String>,
    reading: &Reading,
) -> Result<Machine, SpecError> {
    let taper = reading.taper.unwrap_or(Taper::NONE);
    let assumed = match reading.taper {
        _ if switches.iter().all(|switch| switch.switches.is_none() || switch.speed.is_some()) => {
            reading.refuse_but("")?;
            None
        }
        None => Some(
            "do not block, they carry all that the hosts below can send (--taper 2: half of it)"
                .to_owned(),
        ),
        Some(taper) => {
            Some(format!("carry what the hosts below can send, over the taper of {taper}"))
        }
    };
    let numbers: HashMap<_, usize> =
        (0..).zip(switches).map(|(number, switch)| (switch.name, number)).collect();
    // By switch, those below it, and those above.
    let (mut below, mut above) = (Vec::new(), vec![Vec::new(); switches.len()]);
    for (number, switch) in switches.iter().enumerate() {
        let mut children = Vec::new();
        let names = switch.switches.map(|list| expand(list, switches.len()));
        for name in names.transpose().map_err(|message| switch.wrong(message))?.unwrap_or_default()
        {
            let Some(&child) = numbers.get(&Some(&*name)) else {
                return Err(switch.wrong(format!("{} is not a switch of this file", shown(&name))));
            };
            if above[child].last() == Some(&number) {
                return Err(switch.wrong(format!("{} is listed twice", shown(&name))));
            }
            children.push(child);
            above[child].push(number);
        }
        below.push(children);
    }
    let speeds = switches.iter().map(|switch| {
        let speed = switch.speed.map(|speed| number("LinkSpeed", speed)).transpose();
        speed.map_err(|message| switch.wrong(message))
    });
    let speeds = speeds.collect::<Result<Vec<_>, _>>()?;
    let least = speeds.iter().flatten().copied().min().unwrap_or(1);
    let speed = |number: usize| speeds[number].unwrap_or(least);
    // A switch is on the level above all switches below it. What the hosts below it send if they send all they
    // can is divided among its links upwards.
    let (mut level, mut upward) = (vec![0; switches.len()], vec![0.0; switches.len()]);
    let mut open: Vec<usize> = below.iter().map(Vec::len).collect();
    let mut known: Vec<usize> = (0..open.len()).filter(|&switch| open[switch] == 0).collect();
    while let Some(switch) = known.pop() {
        let to_hosts =
            f64::from(speed(switch)) / f64::from(least) * switches[switch].hosts.len() as f64;
        let from_below: f64 = below[switch].iter().map(|&child| upward[child]).sum();
        upward[switch] = (to_hosts + from_below) / above[switch].len().max(1) as f64;
        for &parent in &above[switch] {
            level[parent] = level[parent].max(level[switch] + 1);
            open[parent] -= 1;
            known.extend((open[parent] == 0).then_some(parent));
        }
    }
    if let Some(within) = open.iter().position(|&open| open > 0) {
        let switch = &switches[within];
        let message = format!("{} is below itself: switches form a tree", switch.name());
        return Err(switch.wrong(message));
    }
    let top = level.iter().max().copied().unwrap_or(0);
    let class = |level: usize| format!("level {level}");
    let (listing, count) = (Listing::new(true), hosts.len());
    let mut listing = listing.with_classes((0..=top).map(class));
    for host in hosts {
        listing.vertex(host, false, 0..0);
    }
    for switch in switches {
        listing.vertex(switch.name.unwrap_or_default().to_owned(), true, switch.span.clone());
    }
    for (number, switch) in switches.iter().enumerate() {
        let to_host = Capacity::Relative { times: speed(number), over: least }.lowest();
        let to_switch = |child: usize| match speeds[number] {
            Some(_) => to_host,
            None => Capacity::near(upward[child] * f64::from(taper.times) / f64::from(taper.over)),
        };
        let below_it = switch.hosts.clone().map(|host| (host, to_host));
        let children = below[number].iter().map(|&child| (count + child, to_switch(child)));
        for (end, capacity) in below_it.chain(children) {
            let ends = [end, count + number].map(|vertex| vertex as u32);
            listing.add(ends, &class(level[number]), (capacity, None), 1, None)?;
        }
    }
    let trees = trees(&below, &above);
    let is_forest = trees.iter().any(|tree| *tree > 0);
    if is_forest {
        check_tree(switches, &trees, &above, reading)?;
        let none = listing.vertex("no switch".to_owned(), true, 0..0);
        for root in (0..switches.len()).filter(|&root| above[root].is_empty()) {
            let ends = [(count + root) as u32, none];
            listing.add(ends, "between trees", (Capacity::CLASS, None), 1, None)?;
        }
    }
    let which = "links between switches without a LinkSpeed";
    let assumed = assumed.map(|what| format!("{which} {what}"));
    let mut machine = Machine { assumed, ..listing.machine(name, "")? };
    if is_forest {
        machine.assume("links between trees, which --ranks does not use");
    }
    Ok(machine)
}

/// By switch, the first switch of its tree.
fn trees(below: &[Vec<usize>], above: &[Vec<usize>]) -> Vec<usize> {
    let mut trees = vec![usize::MAX; below.len()];
    for first in 0..trees.len() {
        let mut open = vec![first];
        while let Some(switch) = open.pop() {
            if trees[switch] == usize::MAX {
                trees[switch] = first;
                open.extend(below[switch].iter().chain(&above[switch]));
            }
        }
    }
    trees
}

/// Refuses trees that have no switch in common, unless the ranks are all in one.
fn check_tree(
    switches: &[Entry<'_>],
    trees: &[usize],
    above: &[Vec<usize>],
    reading: &Reading,
) -> Result<(), SpecError> {
    let mut ranks: Vec<_> = reading.ranks.iter().flatten().map(|rank| rank.index()).collect();
    ranks.sort_unstable();
    let has = |hosts: &Range<usize>| {
        ranks
            .get(ranks.partition_point(|rank| *rank < hosts.start))
            .is_some_and(|rank| *rank < hosts.end)
    };
    let used = (0..switches.len()).filter(|&switch| has(&switches[switch].hosts));
    let used: Vec<usize> = used.map(|switch| trees[switch]).collect();
    if used.first().is_some_and(|first| used.iter().all(|tree| tree == first)) {
        return Ok(());
    }
    let other = trees.iter().position(|tree| *tree > 0).unwrap_or(0);
    let roots = switches.iter().zip(above).filter(|(_, above)| above.is_empty());
    let roots: Vec<_> = roots.map(|(root, _)| root.name()).collect();
    let (named, count) = (roots[..roots.len().min(8)].join(", "), roots.len());
    let rule =
        format!("no switch is above the {count} roots {named}; --ranks picks hosts of one tree");
    Err(switches[other].wrong(format!("{} is in another tree: {rule}", switches[other].name())))
}

#[cfg(test)]
mod tests;
