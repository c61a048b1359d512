//! Readers: our own schedules lose nothing, those of other programs are read as far as they go.

use std::path::{Path, PathBuf};

use common::{MEMORY, schedule_of, target};
use proptest::prelude::*;
use topocoll::exec::{Plan, PlanError};
use topocoll::formats::{self, FORMATS, ReadError, Reader, Source, Writer, jsonl};
use topocoll::{
    AnalysisError, Block, Collective, Machine, Message, Origin, Parameters, Part, Problem, Rank,
    Recorder, Route, Schedule, Shape, count, machine, verify,
};

pub(super) fn write(
    name: &str,
    schedule: &Schedule,
    machine: &Machine,
) -> Result<String, AnalysisError> {
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    let Writer::File(write) = format.writer else { panic!("{name} writes a folder") };
    let mut out = Vec::new();
    write(&Source::new(schedule, machine, MEMORY), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

pub(super) fn read(name: &str, text: &str, machine: &Machine) -> Result<Schedule, ReadError> {
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    let Reader::File(read) = format.reader else { panic!("{name} reads no file") };
    assert!((format.knows)(text), "{name} does not know `{text:.40}`");
    read(&mut text.as_bytes(), &target(machine))
}

/// Writes a folder for SimGrid.
fn write_simgrid(schedule: &Schedule, machine: &Machine, folder: &Path) {
    let format = FORMATS.iter().find(|format| format.name == "simgrid").unwrap();
    let Writer::Folder(write) = format.writer else { panic!("simgrid writes a file") };
    write(&Source::new(schedule, machine, MEMORY), folder, &|_| ()).unwrap();
}

pub(super) fn planned(name: &str, algorithm: &str) -> (Schedule, Machine) {
    let machine = machine(name).unwrap();
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1024).unwrap();
    (schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap(), machine)
}

/// Messages drawn at random, each of blocks or parts that its sender has when it is sent.
fn drawn(name: &str, operation: Collective, seed: u64) -> (Schedule, Machine) {
    let mut machine = machine(name).unwrap();
    machine.set_ports(4);
    let mut random = fastrand::Rng::with_seed(seed);
    let ranks = machine.ranks();
    let problem = Problem::new(operation, ranks, 4, 6).unwrap();
    let own = |rank: Rank| -> Vec<Block> {
        match operation {
            Collective::AllToAll => {
                (0..ranks).map(|to| Block { from: rank, to: Rank(to) }).collect()
            }
            Collective::AllGather => vec![Block::of(rank)],
        }
    };
    let mut held: Vec<Vec<Block>> = (0..ranks).map(Rank).map(own).collect();
    let mut recorder = Recorder::new(problem);
    let mut step = 0;
    for _ in 0..random.u32(1..6) {
        let mut arrived: Vec<(Rank, Block)> = Vec::new();
        for from in (0..ranks).map(Rank).filter(|_| random.bool()).collect::<Vec<_>>() {
            let to = Rank((from.0 + random.u32(1..ranks)) % ranks);
            let mut blocks = Vec::new();
            // A block arrives once in a step.
            for &block in
                held[from.index()].iter().filter(|&&block| !arrived.contains(&(to, block)))
            {
                let split = random.u64(1..6);
                match random.u8(..8) {
                    0..2 => blocks.push((block, Part::Whole)),
                    2 => {
                        blocks.push((block, Part::Bytes { first: 0, end: split }));
                        blocks.push((block, Part::Bytes { first: split, end: 6 }));
                    }
                    _ => {}
                }
            }
            if !blocks.is_empty() {
                arrived.extend(blocks.iter().map(|(block, _)| (to, *block)));
                arrived.dedup();
                let route = far_way(&machine, from, to, &mut random);
                let route = (!route.is_empty()).then_some(route);
                recorder.push(&Message { step, from, to, route, blocks });
            }
        }
        // Readers do not count a step without messages.
        step += u32::from(!arrived.is_empty());
        for (to, block) in arrived {
            held[to.index()].push(block);
            held[to.index()].sort_unstable();
            held[to.index()].dedup();
        }
    }
    let parameters = [("seed".to_owned(), topocoll::Setting::Integer(seed % 1000))].into();
    let origin = Origin { algorithm: "drawn".to_owned(), parameters };
    (Schedule::new(problem, origin, recorder.finish()), machine)
}

/// The machine's own route, or on tori sometimes the opposite direction along one dimension.
fn far_way(machine: &Machine, from: Rank, to: Rank, random: &mut fastrand::Rng) -> Route {
    let mut own = Route::default();
    let Shape::Grid(grid) = machine.topology.shape() else { return own };
    machine.topology.route(from, to, &mut own);
    let turned = random.usize(..2 * own.segments().len());
    let mut route = Route::default();
    for (i, segment) in own.segments().iter().enumerate() {
        let u = segment.dimension as usize;
        let around = if grid.wrap()[u] && i == turned { i64::from(grid.sides()[u]) } else { 0 };
        route.push(segment.dimension, segment.hops - segment.hops.signum() * around);
    }
    route
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn writing_and_reading_loses_nothing(
        name in prop::sample::select(vec!["full:5", "torus:4x3", "mesh:2x3", "grid:5~x2", "cluster:3,1,2"]),
        gathers in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let operation = if gathers { Collective::AllGather } else { Collective::AllToAll };
        let (schedule, machine) = drawn(name, operation, seed);
        let lines = write("jsonl", &schedule, &machine).unwrap();
        for name in ["jsonl", "goal"] {
            let text = write(name, &schedule, &machine).unwrap();
            let back = read(name, &text, &machine).unwrap();
            prop_assert_eq!(&write("jsonl", &back, &machine).unwrap(), &lines);
        }
        // A schedule of sizes only is written with equal bytes.
        let values = write("csv", &schedule, &machine).unwrap();
        let back = read("csv", &values, &machine).unwrap();
        prop_assert_eq!(write("csv", &back, &machine).unwrap(), values);
        let folder = tempfile::tempdir().unwrap();
        let format = FORMATS.iter().find(|format| format.name == "simgrid").unwrap();
        let Writer::Folder(write_folder) = format.writer else { panic!("simgrid writes a file") };
        let source = Source::new(&schedule, &machine, MEMORY);
        match write_folder(&source, folder.path(), &|_| ()) {
            // SimGrid has only one route for each pair.
            Err(AnalysisError::TwoRoutes { .. }) => {}
            written => {
                written.unwrap();
                let back = formats::read(folder.path(), &target(&machine)).unwrap();
                prop_assert_eq!(&write("jsonl", &back, &machine).unwrap(), &lines);
            }
        }
    }

    #[test]
    fn broken_files_are_refused_or_read_without_a_panic(
        name in prop::sample::select(vec!["jsonl", "csv", "goal", "simgrid"]),
        named in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
    ) {
        let (schedule, machine) = planned("torus:2x2", "direct");
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().join("schedule");
        if name == "simgrid" {
            std::fs::create_dir(&path).unwrap();
            write_simgrid(&schedule, &machine, &path);
            // Without the JSON lines the order is checked.
            if !named {
                std::fs::remove_file(path.join("schedule.jsonl")).unwrap();
            }
            path = path.join("rank-0.txt");
        } else {
            let text = write(name, &schedule, &machine).unwrap();
            let begin = text.find("num_ranks").filter(|_| !named).unwrap_or(0);
            std::fs::write(&path, &text.as_bytes()[begin..]).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte, cuts) in edits {
            let at = at.index(bytes.len());
            if cuts { bytes.truncate(at.max(1)) } else { bytes[at] = byte }
        }
        std::fs::write(path, bytes).unwrap();
        if let Err(error) = formats::read(&folder.path().join("schedule"), &target(&machine)) {
            let known = matches!(error, ReadError::Line { .. } | ReadError::Unknown { .. } | ReadError::File { .. });
            prop_assert!(known, "{}", error);
        }
    }
}

#[test]
fn a_schedule_that_is_read_delivers_and_runs() {
    for (name, algorithm) in
        [("torus:4x4", "suh-shin"), ("full:7", "bruck"), ("cluster:3,1,2", "clustered-factor")]
    {
        let (schedule, machine) = planned(name, algorithm);
        let folder = tempfile::tempdir().unwrap();
        write_simgrid(&schedule, &machine, folder.path());
        let text = write("goal", &schedule, &machine).unwrap();
        for back in [
            read("goal", &text, &machine).unwrap(),
            formats::read(folder.path(), &target(&machine)).unwrap(),
        ] {
            assert_eq!((&back.origin, back.problem), (&schedule.origin, schedule.problem));
            let found = verify(&back, &machine, None, MEMORY).unwrap();
            assert_eq!(found.violation, None, "{name}");
            let own = count(&schedule, &machine, None, MEMORY).unwrap();
            assert_eq!((found.counts.steps, found.counts.bytes), (own.steps, own.bytes));
            assert!(Plan::new(&back, Rank(1)).is_ok());
        }
    }
}

#[test]
fn without_blocks_steps_and_bytes_are_counted_and_delivery_is_not_claimed() {
    for (name, algorithm) in [
        ("full:8", "direct"),
        ("torus:8x8", "suh-shin"),
        ("torus:4x4", "neighbour-rings"),
        ("full:7", "bruck"),
    ] {
        let (schedule, machine) = planned(name, algorithm);
        let text = write("goal", &schedule, &machine).unwrap();
        let bare = &text[text.find("num_ranks").unwrap()..];
        let folder = tempfile::tempdir().unwrap();
        write_simgrid(&schedule, &machine, folder.path());
        std::fs::remove_file(folder.path().join("schedule.jsonl")).unwrap();
        for back in [
            read("goal", bare, &machine).unwrap(),
            formats::read(folder.path(), &target(&machine)).unwrap(),
        ] {
            assert!(!back.rule().names_blocks());
            let (own, found) =
                [&schedule, &back].map(|s| count(s, &machine, None, MEMORY).unwrap()).into();
            // Neither format has routes; the machine's own are taken.
            assert_eq!(
                (own.steps, own.messages, own.bytes, own.port_violations),
                (found.steps, found.messages, found.bytes, found.port_violations),
                "{name}"
            );
            assert_eq!(verify(&back, &machine, None, MEMORY).unwrap_err(), AnalysisError::NoBlocks);
            assert_eq!(Plan::new(&back, Rank(0)).unwrap_err(), PlanError::NoBlocks);
            for format in ["jsonl", "msccl"] {
                assert_eq!(write(format, &back, &machine).unwrap_err(), AnalysisError::NoBlocks);
            }
            for format in ["csv", "goal", "dot"] {
                assert!(write(format, &back, &machine).is_ok());
            }
        }
    }
}

/// Step, sender, receiver and bytes of all messages.
pub(super) fn messages(schedule: &Schedule) -> Vec<(u32, u32, u32, u128)> {
    let (mut out, mut does) = (Vec::new(), topocoll::Step::default());
    for step in 0..schedule.rule().steps() {
        for rank in 0..schedule.problem.ranks {
            schedule.rule().step(Rank(rank), step, &mut does);
            let bytes = |send: &topocoll::Transfer| send.slots.bytes(schedule.problem.block_bytes);
            out.extend(does.sends.iter().map(|send| (step, rank, send.peer.0, bytes(send))));
        }
    }
    out
}

fn of_others(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schedules").join(name)
}

#[test]
fn files_of_other_programs_get_the_steps_of_their_order() {
    let machine = machine("full:3").unwrap();
    let read = |name: &str| formats::read(&of_others(name), &target(&machine)).unwrap();
    assert_eq!(
        messages(&read("gather-scatter.goal")),
        [(0, 0, 1, 2048), (1, 0, 2, 2048), (1, 1, 0, 2048), (2, 2, 0, 2048)]
    );
    assert_eq!(
        messages(&read("three-ranks")),
        [(0, 0, 1, 1024), (0, 1, 2, 1024), (0, 2, 0, 1024), (1, 0, 2, 128)]
    );
    assert_eq!(messages(&read("three-ranks/traces.txt")), messages(&read("three-ranks")));
    assert_eq!(
        messages(&read("neighbours.csv")),
        [(0, 0, 1, 100), (0, 1, 2, 100), (0, 2, 0, 100), (2, 0, 2, 40)]
    );
}

/// SMPI writes sizes as floating-point numbers.
#[test]
fn sizes_of_traces_may_have_exponents() {
    let machine = machine("full:2").unwrap();
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/smpi-traces");
    let read = formats::read(&inputs, &target(&machine)).unwrap();
    assert_eq!(messages(&read), [(0, 0, 1, 1_000_000)]);
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("traces.txt", "0\n1\n"), ("1", "1 init\n1 recv 0 0 8\n1 finalize\n")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for size in ["8.0", "0.8e1", "8E0"] {
        std::fs::write(folder.path().join("0"), format!("0 send 1 0 {size}\n")).unwrap();
        let read = formats::read(folder.path(), &target(&machine)).unwrap();
        assert_eq!(messages(&read), [(0, 0, 1, 8)], "{size}");
    }
    for size in ["1.5", "-8", "+8", "nan", "inf", "1e300", "1e17", "8e", "0x8", "8,0"] {
        std::fs::write(folder.path().join("0"), format!("0 send 1 0 {size}\n")).unwrap();
        let refused = formats::read(folder.path(), &target(&machine)).unwrap_err().to_string();
        let rule = format!("line 1: count is `{size}`, not a whole number in range");
        assert!(refused.contains(&rule), "{refused}");
    }
}

/// A profiler writes counts as doubles; ranks 2 and 3 wait for ranks 0 and 1 before two barriers.
#[test]
fn traces_count_doubles_and_wait_at_each_barrier() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("traces.txt", "0\n1\n2\n3\n"),
        ("0", "0 init 1\n0 send 1 1 8\n0 barrier\n0 send 1 2 8\n0 barrier\n0 finalize\n"),
        ("1", "1 init 1\n1 recv 0 1 8\n1 barrier\n1 recv 0 2 8\n1 barrier\n1 finalize\n"),
        ("2", "2 init\n2 barrier\n2 barrier\n2 send 3 1 8\n2 finalize\n"),
        ("3", "3 init\n3 barrier\n3 barrier\n3 recv 2 1 8\n3 finalize\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let machine = machine("full:4").unwrap();
    let read = formats::read(folder.path(), &target(&machine)).unwrap();
    assert_eq!(messages(&read), [(0, 0, 1, 64), (1, 0, 1, 64), (2, 2, 3, 8)]);
}

#[test]
fn written_files_have_unchanged_bytes() {
    let machine = machine("full:3").unwrap();
    let golden = std::fs::read_to_string(of_others("full-3.goal")).unwrap();
    let back = read("goal", &golden, &machine).unwrap();
    assert_eq!(write("goal", &back, &machine).unwrap(), golden);
    let machine = topocoll::machine("torus:2x2").unwrap();
    let back = formats::read(&of_others("torus-2x2"), &target(&machine)).unwrap();
    let values = std::fs::read_to_string(of_others("torus-2x2.csv")).unwrap();
    assert_eq!(write("csv", &back, &machine).unwrap(), values);
    let folder = tempfile::tempdir().unwrap();
    write_simgrid(&back, &machine, folder.path());
    let mut files = 0;
    for file in std::fs::read_dir(of_others("torus-2x2")).unwrap() {
        let (name, path) = (file.as_ref().unwrap().file_name(), file.unwrap().path());
        let [a, b] =
            [path, folder.path().join(name)].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(a, b);
        files += 1;
    }
    assert_eq!(files, std::fs::read_dir(folder.path()).unwrap().count());
}

#[test]
fn messages_of_a_program_are_those_of_the_lines() {
    let (schedule, machine) = planned("torus:4x4", "suh-shin");
    let text = write("jsonl", &schedule, &machine).unwrap();
    let lines = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    let made = |lines: Vec<jsonl::MessageLine>| {
        let origin = schedule.origin.clone();
        jsonl::schedule(schedule.problem, origin, lines, &target(&machine))
    };
    let lines: Vec<_> = lines.collect();
    let again = made(lines.clone()).unwrap();
    assert_eq!(write("jsonl", &again, &machine).unwrap(), text);

    let mut wrong = lines.clone();
    wrong[7].to = wrong[7].from;
    let refused = |lines| made(lines).unwrap_err().to_string();
    let from = lines[7].from;
    assert!(refused(wrong).starts_with(&format!("message 7: rank {from} sends to itself")));
    let back = vec![lines[lines.len() - 1].clone(), lines[0].clone()];
    assert!(refused(back).starts_with("message 1: step 0 after step "));
    let small = topocoll::machine("full:3").unwrap();
    let other = jsonl::schedule(schedule.problem, schedule.origin.clone(), lines, &target(&small));
    assert!(other.unwrap_err().to_string().contains("16 ranks, but full:3 has 3"));
}
