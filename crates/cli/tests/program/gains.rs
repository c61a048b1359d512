//! `docs/src/mpi.md` has a table of what Open MPI would gain on clusters: what `select --against` says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use topocoll_report::number::{bytes, seconds};

const CLUSTERS: [&str; 5] =
    ["giganet-6x4", "infiniband-8x4", "dgx-h100-4x8", "earth-simulator-64x8", "frontier-like-72x8"];
/// The block sizes of the table.
const SIZES: [u64; 5] = [8, 512, 1 << 12, 1 << 15, 1 << 18];

const BEGIN: &str = "<!-- written by crates/cli/tests/program/gains.rs -->\n";
const END: &str = "<!-- end -->\n";

fn select(name: &str) -> serde_json::Value {
    let asked = ["select", name, "--against", "openmpi", "--release", "4.1", "--json"];
    let out = Command::new(env!("CARGO_BIN_EXE_topocoll")).args(asked).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let mut report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    report["library"].take()
}

/// The rows of a cluster, each of which is consistent.
fn rows(name: &str) -> String {
    let library = select(name);
    let time = |row: &serde_json::Value, field: &str| row[field].as_f64().unwrap();
    let all = library["by_block"].as_array().unwrap();
    let asked = all.iter().find(|row| row["block_bytes"] == library["block_bytes"]).unwrap();
    for field in ["algorithm", "time_seconds", "best_algorithm", "best_seconds", "force"] {
        assert_eq!(asked[field], library[field], "{name}");
    }
    let mut rows = String::new();
    for row in all {
        let (default, best) = (time(row, "time_seconds"), time(row, "best_seconds"));
        let gain = |time: f64| format!("{:.2}x", default / time);
        let text = |field: &str| row[field].as_str().unwrap();
        let (forced, forced_gain) = match text("force") {
            "" => {
                assert_eq!((text("best_algorithm"), best), (text("algorithm"), default), "{name}");
                ("", String::new())
            }
            force => {
                assert!(force.contains("_algorithm ") && best < default, "{name}: {force}");
                (text("best_algorithm"), gain(best))
            }
        };
        let block = row["block_bytes"].as_u64().unwrap();
        if !SIZES.contains(&block) {
            continue;
        }
        let schedule = &row["schedule"];
        let cells = [
            name,
            &bytes(block),
            text("algorithm"),
            &seconds(default),
            forced,
            &forced_gain,
            schedule["algorithm"].as_str().unwrap(),
            &gain(time(schedule, "time_seconds")),
        ];
        writeln!(rows, "| {} |", cells.join(" | ")).unwrap();
    }
    rows
}

/// `BOOK=overwrite cargo test --workspace --test program gains::` writes the table.
#[test]
fn the_table_of_gains_is_what_select_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/mpi.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let header = "\n| machine | block | default | time | forced | gain | best schedule | gain |\n\
                  |---|--:|---|--:|---|--:|---|--:|\n";
    let rows: String = CLUSTERS.map(rows).concat();
    let page = format!("{before}{BEGIN}{header}{rows}\n{END}{after}");
    if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == page, "mpi.md is stale; BOOK=overwrite writes its table");
}
