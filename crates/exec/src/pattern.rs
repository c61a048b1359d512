//! Blocks whose every byte is known from who has it for whom: what `run` moves and checks.

use rayon::prelude::*;
use topocoll_schedule::{Block, Demand, Problem};
use topocoll_topology::Rank;

/// Fills the inputs of all ranks, one after the other.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
pub fn fill(problem: &Problem, input: &mut [u8]) {
    let each = each(problem, problem.blocks_at_start(), input, "bytes of all inputs");
    input.par_chunks_mut(each).enumerate().for_each(|(from, input)| {
        for (to, block) in input.chunks_mut(problem.block_bytes as usize).enumerate() {
            write(problem.wanted(Rank(from as u32), Rank(to as u32)), block);
        }
    });
}

/// The first byte of the outputs of all ranks that is not what it must be: whose output, the block
/// it belongs to, and its place in it.
///
/// # Panics
/// Not as many bytes as the blocks of all ranks.
#[must_use]
pub fn first_wrong(problem: &Problem, output: &[u8]) -> Option<(Rank, Block, u64)> {
    let each = each(problem, problem.ranks, output, "bytes of all outputs");
    let wrong = output.par_chunks(each).enumerate().filter_map(|(to, output)| {
        let mut expected = vec![0; problem.block_bytes as usize];
        output.chunks(problem.block_bytes as usize).enumerate().find_map(|(from, block)| {
            let wanted = problem.wanted(Rank(from as u32), Rank(to as u32));
            write(wanted, &mut expected);
            if block == expected {
                return None;
            }
            let at = block.iter().zip(&expected).position(|(found, byte)| found != byte)?;
            Some((Rank(to as u32), wanted, at as u64))
        })
    });
    wrong.min_by_key(|&(rank, block, at)| (rank, block, at))
}

/// The bytes of so many blocks, if there are as many for every rank.
fn each(problem: &Problem, blocks: u32, all: &[u8], what: &str) -> usize {
    let each = u128::from(blocks) * u128::from(problem.block_bytes);
    assert_eq!(all.len() as u128, u128::from(problem.ranks) * each, "{what}");
    each as usize
}

/// Fills the inputs of all ranks, one after the other, with blocks of the sizes of a demand.
///
/// # Panics
/// Fewer bytes than those blocks have.
pub fn fill_unequal(problem: &Problem, demand: &Demand, input: &mut [u8]) {
    let mut rest = input;
    let mut rows = Vec::with_capacity(problem.ranks as usize);
    for from in (0..problem.ranks).map(Rank) {
        let (row, after) = rest.split_at_mut(demand.row(from).sum::<u64>() as usize);
        rows.push(row);
        rest = after;
    }
    rows.into_par_iter().enumerate().for_each(|(from, mut row)| {
        let from = Rank(from as u32);
        for (to, bytes) in demand.row(from).enumerate() {
            let (block, after) = row.split_at_mut(bytes as usize);
            write(problem.wanted(from, Rank(to as u32)), block);
            row = after;
        }
    });
}

/// As [`first_wrong`], for blocks of the sizes of a demand.
///
/// # Panics
/// Fewer bytes than those blocks have.
#[must_use]
pub fn first_wrong_unequal(
    problem: &Problem,
    demand: &Demand,
    output: &[u8],
) -> Option<(Rank, Block, u64)> {
    let mut rest = output;
    let mut rows = Vec::with_capacity(problem.ranks as usize);
    for to in (0..problem.ranks).map(Rank) {
        let (row, after) = rest.split_at(demand.column(to).sum::<u64>() as usize);
        rows.push(row);
        rest = after;
    }
    let wrong = rows.into_par_iter().enumerate().filter_map(|(to, mut row)| {
        let (to, mut expected) = (Rank(to as u32), Vec::new());
        demand.column(to).enumerate().find_map(|(from, bytes)| {
            let (block, after) = row.split_at(bytes as usize);
            row = after;
            let wanted = problem.wanted(Rank(from as u32), to);
            expected.resize(block.len(), 0);
            write(wanted, &mut expected);
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
