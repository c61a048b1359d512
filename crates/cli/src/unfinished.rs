//! Signals that end the program, such as Ctrl-C: unfinished files are removed, and interruptible
//! work stops with a partial result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::host::has_room_for_threads;

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether interruptible work runs, and whether it must stop.
static HEEDED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

/// A file or folder that is removed if a signal ends the program before this value drops.
pub(crate) struct Unfinished<T> {
    pub(crate) made: T,
    _listed: Listed,
}

struct Listed(PathBuf);

impl<T: AsRef<Path>> Unfinished<T> {
    /// Makes the file and lists it for removal; no signal is handled in between.
    pub(crate) fn new(make: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<Self> {
        listen();
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

/// Runs interruptible work: the first Ctrl-C asks it to stop, the second ends the program.
pub(crate) fn heeding<T>(run: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T) -> T {
    listen();
    HEEDED.store(true, Ordering::Relaxed);
    let result = run(&|| STOP.load(Ordering::Relaxed));
    HEEDED.store(false, Ordering::Relaxed);
    result
}

fn listen() {
    static ONCE: Once = Once::new();
    // Without a handler or its thread a signal ends the program; the next run cleans up.
    ONCE.call_once(|| {
        let ignored = ignored();
        let heard = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        let heard = heard.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0);
        let (ready, started) = channel::<()>();
        let listener = move || {
            let signals = Signals::new(heard);
            drop(ready);
            if let Ok(mut signals) = signals {
                signals.forever().for_each(interrupted);
            }
        };
        if has_room_for_threads() && std::thread::Builder::new().spawn(listener).is_ok() {
            // Ends when the handlers are set.
            let _ = started.recv();
        }
        // A write past the file size limit fails and does not end the program.
        drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
    });
}

/// The signals that the parent set to be ignored, as `nohup` does; bit 0 is signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn interrupted(signal: i32) {
    if HEEDED.load(Ordering::Relaxed) && !STOP.swap(true, Ordering::Relaxed) {
        return;
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
    std::process::exit(128 + signal);
}
