//! The weight of the tree is at most that of `tests/budget.toml`, and no number there is far above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{CargoOpt, DependencyKind, MetadataCommand};
use toml::{Table, Value};
use topocoll::COMMON;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The sources below a folder, with their numbers of lines.
pub(crate) fn sources(folder: &Path, found: &mut BTreeMap<String, i64>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "js") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            found.insert(name, lines as i64);
        }
    }
}

/// The names that the facade exports: its modules, items, methods, and those of other crates.
fn facade_items() -> i64 {
    let mut files = BTreeMap::new();
    sources(&root().join("crates/topocoll/src"), &mut files);
    let mut items = 0;
    for name in files.keys() {
        let text = fs::read_to_string(root().join(name)).unwrap();
        for (at, _) in text.match_indices("pub ") {
            let line_begins = text[..at].rfind('\n').map_or(0, |end| end + 1);
            if !text[line_begins..at].trim().is_empty() {
                continue;
            }
            let rest = &text[at + "pub ".len()..];
            match rest.split(' ').next().unwrap() {
                "use" => items += rest[..rest.find(';').unwrap()].split(',').count(),
                "fn" | "const" | "struct" | "enum" | "trait" | "type" | "mod" => items += 1,
                _ => {}
            }
        }
    }
    items as i64
}

/// The packages of others that the program is built with.
fn dependencies() -> i64 {
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu", "--locked"];
    let metadata = MetadataCommand::new()
        .features(CargoOpt::SomeFeatures(Vec::new()))
        .other_options(platform.map(str::to_owned))
        .exec()
        .unwrap();
    let nodes = metadata.resolve.as_ref().unwrap().nodes.iter();
    let nodes: BTreeMap<_, _> = nodes.map(|node| (&node.id, node)).collect();
    let program = metadata.packages.iter().find(|package| *package.name == "topocoll-cli").unwrap();
    let (mut found, mut next) = (vec![&program.id], vec![&program.id]);
    while let Some(id) = next.pop() {
        let needed = nodes[id].deps.iter().filter(|dependency| {
            dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
        });
        for dependency in needed {
            if !found.contains(&&dependency.pkg) {
                found.push(&dependency.pkg);
                next.push(&dependency.pkg);
            }
        }
    }
    let of_others = |id: &&&_| metadata[**id].source.is_some();
    found.iter().filter(of_others).count() as i64
}

/// `tests/budget.toml`.
pub(crate) fn budget() -> Table {
    fs::read_to_string(root().join("tests/budget.toml")).unwrap().parse().unwrap()
}

#[test]
fn the_tree_weighs_at_most_its_budget() {
    let (mut files, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        let mut of_crate = BTreeMap::new();
        sources(&folder, &mut of_crate);
        let name = folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        lines.insert(name, of_crate.values().sum());
        files.extend(of_crate);
    }
    files.retain(|_, lines| *lines > 450);
    let parameters = common::algorithms().map(|algorithm| algorithm.info().parameters.len() as i64);
    let counts = [
        ("program_dependencies".to_owned(), dependencies()),
        ("parameters".to_owned(), COMMON.len() as i64 + parameters.sum::<i64>()),
        ("facade_items".to_owned(), facade_items()),
    ];
    let budget = budget();
    let (mut wrong, mut now) = (Vec::new(), String::new());
    for (part, found) in
        [("counts", counts.into()), ("lines", lines), ("files_over_450_lines", files)]
    {
        let allowed = budget[part].as_table().unwrap();
        now += &format!("\n[{part}]\n");
        for (name, &found) in &found {
            now += &format!("{name:?} = {found}\n");
            let Some(allowed) = allowed.get(name).and_then(Value::as_integer) else {
                wrong.push(format!("{part}: {name}: {found}, and it is not listed"));
                continue;
            };
            if found > allowed {
                wrong.push(format!("{part}: {name}: {found}, above its budget {allowed}"));
            } else if found + 5 + found / 50 < allowed {
                wrong.push(format!("{part}: {name}: {found}, far below its budget {allowed}"));
            }
        }
        let gone = allowed.keys().filter(|name| !found.contains_key(*name));
        wrong.extend(gone.map(|name| format!("{part}: {name} is listed, and is not there")));
    }
    assert!(wrong.is_empty(), "{}\ntests/budget.toml would be now:\n{now}", wrong.join("\n"));
}
