//! Choices and points are simulated within a budget, as `simulate` simulates each.

use common::{exchange, problem, select, sweep};
use topocoll::contention::{ContentionModel, MODELS};
use topocoll::{
    Budget, Choice, Collective, Exchange, Machine, NotSimulated, Problem, Progress, machine,
};

use crate::free_running::free;

pub(crate) fn model(name: &str) -> &'static ContentionModel {
    MODELS.iter().find(|model| model.name == name).unwrap()
}

fn torus() -> (Machine, Problem) {
    let machine = machine("torus:8x8").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    (machine, problem)
}

fn within<'m>(machine: &'m Machine, problem: &Problem, seconds: f64) -> Exchange<'m> {
    let mut budget = Budget::default();
    budget.simulation = Some(seconds);
    exchange(machine, problem).budget(budget)
}

fn alone(machine: &Machine, problem: &Problem, choice: &Choice, model: &ContentionModel) -> f64 {
    free(machine, problem, &choice.algorithm, &choice.parameters, model.name)
}

#[test]
fn choices_that_exceed_the_budget_are_left_with_their_estimates() {
    let (machine, problem) = torus();
    let selection = select(&machine, &problem);
    for model in ["fluid", "wormhole"].map(model) {
        let all = exchange(&machine, &problem);
        let all = all.simulations(&selection, model).unwrap();
        assert_eq!(all.budget(), None);
        assert!(all.estimates().all(|(_, fits)| fits));
        let budget = all.estimates().map(|(estimate, _)| estimate.seconds).sum::<f64>() / 3.0;
        let some = within(&machine, &problem, budget);
        let some = some.simulations(&selection, model).unwrap();
        let (mut left, mut fitting) = (budget, 0);
        for (estimate, fits) in some.estimates() {
            assert_eq!(fits, estimate.seconds <= left, "{}", model.name);
            left -= if fits { estimate.seconds } else { 0.0 };
            fitting += usize::from(fits);
        }
        assert!(0 < fitting && fitting < selection.choices.len(), "{}", model.name);
        let times = some.run(&Progress::UNHEARD).unwrap();
        for ((choice, (_, fits)), time) in selection.choices.iter().zip(some.estimates()).zip(times)
        {
            match fits {
                true => assert_eq!(time, Ok(alone(&machine, &problem, choice, model))),
                false => assert_eq!(time, Err(NotSimulated::Budget)),
            }
        }
    }
}

#[test]
fn larger_machines_have_a_budget_without_asking() {
    let machine = machine("torus:32x32").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    let selection = select(&machine, &problem);
    let exchange = exchange(&machine, &problem);
    let simulations = exchange.simulations(&selection, model("wormhole")).unwrap();
    let fitting = simulations.estimates().filter(|(_, fits)| *fits);
    let seconds: f64 = fitting.map(|(estimate, _)| estimate.seconds).sum();
    assert!(seconds <= simulations.budget().unwrap() && simulations.budget() == Some(10.0));
    assert!(simulations.estimates().any(|(_, fits)| !fits));
}

#[test]
fn times_do_not_depend_on_the_number_of_threads() {
    let (machine, problem) = torus();
    let selection = select(&machine, &problem);
    for model in ["fluid", "wormhole"].map(model) {
        let exchange = exchange(&machine, &problem);
        let simulations = exchange.simulations(&selection, model).unwrap();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| simulations.run(&Progress::UNHEARD).unwrap())
        };
        assert_eq!(with(1), with(2), "{}", model.name);
    }
}

#[test]
fn a_swept_point_is_its_schedule_simulated() {
    let (machine, problem) = torus();
    let sizes = [1, 64, 4096];
    let found = sweep(&machine, &problem, &sizes, &[]).unwrap();
    for model in ["fluid", "wormhole"].map(model) {
        let exchange = exchange(&machine, &problem);
        let simulations = exchange.sweep_simulations(&found, model).unwrap();
        let times = simulations.run(&Progress::UNHEARD).unwrap();
        let points = found.lines.iter().flat_map(|line| sizes.iter().zip(&line.points));
        for ((&block_bytes, choice), time) in points.zip(times) {
            let mut problem = problem;
            problem.block_bytes = block_bytes;
            let expected = alone(&machine, &problem, choice, model);
            assert_eq!(time, Ok(expected), "{} at {block_bytes}", choice.algorithm);
        }
    }
}

#[test]
fn the_fastest_points_of_all_sizes_are_swept_first() {
    let (machine, problem) = torus();
    let sizes = [1, 4096];
    let found = sweep(&machine, &problem, &sizes, &[]).unwrap();
    let all = exchange(&machine, &problem);
    let all = all.sweep_simulations(&found, model("fluid")).unwrap();
    let costs: Vec<f64> = all.estimates().map(|(estimate, _)| estimate.seconds).collect();
    let first = |size: usize| {
        let time = |line: &usize| found.lines[*line].points[size].price.time.total();
        let line = (0..found.lines.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap();
        line * sizes.len() + size
    };
    let firsts = [first(0), first(1)];
    let budget = firsts.iter().map(|&i| costs[i]).sum();
    let some = within(&machine, &problem, budget);
    let some = some.sweep_simulations(&found, model("fluid")).unwrap();
    for (i, (_, fits)) in some.estimates().enumerate() {
        assert_eq!(fits, firsts.contains(&i), "{i}");
    }
}

#[test]
fn a_machine_that_a_model_does_not_support_is_refused() {
    let machine = machine("full:8").unwrap();
    let problem = problem(&machine, Collective::AllToAll, 64);
    let selection = select(&machine, &problem);
    let refused = exchange(&machine, &problem).simulations(&selection, model("flit")).unwrap_err();
    assert!(refused.to_string().contains("requires a grid or a graph"), "{refused}");
}

/// An overhead of each message costs every choice, and the one with the most messages most.
#[test]
fn choices_are_simulated_with_the_endpoints_of_the_machine() {
    let (mut machine, problem) = torus();
    let times = |machine: &Machine| {
        let selection = select(machine, &problem);
        let exchange = exchange(machine, &problem);
        let found = exchange.simulations(&selection, model("fluid")).unwrap();
        let times = found.run(&Progress::UNHEARD).unwrap();
        let names = selection.choices.iter().map(|choice| choice.algorithm.clone());
        names.zip(times).collect::<Vec<_>>()
    };
    let before = times(&machine);
    machine.endpoint.message_overhead = 10e-6;
    let after = times(&machine);
    // Choices of the same algorithm, whose order may be another one.
    let longer = before.iter().filter_map(|(name, a)| {
        let (_, b) = after.iter().find(|(other, _)| other == name)?;
        Some((name, b.as_ref().unwrap() - a.as_ref().unwrap()))
    });
    let longer: Vec<_> = longer.collect();
    assert!(longer.iter().all(|(_, time)| *time > 10e-6), "{longer:?}");
    let of = |name| longer.iter().find(|(other, _)| *other == name).unwrap().1;
    assert!(of("direct") > 2.0 * of("bruck"), "{longer:?}");
}
