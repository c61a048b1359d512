//! Messages of one line packed into steps: no link twice, one send and one receive a rank.

use std::cmp::Reverse;

use crate::drawn::{SPREAD, drawn};

/// A message along the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineMessage {
    pub(super) from: u32,
    pub(super) offset: i32,
    pub(super) size: u64,
}

impl LineMessage {
    fn hops(&self) -> u32 {
        self.offset.unsigned_abs()
    }
}

/// The receiver, on a line that repeats after `period` positions.
pub(super) fn to(message: &LineMessage, period: u32) -> u32 {
    (i64::from(message.from) + i64::from(message.offset)).rem_euclid(period.into()) as u32
}

/// Orders in which messages are offered to the steps, equal ones by sender and then by offset; no
/// order is the best on every side.
const ORDERS: &[fn(&mut [LineMessage])] = &[
    |messages| messages.sort_by_key(|m| Reverse((m.size, m.hops()))),
    |messages| messages.sort_by_key(|m| (Reverse(m.size), m.hops(), m.offset)),
    |messages| messages.sort_by_key(|m| Reverse(m.hops())),
    |messages| messages.sort_by_key(|m| (m.from, Reverse(m.hops()))),
    |messages| {
        let against = |m: &LineMessage| (m.from % 2 == 1) != (m.offset < 0);
        messages.sort_by_key(|m| (Reverse(m.hops()), against(m)));
    },
    |messages| {
        let size = |m: &LineMessage| m.size + u64::from(m.hops() == 1);
        messages.sort_by_key(|m| Reverse((size(m), m.hops())));
    },
];

/// Messages offered in orders by chance, all in all; a fourth of it makes a line long.
const TRIED: usize = 4096;

/// First fit in each of the orders, on short lines also in some by chance, on long ones in the first
/// alone; of these the steps whose largest messages sum to least, and of such the fewest.
pub(super) fn pack(messages: &[LineMessage], period: u32) -> Vec<Vec<LineMessage>> {
    let (orders, tries) = match messages.len() {
        count if count < TRIED / 4 => (ORDERS.len(), (TRIED / count.max(1)).min(64) as u64),
        _ => (1, 0),
    };
    let by_chance = (0..tries).map(|number| {
        let mut sorted = messages.to_vec();
        sorted.sort_by_cached_key(|m| (by_chance(m, number), m.from, m.offset));
        sorted
    });
    let by_order = ORDERS[..orders].iter().map(|order| {
        let mut sorted = messages.to_vec();
        order(&mut sorted);
        sorted
    });
    by_order
        .chain(by_chance)
        .map(|sorted| first_fit(&sorted, period))
        .min_by_key(|steps| {
            let largest = |step: &Vec<LineMessage>| step.iter().map(|m| m.size).max().unwrap_or(0);
            (steps.iter().map(largest).sum::<u64>(), steps.len())
        })
        .expect("there are orders")
}

/// The place of a message in an order by chance: large ones first, in every other order also far
/// ones, but not strictly.
fn by_chance(message: &LineMessage, number: u64) -> i64 {
    let LineMessage { from, offset, size } = *message;
    let seed = number << 48 | u64::from(from) << 16 | u64::from(offset as u16);
    let chance = drawn(seed.wrapping_add(SPREAD)) % 20;
    let far = if number % 2 == 0 { 0 } else { 7 * i64::from(offset.abs()) };
    chance as i64 - 10 * size as i64 - far
}

/// A step while it is being packed: by position, the ranks and links in use.
#[derive(Clone, Copy, Default)]
struct Taken {
    send: bool,
    receive: bool,
    /// The links to the next and to the last position.
    up: bool,
    down: bool,
}

fn first_fit(messages: &[LineMessage], period: u32) -> Vec<Vec<LineMessage>> {
    let mut steps: Vec<(Vec<LineMessage>, Vec<Taken>)> = Vec::new();
    let at = |position: i64| position.rem_euclid(period.into()) as usize;
    for message in messages {
        let (from, to) = (message.from as usize, to(message, period) as usize);
        let link = |hop: u32| {
            at(i64::from(message.from) + i64::from(hop) * i64::from(message.offset.signum()))
        };
        let up = message.offset > 0;
        let fits = |taken: &[Taken]| {
            !taken[from].send
                && !taken[to].receive
                && (0..message.hops())
                    .map(link)
                    .all(|x| !(if up { taken[x].up } else { taken[x].down }))
        };
        let step = steps.iter().position(|(_, taken)| fits(taken)).unwrap_or_else(|| {
            steps.push((Vec::new(), vec![Taken::default(); period as usize]));
            steps.len() - 1
        });
        let (packed, taken) = &mut steps[step];
        packed.push(*message);
        taken[from].send = true;
        taken[to].receive = true;
        for x in (0..message.hops()).map(link) {
            if up { taken[x].up = true } else { taken[x].down = true }
        }
    }
    steps.into_iter().map(|(packed, _)| packed).collect()
}
