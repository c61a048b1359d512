//! What `rocm-smi --showtopo` prints: GPUs are ranks of one node.
//!
//! XGMI of a weight of at most 15 is a direct link; a larger weight is that of a path over other GPUs. Over
//! PCIe, two hops are those of one processor, and three those between two. The table of link types may stand
//! alone, as `rocm-smi --showtopotype` prints it: then all XGMI is direct, and PCIe is between processors.

use std::collections::BTreeSet;

use super::gpus::{Gpus, MOST_GPUS, Path, XGMI};
use super::nvidia_smi::is_gpu;
use super::{Beginning, Source, shown, uncommented, without_effect, wrong};
use crate::Machine;
use crate::error::SpecError;

/// The titles of tables.
pub(super) const TABLES: [&str; 3] =
    ["Weight between two GPUs", "Hops between two GPUs", "Link Type between two GPUs"];

/// The weight of a direct link.
const DIRECT: u64 = 15;

/// Paths over PCIe within the GPUs of a processor, and between processors, as places in the table of levels.
const WITHIN: usize = 2;
const BETWEEN: usize = 4;

pub(super) fn knows(begins: &Beginning<'_>) -> bool {
    begins.lines.iter().any(|line| TABLES.contains(&title(line)))
}

fn title(line: &str) -> &str {
    line.trim_matches('=').trim()
}

/// A table, with the place of each row.
#[derive(Default)]
struct Table<'a> {
    gpus: Vec<&'a str>,
    rows: Vec<(&'a str, usize, Vec<&'a str>)>,
}

impl<'a> Table<'a> {
    fn add(&mut self, line: &'a str, at: usize) -> Result<(), String> {
        let words: Vec<_> = line.split_whitespace().collect();
        if self.gpus.is_empty() && words.iter().all(|word| is_gpu(word)) {
            if words.len() > MOST_GPUS {
                return Err(format!("more than {MOST_GPUS} GPUs"));
            }
            self.gpus = words;
            return Ok(());
        }
        let (row, columns) = (self.rows.len(), self.gpus.len());
        match self.gpus.get(row) {
            Some(gpu) if words[0] == *gpu && words.len() == columns + 1 => {
                self.rows.push((line, at, words[1..].to_vec()));
                Ok(())
            }
            Some(gpu) => Err(format!("not a row of {gpu} with {columns} values")),
            None => Err("not the line of GPUs, or a row after the last".to_owned()),
        }
    }
}

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let mut tables = [const { None::<Table<'_>> }; 3];
    let (mut open, mut ignored) = (None, BTreeSet::new());
    for (line, at) in uncommented(text) {
        let refuse = |message: String| wrong(at, line, message);
        if line.starts_with('=') {
            open = TABLES.iter().position(|known| *known == title(line));
            match open {
                Some(table) if tables[table].replace(Table::default()).is_some() => {
                    return Err(refuse("a second table of this title".to_owned()));
                }
                None if !title(line).contains("ROCm S") => drop(ignored.insert(title(line))),
                _ => {}
            }
        } else if let Some(table) = open.and_then(|table: usize| tables[table].as_mut()) {
            table.add(line, at).map_err(refuse)?;
        } else if tables.iter().all(Option::is_none) && !line.contains("rocm-smi") {
            ignored.insert(line);
        }
    }
    let [weights, hops, Some(types)] = tables else {
        return Err(format!("no table `{}`", TABLES[2]).into());
    };
    let gpus = types.gpus.len();
    for (title, table) in TABLES.iter().zip([weights.as_ref(), hops.as_ref(), Some(&types)]) {
        if table.is_some_and(|table| table.gpus != types.gpus || table.rows.len() != gpus) {
            return Err(format!("`{title}` has no row of each GPU of `{}`", TABLES[2]).into());
        }
    }
    let number = |table: &Option<Table<'_>>, from: usize, to: usize| {
        let Some(table) = table else { return Ok(None) };
        let (line, at, cells) = &table.rows[from];
        let refuse = |_| wrong(*at, line, format!("`{}` is not a whole number", shown(cells[to])));
        cells[to].parse::<u64>().map(Some).map_err(refuse)
    };
    let mut read = Gpus {
        link: XGMI,
        names: types.gpus.iter().map(|&gpu| gpu.to_owned()).collect(),
        paths: vec![vec![Path::Over(0); gpus]; gpus],
        ..Gpus::default()
    };
    let mut over_others = false;
    for (from, to) in (0..gpus).flat_map(|from| (0..gpus).map(move |to| (from, to))) {
        let (line, at, cells) = &types.rows[from];
        let refuse = |message| wrong(*at, line, message);
        read.paths[from][to] = match cells[to] {
            _ if from == to => continue,
            "XGMI" if number(&weights, from, to)?.is_none_or(|weight| weight <= DIRECT) => {
                Path::NvLinks(1)
            }
            "XGMI" => {
                over_others = true;
                Path::Over(BETWEEN)
            }
            "PCIE" if number(&hops, from, to)?.is_some_and(|hops| hops <= 2) => Path::Over(WITHIN),
            "PCIE" => Path::Over(BETWEEN),
            other => return Err(refuse(format!("`{}` is not XGMI or PCIE", shown(other)))),
        };
    }
    let mut machine = read.machine(name, reading)?;
    if over_others {
        machine.assume(&format!("XGMI of a weight above {DIRECT} is a path over other GPUs"));
    }
    Ok(without_effect(machine, ignored, "the file"))
}
