//! Which send and which receive are one message: of those from one rank to another in a step, the
//! first and the first, the second and the second.

use topocoll_schedule::Transfer;
use topocoll_topology::Rank;

/// The other end of the message at `place` of `own`, which are those that `rank` sends or receives,
/// among those that its peer receives or sends.
pub(crate) fn other_end<'m>(
    own: &[Transfer],
    place: usize,
    rank: Rank,
    peers: &'m [Transfer],
) -> Option<&'m Transfer> {
    let peer = own[place].peer;
    let before = own[..place].iter().filter(|message| message.peer == peer).count();
    peers.iter().filter(|message| message.peer == rank).nth(before)
}

/// The same for many: the messages that a rank sends, or those that it receives, in a step, found by
/// peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPeer(Vec<(Rank, u32)>);

/// Bytes that the list of so many messages takes at most.
pub(crate) const fn memory(messages: usize) -> usize {
    // Vectors have room for as much again.
    2 * messages * size_of::<(Rank, u32)>()
}

impl ByPeer {
    /// Lists these messages in place of those before.
    pub(crate) fn list(&mut self, messages: &[Transfer]) {
        self.0.clear();
        self.0.extend(messages.iter().map(|message| message.peer).zip(0..));
        self.0.sort_unstable();
    }

    /// How many there are with a peer.
    pub(crate) fn count(&self, peer: Rank) -> usize {
        self.with(peer).len()
    }

    /// The place of the other end of the message to or from `peer` at `place` of `rank`, whose list
    /// this is.
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
        // One or none is all that most have.
        match from.get(1).is_some_and(is_with) {
            true => &from[..from.partition_point(is_with)],
            false => &from[..usize::from(from.first().is_some_and(is_with))],
        }
    }
}
