//! Readers: our own schedules lose nothing, those of other programs are read as far as they go, and
//! broken or hostile files are refused.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{MEMORY, schedule_of, target};
use proptest::prelude::*;
use topocoll::exec::{Plan, PlanError};
use topocoll::formats::{self, FORMATS, ReadError, Reader, Source, Target, Writer, jsonl};
use topocoll::{
    AnalysisError, Block, Collective, Machine, Message, Origin, Parameters, Part, Problem, Rank,
    Recorder, Route, Schedule, Shape, Violation, count, machine, verify,
};

fn write(name: &str, schedule: &Schedule, machine: &Machine) -> Result<String, AnalysisError> {
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    let Writer::File(write) = format.writer else { panic!("{name} writes a folder") };
    let mut out = Vec::new();
    write(&Source::new(schedule, machine, MEMORY), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn read(name: &str, text: &str, machine: &Machine) -> Result<Schedule, ReadError> {
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

fn planned(name: &str, algorithm: &str) -> (Schedule, Machine) {
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
fn messages(schedule: &Schedule) -> Vec<(u32, u32, u32, u128)> {
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

/// The line and the message of a refusal.
fn refused(name: &str, text: &str, machine: &Machine) -> (usize, String) {
    match read(name, text, machine) {
        Err(ReadError::Line { line, message, .. }) => (line, message),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn differences_between_json_lines_and_statements_are_named() {
    let (schedule, machine) = planned("full:3", "direct");
    let text = write("goal", &schedule, &machine).unwrap();
    let larger = text.replace("send 1024b to 1 tag 0", "send 512b to 1 tag 0");
    let (line, message) = refused("goal", &larger, &machine);
    let at = larger.lines().position(|l| l.contains("512b")).unwrap() + 1;
    assert_eq!(line, at);
    assert!(
        message.contains("512 bytes from rank 0 to 1 with tag 0, where the JSON lines have 1024"),
        "{message}"
    );
    let fewer: Vec<&str> = text.lines().filter(|l| !l.contains(r#""step":1,"from":2"#)).collect();
    let (_, message) = refused("goal", &fewer.join("\n"), &machine);
    assert!(message.contains("this message is not in the JSON lines"), "{message}");
    let late = text.replacen("num_ranks 3\n", "", 1).replacen("// ", "num_ranks 3\n// ", 1);
    let (line, message) = refused("goal", &late, &machine);
    assert_eq!((line, message.as_str()), (2, "JSON lines must come before `num_ranks`"));
}

/// A message without a route takes the machine's own; a wrong route is refused.
#[test]
fn a_route_that_does_not_lead_to_the_receiver_is_refused() {
    let torus = machine("torus:4x4").unwrap();
    let header = r#"{"kind":"header","version":1,"operation":"alltoall","algorithm":"by hand","ranks":16,"block_bytes":8,"ports":1,"topology":{"kind":"grid","dims":[4,4],"wrap":[true,true]}}"#;
    let lines = |route: &str| {
        let first = r#"{"step":0,"from":0,"to":1,"blocks":[[0,1,0,8]]}"#;
        format!(
            r#"{header}
{first}
{{"step":1,"from":0,"to":1{route},"blocks":[[0,2,0,8]]}}
"#
        )
    };
    let routes = [
        ("[]", "an empty route, which leads from rank 0 to rank 0, not to 1"),
        ("[[0,0]]", "a segment of 0 hops along dimension 0"),
        ("[[1,0]]", "a segment of 0 hops along dimension 1"),
        ("[[1,1],[0,0]]", "a segment of 0 hops along dimension 0"),
        ("[[0,1]]", "it leads from rank 0 to rank 4, not to 1"),
        ("[[1,1],[1,-1]]", "it leads from rank 0 to rank 0, not to 1"),
        ("[[1,5]]", "it leaves torus:4x4: 5 hops along dimension 1"),
        ("[[2,1]]", "it leaves torus:4x4: 1 hops along dimension 2"),
    ];
    for (route, rule) in routes {
        let (line, message) = refused("jsonl", &lines(&format!(r#","route":{route}"#)), &torus);
        assert_eq!((line, message), (3, format!("route {route}: {rule}")));
    }
    let (line, message) = refused("jsonl", &lines(r#","route":null"#), &torus);
    assert!(line == 3 && message.starts_with("not a message: invalid type: null"), "{message}");
    for route in ["", r#","route":[[1,1]]"#, r#","route":[[0,2],[1,1],[0,2]]"#] {
        assert!(read("jsonl", &lines(route), &torus).is_ok(), "{route}");
    }
    // An empty column is a missing route.
    let values = |route: &str| format!("step,from,to,bytes,packed,route\n0,0,1,8,0,{route}\n");
    for (route, rule) in [
        ("1:+0", "a segment of 0 hops along dimension 1"),
        ("0:+1", "it leads from rank 0 to rank 4, not to 1"),
    ] {
        let (line, message) = refused("csv", &values(route), &torus);
        assert_eq!((line, message), (2, format!("route {route}: {rule}")));
    }
    assert!(read("csv", &values(""), &torus).is_ok());
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

#[test]
fn refusals_name_the_line_the_value_and_the_rule() {
    let two = machine("full:2").unwrap();
    let goal = [
        ("num_ranks 3\n", 1, "3 ranks, but full:2 has 2"),
        ("num_ranks 99999999999\n", 1, "num_ranks is `99999999999`, not a whole number in range"),
        ("num_ranks 2\nrank 1 {\n", 2, "rank 1: ranks are 0 to 1 in order"),
        ("num_ranks 2\nnum_ranks 2\n", 2, "`num_ranks` where `rank` is expected"),
        ("num_ranks 2\n}\n", 2, "`}` where `rank` is expected"),
        ("num_ranks 2\nrank 0 (\n", 2, "`(` where `{` is expected"),
        ("num_ranks 2\nrank 0 {\nrank 1 {\n", 3, "expected after `rank`"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 5\n", 3, "to is rank 5: the last rank is 1"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 0\n", 3, "rank 0 sends to itself"),
        ("num_ranks 2\nrank 0 {\nsend 0b to 1\n", 3, "0 bytes: a message has at least 1 byte"),
        (
            "num_ranks 2\nrank 0 {\nsend 18446744073709551615b to 1\n",
            3,
            "has at most 1099511627776",
        ),
        ("num_ranks 2\nrank 0 {\nrecv 8b from -1\n", 3, "from is `-`"),
        ("num_ranks 2\nrank 0 {\nput 8b to 1\n", 3, "expected after `put`"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1 twice\n", 3, "`twice` after the end"),
        ("num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n", 4, "label `a` is defined twice"),
        (
            "num_ranks 2\nrank 0 {\na: calc 1\na requires b\n",
            4,
            "label `b` is not defined in this rank",
        ),
        ("num_ranks 2\nrank 0 {\na: calc 1\n", 4, "the file ends in rank 0"),
        ("num_ranks 2\nrank 0 {\n}\n", 4, "the file ends after 1 of 2 ranks"),
        ("num_ranks 2 /* so\nrank 0 {\n", 3, "the file ends in a comment"),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\n}\nrank 1 {\n}\n",
            3,
            "rank 0 sends to rank 1 with tag 1, which is not received",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 2\n}\nrank 1 {\nrecv 8b from 0 tag 1\n}\n",
            6,
            "rank 1 receives from rank 0 with tag 1, which is not sent",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 2\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n",
            3,
            "rank 0 sends to rank 1 with tag 2, which is not received",
        ),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n",
            5,
            "rank 1 receives from rank 0 with tag 0, which is not sent",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 4b from 0\n}\n",
            6,
            "4 bytes are received, but rank 0 sends 8",
        ),
    ];
    let csv = [
        ("step,to,from,bytes\n", 1, "the first line must be step,from,to,bytes,packed,route"),
        ("step,from,to,bytes\n0,0,1\n", 2, "3 values for 4 columns"),
        ("step,from,to,bytes\n0,0,1,+8\n", 2, "bytes is `+8`"),
        ("step,from,to,bytes\n0,0,2,8\n", 2, "to is rank 2"),
        ("step,from,to,bytes\n1,0,1,8\n0,1,0,8\n", 3, "step 0 after step 1"),
        ("step,from,to,bytes\n4294967295,0,1,8\n", 2, "step 4294967295 after 0 messages"),
        ("step,from,to,bytes,packed\n0,0,1,8,4\n", 2, "packed 4 of 8 bytes"),
        ("step,from,to,bytes,packed\n0,0,1,2,2\n0,1,0,1,1\n", 3, "packed 1 of 1 bytes"),
        (
            "step,from,to,bytes,packed,route\n0,0,1,8,0,0:+1\n",
            2,
            "route 0:+1: routes require a grid or a graph, and full:2 is neither",
        ),
    ];
    let cases = goal.map(|case| ("goal", case)).into_iter().chain(csv.map(|case| ("csv", case)));
    for (name, (text, expected, rule)) in cases {
        let (line, message) = refused(name, text, &two);
        assert!(line == expected && message.contains(rule), "{text}: line {line}: {message}");
    }
    // All of two bytes may be packed.
    assert!(read("csv", "step,from,to,bytes,packed\n0,0,1,2,2\n0,1,0,2,0\n", &two).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("traces.txt", "0\n1\n");
    file("1", "1 init\n");
    for (text, rule) in [
        ("0 init\n1 isend 1 1 8\n", "0: line 2: rank 1 in the trace of rank 0"),
        (
            "0 init\n0 alltoall 8 8\n",
            "0: line 2: `alltoall 8 8` is not one of the supported actions",
        ),
        ("0 isend 1 1 8 9\n", "0: line 1: datatype `9` is not one of 0 to 6"),
        ("0 isend 1 1 18446744073709551615 0\n", "0: line 1: too many bytes"),
        ("0 wait 0 1 1\n", "0: line 1: no operation from rank 0 to rank 1 with tag 1 is pending"),
        ("0 isend 1 1 8\n", "0: line 1: rank 0 sends to rank 1 with tag 1, which is not received"),
    ] {
        file("0", text);
        let error = formats::read(folder.path(), &target(&two)).unwrap_err().to_string();
        assert!(error.starts_with(rule), "{error}");
    }
    for (list, rule) in [
        ("0\n", "traces.txt: line 2: 1 ranks, but full:2 has 2"),
        ("0\n1\n2\n", "traces.txt: line 3: more traces than the 2 ranks"),
        (".\n1\n", "not a regular file"),
        ("0\nmissing\n", "No such file"),
    ] {
        file("0", "0 init\n");
        file("traces.txt", list);
        let error = formats::read(folder.path(), &target(&two)).unwrap_err().to_string();
        assert!(error.contains(rule), "{error}");
    }
}

#[test]
fn hostile_files_are_refused_quickly_and_in_little_memory() {
    let machine = machine("full:2").unwrap();
    let begin = Instant::now();
    // Endless lines, and nesting that never closes.
    for (name, begins) in
        [("jsonl", "{"), ("csv", "step,"), ("goal", "// "), ("goal", "num_ranks 2 ")]
    {
        let format = FORMATS.iter().find(|format| format.name == name).unwrap();
        let Reader::File(read) = format.reader else { panic!("{name} reads no file") };
        let endless = begins.as_bytes().chain(std::io::repeat(b'['));
        let error = read(&mut BufReader::new(endless), &target(&machine)).unwrap_err().to_string();
        assert_eq!(error, "line 1: the line is longer than 67108864 bytes", "{name}");
    }
    let nested = format!("{{\"kind\":{}", "[".repeat(1 << 20));
    let (line, message) = refused("jsonl", &nested, &machine);
    assert!(line == 1 && message.starts_with("not a header"), "{message}");
    // More messages than there is memory for.
    let row = "0,0,1,8\n";
    let text = format!("step,from,to,bytes\n{}", row.repeat(100_000));
    let little = Target::new(&machine, 1 << 20);
    let Reader::File(read) = FORMATS[1].reader else { panic!("csv is a file") };
    let error = read(&mut text.as_bytes(), &little).unwrap_err().to_string();
    assert!(error.contains("but the limit is 1048576"), "{error}");
    // Chains of waits, each on the one before, in the worst order.
    let mut text = "num_ranks 2\nrank 0 {\n".to_owned();
    for i in 0..50_000 {
        text += &format!("a{i}: send 1b to 1 tag {i}\n");
    }
    for i in (1..50_000).rev() {
        text += &format!("a{i} requires a{}\n", i - 1);
    }
    text += "}\nrank 1 {\n";
    for i in 0..50_000 {
        text += &format!("recv 1b from 0 tag {i}\n");
    }
    text += "}\n";
    let Reader::File(read) = FORMATS[2].reader else { panic!("goal is a file") };
    let schedule = read(&mut text.as_bytes(), &target(&machine)).unwrap();
    assert_eq!(schedule.rule().steps(), 50_000);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn a_format_is_found_by_content_and_other_formats_give_a_reason() {
    let (schedule, machine) = planned("full:3", "direct");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schedule");
    for format in FORMATS.iter().filter(|format| format.name != "simgrid") {
        std::fs::write(&path, write(format.name, &schedule, &machine).unwrap()).unwrap();
        let read = formats::read(&path, &target(&machine));
        match format.reader {
            Reader::None(why) => {
                let expected = ReadError::Unreadable { format: format.name, reason: why };
                assert_eq!(read.unwrap_err(), expected);
            }
            _ => assert_eq!(messages(&read.unwrap()), messages(&schedule), "{}", format.name),
        }
    }
    for text in ["", "hello\n", "\0.\u{7f}\n", "MIT License 1.0\n"] {
        std::fs::write(&path, text).unwrap();
        let error = formats::read(&path, &target(&machine)).unwrap_err();
        let ReadError::Unknown { known, .. } = error else { panic!("{error}") };
        assert_eq!(known, ["jsonl", "csv", "goal", "simgrid"]);
    }
    let missing = formats::read(&folder.path().join("missing"), &target(&machine)).unwrap_err();
    assert!(matches!(missing, ReadError::File { .. }), "{missing}");
}

#[test]
fn the_topology_of_a_header_is_read_by_itself() {
    let (schedule, machine) = planned("torus:4x3", "direct");
    let text = write("jsonl", &schedule, &machine).unwrap();
    let topology = jsonl::read_topology(&mut text.as_bytes()).unwrap();
    assert_eq!(topology.short_form(), "torus:4x3");
    assert!(jsonl::read_topology(&mut "\n".as_bytes()).is_err());
}

#[test]
fn a_header_for_another_machine_is_refused_by_both_names() {
    let of = |machine: &str, algorithm: &str| {
        let (schedule, machine) = planned(machine, algorithm);
        write("jsonl", &schedule, &machine).unwrap()
    };
    let grid = of("torus:2x3", "direct");
    let wraps = r#""wrap":[true,true]"#;
    for (text, named) in [
        (grid.clone(), "written for torus:2x3, not for full:6"),
        (grid.replace(wraps, r#""wrap":[true]"#), "written for a grid of 2 dims and 1 wraps, not"),
        (of("cluster:2,4", "clustered-factor"), "written for a cluster of 2 nodes, not for full:6"),
        (of("mesh:7/6", "direct"), "written for mesh:7/6, not for full:6"),
    ] {
        let (line, message) = refused("jsonl", &text, &machine("full:6").unwrap());
        assert!(line == 1 && message.contains(named), "{message}");
    }
    let mismatched = grid.replace(wraps, r#""wrap":[true]"#);
    let error = jsonl::read_topology(&mut mismatched.as_bytes()).err().unwrap().to_string();
    assert!(error.contains("a grid of 2 dims and 1 wraps"), "{error}");
}

/// Up to 64 steps a message, and as many as of 64 messages before the first.
#[test]
fn the_number_of_steps_is_bounded_by_the_messages() {
    let two = machine("full:2").unwrap();
    let header = r#"{"kind":"header","version":1,"operation":"alltoall","algorithm":"by hand","ranks":2,"block_bytes":1,"ports":1,"topology":{"kind":"full"}}"#;
    for (name, head) in [("csv", "step,from,to,bytes"), ("jsonl", header)] {
        let line = |step: u32| match name {
            "csv" => format!("{step},0,1,1\n"),
            _ => format!("{{\"step\":{step},\"from\":0,\"to\":1,\"blocks\":[[0,1,0,1]]}}\n"),
        };
        for before in [0, 1, 100] {
            let most = 64 * (before + 64);
            let text =
                |last: u32| format!("{head}\n{}{}", line(0).repeat(before as usize), line(last));
            let steps = read(name, &text(most), &two).map(|schedule| schedule.rule().steps());
            assert_eq!(steps.map_err(|error| error.to_string()), Ok(most + 1), "{name}");
            let (at, message) = refused(name, &text(most + 1), &two);
            assert_eq!(at as u32, before + 2, "{name}: {message}");
            assert!(message.contains(&format!("at most {most} here")), "{name}: {message}");
        }
    }
}

/// A block that its sender does not have, or that arrives twice, is told by message and block, never by slot.
#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    let (schedule, machine) = planned("torus:4", "direct");
    for format in ["jsonl", "goal", "csv"] {
        let text = write(format, &schedule, &machine).unwrap();
        let files = ["plain", "marked"].map(|name| folder.path().join(name));
        std::fs::write(&files[0], &text).unwrap();
        std::fs::write(&files[1], format!("\u{feff}{text}")).unwrap();
        let [plain, marked] = files.map(|file| formats::read(&file, &target(&machine)).unwrap());
        let count = |of: &Schedule| count(of, &machine, None, MEMORY).unwrap();
        assert_eq!(count(&plain), count(&marked), "{format}");
    }
    let nodes = topocoll::contention::read_nodes("\u{feff}2\n0\n").unwrap();
    assert_eq!(nodes, [Rank(2), Rank(0)]);
}

#[test]
fn violations_of_listed_messages_name_the_message_and_the_block() {
    let mut random = fastrand::Rng::with_seed(56);
    for (name, algorithm) in
        [("full:7", "bruck"), ("torus:4x4", "suh-shin"), ("mesh:3x3", "direct")]
    {
        let (schedule, machine) = planned(name, algorithm);
        let text = write("jsonl", &schedule, &machine).unwrap();
        let (header, lines) = text.split_once('\n').unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        let messages: Vec<jsonl::MessageLine> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for _ in 0..12 {
            let number = random.usize(0..lines.len());
            let ours = &messages[number];
            let held = |block: [u64; 2], step: u32| {
                let brings = |m: &&jsonl::MessageLine| m.to == ours.from && m.step < step;
                let arrived = messages.iter().filter(brings).flat_map(|m| &m.blocks);
                block[0] == u64::from(ours.from) || arrived.into_iter().any(|b| b[..2] == block)
            };
            let block =
                std::iter::repeat_with(|| [0; 2].map(|_| random.u64(..u64::from(machine.ranks()))))
                    .find(|&block| block[0] != block[1] && !held(block, ours.step));
            let [from, to] = block.unwrap();
            let more = format!("\"blocks\":[[{from},{to},0,1024],");
            let mut lines = lines.clone();
            let changed = lines[number].replace("\"blocks\":[", &more);
            lines[number] = &changed;
            let read =
                read("jsonl", &format!("{header}\n{}\n", lines.join("\n")), &machine).unwrap();
            let found = verify(&read, &machine, None, MEMORY).unwrap().violation;
            let expected = Violation::Listed {
                message: number as u32,
                step: ours.step,
                rank: Rank(ours.from),
                block: Block { from: Rank(from as u32), to: Rank(to as u32) },
                rule: "the sender does not hold it",
            };
            assert_eq!(found, Some(expected), "{name} {algorithm}");
        }
    }
}
