//! Exchange dimension by dimension: in each dimension in turn, all lines along it exchange, with
//! bundles of blocks for blocks.
//!
//! Before dimension u a rank holds blocks that need to move along u and the dimensions after it. The
//! exchange of its line sends on all that belong to one coordinate u together: P / a blocks, on P
//! ranks with a side of a. Any exchange along a line serves that moves whole blocks.
//! Exchanges dimension by dimension are long known; that with single blocks along the lines they meet
//! the trade-off of steps and volume on tori of sides 3 to 7 is new, to our knowledge.
//!
//! Claim: of exchanges of S steps and V blocks along sides of a ranks, the sum of S steps and of
//! V P / a blocks, without contention if there is none along a line. By default each side takes the
//! exchange of the least V, and of these one with the fewest steps: on sides that wrap, 2, 3, 4, 5, 6
//! and 8 steps of single blocks along 3 to 8 ranks.
//!
//! # The layout
//! A slot has a digit for each dimension, a slot of the exchange there: before that exchange one that
//! holds a block at its beginning, and afterwards one that holds a block at its end.

use smallvec::SmallVec;
use topocoll_schedule::{
    Axis, Block, Collective, MAX_BLOCK_BYTES, Parameters, Problem, RankClasses, Rule, Schedule,
    Slot, SlotSet, Step, Strided,
};
use topocoll_topology::{Coordinates, Grid, Rank, Route, Topology};

use crate::error::check_sides;
use crate::lifted::{Runs, held};
use crate::{
    Algorithm, Catalogue, Claims, Info, NotApplicable, Parameter, Request, Solution, Values,
};

/// The parameter that names the exchange along lines.
const ALONG: Parameter = Parameter::algorithm(
    "along",
    "the exchange along each side; default the one of the least volume that is known for it",
);

/// The longest side for which all exchanges are tried, as one of them is searched for.
const LONGEST: u32 = 16;

/// Slots of a rank, at most.
const MOST_SLOTS: u64 = 1 << 40;

static INFO: Info = Info::new(
    "product",
    "dimension by dimension, an exchange of its own along each side",
    "own construction of exchanges along one dimension",
)
.taking(&[ALONG]);

pub(crate) struct ProductExchange;

/// The exchange along the lines of a dimension.
struct Line {
    dimension: usize,
    grid: Grid,
    schedule: Schedule,
    classes: RankClasses,
    /// By class, the slots that hold a block before and after the exchange.
    held: Vec<[Runs; 2]>,
    /// The first of its steps.
    first: u32,
    /// Slots from one slot of the exchange to the next.
    stride: u64,
}

struct Product {
    grid: Grid,
    lines: Vec<Line>,
    steps: u32,
    slots: u64,
}

/// Whether an exchange moves whole blocks.
fn fits(solution: &Solution) -> bool {
    solution.schedule.rule().cuts().is_empty()
}

/// The exchange along a line: the one that is named, or the one of the least volume.
fn along(
    line: &Request<'_>,
    named: Option<&(String, Parameters)>,
    values: &Values<'_>,
) -> Result<Solution, NotApplicable> {
    let catalogue = Catalogue::standard();
    if let Some((name, own)) = named {
        let refused = |reason| NotApplicable::Named {
            parameter: ALONG.name,
            named: name.clone(),
            reason: Box::new(reason),
        };
        let algorithm = catalogue.find(name).map_err(refused)?;
        let usable = !algorithm.info().by_demand && *algorithm.info().name != *INFO.name;
        let solution = match usable {
            true => line.solve(algorithm, own).map_err(refused)?,
            false => {
                return Err(values.refused(ALONG.name, "an exchange of equal blocks along a line"));
            }
        };
        return match fits(&solution) {
            true => Ok(solution),
            false => Err(values.refused(ALONG.name, "an exchange of whole blocks")),
        };
    }
    let known =
        catalogue.iter().filter(|one| !one.info().by_demand && one.info().name != INFO.name);
    let settings = |one: &dyn Algorithm| match line.candidates(one) {
        Err(NotApplicable::Unranked { .. }) => vec![Parameters::new()],
        settings => settings.unwrap_or_default(),
    };
    let solutions = known.flat_map(|one| {
        let solved = move |own: &Parameters| line.solve(one, own).ok().filter(fits);
        settings(one).into_iter().filter_map(move |own| solved(&own))
    });
    let best =
        solutions.filter(|solution| solution.claims.contention_free).min_by_key(|solution| {
            let Claims { steps, bytes, copied_bytes, .. } = solution.claims;
            (bytes, steps, copied_bytes.unwrap_or(u128::MAX))
        });
    best.ok_or_else(|| values.refused(ALONG.name, "an exchange along each side without contention"))
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

impl Line {
    /// `None` if the exchange has too many layouts to look at.
    fn new(dimension: usize, grid: Grid, schedule: Schedule) -> Option<Self> {
        let (classes, held) = (schedule.rule().classes(), held(&schedule, Collective::AllToAll)?);
        Some(Self { dimension, grid, schedule, classes, held, first: 0, stride: 1 })
    }
}

impl Product {
    /// `None` if there are too many slots or steps.
    fn new(grid: &Grid, mut lines: Vec<Line>) -> Option<Self> {
        let (mut steps, mut slots) = (0u32, 1u64);
        for line in &mut lines {
            line.first = steps;
            steps = steps.checked_add(line.schedule.rule().steps())?;
        }
        for line in lines.iter_mut().rev() {
            line.stride = slots;
            slots = slots.checked_mul(line.schedule.rule().slots())?;
        }
        (slots <= MOST_SLOTS).then_some(Self { grid: grid.clone(), lines, steps, slots })
    }

    /// The coordinate of a rank in the dimension of a line.
    fn place(&self, line: &Line, rank: Rank) -> Rank {
        Rank(self.grid.radix().coordinate(rank, line.dimension))
    }

    /// The slots of some slots of a line, with the digits that hold blocks along all others.
    fn slots_of(&self, line: &Line, rank: Rank, inner: &SlotSet) -> SlotSet {
        let mut out = SlotSet::default();
        for run in inner.runs() {
            for slot in run.slots.iter() {
                self.push((line, slot), rank, &self.lines, 0, &mut SmallVec::new(), &mut out);
            }
        }
        out
    }

    /// Appends the slots from `base` on, with `axes`, and the digits along the lines that are left.
    fn push(
        &self,
        (line, slot): (&Line, Slot),
        rank: Rank,
        left: &[Line],
        base: Slot,
        axes: &mut SmallVec<[Axis; 4]>,
        out: &mut SlotSet,
    ) {
        let Some((next, left)) = left.split_first() else {
            return push_axes(base, axes, out);
        };
        if next.dimension == line.dimension {
            return self.push((line, slot), rank, left, base + slot * next.stride, axes, out);
        }
        let class = next.classes.class_of(self.place(next, rank)) as usize;
        let done = next.dimension < line.dimension;
        for &(first, count) in &next.held[class][usize::from(done)] {
            axes.push(Axis { count, stride: next.stride as i64 });
            self.push((line, slot), rank, left, base + first * next.stride, axes, out);
            axes.pop();
        }
    }

    /// The rank at the other end of a block, by the layouts of all lines.
    fn end(&self, slot: Slot, mut inner: impl FnMut(&Line, Slot) -> Option<Rank>) -> Option<Rank> {
        let mut end = 0;
        for line in &self.lines {
            let digit = slot / line.stride % line.schedule.rule().slots();
            end += inner(line, digit)?.0 * self.grid.radix().stride(line.dimension);
        }
        Some(Rank(end))
    }
}

/// Appends the slots of several axes, the slowest first.
fn push_axes(base: Slot, axes: &[Axis], out: &mut SlotSet) {
    // Axes that continue each other are one.
    let mut left: SmallVec<[Axis; 4]> = SmallVec::new();
    for &axis in axes.iter().filter(|axis| axis.count > 1) {
        match left.last_mut() {
            Some(last) if last.stride == axis.count as i64 * axis.stride => {
                *last = Axis { count: last.count * axis.count, stride: axis.stride };
            }
            _ => left.push(axis),
        }
    }
    match left[..] {
        [] => out.push(Strided::contiguous(base, 1)),
        [inner] => out.push(Strided { base, outer: Axis::POINT, inner }),
        [outer, inner] => out.push(Strided { base, outer, inner }),
        [slowest, ref others @ ..] => {
            for i in 0..slowest.count {
                push_axes(base + i * slowest.stride as u64, others, out);
            }
        }
    }
}

impl Rule for Product {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let last = self.lines.partition_point(|line| line.first <= step);
        let line = &self.lines[last - 1];
        let place = self.place(line, rank);
        line.schedule.rule().step(place, step - line.first, out);
        for copy in &mut out.copies {
            copy.from = self.slots_of(line, rank, &copy.from);
            copy.to = self.slots_of(line, rank, &copy.to);
        }
        for send in &mut out.sends {
            let mut own = Route::default();
            let route = send.route_from(place, &line.grid, &mut own);
            let mut moved = Route::default();
            for segment in route.segments() {
                moved.push(line.dimension as u32, segment.hops);
            }
            send.route = moved;
        }
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            let hops = i64::from(transfer.peer.0) - i64::from(place.0);
            transfer.peer = self.grid.radix().shifted(rank, line.dimension, hops);
            transfer.slots = self.slots_of(line, rank, &transfer.slots);
        }
    }

    fn slots(&self) -> u64 {
        self.slots
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let to = self.end(slot, |line, slot| {
            Some(line.schedule.rule().initial_block(self.place(line, rank), slot)?.to)
        });
        Some(Block { from: rank, to: to? })
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = self.end(slot, |line, slot| {
            Some(line.schedule.rule().final_block(self.place(line, rank), slot)?.from)
        });
        Some(Block { from: from?, to: rank })
    }

    fn classes(&self) -> RankClasses {
        let sides = self.grid.sides();
        let mut periods: Coordinates = sides.iter().map(|_| 1).collect();
        for line in &self.lines {
            let side = sides[line.dimension];
            let along = line.classes.radix().sides() == [side];
            periods[line.dimension] = if along { line.classes.periods()[0] } else { side };
        }
        RankClasses::translations(self.grid.radix().clone(), periods)
    }
}

impl Algorithm for ProductExchange {
    fn info(&self) -> &Info {
        &INFO
    }

    /// Where all exchanges along the sides are tried.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let grid = request.grid("a torus or mesh of two sides")?;
        let sides = grid.sides();
        check_sides(grid, "sides of at most 16", |u| sides[u] > LONGEST)?;
        Ok(vec![Parameters::new()])
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus or mesh of two sides")?;
        let (sides, wrap) = (grid.sides(), grid.wrap());
        if grid.radix().long_dimensions().count() < 2 {
            return Err(request.requires("a torus or mesh of two sides"));
        }
        let named = values.algorithm(ALONG.name);
        if named.is_none() {
            check_sides(grid, "sides of at most 16, or along", |u| sides[u] > LONGEST)?;
        }
        let refused = |rule: &'static str| values.refused(ALONG.name, rule);
        let mut lines = Vec::new();
        let mut claims = Claims { hops: Some(0), contention_free: true, ..Claims::new(0, 0) };
        for u in grid.radix().long_dimensions() {
            let line = Grid::new(&[sides[u]], &[wrap[u]]).expect("bug: an invalid side");
            let bytes = request.bytes(grid.ranks() / sides[u]);
            if bytes > MAX_BLOCK_BYTES.into() {
                return Err(refused("for bundles of blocks of more than 2^40 bytes"));
            }
            let Problem { operation, ports, .. } = request.problem;
            let problem = Problem::new(operation, sides[u], ports, bytes as u64)
                .expect("bug: an invalid problem along a line");
            let solution = along(&Request::new(&problem, &line), named.as_ref(), values)?;
            claims = one_after_other(claims, solution.claims);
            let few = "an exchange of few enough classes of ranks to look at their layouts";
            let line = Line::new(u, line, solution.schedule).ok_or_else(|| refused(few))?;
            lines.push(line);
        }
        let rule = Product::new(grid, lines)
            .ok_or_else(|| refused("exchanges of at most 2^40 slots and 2^32 - 1 steps in all"))?;
        let solution = Solution::new(request, values, rule, claims);
        let Some((name, own)) = named else { return Ok(solution) };
        Ok(own.into_iter().fold(solution.with(ALONG.name, &*name), |solution, (key, value)| {
            solution.with(&format!("{}.{key}", ALONG.name), value)
        }))
    }
}
