use std::io::{BufRead, Read};

use super::{ReadError, Seen};

/// The most bytes of a line, with its end. A longer line is refused before all of it is read.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The lines of a file, one at a time in memory, with their numbers.
pub(super) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    /// Called with the numbers of bytes read.
    seen: Seen<'a>,
    number: usize,
    text: String,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead, seen: Seen<'a>) -> Self {
        Self { input, seen, number: 0, text: String::new() }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.text.clear();
        self.number += 1;
        let read = Read::take(&mut self.input, MAX_LINE_BYTES + 1).read_line(&mut self.text);
        let bytes = read.map_err(|e| self.error(format!("cannot be read: {e}")))? as u64;
        if bytes > MAX_LINE_BYTES {
            return Err(self.error(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
        }
        (self.seen)(bytes);
        Ok((bytes > 0).then(|| self.text.trim_end_matches(['\n', '\r'])))
    }

    /// An error about the last line read.
    pub(super) fn error(&self, message: String) -> ReadError {
        self.error_at(self.number, message)
    }

    /// An error about an earlier line.
    pub(super) fn error_at(&self, line: usize, message: String) -> ReadError {
        ReadError::Line { file: None, line, message }
    }
}
