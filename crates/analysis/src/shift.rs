//! Link loads of a uniform shift on a torus, in closed form.
//!
//! In a step of a cyclic rule every rank x sends the same message to x + s (mod P). Along
//! dimension u the message travels `s_u` hops, or `s_u + 1` where the faster coordinates carry into
//! it: x mod S + s mod S >= S, with S the stride of u. By dimension order it travels on the line
//! whose slower coordinates are already those of its destination, and whose faster ones are still
//! its own. On each such line every position starts exactly one message, and all have the same
//! carry; so every link of the line, in the nearer direction, carries exactly as many messages as
//! hops are travelled. Time per step is proportional to dimensions and messages, whatever the size.

use topocoll_topology::{Grid, Timing};

use crate::counts::StepCount;

/// Whether the closed form holds for cyclic rules on `grid`.
pub(crate) fn applies(grid: &Grid) -> bool {
    grid.wrap().iter().zip(grid.sides()).all(|(&wraps, &side)| wraps || side == 1)
}

/// Adds the links' part of a step in which every rank sends, for each (shift, bytes), one message.
pub(crate) fn count(grid: &Grid, timing: &Timing, messages: &[(u32, u128)], step: &mut StepCount) {
    lines(grid, messages, |line| {
        let Line { dimension: u, links, load, bytes, .. } = line;
        step.link_seconds += links as f64 * bytes as f64 * timing.per_byte.of(u);
        step.load(timing, u, load, bytes, if load > 1 { links } else { 0 });
    });
    for &(shift, _) in messages {
        let (hops, seconds) = longest_way(grid, timing, shift);
        step.hops = step.hops.max(hops);
        step.propagation = step.propagation.max(seconds);
    }
}

/// Lines whose links all carry the same.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) dimension: usize,
    pub(crate) downwards: bool,
    /// The lowest of the faster coordinates, read as one number, of these lines.
    pub(crate) suffix: u32,
    /// Their links.
    pub(crate) links: u128,
    /// Messages and bytes on each.
    pub(crate) load: u64,
    pub(crate) bytes: u128,
}

/// Calls `each` with the lines that carry something, along all dimensions.
pub(crate) fn lines(grid: &Grid, messages: &[(u32, u128)], mut each: impl FnMut(Line)) {
    for u in 0..grid.sides().len() {
        lines_along(grid, u, messages, &mut each);
    }
}

/// The links along dimension u, line by line of equal carries.
fn lines_along(grid: &Grid, u: usize, messages: &[(u32, u128)], each: &mut impl FnMut(Line)) {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let lines_per_suffix = u64::from(grid.radix().ranks() / side / stride);
    // A message carries into u on the lines of the highest `shift mod stride` suffixes.
    let carrying = |shift: u32| shift % stride;
    let mut borders: smallvec::SmallVec<[u32; 8]> =
        messages.iter().map(|&(shift, _)| stride - carrying(shift)).collect();
    borders.push(0);
    borders.sort_unstable();
    borders.dedup();
    for (i, &first) in borders.iter().enumerate() {
        let end = borders.get(i + 1).copied().unwrap_or(stride);
        if first >= end {
            continue;
        }
        let (mut load, mut bytes) = ([0u64; 2], [0u128; 2]);
        for &(shift, size) in messages {
            let hops = hops(grid, u, shift, first);
            let direction = usize::from(hops < 0);
            load[direction] += hops.unsigned_abs();
            bytes[direction] += u128::from(hops.unsigned_abs()) * size;
        }
        let links = u128::from(lines_per_suffix) * u128::from(end - first) * u128::from(side);
        for direction in (0..2).filter(|&direction| load[direction] > 0) {
            each(Line {
                dimension: u,
                downwards: direction == 1,
                suffix: first,
                links,
                load: load[direction],
                bytes: bytes[direction],
            });
        }
    }
}

/// The hops along dimension u of a message whose faster coordinates are `suffix`.
pub(crate) fn hops(grid: &Grid, u: usize, shift: u32, suffix: u32) -> i64 {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let carry = u32::from(suffix >= stride - shift % stride);
    grid.nearest(u, 0, (shift / stride % side + carry) % side)
}

/// The most hops, and seconds of propagation, of any rank's message to rank + shift: a carry can
/// go into the next slower side wherever a digit, with its own carry, is not 0, and can stay away
/// wherever it does not fill the side.
fn longest_way(grid: &Grid, timing: &Timing, shift: u32) -> (u64, f64) {
    let mut best: [Option<(u64, f64)>; 2] = [Some((0, 0.0)), None];
    for u in (0..grid.sides().len()).rev() {
        let side = grid.sides()[u];
        let digit = shift / grid.radix().stride(u) % side;
        let mut next = [None; 2];
        for (carry, way) in best.iter().enumerate() {
            let Some((hops, seconds)) = *way else { continue };
            let moved = u64::from(digit) + carry as u64;
            let here = grid.nearest(u, 0, (moved % u64::from(side)) as u32).unsigned_abs();
            let way = (hops + here, seconds + here as f64 * timing.per_hop.of(u));
            for (out, possible) in [(0, moved < u64::from(side)), (1, moved > 0)] {
                if possible {
                    let (h, s) = next[out].unwrap_or((0, 0.0));
                    next[out] = Some((way.0.max(h), way.1.max(s)));
                }
            }
        }
        best = next;
    }
    let ways = best.into_iter().flatten();
    ways.fold((0, 0.0), |(hops, seconds), way| (hops.max(way.0), seconds.max(way.1)))
}
