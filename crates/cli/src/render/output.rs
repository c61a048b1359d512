use std::io::Write;

use anyhow::Context;
use serde::Serialize;

/// Prints a report to standard output: the JSON object, or the text.
pub(crate) fn print(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut shown = if json { serde_json::to_string_pretty(report)? } else { text() };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    let mut out = std::io::stdout().lock();
    out.write_all(shown.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}
