//! What the exchange costs, from its lines alone.

use super::Rings;
use super::line::Line;

/// The largest product of one value per dimension, with colours that sum to each class.
fn largest_products(values: impl Iterator<Item = Vec<u128>>, colours: usize) -> Vec<u128> {
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

impl Rings {
    /// Steps in which a message moves, and the blocks of their largest messages, summed. On very
    /// short sides not every class occurs, and a round that only they need is no step.
    pub(super) fn steps_and_blocks(&self) -> (u64, u128) {
        let (n, m) = (self.dimensions(), self.colours as usize);
        // A line's largest value by colour.
        let by_colour = |line: &Line, value: &dyn Fn(u32) -> u64| {
            let mut largest = vec![0; m];
            for x in 0..line.period() {
                let of = &mut largest[line.colour(x) as usize];
                *of = u128::from(value(x)).max(*of);
            }
            largest
        };
        let landed: Vec<Vec<u128>> =
            self.lines.iter().map(|line| by_colour(line, &|x| line.landed(x))).collect();
        let sides: Vec<Vec<u128>> =
            self.lines.iter().map(|line| by_colour(line, &|_| line.side().into())).collect();

        let (mut steps, mut blocks) = (0, 0);
        for (half, rounds) in self.rounds.into_iter().enumerate() {
            for round in 1..=rounds {
                // What a line sends in this round does not depend on the phase.
                let sent: Vec<Vec<Vec<u128>>> = (self.own_directions())
                    .map(|own| {
                        let direction = if half == 0 { own } else { own.reversed() };
                        let of = |line: &Line| {
                            by_colour(line, &|x| line.sent(x, round, direction, own).count)
                        };
                        self.lines.iter().map(of).collect()
                    })
                    .collect();
                for p in 0..n {
                    let largest = (0..m).map(|q| {
                        let u = (q + p) % n;
                        let values = (0..n).map(|v| match (v + n - q % n) % n {
                            _ if v == u => sent[q / n][v].clone(),
                            place if place < p => landed[v].clone(),
                            _ => sides[v].clone(),
                        });
                        largest_products(values, m)[q]
                    });
                    let largest = largest.max().unwrap_or(0);
                    steps += u64::from(largest > 0);
                    blocks += largest;
                }
            }
        }
        for (u, line) in self.lines.iter().enumerate() {
            let others: u128 = (0..n)
                .filter(|&v| v != u)
                .map(|v| if v < u { &sides[v] } else { &landed[v] })
                .map(|values| values.iter().max().expect("there are colours"))
                .product();
            for step in 0..line.residual_steps() {
                let sent = |x| line.exchange(x, step).send.map_or(0, |(_, digits)| digits.count);
                let largest = (0..line.period()).map(sent).max().unwrap_or(0);
                steps += 1;
                blocks += u128::from(largest) * others;
            }
        }
        (steps, blocks)
    }
}
