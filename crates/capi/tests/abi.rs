//! The binary interface of the library equals the dump in the tree, and grows only.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The header without comments and preprocessor, in declarations on one line each.
fn declarations(header: &str) -> Vec<String> {
    let mut plain = String::new();
    for part in header.split("/*") {
        plain.push_str(part.split_once("*/").map_or("", |(_, after)| after));
    }
    let lines = plain.lines().filter(|line| !line.starts_with('#') && *line != "extern \"C\" {");
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let (mut found, mut text, mut depth) = (Vec::new(), String::new(), 0i32);
    for letter in words.join(" ").chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ';' && depth <= 0 {
            found.push(std::mem::take(&mut text).trim().to_owned());
            depth = 0;
        } else {
            text.push(letter);
        }
    }
    found
}

/// Functions with their types, values of enumerations, sizes of structures and places of their
/// fields, as the C compiler sees them.
fn dump() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(here.join("include/topocoll.h")).unwrap();
    let mut prints = String::new();
    let mut text = format!("version {}\n", topocoll_c::TOPOCOLL_ABI_VERSION);
    for declaration in declarations(&header) {
        let Some((head, body)) = declaration.split_once('{') else {
            writeln!(text, "{declaration}").unwrap();
            continue;
        };
        let (body, name) = body.rsplit_once('}').unwrap();
        let name = name.trim();
        if head.contains("enum") {
            for value in body.split(',').filter(|value| !value.trim().is_empty()) {
                writeln!(text, "{name} {}", value.trim()).unwrap();
            }
            continue;
        }
        writeln!(prints, "printf(\"{name} %zu bytes\\n\", sizeof({name}));").unwrap();
        for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let own = field.rsplit([' ', '*']).next().unwrap();
            let place = format!("offsetof({name}, {own})");
            writeln!(prints, "printf(\"{name} %zu {field}\\n\", {place});").unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("sizes.c"), folder.path().join("sizes"));
    let main =
        format!("#include <stdio.h>\n#include <topocoll.h>\nint main(void) {{\n{prints}}}\n");
    std::fs::write(&source, main).unwrap();
    run(Command::new("cc")
        .arg("-I")
        .arg(here.join("include"))
        .arg(&source)
        .arg("-o")
        .arg(&program));
    text + &run(&mut Command::new(&program))
}

/// `ABI=overwrite cargo test -p topocoll-capi --test abi` writes the dump, unless a line changes that
/// programs rely on and the version stays.
#[test]
fn the_interface_only_grows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi.txt");
    let (known, now) = (std::fs::read_to_string(&path).unwrap_or_default(), dump());
    if known.lines().next() == now.lines().next() {
        // A request says its size, so it may grow, and reserved fields of 0 get a meaning.
        let grows = |line: &str| {
            line.starts_with("topocoll_request ")
                && (line.ends_with(" bytes") || line.ends_with(" reserved"))
        };
        let lost: Vec<&str> = known
            .lines()
            .filter(|line| !grows(line) && now.lines().all(|other| other != *line))
            .collect();
        let rule = "changed without a new TOPOCOLL_ABI_VERSION";
        assert!(lost.is_empty(), "{rule}:\n{}", lost.join("\n"));
    }
    if std::env::var_os("ABI").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &now).unwrap();
        return;
    }
    assert_eq!(known, now, "abi.txt is stale");
}

/// The shared library exports the functions of the header.
#[test]
fn every_function_is_exported() {
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folders = [beside.parent().unwrap().to_owned(), beside];
    let file = folders.iter().map(|folder| folder.join("libtopocoll_c.so"));
    let file = file.into_iter().find(|file| file.exists()).expect("cargo builds it with the tests");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(file));
    let ours = symbols.lines().filter_map(|line| line.rsplit(' ').next());
    let mut exported: Vec<&str> = ours.filter(|name| name.starts_with("topocoll_")).collect();
    let dump = dump();
    let declared = dump.lines().filter(|line| line.ends_with(')'));
    let mut declared: Vec<&str> = declared
        .map(|line| line.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap())
        .collect();
    exported.sort_unstable();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}
