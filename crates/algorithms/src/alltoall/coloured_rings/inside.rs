//! Blocks from window to window of a mesh, and then an exchange of its own inside every window.
//!
//! On a mesh of two sides, cut into windows of w x w ranks, the ranks of one place in their windows
//! are a mesh of windows. The class of a rank, the sum of its coordinates mod w, is that of all of
//! them. A rank brings its blocks to the window of their destination along one dimension and then
//! along the other; half of the classes begin with each:
//! - w = 4 (`classes=2`): two classes share a line, in opposite directions, first each in its own
//!   and then in the other. Blocks hop from window to window, the farthest first (`line.rs`).
//! - w = 2 (`classes=1`): one class a line, straight to the window, by a table (`line.rs`).
//!
//! Then a window has blocks of its own ranks only, and all windows exchange them at once, by any
//! exchange of whole blocks on a mesh of w x w, with the blocks from all windows for a block.
//! Own construction; schedules of these counts are new, to our knowledge.
//!
//! # Claims
//! With M windows on the longest side, unit P / M, and an exchange of S steps and V blocks inside:
//! - w = 4: 4 (M - 1) + S steps and M^2 units + V P / 16 blocks, on squares of even M;
//! - w = 2: M^2 / 2 + S steps and M^2 / 2 units + V P / 4 blocks, on squares of even M.
//!
//! There is no link contention if the exchange inside has none. Only that exchange copies blocks.
//!
//! # The layout
//! There are two rooms, each of one slot for every pair of a window and a slot of the exchange
//! inside, the latter fastest. Along a dimension the window is that of the destination until a block
//! has moved, and then that of the source. A block that has to move along both dimensions, or along
//! none, is in the first room, and else in the second. So blocks that arrive do not meet those that
//! leave, and in the end all are in the first room.

mod line;
mod tables;

use std::ops::Range;

use smallvec::SmallVec;
use topocoll_schedule::{
    Axis, Block, Collective, Parameters, RankClasses, Rule, Slot, SlotSet, Step,
};
use topocoll_topology::{Grid, Rank, Route, Topology};

use self::line::{Digits, Line};
use crate::error::check_sides;
use crate::layout::axes::push_axes;
use crate::layout::inner::Inner;
use crate::{Claims, NotApplicable, Parameter, Request, Solution, Values};

/// The parameter that names the exchange inside windows.
pub(super) const INSIDE: Parameter = Parameter::algorithm(
    "inside",
    "with landing=windows, on meshes of two sides, the exchange inside windows: of 2 x 2 ranks with \
     classes=1, of 4 x 4 with classes=2; default that of digits",
);

/// Exchanges inside, with the classes, that no other standard one beats in both steps and volume.
const EXCHANGES: [(u64, &str); 3] =
    [(1, "binary-exchange"), (1, "quadrant-exchange"), (2, "tabled")];

/// Slots of a rank, at most.
const MOST_SLOTS: u64 = 1 << 40;

/// The longest side, as claims visit every step.
const LONGEST: u32 = 1 << 16;

struct Windows {
    grid: Grid,
    /// The dimensions longer than 1.
    long: [usize; 2],
    /// w.
    window: u32,
    /// The lines of windows.
    lines: [Line; 2],
    /// Steps of a stage.
    rounds: u32,
    /// A window, and the exchange inside.
    inner: Grid,
    inside: Inner,
}

/// A part of the blocks that move along a dimension.
struct Moving {
    /// The dimension.
    u: usize,
    /// Whether blocks have moved along the other one.
    second: bool,
}

impl Windows {
    /// Steps until all blocks are in the window of their destination: w stages.
    fn steps_between(&self) -> u32 {
        self.window * self.rounds
    }

    fn inner_slots(&self) -> u64 {
        self.inside.rule().slots()
    }

    /// Slots of a room.
    fn room(&self) -> u64 {
        self.inner_slots() * u64::from(self.lines[0].windows) * u64::from(self.lines[1].windows)
    }

    fn coordinate(&self, rank: Rank, u: usize) -> u32 {
        self.grid.radix().coordinate(rank, self.long[u])
    }

    /// The window of a rank.
    fn window_of(&self, rank: Rank) -> [u32; 2] {
        [0, 1].map(|u| self.coordinate(rank, u) / self.window)
    }

    /// The place of a rank in its window.
    fn place(&self, rank: Rank) -> Rank {
        let [r, c] = [0, 1].map(|u| self.coordinate(rank, u) % self.window);
        Rank(r * self.window + c)
    }

    /// The rank at a place in a window.
    fn rank(&self, window: [u32; 2], place: Rank) -> Rank {
        let at = [place.0 / self.window, place.0 % self.window];
        let strides = self.long.map(|u| self.grid.radix().stride(u));
        Rank((0..2).map(|u| (window[u] * self.window + at[u]) * strides[u]).sum())
    }

    /// The slots in which blocks move along a dimension, or have arrived, by the digits of that
    /// dimension.
    fn push(
        &self,
        (rank, window): (Rank, [u32; 2]),
        &Moving { u, second }: &Moving,
        digits: &Digits,
        out: &mut SlotSet,
    ) {
        let (v, own) = (1 - u, window[1 - u]);
        let windows = self.lines[v].windows;
        let parts: SmallVec<[(Range<u32>, bool); 3]> = match second {
            true => [(0..windows, true)].into_iter().collect(),
            // Blocks that will not move along the other dimension have the rooms swapped.
            false => [(0..own, false), (own..own + 1, true), (own + 1..windows, false)].into(),
        };
        for (others, swapped) in parts.into_iter().filter(|(others, _)| !others.is_empty()) {
            let room = u64::from(digits.arrived != swapped) * self.room();
            let ranges = if u == 0 {
                [digits.windows.clone(), others]
            } else {
                [others, digits.windows.clone()]
            };
            let columns = u64::from(self.lines[1].windows);
            let strides = [columns * self.inner_slots(), self.inner_slots()];
            let base: u64 = (0..2).map(|u| u64::from(ranges[u].start) * strides[u]).sum();
            for &(first, count) in self.inside.held(self.place(rank), false) {
                let along =
                    |u: usize| Axis { count: ranges[u].len() as u64, stride: strides[u] as i64 };
                let axes = [along(0), along(1), Axis { count, stride: 1 }];
                push_axes(room + base + first, &axes, out);
            }
        }
    }

    /// A step of the blocks between windows.
    fn step_between(&self, rank: Rank, step: u32, out: &mut Step) {
        let (stage, step) = (step / self.rounds, step % self.rounds);
        let class = (self.coordinate(rank, 0) + self.coordinate(rank, 1)) % self.window;
        let half = self.window / 2;
        let moving = Moving { u: ((class + stage / half) % 2) as usize, second: stage >= half };
        let up = (class < 2) == (stage % 2 == 0);
        let (u, window) = (moving.u, self.window_of(rank));
        let [to, from] = self.lines[u].messages(window[u], step, up);
        let hops = |other: u32| (i64::from(other) - i64::from(window[u])) * i64::from(self.window);
        let shifted = |other| self.grid.radix().shifted(rank, self.long[u], hops(other));
        let slots = |parts: &[Digits]| {
            let mut slots = SlotSet::default();
            parts.iter().for_each(|part| self.push((rank, window), &moving, part, &mut slots));
            slots
        };
        if let Some((from, parts)) = from {
            out.receive(shifted(from), slots(&parts));
        }
        if let Some((to, parts)) = to {
            let route = Route::straight(self.long[u] as u32, hops(to));
            out.send(shifted(to), slots(&parts), route);
        }
    }

    /// The slots of some slots inside a window, with blocks from all windows.
    fn slots_of(&self, inner: &SlotSet) -> SlotSet {
        let mut out = SlotSet::default();
        let windows =
            Axis { count: self.room() / self.inner_slots(), stride: self.inner_slots() as i64 };
        for run in inner.runs() {
            push_axes(run.slots.base, &[run.slots.outer, run.slots.inner, windows], &mut out);
        }
        out
    }

    /// A step inside windows.
    fn step_inside(&self, rank: Rank, step: u32, out: &mut Step) {
        let (window, place) = (self.window_of(rank), self.place(rank));
        self.inside.rule().step(place, step, out);
        for copy in &mut out.copies {
            copy.from = self.slots_of(&copy.from);
            copy.to = self.slots_of(&copy.to);
        }
        for send in &mut out.sends {
            let mut own = Route::default();
            let mut moved = Route::default();
            for segment in send.route_from(place, &self.inner, &mut own).segments() {
                moved.push(self.long[segment.dimension as usize] as u32, segment.hops);
            }
            send.route = moved;
        }
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            transfer.peer = self.rank(window, transfer.peer);
            transfer.slots = self.slots_of(&transfer.slots);
        }
    }

    /// A slot: whether it is in the second room, its window, and the slot inside.
    fn parts(&self, slot: Slot) -> (bool, [u32; 2], Slot) {
        let (room, inner) = (self.room(), self.inner_slots());
        let (window, columns) = (slot % room / inner, u64::from(self.lines[1].windows));
        (slot >= room, [window / columns, window % columns].map(|c| c as u32), slot % inner)
    }

    /// The claims, from those of the exchange inside.
    fn claims(&self, request: &Request<'_>, inside: Claims) -> Claims {
        let ranks = u64::from(self.grid.radix().ranks());
        let (mut blocks, mut hops) = (0u128, 0u128);
        for step in 0..self.rounds {
            let largest = self.lines.iter().map(|line| {
                u128::from(u64::from(line.largest(step)) * (ranks / u64::from(line.windows)))
            });
            blocks += largest.max().unwrap_or(0);
            let farthest = self.lines.iter().map(|line| line.farthest(step) * self.window);
            hops += u128::from(farthest.max().unwrap_or(0));
        }
        let (blocks, hops) = (blocks * u128::from(self.window), hops * u128::from(self.window));
        let steps = u64::from(self.steps_between());
        Claims {
            hops: inside.hops.map(|inside| hops + inside),
            rearrangements: inside.rearrangements,
            contention_free: inside.contention_free,
            link_bytes_floor: request.bytes(blocks) + inside.link_bytes_floor,
            hops_floor: hops + inside.hops_floor,
            ..Claims::new(steps + inside.steps, request.bytes(blocks) + inside.bytes)
        }
    }
}

impl Rule for Windows {
    fn steps(&self) -> u32 {
        self.steps_between() + self.inside.rule().steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        match step.checked_sub(self.steps_between()) {
            None => self.step_between(rank, step, out),
            Some(step) => self.step_inside(rank, step, out),
        }
    }

    fn slots(&self) -> u64 {
        2 * self.room()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (second, window, inner) = self.parts(slot);
        let own = self.window_of(rank);
        if second != ((window[0] == own[0]) != (window[1] == own[1])) {
            return None;
        }
        let inside = self.inside.rule().initial_block(self.place(rank), inner)?;
        Some(Block { from: rank, to: self.rank(window, inside.to) })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let (second, window, inner) = self.parts(slot);
        if second {
            return None;
        }
        let inside = self.inside.rule().final_block(self.place(rank), inner)?;
        Some(Block { from: self.rank(window, inside.from), to: rank })
    }

    fn classes(&self) -> RankClasses {
        let sides = self.grid.sides();
        RankClasses::translations(self.grid.radix().clone(), sides.iter().copied().collect())
    }
}

/// The settings worth pricing.
pub(super) fn candidates(request: &Request<'_>) -> Vec<Parameters> {
    let meshes = request.grid("a mesh of two sides").is_ok_and(|grid| {
        let long = || grid.radix().long_dimensions();
        long().count() == 2 && long().all(|u| !grid.wrap()[u])
    });
    if !meshes {
        return Vec::new();
    }
    let setting = |(classes, name): (u64, &str)| {
        let named = [("landing", "windows".into()), (INSIDE.name, name.into())];
        let all = named.into_iter().chain([("classes", classes.into())]);
        all.map(|(key, value)| (key.to_owned(), value)).collect()
    };
    let own = request.planner.catalogue().own();
    let own = own.filter(|info| info.operation == Collective::AllToAll && !info.by_demand);
    let own = own.flat_map(|info| [(1, &*info.name), (2, &*info.name)]);
    EXCHANGES.into_iter().chain(own).map(setting).collect()
}

/// The exchange with one of its own inside windows.
pub(super) fn solve(
    request: &Request<'_>,
    values: &Values<'_>,
    classes: u32,
) -> Result<Solution, NotApplicable> {
    let refused = |rule: &str| values.refused(INSIDE.name, rule);
    if !values.is("landing", "windows") {
        return Err(values.alone(INSIDE.name, "landing=windows"));
    }
    let grid = request.grid("a mesh of two sides")?;
    let (sides, radix) = (grid.sides(), grid.radix());
    let long: SmallVec<[usize; 6]> = radix.long_dimensions().collect();
    let [first, second] = long[..] else { return Err(request.requires("a mesh of two sides")) };
    check_sides(grid, "sides that do not wrap, for inside", |u| sides[u] > 1 && grid.wrap()[u])?;
    let (window, rule) = match classes {
        1 => (2, "even sides up to 32, not both 2, for inside with classes=1"),
        _ => {
            (4, "sides that are multiples of 4 up to 65536, not both 4, for inside with classes=2")
        }
    };
    let alone = sides[first] == window && sides[second] == window;
    check_sides(grid, rule, |u| {
        let fits = sides[u] % window == 0
            && match window {
                2 => tables::steps(sides[u] / 2).is_some(),
                _ => sides[u] <= LONGEST,
            };
        sides[u] > 1 && (alone || !fits)
    })?;
    let long = [first, second];
    let lines = long.map(|u| match window {
        2 => Line::straight(sides[u] / window),
        _ => Line::hops(sides[u] / window),
    });
    let inner = Grid::new(&[window; 2], &[false; 2]).expect("bug: invalid sides of a window");
    let bytes = request.bytes(radix.ranks() / inner.ranks());
    let part = request.part(&inner, request.problem.ports, bytes);
    let part = part.ok_or_else(|| refused("an exchange for bundles of at most 2^40 bytes"))?;
    let inside = values.solve_named(INSIDE.name, &part)?;
    let inside = inside.expect("bug: no exchange inside windows");
    if !inside.schedule.rule().cuts().is_empty() {
        return Err(refused("an exchange of whole blocks"));
    }
    let rounds = lines.iter().map(|line| line.steps).max().unwrap_or(0);
    let (grid, schedule) = (grid.clone(), inside.schedule.clone());
    let exchange = Inner::new(schedule).expect("bug: a window of many slots");
    let rule = Windows { grid, long, window, lines, rounds, inner, inside: exchange };
    if rule.slots() > MOST_SLOTS {
        return Err(refused("an exchange of at most 2^40 slots in all"));
    }
    let claims = rule.claims(request, inside.claims);
    let solution = Solution::new(request, values, rule, claims).without("residual");
    Ok(solution.with("classes", u64::from(classes)).with_named(&INSIDE, &inside))
}
