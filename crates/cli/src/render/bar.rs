use std::io::Write;
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use topocoll::Progress;

/// A bar appears if the work lasts longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar on a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    begin: Instant,
    shown: Once,
}

impl Bar {
    pub(crate) fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(template).expect("bug: invalid template"));
        Self { bar, begin: Instant::now(), shown: Once::new() }
    }

    /// Sets the total.
    pub(crate) fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// Adds to the progress.
    pub(crate) fn inc(&self, more: u64) {
        if !self.shown.is_completed() && self.begin.elapsed() > PATIENCE {
            // The bar is hidden if standard error is not a terminal.
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
        self.bar.inc(more);
    }

    /// The bytes so far, for people.
    pub(crate) fn bytes(&self) -> HumanBytes {
        HumanBytes(self.bar.position())
    }

    /// Runs work that reports progress.
    pub(crate) fn of<T>(self, work: impl FnOnce(&Progress<'_>) -> T) -> T {
        work(&Progress {
            starting: &|length| self.set_length(length),
            done: &|more| self.inc(more),
        })
    }

    /// Counts the bytes that are written to `out`.
    pub(crate) fn watch<W: Write>(&self, out: W) -> Watched<'_, W> {
        Watched { bar: self, out }
    }
}

/// A writer whose bytes a bar counts.
pub(crate) struct Watched<'a, W> {
    bar: &'a Bar,
    out: W,
}

impl<W: Write> Write for Watched<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bar.inc(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
