//! Ranks that may run, those in the lowest steps first.

/// The step of a rank that is not queued.
const NOWHERE: usize = usize::MAX;

/// A queue of ranks by step, in which a rank stands once.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    by_step: Vec<Vec<u32>>,
    /// By rank, the lowest step in which it is queued: what stands of it in later steps is void.
    queued_in: Vec<usize>,
    /// No rank is queued below this step.
    lowest: usize,
}

impl Queue {
    /// Everybody is queued in step 0, rank 0 to go first.
    pub(crate) fn reset(&mut self, ranks: usize, steps: usize) {
        self.by_step.iter_mut().for_each(Vec::clear);
        self.by_step.resize_with(steps + 1, Vec::new);
        self.by_step[0].extend((0..ranks as u32).rev());
        self.queued_in.clear();
        self.queued_in.resize(ranks, 0);
        self.lowest = 0;
    }

    /// No rank is queued below this step.
    pub(crate) fn lowest(&self) -> usize {
        self.lowest
    }

    /// Queues a rank in a step, unless it is queued in that one or before.
    pub(crate) fn push(&mut self, step: usize, rank: usize) {
        if step < self.queued_in[rank] {
            self.queued_in[rank] = step;
            self.by_step[step].push(rank as u32);
            self.lowest = self.lowest.min(step);
        }
    }

    /// A rank of the lowest step, the one queued last.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        loop {
            let Some(rank) = self.by_step.get_mut(self.lowest)?.pop() else {
                self.lowest += 1;
                continue;
            };
            let queued_in = &mut self.queued_in[rank as usize];
            if *queued_in == self.lowest {
                *queued_in = NOWHERE;
                return Some(rank as usize);
            }
        }
    }
}
