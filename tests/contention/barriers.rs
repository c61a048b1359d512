//! Steps separated by barriers: counted by rule, counted by message, simulated one at a time, and skipped
//! where no link is shared.

use common::{
    self, MEMORY, OfClasses, Script, find, network, problem, request, schedule_of, serving,
    without_classes,
};
use topocoll::contention::{
    Scheduled, Settings, Share, Simulation, Sync, Traffic, in_seconds, simulate, steps_model,
};
use topocoll::{AnalysisError, Barrier, Collective, Machine, Rank, Request, Schedule, count};

fn priced(text: &str) -> Machine {
    let mut machine = common::priced(text, 3e-6, 100e-9);
    machine.timing.barrier = Barrier { fixed: 5e-6, per_doubling: 1e-6 };
    machine
}

const MACHINES: [&str; 9] = [
    "full:6",
    "cluster:2,3,1",
    "cluster:4*2",
    "torus:4x6",
    "mesh:3x4",
    "grid:5~x2x2",
    "twisted-torus:2x4",
    "mesh:3x4/1,1/0,2+1/2,3",
    "torus:8x8",
];

fn schedules(machine: &Machine) -> impl Iterator<Item = Schedule> {
    serving(machine, 24).into_iter().map(|(algorithm, problem, setting)| {
        Request::new(&problem, &*machine.topology)
            .solve(algorithm, &setting)
            .map(|s| s.schedule)
            .unwrap()
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn messages_cost_as_much_as_their_rule() {
    for text in MACHINES {
        let machine = priced(text);
        for schedule in schedules(&machine) {
            let counts = count(&schedule, &machine, None, MEMORY).unwrap();
            for told in [schedule.clone(), without_classes(&schedule)] {
                let place = format!("{schedule:?} on {text}");
                let traffic = Scheduled::new(&told, &machine);
                let found = steps_model(&traffic, &machine, MEMORY).unwrap();
                let expected = (counts.steps, counts.messages);
                assert_eq!((found.steps, found.messages), expected, "{place}");
                // Exactly.
                assert_eq!(found.time, counts.time, "{place}");
                assert_eq!(found.link_seconds, counts.link_seconds, "{place}");
            }
        }
    }
}

#[test]
fn the_largest_load_is_that_of_one_link_in_one_step() {
    // In step 1 two messages share the link from rank 1 to 2; in step 700 one is longer than one of
    // them.
    let machine = priced("mesh:8");
    let messages = vec![(1, 0, 2, 40, 0), (1, 1, 3, 30, 0), (700, 4, 5, 60, 0)];
    let sparse = Script { machine: &machine, messages };
    let found = steps_model(&sparse, &machine, MEMORY).unwrap();
    assert_eq!((found.steps, found.messages, found.largest_load), (2, 3, 70));
    assert!(close(found.time.startup, 2.0 * 3e-6), "{found:?}");
    assert!(close(found.time.transmission, 130.0 * 2e-9), "{found:?}");
    assert!(close(found.time.propagation, 3.0 * 100e-9), "{found:?}");
    assert!(close(found.time.barrier, 5e-6 + 3.0 * 1e-6), "{found:?}");
    assert!(close(found.link_seconds, (2.0 * 70.0 + 60.0) * 2e-9), "{found:?}");

    // No barrier follows an empty step or the last step.
    let barrier = 8_000_000;
    for model in ["wormhole", "fluid"] {
        let alone = |step| apart(&Alone(&sparse, step), &machine, model, true).time;
        for records in [false, true] {
            let found = apart(&sparse, &machine, model, records);
            assert_eq!(found.time, alone(1) + barrier + alone(700), "{model}");
        }
    }

    let links = 2 * 8 * rayon::current_num_threads() as u128;
    let needed = |memory| steps_model(&sparse, &machine, memory).map(|found| found.steps);
    let refused = Err(AnalysisError::Memory {
        what: "link counters",
        needed: 24 * links,
        memory: 24 * links - 1,
    });
    assert_eq!(needed(24 * links - 1), refused);
    assert_eq!(needed(24 * links), Ok(2));
}

/// Every rank copies a kilobyte in the first step.
fn copying_first(script: Script<'_>) -> impl Traffic {
    script.edited(|step, share| share.copied = if step == 0 { 1000 } else { 0 })
}

/// Several steps run one after the other, and results of one step have times since the start of the
/// run.
#[test]
fn times_of_a_step_count_from_the_start_of_the_run() {
    let machine = priced("mesh:8");
    // In step 101, not the first of its batch, two messages share a link; in the first step copies take
    // a microsecond.
    let mut messages: Vec<_> = (1..200).map(|step| (step, 4, 5, 10, 0)).collect();
    messages.extend([(101, 0, 2, 1000, 0), (101, 1, 2, 1000, 0)]);
    let traffic = copying_first(Script { machine: &machine, messages });
    for model in ["wormhole", "fluid"] {
        let found = apart(&traffic, &machine, model, true);
        assert_eq!(found.network_time, found.time - (1_000_000 + 3_000_000), "{model}");
        let last = found.chain.last().unwrap().link;
        assert_eq!((last.step, last.at), (101, found.steps[101].end), "{model}");
        assert!(found.chain.iter().all(|link| link.link.at > found.steps[101].start), "{model}");
    }
}

fn apart(traffic: &dyn Traffic, machine: &Machine, model: &str, records: bool) -> Simulation {
    let mut request = request(traffic, machine, model, Settings::default(), Sync::Barrier);
    request.records = records;
    simulate(&request).unwrap()
}

/// One step of a traffic by itself.
struct Alone<'a>(&'a dyn Traffic, u32);

impl Traffic for Alone<'_> {
    fn nodes(&self) -> u32 {
        self.0.nodes()
    }
    fn steps(&self) -> u32 {
        1
    }
    fn share(&self, node: Rank, _step: u32, out: &mut Share) {
        self.0.share(node, self.1, out);
    }
}

/// Skipped steps take the time that simulation gives, and all steps together the sum of each: `direct`
/// on 9x9 has 80 steps, more than run at once.
#[test]
fn steps_take_as_long_together_as_one_at_a_time() {
    for (text, name) in [
        ("torus:9x9", "direct"),
        ("torus:8x8", "suh-shin"),
        ("cluster:9*8", "node-aware"),
        ("full:90", "ring"),
        ("full:9", "bruck"),
    ] {
        let machine = priced(text);
        let algorithm = find(name).unwrap();
        let problem = common::problem(&machine, algorithm.info().operation, 24);
        let schedule = schedule_of(&machine, &problem, name, &Default::default()).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        for model in ["wormhole", "fluid"] {
            let place = format!("{name} on {text}, {model}");
            let quick = apart(&&traffic, &machine, model, false);
            let whole = apart(&traffic, &machine, model, true);
            assert_eq!(whole.closed_steps, 0, "{place}");
            assert!(quick.closed_steps > 0, "{place}");
            assert_eq!(quick.time, whole.time, "{place}");
            assert_eq!(quick.steps, whole.steps, "{place}");
            assert_eq!(quick.messages, whole.messages, "{place}");
            assert_eq!(quick.network_time, whole.network_time, "{place}");
            assert_eq!(quick.latencies, whole.latencies, "{place}");
            let used = |found: &Simulation| found.link_utilisation.unwrap_or_default();
            assert!(close(used(&quick), used(&whole)), "{place}");
            if let Some(used) = whole.link_utilisation {
                let able = machine.topology.links() as f64 * in_seconds(whole.time);
                let counts = count(&schedule, &machine, None, MEMORY).unwrap();
                assert!((used * able / counts.link_seconds - 1.0).abs() < 1e-3, "{place}");
            }

            let barrier = machine.timing.barrier.seconds(machine.ranks());
            let barrier = (barrier * 1e12).round() as u64;
            let (mut now, mut longest, mut sent) = (0, 0, false);
            for (step, time) in (0..).zip(&whole.steps) {
                let alone = apart(&Alone(&traffic, step), &machine, model, true);
                // No barrier precedes copies at the end.
                now += if sent && alone.messages > 0 { barrier } else { 0 };
                sent |= alone.messages > 0;
                assert_eq!((time.start, time.end), (now, now + alone.time), "{place}, step {step}");
                longest = longest.max(alone.time);
                now = time.end;
                for interval in whole.intervals.iter().filter(|found| found.step == step) {
                    let within = time.start <= interval.start && interval.end <= time.end;
                    assert!(within && interval.start < interval.end, "{place}: {interval:?}");
                }
            }
            assert_eq!(whole.time, now, "{place}");
            let of_longest = |at| {
                let mut steps = whole.steps.iter();
                steps.any(|step| {
                    step.end - step.start == longest && (step.start..=step.end).contains(&at)
                })
            };
            assert!(whole.chain.iter().all(|link| of_longest(link.link.at)), "{place}");
        }
    }
}

/// The longest step, at its time in the whole run.
#[test]
fn a_critical_chain_has_times_since_the_start_of_the_run() {
    let machine = network("mesh:4", 0.0);
    for (bytes, ends) in [([100, 1000], 1_100_000), ([1000, 100], 1_000_000)] {
        let messages = vec![(0, 0, 1, bytes[0], 0), (1, 2, 3, bytes[1], 0)];
        let script = Script { machine: &machine, messages };
        for model in ["wormhole", "fluid", "flit"] {
            let found = apart(&script, &machine, model, true);
            let last = found.chain.last().unwrap().link;
            let step = u32::from(bytes[1] > bytes[0]);
            assert_eq!((last.step, last.to), (step, Rank(2 * step + 1)), "{model}");
            if model != "flit" {
                assert_eq!((last.at, found.time), (ends, 1_100_000), "{model}");
            }
        }
    }
}

#[test]
fn time_on_the_network_begins_with_the_first_message() {
    let mut machine = network("mesh:4", 0.0);
    machine.timing.rearrangement_per_byte = 1e-9;
    let messages = vec![(1, 0, 1, 100, 0)];
    let later = copying_first(Script { machine: &machine, messages });
    for model in ["wormhole", "fluid"] {
        let found = apart(&later, &machine, model, true);
        assert_eq!((found.time, found.network_time), (1_100_000, 100_000), "{model}");
    }
}

/// Without barriers the first steps of a large run need no simulation, until messages of two steps are
/// in the network at once.
#[test]
fn the_first_steps_of_large_runs_are_exact_without_barriers() {
    for (text, algorithm, all) in
        [("torus:80x80", "suh-shin", true), ("torus:24x24x24", "coloured-rings", false)]
    {
        let machine = topocoll::machine(text).unwrap();
        let asked = problem(&machine, Collective::AllToAll, 64);
        let schedule = schedule_of(&machine, &asked, algorithm, &Default::default()).unwrap();
        let known = Scheduled::new(&schedule, &machine);
        let unknown = OfClasses(&known, known.classes());
        for model in ["wormhole", "fluid"] {
            let [found, expected] = [&known as &dyn Traffic, &unknown].map(|traffic| {
                simulate(&request(traffic, &machine, model, Settings::default(), Sync::Free))
                    .unwrap()
            });
            let steps = schedule.rule().steps();
            assert_eq!(expected.closed_steps, 0);
            assert!(found.closed_steps > 0, "{text} {model}");
            assert_eq!(found.closed_steps == steps, all, "{text} {model}: {}", found.closed_steps);
            let figures = |of: &Simulation| {
                (of.time, of.messages, of.latencies, of.network_time, of.steps.clone())
            };
            assert_eq!(figures(&found), figures(&expected), "{text} {model}");
            let busy = [&found, &expected].map(|of| of.link_utilisation.unwrap());
            assert!((busy[0] / busy[1] - 1.0).abs() < 1e-9, "{text} {model}: {busy:?}");
        }
    }
}
