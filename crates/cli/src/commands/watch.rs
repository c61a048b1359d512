//! Long runs: a progress bar on a terminal, and an end on Ctrl-C with what there is.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use topocoll::contention::Control;

use crate::render::Bar;

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
    let bar = Bar::new("{wide_bar} {human_pos} of {human_len} messages, {eta} left");
    run(Control {
        starting: &|messages| bar.set_length(messages),
        stop: &|| STOP.load(Ordering::Relaxed),
        delivered: &|messages| bar.inc(messages),
    })
}

/// Runs something of so many parts, which tells of each as it begins; a bar says what is left.
pub(super) fn in_parts<T>(parts: u64, run: impl FnOnce(&dyn Fn(&'static str)) -> T) -> T {
    let bar = ProgressBar::with_draw_target(Some(parts), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len}: {msg}, {eta} left");
    bar.set_style(style.expect("bug: the template is one"));
    let begin = Instant::now();
    let begun = std::cell::Cell::new(false);
    let out = run(&|what| {
        bar.set_message(what);
        if bar.is_hidden() && begin.elapsed() > PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.inc(u64::from(begun.replace(true)));
    });
    bar.finish_and_clear();
    out
}
