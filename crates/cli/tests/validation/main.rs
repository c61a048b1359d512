//! The chapter "Validation": runs the command of every row of `validation/rows.toml`, and compares the table
//! and the plot of the page with it. `BOOK=overwrite` writes them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod fugaku;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use plotters::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    machine: String,
    what: String,
    source: String,
    certainty: char,
    #[serde(default)]
    peer: bool,
    #[serde(default)]
    uncounted: bool,
    figure: f64,
    unit: String,
    command: String,
    over: Option<String>,
    field: String,
    scale: f64,
    fixes: Option<String>,
    within: f64,
    note: Option<String>,
}

/// A row with our figure.
struct Found {
    row: Row,
    ours: f64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The figure that a command gives.
fn figure(command: &str, field: &str) -> f64 {
    let out = Command::new(env!("CARGO_BIN_EXE_topocoll"))
        .args(command.split(' '))
        .arg("--json")
        .current_dir(root().join("validation"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let value = json.pointer(field).and_then(serde_json::Value::as_f64);
    value.unwrap_or_else(|| panic!("{command}: no {field}"))
}

impl Found {
    fn of(row: Row) -> Self {
        let over = row.over.as_ref().map_or(1.0, |over| figure(over, &row.field));
        let ours = figure(&row.command, &row.field) * row.scale / over;
        Self { row, ours }
    }

    /// In percent.
    fn error(&self) -> f64 {
        100.0 * (self.ours / self.row.figure - 1.0)
    }

    /// Whether the text was read, or is quoted by one that was, and a row fixes its values.
    fn counts(&self) -> bool {
        matches!(self.row.certainty, 'A' | 'B') && !self.row.uncounted
    }

    fn model(&self) -> &str {
        let mut words = self.row.command.split(' ').skip_while(|word| *word != "--model");
        words.nth(1).unwrap_or("steps")
    }

    fn line(&self) -> String {
        let Row { machine, what, source, certainty, figure, unit, fixes, note, .. } = &self.row;
        let role = match fixes {
            Some(what) => format!("fixes {what}"),
            None => "predicted".to_owned(),
        };
        let role = if self.counts() { role } else { format!("{role}, does not count") };
        let note = note.as_ref().map_or_else(String::new, |note| format!("{note} "));
        format!(
            "| {machine} | {what} | {} {unit} | {} | {:+.1} % | {} | {role} | {certainty} | {note}{source} |\n",
            digits(*figure),
            digits(self.ours),
            self.error(),
            self.model(),
        )
    }
}

/// Four digits, or all before the point.
fn digits(value: f64) -> String {
    let places = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.places$}")
}

fn table(all: &[Found]) -> String {
    let mut out = String::new();
    for (peers, title) in [(false, "Measured machines"), (true, "Other simulators")] {
        let rows: Vec<&Found> = all.iter().filter(|found| found.row.peer == peers).collect();
        let counted = rows.iter().filter(|found| found.counts()).count();
        let of: BTreeSet<_> = rows.iter().map(|found| &found.row.machine).collect();
        let _ = writeln!(
            out,
            "### {title}\n\n{counted} rows count, of {} {}.\n",
            of.len(),
            if peers { "simulators" } else { "machines" }
        );
        out += "| machine | what | figure | ours | error | model | role | certainty | source |\n";
        out += "|---|---|---|---|---|---|---|---|---|\n";
        rows.iter().for_each(|found| out += &found.line());
        out += "\n";
    }
    out += "### The commands\n\nIn the folder `validation`, row by row, with `--json`:\n\n```sh\n";
    for Found { row, .. } in all {
        let _ = writeln!(out, "topocoll {}", row.command);
        if let Some(over) = &row.over {
            let _ = writeln!(out, "topocoll {over}");
        }
    }
    out + "```\n"
}

/// Whether a row belongs to a group.
type Chosen = fn(&Found) -> bool;

/// The error of each row: predicted, fixed, and of other simulators.
fn plot(all: &[Found]) -> String {
    let mut out = String::new();
    {
        let area = SVGBackend::with_string(&mut out, (760, 460)).into_drawing_area();
        area.fill(&WHITE).unwrap();
        let mut chart = ChartBuilder::on(&area)
            .caption("Error of each row, in percent", ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(35)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..all.len() as f64 + 1.0, -90.0..60.0)
            .unwrap();
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("row").light_line_style(TRANSPARENT).draw().unwrap();
        let groups: [(&str, RGBColor, Chosen); 4] = [
            ("predicted", RGBColor(0, 114, 178), |f| {
                f.counts() && !f.row.peer && f.row.fixes.is_none()
            }),
            ("fixed", RGBColor(150, 150, 150), |f| !f.row.peer && f.row.fixes.is_some()),
            ("other simulators", RGBColor(0, 158, 115), |f| f.row.peer),
            ("does not count", RGBColor(213, 94, 0), |f| !f.counts()),
        ];
        for (label, colour, of) in groups {
            let points = (1..).zip(all).filter(|(_, found)| of(found));
            let points = points.map(|(place, found): (u32, _)| {
                Circle::new((f64::from(place), found.error()), 4, colour.filled())
            });
            (chart.draw_series(points).unwrap().label(label))
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart.configure_series_labels().border_style(BLACK.mix(0.3)).draw().unwrap();
        area.present().unwrap();
    }
    out
}

/// `simulate` says of how many predictions it was within 10 %: by model, on machines with links and on
/// others; of BookSim's latencies where no machine was measured.
fn promises_hold(all: &[Found]) {
    for (machine, links) in [("torus:4", true), ("full:4", false)] {
        for model in
            ["fluid", "wormhole", "flit"].into_iter().filter(|model| links || *model != "flit")
        {
            let rows = || {
                let predicted =
                    all.iter().filter(|found| found.counts() && found.row.fixes.is_none());
                predicted.filter(|found| found.model() == model).filter(|found| {
                    let named = found.row.command.split(' ').nth(1).unwrap();
                    let file = std::fs::read_to_string(root().join("validation").join(named));
                    let shape = file.unwrap_or_else(|_| named.to_owned());
                    let linked = ["torus:", "mesh:"].iter().any(|kind| shape.contains(kind));
                    match model {
                        "fluid" => !found.row.peer && linked == links,
                        _ => true,
                    }
                })
            };
            let near = rows().filter(|found| found.error().abs() <= 10.0).count();
            let promise = format!("within 10 % of {near} of {} ", rows().count());
            let told = told(machine, model);
            assert!(told.starts_with(&promise), "{model} on {machine}: {told}, not {promise}");
        }
    }
}

/// What `simulate` says of a model's accuracy.
fn told(machine: &str, model: &str) -> String {
    let command = ["simulate", machine, "--algorithm", "direct", "--json", "--model", model];
    let out = Command::new(env!("CARGO_BIN_EXE_topocoll")).args(command).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    json["accuracy"].as_str().unwrap().to_owned()
}

const END: &str = "<!-- end -->\n";

/// Compares a part of the page, and a picture of it, with what they should be, or writes them.
fn write(part: &str, text: &str, picture: (&str, String)) {
    static PAGE: Mutex<()> = Mutex::new(());
    let _alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let book = root().join("docs/src");
    let page = book.join("validation.md");
    let begin = format!("<!-- {part}, written by crates/cli/tests/validation -->\n");
    let written = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = written.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let text = format!("{before}{begin}{text}{END}{after}");
    for (path, expected) in [(page, text), (book.join(picture.0), picture.1)] {
        if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
            std::fs::write(path, expected).unwrap();
            continue;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == expected,
            "{}: an error has changed; BOOK=overwrite writes the page",
            path.display()
        );
    }
}

#[test]
fn the_chapter_has_the_errors_of_today() {
    let rows = std::fs::read_to_string(root().join("validation/rows.toml")).unwrap();
    let File { row } = toml::from_str(&rows).unwrap();
    let all: Vec<Found> = row.into_par_iter().map(Found::of).collect();
    for found in &all {
        let Row { machine, what, within, .. } = &found.row;
        assert!(found.error().abs() <= *within, "{machine}, {what}: {:+.1} %", found.error());
    }
    let counted = || all.iter().filter(|found| found.counts());
    let peers = counted().filter(|found| found.row.peer).count();
    let machines: BTreeSet<_> = counted().map(|found| &found.row.machine).collect();
    assert!(counted().count() >= 15 && 2 * peers <= counted().count() && machines.len() >= 6);

    promises_hold(&all);

    write("rows", &table(&all), ("validation.svg", plot(&all)));
}
