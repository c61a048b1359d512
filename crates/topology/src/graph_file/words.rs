//! The words of DOT and GML, and of Python's dictionaries.

use std::borrow::Cow;

use super::Wrong;

/// A word of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word<'a> {
    /// A name or a number.
    Plain(&'a str),
    /// What stands in quotes.
    Quoted(Cow<'a, str>),
    /// One of `{}[]=;,:+`, `--` or `->`.
    Mark(&'a str),
}

impl Word<'_> {
    /// The text of a name or value.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Quoted(text) => Some(text),
            Self::Mark(_) => None,
        }
    }
}

/// The words of a text, without comments.
#[derive(Clone)]
pub(super) struct Words<'a> {
    rest: &'a str,
    pub(super) line: usize,
    begins_line: bool,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str, line: usize) -> Self {
        Self { rest: text, line, begins_line: true }
    }

    /// The line of the next word.
    pub(super) fn here(&mut self) -> Result<usize, Wrong> {
        self.skip()?;
        Ok(self.line)
    }

    /// The next word, which is not taken.
    pub(super) fn peek(&self) -> Result<Option<Word<'a>>, Wrong> {
        self.clone().next()
    }

    /// Takes the next word if it is this mark.
    pub(super) fn take(&mut self, mark: &str) -> Result<bool, Wrong> {
        let is_mark = self.peek()? == Some(Word::Mark(mark));
        if is_mark {
            self.next()?;
        }
        Ok(is_mark)
    }

    pub(super) fn next(&mut self) -> Result<Option<Word<'a>>, Wrong> {
        self.skip()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let link = ["--", "->"].into_iter().find(|mark| self.rest.starts_with(mark));
        let word = match first {
            '"' | '\'' => {
                let (text, length) = quoted(self.rest, first)
                    .ok_or_else(|| (self.line, format!("no closing {first}")))?;
                self.advance(length);
                return Ok(Some(Word::Quoted(text)));
            }
            '<' => {
                let length = bracketed(self.rest).ok_or((self.line, "no closing >".to_owned()))?;
                let text = &self.rest[..length];
                self.advance(length);
                return Ok(Some(Word::Quoted(text.into())));
            }
            '{' | '}' | '[' | ']' | '=' | ';' | ',' | ':' | '+' => Word::Mark(&self.rest[..1]),
            _ if link.is_some() => Word::Mark(&self.rest[..2]),
            _ => {
                let ends = |(at, c): (usize, char)| {
                    let mark = c.is_whitespace() || "{}[]=;,:\"'<".contains(c);
                    mark || ["--", "->", "//", "/*"]
                        .iter()
                        .any(|mark| self.rest[at..].starts_with(mark))
                };
                let length = self.rest.char_indices().find(|place| ends(*place));
                Word::Plain(&self.rest[..length.map_or(self.rest.len(), |(at, _)| at.max(1))])
            }
        };
        let (Word::Plain(text) | Word::Mark(text)) = word else { unreachable!("bug: quoted") };
        self.advance(text.len());
        Ok(Some(word))
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Wrong> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.begins_line |= self.rest[..blank].contains('\n');
            self.advance_over(blank);
            let length = if self.rest.starts_with("//")
                || self.begins_line && self.rest.starts_with('#')
            {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or((self.line, "no closing */".to_owned()))?;
                end + 2
            } else {
                return Ok(());
            };
            self.advance_over(length);
        }
    }

    fn advance(&mut self, length: usize) {
        self.begins_line = false;
        self.advance_over(length);
    }

    fn advance_over(&mut self, length: usize) {
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }
}

/// The text in quotes at the beginning, and the bytes up to its end.
fn quoted(text: &str, quote: char) -> Option<(Cow<'_, str>, usize)> {
    let mut escaped = false;
    let mut chars = text.char_indices().skip(1);
    let (end, _) = chars.find(|&(_, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let inner = &text[1..end];
    let inner = match inner.contains('\\') {
        false => inner.into(),
        true => inner.replace("\\\n", "").replace(&format!("\\{quote}"), &quote.to_string()).into(),
    };
    Some((inner, end + 1))
}

/// The bytes up to the `>` that closes the first `<`.
fn bracketed(text: &str) -> Option<usize> {
    let mut open = 0;
    let (end, _) = text.char_indices().find(|(_, c)| {
        open += i32::from(*c == '<') - i32::from(*c == '>');
        open == 0
    })?;
    Some(end + 1)
}
