//! The tables and plots of `docs/src/scaling.md`: all-to-all from 16 to 2^20 nodes, by the steps and
//! the fluid model: `cargo bench --bench scaling`. It writes the plots beside that page.
#![allow(clippy::print_stdout, reason = "the tables are the output")]

use std::time::Instant;

use plotters::prelude::*;
use topocoll::contention::{MODELS, Request, Scheduled, Settings, estimate, in_seconds, simulate};
use topocoll::{Collective, Exchange, Machine, Parameters, Problem, machine};

const BLOCK: u64 = 1024;

/// The sides of the tori, and the ports of a rank.
const FAMILIES: [(&str, &[&str], u32); 4] = [
    ("2-d-1-port", SQUARES, 1),
    ("2-d-4-ports", SQUARES, 4),
    ("3-d-1-port", CUBES, 1),
    ("3-d-6-ports", CUBES, 6),
];
const SQUARES: &[&str] =
    &["4x4", "8x8", "16x16", "32x32", "64x64", "128x128", "256x256", "512x512", "1024x1024"];
const CUBES: &[&str] = &["4x4x4", "8x8x8", "16x16x16", "32x32x32", "64x64x64", "128x128x64"];

/// An algorithm, whether it sends digits of coordinates, and the colour of its lines.
struct Subject {
    algorithm: &'static str,
    by_coordinates: bool,
    colour: RGBColor,
}

const SUBJECTS: [Subject; 5] = [
    subject("direct-offsets", false, RGBColor(0, 114, 178)),
    subject("direct", false, RGBColor(0, 0, 0)),
    subject("bruck", true, RGBColor(213, 94, 0)),
    subject("suh-shin", false, RGBColor(0, 158, 115)),
    subject("neighbour-rings", false, RGBColor(204, 121, 167)),
];

const fn subject(algorithm: &'static str, by_coordinates: bool, colour: RGBColor) -> Subject {
    Subject { algorithm, by_coordinates, colour }
}

/// The most seconds of a simulation, by estimate.
const MOST: f64 = 5.0;

/// Predicted seconds over the lower bound, by nodes.
struct Line {
    label: String,
    colour: RGBColor,
    steps: Vec<(f64, f64)>,
    fluid: Vec<(f64, f64)>,
}

fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src");
    for (name, tori, ports) in FAMILIES {
        println!("\n{name}, {BLOCK}-byte blocks\n");
        println!(
            "| torus | bound | algorithm | steps model | fluid | over the bound | classes | simulated in |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let line = |of: &Subject| {
            let label = of.algorithm.to_owned();
            Line { label, colour: of.colour, steps: Vec::new(), fluid: Vec::new() }
        };
        let mut lines: Vec<Line> = SUBJECTS.iter().map(line).collect();
        for sides in tori {
            let mut machine = machine(&format!("torus:{sides}")).expect("a torus");
            machine.set_ports(ports);
            for (subject, line) in SUBJECTS.iter().zip(&mut lines) {
                measure(&machine, sides, subject, line);
            }
        }
        draw(&format!("{folder}/scaling-{name}.svg"), name, &lines);
    }
}

/// Prints a row, and adds its points to the line.
fn measure(machine: &Machine, sides: &str, subject: &Subject, line: &mut Line) {
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, BLOCK);
    let problem = problem.expect("a torus has ranks");
    let exchange = Exchange::new(machine, &problem).expect("its ranks");
    let mut given = Parameters::new();
    if subject.by_coordinates {
        given.insert("digits".to_owned(), "coordinates".into());
    }
    let name = subject.algorithm;
    let schedule = exchange.schedule(name, &given).expect("it applies to every torus here");
    let model = MODELS.iter().find(|model| model.name == "fluid").expect("a model");
    let cost = estimate(&schedule, machine, model, &Settings::default(), 0).expect("its ranks");
    if cost.seconds > MOST {
        return;
    }
    let bound = exchange.bounds().seconds;
    let steps = exchange.count(&schedule).expect("it fits").time.total();
    let traffic = Scheduled::new(&schedule, machine);
    let begin = Instant::now();
    let found = simulate(&Request::new(&traffic, machine, model, 8 << 30)).expect("it fits");
    let took = begin.elapsed().as_secs_f64();
    let fluid = in_seconds(found.time);
    println!(
        "| {sides} | {} | `{name}` | {} | {} | {:.2}x | {} | {} |",
        seconds(bound),
        seconds(steps),
        seconds(fluid),
        fluid / bound,
        found.classes,
        seconds(took)
    );
    let nodes = f64::from(machine.ranks());
    line.steps.push((nodes, steps / bound));
    line.fluid.push((nodes, fluid / bound));
}

/// Time over the bound against nodes: the fluid model with solid lines, the steps model with thin
/// ones.
fn draw(path: &str, name: &str, lines: &[Line]) {
    let root = SVGBackend::new(path, (720, 420)).into_drawing_area();
    root.fill(&WHITE).expect("a picture");
    let points = || lines.iter().flat_map(|line| line.steps.iter().chain(&line.fluid));
    let [most_nodes, most] =
        [|p: &(f64, f64)| p.0, |p: &(f64, f64)| p.1].map(|of| points().map(of).fold(1.0, f64::max));
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{name}: time over the lower bound"), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d((10.0..most_nodes * 1.5).log_scale(), (0.9..most * 1.2).log_scale())
        .expect("axes");
    (chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("nodes"))
        .y_desc("solid: fluid model; thin: steps model")
        .draw()
        .expect("axes");
    for Line { label, colour, steps, fluid } in lines {
        let colour = *colour;
        let solid = LineSeries::new(fluid.iter().copied(), colour.stroke_width(2)).point_size(3);
        (chart.draw_series(solid).expect("a line").label(label))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        let thin = LineSeries::new(steps.iter().copied(), colour.mix(0.6));
        chart.draw_series(thin).expect("a line");
    }
    (chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft))
        .background_style(WHITE.mix(0.8))
        .draw()
        .expect("a legend");
    root.present().expect("the folder of the page");
}

fn seconds(value: f64) -> String {
    match value {
        value if value >= 1.0 => format!("{value:.3} s"),
        value if value >= 1e-3 => format!("{:.3} ms", value * 1e3),
        value => format!("{:.1} us", value * 1e6),
    }
}
