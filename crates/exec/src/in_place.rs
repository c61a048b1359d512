//! Exchanges whose input lies in the output.

use topocoll_schedule::Collective;

use crate::plan::Plan;

impl Plan {
    /// The same plan for an exchange in place, like MPI's `MPI_IN_PLACE`: block i of the input is
    /// block i of the output before, and in an all-gather the rank's own block stands where it
    /// ends. Drivers are given no input.
    ///
    /// A block that is read after another has been received in its place is set aside first, in
    /// the workspace; one that is read in the same step stays, and the block for its place is
    /// received in the workspace. [`workspace_bytes`](Self::workspace_bytes) includes both:
    /// from the room of one block, where pairs of ranks exchange, to that of all.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        // By block, the time of its last read from the input.
        let mut last_read = vec![None; self.input_blocks() as usize];
        for moves in &self.moves {
            for &(from, _) in &moves.registers {
                self.note_read(from, 2 * moves.step, &mut last_read);
            }
        }
        let planned = self.problem.block_bytes;
        for step in 0..self.tags() {
            for send in self.sends(step) {
                self.pieces(send, step, planned, |register, _, _| {
                    self.note_read(register, 2 * step + 1, &mut last_read);
                });
            }
        }
        let overwritten = |block: &u32| {
            let written = self.first_write[self.place(*block) as usize];
            // A step's local copies do not wait for each other.
            let late = |read| read > written || read == written && written % 2 == 0;
            last_read[*block as usize].is_some_and(late)
        };
        let aside = (0..self.input_blocks()).filter(overwritten).collect();
        self.aside = Some(aside);
        self.kept.clear();
        for step in 0..self.tags() {
            self.stage_in_place(step);
        }
        self
    }

    /// Where a block of the input lies in the output.
    pub(crate) fn place(&self, block: u32) -> u32 {
        match self.problem.operation {
            Collective::AllToAll => block,
            Collective::AllGather => self.rank.0,
        }
    }

    fn note_read(&self, register: u32, time: u32, last_read: &mut [Option<u32>]) {
        if self.untouched(register, time) {
            let read = &mut last_read[self.origin[register as usize] as usize];
            *read = (*read).max(Some(time));
        }
    }

    /// Stages the sends that now lie in several places, and the receives into places that are sent.
    fn stage_in_place(&mut self, step: u32) {
        let planned = self.problem.block_bytes;
        let mut sent = Vec::new();
        for send in self.sends(step) {
            if self.messages[send as usize].slots.is_staged() {
                continue;
            }
            if !self.in_one_piece(send, step, 2 * step + 1) {
                self.stage(send);
                continue;
            }
            self.pieces(send, step, planned, |register, _, _| {
                if self.untouched(register, 2 * step + 1) {
                    sent.push(self.place(self.origin[register as usize]));
                }
            });
        }
        if sent.is_empty() {
            return;
        }
        sent.sort_unstable();
        for receive in self.receives(step) {
            let mut clear = true;
            self.pieces(receive, step, planned, |register, _, _| {
                clear &= sent.binary_search(&register).is_err();
            });
            if !clear {
                self.stage(receive);
            }
        }
    }
}
