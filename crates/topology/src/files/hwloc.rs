//! hwloc's XML, as `lstopo machine.xml` writes it: packages are nodes, cores are ranks.
//!
//! A machine of one package, or none, is one node. Where no cores are listed, processing units are
//! ranks. Caches, memory and devices are read over.

use super::cluster;
use super::xml::elements;
use crate::Machine;
use crate::spec::SpecError;

pub(super) fn knows(_: &str, first: &str) -> bool {
    first.starts_with('<')
}

pub(super) fn read(name: &str, text: &str) -> Result<Machine, SpecError> {
    // Cores, and processing units, before the first package and in each.
    let (mut cores, mut units) = (vec![0u32], vec![0u32]);
    // The depth of the package that is open.
    let mut package = None;
    elements(text, |element, depth| {
        if depth == 0 && element.name != "topology" {
            let root = super::shown(&element.name);
            return Err(element.wrong(format!(
                "<{root}>: machines are read from <platform> (SimGrid) and <topology> (hwloc)"
            )));
        }
        if package.is_some_and(|open| depth <= open) {
            package = None;
        }
        let last = if package.is_some() { cores.len() - 1 } else { 0 };
        match element.get("type").filter(|_| element.name == "object") {
            Some("Package" | "Socket") => {
                package = Some(depth);
                cores.push(0);
                units.push(0);
            }
            Some("Core") => cores[last] += 1,
            Some("PU") => units[last] += 1,
            _ => {}
        }
        Ok(())
    })?;
    let ranks = if cores.iter().all(|&count| count == 0) { units } else { cores };
    let nodes: Vec<u32> = ranks.into_iter().filter(|&count| count > 0).collect();
    cluster(name, &nodes).map_err(|_| SpecError {
        message: "neither a Core nor a PU: lstopo lists them unless told otherwise".to_owned(),
        span: None,
    })
}
