//! Transposes a matrix of 64 x 64 numbers, with eight rows on each of eight ranks. Each rank cuts
//! its rows into square tiles; the ranks exchange the tiles, and each receiver transposes its own.
//! A two-dimensional Fourier transform has the same exchange between its two passes.

use ndarray::{Array2, s};
use topocoll::exec::{ThreadedDriver, plan_all};
use topocoll::{Collective, Exchange, Problem, machine};

const RANKS: usize = 8;
const TILE: usize = 8;
const BLOCK: usize = TILE * TILE * size_of::<u32>();

/// Transposes a matrix and checks the result.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let side = RANKS * TILE;
    let matrix = Array2::from_shape_fn((side, side), |(i, j)| (i * 1000 + j) as u32);

    let machine = machine("torus:4x2")?;
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, BLOCK as u64)?;
    let exchange = Exchange::new(&machine, &problem)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("no algorithm applies to a torus")?;
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    let mut driver = ThreadedDriver::new(plan_all(&schedule)?, 2);

    // Rank after rank, tile after tile: the columns of a tile become rows as it is gathered.
    let tiles = (0..RANKS).flat_map(|i| (0..RANKS).map(move |j| (i * TILE, j * TILE)));
    let input: Vec<u8> = tiles
        .flat_map(|(i, j)| matrix.slice(s![i..i + TILE, j..j + TILE]).reversed_axes().to_owned())
        .flat_map(u32::to_le_bytes)
        .collect();
    let mut output = vec![0; input.len()];
    driver.exchange(BLOCK as u64, &input, &mut output)?;

    let mut numbers =
        output.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four")));
    let mut transposed = Array2::zeros((side, side));
    for (rank, from) in (0..RANKS).flat_map(|rank| (0..RANKS).map(move |from| (rank, from))) {
        let (i, j) = (rank * TILE, from * TILE);
        let mut tile = transposed.slice_mut(s![i..i + TILE, j..j + TILE]);
        tile.iter_mut().zip(&mut numbers).for_each(|(to, number)| *to = number);
    }
    assert_eq!(transposed, matrix.t());
    println!("{}: the matrix is transposed", best.algorithm);
    Ok(())
}
