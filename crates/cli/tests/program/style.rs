//! The text of every command: one order, within the columns of the output, names whole, colours on request.

use std::collections::BTreeMap;
use std::process::{Command, Output};

/// Every command that prints a report.
const COMMANDS: [&[&str]; 15] = [
    &["select", "torus:4x12", "--why"],
    &["select", "mesh:4x4x4", "--why"],
    &["select", "torus:8x8", "--ports", "4", "--all"],
    &["select", "torus:4x4", "--model", "wormhole"],
    &["select", "cluster:3*4,1*2", "--why"],
    &["algorithms"],
    &["algorithms", "torus:8x8"],
    &["bounds", "torus:16x16"],
    &["verify", "torus:8x8", "--algorithm", "pairwise-xor"],
    &["simulate", "torus:8x8", "--algorithm", "direct"],
    &["simulate", "torus:8x8", "--algorithm", "direct", "--model", "fluid"],
    &["sweep", "torus:8x8"],
    &["sweep", "torus:8x8", "--front"],
    &["run", "torus:4x4", "--repeat", "1"],
    &["machines"],
];

fn topocoll(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topocoll"));
    command.env_remove("COLUMNS").env_remove("NO_COLOR").args(arguments);
    command.envs(environment.iter().copied()).output().unwrap()
}

fn said(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = topocoll(arguments, environment);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// How often a text has each algorithm's name of several words.
fn names(text: &str) -> BTreeMap<&str, usize> {
    let known: Vec<_> = topocoll::Catalogue::standard()
        .iter()
        .map(|algorithm| algorithm.info().name.clone().into_owned())
        .filter(|name| name.contains('-'))
        .collect();
    let mut counts = BTreeMap::new();
    let inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    for word in text.split(|letter| !inside(letter)) {
        if known.iter().any(|name| name == word) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

#[test]
fn texts_fit_the_columns_and_break_no_name() {
    for command in COMMANDS {
        let whole = said(command, &[]);
        for columns in [80, 100, 140] {
            let text = said(command, &[("COLUMNS", &columns.to_string())]);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{command:?} at {columns}: {line}");
            }
            assert_eq!(names(&text), names(&whole), "{command:?} at {columns}");
        }
    }
}

#[test]
fn the_answer_of_select_is_its_first_line_of_twelve() {
    let machines = [
        "torus:16x16",
        "torus:4x4x4",
        "mesh:4x4x4",
        "grid:8~x6",
        "full:64",
        "cluster:20x48",
        "cluster:19*48,1*47",
        "paragon-16x16",
        "tpu-v4-4x4x8-twisted",
        "torus:1024x1024",
        "torus:8x8/3,4/0,0+1",
        "infiniband-uneven",
    ];
    for machine in machines {
        let text = said(&["select", machine], &[("COLUMNS", "80")]);
        assert!(text.lines().count() <= 12, "{machine}: {text}");
        // The answer is the first paragraph.
        let answer = text.split("alltoall of").next().unwrap().replace('\n', " ");
        assert!(answer.starts_with("Use "), "{machine}: {text}");
        assert!(answer.contains("x the bound; "), "{machine}: {text}");
        assert!(answer.contains(" a rank, ") && answer.contains(" % of what the "), "{text}");
        assert!(!text.contains("performs allgather"), "{machine}: {text}");
    }
}

#[test]
fn colours_are_on_request_and_not_in_pipes() {
    let select = ["select", "full:8"];
    let coloured = ["--color", "always", "select", "full:8"];
    assert!(!said(&select, &[]).contains('\u{1b}'));
    assert!(said(&coloured, &[]).contains('\u{1b}'));
    let plain = anstream::adapter::strip_str(&said(&coloured, &[])).to_string();
    assert_eq!(plain, said(&select, &[]));
    let refused = |arguments: &[&str]| topocoll(arguments, &[]).stderr;
    assert!(!refused(&["select", "nothing"]).contains(&0x1b));
    assert!(refused(&["--color", "always", "select", "nothing"]).contains(&0x1b));
    assert!(!said(&["--color", "always", "select", "full:8", "--json"], &[]).contains('\u{1b}'));
}

#[test]
fn without_an_algorithm_commands_take_the_choice_of_select() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&said(arguments, &[])).unwrap()
    };
    let machines = ["torus:8x8", "mesh:6x6", "full:12", "cluster:4,4,2", "sp1-64"];
    for machine in machines {
        let chosen = json(&["select", machine, "--json"]);
        let chosen = &chosen["recommended"];
        for command in ["verify", "simulate", "run"] {
            let found = json(&[command, machine, "--json"]);
            assert_eq!(found["algorithm"], chosen["algorithm"], "{command} {machine}");
            assert_eq!(found["parameters"], chosen["parameters"], "{command} {machine}");
        }
        let schedule = topocoll(&["schedule", machine], &[]);
        let note = String::from_utf8(schedule.stderr).unwrap();
        assert!(note.starts_with("note: no --algorithm: "), "{note}");
        let header = String::from_utf8(schedule.stdout).unwrap();
        let header: serde_json::Value =
            serde_json::from_str(header.lines().next().unwrap()).unwrap();
        assert_eq!(header["algorithm"], chosen["algorithm"]);
    }
}
