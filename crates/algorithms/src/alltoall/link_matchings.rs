//! Every block straight to its destination, in steps without link contention: the direct complete
//! exchange of a torus, mesh or grid with missing nodes or failed links.
//!
//! Such a grid has no symmetry, so all messages are examined, those of the longest routes first.
//! Each goes into the first step in which its ends have ports left and one of its shortest routes
//! is free, and takes that route, the first by dimension. Of one length messages come by the
//! distance in rank that they go, or by their sender; the order that needs fewer steps is kept.
//!
//! Claim: no link contention; as many steps, of one block each, as were opened.
//! `tests/correctness/lattices.rs` counts how far that is above the bound.

use topocoll_schedule::{Block, RankClasses, Rule, Slot, Step};
use topocoll_topology::{Graph, Rank, Route, Shape, Topology};

use crate::layout::matching_layout::MatchingLayout;
use crate::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};

pub(crate) struct LinkMatchings;

/// Every message is examined and stored.
const MOST_RANKS: u32 = 256;

/// A message's step, other end and route.
type RoutedPartner = (u32, Rank, Route);

struct Matchings {
    steps: u32,
    hops: u64,
    /// By rank, in order of steps.
    sends: Vec<Vec<RoutedPartner>>,
    receives: Vec<Vec<(u32, Rank)>>,
}

/// Steps by number, as bits.
type Steps = Vec<u64>;

fn word(steps: &Steps, word: usize) -> u64 {
    steps.get(word).copied().unwrap_or(0)
}

fn insert(steps: &mut Steps, step: u32) {
    let word = step as usize / 64;
    if steps.len() <= word {
        steps.resize(word + 1, 0);
    }
    steps[word] |= 1 << (step % 64);
}

/// The ports and links in use.
struct Fit {
    ranks: usize,
    per_rank: usize,
    ports: u32,
    /// By link, the rank that it leads to.
    ends: Vec<Option<Rank>>,
    /// By rank and destination.
    hops: Vec<u32>,
    /// By link, the steps in which it is.
    used: Vec<Steps>,
    /// By side and rank, the steps in which no port is left, and the messages of each step.
    full: [Vec<Steps>; 2],
    taken: [Vec<Vec<u32>>; 2],
    /// Scratch: ranks to go on from, and by rank the search and the link that it was reached by.
    open: Vec<usize>,
    reached: Vec<(u32, u32)>,
    search: u32,
}

impl Fit {
    fn new(lattice: &Graph, ports: u32) -> Self {
        let (ranks, per_rank) = (lattice.ranks() as usize, 2 * lattice.link_classes().len());
        let end = |link: usize| {
            let direction = if link % 2 == 0 { 1 } else { -1 };
            lattice.neighbour(Rank((link / per_rank) as u32), link % per_rank / 2, direction)
        };
        let hops = |i: usize| lattice.distance(Rank((i / ranks) as u32), Rank((i % ranks) as u32));
        let none = || vec![Steps::new(); ranks];
        Self {
            ranks,
            per_rank,
            ports,
            ends: (0..ranks * per_rank).map(end).collect(),
            hops: (0..ranks * ranks).map(hops).collect(),
            used: vec![Steps::new(); ranks * per_rank],
            full: [none(), none()],
            taken: [vec![Vec::new(); ranks], vec![Vec::new(); ranks]],
            open: Vec::new(),
            reached: vec![(0, 0); ranks],
            search: 0,
        }
    }

    fn hops(&self, from: usize, to: usize) -> u32 {
        self.hops[from * self.ranks + to]
    }

    /// The links that leave a rank on shortest routes, by falling direction and dimension.
    fn onward(&self, at: usize, to: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let links = (at * self.per_rank..(at + 1) * self.per_rank).rev();
        links.filter_map(move |link| {
            let next = self.ends[link]?.index();
            (self.hops(next, to) < self.hops(at, to)).then_some((link, next))
        })
    }

    /// Puts a message into the first step that has room; overwrites `route` with its links,
    /// backwards.
    fn put(&mut self, from: usize, to: usize, route: &mut Vec<u32>) -> u32 {
        let leaving: smallvec::SmallVec<[usize; 8]> =
            self.onward(from, to).map(|(link, _)| link).collect();
        // The reverse of a link has the opposite direction.
        let arriving: smallvec::SmallVec<[usize; 8]> = self
            .onward(to, from)
            .map(|(link, next)| next * self.per_rank + link % self.per_rank)
            .map(|link| link ^ 1)
            .collect();
        let room = |fit: &Self, w: usize| {
            let all = |links: &[usize]| {
                links.iter().fold(!0, |all, &link| all & word(&fit.used[link], w))
            };
            let full = word(&fit.full[0][from], w) | word(&fit.full[1][to], w);
            !(all(&leaving) | all(&arriving) | full)
        };
        let mut w = 0;
        let step = 'found: loop {
            let mut steps = room(self, w);
            while steps != 0 {
                let step = 64 * w as u32 + steps.trailing_zeros();
                if self.find(from, to, step, route) {
                    break 'found step;
                }
                steps &= steps - 1;
            }
            w += 1;
        };
        for &link in route.iter() {
            insert(&mut self.used[link as usize], step);
        }
        for (side, end) in [from, to].into_iter().enumerate() {
            let taken = &mut self.taken[side][end];
            taken.resize(taken.len().max(step as usize + 1), 0);
            taken[step as usize] += 1;
            if taken[step as usize] == self.ports {
                insert(&mut self.full[side][end], step);
            }
        }
        step
    }

    /// Looks for a shortest route that is free in a step.
    fn find(&mut self, from: usize, to: usize, step: u32, route: &mut Vec<u32>) -> bool {
        let (w, bit) = (step as usize / 64, 1 << (step % 64));
        self.search += 1;
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        open.push(from);
        while let Some(at) = open.pop() {
            if at == to {
                break;
            }
            let mut reached = std::mem::take(&mut self.reached);
            for (link, next) in self.onward(at, to) {
                let free = word(&self.used[link], w) & bit == 0;
                if free && reached[next].0 != self.search {
                    reached[next] = (self.search, link as u32);
                    open.push(next);
                }
            }
            self.reached = reached;
        }
        self.open = open;
        if self.reached[to].0 != self.search {
            return false;
        }
        route.clear();
        let mut at = to;
        while at != from {
            let link = self.reached[at].1;
            route.push(link);
            at = link as usize / self.per_rank;
        }
        true
    }

    fn route(&self, backwards: &[u32]) -> Route {
        let mut route = Route::default();
        let side = |link: &u32| *link as usize % self.per_rank;
        for part in backwards.chunk_by(|a, b| side(a) == side(b)).rev() {
            let hops = part.len() as i64;
            let (u, downwards) = (side(&part[0]) / 2, side(&part[0]) % 2 == 1);
            route.push(u as u32, if downwards { -hops } else { hops });
        }
        route
    }
}

impl Matchings {
    fn new(lattice: &Graph, ports: u32) -> Self {
        let orders = [true, false].map(|by_distance| Self::in_order(lattice, ports, by_distance));
        orders.into_iter().min_by_key(|found| found.steps).expect("bug: two orders")
    }

    fn in_order(lattice: &Graph, ports: u32, by_distance: bool) -> Self {
        let mut fit = Fit::new(lattice, ports);
        let ranks = lattice.ranks();
        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        let mut messages: Vec<(u32, u32)> = pairs.filter(|(from, to)| from != to).collect();
        messages.sort_by_key(|&(from, to)| {
            let hops = std::cmp::Reverse(fit.hops(from as usize, to as usize));
            (hops, if by_distance { (to + ranks - from) % ranks } else { 0 }, from, to)
        });
        let mut sends: Vec<Vec<RoutedPartner>> = vec![Vec::new(); ranks as usize];
        let mut receives = vec![Vec::new(); ranks as usize];
        let mut longest: Vec<u64> = Vec::new();
        let mut links = Vec::new();
        for (from, to) in messages {
            let step = fit.put(from as usize, to as usize, &mut links);
            longest.resize(longest.len().max(step as usize + 1), 0);
            longest[step as usize] = longest[step as usize].max(links.len() as u64);
            sends[from as usize].push((step, Rank(to), fit.route(&links)));
            receives[to as usize].push((step, Rank(from)));
        }
        sends.iter_mut().for_each(|ends| ends.sort_by_key(|&(step, to, _)| (step, to)));
        receives.iter_mut().for_each(|ends| ends.sort_unstable());
        Self { steps: longest.len() as u32, hops: longest.iter().sum(), sends, receives }
    }

    fn places(&self) -> MatchingLayout {
        MatchingLayout::of(self.sends.len() as u32)
    }
}

impl Rule for Matchings {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let sends = &self.sends[rank.index()];
        let first = sends.partition_point(|end| end.0 < step);
        for (_, to, route) in sends[first..].iter().take_while(|end| end.0 == step) {
            MatchingLayout::send(*to, route.clone(), out);
        }
        let receives = &self.receives[rank.index()];
        let first = receives.partition_point(|end| end.0 < step);
        for (_, from) in receives[first..].iter().take_while(|end| end.0 == step) {
            self.places().receive(*from, out);
        }
    }

    fn slots(&self) -> u64 {
        self.places().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().final_block(rank, slot)
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.sends.len() as u32)
    }
}

static INFO: Info = Info::new(
    "link-matchings",
    "every block straight to its destination around failed nodes and links, no link contention",
    "first fit of routes into steps, the longest first",
);

impl Algorithm for LinkMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let lattice = match request.topology.shape() {
            Shape::Graph(graph) => graph.lattice().map(|_| graph),
            _ => None,
        };
        let Some(lattice) = lattice else {
            let needs = "a grid with missing nodes or failed links, or a twisted torus";
            return Err(request.requires(needs));
        };
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS {
            let rule = "at most 256 ranks";
            return Err(NotApplicable::Ranks { rule, ranks });
        }
        let matchings = Matchings::new(lattice, request.problem.ports);
        let claims = Claims {
            hops: Some(matchings.hops.into()),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: true,
            hops_floor: matchings.hops.into(),
            ..Claims::new(matchings.steps.into(), request.bytes(matchings.steps))
        };
        Ok(Solution::new(request, values, matchings, claims))
    }
}
