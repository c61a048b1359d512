//! Blocks whose bytes follow from their sender and receiver: what `run` moves and checks.

use rayon::prelude::*;
use topocoll_schedule::{Block, Problem};
use topocoll_topology::{Rank, parallel};

use crate::BlockSizes;

/// Fills the inputs of all ranks, one after the other.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
pub fn fill(problem: &Problem, sizes: impl Into<BlockSizes>, input: &mut [u8]) {
    let sizes = sizes.into();
    let (mut rest, mut inputs) = (input, Vec::with_capacity(problem.ranks as usize));
    for from in (0..problem.ranks).map(Rank) {
        let own;
        let bytes = sizes.input(problem, from).sum();
        (own, rest) = rest.split_at_mut_checked(bytes).expect("bytes of all inputs");
        inputs.push((from, own));
    }
    assert!(rest.is_empty(), "bytes of all inputs");
    parallel::each(inputs).for_each(|(from, mut own)| {
        for (to, bytes) in (0..).map(Rank).zip(sizes.input(problem, from)) {
            let block;
            (block, own) = own.split_at_mut(bytes);
            write(problem.wanted(from, to), block);
        }
    });
}

/// The first byte of the outputs of all ranks that is not what it must be: whose output, the block
/// it belongs to, and its place in it.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
#[must_use]
pub fn first_wrong(
    problem: &Problem,
    sizes: impl Into<BlockSizes>,
    output: &[u8],
) -> Option<(Rank, Block, u64)> {
    let sizes = sizes.into();
    let (mut rest, mut outputs) = (output, Vec::with_capacity(problem.ranks as usize));
    for to in (0..problem.ranks).map(Rank) {
        let own;
        let bytes = sizes.output(problem, to).sum();
        (own, rest) = rest.split_at_checked(bytes).expect("bytes of all outputs");
        outputs.push((to, own));
    }
    assert!(rest.is_empty(), "bytes of all outputs");
    let wrong = parallel::each(outputs).filter_map(|(to, mut own)| {
        let mut expected = Vec::new();
        (0..).map(Rank).zip(sizes.output(problem, to)).find_map(|(from, bytes)| {
            let block;
            (block, own) = own.split_at(bytes);
            let wanted = problem.wanted(from, to);
            expected.resize(bytes, 0);
            write(wanted, &mut expected);
            if block == expected {
                return None;
            }
            let at = block.iter().zip(&expected).position(|(found, byte)| found != byte)?;
            Some((to, wanted, at as u64))
        })
    });
    wrong.min_by_key(|&(rank, block, at)| (rank, block, at))
}

/// The bytes of a block: words of a generator seeded by both its ends.
fn write(block: Block, bytes: &mut [u8]) {
    let mut word = u64::from(block.from.0) << 32 | u64::from(block.to.0);
    word = (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for part in bytes.chunks_mut(8) {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = (word ^ word >> 32).to_le_bytes();
        part.copy_from_slice(&mixed[..part.len()]);
    }
}
