//! Shows why a command, or its command line, fails.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::error::{ContextKind, ContextValue};
use topocoll::text::{message, value};
use topocoll::{AnalysisError, Error};

use crate::args::{Command, command};
use crate::error::{NO_OUTPUT, say};

/// The exit status if nothing reads the output any more: that of a program which the signal SIGPIPE ends.
pub(crate) const NO_READER: u8 = 141;

/// Whether a command fails because nothing reads its output any more.
pub(crate) fn has_no_reader(problem: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let of_system = || cause.downcast_ref().map(io::Error::kind);
        match (cause.downcast_ref(), cause.downcast_ref()) {
            (Some(Error::Analysis(AnalysisError::Write { kind, .. })), _)
            | (_, Some(AnalysisError::Write { kind, .. })) => Some(*kind),
            _ => of_system(),
        }
    };
    problem.chain().any(|cause| kind(cause) == Some(ErrorKind::BrokenPipe))
}

/// Prints the requested help or version, or the error in the arguments.
pub(crate) fn answer(answer: clap::Error) -> ExitCode {
    if answer.use_stderr() {
        // If standard error is closed, only the exit status shows the error.
        let _ = bounded(answer).print();
        return ExitCode::from(2);
    }
    match answer.print().and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(NO_READER),
        Err(error) => {
            say(&format!("error: {NO_OUTPUT}: {error}"));
            ExitCode::from(2)
        }
    }
}

/// The error, with printable values of bounded length.
fn bounded(mut refusal: clap::Error) -> clap::Error {
    let told = |refusal: &clap::Error, kind| match refusal.get(kind) {
        Some(ContextValue::String(text)) => value(text),
        _ => String::new(),
    };
    let reason = std::error::Error::source(&refusal).map(ToString::to_string);
    if let Some(reason) = reason.filter(|reason| message(reason) != *reason) {
        // The reason of an error cannot be replaced, so a new error states it.
        let [value, option] = [ContextKind::InvalidValue, ContextKind::InvalidArg];
        let (value, option) = (told(&refusal, value), told(&refusal, option));
        let text = format!("invalid value '{value}' for '{option}': {}", message(&reason));
        return command().error(refusal.kind(), text);
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
    // A suggestion repeats the given value.
    if let Some(ContextValue::StyledStrs(tips)) = refusal.get(ContextKind::Suggested) {
        let tips = tips.iter().map(ToString::to_string);
        if tips.into_iter().any(|tip| message(&tip) != tip) {
            refusal.remove(ContextKind::Suggested);
        }
    }
    refusal
}

/// Shows the error of a command on standard error; an error in a machine file shows its line.
pub(crate) fn show(problem: &anyhow::Error, command: &Command) {
    match problem.downcast_ref::<Error>() {
        Some(Error::File { path, text, error }) => {
            let snippet = Snippet::source(text.as_str()).path(value(path));
            let span = error.span.clone().unwrap_or(0..0);
            let snippet = snippet.annotation(AnnotationKind::Primary.span(span));
            let report = [Level::ERROR.primary_title(message(&error.message)).element(snippet)];
            say(&Renderer::styled().render(&report));
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
            "a machine is a file, a shipped machine (`topocoll machines` lists them), or a short form such as torus:16x16",
        ),
        Error::NotApplicable { .. } => {
            Some("`topocoll algorithms MACHINE` lists the algorithms that apply")
        }
        Error::Analysis(topocoll::AnalysisError::Work { .. })
            if matches!(command, Command::Verify(_)) =>
        {
            Some("`verify --method` asks for it explicitly")
        }
        Error::Analysis(topocoll::AnalysisError::Listing { .. }) => match command {
            Command::Schedule(args) if args.rank.is_none() => {
                Some("--rank writes the sends of one rank")
            }
            _ => None,
        },
        _ => None,
    }
}
