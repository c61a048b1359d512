use serde::Serialize;
use topocoll::text::value;
use topocoll_certificate::{Fault, Proved, check};
use topocoll_report::words::ports_of;

use crate::bar::starting;
use crate::machine::read_whole;
use crate::render::{Answer, Blocks, VERSION, blocks, bytes, facts, print};
use crate::{Outcome, args};

/// Most bytes of a certificate.
const LARGEST: u64 = 1 << 30;

#[derive(Serialize)]
struct Report {
    version: u32,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(flatten)]
    proved: Option<Holds>,
}

#[derive(Serialize)]
struct Holds {
    machine: String,
    ranks: u32,
    operation: String,
    algorithm: String,
    block_bytes: u64,
    ports: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u64>,
    classes: u32,
    #[serde(flatten)]
    counts: serde_json::Map<String, serde_json::Value>,
    bounds: Bounds,
    digest: String,
}

#[derive(Serialize)]
struct Bounds {
    steps: u64,
    blocks: Blocks,
    link_blocks: Blocks,
    #[serde(skip_serializing_if = "Option::is_none")]
    tradeoff_link_blocks: Option<Blocks>,
}

pub(crate) fn run(args: &args::Check) -> anyhow::Result<Outcome> {
    let name = value(&args.file.to_string_lossy());
    let text = read_whole(&args.file, LARGEST)?;
    starting("following blocks", 0);
    let found = check(&text);
    if let Err(fault @ (Fault::NoCertificate | Fault::Version(_))) = &found {
        anyhow::bail!("`{name}`: {fault}");
    }
    let report = Report {
        version: VERSION,
        holds: found.is_ok(),
        fault: found.as_ref().err().map(ToString::to_string),
        proved: found.as_ref().ok().map(holds),
    };
    print(args.json, &report, || match &found {
        Ok(proved) => text_of(proved),
        Err(fault) => Answer::failed(format!("`{name}` proves nothing: {fault}")),
    })?;
    // The same outcome as `verify`.
    let exceeds = found.is_ok_and(|proved| proved.counts.port_violations > 0);
    Ok(if report.holds && !exceeds { Outcome::Fine } else { Outcome::Failed })
}

fn in_blocks(proved: &Proved, bytes: u128) -> f64 {
    bytes as f64 / proved.block_bytes as f64
}

fn holds(proved: &Proved) -> Holds {
    let counts = proved.counts.named().into_iter();
    let number = |count| u64::try_from(count).map_or(serde_json::Value::Null, Into::into);
    Holds {
        machine: proved.machine.clone(),
        ranks: proved.ranks,
        operation: proved.operation.clone(),
        algorithm: proved.algorithm.clone(),
        block_bytes: proved.block_bytes,
        ports: proved.ports,
        node_ports: own_node_ports(proved),
        classes: proved.classes,
        counts: counts.map(|(name, count)| (name.to_owned(), number(count))).collect(),
        bounds: Bounds {
            steps: proved.least_steps,
            blocks: Blocks(in_blocks(proved, proved.least_bytes)),
            link_blocks: Blocks(in_blocks(proved, proved.least_link_bytes)),
            tradeoff_link_blocks: (proved.tradeoff_link_bytes)
                .map(|bytes| Blocks(in_blocks(proved, bytes))),
        },
        digest: proved.digest.clone(),
    }
}

/// The ports of a node, if not as many as those of a rank.
fn own_node_ports(proved: &Proved) -> Option<u64> {
    (proved.node_ports != proved.ports).then_some(proved.node_ports)
}

fn text_of(proved: &Proved) -> Answer {
    let Proved { counts, .. } = proved;
    let ports = if counts.port_violations == 0 { "" } else { " within its ports" };
    let beside = |found, least| format!("{found}; every schedule{ports} needs at least {least}");
    let held = |bytes| blocks(in_blocks(proved, bytes));
    let traded = proved
        .tradeoff_link_bytes
        .map_or(String::new(), |least| format!(", and {} in as many steps", held(least)));
    Answer::new(format!("The proof holds: {} delivers every block.", proved.algorithm))
        .about(format!(
            "{} of {} blocks on {}: {} ranks, {}.",
            proved.operation,
            bytes(proved.block_bytes),
            proved.machine,
            proved.ranks,
            ports_of(proved.ports, own_node_ports(proved)),
        ))
        .assuming(format!(
            "The blocks of one rank of each of {} class{} were followed.",
            proved.classes,
            if proved.classes == 1 { "" } else { "es" },
        ))
        .notes(facts([
            ("steps", beside(counts.steps.to_string(), proved.least_steps.to_string())),
            ("volume [blocks]", beside(held(counts.bytes), held(proved.least_bytes))),
            (
                "charged volume [blocks]",
                beside(held(counts.link_bytes), held(proved.least_link_bytes)) + &traded,
            ),
            ("hops", counts.hops.to_string()),
            ("link conflicts", counts.link_conflicts.to_string()),
            ("port violations", counts.port_violations.to_string()),
            ("digest", proved.digest.clone()),
        ]))
}
