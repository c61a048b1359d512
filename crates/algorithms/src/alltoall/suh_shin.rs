//! Message combining on tori and meshes of any dimension (Suh and Shin 2001, sections 3 and 4).
//!
//! On a torus, ranks whose coordinates agree mod 4 form a group. In phases 1..n every group
//! scatters its blocks along rings of stride 4, each rank along the dimensions in an order, and
//! with signs, that its class fixes so that there is no link contention; phase n+1 exchanges at
//! distance 2 inside 4 x .. x 4 submeshes, phase n+2 at distance 1 inside 2 x .. x 2 ones. On a
//! mesh the stride is 2, phase n+1 falls away, and the last rank of a line sends to its first over
//! the links that lead back, which are otherwise unused.
//!
//! Claim on a torus of sides that are multiples of four, N1 the longest: n (N1/4 + 1) steps, n/8
//! (N1 + 4) P blocks, n (N1 - 1) hops, n + 1 rearrangements (section 3.2.3). Claim at stride 2,
//! which applies to every grid of even sides, wrapping or not: n N1/2 steps, n/4 N1 P blocks, n
//! rearrangements (section 4.2.2); on a mesh of equal sides n ((N/2 - 1) (N - 2) + 1) hops. There
//! is no link contention. Sides of 1 are ignored.
//! # The shorter direction
//! The paper's rings run in one direction, and their volume is n times the bisection bound. With
//! `ways=nearer` a ring phase has two halves: first every class goes in its own direction with the
//! blocks of at most floor(N/8) rings, then all go in the other with the rest. Reversing all signs
//! maps links onto links, so neither half has contention. The steps are the paper's; on a square
//! torus of side N, with N/4 even, the blocks are N^3/8 + 2 N^2. To our knowledge no one-port
//! combining schedule of these counts has been published.
//!
//! # By digits
//! With `rings=digits`, on tori of two and more sides, a ring phase has a step for every binary
//! digit of the remaining hops k: in that of 2^i, blocks move 2^i hops at once. Ranks of one class
//! on a line move equally, so a link carries 2^i messages, and over the links a step costs 2^i
//! times its largest message. With `ways=one` that is the paper's volume, in a step for each digit
//! of N/4 - 1. With `ways=nearer`, half a ring goes first, then k below N/8, then N/4 - k against
//! the sign: two steps for each digit and one where a ring is even. At 16 x 16 these are 8 steps,
//! the fewest there can be, and 1280 blocks over the busiest links, or 10 and 1024; at 32 x 32 10
//! and 9216, the fewest again, or 14 and 6144; at 10 x 10, at stride 2, 8 and 500, or 10 and
//! 340. A ring message but of the highest digit is scattered and packed.
//!
//! # The classes
//! Sides are taken in falling order, x the longest, whatever order the machine lists them in. q =
//! (x + y) mod 4 gives x first if even, y first if odd, both signs + iff q < 2. A further dimension
//! z goes last if z is even, first if odd, sign + iff z mod 4 < 2 (section 3.2.2). At stride 2 the
//! order is the same and all signs are +, so on each line the ranks of one parity move, all in one
//! direction. A ring alone has even ranks go + and odd ranks - (section 3.1.5, Figure 6): N/2
//! steps, N^2/4 blocks, N - 1 hops.
//!
//! # The slots
//! Write `x_u = 4 A_u + i_u` (2 at stride 2) and let D be the source's order of dimensions, s its
//! signs. The block from src to dst has its slot for its whole life, a number in the mixed radix
//!
//! ```text
//! k_D0 .. k_Dn-1   h_D0 .. h_Dn-1   l_n-1 .. l_0         most significant digit first
//!   k_u = s_u (A_u(dst) - A_u(src)) mod N_u/4            still to travel, in rings
//!   h_u = bit 1, l_u = bit 0 of i_u(dst) xor i_u(src)    at stride 2 there is no h
//! ```
//!
//! and a ring message of step t is the slots with `k_u >= t`, a distance-2 message those with
//! `h_u = 1`, a distance-1 message those with `l_u = 1`: never more than one strided run, the same
//! at sender and receiver. D depends only on parities, which phase n+1 keeps, and the l digits do
//! not depend on it, so every rank on the route reads the slots equally.
//!
//! # The layout
//! In the paper's layout a rearrangement after each phase but the last rotates the digits just used
//! to the end, a transposition, and so ring messages are contiguous. With `layout=fixed` the slots
//! stay as they are: no rearrangement, and messages are packed.

mod rings;
mod slots;

use smallvec::SmallVec;
use topocoll_schedule::{Axis, Block, Parameters, RankClasses, Rule, Slot, SlotSet, Step, Strided};
use topocoll_topology::{Coordinates, Grid, MixedRadix, Rank, Route, Topology};

use crate::error::check_sides;
use crate::layout::mixed_radix_layout::Ends;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct SuhShin;

struct GridIndex {
    grid: Grid,
    /// The dimensions longer than 1, in order.
    long: SmallVec<[usize; 6]>,
    /// The same by falling side: x, y, z, ..
    falling: SmallVec<[usize; 6]>,
    /// Distance between ring neighbours, 4 or 2.
    stride: u32,
    /// Whether rearrangements keep ring messages contiguous.
    rearranges: bool,
    /// Whether blocks take the shorter direction around rings that wrap.
    nearer: bool,
    /// Whether a ring step is one of a binary digit of hops, not of one hop.
    by_digits: bool,
}

/// Dimensions longer than 1, of which 2^32 - 1 ranks leave room for no more.
const MAX_LONG: usize = 32;

/// The phases of a class; computed for every slot, so kept in a few words.
struct TravelOrder {
    /// The dimensions in the order of phases; entries past the last are unused.
    order: [u8; MAX_LONG],
    /// Bit u: whether the sign of dimension u is +.
    positive: u32,
}

impl TravelOrder {
    /// The dimension of phase p.
    fn dimension(&self, p: usize) -> usize {
        usize::from(self.order[p])
    }

    /// The sign of dimension u.
    fn sign(&self, u: usize) -> i64 {
        if self.positive >> u & 1 == 1 { 1 } else { -1 }
    }
}

/// The kind of a step.
enum Phase {
    /// Step t >= 1 of ring phase p, along the p-th dimension of each class.
    Ring { p: usize, t: u32 },
    /// Distance 2 along the j-th dimension of each class.
    Two { j: usize },
    /// Distance 1 along the i-th dimension that counts.
    One { i: usize },
}

impl GridIndex {
    fn new(grid: &Grid, values: &Values<'_>) -> Self {
        let long: SmallVec<[usize; 6]> = grid.radix().long_dimensions().collect();
        let mut falling = long.clone();
        falling.sort_by_key(|&u| std::cmp::Reverse(grid.sides()[u]));
        Self {
            grid: grid.clone(),
            stride: stride(grid),
            long,
            falling,
            rearranges: values.is("layout", "paper"),
            nearer: values.is("ways", "nearer"),
            by_digits: values.is("rings", "digits"),
        }
    }

    fn radix(&self) -> &MixedRadix {
        self.grid.radix()
    }

    /// The dimensions n that count.
    fn dimensions(&self) -> usize {
        self.long.len()
    }

    /// Ranks of a group along dimension u: `N_u / 4`, or `N_u / 2` at stride 2.
    fn ring(&self, u: usize) -> u32 {
        self.grid.sides()[u] / self.stride
    }

    /// Digits h or l of one dimension, 2 bits at stride 4.
    fn inner_bits(&self) -> usize {
        self.stride.ilog2() as usize
    }

    /// The travel order of the class of `coordinates`; the order depends on their parities alone.
    fn travel_order(&self, coordinates: &[u32]) -> TravelOrder {
        let mut travel = TravelOrder { order: [0; MAX_LONG], positive: 0 };
        let Some(&x) = self.falling.first() else { return travel };
        let Some(&y) = self.falling.get(1) else {
            travel.order[0] = x as u8;
            travel.positive = u32::from(coordinates[x] % 2 == 0) << x;
            return travel;
        };
        let q = (coordinates[x] + coordinates[y]) % 4;
        let (first, second) = if q % 2 == 0 { (x, y) } else { (y, x) };
        travel.order[..2].copy_from_slice(&[first as u8, second as u8]);
        travel.positive = u32::from(q < 2) << x | u32::from(q < 2) << y;
        for (placed, &z) in self.falling.iter().enumerate().skip(2) {
            if coordinates[z] % 2 == 0 {
                travel.order[placed] = z as u8;
            } else {
                travel.order.copy_within(..placed, 1);
                travel.order[0] = z as u8;
            }
            travel.positive |= u32::from(coordinates[z] % 4 < 2) << z;
        }
        if self.stride == 2 {
            travel.positive = u32::MAX;
        }
        travel
    }

    /// Hops to the next rank of the ring; back to the first where the side does not wrap.
    fn ring_hops(&self, u: usize, coordinate: u32, sign: i64) -> i64 {
        let (side, stride) = (self.grid.sides()[u], self.stride);
        let last = !self.grid.wrap()[u] && coordinate + stride >= side;
        if last { i64::from(stride) - i64::from(side) } else { sign * i64::from(stride) }
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
            Phase::One { i: n - 1 - j % n }
        }
    }

    /// The product of the radices of the first `groups` digit groups: the k digits one by one, then
    /// the h digits together. This is the part rotated to the end after that number of phases.
    fn rotated(&self, order: &TravelOrder, groups: usize) -> u64 {
        let n = self.dimensions();
        let rings: u64 =
            (0..groups.min(n)).map(|p| u64::from(self.ring(order.dimension(p)))).product();
        if groups > n { rings << n } else { rings }
    }

    /// A digit's weight before any rotation: the product of the radices below it.
    fn weight(&self, order: &TravelOrder, phase: &Phase) -> u64 {
        let n = self.dimensions();
        match *phase {
            Phase::Ring { p, .. } => u64::from(self.radix().ranks()) / self.rotated(order, p + 1),
            Phase::Two { j } => 1 << (2 * n - 1 - j),
            Phase::One { i } => 1 << i,
        }
    }

    /// The slots of a message: one digit, of radix `radix` and `weight`, in `low..high`.
    fn digit_in(&self, weight: u64, radix: u32, low: u32, high: u32) -> SlotSet {
        let (low, high) = (u64::from(low), u64::from(high));
        let period = weight * u64::from(radix);
        let runs = u64::from(self.radix().ranks()) / period;
        SlotSet::of(Strided::runs(low * weight, runs, period, (high - low) * weight))
    }

    /// The rearrangement that rotates the topmost `group` values to the end: slot `a W + b`
    /// becomes `b group + a`, a transposition.
    fn rearrange(&self, group: u64, out: &mut Step) {
        let ranks = u64::from(self.radix().ranks());
        let (rows, columns) = (group, ranks / group);
        if rows == 1 || columns == 1 {
            return;
        }
        let row = |count, stride| Axis { count, stride: stride as i64 };
        let from = Strided { base: 0, outer: row(rows, columns), inner: row(columns, 1) };
        let to = Strided { base: 0, outer: row(rows, 1), inner: row(columns, rows) };
        out.copy(SlotSet::of(from), SlotSet::of(to));
    }
}

impl Rule for GridIndex {
    fn steps(&self) -> u32 {
        (self.ring_steps() + self.inner_bits() as u32) * self.dimensions() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let n = self.dimensions();
        let coordinates = self.radix().coordinates(rank);
        let order = self.travel_order(&coordinates);
        let phase = self.phase(step);
        // The phase, counted from 0, whether this is its first step, and the message's direction:
        // its sign, or its hops.
        let (number, first, u, way_there) = match phase {
            Phase::Ring { p, t } => {
                let u = order.dimension(p);
                let reversed = self.ring_message(u, t).is_some_and(|message| message.reversed);
                let sign = if reversed { -order.sign(u) } else { order.sign(u) };
                (p, t == 1, u, sign)
            }
            Phase::Two { j } => {
                let u = order.dimension(j);
                (n, j == 0, u, if coordinates[u] % 4 < 2 { 2 } else { -2 })
            }
            Phase::One { i } => {
                let u = self.long[i];
                let number = n + self.inner_bits() - 1;
                (number, i == n - 1, u, if coordinates[u] % 2 == 0 { 1 } else { -1 })
            }
        };
        let mut weight = self.weight(&order, &phase);
        if self.rearranges {
            let before = self.rotated(&order, number);
            weight *= before;
            if first && number > 0 {
                self.rearrange(before / self.rotated(&order, number - 1), out);
            }
        }
        // Around a ring the one before sends here; otherwise the two exchange.
        let (slots, hops, back) = match phase {
            Phase::Ring { t, .. } => {
                let Some(message) = self.ring_message(u, t) else { return };
                let hops = self.ring_hops(u, coordinates[u], way_there) * i64::from(message.hops);
                let back = -way_there * i64::from(self.stride * message.hops);
                (self.ring_slots(&message, weight, self.ring(u)), hops, back)
            }
            Phase::Two { .. } | Phase::One { .. } => {
                (self.digit_in(weight, 2, 1, 2), way_there, way_there)
            }
        };
        out.receive(self.radix().shifted(rank, u, back), slots.clone());
        out.send(self.radix().shifted(rank, u, hops), slots, Route::straight(u as u32, hops));
    }

    fn slots(&self) -> u64 {
        self.radix().ranks().into()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let coordinates = self.radix().coordinates(rank);
        let order = self.travel_order(&coordinates);
        let (k, inner) = (self.rings(&order, slot), self.inner(&order, slot));
        Some(Block { from: rank, to: self.other_end(&coordinates, &order, &k, &inner, 1) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let n = self.dimensions();
        let coordinates = self.radix().coordinates(rank);
        let mut slot = slot;
        if self.rearranges {
            // All sides are rotated by now, so the rotated part does not depend on the order.
            let rotated = self.rotated(&self.travel_order(&coordinates), n + self.inner_bits() - 1);
            slot = slot % rotated * (u64::from(self.radix().ranks()) / rotated) + slot / rotated;
        }
        let (order, inner) = self.travel_order_here(&coordinates, slot);
        let k = self.rings(&order, slot);
        Some(Block { from: self.other_end(&coordinates, &order, &k, &inner, -1), to: rank })
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        let coordinates = self.radix().coordinates(rank);
        let order = self.travel_order(&coordinates);
        let mut ends = Ends::new(self.slots());
        let bit = |u: usize, value: u32, bit: u32| {
            ((coordinates[u] & bit) ^ (value * bit)) * self.radix().stride(u)
        };
        for &u in &self.long {
            ends.prepend(2, |l| bit(u, l, 1));
        }
        if self.inner_bits() == 2 {
            for u in (0..self.dimensions()).rev().map(|p| order.dimension(p)) {
                ends.prepend(2, |h| bit(u, h, 2));
            }
        }
        self.prepend_rings(&mut ends, &coordinates, &order, 1);
        out.clear();
        out.extend(ends.iter().map(|to| Some(Block { from: rank, to })));
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        let n = self.dimensions();
        let coordinates = self.radix().coordinates(rank);
        let inner_slots = 1 << (self.inner_bits() * n);
        // The slots of the digits l, and those above them, after the last rotation.
        let (below, above) = match self.rearranges {
            true => (self.slots() >> n, 1),
            false => (1, 1 << n),
        };
        out.clear();
        out.resize(self.slots() as usize, None);
        let mut ends = Ends::new(self.slots() / inner_slots);
        for slot in 0..inner_slots {
            let (order, inner) = self.travel_order_here(&coordinates, slot);
            let inner = self
                .long
                .iter()
                .map(|&u| ((coordinates[u] % self.stride) ^ inner[u]) * self.radix().stride(u));
            ends.restart(inner.sum());
            self.prepend_rings(&mut ends, &coordinates, &order, -1);
            let (l, h) = (slot & ((1 << n) - 1), slot >> n);
            let places = (l * below + h * above..).step_by(((above * inner_slots) >> n) as usize);
            for (place, from) in places.zip(ends.iter()) {
                out[place as usize] = Some(Block { from, to: rank });
            }
        }
    }

    fn classes(&self) -> RankClasses {
        let mut periods = Coordinates::from_slice(self.grid.sides());
        for &u in self.long.iter().filter(|&&u| self.grid.wrap()[u]) {
            periods[u] = self.stride;
        }
        RankClasses::translations(self.radix().clone(), periods)
    }
}

/// The distance of ring neighbours: 4 on tori of several dimensions, all multiples of four, else 2.
fn stride(grid: &Grid) -> u32 {
    let long: SmallVec<[usize; 6]> = grid.radix().long_dimensions().collect();
    let fours = long.iter().all(|&u| grid.wrap()[u] && grid.sides()[u] % 4 == 0);
    if fours && long.len() > 1 { 4 } else { 2 }
}

impl GridIndex {
    fn claims(&self, block_bytes: u64) -> Claims {
        let (grid, block_bytes) = (&self.grid, u128::from(block_bytes));
        let long: SmallVec<[usize; 6]> = grid.radix().long_dimensions().collect();
        let n = long.len() as u128;
        let ranks = u128::from(grid.ranks());
        let longest = long.iter().map(|&u| u128::from(grid.sides()[u])).max().unwrap_or(1);
        let wraps = |wraps: bool| long.iter().all(|&u| grid.wrap()[u] == wraps);
        let equal = long.iter().all(|&u| u128::from(grid.sides()[u]) == longest);
        let torus = stride(grid) == 4;
        let inner = n * if torus { 2 } else { 1 } * ranks / 2;
        // Half rings are a step that a phase may have nothing for.
        let inner_steps = (self.inner_bits() * self.dimensions()) as u32;
        let steps = self.sum_of_largest(|_, _| 1) as u32 + inner_steps;
        let blocks = self.sum_of_largest(|blocks, _| blocks) + inner;
        let link_blocks =
            self.sum_of_largest(|blocks, message| blocks * u128::from(message.hops)) + inner;
        let hops = match () {
            () if self.by_digits => {
                let stride = u128::from(self.stride);
                let along = self.sum_of_largest(|_, message| stride * u128::from(message.hops));
                Some(along + (stride - 1) * n)
            }
            () if wraps(true) => Some(n * (longest - 1)),
            () if wraps(false) && equal => Some(n * ((longest / 2 - 1) * (longest - 2) + 1)),
            () => None,
        };
        // Where the rings are single ranks, phases 1 .. n are empty and rearrange nothing.
        let rings = if longest > u128::from(stride(grid)) { n as u32 } else { 0 };
        let rearrangements = if self.rearranges { rings + u32::from(torus) } else { 0 };
        let bytes = blocks * block_bytes;
        let scattered =
            self.sum_of_largest(|blocks, message| if message.scattered() { blocks } else { 0 });
        // In the paper's layout all but the first message of an inner phase are packed, half of the
        // blocks each.
        let packed = scattered + n.saturating_sub(1) * if torus { 2 } else { 1 } * ranks / 2;
        let copied =
            self.rearranges.then(|| (u128::from(rearrangements) * ranks + packed) * block_bytes);
        Claims {
            hops,
            hops_floor: hops.unwrap_or(0),
            rearrangements: Some(rearrangements),
            copied_bytes: copied,
            contention_free: !self.by_digits,
            link_bytes_floor: link_blocks * block_bytes,
            ..Claims::new(steps.into(), bytes)
        }
    }
}

/// Whether a grid and values fit each other.
fn check(grid: &Grid, values: &Values<'_>) -> Result<(), NotApplicable> {
    let sides = grid.sides();
    let long: SmallVec<[usize; 6]> = grid.radix().long_dimensions().collect();
    check_sides(grid, "even sides", |u| sides[u] > 1 && sides[u] % 2 != 0)?;
    if long.len() == 1 && sides[long[0]] > 2 {
        let rule = "a side that wraps if only one is longer than 1";
        check_sides(grid, rule, |u| sides[u] > 1 && !grid.wrap()[u])?;
    }
    if values.is("ways", "nearer") && !long.iter().any(|&u| grid.wrap()[u]) {
        return Err(values.refused("ways", "one, as no side wraps"));
    }
    if values.is("rings", "digits") {
        let ring = |&u: &usize| sides[u] / stride(grid);
        let long_rings = long.iter().map(ring).max() >= Some(4);
        let wraps = long.iter().all(|&u| grid.wrap()[u]);
        if values.is("layout", "fixed") || long.len() < 2 || !wraps || !long_rings {
            let rule = "hops but in layout=paper on a torus of two and more sides, one at least \
                        four rings long";
            return Err(values.refused("rings", rule));
        }
    }
    Ok(())
}

static INFO: Info = Info::new(
    "suh-shin",
    "blocks combined along rings of stride 4 (meshes: 2), then exchanged in small submeshes",
    "Suh and Shin 2001, sections 3 and 4",
)
.with_internal(&[
    Parameter::words(
        "rings",
        &[
            ("hops", "a step each"),
            ("digits", "a step for each binary digit of hops, with link contention; layout=paper"),
        ],
    ),
    Parameter::words(
        "layout",
        &[
            ("paper", "rearrangements keep ring messages contiguous"),
            ("fixed", "no rearrangements; messages are packed"),
        ],
    ),
    Parameter::words(
        "ways",
        &[
            ("one", "around rings, as in the paper"),
            ("nearer", "half the volume; where a side wraps"),
        ],
    ),
]);

impl Algorithm for SuhShin {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus or mesh")?;
        // On rings of one or two ranks both directions are the nearer one.
        let nearer =
            (0..grid.sides().len()).any(|u| grid.wrap()[u] && grid.sides()[u] > 2 * stride(grid));
        let mut settings = INFO.combinations();
        settings.retain(|setting| nearer || setting["ways"] == "one".into());
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus or mesh")?;
        check(grid, values)?;
        let rule = GridIndex::new(grid, values);
        let claims = rule.claims(request.problem.block_bytes);
        Ok(Solution::new(request, values, rule, claims))
    }
}
