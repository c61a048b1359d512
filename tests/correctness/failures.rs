//! Two failures at once on `torus:4x4x4`. `benches/failures.rs` takes all pairs of links, and other tori.

use rayon::prelude::*;
use topocoll::{Collective, Method, Request, Solution, best_bounds};

use common::{check_promises, claims, find, problem, setting, with_ports};

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
        let machine = with_ports(&format!("torus:4x4x4/{failed}"), 6);
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

/// The hops of messages give `bruck` a floor: on large machines that are not counted it decides against others.
#[test]
fn combined_blocks_have_a_floor_by_hops() {
    for (failed, ports) in
        [("torus:5x4/0,0", 4), ("mesh:6x3/2,1+0", 1), ("torus:4x3x3/line:0,0,0+1", 2)]
    {
        let machine = with_ports(failed, ports);
        let problem = problem(&machine, Collective::AllToAll, 6);
        for radix in 2..=u64::from(machine.ranks()) {
            let setting = setting(&format!("radix={radix}"));
            check_promises(&machine, find("bruck").unwrap(), &problem, &setting, Method::Replay);
        }
    }
    let machine = with_ports("torus:8x16x16/0,0,0", 6);
    let problem = problem(&machine, Collective::AllToAll, 1);
    let floor = |radix: &str| {
        claims(&machine, &problem, "bruck", &setting(radix)).unwrap().link_bytes_floor
    };
    // The bound is 4108.05 blocks.
    assert!(floor("radix=76") > 6000, "{}", floor("radix=76"));
    assert!(floor("radix=2047") >= 4096, "{}", floor("radix=2047"));
}
