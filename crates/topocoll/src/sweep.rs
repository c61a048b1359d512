//! Every algorithm over block sizes, with its best setting at each size.

use topocoll_analysis::BestBounds;
use topocoll_schedule::Parameters;

use crate::envelope::{Lowest, TimeLine, at, between, envelope, is_below};
use crate::exchange::refused;
use crate::pool::Pool;
use crate::price::{best_time, least};
use crate::{Choice, Error, Exchange, Fastest, PartlyPriced, Priced, Rejected, Unsearched};

/// An algorithm over block sizes, with its best setting at each.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The algorithm.
    pub algorithm: String,
    /// The requested parameters; the others are chosen by cost at each size.
    pub given: Parameters,
    /// The best setting at each block size.
    pub points: Vec<Choice>,
}

/// Predicted times over block sizes.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sweep {
    /// The block sizes, ascending, in bytes.
    pub block_sizes: Vec<u64>,
    /// The lower bound, by block size.
    pub bounds: Vec<BestBounds>,
    /// In the order of the catalogue or of the request.
    pub lines: Vec<Line>,
    /// Algorithms that do not apply, and the reasons.
    pub rejected: Vec<Rejected>,
    /// The fastest schedule from the first block size to the last; only exact prices. Sizes at which a
    /// floor is below are left out.
    pub crossovers: Vec<Fastest>,
    /// Algorithms of which only some settings were priced.
    pub partly_priced: Vec<PartlyPriced>,
    /// Searches that may find a faster schedule and exceed the budget.
    pub unsearched: Vec<Unsearched>,
    /// Algorithms with a setting priced by a floor that is below the best price of some size.
    pub undecided: Vec<String>,
    /// Algorithms that split blocks, so their counts do not grow in proportion to the size. They
    /// are priced at every size, and their crossovers are exact to the bytes of a part.
    pub split: Vec<String>,
    /// All settings with exact prices.
    exact: Vec<(TimeLine, String, Parameters)>,
}

impl Exchange<'_> {
    /// Prices over ascending `block_sizes`: every algorithm, or the `asked` ones by name, with
    /// their fixed parameters.
    ///
    /// The prices at a size are those of a [selection](Self::select) at that size. Those of groups are of the largest by
    /// itself, and those of a demand matrix of equal blocks.
    ///
    /// # Errors
    /// A requested algorithm does not exist or does not apply.
    ///
    /// # Panics
    /// No block sizes.
    pub fn sweep(
        &self,
        block_sizes: &[u64],
        asked: &[(String, Parameters)],
    ) -> Result<Sweep, Error> {
        let largest = *block_sizes.last().expect("a sweep without block sizes");
        let reference = self.at_reference();
        let mut pool = self.pool(&reference, asked, block_sizes)?;
        let bounds: Vec<_> = block_sizes.iter().map(|&bytes| self.sized(bytes).bounds()).collect();
        let mut points: Vec<Vec<Choice>> = vec![Vec::new(); pool.asked.len()];
        let (mut undecided, mut rejected) = (Vec::new(), std::mem::take(&mut pool.rejected));
        for (&bytes, bound) in block_sizes.iter().zip(&bounds) {
            let found = pool.at(bytes);
            let best = best_time(found.iter().map(|found| &found.price));
            let mut of_line: Vec<Vec<_>> = points.iter().map(|_| Vec::new()).collect();
            for found in found {
                let name = pool.name(found.asked);
                let is_open = found.price.priced == Priced::AtLeast
                    && is_below(found.price.time.total(), best);
                if is_open && !undecided.iter().any(|known| known == name) {
                    undecided.push(name.to_owned());
                }
                of_line[found.asked].push(pool.choice(found));
            }
            for (line, choices) in points.iter_mut().zip(of_line) {
                let best = least(choices, |choice| &choice.price);
                line.extend(best.map(|best| best.over(bound)));
            }
        }
        let mut lines = Vec::new();
        for (asked, points) in pool.asked.iter().zip(points) {
            let name = &*asked.algorithm.info().name;
            if points.len() == block_sizes.len() {
                let (algorithm, given) = (name.to_owned(), asked.given.clone());
                lines.push(Line { algorithm, given, points });
            } else {
                let reason = "no setting takes all of these block sizes";
                rejected.push(Rejected::new(name, &reason));
            }
        }
        let exact = pool.exact().map(|(line, asked, parameters)| {
            (line, pool.name(asked).to_owned(), parameters.clone())
        });
        let exact = exact.collect();
        let fastest = pool.fastest();
        let sizes: Vec<Lowest> = fastest.iter().map(|one| one.sizes).collect();
        let crossovers = between(&sizes, block_sizes[0], largest).into_iter();
        let crossovers = crossovers.map(|(place, sizes)| Fastest {
            block_bytes: sizes.from,
            to_bytes: sizes.to,
            algorithm: pool.name(fastest[place].asked).to_owned(),
            parameters: fastest[place].parameters.clone(),
            seconds: fastest[place].seconds,
            published: false,
            changes: Vec::new(),
        });
        Ok(Sweep {
            block_sizes: block_sizes.to_vec(),
            bounds,
            lines,
            rejected,
            crossovers: crossovers.collect(),
            partly_priced: pool.partly_priced(),
            unsearched: pool.unsearched().to_vec(),
            undecided,
            split: pool.split(),
            exact,
        })
    }

    /// A pool of every algorithm, or of the `asked` ones by name.
    pub(crate) fn pool<'x>(
        &self,
        reference: &'x Exchange<'x>,
        asked: &[(String, Parameters)],
        block_sizes: &[u64],
    ) -> Result<Pool<'x>, Error> {
        let find =
            |(name, given): &(String, Parameters)| Ok((reference.find(name)?, given.clone()));
        let asked = asked.iter().map(find).collect::<Result<Vec<_>, Error>>()?;
        Pool::new(reference, &asked, block_sizes).map_err(|(name, reason)| refused(&name, reason))
    }
}

impl Sweep {
    /// The fastest line from the first block size to the last, among the schedules and other lines
    /// whose counts grow with the size.
    #[must_use]
    pub fn crossovers_with(&self, lines: &[Line]) -> Vec<Fastest> {
        let largest = self.block_sizes[self.block_sizes.len() - 1];
        let others = lines.iter().filter_map(|line| {
            let choice = line.points.last()?;
            let line = TimeLine { seconds: choice.price.line(largest), least: 1 };
            Some((line, &choice.algorithm, &choice.parameters, true))
        });
        let exact =
            self.exact.iter().map(|(line, name, parameters)| (*line, name, parameters, false));
        let all: Vec<_> = exact.chain(others).collect();
        let seconds: Vec<_> = all.iter().map(|one| one.0).collect();
        let found = between(&envelope(&seconds), self.block_sizes[0], largest).into_iter();
        let found = found.map(|(_, sizes)| {
            let (line, algorithm, parameters, published) = all[sizes.line];
            Fastest {
                block_bytes: sizes.from,
                to_bytes: sizes.to,
                algorithm: algorithm.clone(),
                parameters: parameters.clone(),
                seconds: at(line.seconds, sizes.from),
                published,
                changes: Vec::new(),
            }
        });
        found.collect()
    }
}
