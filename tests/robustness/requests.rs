//! Requests beyond any machine, schedule or memory are refused by name before work begins, without
//! overflow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::{MEMORY, Script, claims, run, schedule_for, schedule_of};
use topocoll::contention::{
    Control, MODELS, Pattern, Posted, Request, Scheduled, Settings, Share, Sync, Traffic,
    in_seconds, simulate,
};
use topocoll::exec::{
    Buffer, Layout, Memory, PlannedSizes, Region, SeededDriver, Storage, ThreadedDriver, pattern,
    plan_all,
};
use topocoll::formats::{FORMATS, Reader, Target};
use topocoll::{
    AnalysisError, Collective, Demand, Exchange, Machine, Message, Method, Origin, Parameters,
    Part, Ports, Problem, Progress, Rank, RankClasses, Recorder, Route, Schedule, Shape, Subset,
    check_counting_work, conflicts, count, count_steps, counting_work, link_totals, machine,
    measure, units, verify, write_certificate,
};

fn schedule(text: &str) -> Schedule {
    let machine = machine(text).unwrap();
    schedule_of(&machine, &problem(text), "direct", &Parameters::new()).unwrap()
}

fn problem(text: &str) -> Problem {
    common::problem(&machine(text).unwrap(), Collective::AllToAll, 100)
}

#[test]
fn schedules_for_another_number_of_ranks_are_refused() {
    let (other, torus) = (schedule("full:15"), machine("torus:4x4").unwrap());
    let counts = count(&other, &machine("full:15").unwrap(), None, MEMORY).unwrap();
    let demand = Demand::drawn(&other.problem, "power-law:4".parse().unwrap()).unwrap();
    let none = Parameters::new();
    let fluid = &MODELS[0];
    let traffic_machine = machine("full:15").unwrap();
    let traffic = Scheduled::new(&other, &traffic_machine);
    let ranks = Err(AnalysisError::Ranks { ranks: 15, machine: 16 });
    assert_eq!(verify(&other, &torus, None, MEMORY).map(drop), ranks);
    assert_eq!(count(&other, &torus, None, MEMORY).map(drop), ranks);
    assert_eq!(count_steps(&other, &torus, None, MEMORY, |_, _| {}).map(drop), ranks);
    assert_eq!(count(&other, &torus, Some(&demand), MEMORY).map(drop), ranks);
    assert_eq!(check_counting_work(&other, &torus), ranks);
    assert_eq!(write_certificate(&other, &torus, &counts, &mut Vec::new()).map(drop), ranks);
    assert_eq!(simulate(&Request::new(&traffic, &torus, fluid, MEMORY)).map(drop), ranks);
    let said = "the schedule has 15 ranks, but the machine has 16";
    let planned = schedule_of(&torus, &other.problem, "direct", &none).unwrap_err();
    let asked = Exchange::new(&torus, &other.problem).map(drop).unwrap_err();
    let unequal = schedule_for(&torus, &other.problem, &demand, "direct", &none);
    for error in [planned, asked, unequal.unwrap_err()] {
        assert_eq!(error.to_string(), said);
    }
    let said = "requires a problem of the topology's ranks; there are 15 ranks";
    assert_eq!(claims(&torus, &other.problem, "direct", &none).unwrap_err().to_string(), said);
}

#[test]
fn selection_for_another_number_of_ranks_is_refused() {
    let refused = Exchange::new(&machine("torus:4x4").unwrap(), &problem("full:15")).unwrap_err();
    assert_eq!(refused.to_string(), "the schedule has 15 ranks, but the machine has 16");
}

#[test]
fn invalid_router_settings_are_refused() {
    let torus = machine("torus:4x4").unwrap();
    let schedule = schedule("torus:4x4");
    let traffic = Scheduled::new(&schedule, &torus);
    type Alter = fn(&mut Settings);
    let alter: [(Alter, &str); 4] = [
        (|settings| settings.vcs = 17, "vcs=17: a whole number from 1 to 16"),
        (|settings| settings.buffer_flits = 0, "buffer_flits=0: a whole number from 1 to 65536"),
        (|settings| settings.flit_bytes = 0, "flit_bytes=0: a whole number from 1 to 1048576"),
        (|settings| settings.hop_cycles = Some(0), "hop_cycles=0: a whole number from 1 to 4096"),
    ];
    for model in MODELS {
        for (alter, said) in alter {
            let mut request = Request::new(&traffic, &torus, model, MEMORY);
            alter(&mut request.settings);
            assert_eq!(simulate(&request).unwrap_err().to_string(), said);
        }
    }
    let refused = Pattern::new(&torus, "uniform:0.1", 100, 0, None, MEMORY).unwrap_err();
    assert!(refused.to_string().starts_with("flit_bytes=0: "), "{refused}");
    let mut many = torus.clone();
    many.ports = Ports::ALL;
    let flit = MODELS.iter().find(|model| model.name == "flit").unwrap();
    let refused = simulate(&Request::new(&traffic, &many, flit, MEMORY)).unwrap_err();
    assert_eq!(refused, AnalysisError::Inputs { inputs: 2 * (4 + u64::from(u32::MAX)), most: 128 });
}

#[test]
fn numbers_that_overflow_are_refused() {
    let refused = machine("cluster:4294967295*1,1").unwrap_err().to_string();
    assert!(refused.contains("more than 4294967295 ranks"), "{refused}");
    let refused = measure(1 << 20, 1 << 30, 1, 1).unwrap_err().to_string();
    assert!(refused.contains("the blocks of all ranks would take"), "{refused}");
    assert!(Subset::new(&[Rank(0)], 0).unwrap_err().to_string().contains("rank 0"));
    let strides = [0, 0, isize::MAX];
    let refused = Layout::new(&[1, 2, 3], &strides, 1).unwrap_err().to_string();
    assert!(refused.contains("fewer than 2^63 bytes"), "{refused}");
    // Refused before the workspace of such large blocks is taken.
    let plans = plan_all(&schedule("torus:4x4")).unwrap();
    let refused = SeededDriver::new(&plans).exchange(1u64 << 50, &[], &mut [], 0).unwrap_err();
    assert!(refused.to_string().contains("input"), "{refused}");
}

/// Every node of a torus sends the next one a byte.
struct Onward<'a>(&'a Machine);

impl Traffic for Onward<'_> {
    fn nodes(&self) -> u32 {
        self.0.ranks()
    }
    fn steps(&self) -> u32 {
        1
    }
    fn share(&self, node: Rank, _step: u32, out: &mut Share) {
        let Shape::Grid(torus) = self.0.topology.shape() else { panic!("a torus") };
        let to = torus.radix().shifted(node, 0, 1);
        let mut route = Route::default();
        self.0.topology.route(node, to, &mut route);
        out.receives = 1;
        out.sends = vec![Posted { to, bytes: 1, route, ..Posted::default() }];
    }
    fn classes(&self) -> RankClasses {
        let Shape::Grid(torus) = self.0.topology.shape() else { panic!("a torus") };
        let periods = vec![1; torus.sides().len()];
        RankClasses::translations(torus.radix().clone(), periods.into_iter().collect())
    }
}

#[test]
fn more_channels_than_can_be_numbered_are_refused() {
    let wormhole = MODELS.iter().find(|model| model.name == "wormhole").unwrap();
    for (text, needed) in [
        ("torus:32768x32768", 10 << 30),
        ("torus:20725x20724", 4_295_049_000),
        ("torus:1024x1024x1024", 14 << 30),
        ("torus:1073741824", 6 << 30),
    ] {
        let torus = machine(text).unwrap();
        let onward = Onward(&torus);
        let refused = simulate(&Request::new(&onward, &torus, wormhole, u128::MAX)).unwrap_err();
        let what = "numbering the channels of all links and ports";
        assert_eq!(refused, AnalysisError::Work { what, needed, limit: u32::MAX.into() });
    }
}

/// With this number of steps, which are never read.
struct Steps(u32);

impl Traffic for Steps {
    fn nodes(&self) -> u32 {
        4096
    }
    fn steps(&self) -> u32 {
        self.0
    }
    fn share(&self, _node: Rank, _step: u32, _out: &mut Share) {
        panic!("before work begins");
    }
}

#[test]
fn work_is_done_up_to_its_limit() {
    let mesh = machine("mesh:64x64").unwrap();
    let asked = |steps, machine: &Machine| conflicts(&Steps(steps), machine, None, 0);
    assert!(matches!(asked(8192, &mesh), Err(AnalysisError::Memory { .. })));
    let what = "naming conflicting links";
    let refused = AnalysisError::Work { what, needed: 8193 * 4096, limit: 1 << 25 };
    assert_eq!(asked(8193, &mesh), Err(refused));
    assert_eq!(asked(8193, &machine("full:4096").unwrap()).unwrap().conflicts, 0);
}

/// A message in the second step without a receive, which arrives before its receiver.
#[test]
fn a_message_without_a_receive_is_delivered() {
    let mesh = machine("mesh:8").unwrap();
    let messages = vec![(0, 0, 1, 100_000, 0), (1, 2, 1, 10, 0), (1, 3, 2, 10, 0)];
    let script = Script { machine: &mesh, messages };
    let unasked = script.edited(|step, share| share.receives *= u32::from(step == 0));
    for model in ["wormhole", "flit", "fluid"] {
        let found = run(&unasked, &mesh, model, Settings::default());
        assert_eq!((found.messages, found.partial), (3, false), "{model}");
    }
}

/// Progress is reported every 4096 messages, and at the end.
#[test]
fn a_watcher_sees_every_message_and_may_stop_the_simulation() {
    let (torus, schedule) = (machine("torus:9x9").unwrap(), schedule("torus:9x9"));
    let traffic = Scheduled::new(&schedule, &torus);
    for model in ["wormhole", "flit", "fluid"] {
        let (starting, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let progress = Progress {
            starting: &|_, messages| starting.store(messages, Relaxed),
            done: &|messages| _ = done.fetch_add(messages, Relaxed),
        };
        let mut asked = common::request(&traffic, &torus, model, Settings::default(), Sync::Free);
        asked.control = Control { progress, ..Control::NONE };
        let found = simulate(&asked).unwrap();
        let heard = (starting.load(Relaxed), done.load(Relaxed));
        assert_eq!((found.messages, heard, found.partial), (81 * 80, (81 * 80, 81 * 80), false));
        asked.control = Control { stop: &|| true, ..Control::NONE };
        let found = simulate(&asked).unwrap();
        assert!(found.partial && found.messages <= 4096, "{model}: {}", found.messages);
        assert!(found.deadlock.is_empty(), "{model}");
    }
}

#[test]
fn visiting_all_messages_has_a_limit() {
    let mesh = machine("mesh:64x64").unwrap();
    let asked = Steps((1 << 16) + 1);
    let what = "visiting all messages";
    let refused = AnalysisError::Work { what, needed: 4096 * ((1 << 16) + 1), limit: 1 << 28 };
    assert_eq!(simulate(&Request::new(&asked, &mesh, &MODELS[0], MEMORY)).map(drop), Err(refused));
}

/// 128 inputs of a router: three sides, and two ports or three, times the channels of a link.
#[test]
fn inputs_of_a_router_have_a_limit() {
    let flit = |ports| {
        let mut torus = machine("torus:2x2x2").unwrap();
        torus.set_ports(ports);
        let script = Script::posted(&torus, vec![(0, 1, 10)]);
        let settings = common::settings(16, 8, 16, None);
        simulate(&common::request(&script, &torus, "flit", settings, Sync::Free)).map(drop)
    };
    assert_eq!(flit(2), Ok(()));
    assert_eq!(flit(3), Err(AnalysisError::Inputs { inputs: 9 * 16, most: 128 }));
}

/// Without contention nothing is simulated, and no channel is numbered.
#[test]
fn the_time_of_a_billion_nodes_is_that_of_their_longest_messages() {
    let torus = machine("torus:1024x1024x1024").unwrap();
    let problem = common::problem(&torus, Collective::AllToAll, 1);
    let schedule = schedule_of(&torus, &problem, "suh-shin", &Parameters::new()).unwrap();
    let traffic = Scheduled::new(&schedule, &torus);
    let found = simulate(&common::request(
        &traffic,
        &torus,
        "wormhole",
        Settings::default(),
        Sync::Barrier,
    ));
    let found = found.unwrap();
    assert_eq!(found.closed_steps, schedule.rule().steps());
    let counts = count(&schedule, &torus, None, MEMORY).unwrap();
    let seconds = in_seconds(found.time);
    assert!((seconds / counts.time.total() - 1.0).abs() < 1e-9, "{seconds} {:?}", counts.time);
}

/// Work: each step, the copies and the sends of a rank in the middle, times all ranks.
#[test]
fn work_with_a_demand_counts_the_sizes_that_move() {
    for (text, algorithm, expected) in [
        // Each step sends a block.
        ("full:16", "direct", 16 * 15 * (1 + 1)),
        // All five blocks are copied before the first step, and in a step after the last.
        ("full:5", "bruck", 5 * (5 + 2 * 5 + 4)),
        // Copies in two of four steps.
        ("mesh:4x4", "suh-shin", 16 * (4 + 2 * 16 + 32)),
        // Rank 4 sends its blocks to its leader; rank 0 also sends those of its node.
        ("cluster:3,5", "node-aware", 8 * (9 + 7)),
    ] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
        let demand = Demand::drawn(&problem, "uniform:1".parse().unwrap()).unwrap();
        let work = counting_work(&schedule, &machine, Some(&demand));
        assert_eq!(work, expected, "{algorithm} on {text}");
    }
}

#[test]
fn link_totals_of_too_many_messages_are_not_computed() {
    let mesh = machine("mesh:128x64").unwrap();
    let problem = common::problem(&mesh, Collective::AllToAll, 1);
    let long = schedule_of(&mesh, &problem, "pairwise-xor", &Parameters::new()).unwrap();
    assert_eq!(link_totals(&long, &mesh), None);
    let shifts = schedule_of(&mesh, &problem, "direct", &Parameters::new()).unwrap();
    assert!(link_totals(&shifts, &mesh).is_some());
}

#[test]
fn methods_print_their_names() {
    assert_eq!([Method::Replay, Method::Classes].map(Method::name), ["replay", "classes"]);
}

/// Steps, representatives of classes, ports, and lookups for each message.
#[test]
fn work_of_counting_is_as_worked_out_by_hand() {
    for (text, ports, algorithm, expected) in [
        ("full:16", 1, "direct", [15, 1, 1, 1]),
        ("full:16", 3, "direct", [5, 1, 3, 1]),
        // Equal nodes are equivalent. Ranks share the ports of a node, and use one of their own.
        ("cluster:4*4", 4, "direct", [15, 4, 1, 1]),
        ("cluster:3*4,2,2", 4, "direct", [15, 16, 1, 1]),
        // The number of sides; where ranks differ only by carries, messages are compared with each
        // other.
        ("mesh:4x4", 1, "pairwise-xor", [15, 16, 1, 2]),
        ("mesh:4x4x2", 4, "neighbour-rings", [18, 32, 4, 3]),
        ("torus:4x6", 3, "direct", [8, 1, 3 * 3, 2]),
        // A message and its dimensions, of one of the steps between the same nodes.
        ("torus:4x4*2", 2, "pairwise-xor", [16, 32, 1 + 2, 1]),
        // Its diameter.
        ("twisted-torus:4x8", 1, "direct", [31, 32, 1, 4]),
    ] {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
        let work: u128 = expected.iter().product();
        assert_eq!(counting_work(&schedule, &machine, None), work, "{algorithm} on {text}");
    }
}

/// Odd, so that one part is the middle one.
const MANY: u64 = 200_001;

/// Two ranks that exchange a number of parts of their blocks in one step.
fn many(block_bytes: u64, part: impl Fn(u64) -> Part) -> Schedule {
    let problem = Problem::new(Collective::AllToAll, 2, 1, block_bytes).unwrap();
    let mut recorder = Recorder::new(problem);
    for i in 0..MANY {
        for (from, to) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let blocks = vec![(topocoll::Block { from, to }, part(i))];
            recorder.push(&Message { step: 0, from, to, route: None, blocks });
        }
    }
    let origin = Origin { algorithm: "by hand".to_owned(), parameters: Parameters::new() };
    Schedule::new(problem, origin, recorder.finish())
}

/// Inputs of megabytes, each of which would take hours.
#[test]
fn long_input_is_read_in_time() {
    let begin = Instant::now();
    let long = "1".repeat(500_000) + &"x".repeat(500_000);
    assert!(units::parse_seconds(&long).is_err());
    assert!(units::parse_seconds_per_byte(&long).is_err());
    // Many messages from one rank to another in a step, each paired.
    let full = machine("full:2").unwrap();
    let whole = many(1, |_| Part::Whole);
    assert!(verify(&whole, &full, None, MEMORY).unwrap().violation.is_some());
    let demand = Demand::drawn(&whole.problem, "power-law:4".parse().unwrap()).unwrap();
    assert!(count(&whole, &full, Some(&demand), MEMORY).is_ok());
    assert!(PlannedSizes::new(&plan_all(&whole).unwrap(), &demand).is_ok());
    // Each a byte of the block.
    let bytes = many(MANY, |i| Part::Bytes { first: i, end: i + 1 });
    assert_eq!(verify(&bytes, &full, None, MEMORY).unwrap().violation, None);
    let mut input = vec![0; 4 * MANY as usize];
    let mut output = input.clone();
    let plans = plan_all(&bytes).unwrap();
    pattern::fill(&plans, MANY, &mut input);
    let mut driver = ThreadedDriver::new(plans.clone(), 2);
    driver.exchange(MANY, &input, &mut output).unwrap();
    assert_eq!(pattern::first_wrong(&plans, MANY, &output), None);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn operations_without_labels_count_as_memory() {
    let format = FORMATS.iter().find(|format| format.name == "goal").unwrap();
    let Reader::File(read) = format.reader else { panic!("a format of one file") };
    let program = format!("num_ranks 1\nrank 0 {{\n{}}}\n", "calc 1\n".repeat(100_000));
    let full = machine("full:1").unwrap();
    let memory = |memory| read(&mut program.as_bytes(), &Target::new(&full, memory));
    assert!(memory(1 << 30).is_ok());
    assert!(memory(1 << 20).unwrap_err().to_string().contains("but the limit is"));
}

#[test]
#[should_panic(expected = "a message from rank 99 to rank 0 among 4 ranks")]
fn a_sender_beyond_the_ranks_panics() {
    let mut recorder = Recorder::new(Problem::new(Collective::AllToAll, 4, 1, 1).unwrap());
    let (from, to) = (Rank(99), Rank(0));
    recorder.push(&Message { step: 0, from, to, route: None, blocks: Vec::new() });
}

#[test]
#[should_panic(expected = "bytes of all outputs")]
fn an_output_of_the_wrong_length_panics() {
    let _ = pattern::first_wrong(&plan_all(&schedule("full:2")).unwrap(), 1u64, &[]);
}

#[test]
#[should_panic(expected = "the input of an exchange is only read")]
fn a_copy_into_the_input_panics() {
    let (mut output, mut work) = ([0; 4], [0; 4]);
    let mut memory = Memory { input: &[0; 4], output: &mut output, work: &mut work };
    let region = |buffer| Region { buffer, offset: 0, bytes: 4 };
    memory.copy(region(Buffer::Work), region(Buffer::Input));
}
