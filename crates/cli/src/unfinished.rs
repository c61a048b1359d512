//! What is there when Ctrl-C, or another that ends the program, comes: files half written, which are
//! taken away, and work that ends with what it has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::host::has_room_for_threads;

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether there is work that ends early if it is told to, and whether it is told to.
static HEEDED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

/// A file or folder that is taken away if the program is ended while this lives.
pub(crate) struct Unfinished<T> {
    pub(crate) made: T,
    _listed: Listed,
}

struct Listed(PathBuf);

impl<T: AsRef<Path>> Unfinished<T> {
    /// Makes it, and no signal comes between that and the list of what is to be taken away.
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

/// Runs something that asks whether to stop: the first Ctrl-C says so, the second ends the program.
pub(crate) fn heeding<T>(run: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T) -> T {
    listen();
    HEEDED.store(true, Ordering::Relaxed);
    let result = run(&|| STOP.load(Ordering::Relaxed));
    HEEDED.store(false, Ordering::Relaxed);
    result
}

fn listen() {
    static ONCE: Once = Once::new();
    // Without a handler or its thread a signal ends the program, and the next run clears up.
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
        // A file that grows past what is allowed does not end the program: the write fails.
        drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
    });
}

/// The signals that whoever started us set not to be heard, as `nohup` does, a bit each from 1 on.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn interrupted(signal: i32) {
    if HEEDED.load(Ordering::Relaxed) && !STOP.swap(true, Ordering::Relaxed) {
        return;
    }
    // Nobody goes on writing elsewhere: the lock is kept to the end.
    let paths = PATHS.lock().expect("bug: nobody panics");
    for path in &*paths {
        // A folder may be given a file meanwhile.
        for _ in 0..100 {
            if std::fs::remove_file(path).is_ok() || std::fs::remove_dir_all(path).is_ok() {
                break;
            }
        }
    }
    std::process::exit(128 + signal);
}
