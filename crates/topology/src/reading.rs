use crate::graph_file::NOT_JSON;
use crate::spec::{Attributes, SpecError};

/// How to read what the text of a machine leaves open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Names of the attributes in a graph of node-link JSON. Given for any other machine they are
    /// refused.
    pub attributes: Option<Attributes>,
}

impl Reading {
    /// Refuses attributes for a machine that is no graph of node-link JSON.
    pub(crate) fn refuse_attributes(&self) -> Result<(), SpecError> {
        match &self.attributes {
            None => Ok(()),
            Some(_) => Err(SpecError { message: NOT_JSON.to_owned(), span: None }),
        }
    }
}
