//! Two failures at once on `torus:4x4x4`. `benches/failures.rs` takes all pairs of links, and other tori.

use rayon::prelude::*;
use topocoll::{Collective, Method, Request, Solution, best_bounds, machine};

use crate::common::{check_promises, find, problem, setting};

/// The required limit: a volume of at most 1.15 of the bound, in at most 20 steps.
#[test]
fn two_failures_cost_little_more_than_the_bound() {
    let cases = [
        "0,0,0+0/0,0,0+1",
        "0,0,0+0/0,0,1+0",
        "0,0,0+0/0,2,2+0",
        "0,0,0+0/1,0,0+0",
        "0,0,0/0,0,1+2",
        "0,0,0/2,1,0",
        "0,0,0/line:1,0,0+0",
        "line:0,0,0+0/line:0,1,0+0",
        "line:0,0,0+0/line:0,0,0+1",
    ];
    cases.par_iter().for_each(|failed| {
        let mut machine = machine(&format!("torus:4x4x4/{failed}")).unwrap();
        machine.set_ports(6);
        let problem = problem(&machine, Collective::AllToAll, 6);
        let request = Request::new(&problem, &*machine.topology);
        let repair = setting("of=neighbour-rings of.parts=bytes");
        let repaired = request.solve(find("repair").unwrap(), &repair).unwrap();
        let forwarded = request.solutions(find("store-and-forward").unwrap());
        let few = |found: &Solution| found.claims.steps <= 20;
        let best = forwarded.chain([repaired]).filter(few).min_by_key(|found| found.claims.bytes);
        let Solution { schedule, claims, .. } = best.unwrap();
        let origin = &schedule.origin;
        let algorithm = find(&origin.algorithm).unwrap();
        check_promises(&machine, algorithm, &problem, &origin.parameters, Method::Replay);

        assert!(claims.contention_free, "{failed}: the volume is the charged volume");
        let bound = best_bounds(&problem, &machine, None).link_blocks;
        let (steps, volume) = (claims.steps, claims.bytes as f64 / 6.0);
        println!("{failed}: {steps} steps, {volume:.2} blocks, bound {bound:.2}, {origin:?}");
        assert!(volume <= 1.15 * bound, "{failed}: {steps} steps, {volume} blocks, bound {bound}");
    });
}
