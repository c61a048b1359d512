//! Slurm's `topology.yaml`: of several topologies the default one is read, or the first.
//!
//! Blocks of `key: value` and lists of `- key: value` are read, as Slurm's documentation writes them;
//! other YAML, such as anchors or values in braces, is refused. A `tree` and a `block` mean the same as in
//! `topology.conf`. A `flat` topology names no hosts, and is refused.

use super::slurm::{Entry, machine};
use super::{Beginning, Source, shown, uncommented, without_effect, wrong};
use crate::Machine;
use crate::error::SpecError;

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    begins.lines.iter().any(|line| line.starts_with("- topology:"))
}

/// A topology of the file.
#[derive(Default)]
struct Listed<'a> {
    name: &'a str,
    is_default: bool,
    entries: Vec<Entry<'a>>,
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let (mut listed, mut sizes): (Vec<Listed<'_>>, _) = (Vec::new(), None);
    for (line, at) in uncommented(text) {
        let refuse = |message: String| wrong(at, line, message);
        let item = line.strip_prefix("- ").unwrap_or(line).trim_start();
        if matches!(line, "---" | "...") || line.starts_with('-') && item.parse::<u32>().is_ok() {
            // A size of blocks.
            continue;
        }
        let Some((key, value)) = item.split_once(':') else {
            return Err(refuse(format!("`{}` is not `key: value`", shown(line))));
        };
        let value = value.trim();
        let value = (value.strip_prefix('"').and_then(|value| value.strip_suffix('"')))
            .or_else(|| value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')))
            .unwrap_or(value);
        if value.starts_with(['{', '&', '*', '|', '>', '!', '"', '\'']) {
            return Err(refuse(format!("`{}` is not a plain value", shown(value))));
        }
        if key == "topology" {
            listed.push(Listed { name: value, ..Listed::default() });
            continue;
        }
        let Some(topology) = listed.last_mut() else {
            return Err(refuse(format!("`{}` before `- topology: NAME`", shown(key))));
        };
        let entry = topology.entries.last_mut();
        match (key, entry) {
            ("cluster_default", _) => topology.is_default = value == "true",
            ("tree" | "block" | "switches" | "blocks", _) if value.is_empty() => {}
            ("block_sizes", _) => sizes = Some(key),
            ("switch" | "block", _) => {
                topology.entries.push(Entry::at(at..at + line.len(), Some(value)));
            }
            ("nodes", Some(entry)) => entry.nodes = Some(value),
            ("children", Some(entry)) => entry.switches = Some(value),
            ("flat" | "torus3d" | "ring", _) => {
                return Err(refuse(format!(
                    "a topology `{key}` names no switches: it is not read"
                )));
            }
            _ => {
                let known = "topology, cluster_default, tree, switches, switch, children, nodes, block, \
                             block_sizes, blocks";
                return Err(refuse(format!("`{}` is not one of {known}", shown(key))));
            }
        }
    }
    let (count, chosen) = (listed.len(), listed.iter().position(|topology| topology.is_default));
    let chosen = listed.swap_remove(chosen.unwrap_or(0));
    let machine = machine(name, chosen.entries, reading)?;
    let mut machine = without_effect(machine, sizes, "blocks");
    if count > 1 {
        machine.assume(&format!("{} of {count} topologies is meant", shown(chosen.name)));
    }
    Ok(machine)
}
