//! Results of trials: known to this process by shape of communicator and subject, and kept in a
//! file for the next run.
//!
//! Only the first rank of a communicator asks, and tells the others what it decides. Only the first
//! rank of `MPI_COMM_WORLD` writes the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use topocoll::files;

use super::ours::{Ours, Subject};
use super::place::Place;
use super::trial::Kept;

/// A decision that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    /// The communicator's machine and order of ranks.
    shape: String,
    /// The number of the subject, and a text for readers.
    subject: u64,
    calls: String,
    /// The schedules that were tried.
    pub(crate) schedules: Vec<Ours>,
    /// The kept schedule, counted from 1; 0 for the library's call.
    kept: usize,
    library_nanoseconds: u64,
    kept_nanoseconds: u64,
}

impl Measured {
    /// Whether its schedules serve a subject on a communicator.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn serves(&self, subject: Subject, places: &[Place]) -> Result<(), String> {
        let ranks = places[0].machine.ranks();
        self.schedules.iter().try_for_each(|schedule| schedule.serves(subject, ranks))
    }

    pub(crate) fn kept(&self) -> Kept {
        let (library, own) = (self.library_nanoseconds, self.kept_nanoseconds);
        Kept { candidate: self.kept, library, own }
    }
}

/// The run that a file is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The machine's name, its digits replaced by `*`: nodes of a cluster differ by a number.
    machine: String,
    /// The version of the MPI library.
    mpi: String,
    /// Ranks of `MPI_COMM_WORLD`.
    ranks: u32,
}

impl Run {
    pub(crate) fn new(machine: &str, mpi: &str, ranks: u32) -> Self {
        let machine = machine.replace(|letter: char| letter.is_ascii_digit(), "*");
        Self { machine, mpi: mpi.to_owned(), ranks }
    }

    /// # Errors
    /// A difference to this run.
    fn fits(&self, other: &Self) -> Result<(), String> {
        let ranks = [other, self].map(|run| run.ranks.to_string());
        let fields = [
            ("machine", &other.machine, &self.machine),
            ("mpi", &other.mpi, &self.mpi),
            ("ranks", &ranks[0], &ranks[1]),
        ];
        let different = fields.into_iter().find(|(_, theirs, own)| theirs != own);
        different.map_or(Ok(()), |(field, theirs, own)| {
            let what = format!("`{field}` is `{theirs}`, and this run has `{own}`");
            Err(format!("{what}; delete the file or name another"))
        })
    }
}

/// The times of the library, of one of its algorithms or of a schedule, as a program has measured them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// The operation.
    pub operation: String,
    /// The size of a block.
    pub block_bytes: u64,
    /// The library's name of its algorithm, or the schedule; `default` for the library's own choice.
    pub name: String,
    /// Whether the library performs it.
    pub is_library: bool,
    /// The environment variables that force it.
    pub force: String,
    /// The first quartile, the median and the third quartile.
    pub seconds: [f64; 3],
    /// The median of the library's own choice over this one's.
    pub gain: f64,
    /// Whether it is the fastest beyond noise.
    pub wins: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    run: Run,
    results: Vec<Measured>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compared: Vec<Compared>,
}

const VERSION: u32 = 1;

/// The most bytes of a file.
const MOST: u64 = 1 << 26;

/// All results that this process knows.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    results: BTreeMap<(String, u64), Measured>,
    /// The file to write.
    file: Option<(String, Run)>,
    /// Of the file.
    compared: Vec<Compared>,
    is_changed: bool,
}

impl Learned {
    /// With the results of a file, which need not exist yet. A file that does not fit is refused by
    /// a warning, and is not written.
    pub(crate) fn read(path: &str, run: Run) -> (Self, Option<String>) {
        let mut learned = Self::default();
        let results = match fs::exists(path) {
            Ok(false) => Ok(Default::default()),
            _ => files::text_of(Path::new(path), MOST, "results")
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|text| results(&text, &run)),
        };
        match results {
            Ok((results, compared)) => {
                let key = |result: &Measured| (result.shape.clone(), result.subject);
                learned.results =
                    results.into_iter().map(|result| (key(&result), result)).collect();
                learned.writes_to(path, run, compared);
                (learned, None)
            }
            Err(reason) => (learned, Some(reason)),
        }
    }

    /// Writes to a file, which has these times too.
    pub(crate) fn writes_to(&mut self, path: &str, run: Run, compared: Vec<Compared>) {
        (self.file, self.compared) = (Some((path.to_owned(), run)), compared);
    }

    pub(crate) fn of(&self, shape: &str, subject: u64) -> Option<&Measured> {
        self.results.get(&(shape.to_owned(), subject))
    }

    pub(crate) fn learn(
        &mut self,
        shape: &str,
        subject: u64,
        calls: &str,
        schedules: &[Ours],
        kept: Kept,
    ) {
        let result = Measured {
            shape: shape.to_owned(),
            subject,
            calls: calls.to_owned(),
            schedules: schedules.to_vec(),
            kept: kept.candidate,
            library_nanoseconds: kept.library,
            kept_nanoseconds: kept.own,
        };
        self.results.insert((shape.to_owned(), subject), result);
        self.is_changed = true;
    }

    /// Writes the file if there is one and results are new.
    ///
    /// # Errors
    /// The file, and why it cannot be written.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        let Some((path, run)) = &self.file else { return Ok(()) };
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        let results = self.results.values().cloned().collect();
        let (run, compared) = (run.clone(), self.compared.clone());
        let file = File { version: VERSION, run, results, compared };
        let text = serde_json::to_string_pretty(&file).expect("bug: a result that is not text");
        // A reader never sees half a file.
        let half = format!("{path}.{}", std::process::id());
        let written = fs::write(&half, text + "\n").and_then(|()| fs::rename(&half, path));
        written.map_err(|error| {
            // Perhaps it was not made.
            let _ = fs::remove_file(&half);
            format!("{path}: cannot be written: {error}")
        })
    }
}

/// The results of a file's text.
///
/// # Errors
/// Text that is not a file of this run, or not consistent.
pub(super) fn results(text: &str, run: &Run) -> Result<(Vec<Measured>, Vec<Compared>), String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.version != VERSION {
        return Err(format!("`version` is {}, and only {VERSION} is known", file.version));
    }
    run.fits(&file.run)?;
    for (i, result) in file.results.iter().enumerate() {
        let count = result.schedules.len();
        if result.kept > count {
            return Err(format!(
                "`results[{i}].kept` is {}, and there are {count} schedules",
                result.kept
            ));
        }
        if result.kept > 0 && result.kept_nanoseconds == 0 {
            return Err(format!("`results[{i}].kept_nanoseconds` is 0, and must be positive"));
        }
    }
    Ok((file.results, file.compared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::new("node042", "Open MPI v4.1.4", 16)
    }

    #[test]
    fn a_file_is_read_back_on_other_nodes_of_the_same_cluster() {
        let folder = std::env::temp_dir().join(format!("topocoll-learned-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tune.json").to_string_lossy().into_owned();
        let (mut learned, refused) = Learned::read(&path, run());
        assert_eq!(refused, None);
        let kept = Kept { candidate: 0, library: 1200, own: 1200 };
        learned.learn("full:16", 52, "alltoall of 64 to 127 B", &[], kept);
        learned.write().unwrap();
        let (again, refused) = Learned::read(&path, Run::new("node117", "Open MPI v4.1.4", 16));
        assert_eq!(refused, None);
        assert_eq!(again.of("full:16", 52).unwrap().kept(), kept);
        assert_eq!(again.of("full:16", 53), None);
        let (_, refused) = Learned::read(&path, Run::new("node117", "Open MPI v4.1.4", 17));
        assert!(refused.unwrap().starts_with("`ranks` is `16`, and this run has `17`"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_and_stays() {
        for path in ["/dev/full", "/dev/zero", "/tmp"] {
            let (mut learned, refused) = Learned::read(path, run());
            assert_eq!(refused.as_deref(), Some("cannot be read: not a regular file"), "{path}");
            learned.learn("full:16", 52, "", &[], Kept { candidate: 0, library: 9, own: 9 });
            learned.write().unwrap();
            assert!(!fs::metadata(path).unwrap().is_file());
        }
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_by_value_rule_and_place() {
        let own = r#"{"machine": "node***", "mpi": "Open MPI v4.1.4", "ranks": 16}"#;
        let file = |run: &str, results: &str| {
            format!(r#"{{"version": 1, "run": {run}, "results": [{results}]}}"#)
        };
        let result = |kept: &str| {
            let times = r#""library_nanoseconds": 9, "kept_nanoseconds": 9"#;
            let calls = r#""shape": "full:16", "subject": 52, "calls": "", "schedules": []"#;
            format!(r#"{{{calls}, "kept": {kept}, {times}}}"#)
        };
        assert!(results(&file(own, &result("0")), &run()).is_ok());
        for (text, expected) in [
            (file(own, &result("1")), "`results[0].kept` is 1, and there are 0 schedules"),
            (file(own, &result("-1")), "invalid value: integer `-1`"),
            (file(&own.replace("node", "login"), ""), "`machine` is `login***`, and this run has"),
            (file(&own.replace("4.1.4", "5.0.1"), ""), "`mpi` is `Open MPI v5.0.1`, and this run"),
            (
                file(own, "").replace("\"version\": 1", "\"version\": 2"),
                "`version` is 2, and only 1",
            ),
            (file(own, "").replace("results", "result"), "unknown field `result`"),
            ("fast".to_owned(), "expected"),
        ] {
            let refused = results(&text, &run()).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
