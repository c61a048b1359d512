//! Pairs sends with receives: the i-th send from one rank to another in a step is its i-th receive.

use topocoll_schedule::Transfer;
use topocoll_topology::Rank;

/// An index by peer of the messages that a rank sends, or receives, in a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPeer(Vec<(Rank, u32)>);

/// The most bytes of the index of `messages` messages.
pub(crate) const fn memory(messages: usize) -> usize {
    // The capacity of vectors is up to twice their length.
    2 * messages * size_of::<(Rank, u32)>()
}

impl ByPeer {
    /// Replaces the index by that of these messages.
    pub(crate) fn list(&mut self, messages: &[Transfer]) {
        self.0.clear();
        self.0.extend(messages.iter().map(|message| message.peer).zip(0..));
        self.0.sort_unstable();
    }

    /// The number of messages with a peer.
    pub(crate) fn count(&self, peer: Rank) -> usize {
        self.with(peer).len()
    }

    /// The place of the other end of message `place` of `rank`, to or from `peer`. This is the
    /// index of `rank`, `peers` that of the peer.
    pub(crate) fn other_end(
        &self,
        place: usize,
        rank: Rank,
        peer: Rank,
        peers: &Self,
    ) -> Option<usize> {
        let before = self.with(peer).partition_point(|&(_, other)| (other as usize) < place);
        peers.with(rank).get(before).map(|&(_, other)| other as usize)
    }

    /// The messages with a peer, in order.
    fn with(&self, peer: Rank) -> &[(Rank, u32)] {
        let first = self.0.partition_point(|&(other, _)| other < peer);
        let from = &self.0[first..];
        let is_with = |message: &(Rank, u32)| message.0 == peer;
        // Most ranks have at most one.
        match from.get(1).is_some_and(is_with) {
            true => &from[..from.partition_point(is_with)],
            false => &from[..usize::from(from.first().is_some_and(is_with))],
        }
    }
}
