//! Files that earlier versions wrote are still read and give the results of those versions. Each folder
//! of `tests/corpus` holds the files of one version. Each line of its `results.jsonl` has a command and
//! the JSON fields that users rely on.
//!
//! Files of a later version are refused by the number of that version.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn topocoll(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_topocoll");
    Command::new(program).current_dir(folder).args(arguments).output().unwrap()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// Whether two values are equal, floating-point numbers up to rounding.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        _ => a == b,
    }
}

#[test]
fn files_of_earlier_versions_give_the_same_results() {
    for version in std::fs::read_dir(corpus()).unwrap() {
        let folder = version.unwrap().path();
        let results = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
        assert!(!results.is_empty(), "{} has no results", folder.display());
        for line in results.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let command = line["command"].as_str().unwrap();
            let arguments: Vec<_> = command.split(' ').chain(["--json"]).collect();
            let said = topocoll(&folder, &arguments);
            let told = String::from_utf8_lossy(&said.stderr);
            let found: Value = serde_json::from_slice(&said.stdout)
                .unwrap_or_else(|error| panic!("{command}: {error}: {told}"));
            for (field, before) in line["result"].as_object().unwrap() {
                let now = &found[field];
                assert!(equal(before, now), "{command}: {field} was {before} and is {now}");
            }
        }
    }
}

#[test]
fn files_of_a_later_version_are_refused_by_its_number() {
    let later = TempDir::new().unwrap();
    let old = corpus().join("0.1.0");
    // Each file, its version and a later one with a new field, the command that refuses it, and the
    // hint.
    let cases = [
        (
            "full-6-bruck.jsonl",
            r#""version":1,"#,
            r#""version":9,"colour":"red","#,
            vec!["verify", "full:6", "--schedule", "full-6-bruck.jsonl"],
            "`topocoll schedule MACHINE --algorithm NAME --out FILE`",
        ),
        (
            "full-6-bruck.txt",
            "topocoll certificate 1\n",
            "topocoll certificate 9\ncolour red\n",
            vec!["check", "full-6-bruck.txt"],
            "`topocoll verify MACHINE --algorithm NAME --certificate FILE`",
        ),
        (
            "full-6.toml",
            "title =",
            "version = 9\ncolour = \"red\"\ntitle =",
            vec!["bounds", "full-6.toml"],
            "`topocoll calibrate`",
        ),
    ];
    for (file, version, another, arguments, command) in cases {
        let text = std::fs::read_to_string(old.join(file)).unwrap();
        assert!(text.contains(version), "{file}");
        std::fs::write(later.path().join(file), text.replacen(version, another, 1)).unwrap();
        let refused = topocoll(later.path(), &arguments);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{file}: {told}");
        for part in ["version 9: this program", "version 1", command] {
            assert!(told.contains(part), "{file}: {part} is not in: {told}");
        }
    }
}

#[test]
fn a_machine_file_may_name_its_version() {
    let folder = TempDir::new().unwrap();
    let text = std::fs::read_to_string(corpus().join("0.1.0/full-6.toml")).unwrap();
    std::fs::write(folder.path().join("full-6.toml"), format!("version = 1\n{text}")).unwrap();
    let said = topocoll(folder.path(), &["bounds", "full-6.toml"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
