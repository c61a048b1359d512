//! What an MPI library would gain.

use serde::Serialize;
use topocoll::tune::Gain;
use topocoll::{Exchange, Selection};

use super::Baseline;
use crate::words::not_compared;

#[derive(Serialize)]
pub(super) struct Gains {
    title: String,
    rules: String,
    notes: String,
    /// At the block size of the page.
    asked: Gain,
    /// At each block size of the sweep.
    by_block: Vec<Gain>,
}

/// What the library of a page would gain, also at some block sizes.
pub(super) fn gains(
    baseline: &Baseline,
    sizes: &[u64],
    exchange: &Exchange<'_>,
    selection: &Selection,
) -> Gains {
    let Baseline { library, release, modelled } = baseline;
    let asked = exchange.problem().block_bytes;
    let gain = |size| modelled.gain(release, size, (selection, asked));
    Gains {
        title: format!("{} {}", library.title, release.name),
        rules: format!("{}, {}", release.file, release.tags),
        notes: not_compared(library, release, modelled.operation(), exchange.machine()),
        asked: gain(asked),
        by_block: sizes.iter().map(|&size| gain(size)).collect(),
    }
}
