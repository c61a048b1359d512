//! Direct exchange in which ranks that share links send far apart: to different nodes, or groups of a dragonfly.
//!
//! In `direct.rs` the ranks of a node send to the same node or two in a round, so that a round takes as long as its
//! most loaded link, while others are idle. Here coordinate u of the receiver is x_u + a_u + sum over v > u of
//! m_uv x_v, around its side N_u, for the coordinates x of the sender and a of the round; the last of them is the place
//! on the node. So every round is a permutation, and over all rounds every pair of ranks meets once: in the order of
//! falling u, each a_u is determined by those before it.
//! - On a network of nodes, m is floor(N_u / N_v), at least 1, for the place v on the node, else 0. Where N_u divides
//!   N_v, the ranks of a node travel every distance along u equally often in each round, so that a round's links are
//!   loaded evenly, by the bisection bound's share. At half a ring messages from even coordinates go up and
//!   the others down.
//! - On a dragonfly, m_uv is the product of the sides between u and v: the ranks of a group send to as many different
//!   groups, those of a router to different routers' global links. With as many ranks in a group as there are
//!   other groups a round has one message on each global link, and two on most local links (all-to-all on a
//!   swapped dragonfly in as many rounds: Draper 2022).
//!
//! Claim: ceil(n / k) steps of one block each; every rank is idle in one of the n rounds.

use topocoll_schedule::RankClasses;
use topocoll_topology::{
    Clusters, Coordinates, Graph, Grid, MixedRadix, Rank, Route, Shape, Ties, Topology,
};

use crate::factor::direct_exchange::{self, DirectExchange, Partners};
use crate::{Algorithm, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct DirectSpread;

struct Spread {
    radix: MixedRadix,
    /// By coordinate u and v, how far x_v moves the receiver along u.
    apart: Vec<Coordinates>,
    /// The period of equivalent ranks along each coordinate.
    periods: Coordinates,
    /// The ranks on each node, if they are the last coordinate.
    size: Option<u32>,
    /// Whether the first coordinates are those of a dragonfly.
    is_grouped: bool,
    /// A grid with other routes than the machine's, and the ranks on its nodes.
    routed: Option<(Grid, u32)>,
}

impl Spread {
    fn new(topology: &dyn Topology) -> Option<Self> {
        let clusters = match topology.shape() {
            Shape::Clustered(clusters) => Some(clusters),
            _ => None,
        };
        let size = clusters.map_or(Some(1), Clusters::equal_size)?;
        let groups = match topology.network() {
            Shape::Graph(graph) => graph.groups(),
            _ => None,
        };
        let is_grouped = groups.is_some();
        let mut sides = match (groups, topology.network()) {
            (Some(groups), _) => groups.to_vec(),
            (None, Shape::Grid(grid)) => grid.sides().to_vec(),
            (None, Shape::Graph(graph)) => nodes_of(graph),
            (None, _) => vec![topology.nodes()],
        };
        if size > 1 {
            sides.push(size);
        }
        let last = sides.len() - 1;
        if last == 0 || topology.nodes() == 1 || (size == 1 && !is_grouped) {
            return None;
        }
        let between = |u: usize, v: usize| match (is_grouped, v) {
            (true, _) if u < v => sides[u + 1..v].iter().product::<u32>() % sides[u],
            (false, _) if u < v && v == last => (sides[u] / sides[v]).max(1),
            _ => 0,
        };
        let apart = (0..=last).map(|u| (0..=last).map(|v| between(u, v)).collect()).collect();
        let has_halves = |grid: &Grid| {
            let halves = grid.sides().iter().zip(grid.wrap());
            grid.ties() == Ties::Up && halves.clone().any(|(side, wraps)| *wraps && side % 2 == 0)
        };
        let routed = match topology.network() {
            Shape::Grid(grid) if has_halves(grid) => {
                Some((grid.clone().with_ties(Ties::Balanced), size))
            }
            _ => None,
        };
        // A route along a side that does not wrap is no translation of another.
        let wraps = |u: usize| routed.as_ref().is_none_or(|(grid, _): &(Grid, _)| grid.wrap()[u]);
        let is_period = |u: usize| if is_grouped { u == 0 } else { u < last && wraps(u) };
        let periods = (0..=last).map(|u| if is_period(u) { 1 } else { sides[u] }).collect();
        let radix = MixedRadix::new(&sides).ok()?;
        let size = (size > 1).then_some(size);
        Some(Self { radix, apart, periods, size, is_grouped, routed })
    }

    /// How far the receiver of a rank with these coordinates is along u, in a round.
    fn offset(&self, round: u32, u: usize, coordinate: impl Fn(usize) -> u32) -> u64 {
        let by = |v: usize| u64::from(self.apart[u][v]) * u64::from(coordinate(v));
        let more: u64 = (u + 1..self.radix.dimensions()).map(by).sum();
        u64::from(self.radix.coordinate(Rank(round), u)) + more
    }
}

/// The coordinates of a graph's nodes, or one.
fn nodes_of(graph: &Graph) -> Vec<u32> {
    graph.translations().map_or_else(|| vec![graph.ranks()], |radix| radix.sides().to_vec())
}

impl Partners for Spread {
    fn to(&self, rank: Rank, round: u32) -> Rank {
        let mut to = 0;
        for (u, &side) in self.radix.sides().iter().enumerate() {
            let own = self.radix.coordinate(rank, u);
            let offset = self.offset(round, u, |v| self.radix.coordinate(rank, v));
            to += ((u64::from(own) + offset) % u64::from(side)) as u32 * self.radix.stride(u);
        }
        Rank(to)
    }

    fn from(&self, rank: Rank, round: u32) -> Rank {
        let mut from = 0;
        for (u, &side) in self.radix.sides().iter().enumerate().rev() {
            let own = u64::from(self.radix.coordinate(rank, u));
            let offset = self.offset(round, u, |v| self.radix.coordinate(Rank(from), v));
            let side = u64::from(side);
            from += ((own + side - offset % side) % side) as u32 * self.radix.stride(u);
        }
        Rank(from)
    }

    fn route(&self, from: Rank, to: Rank) -> Route {
        let mut route = Route::default();
        if let Some((grid, size)) = &self.routed {
            let [from, to] = [from, to].map(|rank| Rank(rank.0 / size));
            if from != to {
                grid.route(from, to, &mut route);
            }
        }
        route
    }

    fn classes(&self) -> RankClasses {
        let classes = RankClasses::translations(self.radix.clone(), self.periods.clone());
        match &self.routed {
            Some((grid, _)) => classes.keeping_ties(grid),
            None => classes,
        }
    }

    fn rounds(&self) -> std::ops::Range<u32> {
        0..self.radix.ranks()
    }

    /// The last coordinate of a round does not move the receiver to another node, or router. Where it is 0 a rank
    /// there may be idle.
    fn class_of_round(&self, round: u32) -> Option<u64> {
        let of_router = self.equivalent_on_routers().map(|[.., nodes]| nodes);
        let size = self.size.or(of_router).filter(|_| self.routed.is_none())?;
        Some(u64::from(round / size) << 1 | u64::from(round % size == 0))
    }

    fn equivalent_on_routers(&self) -> Option<[u32; 3]> {
        self.radix.sides().try_into().ok().filter(|_| self.is_grouped && self.size.is_none())
    }
}

static INFO: Info = Info::new(
    "direct-spread",
    "every block straight to its destination; ranks that share links send far apart in a round",
    "here; on dragonflies after Draper 2022",
)
.by_node();

impl Algorithm for DirectSpread {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let needs = "a dragonfly, or several nodes of equal sizes above 1";
        let partners = Spread::new(request.topology).ok_or_else(|| request.requires(needs))?;
        let (ranks, ports) = (request.problem.ranks, request.ports_per_rank()?);
        let claims = direct_exchange::claims(request, &partners.rounds(), ports);
        let rule = DirectExchange { ranks, ports, partners };
        Ok(Solution::new(request, values, rule, claims))
    }
}
