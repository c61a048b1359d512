/// Why a file that should hold a schedule is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A line that cannot be read, or contradicts the machine or the lines before it.
    #[error("{}line {line}: {message}", file.as_ref().map_or(String::new(), |file| format!("{file}: ")))]
    Line {
        /// The file, of several.
        file: Option<String>,
        /// The line, from 1.
        line: usize,
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
    /// A file in a format of which no schedule can be read.
    #[error("{format} holds no schedule: {reason}")]
    Unreadable {
        /// The format's name.
        format: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A file in no format that is known.
    #[error("begins with `{begins}`, as no format that is read does: {}", known.join(", "))]
    Unknown {
        /// What it begins with.
        begins: String,
        /// The formats that are read.
        known: Vec<&'static str>,
    },
}
