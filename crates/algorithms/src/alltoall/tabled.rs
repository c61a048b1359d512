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
//! On meshes that of matchings; on tori that of offsets, the sets those of each dimension.

use smallvec::{SmallVec, smallvec};
use topocoll_schedule::{Block, Rule, Slot, Step};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Topology};

use crate::factor::offset_moves::{Move, Multiples, OffsetMoves, Residues, read_table};
use crate::layout::matching_layout::MatchingLayout;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct Tabled;

/// Where a step is not of a block.
const NONE: u8 = u8::MAX;

/// The tables of meshes, by side.
const MESHES: [(u32, &str); 3] = [
    (4, include_str!("tabled/mesh_4.txt")),
    (6, include_str!("tabled/mesh_6.txt")),
    (8, include_str!("tabled/mesh_8.txt")),
];

/// The tables of tori, by side: the residues of sums, and the steps.
const TORI: [(u32, u32, &str); 2] =
    [(10, 10, include_str!("tabled/torus_10.txt")), (12, 6, include_str!("tabled/torus_12.txt"))];

/// Blocks straight to their destinations on a mesh.
struct Mesh {
    grid: Grid,
    ranks: u32,
    steps: u32,
    /// The step of a block by its source, of the first half of the ranks, and its destination.
    step: Vec<u8>,
}

impl Mesh {
    fn new(grid: &Grid, text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let step = |word: &str| match word {
            ".." => NONE,
            word => u8::from_str_radix(word, 16)
                .unwrap_or_else(|_| panic!("bug: `{word}` in a table of steps")),
        };
        let step: Vec<u8> = lines.flat_map(str::split_whitespace).map(step).collect();
        let steps = step.iter().filter(|&&step| step != NONE).max();
        let steps = steps.map_or(0, |&last| u32::from(last) + 1);
        Self { grid: grid.clone(), ranks: grid.ranks(), steps, step }
    }

    /// Whether the block of a source goes to a destination in a step.
    fn goes(&self, from: u32, to: u32, step: u32) -> bool {
        let (from, to) = match from < self.ranks / 2 {
            true => (from, to),
            false => (self.ranks - 1 - from, self.ranks - 1 - to),
        };
        u32::from(self.step[(from * self.ranks + to) as usize]) == step
    }

    /// By the last dimension first.
    fn route(&self, from: Rank, to: u32) -> Route {
        let mut route = Route::default();
        let at = |rank, u| i64::from(self.grid.radix().coordinate(rank, u));
        for u in (0..self.grid.sides().len()).rev() {
            route.push(u as u32, at(Rank(to), u) - at(from, u));
        }
        route
    }

    /// The sum over steps of the most hops.
    fn hops(&self) -> u64 {
        let length = |step: u32| {
            let pairs = (0..self.ranks).flat_map(|from| (0..self.ranks).map(move |to| (from, to)));
            let sent = pairs.filter(|&(from, to)| self.goes(from, to, step));
            sent.map(|(from, to)| self.route(Rank(from), to).hops()).max().unwrap_or(0)
        };
        (0..self.steps).map(length).sum()
    }

    fn layout(&self) -> MatchingLayout {
        MatchingLayout::of(self.ranks)
    }
}

impl Rule for Mesh {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        if let Some(to) = (0..self.ranks).find(|&to| self.goes(rank.0, to, step)) {
            MatchingLayout::send(Rank(to), self.route(rank, to), out);
        }
        if let Some(from) = (0..self.ranks).find(|&from| self.goes(from, rank.0, step)) {
            self.layout().receive(Rank(from), out);
        }
    }

    fn slots(&self) -> u64 {
        self.layout().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.layout().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.layout().final_block(rank, slot)
    }
}

/// The schedule of a torus of two equal sides, from a table of residues modulo `modulus`.
fn torus(grid: &Grid, [first, second]: [usize; 2], modulus: u32, text: &str) -> OffsetMoves {
    let side = grid.sides()[first];
    let dimensions = [first, second];
    let set = |dimension| smallvec![Multiples { dimension, hops: 1, count: side }];
    let mut moduli: Coordinates = grid.sides().iter().map(|_| 1).collect();
    dimensions.iter().for_each(|&u| moduli[u] = modulus);
    let table = read_table(text);
    // The first of the two phases has half as many steps as the second.
    let phase = table.len() / 3;
    let steps = table.iter().enumerate().map(|(step, row)| {
        let moves = (0..).zip(row).map(|(residue, route)| {
            let mut route = route.clone();
            let set = route[0].dimension;
            route[0].dimension = dimensions[set];
            let (along, last) = (route[0].hops.rem_euclid(side.into()), step >= phase);
            let mut moved: SmallVec<[bool; 3]> = smallvec![false; 2];
            moved[1 - set] = last;
            // Those that came the other way began at ranks of an even sum if they now go along columns.
            let parity = if last { 1 + (residue + set as u32) % 2 } else { 0 };
            let residues = Residues { moduli: moduli.clone(), modulus };
            Move { residues, residue, route, set, offset: along as u32, moved, parity }
        });
        moves.collect()
    });
    OffsetMoves::new(grid, smallvec![set(first), set(second)], steps.collect())
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
        if wrap[first] {
            let known = TORI.iter().find(|known| known.0 == side);
            let &(_, modulus, text) = known.ok_or_else(|| request.requires(needs))?;
            let rule = torus(grid, [first, second], modulus, text);
            let claims = rule.claims(request);
            return Ok(Solution::new(request, values, rule, claims));
        }
        let known = MESHES.iter().find(|known| known.0 == side);
        let mesh = Mesh::new(grid, known.ok_or_else(|| request.requires(needs))?.1);
        let hops = u128::from(mesh.hops());
        let claims = Claims {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: true,
            ..Claims::new(mesh.steps.into(), request.bytes(mesh.steps))
        };
        Ok(Solution::new(request, values, mesh, claims))
    }
}
