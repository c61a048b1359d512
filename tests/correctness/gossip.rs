//! All-gather hop by hop: on every network between ranks, with any number of ports, around every kind of failure.

use topocoll::{Collective, Machine, Method, Parameters, Request, Setting, best_bounds};

use common::{BETWEEN_RANKS, check_promises, claims, find, problem, reach, with_ports};

fn settings(machine: &Machine) -> Vec<Parameters> {
    let problem = problem(machine, Collective::AllGather, 3);
    find("gossip").unwrap().candidates(&Request::new(&problem, &*machine.topology)).unwrap()
}

/// Steps and volume in blocks of the least target.
fn counted(machine: &Machine) -> (u64, u128) {
    let problem = problem(machine, Collective::AllGather, 1);
    let claims = claims(machine, &problem, "gossip", &Parameters::new()).unwrap();
    (claims.steps, claims.bytes)
}

#[test]
fn every_network_between_ranks_is_served_as_claimed() {
    for text in BETWEEN_RANKS {
        for ports in [1, 2, 3, 6] {
            let machine = with_ports(text, ports);
            let problem = problem(&machine, Collective::AllGather, 3);
            for setting in settings(&machine) {
                let algorithm = find("gossip").unwrap();
                check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
            }
        }
    }
}

#[test]
fn other_machines_and_targets_are_refused() {
    let refused = |text: &str, target: u64| {
        let machine = with_ports(text, 4);
        let problem = problem(&machine, Collective::AllGather, 3);
        let setting = Parameters::from([("target".to_owned(), Setting::from(target))]);
        claims(&machine, &problem, "gossip", &setting).unwrap_err().to_string()
    };
    assert!(refused("full:4", 5).contains("requires a grid or a graph"));
    assert!(refused("fat-tree:2,2", 5).contains("no switches"));
    assert!(refused("torus:4x4/0,0+0", 4).contains("target is `4`, not a whole number from 5 "));
    let few = "at most 512 ranks, or a port for each link";
    assert!(refused("twisted-torus:8x8x16", 512).contains(few));
    assert!(refused("torus:17x241", 5000).contains("at most 4096 ranks"));
}

/// With all ports: the steps of the longest shortest route, and the bound in whole blocks. With one port the
/// bound if no node has failed; otherwise some ranks of one colour wait in every step.
#[test]
fn failures_cost_little_more_than_the_bound() {
    for (torus, diameter) in [("4x4x4", 6), ("8x4x4", 8)] {
        for failed in ["0,0,0+0", "0,0,0", "line:0,0,0+0"] {
            let text = format!("torus:{torus}/{failed}");
            let found = |ports| {
                let machine = with_ports(&text, ports);
                let problem = problem(&machine, Collective::AllGather, 1);
                let bound = best_bounds(&problem, &machine, None).link_blocks.ceil();
                let (steps, volume) = counted(&machine);
                println!("{text}, {ports} ports: {steps} steps, {volume} blocks, bound {bound}");
                (steps, volume as f64 / bound)
            };
            let (steps, ratio) = found(6);
            assert_eq!(steps, diameter, "{text}");
            assert!(ratio <= 1.05, "{text}: {ratio}");
            let (_, ratio) = found(1);
            assert!(ratio <= if failed == "0,0,0" { 1.05 } else { 1.0 }, "{text}: {ratio}");
        }
    }
}

/// More ranks than are matched: with all ports.
#[test]
fn large_broken_machines_gain_most() {
    for text in
        &["torus:9x8x8/0,0,0", "twisted-torus:8x8x16", "torus:16x16x16/0,0,0"][..reach(2, 3)]
    {
        let machine = with_ports(text, 6);
        let problem = problem(&machine, Collective::AllGather, 3);
        let algorithm = find("gossip").unwrap();
        check_promises(&machine, algorithm, &problem, &settings(&machine)[0], Method::Replay);
        let bound = best_bounds(&problem, &machine, None).link_blocks.ceil();
        let (steps, volume) = counted(&machine);
        println!("{text}: {steps} steps, {volume} blocks, bound {bound}");
        assert!(volume as f64 <= 1.05 * bound, "{text}: {volume} blocks, bound {bound}");
    }
}
