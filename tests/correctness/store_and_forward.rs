//! Blocks hop by hop: on every network between ranks, and around every kind of failure.

use rayon::prelude::*;
use topocoll::{
    Collective, Machine, Method, NotApplicable, Parameters, Request, Setting, best_bounds, machine,
};

use common::{BETWEEN_RANKS, check_promises, claims, find, problem, with_ports};

fn all_ports(text: &str) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.set_ports(machine.topology.most_links_out() as u32);
    machine
}

fn settings(machine: &Machine) -> Result<Vec<Parameters>, NotApplicable> {
    let problem = problem(machine, Collective::AllToAll, 3);
    let algorithm = find("store-and-forward").unwrap();
    algorithm.candidates(&Request::new(&problem, &*machine.topology))
}

/// Steps and volume in blocks.
fn counted(machine: &Machine, setting: &Parameters) -> (u64, u128) {
    let problem = problem(machine, Collective::AllToAll, 1);
    let claims = claims(machine, &problem, "store-and-forward", setting).unwrap();
    (claims.steps, claims.bytes)
}

#[test]
fn every_network_between_ranks_is_served_as_claimed() {
    for text in BETWEEN_RANKS {
        let machine = all_ports(text);
        let problem = problem(&machine, Collective::AllToAll, 3);
        let mut all = settings(&machine).unwrap();
        all.push(Parameters::from([("link_blocks".to_owned(), Setting::Integer(1))]));
        for setting in all {
            let algorithm = find("store-and-forward").unwrap();
            check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
        }
    }
}

#[test]
fn other_machines_are_refused() {
    let refused = |text: &str, ports| settings(&with_ports(text, ports)).unwrap_err().to_string();
    assert!(refused("full:4", 4).contains("requires a grid or a graph"));
    assert!(refused("fat-tree:2,2", 4).contains("no switches"));
    assert!(refused("torus:4x4/0,0+0", 3).contains("requires 4 ports; there are 3"));
    assert!(refused("twisted-torus:8x8x17", 6).contains("at most 1024 ranks"));
}

/// Every failure of a link, a node and a line, once of those that symmetry makes equal: the steps and the
/// volume, at most 1.15 of the bound in at most 20 steps.
#[test]
fn failures_cost_little_more_than_the_bound() {
    let mut cases = Vec::new();
    for (sides, dimensions) in [([4, 4, 4], 1), ([8, 4, 4], 2)] {
        let torus = format!("torus:{}x{}x{}", sides[0], sides[1], sides[2]);
        cases.push(format!("{torus}/0,0,0"));
        for dimension in 0..dimensions {
            cases.push(format!("{torus}/0,0,0+{dimension}"));
            cases.push(format!("{torus}/line:0,0,0+{dimension}"));
        }
    }
    let found = cases.par_iter().map(|text| {
        let machine = all_ports(text);
        let problem = problem(&machine, Collective::AllToAll, 1);
        let bound = best_bounds(&problem, &machine, None).link_blocks;
        let all =
            settings(&machine).unwrap().into_iter().map(|setting| counted(&machine, &setting));
        let few = all.filter(|(steps, _)| *steps <= 20);
        let (steps, volume) = few.min_by_key(|(_, volume)| *volume).unwrap();
        (text, steps, volume, bound, volume as f64 / bound)
    });
    for (text, steps, volume, bound, ratio) in found.collect::<Vec<_>>() {
        println!("{text}: {steps} steps, {volume} blocks, bound {bound:.3}, {ratio:.3}");
        assert!(ratio <= 1.15, "{text}: {steps} steps, {volume} blocks, bound {bound}");
    }
}
