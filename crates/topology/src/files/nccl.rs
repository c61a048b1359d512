//! NCCL's XML of a node, as `NCCL_TOPO_DUMP_FILE` writes it: GPUs are ranks.
//!
//! NVLinks lead to GPUs of the file, or to a switch; those to a processor have no effect. Without them, GPUs are joined over PCIe, with the
//! bandwidth of their slots. The speeds of all interfaces (Mbit/s) are the injection of the node.

use std::collections::{BTreeSet, HashMap};

use super::gpus::{Gpus, MOST_GPUS, NVLINK, Path};
use super::{Source, shown, without_effect};
use crate::Machine;
use crate::error::SpecError;
use crate::xml::{Element, around, each};

/// A GPU, as it is listed.
struct Gpu {
    /// Addresses of the bridges above it and its own, with that of its processor first.
    above: Vec<String>,
    slot: Option<f64>,
    /// Addresses and numbers of links.
    nvlinks: Vec<(String, u32)>,
    to_switch: u32,
}

/// Attributes that are read, or say the version of the file.
const KNOWN: &str = "version numaid busid link_speed link_width target count tclass speed";

/// The classes of a switch of NVLinks, and of a processor that has some, as POWER.
const NVSWITCH: &str = "0x068000";
const PROCESSOR: &str = "0x068001";

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let (mut gpus, mut network): (Vec<Gpu>, Option<f64>) = (Vec::new(), None);
    let (mut ignored, mut speeds) = (BTreeSet::new(), Vec::new());
    each(text, |all, place| {
        let element = &all[place];
        let others = element.names().filter(|name| !KNOWN.split(' ').any(|known| known == *name));
        ignored.extend(others.map(|name| format!("{} {name}", element.name)));
        match &*element.name {
            "gpu" if gpus.len() == MOST_GPUS => return Err(format!("more than {MOST_GPUS} GPUs")),
            "gpu" => {
                let (mut above, mut own) = (Vec::new(), None);
                for other in around(all, place) {
                    own = own.or(slot(other)?);
                    match &*other.name {
                        "cpu" => above.push(format!("cpu {}", other.given("numaid")?)),
                        "pci" => above.push(other.given("busid")?.to_lowercase()),
                        _ => {}
                    }
                }
                above.reverse();
                gpus.push(Gpu { above, slot: own, nvlinks: Vec::new(), to_switch: 0 });
            }
            "nvlink" => {
                let gpu = gpus.last_mut().ok_or("<nvlink> outside <gpu>")?;
                let path = Path::parse(&format!("NV{}", element.given("count")?))?;
                let Path::NvLinks(count) = path else { unreachable!("bug: not NVLinks") };
                match element.get("tclass") {
                    Some(NVSWITCH) => gpu.to_switch += count,
                    Some(PROCESSOR) => drop(ignored.insert("nvlink to a processor".to_owned())),
                    _ => gpu.nvlinks.push((element.given("target")?.to_lowercase(), count)),
                }
            }
            "net" => {
                let given = element.given("speed")?;
                let speed = given.parse().unwrap_or(f64::NAN) * 1e6 / 8.0;
                if !(speed > 0.0 && speed < 1e18) {
                    return Err(format!("speed is `{}`, not a number of Mbit/s", shown(given)));
                }
                *network.get_or_insert(0.0) += speed;
                speeds.push(element.span.start);
            }
            "system" | "cpu" | "pci" | "nic" => {}
            "c2c" | "pcilink" => drop(ignored.insert(element.name.clone())),
            other => {
                let known = "system, cpu, pci, gpu, nvlink, nic, net, c2c, pcilink";
                return Err(format!("<{}> is not one of {known}", shown(other)));
            }
        }
        Ok(())
    })?;
    let mut machine = of(&gpus, network)?.machine(name, reading)?;
    if machine.timing.injection.node > 0.0 {
        machine.cite_lines("injection", text, speeds);
    }
    Ok(without_effect(machine, ignored.iter().map(|word| &**word), "the file"))
}

/// How the GPUs are joined.
fn of(gpus: &[Gpu], network: Option<f64>) -> Result<Gpus, String> {
    let own = |gpu: &Gpu| gpu.above.last().cloned().unwrap_or_default();
    let numbers: HashMap<String, usize> =
        gpus.iter().enumerate().map(|(number, gpu)| (own(gpu), number)).collect();
    if numbers.len() < gpus.len() {
        return Err("two GPUs have one address".to_owned());
    }
    let over = |one: &Gpu, other: &Gpu| {
        let shared =
            one.above.iter().zip(&other.above).take_while(|(one, other)| one == other).count();
        let deepest = one.above.len().max(other.above.len());
        Path::Over(match shared {
            0 => 4,
            1 => 2,
            shared if shared + 1 == deepest => 0,
            _ => 1,
        })
    };
    let mut paths: Vec<Vec<Path>> =
        gpus.iter().map(|one| gpus.iter().map(|other| over(one, other)).collect()).collect();
    for (from, gpu) in gpus.iter().enumerate() {
        for (target, count) in &gpu.nvlinks {
            let Some(&to) = numbers.get(target).filter(|to| **to != from) else {
                return Err(format!(
                    "NVLinks of {} lead to `{}`, which is no other GPU",
                    own(gpu),
                    shown(target)
                ));
            };
            paths[from][to] = Path::NvLinks(*count);
        }
    }
    Ok(Gpus {
        link: NVLINK,
        names: (0..gpus.len()).map(|number| format!("GPU{number}")).collect(),
        paths,
        to_switch: gpus.iter().map(|gpu| gpu.to_switch).collect(),
        slots: gpus.iter().map(|gpu| gpu.slot).collect(),
        network,
    })
}

/// Bytes a second of a slot: width times speed, without the code of the lanes.
fn slot(element: &Element) -> Result<Option<f64>, String> {
    let (Some(speed), Some(width)) = (element.get("link_speed"), element.get("link_width")) else {
        return Ok(None);
    };
    let number = speed.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    let lanes = width.parse::<u32>().ok();
    match (number.filter(|speed| *speed > 0.0 && *speed < 1e4), lanes.filter(|lanes| *lanes <= 64))
    {
        // A virtual bridge.
        (_, Some(0)) => Ok(None),
        (None, _) if speed.is_empty() || speed.starts_with("Unknown") => Ok(None),
        (Some(speed), Some(lanes)) => {
            let coded = if speed < 8.0 { 8.0 / 10.0 } else { 128.0 / 130.0 };
            Ok(Some(speed * 1e9 / 8.0 * coded * f64::from(lanes)))
        }
        _ => Err(format!("link_speed is `{}` and link_width `{}`", shown(speed), shown(width))),
    }
}
