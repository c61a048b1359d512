use std::fmt;

/// Callbacks that report the progress of long work, which has one or more phases.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Called when a phase begins, with what is done in it, such as `counting steps`, and the amount of work in
    /// parts that take about equal time: 0 if that is unknown.
    pub starting: &'a (dyn Fn(&'static str, u64) + Sync),
    /// Called with the parts of the phase done since the last call.
    pub done: &'a (dyn Fn(u64) + Sync),
}

impl Progress<'_> {
    /// Ignores all reports.
    pub const UNHEARD: Self = Self { starting: &|_, _| (), done: &|_| () };
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}
