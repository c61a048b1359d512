//! Schedules of small machines that a search has found, for one port: the least volume that is known.
//!
//! # Meshes of 4x4, 6x6 and 8x8
//! Every block goes straight to its destination, first along its row: N^3/4 steps, the bisection bound.
//! Scott 1991 has that number. The tables are our own; the step of a block is that of the block between
//! the two ranks opposite, so half of each table is enough.
//!
//! # Tori of 10x10 and 12x12
//! Ranks whose coordinates have an even sum send their blocks first along rows and then along columns,
//! the others first along columns: two hops of a block, each straight. In the first phase a message
//! has the N blocks that need its hops, in the second the N/2 that came the other way. What a rank does
//! depends only on the sum of its coordinates. Claim: 9 + 18 steps and 180 blocks on 10x10, 11 + 22 steps
//! and 264 blocks on 12x12; the bisection bound is 125 and 216. To our knowledge they are new.
//!
//! No link carries two messages of a step. The replay of `tests/claims/reached.rs` checks the tables.
//!
//! # The layout
//! A slot for every destination. On meshes a block lands behind them, by its source; on tori in a slot that its
//! receiver has just sent.

use smallvec::SmallVec;
use topocoll_schedule::{Held, Largest, Period, PeriodWriter, RankClasses, Slot};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Topology};

use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct Tabled;

/// The tables of meshes, by side.
const MESHES: [(u32, &str); 3] = [
    (4, include_str!("tabled/mesh_4.txt")),
    (6, include_str!("tabled/mesh_6.txt")),
    (8, include_str!("tabled/mesh_8.txt")),
];

/// The tables of tori, by side: the residues of sums, and the steps.
const TORI: [(u32, u32, &str); 2] =
    [(10, 10, include_str!("tabled/torus_10.txt")), (12, 6, include_str!("tabled/torus_12.txt"))];

/// The words of the lines of a table.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::split_whitespace)
}

/// Blocks straight to their destinations on a mesh, by the last dimension first: the table has the step of
/// each block of the first half of the ranks.
fn mesh(grid: &Grid, text: &str) -> (Period, Vec<Largest>) {
    let (ranks, classes) = (grid.ranks(), RankClasses::distinct(grid.ranks()));
    let mut blocks = Vec::new();
    for (from, line) in (0..).zip(lines(text)) {
        for (to, word) in (0..).zip(line).filter(|&(_, word)| word != "..") {
            let step = u32::from_str_radix(word, 16).expect("bug: a table of steps");
            blocks.push((step, from, to));
            blocks.push((step, ranks - 1 - from, ranks - 1 - to));
        }
    }
    blocks.sort_unstable();
    let layout = |from| (0..ranks).map(|to| classes.displacement(Rank(from), Rank(to))).collect();
    let mut writer = PeriodWriter::new(classes.clone(), layout);
    for of_step in blocks.chunk_by(|a, b| a.0 == b.0) {
        for &(_, from, to) in of_step {
            let mut route = Route::default();
            let at = |rank, u| i64::from(grid.radix().coordinate(rank, u));
            for u in (0..grid.sides().len()).rev() {
                route.push(u as u32, at(Rank(to), u) - at(Rank(from), u));
            }
            let displacement = classes.displacement(Rank(from), Rank(to));
            let landing = ranks + from;
            writer.send_into(from, displacement, route, &[to.into()], &[landing.into()]);
        }
        writer.end_step();
    }
    writer.finish()
}

/// Two straight hops of every block on a torus of two equal sides: the table has the hops of ranks by the sum
/// of their coordinates modulo `modulus`.
fn torus(grid: &Grid, dimensions: [usize; 2], modulus: u32, text: &str) -> (Period, Vec<Largest>) {
    let (radix, side) = (grid.radix(), grid.sides()[dimensions[0]]);
    let mut periods: Coordinates = grid.sides().iter().map(|_| 1).collect();
    dimensions.iter().for_each(|&u| periods[u] = modulus);
    let classes = RankClasses::translations(radix.clone(), periods);
    let at = |rank, place: usize| radix.coordinate(rank, dimensions[place]);
    let mut writer = PeriodWriter::new(classes.clone(), |_| (0..grid.ranks()).map(Rank).collect());
    let table: Vec<Vec<&str>> = lines(text).map(Iterator::collect).collect();
    for (step, row) in table.iter().enumerate() {
        // The first of the two phases has half as many steps as the second.
        let last = step >= table.len() / 3;
        for class in 0..classes.count() {
            let rank = classes.representative(class);
            let residue = (at(rank, 0) + at(rank, 1)) % modulus;
            let (place, hops) = row[residue as usize].split_at(1);
            let (place, hops) = (usize::from(place == "1"), hops.parse::<i64>());
            let hops = hops.expect("bug: a table of hops");
            let along = hops.rem_euclid(side.into()) as u32;
            let goes = |held: &Held| {
                // In the last phase, what came along the other dimension or need not go there.
                let own = held.from == Rank(0);
                at(held.to, place) == along && if last { at(held.to, 1 - place) == 0 } else { own }
            };
            let mut blocks: Vec<_> = writer.held(class).filter(|(_, held)| goes(held)).collect();
            blocks.sort_by_key(|(_, held)| (side - at(held.from, 1 - place)) % side);
            let slots: Vec<Slot> = blocks.into_iter().map(|(slot, _)| slot).collect();
            let displacement = radix.shifted(Rank(0), dimensions[place], hops);
            let route = Route::straight(dimensions[place] as u32, hops);
            writer.send(class, displacement, route, &slots);
        }
        writer.end_step();
    }
    writer.finish()
}

static INFO: Info = Info::new(
    "tabled",
    "blocks straight, or in two straight hops, on small square machines, by tables that a search found",
    "own tables; the number of steps on meshes is that of Scott 1991",
);

impl Algorithm for Tabled {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let needs = "a mesh of 4x4, 6x6 or 8x8, or a torus of 10x10 or 12x12";
        let grid = request.grid(needs)?;
        let (sides, wrap) = (grid.sides(), grid.wrap());
        let long: SmallVec<[usize; 2]> = grid.radix().long_dimensions().collect();
        let &[first, second] = &long[..] else { return Err(request.requires(needs)) };
        let side = sides[first];
        if sides[second] != side || wrap[first] != wrap[second] {
            return Err(request.requires(needs));
        }
        let dimensions = [first, second];
        let found = match wrap[first] {
            true => (TORI.iter().find(|known| known.0 == side))
                .map(|&(_, modulus, text)| torus(grid, dimensions, modulus, text)),
            false => MESHES.iter().find(|known| known.0 == side).map(|known| mesh(grid, known.1)),
        };
        let (period, largest) = found.ok_or_else(|| request.requires(needs))?;
        let claims = Claims::of_period(request.problem.block_bytes, &largest);
        // Messages of one block need no packing.
        let copied_bytes = (!wrap[first]).then_some(0);
        Ok(Solution::new(request, values, period, Claims { copied_bytes, ..claims }))
    }
}
