use std::io::Write;

use anyhow::Context;
use comfy_table::Table;
use serde::Serialize;
use textwrap::{Options, WordSplitter, fill};

/// Prints a report to standard output: the JSON object, or the text, broken between words where
/// that is a terminal.
pub(crate) fn print(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut shown =
        if json { serde_json::to_string_pretty(report)? } else { broken(&harmless(&text())) };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    let mut out = std::io::stdout().lock();
    out.write_all(shown.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// What may be from the file of somebody else, without the letters that move a cursor or colour what
/// follows.
pub(crate) fn harmless(text: &str) -> String {
    let letter = |letter: char| match letter.is_control() && letter != '\n' {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(letter).collect()
}

/// Lines that are longer than those of the terminal, broken and set in.
fn broken(text: &str) -> String {
    let Some(width) = Table::new().width() else { return text.to_owned() };
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let inner = " ".repeat(if indent > 0 { indent + 2 } else { 0 });
        let options = Options::new(width.into()).subsequent_indent(&inner);
        fill(line, options.word_splitter(WordSplitter::NoHyphenation)) + "\n"
    };
    text.lines().map(line).collect()
}
