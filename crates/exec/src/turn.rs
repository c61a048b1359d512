//! Whose turn it is: the one word that threads race for.

use super::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;

/// The state of one rank among threads: idle, queued for a thread, running, or running with news.
///
/// Two promises, whatever the interleaving: a rank runs in one thread at a time, and it runs
/// after the last news that it was given.
#[derive(Debug)]
pub(crate) struct Turn(AtomicU8);

impl Turn {
    /// Of a rank that is queued.
    pub(crate) fn queued() -> Self {
        Self(AtomicU8::new(QUEUED))
    }

    /// News, put down before, for the rank. Whether the caller is to queue it, if only to have it
    /// run earlier.
    pub(crate) fn notify(&self) -> bool {
        let next = |turn| match turn {
            IDLE => Some(QUEUED),
            RUNNING => Some(NOTIFIED),
            // Whoever runs it next reads the news.
            _ => None,
        };
        match self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) {
            Ok(before) => before == IDLE,
            Err(now) => now == QUEUED,
        }
    }

    /// Whether the caller, who took the rank from the queue, is to run it: a rank may stand there
    /// more than once.
    pub(crate) fn take(&self) -> bool {
        self.0.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The caller, who runs the rank, puts it back into the queue next.
    pub(crate) fn yielded(&self) {
        self.0.swap(QUEUED, Ordering::AcqRel);
    }

    /// The rank has nothing more to do. Whether it is idle; otherwise there is news, and the caller
    /// goes on running it.
    pub(crate) fn rest(&self) -> bool {
        let idle =
            self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !idle {
            self.0.swap(RUNNING, Ordering::AcqRel);
        }
        idle
    }
}
