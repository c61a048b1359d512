//! Lower bounds on the counts of any schedule.

use crate::certificate::Certificate;
use crate::graph::Graph;
use crate::lines::Grid;
use crate::machine::{Group, Network};
use crate::{Counts, Fault};

/// The least counts of the schedules of a machine.
pub(crate) struct Bounds {
    /// Steps of schedules that exceed no ports.
    pub(crate) steps: u64,
    /// Sum over steps of the largest message, of schedules that exceed no ports.
    pub(crate) bytes: u128,
    /// The ranks, the ports and the block of an all-to-all.
    exchanged: Option<[u128; 3]>,
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
        // most k + 1, and the nodes where one has it likewise.
        let of_node = u128::from(certificate.node_ports);
        let mut steps = doublings(n, k);
        if certificate.machine.nodes.is_some() {
            steps = steps.max(doublings(certificate.machine.network.nodes().into(), of_node));
        }
        let needs = Needs { n, block: certificate.block.into(), gathers: certificate.gathers };
        let groups = certificate.machine.groups();
        // A rank receives them through its ports, and so does a node.
        let mut bytes = needs.of(1).div_ceil(k);
        if certificate.machine.nodes.is_some() {
            let through = |group: &Group| needs.of(group.size.into()).div_ceil(of_node);
            bytes = groups.iter().map(through).fold(bytes, u128::max);
        }
        let exchanged = (!certificate.gathers).then_some([n, k, needs.block]);
        let (links, hops) = match &certificate.machine.network {
            Network::Complete(_) => (0, 0),
            Network::Grid(grid) => across_grid(grid, &groups, &needs),
            Network::Graph(graph) => across_graph(graph, &groups, &needs),
        };
        Self { steps, bytes, exchanged, links, hops }
    }

    /// The least sum of the largest messages of schedules of at most this number of steps that exceed
    /// no ports.
    ///
    /// The steps in which a byte of an all-to-all moves, each with its port, fix where it ends. So of
    /// n destinations at most `sum over i <= j of C(steps, i) k^i` are reached in j moves or fewer.
    pub(crate) fn bytes_in(&self, steps: u128) -> u128 {
        let Some([n, k, block]) = self.exchanged else { return self.bytes };
        // The sets of j moves, and of at most j.
        let (mut sets, mut reached, mut moves) = (1u128, 1u128, 0);
        for j in 0..steps {
            if reached >= n {
                break;
            }
            // Each of the others moves once more.
            moves += n - reached;
            sets = (sets * (steps - j) / (j + 1)).saturating_mul(k);
            reached = reached.saturating_add(sets);
        }
        self.bytes.max((moves * block).div_ceil(k))
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
            ("bytes", counts.bytes, within_ports(self.bytes_in(counts.steps))),
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

/// The steps after which `all` are reached, if each step multiplies those reached by `ports` + 1.
fn doublings(all: u128, ports: u128) -> u64 {
    let (mut steps, mut reached) = (0, 1u128);
    while reached < all {
        reached = reached.saturating_mul(ports + 1);
        steps += 1;
    }
    steps
}

/// The bytes that a set of ranks needs from the others.
struct Needs {
    n: u128,
    block: u128,
    gathers: bool,
}

impl Needs {
    /// The bytes that `ranks` ranks need.
    fn of(&self, ranks: u128) -> u128 {
        let blocks = if self.gathers { self.n - ranks } else { ranks * (self.n - ranks) };
        blocks * self.block
    }
}

/// The least sum of the largest link loads, and of hops, on a grid.
fn across_grid(Grid { places, wraps, .. }: &Grid, groups: &[Group], needs: &Needs) -> (u128, u128) {
    let (mut links, mut hops, mut corner, mut inner) = (0, 0, 0, 0);
    for (u, &wraps) in wraps.iter().enumerate().filter(|(u, _)| places.sides[*u] > 1) {
        let (side, ways) = (places.sides[u], if wraps { 2 } else { 1 });
        let lines = u128::from(places.ranks() / side);
        // Of the parts of a cut across the middle the smaller needs more in an all-gather, and
        // equally much in an all-to-all.
        let below = match groups {
            [group] => u128::from(side / 2) * lines * u128::from(group.size),
            _ => {
                let below = |node: &u32| places.coordinate(*node, u) < side / 2;
                let of = |group: &Group| {
                    let nodes = (group.first..group.first + group.nodes).filter(below).count();
                    nodes as u128 * u128::from(group.size)
                };
                groups.iter().map(of).sum()
            }
        };
        links = links.max(needs.of(below.min(needs.n - below)).div_ceil(ways * lines));
        hops += u128::from(if wraps { side / 2 } else { side - 1 });
        corner += ways;
        inner += if side > 2 { 2 } else { ways };
    }
    // A corner has a link along each side, and a second one if the side wraps. A node that is not
    // as the others may have more.
    let doors = if groups.len() == 1 { corner } else { inner };
    let node = groups.iter().map(|group| needs.of(group.size.into())).max().unwrap_or(0);
    (links.max(node.div_ceil(doors.max(1))), hops)
}

/// The same on a graph.
fn across_graph(graph: &Graph, groups: &[Group], needs: &Needs) -> (u128, u128) {
    let denominator = graph.denominator();
    let over = |bytes: u128, capacity: u128| match capacity {
        // No schedule delivers.
        0 => 0,
        capacity => bytes.saturating_mul(denominator).div_ceil(capacity),
    };
    let sizes: Vec<u128> = (groups.iter())
        .flat_map(|group| (0..group.nodes).map(|_| u128::from(group.size)))
        .collect();
    let mut links = 0;
    for (&size, [out, into]) in sizes.iter().zip(graph.capacities()) {
        links = links.max(over(needs.of(size), into));
        if !needs.gathers {
            links = links.max(over(needs.of(size), out));
        }
    }
    // The routes of all blocks are together at least as long as the distances, and no longer than
    // all links if each carries the largest load.
    let (mut travelled, mut hops) = (0u128, 0);
    let lengths = if needs.gathers { 0 } else { graph.lengths() };
    for (from, &size) in (0..).zip(&sizes) {
        let far = graph.distances(from, true).into_iter().flatten().max();
        hops = far.unwrap_or(0).max(hops);
        if lengths > 0 {
            let far = graph.distances(from, false);
            let far = far.into_iter().zip(&sizes);
            travelled +=
                far.map(|(far, to)| size * to * u128::from(far.unwrap_or(0))).sum::<u128>();
        }
    }
    (links.max(over(travelled.saturating_mul(needs.block), lengths)), hops.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// The bounds of blocks of 10 bytes.
    fn bounds(machine: &str, ranks: u32, operation: &str, ports: u32) -> Bounds {
        // The lines of a graph, without their newlines.
        let machine = machine.replace(';', "\n");
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

    const RING: &str = "graph 3+0;vertex 0 1:1;vertex 1 2:1;vertex 2 0:1";
    /// The links of one node have half the capacity.
    const STAR: &str = "graph 3+1;vertex 0 3;vertex 1 3;vertex 2 3*1/2;vertex 3 0 1 2*1/2";
    /// Two links each way, together 5/3.
    const PAIR: &str = "graph 2+0 nodes 1*2,1*3;vertex 0 1 1*2/3;vertex 1 - 0*1/3 0*4/3";

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
            ("grid 4~x4~ nodes 16*2", 32, "alltoall", 1, [5, 600, 320, 4]),
            ("grid 4~x4~ nodes 16*2", 32, "allgather", 3, [3, 104, 75, 4]),
            ("grid 3x2 nodes 1*4,5*1", 9, "alltoall", 1, [4, 200, 100, 3]),
            ("grid 3 nodes 1*4,2*1", 6, "allgather", 5, [1, 10, 40, 2]),
            ("grid 3 nodes 2*1,1*4", 6, "alltoall", 5, [1, 16, 50, 2]),
            // Of three nodes on a ring of one way, two links carry blocks two hops.
            (RING, 3, "alltoall", 1, [2, 20, 30, 2]),
            (RING, 3, "allgather", 2, [1, 10, 20, 2]),
            (STAR, 3, "alltoall", 2, [1, 10, 40, 2]),
            (STAR, 3, "allgather", 2, [1, 10, 40, 2]),
            (PAIR, 5, "alltoall", 1, [3, 60, 36, 1]),
            (PAIR, 5, "allgather", 1, [3, 40, 18, 1]),
        ] {
            let place = format!("{operation} on {machine} with {ports} ports");
            let bounds = bounds(machine, ranks, operation, ports);
            let link_bytes = bytes.max(links);
            assert_eq!(bounds.link_bytes(), link_bytes, "{place}");
            let many = if steps > 0 { 1000 } else { 0 };
            let least = Counts { steps: many, bytes, link_bytes, hops, ..Counts::default() };
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
