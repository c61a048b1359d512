//! Long runs: a progress bar on a terminal, and an end on Ctrl-C with what there is.

use topocoll::contention::Control;

use crate::render::Bar;
use crate::unfinished::heeding;

/// What a bar of messages says.
pub(super) const MESSAGES: &str = "{wide_bar} {human_pos} of {human_len} messages, {eta} left";

/// Runs something that can be watched and stopped.
pub(super) fn watched<T>(run: impl FnOnce(Control<'_>) -> T) -> T {
    heeding(|stop| Bar::new(MESSAGES).of(|&progress| run(Control { progress, stop })))
}
