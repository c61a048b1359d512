//! The counts of the exchange, from its lines alone.

use super::line::{Direction, LineExchange};
use super::windows::Digit;
use super::{ColouredRule, Residual};

/// Counts of the whole exchange, in blocks.
#[derive(Default)]
pub(super) struct Cost {
    /// Steps in which a message moves. On very short sides not every class occurs, and a round that
    /// only they need is no step.
    pub(super) steps: u64,
    pub(super) blocks: u128,
    pub(super) hops: u128,
    pub(super) rearranged: u128,
    pub(super) packed: u128,
}

/// The largest product of one value per dimension, with colours that sum to each class.
fn largest_products<'a>(values: impl Iterator<Item = &'a [u128]>, colours: usize) -> Vec<u128> {
    let mut largest = vec![0; colours];
    largest[0] = 1;
    for values in values {
        let mut next = vec![0; colours];
        for (class, product) in largest.iter().enumerate().filter(|(_, product)| **product > 0) {
            for (colour, value) in values.iter().enumerate() {
                let sum = &mut next[(class + colour) % colours];
                *sum = (*sum).max(product * value);
            }
        }
        largest = next;
    }
    largest
}

impl ColouredRule {
    /// The largest product in class q.
    fn of_class<'a>(&self, q: usize, values: impl Fn(usize) -> &'a [u128]) -> u128 {
        largest_products((0..self.dimensions()).map(values), self.colours as usize)[q]
    }

    /// The largest product in any class.
    fn of_any<'a>(&self, values: impl Fn(usize) -> &'a [u128]) -> u128 {
        let products = largest_products((0..self.dimensions()).map(values), self.colours as usize);
        products.into_iter().max().expect("there are colours")
    }

    /// The counts of the exchange. A message is a product over dimensions, tied by colours through
    /// the class; so the largest values by colour give the largest message.
    pub(super) fn cost(&self) -> Cost {
        let (n, m) = (self.dimensions(), self.colours as usize);
        let of_line = |line: &LineExchange, value: &dyn Fn(u32) -> u64| {
            let mut largest = vec![0; m];
            for x in 0..line.period() {
                let of = &mut largest[line.colour(x) as usize];
                *of = u128::from(value(x)).max(*of);
            }
            largest
        };
        let of_lines = |value: &dyn Fn(&LineExchange, u32) -> u64| -> Vec<Vec<u128>> {
            self.lines.iter().map(|line| of_line(line, &|x| value(line, x))).collect()
        };
        let landed = of_lines(&LineExchange::landed);
        let sides = of_lines(&|line, _| line.side().into());
        let present = of_lines(&|_, _| 1);
        // The place of dimension v in the order of class q.
        let place = |q: usize, v: usize| (v + n - q % n) % n;

        let mut cost = Cost::default();
        for (half, rounds) in self.rounds.into_iter().enumerate() {
            for round in 1..=rounds {
                // A line's messages in this round do not depend on the phase.
                let sent: Vec<_> = self
                    .own_directions()
                    .map(|own| {
                        let direction = if half == 0 { own } else { own.other() };
                        self.largest_sent(round, direction, own)
                    })
                    .collect();
                for p in 0..n {
                    let (mut blocks, mut hops) = (0, 0);
                    for q in 0..m {
                        let [counts, distances] = &sent[q / n];
                        blocks = self
                            .of_class(q, |v| match place(q, v) {
                                place if place == p => &counts[v],
                                place if place < p => &landed[v],
                                _ => &sides[v],
                            })
                            .max(blocks);
                        hops = self
                            .of_class(q, |v| match place(q, v) {
                                place if place == p => &distances[v],
                                _ => &present[v],
                            })
                            .max(hops);
                    }
                    cost.steps += u64::from(blocks > 0);
                    cost.blocks += blocks;
                    cost.hops += hops;
                }
            }
        }
        if self.rounds_a_phase() > 0 {
            for p in 0..n {
                let held = (0..m).map(|q| {
                    self.of_class(q, |v| if place(q, v) <= p { &landed[v] } else { &sides[v] })
                });
                cost.rearranged += held.max().unwrap_or(0);
            }
        }
        if let Residual::Windows(digits) = &self.residual {
            self.add_windows(digits, &mut cost);
            return cost;
        }
        for (u, line) in self.lines.iter().enumerate() {
            for step in 0..line.residual_steps() {
                let send = |x| line.exchange(x, step).send;
                let count = of_line(line, &|x| send(x).map_or(0, |(_, digits)| digits.count));
                let hops = (0..line.period()).filter_map(send).map(|(o, _)| o.unsigned_abs()).max();
                cost.steps += 1;
                cost.hops += hops.map_or(0, u128::from);
                cost.blocks += self.of_any(|v| match v.cmp(&u) {
                    std::cmp::Ordering::Less => &sides[v],
                    std::cmp::Ordering::Equal => &count,
                    std::cmp::Ordering::Greater => &landed[v],
                });
            }
            if u + 1 < n {
                cost.rearranged += self.of_any(|v| if v <= u { &sides[v] } else { &landed[v] });
            }
        }
        cost
    }

    /// By line and colour, the most that a position sends in a round, and the most hops.
    fn largest_sent(
        &self,
        round: u32,
        direction: Direction,
        own: Direction,
    ) -> [Vec<Vec<u128>>; 2] {
        let (mut counts, mut distances) = (Vec::new(), Vec::new());
        for (u, line) in self.lines.iter().enumerate() {
            if let Some(alike) = self.lines[..u].iter().position(|other| line.is_like(other)) {
                counts.push(Vec::clone(&counts[alike]));
                distances.push(Vec::clone(&distances[alike]));
                continue;
            }
            let [mut count, mut distance] = [(); 2].map(|()| vec![0; self.colours as usize]);
            for x in line.largest_senders(round) {
                let sent = u128::from(line.sent(x, round, direction, own).count);
                let of = line.colour(x) as usize;
                count[of] = sent.max(count[of]);
                if sent > 0
                    && let Some((_, hops)) = line.next(x, direction)
                {
                    distance[of] = u128::from(hops.unsigned_abs()).max(distance[of]);
                }
            }
            counts.push(count);
            distances.push(distance);
        }
        [counts, distances]
    }

    /// The counts of the exchange within windows: every message has one value of a digit.
    fn add_windows(&self, digits: &[Digit], cost: &mut Cost) {
        let n = self.dimensions() as u128;
        let ranks: u128 = self.lines.iter().map(|line| u128::from(line.side())).product();
        for digit in digits {
            let steps = n * u128::from(digit.radix - 1);
            let blocks = steps * ranks / u128::from(digit.radix);
            cost.steps += steps as u64;
            cost.blocks += blocks;
            // Of three ranks in a cycle, in either direction, one goes two hops of the other.
            cost.hops += steps * u128::from((digit.radix - 1) * digit.distance);
            cost.packed += if n > 1 { blocks } else { 0 };
        }
    }
}
