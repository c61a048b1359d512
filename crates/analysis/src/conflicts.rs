//! The conflict report: links that carry several messages in a step, and these messages.

use rayon::prelude::*;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Grid, Link, LinkId, Machine, Rank, Shape, Topology, parallel};

use crate::charges::Rates;
use crate::count_step::Counter;
use crate::error::{by_all_threads, check_memory, check_work};
use crate::loads::Loads;
use crate::route_links::RouteLinks;
use crate::shift::{self, Links};
use crate::traffic::Traffic;
use crate::visit::{Does, Source, Visitor};
use crate::{AnalysisError, symmetry};

/// The links listed by default.
const LINKS: usize = 5;

/// The most messages listed for one link.
const LISTED: usize = 16;

/// The most shares of steps visited by default: a million nodes for 32 steps.
const WORK_LIMIT: u128 = 1 << 25;

/// The work named in errors.
const NAMING: &str = "naming conflicting links";

/// A directed link that carries several messages in one step.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Conflict {
    /// The step.
    pub step: u32,
    /// The link's number.
    pub link: LinkId,
    /// Messages on it.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u128,
    /// The number of equivalent links in this step, this one included. One of them is named.
    pub alike: u128,
    /// The messages, at most 16 of them, by sender.
    pub listed: Vec<ConflictingMessage>,
}

/// A message on a link that carries other messages too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct ConflictingMessage {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// The length.
    pub bytes: u128,
}

/// The conflicts of a schedule, the most contended links first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ConflictReport {
    /// Pairs of a step and a link that carries several messages.
    pub conflicts: u128,
    /// Ordered by messages and then bytes, both descending, then by step and link.
    pub worst: Vec<Conflict>,
}

/// Lists the `most` most contended links, and counts all pairs of a step and a link that carries
/// several messages. Of equivalent links one is listed. The default is 5 links, if that takes
/// seconds at most.
///
/// Visits every step of one node of each class, on all threads; of a schedule, the nodes that are not
/// idle. Without numbered links there are no conflicts.
///
/// # Errors
/// Link counters, or links to list, beyond `memory` bytes; by default also more than 2^25 shares of
/// steps.
pub fn conflicts(
    traffic: &dyn Traffic,
    machine: &Machine,
    most: Option<usize>,
    memory: u128,
) -> Result<ConflictReport, AnalysisError> {
    let topology = &*machine.topology;
    if topology.link_numbers() == 0 {
        return Ok(ConflictReport::default());
    }
    let visitor = Visitor::by_numbering(Source::of(traffic), machine, &traffic.classes());
    let limit = if most.is_none() { WORK_LIMIT } else { u128::MAX };
    let steps = steps_to_visit(&visitor, traffic.steps(), limit)?;
    let most = most.unwrap_or(LINKS);
    check_memory("link counters", by_all_threads(visitor.memory_of_loads()), memory)?;
    check_memory("conflicting links", kept_bytes(traffic, topology, most), memory)?;
    let rates = Rates::new(machine);
    let count = steps.as_ref().map_or(traffic.steps(), |steps| steps.len() as u32);
    let part = count.div_ceil(parallel::threads() as u32).max(1);
    let starts: Vec<u32> = (0..count).step_by(part as usize).collect();
    let pieces: Vec<Worst> = parallel::each(starts)
        .map(|start| {
            let (mut worst, mut does) = (Worst::new(most), Does::default());
            let mut loads = visitor.cyclic.is_none().then(|| visitor.loads());
            for i in start..count.min(start.saturating_add(part)) {
                let step = steps.as_ref().map_or(i, |steps| steps[i as usize]);
                match &mut loads {
                    Some(loads) => by_class(&visitor, &rates, step, loads, &mut does, &mut worst),
                    None => by_shift(&visitor, step, &mut does, &mut worst),
                }
            }
            worst.cut();
            worst
        })
        .collect();
    let mut all = Worst::new(most);
    for piece in pieces {
        all.conflicts += piece.conflicts;
        all.found.extend(piece.found);
    }
    all.cut();
    for conflict in &mut all.found {
        list(&visitor, conflict);
    }
    Ok(ConflictReport { conflicts: all.conflicts, worst: all.found })
}

/// The steps to visit, or `None` for all.
///
/// If these are many shares, those of ranks that are idle are left out, and steps in which the kinds
/// of ranks show that there is no conflict.
fn steps_to_visit(
    visitor: &Visitor<'_>,
    steps: u32,
    limit: u128,
) -> Result<Option<Vec<u32>>, AnalysisError> {
    let (all_steps, ranks) = (u128::from(steps), u128::from(visitor.ranks.classes.count()));
    let all = check_work(NAMING, ranks * all_steps, limit);
    let many = ranks * all_steps > WORK_LIMIT && all_steps.max(ranks) <= WORK_LIMIT;
    let Some(schedule) = visitor.source.schedule().filter(|_| many && visitor.cyclic.is_none())
    else {
        return all.map(|()| None);
    };
    let counter = Counter::new(schedule, visitor.machine)?;
    let positions: u128 =
        visitor.ranks.classes.radix().sides().iter().copied().map(u128::from).sum();
    let (mut scratch, mut visited, mut shares) = (counter.scratch(), Vec::new(), 0u128);
    for step in 0..steps {
        match counter.step_by_kinds(step, &mut scratch) {
            Some(count) if count.shared_links == 0 => shares += positions,
            _ => {
                visitor.each_active(step, &mut |_| shares += 1);
                visited.push(step);
            }
        }
        if shares > limit {
            return all.map(|()| None);
        }
    }
    Ok(Some(visited))
}

/// Bytes of the links that all threads keep: those asked for, or all links if fewer.
fn kept_bytes(traffic: &dyn Traffic, topology: &dyn Topology, most: usize) -> u128 {
    let links = u128::from(topology.links()) * u128::from(traffic.steps());
    let kept = links.min(kept(most) as u128) * size_of::<Conflict>() as u128;
    let listed = links.min(most as u128) * (LISTED * size_of::<ConflictingMessage>()) as u128;
    by_all_threads(kept) + listed
}

/// The number of links kept between two selections of the worst.
fn kept(most: usize) -> usize {
    most.saturating_mul(4).saturating_add(64)
}

struct Worst {
    most: usize,
    conflicts: u128,
    found: Vec<Conflict>,
    /// Links with fewer messages and bytes than this are not among the worst.
    floor: (u64, u128),
}

impl Worst {
    fn new(most: usize) -> Self {
        let floor = if most == 0 { (u64::MAX, u128::MAX) } else { (0, 0) };
        Self { most, conflicts: 0, found: Vec::new(), floor }
    }

    /// Whether links with this load may be among the worst.
    fn takes(&self, load: u64, bytes: u128) -> bool {
        (load, bytes) >= self.floor
    }

    /// Adds links that carry several messages if they may be among the worst, and returns whether
    /// they may.
    fn add(&mut self, step: u32, links: Links) -> bool {
        let Links { link, count, load, bytes } = links;
        if !self.takes(load, bytes) {
            return false;
        }
        let listed = Vec::new();
        self.found.push(Conflict { step, link, messages: load, bytes, alike: count, listed });
        if self.found.len() >= kept(self.most) {
            self.cut();
        }
        true
    }

    /// Keeps the worst.
    fn cut(&mut self) {
        self.found.sort_by_key(|c| {
            (std::cmp::Reverse(c.messages), std::cmp::Reverse(c.bytes), c.step, c.link)
        });
        self.found.truncate(self.most);
        if let Some(last) = self.found.last() {
            self.floor = (last.messages, last.bytes);
        }
    }
}

fn by_class(
    visitor: &Visitor<'_>,
    rates: &Rates<'_>,
    step: u32,
    loads: &mut Loads,
    does: &mut Does,
    worst: &mut Worst,
) {
    let topology = &*visitor.machine.topology;
    visitor.each_message(step, does, &mut |rank, sent, route_links| {
        loads.add(topology, rank, &route_links, sent.bytes);
    });
    let (nodes, _) = symmetry::of_nodes(&visitor.ranks.classes, topology);
    let equivalent = u128::from(topology.nodes() / nodes.count());
    loads.drain(rates, |run| {
        if run.messages < 2 {
            return;
        }
        let (load, bytes) = (run.messages, run.bytes);
        worst.conflicts += equivalent * u128::from(run.count);
        if !worst.takes(load, bytes) {
            return;
        }
        for link in run.links() {
            worst.add(step, Links { link, count: equivalent, load, bytes });
        }
    });
}

fn by_shift(visitor: &Visitor<'_>, step: u32, does: &mut Does, worst: &mut Worst) {
    let Some((cyclic, grid)) = visitor.cyclic.and_then(|of| Some((of, of.grid()?))) else { return };
    let mut shifts = Vec::new();
    visitor.each_shift(&cyclic, step, does, &mut |_, _, shift| shifts.push(shift));
    worst.conflicts += shift::shared(grid, &shifts, |links| worst.add(step, links));
}

/// Lists the messages on a link.
fn list(visitor: &Visitor<'_>, conflict: &mut Conflict) {
    let topology = &*visitor.machine.topology;
    let (mut does, mut listed) = (Does::default(), Vec::new());
    let link = topology.link(conflict.link).expect("bug: a conflict on no link");
    if let Some((cyclic, grid)) = visitor.cyclic.and_then(|of| Some((of, of.grid()?))) {
        let size = topology.ranks() / topology.nodes();
        visitor.each_shift(&cyclic, conflict.step, &mut does, &mut |rank, sent, shift| {
            list_shift(grid, link, shift.node, |start, end| {
                let at = |node: Rank, place: u32| Rank(node.0 * size + place);
                listed.extend(cyclic.ends(rank, sent.peer, shift.node).map(|(from, to)| {
                    ConflictingMessage { from: at(start, from), to: at(end, to), bytes: sent.bytes }
                }));
            });
        });
    } else {
        let nodes = symmetry::of_nodes(&visitor.ranks.classes, topology);
        visitor.each_message(conflict.step, &mut does, &mut |rank, sent, route_links| {
            let (taken, ends) = ((conflict.link, link), [rank, sent.peer]);
            each_equivalent(topology, &nodes, taken, ends, &route_links, |from, to| {
                listed.push(ConflictingMessage { from, to, bytes: sent.bytes });
            });
        });
    }
    listed.sort_unstable();
    listed.truncate(LISTED);
    conflict.listed = listed;
}

/// Calls `each` with the ends of the messages equivalent to one from `rank` that take a link.
fn each_equivalent(
    topology: &dyn Topology,
    &(ref nodes, times): &(RankClasses, u32),
    taken: (LinkId, Link),
    [rank, peer]: [Rank; 2],
    route_links: &RouteLinks<'_>,
    mut each: impl FnMut(Rank, Rank),
) {
    let size = topology.ranks() / topology.nodes();
    // Equivalent ranks of a node send equal messages.
    let within = |rank: Rank, turn: u32| match topology.shape() {
        Shape::Clustered(_) if times > 1 => {
            let first = rank.0 / size * size;
            Rank(first + (rank.0 - first + turn * (size / times)) % size)
        }
        _ => rank,
    };
    let at = Rank(taken.1.from);
    each_moved_onto((topology, nodes), taken, rank, route_links, |from| {
        for turn in 0..times {
            // By node, and the rank on it.
            let moved = |end: Rank| {
                let end = within(end, turn);
                let node = topology.node_of(end);
                let to = nodes.translated(Rank(node), from, at);
                match topology.shape() {
                    Shape::Clustered(_) if node != to.0 => Rank(end.0 - node * size + to.0 * size),
                    Shape::Clustered(_) => end,
                    _ => to,
                }
            };
            each(moved(rank), moved(peer));
        }
    });
}

/// Calls `each` with the nodes left by those links of a route that a translation moves onto a link.
fn each_moved_onto(
    (topology, nodes): (&dyn Topology, &RankClasses),
    (taken, link): (LinkId, Link),
    rank: Rank,
    route_links: &RouteLinks<'_>,
    mut each: impl FnMut(Rank),
) {
    let equivalent = |from: u32| nodes.class_of(Rank(from)) == nodes.class_of(Rank(link.from));
    match topology.network() {
        Shape::Grid(grid) if nodes.radix() == grid.radix() => {
            let (mut at, u) = (Rank(topology.node_of(rank)), link.class as usize);
            let RouteLinks::Route(route) = route_links else { return };
            for segment in route.segments() {
                let (v, length) = (segment.dimension as usize, segment.hops.abs());
                if (v, segment.hops.signum()) == (u, link.direction) {
                    // Along the line every period-th link is equivalent.
                    let period = i64::from(nodes.periods()[u]);
                    let along = |node| i64::from(grid.radix().coordinate(node, u));
                    let hops = (along(Rank(link.from)) - along(at)) * link.direction;
                    let first = hops.rem_euclid(period);
                    let moved = |hops| grid.radix().shifted(at, u, hops * link.direction);
                    if first < length && equivalent(moved(first).0) {
                        (first..length).step_by(period as usize).for_each(|hops| each(moved(hops)));
                    }
                }
                at = grid.radix().shifted(at, v, segment.hops);
            }
        }
        Shape::Graph(graph) if symmetry::folds(nodes, graph).is_some() => {
            let port =
                |link: LinkId, from| graph.leaving(from).position(|(leaving, _)| leaving == link);
            route_links.each_link(topology, rank, &mut |other| {
                let from = topology.link(other).expect("bug: a route over no link").from;
                if equivalent(from) && port(other, from) == port(taken, link.from) {
                    each(Rank(from));
                }
            });
        }
        _ => route_links.each_link(topology, rank, &mut |other| {
            if other == taken {
                each(Rank(link.from));
            }
        }),
    }
}

/// Calls `each` with the ends of the messages to node + shift that take a link. By dimension order
/// their slower coordinates are those of their destination, the faster those of their source.
fn list_shift(grid: &Grid, link: Link, shift: u32, mut each: impl FnMut(Rank, Rank)) {
    let (at, u) = (Rank(link.from), link.class as usize);
    let (radix, stride) = (grid.radix(), grid.radix().stride(u));
    let (ranks, block) = (u64::from(radix.ranks()), u64::from(stride) * u64::from(grid.sides()[u]));
    // The slower coordinates, as multiples of `block`, go back by those of the shift and by the
    // carry out of u and the faster coordinates.
    for start in shift::starts(grid, at, u, link.direction, shift) {
        let here = radix.shifted(at, u, start);
        let low = u64::from(here.0) % block;
        let carry = u64::from(low + u64::from(shift) % block >= block);
        let back = (u64::from(shift) / block + carry) * block;
        let from = (u64::from(here.0) + 2 * ranks - back) % ranks;
        let to = (from + u64::from(shift)) % ranks;
        each(Rank(from as u32), Rank(to as u32));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use topocoll_topology::Route;

    use super::*;
    use crate::traffic::{Posted, Share};

    /// Rank -> rank + shift, without classes.
    struct Shifted<'a>(&'a Machine, u32);

    impl Traffic for Shifted<'_> {
        fn nodes(&self) -> u32 {
            self.0.ranks()
        }
        fn steps(&self) -> u32 {
            1
        }
        fn share(&self, node: Rank, _step: u32, out: &mut Share) {
            let to = Rank((node.0 + self.1) % self.nodes());
            let mut route = Route::default();
            self.0.topology.route(node, to, &mut route);
            out.sends = vec![Posted { to, bytes: 3, route, ..Default::default() }];
            out.receives = 1;
        }
    }

    #[test]
    fn messages_listed_by_shift_are_those_on_the_link() {
        for wrap in [[true; 3], [false; 3], [true, false, true]] {
            let grid = Grid::new(&[4, 3, 5], &wrap).unwrap();
            let machine = Machine::of(Arc::new(grid.clone()));
            for shift in 1..60 {
                let traffic = Shifted(&machine, shift);
                let found = conflicts(&traffic, &machine, Some(1 << 20), 1 << 30).unwrap();
                for conflict in found.worst {
                    let link = grid.link(conflict.link).unwrap();
                    let mut listed = Vec::new();
                    list_shift(&grid, link, shift, |from, to| {
                        listed.push(ConflictingMessage { from, to, bytes: 3 });
                    });
                    listed.sort_unstable();
                    assert_eq!(listed, conflict.listed, "shift {shift}, {link:?}");
                    assert_eq!(listed.len() as u64, conflict.messages);
                }
            }
        }
    }

    #[test]
    fn all_links_are_named_where_they_fit_and_refused_where_not() {
        let machine = Machine::of(Arc::new(Grid::torus(&[4, 3, 5]).unwrap()));
        let named = |most, memory| conflicts(&Shifted(&machine, 7), &machine, Some(most), memory);
        assert_eq!(named(usize::MAX, 1 << 30), named(1000, 1 << 30));
        let refused = named(usize::MAX, 1 << 15).unwrap_err().to_string();
        assert!(refused.starts_with("conflicting links would take"), "{refused}");
    }
}
