//! The bar on standard error, if that is a terminal: what is being done, and how much of it.
//!
//! There is one for the program. Each phase of the work names itself here; the bar appears if the command takes
//! longer than [`PATIENCE`].

use std::io::Write;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use indicatif::{
    HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use topocoll::Progress;

use crate::host::has_room_for_threads;

/// The time after which it appears, and the time between two drawings.
const PATIENCE: Duration = Duration::from_millis(700);
const REDRAWN: Duration = Duration::from_millis(100);

/// A phase of a known amount, and one of an unknown amount.
const KNOWN: &str = "{msg} {wide_bar} {human_pos} of {human_len}, {eta} left";
const UNKNOWN: &str = "{spinner} {msg}{so_far}, {elapsed}";

static BAR: LazyLock<ProgressBar> =
    LazyLock::new(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));

/// The progress of the program's work.
pub(crate) const PROGRESS: Progress<'static> =
    Progress { starting: &starting, done: &|parts| BAR.inc(parts) };

/// Begins a phase of a number of parts; 0 if it is unknown.
pub(crate) fn starting(what: &'static str, parts: u64) {
    let set_style = |template| {
        let style = ProgressStyle::with_template(template).expect("bug: invalid template");
        BAR.set_style(style.with_key("so_far", so_far));
    };
    // The bar may be drawn after each call, and this style shows no amount.
    set_style(UNKNOWN);
    BAR.update(|state| {
        state.set_pos(0);
        state.set_len(parts);
    });
    BAR.set_message(what);
    BAR.reset_eta();
    if parts > 0 {
        set_style(KNOWN);
    }
}

/// The parts done of an unknown amount, if they are counted.
fn so_far(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.pos() > 0 {
        // The text is in memory.
        let _ = write!(out, " {}", HumanCount(state.pos()));
    }
}

/// Lets the bar appear.
pub(crate) fn show() {
    if !ProgressDrawTarget::stderr().is_hidden() && has_room_for_threads() {
        let draw = || {
            thread::sleep(PATIENCE);
            BAR.set_draw_target(ProgressDrawTarget::stderr());
            loop {
                BAR.tick();
                thread::sleep(REDRAWN);
            }
        };
        // Without the thread there is no bar.
        drop(thread::Builder::new().spawn(draw));
    }
}

/// Removes the bar for good.
pub(crate) fn clear_bar() {
    BAR.finish_and_clear();
}

/// Writes to standard error beside the bar.
pub(crate) fn beside_bar<T>(write: impl FnOnce() -> T) -> T {
    BAR.suspend(write)
}

/// The bytes done in this phase, for people.
pub(crate) fn bytes_done() -> HumanBytes {
    HumanBytes(BAR.position())
}

/// A writer whose bytes are parts of the phase.
pub(crate) struct Watched<W>(pub(crate) W);

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.0.write(bytes)?;
        BAR.inc(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
