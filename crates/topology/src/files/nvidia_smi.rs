//! What `nvidia-smi topo -m` prints: GPUs are ranks of one node.
//!
//! `NV2` is two NVLinks. Network interfaces are the injection of the node where a switch joins the GPUs; they
//! have no effect otherwise, nor has what processors are near. The text may be pasted with blanks in place of tabs, and with the line of the command.

use super::gpus::{Gpus, MOST_GPUS, NVLINK, Path};
use super::{Beginning, Source, shown, uncommented, without_effect, wrong};
use crate::Machine;
use crate::error::SpecError;

/// Bytes a second of a network interface, assumed: 200 Gbit/s.
const INTERFACE: f64 = 25e9;

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    begins.lines.iter().any(|line| is_header(line))
}

/// Whether a line names the columns: a first row would have `X` after the name of its GPU.
fn is_header(line: &str) -> bool {
    let mut words = words(line);
    words.next() == Some("GPU0") && words.next().is_none_or(is_device_or_column)
}

fn is_device_or_column(word: &str) -> bool {
    ["GPU", "NIC", "mlx", "CPU", "NUMA"].iter().any(|begins| word.starts_with(begins))
}

/// The words of a line without the escapes that underline them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let plain = |part| match str::strip_prefix(part, "[").and_then(|part| part.split_once('m')) {
        Some((_, rest)) => rest,
        None => part,
    };
    line.split_whitespace()
        .flat_map(move |word| word.split('\u{1b}').map(plain))
        .filter(|word| !word.is_empty())
}

pub(super) fn is_gpu(word: &str) -> bool {
    word.strip_prefix("GPU").is_some_and(|number| number.parse::<u32>().is_ok())
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let (mut columns, mut affinities): (Vec<&str>, _) = (Vec::new(), None);
    let mut rows: Vec<(&str, Vec<&str>, &str, usize)> = Vec::new();
    for (line, at) in uncommented(text) {
        let refuse = |message: String| wrong(at, line, message);
        let mut words = words(line);
        let first = words.next().unwrap_or_default();
        if columns.is_empty() {
            if is_header(line) {
                let is_column = |word: &&str| !matches!(*word, "CPU" | "NUMA" | "GPU");
                columns.extend([first].into_iter().chain(words.take_while(is_column)));
                affinities = line.contains("Affinity").then_some("affinities");
                if columns.len() > 4 * MOST_GPUS {
                    return Err(refuse(format!("more than {} columns", 4 * MOST_GPUS)));
                }
            } else if !line.contains("nvidia-smi") {
                return Err(refuse(format!("`{}` before the line of GPUs", shown(line))));
            }
            continue;
        }
        if first == "Legend:" {
            break;
        }
        if !columns.contains(&first) {
            return Err(refuse(format!("`{}` is not one of the columns", shown(first))));
        }
        if rows.iter().any(|(row, ..)| *row == first) {
            return Err(refuse(format!("a second row of {first}")));
        }
        rows.push((first, words.take(columns.len()).collect(), line, at));
    }
    let gpus: Vec<usize> = (0..columns.len()).filter(|&column| is_gpu(columns[column])).collect();
    if gpus.len() > MOST_GPUS {
        return Err(format!("more than {MOST_GPUS} GPUs").into());
    }
    let mut read = Gpus {
        link: NVLINK,
        names: gpus.iter().map(|&gpu| columns[gpu].to_owned()).collect(),
        ..Gpus::default()
    };
    let row = |gpu: usize| rows.iter().find(|(name, ..)| *name == columns[gpu]);
    for &gpu in &gpus {
        let name = columns[gpu];
        let (_, cells, line, at) = row(gpu).ok_or_else(|| format!("no row of {name}"))?;
        let refuse = |message: String| wrong(*at, line, message);
        let mut paths = Vec::new();
        for &other in &gpus {
            let to = columns[other];
            let cell = *cells.get(other).ok_or_else(|| refuse(format!("no path to {to}")))?;
            paths.push(match (cell, gpu == other) {
                ("X", true) => Path::Over(0),
                (cell, false) => Path::parse(cell).map_err(refuse)?,
                (cell, true) => {
                    let rule = "a GPU has X to itself";
                    return Err(refuse(format!("{name} has `{}` to {to}: {rule}", shown(cell))));
                }
            });
        }
        read.paths.push(paths);
    }
    let interfaces = columns.len() - gpus.len();
    read.network = (interfaces > 0).then_some(interfaces as f64 * INTERFACE);
    let mut machine = read.machine(name, reading)?;
    if machine.timing.injection.node > 0.0 {
        machine.assume(&format!("{} GB/s a network interface", INTERFACE / 1e9));
    }
    Ok(without_effect(machine, affinities, "GPUs"))
}
