//! One rank of each class gives the result of every rank, to the picosecond.

use common::{MEMORY, machines_and_ports, priced, schedule_of, serving, without_classes};
use topocoll::contention::{MODELS, Ranks, Request, Scheduled, Simulation, Sync, simulate};
use topocoll::{AnalysisError, Injection, Machine, Schedule, machine};

fn simulated(
    schedule: &Schedule,
    machine: &Machine,
    (model, sync): (&str, Sync),
    ranks: Option<Ranks>,
) -> Result<Simulation, AnalysisError> {
    let traffic = Scheduled::new(schedule, machine);
    let model = MODELS.iter().find(|known| known.name == model).unwrap();
    let mut request = Request::new(&traffic, machine, model, MEMORY);
    (request.sync, request.ranks) = (sync, ranks);
    simulate(&request)
}

/// Compares all results but the chain, which names other ranks, and the uses of links, which classes
/// do not have. Returns whether ranks are equivalent.
fn compare(schedule: &Schedule, machine: &Machine, sync: Sync, place: &str) -> bool {
    let of = |schedule, ranks| simulated(schedule, machine, ("fluid", sync), ranks);
    let by_classes = of(schedule, None).unwrap();
    // Neither the simulation nor the survey before it knows classes.
    let every = of(&without_classes(schedule), Some(Ranks::Every)).unwrap();
    let ends = [&by_classes, &every].map(|found| found.chain.last().map(|last| last.link.at));
    assert_eq!(ends[0], ends[1], "{place}");
    let folded = by_classes.ranks == Ranks::Classes;
    let mut expected = every;
    expected.chain.clone_from(&by_classes.chain);
    expected.chain_length = by_classes.chain_length;
    (expected.ranks, expected.classes) = (by_classes.ranks, by_classes.classes);
    if folded {
        expected.links.clear();
    }
    assert_eq!(by_classes, expected, "{place}");
    folded
}

pub(crate) fn compare_all(machine: &Machine, block: u64) -> [u32; 2] {
    let mut counts = [0; 2];
    for (algorithm, problem, setting) in serving(machine, block) {
        let name = &algorithm.info().name;
        let schedule = schedule_of(machine, &problem, name, &setting).unwrap();
        for sync in [Sync::Free, Sync::Barrier] {
            let place = format!("{name} {setting:?} on {}, {sync:?}", machine.name);
            counts[usize::from(compare(&schedule, machine, sync, &place))] += 1;
        }
    }
    counts
}

/// Values that differ between link classes, and limits of ranks and nodes.
pub(crate) fn valued(text: &str, ports: u32, limits: bool) -> Machine {
    let mut machine = priced(text, 300e-9, 7e-9);
    machine.set_ports(ports);
    if limits {
        machine.timing.injection = Injection { rank: 1.5e-9, node: 1e-9 };
    }
    machine
}

#[test]
fn classes_are_simulated_as_every_rank_is() {
    let mut folded = [0; 2];
    let small = machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 32);
    for machine in small {
        let counts = compare_all(&machine, 300);
        (folded[0], folded[1]) = (folded[0] + counts[0], folded[1] + counts[1]);
    }
    for (text, ports, limits) in [
        ("torus:4x4", 4, true),
        ("torus:6", 2, false),
        ("grid:4~x3", 2, true),
        ("torus:2x4*3", 2, true),
        ("torus:3x2*2", 1, false),
        ("twisted-torus:2x4", 1, true),
        ("twisted-torus:2x4*2", 2, true),
        ("full:9", 3, true),
        ("cluster:4*3", 2, true),
    ] {
        let counts = compare_all(&valued(text, ports, limits), 4000);
        (folded[0], folded[1]) = (folded[0] + counts[0], folded[1] + counts[1]);
    }
    assert!(folded[1] > folded[0] / 4, "{folded:?}");
}

#[test]
#[ignore = "minutes"]
fn classes_are_simulated_as_every_rank_is_up_to_512_ranks() {
    for machine in machines_and_ports().into_iter().filter(|machine| machine.ranks() <= 512) {
        compare_all(&machine, 300);
    }
    for text in ["torus:16x16", "torus:8x8x8", "torus:20x20", "mesh:16x16", "torus:8x8*4"] {
        compare_all(&valued(text, 1, false), 4096);
    }
}

#[test]
fn equivalent_ranks_are_simulated_once() {
    let torus = machine("torus:16x16").unwrap();
    let [schedule, xor] = ["direct", "pairwise-xor"].map(|name| {
        let problem = topocoll::Problem::new(topocoll::Collective::AllToAll, 256, 1, 64).unwrap();
        schedule_of(&torus, &problem, name, &Default::default()).unwrap()
    });
    let ranks = |schedule, model, ranks| {
        simulated(schedule, &torus, (model, Sync::Free), ranks).map(|found| found.ranks)
    };
    assert_eq!(ranks(&schedule, "fluid", None), Ok(Ranks::Classes));
    assert_eq!(ranks(&schedule, "fluid", Some(Ranks::Every)), Ok(Ranks::Every));
    assert_eq!(ranks(&xor, "fluid", Some(Ranks::Classes)), Ok(Ranks::Every));
    assert_eq!(ranks(&schedule, "wormhole", None), Ok(Ranks::Every));
    for model in ["wormhole", "flit"] {
        let refused = ranks(&schedule, model, Some(Ranks::Classes)).unwrap_err().to_string();
        assert!(refused.contains(model) && refused.contains("dateline"), "{refused}");
    }
}

/// More ranks than any list of them could hold: the links of a period are simulated.
#[test]
fn a_billion_ranks_are_simulated_by_their_period() {
    let torus = machine("torus:32768x32768").unwrap();
    let problem =
        topocoll::Problem::new(topocoll::Collective::AllToAll, torus.ranks(), 1, 64).unwrap();
    let schedule = schedule_of(&torus, &problem, "suh-shin", &Default::default()).unwrap();
    let found = simulated(&schedule, &torus, ("fluid", Sync::Free), None).unwrap();
    let predicted = topocoll::count(&schedule, &torus, None, MEMORY).unwrap().time.total();
    let seconds = topocoll::contention::in_seconds(found.time);
    assert!((seconds / predicted - 1.0).abs() < 1e-6, "{seconds} s, {predicted} s");
}
