//! A three-dimensional Fourier transform of 6 x 10 x 12 numbers in pencils on 2 x 4 ranks: transform lines along the third
//! side, exchange within the rows of the process grid, transform along the second side, exchange within the columns,
//! transform along the first. Parts of 10 among 4 differ, so blocks are padded to the largest.

use std::sync::Arc;

use ndarray::{Array3, ArrayView1, Axis, Slice};
use rustfft::{FftPlanner, num_complex::Complex};
use topocoll::exec::SeededDriver;
use topocoll::{Budget, Exchange, Groups, Machine, Rank, Transform, Transposition, machine};

type Number = Complex<f64>;
type Numbers = Array3<Number>;

const SIDES: [usize; 3] = [6, 10, 12];
const GRID: [u32; 2] = [2, 4];

fn part(side: usize, parts: u32, which: u32) -> Slice {
    let part = Transform::part(SIDES[side] as u64, parts, which);
    Slice::from(part.start as usize..part.end as usize)
}

fn transform_lines(numbers: &mut Numbers, side: usize) {
    let fft = FftPlanner::new().plan_fft_forward(SIDES[side]);
    for mut line in numbers.lanes_mut(Axis(side)) {
        let mut own = line.to_vec();
        fft.process(&mut own);
        line.assign(&ArrayView1::from(&own));
    }
}

/// Exchanges in groups of ranks: the side `whole` of every rank's numbers is divided among its group, and the side
/// `divided` becomes whole.
fn transpose(
    machine: &Machine,
    of: &Transposition,
    [whole, divided]: [usize; 2],
    numbers: &mut [Numbers],
) -> Result<(), Box<dyn std::error::Error>> {
    let groups = Groups::named(&of.groups, machine)?;
    let exchange = Exchange::all_to_all(machine)?.groups(&groups)?.block_bytes(of.block_bytes)?;
    let schedule = exchange.schedule(&of.choice.algorithm, &of.choice.parameters)?;
    let ranks = || (0..machine.ranks()).map(Rank);
    let plans: Vec<_> = ranks()
        .map(|rank| exchange.plan(&schedule, rank).map(Arc::new))
        .collect::<Result<_, _>>()?;

    let block = of.block_bytes as usize / size_of::<Number>();
    let mut sent: Vec<Number> = Vec::new();
    for own in &*numbers {
        for to in 0..of.ranks {
            let end = sent.len() + block;
            sent.extend(own.slice_axis(Axis(whole), part(whole, of.ranks, to)));
            sent.resize(end, Number::default());
        }
    }
    let mut received = vec![Number::default(); sent.len()];
    let (from, to) = (bytemuck::cast_slice(&sent), bytemuck::cast_slice_mut(&mut received));
    SeededDriver::new(&plans).exchange(of.block_bytes, from, to, 1)?;

    let mut blocks = received.chunks(block);
    for (rank, own) in ranks().zip(numbers) {
        let (_, position) = groups.place(rank).ok_or("a rank in no group")?;
        let mut shape = own.dim().into();
        let sides: &mut [usize; 3] = &mut shape;
        sides[divided] = SIDES[divided];
        sides[whole] =
            own.slice_axis(Axis(whole), part(whole, of.ranks, position.0)).len_of(Axis(whole));
        *own = Numbers::default(shape);
        for from in 0..of.ranks {
            let numbers = blocks.next().ok_or("a block is missing")?;
            let mut place = own.slice_axis_mut(Axis(divided), part(divided, of.ranks, from));
            place.iter_mut().zip(numbers).for_each(|(place, number)| *place = *number);
        }
    }
    Ok(())
}

/// Transforms on eight ranks, and compares with the serial transform.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut serial = Numbers::from_shape_fn(SIDES, |(i, j, k)| {
        Number::new((i * i + 3 * j) as f64, (k as f64 - j as f64).sin())
    });
    let machine = machine("torus:4x2")?;
    let [n1, n2, n3] = SIDES.map(|side| side as u64);
    let transform = Transform::new([n1, n2, n3], size_of::<Number>() as u64)?;
    let found = transform.rank(&machine, Budget::quick())?;
    let on = found.iter().find(|on| on.process_grid() == GRID && on.rows_are_consecutive);
    let [rows, columns] = &on.ok_or("2 x 4 ranks fit")?.exchanges[..] else {
        return Err("two exchanges".into());
    };

    let of_rank = |rank: u32| {
        let (row, column) = (rank / GRID[1], rank % GRID[1]);
        let own = serial.slice_axis(Axis(0), part(0, GRID[0], row)).to_owned();
        own.slice_axis(Axis(1), part(1, GRID[1], column)).to_owned()
    };
    let mut numbers: Vec<Numbers> = (0..machine.ranks()).map(of_rank).collect();
    numbers.iter_mut().for_each(|own| transform_lines(own, 2));
    transpose(&machine, rows, [2, 1], &mut numbers)?;
    numbers.iter_mut().for_each(|own| transform_lines(own, 1));
    transpose(&machine, columns, [1, 0], &mut numbers)?;
    numbers.iter_mut().for_each(|own| transform_lines(own, 0));

    for side in [2, 1, 0] {
        transform_lines(&mut serial, side);
    }
    for (rank, own) in (0..).zip(&numbers) {
        let (row, column) = (rank / GRID[1], rank % GRID[1]);
        let expected = serial.slice_axis(Axis(1), part(1, GRID[0], row));
        assert_eq!(own, expected.slice_axis(Axis(2), part(2, GRID[1], column)));
    }
    let [rows, columns] = [rows, columns].map(|one| &one.choice.algorithm);
    println!("{rows} in rows, {columns} in columns: the spectrum is that of the serial transform");
    Ok(())
}
