//! Long work: without the GIL, on a thread of its own, with progress and Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use topocoll::Progress;

use crate::refused;

/// The time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);

/// Stack of the thread: as much as a main thread has.
const STACK: usize = 8 << 20;

/// The progress of work, and whether it must stop.
#[derive(Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    total: AtomicU64,
    done: AtomicU64,
}

/// The payload with which stopped work unwinds.
struct Stopped;

impl Watch {
    /// Whether the work must stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Unwinds if the work must stop.
    pub(crate) fn check(&self) {
        if self.stopped() {
            // Without a message: this is no panic.
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Begins a phase of a number of parts.
    pub(crate) fn start(&self, parts: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(parts, Ordering::Relaxed);
    }

    /// Adds finished parts, and unwinds if the work must stop.
    pub(crate) fn add(&self, parts: u64) {
        self.done.fetch_add(parts, Ordering::Relaxed);
        self.check();
    }

    /// Calls `work` with callbacks that report here.
    pub(crate) fn progress<T>(&self, work: impl FnOnce(Progress<'_>) -> T) -> T {
        work(Progress { starting: &|_, parts| self.start(parts), done: &|parts| self.add(parts) })
    }
}

/// Does `work` on another thread, without the GIL. Now and then calls `tick` with the parts done and
/// their number, 0 if it is unknown. After Ctrl-C, or if `tick` raises, the exception is raised at once, and the
/// work stops at its next report.
pub(crate) fn watched<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
    py: Python<'_>,
    tick: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (sender, mut receiver) = channel();
    let own = Arc::clone(&watch);
    let thread = std::thread::Builder::new().name("topocoll".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let found = catch_unwind(AssertUnwindSafe(|| work(&own)));
        // No caller waits for stopped work.
        let _ = sender.send(found);
    })?;
    loop {
        let (back, found) = py.detach(move || {
            let found = receiver.recv_timeout(LOOK);
            (receiver, found)
        });
        receiver = back;
        match found {
            Ok(Ok(found)) => return found.map_err(refused),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Disconnected) => panic!("bug: work ends without a result"),
            Err(RecvTimeoutError::Timeout) => {
                let told = py.check_signals().and_then(|()| match tick {
                    Some(tick) => {
                        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
                        tick.call1((load(&watch.done), load(&watch.total))).map(drop)
                    }
                    None => Ok(()),
                });
                if let Err(raised) = told {
                    watch.stop.store(true, Ordering::Relaxed);
                    return Err(raised);
                }
            }
        }
    }
}
