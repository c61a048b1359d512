//! A flit crosses a router: from the front of an input to a link, or to its node.

use topocoll_topology::LinkId;

use super::limits::Way;
use super::{Arrival, CREDIT_CYCLES, Flits};
use crate::contention::network::{InFlight, Interval};

impl Flits<'_> {
    /// A flit goes through the switch.
    pub(super) fn cross(&mut self, router: u32, i: u32) {
        self.still_since = self.cycle;
        let input = self.routers.inputs(router).start * self.vcs + i;
        let flits = &mut self.inputs[input as usize];
        let flit = flits.flits.pop_front().expect("bug: no flit asked");
        let (output, _) = flits.granted.expect("bug: no output was granted");
        if flits.flits.is_empty() {
            self.occupied[router as usize] &= !(1 << i);
        }
        if flit.tail {
            flits.granted = None;
            self.outputs[output as usize].taken = false;
            if self.adaptive.is_some() {
                self.tail_has_left(input, flit.packet);
            }
        }
        let vc = input % self.vcs;
        if let Some(before) = self.routers.before(input / self.vcs) {
            self.schedule(CREDIT_CYCLES, Arrival::Credit(before * self.vcs + vc));
        }
        let Some(link) = self.routers.link(output / self.vcs) else {
            if !self.limits.is_unlimited() {
                let [_, receiver] = self.ends(self.message(flit.packet));
                self.limits.pass(Way::Ejected, receiver, self.cycle);
            }
            if flit.tail {
                let message = self.packets[flit.packet as usize].message;
                self.idle_packets.push(flit.packet);
                self.deliver(self.cycle + self.after + 1, message);
            }
            return;
        };
        let vc = output % self.vcs;
        self.outputs[output as usize].credits -= 1;
        let [_, ahead] = self.routers.ends(link);
        if let Some(rate) = self.rate_of(link) {
            rate.pass(&mut self.through_links[link as usize], self.cycle);
        }
        let packet = &mut self.packets[flit.packet as usize];
        if flit.head {
            packet.hop += 1;
            if let Some(course) = &mut packet.course
                && course.take(link)
            {
                packet.pools.clear();
                packet.hop = 0;
            }
            self.links[link as usize].messages += u64::from(packet.first);
        }
        // The last flit may be shorter.
        let before = self.flit_bytes * (packet.flits - 1);
        let bytes = if flit.tail { packet.bytes - before } else { self.flit_bytes };
        self.links[link as usize].bytes += u128::from(bytes);
        if flit.tail && self.records {
            let bytes = packet.bytes;
            let InFlight { from, to, step, .. } = self.messages[packet.message as usize].message;
            let start = self.outputs[output as usize].since;
            let end = (self.cycle + 1).saturating_mul(self.cycle_time);
            let link = LinkId(link.into());
            self.intervals.push(Interval { link, start, end, from, to, step, bytes });
        }
        self.schedule(self.after, Arrival::Flit(ahead * self.vcs + vc, flit));
    }
}
