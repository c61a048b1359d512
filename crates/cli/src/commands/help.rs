//! Completions and manual pages, generated from the arguments.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::Outcome;
use crate::args::command;
use crate::completion::VARIABLE;
use crate::error::NO_OUTPUT;
use crate::render::write_folder;

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.expect("bug: a shell without completions");
    let name = "topocoll";
    completer.write_registration(VARIABLE, name, name, name, &mut text)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).context(NO_OUTPUT)?;
    Ok(Outcome::Fine)
}

/// Writes `topocoll.1` and a page for each command.
pub(super) fn pages(folder: &Path) -> anyhow::Result<Outcome> {
    write_folder(folder, |folder| Ok(clap_mangen::generate_to(command(), folder)?))?;
    Ok(Outcome::Fine)
}
