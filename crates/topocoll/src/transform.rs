//! The exchanges of a three-dimensional Fourier transform on process grids.

use std::collections::HashMap;
use std::ops::Range;

use topocoll_analysis::BestBounds;
use topocoll_analysis::contention::Sync;
use topocoll_topology::{Groups, Machine};

use crate::{Budget, Choice, Error, Exchange, Priced};

/// A Fourier transform of a grid of N1 x N2 x N3 points, distributed over P1 x P2 ranks.
///
/// Rank (i, j) of the process grid begins with lines along the third side (*pencils*): part i of P1 of the first
/// side, part j of P2 of the second. It transforms them, and the P2 ranks of each row exchange: the second side
/// becomes whole, the third divided among P2. Then the P1 ranks of each column exchange: the first side becomes
/// whole, the second divided among P1. Data stay so, *transposed*. Where P1 or P2 is 1, ranks hold *slabs* and one
/// exchange is enough. *Bricks* are divided along all sides: k ranks first exchange their bricks for pencils, and
/// in the end pencils for bricks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transform {
    sides: [u64; 3],
    point_bytes: u64,
}

/// The ranks of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Among {
    /// Those of a row of the process grid.
    Rows,
    /// Those of a column.
    Columns,
    /// Those that exchange bricks for pencils, before the transform.
    BricksBefore,
    /// The same after it, pencils for bricks.
    BricksAfter,
}

/// A process grid and an order of the ranks, and the exchanges of a transform on it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Distribution {
    /// P1 and P2.
    pub pencils: [u32; 2],
    /// Whether the ranks of each row have consecutive numbers; if not, those of each column have.
    pub rows_are_consecutive: bool,
    /// Consecutive ranks that exchange bricks for pencils; 1 if data begin and end in pencils or slabs.
    pub bricks: u32,
    /// In order; none of a single rank.
    pub exchanges: Vec<Transposition>,
}

/// An exchange of all rows, of all columns, or of bricks at the same time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transposition {
    /// The ranks of a group.
    pub among: Among,
    /// The name of the [`Groups`].
    pub groups: String,
    /// Ranks of a group.
    pub ranks: u32,
    /// Bytes of the largest block, also of those that ranks have for themselves.
    pub block_bytes: u64,
    /// The fastest schedule by the steps model.
    pub choice: Choice,
    /// The lower bounds of all schedules.
    pub bound: BestBounds,
}

impl Transposition {
    /// Whether its choice is [priced exactly](Priced::Exactly); otherwise counting exceeds the budget.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.choice.price.priced == Priced::Exactly
    }

    /// Seconds of the choice, or the lower bound of all schedules if it is not priced exactly.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        if self.is_exact() { self.choice.price.time.total() } else { self.bound.seconds }
    }
}

impl Distribution {
    /// The processes along the sides at the beginning: P1 and P2, or three of bricks.
    #[must_use]
    pub fn process_grid(&self) -> Vec<u32> {
        let ([p1, p2], k) = (self.pencils, self.bricks);
        match (k, self.rows_are_consecutive) {
            (1, _) => vec![p1, p2],
            (_, true) => vec![p1, p2 / k, k],
            (_, false) => vec![p1 / k, p2, k],
        }
    }

    /// Whether all exchanges are [priced exactly](Transposition::is_exact).
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exchanges.iter().all(Transposition::is_exact)
    }

    /// Seconds of all exchanges; at least, if one is not priced exactly.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.exchanges.iter().map(Transposition::seconds).sum()
    }

    /// The sum of the lower bounds of their times.
    #[must_use]
    pub fn bound_seconds(&self) -> f64 {
        self.exchanges.iter().map(|one| one.bound.seconds).sum()
    }
}

impl Transform {
    /// A transform of points of some bytes.
    ///
    /// # Errors
    /// A side or a point of size 0, or 2^64 bytes or more.
    pub fn new(sides: [u64; 3], point_bytes: u64) -> Result<Self, Error> {
        let [n1, n2, n3] = sides;
        let all = sides.iter().try_fold(point_bytes, |bytes, &side| bytes.checked_mul(side));
        match all {
            Some(0) => {
                Err(refused(format!("{n1}x{n2}x{n3} points of {point_bytes} bytes are no data")))
            }
            Some(_) => Ok(Self { sides, point_bytes }),
            None => Err(refused(format!(
                "{n1}x{n2}x{n3} points of {point_bytes} bytes are more than {} bytes",
                u64::MAX
            ))),
        }
    }

    /// The part of a side that the process `which` of `parts` has, as FFTW divides it: parts have ceil(side / parts)
    /// points each; the last ones may have fewer, or none.
    #[must_use]
    pub fn part(side: u64, parts: u32, which: u32) -> Range<u64> {
        let length = side.div_ceil(parts.max(1).into());
        let at = |which: u64| which.saturating_mul(length).min(side);
        at(which.into())..at(u64::from(which) + 1)
    }

    /// Bytes that position `from` of a row or column has for position `to`. `group` is the number of the row or
    /// column. Blocks of bricks are equal to the largest, of positions 0 in group 0, where parts are equal.
    #[must_use]
    pub fn block_bytes(
        &self,
        on: &Distribution,
        among: Among,
        group: u32,
        [from, to]: [u32; 2],
    ) -> u64 {
        let ([p1, p2], k) = (on.pencils, on.bricks);
        let parts = match among {
            Among::Rows => [(p1, group), (p2, from), (p2, to)],
            Among::Columns => [(p1, from), (p1, to), (p2, group)],
            Among::BricksBefore => [(p1, 0), (p2, 0), (k, 0)],
            Among::BricksAfter => [(k, 0), (p1, 0), (p2, 0)],
        };
        let points = self.sides.iter().zip(parts).map(|(&side, (parts, which))| {
            let Range { start, end } = Self::part(side, parts, which);
            end - start
        });
        points.product::<u64>() * self.point_bytes
    }

    /// The process grids on which every rank can have points, without exchanges.
    fn distributions(&self, ranks: u32) -> Vec<Distribution> {
        let [n1, n2, n3] = self.sides;
        let mut found = Vec::new();
        let divisors = |of: u32| (1..=of).rev().filter(move |one| of % one == 0);
        let grids = divisors(ranks).map(|p1| [p1, ranks / p1]);
        for pencils in
            grids.filter(|[p1, p2]| u64::from(*p1) <= n1.min(n2) && u64::from(*p2) <= n2.min(n3))
        {
            let orders: &[bool] = if pencils.contains(&1) { &[true] } else { &[true, false] };
            for &rows_are_consecutive in orders {
                let near = pencils[usize::from(rows_are_consecutive)];
                let is_shared = |&k: &u32| k == 1 || orders.len() > 1 && k < near;
                let fits = |&k: &u32| u64::from(k) <= n1.min(n3);
                found.extend(divisors(near).filter(is_shared).filter(fits).map(|bricks| {
                    Distribution { pencils, rows_are_consecutive, bricks, exchanges: Vec::new() }
                }));
            }
        }
        found
    }

    /// All process grids and orders of a machine's ranks, by the time of their exchanges, each exchange by its
    /// fastest schedule; those that are not priced exactly last. Blocks are as large as the largest one. The
    /// budget is one of each exchange.
    ///
    /// # Errors
    /// A machine of one rank, more ranks than the sides can be divided among, or blocks of more than
    /// [`MAX_BLOCK_BYTES`](topocoll_schedule::MAX_BLOCK_BYTES).
    pub fn rank(&self, machine: &Machine, budget: Budget<'_>) -> Result<Vec<Distribution>, Error> {
        let (ranks, [n1, n2, n3]) = (machine.ranks(), self.sides);
        if ranks == 1 {
            return Err(refused("one rank exchanges nothing".to_owned()));
        }
        let mut found = self.distributions(ranks);
        if found.is_empty() {
            return Err(refused(format!(
                "{ranks} ranks form no process grid P1 x P2 for {n1}x{n2}x{n3} points: P1 is at most {}, P2 at most {}",
                n1.min(n2),
                n2.min(n3)
            )));
        }
        let exchange = Exchange::all_to_all(machine)?.budget(budget).sync(Sync::Barrier);
        let mut priced = HashMap::new();
        for on in &mut found {
            for (among, ranks_of, is_near) in on.groups() {
                let block_bytes = self.block_bytes(on, among, 0, [0, 0]);
                let groups = match is_near {
                    true => format!("consecutive:{ranks_of}"),
                    false => format!("stride:{}", ranks / ranks_of),
                };
                let known = priced.get(&(groups.clone(), block_bytes)).cloned();
                let (choice, bound) = match known {
                    Some(known) => known,
                    None => {
                        let of = Groups::named(&groups, machine)?;
                        let selection =
                            exchange.clone().groups(&of)?.block_bytes(block_bytes)?.select()?;
                        let best = selection.best().cloned();
                        let best = best.ok_or_else(|| {
                            refused(format!("no algorithm serves the groups {groups}"))
                        })?;
                        priced
                            .insert((groups.clone(), block_bytes), (best.clone(), selection.bound));
                        (best, selection.bound)
                    }
                };
                let ranks = ranks_of;
                on.exchanges.push(Transposition {
                    among,
                    groups,
                    ranks,
                    block_bytes,
                    choice,
                    bound,
                });
            }
        }
        let by = |of: &Distribution| (!of.is_exact(), of.bricks);
        found.sort_by(|a, b| {
            let [(late, bricks), (other_late, other_bricks)] = [a, b].map(by);
            let time = a.seconds().total_cmp(&b.seconds());
            late.cmp(&other_late).then(time).then(bricks.cmp(&other_bricks))
        });
        Ok(found)
    }
}

impl Distribution {
    /// The exchanges in order: the ranks of a group, and whether they are consecutive.
    fn groups(&self) -> Vec<(Among, u32, bool)> {
        let ([p1, p2], k, near) = (self.pencils, self.bricks, self.rows_are_consecutive);
        let all = [
            (Among::BricksBefore, k, true),
            (Among::Rows, p2, near || p1 == 1),
            (Among::Columns, p1, !near || p2 == 1),
            (Among::BricksAfter, k, true),
        ];
        all.into_iter().filter(|(_, ranks, _)| *ranks > 1).collect()
    }
}

fn refused(reason: String) -> Error {
    Error::Transform { reason }
}
