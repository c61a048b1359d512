//! hwloc's XML, as `lstopo machine.xml` writes it: packages are nodes, cores are ranks.
//!
//! A machine with at most one package is one node. Where no cores are listed, processing units are
//! ranks. Cores and units outside the `allowed_cpuset` of the machine are not counted. Caches, memory and
//! devices have no effect.

use std::collections::BTreeSet;

use super::{Source, cluster, without_effect};
use crate::Machine;
use crate::error::SpecError;
use crate::xml::{Element, each};

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, .. } = *file;
    // Cores and processing units outside all packages, and in each; and by element its package.
    let (mut counts, mut packages) = (vec![[0u32; 2]], Vec::new());
    let (mut allowed, mut ignored) = (None, BTreeSet::new());
    each(text, |all, place| {
        let element = &all[place];
        let mut package = element.around.map_or(0, |around| packages[around]);
        let kind = element.get("type").filter(|_| element.name == "object");
        if allowed.is_none() && kind.is_some() {
            allowed = mask(element, "allowed_cpuset")?;
        }
        let is_allowed = match (&allowed, mask(element, "cpuset")?) {
            (Some(allowed), Some(own)) => own.iter().zip(allowed).any(|(own, all)| own & all > 0),
            _ => true,
        };
        match kind {
            _ if !is_allowed => {}
            Some("Package" | "Socket") => {
                package = counts.len();
                counts.push([0; 2]);
            }
            Some("Core") => counts[package][0] += 1,
            Some("PU") => counts[package][1] += 1,
            Some("Machine") => {}
            None if element.name == "topology" => {}
            other => drop(ignored.insert(other.unwrap_or(&element.name).to_owned())),
        }
        packages.push(package);
        Ok(())
    })?;
    let of = usize::from(counts.iter().all(|count| count[0] == 0));
    let nodes: Vec<u32> = counts.iter().map(|count| count[of]).filter(|&count| count > 0).collect();
    let none = "no Core and no PU: write the file with lstopo without filters";
    let machine = cluster(name, &nodes).map_err(|_| none)?;
    Ok(without_effect(machine, ignored.iter().map(|word| &**word), "the file"))
}

/// A set of processing units in numbers of 32 units each, the lowest first: `0x1,0x0000000f`.
fn mask(element: &Element, key: &str) -> Result<Option<Vec<u32>>, String> {
    // A number that is left out is zero.
    let number = |word: &str| match word.trim_start_matches("0x") {
        "" => Some(0),
        digits => u32::from_str_radix(digits, 16).ok(),
    };
    let Some(text) = element.get(key) else { return Ok(None) };
    let wrong = || format!("{key} `{}` is not a list of hexadecimal numbers", super::shown(text));
    text.split(',').rev().map(number).collect::<Option<_>>().map(Some).ok_or_else(wrong)
}
