//! No algorithm lists a schedule twice.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use common::{algorithms, find, problem, with_ports};
use rayon::prelude::*;
use topocoll::{Algorithm, Collective, Parameters, Rank, Request, Schedule, Step, machine};

const MACHINES: [(&str, u32); 30] = [
    ("torus:8", 1),
    ("torus:12", 2),
    ("mesh:9", 1),
    ("torus:4x4", 1),
    ("torus:4x4", 4),
    ("torus:4x8", 1),
    ("torus:4x8", 2),
    ("torus:6x6", 1),
    ("torus:5x7", 1),
    ("torus:8x8", 1),
    ("torus:8x8", 2),
    ("torus:8x8", 4),
    ("torus:8x12", 1),
    ("torus:12x12", 1),
    ("torus:2x4", 1),
    ("torus:1x8x4", 1),
    ("torus:4x4x4", 1),
    ("torus:4x4x4", 3),
    ("torus:2x4x8", 1),
    ("torus:2x2x2x4", 1),
    ("mesh:4x4", 1),
    ("mesh:8x8", 1),
    ("mesh:6x4", 4),
    ("grid:8~x4", 1),
    ("full:9", 1),
    ("full:12", 3),
    ("cluster:4*3", 1),
    ("cluster:3,2,1", 2),
    ("torus:4x4*2", 1),
    ("twisted-torus:2x4", 2),
];

/// What all ranks do and hold, in some bits.
fn bits(schedule: &Schedule) -> u64 {
    let (rule, mut bits, mut step) = (schedule.rule(), DefaultHasher::new(), Step::default());
    let mut layout = Vec::new();
    for rank in (0..schedule.problem.ranks).map(Rank) {
        for number in 0..rule.steps() {
            rule.step(rank, number, &mut step);
            format!("{step:?}").hash(&mut bits);
        }
        rule.initial_layout(rank, &mut layout);
        format!("{layout:?}").hash(&mut bits);
    }
    bits.finish()
}

#[test]
fn candidates_are_different_schedules() {
    MACHINES.into_par_iter().for_each(|(text, ports)| {
        let machine = with_ports(text, ports);
        for operation in [Collective::AllToAll, Collective::AllGather] {
            let problem = problem(&machine, operation, 12);
            let request = Request::new(&problem, &*machine.topology);
            // Two searches may find the same, and so may two exchanges between nodes.
            let by_rule = |algorithm: &&dyn Algorithm| {
                let searched = request.search(*algorithm, &Parameters::new()).is_some();
                !searched && !algorithm.info().name.starts_with("node-aware")
            };
            for algorithm in algorithms().filter(by_rule) {
                let mut known = HashMap::new();
                for solution in request.solutions(algorithm) {
                    let name = &algorithm.info().name;
                    let costs = (solution.claims.steps, solution.claims.bytes);
                    let of_costs: &mut Vec<Schedule> = known.entry(costs).or_default();
                    let setting = &solution.schedule.origin.parameters;
                    for other in &*of_costs {
                        let given = &other.origin.parameters;
                        let differ = bits(other) != bits(&solution.schedule);
                        assert!(differ, "{name} on {text}: {given:?} and {setting:?}");
                    }
                    of_costs.push(solution.schedule);
                }
            }
        }
    });
}

/// Of an exchange between nodes some settings are listed: none is beaten by another in steps and bytes.
#[test]
fn exchanges_between_nodes_are_listed_with_a_front_of_four_settings_at_most() {
    let machine = machine("torus:8x8*4").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 12);
    let request = Request::new(&problem, &*machine.topology);
    let mut fronts: HashMap<_, Vec<(u64, u128)>> = HashMap::new();
    for solution in request.solutions(find("node-aware").unwrap()) {
        let parameters = &solution.schedule.origin.parameters;
        let [between, lanes, turns] =
            ["between", "lanes", "turns"].map(|key| parameters.get(key).cloned());
        // Whole blocks of nodes take turns.
        if turns.is_some() && solution.claims.contention_free {
            let costs = (solution.claims.steps, solution.claims.bytes);
            fronts.entry((between, lanes)).or_default().push(costs);
        }
    }
    for (which, front) in &mut fronts {
        front.sort_unstable();
        let is_front = front.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[1].1 < pair[0].1);
        assert!(is_front && front.len() <= 4, "{which:?}: {front:?}");
    }
    assert!(fronts.values().any(|front| front.len() > 2), "{fronts:?}");
}
