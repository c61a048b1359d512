//! Files that are refused: by line, value and rule, quickly and in little memory.

use std::io::{BufReader, Read};
use std::time::{Duration, Instant};

use common::{MEMORY, target};
use topocoll::formats::{self, FORMATS, ReadError, Reader, Target, jsonl};
use topocoll::{Block, Machine, Rank, Schedule, Violation, count, machine, verify};

use super::reading::{messages, planned, read, write};

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
    let nodes = topocoll::spec::read_nodes("\u{feff}2\n0\n").unwrap();
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
