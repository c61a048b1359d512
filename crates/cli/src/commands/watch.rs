//! Long runs: a progress bar on a terminal, and an end on Ctrl-C with what there is.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use topocoll::contention::Control;

/// A bar appears on runs that last longer.
const PATIENCE: Duration = Duration::from_secs(1);

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
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style =
        ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} messages, {eta} left");
    bar.set_style(style.expect("bug: the template is one"));
    let begin = Instant::now();
    let out = run(Control {
        starting: &|messages| bar.set_length(messages),
        stop: &|| STOP.load(Ordering::Relaxed),
        delivered: &|messages| {
            if bar.is_hidden() && begin.elapsed() > PATIENCE {
                // Nothing is drawn where standard error is no terminal.
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.inc(messages);
        },
    });
    bar.finish_and_clear();
    out
}
