use std::io::Write;

use anyhow::Context;
use comfy_table::Table;
use serde::Serialize;
use textwrap::{Options, WordSplitter, fill};
use topocoll::text::{is_printable, printable};

use crate::error::NO_OUTPUT;

/// Prints a report to standard output: the JSON object or the text. On a terminal, text wraps
/// between words.
pub(crate) fn print(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut shown = match json {
        true => escaped(&serde_json::to_string_pretty(report)?),
        false => broken(&text().split('\n').map(printable).collect::<Vec<_>>().join("\n")),
    };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    let mut out = std::io::stdout().lock();
    out.write_all(shown.as_bytes()).and_then(|()| out.flush()).context(NO_OUTPUT)
}

/// A JSON object with an escape for each character that is not printable. Line ends outside strings
/// stay.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter == '\n' || is_printable(letter) {
            out.push(letter);
        } else {
            out.extend(
                letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")),
            );
        }
    }
    out
}

/// Wraps and indents lines longer than the terminal's.
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
