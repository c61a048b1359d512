use topocoll_topology::{Port, Rank, Route, Topology};

use crate::SlotSet;

/// One end of a message: the rank at the other end, and the slots that move.
///
/// A send and its receive list equally many bytes. The i-th slot sent lands in the i-th slot
/// received, the same part of it. If a rank sends several messages to one peer in one step, the
/// sends and receives pair in the order listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The rank at the other end.
    pub peer: Rank,
    /// The port used at this end.
    pub port: Port,
    /// The slots sent, or the slots received into.
    pub slots: SlotSet,
    /// The route of a send; empty for the machine's own route, and on receives.
    pub route: Route,
}

impl Transfer {
    /// The route of this send from `from`: its own, or the machine's, written to `own`. Empty where
    /// the machine has no numbered links.
    #[inline]
    pub fn route_from<'r>(
        &'r self,
        from: Rank,
        topology: &dyn Topology,
        own: &'r mut Route,
    ) -> &'r Route {
        if !self.route.is_empty() {
            return &self.route;
        }
        topology.route(from, self.peer, own);
        own
    }
}

/// A local rearrangement: the i-th slot of `from` is copied to the i-th of `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalCopy {
    /// The slots read.
    pub from: SlotSet,
    /// The slots written, equally many.
    pub to: SlotSet,
}

/// One rank's share of one step.
///
/// A step performs the local copies, all at once, then the transfers, all at once. *At once* means
/// that everything is read before anything is written. So a set of copies may permute slots, and a
/// message may be received into slots that are sent in the same step.
///
/// A step of copies alone costs no startup. Sends and receives are both listed, so that a rank can
/// run from its own steps. Readers check that both sides agree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Local copies, before the transfers.
    pub copies: Vec<LocalCopy>,
    /// Messages sent.
    pub sends: Vec<Transfer>,
    /// Messages received.
    pub receives: Vec<Transfer>,
}

impl Step {
    /// Whether nothing is copied, sent or received.
    #[must_use]
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.copies.is_empty() && self.sends.is_empty() && self.receives.is_empty()
    }

    /// Empties the step and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.copies.clear();
        self.sends.clear();
        self.receives.clear();
    }

    /// Adds a local copy.
    #[inline]
    pub fn copy(&mut self, from: SlotSet, to: SlotSet) {
        if !from.is_empty() {
            self.copies.push(LocalCopy { from, to });
        }
    }

    /// Adds a message sent on the next port; a message of no slots is ignored.
    #[inline]
    pub fn send(&mut self, peer: Rank, slots: SlotSet, route: Route) {
        if !slots.is_empty() {
            let port = Port(self.sends.len() as u32);
            self.sends.push(Transfer { peer, port, slots, route });
        }
    }

    /// Adds a message received on the next port; a message of no slots is ignored.
    #[inline]
    pub fn receive(&mut self, peer: Rank, slots: SlotSet) {
        if !slots.is_empty() {
            let port = Port(self.receives.len() as u32);
            self.receives.push(Transfer { peer, port, slots, route: Route::default() });
        }
    }
}
