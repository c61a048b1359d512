use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::Serialize;
use topocoll::{Fit, Network};

use crate::render::{facts, print, seconds, write_file};
use crate::{Outcome, args};

const PROGRAM: &str = "topocoll-mpi";

/// How to come by what is missing.
const HELP: &str = "--mpi needs an MPI and the program topocoll-mpi, built for it: apt-get install \
                    openmpi-bin libopenmpi-dev libclang-dev, then MPICC=mpicc.openmpi cargo build \
                    --release -p topocoll-mpi --target-dir target/openmpi, and --program names it";

#[derive(Serialize)]
struct Report {
    version: u32,
    shape: String,
    ports: u32,
    message_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<Values>,
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<Values>,
}

#[derive(Serialize)]
struct Values {
    startup_seconds: f64,
    per_byte_seconds: f64,
    rearrangement_seconds_per_byte: f64,
    fit_error: f64,
}

pub(crate) fn run(args: &args::Calibrate) -> anyhow::Result<Outcome> {
    let network = measured(args)?;
    let command = format!("topocoll calibrate --mpi --launch '{}'", args.launch);
    let file = network.machine_file(&format!("{command} --rounds {}", args.rounds));
    match &args.out {
        Some(path) => write_file(path, |out| Ok(out.write_all(file.as_bytes())?))?,
        None if !args.json => {
            std::io::stdout()
                .write_all(file.as_bytes())
                .context("cannot write the machine file")?;
            return Ok(Outcome::Fine);
        }
        None => {}
    }
    let values = |fit: &Fit| Values {
        startup_seconds: fit.startup,
        per_byte_seconds: fit.per_byte,
        rearrangement_seconds_per_byte: fit.rearrangement,
        fit_error: fit.error,
    };
    let report = Report {
        version: 1,
        shape: network.shape(),
        ports: network.ports,
        message_seconds: network.message,
        inside: network.inside.as_ref().map(values),
        between: network.between.as_ref().map(values),
    };
    print(args.json, &report, || text(&report))?;
    Ok(Outcome::Fine)
}

/// What the program says that the MPI starts.
fn measured(args: &args::Calibrate) -> anyhow::Result<Network> {
    // It is written into the machine file as it is.
    let odd = |letter: char| "\"'\\".contains(letter) || letter.is_control();
    anyhow::ensure!(
        !args.launch.contains(odd),
        "--launch: words with spaces between, without quotes, not {:?}",
        args.launch
    );
    let mut words = args.launch.split_whitespace();
    let launcher = words.next().context("--launch names no command")?;
    let beside = || -> Option<PathBuf> {
        let beside = std::env::current_exe().ok()?.with_file_name(PROGRAM);
        beside.is_file().then_some(beside)
    };
    let program = args.program.clone().or_else(beside).unwrap_or(PROGRAM.into());
    let output = Command::new(launcher)
        .args(words)
        .arg(&program)
        .arg(args.rounds.to_string())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{launcher}`"))
        .context(HELP)?;
    let program = program.display();
    anyhow::ensure!(
        output.status.success(),
        "`{} {program}` ended with {}; {HELP}",
        args.launch,
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let network = text.lines().find_map(|line| serde_json::from_str(line).ok());
    network.with_context(|| format!("`{} {program}` says nothing that was measured", args.launch))
}

fn text(report: &Report) -> String {
    let per_byte = |value: f64| format!("{:.4} ns a byte", value * 1e9);
    let mut out = format!("{}, {} at once as quick as one\n", report.shape, report.ports);
    let places = [("inside nodes", &report.inside), ("between nodes", &report.between)];
    for (place, values) in places {
        let Some(values) = values else { continue };
        out += &format!(
            "\n{place}\n{}",
            facts([
                ("startup", seconds(values.startup_seconds)),
                ("transmission", per_byte(values.per_byte_seconds)),
                ("rearrangement", per_byte(values.rearrangement_seconds_per_byte)),
                ("error of the fit", format!("{:.0} %", values.fit_error * 100.0)),
            ])
        );
    }
    out + &format!("\na message of many at once: {}\n", seconds(report.message_seconds))
}
