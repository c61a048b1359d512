//! Exchanges between nodes of several ranks: every algorithm that applies to the network, carried
//! by one or several ranks of a node, delivers what it claims.

use std::collections::BTreeSet;

use common::{algorithms, check_promises, find, problem, reach, setting};
use rayon::prelude::*;
use topocoll::{
    Algorithm, Collective, Exchange, Machine, Method, Parameters, Problem, Request, Setting, Shape,
    Topology, machine,
};

/// The algorithm that is hierarchical.
fn by_node(operation: Collective) -> &'static dyn Algorithm {
    find(match operation {
        Collective::AllToAll => "node-aware",
        Collective::AllGather => "node-gather",
    })
    .unwrap()
}

fn nodes(machine: &Machine) -> (u32, u32) {
    match machine.topology.shape() {
        Shape::Clustered(clusters) => (clusters.nodes(), clusters.largest()),
        _ => panic!("{} has no nodes", machine.name),
    }
}

fn network(machine: &Machine) -> &dyn Topology {
    match machine.topology.shape() {
        Shape::Clustered(clusters) => &**clusters.network(),
        _ => panic!("{} has no nodes", machine.name),
    }
}

/// `between` and its parameters.
fn between(name: &str, own: &Parameters) -> Parameters {
    let own = own.iter().map(|(key, value)| (format!("between.{key}"), value.clone()));
    own.chain([("between".to_owned(), Setting::Text(name.to_owned()))]).collect()
}

/// Every hierarchical setting of some algorithms that apply to a machine's network, complete.
fn settings(machine: &Machine, operation: Collective, bytes: u64) -> Vec<Parameters> {
    let (count, size) = nodes(machine);
    let whole = problem(machine, operation, bytes);
    let request = Request::new(&whole, &*machine.topology);
    let mut out = BTreeSet::new();
    for algorithm in algorithms().filter(|one| one.info().operation == operation) {
        let inner = Problem::new(operation, count, machine.ports, bytes).unwrap();
        let inner = Request::new(&inner, network(machine));
        for solution in inner.solutions(algorithm) {
            let named = between(&algorithm.info().name, &solution.schedule.origin.parameters);
            for (lanes, turns) in (1..=size).flat_map(|l| (1..=l).map(move |t| (l, t))) {
                let mut setting = named.clone();
                setting.insert("lanes".to_owned(), Setting::Integer(lanes.into()));
                setting.insert("turns".to_owned(), Setting::Integer(turns.into()));
                if let Ok(solution) = request.solve(by_node(operation), &setting) {
                    out.insert(solution.schedule.origin.parameters);
                } else {
                    setting.remove("turns");
                    if let Ok(solution) = request.solve(by_node(operation), &setting) {
                        out.insert(solution.schedule.origin.parameters);
                    }
                }
            }
        }
    }
    out.into_iter().collect()
}

/// Every hierarchical exchange of a machine delivers as claimed; the names of the exchanges between nodes.
fn check_machine(text: &str, ports: u32) -> BTreeSet<String> {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    let mut names = BTreeSet::new();
    for (operation, bytes) in
        [(Collective::AllToAll, 1), (Collective::AllGather, 1), (Collective::AllGather, 7)]
    {
        let problem = problem(&machine, operation, bytes);
        for setting in settings(&machine, operation, bytes) {
            names.insert(setting["between"].to_string());
            for method in [Method::Replay, Method::Classes] {
                check_promises(&machine, by_node(operation), &problem, &setting, method);
            }
        }
    }
    names
}

/// The names of the exchanges between nodes on these machines, with some numbers of ports.
fn check_machines(texts: &[&str], ports: &[u32]) -> Vec<String> {
    let cases = texts.iter().flat_map(|text| ports.iter().map(move |&ports| (text, ports)));
    let names = cases
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(text, ports)| check_machine(text, ports))
        .reduce(BTreeSet::new, |mut all, names| {
            all.extend(names);
            all
        });
    names.into_iter().collect()
}

#[test]
fn every_exchange_between_nodes_delivers_as_claimed() {
    let clusters = [
        "cluster:2*1",
        "cluster:2*2",
        "cluster:3*2",
        "cluster:4*3",
        "cluster:5*4",
        "cluster:7*2",
        "cluster:8*6",
        "cluster:4*8",
        "cluster:16*2",
    ];
    let all = [
        "bruck",
        "concat",
        "direct",
        "gather-broadcast",
        "one-factor",
        "pairwise-xor",
        "recursive-doubling",
        "ring",
    ];
    assert_eq!(check_machines(&clusters, reach(&[1, 3][..], &[1, 2, 3, 4])), all);
}

#[test]
fn every_exchange_between_nodes_of_a_network_delivers_as_claimed() {
    let networks = [
        "torus:4x4*2",
        "torus:6*3",
        "torus:6x5*2",
        "mesh:3x3*2",
        "mesh:4x4*2",
        "grid:4~x2*4",
        "twisted-torus:2x4*2",
        "torus:4x4/1,2*2",
    ];
    let all = [
        "binary-exchange",
        "bruck",
        "bucket",
        "coloured-rings",
        "concat",
        "cyclic-exchange",
        "direct",
        "direct-offsets",
        "direct-rings",
        "gather-broadcast",
        "gossip",
        "link-matchings",
        "minimum-startup",
        "neighbour-gather",
        "neighbour-rings",
        "one-factor",
        "pairwise-xor",
        "product",
        "quadrant-exchange",
        "recursive-doubling",
        "repair",
        "ring",
        "store-and-forward",
        "strided-rings",
        "suh-shin",
        "tabled",
        "tseng-gupta-panda",
    ];
    assert_eq!(check_machines(&networks, &[1, 3]), all);
}

/// Between 8 nodes, radix 2 takes 3 steps of half the blocks. A carrier gathers 3 ranks' blocks for
/// all 32 along a tree, and distributes as many; four carriers, in turn, gather nothing, and each
/// deals the 8 blocks of its own source at a time.
#[test]
fn more_carriers_trade_startups_for_volume() {
    let machine = machine("cluster:8*4").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 1);
    let claimed = |words: &str| {
        let request = Request::new(&problem, &*machine.topology);
        let claims = request.solve(find("node-aware").unwrap(), &setting(words)).unwrap().claims;
        (claims.steps, claims.bytes)
    };
    let radix = "between=bruck between.radix=2";
    assert_eq!(claimed(&format!("{radix} lanes=1")), (2 + 3 + 2, 3 * 32 + 3 * 4 * 16 + 3 * 32));
    assert_eq!(claimed(&format!("{radix} lanes=4")), (4 * 3 + 3, 4 * 3 * 4 * 4 + 3 * 8));
    // Straight to their destinations, whole nodes' blocks by one rank in turn.
    let rounds = claimed("lanes=4");
    assert_eq!(claimed("between=direct lanes=4"), rounds);
    assert_eq!(claimed("between=one-factor lanes=4"), rounds);
}

/// The parameters of a schedule, given again, make the schedule again.
#[test]
fn parameters_that_are_not_given_are_told() {
    let machine = machine("cluster:8*4").unwrap();
    for (operation, given, told) in [
        (Collective::AllToAll, "between=bruck", "between.radix=2 lanes=1 turns=1"),
        (Collective::AllToAll, "between=bruck lanes=2", "between.radix=2 lanes=2 turns=2"),
        (Collective::AllToAll, "between=direct", "lanes=4"),
        (Collective::AllGather, "between=ring", "lanes=1 turns=1"),
    ] {
        let problem = problem(&machine, operation, 1);
        let exchange = Exchange::new(&machine, &problem).unwrap();
        let name = &by_node(operation).info().name;
        let schedule = exchange.schedule(name, &setting(given)).unwrap();
        let complete = setting(&format!("{given} {told}"));
        assert_eq!(schedule.origin.parameters, complete);
        assert_eq!(exchange.schedule(name, &complete).unwrap().origin, schedule.origin);
    }
}

#[test]
fn what_cannot_be_hierarchical_is_refused() {
    let said = |text: &str, operation, bytes, words: &str| {
        let machine = machine(text).unwrap();
        let problem = problem(&machine, operation, bytes);
        let exchange = Exchange::new(&machine, &problem).unwrap();
        exchange.schedule(&by_node(operation).info().name, &setting(words)).unwrap_err().to_string()
    };
    for (text, words, error) in [
        (
            "cluster:4*4",
            "between=suh-shin",
            "node-aware: between=suh-shin: requires a torus or mesh, which full:4 is not",
        ),
        (
            "cluster:4*4",
            "between=bruk",
            "node-aware: between=bruk: unknown algorithm `bruk`: did you mean `bruck`?",
        ),
        (
            "cluster:4*4",
            "between=node-aware",
            "node-aware: between is `node-aware`, not another algorithm",
        ),
        (
            "cluster:4*4",
            "between=ring",
            "node-aware: between=ring: performs allgather, not alltoall",
        ),
        (
            "cluster:4*4",
            "between=demand-matchings",
            "node-aware: between is `demand-matchings`, not an algorithm for blocks of equal sizes",
        ),
        ("cluster:4*4", "between=7", "node-aware: between=7: unknown algorithm `7`"),
        (
            "cluster:4*4",
            "between=bruck between.radx=2",
            "node-aware: between=bruck: bruck has no parameter `radx`: it takes radix, steps",
        ),
        (
            "cluster:4*4",
            "between=bruck between.radix=5",
            "node-aware: between=bruck: bruck: radix is `5`, not a whole number from 2 to 4",
        ),
        (
            "cluster:4*4",
            "between=bruck lanes=3",
            "node-aware: lanes is `3`, not a divisor of the 4 ranks of a node",
        ),
        (
            "cluster:4*4",
            "between=bruck lanes=4 turns=3",
            "node-aware: turns is `3`, not a whole number from 4 to 4",
        ),
        (
            "cluster:4*4",
            "between=direct turns=2",
            "node-aware: turns is `2`, not a whole number from 1 to 1",
        ),
        (
            "cluster:4*4",
            "between=bruck rounds=cut",
            "node-aware: rounds is `cut`, not for an exchange with between=bruck",
        ),
        ("cluster:4*4", "between.radix=2", "node-aware: between.radix requires between=NAME"),
        ("cluster:4*4", "turns=2", "node-aware: turns requires between=NAME"),
        (
            "cluster:4*4",
            "rounds.radix=2",
            "node-aware has no parameter `rounds.radix`: it takes lanes, radix, between, turns, steps",
        ),
        (
            "cluster:4,4,2",
            "between=bruck",
            "node-aware: requires a machine with nodes of equal sizes, which cluster:2*4,2 is not",
        ),
        (
            "cluster:8",
            "between=bruck",
            "node-aware: requires a cluster of several nodes, which cluster:8 is not",
        ),
    ] {
        assert_eq!(said(text, Collective::AllToAll, 1, words), error);
    }
    assert_eq!(
        said("cluster:4*4", Collective::AllToAll, 1 << 40, "between=bruck"),
        "node-aware: between is `bruck`, not for blocks of two nodes of more than 2^40 bytes"
    );
    assert_eq!(
        said("cluster:4*4", Collective::AllGather, 1, "lanes=2"),
        "node-gather: lanes requires between=NAME"
    );
    assert_eq!(
        said("cluster:2*2000000000", Collective::AllToAll, 1, "between=bruck"),
        "node-aware: requires nodes times ranks of a node squared to be at most 2^40; there are 4000000000 ranks"
    );
}
