use std::fmt;

/// Callbacks that report the progress of long work.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Called once with the amount of work, in parts that take about equal time.
    pub starting: &'a (dyn Fn(u64) + Sync),
    /// Called with the parts done since the last call.
    pub done: &'a (dyn Fn(u64) + Sync),
}

impl Progress<'_> {
    /// Ignores all reports.
    pub const UNHEARD: Self = Self { starting: &|_| (), done: &|_| () };
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}
