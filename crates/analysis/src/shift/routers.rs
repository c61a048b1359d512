//! Link loads of a uniform shift on a dragonfly, router by router.
//!
//! In a step in which every node x sends to x + s (mod P), the nodes of a router send to two consecutive routers at
//! most, the first to one and the others to the next. Routes from one router to another differ in their first and last
//! links alone, and those of all nodes carry one message of each shift. So two routes of a router are walked, and the
//! links of its first node are counted.

use topocoll_topology::{LinkId, Rank, Shape, Topology};

use super::Shift;
use crate::charges::Rates;
use crate::loads::Loads;
use crate::route_links::RouteLinks;
use crate::step_count::StepCount;

/// Counts the links of a step in which all nodes of a dragonfly send to these shifts, with `nodes` on each router, of
/// which those before `classes` are visited. `links` are those of an earlier route.
pub(crate) fn count_routers(
    (topology, nodes, classes): (&dyn Topology, u32, u32),
    rates: &Rates<'_>,
    messages: &[Shift],
    (loads, links): (&mut Loads, &mut Vec<LinkId>),
    out: &mut StepCount,
) {
    let Shape::Graph(graph) = topology.shape() else { return };
    let ranks = topology.ranks();
    let equivalent = u64::from(ranks / classes);
    for &Shift { node: shift, bytes, .. } in messages {
        let to_first = nodes - shift % nodes;
        let runs = [(0, to_first), (to_first, nodes - to_first)];
        let routers = (0..classes).step_by(nodes as usize);
        let runs = routers.flat_map(|router| runs.map(|(first, run)| (router + first, run)));
        for (from, run) in runs.filter(|&(_, run)| run > 0) {
            let to = ((u64::from(from) + u64::from(shift)) % u64::from(ranks)) as u32;
            links.clear();
            graph.own_links(Rank(from), Rank(to), links);
            let route = RouteLinks::Links(links);
            out.hops = out.hops.max(route.hops());
            let times = equivalent * u64::from(run);
            out.charges.route_links(rates, Rank(from), &route, times, bytes);
            if let [up, between @ .., down] = &links[..] {
                let ends = [(from, *up), (to, *down)];
                for (_, link) in ends.into_iter().filter(|(node, _)| node % nodes == 0) {
                    loads.add_link(link, 1, bytes);
                }
                between.iter().for_each(|&link| loads.add_link(link, run, bytes));
            }
        }
    }
    if messages.len() > 1 {
        // The links of the other nodes.
        out.shared_links += 2 * u128::from(ranks - ranks / nodes);
    }
}
