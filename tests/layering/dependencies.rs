//! Crates depend on each other along the arrows of ARCHITECTURE.md only.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::budget::{root, sources};

/// Each crate of the workspace, and the crates that it may depend on.
const ARROWS: [(&str, &[&str]); 15] = [
    ("topocoll-topology", &[]),
    ("topocoll-schedule", &["topocoll-topology"]),
    ("topocoll-algorithms", &["topocoll-schedule", "topocoll-topology"]),
    ("topocoll-analysis", &["topocoll-schedule", "topocoll-topology"]),
    ("topocoll-exec", &["topocoll-schedule", "topocoll-topology"]),
    (
        "topocoll",
        &[
            "topocoll-algorithms",
            "topocoll-analysis",
            "topocoll-exec",
            "topocoll-schedule",
            "topocoll-topology",
        ],
    ),
    ("topocoll-certificate", &[]),
    ("topocoll-capi", &["topocoll"]),
    ("topocoll-report", &["topocoll"]),
    ("topocoll-cli", &["topocoll", "topocoll-certificate", "topocoll-report"]),
    ("topocoll-mpi", &["topocoll"]),
    ("topocoll-benches", &[]),
    ("topocoll-tests", &["topocoll", "topocoll-certificate"]),
    ("own_algorithm", &["topocoll"]),
    ("topocoll-python", &["topocoll", "topocoll-report"]),
];

#[test]
fn crates_depend_only_along_the_arrows() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let mut seen: Vec<_> =
        metadata.packages.iter().map(|package| package.name.to_string()).collect();
    seen.sort();
    let mut listed = ARROWS.map(|(name, _)| name).to_vec();
    listed.sort_unstable();
    assert_eq!(seen, listed, "a crate is missing from the list, or from the workspace");
    for package in &metadata.packages {
        let (_, allowed) = ARROWS.iter().find(|(name, _)| *name == package.name.as_str()).unwrap();
        let ours = package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal && d.path.is_some());
        for dependency in ours {
            let name = dependency.name.as_str();
            assert!(allowed.contains(&name), "{} may not depend on {name}", package.name);
        }
    }
}

#[test]
fn every_library_except_capi_and_mpi_forbids_unsafe_code() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let beside_c = ["topocoll-capi", "topocoll-mpi"];
    let safe =
        metadata.packages.iter().filter(|package| !beside_c.contains(&package.name.as_str()));
    for target in safe.flat_map(|package| &package.targets) {
        if target.is_lib() || target.is_bin() {
            let text = std::fs::read_to_string(&target.src_path).unwrap();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{}", target.src_path);
        }
    }
}

/// Work given to the threads of a parent process would wait for ever: `parallel` starts others.
#[test]
fn parallel_iterators_begin_in_one_place() {
    let mut files = BTreeMap::new();
    sources(&root().join("crates"), &mut files);
    for name in files.keys().filter(|name| name.contains("/src/")) {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        let begins = [".par_", ".into_par_", "rayon::current_num", "rayon::join", "rayon::scope"];
        let found = begins.iter().any(|begin| text.contains(begin));
        assert_eq!(found, name.ends_with("topology/src/parallel.rs"), "{name}");
    }
}
