//! Errors as people see them.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use topocoll::Error;
use topocoll::text::{message, value};

use crate::args::{Args, Command};

/// Why an answer does not arrive.
pub(crate) const NO_OUTPUT: &str = "cannot write to standard output";

/// Prints a line on standard error; where that is closed nobody can be told.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints the help or the version that was asked for, or why the arguments are refused.
pub(crate) fn answer(answer: clap::Error) -> ExitCode {
    if answer.use_stderr() {
        // On a closed standard error the refusal is lost; the exit status tells.
        let _ = bounded(answer).print();
        return ExitCode::from(2);
    }
    match answer.print().and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {NO_OUTPUT}: {error}"));
            ExitCode::from(2)
        }
    }
}

/// The refusal with its values printable and of bounded length.
fn bounded(mut refusal: clap::Error) -> clap::Error {
    let told = |refusal: &clap::Error, kind| match refusal.get(kind) {
        Some(ContextValue::String(text)) => value(text),
        _ => String::new(),
    };
    let reason = std::error::Error::source(&refusal).map(ToString::to_string);
    if let Some(reason) = reason.filter(|reason| message(reason) != *reason) {
        // The reason of a refusal cannot be replaced: it is told in another one.
        let [value, option] = [ContextKind::InvalidValue, ContextKind::InvalidArg];
        let (value, option) = (told(&refusal, value), told(&refusal, option));
        let text = format!("invalid value '{value}' for '{option}': {}", message(&reason));
        return Args::command().error(refusal.kind(), text);
    }
    let strings: Vec<_> = (refusal.context())
        .filter_map(|(kind, context)| match context {
            ContextValue::String(text) => Some((kind, ContextValue::String(value(text)))),
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| value(text)).collect();
                Some((kind, ContextValue::Strings(texts)))
            }
            _ => None,
        })
        .collect();
    for (kind, context) in strings {
        refusal.insert(kind, context);
    }
    // What is suggested repeats what was given.
    if let Some(ContextValue::StyledStrs(tips)) = refusal.get(ContextKind::Suggested) {
        let tips = tips.iter().map(ToString::to_string);
        if tips.into_iter().any(|tip| message(&tip) != tip) {
            refusal.remove(ContextKind::Suggested);
        }
    }
    refusal
}

/// Shows the error of a command on standard error: in a machine file with the line and a caret under it.
pub(crate) fn show(problem: &anyhow::Error, command: &Command) {
    match problem.downcast_ref::<Error>() {
        Some(Error::File { path, text, error }) => {
            let snippet = Snippet::source(text.as_str()).path(value(path));
            let span = error.span.clone().unwrap_or(0..0);
            let snippet = snippet.annotation(AnnotationKind::Primary.span(span));
            let report = [Level::ERROR.primary_title(message(&error.message)).element(snippet)];
            let colour = std::io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
            say(&renderer.render(&report));
        }
        _ => say(&message(&format!("error: {problem:#}"))),
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
