//! The words of DOT and GML, and of Python's dictionaries.

use std::borrow::Cow;

use crate::error::SpecError;

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
    text: &'a str,
    rest: &'a str,
    begins_line: bool,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, rest: text, begins_line: true }
    }

    /// The bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// The place of the next word.
    pub(super) fn here(&mut self) -> Result<usize, SpecError> {
        self.skip()?;
        Ok(self.at())
    }

    /// An error about the last word.
    pub(super) fn wrong(&self, message: impl Into<String>) -> SpecError {
        SpecError { message: message.into(), span: Some(self.at()..self.at()) }
    }

    /// The next word, which is not taken.
    pub(super) fn peek(&self) -> Result<Option<Word<'a>>, SpecError> {
        self.clone().next()
    }

    /// Takes the next word if it is this mark.
    pub(super) fn take(&mut self, mark: &str) -> Result<bool, SpecError> {
        let is_mark = self.peek()? == Some(Word::Mark(mark));
        if is_mark {
            self.next()?;
        }
        Ok(is_mark)
    }

    pub(super) fn next(&mut self) -> Result<Option<Word<'a>>, SpecError> {
        self.skip()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let link = ["--", "->"].into_iter().find(|mark| self.rest.starts_with(mark));
        let word = match first {
            '"' | '\'' => {
                let (text, length) = quoted(self.rest, first)
                    .ok_or_else(|| self.wrong(format!("no closing {first}")))?;
                self.advance(length);
                return Ok(Some(Word::Quoted(text)));
            }
            '<' => {
                let length = bracketed(self.rest).ok_or_else(|| self.wrong("no closing >"))?;
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
    fn skip(&mut self) -> Result<(), SpecError> {
        loop {
            let rest = self.rest.trim_start();
            self.begins_line |= self.rest[..self.rest.len() - rest.len()].contains('\n');
            self.rest = rest;
            let is_line = rest.starts_with("//") || self.begins_line && rest.starts_with('#');
            let length = match is_line {
                true => rest.find('\n').unwrap_or(rest.len()),
                false if !rest.starts_with("/*") => return Ok(()),
                false => 2 + rest.find("*/").ok_or_else(|| self.wrong("no closing */"))?,
            };
            self.rest = &rest[length..];
        }
    }

    fn advance(&mut self, length: usize) {
        self.begins_line = false;
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
