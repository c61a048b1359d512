//! hwloc's XML, as `lstopo machine.xml` writes it: packages are nodes, cores are ranks.
//!
//! A machine with at most one package is one node. Where no cores are listed, processing units are
//! ranks. Cores and units outside the `allowed_cpuset` of the machine are not counted. Caches, memory and
//! devices have no effect.

use std::collections::BTreeSet;

use super::{cluster, without_effect};
use crate::Machine;
use crate::error::SpecError;
use crate::xml::elements;

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    // Cores, and processing units, outside all packages and in each package.
    let (mut cores, mut units) = (vec![0u32], vec![0u32]);
    let (mut allowed, mut ignored) = (None, BTreeSet::new());
    // The depth of the open package.
    let mut package = None;
    elements(text, |element, depth| {
        if package.is_some_and(|open| depth <= open) {
            package = None;
        }
        let last = if package.is_some() { cores.len() - 1 } else { 0 };
        let mask = |key| {
            element
                .get(key)
                .map(|text| {
                    cpus(text).ok_or_else(|| {
                        element.wrong(format!(
                            "{key} `{}` is not a list of hexadecimal numbers",
                            super::shown(text)
                        ))
                    })
                })
                .transpose()
        };
        if allowed.is_none() && element.name == "object" {
            allowed = mask("allowed_cpuset")?;
        }
        if let (Some(allowed), Some(own)) = (&allowed, mask("cpuset")?)
            && own.iter().zip(allowed).all(|(own, allowed)| own & allowed == 0)
        {
            return Ok(());
        }
        match element.get("type").filter(|_| element.name == "object") {
            Some("Package" | "Socket") => {
                package = Some(depth);
                cores.push(0);
                units.push(0);
            }
            Some("Core") => cores[last] += 1,
            Some("PU") => units[last] += 1,
            Some("Machine") => {}
            Some(other) => drop(ignored.insert(other.to_owned())),
            None if element.name == "topology" => {}
            None => drop(ignored.insert(element.name.clone())),
        }
        Ok(())
    })?;
    let ranks = if cores.iter().all(|&count| count == 0) { units } else { cores };
    let nodes: Vec<u32> = ranks.into_iter().filter(|&count| count > 0).collect();
    let none = "no Core and no PU: write the file with lstopo without filters";
    let machine = cluster(name, &nodes).map_err(|_| none)?;
    Ok(without_effect(machine, ignored.iter().map(|word| &**word), "the file"))
}

/// The numbers of a set of processing units, 32 units each, the lowest first: `0x1,0x0000000f`.
fn cpus(text: &str) -> Option<Vec<u32>> {
    // A number that is left out is zero.
    let number = |word: &str| match word.trim_start_matches("0x") {
        "" => Some(0),
        digits => u32::from_str_radix(digits, 16).ok(),
    };
    text.split(',').rev().map(number).collect()
}
