//! Times as lines in the block size: which line is the lowest from which size on.

use std::ops::Range;

use topocoll_schedule::MAX_BLOCK_BYTES;

/// Seconds, and seconds per byte of block.
pub(crate) type Seconds = (f64, f64);

/// A time from a least block size on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TimeLine {
    pub(crate) seconds: Seconds,
    /// The least block size, in bytes.
    pub(crate) least: u64,
}

/// The lowest line from a block size on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lowest {
    /// The first block size, in bytes.
    pub(crate) from: u64,
    /// The last one, if it is not the one before the next line's first, or the largest of all.
    pub(crate) to: Option<u64>,
    /// The place of the line.
    pub(crate) line: usize,
}

/// The seconds of a line at a block size.
pub(crate) fn at(seconds: Seconds, bytes: u64) -> f64 {
    seconds.0 + seconds.1 * bytes as f64
}

/// What rounding may take from a floor that equals the lowest time.
const ROUNDED: f64 = 1e-9;

/// Whether a floor is below a time.
pub(crate) fn is_below(floor: f64, time: f64) -> bool {
    floor < time * (1.0 - ROUNDED)
}

/// The lower envelope of lines, ascending in the block size. Of equally low lines the flattest, which stays
/// the lowest, and then the first.
pub(crate) fn envelope(lines: &[TimeLine]) -> Vec<Lowest> {
    let at = |i: usize, bytes: u64| at(lines[i].seconds, bytes);
    let lower = |a: &usize, b: &usize, bytes: u64| {
        let flatter = lines[*a].seconds.1.total_cmp(&lines[*b].seconds.1);
        at(*a, bytes).total_cmp(&at(*b, bytes)).then(flatter)
    };
    let Some(mut bytes) = lines.iter().map(|line| line.least).min() else { return Vec::new() };
    let mut out = Vec::new();
    let begins = (0..lines.len()).filter(|&i| lines[i].least == bytes);
    let mut lowest = begins.min_by(|a, b| lower(a, b, bytes));
    while let Some(now) = lowest {
        out.push(Lowest { from: bytes, to: None, line: now });
        // The first line to go below the current one; of several, the lowest there.
        let below = |i: usize| match lines[i].least {
            least if least > bytes && at(i, least) < at(now, least) => Some(least),
            least => first_below(lines[now].seconds, lines[i].seconds, bytes.max(least)),
        };
        let next = (0..lines.len())
            .filter_map(|i| Some((below(i)?, i)))
            .min_by(|a, b| a.0.cmp(&b.0).then_with(|| lower(&a.1, &b.1, a.0)));
        lowest = next.map(|(from, i)| {
            bytes = from;
            i
        });
    }
    out
}

/// The first block size after `bytes` at which the line `other` is below `line`.
pub(crate) fn first_below(line: Seconds, other: Seconds, bytes: u64) -> Option<u64> {
    let (saved, excess) = (line.1 - other.1, other.0 - line.0);
    if saved <= 0.0 {
        return None;
    }
    let cross = excess / saved;
    let from = (cross.floor() + 1.0).max(bytes as f64 + 1.0);
    (from <= MAX_BLOCK_BYTES as f64).then_some(from as u64)
}

/// The parts of an envelope from one block size to another, each with its place.
pub(crate) fn between(envelope: &[Lowest], first: u64, last: u64) -> Vec<(usize, Lowest)> {
    let part = |(place, one): (usize, &Lowest)| {
        let next = envelope.get(place + 1).map(|next| next.from - 1);
        let end = one.to.or(next).unwrap_or(MAX_BLOCK_BYTES);
        let to = one.to.filter(|&to| to < last);
        let inside = one.from <= last && first <= end;
        inside.then_some((place, Lowest { from: one.from.max(first), to, line: one.line }))
    };
    envelope.iter().enumerate().filter_map(part).collect()
}

/// The block sizes at which an envelope bends, and its ends.
pub(crate) fn bends(envelope: &[Lowest]) -> Vec<u64> {
    let ends = envelope.iter().flat_map(|one| [one.from.saturating_sub(1).max(1), one.from]);
    let mut sizes: Vec<u64> = [1].into_iter().chain(ends).chain([MAX_BLOCK_BYTES]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The time of an envelope at a block size.
pub(crate) fn time(lines: &[TimeLine], envelope: &[Lowest], bytes: u64) -> f64 {
    let place = envelope.partition_point(|one| one.from <= bytes);
    let Some(one) = place.checked_sub(1).map(|place| envelope[place]) else { return f64::INFINITY };
    at(lines[one.line].seconds, bytes)
}

/// The least share of the time of an envelope that a floor has at some block size; none if it is nowhere
/// below.
pub(crate) fn promise(
    floor: Seconds,
    lines: &[TimeLine],
    envelope: &[Lowest],
    sizes: &[u64],
) -> Option<f64> {
    // A floor is a line and an envelope is concave, so the share is the least at a bend.
    let share = |&bytes: &u64| at(floor, bytes) / time(lines, envelope, bytes);
    let least = sizes.iter().map(share).fold(f64::INFINITY, f64::min);
    (least < 1.0 - ROUNDED).then_some(least)
}

/// Leaves out the block sizes at which a floor is below the envelope.
pub(crate) fn without_open(
    lines: &[TimeLine],
    envelope: &[Lowest],
    floors: &[Seconds],
) -> Vec<Lowest> {
    let sizes = bends(envelope);
    let mut open: Vec<Range<u64>> = Vec::new();
    for &floor in floors {
        let is_open = |bytes: u64| is_below(at(floor, bytes), time(lines, envelope, bytes));
        // It is below in one interval, and if so at one of the sizes.
        let Some(low) = sizes.iter().position(|&size| is_open(size)) else { continue };
        let high = sizes.iter().rposition(|&size| is_open(size)).expect("bug: one is open");
        let from = match low {
            0 => sizes[0],
            low => first(sizes[low - 1]..sizes[low], is_open),
        };
        let end = match sizes.get(high + 1) {
            None => MAX_BLOCK_BYTES + 1,
            Some(&next) => first(sizes[high]..next, |bytes| !is_open(bytes)),
        };
        open.push(from..end);
    }
    let mut out = Vec::new();
    for (i, one) in envelope.iter().enumerate() {
        let next = envelope.get(i + 1).map_or(MAX_BLOCK_BYTES + 1, |next| next.from);
        let mut from = one.from;
        while from < next {
            let covered = open.iter().filter(|open| open.contains(&from)).map(|open| open.end);
            if let Some(end) = covered.max() {
                from = end;
                continue;
            }
            let begins =
                open.iter().map(|open| open.start).filter(|start| (from..next).contains(start));
            let end = begins.min().unwrap_or(next);
            let closed = end == next && !open.iter().any(|open| open.contains(&next));
            out.push(Lowest { from, to: (!closed).then_some(end - 1), line: one.line });
            from = end;
        }
    }
    out
}

/// The first number of a range of which something holds, if it holds of all after it too; or the end.
fn first(mut range: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    while !range.is_empty() {
        let middle = range.start + (range.end - range.start) / 2;
        if holds(middle) {
            range.end = middle;
        } else {
            range.start = middle + 1;
        }
    }
    range.start
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(most: usize) -> impl Strategy<Value = Vec<TimeLine>> {
        let line = (0..200u32, 0..20u32, 1..80u64).prop_map(|(fixed, slope, least)| TimeLine {
            seconds: (fixed.into(), slope.into()),
            least: if least > 40 { 1 } else { least },
        });
        proptest::collection::vec(line, 1..most)
    }

    proptest! {
        #[test]
        fn the_lowest_line_is_found_at_every_size(lines in lines(7)) {
            let found = envelope(&lines);
            for bytes in 1..=400u64 {
                let there = lines.iter().filter(|line| line.least <= bytes);
                let least = there.map(|line| at(line.seconds, bytes)).fold(f64::INFINITY, f64::min);
                prop_assert_eq!(time(&lines, &found, bytes), least, "{}", bytes);
            }
        }

        #[test]
        fn sizes_with_a_floor_below_are_left_out(lines in lines(6), floors in lines(4)) {
            let lines: Vec<TimeLine> = lines.into_iter().map(|line| TimeLine { least: 1, ..line }).collect();
            let floors: Vec<Seconds> = floors.into_iter().map(|floor| floor.seconds).collect();
            let whole = envelope(&lines);
            let found = without_open(&lines, &whole, &floors);
            for bytes in 1..=400u64 {
                let open = floors.iter().any(|&floor| at(floor, bytes) < time(&lines, &whole, bytes));
                let last = found.iter().rev().find(|one| one.from <= bytes);
                let told = last.filter(|one| one.to.is_none_or(|to| bytes <= to));
                prop_assert_eq!(told.is_none(), open, "{} {:?}", bytes, found);
                if let Some(told) = told {
                    let seconds = at(lines[told.line].seconds, bytes);
                    prop_assert_eq!(seconds, time(&lines, &whole, bytes));
                }
            }
            let promises = |floor: &Seconds| promise(*floor, &lines, &whole, &bends(&whole));
            let all = found.first().is_some_and(|one| one.from == 1)
                && found.iter().all(|one| one.to.is_none());
            prop_assert_eq!(floors.iter().all(|floor| promises(floor).is_none()), all);
        }
    }
}
