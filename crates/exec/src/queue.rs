//! Ranks that may run, those in the lowest steps first.

/// A queue of ranks by step.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    by_step: Vec<Vec<u32>>,
    /// No rank is queued below this step.
    lowest: usize,
}

impl Queue {
    /// Queues all ranks in step 0, rank 0 first.
    pub(crate) fn reset(&mut self, ranks: usize, steps: usize) {
        self.by_step.iter_mut().for_each(Vec::clear);
        self.by_step.resize_with(steps + 1, Vec::new);
        self.by_step[0].extend((0..ranks as u32).rev());
        self.lowest = 0;
    }

    /// No rank is queued below this step.
    pub(crate) fn lowest(&self) -> usize {
        self.lowest
    }

    pub(crate) fn push(&mut self, step: usize, rank: usize) {
        self.by_step[step].push(rank as u32);
        self.lowest = self.lowest.min(step);
    }

    /// A rank of the lowest step, the one queued last.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        loop {
            if let Some(rank) = self.by_step.get_mut(self.lowest)?.pop() {
                return Some(rank as usize);
            }
            self.lowest += 1;
        }
    }
}
