//! The contention models beside the steps model, on measured rows of few nodes.

use std::fmt::Write as _;

use rayon::prelude::*;
use topocoll::Machine;
use topocoll::contention::{
    AllToAll, MODELS, Request, Scheduled, Settings, Traffic, in_seconds, simulate,
};

use super::model::{Constants, Row, Way};
use super::{Measured, with_unit};

const NAMES: [&str; 4] = ["steps", "fluid", "wormhole", "flit"];

/// Bytes of packets and of flits of the flit model.
const PACKET: u64 = 2048;
const FLIT: u64 = 256;

/// The rows: shape, implementations and block sizes.
const ROWS: [(&str, &[Way], &[u64]); 3] = [
    (
        "2x2x2",
        &[Way::Pairwise, Way::Linear, Way::Bruck, Way::Bine],
        &[256, 16384, 131_072, 1 << 20],
    ),
    ("4x4x4", &[Way::Pairwise, Way::Linear, Way::Bruck, Way::Bine], &[256, 16384, 131_072]),
    ("8x8x8", &[Way::Pairwise, Way::Bruck], &[16384, 131_072]),
];

/// Why a model errs on an implementation, where its errors are among the five worst.
const REASONS: [(&str, &str, &str); 5] = [
    (
        "linear",
        "wormhole",
        "a worm that is blocked holds the interface of its sender, and all links behind it; the machine sends packets",
    ),
    (
        "bruck",
        "wormhole",
        "a message of half of all blocks is one worm that holds each link of its route; packets take turns",
    ),
    (
        "pairwise",
        "fluid",
        "links are shared without loss; on the machine a packet that waits for one link holds a channel of another",
    ),
    (
        "linear",
        "fluid",
        "overheads of messages overlap with the transmission of others; measured times add both up",
    ),
    (
        "pairwise",
        "steps",
        "messages just below the size of rendezvous take longer than others, as the copies of eager messages are left out",
    ),
];

/// Microseconds by a model with some virtual channels.
fn simulated(
    row: &Row,
    (machine, constants): (&Machine, &Constants),
    model: &str,
    vcs: u32,
) -> f64 {
    let mut on = row.case.machine(machine, constants, row.bytes);
    let mut settings = Settings::default();
    settings.vcs = vcs;
    if model == "flit" {
        // A network interface is an input of the router.
        on.set_ports(1);
        on.endpoint.packet_bytes = Some(PACKET);
        settings.flit_bytes = FLIT;
    }
    let schedule = row.case.schedule(&row.case.machine(machine, constants, row.bytes), row.bytes);
    let (scheduled, at_once) =
        (Scheduled::new(&schedule, &on), AllToAll::new(&on, row.bytes, 1 << 32));
    let traffic: &dyn Traffic = match &at_once {
        Ok(all) if row.case.is_at_once() => all,
        _ => &scheduled,
    };
    let model = MODELS.iter().find(|known| known.name == model).unwrap();
    let mut request = Request::new(traffic, &on, model, 1 << 32);
    request.settings = settings;
    in_seconds(simulate(&request).unwrap().time) * 1e6
}

/// The part of the page.
pub(super) fn table(of: &Measured) -> String {
    let Measured { machine, constants, rows } = of;
    let of_rows = ROWS.iter().flat_map(|(shape, ways, sizes)| {
        rows.iter().filter(move |row| {
            row.shape == *shape
                && ways.contains(&row.case.way)
                && sizes.contains(&row.bytes)
                && !super::is_alias(row)
        })
    });
    let chosen: Vec<&Row> = of_rows.collect();
    let errors: Vec<[Option<f64>; 4]> = chosen
        .par_iter()
        .map(|row| {
            let pairwise = row.case.way == Way::Pairwise && row.bytes <= 131_072;
            let few = row.case.ranks() <= 64 && (pairwise || row.bytes <= 16384);
            let of = |model: &str| match model {
                "steps" => Some(row.predicted(constants)),
                "flit" if !few => None,
                model => Some(simulated(row, (machine, constants), model, 2)),
            };
            NAMES.map(|model| of(model).map(|us| 100.0 * (us / row.us - 1.0)))
        })
        .collect();
    let mut out =
        "| row | measured [us] | steps | fluid | wormhole | flit |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (row, errors) in chosen.iter().zip(&errors) {
        let Row { shape, algorithm, bytes, us, .. } = row;
        let _ = write!(out, "| {shape}, {algorithm}, {} | {us} |", with_unit(*bytes));
        for error in errors {
            let text = error.map_or_else(String::new, |error| format!("{error:+.0} %"));
            let _ = write!(out, " {text} |");
        }
        out.push('\n');
    }
    let mut worst: Vec<(f64, &Row, &str)> = Vec::new();
    for (row, errors) in chosen.iter().zip(&errors) {
        let found = NAMES.into_iter().zip(errors);
        worst.extend(found.filter_map(|(model, error)| Some(((*error)?, *row, model))));
    }
    worst.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    out += "\nThe five worst errors, and their reasons:\n\n";
    for (error, Row { shape, algorithm, bytes, .. }, model) in &worst[..5] {
        let is = |(of, by, _): &&(&str, &str, &str)| of == algorithm && by == model;
        let (.., reason) = REASONS.iter().find(is).unwrap_or_else(|| panic!("{algorithm} {model}"));
        let size = with_unit(*bytes);
        let _ = writeln!(out, "- {shape}, {algorithm}, {size}, {model}, {error:+.0} %: {reason}.");
    }
    out += "\nPairwise by the number of virtual channels of a link:\n\n";
    out += "| row | measured [us] | model | 2 | 4 | 8 |\n|---|---|---|---|---|---|\n";
    for (shape, bytes, models) in [
        ("4x4x4", 16384, &["flit"][..]),
        ("4x4x4", 131_072, &["wormhole"]),
        ("8x8x8", 131_072, &["wormhole"]),
    ] {
        let is =
            |row: &&&Row| (row.shape, row.bytes, row.case.way) == (shape, bytes, Way::Pairwise);
        let row = chosen.iter().find(is).unwrap();
        for model in models {
            let _ = write!(out, "| {shape}, {} | {} | {model} |", with_unit(bytes), row.us);
            for vcs in [2, 4, 8] {
                let us = simulated(row, (machine, constants), model, vcs);
                let _ = write!(out, " {:.0} ({:+.0} %) |", us, 100.0 * (us / row.us - 1.0));
            }
            out.push('\n');
        }
    }
    out
}
