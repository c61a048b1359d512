//! The state of one rank among threads: the one word that threads race for.

use super::atomic::{AtomicU64, Ordering};

const QUEUED: u64 = 0;
const RUNNING: u64 = 1;
const NOTIFIED: u64 = 2;
/// Added to the step that an idle rank waits in.
const IDLE: u64 = 3;

/// The state of one rank among threads: queued for a thread, running, running with news, or idle in
/// a step.
///
/// Three promises in every interleaving: a rank is queued once, it runs in one thread at a
/// time, and it runs after the last news of its step that it was given.
#[derive(Debug)]
pub(crate) struct Turn(AtomicU64);

impl Turn {
    /// Of a rank that is queued.
    pub(crate) fn queued() -> Self {
        Self(AtomicU64::new(QUEUED))
    }

    /// News of a step, put down before, for the rank. Whether the caller is to queue it.
    pub(crate) fn notify(&self, step: u32) -> bool {
        let next = |turn| match turn {
            // The thread that runs it next reads the news.
            QUEUED | NOTIFIED => None,
            RUNNING => Some(NOTIFIED),
            // In an earlier step it waits for other messages, and reads the news after that step.
            idle => (u64::from(step) <= idle - IDLE).then_some(QUEUED),
        };
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        before.is_ok_and(|before| before >= IDLE)
    }

    /// The caller, who took the rank from the queue, runs it.
    pub(crate) fn take(&self) {
        self.0.store(RUNNING, Ordering::Release);
    }

    /// The caller, who runs the rank, puts it back into the queue next.
    pub(crate) fn yielded(&self) {
        self.0.store(QUEUED, Ordering::Release);
    }

    /// The rank has nothing more to do in its step. Whether it is idle; otherwise there is news,
    /// and the caller goes on running it.
    pub(crate) fn rest(&self, step: u32) -> bool {
        let idle = IDLE + u64::from(step);
        let rests =
            self.0.compare_exchange(RUNNING, idle, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !rests {
            self.0.store(RUNNING, Ordering::Release);
        }
        rests
    }
}
