//! The settings of the environment: variables, and parameters of Open MPI's component, which come before them
//! (`docs/src/mpi.md`). An invalid one produces one warning and is ignored.

use std::collections::BTreeMap;

use topocoll::{Collective, Machine, Planner, Sync};

/// The algorithm requested for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Wish {
    /// The fastest one by prediction.
    #[default]
    Fastest,
    Algorithm {
        name: &'static str,
        /// Whether messages inside a node pass through a shared window.
        window: bool,
    },
    Library,
}

/// What decides between schedules and the library's call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tune {
    /// Predictions.
    Off,
    /// Measurements in this run.
    #[default]
    On,
    /// Measurements, kept in a file.
    File(String),
}

#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// By operation.
    wishes: [Wish; 2],
    pub(crate) machine: Option<Machine>,
    /// The synchronization between steps of all schedules.
    pub(crate) sync: Option<Sync>,
    pub(crate) tune: Tune,
    pub(crate) trace: bool,
    /// The variables and parameters that are set, by the variable's name.
    names: BTreeMap<String, String>,
}

const PREFIX: &str = "TOPOCOLL_";
/// Open MPI's variables of the component's parameters.
const PARAMETER: &str = "OMPI_MCA_coll_topocoll_";
/// After an algorithm's name.
pub(super) const WINDOW: &str = "+window";
const NAMES: [&str; 5] =
    ["TOPOCOLL_ALGORITHM", "TOPOCOLL_MACHINE", "TOPOCOLL_SYNC", "TOPOCOLL_TRACE", "TOPOCOLL_TUNE"];

impl Settings {
    /// Reads the variables for a world of `world` ranks; returns the settings and warnings.
    pub(crate) fn read(
        variables: impl Iterator<Item = (String, String)>,
        world: u32,
    ) -> (Self, Vec<String>) {
        let is_ours = |name: &str| name.starts_with(PREFIX) || name.starts_with(PARAMETER);
        let ours: BTreeMap<_, _> = variables.filter(|(name, _)| is_ours(name)).collect();
        let (mut settings, mut warnings) = (Self::default(), Vec::new());
        // By name, the last first, so parameters follow variables.
        for (given, value) in ours.iter().rev() {
            let (parameter, name) =
                (given.strip_prefix(PARAMETER), given.trim_start_matches("OMPI_MCA_"));
            let upper = |own: &str| PREFIX.to_owned() + &own.to_uppercase();
            let variable = parameter.map_or_else(|| name.to_owned(), upper);
            settings.names.insert(variable.clone(), name.to_owned());
            let refused = match &*variable {
                // The library's own.
                "TOPOCOLL_PRIORITY" if parameter.is_some() => Ok(()),
                "TOPOCOLL_ALGORITHM" => wishes(value).map(|wishes| settings.wishes = wishes),
                "TOPOCOLL_MACHINE" => machine(value, world).map(|given| settings.machine = given),
                "TOPOCOLL_SYNC" => sync(value).map(|sync| settings.sync = sync),
                "TOPOCOLL_TUNE" => tune(value).map(|tune| settings.tune = tune),
                "TOPOCOLL_TRACE" => trace(value).map(|trace| settings.trace = trace),
                _ => Err(format!("no such variable; there are {}", NAMES.join(", "))),
            };
            if let Err(reason) = refused {
                warnings.push(format!("{name}={value}: {reason}"));
            }
        }
        (settings, warnings)
    }

    /// The name of a variable, or of the parameter that is set in its place.
    pub(crate) fn name<'a>(&'a self, variable: &'a str) -> &'a str {
        self.names.get(variable).map_or(variable, String::as_str)
    }

    pub(crate) fn wish(&self, operation: Collective) -> Wish {
        self.wishes[operation as usize]
    }
}

/// By operation.
fn wishes(value: &str) -> Result<[Wish; 2], String> {
    let mut wishes = [Wish::Fastest; 2];
    for item in value.split(',').filter(|item| !item.is_empty()) {
        let (operation, name) = match item.split_once(':') {
            Some((operation, name)) => {
                (Some(operation.parse::<Collective>().map_err(|e| e.to_string())?), name)
            }
            None => (None, item),
        };
        let (name, window) = match name.strip_suffix(WINDOW) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let info = Planner::standard().catalogue().find(name).map_err(|e| e.to_string())?.info();
        let performs = info.operation;
        match operation {
            Some(asked) if asked != performs => {
                return Err(format!("{name} performs {performs}, not {asked}"));
            }
            Some(_) => {}
            None => {
                let others = wishes.iter_mut().filter(|wish| **wish == Wish::Fastest);
                others.for_each(|wish| *wish = Wish::Library);
            }
        }
        wishes[performs as usize] = Wish::Algorithm { name: &info.name, window };
    }
    Ok(wishes)
}

fn machine(value: &str, world: u32) -> Result<Option<Machine>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    let machine = topocoll::machine(value).map_err(|error| error.to_string())?;
    if machine.ranks() != world {
        let ranks = machine.ranks();
        return Err(format!("it has {ranks} ranks, and MPI_COMM_WORLD has {world}"));
    }
    // The other ranks are told its short form.
    let form = machine.topology.short_form();
    if form.starts_with("network") || form.starts_with("graph:") {
        let rule = "its links are in a file, which only the first rank reads";
        return Err(format!("{rule}: name a machine with a short form of its own"));
    }
    Ok(Some(machine))
}

fn sync(value: &str) -> Result<Option<Sync>, String> {
    match value {
        "" => Ok(None),
        "free" => Ok(Some(Sync::Free)),
        "barrier" => Ok(Some(Sync::Barrier)),
        _ => Err("must be free or barrier".to_owned()),
    }
}

fn tune(value: &str) -> Result<Tune, String> {
    match value {
        "" | "on" => Ok(Tune::On),
        "off" => Ok(Tune::Off),
        file if file.contains(['/', '.']) => Ok(Tune::File(file.to_owned())),
        // A misspelt word must not become a file.
        _ => Err("must be on, off or a file, whose name contains a dot or a slash".to_owned()),
    }
}

fn trace(value: &str) -> Result<bool, String> {
    match value {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("must be 0 or 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> (Settings, Vec<String>) {
        Settings::read([(name.to_owned(), value.to_owned())].into_iter(), 8)
    }

    #[test]
    fn algorithms_are_forced_by_operation_or_bare() {
        let wishes = |value| {
            let (settings, warnings) = read("TOPOCOLL_ALGORITHM", value);
            assert!(warnings.is_empty(), "{warnings:?}");
            let [alltoall, allgather] = settings.wishes;
            (alltoall, allgather)
        };
        let forced = |name| Wish::Algorithm { name, window: false };
        assert_eq!(wishes("alltoall:bruck"), (forced("bruck"), Wish::Fastest));
        let window = Wish::Algorithm { name: "bruck", window: true };
        assert_eq!(wishes("alltoall:bruck+window"), (window, Wish::Fastest));
        let both = (forced("bruck"), forced("ring"));
        assert_eq!(wishes("alltoall:bruck,allgather:ring"), both);
        assert_eq!(wishes("ring"), (Wish::Library, forced("ring")));
        assert_eq!(wishes("bruck,ring"), both);
        assert_eq!(wishes(""), (Wish::Fastest, Wish::Fastest));
    }

    #[test]
    fn a_parameter_of_open_mpi_comes_before_the_variable() {
        let given = [
            ("OMPI_MCA_coll_topocoll_trace", "0"),
            ("OMPI_MCA_coll_topocoll_priority", "60"),
            ("OMPI_MCA_coll_topocoll_algorithm", "ring"),
            ("TOPOCOLL_ALGORITHM", "bruck"),
            ("TOPOCOLL_TRACE", "1"),
            ("OMPI_MCA_coll_topocoll_sync", "yes"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (settings, warnings) = Settings::read(given.into_iter(), 8);
        let names = ["TOPOCOLL_ALGORITHM", "TOPOCOLL_TUNE"].map(|name| settings.name(name));
        assert_eq!(names, ["coll_topocoll_algorithm", "TOPOCOLL_TUNE"]);
        let ring = Wish::Algorithm { name: "ring", window: false };
        assert_eq!((settings.wishes, settings.trace), ([Wish::Library, ring], false));
        assert_eq!(warnings, ["coll_topocoll_sync=yes: must be free or barrier"]);
    }

    #[test]
    fn tuning_is_on_unless_it_is_off() {
        let tune = |value| read("TOPOCOLL_TUNE", value).0.tune;
        assert_eq!((tune(""), tune("on"), tune("off")), (Tune::On, Tune::On, Tune::Off));
        assert_eq!(tune("tune.json"), Tune::File("tune.json".to_owned()));
    }

    #[test]
    fn schedules_run_free_or_with_barriers_if_that_is_asked() {
        let sync = |value| read("TOPOCOLL_SYNC", value).0.sync;
        let expected = (None, Some(Sync::Free), Some(Sync::Barrier));
        assert_eq!((sync(""), sync("free"), sync("barrier")), expected);
    }

    #[test]
    fn an_invalid_variable_is_warned_of_and_ignored() {
        for (name, value, expected) in [
            ("TOPOCOLL_ALGORITHM", "brukc", "unknown algorithm `brukc`"),
            ("TOPOCOLL_ALGORITHM", "alltoall:ring", "ring performs allgather, not alltoall"),
            ("TOPOCOLL_ALGORITHM", "bruck,alltoal:direct", "alltoal"),
            ("TOPOCOLL_MACHINE", "full:9", "it has 9 ranks, and MPI_COMM_WORLD has 8"),
            ("TOPOCOLL_MACHINE", "/nowhere.toml", "cannot read `/nowhere.toml`"),
            ("TOPOCOLL_SYNC", "yes", "must be free or barrier"),
            ("TOPOCOLL_TRACE", "yes", "must be 0 or 1"),
            ("TOPOCOLL_TUNE", "yes", "must be on, off or a file"),
            ("TOPOCOLL_TRACES", "1", "no such variable"),
        ] {
            let (settings, warnings) = read(name, value);
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].starts_with(&format!("{name}={value}: ")), "{warnings:?}");
            assert!(warnings[0].contains(expected), "{warnings:?}");
            assert_eq!(settings.wishes, [Wish::Fastest; 2]);
            assert!(settings.machine.is_none() && !settings.trace);
            assert_eq!((settings.tune, settings.sync), (Tune::On, None));
        }
    }
}
