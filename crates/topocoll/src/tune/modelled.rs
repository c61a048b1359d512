//! Predicted times of a library's algorithms: the one that its rules choose, its fastest, and the best here.

use serde::Serialize;
use topocoll_schedule::{Collective, Parameters, Problem};
use topocoll_topology::Machine;

use super::{Library, Own, PRICED, Release, TuneError, Turn, price_of};
use crate::envelope::{TimeLine, at, envelope};
use crate::{Error, Exchange, Selection};

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

/// What a library would gain, at one block size. All times are of the steps model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Gain {
    /// The block size, in bytes.
    pub block_bytes: u64,
    /// The algorithm that the library's rules choose.
    pub algorithm: &'static str,
    /// Its seconds.
    pub time_seconds: f64,
    /// The fastest of the library's algorithms; the default unless another saves half a percent.
    pub best_algorithm: &'static str,
    /// Its seconds.
    pub best_seconds: f64,
    /// The options that force it; empty for the default.
    pub force: String,
    /// The best choice here with an exact price.
    pub schedule: Option<Best>,
}

/// A choice and its time.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Best {
    /// The algorithm.
    pub algorithm: String,
    /// The setting.
    pub parameters: Parameters,
    /// Seconds.
    pub time_seconds: f64,
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
        let exchange = Exchange::new(machine, &problem)?;
        let (mut own, mut counted) = (Vec::new(), Vec::<((&str, u32), TimeLine)>::new());
        for candidate in library.serving(operation, ranks) {
            let name = (candidate.schedule)(ranks).expect("bug: it applies");
            let key = (name, candidate.under_way.min(machine.ports.rank).min(ranks - 1));
            let line = match counted.iter().find(|(of, _)| *of == key) {
                Some((_, line)) => *line,
                None => {
                    let choice = price_of(&exchange, name, candidate.under_way)?;
                    let line = TimeLine { seconds: choice.price.line(PRICED), least: 1 };
                    counted.push((key, line));
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

    fn turn(&self, (own, line): &(&'static Own, TimeLine), block_bytes: u64) -> Turn {
        let requests = if own.limits() { self.requests } else { 0 };
        Turn { block_bytes, own, requests, seconds: at(line.seconds, block_bytes) }
    }

    /// The fastest algorithms over block sizes.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        let own: Vec<_> = self.own.iter().filter(|(own, _)| self.is_candidate(own)).collect();
        let lines: Vec<_> = own.iter().map(|(_, line)| *line).collect();
        let turns = envelope(&lines).into_iter();
        turns.map(|lowest| self.turn(own[lowest.line], lowest.from)).collect()
    }

    /// What a release would gain at a block size, and the fastest choice in step of a selection for blocks of
    /// `selected` bytes.
    #[must_use]
    pub fn gain(
        &self,
        release: &Release,
        block_bytes: u64,
        (selection, selected): (&Selection, u64),
    ) -> Gain {
        /// Another algorithm replaces the default if that takes this many times as long.
        const WORTH: f64 = 1.005;
        let chosen = self.library.default(self.operation, self.ranks, block_bytes);
        let find = self.own.iter().find(|(own, _)| own.key == chosen.key);
        let default = find.expect("bug: the rules choose an algorithm that does not apply");
        let default = self.turn(default, block_bytes);
        let candidates = self.own.iter().filter(|(own, _)| self.is_candidate(own));
        let fastest = candidates
            .map(|own| self.turn(own, block_bytes))
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .filter(|fastest| fastest.seconds * WORTH < default.seconds);
        let best = fastest.unwrap_or(default);
        let ours = selection.fastest_at(selected, block_bytes);
        Gain {
            block_bytes,
            algorithm: default.own.name,
            time_seconds: default.seconds,
            best_algorithm: best.own.name,
            best_seconds: best.seconds,
            force: fastest.map_or(String::new(), |best| self.library.forcing(release, &best)),
            schedule: ours.map(|choice| Best {
                time_seconds: choice.price.time.total(),
                algorithm: choice.algorithm,
                parameters: choice.parameters,
            }),
        }
    }
}
