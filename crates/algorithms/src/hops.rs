//! Schedules of messages that take one link each, on networks without switches.

use std::ops::Deref;
use std::sync::Arc;

use topocoll_schedule::{Block, Message, Part, Recorder};
use topocoll_topology::{Capacity, Graph, LinkId, Rank, Shape};

use crate::{Claims, NotApplicable, Request, Solution, Values};

/// A message on a link.
pub(crate) struct Sent {
    pub(crate) step: u32,
    /// By the order of [`ends`].
    pub(crate) link: u32,
    /// As the algorithm numbers them.
    pub(crate) blocks: Vec<u32>,
}

/// The links between ranks, those of a grid as a graph.
pub(crate) enum Links<'r> {
    OfGraph(&'r Graph),
    OfGrid(Arc<Graph>),
}

impl Deref for Links<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        match self {
            Self::OfGraph(graph) => graph,
            Self::OfGrid(graph) => graph,
        }
    }
}

/// The network of a request: a grid, or a graph of links of equal bandwidth between ranks. Of more than `most` ranks it
/// is refused by the rule.
pub(crate) fn network<'r>(
    request: &Request<'r>,
    (most, rule): (u32, &'static str),
) -> Result<Links<'r>, NotApplicable> {
    let (topology, ranks) = (request.topology, request.problem.ranks);
    let fits = if ranks > most { Err(NotApplicable::Ranks { rule, ranks }) } else { Ok(()) };
    let graph = match topology.shape() {
        Shape::Graph(graph) => fits.map(|()| Links::OfGraph(graph))?,
        Shape::Grid(grid) => {
            let graph = || Graph::of_grid(grid, &[]).expect("bug: too many nodes");
            fits.map(|()| Links::OfGrid(request.kept("links", graph)))?
        }
        _ => return Err(request.requires("a grid or a graph")),
    };
    if graph.vertices() != ranks {
        return Err(request.requires("ranks, no switches, at both ends of every link"));
    }
    let kinds = topology.link_kinds();
    if kinds.iter().any(|kind| kind.capacity != Capacity::CLASS) {
        return Err(request.requires("links of equal bandwidth"));
    }
    Ok(graph)
}

/// By link, the ranks at its ends.
pub(crate) fn ends(graph: &Graph) -> Vec<[Rank; 2]> {
    let ends = |from| graph.leaving(from).map(move |(_, to)| [Rank(from), Rank(to)]);
    (0..graph.vertices()).flat_map(ends).collect()
}

/// By rank, the links that lead to it.
pub(crate) fn entering(ends: &[[Rank; 2]], ranks: u32) -> Vec<Vec<u32>> {
    let mut entering = vec![Vec::new(); ranks as usize];
    for (link, [_, to]) in (0..).zip(ends) {
        entering[to.index()].push(link);
    }
    entering
}

/// The ports with which every rank sends and receives over all its links at once.
pub(crate) fn all_ports(graph: &Graph) -> u32 {
    let mut into = vec![0; graph.vertices() as usize];
    let all = (0..graph.vertices()).flat_map(|rank| graph.leaving(rank));
    all.for_each(|(_, to)| into[to as usize] += 1);
    let out = (0..graph.vertices()).map(|rank| graph.leaving(rank).len() as u32);
    out.chain(into).max().unwrap_or(0)
}

/// Steps, and the sum over them of the largest message.
pub(crate) fn counts(sent: &[Sent]) -> (u32, u64) {
    let mut largest: Vec<usize> = Vec::new();
    for message in sent {
        largest.resize(message.step as usize + 1, 0);
        let of_step = &mut largest[message.step as usize];
        *of_step = message.blocks.len().max(*of_step);
    }
    (largest.len() as u32, largest.iter().map(|&blocks| blocks as u64).sum())
}

/// The solution of some messages, in the order of steps; no two of a step are on one link.
pub(crate) fn solution(
    request: &Request<'_>,
    values: &Values<'_>,
    (graph, ends): (&Graph, &[[Rank; 2]]),
    sent: &[Sent],
    block: impl Fn(u32) -> Block,
) -> Solution {
    let mut recorder = Recorder::new(request.problem);
    for Sent { step, link, blocks } in sent {
        let [from, to] = ends[*link as usize];
        let route = graph.route_over(from, &[LinkId((*link).into())]);
        let route = Some(route.expect("bug: a link of another rank"));
        let mut named: Vec<Block> = blocks.iter().map(|&one| block(one)).collect();
        named.sort_unstable_by_key(|block| (block.to, block.from));
        let blocks = named.into_iter().map(|block| (block, Part::Whole)).collect();
        recorder.push(&Message { step: *step, from, to, route, blocks });
    }
    let (steps, volume) = counts(sent);
    let hops = u128::from(steps);
    let claims = Claims {
        hops: Some(hops),
        hops_floor: hops,
        rearrangements: Some(0),
        contention_free: true,
        ..Claims::new(steps.into(), request.bytes(volume))
    };
    Solution::new(request, values, recorder.finish(), claims)
}
