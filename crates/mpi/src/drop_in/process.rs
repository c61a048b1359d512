//! This process: its settings, what it learned, and what it prints.

use std::ffi::OsString;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

use crate::symbols as mpi;

use super::learned::{Learned, Run};
use super::settings::{Settings, Tune};
use super::{library, report};
use crate::failed::locked;
use crate::words::rank_and_ranks;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Prints a line on this process's standard error, at once: other processes write there too. A closed one
/// is ignored.
pub(crate) fn say(text: &str) {
    let line = format!("topocoll: {}\n", topocoll::text::message(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The rank in `MPI_COMM_WORLD`, and the number of ranks there.
pub(crate) fn world() -> (u32, u32) {
    // SAFETY: MPI is initialized.
    let world = unsafe { rank_and_ranks(mpi::RSMPI_COMM_WORLD) };
    world.ok().flatten().unwrap_or_default()
}

/// The settings of the environment, read once by each process that decides.
pub(crate) fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let (rank, ranks) = world();
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let (settings, warnings) = Settings::read(variables, ranks);
        if rank == 0 {
            warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
        settings
    })
}

/// This run, for which results are.
pub(crate) fn run() -> Run {
    let given = settings().machine.as_ref().map(|machine| machine.name.clone());
    Run::new(&given.unwrap_or_else(library::processor), &library::version(), world().1)
}

/// Results of trials, on processes that decide.
pub(crate) fn learned() -> &'static Mutex<Learned> {
    static LEARNED: OnceLock<Mutex<Learned>> = OnceLock::new();
    LEARNED.get_or_init(|| {
        let Tune::File(path) = &settings().tune else { return Mutex::default() };
        let (learned, refused) = Learned::read(path, run());
        if let Some(reason) = refused
            && world().0 == 0
        {
            warn("TOPOCOLL_TUNE", &format!("={path}: {reason}"));
        }
        Mutex::new(learned)
    })
}

/// Before MPI ends: prints the table of calls, and writes what was learned.
pub(crate) fn finish() {
    let Some(settings) = SETTINGS.get() else { return };
    if settings.trace
        && let Some(table) = report::table()
    {
        table.lines().for_each(say);
    }
    if world().0 == 0
        && let Err(reason) = locked(learned()).write()
    {
        warn("TOPOCOLL_TUNE", &format!("={reason}"));
    }
}

/// Prints a warning of a variable's value.
pub(crate) fn warn(variable: &str, reason: &str) {
    say(&format!("warning: {}{reason}", settings().name(variable)));
}

/// Prints a warning of a forced algorithm unless it has been printed.
pub(crate) fn once(warning: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = locked(&SAID);
    if said.iter().all(|known| known != warning) {
        warn("TOPOCOLL_ALGORITHM", &format!(": {warning}"));
        said.push(warning.to_owned());
    }
}

/// Whether the first rank counts all calls.
pub(crate) fn is_traced(rank: u32) -> bool {
    rank == 0 && settings().trace
}
