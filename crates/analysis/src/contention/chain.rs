//! Who waited for whom: a list of causes that ends at the last delivery.
//!
//! Every live message and every node refers to the last thing that held it up; what nothing refers
//! to any more is forgotten, so memory follows the live messages and not all of them.

use topocoll_topology::Rank;

use super::clock::Picoseconds;

/// A link of the chain; [`NONE`] where nothing came before.
pub(crate) type Cause = u32;

/// The beginning: nothing came before.
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
    /// When it was delivered, or got the link that it had waited for.
    pub at: Picoseconds,
    /// The link it had waited for, and the sender and receiver of the message that held it; none
    /// where the message was delivered.
    pub waited: Option<(u64, Rank, Rank)>,
}

struct Node {
    what: ChainLink,
    before: Cause,
    references: u32,
}

/// The causes in use.
#[derive(Default)]
pub(crate) struct Chain {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Chain {
    /// Bytes of a cause.
    pub(crate) const CAUSE: usize = size_of::<Node>();

    /// A new cause after `before`, whose reference it takes over; referred to once.
    pub(crate) fn add(&mut self, what: ChainLink, before: Cause) -> Cause {
        let node = Node { what, before, references: 1 };
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

    /// Refers to a cause once more.
    pub(crate) fn keep(&mut self, cause: Cause) -> Cause {
        if cause != NONE {
            self.nodes[cause as usize].references += 1;
        }
        cause
    }

    /// Gives up a reference.
    pub(crate) fn drop(&mut self, mut cause: Cause) {
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

    /// The last `most` links that lead to `last`, in order, and how many there are in all.
    pub(crate) fn leading_to(&self, last: Cause, most: usize) -> (Vec<ChainLink>, usize) {
        let (mut links, mut all, mut at) = (Vec::new(), 0, last);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if all < most {
                links.push(node.what);
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
    fn what_nothing_refers_to_is_forgotten() {
        let mut chain = Chain::default();
        let mut kept = NONE;
        for step in 0..100 {
            let last = chain.add(link(step), NONE);
            let next = chain.add(link(step), last);
            if step == 50 {
                kept = chain.keep(next);
            }
            // Twice referred to: once is not enough.
            chain.keep(next);
            chain.drop(next);
            assert_eq!(chain.leading_to(next, 9).1, 2);
            chain.drop(next);
        }
        assert_eq!(chain.nodes.len() - chain.free.len(), 2);
        assert!(chain.nodes.len() <= 4);
        let (links, all) = chain.leading_to(kept, 1);
        assert_eq!((links, all), (vec![link(50)], 2));
    }
}
