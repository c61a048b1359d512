//! Blocks whose bytes follow from their sender and receiver: what `run` moves and checks.

use std::sync::Arc;

use rayon::prelude::*;
use topocoll_schedule::Block;
use topocoll_topology::{Rank, parallel};

use crate::{BlockSizes, Plan};

/// Fills the inputs of all ranks, one after the other, in the order of their plans.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
pub fn fill(plans: &[Arc<Plan>], sizes: impl Into<BlockSizes>, input: &mut [u8]) {
    let sizes = sizes.into();
    let (mut rest, mut inputs) = (input, Vec::with_capacity(plans.len()));
    for plan in plans {
        let own;
        let bytes = sizes.input(plan).sum();
        (own, rest) = rest.split_at_mut_checked(bytes).expect("bytes of all inputs");
        inputs.push((plan, own));
    }
    assert!(rest.is_empty(), "bytes of all inputs");
    parallel::each(inputs).for_each(|(plan, mut own)| {
        for (to, bytes) in (0..).zip(sizes.input(plan)) {
            let block;
            (block, own) = own.split_at_mut(bytes);
            write(wanted(plan, plan.rank.0, to), block);
        }
    });
}

/// The first byte of the outputs of all ranks that is not what it must be: whose output, the block
/// it belongs to, and its place in it. Ranks are numbered as the machine numbers them.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
#[must_use]
pub fn first_wrong(
    plans: &[Arc<Plan>],
    sizes: impl Into<BlockSizes>,
    output: &[u8],
) -> Option<(Rank, Block, u64)> {
    let sizes = sizes.into();
    let (mut rest, mut outputs) = (output, Vec::with_capacity(plans.len()));
    for plan in plans {
        let own;
        let bytes = sizes.output(plan).sum();
        (own, rest) = rest.split_at_checked(bytes).expect("bytes of all outputs");
        outputs.push((plan, own));
    }
    assert!(rest.is_empty(), "bytes of all outputs");
    let wrong = parallel::each(outputs).filter_map(|(plan, mut own)| {
        let mut expected = Vec::new();
        (0..).zip(sizes.output(plan)).find_map(|(from, bytes)| {
            let block;
            (block, own) = own.split_at(bytes);
            let wanted = wanted(plan, from, plan.rank.0);
            expected.resize(bytes, 0);
            write(wanted, &mut expected);
            if block == expected {
                return None;
            }
            let at = block.iter().zip(&expected).position(|(found, byte)| found != byte)?;
            Some((plan.own_rank(), wanted, at as u64))
        })
    });
    wrong.min_by_key(|&(rank, block, at)| (rank, block, at))
}

/// The block of a rank of the schedule for another, as the machine numbers them.
fn wanted(plan: &Plan, from: u32, to: u32) -> Block {
    plan.problem.wanted(plan.machine_rank(from), plan.machine_rank(to))
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
