//! Long runs: a progress bar on a terminal, and an end on Ctrl-C with what there is.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use topocoll::contention::Control;

use crate::render::Bar;

/// What a bar of messages says.
pub(super) const MESSAGES: &str = "{wide_bar} {human_pos} of {human_len} messages, {eta} left";

static STOP: AtomicBool = AtomicBool::new(false);
static HANDLER: Once = Once::new();

/// Runs something that can be watched and stopped.
pub(super) fn watched<T>(run: impl FnOnce(Control<'_>) -> T) -> T {
    HANDLER.call_once(|| {
        // Where no handler can be set, Ctrl-C ends the program as ever.
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
    });
    Bar::new(MESSAGES)
        .of(|&progress| run(Control { progress, stop: &|| STOP.load(Ordering::Relaxed) }))
}
