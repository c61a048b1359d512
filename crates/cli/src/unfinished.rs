//! Signals that end the program, such as Ctrl-C.
//!
//! The program ends with status 128 + signal at once, unless interruptible work runs. That has [`GRACE`] to return
//! a partial result and to begin to print it. What is being printed then is printed to its end, if it is read
//! within [`READ`], and nothing is printed after. Unfinished files are removed. A second signal ends the program
//! at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::bar::clear_bar;
use crate::host::has_room_for_threads;

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether interruptible work runs, or what it returned is not printed yet.
static HEEDED: AtomicBool = AtomicBool::new(false);
/// The signal that ends the program, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Locked while a result is printed, and at the end.
static OUTPUT: Mutex<()> = Mutex::new(());

/// The time for a partial result, and for what is being printed then.
const GRACE: Duration = Duration::from_millis(600);
const READ: Duration = Duration::from_millis(200);
/// Signals within this time are one: `timeout` sends two.
const TOGETHER: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(5);

/// A file or folder that is removed if a signal ends the program before this value drops.
pub(crate) struct Unfinished<T> {
    pub(crate) made: T,
    _listed: Listed,
}

struct Listed(PathBuf);

impl<T: AsRef<Path>> Unfinished<T> {
    /// Makes the file and lists it for removal; no signal is handled in between.
    pub(crate) fn new(make: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<Self> {
        let mut paths = PATHS.lock().expect("bug: nobody panics");
        let made = make()?;
        let path = made.as_ref().to_owned();
        paths.insert(path.clone());
        Ok(Self { made, _listed: Listed(path) })
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        PATHS.lock().expect("bug: nobody panics").remove(&self.0);
    }
}

/// Runs interruptible work: the first signal asks it to stop, and then its result is printed at once.
pub(crate) fn heeding<T>(run: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T) -> T {
    HEEDED.store(true, Ordering::Relaxed);
    let result = run(&|| ended_by().is_some());
    HEEDED.store(ended_by().is_some(), Ordering::Relaxed);
    result
}

/// The signal that ends the program.
pub(crate) fn ended_by() -> Option<i32> {
    Some(SIGNAL.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Lets a result be printed to its end.
pub(crate) fn printing() -> MutexGuard<'static, ()> {
    OUTPUT.lock().expect("bug: nobody panics")
}

/// Begins to listen for signals.
pub(crate) fn listen() {
    // Without a handler or its thread a signal ends the program; the next run cleans up.
    let ignored = ignored();
    let heard = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    let heard = heard.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0);
    let (ready, started) = channel::<()>();
    let listener = move || {
        let signals = Signals::new(heard);
        drop(ready);
        if let Ok(mut signals) = signals
            && let Some(signal) = signals.forever().next()
        {
            interrupted(signal, &mut signals);
        }
    };
    if has_room_for_threads() && Builder::new().spawn(listener).is_ok() {
        // Ends when the handlers are set.
        let _ = started.recv();
    }
    // A write past the file size limit fails and does not end the program.
    drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
}

/// The signals that the parent set to be ignored, as `nohup` does; bit 0 is signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn interrupted(signal: i32, signals: &mut Signals) {
    SIGNAL.store(signal, Ordering::Relaxed);
    let begin = Instant::now();
    // Kept to the end, so nothing is printed.
    let (mut output, mut again) = (None, false);
    while output.is_none() && !again && begin.elapsed() < GRACE + READ {
        if !HEEDED.load(Ordering::Relaxed) || begin.elapsed() > GRACE {
            output = OUTPUT.try_lock().ok();
        }
        if output.is_none() {
            sleep(LOOK);
        }
        again = signals.pending().next().is_some() && begin.elapsed() > TOGETHER;
    }
    // The lock is kept to the end, so no thread makes another file.
    let paths = PATHS.lock().expect("bug: nobody panics");
    for path in &*paths {
        // Another thread may add a file to a folder meanwhile.
        for _ in 0..100 {
            if std::fs::remove_file(path).is_ok() || std::fs::remove_dir_all(path).is_ok() {
                break;
            }
        }
    }
    // Not longer, as a terminal may take no text.
    let (done, cleared) = channel::<()>();
    drop(Builder::new().spawn(move || {
        clear_bar();
        drop(done);
    }));
    let _ = cleared.recv_timeout(10 * LOOK);
    std::process::exit(128 + signal);
}
