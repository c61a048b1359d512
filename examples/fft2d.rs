//! A two-dimensional Fourier transform of 32 x 32 numbers on eight ranks, four rows each: transform
//! the rows, exchange, transform the columns. The exchange itself transposes rows
//! into columns.

use std::sync::Arc;

use ndarray::{Array2, Axis, s};
use rustfft::{FftPlanner, num_complex::Complex};
use topocoll::exec::{Layout, Plan, SeededDriver, Views};
use topocoll::{Collective, Exchange, Problem, Rank, machine};

type Number = Complex<f64>;

const RANKS: usize = 8;
const ROWS: usize = 4;
const SIDE: usize = RANKS * ROWS;
const BLOCK: usize = ROWS * ROWS * size_of::<Number>();

fn transform_rows(matrix: &mut Array2<Number>) {
    let fft = FftPlanner::new().plan_fft_forward(matrix.ncols());
    fft.process(matrix.as_slice_mut().expect("rows are contiguous"));
}

/// Transforms a matrix on eight ranks, and compares with the serial transform.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let matrix = Array2::from_shape_fn((SIDE, SIDE), |(i, j)| {
        Number::new((i * i + 3 * j) as f64, (i as f64 - j as f64).sin())
    });

    let machine = machine("torus:4x2")?;
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, BLOCK as u64)?;
    let exchange = Exchange::new(&machine, &problem)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("no algorithm applies to a torus")?;
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    let plans: Vec<_> = (0..RANKS as u32)
        .map(|rank| Plan::new(&schedule, Rank(rank)).map(Arc::new))
        .collect::<Result<_, _>>()?;

    // Every rank's rows, and its columns, stored as rows.
    let mut rows: Vec<_> = (0..RANKS)
        .map(|rank| matrix.slice(s![rank * ROWS..(rank + 1) * ROWS, ..]).to_owned())
        .collect();
    let mut columns = vec![Array2::<Number>::zeros((ROWS, SIDE)); RANKS];
    rows.iter_mut().for_each(transform_rows);

    // Block i, by row and column: the part of the rows for rank i, and of the columns from rank i.
    let layout = |array: &Array2<Number>,
                  axes: [usize; 3]|
     -> Result<_, Box<dyn std::error::Error>> {
        let tiles = array.view().into_shape_with_order((ROWS, RANKS, ROWS))?.permuted_axes(axes);
        Ok(Layout::new(tiles.shape(), tiles.strides(), size_of::<Number>())?)
    };
    let mut works: Vec<_> =
        plans.iter().map(|plan| vec![0; plan.workspace_bytes(BLOCK as u64) as usize]).collect();
    let mut views = Vec::new();
    for ((rows, columns), work) in rows.iter().zip(&mut columns).zip(&mut works) {
        let (from, to) = (layout(rows, [1, 0, 2])?, layout(columns, [1, 2, 0])?);
        let rows = bytemuck::cast_slice(rows.as_slice().expect("rows are contiguous"));
        let columns = columns.as_slice_mut().expect("columns are contiguous");
        views.push(Views::new((rows, from), (bytemuck::cast_slice_mut(columns), to), work)?);
    }
    SeededDriver::new(&plans).exchange_in(BLOCK as u64, &mut views, 1)?;
    columns.iter_mut().for_each(transform_rows);

    let mut serial = matrix;
    transform_rows(&mut serial);
    let mut serial = serial.t().as_standard_layout().into_owned();
    transform_rows(&mut serial);
    let parts = columns.iter().zip(serial.axis_chunks_iter(Axis(0), ROWS));
    for (columns, expected) in parts {
        assert_eq!(columns, expected);
    }
    println!("{}: the spectrum is that of the serial transform", best.algorithm);
    Ok(())
}
