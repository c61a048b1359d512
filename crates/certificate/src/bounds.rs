//! Lower bounds on the counts of any schedule.

use crate::machine::Machine;
use crate::parse::Certificate;
use crate::{Counts, Fault};

/// The least counts of the schedules of a machine.
pub(crate) struct Bounds {
    /// Steps of schedules that exceed no ports.
    pub(crate) steps: u64,
    /// Sum over steps of the largest message, of schedules that exceed no ports.
    pub(crate) bytes: u128,
    /// Sum over steps of the largest link load, of all schedules.
    links: u128,
    /// Sum over steps of the largest hop count, of all schedules: the diameter.
    hops: u128,
}

impl Bounds {
    pub(crate) fn of(certificate: &Certificate) -> Self {
        let n = u128::from(certificate.radix.ranks());
        let k = u128::from(certificate.ports);
        // A rank needs a block of each rank. A step multiplies the ranks that have a block by at
        // most k + 1.
        let (mut steps, mut reached) = (0, 1u128);
        while reached < n {
            reached = reached.saturating_mul(k + 1);
            steps += 1;
        }
        // The blocks that a set of ranks needs from the others.
        let needed = |ranks: u128| {
            let blocks = if certificate.gathers { n - ranks } else { ranks * (n - ranks) };
            blocks * u128::from(certificate.block)
        };
        // A rank receives them through its ports, and so does a node.
        let mut bytes = needed(1).div_ceil(k);
        let (mut links, mut hops) = (0, 0);
        match &certificate.machine {
            Machine::Complete(_) => {}
            Machine::Grid(grid, wraps) => {
                let mut corner = 0;
                for (&side, &wraps) in grid.sides.iter().zip(wraps).filter(|(side, _)| **side > 1) {
                    let (side, ways) = (u128::from(side), if wraps { 2 } else { 1 });
                    // Of the parts of a cut across the middle the smaller needs more in an
                    // all-gather, and equally many in an all-to-all.
                    let lines = n / side;
                    links = links.max(needed(side / 2 * lines).div_ceil(ways * lines));
                    hops += if wraps { side / 2 } else { side - 1 };
                    corner += ways;
                }
                // A corner has a link along each side, and a second one if the side wraps.
                links = links.max(needed(1).div_ceil(corner.max(1)));
            }
            Machine::Cluster(nodes) => {
                let through = |&(_, size): &(u32, u32)| needed(size.into()).div_ceil(k);
                bytes = nodes.iter().map(through).fold(bytes, u128::max);
            }
        }
        Self { steps, bytes, links, hops }
    }

    /// The least link bytes of schedules that exceed no ports.
    pub(crate) fn link_bytes(&self) -> u128 {
        self.bytes.max(self.links)
    }

    /// Refuses counts that are lower than those of any schedule.
    pub(crate) fn hold(&self, counts: &Counts) -> Result<(), Fault> {
        let within_ports = |least| if counts.port_violations == 0 { least } else { 0 };
        for (name, found, least) in [
            ("steps", counts.steps, within_ports(self.steps.into())),
            ("bytes", counts.bytes, within_ports(self.bytes)),
            ("link_bytes", counts.link_bytes, self.links),
            ("hops", counts.hops, self.hops),
        ] {
            if found < least {
                return Err(Fault::Below { name, found, least });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// The bounds of blocks of 10 bytes.
    fn bounds(machine: &str, ranks: u32, operation: &str, ports: u32) -> Bounds {
        let counts: Vec<_> =
            Counts::default().named().iter().map(|(name, _)| format!("{name}=0")).collect();
        let body = format!(
            "machine {machine}\noperation {operation}\nports {ports}\nblock 10\nalgorithm none\n\
             ranks {ranks} by 1\nslots {ranks}\npieces 10\ncounts {}\nbounds steps=0 link_bytes=0\n\
             class 0\nstart 0,0\nfinish 0,0\n",
            counts.join(" ")
        );
        Bounds::of(&parse(&body).expect("a certificate"))
    }

    #[test]
    fn counts_below_a_bound_are_refused_where_it_holds() {
        for (machine, ranks, operation, ports, [steps, bytes, links, hops]) in [
            ("complete 1", 1, "alltoall", 1, [0, 0, 0, 0]),
            ("complete 9", 9, "alltoall", 2, [2, 40, 0, 0]),
            ("complete 8", 8, "allgather", 3, [2, 24, 0, 0]),
            ("grid 4~x4~", 16, "alltoall", 1, [4, 150, 80, 4]),
            ("grid 4x5", 20, "alltoall", 4, [2, 48, 240, 7]),
            ("grid 4x5", 20, "allgather", 4, [2, 48, 95, 7]),
            ("grid 1x2~", 2, "allgather", 1, [1, 10, 5, 1]),
            ("cluster 1*8", 8, "alltoall", 1, [3, 70, 0, 0]),
            ("cluster 2*4", 8, "alltoall", 1, [3, 160, 0, 0]),
            ("cluster 1*1,1*2,1*5", 8, "allgather", 2, [2, 35, 0, 0]),
            ("cluster 1*1,1*2,1*5", 8, "alltoall", 2, [2, 75, 0, 0]),
        ] {
            let place = format!("{operation} on {machine} with {ports} ports");
            let bounds = bounds(machine, ranks, operation, ports);
            let link_bytes = bytes.max(links);
            assert_eq!(bounds.link_bytes(), link_bytes, "{place}");
            let least = Counts { steps, bytes, link_bytes, hops, ..Counts::default() };
            assert_eq!(bounds.hold(&least), Ok(()), "{place}");
            let over = Counts { link_bytes: links, hops, port_violations: 1, ..Counts::default() };
            assert_eq!(bounds.hold(&over), Ok(()), "{place}");
            let below = |name, least, lower: Counts| {
                let fault = Fault::Below { name, found: least - 1, least };
                assert_eq!(bounds.hold(&lower), Err(fault), "{place}");
            };
            if steps > 0 {
                below("steps", steps, Counts { steps: steps - 1, ..least });
                below("bytes", bytes, Counts { bytes: bytes - 1, ..least });
            }
            for counts in [least, over].into_iter().filter(|_| links > 0) {
                below("link_bytes", links, Counts { link_bytes: links - 1, ..counts });
                below("hops", hops, Counts { hops: hops - 1, ..counts });
            }
        }
    }
}
