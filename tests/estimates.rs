//! Memory is estimated before it is taken: what is refused for want of memory says how much it would
//! take, one byte less is refused and that much is enough, and what is then taken is about that.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::problem;
use topocoll::contention::{MODELS, Request, Scheduled, Sync, simulate, steps_model};
use topocoll::formats::{FORMATS, ReadError, Reader, Source, Target, Writer};
use topocoll::{
    AnalysisError, Demand, Machine, Method, Parameters, Schedule, conflicts, count, count_unequal,
    machine, plan, verify,
};

type Ask<'a> = &'a (dyn Fn(u128) -> Result<(), AnalysisError> + std::marker::Sync);

/// What is asked for, where nothing may be used, and what one thread then takes.
fn asks_for_what_it_takes(what: &str, ask: Ask<'_>) {
    // Estimates are by threads: all is done by one.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    alone.install(|| {
        let needed = |memory| match ask(memory) {
            Err(AnalysisError::Memory { needed, .. }) => Some(needed),
            other => other.map(|()| None).unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        // One part may ask after another.
        let mut asked = needed(0).unwrap_or_else(|| panic!("{what}: takes nothing"));
        let taken = loop {
            let mut more = None;
            let taken = allocation_counter::measure(|| more = needed(asked)).bytes_max;
            let Some(more) = more else { break taken };
            assert!(more > asked, "{what}: {more} after {asked}");
            asked = more;
        };
        assert_eq!(needed(asked - 1), Some(asked), "{what}");
        // What is small has constants that are not counted, and lists have room for as much again.
        const SMALL: u64 = 1 << 16;
        let (asked, least) = (asked as u64, taken.saturating_sub(SMALL) / 2);
        let most = 4 * taken + SMALL;
        assert!((least..=most).contains(&asked), "{what}: {asked} bytes asked for, {taken} taken");
    });
}

fn planned(text: &str, ports: u32, algorithm: &str) -> (Machine, Schedule) {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    let operation = topocoll::find(algorithm).unwrap().operation();
    let problem = problem(&machine, operation, 64);
    let schedule = plan(&machine, &problem, algorithm, &Parameters::new()).unwrap();
    (machine, schedule)
}

/// Schedules of every kind of rule, and what they are called.
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
fn verifying_takes_about_what_it_asks_for() {
    // With many ports a step takes more than the blocks.
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
fn counting_takes_about_what_it_asks_for() {
    // So many links, nodes or ports that what they take is not small.
    let many = [
        ("mesh:64x64", 1, "suh-shin"),
        ("twisted-torus:64x128", 1, "bruck"),
        ("full:4000", 3999, "direct"),
        ("cluster:16384*1", 1, "bruck"),
    ];
    for (place, machine, schedule) in cases().chain(many.map(case)) {
        asks_for_what_it_takes(&format!("count, {place}"), &|memory| {
            count(&schedule, &machine, memory).map(drop)
        });
        if schedule.rule().cuts().is_empty() && machine.ranks() <= 1024 {
            let demand = Demand::drawn(&schedule.problem, "power-law:4".parse().unwrap()).unwrap();
            asks_for_what_it_takes(&format!("sizes, {place}"), &|memory| {
                count_unequal(&schedule, &machine, &demand, memory, |_, _| {}).map(drop)
            });
        }
        if machine.topology.dimensions() > 0 {
            let traffic = Scheduled::new(&schedule, &machine);
            asks_for_what_it_takes(&format!("conflicts, {place}"), &|memory| {
                conflicts(&traffic, &machine, 9, memory).map(drop)
            });
            asks_for_what_it_takes(&format!("steps, {place}"), &|memory| {
                steps_model(&traffic, &machine, memory).map(drop)
            });
        }
    }
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
            // Flits move on tori and meshes alone.
            if !matches!(ask(0), Err(AnalysisError::NeedsGrid { .. })) {
                asks_for_what_it_takes(&format!("{} {sync:?}, {place}", model.name), &ask);
            }
        }
    }
}

#[test]
fn worms_take_about_what_they_ask_for() {
    simulating_takes_about_what_it_asks_for("wormhole");
}

#[test]
fn flits_take_about_what_they_ask_for() {
    simulating_takes_about_what_it_asks_for("flit");
}

#[test]
fn flows_take_about_what_they_ask_for() {
    simulating_takes_about_what_it_asks_for("fluid");
}

/// Most links conflict in most steps, and all are to be named.
#[test]
fn naming_all_conflicts_takes_about_what_it_asks_for() {
    let (place, machine, schedule) = case(("mesh:32x4", 1, "pairwise-xor"));
    let traffic = Scheduled::new(&schedule, &machine);
    asks_for_what_it_takes(&format!("conflicts, {place}"), &|memory| {
        conflicts(&traffic, &machine, 1 << 20, memory).map(drop)
    });
}

/// The least memory in which a file is read, and what reading it then takes.
fn read_in(
    machine: &Machine,
    read: &dyn Fn(&Target<'_>) -> Result<Schedule, ReadError>,
) -> [u64; 2] {
    let (mut too_little, mut enough) = (0, 1 << 32);
    while enough - too_little > 1 {
        let between = (too_little + enough) / 2;
        match read(&Target::new(machine, between)) {
            Ok(_) => enough = between,
            Err(error) => {
                assert!(error.to_string().contains("may be used"), "{error}");
                too_little = between;
            }
        }
    }
    let target = Target::new(machine, enough);
    [enough as u64, allocation_counter::measure(|| drop(read(&target).unwrap())).bytes_max]
}

#[test]
fn what_is_read_takes_about_what_it_is_refused_at() {
    let (machine, schedule) = planned("torus:12x12", 1, "direct");
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
                // Without the blocks, which are told beside.
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
