use std::io::{BufRead, Read};

use super::{ReadError, Seen};

/// A line longer than this, with what ends it, is refused before it is read to its end.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The lines of a file, one at a time in memory, and counted.
pub(super) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    /// Told of the bytes read.
    seen: Seen<'a>,
    number: usize,
    text: String,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead, seen: Seen<'a>) -> Self {
        Self { input, seen, number: 0, text: String::new() }
    }

    /// The next line, without what ends it.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.text.clear();
        self.number += 1;
        let read = Read::take(&mut self.input, MAX_LINE_BYTES + 1).read_line(&mut self.text);
        let bytes = read.map_err(|e| self.error(format!("cannot be read: {e}")))? as u64;
        if bytes > MAX_LINE_BYTES {
            return Err(self.error(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        (self.seen)(bytes);
        Ok((bytes > 0).then(|| self.text.trim_end_matches(['\n', '\r'])))
    }

    /// What is wrong with the line last read.
    pub(super) fn error(&self, message: String) -> ReadError {
        self.error_at(self.number, message)
    }

    /// What is wrong with a line before.
    pub(super) fn error_at(&self, line: usize, message: String) -> ReadError {
        ReadError::Line { file: None, line, message }
    }
}
