//! What a part does along one side.

use smallvec::{SmallVec, smallvec};
use topocoll_schedule::{Axis, Strided};

use super::super::line::{Direction, Part, StridedLine};

/// A side of more than one rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// Stride 1.
    One(StridedLine),
    /// Stride 2.
    Two(EvenSide),
}

/// A side of N ranks, 2 or a multiple of 4, along which blocks go two hops at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvenSide {
    pub(super) dimension: usize,
    /// N.
    pub(super) side: u32,
    /// Whether the hop that is left is upwards for all blocks, and else in their direction.
    pub(super) near: bool,
}

/// A step of all sides in a stage.
#[derive(Clone, Copy, Debug)]
pub(super) enum SideTurn {
    Hop(u32),
    /// A matching at stride 1, and else the hop that is left: upwards, then downwards.
    Last(u32),
}

/// A message along a side.
pub(super) struct SideMessage {
    /// Signed hops.
    pub(super) to: i64,
    /// Those to the rank whose message comes.
    pub(super) from: i64,
    /// The digits of its slots.
    pub(super) digits: SmallVec<[Strided; 2]>,
}

impl EvenSide {
    fn hop_steps(&self) -> u32 {
        self.side / 2 - 1
    }

    /// The offsets of at least `least` hops in a direction, other than those of N/2.
    ///
    /// With `near` an offset goes hops along the ring to the even number below it, upwards below N/2 and downwards
    /// above N/2 + 1. Otherwise it goes to the even number that is next toward 0.
    fn offsets(&self, up: bool, least: u32, halves: bool) -> Strided {
        let (side, half) = (self.side, self.side / 2);
        let beyond = u32::from(self.near);
        let (first, end) = match (up, halves) {
            (true, true) => (least, half + beyond + 1),
            (true, false) => (least, half),
            (false, true) => (half, side - least + beyond + 1),
            (false, false) => (half + beyond + 1, side - least + beyond + 1),
        };
        Strided::contiguous(first.into(), end.saturating_sub(first).into())
    }

    fn hop(&self, step: u32, even: bool) -> Option<SideMessage> {
        if step >= self.hop_steps() {
            return None;
        }
        let up = even == (step % 2 == 0);
        let hops = if up { 2 } else { -2 };
        let digits = self.offsets(up, 2 * (step / 2 + 1), step % 2 == 0);
        Some(SideMessage { to: hops, from: -hops, digits: smallvec![digits] })
    }

    /// The offsets with a hop left, upwards (1) or downwards (-1), and those without one (0).
    fn left(&self, hop: i64) -> Strided {
        let (base, count) = match hop {
            0 => (0, self.side / 2),
            1 if self.near || self.side == 2 => (1, self.side / 2),
            1 => (1, self.side / 4),
            _ if self.near => (0, 0),
            _ => (self.side / 2 + 1, self.side / 4),
        };
        let inner = Axis { count: count.into(), stride: 2 };
        Strided { base: base.into(), outer: Axis::POINT, inner }
    }

    /// The hops that may be left.
    fn hops_left(&self) -> &'static [i64] {
        if self.near || self.side == 2 { &[1] } else { &[1, -1] }
    }

    fn last(&self, step: u32) -> Option<SideMessage> {
        let &hop = self.hops_left().get(step as usize)?;
        Some(SideMessage { to: hop, from: -hop, digits: smallvec![self.left(hop)] })
    }
}

impl Side {
    pub(super) fn dimension(&self) -> usize {
        match self {
            Self::One(line) => line.dimension,
            Self::Two(side) => side.dimension,
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        match self {
            Self::One(line) => line.side,
            Self::Two(side) => side.side,
        }
    }

    /// Positions after which ranks do the same.
    pub(super) fn period(&self) -> u32 {
        match self {
            Self::One(line) => line.period(),
            Self::Two(_) => 2,
        }
    }

    pub(super) fn hop_steps(&self) -> u32 {
        match self {
            Self::One(line) => line.hop_steps() + line.half_steps(),
            Self::Two(side) => side.hop_steps(),
        }
    }

    /// Steps of a stage after its hops; if `axis`, those of the hops that are left.
    pub(super) fn last_steps(&self, axis: bool) -> u32 {
        match self {
            Self::One(line) => line.match_steps(),
            Self::Two(side) if axis => side.hops_left().len() as u32,
            Self::Two(_) => 0,
        }
    }

    /// The hops that may be left after the stages.
    pub(super) fn hops_left(&self) -> &'static [i64] {
        match self {
            Self::One(_) => &[],
            Self::Two(side) => side.hops_left(),
        }
    }

    /// The digits of blocks with this hop left.
    pub(super) fn left(&self, hop: i64) -> Strided {
        match self {
            Self::One(line) => Strided::contiguous(0, line.side.into()),
            Self::Two(side) => side.left(hop),
        }
    }

    /// The message of a rank, by its position and whether its coordinates have an even sum.
    pub(super) fn message(&self, turn: SideTurn, at: u32, even: bool) -> Option<SideMessage> {
        match (self, turn) {
            (Self::One(line), turn) => {
                let part = part(line, turn)?;
                let direction = line.direction(part, at)?;
                let (to, from) = line.hops(part, direction, at);
                Some(SideMessage { to, from, digits: digits(line, part, direction) })
            }
            (Self::Two(side), SideTurn::Hop(step)) => side.hop(step, even),
            (Self::Two(side), SideTurn::Last(step)) => side.last(step),
        }
    }

    /// The messages of all ranks, of each kind one of the most hops.
    pub(super) fn kinds(&self, turn: SideTurn) -> SmallVec<[SideMessage; 2]> {
        match (self, turn) {
            (Self::One(line), turn) => {
                let Some(part) = part(line, turn) else { return SmallVec::new() };
                let kinds = line.most_hops(part).map(|(direction, hops)| SideMessage {
                    to: hops.into(),
                    from: -i64::from(hops),
                    digits: digits(line, part, direction),
                });
                kinds.collect()
            }
            (Self::Two(_), _) => {
                [true, false].into_iter().filter_map(|even| self.message(turn, 0, even)).collect()
            }
        }
    }

    /// Where the block in a slot of a position goes.
    pub(super) fn to(&self, at: u32, digit: u32) -> u32 {
        match self {
            Self::One(line) => line.to(at, digit),
            Self::Two(side) => (at + digit) % side.side,
        }
    }

    /// Where the block in a slot of a position came from.
    pub(super) fn from(&self, at: u32, digit: u32) -> u32 {
        match self {
            Self::One(line) => line.from(at, digit),
            Self::Two(side) => (at + side.side - digit) % side.side,
        }
    }
}

/// What a line of stride 1 does in a step of a stage.
fn part(line: &StridedLine, turn: SideTurn) -> Option<Part> {
    match turn {
        SideTurn::Hop(step) => {
            (step < line.hop_steps() + line.half_steps()).then(|| line.hop(step))
        }
        SideTurn::Last(step) => (step < line.match_steps()).then(|| line.matched(step)),
    }
}

fn digits(line: &StridedLine, part: Part, direction: Direction) -> SmallVec<[Strided; 2]> {
    let mut digits = smallvec![line.sent(part, direction, &line.turns())];
    if line.has_half(part) {
        digits.push(line.half(direction));
    }
    digits
}
