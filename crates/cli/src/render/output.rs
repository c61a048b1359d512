use std::io::Write;

use anstream::AutoStream;
use anyhow::Context;
use serde::Serialize;
use textwrap::{Options, WordSplitter, wrap};
use topocoll::text::{is_printable, printable};

use super::{Answer, width};
use crate::bar::clear_bar;
use crate::error::NO_OUTPUT;
use crate::unfinished::printing;

/// Fewer columns than this are as many.
const NARROWEST: usize = 20;

/// Prints a report to standard output: the JSON object or the text. Text wraps between words.
pub(crate) fn print(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> Answer,
) -> anyhow::Result<()> {
    let shown = match json {
        true => escaped(&serde_json::to_string_pretty(report)?) + "\n",
        false => styled(&text()),
    };
    print_text(&shown)
}

/// Prints a text to standard output as it is.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    clear_bar();
    let _whole = printing();
    let mut out = AutoStream::auto(std::io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(NO_OUTPUT)
}

/// Prints a text to standard error, beside the data on standard output, and ignores failures.
pub(crate) fn print_beside(text: &Answer) {
    clear_bar();
    let mut out = AutoStream::auto(std::io::stderr().lock());
    let _ = out.write_all(styled(text).as_bytes());
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

/// The lines that a text takes on the output.
pub(crate) fn height(text: &Answer) -> usize {
    styled(text).lines().count()
}

/// The lines of a text, wrapped and indented where they are longer than the output, in their
/// styles.
fn styled(text: &Answer) -> String {
    let width = width().map_or(usize::MAX, |width| usize::from(width).max(NARROWEST));
    let mut out = String::new();
    for (style, line) in text.styled_lines() {
        let line = printable(line);
        let indent = line.len() - line.trim_start().len();
        let inner = " ".repeat(if indent > 0 { indent + 2 } else { 0 });
        let options = Options::new(width).subsequent_indent(&inner);
        for part in wrap(&line, options.word_splitter(WordSplitter::NoHyphenation)) {
            out += &format!("{style}{part}{style:#}\n");
        }
    }
    out
}
