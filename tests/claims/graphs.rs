//! Graphs whose links have their own values: prices do not depend on the class, volumes are relative to
//! links that exist, and no bound exceeds the cost of a schedule.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use common::{MEMORY, claims, schedule_of, serving, setting};
use topocoll::{
    Capacity, Collective, Counts, Grid, LinkId, LinkKind, ListedGraph, Machine, Measure,
    Parameters, PerClass, Problem, Rank, Route, Schedule, Step, best_bounds, bounds, count,
    machine, spec,
};

fn input(name: &str) -> String {
    format!("graph:{}/inputs/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn on(machine: &Machine, operation: Collective, block: u64) -> Problem {
    Problem::new(operation, machine.ranks(), machine.ports, block).unwrap()
}

fn is_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < expected * 1e-3, "{value}, not {expected}");
}

#[test]
fn bounds_of_time_and_volume_agree() {
    let ratio = machine(&input("ratio.csv")).unwrap();
    for operation in [Collective::AllToAll, Collective::AllGather] {
        let best = best_bounds(&on(&ratio, operation, 1024), &ratio, None);
        is_near(best.seconds, 1024.0);
        is_near(best.link_blocks, 1.0);
    }
    let mut mesh = machine(&input("m3x3.csv")).unwrap();
    mesh.set_ports(4);
    let best = best_bounds(&on(&mesh, Collective::AllGather, 4096), &mesh, None);
    is_near(best.seconds, 18.584e-6);
    assert_eq!(best.link_blocks, 4.0);
    let mut dgx = machine(&input("dgx1.csv")).unwrap();
    dgx.set_ports(4);
    let best = best_bounds(&on(&dgx, Collective::AllToAll, 12_500_000), &dgx, None);
    is_near(best.seconds, 1.345e-3);
    is_near(best.link_blocks, 16.0 / 3.0);
}

/// With one port each step has messages to one offset, and all that meet on a link are known.
#[test]
fn floors_of_bruck_are_its_volumes_with_one_port() {
    for text in ["hyperx:4x3", "fat-tree:3,2", "dragonfly:2,2,1", "torus:4x4/1,2", "hypercube:5"] {
        let machine = machine(text).unwrap();
        let problem = on(&machine, Collective::AllToAll, 3);
        for radix in [2, 3, 5, 8] {
            let setting = setting(&format!("radix={radix}"));
            let schedule = schedule_of(&machine, &problem, "bruck", &setting).unwrap();
            let claims = claims(&machine, &problem, "bruck", &setting).unwrap();
            let counts = count(&schedule, &machine, None, MEMORY).unwrap();
            assert_eq!(claims.link_bytes_floor, counts.link_bytes, "{text}, radix {radix}");
            assert_eq!(claims.hops_floor, counts.hops, "{text}, radix {radix}");
        }
    }
}

/// The longest time of a link in each step, from the bandwidths of links, and the whole of a machine's
/// propagation left out.
fn transmission(schedule: &Schedule, machine: &Machine) -> f64 {
    let (mut does, mut route, mut sum) = (Step::default(), Route::default(), 0.0);
    for step in 0..schedule.rule().steps() {
        let mut seconds: HashMap<LinkId, f64> = HashMap::new();
        for rank in (0..machine.ranks()).map(Rank) {
            schedule.rule().step(rank, step, &mut does);
            for send in &does.sends {
                let route = send.route_from(rank, &*machine.topology, &mut route).clone();
                let bytes = send.slots.bytes(schedule.problem.block_bytes) as f64;
                machine.topology.for_each_link(rank, &route, &mut |link| {
                    let kind = machine.topology.link_kinds()[machine.topology.link_kind(link)];
                    let Capacity::BytesPerSecond(bandwidth) = kind.capacity else {
                        panic!("{kind:?}")
                    };
                    *seconds.entry(link).or_default() += bytes / bandwidth;
                });
            }
        }
        sum += seconds.into_values().fold(0.0, f64::max);
    }
    sum
}

/// A network of links whose values are powers of ten apart.
fn drawn(random: &mut fastrand::Rng, apart: u32) -> Machine {
    let (nodes, switches) = (random.u32(2..9), random.u32(0..3));
    let vertices = nodes + switches;
    let mut links = Vec::new();
    let mut link = |random: &mut fastrand::Rng, from, to| {
        let bandwidth =
            random.f64().mul_add(9.0, 1.0) * 10f64.powi(random.i32(0..apart as i32 + 1));
        let kind = LinkKind {
            capacity: Capacity::BytesPerSecond(bandwidth),
            latency: Some(1e-7 * random.f64()),
            ..LinkKind::of_class(0)
        };
        links.push((from, to, kind));
    };
    for vertex in 1..vertices {
        let other = random.u32(0..vertex);
        link(random, vertex, other);
        link(random, other, vertex);
    }
    for _ in 0..random.u32(0..2 * vertices) {
        let (from, to) = (random.u32(0..vertices), random.u32(0..vertices));
        if from != to {
            link(random, from, to);
        }
    }
    let form = format!("{nodes} nodes, {switches} switches");
    let classes = vec!["link".to_owned()];
    let listed = ListedGraph { form, nodes, switches, classes, links, ..ListedGraph::default() };
    let mut machine = Machine::of(Arc::new(listed.with_shortest_routes().unwrap()));
    machine.set_ports(random.u32(1..4));
    machine
}

fn seconds_at_least(counts: &Counts, problem: &Problem, machine: &Machine, place: &str) {
    let best = best_bounds(problem, machine, None);
    let time = counts.time.total();
    assert!(time >= best.seconds * (1.0 - 1e-9), "{place}: {time} s, bound {}", best.seconds);
    let volume = counts.in_blocks(counts.link_bytes);
    assert!(volume >= best.link_blocks * (1.0 - 1e-9), "{place}: {volume}, bound {best:?}");
}

#[test]
fn drawn_links_have_prices_of_their_own() {
    let mut random = fastrand::Rng::with_seed(51);
    let mut schedules = 0;
    for case in 0..60 {
        // Some farther apart than fractions of 32 bits.
        let apart = [0, 2, 6, 20][case % 4];
        let machine = drawn(&mut random, apart);
        let bandwidths: Vec<f64> = machine
            .topology
            .link_kinds()
            .iter()
            .map(|kind| match kind.capacity {
                Capacity::BytesPerSecond(bandwidth) => bandwidth,
                Capacity::Relative { .. } => panic!("{kind:?}"),
            })
            .collect();
        let own = 1.0 / machine.timing.per_byte.of(0);
        assert!(
            bandwidths.iter().any(|&of| (of - own).abs() <= own * 1e-12),
            "{own}: {bandwidths:?}"
        );
        // Where the value of the class is that of no link, volumes differ, and the price does not.
        let mut other = machine.clone();
        other.timing.per_byte = PerClass::uniform(10f64.powi(-random.i32(0..12)));
        assert_eq!(other.clone().with_values_of_links().timing, machine.timing);
        for (algorithm, problem, setting) in serving(&machine, 1000).into_iter().step_by(3) {
            let name = &algorithm.info().name;
            let place = format!("case {case}: {name} {setting:?} on {}", machine.name);
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let counts = count(&schedule, &machine, None, MEMORY).unwrap();
            let expected = transmission(&schedule, &machine);
            let found = counts.time.transmission;
            // A link in whose class a byte takes as long is charged at the speed of the class.
            assert!((found - expected).abs() <= expected * 1e-8, "{place}: {found}, {expected}");
            let again = count(&schedule, &other, None, MEMORY).unwrap().time.transmission;
            assert!((again - expected).abs() <= expected * 1e-8, "{place}: {again}, {expected}");
            seconds_at_least(&counts, &problem, &machine, &place);
            seconds_at_least(
                &count(&schedule, &other, None, MEMORY).unwrap(),
                &problem,
                &other,
                &place,
            );
            schedules += 1;
        }
        // The volume at the speed of the class is the time.
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let problem = on(&machine, operation, 1000);
            let all = bounds(&problem, &machine);
            let charged = all
                .iter()
                .filter(|bound| bound.measure == Measure::LinkBlocks && bound.condition.is_empty());
            let volume = charged.map(|bound| bound.value).fold(0.0, f64::max);
            let seconds = best_bounds(&problem, &machine, None).seconds;
            let of_volume = volume * 1000.0 * machine.timing.per_byte.of(0);
            assert!(seconds >= of_volume * (1.0 - 1e-6), "case {case}: {seconds} s, {of_volume} s");
        }
    }
    assert!(schedules > 300, "{schedules}");
}

/// The graph of a grid, each link with the values of its dimension as its own.
fn as_graph(grid: &Machine) -> Machine {
    let topology = &grid.topology;
    let kind = |link: LinkId| LinkKind {
        capacity: Capacity::BytesPerSecond(1.0 / grid.seconds_per_byte(link)),
        latency: Some(grid.latency(link)),
        ..LinkKind::of_class(0)
    };
    let links = (0..topology.link_numbers()).map(LinkId).filter_map(|link| {
        let ends = topology.link(link)?;
        Some((ends.from, ends.to, kind(link)))
    });
    let listed = ListedGraph {
        form: format!("graph of {}", grid.name),
        nodes: topology.nodes(),
        classes: vec!["link".to_owned()],
        links: links.collect(),
        ..ListedGraph::default()
    };
    let mut graph = Machine::of(Arc::new(listed.with_shortest_routes().unwrap()));
    graph.set_ports(grid.ports);
    graph
}

/// A grid and the graph of its links are one network: schedules of either cost at least the bounds of both.
#[test]
fn no_bound_of_a_graph_or_of_its_grid_exceeds_a_schedule_of_the_other() {
    let mut random = fastrand::Rng::with_seed(51);
    for case in 0..40 {
        let dimensions = random.usize(1..4);
        let sides: Vec<u32> =
            (0..dimensions).map(|_| random.u32(2..[9, 5, 4][dimensions - 1])).collect();
        let wrap: Vec<bool> = sides.iter().map(|_| random.bool()).collect();
        let mut grid = Machine::of(Arc::new(Grid::new(&sides, &wrap).unwrap()));
        let mut each = |least: f64| {
            PerClass::each(
                &(0..dimensions)
                    .map(|_| least * random.f64().mul_add(9.0, 1.0))
                    .collect::<Vec<_>>(),
            )
        };
        (grid.timing.per_byte, grid.timing.per_hop) = (each(1e-10), each(1e-8));
        grid.set_ports(random.u32(1..2 * dimensions as u32 + 1));
        let graph = as_graph(&grid);
        for machine in [&grid, &graph] {
            for (algorithm, problem, setting) in serving(machine, 4096).into_iter().step_by(4) {
                let name = &algorithm.info().name;
                let schedule = schedule_of(machine, &problem, name, &setting).unwrap();
                let counts = count(&schedule, machine, None, MEMORY).unwrap();
                let place = format!("case {case}: {name} {setting:?} on {}", machine.name);
                for of in [&grid, &graph] {
                    let (time, bound) =
                        (counts.time.total(), best_bounds(&problem, of, None).seconds);
                    assert!(
                        time >= bound * (1.0 - 1e-7),
                        "{place}: {time} s, {bound} s of {}",
                        of.name
                    );
                }
            }
        }
        // What enters a rank passes its links.
        let problem = on(&graph, Collective::AllGather, 4096);
        let mut into = vec![0.0; graph.ranks() as usize];
        for link in (0..graph.topology.links()).map(LinkId) {
            into[graph.topology.link(link).unwrap().to as usize] +=
                1.0 / graph.seconds_per_byte(link);
        }
        let least = into.iter().copied().fold(f64::INFINITY, f64::min);
        let best = best_bounds(&problem, &graph, None);
        let own = f64::from(graph.ranks() - 1) * 4096.0 / least;
        assert!(best.seconds >= own * (1.0 - 1e-7), "case {case}: {} s, {own} s", best.seconds);
    }
}

/// The mesh of a file and the mesh of a short form have one bound of an all-gather.
#[test]
fn a_mesh_has_one_bound_as_graph_and_as_grid() {
    for ports in 1..=4 {
        let mut graph = machine(&input("m3x3.csv")).unwrap();
        let mut mesh = Machine::of(spec::parse_short_form("mesh:3x3").unwrap());
        graph.set_ports(ports);
        mesh.set_ports(ports);
        let [graph, mesh] = [graph, mesh]
            .map(|machine| best_bounds(&on(&machine, Collective::AllGather, 4096), &machine, None));
        assert_eq!(
            (graph.steps, graph.link_blocks),
            (mesh.steps, mesh.link_blocks),
            "{ports} ports"
        );
        assert!((graph.seconds - mesh.seconds).abs() < 1e-12, "{ports} ports: {graph:?} {mesh:?}");
    }
}

/// The nodes of a group send to different groups, and those of a router to groups of different routers.
#[test]
fn a_global_link_of_a_dragonfly_has_one_message_of_direct_spread() {
    let fly = machine("dragonfly:2,4,2").unwrap();
    let schedule = schedule_of(
        &fly,
        &on(&fly, Collective::AllToAll, 1),
        "direct-spread",
        &Parameters::default(),
    );
    let (schedule, mut does, mut route) = (schedule.unwrap(), Step::default(), Route::default());
    let classes = fly.topology.link_classes();
    for step in 0..schedule.rule().steps() {
        let mut taken = HashSet::new();
        for rank in (0..fly.ranks()).map(Rank) {
            schedule.rule().step(rank, step, &mut does);
            for send in &does.sends {
                let route = send.route_from(rank, &*fly.topology, &mut route).clone();
                fly.topology.for_each_link(rank, &route, &mut |link| {
                    let kind = fly.topology.link_kinds()[fly.topology.link_kind(link)];
                    let is_global = classes[kind.class as usize] == "global";
                    assert!(!is_global || taken.insert(link), "step {step}, {link:?}");
                });
            }
        }
        assert!(!taken.is_empty(), "step {step}");
    }
}
