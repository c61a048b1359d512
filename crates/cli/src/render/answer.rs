use anstyle::{AnsiColor, Style};

use super::Table;

const ANSWER: Style = Style::new().bold();
const FAILED: Style = AnsiColor::Red.on_default().bold();
const ASSUMED: Style = Style::new().dimmed();
const HEADER: Style = Style::new().underline();
const PLAIN: Style = Style::new();

/// The text of a report. Every command has the same order: the answer, what it answers, the
/// assumptions, tables, notes.
#[derive(Default)]
pub(crate) struct Answer {
    lines: Vec<(Style, String)>,
}

impl Answer {
    /// A text that begins with the answer in one line.
    pub(crate) fn new(answer: impl AsRef<str>) -> Self {
        Self::default().lines(ANSWER, answer.as_ref())
    }

    /// The same for a check that failed.
    pub(crate) fn failed(answer: impl AsRef<str>) -> Self {
        Self::default().lines(FAILED, answer.as_ref())
    }

    /// What the answer is about, beneath it.
    pub(crate) fn about(self, text: impl AsRef<str>) -> Self {
        self.lines(PLAIN, text.as_ref())
    }

    /// What the answer assumes, beneath that.
    pub(crate) fn assuming(self, text: impl AsRef<str>) -> Self {
        self.lines(ASSUMED, text.as_ref())
    }

    /// A table, after an empty line.
    pub(crate) fn table(self, table: &Table) -> Self {
        self.apart().also(table)
    }

    /// A table beneath what is there.
    pub(crate) fn also(self, table: &Table) -> Self {
        self.lines(HEADER, &table.header).lines(PLAIN, &table.rows)
    }

    /// Adds lines after an empty line. An empty text adds nothing.
    pub(crate) fn notes(self, notes: impl AsRef<str>) -> Self {
        match notes.as_ref() {
            "" => self,
            notes => self.apart().lines(PLAIN, notes),
        }
    }

    /// Adds a heading and indented lines after an empty line. An empty text adds nothing.
    pub(crate) fn list(self, heading: &str, lines: impl AsRef<str>) -> Self {
        match lines.as_ref() {
            "" => self,
            lines => self.apart().lines(PLAIN, heading).lines(PLAIN, lines),
        }
    }

    /// All lines with their styles.
    pub(super) fn styled_lines(&self) -> &[(Style, String)] {
        &self.lines
    }

    fn apart(self) -> Self {
        if self.lines.is_empty() { self } else { self.lines(PLAIN, "\n") }
    }

    fn lines(mut self, style: Style, text: &str) -> Self {
        self.lines.extend(text.lines().map(|line| (style, line.to_owned())));
        self
    }
}
