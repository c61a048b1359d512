//! Routes of graphs.

use common::drawn_graphs;
use topocoll::{Rank, Route, Shape, Topology as _, machine};

/// Routes follow the next links that are listed for each vertex and destination.
#[test]
fn routes_take_the_links_that_lead_onward() {
    let path = format!("{}/machines/fat-tree.xml", env!("CARGO_MANIFEST_DIR"));
    let (cables, forms) =
        (machine(&path).unwrap(), ["hypercube:5", "hyperx:4x3x2", "fat-tree:3,3"]);
    let forms =
        forms.into_iter().chain(["dragonfly:2,4,2", "twisted-torus:3+2x5", "torus:4x4/1,1"]);
    let families = forms.map(|form| machine(form).unwrap());
    let mut walked = 0;
    for machine in drawn_graphs().into_iter().chain(families).chain([cables]) {
        let Shape::Graph(graph) = machine.topology.network() else { panic!("{}", machine.name) };
        let nodes = graph.ranks();
        let (mut route, mut onward) = (Route::default(), Vec::new());
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            graph.route(Rank(from), Rank(to), &mut route);
            let mut at = from;
            graph.for_each_link(Rank(from), &route, &mut |link| {
                onward.clear();
                assert!(graph.onward(at, Rank(to), &mut onward), "{}", machine.name);
                let port = onward[(from + to) as usize % onward.len()];
                assert_eq!(graph.leaving(at).nth(port).unwrap().0, link, "{}", machine.name);
                at = graph.link(link).unwrap().to;
                walked += 1;
            });
        }
    }
    assert!(walked > 10_000, "{walked} links");
}
