use topocoll_analysis::Progress;
use topocoll_analysis::contention::{ContentionModel, Request, Scheduled, in_seconds, simulate};

use crate::{Error, Exchange, Selection};

/// The most ranks of a machine whose choices are simulated: some seconds.
pub const SIMULATE_UP_TO: u32 = 256;

impl Exchange<'_> {
    /// Checks the limit of [`simulate_choices`](Self::simulate_choices) before there are choices.
    ///
    /// # Errors
    /// More ranks than [`SIMULATE_UP_TO`].
    pub fn check_simulation(&self) -> Result<(), Error> {
        let ranks = self.problem().ranks;
        if ranks > SIMULATE_UP_TO {
            return Err(Error::TooLargeToSimulate { ranks, most: SIMULATE_UP_TO });
        }
        Ok(())
    }

    /// Seconds of every choice of a selection, simulated with link contention and without barriers,
    /// in the order of [`Selection::choices`]. Progress counts the messages of all choices.
    ///
    /// # Errors
    /// The machine has more than [`SIMULATE_UP_TO`] ranks, or [`simulate`] refuses a choice.
    pub fn simulate_choices(
        &self,
        selection: &Selection,
        model: &'static ContentionModel,
    ) -> Result<Vec<f64>, Error> {
        self.check_simulation()?;
        let (memory, progress) = (self.limits().memory, &self.limits().progress);
        let schedules = (selection.choices.iter())
            .map(|choice| self.schedule(&choice.algorithm, &choice.parameters))
            .collect::<Result<Vec<_>, _>>()?;
        let mut messages = 0;
        for schedule in &schedules {
            messages += self.count(schedule)?.messages;
        }
        (progress.starting)(u64::try_from(messages).unwrap_or(u64::MAX));
        let seconds = schedules.iter().map(|schedule| {
            let traffic = Scheduled::new(schedule, self.machine());
            let mut request = Request::new(&traffic, self.machine(), model, memory);
            request.control.progress = Progress { starting: &|_| (), ..*progress };
            Ok(in_seconds(simulate(&request)?.time))
        });
        seconds.collect()
    }
}
