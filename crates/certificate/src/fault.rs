use std::fmt;

/// Why a certificate is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Some other file.
    #[error("not a certificate: its first line is not `topocoll certificate 1`")]
    NoCertificate,
    /// A certificate of another version of the format.
    #[error(
        "certificate version {0}: this program checks version 1, which \
         `topocoll verify MACHINE --algorithm NAME --certificate FILE` writes"
    )]
    Version(u32),
    /// No digest at its end.
    #[error("the certificate is cut short: its last line is not `sha256` and a digest")]
    Cut,
    /// A digest that is not that of its text.
    #[error("the certificate was altered: it lists the digest {listed}, but its text has {digest}")]
    Altered {
        /// The digest listed, or its beginning.
        listed: String,
        /// The digest of the text.
        digest: String,
    },
    /// Control characters, or bytes beyond ASCII.
    #[error("the certificate is not printable ASCII")]
    NotAscii,
    /// A line that is not valid.
    #[error("line {line}: {rule}: `{text}`")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The rule it breaks.
        rule: &'static str,
        /// The line, or its beginning.
        text: String,
    },
    /// More work or memory than the limit.
    #[error("{what}: {count}, and at most {most} are checked")]
    TooMuch {
        /// The name.
        what: &'static str,
        /// The number.
        count: u128,
        /// The limit.
        most: u128,
    },
    /// An invalid layout.
    #[error("class {class}: {rule}")]
    Layout {
        /// The class.
        class: u32,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// An invalid step.
    #[error("step {step}, class {class}: {rule}")]
    Step {
        /// The step.
        step: u32,
        /// The class.
        class: u32,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A block that is not at its place at the end.
    #[error(
        "class {class}: slot {slot} should end with the block displaced by {displacement}, and {found}"
    )]
    Undelivered {
        /// The class.
        class: u32,
        /// The slot.
        slot: u64,
        /// The displacement of its source.
        displacement: u32,
        /// The content of the slot.
        found: Found,
    },
    /// A wrong count.
    #[error("{name}={listed} is listed, but the count is {found}")]
    Count {
        /// The name.
        name: &'static str,
        /// The value in the certificate.
        listed: u128,
        /// The value for the schedule.
        found: u128,
    },
    /// A wrong bound.
    #[error("the bound {name}={listed} is listed, but it is {found}")]
    Bound {
        /// The name.
        name: &'static str,
        /// The value in the certificate.
        listed: u128,
        /// The value for the machine.
        found: u128,
    },
    /// A count below its lower bound.
    #[error("{name}={found} is counted, but every schedule needs {least}")]
    Below {
        /// The name.
        name: &'static str,
        /// The value for the schedule.
        found: u128,
        /// The lower bound.
        least: u128,
    },
}

/// The content of a slot at the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Found {
    /// No block.
    Nothing,
    /// A block with this displacement.
    Travelled(u32),
    /// A block for another rank.
    Another,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("ends with nothing"),
            Self::Travelled(by) => write!(f, "ends with one that has travelled by {by}"),
            Self::Another => f.write_str("ends with one for another rank"),
        }
    }
}
