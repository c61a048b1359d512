//! `report`: one HTML page.

use std::io::Write;

use serde::Serialize;
use topocoll::text::printable;
use topocoll_report::{PARTS, report};

use super::command_line;
use super::heading::{about, assumed_by};
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine, parameters};
use crate::render::{Answer, Bar, Head, bytes, check_files, print, write_file};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    file: String,
    bytes: usize,
    ranked: usize,
    played: usize,
}

pub(crate) fn run(args: &args::Report) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--out", Some(&args.out))])?;
    let machine = machine(&args.common.machine, options)?;
    let catalogue = catalogue(&machine, options, &args.schedule)?;
    let exchange = exchange(&machine, options, None)?.catalogue(&catalogue);
    let setting = parameters(&args.set)?;
    let schedule = match &args.algorithm {
        Some(name) => Some(exchange.schedule(name, &setting)?),
        None => None,
    };
    let origin = schedule.as_ref().map(|schedule| &schedule.origin);
    let asked = origin.map(|origin| (origin.algorithm.as_str(), &origin.parameters));
    let command = command_line("report", &args.common, args.algorithm.as_deref(), &setting);
    let command = (args.schedule.iter()).fold(command, |command, path| {
        format!("{command} --schedule {}", printable(&path.to_string_lossy()))
    });
    let bar = Bar::new("{wide_bar} {pos} of {len} parts, {eta} left");
    bar.set_length(PARTS);
    let page = report(&exchange, asked, command, memory(), &|| bar.inc(1))?;
    drop(bar);
    let Some(best) = page.ranked.first() else {
        anyhow::bail!(
            "no algorithm serves this exchange: `topocoll algorithms {}` says why",
            args.common.machine
        );
    };
    write_file(&args.out, |file| Ok(file.write_all(page.html.as_bytes())?))?;
    let report = Report {
        head: Head::new(&machine, exchange.problem()),
        file: printable(&args.out.to_string_lossy()),
        bytes: page.html.len(),
        ranked: page.ranked.len(),
        played: page.played,
    };
    print(options.json, &report, || {
        let first = match &args.algorithm {
            Some(name) => name.clone(),
            None => format!("{best}, the choice of select"),
        };
        Answer::new(format!(
            "{} ({}) opens with {first}: {} choices ranked, {} schedules to watch.",
            report.file,
            bytes((report.bytes as u64).next_multiple_of(1024)),
            report.ranked,
            report.played,
        ))
        .about(about(&machine, exchange.problem()) + ".")
        .assuming(assumed_by(&machine, exchange.problem().ports, options))
    })?;
    Ok(Outcome::Fine)
}
