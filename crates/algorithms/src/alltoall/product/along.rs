//! The exchanges along lines that a product tries.

use topocoll_schedule::{Parameters, Schedule, Step};
use topocoll_topology::{Grid, Rank, Route, Topology};

use super::{ALONG, INFO, factors, fits, line, on_line};
use crate::{ALGORITHMS, Algorithm, Claims, NotApplicable, Request, Solution};

/// The exchanges that are tried along a line, with their settings.
fn tried<'a>(
    line: &Request<'_>,
    algorithms: impl Iterator<Item = &'a dyn Algorithm>,
) -> Vec<(&'a dyn Algorithm, Vec<Parameters>)> {
    let known = algorithms.filter(|one| !one.info().by_demand && one.info().name != INFO.name);
    let settings = |one: &'a dyn Algorithm| {
        let settings = match line.search(one, &Parameters::new()) {
            Some(_) => vec![Parameters::new()],
            None => match line.candidates(one) {
                Err(NotApplicable::Unranked { .. }) => vec![Parameters::new()],
                settings => settings.unwrap_or_default(),
            },
        };
        (one, settings)
    };
    known.map(settings).collect()
}

/// What an exchange without contention costs, the volume first; else `None`.
fn cost(claims: &Claims) -> Option<(u128, u64, u128)> {
    let Claims { steps, bytes, copied_bytes, contention_free, .. } = *claims;
    contention_free.then_some((bytes, steps, copied_bytes.unwrap_or(u128::MAX)))
}

/// Of the standard exchanges of whole blocks along a line without contention one of the least volume, and of
/// these one with the fewest steps; if `single`, with messages of one block.
pub(super) fn least_volume(line: &Request<'_>, grid: &Grid, single: bool) -> Option<Solution> {
    let fits = |solution: &Solution| {
        let Claims { steps, bytes, .. } = solution.claims;
        fits(solution) && (!single || bytes == line.bytes(steps))
    };
    let search = || {
        let bound = line.bytes(least_blocks(grid, line.problem.ports));
        let mut best: Option<((u128, u64, u128), Solution)> = None;
        for (one, settings) in tried(line, ALGORITHMS.iter().copied()) {
            let is_least = |((bytes, _, copied), _): &(_, _)| *bytes <= bound && *copied == 0;
            // A search finds nothing better than the bound.
            if line.search(one, &Parameters::new()).is_some() && best.as_ref().is_some_and(is_least)
            {
                continue;
            }
            for solution in settings.iter().filter_map(|own| line.solve(one, own).ok()) {
                let Some(cost) = cost(&solution.claims) else { continue };
                if best.as_ref().is_none_or(|(least, _)| cost < *least) && fits(&solution) {
                    best = Some((cost, solution));
                }
            }
        }
        best.map(|(_, solution)| solution)
    };
    Option::clone(&line.kept(format!("product {single} {:?}", line.problem), search))
}

/// A bound on the blocks of an exchange along a line: those that a rank sends, and those that cross
/// the middle of a side.
fn least_blocks(grid: &Grid, ports: u32) -> u32 {
    let ranks = grid.ranks();
    let across = |u: usize| {
        let lines = ranks / grid.sides()[u];
        let below = lines * (grid.sides()[u] / 2);
        (below * (ranks - below)).div_ceil(lines * if grid.wrap()[u] { 2 } else { 1 })
    };
    let across = grid.radix().long_dimensions().map(across).max().unwrap_or(0);
    (ranks - 1).div_ceil(ports).max(across)
}

/// Counts of exchanges along all lines: steps, volume, hops and copies. An unknown count is 0 in `least`, and
/// unlimited in `most`.
#[derive(Clone, Copy)]
struct Counts {
    least: [u128; 4],
    most: [u128; 4],
}

impl Counts {
    const NONE: Self = Self { least: [0; 4], most: [0; 4] };

    /// The same and those of some equal lines.
    fn and(self, claims: &Claims, lines: u128) -> Self {
        let Claims { steps, bytes, hops, copied_bytes, link_bytes_floor, hops_floor, .. } = *claims;
        let least = [
            steps.into(),
            bytes.max(link_bytes_floor),
            hops.unwrap_or(hops_floor),
            copied_bytes.unwrap_or(0),
        ];
        let [hops, copies] = [hops, copied_bytes].map(|known| known.unwrap_or(u128::MAX));
        let most = [steps.into(), bytes, hops, copies];
        let most = if claims.contention_free { most } else { [u128::MAX; 4] };
        Self { least: sum(self.least, least, lines), most: sum(self.most, most, lines) }
    }

    /// Whether the other counts are no less.
    fn beats(&self, other: &Self) -> bool {
        self.most.iter().zip(&other.least).all(|(most, least)| most <= least)
    }
}

/// Counts with those of some equal lines. Not inlined: optimizers would compute with unknown counts before they look
/// whether a count is known, which valgrind reports in the programs of users.
#[inline(never)]
fn sum(all: [u128; 4], own: [u128; 4], lines: u128) -> [u128; 4] {
    std::array::from_fn(|i| all[i].saturating_add(own[i].saturating_mul(lines)))
}

/// Exchanges along all lines, with their counts.
struct Found {
    counts: Counts,
    schedules: Vec<Schedule>,
}

impl Found {
    /// The exchanges, with how many lines each is for; `None` if one is missing.
    fn new(solutions: Vec<Option<Solution>>, lines: &[(Grid, u128)]) -> Option<Self> {
        let solutions = solutions.into_iter().collect::<Option<Vec<Solution>>>()?;
        let each = solutions.iter().zip(lines);
        let counts = each
            .fold(Counts::NONE, |all, (solution, (_, number))| all.and(&solution.claims, *number));
        let schedules = solutions.into_iter().map(|solution| solution.schedule).collect();
        Some(Self { counts, schedules })
    }

    /// Whether all ranks of these lines do the same.
    fn is_same(&self, other: &Self, lines: &[(Grid, u128)]) -> bool {
        let mut both = self.schedules.iter().zip(&other.schedules).zip(lines);
        both.all(|((own, other), (line, _))| does_the_same(own, other, line))
    }
}

/// Whether all ranks of a line do the same in two schedules.
fn does_the_same(one: &Schedule, other: &Schedule, line: &Grid) -> bool {
    let (steps, ranks) = (one.rule().steps(), one.problem.ranks);
    let [mut does, mut others] = [Step::default(), Step::default()];
    let routed = |schedule: &Schedule, rank: Rank, step: u32, out: &mut Step| {
        schedule.rule().step(rank, step, out);
        for send in &mut out.sends {
            let mut own = Route::default();
            send.route = send.route_from(rank, line, &mut own).clone();
        }
    };
    let mut same = |step: u32, rank: Rank| {
        routed(one, rank, step, &mut does);
        routed(other, rank, step, &mut others);
        does == others
    };
    steps == other.rule().steps()
        && (0..steps).all(|step| (0..ranks).all(|rank| same(step, Rank(rank))))
}

/// The settings that name one exchange along all factors, of dimensions with at most `together` ranks, and
/// that neither the default nor another of them beats or does the same.
pub(super) fn candidates(request: &Request<'_>, grid: &Grid, together: u32) -> Vec<Parameters> {
    let parts = factors(grid, together);
    if parts.len() < 2 {
        return Vec::new();
    }
    let mut lines: Vec<(Grid, u128)> = Vec::new();
    for dimensions in &parts {
        let line = line(grid, dimensions);
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, number)) => *number += 1,
            None => lines.push((line, 1)),
        }
    }
    let requests = lines.iter().map(|(line, _)| on_line(request, grid, line));
    let Some(requests) = requests.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let mut found: Vec<(Found, Parameters)> = Vec::new();
    let tried: Vec<_> = requests.iter().map(|line| tried(line, line.inner())).collect();
    for (place, (one, _)) in tried[0].iter().enumerate() {
        let mut settings: Vec<_> = tried.iter().flat_map(|tried| tried[place].1.clone()).collect();
        settings.sort_unstable();
        settings.dedup();
        for own in settings {
            let solve = |line: &Request<'_>| line.solve(*one, &own).ok().filter(fits);
            let solutions: Vec<Option<Solution>> = requests.iter().map(solve).collect();
            let named = ALONG.naming(&one.info().name, &own);
            found.extend(Found::new(solutions, &lines).map(|found| (found, named)));
        }
    }
    let of_line = |(on, (line, _)): (&Request<'_>, &(Grid, _))| least_volume(on, line, false);
    let default = Found::new(requests.iter().zip(&lines).map(of_line).collect(), &lines);
    let is_left = |place: usize| {
        let own = &found[place].0;
        let is_better = |(other, (better, _)): (usize, &(Found, _))| {
            other < place && (better.counts.beats(&own.counts) || better.is_same(own, &lines))
                || other > place
                    && better.counts.beats(&own.counts)
                    && !own.counts.beats(&better.counts)
        };
        let by_default =
            |default: &Found| default.counts.beats(&own.counts) || default.is_same(own, &lines);
        !default.as_ref().is_some_and(by_default) && !found.iter().enumerate().any(is_better)
    };
    (0..found.len()).filter(|&place| is_left(place)).map(|place| found[place].1.clone()).collect()
}
