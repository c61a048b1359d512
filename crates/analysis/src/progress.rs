use std::fmt;

/// Hears how far long work is.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Hears once how much there is, in parts that take about as long.
    pub starting: &'a (dyn Fn(u64) + Sync),
    /// Hears how much more is done.
    pub done: &'a (dyn Fn(u64) + Sync),
}

impl Progress<'_> {
    /// Nobody listens.
    pub const UNHEARD: Self = Self { starting: &|_| (), done: &|_| () };
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}
