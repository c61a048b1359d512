use std::ops::Range;

/// Why a topology or a subset of its ranks cannot be built, or a topology timed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TopologyError {
    /// The value and the rule.
    pub message: String,
}

impl TopologyError {
    /// More ranks than are numbered.
    pub(crate) fn too_many_ranks() -> Self {
        format!("more than {} ranks: ranks are numbered in 32 bits", u32::MAX).into()
    }

    /// A cluster or a graph without nodes.
    pub(crate) fn no_nodes() -> Self {
        "0 nodes: a cluster has at least one".to_owned().into()
    }
}

impl From<String> for TopologyError {
    fn from(message: String) -> Self {
        Self { message }
    }
}

impl From<TopologyError> for String {
    fn from(error: TopologyError) -> Self {
        error.message
    }
}

/// Refuses a network with more than `most` of something.
pub(crate) fn check_limit(what: &str, size: u64, most: u64) -> Result<(), TopologyError> {
    match size > most {
        true => Err(format!("{size} {what}: a machine has at most {most}").into()),
        false => Ok(()),
    }
}

/// Why a text does not name a machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SpecError {
    /// The value, the rule and, for a short form, the place.
    pub message: String,
    /// The bytes of the file that are wrong, if the error has a place.
    pub span: Option<Range<usize>>,
}

/// An error without a place in a file.
impl<M: Into<String>> From<M> for SpecError {
    fn from(message: M) -> Self {
        Self { message: message.into(), span: None }
    }
}
