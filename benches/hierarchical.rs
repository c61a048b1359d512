//! The table of `docs/src/machines.md`: on machines with several ranks a node, the best schedule that
//! ignores nodes beside the best that combines the blocks of a node: `cargo bench --bench hierarchical`.
#![allow(clippy::print_stdout, reason = "the table is the output")]

use topocoll::{Choice, Collective, Exchange, Priced, Problem, machine};

/// Machines and ports; 0 for their own.
const MACHINES: [(&str, u32); 10] = [
    ("dgx-h100-4x8", 0),
    ("tpu7x-4x4x4", 0),
    ("bluegene-q-midplane-16", 0),
    ("fugaku-384x4", 0),
    ("frontier-like-72x8", 0),
    ("fat-tree-256x8-tapered", 0),
    ("torus:16x16*4", 4),
    ("mesh:8x8*4", 1),
    ("hyperx:8x8*8", 8),
    ("hypercube:6*4", 1),
];

fn main() {
    println!(
        "| machine | ports | block | bound | flat | steps | volume | time | by node | steps | volume | time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (text, ports) in MACHINES {
        let mut machine = machine(text).expect("a machine");
        if ports > 0 {
            machine.set_ports(ports);
        }
        for (block, name) in [(64, "64 B"), (4 << 10, "4 KiB"), (1 << 20, "1 MiB")] {
            let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, block);
            let problem = problem.expect("a machine has ranks");
            let exchange = Exchange::new(&machine, &problem).expect("its ranks");
            let selection = exchange.select().expect("a ranking");
            let best = |by_node: bool| {
                let mut of = selection.choices.iter().filter(|choice| {
                    let name = &choice.algorithm;
                    let nodes = name.starts_with("node-") || name.starts_with("clustered-");
                    nodes == by_node && choice.price.priced == Priced::Exactly
                });
                of.next().map_or("- | - | - | -".to_owned(), shown)
            };
            let bound = seconds(selection.bound.seconds);
            let ports = machine.ports;
            println!(
                "| `{text}` | {ports} | {name} | {bound} | {} | {} |",
                best(false),
                best(true)
            );
        }
    }
}

/// Algorithm, steps, charged volume and time of a choice.
fn shown(choice: &Choice) -> String {
    let settings = choice.parameters.iter();
    let settings: String = settings.map(|(key, value)| format!(" {key}={value}")).collect();
    let price = &choice.price;
    format!(
        "{}{settings} | {} | {:.0} | {}",
        choice.algorithm,
        price.steps,
        price.link_blocks,
        seconds(price.time.total())
    )
}

fn seconds(value: f64) -> String {
    match value {
        value if value >= 1.0 => format!("{value:.3} s"),
        value if value >= 1e-3 => format!("{:.3} ms", value * 1e3),
        value => format!("{:.2} us", value * 1e6),
    }
}
