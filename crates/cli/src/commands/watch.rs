//! Long runs: a progress bar on a terminal, and a partial result on Ctrl-C.

use topocoll::contention::Control;

use crate::render::Bar;
use crate::unfinished::heeding;

/// Template of a progress bar of messages.
const MESSAGES: &str = "{wide_bar} {human_pos} of {human_len} messages, {eta} left";

/// Runs work with a progress bar that Ctrl-C can stop.
pub(super) fn watched<T>(run: impl FnOnce(Control<'_>) -> T) -> T {
    heeding(|stop| Bar::new(MESSAGES).of(|&progress| run(Control { progress, stop })))
}
