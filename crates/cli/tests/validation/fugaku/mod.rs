//! Measured all-to-alls on Fugaku beside the steps model: which rows fix constants, how well the others are
//! predicted, and what each term is worth. Writes a table and a plot of the page.

mod counted;
mod engines;
mod model;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use plotters::prelude::*;
use rayon::prelude::*;
use topocoll::{Machine, spec};

use self::counted::Case;
use self::model::{Constants, Features, File, NAMES, Row, Way, fit};

const SHAPES: [(&str, &[u32]); 4] =
    [("2x2x2", &[2; 3]), ("4x4x4", &[4; 3]), ("8x8x8", &[8; 3]), ("64x64", &[64; 2])];

/// The measured implementations, in the order of the tables, and their colours.
const ALGORITHMS: [(&str, RGBColor); 8] = [
    ("pairwise", RGBColor(0, 114, 178)),
    ("linear", RGBColor(230, 159, 0)),
    ("bruck", RGBColor(0, 158, 115)),
    ("modified-bruck", RGBColor(86, 180, 233)),
    ("bine", RGBColor(204, 121, 167)),
    ("doublespread", RGBColor(213, 94, 0)),
    ("blacc3d", RGBColor(120, 94, 240)),
    ("default", RGBColor(120, 120, 120)),
];

/// What an implementation runs: on 4,096 nodes two fall back to others, and the default follows the rules of
/// the library's decision tree.
fn way(algorithm: &str, ranks: u32, bytes: u64) -> Way {
    match algorithm {
        "bruck" => Way::Bruck,
        "modified-bruck" => Way::ModifiedBruck,
        "bine" => Way::Bine,
        "doublespread" => Way::Doublespread,
        "linear" if ranks <= 1024 => Way::Linear,
        "pairwise" | "linear" => Way::Pairwise,
        "blacc3d" if ranks <= 1024 => Way::Blacc3d,
        "default" | "blacc3d" if bytes <= 192 => Way::ModifiedBruck,
        "default" | "blacc3d" => Way::Doublespread,
        other => panic!("an unknown algorithm, {other}"),
    }
}

/// Whether the code that a row runs is also that of another row.
fn is_alias(row: &Row) -> bool {
    let ours = format!("{:?}", row.case.way).to_lowercase();
    ours != row.algorithm.replace('-', "")
}

struct Measured {
    machine: Machine,
    constants: Constants,
    rows: Vec<Row>,
}

fn read() -> Measured {
    let text =
        |name: &str| std::fs::read_to_string(crate::root().join("validation").join(name)).unwrap();
    let machine = spec::parse_file("fugaku", &text("fugaku.toml")).unwrap();
    let file: File = toml::from_str(&text("fugaku-rows.toml")).unwrap();
    let constants = Constants::read(&machine, &file);
    let table = text("fugaku.tsv");
    let fields = table.lines().skip(2).map(|line| line.split('\t').collect::<Vec<_>>());
    let read: Vec<_> = fields
        .map(|fields| {
            let [shape, algorithm, bytes, us] = fields[..] else { panic!("{fields:?}") };
            let (shape, sides) = *SHAPES.iter().find(|(name, _)| *name == shape).unwrap();
            let bytes: u64 = bytes.parse().unwrap();
            let way = way(algorithm, sides.iter().product(), bytes);
            (shape, Case { sides, way }, algorithm, bytes, us.parse().unwrap())
        })
        .collect();
    // Equal counts have equal features.
    let counted = |case: Case| Case {
        way: match case.way {
            Way::ModifiedBruck => Way::Bruck,
            Way::Doublespread | Way::Blacc3d => Way::Linear,
            way => way,
        },
        ..case
    };
    let mut cases: Vec<Case> = read.iter().map(|(_, case, ..)| counted(*case)).collect();
    cases.sort();
    cases.dedup();
    let features = cases.into_par_iter().map(|case| (case, Arc::new(case.features())));
    let features: BTreeMap<Case, Arc<Features>> = features.collect();
    let rows = read.into_iter().map(|(shape, case, algorithm, bytes, us)| Row {
        shape,
        algorithm: algorithm.to_owned(),
        case,
        features: features[&counted(case)].clone(),
        bytes,
        us,
        fixes: algorithm != "default" && file.fitted[shape].contains(&bytes),
    });
    Measured { machine, constants, rows: rows.collect() }
}

/// Errors of some rows, in percent.
struct Errors(Vec<f64>);

impl Errors {
    fn of<'r>(rows: impl Iterator<Item = &'r Row>, constants: &Constants) -> Self {
        Self(rows.map(|row| 100.0 * row.error(constants)).collect())
    }

    /// The smallest that so large a part is not above, in absolute value.
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted: Vec<f64> = self.0.iter().map(|error| error.abs()).collect();
        sorted.sort_by(f64::total_cmp);
        let at = part * (sorted.len() - 1) as f64;
        let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        low + (high - low) * at.fract()
    }

    fn line(&self, what: &str) -> String {
        let worst = self.0.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        format!(
            "| {what} | {} | {:.0} % | {:.0} % | {worst:+.0} % | {:+.0} % |\n",
            self.0.len(),
            self.quantile(0.5),
            self.quantile(0.9),
            sorted[sorted.len() / 2],
        )
    }
}

/// The pairs of a shape and a size with at least five implementations, how many of them the model names the
/// fastest of, and the others.
fn winners(rows: &[Row], constants: &Constants) -> (usize, usize, Vec<String>) {
    let (mut right, mut all, mut wrong) = (0, 0, Vec::new());
    for (shape, _) in SHAPES {
        let mut sizes: Vec<u64> =
            rows.iter().filter(|row| row.shape == shape).map(|row| row.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            let of =
                |row: &&Row| (row.shape, row.bytes) == (shape, bytes) && row.algorithm != "default";
            let of: Vec<&Row> = rows.iter().filter(of).collect();
            if of.len() < 5 {
                continue;
            }
            let least = |time: &dyn Fn(&Row) -> f64| {
                *of.iter().min_by(|a, b| time(a).total_cmp(&time(b))).unwrap()
            };
            let (best, ours) = (least(&|row| row.us), least(&|row| row.predicted(constants)));
            all += 1;
            // Rows that run the same code are equally fast.
            if best.predicted(constants) == ours.predicted(constants) {
                right += 1;
            } else {
                wrong.push(format!(
                    "{shape}, {bytes} B: {} ({} us), not {} ({} us)",
                    best.algorithm, best.us, ours.algorithm, ours.us
                ));
            }
        }
    }
    (right, all, wrong)
}

/// A term that is left out, the constants that then have no effect, and how to leave it out.
type Without = (&'static str, &'static [&'static str], fn(&mut Constants));

fn set(constants: &mut Constants, name: &str, value: f64) {
    constants.values[NAMES.iter().position(|other| *other == name).unwrap()] = value;
}

const WITHOUT: [Without; 7] = [
    ("`contention` of axes in steps: the busiest link alone", &[], |c| c.adds_up = false),
    (
        "`contention` of all at once: axes overlap wholly",
        &["contention", "doublespread_exponent"],
        |c| {
            set(c, "contention", f64::INFINITY);
            set(c, "doublespread_exponent", f64::INFINITY);
        },
    ),
    ("`per_block`", &["per_block", "utofu_block"], |c| {
        set(c, "per_block", 0.0);
        set(c, "utofu_block", 0.0);
    }),
    ("`rearrangement`", &["rearrangement"], |c| set(c, "rearrangement", 0.0)),
    ("`rendezvous`", &["rendezvous"], |c| set(c, "rendezvous", 0.0)),
    ("steps that depend on the one before", &["dependent"], |c| set(c, "dependent", 0.0)),
    ("many peers", &["many_peers"], |c| set(c, "many_peers", 0.0)),
];

fn size_class(bytes: u64) -> &'static str {
    match bytes {
        ..1024 => "blocks below 1 KiB",
        1024..=65536 => "1 to 64 KiB",
        _ => "above 64 KiB",
    }
}

/// The part of the page.
fn tables(of: &Measured) -> String {
    let Measured { constants, rows, .. } = of;
    let mut out = String::new();
    let head = |first: &str| {
        format!(
            "| {first} | rows | median | 90 % within | worst | bias |\n|---|---|---|---|---|---|\n"
        )
    };
    let predicted = || rows.iter().filter(|row| !row.fixes);
    let fixing: Vec<&Row> = rows.iter().filter(|row| row.fixes).collect();
    out += &head("rows");
    out += &Errors::of(fixing.iter().copied(), constants).line("that fix constants");
    out += &Errors::of(predicted(), constants).line("predicted");
    let own = predicted().filter(|row| !is_alias(row));
    out += &Errors::of(own, constants).line("predicted, of code of their own");
    for (algorithm, _) in ALGORITHMS {
        let rows = predicted().filter(|row| row.algorithm == algorithm);
        out += &Errors::of(rows, constants).line(&format!("predicted, {algorithm}"));
    }
    for (shape, _) in SHAPES {
        let rows = predicted().filter(|row| row.shape == shape);
        out += &Errors::of(rows, constants).line(&format!("predicted, {shape}"));
    }
    for class in ["blocks below 1 KiB", "1 to 64 KiB", "above 64 KiB"] {
        let rows = predicted().filter(|row| size_class(row.bytes) == class);
        out += &Errors::of(rows, constants).line(&format!("predicted, {class}"));
    }
    let (right, all, wrong) = winners(rows, constants);
    let _ = writeln!(
        out,
        "\nThe model names the fastest implementation in {right} of {all} pairs of a shape and a size, of all rows. \
         The others: {}.\n",
        wrong.join("; ")
    );
    out += "Each term left out, and the other constants fitted again to the same rows:\n\n";
    out += &head("predicted rows without");
    let mut lines: Vec<(usize, String)> = (0..WITHOUT.len() + SHAPES.len())
        .into_par_iter()
        .map(|i| match WITHOUT.get(i) {
            Some((what, keeps, change)) => {
                let mut from = constants.clone();
                change(&mut from);
                let fitted = fit(&fixing, &from, keeps);
                (i, Errors::of(predicted(), &fitted).line(what))
            }
            None => {
                let (shape, _) = SHAPES[i - WITHOUT.len()];
                let others = rows.iter().filter(|row| row.shape != shape);
                let others: Vec<&Row> = others.filter(|row| row.algorithm != "default").collect();
                let fitted = fit(&others, constants, &[]);
                let own = rows.iter().filter(|row| row.shape == shape);
                (i, Errors::of(own, &fitted).line(shape))
            }
        })
        .collect();
    lines.sort_by_key(|(i, _)| *i);
    lines[..WITHOUT.len()].iter().for_each(|(_, line)| out += line);
    out += "\nThe constants fitted to all rows of the other shapes:\n\n";
    out += &head("all rows of");
    lines[WITHOUT.len()..].iter().for_each(|(_, line)| out += line);
    out += "\nPredicted over measured less 1, in percent; rows with * fix constants:\n\n";
    for (shape, _) in SHAPES {
        let own: Vec<&Row> = rows.iter().filter(|row| row.shape == shape).collect();
        let mut sizes: Vec<u64> = own.iter().map(|row| row.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let _ = write!(out, "| {shape}, block |");
        sizes.iter().for_each(|bytes| out += &format!(" {} |", with_unit(*bytes)));
        out += &format!("\n|{}\n", "---|".repeat(sizes.len() + 1));
        for (algorithm, _) in ALGORITHMS {
            let _ = write!(out, "| {algorithm} |");
            for bytes in &sizes {
                let row = own.iter().find(|row| row.algorithm == algorithm && row.bytes == *bytes);
                let mark = |row: &Row| if row.fixes { "*" } else { "" };
                let text =
                    row.map(|row| format!("{:+.0}{}", 100.0 * row.error(constants), mark(row)));
                let _ = write!(out, " {} |", text.unwrap_or_default());
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

fn with_unit(bytes: u64) -> String {
    match bytes {
        ..1024 => format!("{bytes} B"),
        1024..1048576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Predicted over measured, by measured time.
fn plot(of: &Measured) -> String {
    let mut out = String::new();
    {
        let area = SVGBackend::with_string(&mut out, (760, 460)).into_drawing_area();
        area.fill(&WHITE).unwrap();
        let mut chart = ChartBuilder::on(&area)
            .caption(
                "Fugaku, predicted over measured time; full circles are predicted",
                ("sans-serif", 16),
            )
            .margin(10)
            .x_label_area_size(35)
            .y_label_area_size(50)
            .build_cartesian_2d((10.0..1e6).log_scale(), (0.4..2.2).log_scale())
            .unwrap();
        let band = Rectangle::new([(10.0, 1.0 / 1.2), (1e6, 1.2)], BLACK.mix(0.08).filled());
        chart.draw_series([band]).unwrap();
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("measured time [us]").light_line_style(TRANSPARENT).draw().unwrap();
        for (algorithm, colour) in ALGORITHMS {
            let points = of.rows.iter().filter(|row| row.algorithm == algorithm).map(|row| {
                let style = if row.fixes { colour.stroke_width(1) } else { colour.filled() };
                Circle::new((row.us, row.predicted(&of.constants) / row.us), 3, style)
            });
            (chart.draw_series(points).unwrap().label(algorithm))
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        (chart.configure_series_labels().position(SeriesLabelPosition::LowerRight))
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .unwrap();
        area.present().unwrap();
    }
    out
}

/// The fastest schedules of ours on the nodes of 64x64, beside the best measured times.
fn claim(rows: &[Row]) -> String {
    let product = "--algorithm product --set along=direct --set together=16";
    let mut out = "### A claim\n\n| block | best measured | of | ours, predicted | schedule |\n|---|---|---|---|---|\n".to_owned();
    for (bytes, schedule) in [
        (32, product),
        (256, product),
        (2048, "--algorithm bruck --set radix=128"),
        (16384, "--algorithm direct"),
    ] {
        let command = format!("simulate fugaku-64x64.toml {schedule} --block {bytes}");
        let ours = crate::figure(&command, "/time_seconds") * 1e6;
        let own = rows.iter().filter(|row| (row.shape, row.bytes) == ("64x64", bytes));
        let best = own.min_by(|a, b| a.us.total_cmp(&b.us)).unwrap();
        let _ = writeln!(
            out,
            "| {} | {:.0} us | {} | {ours:.0} us | `{schedule}` |",
            with_unit(bytes),
            best.us,
            best.algorithm
        );
    }
    out
}

#[test]
#[ignore = "a minute of processor time"]
fn the_chapter_has_the_errors_on_fugaku() {
    let of = read();
    let Measured { machine, constants, rows } = &of;
    assert_eq!(rows.len(), 229);
    // The program's own times: of all rows of few ranks, and of one size of many.
    let checked = rows.iter().filter(|row| !is_alias(row));
    let checked = checked.filter(|row| row.case.ranks() <= 64 || row.bytes == 256);
    checked.collect::<Vec<_>>().par_iter().for_each(|row| {
        let (ours, program) =
            (row.predicted(constants), row.case.predicted(machine, constants, row.bytes));
        assert!(
            (ours / program - 1.0).abs() < 1e-9,
            "{:?} {}: {ours}, {program}",
            row.case,
            row.bytes
        );
    });
    // The constants are those of least squares.
    let fixing: Vec<&Row> = rows.iter().filter(|row| row.fixes).collect();
    let fitted = fit(&fixing, constants, &[]);
    let near = |(own, fitted): (&f64, &f64)| (own / fitted - 1.0).abs() < 0.01;
    assert!(
        constants.values.iter().zip(&fitted.values).all(near),
        "the fit gives {:?}",
        NAMES.iter().zip(fitted.values).collect::<Vec<_>>()
    );
    // The errors that the model may have at most.
    let predicted = Errors::of(rows.iter().filter(|row| !row.fixes), constants);
    let (right, all, _) = winners(rows, constants);
    assert!(predicted.quantile(0.5) <= 15.0 && predicted.quantile(0.9) <= 40.0);
    assert!(all == 28 && right >= 25, "{right} of {all}");
    let engines = engines::table(&of);
    let text = format!("{}### Contention models on the same rows\n\n{engines}\n", tables(&of));
    let text = text + &claim(rows);
    crate::write("fugaku", &text, ("fugaku.svg", plot(&of)));
}
