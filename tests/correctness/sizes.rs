//! Demand matrices beside their models: bounds by cuts and links, messages in networks, traces.

use common::{MEMORY, exchange, schedule_of, setting};
use topocoll::contention::{
    MODELS, Request, Scheduled, ScheduledSizes, Share, Sync, Traffic, in_seconds, simulate,
};
use topocoll::{
    Block, Collective, Demand, Limit, Machine, Parameters, PerClass, Problem, Rank, TraceChoice,
    best_bounds, count_steps, machine,
};

fn problem(machine: &Machine) -> Problem {
    Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1000).unwrap()
}

fn listed(problem: &Problem, bytes: impl Fn(u32, u32) -> u64) -> Demand {
    let row = |from| (0..problem.ranks).map(|to| bytes(from, to).to_string()).collect::<Vec<_>>();
    let text: String = (0..problem.ranks).map(|from| row(from).join(" ") + "\n").collect();
    Demand::read(problem, text.as_bytes()).unwrap()
}

/// Each rank of one half of a ring has 1,000 bytes for the opposite one: 4,000 bytes leave the half over two links,
/// on a mesh over one.
#[test]
fn bytes_between_parts_pass_the_links_between_them() {
    for (form, bytes) in [("torus:8", 2000.0), ("mesh:8", 4000.0), ("torus:8x3", 2000.0)] {
        let mut machine = machine(form).unwrap();
        machine.set_ports(4);
        let problem = problem(&machine);
        let width = machine.ranks() / 8;
        let half = |from: u32, to: u32| from < 4 * width && to == from + 4 * width;
        let demand = listed(&problem, |from, to| 1000 * u64::from(half(from, to)));
        let bound = best_bounds(&problem, &machine, Some(&demand));
        assert!((bound.transmission - bytes * 1e-9).abs() < 1e-15, "{form} {bound:?}");
        assert_eq!(bound.limit, Limit::Links, "{form}");
        assert!((bound.link_blocks - bytes / 1000.0).abs() < 1e-12, "{form}");
    }
    // All bytes of one node pass its two links, whatever they are for.
    let mut machine = machine("torus:8").unwrap();
    machine.set_ports(4);
    let problem = problem(&machine);
    let demand = listed(&problem, |from, to| 1000 * u64::from(to == 3 && from != 3));
    let bound = best_bounds(&problem, &machine, Some(&demand));
    assert!((bound.transmission - 3.5e-6).abs() < 1e-15, "{bound:?}");
}

#[test]
fn no_schedule_is_faster_than_the_bounds() {
    let forms = [
        "torus:4x4",
        "mesh:3x4",
        "torus:2x3*2",
        "fat-tree:2,3",
        "torus:9",
        "cluster:2,3",
        "full:7",
    ];
    for form in forms {
        for (seed, law) in ["uniform", "sparse", "neighbours", "experts"].iter().enumerate() {
            let mut machine = machine(form).unwrap();
            machine.set_ports(1 + seed as u32 % 3);
            let problem = problem(&machine);
            let demand = Demand::drawn(&problem, format!("{law}:{seed}").parse().unwrap()).unwrap();
            let exchange = exchange(&machine, &problem).demand(&demand).unwrap();
            for choice in exchange.select().unwrap().choices {
                assert!(choice.bound_ratio >= 1.0 - 1e-9, "{form} {law} {choice:?}");
            }
        }
    }
}

/// The shares of sizes that are all equal are those of equal blocks, and the largest message of each step is that
/// which counting finds.
#[test]
fn messages_have_the_sizes_of_their_blocks() {
    let cases = [
        ("full:9", "bruck", "radix=3"),
        ("torus:4x4", "suh-shin", ""),
        ("torus:4x4", "direct", ""),
        ("cluster:2,3,1", "clustered-factor", ""),
        ("torus:5x5", "direct-rings", ""),
    ];
    for (form, algorithm, parameters) in cases {
        let machine = machine(form).unwrap();
        let problem = problem(&machine);
        let schedule = schedule_of(&machine, &problem, algorithm, &setting(parameters)).unwrap();
        let shares = |traffic: &dyn Traffic| {
            let mut all = Vec::new();
            for step in 0..traffic.steps() {
                for rank in 0..traffic.nodes() {
                    let mut share = Share::default();
                    traffic.share(Rank(rank), step, &mut share);
                    all.push(share);
                }
            }
            all
        };
        let sized =
            |demand: &Demand| ScheduledSizes::new(&schedule, &machine, demand, MEMORY).unwrap();
        let equal = listed(&problem, |_, _| 1000);
        assert_eq!(shares(&sized(&equal)), shares(&Scheduled::new(&schedule, &machine)), "{form}");
        let demand = Demand::drawn(&problem, "sparse:3".parse().unwrap()).unwrap();
        let sized = sized(&demand);
        let all = shares(&sized);
        let ranks = machine.ranks() as usize;
        let mut messages = 0;
        count_steps(&schedule, &machine, Some(&demand), MEMORY, |step, count| {
            let sends = all[step as usize * ranks..][..ranks].iter().flat_map(|of| &of.sends);
            let largest = sends.clone().map(|send| u128::from(send.bytes)).max().unwrap_or(0);
            assert_eq!(largest, count.largest_message, "{form} {algorithm} {step}");
            messages += sends.count() as u64;
        })
        .unwrap();
        let received: u32 = all.iter().map(|share| share.receives).sum();
        assert_eq!(u64::from(received), messages, "{form}");
        let linked = machine.topology.links() > 0;
        for model in MODELS.iter().filter(|model| linked || model.name == "fluid") {
            let request = Request::new(&sized, &machine, model, MEMORY);
            assert_eq!(simulate(&request).unwrap().messages, messages, "{form} {}", model.name);
        }
    }
}

/// Matchings do not contend, so each step takes its startup and its largest message, and without barriers ranks
/// only gain.
#[test]
fn the_fluid_model_takes_the_predicted_time_for_matchings() {
    let fluid = MODELS.iter().find(|model| model.name == "fluid").unwrap();
    for law in ["uniform:1", "power-law:2", "sparse:3", "experts:4", "neighbours:5"] {
        let mut machine = machine("full:24").unwrap();
        machine.timing.startup = PerClass::uniform(2e-6);
        let problem = problem(&machine);
        let demand = Demand::drawn(&problem, law.parse().unwrap()).unwrap();
        let exchange = exchange(&machine, &problem).demand(&demand).unwrap();
        let schedule = exchange.schedule("demand-matchings", &Parameters::new()).unwrap();
        let predicted = exchange.count(&schedule).unwrap().time.total();
        let sized = ScheduledSizes::new(&schedule, &machine, &demand, MEMORY).unwrap();
        let [barriers, free] = [Sync::Barrier, Sync::Free].map(|sync| {
            let mut request = Request::new(&sized, &machine, fluid, MEMORY);
            request.sync = sync;
            in_seconds(simulate(&request).unwrap().time)
        });
        assert!((barriers / predicted - 1.0).abs() < 1e-6, "{law}: {barriers} {predicted}");
        assert!(free <= barriers * (1.0 + 1e-9), "{law}: {free} {barriers}");
    }
}

#[test]
fn a_trace_is_counted_matrix_by_matrix() {
    let machine = machine("full:8").unwrap();
    let problem = problem(&machine);
    let drawn =
        |step| Demand::drawn(&problem, format!("power-law:{step}").parse().unwrap()).unwrap();
    let trace: Vec<Demand> = (0..5).map(drawn).collect();
    let mean = Demand::mean_of(&trace);
    let block = Block { from: Rank(7), to: Rank(0) };
    let sum: u64 = trace.iter().map(|demand| demand.bytes(block)).sum();
    assert_eq!(mean.bytes(block), sum.div_ceil(5));
    let over_mean = exchange(&machine, &problem).demand(&mean).unwrap();
    let selection = over_mean.select().unwrap();
    let over = over_mean.over(&trace, &selection.choices).unwrap().unwrap();
    for choice in &over.choices {
        let schedule = over_mean.schedule(&choice.algorithm, &choice.parameters).unwrap();
        let times = trace.iter().map(|demand| {
            let one = exchange(&machine, &problem).demand(demand).unwrap();
            one.count(&schedule).unwrap().time.total()
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let total: f64 = times.iter().sum();
        assert!((choice.times.total_seconds - total).abs() < 1e-12, "{choice:?}");
        assert_eq!((choice.times.median_seconds, choice.times.p99_seconds), (times[2], times[4]));
        assert!(over.best_for_each.total_seconds <= choice.times.total_seconds + 1e-12);
        assert!(over.choices[0].times.total_seconds <= choice.times.total_seconds);
    }
    let of = |choice: &&TraceChoice| choice.algorithm == "demand-matchings";
    let planned = over.choices.iter().find(of).unwrap();
    let (for_mean, for_each) = (planned.times, planned.planned_for_each.unwrap());
    let others = over.choices.iter().filter(|choice| !of(choice));
    assert!(others.clone().count() > 2 && others.clone().all(|of| of.planned_for_each.is_none()));
    // Blocks that are equal in the mean differ in each matrix.
    assert!(for_mean.total_seconds > for_each.total_seconds && over.changes > 0);
    assert_eq!(over_mean.over(&[], &selection.choices).unwrap(), None);
}
