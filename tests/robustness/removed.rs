//! Names of earlier versions are refused with the nearest that is left.

use common::{problem, schedule_of, setting, with_ports};
use topocoll::{Catalogue, Collective};

/// Algorithms, or settings of one, that were removed.
const REMOVED: [&str; 13] = [
    "bit-flips",
    "uneven-rings",
    "coloured-rings landing=centred",
    "coloured-rings residual=direct",
    "demand-matchings matchings=3",
    "neighbour-rings led=1",
    "product split=all",
    "product split=axes",
    "product split=one",
    "strided-rings folded=1",
    "strided-rings last=pairs",
    "strided-rings last=relay",
    "strided-rings share=sources",
];

/// What solving with a setting on a torus says, if it is refused.
fn refused((torus, ports): (&str, u32), algorithm: &str, given: &str) -> Option<String> {
    let machine = with_ports(torus, ports);
    let problem = problem(&machine, Collective::AllToAll, 64);
    schedule_of(&machine, &problem, algorithm, &setting(given)).err().map(|error| error.to_string())
}

#[test]
fn names_that_were_removed_are_refused_and_the_nearest_are_not() {
    let catalogue = Catalogue::standard();
    let nearest = |said: &str| {
        let (_, nearest) = said.split_once(" was removed; the nearest is ").unwrap();
        nearest.to_owned()
    };
    for name in REMOVED {
        let Some((algorithm, setting)) = name.split_once(' ') else {
            let said = catalogue.find(name).err().unwrap().to_string();
            assert!(catalogue.find(&nearest(&said)).is_ok(), "{name}");
            continue;
        };
        let machines = [("torus:8x8", 4), ("torus:8x8x8", 1)];
        let nearest = nearest(&refused(machines[0], algorithm, setting).unwrap());
        let (key, _) = nearest.split_once('=').unwrap();
        let is_value = machines.into_iter().any(|machine| {
            let said = refused(machine, algorithm, &nearest).unwrap_or_default();
            !said.contains("parameter") && !said.contains(&format!("{key} is `"))
        });
        assert!(is_value, "{name}");
    }
}
