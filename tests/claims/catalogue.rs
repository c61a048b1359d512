//! docs/src/algorithms.md is what the catalogue says of each algorithm.

use std::fmt::Write as _;
use std::path::Path;

use topocoll::{Algorithm, Catalogue, Collective, Exchange, Problem, machine};

/// A machine of each kind, with the words for that kind.
const KINDS: [(&str, &str); 8] = [
    ("full:16", "fully connected machines"),
    ("torus:8x8", "tori"),
    ("mesh:8x8", "meshes"),
    ("grid:8~x8", "other grids"),
    ("twisted-torus:4x8", "twisted tori"),
    ("torus:4x4/1,2", "machines with failed nodes or links"),
    ("dragonfly:1,2,1", "other graphs"),
    ("cluster:4*4", "clusters"),
];

/// The kinds whose machine above it applies to, and why it refuses the others.
fn applies(algorithm: &dyn Algorithm) -> String {
    let info = algorithm.info();
    if info.by_demand {
        return "requires the sizes of blocks (`--demand`)".to_owned();
    }
    let (mut takes, mut refuses) = (vec![], vec![]);
    for (name, kind) in KINDS {
        let machine = machine(name).unwrap();
        let ranks = machine.topology.ranks();
        let problem = Problem::new(info.operation, ranks, machine.ports, 1024).unwrap();
        match Exchange::new(&machine, &problem).unwrap().cheapest(&info.name) {
            Ok(_) => takes.push(kind),
            Err(reason) => refuses.push(format!("  - refuses `{name}`: {reason}\n")),
        }
    }
    format!("{}\n{}", takes.join(", "), refuses.concat()).trim_end().to_owned()
}

fn page() -> String {
    let mut page = "# Algorithms\n\n\
        This page is written from the catalogue. `topocoll algorithms MACHINE` shows the algorithms that apply to a\n\
        machine, with their costs. `--algorithm NAME` selects one, and `--set name=value` its parameters.\n\n\
        All algorithms take these parameters:\n\n\
        - `steps`: the most steps. Of the settings that take no more, the first in the ranking of `select` is used: for\n\
        \x20 this machine, these ports and this block size.\n\
        - `ports` and, where nodes hold several ranks, `node_ports`: their schedules for fewer ports.\n\
        - On grids and hypercubes `axes` and `ties`: their schedules for dimensions in another order, and for other\n\
        \x20 directions at half a ring ([examples](machines.md#dimensions-in-other-orders)).\n\
        - On graphs `seen` and `without`: their schedules for nodes in another order, for the grid that a graph is, and\n\
        \x20 without slow links ([examples](machines.md#other-orders-of-a-graph)).\n\n\
        Many algorithms have further settings, of which `steps` chooses one. `--json`, files and certificates name such a\n\
        setting with all its parameters, and `--set` accepts them.\n\n\
        Each entry names the kinds of machines to which the algorithm applies. An example stands for each kind; other\n\
        sides or sizes of a kind can be refused, with the reason.\n"
        .to_owned();
    let catalogue = Catalogue::standard();
    for (operation, title) in
        [(Collective::AllToAll, "All-to-all"), (Collective::AllGather, "All-gather")]
    {
        write!(page, "\n## {title}\n").unwrap();
        for algorithm in catalogue.iter().filter(|one| one.info().operation == operation) {
            let info = algorithm.info();
            write!(page, "\n### {}\n\nOperation: {}.\n", info.name, operation.name()).unwrap();
            write!(page, "\n- does: {}\n- source: {}\n", info.summary, info.source).unwrap();
            for parameter in info.parameters {
                writeln!(page, "- parameter `{}`: {parameter}", parameter.name).unwrap();
            }
            writeln!(page, "- applies to: {}", applies(algorithm)).unwrap();
        }
    }
    page
}

/// `BOOK=overwrite cargo test --test claims catalogue::` writes the page.
#[test]
fn the_page_of_algorithms_is_that_of_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/algorithms.md");
    let page = page();
    if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page, "algorithms.md is stale");
}
