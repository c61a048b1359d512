//! `report`: one HTML page.

use std::io::Write;

use anyhow::Context as _;
use serde::Serialize;
use topocoll::Parameters;
use topocoll::contention::check_model;
use topocoll::text::printable;
use topocoll::tune::Modelled;
use topocoll_report::{Asked, Baseline, report};

use super::heading::{about_demand, assumed_by};
use super::{command_line, gains, request, within};
use crate::bar::PROGRESS;
use crate::demand::sizes;
use crate::host::memory;
use crate::machine::{catalogue, exchange, machine, parameters};
use crate::render::{Answer, Head, bytes, check_files, print, write_file};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<String>,
    file: String,
    bytes: usize,
    ranked: usize,
    played: usize,
}

pub(crate) fn run(args: &args::Report) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--out", Some(&args.out))])?;
    let mut machine = machine(&args.common.machine, options)?;
    let (settings, rest) = request::split(&mut machine, args.model, &args.set, false)?;
    if args.algorithm.is_none() {
        request::check_no_rest(&rest)?;
    }
    let model = request::model(args.model).map(|model| (model, settings));
    if let Some((model, settings)) = &model {
        within::named(check_model(model, &machine, settings), model)?;
    }
    let catalogue = catalogue(&machine, options, &args.schedule)?;
    let mut exchange = exchange(&machine, options, &args.part)?.catalogue(&catalogue);
    let sizes = sizes(&exchange, options, &args.sizes, false)?;
    if let Some(sizes) = &sizes {
        exchange = exchange.demand(&sizes.demand)?;
    }
    let setting = parameters(&rest)?;
    let schedule = match &args.algorithm {
        Some(name) => Some(exchange.schedule(name, &setting)?),
        None => None,
    };
    let origin = schedule.as_ref().map(|schedule| &schedule.origin);
    let algorithm = origin.map(|origin| (origin.algorithm.as_str(), &origin.parameters));
    let given = args.set.iter().cloned().collect::<Parameters>();
    let mut command = command_line("report", &args.common, args.algorithm.as_deref(), &given);
    command += &args.part.to_string();
    if let Some(given) = &args.sizes.demand {
        command += &format!(" --demand {}", printable(given));
    }
    if let Some((model, _)) = &model {
        command += &format!(" --model {}", model.name);
    }
    let mut command = (args.schedule.iter()).fold(command, |command, path| {
        format!("{command} --schedule {}", printable(&path.to_string_lossy()))
    });
    let against = match gains::compared(args.against.as_deref(), args.release.as_deref())? {
        None => None,
        Some((library, release)) => {
            let operation = exchange.problem().operation;
            let modelled = Modelled::new(library, &machine, operation).context("--against")?;
            command += &format!(" --against {} --release {}", library.name, release.name);
            Some(Baseline { library, release, modelled })
        }
    };
    let asked = Asked {
        catalogue: &catalogue,
        demand: sizes.as_ref().map(|sizes| &*sizes.name),
        algorithm,
        model,
        against,
        command,
        memory: memory(),
    };
    let page = report(&exchange, &asked, &PROGRESS)?;
    let Some(best) = page.ranked.first() else {
        anyhow::bail!(
            "no algorithm serves this exchange: `topocoll algorithms {}` says why",
            args.common.machine
        );
    };
    write_file(&args.out, |file| Ok(file.write_all(page.html.as_bytes())?))?;
    let report = Report {
        head: Head::new(exchange.machine(), exchange.problem()).in_groups(&args.part),
        demand: args.sizes.demand.clone(),
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
        .about(about_demand(exchange.machine(), exchange.problem(), sizes.as_ref()) + ".")
        .assuming(assumed_by(
            exchange.machine(),
            exchange.problem().both_ports(),
            options,
        ))
    })?;
    Ok(Outcome::Fine)
}
