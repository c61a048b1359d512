//! One iteration of iSLIP: outputs grant round robin, inputs accept round robin, and pointers move
//! only past accepted grants.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use topocoll_topology::Rank;

use super::limits::End;
use super::{Flits, Packet};

impl Flits<'_> {
    /// The output of the packet in front of an input, and its virtual channels.
    fn wants(&self, router: u32, packet: u32) -> (u32, Range<u32>) {
        let Packet { message, pools, hop, .. } = &self.packets[packet as usize];
        match pools.get(*hop as usize) {
            Some(&pool) => {
                let link = self.channels.link_of(pool.into()).expect("bug: a port among links");
                let [output, _] = self.routers.ends(link);
                let first = self.channels.first(pool.into());
                (output, first..first + self.channels.size(pool.into()))
            }
            None => {
                let ports = self.machine.ports.node;
                (self.routers.outputs(router).end - ports + message % ports, 0..self.vcs)
            }
        }
    }

    /// The inputs of a router with a header in front that waits for a virtual channel.
    #[inline(always)]
    pub(super) fn asking(&self, router: u32) -> u128 {
        let base = self.routers.inputs(router).start * self.vcs;
        let mut asking = 0u128;
        let mut left = self.occupied[router as usize];
        while left != 0 {
            let i = left.trailing_zeros();
            left &= left - 1;
            let input = &self.inputs[(base + i) as usize];
            let front = input.flits[0];
            if input.granted.is_none() && front.head && front.ready <= self.cycle + 1 {
                asking |= 1 << i;
            }
        }
        asking
    }

    /// Gives free virtual channels of outputs to headers.
    pub(super) fn route(&mut self, router: u32) {
        let (inputs, first_output) =
            (self.routers.inputs(router), self.routers.outputs(router).start);
        let (base, per_router) = (inputs.start * self.vcs, inputs.len() as u32 * self.vcs);
        let mut asking = self.asking(router);
        while asking != 0 {
            // The first input that asks, and the inputs that ask for the same output.
            let i = asking.trailing_zeros();
            let (wanted, _) = self.wants(router, self.inputs[(base + i) as usize].flits[0].packet);
            let mut same: SmallVec<[(u32, Range<u32>); 8]> = SmallVec::new();
            let mut rest = asking;
            while rest != 0 {
                let j = rest.trailing_zeros();
                rest &= rest - 1;
                let packet = self.inputs[(base + j) as usize].flits[0].packet;
                let (other, range) = self.wants(router, packet);
                if other == wanted {
                    same.push((j, range));
                    asking &= !(1 << j);
                }
            }
            for vc in 0..self.vcs {
                let number = wanted * self.vcs + vc;
                let output = &mut self.outputs[number as usize];
                if output.taken {
                    continue;
                }
                let pointer = output.pointer;
                let next = (same.iter().enumerate())
                    .filter(|(_, (_, range))| range.contains(&vc))
                    .min_by_key(|(_, (j, _))| (j + per_router - pointer) % per_router);
                if let Some((place, &(j, _))) = next {
                    output.taken = true;
                    output.pointer = (j + 1) % per_router;
                    output.since = self.cycle.saturating_mul(self.cycle_time);
                    self.inputs[(base + j) as usize].granted =
                        Some((number, wanted - first_output));
                    same.swap_remove(place);
                }
            }
        }
    }

    /// Moves at most one flit from every input and to every output.
    pub(super) fn switch(&mut self, router: u32) {
        let (vcs, first_port) = (self.vcs, self.routers.first_port(router));
        let (inputs, outputs) = (self.routers.inputs(router), self.routers.outputs(router));
        let (base, ports) = (inputs.start * vcs, outputs.len() as u32);
        let mut requests: SmallVec<[u128; 16]> = smallvec![0; ports as usize];
        let mut left = self.occupied[router as usize];
        let mut any = false;
        while left != 0 {
            let i = left.trailing_zeros();
            left &= left - 1;
            let input = &self.inputs[(base + i) as usize];
            if let Some((output, port)) = input.granted
                && input.flits[0].ready <= self.cycle
                && (port >= first_port || self.outputs[output as usize].credits > 0)
            {
                requests[port as usize] |= 1 << i;
                any = true;
            }
        }
        if !any {
            return;
        }
        self.hold_back(router, &mut requests);
        let mut grants: SmallVec<[(u32, u32); 16]> = SmallVec::new();
        for port in 0..ports {
            let wanted = requests[port as usize];
            if wanted != 0 {
                grants.push((self.granted(router, port, wanted), port));
            }
        }
        for at in 0..grants.len() {
            let input_port = grants[at].0 / vcs;
            // Each input port is visited once, with its first grant.
            if grants[..at].iter().any(|grant| grant.0 / vcs == input_port) {
                continue;
            }
            let from = self.input_pointers[(inputs.start + input_port) as usize];
            let accepted = (grants[at..].iter().copied())
                .filter(|grant| grant.0 / vcs == input_port)
                .min_by_key(|grant| (grant.1 + ports - from) % ports);
            let (i, port) = accepted.expect("bug: no grant");
            let next_input = (input_port + 1) % inputs.len() as u32;
            self.input_pointers[(inputs.start + input_port) as usize] = (port + 1) % ports;
            self.output_pointers[(outputs.start + port) as usize] = next_input;
            self.vc_pointers[(inputs.start + input_port) as usize] = (i + 1) % vcs;
            self.cross(router, i);
        }
    }

    /// The input that an output grants: of the input port next in turn the virtual channel next in
    /// turn.
    fn granted(&self, router: u32, port: u32, wanted: u128) -> u32 {
        let vcs = self.vcs;
        let (inputs, outputs) = (self.routers.inputs(router), self.routers.outputs(router));
        let pointer = self.output_pointers[(outputs.start + port) as usize] * vcs;
        let above = wanted >> pointer << pointer;
        let input_port = if above != 0 { above } else { wanted }.trailing_zeros() / vcs;
        let of_port = wanted >> (input_port * vcs) & ((1 << vcs) - 1);
        let turn = self.vc_pointers[(inputs.start + input_port) as usize];
        let above = of_port >> turn << turn;
        let vc = if above != 0 { above } else { of_port }.trailing_zeros();
        input_port * vcs + vc
    }

    /// Removes the requests for outputs whose channel has no room in this cycle.
    fn hold_back(&mut self, router: u32, requests: &mut [u128]) {
        let first_output = self.routers.outputs(router).start;
        let (to_links, to_ports) = requests.split_at_mut(self.routers.first_port(router) as usize);
        if !self.through_links.is_empty() {
            for (output, wanted) in (first_output..).zip(to_links).filter(|(_, w)| **w > 0) {
                let link = self.routers.link(output).expect("bug: an output without a link");
                if let Some(rate) = self.rate_of(link)
                    && rate.room(self.through_links[link as usize], self.cycle, 1) == 0
                {
                    *wanted = 0;
                    // Flits wait for their time, not for another packet.
                    self.still_since = self.cycle;
                }
            }
        }
        if !self.limits.is_unlimited() && !to_ports.is_empty() {
            self.hold_back_ejection(router, to_ports);
        }
    }

    /// Leaves to each port the request of a flit that may be ejected in this cycle. Ports take turns.
    fn hold_back_ejection(&mut self, node: u32, requests: &mut [u128]) {
        let ports = requests.len();
        let (base, first_port) =
            (self.routers.inputs(node).start * self.vcs, self.routers.first_port(node));
        let receiver = |flits: &Self, i: u32| {
            let front = flits.inputs[(base + i) as usize].flits[0].packet;
            flits.message(front).to
        };
        let first = self.ejecting[node as usize] as usize;
        // The ranks of the flits that may be ejected.
        let mut ranks: SmallVec<[Rank; 8]> = SmallVec::new();
        for port in (first..first + ports).map(|port| port % ports) {
            let mut left = requests[port];
            while left != 0 {
                let i = left.trailing_zeros();
                left &= left - 1;
                let end = End { rank: receiver(self, i), node: Some(node) };
                let at_rank = ranks.iter().filter(|rank| **rank == end.rank).count() as u32;
                if !self.limits.may_eject(end, self.cycle, at_rank, ranks.len() as u32) {
                    requests[port] &= !(1 << i);
                    self.limits.held(end.rank);
                    self.still_since = self.cycle;
                }
            }
            if requests[port] != 0 {
                let granted = self.granted(node, first_port + port as u32, requests[port]);
                ranks.push(receiver(self, granted));
                self.ejecting[node as usize] = port as u32 + 1;
                requests[port] = 1 << granted;
            }
        }
    }
}
