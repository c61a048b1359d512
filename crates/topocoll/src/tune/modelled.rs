//! Predicted times of a library's algorithms: the one that its rules choose, its fastest, and the best here.

use topocoll_schedule::{Collective, Problem};
use topocoll_topology::Machine;

use super::{Library, Own, PRICED, TuneError, Turn, price_of};
use crate::envelope::{TimeLine, at, envelope};
use crate::{Choice, Error, Priced, Selection};

/// The predicted times of a library's algorithms for an operation between all ranks of a machine.
#[derive(Clone, Debug)]
pub struct Modelled {
    library: &'static Library,
    operation: Collective,
    ranks: u32,
    /// Requests of a rank at a time in an algorithm that limits them: as many as a rank has ports.
    requests: u32,
    /// Each algorithm that applies; those that limit requests first.
    own: Vec<(&'static Own, TimeLine)>,
}

/// An algorithm of a library and its predicted time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timed {
    /// The algorithm.
    pub own: &'static Own,
    /// The most requests of a rank at a time, which a parameter of the library sets; 0 leaves it as it is.
    pub requests: u32,
    /// Seconds by the steps model.
    pub seconds: f64,
}

/// What a library would gain, at one block size. All times are of the steps model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gain {
    /// The block size, in bytes.
    pub block_bytes: u64,
    /// The algorithm that the library's rules choose.
    pub default: Timed,
    /// The fastest of its algorithms; the default unless another saves half a percent.
    pub best: Timed,
    /// The best choice here with an exact price, for this block size.
    pub ours: Option<Choice>,
}

impl Modelled {
    /// Prices every algorithm that applies. Algorithms that send the same messages are counted once.
    ///
    /// # Errors
    /// A machine of one rank, or too large for counting.
    pub fn new(
        library: &'static Library,
        machine: &Machine,
        operation: Collective,
    ) -> Result<Self, Error> {
        let problem = Problem::new(operation, machine.ranks(), machine.ports, PRICED)?;
        let ranks = problem.ranks;
        if ranks < 2 {
            return Err(TuneError::Alone.into());
        }
        let (mut own, mut counted) = (Vec::new(), Vec::<((&str, u32), TimeLine)>::new());
        for candidate in library.serving(operation, ranks) {
            let name = (candidate.schedule)(ranks).expect("bug: it applies");
            let alike = (name, candidate.under_way.min(machine.ports.rank).min(ranks - 1));
            let line = match counted.iter().find(|(of, _)| *of == alike) {
                Some((_, line)) => *line,
                None => {
                    let choice = price_of(machine, &problem, name, candidate.under_way)?;
                    let line = TimeLine { seconds: choice.price.line(PRICED), least: 1 };
                    counted.push((alike, line));
                    line
                }
            };
            own.push((candidate, line));
        }
        Ok(Self { library, operation, ranks, requests: machine.ports.rank, own })
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> Collective {
        self.operation
    }

    /// Whether an algorithm may be chosen: one that limits requests where a rank has several ports and fewer
    /// than messages. Elsewhere it does what others do.
    fn is_candidate(&self, own: &Own) -> bool {
        !own.limits() || (2..self.ranks - 1).contains(&self.requests)
    }

    fn timed(&self, (own, line): &(&'static Own, TimeLine), block_bytes: u64) -> Timed {
        let requests = if own.limits() { self.requests } else { 0 };
        Timed { own, requests, seconds: at(line.seconds, block_bytes) }
    }

    /// The fastest algorithms over block sizes.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        let own: Vec<_> = self.own.iter().filter(|(own, _)| self.is_candidate(own)).collect();
        let lines: Vec<_> = own.iter().map(|(_, line)| *line).collect();
        let turns = envelope(&lines).into_iter().map(|lowest| {
            let Timed { own, requests, seconds } = self.timed(own[lowest.line], lowest.from);
            Turn { block_bytes: lowest.from, own, requests, seconds }
        });
        turns.collect()
    }

    /// What the library would gain at a block size, and the best choice of a selection for blocks of
    /// `selected` bytes: at that size the first one, at others the fastest of them in step.
    #[must_use]
    pub fn gain(&self, block_bytes: u64, selection: &Selection, selected: u64) -> Gain {
        /// Another algorithm replaces the default if that takes this many times as long.
        const WORTH: f64 = 1.005;
        let chosen = self.library.default(self.operation, self.ranks, block_bytes);
        let find = self.own.iter().find(|(own, _)| own.key == chosen.key);
        let default = find.expect("bug: the rules choose an algorithm that does not apply");
        let default = Timed { requests: 0, ..self.timed(default, block_bytes) };
        let candidates = self.own.iter().filter(|(own, _)| self.is_candidate(own));
        let timed = candidates.map(|one| self.timed(one, block_bytes));
        let best = timed.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap_or(default);
        let best = if best.seconds * WORTH < default.seconds { best } else { default };
        let ours = match block_bytes == selected {
            true => selection.best().filter(|best| best.price.priced != Priced::AtLeast).cloned(),
            false => selection.fastest_at(selected, block_bytes),
        };
        Gain { block_bytes, default, best, ours }
    }
}
