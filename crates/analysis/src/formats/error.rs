/// Why a file is refused as a schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A line that is not valid, or contradicts the machine or the lines before it.
    #[error("{}line {line}: {message}", file.as_ref().map_or(String::new(), |file| format!("{file}: ")))]
    Line {
        /// The file, if there are several.
        file: Option<String>,
        /// The line, from 1.
        line: usize,
        /// The value and the rule.
        message: String,
    },
    /// A listed message that is not valid, or contradicts the messages before it.
    #[error("message {number}: {message}")]
    Message {
        /// Its number, from 0.
        number: usize,
        /// The value and the rule.
        message: String,
    },
    /// A file that cannot be opened.
    #[error("cannot read `{file}`: {reason}")]
    File {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A file in a format that cannot be read.
    #[error("{format} cannot be read as a schedule: {reason}")]
    Unreadable {
        /// The format's name.
        format: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A file in an unknown format.
    #[error("the format is unknown: the file begins with `{begins}`; supported formats: {}", known.join(", "))]
    Unknown {
        /// Its beginning.
        begins: String,
        /// The formats that can be read.
        known: Vec<&'static str>,
    },
}
