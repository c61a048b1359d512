//! Memory is estimated before it is taken. A refusal names the estimate, one byte less is refused, the
//! estimate is enough, and the memory then taken is about the estimate.

use common::{Script, find, problem, request, schedule_of, settings};
use topocoll::contention::{
    Interval, LinkUse, MODELS, Request, Scheduled, Settings, Sync, simulate, steps_model,
};
use topocoll::formats::{FORMATS, ReadError, Reader, Source, Target, Writer};
use topocoll::{
    AnalysisError, Block, Conflict, ConflictingMessage, Demand, Machine, Method, Parameters,
    Schedule, Transfer, conflicts, count, machine, verify,
};

type Ask<'a> = &'a (dyn Fn(u128) -> Result<(), AnalysisError> + std::marker::Sync);

/// Estimates depend on the threads: one thread does the work.
fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

/// Compares the estimate of a request without memory with the memory that one thread then takes.
fn asks_for_what_it_takes(what: &str, ask: Ask<'_>) {
    alone(|| {
        let needed = |memory| match ask(memory) {
            Err(AnalysisError::Memory { needed, .. }) => Some(needed),
            other => other.map(|()| None).unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        // Parts of the work may be refused one after another.
        let mut asked = needed(0).unwrap_or_else(|| panic!("{what}: takes nothing"));
        let taken = loop {
            let mut more = None;
            let taken = allocation_counter::measure(|| more = needed(asked)).bytes_max;
            let Some(more) = more else { break taken };
            assert!(more > asked, "{what}: {more} after {asked}");
            asked = more;
        };
        assert_eq!(needed(asked - 1), Some(asked), "{what}");
        // Small constants are not estimated, and the capacity of a list may be twice its length.
        const SMALL: u64 = 1 << 16;
        let (asked, least) = (asked as u64, taken.saturating_sub(SMALL) / 2);
        let most = 4 * taken + SMALL;
        assert!((least..=most).contains(&asked), "{what}: {asked} bytes asked for, {taken} taken");
    });
}

fn planned(text: &str, ports: u32, algorithm: &str) -> (Machine, Schedule) {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    let operation = find(algorithm).unwrap().info().operation;
    let problem = problem(&machine, operation, 64);
    let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
    (machine, schedule)
}

/// Schedules of every kind of rule, with their names.
fn cases() -> impl Iterator<Item = (String, Machine, Schedule)> {
    [
        ("torus:16x16", 1, "suh-shin"),
        ("torus:16x16", 4, "neighbour-rings"),
        ("mesh:16x16", 1, "direct"),
        ("mesh:9x9", 1, "one-factor"),
        ("full:200", 1, "bruck"),
        ("full:120", 3, "concat"),
        ("cluster:20*5", 1, "clustered-factor"),
    ]
    .into_iter()
    .map(case)
}

fn case((text, ports, algorithm): (&str, u32, &str)) -> (String, Machine, Schedule) {
    let (machine, schedule) = planned(text, ports, algorithm);
    (format!("{algorithm} on {text}"), machine, schedule)
}

#[test]
fn verifying_takes_about_its_estimate() {
    // With many ports the messages of a step take more than the blocks.
    for (place, machine, schedule) in cases().chain([case(("full:300", 299, "direct"))]) {
        let verified = |method, memory| {
            verify(&schedule, &machine, Some(method), memory)
                .map(|found| assert_eq!(found.violation, None))
        };
        asks_for_what_it_takes(&format!("replay, {place}"), &|memory| {
            verified(Method::Replay, memory)
        });
        if schedule.rule().cuts().is_empty() {
            asks_for_what_it_takes(&format!("classes, {place}"), &|memory| {
                verified(Method::Classes, memory)
            });
        }
    }
}

#[test]
fn counting_takes_about_its_estimate() {
    // Many links, nodes or ports, so that their memory is not small.
    let many = [
        ("mesh:64x64", 1, "suh-shin"),
        ("twisted-torus:64x128", 1, "bruck"),
        ("full:4000", 3999, "direct"),
        ("cluster:16384*1", 1, "bruck"),
    ];
    for (place, machine, schedule) in cases().chain(many.map(case)) {
        asks_for_what_it_takes(&format!("count, {place}"), &|memory| {
            count(&schedule, &machine, None, memory).map(drop)
        });
        if schedule.rule().cuts().is_empty() && machine.ranks() <= 1024 {
            let demand = Demand::drawn(&schedule.problem, "power-law:4".parse().unwrap()).unwrap();
            asks_for_what_it_takes(&format!("sizes, {place}"), &|memory| {
                count(&schedule, &machine, Some(&demand), memory).map(drop)
            });
        }
        if machine.topology.link_numbers() > 0 {
            let traffic = Scheduled::new(&schedule, &machine);
            asks_for_what_it_takes(&format!("conflicts, {place}"), &|memory| {
                conflicts(&traffic, &machine, Some(9), memory).map(drop)
            });
            asks_for_what_it_takes(&format!("steps, {place}"), &|memory| {
                steps_model(&traffic, &machine, memory).map(drop)
            });
        }
    }
}

/// Where each rank is a class of its own, following classes visits every rank, as replay does, and
/// takes longer.
#[test]
fn beyond_4096_ranks_the_cheaper_method_that_fits_is_used() {
    const ENOUGH: u128 = 16 << 30;
    for (text, algorithm, memory, method) in [
        ("torus:67x67", "coloured-rings", ENOUGH, Method::Replay),
        ("torus:67x67", "one-factor", ENOUGH, Method::Replay),
        ("torus:65x65", "direct-rings", ENOUGH, Method::Replay),
        ("mesh:65x65", "gather-broadcast", ENOUGH, Method::Replay),
        ("torus:67x67", "coloured-rings", 1 << 20, Method::Classes),
        ("torus:67x67", "bruck", ENOUGH, Method::Classes),
        ("torus:67x67", "neighbour-rings", ENOUGH, Method::Classes),
        ("torus:72x72", "coloured-rings", ENOUGH, Method::Classes),
        ("torus:72x72", "suh-shin", ENOUGH, Method::Classes),
        ("torus:256x256", "suh-shin", ENOUGH, Method::Classes),
        ("torus:64x64", "bruck", ENOUGH, Method::Replay),
    ] {
        let (_, schedule) = planned(text, 1, algorithm);
        assert_eq!(Method::cheaper(&schedule, memory), method, "{algorithm} on {text}");
    }
    // The result names the method that was used.
    let (machine, schedule) = planned("mesh:65x65", 1, "gather-broadcast");
    assert_eq!(verify(&schedule, &machine, None, ENOUGH).unwrap().method, Method::Replay);
}

/// The estimate for one thread, from a request without memory.
fn asked_by_one<T: Send>(
    ask: impl Fn() -> Result<T, AnalysisError> + std::marker::Sync,
) -> (&'static str, u128) {
    match alone(|| ask().map(drop)) {
        Err(AnalysisError::Memory { what, needed, .. }) => (what, needed),
        other => panic!("{other:?}"),
    }
}

/// The messages of a step, sent and received, and what is counted by link or by node.
#[test]
fn the_estimate_of_counting_covers_counters_and_messages_of_a_step() {
    let asked = |text: &str, ports, algorithm: &str| {
        let (machine, schedule) = planned(text, ports, algorithm);
        asked_by_one(|| count(&schedule, &machine, None, 0)).1
    };
    let message = 2 * size_of::<Transfer>() as u128;
    assert_eq!(asked("full:9", 1, "direct"), message);
    assert_eq!(asked("full:9", 5, "direct"), 5 * message);
    assert_eq!(asked("cluster:30*2,1", 3, "bruck"), 31 * 100 + 3 * message);
    // Equal nodes are equivalent.
    assert_eq!(asked("cluster:30*2", 3, "bruck"), 100 + 3 * message);
    // Links of cyclic shifts have a closed form.
    assert_eq!(asked("torus:8x6", 1, "direct"), message);
    let links = asked("mesh:8x8", 1, "pairwise-xor") - message;
    assert_eq!(asked("mesh:8x16", 1, "pairwise-xor") - message, 2 * links);
    assert!(links >= 4 * 64 * 24, "{links}");
}

/// Every slot's blocks, piece by piece, held and under way, and the messages of a step at both ends.
#[test]
fn the_estimate_of_replay_covers_all_slots_and_the_messages_of_a_step() {
    let message = 4 * (size_of::<Transfer>() + size_of::<[u32; 2]>()) as u128;
    for (text, ports, algorithm) in [
        ("full:9", 1, "direct"),
        ("full:9", 7, "direct"),
        ("torus:4x6", 1, "bruck"),
        ("full:14", 3, "concat"),
    ] {
        let (machine, schedule) = planned(text, ports, algorithm);
        let ask = || verify(&schedule, &machine, Some(Method::Replay), 4096);
        let (ranks, rule) = (u128::from(machine.ranks()), schedule.rule());
        let pieces = u128::from(rule.slots()) * (rule.cuts().len() as u128 + 1);
        // For an all-to-all also whether each block is forwarded.
        let bytes = if algorithm == "concat" { 8 } else { 9 };
        let needed = ranks * (bytes * pieces + 1024 + u128::from(ports) * message);
        assert_eq!(asked_by_one(ask), ("a full replay", needed), "{algorithm} on {text}");
    }
}

/// The steps of every class, and a layout and the messages of two steps, sent and received.
#[test]
fn the_estimate_of_following_covers_the_steps_of_every_class() {
    let step = |text: &str, ports, algorithm: &str| {
        let (machine, schedule) = planned(text, ports, algorithm);
        let asked =
            |memory| asked_by_one(|| verify(&schedule, &machine, Some(Method::Classes), memory));
        // Counting is estimated before.
        let counting = asked(0).1;
        let (what, needed) = asked(counting);
        assert_eq!(what, "following every class", "{text}");
        let rule = schedule.rule();
        let layout = u128::from(rule.slots()) * size_of::<Option<Block>>() as u128;
        let messages = 4 * u128::from(ports) * size_of::<Transfer>() as u128;
        let steps = u128::from(rule.classes().count()) * u128::from(rule.steps());
        // Up to 64 steps are read at once, those of each class by its sends and receives.
        let classes = rule.classes().count();
        let at_once = u128::from(classes * (64 / classes).max(1).min(rule.steps()));
        let of_steps = needed - layout - messages - at_once * messages / 2;
        assert_eq!(of_steps % steps, 0, "{text}");
        of_steps / steps
    };
    let [one, two, five] = [1, 2, 5].map(|ports| step("full:99", ports, "direct"));
    let (message, rest) = (two - one, 2 * one - two);
    assert_eq!(five, rest + 5 * message);
    assert!((100..300).contains(&message) && (80..200).contains(&rest), "{message} {rest}");
    for (text, algorithm) in
        [("mesh:8x8", "suh-shin"), ("torus:8x16", "suh-shin"), ("full:64", "bruck")]
    {
        assert_eq!(step(text, 1, algorithm), one, "{text}");
    }
}

#[test]
fn the_estimate_of_counting_with_a_demand_covers_a_size_in_every_slot() {
    for (text, algorithm) in [("full:9", "direct"), ("torus:4x6", "bruck")] {
        let (machine, schedule) = planned(text, 1, algorithm);
        let demand = Demand::drawn(&schedule.problem, "power-law:4".parse().unwrap()).unwrap();
        let ask = || count(&schedule, &machine, Some(&demand), 0);
        let slots = u128::from(schedule.rule().slots()) * u128::from(machine.ranks());
        // Messages under way take at most the same again.
        assert_eq!(asked_by_one(ask), ("the sizes in all slots", 2 * 8 * slots), "{text}");
    }
}

/// The links of all steps, or those kept for the requested number, and the listed messages of each.
#[test]
fn the_estimate_of_listing_conflicts_covers_links_and_messages() {
    let asked = |text: &str, most| {
        let (machine, schedule) = planned(text, 1, "direct");
        let traffic = Scheduled::new(&schedule, &machine);
        // Links of cyclic shifts require no counters.
        let (what, needed) = asked_by_one(|| conflicts(&traffic, &machine, Some(most), 0));
        assert_eq!(what, "conflicting links", "{text}");
        let steps = schedule.rule().steps();
        (needed, u128::from(machine.topology.links()) * u128::from(steps))
    };
    let named = 16 * size_of::<ConflictingMessage>() as u128;
    let kept = size_of::<Conflict>() as u128;
    let (all, links) = asked("torus:4x6", 1 << 40);
    assert_eq!(all, links * (kept + named));
    let (few, _) = asked("torus:30x30", 100);
    assert_eq!(asked("torus:30x30", 300).0 - few, 200 * (4 * kept + named));
}

fn simulating_takes_about_what_it_asks_for(model: &str) {
    let model = MODELS.iter().find(|known| known.name == model).unwrap();
    for (place, machine, schedule) in cases() {
        let traffic = Scheduled::new(&schedule, &machine);
        for sync in [Sync::Free, Sync::Barrier] {
            let ask = |memory| {
                let mut request = Request::new(&traffic, &machine, model, memory);
                request.sync = sync;
                simulate(&request).map(drop)
            };
            // The flit model requires links.
            if !matches!(ask(0), Err(AnalysisError::NeedsLinks { .. })) {
                asks_for_what_it_takes(&format!("{} {sync:?}, {place}", model.name), &ask);
            }
        }
    }
}

/// The estimate of a model on an 8x8 torus unless stated, for one message over one link.
struct Asked<'a> {
    model: &'a str,
    torus: &'a str,
    ports: u32,
    settings: Settings,
    /// By step: sender, receiver and bytes, posted at once.
    messages: Vec<(u32, u32, u32, u64, u64)>,
    records: bool,
    /// Seconds of a byte of a rank's injection.
    injection: f64,
}

impl<'a> Asked<'a> {
    fn of(model: &'a str) -> Self {
        let (settings, messages) = (Settings::default(), vec![(0, 0, 1, 64, 0)]);
        Self {
            model,
            torus: "torus:8x8",
            ports: 1,
            settings,
            messages,
            records: false,
            injection: 0.0,
        }
    }

    /// With one message over a link in each step.
    fn steps(self, steps: u32) -> u128 {
        Self { messages: (0..steps).map(|step| (step, 0, 1, 64, 0)).collect(), ..self }.bytes()
    }

    fn bytes(self) -> u128 {
        let mut machine = machine(self.torus).unwrap();
        machine.set_ports(self.ports);
        machine.timing.injection.rank = self.injection;
        let traffic = Script { machine: &machine, messages: self.messages };
        let mut asked = request(&traffic, &machine, self.model, self.settings, Sync::Free);
        (asked.memory, asked.records) = (0, self.records);
        asked_by_one(|| simulate(&asked)).1
    }
}

const LINK: u128 = size_of::<LinkUse>() as u128;

#[test]
fn the_estimate_of_recording_covers_links_and_steps() {
    for model in ["wormhole", "flit", "fluid"] {
        let (one, of) = (Asked::of(model).bytes(), || Asked::of(model));
        let over = |links| vec![(0, 0, links, 64, 0)];
        let recorded = |links| Asked { messages: over(links), records: true, ..of() }.bytes();
        let plain = |links| Asked { messages: over(links), ..of() }.bytes();
        for links in 1..5 {
            let kept = u128::from(links) * size_of::<Interval>() as u128;
            assert_eq!(recorded(links) - plain(links), kept, "{model}");
        }
        // Steps without messages have times only.
        let late = Asked { messages: vec![(100, 0, 1, 64, 0)], ..of() }.bytes();
        assert_eq!(late - one, 100 * 64, "{model}");
    }
}

#[test]
fn the_estimate_of_worms_covers_link_port_message_and_hop() {
    let (one, of) = (Asked::of("wormhole").bytes(), || Asked::of("wormhole"));
    // By link two pools of two numbers, and the worms of up to four channels, or more.
    let link = 2 * 8 + 24 + 2 * LINK;
    assert_eq!(Asked { torus: "torus:4x4x4", ..of() }.bytes() - one, 128 * link);
    assert_eq!(Asked { settings: settings(5, 8, 16, None), ..of() }.bytes() - one, 256 * 8 * 4);
    assert_eq!(Asked { injection: 1e-9, ..of() }.bytes() - one, 64 * 2 * 24);
    let larger = Asked { torus: "torus:16x16", ..of() }.bytes();
    assert_eq!(larger - one, 192 * (4 * link + 2 * 8 + 96));
    let far = |to| Asked { messages: vec![(0, 0, to, 64, 0)], ..of() }.bytes();
    assert_eq!((far(3) - one, far(4) - one), (2 * 20, 3 * 20));
    // A worm and a cause, and above as many as there are nodes a cause alone; a step each.
    let worm = of().steps(2) - one - 64;
    let cause = of().steps(65) - of().steps(64) - 64;
    assert!((400..700).contains(&(worm - cause)) && (40..100).contains(&cause), "{worm} {cause}");
    assert_eq!(of().steps(64) - one, 63 * (worm + 64));
    assert_eq!(of().steps(99) - of().steps(64), 35 * (cause + 64));
}

#[test]
fn the_estimate_of_flows_covers_link_message_and_hop() {
    let (one, of) = (Asked::of("fluid").bytes(), || Asked::of("fluid"));
    // Its use, kept twice, and its flows, rates and level.
    let link = 2 * LINK + 96;
    assert_eq!(Asked { torus: "torus:4x4x4", ..of() }.bytes() - one, 128 * link);
    assert_eq!(Asked { injection: 1e-9, ..of() }.bytes() - one, 64 * 2 * 96);
    let larger = Asked { torus: "torus:16x16", ..of() }.bytes();
    assert_eq!(larger - one, 192 * (4 * link + 96));
    let far = |to| Asked { messages: vec![(0, 0, to, 64, 0)], ..of() }.bytes();
    assert_eq!((far(3) - one, far(4) - one), (2 * 64, 3 * 64));
    // Flows and their causes, as many as there are nodes.
    let flow = of().steps(2) - one - 64;
    assert!((1000..2000).contains(&flow), "{flow}");
    assert_eq!(of().steps(64) - one, 63 * (flow + 64));
    assert_eq!(of().steps(99) - of().steps(64), 35 * 64);
}

#[test]
fn the_estimate_of_routers_covers_port_channel_flit_and_cycle() {
    let (one, of) = (Asked::of("flit").bytes(), || Asked::of("flit"));
    let ports = |settings| {
        let of = |ports| Asked { ports, settings, ..of() }.bytes();
        assert_eq!(of(4) - of(2), 2 * (of(2) - of(1)));
        (of(2) - of(1)) / 64
    };
    let port = ports(Settings::default());
    let flits = |vcs, flits| ports(settings(vcs, flits, 16, None));
    let cycles = |cycles| ports(settings(2, 8, 16, Some(cycles)));
    assert_eq!(port, cycles(5));
    assert_eq!([flits(2, 9) - port, flits(2, 16) - port], [2 * 16, 2 * 8 * 16]);
    let channel = flits(3, 8) - port;
    assert_eq!(flits(4, 8) - port, 2 * channel);
    assert!((8 * 16 + 40..8 * 16 + 120).contains(&channel), "{channel}");
    let arrival = cycles(6) - port;
    assert_eq!(cycles(9) - port, 4 * arrival);
    assert!((16..=32).contains(&arrival), "{arrival}");
    // A flit and a credit under way in each of nine cycles, the injecting ports, and the two ends of
    // links.
    let rest = port - 2 * channel - 9 * arrival - LINK;
    assert!((40..100).contains(&rest), "{rest}");
    // Four links and a port by router, and six where there are three sides.
    assert_eq!(Asked { torus: "torus:4x4x4", ..of() }.bytes() - one, 64 * 2 * (port + LINK));
    // Injection that limits a port, and whose turn it is, and injection that does not.
    let limited = |seconds| Asked { injection: seconds, ..of() }.bytes() - one;
    assert_eq!((limited(2e-9), limited(1e-9)), (64 * (2 * 16 + 4 + 1), 0));
    let far = |to| Asked { messages: vec![(0, 0, to, 64, 0)], ..of() }.bytes();
    assert_eq!((far(3) - one, far(4) - one), (2 * 8, 3 * 8));
    // A message, its packet and its route.
    let packet = of().steps(2) - one - 64;
    assert!((240..340).contains(&packet), "{packet}");
    assert_eq!(of().steps(64) - one, 63 * (packet + 64));
    assert_eq!(of().steps(99) - of().steps(64), 35 * 64);
}

#[test]
fn the_wormhole_model_takes_about_its_estimate() {
    simulating_takes_about_what_it_asks_for("wormhole");
}

#[test]
fn the_flit_model_takes_about_its_estimate() {
    simulating_takes_about_what_it_asks_for("flit");
}

#[test]
fn the_fluid_model_takes_about_its_estimate() {
    simulating_takes_about_what_it_asks_for("fluid");
}

/// Most links conflict in most steps, and all are listed.
#[test]
fn listing_all_conflicts_takes_about_its_estimate() {
    let (place, machine, schedule) = case(("mesh:32x4", 1, "pairwise-xor"));
    let traffic = Scheduled::new(&schedule, &machine);
    asks_for_what_it_takes(&format!("conflicts, {place}"), &|memory| {
        conflicts(&traffic, &machine, Some(1 << 20), memory).map(drop)
    });
}

/// About the least memory in which a file is read, and the memory that reading then takes.
fn read_in(
    machine: &Machine,
    read: &dyn Fn(&Target<'_>) -> Result<Schedule, ReadError>,
) -> [u64; 2] {
    let (mut too_little, mut enough) = (0, 1 << 28);
    while enough - too_little > 1 + enough / 256 {
        let between = (too_little + enough) / 2;
        match read(&Target::new(machine, between)) {
            Ok(_) => enough = between,
            Err(error) => {
                assert!(error.to_string().contains("but the limit is"), "{error}");
                too_little = between;
            }
        }
    }
    let target = Target::new(machine, enough);
    [enough as u64, allocation_counter::measure(|| drop(read(&target).unwrap())).bytes_max]
}

#[test]
fn reading_takes_about_its_estimate() {
    let (machine, schedule) = planned("torus:10x10", 1, "direct");
    let source = Source::new(&schedule, &machine, 1 << 32);
    let about = |what: &str, [asked, taken]: [u64; 2]| {
        assert!((taken..=4 * taken).contains(&asked), "{what}: {asked} asked for, {taken} taken");
    };
    for format in FORMATS {
        match (format.writer, format.reader) {
            (Writer::File(write), Reader::File(read)) => {
                let mut text = Vec::new();
                write(&source, &mut text).unwrap();
                let lines = text.split_inclusive(|&byte| byte == b'\n');
                // Without the blocks, which are estimated separately.
                let plain = lines.filter(|line| !line.starts_with(b"// {")).flatten();
                for text in [plain.copied().collect(), text.clone()] {
                    let read = |target: &Target<'_>| read(&mut text.as_slice(), target);
                    about(format.name, read_in(&machine, &read));
                }
            }
            (Writer::Folder(write), Reader::Folder(read)) => {
                let folder = tempfile::tempdir().unwrap();
                write(&source, folder.path(), &|_| ()).unwrap();
                about(format.name, read_in(&machine, &|target| read(folder.path(), target)));
            }
            (_, reader) => assert!(matches!(reader, Reader::None(_)), "{}", format.name),
        }
    }
}
