//! Text from files and arguments, made safe to print and to write.
//!
//! All external text is printable: names of machines and titles are escaped when they are read, origins in
//! `Schedule::new`, and messages when they are shown. Messages cut values of more than 200 characters.

use std::borrow::Cow;

/// The most characters of a value in a message.
const LONGEST: usize = 200;

/// Whether a character is visible, stays on its line, moves no cursor and changes no text
/// direction.
#[must_use]
pub fn is_printable(letter: char) -> bool {
    let invisible = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !invisible
}

/// The text with an escape such as `\n` or `\u{1b}` for each character that is not printable.
///
/// Names of machines, titles and origins of schedules pass through here when they are read.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_printable(letter) {
            out.push(letter);
        } else {
            out.extend(letter.escape_default());
        }
    }
    out
}

/// A value for a message: printable, and cut to its first 200 characters, followed by its length.
#[must_use]
pub fn value(text: &str) -> String {
    let shown = printable(text);
    match shown.char_indices().nth(LONGEST) {
        None => shown,
        Some((end, _)) => format!("{}… ({} characters)", &shown[..end], text.chars().count()),
    }
}

/// A message on one line: each value in backticks, and each word outside them, as [`value()`] shows it.
#[must_use]
pub fn message(text: &str) -> String {
    let word = |word: &str| match word.strip_suffix(':') {
        Some(word) => value(word) + ":",
        None => value(word),
    };
    let part = |(i, part): (usize, &str)| match i % 2 {
        0 => part.split(' ').map(word).collect::<Vec<_>>().join(" "),
        _ => value(part),
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// The name that the given one most likely means: it begins with the given one, or differs from it
/// in at most a third of the letters.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Fewer letters begin too many names.
    const BEGINNING: usize = 3;
    let given = given.to_lowercase();
    let letters = given.chars().count();
    // Edit distance takes quadratic time, and no name is that long.
    if letters > LONGEST {
        return None;
    }
    let is_close = |name: &str, edits| {
        letters >= BEGINNING && name.starts_with(&given)
            || edits <= (letters.max(name.chars().count()) / 3).max(1) && edits < letters
    };
    let near = names.into_iter().map(|name| (strsim::osa_distance(&given, name), name));
    let near = near.filter(|&(edits, name)| is_close(name, edits));
    near.min_by_key(|&(edits, _)| edits).map(|(_, name)| name)
}

/// The number of the line at an offset.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The lines that are not empty, without the blanks around them, and their offsets.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut ends = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        ends += line.len();
        (line.trim(), ends - line.trim_start().len())
    });
    lines.filter(|(line, _)| !line.is_empty())
}

/// The [`lines`] that are not empty without comments, which begin with `#`, and their offsets.
pub(crate) fn uncommented(text: &str) -> impl Iterator<Item = (&str, usize)> {
    lines(text)
        .map(|(line, at)| (line.split('#').next().unwrap_or_default().trim_end(), at))
        .filter(|(line, _)| !line.is_empty())
}

/// The values of a line of CSV, without the blanks around them. A value in double quotes may have commas,
/// and doubled quotes.
pub(crate) fn fields(line: &str) -> Result<Vec<Cow<'_, str>>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let after = match rest.strip_prefix('"') {
            None => {
                let (value, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                fields.push(Cow::Borrowed(value.trim_end()));
                after
            }
            Some(mut quoted) => {
                let mut value = String::new();
                loop {
                    let Some((part, after)) = quoted.split_once('"') else {
                        return Err(format!("`{rest}` has no closing quote"));
                    };
                    value.push_str(part);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            value.push('"');
                            quoted = more;
                        }
                        None => {
                            quoted = after.trim_start();
                            break;
                        }
                    }
                }
                fields.push(Cow::Owned(value));
                quoted
            }
        };
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.is_empty() => return Ok(fields),
            None => return Err(format!("`{after}` after a closing quote")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_its_misspellings_and_beginnings() {
        let names = ["torus", "mesh", "paragon-16x16", "paragon-16x16-mesh", "twisted-torus"];
        for (given, name) in [
            ("tours", Some("torus")),
            ("Torus", Some("torus")),
            ("tors", Some("torus")),
            ("paragon", Some("paragon-16x16")),
            ("paragon-16x61", Some("paragon-16x16")),
            ("paragon_16x16_mesh", Some("paragon-16x16-mesh")),
            ("twisted", Some("twisted-torus")),
            ("donut", None),
            ("", None),
            ("m", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, names), name, "{given}");
        }
        assert_eq!(nearest(&"torus".repeat(1000), names), None);
    }

    #[test]
    fn characters_that_are_not_printable_are_escaped() {
        let text = "a\nb\r\t\u{1b}[31m\u{9b}\u{7f}\u{202e}\u{2066}\u{2028}\u{feff}\0é 日\u{1f980}";
        assert_eq!(
            printable(text),
            r"a\nb\r\t\u{1b}[31m\u{9b}\u{7f}\u{202e}\u{2066}\u{2028}\u{feff}\u{0}é 日🦀"
        );
    }

    #[test]
    fn long_values_are_cut_and_followed_by_their_length() {
        let (just, long) = ("é".repeat(200), "é".repeat(201));
        let cut = format!("{just}… (201 characters)");
        assert_eq!((value(&just), value(&long)), (just.clone(), cut.clone()));
        assert_eq!(
            message(&format!("`{long}` is bad: {long}: x")),
            format!("`{cut}` is bad: {cut}: x")
        );
        // A value may have spaces; words outside backticks are not cut together.
        let words = "word ".repeat(99);
        assert_eq!(message(&words), words);
        assert!(message(&format!("`{words}`")).ends_with("… (495 characters)`"));
        assert_eq!(value(&"\n".repeat(150)).matches("\\n").count(), 100);
    }
}
