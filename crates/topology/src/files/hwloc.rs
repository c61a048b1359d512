//! hwloc's XML, as `lstopo machine.xml` writes it: packages are nodes, cores are ranks.
//!
//! A machine with at most one package is one node. Where no cores are listed, processing units are
//! ranks. Cores and units outside the `allowed_cpuset` of the machine are not counted. Caches, memory and
//! devices have no effect, unless the file has a matrix of NVLinks: then its GPUs are the ranks of one node.

use std::collections::{BTreeSet, HashMap};
use std::iter::successors;

use super::gpus::{Direct, Gpus, MOST_GPUS, Path};
use super::{Source, cluster, shown, without_effect};
use crate::Machine;
use crate::error::SpecError;
use crate::number::whole;
use crate::xml::{Element, each};

/// The matrix of bandwidths in MB/s, and that of an NVLink since its second version, and of its first.
const MATRIX: &str = "NVLinkBandwidth";
const OF_NVLINK: [u32; 2] = [25_000, 20_000];

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    // Cores and processing units outside all packages, and in each; and by element its package.
    let (mut counts, mut packages) = (vec![[0u32; 2]], Vec::new());
    let (mut allowed, mut ignored) = (None, BTreeSet::new());
    let all = each(text, |all, place| {
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
    let mut matrices = (0..all.len()).filter(|&place| all[place].get("name") == Some(MATRIX));
    if let Some(matrix) = matrices.next() {
        if let Some(other) = matrices.next() {
            return Err(all[other].wrong(format!("a second {MATRIX}")));
        }
        let machine = gpus(&all, matrix).and_then(|gpus| gpus.machine(name, reading));
        let machine = machine.map_err(|error| match error.span {
            Some(_) => error,
            None => all[matrix].wrong(error.message),
        })?;
        return Ok(without_effect(machine, ["cores", "memory", "other devices"], "the file"));
    }
    reading.refuse_but("")?;
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
    let wrong = || format!("{key} `{}` is not a list of hexadecimal numbers", shown(text));
    text.split(',').rev().map(number).collect::<Option<_>>().map(Some).ok_or_else(wrong)
}

/// The GPUs that a matrix of NVLinks joins.
fn gpus(all: &[Element], matrix: usize) -> Result<Gpus, SpecError> {
    let words = |name: &'static str| {
        let lists = all.iter().filter(move |e| e.around == Some(matrix) && e.name == name);
        lists.flat_map(|list| list.text.split_whitespace().map(move |word| (list, word)))
    };
    let indexed = |place: usize| Some((all[place].get("gp_index")?, place));
    let places: HashMap<&str, usize> = (0..all.len()).filter_map(indexed).collect();
    let (mut devices, mut values) = (Vec::new(), Vec::new());
    for (list, word) in words("indexes") {
        let index = word.rsplit_once(':').map_or(word, |(_, index)| index);
        let unknown = || list.wrong(format!("`{}` is not the gp_index of an object", shown(word)));
        devices.push(*places.get(index).ok_or_else(unknown)?);
    }
    for (list, word) in words("u64values") {
        let value = whole("a bandwidth", word, 0);
        values.push(value.map_err(|message| list.wrong(message))?);
    }
    let (count, listed) = (devices.len(), values.len());
    if count * count != listed {
        return Err(format!("{listed} values for {count} devices").into());
    }
    // A device has no link to itself.
    (0..count).for_each(|device| values[device * (count + 1)] = 0);
    let of = OF_NVLINK.into_iter().find(|of| values.iter().all(|value| value % of == 0));
    let [late, early] = OF_NVLINK;
    let of =
        of.ok_or_else(|| format!("bandwidths are not all multiples of {late}, or of {early}"))?;
    let links = |from: usize, to: usize| values[from * count + to] / of;
    let which = |key: &str, value: &str| -> Vec<usize> {
        (0..count).filter(|device| all[devices[*device]].get(key) == Some(value)).collect()
    };
    let (gpus, switches) = (which("type", "OSDev"), which("subtype", "NVSwitch"));
    if gpus.len() > MOST_GPUS || gpus.is_empty() {
        return Err(format!("{} GPUs: a node has 1 to {MOST_GPUS}", gpus.len()).into());
    }
    // The elements around each, from the root.
    let around = |device: &usize| {
        let mut chain: Vec<usize> =
            successors(Some(devices[*device]), |place| all[*place].around).collect();
        chain.reverse();
        chain
    };
    let chains: Vec<_> = gpus.iter().map(around).collect();
    let mut read = Gpus { link: Direct::nvlink(f64::from(of) * 1e6, MATRIX), ..Gpus::default() };
    for (&from, chain) in gpus.iter().zip(&chains) {
        let path = |(&to, other): (&usize, &Vec<usize>)| match links(from, to) {
            0 => {
                let both = chain.iter().zip(other).take_while(|(one, other)| one == other);
                Ok(over(&all[*both.last().map_or(&0, |(place, _)| place)]))
            }
            links => Path::parse(&format!("NV{links}")),
        };
        read.paths.push(gpus.iter().zip(&chains).map(path).collect::<Result<_, _>>()?);
        let own = all[devices[from]].given("name").map_err(|e| all[devices[from]].wrong(e))?;
        read.names.push(own.to_owned());
        read.to_switch.push(switches.iter().map(|&switch| links(from, switch)).sum());
    }
    Ok(read)
}

/// The path over PCIe between devices that are both in an element.
fn over(element: &Element) -> Path {
    // Places in the table of levels.
    Path::Over(match (element.get("type"), element.get("bridge_type")) {
        (Some("Bridge"), Some(of)) if of.starts_with('0') => 2,
        (Some("Bridge" | "PCIDev"), _) => 0,
        (Some("Machine") | None, _) => 4,
        _ => 3,
    })
}
