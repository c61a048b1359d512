//! Help at the prompt: every example of every `--help` runs, completions load in their shell, and each
//! command has a manual page.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn topocoll(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_topocoll");
    Command::new(program).current_dir(folder).args(arguments).output().unwrap()
}

fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = topocoll(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `--help` lists, in its order: an example may read what an earlier one wrote.
fn commands(folder: &Path) -> Vec<String> {
    let help = said(folder, &["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_examples_and_they_run() {
    let folder = TempDir::new().unwrap();
    for name in ["osu_alltoall.txt", "alltoall_perf.txt"] {
        let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/measured");
        std::fs::copy(measured.join(name), folder.path().join(name)).unwrap();
    }
    let commands = commands(folder.path());
    assert!(commands.iter().any(|name| name == "report") && commands.len() > 10);
    for command in commands {
        let help = said(folder.path(), &[&command, "--help"]);
        let examples: Vec<_> =
            help.lines().filter_map(|line| line.strip_prefix("  topocoll ")).collect();
        assert!(!examples.is_empty(), "{command} has no example");
        for example in examples {
            assert!(example.starts_with(&command), "{example} is of another command");
            said(folder.path(), &example.split(' ').collect::<Vec<_>>());
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().unwrap();
    said(folder.path(), &["man", "--out", "man1"]);
    for command in commands(folder.path()) {
        let page = folder.path().join(format!("man1/topocoll-{command}.1"));
        assert!(std::fs::read_to_string(page).unwrap().contains("Examples:"), "{command}");
    }
    // An existing folder is left alone.
    assert_eq!(topocoll(folder.path(), &["man", "--out", "man1"]).status.code(), Some(2));
}

#[test]
fn completions_load_in_bash() {
    let folder = TempDir::new().unwrap();
    let script = said(folder.path(), &["completions", "bash"])
        + "\nread -ra function <<< \"$(complete -p topocoll)\"; function=${function[-2]}
        complete_words() {
            COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
            $function topocoll \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
            echo \"${COMPREPLY[*]}\"
        }
        complete_words topocoll rep
        complete_words topocoll select tpu-v4
        complete_words topocoll select tor
        complete_words topocoll select mine
        complete_words topocoll machines trainium
        complete_words topocoll verify full:8 --algorithm bru
        complete_words topocoll verify full:8 --algorithm bruck --set r
        complete_words topocoll verify torus:8x8 --algorithm bucket --set dim
        complete_words topocoll select full:8 --timing gen
        complete_words topocoll select full:8 --op allg";
    std::fs::write(folder.path().join("mine.toml"), "").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_topocoll")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", program.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).replace('\u{b}', " ");
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "report",
            "tpu-v4-4x4x4 tpu-v4-4x4x8 tpu-v4-4x4x8-twisted",
            "torus:",
            "mine.toml",
            "trainium2-4x4 trainium2-4x4-faulty",
            "bruck",
            "radix=",
            "dimensions=at-once dimensions=in-turn",
            "generic",
            "allgather",
        ],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_colour_is_printed_under_no_color() {
    let program = env!("CARGO_BIN_EXE_topocoll");
    for arguments in [&["select", "tors:4x4"][..], &["selct"], &["report", "--help"]] {
        let output = Command::new(program).args(arguments).env("NO_COLOR", "1").output().unwrap();
        assert!(!output.stderr.contains(&0x1b) && !output.stdout.contains(&0x1b));
    }
}
