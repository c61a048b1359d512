use std::fmt;

/// Why a certificate proves nothing.
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
    /// Another digest than that of its text.
    #[error("the certificate was altered: it lists the digest {listed}, and has {digest}")]
    Altered {
        /// The digest listed, or its beginning.
        listed: String,
        /// That of the text.
        digest: String,
    },
    /// Control characters, or bytes beyond ASCII.
    #[error("the certificate is not printable ASCII")]
    NotAscii,
    /// A line that cannot be read.
    #[error("line {line}: {rule}: `{text}`")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What it breaks.
        rule: &'static str,
        /// The line, or its beginning.
        text: String,
    },
    /// More work or memory than is taken.
    #[error("{what}: {count}, and at most {most} are checked")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u128,
        /// The limit.
        most: u128,
    },
    /// A layout that is none.
    #[error("class {class}: {rule}")]
    Layout {
        /// The class.
        class: u32,
        /// What it breaks.
        rule: &'static str,
    },
    /// A step that cannot be taken.
    #[error("step {step}, class {class}: {rule}")]
    Step {
        /// The step.
        step: u32,
        /// The class.
        class: u32,
        /// What it breaks.
        rule: &'static str,
    },
    /// A block that is not where it should be.
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
        /// What it ends with.
        found: Found,
    },
    /// A count that is another.
    #[error("{name}={listed} is listed, and {found} is counted")]
    Count {
        /// Of what.
        name: &'static str,
        /// The certificate's.
        listed: u128,
        /// That of the schedule.
        found: u128,
    },
    /// A bound that is another.
    #[error("the bound {name}={listed} is listed, and it is {found}")]
    Bound {
        /// Of what.
        name: &'static str,
        /// The certificate's.
        listed: u128,
        /// That of the machine.
        found: u128,
    },
    /// A count that no schedule has.
    #[error("{name}={found} is counted, and any schedule needs {least}")]
    Below {
        /// Of what.
        name: &'static str,
        /// That of the schedule.
        found: u128,
        /// The least.
        least: u128,
    },
}

/// What a slot ends with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Found {
    /// No block.
    Nothing,
    /// A block that has travelled so far.
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
