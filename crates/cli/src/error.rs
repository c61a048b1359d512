//! Errors as people see them.

use std::io::{IsTerminal, Write};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use topocoll::Error;

use crate::args::Command;
use crate::render::harmless;

/// Prints a line on standard error; where that is closed nobody can be told.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Shows the error of a command on standard error: in a machine file with the line and a caret under it.
pub(crate) fn show(problem: &anyhow::Error, command: &Command) {
    match problem.downcast_ref::<Error>() {
        Some(Error::File { path, text, error }) => {
            let snippet = Snippet::source(text.as_str()).path(path.as_str());
            let span = error.span.clone().unwrap_or(0..0);
            let snippet = snippet.annotation(AnnotationKind::Primary.span(span));
            let report = [Level::ERROR.primary_title(error.message.as_str()).element(snippet)];
            let colour = std::io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
            say(&renderer.render(&report));
        }
        _ => say(&harmless(&format!("error: {problem:#}"))),
    }
    if let Some(hint) = problem.downcast_ref().and_then(|error| hint(error, command)) {
        say(&format!("\nhint: {hint}"));
    }
}

fn hint(error: &Error, command: &Command) -> Option<&'static str> {
    match error {
        Error::UnknownMachine { .. } => Some(
            "a machine is a file, the name of a shipped one (see topologies/), or a short form such as torus:16x16",
        ),
        Error::NotApplicable { .. } => Some("`topocoll algorithms MACHINE` lists what applies"),
        Error::Analysis(topocoll::AnalysisError::Work { .. })
            if matches!(command, Command::Verify(_)) =>
        {
            Some("`verify --method` asks for it explicitly")
        }
        Error::Analysis(topocoll::AnalysisError::Listing { .. }) => match command {
            Command::Schedule(args) if args.rank.is_none() => {
                Some("--rank writes what one rank sends")
            }
            _ => None,
        },
        _ => None,
    }
}
