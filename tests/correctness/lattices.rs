//! Twisted tori, and machines with failed nodes or links: schedules, claims and bounds on random ones.

use common::{MEMORY, check_promises, problem, reach, schedule_of, serving};
use microlp::{ComparisonOp, OptimizationDirection, Problem as Program};
use proptest::prelude::*;
use topocoll::{
    Collective, Graph, Machine, Method, PerClass, Rank, Shape, Topology, best_bounds, count,
    least_load, machine, verify,
};

/// Random machines are small enough for replay.
const RANKS: u32 = 72;

fn lattice(machine: &Machine) -> &Graph {
    let Shape::Graph(lattice) = machine.topology.shape() else { panic!("a lattice") };
    lattice
}

fn named(text: &str, ports: u32) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    machine
}

/// Link blocks of an algorithm's all-to-all over the lower bound.
fn over_the_bound(machine: &Machine, algorithm: &str) -> (f64, f64) {
    let problem = problem(machine, Collective::AllToAll, 1);
    let schedule = schedule_of(machine, &problem, algorithm, &Default::default()).unwrap();
    let counts = count(&schedule, machine, None, MEMORY).unwrap();
    let blocks = counts.in_blocks(counts.link_bytes);
    (blocks, blocks / best_bounds(&problem, machine, None).link_blocks)
}

/// A twisted torus of two or three sides.
fn twisted() -> impl Strategy<Value = String> {
    let sides = prop::collection::vec((1u32..6, 0u32..8), 1..3);
    (sides, 2u32..9, any::<bool>()).prop_filter_map("too large", |(sides, longest, twice)| {
        let mut text: Vec<_> = (sides.iter())
            .filter(|(side, _)| *side < longest)
            .map(|(side, shift)| format!("{side}+{}", shift % longest))
            .collect();
        if text.is_empty() {
            return None;
        }
        text.push(longest.to_string());
        if twice && text.len() < 3 {
            text.push(longest.to_string());
        }
        let text = format!("twisted-torus:{}", text.join("x"));
        machine(&text).ok().filter(|machine| machine.ranks() <= RANKS).map(|_| text)
    })
}

/// A connected grid or twisted torus with failed nodes or links.
fn faulty() -> impl Strategy<Value = String> {
    let sides = prop::collection::vec((1u32..7, any::<bool>()), 1..4).prop_map(|sides| {
        let mark = |(side, wraps): &(u32, bool)| format!("{side}{}", if *wraps { "~" } else { "" });
        format!("grid:{}", sides.iter().map(mark).collect::<Vec<_>>().join("x"))
    });
    let whole = prop_oneof![3 => sides, 1 => twisted()];
    let picks = prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..6);
    (whole, picks).prop_filter_map("in pieces, or nothing to lack", |(whole, picks)| {
        let base = machine(&whole).unwrap();
        let dimensions = base.topology.link_classes().len();
        let mut text = whole;
        for (pick, node) in picks {
            let at = pick.index(base.ranks() as usize * dimensions);
            let sides: Vec<u32> = match base.topology.shape() {
                Shape::Grid(grid) => grid.sides().to_vec(),
                _ => lattice(&base).lattice().unwrap().radix().sides().to_vec(),
            };
            let mut rest = at / dimensions;
            let mut place: Vec<String> = (sides.iter().rev())
                .map(|&side| {
                    let here = rest % side as usize;
                    rest /= side as usize;
                    here.to_string()
                })
                .collect();
            place.reverse();
            let fault = match node {
                true => format!("{text}/{}", place.join(",")),
                false => format!("{text}/{}+{}", place.join(","), at % dimensions),
            };
            // Left out: a repeated failure, a link that does not exist, or a failure that disconnects.
            if machine(&fault).is_ok() {
                text = fault;
            }
        }
        let found = machine(&text).unwrap();
        (text.contains('/') && found.ranks() <= RANKS).then_some(text)
    })
}

/// Every algorithm that applies delivers as claimed and beats no bound; the machine is written as it is
/// read.
fn check(text: &str, ports: u32) {
    let machine = named(text, ports);
    assert_eq!(
        named(&machine.topology.short_form(), ports).topology.short_form(),
        machine.topology.short_form()
    );
    let mut served = false;
    for (algorithm, problem, setting) in serving(&machine, 3) {
        check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
        served |= algorithm.info().name == "link-matchings";
    }
    assert!(served, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: reach(12, 40), ..ProptestConfig::default() })]

    #[test]
    fn random_twists_are_served_as_claimed(text in twisted(), ports in 1u32..8) {
        check(&text, ports);
    }

    #[test]
    fn random_failures_are_served_as_claimed(text in faulty(), ports in 1u32..8) {
        check(&text, ports);
    }

    #[test]
    fn no_route_takes_a_failed_link(text in faulty()) {
        let machine = machine(&text).unwrap();
        let lattice = lattice(&machine);
        let mut route = topocoll::Route::default();
        for from in (0..machine.ranks()).map(Rank) {
            for to in (0..machine.ranks()).map(Rank) {
                lattice.route(from, to, &mut route);
                prop_assert_eq!(lattice.follow(from, &route), Ok(to.0));
                prop_assert_eq!(route.hops(), u64::from(lattice.distance(from, to)));
                lattice.for_each_link(from, &route, &mut |link| {
                    assert!(lattice.link(link).is_some(), "{text}: {from} to {to}");
                });
            }
        }
    }
}

/// The least load of the busiest link, by a linear program over the flow of each source on each link.
fn exact_load(lattice: &Graph) -> f64 {
    let (ranks, dimensions) = (lattice.ranks(), lattice.link_classes().len());
    let mut program = Program::new(OptimizationDirection::Minimize);
    let most = program.add_var(1.0, (0.0, f64::INFINITY));
    let links: Vec<(Rank, Rank)> = (0..ranks)
        .map(Rank)
        .flat_map(|from| (0..dimensions).flat_map(move |u| [(from, u, 1), (from, u, -1)]))
        .filter_map(|(from, u, way)| Some((from, lattice.neighbour(from, u, way)?)))
        .collect();
    let mut carried = vec![Vec::new(); links.len()];
    for source in (0..ranks).map(Rank) {
        let own: Vec<_> =
            links.iter().map(|_| program.add_var(0.0, (0.0, f64::INFINITY))).collect();
        for at in (0..ranks).map(Rank) {
            let ends = links.iter().zip(&own);
            let terms: Vec<_> = ends
                .filter(|((from, to), _)| from == &at || to == &at)
                .map(|((_, to), &variable)| (variable, if to == &at { 1.0 } else { -1.0 }))
                .collect();
            let stays = if at == source { -f64::from(ranks - 1) } else { 1.0 };
            program.add_constraint(&terms[..], ComparisonOp::Eq, stays);
        }
        carried.iter_mut().zip(&own).for_each(|(carried, &variable)| carried.push((variable, 1.0)));
    }
    for mut terms in carried {
        terms.push((most, -1.0));
        program.add_constraint(&terms[..], ComparisonOp::Le, 0.0);
    }
    program.solve().unwrap().into_solution().unwrap().objective()
}

#[test]
fn the_bound_of_a_twisted_torus_is_exact() {
    for text in [
        "twisted-torus:2x4",
        "twisted-torus:3x4",
        "twisted-torus:2+3x6",
        "twisted-torus:1+3x9",
        "twisted-torus:2x2x4",
        "twisted-torus:2+1x3x3",
        "twisted-torus:3+0x6",
    ] {
        let machine = machine(text).unwrap();
        let (exact, found) = (exact_load(lattice(&machine)), least_load(lattice(&machine)));
        assert!((found - exact).abs() < 1e-6 * exact, "{text}: {found}, and {exact} exactly");
    }
}

#[test]
fn the_bound_of_a_machine_with_failures_is_exact() {
    for text in [
        "torus:4x4/1,1/0,0+0",
        "torus:3x5/2,2+1/0,0+1",
        "mesh:4x4/0,1/2,2+0",
        "mesh:2x6/0,3+1",
        "torus:8/3+0",
        "torus:2x2x3/0,0,0/1,1,1+2",
        "twisted-torus:2x4/0,0/1,1+1",
    ] {
        let machine = machine(text).unwrap();
        let (exact, found) = (exact_load(lattice(&machine)), least_load(lattice(&machine)));
        assert!(found <= exact * (1.0 + 1e-9), "{text}: {found} is above {exact}");
        assert!(found >= exact * (1.0 - 1e-6), "{text}: {found} is below {exact}");
    }
}

#[test]
fn twisting_gains_on_slices_twice_as_long_as_wide() {
    let bound = |text: &str| least_load(lattice(&machine(text).unwrap()));
    for (twisted, plain, gain) in [
        ("twisted-torus:4x4x8", "twisted-torus:4+0x4+0x8", 1.745),
        ("twisted-torus:8x8x16", "twisted-torus:8+0x8+0x16", 1.722),
        ("twisted-torus:4x8x8", "twisted-torus:4+0x8x8", 1.391),
    ] {
        let found = bound(plain) / bound(twisted);
        assert!((found - gain).abs() < 5e-4, "{twisted}: {found}");
    }
    let problem = problem(&machine("torus:4x4x8").unwrap(), Collective::AllToAll, 1);
    assert_eq!(best_bounds(&problem, &machine("torus:4x4x8").unwrap(), None).link_blocks, 128.0);
}

#[test]
fn the_bound_on_time_combines_links_and_the_longest_route() {
    for text in ["twisted-torus:4x8", "mesh:4x4/1,1", "torus:4x4x4/0,0,0+0"] {
        let mut machine = named(text, 4);
        let problem = problem(&machine, Collective::AllToAll, 7);
        let bound = least_load(lattice(&machine));
        machine.timing.startup = PerClass::uniform(0.0);
        machine.timing.per_hop = PerClass::uniform(0.0);
        machine.timing.per_byte = PerClass::uniform(2.0);
        // Where links are fewer than ports, or routes are long, links bound more than ports.
        assert_eq!(best_bounds(&problem, &machine, None).seconds, bound * 7.0 * 2.0, "{text}");
        machine.timing.per_byte = PerClass::uniform(0.0);
        machine.timing.per_hop = PerClass::uniform(3.0);
        let way = f64::from(lattice(&machine).diameter()) * 3.0;
        assert_eq!(best_bounds(&problem, &machine, None).seconds, way, "{text}");
    }
}

#[test]
fn a_cut_bounds_machines_too_large_for_the_link_search() {
    let bound = |text: &str| least_load(lattice(&machine(text).unwrap()));
    // Half of the other nodes, across the middle of the side that wraps, and of one that does not.
    assert!(bound("torus:32x32/0,0") >= 511.0 * 512.0 / 64.0);
    assert!(bound("mesh:32x32/0,0") >= 511.0 * 512.0 / 32.0);
    // Between two rows, one of which has a missing node.
    assert!(bound("mesh:16x16/3,4/9,9/12,2+1") >= 143.0 * 111.0 / 15.0);
}

#[test]
fn direct_offsets_come_close_to_the_bounds() {
    for (text, ports) in [
        ("twisted-torus:4x4x8", 6),
        ("twisted-torus:8x8x16", 6),
        ("twisted-torus:4x8x8", 6),
        ("twisted-torus:4x8", 4),
    ] {
        let (found, ratio) = over_the_bound(&named(text, ports), "direct-offsets");
        assert!(ratio <= 1.10, "{text}: {found} blocks, {ratio:.3} of the bound");
    }
}

#[test]
fn a_twisted_torus_is_verified_by_one_rank() {
    let machine = named("twisted-torus:4x4x8", 6);
    let problem = problem(&machine, Collective::AllToAll, 5);
    let schedule = schedule_of(&machine, &problem, "direct-offsets", &Default::default()).unwrap();
    let by_class = verify(&schedule, &machine, Some(Method::Classes), MEMORY).unwrap();
    let by_replay = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
    assert_eq!((by_class.classes, by_class.violation), (1, None));
    assert_eq!((by_replay.violation, by_replay.counts), (None, by_class.counts));
}
