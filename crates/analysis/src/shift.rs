//! Link loads of a uniform shift on a grid, in closed form.
//!
//! In a step of a cyclic rule every rank x sends the same message to x + s (mod P). Along
//! dimension u the message turns from position a to a + t (mod side), where t is `s_u`, or `s_u + 1`
//! where the faster coordinates carry into it: x mod S + s mod S >= S, with S the stride of u. By
//! dimension order it travels on the line whose slower coordinates are already those of its
//! destination, and whose faster ones are still its own. On each such line every position starts
//! exactly one message, and all turn as far.
//!
//! Where the side wraps, every link of the line, in the nearer direction, so carries exactly as many
//! messages as hops are travelled. Where it does not, those that start below side - t go up by t, the
//! others come down by side - t, and the links above position i, either way, carry
//! min(i + 1, t, side - t, side - 1 - i): most in the middle, of several messages as well. Time per
//! step is proportional to dimensions and messages, whatever the size.

use hashbrown::HashMap;
use smallvec::SmallVec;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Grid, LinkId, Rank, Shape, Topology};

use crate::charges::Rates;
use crate::counts::StepCount;

/// The grid on which every rank sends to the same shifts, if the classes are those of a cyclic rule.
pub(crate) fn grid<'t>(classes: &RankClasses, topology: &'t dyn Topology) -> Option<&'t Grid> {
    let cyclic = classes.radix().dimensions() == 1 && classes.count() == 1;
    match topology.shape() {
        Shape::Grid(grid) if cyclic => Some(grid),
        _ => None,
    }
}

/// Adds the links' part of a step in which every rank sends, for each (shift, bytes), one message.
pub(crate) fn count(
    grid: &Grid,
    rates: &Rates<'_>,
    messages: &[(u32, u128)],
    step: &mut StepCount,
) {
    for u in 0..grid.sides().len() {
        each_line_group(grid, u, messages, |group| {
            if grid.wrap()[u] {
                group.for_each_direction(messages, |_, load, bytes| {
                    let links = group.lines * u128::from(grid.sides()[u]);
                    step.charges.carry(u, links.saturating_mul(bytes));
                    step.load(rates, u, load, bytes, if load > 1 { links } else { 0 });
                });
            } else {
                group.count_line(rates, messages, step);
            }
        });
    }
    for &(shift, _) in messages {
        count_longest(grid, rates, shift, step);
    }
}

/// Links that all carry the same.
#[derive(Clone, Copy)]
pub(crate) struct Links {
    /// One of them.
    pub(crate) link: LinkId,
    pub(crate) count: u128,
    /// Messages and bytes on each.
    pub(crate) load: u64,
    pub(crate) bytes: u128,
}

/// Calls `each` with links that carry several messages: along every line from its middle to its
/// ends, where less and less is carried, as long as `each` asks for more; how many such links there
/// are.
pub(crate) fn shared(
    grid: &Grid,
    messages: &[(u32, u128)],
    mut each: impl FnMut(Links) -> bool,
) -> u128 {
    let mut all = 0;
    for u in 0..grid.sides().len() {
        each_line_group(grid, u, messages, |group| {
            let side = grid.sides()[u];
            if !grid.wrap()[u] {
                all += 2 * group.lines * u128::from(group.shared_above(messages));
                group.name_shared(messages, &mut each);
                return;
            }
            group.for_each_direction(messages, |direction, load, bytes| {
                if load > 1 {
                    let link = grid.link_id(Rank(group.first), u, direction);
                    let count = group.lines * u128::from(side);
                    all += count;
                    each(Links { link, count, load, bytes });
                }
            });
        });
    }
    all
}

/// Lines along a dimension on which each message turns as far as on the others.
struct LineGroup<'g> {
    grid: &'g Grid,
    dimension: usize,
    /// The lowest of the faster coordinates, read as one number, of these lines.
    first: u32,
    lines: u128,
}

/// The lines along dimension u, by equal carries.
fn each_line_group(
    grid: &Grid,
    u: usize,
    messages: &[(u32, u128)],
    mut each: impl FnMut(&LineGroup<'_>),
) {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let lines_per_suffix = u64::from(grid.radix().ranks() / side / stride);
    // A message carries into u on the lines of the highest `shift mod stride` suffixes.
    let mut borders: SmallVec<[u32; 8]> =
        messages.iter().map(|&(shift, _)| stride - shift % stride).collect();
    borders.push(0);
    borders.sort_unstable();
    borders.dedup();
    for (i, &first) in borders.iter().enumerate() {
        let end = borders.get(i + 1).copied().unwrap_or(stride);
        if first < end {
            let lines = u128::from(lines_per_suffix) * u128::from(end - first);
            each(&LineGroup { grid, dimension: u, first, lines });
        }
    }
}

impl LineGroup<'_> {
    /// How far each message turns, and its bytes.
    fn turns(&self, messages: &[(u32, u128)]) -> impl Iterator<Item = (u32, u128)> {
        let turn = |&(shift, bytes)| (turn(self.grid, self.dimension, shift, self.first), bytes);
        messages.iter().map(turn)
    }

    /// The messages and bytes on every link in each direction of a side that wraps.
    fn for_each_direction(&self, messages: &[(u32, u128)], mut each: impl FnMut(i64, u64, u128)) {
        let (mut load, mut bytes) = ([0u64; 2], [0u128; 2]);
        for (turn, size) in self.turns(messages) {
            for (i, most) in most(self.grid, self.dimension, turn).into_iter().enumerate() {
                load[i] += most;
                bytes[i] += u128::from(most) * size;
            }
        }
        for (i, direction) in [1, -1].into_iter().enumerate().filter(|&(i, _)| load[i] > 0) {
            each(direction, load[i], bytes[i]);
        }
    }

    /// The messages and bytes on each of the links that have so many positions on this side of them,
    /// and more on the other, of a side that does not wrap.
    fn so_near_an_end(&self, positions: u32, messages: &[(u32, u128)]) -> (u64, u128) {
        self.turns(messages).fold((0, 0), |(load, bytes), (turn, size)| {
            let [most, _] = most(self.grid, self.dimension, turn);
            let passing = most.min(positions.into());
            (load + passing, bytes + u128::from(passing) * size)
        })
    }

    /// Above how many positions of a side that does not wrap the links carry several messages.
    fn shared_above(&self, messages: &[(u32, u128)]) -> u32 {
        let side = self.grid.sides()[self.dimension];
        let several = |positions| self.so_near_an_end(positions, messages).0 > 1;
        // One message alone starts at each end, and as many more pass as far as their number grows.
        match (several(1), several(side / 2)) {
            (true, _) => side - 1,
            (false, true) => side - 3,
            (false, false) => 0,
        }
    }

    /// Counts lines of a side that does not wrap.
    fn count_line(&self, rates: &Rates<'_>, messages: &[(u32, u128)], step: &mut StepCount) {
        let (u, side) = (self.dimension, self.grid.sides()[self.dimension]);
        // As many messages go up by `turn` as come down by the rest, and the other way round.
        let carried =
            |(turn, size): (u32, u128)| 2 * u128::from(turn) * u128::from(side - turn) * size;
        let carried: u128 = self.turns(messages).map(carried).sum();
        step.charges.carry(u, self.lines.saturating_mul(carried));
        let (load, bytes) = self.so_near_an_end(side / 2, messages);
        if load > 0 {
            let shared = 2 * self.lines * u128::from(self.shared_above(messages));
            step.load(rates, u, load, bytes, shared);
        }
    }

    /// Calls `each` with the shared links of a side that does not wrap, from the middle to the ends.
    fn name_shared(&self, messages: &[(u32, u128)], each: &mut impl FnMut(Links) -> bool) {
        let (u, side) = (self.dimension, self.grid.sides()[self.dimension]);
        for positions in (1..=side / 2).rev() {
            let (load, bytes) = self.so_near_an_end(positions, messages);
            if load < 2 {
                return;
            }
            // Both ends of a link, as it is numbered by the one that it leaves.
            let (lower, upper) =
                ([positions - 1, positions], [side - 1 - positions, side - positions]);
            let both = if lower == upper { &[lower][..] } else { &[lower, upper] };
            for (&at, direction) in both.iter().flat_map(|ends| ends.iter().zip([1, -1])) {
                let at = self.grid.radix().shifted(Rank(self.first), u, at.into());
                let link = self.grid.link_id(at, u, direction);
                if !each(Links { link, count: self.lines, load, bytes }) {
                    return;
                }
            }
        }
    }
}

/// What links carry over several steps, where they carry most.
pub(crate) struct Totals<'g> {
    grid: &'g Grid,
    along: Vec<TotalsAlong>,
}

/// Bytes on the links of one dimension, upwards and downwards.
#[derive(Clone, Default)]
struct TotalsAlong {
    /// On lines of the lowest suffix.
    lowest: [i128; 2],
    /// How many more on those from a suffix on.
    more: HashMap<u32, [i128; 2]>,
}

impl<'g> Totals<'g> {
    pub(crate) fn new(grid: &'g Grid) -> Self {
        Self { grid, along: vec![TotalsAlong::default(); grid.sides().len()] }
    }

    /// Adds a message of every rank.
    pub(crate) fn add(&mut self, shift: u32, bytes: u128) {
        for (u, along) in self.along.iter_mut().enumerate() {
            let stride = self.grid.radix().stride(u);
            let on_lines = |suffix| {
                let most = most(self.grid, u, turn(self.grid, u, shift, suffix));
                most.map(|messages| i128::from(messages) * bytes as i128)
            };
            let (below, carrying) = (on_lines(0), stride - shift % stride);
            add(&mut along.lowest, below);
            if carrying < stride {
                let above = on_lines(carrying);
                let more = along.more.entry(carrying).or_default();
                add(more, [0, 1].map(|i| above[i] - below[i]));
            }
        }
    }

    /// Bytes on the link that carries most.
    pub(crate) fn max_link_bytes(self) -> u128 {
        let along = self.along.into_iter().map(|TotalsAlong { lowest: mut bytes, more }| {
            let mut more: Vec<_> = more.into_iter().collect();
            more.sort_unstable_by_key(|&(suffix, _)| suffix);
            more.into_iter().fold(bytes[0].max(bytes[1]), |most, (_, more)| {
                add(&mut bytes, more);
                most.max(bytes[0]).max(bytes[1])
            })
        });
        along.max().unwrap_or(0) as u128
    }
}

fn add(sums: &mut [i128; 2], more: [i128; 2]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The most messages on one link of a line, upwards and downwards, if each turns so far: in the
/// middle where the side does not wrap, and of all other turns as well.
fn most(grid: &Grid, u: usize, turn: u32) -> [u64; 2] {
    if grid.wrap()[u] {
        let hops = grid.nearest(u, 0, turn);
        return [hops.max(0), (-hops).max(0)].map(|hops| hops as u64);
    }
    [turn.min(grid.sides()[u] - turn).into(); 2]
}

/// How far a message turns along dimension u, upwards, whose faster coordinates are `suffix`.
fn turn(grid: &Grid, u: usize, shift: u32, suffix: u32) -> u32 {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let carry = u32::from(suffix >= stride - shift % stride);
    (shift / stride + carry) % side
}

/// How far back or on the positions lie, along dimension u, whose messages to rank + shift take the
/// link in this direction from `at`.
pub(crate) fn starts(
    grid: &Grid,
    at: Rank,
    u: usize,
    direction: i64,
    shift: u32,
) -> std::ops::Range<i64> {
    let side = i64::from(grid.sides()[u]);
    let turn = turn(grid, u, shift, at.0 % grid.radix().stride(u));
    if grid.wrap()[u] {
        let hops = grid.nearest(u, 0, turn);
        // Empty where the hops are in the other direction.
        return if direction > 0 { 1 - hops..1 } else { 0..-hops };
    }
    let (at, turn) = (i64::from(grid.radix().coordinate(at, u)), i64::from(turn));
    let (low, end) = match direction {
        1 => ((at - turn + 1).max(0), (at + 1).min(side - turn)),
        _ => (at.max(side - turn), (at + side - turn).min(side)),
    };
    low - at..end - at
}

/// The longest routes of the messages to rank + shift that carry, or do not, out of the dimensions
/// looked at.
#[derive(Clone, Copy, Default)]
struct Longest {
    /// The most hops of any.
    hops: u64,
    /// The most weight of any, and the dimensions that this route carries out of, as bits.
    weight: u128,
    carries: u64,
    /// Of the two, 1 if the hops by dimension of this route are the larger.
    order: u8,
}

/// Hops along dimension u by this digit of a shift where a carry comes in and goes out, or does not,
/// if that can be: a carry can go out wherever a digit, with its own carry, is not 0, and can stay
/// away wherever it does not fill the side.
fn hops_along(grid: &Grid, u: usize, digit: u32, comes: bool, goes: bool) -> Option<u64> {
    let side = grid.sides()[u];
    let moved = u64::from(digit) + u64::from(comes);
    let possible = if goes { moved > 0 } else { moved < side.into() };
    possible.then(|| match goes {
        _ if grid.wrap()[u] => grid.nearest(u, 0, moved as u32).unsigned_abs(),
        false => moved,
        true => u64::from(side) - moved,
    })
}

/// Charges the longest route of any rank's message to rank + shift.
fn count_longest(grid: &Grid, rates: &Rates<'_>, shift: u32, step: &mut StepCount) {
    let digit = |u: usize| shift / grid.radix().stride(u) % grid.sides()[u];
    let mut best = [Some(Longest::default()), None];
    for u in (0..grid.sides().len()).rev() {
        let own = digit(u);
        let mut next: [Option<(Longest, (u64, u8))>; 2] = [None; 2];
        for (comes, longest) in best.iter().enumerate() {
            let Some(longest) = longest else { continue };
            for (goes, next) in next.iter_mut().enumerate() {
                let Some(here) = hops_along(grid, u, own, comes == 1, goes == 1) else {
                    continue;
                };
                let mut longer = Longest {
                    hops: longest.hops + here,
                    weight: longest.weight + rates.weight(u, here),
                    carries: longest.carries | (goes as u64) << u,
                    order: 0,
                };
                let order = (here, longest.order);
                *next = Some(match *next {
                    Some((mut other, before)) => {
                        let hops = longer.hops.max(other.hops);
                        (longer.hops, other.hops) = (hops, hops);
                        let heavier = (longer.weight, order) > (other.weight, before);
                        if heavier { (longer, order) } else { (other, before) }
                    }
                    None => (longer, order),
                });
            }
        }
        let orders = next.map(|next| next.map(|(_, order)| order));
        best = [0, 1].map(|goes| {
            let order = u8::from(orders[goes] > orders[1 - goes]);
            next[goes].map(|(longest, _)| Longest { order, ..longest })
        });
    }
    for longest in best.into_iter().flatten() {
        let carries = |u: usize| longest.carries >> u & 1 == 1;
        let hops = (0..grid.sides().len()).map(|u| {
            let hops = hops_along(grid, u, digit(u), carries(u + 1), carries(u));
            (u, hops.expect("bug: a carry that cannot be"))
        });
        step.hops = step.hops.max(longest.hops);
        step.charges.longest(longest.weight, hops);
    }
}
