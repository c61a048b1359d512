//! The estimated cost of a simulation is at least what is simulated, and not far above it.

use common::{MEMORY, machines, problem, schedule_of, serving};
use topocoll::contention::{
    ContentionModel, Estimate, MAX_VCS, MODELS, Ranks, Request, Scheduled, Settings, estimate,
    simulate,
};
use topocoll::{Collective, Machine, Schedule, machine};

fn estimated(machine: &Machine, schedule: &Schedule, model: &ContentionModel) -> Estimate {
    estimate(schedule, machine, model, &Settings::default(), 1 << 20).unwrap()
}

/// The messages of the ranks that were simulated.
fn simulated(machine: &Machine, schedule: &Schedule, model: &ContentionModel) -> (u128, Ranks) {
    let traffic = Scheduled::new(schedule, machine);
    let mut request = Request::new(&traffic, machine, model, MEMORY);
    request.settings.vcs = MAX_VCS;
    let found = simulate(&request).unwrap();
    let equivalent = machine.ranks() / estimated(machine, schedule, model).ranks;
    (u128::from(found.messages / u64::from(equivalent)), found.ranks)
}

#[test]
fn no_simulation_has_more_messages_than_estimated() {
    for machine in machines().into_iter().filter(|machine| machine.ranks() <= 64) {
        for (algorithm, problem, setting) in serving(&machine, 64) {
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            for model in MODELS.iter().filter(|model| model.name != "flit") {
                let found = estimated(&machine, &schedule, model);
                let (messages, ranks) = simulated(&machine, &schedule, model);
                let place = format!("{name} {setting:?} on {}, {}", machine.name, model.name);
                assert!(messages <= found.messages, "{place}: {messages}, {found:?}");
                assert_eq!(ranks == Ranks::Every, found.ranks == machine.ranks(), "{place}");
            }
        }
    }
}

#[test]
fn schedules_of_full_steps_have_the_messages_estimated() {
    for (text, algorithm) in
        [("torus:16x16", "direct"), ("torus:8x8", "pairwise-xor"), ("torus:16x16", "suh-shin")]
    {
        let machine = machine(text).unwrap();
        let problem = problem(&machine, Collective::AllToAll, 64);
        let schedule = schedule_of(&machine, &problem, algorithm, &Default::default()).unwrap();
        for model in MODELS.iter().filter(|model| model.name != "flit") {
            let found = estimated(&machine, &schedule, model);
            let (messages, _) = simulated(&machine, &schedule, model);
            assert_eq!(messages, found.messages, "{algorithm} on {text}, {}", model.name);
            assert!(found.seconds > 0.0 && found.seconds < 2.0, "{algorithm} on {text}: {found:?}");
        }
    }
}

/// Where every rank is simulated, more of them cost more.
#[test]
fn equivalent_ranks_cost_nothing_where_the_model_folds() {
    let fluid = MODELS.iter().find(|model| model.name == "fluid").unwrap();
    let wormhole = MODELS.iter().find(|model| model.name == "wormhole").unwrap();
    let machine = machine("torus:1024x1024").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    let schedule = schedule_of(&machine, &problem, "suh-shin", &Default::default()).unwrap();
    let [folded, every] = [fluid, wormhole].map(|model| estimated(&machine, &schedule, model));
    assert!(folded.ranks <= 16 && folded.seconds < 1.0, "{folded:?}");
    assert_eq!(every.ranks, machine.ranks());
    assert!(every.seconds > 1000.0, "{every:?}");
}
