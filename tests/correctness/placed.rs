//! Grids on the nodes of other grids, and ranks on nodes in any order: what they are, and schedules, claims and bounds
//! on them.

use common::{
    Case, MEMORY, check_certificate, check_delivery, check_promises, problem, reach, routers, run,
    schedule_of, serving,
};
use proptest::prelude::*;
use topocoll::contention::{Job, Placed, Scheduled, in_seconds};
use topocoll::spec::with_placement;
use topocoll::{
    Collective, Graph, Grid, LinkId, Machine, Method, Ports, Rank, Route, Schedule, Shape,
    Topology, best_bounds, count, machine,
};

/// The most messages on a link of each class in a step of any two ranks (from, to).
fn busiest(topology: &dyn Topology, step: impl Iterator<Item = (u32, u32)>) -> Vec<u64> {
    let mut loads = vec![0; topology.link_numbers() as usize];
    let mut route = Route::default();
    for (from, to) in step {
        topology.route(Rank(from), Rank(to), &mut route);
        topology.for_each_link(Rank(from), &route, &mut |link| loads[link.0 as usize] += 1);
    }
    let mut most = vec![0; topology.link_classes().len()];
    for (number, &load) in (0..).zip(&loads) {
        if let Some(link) = topology.link(LinkId(number)) {
            most[link.class as usize] = load.max(most[link.class as usize]);
        }
    }
    most
}

/// 64x64 on two rings of 64, each on sides of 16, 2 and 2. The loads are those of another program that
/// adds up routes in dimension order over coordinates.
#[test]
fn loads_of_64x64_on_two_rings_of_three_sides_are_known() {
    let machine = machine("torus:64x64@16x2x2,16x2x2").unwrap();
    let topology = &*machine.topology;
    let name = |rank| topology.vertex_name(rank);
    assert_eq!([1, 63, 64].map(name), ["(0,0,0,1,0,0)", "(0,0,0,0,0,1)", "(1,0,0,0,0,0)"]);
    for (by, known) in [
        (1, [1, 1, 1, 1, 1, 1]),
        (2, [1, 1, 1, 2, 1, 1]),
        (7, [1, 1, 1, 7, 1, 1]),
        (8, [1, 1, 1, 8, 1, 1]),
        (32, [1, 1, 1, 0, 1, 1]),
        (63, [1, 1, 1, 1, 1, 1]),
        (64, [1, 1, 1, 0, 0, 0]),
        (65, [2, 1, 1, 1, 1, 1]),
        (100, [2, 1, 1, 4, 2, 1]),
        (1000, [8, 1, 1, 8, 2, 1]),
        (1024, [8, 1, 1, 0, 0, 0]),
        (2048, [0, 1, 1, 0, 0, 0]),
        (4095, [1, 1, 1, 1, 1, 1]),
    ] {
        let step = (0..4096).map(|rank| (rank, (rank + by) % 4096));
        assert_eq!(busiest(topology, step), known, "{by}");
    }
    let Shape::Graph(graph) = topology.shape() else { panic!("a graph") };
    let grid = graph.on_grid().unwrap().grid;
    let all: Vec<_> = (0..6).map(|u| grid.routed_load(u)).collect();
    assert_eq!(all, [16384, 2048, 2048, 16384, 2048, 2048]);
    // A torus of 64x64 would carry 32,768.
    let problem = problem(&machine, Collective::AllToAll, 1);
    assert_eq!(best_bounds(&problem, &machine, None).link_blocks, 16384.0);
}

/// 4 x 4 x 4 units of 12 nodes. Lines of 4 have 3 links each way, sides of 2 one, rings of 3 three.
#[test]
fn tofu_has_ten_links_a_node() {
    let tofu = machine("tofu:4x4x4").unwrap().topology;
    let along_x = 2 * 3 * 768 / 4;
    assert_eq!((tofu.ranks(), tofu.links()), (768, 3 * along_x + 768 + 2 * 768 + 768));
    assert_eq!(tofu.short_form(), "grid:4x4x4x2x3~x2");
    let wrapped = machine("tofu:4~x4~x4~").unwrap().topology;
    assert_eq!((wrapped.links(), wrapped.most_links_out()), (10 * 768, 10));
    // X and A, Y and B, Z and C are a side each.
    for (job, by_hand) in [
        ("torus:8x12x8@tofu:4x4x4", "torus:8x12x8@4x2,4x3~,4x2"),
        ("torus:96x8@tofu:4x4x4", "torus:96x8@4x2x4x3~,4x2"),
        ("torus:768@tofu:4x4x4", "torus:768@4x2x4x3~x4x2"),
    ] {
        let [job, by_hand] = [job, by_hand].map(|text| machine(text).unwrap().topology);
        assert_eq!((job.ranks(), job.links()), (768, tofu.links()));
        for node in 0..768 {
            assert_eq!(job.vertex_name(node), by_hand.vertex_name(node));
        }
    }
}

/// Ranks that are neighbours on the logical grid are neighbours.
fn check_walks(machine: &Machine) {
    let topology = &*machine.topology;
    let Shape::Grid(logical) = topology.logical().unwrap().shape() else { panic!("a grid") };
    let mut route = Route::default();
    for link in (0..logical.link_numbers()).filter_map(|link| logical.link(LinkId(link))) {
        topology.route(Rank(link.from), Rank(link.to), &mut route);
        assert_eq!(route.hops(), 1, "{}: {} to {}", machine.name, link.from, link.to);
    }
}

#[test]
fn a_placement_on_its_own_nodes_is_the_grid() {
    let same = machine("torus:4x6@4~,6~").unwrap();
    assert!(matches!(same.topology.shape(), Shape::Grid(_)));
    assert_eq!((same.topology.short_form(), same.name), ("torus:4x6".into(), "torus:4x6".into()));
    for text in
        ["torus:8x8@4x2,4x2", "grid:8~x2@2x4,2*2", "torus:8x9x4@tofu:4x3x2", "torus:4x3@simgrid"]
    {
        assert_eq!(machine(text).unwrap().topology.short_form(), text);
    }
    // All that is counted, by the other way through the code.
    for text in ["torus:4x6", "mesh:3x4x2", "grid:5~x4"] {
        let whole = machine(text).unwrap();
        let Shape::Grid(grid) = whole.topology.shape() else { panic!("a grid") };
        let own: Vec<u32> = (0..grid.ranks()).collect();
        let placed = Graph::placed("placed".to_owned(), grid, grid, &own).unwrap();
        let placed = whole.on(std::sync::Arc::new(placed));
        for (algorithm, problem, setting) in serving(&placed, 3) {
            let case = Case::solve(&placed, algorithm, &problem, &setting).unwrap();
            let counts = |machine| count(case.schedule(), machine, None, MEMORY).unwrap();
            let [own, counts] = [counts(&whole), counts(&placed)];
            assert_eq!(format!("{own:?}"), format!("{counts:?}"), "{}", case.place);
        }
    }
}

/// A grid on the sides of another one, perhaps with its ranks in another order.
fn placed() -> impl Strategy<Value = Machine> {
    let side = (1u32..5, any::<bool>());
    let lists = prop::collection::vec((prop::collection::vec(side, 1..4), any::<bool>()), 1..3);
    (lists, prop::option::of(any::<u64>())).prop_filter_map("too large", |(lists, order)| {
        let (mut logical, mut axes) = (Vec::new(), Vec::new());
        for (sides, wraps) in lists {
            let length: u32 = sides.iter().map(|(side, _)| side).product();
            let list: Vec<_> = (sides.iter())
                .map(|(side, wraps)| format!("{side}{}", if *wraps { "~" } else { "" }))
                .collect();
            let list = list.join("x");
            let ring = format!("{length}~");
            let has_ring = wraps && machine(&format!("grid:{ring}@{list}")).is_ok();
            logical.push(if has_ring { ring } else { length.to_string() });
            axes.push(list);
        }
        let text = format!("grid:{}@{}", logical.join("x"), axes.join(","));
        let whole = machine(&text).ok().filter(|whole| (2..=36).contains(&whole.ranks()))?;
        let Some(seed) = order else { return Some(whole) };
        let mut nodes: Vec<Rank> = (0..whole.ranks()).map(Rank).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut nodes);
        Some(with_placement(&whole, &nodes).unwrap())
    })
}

/// Logical neighbours share a link. Every algorithm delivers as claimed and beats no bound, also in the
/// simulations, and another reader of its proof finds the same counts.
fn check_served(mut machine: Machine, ports: u32) {
    machine.set_ports(ports);
    let listed = machine.topology.short_form().ends_with(" placed");
    if machine.topology.logical().is_some() && !listed {
        check_walks(&machine);
    }
    for (algorithm, problem, setting) in serving(&machine, 3) {
        check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
        let case = Case::solve(&machine, algorithm, &problem, &setting).unwrap();
        let counts = check_delivery(&case, Method::Replay);
        if counts.messages < 1000 {
            check_certificate(&case, &counts);
        }
        if counts.messages < 1000 && machine.topology.logical().is_some() {
            check_loads(&machine, case.schedule(), counts.link_contention);
        }
    }
    let schedule = direct(&machine);
    let best = best_bounds(&schedule.problem, &machine, None);
    let least = best.link_blocks * 64.0 * machine.least_per_byte();
    for model in ["fluid", "wormhole", "flit"] {
        let traffic = Scheduled::new(&schedule, &machine);
        let took = in_seconds(run(&traffic, &machine, model, routers(8)).time);
        assert!(took >= least * (1.0 - 1e-9), "{model}: {took} s, bound {least} s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: reach(10, 60), ..ProptestConfig::default() })]

    #[test]
    fn random_placements_are_served_as_claimed(whole in placed(), ports in 1u32..5) {
        check_served(whole, ports);
    }
}

/// Of even and odd sides, with other directions at half a ring.
#[test]
fn tori_with_the_routes_of_simgrid_are_served_as_claimed() {
    for text in ["torus:4x3@simgrid", "torus:6@simgrid", "torus:2x3x2@simgrid"] {
        check_served(machine(text).unwrap(), 2);
    }
}

/// Nodes of several ranks, ranks on them in a random order, and the same node by node.
fn ranks_on_nodes(random: &mut fastrand::Rng) -> [Machine; 2] {
    let network = ["full:3", "torus:2x3", "mesh:4", "fat-tree:2,2"][random.usize(..4)];
    let count = machine(network).unwrap().ranks();
    let sizes: Vec<u32> = match random.bool() {
        true => vec![random.u32(2..4); count as usize],
        false => std::iter::once(2).chain((1..count).map(|_| random.u32(1..4))).collect(),
    };
    let listed: Vec<_> = sizes.iter().map(u32::to_string).collect();
    let mut whole = machine(&format!("{network}*{}", listed.join(","))).unwrap();
    let ports = [(1, 1), (1, u32::MAX), (2, 3), (u32::MAX, u32::MAX)][random.usize(..4)];
    whole.set_ports(Ports { rank: ports.0, node: ports.1 });
    whole.timing.injection.node = 3e-9;
    let nodes = (0..).zip(&sizes).flat_map(|(node, &size)| (0..size).map(move |_| Rank(node)));
    let mut nodes: Vec<Rank> = nodes.collect();
    while nodes.is_sorted() {
        random.shuffle(&mut nodes);
    }
    let placed = with_placement(&whole, &nodes).unwrap();
    assert!((0..).zip(&nodes).all(|(rank, node)| placed.topology.node_of(Rank(rank)) == node.0));
    [placed, whole]
}

/// Every algorithm delivers as claimed and beats no bound. One for nodes costs as much as on ranks that are numbered node by
/// node; any other has the ranks of the list, whose nodes send what is added up here, message by message.
#[test]
fn ranks_in_any_order_are_served_as_claimed() {
    let mut random = fastrand::Rng::with_seed(57);
    let (mut of_nodes, mut of_ranks) = (0, 0);
    for _ in 0..reach(12, 200) {
        let [placed, whole] = ranks_on_nodes(&mut random);
        for (algorithm, problem, setting) in serving(&placed, 3) {
            check_promises(&placed, algorithm, &problem, &setting, Method::Replay);
            let case = Case::solve(&placed, algorithm, &problem, &setting).unwrap();
            let counts = |schedule, machine| count(schedule, machine, None, MEMORY).unwrap();
            let found = counts(case.schedule(), &placed);
            if algorithm.info().by_node {
                let other = Case::solve(&whole, algorithm, &problem, &setting).unwrap();
                let other = counts(other.schedule(), &whole);
                assert_eq!(format!("{found:?}"), format!("{other:?}"), "{}", case.place);
                of_nodes += 1;
                continue;
            }
            let rule = case.schedule().rule();
            let mut most_bytes = 0;
            for step in 0..rule.steps() {
                let mut sent = vec![[0; 2]; placed.topology.nodes() as usize];
                for rank in (0..placed.ranks()).map(Rank) {
                    let mut does = topocoll::Step::default();
                    rule.step(rank, step, &mut does);
                    for send in &does.sends {
                        let [from, to] = [rank, send.peer].map(|end| placed.topology.node_of(end));
                        if from != to {
                            sent[from as usize][0] += send.slots.len() * 3;
                            sent[to as usize][1] += send.slots.len() * 3;
                        }
                    }
                }
                most_bytes += sent.into_iter().flatten().max().unwrap();
            }
            let mut slow = placed.clone();
            slow.timing.per_byte = topocoll::PerClass::uniform(0.0);
            let took = counts(case.schedule(), &slow).time.transmission;
            let expected = most_bytes as f64 * 3e-9;
            assert!((took - expected).abs() <= expected * 1e-9, "{}: {took}", case.place);
            of_ranks += 1;
        }
        // The same job on the machine's own numbers.
        let mut free: Vec<u32> = (0..whole.ranks()).rev().collect();
        let on_node = |rank: u32| placed.topology.node_of(Rank(rank));
        let own = (0..placed.ranks()).map(|rank| {
            let is_there = |own: &u32| whole.topology.node_of(Rank(*own)) == on_node(rank);
            Rank(free.remove(free.iter().rposition(is_there).unwrap()))
        });
        let nodes = own.collect();
        let [placed, whole] = [placed, whole].map(|mut machine| {
            machine.set_ports(Ports { rank: 1, node: u32::MAX });
            machine
        });
        let schedule = direct(&placed);
        let traffic = Scheduled::new(&schedule, &placed);
        let job = Job { schedule: schedule.clone(), nodes };
        let jobs = Placed::new(&whole, vec![job]).unwrap();
        let one = in_seconds(run(&traffic, &placed, "fluid", routers(8)).time);
        let other = in_seconds(run(&jobs, &whole, "fluid", routers(8)).time);
        let form = placed.topology.short_form();
        assert!((one - other).abs() <= one * 1e-6, "{form}: {one} s, {other} s");
    }
    assert!(of_nodes > 20 && of_ranks > 100, "{of_nodes} {of_ranks}");
}

/// Two nodes of two ranks, by hand: with ranks 0 and 1 on a node, the steps of `direct` and of `bruck` with the
/// largest radix send 1, 2 and 1 blocks from each node, in turn 2, 0 and 2.
#[test]
fn ranks_in_turn_share_the_ports_of_their_nodes_in_other_steps() {
    let mut whole = machine("cluster:2*2").unwrap();
    whole.set_ports(Ports { rank: 1, node: u32::MAX });
    whole.timing.injection = topocoll::Injection { rank: 1e-9, node: 1e-9 };
    let placed = with_placement(&whole, &[0, 1, 0, 1].map(Rank)).unwrap();
    assert_eq!(placed.topology.short_form(), "cluster:2*2 placed");
    let problem = problem(&whole, Collective::AllToAll, 1000);
    let setting = [("radix".to_owned(), 4u64.into())].into();
    for (name, setting) in [("direct", Default::default()), ("bruck", setting)] {
        let took = |machine: &Machine| {
            let schedule = schedule_of(machine, &problem, name, &setting).unwrap();
            count(&schedule, machine, None, MEMORY).unwrap().time.transmission * 1e6
        };
        assert!((took(&whole) - 4.0).abs() < 1e-6, "{name}: {}", took(&whole));
        assert!((took(&placed) - 5.0).abs() < 1e-6, "{name}: {}", took(&placed));
    }
}

fn direct(machine: &Machine) -> Schedule {
    let problem = problem(machine, Collective::AllToAll, 64);
    schedule_of(machine, &problem, "direct", &Default::default()).unwrap()
}

/// The most messages on a link, message by message.
fn check_loads(machine: &Machine, schedule: &Schedule, found: u64) {
    let mut most = 0;
    for step in 0..schedule.rule().steps() {
        let mut sent = Vec::new();
        for rank in (0..machine.ranks()).map(Rank) {
            let mut does = topocoll::Step::default();
            schedule.rule().step(rank, step, &mut does);
            // Routes on the logical grid are left out.
            assert!(does.sends.iter().all(|send| send.route.is_empty()), "{}", machine.name);
            sent.extend(does.sends.iter().map(|send| (rank.0, send.peer.0)));
        }
        most = busiest(&*machine.topology, sent.into_iter()).into_iter().fold(most, u64::max);
    }
    assert_eq!(most, found, "{}", machine.name);
}

#[test]
fn wrong_axes_and_placements_are_refused() {
    let refused = |text: &str| machine(text).unwrap_err().to_string();
    let no_ring = "it wraps, and its axes have no ring: they have an even number of nodes and two sides longer \
                   than 1, or the last of these wraps (`~`)";
    for (text, told) in [
        ("torus:9x4@3x3,4~", format!("side 0 of torus:9x4: {no_ring}")),
        ("torus:4x8@4~,8", format!("side 1 of torus:4x8: {no_ring}")),
        ("torus:8x8@4x2", "side 1 of torus:8x8: its axes have 1 nodes in place of 8".to_owned()),
        ("torus:8x8@4x4,2x2", "side 0 of torus:8x8: its axes have 16 nodes in place of 8".to_owned()),
        ("mesh:4x4@4,4,4", "more axes than mesh:4x4 has nodes for".to_owned()),
        (
            "torus:8x8@0x8,8~",
            "axis `0x8`: side 0 is `0`, not a whole number from 1 to 4294967295".to_owned(),
        ),
        (
            "mesh:65536x65535@65536,65535",
            "4294901760 nodes: a grid on another one has at most 1048576".to_owned(),
        ),
        (
            "torus:4x4@4294967295x4294967295,4~",
            "side 0 of torus:4x4: its axes have 18446744065119617025 nodes in place of 4".to_owned(),
        ),
        ("grid:4x4~@simgrid", "grid:4x4~ is not a torus, as those of SimGrid are".to_owned()),
        ("torus:8x9@tofu:4x3", "2 sides of units: Tofu has X, Y and Z".to_owned()),
        (
            "torus:8x8@4x2,4x2/0,0",
            "`0,0`: torus:8x8@4x2,4x2 cannot have failed nodes or links: only tori, meshes and grids can"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(text), format!("`{text}`: {told}"));
    }
    let placed = |text: &str, nodes: &[u32]| {
        let nodes: Vec<Rank> = nodes.iter().copied().map(Rank).collect();
        with_placement(&machine(text).unwrap(), &nodes).map(|of| of.topology.short_form())
    };
    assert_eq!(placed("mesh:3", &[1, 0, 2]).unwrap(), "mesh:3 placed");
    assert_eq!(placed("torus:8@4x2*2", &[0, 1, 2, 3, 4, 5, 7, 6]).unwrap(), "torus:8@4x2 placed*2");
    for (text, nodes, told) in [
        (
            "mesh:3",
            &[0, 1][..],
            "2 nodes for the 3 ranks of mesh:3 on the 3 nodes of mesh:3: each node has one rank",
        ),
        ("mesh:3", &[0, 1, 3], "rank 2 on node 3, the last node is 2"),
        ("mesh:3", &[0, 1, 1], "rank 2 on node 1, which has rank 1"),
        ("full:3", &[0, 1, 2], "a placement requires a grid, and full:3 is not a grid"),
        ("cluster:2*2", &[0, 1, 1, 1], "1 ranks are on node 0, which holds 2"),
        ("torus:4*2", &[0, 1, 1, 2, 0, 2, 3, 4], "rank 7 on node 4: the last node is 3"),
    ] {
        assert_eq!(placed(text, nodes).unwrap_err().message, told);
    }
}

/// Balanced ties are a rule of each pair of nodes; routes are followed link by link.
#[test]
fn a_placement_takes_no_balanced_ties() {
    let balanced = Grid::torus(&[4]).unwrap().with_ties(topocoll::Ties::Balanced);
    let refused = Graph::placed(String::new(), &balanced, &balanced, &[0, 1, 3, 2]).unwrap_err();
    assert_eq!(refused.message, "a placement requires ties that are not balanced");
}
