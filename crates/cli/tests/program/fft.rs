//! `docs/src/transforms.md` has a table of process grids on shipped machines: what `fft` says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use topocoll_report::number::seconds;

const MACHINES: [&str; 5] =
    ["dgx-h100-4x8", "earth-simulator-64x8", "frontier-like-72x8", "paragon-16x16", "tpu-v4-4x4x4"];

const BEGIN: &str = "<!-- written by crates/cli/tests/program/fft.rs -->\n";
const END: &str = "<!-- end -->\n";

fn fft(machine: &str) -> Value {
    let asked = ["fft", "512x512x512", machine, "--json"];
    let out = Command::new(env!("CARGO_BIN_EXE_topocoll")).args(asked).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn grid(of: &Value) -> String {
    let sides = of["process_grid"].as_array().unwrap();
    sides.iter().map(Value::to_string).collect::<Vec<_>>().join(" x ")
}

/// The row of a machine, whose report is consistent.
fn row(machine: &str) -> String {
    let report = fft(machine);
    let all = report["distributions"].as_array().unwrap();
    let number = |of: &Value, field: &str| of[field].as_f64().unwrap();
    for of in all {
        let exchanges = of["exchanges"].as_array().unwrap().iter();
        let sum: f64 = exchanges.map(|one| number(one, "time_seconds")).sum();
        assert!((sum / number(of, "time_seconds") - 1.0).abs() < 1e-9, "{of}");
        assert!(number(of, "bound_ratio") > 1.0 - 1e-9, "{of}");
    }
    assert_eq!(report["decided"], true, "{machine}");
    let best = &all[0];
    let exchanges = best["exchanges"].as_array().unwrap().iter();
    let algorithms = exchanges.map(|one| one["algorithm"].as_str().unwrap().to_owned());
    let mut cells = vec![
        machine.to_owned(),
        report["ranks"].to_string(),
        grid(best),
        best["consecutive"].as_str().unwrap().to_owned(),
        seconds(number(best, "time_seconds")),
        format!("{:.2}x", number(best, "bound_ratio")),
        algorithms.collect::<Vec<_>>().join(", "),
    ];
    for default in report["defaults"].as_array().unwrap() {
        cells.push(match default["ratio"].as_f64() {
            Some(ratio) => format!("{}, {ratio:.2}x", grid(default)),
            None => "-".to_owned(),
        });
    }
    let mut row = String::new();
    writeln!(row, "| {} |", cells.join(" | ")).unwrap();
    row
}

/// `BOOK=overwrite cargo test --workspace --test program fft::` writes the table.
#[test]
fn the_table_of_process_grids_is_what_fft_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/transforms.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let header = "\n| machine | ranks | process grid | consecutive | time | bound | schedules | FFTW-MPI | heFFTe |\n\
                  |---|--:|---|---|--:|--:|---|---|---|\n";
    let rows: String = MACHINES.map(row).concat();
    let page = format!("{before}{BEGIN}{header}{rows}\n{END}{after}");
    if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == page, "transforms.md is stale; BOOK=overwrite writes its table");
}

/// The page has the answer, and the rows of the table with a bar each; names are text.
#[test]
fn a_page_has_the_rows_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("<b>four.toml");
    let shipped = topocoll::shipped().find(|(name, _)| *name == "paragon-16x16").unwrap().1;
    std::fs::write(&machine, shipped).unwrap();
    let page = folder.path().join("page.html");
    let asked = ["fft", "64x64x64"].map(str::as_ref).into_iter();
    let asked = asked.chain([machine.as_os_str(), "--out".as_ref(), page.as_os_str()]);
    let out = Command::new(env!("CARGO_BIN_EXE_topocoll"))
        .args(asked)
        .env("COLUMNS", "300")
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let (text, page) =
        (String::from_utf8(out.stdout).unwrap(), std::fs::read_to_string(page).unwrap());
    let answer = text.lines().next().unwrap();
    assert!(page.contains(&format!("<p class=\"hero\">{answer}</p>")), "{page}");
    let rows: Vec<_> = text.split("\n\n").nth(1).unwrap().lines().collect();
    let drawn: Vec<_> = page.lines().filter(|line| line.contains("class=\"times\"")).collect();
    assert!(drawn.len() > 3, "{page}");
    for row in &drawn {
        let first = row.split(['<', '>']).nth(4).unwrap();
        assert!(rows.iter().any(|line| line.trim_start().starts_with(first)), "{row}: {text}");
    }
    assert!(page.contains("on &lt;b&gt;four") && !page.contains("<b>"), "{page}");
    assert!(!page.contains("://") && !page.contains("<script"), "{page}");
}
