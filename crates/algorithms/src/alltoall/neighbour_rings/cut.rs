//! Parts of blocks.

use topocoll_schedule::Part;

/// The bytes at which the parts of a block end; none where parts are of whole blocks.
pub(super) struct Cut(Vec<u64>);

impl Cut {
    /// Equal parts of blocks of a size, if it is given.
    pub(super) fn new(block_bytes: Option<u64>, parts: u32) -> Self {
        let parts = u128::from(parts);
        let end = |part, bytes| (part * u128::from(bytes) / parts) as u64;
        let ends = block_bytes.map(|bytes| (1..=parts).map(|part| end(part, bytes)).collect());
        Self(ends.unwrap_or_default())
    }

    pub(super) fn is_cut(&self) -> bool {
        !self.0.is_empty()
    }

    /// What moves of a block of a part.
    pub(super) fn part(&self, part: usize) -> Part {
        let first = if part == 0 { 0 } else { self.0.get(part - 1).copied().unwrap_or(0) };
        self.0.get(part).map_or(Part::Whole, |&end| Part::Bytes { first, end })
    }

    /// The bytes at which blocks are cut.
    pub(super) fn inside(&self) -> &[u64] {
        &self.0[..self.0.len().saturating_sub(1)]
    }
}
