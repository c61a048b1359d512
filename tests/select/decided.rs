//! Machines that people own are decided: equal ranks are counted once on trees and graphs, too.

use common::{problem, reach};
use topocoll::{Collective, Exchange, Machine, machine};

fn read(name: &str) -> Machine {
    let path = format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = if name.ends_with(".csv") { format!("graph:{path}") } else { path };
    machine(&text).unwrap()
}

#[test]
fn trees_stars_and_dragonflies_are_decided() {
    let named = |text: &str| (machine(text).unwrap(), text.to_owned());
    let of_file = |name: &str| (read(name), name.to_owned());
    // The last ones take minutes in a build without optimization.
    let machines = [
        of_file("star500.csv"),
        named("fat-tree:64,2"),
        named("dragonfly:2,4,2"),
        named("fat-tree:8,3"),
        of_file("tree-32x128.toml"),
        named("fat-tree:8,4"),
        named("bluegene-q-midplane-16"),
        named("hyperx:32x32x32"),
        named("fat-tree:128,2"),
        named("fat-tree:32,3"),
    ];
    for (machine, place) in &machines[..reach(3, machines.len())] {
        let problem = problem(machine, Collective::AllToAll, 1024);
        let selection = Exchange::new(machine, &problem).unwrap().select().unwrap();
        assert_eq!(selection.undecided(), [], "{place}");
    }
}
