//! The program topocoll-mpi, started by an MPI.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::de::DeserializeOwned;

use crate::args;
use crate::bar::starting;

const PROGRAM: &str = "topocoll-mpi";

/// How to install the missing program.
const HELP: &str = "measuring needs an MPI and the program topocoll-mpi, built for it: apt-get \
                    install openmpi-bin libopenmpi-dev libclang-dev, then MPICC=mpicc.openmpi cargo \
                    build --release -p topocoll-mpi --target-dir target/openmpi, and --program \
                    names it";

impl args::MpiProgram {
    /// The command that starts it.
    pub(super) fn launch(&self) -> &str {
        self.launch.as_deref().unwrap_or("mpirun")
    }
}

/// The output of the program with these arguments and environment variables.
pub(super) fn said<T: DeserializeOwned>(
    how: &args::MpiProgram,
    arguments: &[&str],
    variables: &[(String, String)],
) -> anyhow::Result<T> {
    let launch = how.launch();
    // The machine file repeats it unchanged.
    let odd = |letter: char| "\"'\\".contains(letter) || letter.is_control();
    anyhow::ensure!(
        !launch.contains(odd),
        "--launch takes words separated by spaces, without quotes, not {launch:?}"
    );
    starting("measuring over MPI", 0);
    let mut words = launch.split_whitespace();
    let launcher = words.next().context("--launch names no command")?;
    let beside = || -> Option<PathBuf> {
        let beside = std::env::current_exe().ok()?.with_file_name(PROGRAM);
        beside.is_file().then_some(beside)
    };
    let program = how.program.clone().or_else(beside).unwrap_or(PROGRAM.into());
    let output = Command::new(launcher)
        .args(words)
        .arg(&program)
        .args(arguments)
        .envs(variables.iter().cloned())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{launcher}`"))
        .context(HELP)?;
    let program = program.display();
    let status = output.status;
    anyhow::ensure!(status.success(), "`{launch} {program}` ended with {status}; {HELP}");
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| serde_json::from_str(line).ok());
    answer.with_context(|| format!("`{launch} {program}` printed no measurements"))
}
