//! The residual exchange within aligned windows, in place.
//!
//! Where 2n divides every side, blocks may land in the window of 2n positions that holds their
//! destination. A position in the window is a number of digits, of radix 2 and weight n, then of
//! radices 2 and 3 whose product is n, down to weight 1. For every digit, every dimension and every
//! l = 1 .. radix - 1 there is one step, in which a rank sends the blocks for digits l higher. In
//! the p-th round of a digit of weight d, the rank of class q moves along dimension (q mod d + p)
//! mod n. So the ranks that move along a line lie d apart, and two or three of them, which
//! exchange, use links of their own: 0 and 1 in both directions, or 0, 1, 2 in a cycle, over the
//! two links between them and the two links back. No hop changes q mod d, so that each block sees
//! every dimension.
//!
//! A slot numbers, dimension by dimension, the position in the window and then the source on the
//! ring, and a step receives into the slots that it sends: a value of one digit.

use topocoll_schedule::{SlotSet, Step, Strided};
use topocoll_topology::{Rank, Route};

use super::ColouredRule;

/// A digit of positions in a window.
#[derive(Clone, Copy)]
pub(super) struct Digit {
    pub(super) radix: u32,
    /// Its weight: the distance at which it is exchanged.
    pub(super) distance: u32,
}

/// The digits of positions in a window of 2n, if n is a product of twos and threes.
pub(super) fn digits(n: u32) -> Option<Vec<Digit>> {
    let mut digits = vec![Digit { radix: 2, distance: n }];
    while let Some(&Digit { distance: rest @ 2.., .. }) = digits.last() {
        let radix = [2, 3].into_iter().find(|radix| rest % radix == 0)?;
        digits.push(Digit { radix, distance: rest / radix });
    }
    Some(digits)
}

/// A value of a digit, moved by `by`.
fn moved(digit: Digit, x: u32, by: u32) -> u32 {
    (x / digit.distance + by) % digit.radix
}

/// Where a block landed that is at x and is numbered by the position `target` in the window.
pub(super) fn landed(digits: &[Digit], x: u32, target: u32, window: u32) -> u32 {
    // A value l more than a rank's own was sent by the one whose value is l less.
    let landed = digits.iter().map(|&digit| {
        let (own, value) = (moved(digit, x, 0), moved(digit, target, 0));
        (2 * own + digit.radix - value) % digit.radix * digit.distance
    });
    x - x % window + landed.sum::<u32>()
}

impl ColouredRule {
    /// Steps of the exchange within windows.
    pub(super) fn window_steps(&self, digits: &[Digit]) -> u32 {
        let steps = digits.iter().map(|digit| digit.radix - 1).sum::<u32>();
        steps * self.dimensions() as u32
    }

    /// A step of the exchange within windows.
    pub(super) fn window_step(
        &self,
        rank: Rank,
        at: &[u32],
        (digits, step): (&[Digit], u32),
        out: &mut Step,
    ) {
        let n = self.dimensions() as u32;
        let mut rest = step;
        let digit = *(digits.iter())
            .find(|digit| {
                let steps = n * (digit.radix - 1);
                let found = rest < steps;
                rest -= if found { 0 } else { steps };
                found
            })
            .expect("a step of the exchange");
        let (p, l) = (rest / (digit.radix - 1), rest % (digit.radix - 1) + 1);
        let u = ((at.iter().sum::<u32>() % digit.distance + p) % n) as usize;
        let value = moved(digit, at[u], 0);
        let (to, from) = (moved(digit, at[u], l), moved(digit, at[u], digit.radix - l));
        let hops = |other| (i64::from(other) - i64::from(value)) * i64::from(digit.distance);
        let slots = self.with(u, digit, to);
        let shifted = |hops| self.grid.radix().shifted(rank, self.long[u], hops);
        out.receive(shifted(hops(from)), slots.clone());
        out.send(shifted(hops(to)), slots, Route::straight(self.long[u] as u32, hops(to)));
    }

    /// The slots with a value of a digit in dimension u.
    fn with(&self, u: usize, digit: Digit, value: u32) -> SlotSet {
        let below: u64 = self.lines[u + 1..].iter().map(|line| u64::from(line.side())).product();
        let above: u64 = self.lines[..u].iter().map(|line| u64::from(line.side())).product();
        let side = u64::from(self.lines[u].side());
        let weight = u64::from(digit.distance) * (side / u64::from(self.colours)) * below;
        let period = weight * u64::from(digit.radix);
        let runs = above * side * below / period;
        SlotSet::of(Strided::runs(u64::from(value) * weight, runs, period, weight))
    }
}
