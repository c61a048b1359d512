//! When each rank copies, sends and receives: the same by classes and by every rank, and as long as the run.

use common::{MEMORY, Script, network, priced, schedule_of, serving};
use topocoll::contention::{
    MODELS, RankStep, Ranks, Request, Scheduled, Simulation, Sync, Timeline, Traffic, simulate,
    steps_timeline,
};
use topocoll::{Machine, Rank, count, count_steps};

fn timed(
    traffic: &dyn Traffic,
    machine: &Machine,
    model: &str,
    ranks: Option<Ranks>,
) -> Simulation {
    let model = MODELS.iter().find(|known| known.name == model).unwrap();
    let mut request = Request::new(traffic, machine, model, MEMORY);
    (request.ranks, request.timeline) = (ranks, true);
    simulate(&request).unwrap()
}

fn ranks(machine: &Machine) -> impl Iterator<Item = Rank> {
    (0..machine.ranks()).map(Rank)
}

/// The first beginning and the last end of a step.
fn span(timeline: &Timeline, machine: &Machine, step: u32) -> (u64, u64) {
    let all = || ranks(machine).map(|rank| timeline.of(rank, step));
    (all().map(|own| own.begin).min().unwrap(), all().map(RankStep::end).max().unwrap())
}

#[test]
fn each_rank_goes_on_when_its_own_messages_are_delivered() {
    // Rank 1 sends a long message and rank 3 a short one; then rank 2 sends to rank 1.
    let machine = network("mesh:4", 0.0);
    let messages = vec![(0, 1, 0, 1000, 0), (0, 3, 2, 10, 0), (1, 2, 1, 100, 0)];
    let script = Script { machine: &machine, messages };
    for model in ["wormhole", "fluid"] {
        let timeline = timed(&script, &machine, model, None).timeline.unwrap();
        let of = |rank, step| *timeline.of(Rank(rank), step);
        assert_eq!((of(1, 0).sent, of(0, 0).received), (1_000_000, 1_000_000), "{model}");
        assert_eq!((of(0, 0).posted, of(0, 0).sent), (Some(0), 0), "{model}");
        assert_eq!((of(2, 1).begin, of(2, 1).sent), (10_000, 110_000), "{model}");
        // It arrives before rank 1 begins its step.
        let early = of(1, 1);
        assert_eq!((early.begin, early.posted), (1_000_000, Some(10_000)), "{model}");
        assert_eq!((early.received, early.end()), (110_000, 1_000_000), "{model}");
        assert_eq!((of(3, 1).begin, of(3, 1).posted, of(3, 1).end()), (10_000, None, 10_000));
    }
}

#[test]
fn a_timeline_is_as_long_as_its_run_and_its_steps() {
    let mut steps = 0;
    for text in ["full:6", "torus:4x4", "mesh:3x4", "torus:2x4*2", "mesh:3x4/1,1"] {
        let machine = priced(text, 300e-9, 7e-9);
        for (algorithm, problem, setting) in serving(&machine, 24) {
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let traffic = Scheduled::new(&schedule, &machine);
            for model in ["wormhole", "fluid"] {
                let place = format!("{name} {setting:?} on {text}, {model}");
                let found = timed(&traffic, &machine, model, None);
                if traffic.steps() == 0 {
                    continue;
                }
                let timeline = found.timeline.as_ref().unwrap();
                for (step, known) in (0..).zip(&found.steps) {
                    let (begin, end) = span(timeline, &machine, step);
                    assert_eq!(begin, known.start, "{place}, step {step}");
                    assert!(end >= known.end, "{place}, step {step}");
                    steps += 1;
                }
                assert_eq!(span(timeline, &machine, traffic.steps() - 1).1, found.time, "{place}");
                for rank in ranks(&machine) {
                    for step in 1..traffic.steps() {
                        let before = timeline.of(rank, step - 1);
                        let own = timeline.of(rank, step);
                        assert_eq!(own.begin, before.end().max(before.begin), "{place}, {rank}");
                        assert!(own.begin <= own.copied && own.copied <= own.sent, "{place}");
                    }
                }
                let every = timed(&traffic, &machine, model, Some(Ranks::Every)).timeline.unwrap();
                for (rank, step) in
                    ranks(&machine).flat_map(|r| (0..traffic.steps()).map(move |s| (r, s)))
                {
                    assert_eq!(timeline.of(rank, step), every.of(rank, step), "{place}");
                }
            }
        }
    }
    assert!(steps > 1000);
}

#[test]
fn a_timeline_changes_no_result() {
    let machine = network("torus:4x4", 0.0);
    for (algorithm, problem, setting) in serving(&machine, 24) {
        let schedule = schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
        let traffic = Scheduled::new(&schedule, &machine);
        let model = MODELS.iter().find(|known| known.name == "fluid").unwrap();
        let mut request = Request::new(&traffic, &machine, model, MEMORY);
        let plain = simulate(&request).unwrap();
        request.timeline = true;
        let recorded = simulate(&request).unwrap();
        assert_eq!((plain.time, &plain.steps), (recorded.time, &recorded.steps));
        assert!(plain.timeline.is_none());
        // Under barriers there is none.
        request.sync = Sync::Barrier;
        assert!(simulate(&request).unwrap().timeline.is_none());
    }
}

#[test]
fn steps_without_shared_links_end_with_their_slowest_rank() {
    let mut alone = 0;
    for text in ["full:6", "torus:4x4", "mesh:3x4", "torus:2x4*2"] {
        let machine = priced(text, 300e-9, 7e-9);
        for (algorithm, problem, setting) in serving(&machine, 24) {
            let name = &algorithm.info().name;
            let schedule = schedule_of(&machine, &problem, name, &setting).unwrap();
            let traffic = Scheduled::new(&schedule, &machine);
            let (mut seconds, mut contended) = (Vec::new(), Vec::new());
            count_steps(&schedule, &machine, None, MEMORY, |_, step| {
                let time = step.time(&machine, 24);
                seconds.push([
                    time.startup + time.transmission + time.propagation + time.rearrangement,
                    time.rearrangement,
                ]);
                contended.push(step.link_contention > 1 || step.port_violations > 0);
            })
            .unwrap();
            let timeline = steps_timeline(&traffic, &machine, &seconds).unwrap();
            let mut now = 0.0;
            for (step, [time, _]) in (0..).zip(&seconds) {
                let (begin, end) = span(&timeline, &machine, step);
                assert_eq!(begin, (now * 1e12_f64).round() as u64);
                now += time;
                let slack = (now * 1e12).round() - end as f64;
                assert!(slack >= -3.0, "{name} {setting:?} on {text}, step {step}: {slack}");
                let uniform = machine.timing.per_byte.is_uniform() && problem.ports == 1;
                if uniform && !contended[step as usize] {
                    alone += u32::from(slack <= 3.0);
                }
            }
            let counts = count(&schedule, &machine, None, MEMORY).unwrap();
            assert!((now - counts.time.total()).abs() <= 1e-9);
        }
    }
    // In others the largest message and the longest route are those of different ranks.
    assert!(alone > 50, "{alone}");
}
