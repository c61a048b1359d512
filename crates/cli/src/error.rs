//! Error output.

use std::io::Write;

use anstyle::AnsiColor;

use crate::bar::beside_bar;

/// The error if standard output fails.
pub(crate) const NO_OUTPUT: &str = "cannot write to standard output";

/// Whether output is coloured: always, never, or on a terminal unless `NO_COLOR` is set.
pub(crate) fn set_colour(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Prints a line on standard error, its `error:`, `warning:`, `hint:` or `note:` in colour, and
/// ignores failures.
pub(crate) fn say(line: &str) {
    const LEVELS: [(&str, AnsiColor); 4] = [
        ("error:", AnsiColor::Red),
        ("warning:", AnsiColor::Yellow),
        ("hint:", AnsiColor::Green),
        ("note:", AnsiColor::Cyan),
    ];
    let level = LEVELS.iter().find(|(level, _)| line.trim_start().starts_with(level));
    let line = level.map_or(line.to_owned(), |(level, colour)| {
        let style = colour.on_default().bold();
        line.replacen(level, &format!("{style}{level}{style:#}"), 1)
    });
    let _ = beside_bar(|| writeln!(anstream::stderr(), "{line}"));
}
