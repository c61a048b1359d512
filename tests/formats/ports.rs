//! Schedules of other programs that have more messages in a step than ports.

use common::{MEMORY, schedule_of, serving, target};
use topocoll::{
    Collective, Counts, Machine, Origin, PerClass, Problem, Rank, Recorder, Route, Schedule,
    SizedMessage, Step, count, formats, machine,
};

/// Messages of known sizes as a schedule for some ports.
fn sized(machine: &Machine, ports: u32, messages: &[SizedMessage]) -> Schedule {
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), ports, 1).unwrap();
    let mut recorder = Recorder::new(problem);
    messages.iter().for_each(|message| recorder.push_sized(message));
    let origin = Origin { algorithm: "drawn".to_owned(), parameters: Default::default() };
    Schedule::new(problem, origin, recorder.finish())
}

fn counted(schedule: &Schedule, machine: &Machine) -> Counts {
    count(schedule, machine, None, MEMORY).unwrap()
}

#[test]
fn one_port_carries_messages_in_turn() {
    for (name, on, ports, bytes, seconds) in [
        ("two-sends.goal", "full:2", 1, 2048, 3.048e-6),
        ("linear-alltoall-8.goal", "full:8", 1, 7 * 1024, 8.168e-6),
        ("linear-alltoall-8.goal", "full:8", 2, 4 * 1024, 5.096e-6),
        ("linear-alltoall-8.goal", "full:8", 7, 1024, 2.024e-6),
        // A node has 16 messages for the other.
        ("linear-alltoall-8.goal", "cluster:2*4", 1, 16 * 1024, 17.384e-6),
    ] {
        let mut machine = machine(on).unwrap();
        machine.set_ports(ports);
        let path = format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR"));
        let schedule = formats::read(path.as_ref(), &target(&machine)).unwrap();
        let found = counted(&schedule, &machine);
        assert_eq!((found.steps, found.bytes), (1, bytes), "{name} on {on}");
        assert!((found.time.total() - seconds).abs() < 1e-15, "{name}: {:?}", found.time);
    }
}

/// The most loaded port of the given messages, dealt in order to the least loaded; and the least that
/// any dealing has.
fn dealt(sizes: &[f64], ports: u32) -> (f64, f64) {
    let mut loads = vec![0.0; ports as usize];
    for size in sizes {
        *loads.iter_mut().min_by(|a, b| f64::total_cmp(a, b)).unwrap() += size;
    }
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let each = sizes.len().div_ceil(ports as usize) as f64 * smallest;
    let least = (sizes.iter().sum::<f64>() / f64::from(ports)).max(each).max(most(sizes));
    (most(&loads), least)
}

#[test]
fn drawn_messages_beyond_the_ports_are_charged_the_bytes_of_a_port() {
    let mut random = fastrand::Rng::with_seed(51);
    let mut exceeded = 0;
    for case in 0..400 {
        let on =
            ["full:2", "full:5", "full:9", "cluster:3*2", "cluster:1,4,2", "cluster:6*1"][case % 6];
        let mut machine = machine(on).unwrap();
        let clustered = machine.topology.link_classes().len() > 1;
        if clustered {
            machine.timing.per_byte = PerClass::each(&[0.25e-9, 2e-9]);
        }
        let (ranks, steps) = (machine.ranks(), random.u32(1..4));
        let equal = random.bool();
        let mut messages = Vec::new();
        for step in 0..steps {
            for _ in 0..random.u32(1..3 * ranks) {
                let (from, to) = (Rank(random.u32(..ranks)), Rank(random.u32(..ranks)));
                let bytes = if equal { 1000 } else { random.u64(1..2000) };
                if from != to {
                    messages.push(SizedMessage {
                        step,
                        from,
                        to,
                        route: None,
                        bytes,
                        packed: false,
                    });
                }
            }
        }
        if messages.is_empty() {
            continue;
        }
        let mut before = f64::INFINITY;
        for ports in 1..ranks {
            let found = counted(&sized(&machine, ports, &messages), &machine);
            let (mut bytes, mut seconds, mut cases) = (0.0, 0.0, 0);
            let mut dealt_bytes = 0.0;
            for step in 0..steps {
                let of_step = || messages.iter().filter(move |message| message.step == step);
                let time = |message: &SizedMessage| {
                    let [from, to] = [message.from, message.to];
                    let class = machine.topology.link_class(from, to);
                    message.bytes as f64 * machine.timing.per_byte.of(class)
                };
                let node = |rank: Rank| machine.topology.node_of(rank);
                let (mut most, mut slowest, mut by_dealing) = (0.0f64, 0.0f64, 0.0f64);
                let mut user = |messages: Vec<&SizedMessage>| {
                    let of: Vec<f64> =
                        messages.iter().map(|message| message.bytes as f64).collect();
                    let (dealing, least) = dealt(&of, ports);
                    by_dealing = by_dealing.max(dealing);
                    cases += u64::from(of.len() > ports as usize);
                    most = most.max(least.ceil());
                    let of: Vec<f64> = messages.iter().map(|message| time(message)).collect();
                    slowest = slowest.max(dealt(&of, ports).1);
                };
                for rank in (0..ranks).map(Rank) {
                    user(of_step().filter(|message| message.from == rank).collect());
                    user(of_step().filter(|message| message.to == rank).collect());
                }
                for own in (0..machine.topology.nodes()).filter(|_| clustered) {
                    let crosses = |m: &&SizedMessage| node(m.from) != node(m.to);
                    user(of_step().filter(crosses).filter(|m| node(m.from) == own).collect());
                    user(of_step().filter(crosses).filter(|m| node(m.to) == own).collect());
                }
                (bytes, seconds) = (bytes + most, seconds + slowest);
                dealt_bytes += by_dealing;
            }
            let place = format!("case {case}, {ports} ports of {on}");
            assert_eq!(found.port_violations, cases, "{place}");
            assert_eq!(found.bytes as f64, bytes, "{place}");
            assert!(
                (found.time.transmission - seconds).abs() < 1e-15,
                "{place}: {seconds} {found:?}"
            );
            // No dealing over the ports has less; of equal messages some dealing has as much.
            assert!(bytes <= dealt_bytes && (!equal || bytes == dealt_bytes), "{place}");
            assert!(found.time.total() <= before, "{place}: more ports are slower");
            before = found.time.total();
            exceeded += u32::from(cases > 0);
        }
    }
    assert!(exceeded > 1000, "{exceeded}");
}

/// Ranks that are counted for others find what all ranks find, and within the ports nothing changes.
#[test]
fn equivalent_ranks_exceed_their_ports_as_all_ranks_do() {
    let mut exceeded = 0;
    for on in
        ["full:6", "torus:3x2", "mesh:5", "torus:3*2", "grid:3~x2*2", "cluster:3*2", "hyperx:4"]
    {
        let mut machine = machine(on).unwrap();
        if on.contains(['*', 'c']) {
            let classes = machine.topology.link_classes().len();
            let values: Vec<f64> = (0..classes).map(|class| 1e-9 * (1 + class) as f64).collect();
            machine.timing.per_byte = PerClass::each(&values);
        }
        let planned = machine.ranks() - 1;
        let mut free = topocoll::machine(&format!("full:{}", machine.ranks())).unwrap();
        free.set_ports(planned);
        for (algorithm, problem, setting) in serving(&free, 60) {
            let name = &algorithm.info().name;
            let mut schedule = schedule_of(&free, &problem, name, &setting).unwrap();
            let mut messages = Vec::new();
            let (mut does, mut route) = (Step::default(), Route::default());
            for step in 0..schedule.rule().steps() {
                for from in (0..machine.ranks()).map(Rank) {
                    schedule.rule().step(from, step, &mut does);
                    for send in &does.sends {
                        let of_send = send.route_from(from, &*machine.topology, &mut route);
                        let route = Some(of_send.clone()).filter(|route| !route.is_empty());
                        let bytes = send.slots.bytes(problem.block_bytes) as u64;
                        let (to, packed) = (send.peer, false);
                        messages.push(SizedMessage { step, from, to, route, bytes, packed });
                    }
                }
            }
            for ports in 1..=planned {
                (schedule.problem.ports, schedule.problem.node_ports) = (ports, ports);
                let found = counted(&schedule, &machine);
                let every = counted(&sized(&machine, ports, &messages), &machine);
                let place = format!("{name} on {on}, {ports} of {planned} ports");
                assert_eq!(found.port_violations, every.port_violations, "{place}");
                assert_eq!(
                    (found.bytes, found.link_bytes),
                    (every.bytes, every.link_bytes),
                    "{place}"
                );
                assert_eq!(found.time.transmission, every.time.transmission, "{place}");
                exceeded += u32::from(found.port_violations > 0);
            }
        }
    }
    assert!(exceeded > 300, "{exceeded}");
}
