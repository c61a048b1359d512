//! First fit: each message in the first step with room, the longest first.

use topocoll_topology::coprime;

use super::network::{Network, Onward};
use super::{Assignment, SEARCHED};

/// Words of a block.
const WORDS: usize = 4;
/// Steps of a block.
const BLOCK: u32 = 64 * WORDS as u32;

/// On more than [`SEARCHED`] ranks, messages of this many distances in rank come one after the other, and into these
/// last blocks, so that time grows with the messages.
const DISTANCES: usize = 384;
const LAST: u32 = 2;

/// Some steps, one bit each.
type Block = [u64; WORDS];

/// Combines two blocks.
fn both(a: Block, b: Block, of: impl Fn(u64, u64) -> u64) -> Block {
    std::array::from_fn(|word| of(a[word], b[word]))
}

/// The steps in which a bundle or a port has no room left.
#[derive(Clone, Default)]
struct Full {
    steps: Vec<Block>,
    /// Messages by step, where there is room for several.
    taken: Vec<u32>,
    /// All blocks before this one are full.
    open: u32,
}

impl Full {
    fn block(&self, block: u32) -> Block {
        self.steps.get(block as usize).copied().unwrap_or_default()
    }

    fn has_room(&self, step: u32) -> bool {
        self.block(step / BLOCK)[(step % BLOCK / 64) as usize] >> (step % 64) & 1 == 0
    }

    fn take(&mut self, step: u32, room: u32) {
        let (block, place) = ((step / BLOCK) as usize, step as usize);
        if room > 1 {
            self.taken.resize(self.taken.len().max(place + 1), 0);
            self.taken[place] += 1;
            if self.taken[place] < room {
                return;
            }
        }
        self.steps.resize(self.steps.len().max(block + 1), Block::default());
        self.steps[block][(step % BLOCK / 64) as usize] |= 1 << (step % 64);
        while self.block(self.open) == [!0; WORDS] {
            self.open += 1;
        }
    }
}

/// Assigns all messages to steps. Of one length messages come by the distance in rank that they go,
/// or by their sender.
pub(super) fn first_fit(network: &Network, link_messages: u32, by_distance: bool) -> Assignment {
    let ranks = network.ranks();
    let (distances, last) = match ranks <= SEARCHED as usize {
        true => (ranks, u32::MAX),
        false => (DISTANCES, LAST),
    };
    let apart = coprime(ranks as u64 * 89 / 144, ranks as u64) as usize;
    let mut order: Vec<usize> = network.messages().collect();
    order.sort_by_cached_key(|&message| {
        let distance = (message % ranks + ranks - message / ranks) % ranks;
        let hops = std::cmp::Reverse(network.distance(message));
        (
            distance * apart % ranks / distances,
            hops,
            if by_distance { distance } else { 0 },
            message,
        )
    });
    let mut assignment = Assignment::new(network);
    let room: Vec<u32> = (0..network.shared()).map(|i| network.room(i, link_messages)).collect();
    let mut full = vec![Full::default(); network.shared()];
    let (mut onward, mut reach, mut open) = (Onward::default(), Vec::new(), Vec::new());
    for message in order {
        onward.find(network, message, 0);
        let ports = network.ports_of(message);
        // No route has room in the blocks before this one.
        open.clear();
        open.resize(onward.places(), u32::MAX);
        open[0] = ports.iter().map(|&port| full[port].open).max().unwrap_or(0);
        for hop in &onward.hops {
            open[hop.to] = open[hop.to].min(open[hop.from].max(full[hop.bundle].open));
        }
        let recent = (assignment.steps / BLOCK).saturating_sub(last);
        let mut block = open[onward.places() - 1].max(recent);
        let step = loop {
            let left = ports.iter().fold([!0; WORDS], |left, &port| {
                both(left, full[port].block(block), |left, full| left & !full)
            });
            // The steps in which each vertex is reached.
            reach.clear();
            reach.resize(onward.places(), Block::default());
            reach[0] = left;
            if left != Block::default() {
                for hop in &onward.hops {
                    let on = both(reach[hop.from], full[hop.bundle].block(block), |a, b| a & !b);
                    reach[hop.to] = both(reach[hop.to], on, |a, b| a | b);
                }
            }
            let found = reach[onward.places() - 1];
            if let Some(word) = found.iter().position(|&word| word != 0) {
                break block * BLOCK + 64 * word as u32 + found[word].trailing_zeros();
            }
            block += 1;
        };
        let place = |steps: &Block| steps[(step % BLOCK / 64) as usize] >> (step % 64) & 1 == 1;
        let route = &mut assignment.routes[network.hops_of(message)];
        onward.take(|hop| place(&reach[hop.from]) && full[hop.bundle].has_room(step), route);
        for shared in route.iter().map(|&bundle| bundle as usize).chain(ports) {
            full[shared].take(step, room[shared]);
        }
        assignment.step[message] = step;
        assignment.steps = assignment.steps.max(step + 1);
    }
    assignment
}
