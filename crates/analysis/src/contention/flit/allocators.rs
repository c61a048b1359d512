//! One iteration of iSLIP: outputs grant round robin, inputs accept round robin, and pointers move
//! only past accepted grants.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::Flits;

impl Flits<'_> {
    /// The output port of the packet in front of an input, and its virtual channels.
    fn wants(&self, packet: u32) -> (u32, Range<u32>) {
        let packet_number = packet;
        let packet = &self.packets[packet as usize];
        match packet.pools.get(packet.hop as usize) {
            Some(&pool) => {
                let port = pool / 2 % self.links_per_router;
                let first = self.channels.first(pool.into());
                (port, first..first + self.channels.size(pool.into()))
            }
            None => (self.links_per_router + packet_number % self.machine.ports, 0..self.vcs),
        }
    }

    /// Gives free virtual channels of outputs to headers.
    pub(super) fn route(&mut self, router: u32) {
        let per_router = self.ports * self.vcs;
        let base = router * per_router;
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
        while asking != 0 {
            // The first input that asks, and the inputs that ask for the same port.
            let i = asking.trailing_zeros();
            let (port, _) = self.wants(self.inputs[(base + i) as usize].flits[0].packet);
            let mut same: SmallVec<[(u32, Range<u32>); 8]> = SmallVec::new();
            let mut rest = asking;
            while rest != 0 {
                let j = rest.trailing_zeros();
                rest &= rest - 1;
                let (other, range) = self.wants(self.inputs[(base + j) as usize].flits[0].packet);
                if other == port {
                    same.push((j, range));
                    asking &= !(1 << j);
                }
            }
            for vc in 0..self.vcs {
                let number = base + port * self.vcs + vc;
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
                    self.inputs[(base + j) as usize].granted = Some((number, port));
                    same.swap_remove(place);
                }
            }
        }
    }

    /// Moves at most one flit from every input and to every output.
    pub(super) fn switch(&mut self, router: u32) {
        let (ports, vcs) = (self.ports, self.vcs);
        let base = router * ports * vcs;
        let mut requests: SmallVec<[u128; 16]> = smallvec![0; ports as usize];
        let mut left = self.occupied[router as usize];
        let mut any = 0u32;
        while left != 0 {
            let i = left.trailing_zeros();
            left &= left - 1;
            let input = &self.inputs[(base + i) as usize];
            if let Some((output, port)) = input.granted
                && input.flits[0].ready <= self.cycle
                && (port >= self.links_per_router || self.outputs[output as usize].credits > 0)
            {
                requests[port as usize] |= 1 << i;
                any += 1;
            }
        }
        if any == 0 {
            return;
        }
        self.hold_back(router, &mut requests);
        // The grant of each output: the input port next in turn, and its virtual channel next in
        // turn.
        let mut grants: SmallVec<[(u32, u32); 16]> = SmallVec::new();
        let first = router * ports;
        for port in 0..ports {
            let wanted = requests[port as usize];
            if wanted == 0 {
                continue;
            }
            let pointer = self.output_pointers[(first + port) as usize] * vcs;
            let above = wanted >> pointer << pointer;
            let input_port = if above != 0 { above } else { wanted }.trailing_zeros() / vcs;
            let of_port = wanted >> (input_port * vcs) & ((1 << vcs) - 1);
            let turn = self.vc_pointers[(first + input_port) as usize];
            let above = of_port >> turn << turn;
            let vc = if above != 0 { above } else { of_port }.trailing_zeros();
            grants.push((input_port * vcs + vc, port));
        }
        for at in 0..grants.len() {
            let input_port = grants[at].0 / vcs;
            // Each input port is visited once, with its first grant.
            if grants[..at].iter().any(|grant| grant.0 / vcs == input_port) {
                continue;
            }
            let from = self.input_pointers[(first + input_port) as usize];
            let accepted = (grants[at..].iter().copied())
                .filter(|grant| grant.0 / vcs == input_port)
                .min_by_key(|grant| (grant.1 + ports - from) % ports);
            let (i, port) = accepted.expect("bug: no grant");
            self.input_pointers[(first + input_port) as usize] = (port + 1) % ports;
            self.output_pointers[(first + port) as usize] = (input_port + 1) % ports;
            self.vc_pointers[(first + input_port) as usize] = (i + 1) % vcs;
            self.cross(router, i, port);
        }
    }

    /// Removes the requests for output ports whose channel has no room in this cycle.
    fn hold_back(&mut self, router: u32, requests: &mut [u128]) {
        let (links, router) = (self.links_per_router as usize, router as usize);
        let (to_links, to_rank) = requests.split_at_mut(links);
        let mut held = false;
        for (port, wanted) in to_links.iter_mut().enumerate().filter(|(_, wanted)| **wanted > 0) {
            if let Some(rate) = self.link_rates[port / 2]
                && rate.room(self.through_links[router * links + port], self.cycle, 1) == 0
            {
                *wanted = 0;
                held = true;
            }
        }
        if let Some(rate) = self.injection {
            let ports = to_rank.len();
            let mut room = rate.room(self.ejected[router], self.cycle, ports as u32);
            let first = self.ejecting[router] as usize;
            for port in (first..first + ports).map(|port| port % ports) {
                if to_rank[port] > 0 && room > 0 {
                    room -= 1;
                    self.ejecting[router] = port as u32 + 1;
                } else if to_rank[port] > 0 {
                    to_rank[port] = 0;
                    held = true;
                }
            }
        }
        if held {
            // Flits wait for their time, not for another packet.
            self.still_since = self.cycle;
        }
    }
}
