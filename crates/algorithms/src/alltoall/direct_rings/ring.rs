//! One side: its turns, the tours of each, and where its messages go.

use std::cmp::Ordering;

use super::counts::Farthest;

/// The direction around a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingDirection {
    Up,
    Down,
}

/// A side, made even.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub(super) dimension: usize,
    pub(super) side: u32,
    /// h.
    pub(super) half: u32,
    /// Whether rounds with and without half a ring are apart.
    pub(super) paired: bool,
}

/// A position's message in a turn.
#[derive(Clone, Copy)]
pub(super) struct RingTurn {
    round: u32,
    direction: RingDirection,
    /// Whether the vertex left out goes half around, where rounds are paired.
    half: bool,
}

impl Ring {
    pub(super) fn new(dimension: usize, side: u32) -> Self {
        Self { dimension, side, half: side.div_ceil(2), paired: false }
    }

    /// Whether there is a turn in which all keep their own.
    pub(super) fn stays(self) -> bool {
        self.is_odd() && self.half % 2 == 0
    }

    pub(super) fn is_odd(self) -> bool {
        self.side % 2 == 1
    }

    /// Rounds in each direction.
    pub(super) fn rounds(self) -> u32 {
        if self.is_odd() { self.cycle() } else { self.half }
    }

    /// Rounds of both directions, and that in which all keep their own.
    pub(super) fn turns(self) -> u32 {
        2 * self.rounds() + u32::from(self.stays())
    }

    /// A turn; none if all keep their own.
    pub(super) fn turn(self, number: u32) -> Option<RingTurn> {
        let back = self.turns() - 1 - number;
        let (place, direction) = match number.cmp(&back) {
            Ordering::Less => (number, RingDirection::Up),
            Ordering::Equal => return None,
            Ordering::Greater => (back, RingDirection::Down),
        };
        if !self.paired {
            return Some(RingTurn {
                round: place,
                direction,
                half: direction == RingDirection::Up,
            });
        }
        let pairs = self.half / 2;
        let turn = |round, half| Some(RingTurn { round, direction, half });
        match (place, direction) {
            // The last round has no other, and is paired with itself.
            _ if place == pairs => turn(2 * pairs, direction == RingDirection::Up),
            (place, RingDirection::Up) if place < pairs => turn(2 * place, true),
            (place, RingDirection::Down) if place < pairs => turn(2 * place + 1, true),
            (place, RingDirection::Up) => turn(2 * (place - pairs) - 1, false),
            (place, RingDirection::Down) => turn(2 * (place - pairs) - 2, false),
        }
    }

    /// Turns in each direction with one more tour, the first and the last.
    pub(super) fn longer(self) -> u32 {
        if self.paired { self.half / 2 + 1 } else { 0 }
    }

    pub(super) fn is_longer(self, turn: u32) -> bool {
        turn < self.longer() || turn >= self.turns() - self.longer()
    }

    /// The fewest tours of a round.
    pub(super) fn tours(self) -> u32 {
        if self.is_odd() || self.paired { self.half / 2 } else { self.half.div_ceil(2) }
    }

    /// The vertices that sums run over, which one more joins if h is even.
    pub(super) fn cycle(self) -> u32 {
        self.half - 1 + self.half % 2
    }

    /// The matching of a round: the last round has that of the first.
    pub(super) fn matching(self, round: u32) -> u32 {
        round % self.cycle()
    }

    /// The tour of a position in a turn of `tours`.
    pub(super) fn tour(self, at: u32, number: u32, tours: u32) -> u32 {
        let Some(turn) = self.turn(number) else { return 0 };
        let (vertex, cycle, c) = (at % self.half, self.cycle(), self.matching(turn.round));
        if vertex == cycle {
            return 0;
        }
        let (up, down) = ((vertex + cycle - c) % cycle, (c + cycle - vertex) % cycle);
        if self.paired {
            let last = self.matching(turn.round) + 1 == cycle;
            let odd = if up % 2 == 1 { up } else { down };
            let even = if up % 2 == 0 { up } else { down };
            return match turn.direction {
                _ if up == 0 && (turn.direction == RingDirection::Up || last) => cycle / 2 % tours,
                RingDirection::Down if !last => (even / 2 + tours - 1) % tours,
                _ => odd / 2,
            };
        }
        let tour = up.min(down);
        // A vertex left out of a matching makes no tour on odd sides.
        if self.is_odd() && self.half % 2 == 1 { tour.saturating_sub(1) } else { tour }
    }

    /// The tour of a position by which it goes reversed, in a turn that is the reverse of one: where
    /// rounds are paired that of the one or the one before, around.
    pub(super) fn tour_reversed(self, at: u32, number: u32, tours: u32) -> u32 {
        let tour = self.tour(at, number, tours);
        let up = number < self.turns() / 2;
        if self.paired && up { (tour + tours - 1) % tours } else { tour }
    }

    /// The vertex at the other end of a position's edge; none if it is left out, or in the last of
    /// an even number of rounds.
    pub(super) fn other(self, at: u32, round: u32) -> Option<u32> {
        let (vertex, cycle) = (at % self.half, self.cycle());
        if round == cycle {
            return None;
        }
        match (2 * round + cycle - vertex % cycle) % cycle {
            _ if vertex == cycle => Some(round),
            other if other != vertex => Some(other),
            _ => Some(cycle).filter(|_| self.half % 2 == 0),
        }
    }

    /// Whether a position without another end goes half around.
    pub(super) fn goes(self, at: u32, turn: RingTurn) -> bool {
        // Of each edge of matching 0 one end does by +, and the other by -.
        let vertex = at % self.half;
        let first = vertex > self.cycle() / 2 || vertex == self.cycle();
        if turn.round == self.cycle() {
            first == (turn.direction == RingDirection::Up)
        } else {
            turn.half
        }
    }

    /// Where the message of a position goes in a turn; none if it has none.
    pub(super) fn to(self, at: u32, number: u32) -> Option<u32> {
        self.turn(number).map_or(Some(at), |turn| self.reached(at, turn))
    }

    pub(super) fn reached(self, at: u32, turn: RingTurn) -> Option<u32> {
        let vertex = at % self.half;
        let hops = match self.other(at, turn.round) {
            Some(other) if turn.direction == RingDirection::Up => {
                (other + self.half - vertex) % self.half
            }
            Some(other) => 2 * self.half - (vertex + self.half - other) % self.half,
            None if self.is_odd() => {
                return Some(at).filter(|_| turn.direction == RingDirection::Up);
            }
            None if self.goes(at, turn) => self.half,
            None => 0,
        };
        let to = (at + hops) % (2 * self.half);
        // Over the rank that is not there.
        if to < self.side { Some(to) } else { self.reached(to, turn) }
    }

    /// Where the message to a position comes from.
    pub(super) fn from(self, at: u32, number: u32) -> Option<u32> {
        let Some(turn) = self.turn(number) else { return Some(at) };
        let back = if turn.direction == RingDirection::Up {
            RingDirection::Down
        } else {
            RingDirection::Up
        };
        let edge = self.other(at, turn.round).is_some();
        self.reached(at, if edge { RingTurn { direction: back, ..turn } } else { turn })
    }

    /// Signed hops between two positions in a turn.
    pub(super) fn hops(self, from: u32, to: u32, turn: u32) -> i64 {
        match self.turn(turn) {
            Some(RingTurn { direction: RingDirection::Down, .. }) => {
                -i64::from((from + self.side - to) % self.side)
            }
            _ => i64::from((to + self.side - from) % self.side),
        }
    }

    /// The most hops of a tour's messages in a turn, and in its reverse, by tour; none where it has no
    /// message.
    pub(super) fn farthest(self, turn: u32, tours: u32) -> Farthest {
        let back = self.turns() - 1 - turn;
        let mut farthest = [(); 2].map(|()| vec![None; tours as usize]);
        for at in 0..self.side {
            let sent =
                [(turn, self.tour(at, turn, tours)), (back, self.tour_reversed(at, back, tours))];
            for (farthest, (turn, tour)) in farthest.iter_mut().zip(sent) {
                if let Some(to) = self.to(at, turn) {
                    let hops = self.hops(at, to, turn).unsigned_abs();
                    let most: &mut Option<u64> = &mut farthest[tour as usize];
                    *most = (*most).max(Some(hops));
                }
            }
        }
        farthest
    }
}
