//! Message combining on tori of any dimension (Suh and Shin 2001, section 3).
//!
//! Ranks whose coordinates agree mod 4 form a group. In phases 1..n every group scatters its
//! blocks along rings of stride 4, each rank along the dimensions in an order, and with signs,
//! that its class fixes so that no two messages share a link; phase n+1 exchanges at distance 2
//! inside 4 x .. x 4 submeshes, phase n+2 at distance 1 inside 2 x .. x 2 ones.
//!
//! Claim, with N1 the longest side: n (N1/4 + 1) steps, n/8 (N1 + 4) P blocks, n (N1 - 1) hops,
//! n + 1 rearrangements, no shared link (section 3.2.3).
//!
//! # The classes
//! Sides are taken in falling order, x the longest, whatever order the machine lists them in.
//! q = (x + y) mod 4 gives x first if even, y first if odd, both signs + iff q < 2. A further
//! dimension z goes last if z is even, first if odd, sign + iff z mod 4 < 2 (section 3.2.2). A ring
//! alone needs but two classes, even ranks + and odd ranks -, at stride 2 (section 3.1.5, Figure
//! 6): N/2 steps, N^2/4 blocks, N - 1 hops.
//!
//! # The slots
//! Write `x_u = 4 A_u + i_u` and let D be the source's order of dimensions, s its signs. The block
//! from src to dst has its slot for its whole life, a number in the mixed radix
//!
//! ```text
//! k_D0 .. k_Dn-1   h_D0 .. h_Dn-1   l_n-1 .. l_0         most significant digit first
//!   k_u = s_u (A_u(dst) - A_u(src)) mod N_u/4            still to travel, in rings
//!   h_u = bit 1, l_u = bit 0 of i_u(dst) xor i_u(src)
//! ```
//!
//! and a ring message of step t is the slots with `k_u >= t`, a distance-2 message those with
//! `h_u = 1`, a distance-1 message those with `l_u = 1`: never more than one strided run, the same
//! at sender and receiver. D depends only on parities, which phase n+1 keeps, and the l digits do
//! not depend on it, so every rank on the way reads the slots alike.
//!
//! # The layout
//! In the paper's layout a rearrangement after each of the phases 1 .. n+1 rotates the digits just
//! used to the end, a transposition, and so ring messages are contiguous. With `layout=fixed` the
//! slots stay as they are: no rearrangement, and messages are packed.

use smallvec::SmallVec;
use topocoll_schedule::{
    Axis, Block, Parameters, Problem, RankClasses, Rule, Schedule, Setting, Slot, SlotSet, Step,
    Strided,
};
use topocoll_topology::{Coordinates, Grid, MixedRadix, Rank, Route, Shape, Topology};

use crate::parameters::{check, origin, word};
use crate::{Algorithm, Claims, NotApplicable, Parameter};

pub(crate) struct SuhShin;

const LAYOUTS: [&str; 2] = ["paper", "fixed"];

struct TorusIndex {
    radix: MixedRadix,
    /// The dimensions by falling side: x, y, z, ..
    falling: SmallVec<[usize; 6]>,
    /// Distance between ring neighbours, 4; 2 on a ring alone.
    stride: u32,
    /// Whether rearrangements keep ring messages contiguous.
    rearranges: bool,
}

/// Dimensions with sides of four or more, of which 2^32 - 1 ranks leave room for no more.
const MAX_COMBINED: usize = 16;

/// How a class travels; asked for with every slot, so kept in a few words.
struct Way {
    /// The dimensions in the order of phases, the first so many.
    order: [u8; MAX_COMBINED],
    /// Bit u: whether the sign of dimension u is +.
    positive: u32,
}

impl Way {
    /// The dimension of phase p.
    fn dimension(&self, p: usize) -> usize {
        usize::from(self.order[p])
    }

    /// The sign of dimension u.
    fn sign(&self, u: usize) -> i64 {
        if self.positive >> u & 1 == 1 { 1 } else { -1 }
    }
}

/// What a step does.
enum Phase {
    /// Step t >= 1 of ring phase p, along the p-th dimension of each class.
    Ring { p: usize, t: u32 },
    /// Distance 2 along the j-th dimension of each class.
    Two { j: usize },
    /// Distance 1 along dimension u.
    One { u: usize },
}

impl TorusIndex {
    fn new(grid: &Grid, rearranges: bool) -> Self {
        let mut falling: SmallVec<[usize; 6]> = (0..grid.sides().len()).collect();
        falling.sort_by_key(|&u| std::cmp::Reverse(grid.sides()[u]));
        let stride = if falling.len() == 1 { 2 } else { 4 };
        Self { radix: grid.radix().clone(), falling, stride, rearranges }
    }

    fn dimensions(&self) -> usize {
        self.falling.len()
    }

    /// Ranks of a group along dimension u: `N_u / 4`.
    fn ring(&self, u: usize) -> u32 {
        self.radix.sides()[u] / self.stride
    }

    /// Steps of each ring phase.
    fn ring_steps(&self) -> u32 {
        self.ring(self.falling[0]) - 1
    }

    /// Digits h or l of one dimension, 2 bits at stride 4.
    fn inner_bits(&self) -> usize {
        self.stride.ilog2() as usize
    }

    /// The way of the class of `coordinates`; the order depends on their parities alone.
    fn way(&self, coordinates: &[u32]) -> Way {
        let mut way = Way { order: [0; MAX_COMBINED], positive: 0 };
        let x = self.falling[0];
        let Some(&y) = self.falling.get(1) else {
            way.positive = u32::from(coordinates[x] % 2 == 0) << x;
            return way;
        };
        let q = (coordinates[x] + coordinates[y]) % 4;
        let (first, second) = if q % 2 == 0 { (x, y) } else { (y, x) };
        way.order[..2].copy_from_slice(&[first as u8, second as u8]);
        way.positive = u32::from(q < 2) << x | u32::from(q < 2) << y;
        for (placed, &z) in self.falling.iter().enumerate().skip(2) {
            if coordinates[z] % 2 == 0 {
                way.order[placed] = z as u8;
            } else {
                way.order.copy_within(..placed, 1);
                way.order[0] = z as u8;
            }
            way.positive |= u32::from(coordinates[z] % 4 < 2) << z;
        }
        way
    }

    fn phase(&self, step: u32) -> Phase {
        let (n, ring_steps) = (self.dimensions(), self.ring_steps());
        let after_rings = ring_steps * n as u32;
        if step < after_rings {
            return Phase::Ring { p: (step / ring_steps) as usize, t: step % ring_steps + 1 };
        }
        let j = (step - after_rings) as usize;
        if self.inner_bits() == 2 && j < n {
            Phase::Two { j }
        } else {
            Phase::One { u: n - 1 - j % n }
        }
    }

    /// The product of the radices of the first `groups` digit groups: the k digits one by one,
    /// then the h digits together. This is what has been rotated to the end after so many phases.
    fn rotated(&self, way: &Way, groups: usize) -> u64 {
        let n = self.dimensions();
        let rings: u64 =
            (0..groups.min(n)).map(|p| u64::from(self.ring(way.dimension(p)))).product();
        if groups > n { rings << n } else { rings }
    }

    /// A digit's weight before any rotation: the product of the radices below it.
    fn weight(&self, way: &Way, phase: &Phase) -> u64 {
        let n = self.dimensions();
        match *phase {
            Phase::Ring { p, .. } => u64::from(self.radix.ranks()) / self.rotated(way, p + 1),
            Phase::Two { j } => 1 << (2 * n - 1 - j),
            Phase::One { u } => 1 << u,
        }
    }

    /// The slots of a message: one digit, of radix `radix` and `weight`, in `low..radix`.
    fn digit_at_least(&self, weight: u64, radix: u32, low: u32) -> SlotSet {
        let (radix, low) = (u64::from(radix), u64::from(low));
        let period = weight * radix;
        let runs = u64::from(self.radix.ranks()) / period;
        SlotSet::of(Strided::runs(low * weight, runs, period, (radix - low) * weight))
    }

    /// The rearrangement that rotates the topmost `group` values to the end: slot `a W + b`
    /// becomes `b group + a`, a transposition.
    fn rearrange(&self, group: u64, out: &mut Step) {
        let ranks = u64::from(self.radix.ranks());
        let (rows, columns) = (group, ranks / group);
        if rows == 1 || columns == 1 {
            return;
        }
        let row = |count, stride| Axis { count, stride: stride as i64 };
        let from = Strided { base: 0, outer: row(rows, columns), inner: row(columns, 1) };
        let to = Strided { base: 0, outer: row(rows, 1), inner: row(columns, rows) };
        out.copy(SlotSet::of(from), SlotSet::of(to));
    }

    /// The digits h and l of a slot before any rotation: `i(dst) xor i(src)` by dimension. All are
    /// bits, l by dimension and above them h against the order of phases.
    fn inner(&self, way: &Way, slot: Slot) -> Coordinates {
        let n = self.dimensions();
        let mut inner: Coordinates = (0..n).map(|u| (slot >> u & 1) as u32).collect();
        if self.inner_bits() == 2 {
            for (bit, p) in (n..).zip((0..n).rev()) {
                inner[way.dimension(p)] |= (slot >> bit & 1) as u32 * 2;
            }
        }
        inner
    }

    /// The digits k of a slot before any rotation, by dimension.
    fn rings(&self, way: &Way, slot: Slot) -> Coordinates {
        let mut rest = (slot >> (self.inner_bits() * self.dimensions())) as u32;
        let mut k = Coordinates::from_elem(0, self.dimensions());
        for u in (0..self.dimensions()).rev().map(|p| way.dimension(p)) {
            k[u] = rest % self.ring(u);
            rest /= self.ring(u);
        }
        k
    }

    /// The other end of a block: `coordinates` moved by `k` rings along `direction` times its
    /// signs, and by `inner` within its submesh.
    fn other_end(
        &self,
        coordinates: &[u32],
        way: &Way,
        k: &[u32],
        inner: &[u32],
        direction: i64,
    ) -> Rank {
        let rank = (0..self.dimensions()).map(|u| {
            let (ring, k) = (self.ring(u), k[u]);
            let forward = if direction * way.sign(u) > 0 { k } else { ring - k };
            let a = coordinates[u] / self.stride + forward;
            let a = if a >= ring { a - ring } else { a };
            (a * self.stride + ((coordinates[u] % self.stride) ^ inner[u])) * self.radix.stride(u)
        });
        Rank(rank.sum())
    }
}

impl Rule for TorusIndex {
    fn steps(&self) -> u32 {
        (self.ring_steps() + self.inner_bits() as u32) * self.dimensions() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let n = self.dimensions();
        let coordinates = self.radix.coordinates(rank);
        let way = self.way(&coordinates);
        let phase = self.phase(step);
        // The phase, counted from 0, which of its steps this is, and where the message goes.
        let (number, first, u, radix, low, hops) = match phase {
            Phase::Ring { p, t } => {
                let u = way.dimension(p);
                (p, t == 1, u, self.ring(u), t, way.sign(u) * i64::from(self.stride))
            }
            Phase::Two { j } => {
                let u = way.dimension(j);
                (n, j == 0, u, 2, 1, if coordinates[u] % 4 < 2 { 2 } else { -2 })
            }
            Phase::One { u } => {
                let number = n + self.inner_bits() - 1;
                (number, u == n - 1, u, 2, 1, if coordinates[u] % 2 == 0 { 1 } else { -1 })
            }
        };
        let mut weight = self.weight(&way, &phase);
        if self.rearranges {
            let before = self.rotated(&way, number);
            weight *= before;
            if first && number > 0 {
                self.rearrange(before / self.rotated(&way, number - 1), out);
            }
        }
        if low >= radix {
            return;
        }
        let back = if matches!(phase, Phase::Ring { .. }) { -hops } else { hops };
        let slots = self.digit_at_least(weight, radix, low);
        out.receive(self.radix.shifted(rank, u, back), slots.clone());
        out.send(self.radix.shifted(rank, u, hops), slots, Route::straight(u as u32, hops));
    }

    fn slots(&self) -> u64 {
        self.radix.ranks().into()
    }

    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let coordinates = self.radix.coordinates(rank);
        let way = self.way(&coordinates);
        let (k, inner) = (self.rings(&way, slot), self.inner(&way, slot));
        Some(Block { from: rank, to: self.other_end(&coordinates, &way, &k, &inner, 1) })
    }

    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let n = self.dimensions();
        let coordinates = self.radix.coordinates(rank);
        let mut slot = slot;
        if self.rearranges {
            // All sides are rotated by now, so what was rotated does not depend on the order.
            let rotated = self.rotated(&self.way(&coordinates), n + self.inner_bits() - 1);
            slot = slot % rotated * (u64::from(self.radix.ranks()) / rotated) + slot / rotated;
        }
        // The l digits come last and give the source's parities, these its order, that the h
        // digits, and these its residues and so its signs.
        let parities: Coordinates =
            (0..n).map(|u| coordinates[u] ^ (slot >> u & 1) as u32).collect();
        let inner = self.inner(&self.way(&parities), slot);
        let residues: Coordinates = (0..n).map(|u| coordinates[u] ^ inner[u]).collect();
        let way = self.way(&residues);
        let k = self.rings(&way, slot);
        Some(Block { from: self.other_end(&coordinates, &way, &k, &inner, -1), to: rank })
    }

    fn classes(&self) -> RankClasses {
        RankClasses::translations(
            self.radix.clone(),
            Coordinates::from_elem(self.stride, self.dimensions()),
        )
    }
}

impl SuhShin {
    fn torus<'a>(
        &self,
        problem: &Problem,
        topology: &'a dyn Topology,
        given: &Parameters,
    ) -> Result<(&'a Grid, usize), NotApplicable> {
        check(self, problem, given)?;
        let layout = word(self, given, "layout", &LAYOUTS)?;
        let Shape::Grid(grid) = topology.shape() else {
            return Err(NotApplicable::Shape { needs: "a torus", topology: topology.short_form() });
        };
        let sides = || grid.sides().iter().enumerate();
        let refuse = |rule, breaks: &dyn Fn(usize, u32) -> bool| {
            let sides: Vec<_> = (sides().filter(|&(u, &side)| breaks(u, side)))
                .map(|(u, side)| format!("side {u} ({side})"))
                .collect();
            if sides.is_empty() { Ok(()) } else { Err(NotApplicable::Sides { rule, sides }) }
        };
        refuse("sides that wrap", &|u, _| !grid.wrap()[u])?;
        if grid.sides().len() == 1 {
            refuse("an even side", &|_, side| side % 2 != 0)?;
        } else {
            refuse("sides that are multiples of four", &|_, side| side % 4 != 0)?;
        }
        Ok((grid, layout))
    }
}

impl Algorithm for SuhShin {
    fn name(&self) -> &'static str {
        "suh-shin"
    }

    fn summary(&self) -> &'static str {
        "blocks combined along rings of stride 4, then exchanged inside 4 x .. x 4 and 2 x .. x 2 submeshes"
    }

    fn source(&self) -> &'static str {
        "Suh and Shin 2001, section 3"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "layout",
            values: "paper (rearrangements keep ring messages contiguous; default) or fixed (none; messages are packed)",
            by_cost: false,
        }]
    }

    fn settings(&self, problem: &Problem, topology: &dyn Topology) -> Vec<Parameters> {
        if self.torus(problem, topology, &Parameters::new()).is_err() {
            return Vec::new();
        }
        LAYOUTS
            .map(|layout| {
                Parameters::from([("layout".to_owned(), Setting::Text(layout.to_owned()))])
            })
            .into()
    }

    fn plan(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Schedule, NotApplicable> {
        let (grid, layout) = self.torus(problem, topology, given)?;
        let parameters =
            Parameters::from([("layout".to_owned(), Setting::Text(LAYOUTS[layout].to_owned()))]);
        Ok(Schedule::new(*problem, origin(self, parameters), TorusIndex::new(grid, layout == 0)))
    }

    fn claims(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        given: &Parameters,
    ) -> Result<Claims, NotApplicable> {
        let (grid, layout) = self.torus(problem, topology, given)?;
        let (n, ranks) = (grid.sides().len() as u128, u128::from(problem.ranks));
        let longest = u128::from(*grid.sides().iter().max().expect("a grid has a side"));
        let (steps, blocks) = match n {
            1 => (longest / 2, ranks * longest / 4),
            _ => (n * (longest / 4 + 1), n * (longest + 4) * ranks / 8),
        };
        // Where the rings are single ranks, phases 1 .. n are empty and rearrange nothing.
        let rearrangements = match (layout, n) {
            (1, _) => 0,
            (_, 1) => u32::from(longest > 2),
            _ if longest == 4 => 1,
            _ => n as u32 + 1,
        };
        Ok(Claims {
            hops: Some(n * (longest - 1)),
            rearrangements: Some(rearrangements),
            contention_free: true,
            ..Claims::new(steps as u64, blocks * u128::from(problem.block_bytes))
        })
    }
}
