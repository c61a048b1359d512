//! The critical chain: a list of causes that ends at the last delivery.
//!
//! Every message in flight and every node refers to its last cause of waiting. Causes without
//! references are dropped, so memory is proportional to the messages in flight.

use topocoll_topology::Rank;

use super::clock::Picoseconds;

/// The number of a cause; [`NONE`] at the beginning of a chain.
pub(crate) type Cause = u32;

/// The beginning of a chain.
pub(crate) const NONE: Cause = Cause::MAX;

/// One link of the critical chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ChainLink {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// The step.
    pub step: u32,
    /// When it was delivered, or got the link it waited for.
    pub at: Picoseconds,
    /// The link it waited for, and the sender and receiver of the message that held it; `None` at a
    /// delivery.
    pub waited: Option<(u64, Rank, Rank)>,
}

/// A link of a chain, in few bytes.
struct Node {
    at: Picoseconds,
    from: Rank,
    to: Rank,
    step: u32,
    /// The channel waited for; [`DELIVERY`] if the message was delivered.
    channel: u64,
    holder: [Rank; 2],
    before: Cause,
    references: u32,
}

/// No channel.
const DELIVERY: u64 = u64::MAX;

impl Node {
    fn link(&self) -> ChainLink {
        let &Self { from, to, step, at, channel, holder, .. } = self;
        let waited = (channel != DELIVERY).then_some((channel, holder[0], holder[1]));
        ChainLink { from, to, step, at, waited }
    }
}

/// The causes in use.
#[derive(Default)]
pub(crate) struct Chain {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// References that are not yet dropped: they are dropped together, so that their places in
    /// memory are read at once.
    dropped: Vec<Cause>,
}

/// References that are dropped together.
const DROPPED: usize = 64;

impl Chain {
    /// Bytes of a cause.
    pub(crate) const CAUSE: usize = size_of::<Node>();

    /// A new cause with one reference, after `before`, whose reference it takes over.
    pub(crate) fn add(&mut self, what: ChainLink, before: Cause) -> Cause {
        let ChainLink { from, to, step, at, waited } = what;
        let (channel, holder) = match waited {
            Some((channel, from, to)) => (channel, [from, to]),
            None => (DELIVERY, [from, to]),
        };
        let node = Node { at, from, to, step, channel, holder, before, references: 1 };
        match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Adds a reference to a cause.
    pub(crate) fn keep(&mut self, cause: Cause) -> Cause {
        if cause != NONE {
            self.nodes[cause as usize].references += 1;
        }
        cause
    }

    /// Drops a reference.
    pub(crate) fn drop(&mut self, cause: Cause) {
        if cause == NONE {
            return;
        }
        self.dropped.push(cause);
        if self.dropped.len() == DROPPED {
            for i in 0..DROPPED {
                self.drop_now(self.dropped[i]);
            }
            self.dropped.clear();
        }
    }

    fn drop_now(&mut self, mut cause: Cause) {
        while cause != NONE {
            let node = &mut self.nodes[cause as usize];
            node.references -= 1;
            if node.references > 0 {
                return;
            }
            self.free.push(cause);
            cause = node.before;
        }
    }

    /// The last `most` links that lead to `last`, in order, and the number of all links.
    pub(crate) fn leading_to(&self, last: Cause, most: usize) -> (Vec<ChainLink>, usize) {
        let (mut links, mut all, mut at) = (Vec::new(), 0, last);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if all < most {
                links.push(node.link());
            }
            all += 1;
            at = node.before;
        }
        links.reverse();
        (links, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(step: u32) -> ChainLink {
        ChainLink { from: Rank(0), to: Rank(1), step, at: 0, waited: None }
    }

    #[test]
    fn causes_without_references_are_dropped() {
        let mut chain = Chain::default();
        let mut kept = NONE;
        for step in 0..100 {
            let waited = Some((7, Rank(2), Rank(3)));
            let last = chain.add(ChainLink { waited, ..link(step) }, NONE);
            let next = chain.add(link(step), last);
            if step == 50 {
                kept = chain.keep(next);
            }
            // Two references.
            chain.keep(next);
            chain.drop(next);
            assert_eq!(chain.leading_to(next, 9).1, 2);
            chain.drop(next);
        }
        for cause in std::mem::take(&mut chain.dropped) {
            chain.drop_now(cause);
        }
        assert_eq!(chain.nodes.len() - chain.free.len(), 2);
        assert!(chain.nodes.len() <= 4 + 2 * DROPPED);
        let (links, all) = chain.leading_to(kept, 1);
        assert_eq!((links, all), (vec![link(50)], 2));
    }
}
