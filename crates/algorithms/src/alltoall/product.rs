//! Exchange dimension by dimension: the dimensions are factors of the machine, and along each factor
//! in turn all its lines exchange, with bundles of blocks for blocks. Consecutive short dimensions may
//! be one factor together, its lines then planes or boxes.
//!
//! Before a factor a rank holds blocks that need to move along it and the factors after it. The
//! exchange of its line sends on together all that belong to one place of the line: P / a blocks, on P
//! ranks with lines of a. Any exchange of a line serves that moves whole blocks.
//! Exchanges dimension by dimension are long known; that with single blocks along the lines they meet
//! the trade-off of steps and volume on tori of sides 4 to 7 is new, to our knowledge.
//!
//! Claim: of exchanges of S steps and V blocks on lines of a ranks, the sum of S steps and of
//! V P / a blocks, without contention if there is none on a line. By default each line takes the
//! exchange of the least V, and of these one with the fewest steps: on rings of 3 to 8 ranks 2, 3, 4,
//! 5, 6 and 8 steps of single blocks, on the torus of 4x4 15.
//!
//! With `split` the even hops along some sides and the odd ones are in different factors, which are no
//! lines then: see `product/split.rs`.
//!
//! # The layout
//! A slot has a digit for each factor, a slot of the exchange there: before that exchange one that
//! holds a block at its beginning, and afterwards one that holds a block at its end.

mod along;
mod split;

use std::ops::Range;

use smallvec::SmallVec;
use topocoll_schedule::{
    Axis, Block, Parameters, RankClasses, Rule, Schedule, Slot, SlotSet, Step,
};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Topology};

use crate::error::check_sides;
use crate::layout::axes::push_axes;
use crate::layout::inner::Inner;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

/// The parameter that names the exchange along lines.
const ALONG: Parameter = Parameter::algorithm(
    "along",
    "the exchange along each factor; default the one of the least volume that is known for it",
);
/// The parameter that joins short dimensions.
const TOGETHER: Parameter = Parameter::number(
    "together",
    "ranks, 2 to 16, up to which consecutive dimensions are one factor; default none are joined",
);

/// The most ranks of a line for which all exchanges are tried, as one of them is searched for.
const LONGEST: u32 = 16;

/// Slots of a rank, at most.
const MOST_SLOTS: u64 = 1 << 40;

static INFO: Info = Info::new(
    "product",
    "dimension by dimension, an exchange of its own along each",
    "own construction of exchanges along one dimension",
)
.taking(&[ALONG])
.with_internal(&[TOGETHER, split::SPLIT]);

pub(crate) struct ProductExchange;

/// Consecutive dimensions, and the exchange on their lines.
struct Factor {
    dimensions: Range<usize>,
    grid: Grid,
    exchange: Inner,
    /// The first of its steps.
    first: u32,
    /// Slots from one slot of the exchange to the next.
    stride: u64,
}

struct Product {
    grid: Grid,
    factors: Vec<Factor>,
    steps: u32,
    slots: u64,
}

/// Whether an exchange moves whole blocks.
fn fits(solution: &Solution) -> bool {
    solution.schedule.rule().cuts().is_empty()
}

/// The claims of an exchange after another.
fn one_after_other(before: Claims, own: Claims) -> Claims {
    Claims {
        hops: before.hops.zip(own.hops).map(|(before, own)| before + own),
        contention_free: before.contention_free && own.contention_free,
        link_bytes_floor: before.link_bytes_floor + own.link_bytes_floor,
        hops_floor: before.hops_floor + own.hops_floor,
        ..Claims::new(before.steps + own.steps, before.bytes + own.bytes)
    }
}

impl Factor {
    /// `None` if the exchange has too many layouts to look at.
    fn new(dimensions: Range<usize>, grid: Grid, schedule: Schedule) -> Option<Self> {
        Some(Self { dimensions, grid, exchange: Inner::new(schedule)?, first: 0, stride: 1 })
    }

    /// Whether two shortest routes of a line may be along one side.
    fn has_ties(&self) -> bool {
        self.grid.sides().iter().zip(self.grid.wrap()).any(|(side, wraps)| *wraps && side % 2 == 0)
    }
}

impl Product {
    /// `None` if there are too many slots or steps.
    fn new(grid: &Grid, mut factors: Vec<Factor>) -> Option<Self> {
        let (mut steps, mut slots) = (0u32, 1u64);
        for factor in &mut factors {
            factor.first = steps;
            steps = steps.checked_add(factor.exchange.rule().steps())?;
        }
        for factor in factors.iter_mut().rev() {
            factor.stride = slots;
            slots = slots.checked_mul(factor.exchange.rule().slots())?;
        }
        (slots <= MOST_SLOTS).then_some(Self { grid: grid.clone(), factors, steps, slots })
    }

    /// Ranks from one rank of a line of a factor to the next.
    fn stride(&self, factor: &Factor) -> u32 {
        self.grid.radix().stride(factor.dimensions.end - 1)
    }

    /// The place of a rank on its line of a factor.
    fn place(&self, factor: &Factor, rank: Rank) -> Rank {
        Rank(rank.0 / self.stride(factor) % factor.grid.ranks())
    }

    /// The slots of some slots of a line, with the digits that hold blocks along all other factors.
    fn slots_of(&self, factor: &Factor, rank: Rank, inner: &SlotSet) -> SlotSet {
        let mut out = SlotSet::default();
        for run in inner.runs() {
            for slot in run.slots.iter() {
                self.push((factor, slot), rank, &self.factors, 0, &mut SmallVec::new(), &mut out);
            }
        }
        out
    }

    /// Appends the slots from `base` on, with `axes`, and the digits of the factors that are left.
    fn push(
        &self,
        (factor, slot): (&Factor, Slot),
        rank: Rank,
        left: &[Factor],
        base: Slot,
        axes: &mut SmallVec<[Axis; 4]>,
        out: &mut SlotSet,
    ) {
        let Some((next, left)) = left.split_first() else {
            return push_axes(base, axes, out);
        };
        if next.stride == factor.stride {
            return self.push((factor, slot), rank, left, base + slot * next.stride, axes, out);
        }
        let done = next.stride > factor.stride;
        for &(first, count) in next.exchange.held(self.place(next, rank), done) {
            axes.push(Axis { count, stride: next.stride as i64 });
            self.push((factor, slot), rank, left, base + first * next.stride, axes, out);
            axes.pop();
        }
    }

    /// The rank at the other end of a block, by the layouts of all factors.
    fn end(
        &self,
        slot: Slot,
        mut inner: impl FnMut(&Factor, Slot) -> Option<Rank>,
    ) -> Option<Rank> {
        let mut end = 0;
        for factor in &self.factors {
            let digit = slot / factor.stride % factor.exchange.rule().slots();
            end += inner(factor, digit)?.0 * self.stride(factor);
        }
        Some(Rank(end))
    }
}

impl Rule for Product {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let last = self.factors.partition_point(|factor| factor.first <= step);
        let factor = &self.factors[last - 1];
        let (place, stride) = (self.place(factor, rank), self.stride(factor));
        factor.exchange.rule().step(place, step - factor.first, out);
        for copy in &mut out.copies {
            copy.from = self.slots_of(factor, rank, &copy.from);
            copy.to = self.slots_of(factor, rank, &copy.to);
        }
        for send in &mut out.sends {
            // The machine's own route along the line.
            if send.route.is_empty() && !factor.has_ties() {
                continue;
            }
            let mut own = Route::default();
            let route = send.route_from(place, &factor.grid, &mut own);
            let mut moved = Route::default();
            for segment in route.segments() {
                moved.push(segment.dimension + factor.dimensions.start as u32, segment.hops);
            }
            send.route = moved;
        }
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            transfer.peer = Rank(rank.0 - place.0 * stride + transfer.peer.0 * stride);
            transfer.slots = self.slots_of(factor, rank, &transfer.slots);
        }
    }

    fn slots(&self) -> u64 {
        self.slots
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.end(slot, |factor, slot| {
            Some(factor.exchange.rule().initial_block(self.place(factor, rank), slot)?.to)
        });
        Some(Block { from: rank, to: to? })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = self.end(slot, |factor, slot| {
            Some(factor.exchange.rule().final_block(self.place(factor, rank), slot)?.from)
        });
        Some(Block { from: from?, to: rank })
    }

    fn classes(&self) -> RankClasses {
        let sides = self.grid.sides();
        let mut periods: Coordinates = sides.iter().map(|_| 1).collect();
        for factor in &self.factors {
            let Factor { dimensions, grid, exchange: Inner { classes, .. }, .. } = factor;
            let (own, sides) = (&mut periods[dimensions.clone()], &sides[dimensions.clone()]);
            // Routes that a line with ties would choose are the same at all ranks only without ends.
            let are_equal = !factor.has_ties() || grid.wrap().iter().all(|&wraps| wraps);
            let known = are_equal && classes.radix().sides() == sides;
            own.copy_from_slice(if known { classes.periods() } else { sides });
        }
        RankClasses::translations(self.grid.radix().clone(), periods)
    }
}

/// The dimensions of each factor: one, or consecutive ones of at most `together` ranks.
fn factors(grid: &Grid, together: u32) -> Vec<Range<usize>> {
    let mut factors: Vec<Range<usize>> = Vec::new();
    for u in grid.radix().long_dimensions() {
        let joined = factors.last().map(|last| grid.sides()[last.start..=u].iter().product());
        match factors.last_mut() {
            Some(last) if joined.is_some_and(|ranks: u32| ranks <= together) => last.end = u + 1,
            _ => factors.push(u..u + 1),
        }
    }
    factors
}

/// The lines of a factor.
fn line(grid: &Grid, dimensions: &Range<usize>) -> Grid {
    let (sides, wrap) = (&grid.sides()[dimensions.clone()], &grid.wrap()[dimensions.clone()]);
    Grid::new(sides, wrap).expect("bug: invalid sides")
}

/// The exchange on a line, of bundles of blocks; `None` if these are too large.
fn on_line<'l>(request: &Request<'l>, grid: &Grid, line: &'l Grid) -> Option<Request<'l>> {
    request.part(line, request.problem.ports, request.bytes(grid.ranks() / line.ranks()))
}

impl Product {
    /// The schedule of an exchange along each dimension, or several together.
    fn solved(
        request: &Request<'_>,
        values: &Values<'_>,
        grid: &Grid,
    ) -> Result<Solution, NotApplicable> {
        let sides = grid.sides();
        let named = values.is_given(ALONG.name);
        if !named {
            check_sides(grid, "sides of at most 16, or along", |u| sides[u] > LONGEST)?;
        }
        let together = values.number(TOGETHER.name, 2, LONGEST.into())?;
        let parts = factors(grid, together.unwrap_or(1) as u32);
        if parts.len() < 2 {
            return Err(match together {
                None => request.requires("a torus or mesh of two sides"),
                Some(_) => values.refused(TOGETHER.name, "fewer than the ranks of all dimensions"),
            });
        }
        let refused = |rule: &'static str| match named {
            true => values.refused(ALONG.name, rule),
            false => NotApplicable::Ranks { rule, ranks: request.problem.ranks },
        };
        let mut factors = Vec::new();
        let mut claims = Claims { hops: Some(0), contention_free: true, ..Claims::new(0, 0) };
        for dimensions in parts {
            let line = line(grid, &dimensions);
            let on_line = on_line(request, grid, &line)
                .ok_or_else(|| refused("an exchange for bundles of at most 2^40 bytes"))?;
            let solution = match values.solve_named(ALONG.name, &on_line)? {
                Some(solution) if fits(&solution) => solution,
                Some(_) => return Err(refused("an exchange of whole blocks")),
                None => along::least_volume(&on_line, &line, false)
                    .ok_or_else(|| refused("an exchange along each factor without contention"))?,
            };
            claims = one_after_other(claims, solution.claims);
            let few = "an exchange of few enough classes of ranks to look at their layouts";
            let factor = Factor::new(dimensions, line, solution.schedule);
            factors.push(factor.ok_or_else(|| refused(few))?);
        }
        let rule = Product::new(grid, factors)
            .ok_or_else(|| refused("exchanges of at most 2^40 slots and 2^32 - 1 steps in all"))?;
        let solution = Solution::new(request, values, rule, claims).without(split::SPLIT.name);
        Ok(match together {
            Some(together) => solution.with(TOGETHER.name, together),
            None => solution,
        })
    }
}

impl Algorithm for ProductExchange {
    fn info(&self) -> &Info {
        &INFO
    }

    /// Where all exchanges along the sides are tried: those of the least volume, and those that one algorithm
    /// has along all sides, unless another is better in all counts.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus or mesh of two sides")?;
        let sides = grid.sides();
        let whole = check_sides(grid, "sides of at most 16", |u| sides[u] > LONGEST);
        let word = |word: &str| Parameters::from([(split::SPLIT.name.to_owned(), word.into())]);
        let split: Vec<_> = split::candidates(request, grid).into_iter().map(word).collect();
        if whole.is_err() {
            return if split.is_empty() { whole.map(|()| split) } else { Ok(split) };
        }
        let mut settings = vec![Parameters::new()];
        settings.extend(along::candidates(request, grid, 1));
        let joined = factors(grid, LONGEST).len();
        if 1 < joined && joined < grid.radix().long_dimensions().count() {
            let most = Parameters::from([(TOGETHER.name.to_owned(), u64::from(LONGEST).into())]);
            let named = along::candidates(request, grid, LONGEST);
            settings
                .extend(named.into_iter().map(|own| own.into_iter().chain(most.clone()).collect()));
            settings.push(most);
        }
        settings.extend(split);
        Ok(settings)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus or mesh of two sides")?;
        let solution = match values.word(split::SPLIT.name) {
            "none" => Product::solved(request, values, grid)?,
            word => {
                if let Some(other) = [ALONG, TOGETHER].iter().find(|one| values.is_given(one.name))
                {
                    return Err(
                        values.refused(other.name, format!("for a product with split={word}"))
                    );
                }
                split::solve(request, values, grid)?
            }
        };
        let Some((name, own)) = values.algorithm(ALONG.name) else { return Ok(solution) };
        Ok(own.into_iter().fold(solution.with(ALONG.name, &*name), |solution, (key, value)| {
            solution.with(&format!("{}.{key}", ALONG.name), value)
        }))
    }
}
