//! Where blocks are in a rank's buffer, and the shapes that layouts follow.

pub(crate) mod axes;
pub(crate) mod digits;
pub(crate) mod inner;
pub(crate) mod matching_layout;
pub(crate) mod mixed_radix_layout;
pub(crate) mod node_rows;
pub(crate) mod square_grid;
pub(crate) mod translation;
pub(crate) mod tree;
