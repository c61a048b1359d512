//! The intra-node steps, before and after the exchange between nodes.

use topocoll_schedule::{Collective, SlotSet, Step, Strided};
use topocoll_topology::Route;

use super::{Hierarchical, Place};
use crate::StepsOf;
use crate::layout::tree::{digits, passed};

impl Hierarchical {
    /// A step in which carriers gather.
    pub(super) fn gather(&self, place: Place, step: u32, out: &mut Step) {
        let last = self.gather - 1;
        self.down(self.width(), last - step, place.own, |is_below, peer, below| {
            // The blocks gathered below a rank, for all nodes.
            let first = if is_below { place.own } else { peer };
            let (offset, count) = (self.offset(place.lane, first), u64::from(below) * self.unit());
            let mut slots = SlotSet::default();
            for run in self.held(place.node, false) {
                self.push(&mut slots, run, offset, count);
            }
            let peer = self.rank(place.node, place.lane * self.width() + peer);
            match is_below {
                true => out.send(peer, slots, Route::default()),
                false => out.receive(peer, slots),
            }
        });
    }

    /// A step along a tree from number 0 of `count` down: whom a number receives from, and to whom
    /// it sends.
    fn down(&self, count: u32, step: u32, own: u32, mut each: impl FnMut(bool, u32, u32)) {
        let count = u64::from(count);
        let weight = self.base().pow(digits(self.base(), count as u32) - 1 - step);
        let own = u64::from(own);
        if own % weight > 0 {
            return;
        }
        let below = |first: u64| weight.min(count - first) as u32;
        let digit = own / weight % self.base();
        if digit > 0 {
            return each(true, (own - digit * weight) as u32, below(own));
        }
        let children = (1..self.base()).map(|z| own + z * weight);
        for child in children.take_while(|&child| child < count) {
            each(false, child as u32, below(child));
        }
    }

    /// A step in which the only carrier of a node distributes an all-to-all's blocks.
    fn scatter(&self, place: Place, step: u32, out: &mut Step) {
        self.down(self.size, step, place.local, |receives, peer, below| {
            let first = if receives { place.local } else { peer };
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let rows = run.len() * u64::from(self.width());
                let base = run.base * self.stride() + u64::from(first);
                slots.push(Strided::runs(base, rows, self.size.into(), below.into()));
            }
            let peer = self.rank(place.node, peer);
            match receives {
                true => out.receive(peer, slots),
                false => out.send(peer, slots, Route::default()),
            }
        });
    }

    /// A round in which all carriers of a node distribute an all-to-all's blocks.
    fn deal(&self, place: Place, round: u32, out: &mut Step) {
        let width = u64::from(self.width());
        let (to, from) =
            ((place.local + round) % self.size, (place.local + (self.size - round)) % self.size);
        if place.own == 0 {
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let base = run.base * self.stride() + u64::from(to);
                slots.push(Strided::runs(base, run.len() * width, self.size.into(), 1));
            }
            out.send(self.rank(place.node, to), slots, Route::default());
        }
        if from % self.width() == 0 {
            let mut slots = SlotSet::default();
            for run in self.held(place.node, true) {
                let base = self.second_room() + run.base * u64::from(self.size) + u64::from(from);
                slots.push(Strided::runs(base, run.len(), self.size.into(), width));
            }
            out.receive(self.rank(place.node, from), slots);
        }
    }

    /// The slots of a number of lanes that end with one, around the node, after the exchange.
    fn lanes_to(&self, node: u32, lane: u32, lanes: u32) -> SlotSet {
        let mut slots = SlotSet::default();
        let mut push = |first: u32, lanes: u32| {
            if lanes > 0 {
                for run in self.held(node, true) {
                    let length = u64::from(lanes * self.width());
                    self.push(&mut slots, run, self.offset(first, 0), length);
                }
            }
        };
        let before = lanes.saturating_sub(lane + 1);
        push(self.lanes - before, before);
        push(lane + 1 - (lanes - before), lanes - before);
        slots
    }

    /// A step of an all-gather after the exchange between nodes.
    fn share(&self, place: Place, step: u32, out: &mut Step) {
        let Some(step) = step.checked_sub(self.broadcast) else {
            return self.down(self.width(), step, place.own, |receives, peer, _| {
                let slots = self.lanes_to(place.node, place.lane, 1);
                let peer = self.rank(place.node, place.lane * self.width() + peer);
                match receives {
                    true => out.receive(peer, slots),
                    false => out.send(peer, slots, Route::default()),
                }
            });
        };
        let (lanes, weight) = (u64::from(self.lanes), self.base().pow(step));
        let distances = (1..self.base()).map(|z| z * weight);
        for distance in distances.take_while(|&distance| distance < lanes) {
            let known = weight.min(lanes - distance) as u32;
            let at = |lane: u64| (lane % lanes) as u32;
            let to = at(u64::from(place.lane) + distance);
            let from = at(u64::from(place.lane) + lanes - distance);
            let rank = |lane: u32| self.rank(place.node, lane * self.width() + place.own);
            let sent = self.lanes_to(place.node, place.lane, known);
            out.send(rank(to), sent, Route::default());
            out.receive(rank(from), self.lanes_to(place.node, from, known));
        }
    }

    /// A step after the exchange between nodes.
    pub(super) fn finish(&self, place: Place, step: u32, out: &mut Step) {
        match self.operation {
            Collective::AllGather => self.share(place, step, out),
            Collective::AllToAll if self.lanes == 1 => self.scatter(place, step, out),
            Collective::AllToAll => {
                let first = 1 + step * self.ports;
                for round in first..first.saturating_add(self.ports).min(self.size) {
                    self.deal(place, round, out);
                }
            }
        }
    }

    /// The intra-node steps, and the sum of their largest messages.
    pub(in super::super) fn inside(&self, block_bytes: u64) -> StepsOf {
        let (width, nodes) = (u128::from(self.width()), u128::from(self.nodes));
        let arrived = width * nodes;
        let tree = |count: u32| passed(self.base(), count);
        let blocks = match self.operation {
            Collective::AllToAll => {
                let deal = if self.lanes == 1 { tree(self.size) } else { self.deal.into() };
                tree(self.width()) * nodes * u128::from(self.size) + deal * arrived
            }
            Collective::AllGather => {
                let broadcast = u128::from(self.broadcast) + tree(self.lanes);
                tree(self.width()) + broadcast * arrived
            }
        };
        StepsOf::new((self.gather + self.deal).into(), blocks, block_bytes)
    }
}
