//! Blocks hop by hop: on every network between ranks, and around every kind of failure.

use rayon::prelude::*;
use topocoll::{
    Collective, Machine, Method, NotApplicable, Parameters, Request, Setting, Shape, best_bounds,
    machine,
};

use common::{BETWEEN_RANKS, check_promises, claims, find, problem, reach, with_ports};

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
    assert!(refused("mesh:17x61", 4).contains("at most 1024 ranks, or a torus of at most 16384"));
    assert!(refused("torus:128x129", 4).contains("at most 16384 ranks"));
}

/// On tori the fewest steps and the least volume at once: those of the longest route, and of the busiest links.
#[test]
fn tori_have_the_fewest_steps_and_the_least_volume() {
    let mut tori: Vec<String> = Vec::new();
    for a in 1..=reach(16, 20) {
        for b in 1..=a {
            tori.push(format!("torus:{a}x{b}"));
            let up_to = if a > reach(6, 10) { 0 } else { b };
            tori.extend((1..=up_to).map(|c| format!("torus:{a}x{b}x{c}")));
        }
    }
    tori.extend(
        ["4x4x8", "4x8x8", "8x8x16", "3x9", "5x10"].map(|sides| format!("twisted-torus:{sides}")),
    );
    // On fewer ranks each block has a route of its own.
    let large = tori.par_iter().filter(|text| machine(text).unwrap().ranks() > 64);
    let found = large.map(|text| {
        let machine = with_ports(text, 6);
        let problem = problem(&machine, Collective::AllToAll, 1);
        let bound = best_bounds(&problem, &machine, None);
        let longest = match machine.topology.shape() {
            Shape::Grid(grid) => grid.sides().iter().map(|side| side / 2).sum(),
            Shape::Graph(graph) => graph.diameter(),
            _ => unreachable!(),
        };
        let algorithm = find("store-and-forward").unwrap();
        let setting = &settings(&machine).unwrap()[0];
        check_promises(&machine, algorithm, &problem, setting, Method::Replay);
        let (steps, volume) = counted(&machine, &Parameters::new());
        (text, (steps, longest), (volume, bound.link_blocks))
    });
    for (text, (steps, longest), (volume, least)) in found.collect::<Vec<_>>() {
        let more = u64::from(text.starts_with("twisted"));
        assert!(steps <= u64::from(longest) + more, "{text}: {steps} steps, {longest} links");
        // Some blocks of half a ring, which go one way or the other, are not divided.
        assert!(volume as f64 <= 1.04 * least + 2.0, "{text}: {volume} blocks, bound {least}");
    }
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
