//! Blocks hop by hop over any network of links between ranks: in each step every link carries a message of
//! the blocks that take it next. For machines without symmetry, such as tori with failed links.
//!
//! First each block gets a route, such that no link carries many more blocks than the others
//! ([`routes`]). Then steps are filled one by one: of the blocks that wait for a link, those with the most
//! links ahead go first, up to `link_blocks` of them. This is list scheduling of packets with routes of
//! congestion C and dilation D, for which about C / `link_blocks` + D steps suffice (Leighton, Maggs and
//! Rao, Combinatorica 14, 1994).
//!
//! On tori of more than 64 ranks, twisted or not, all ranks do the same, and one of them is planned ([`offsets`]): in as many steps as the
//! longest route has links, with the volume of the busiest direction.
//!
//! Claim: as many steps as are filled, and in each the largest message on a link. No link carries two
//! messages of a step. On `torus:4x4x4` with a failed link and 6 ports it takes 6 steps and a volume of 36;
//! the bound is 33.03. `tests/correctness/store_and_forward.rs` has other failures.

mod offsets;
mod routes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use topocoll_schedule::Parameters;

use self::offsets::{MOST_EQUIVALENT, Offsets};
use self::routes::Routes;
use crate::hops::{self, Links, Sent};
use crate::offsets::Torus;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Search, Solution, Values};

pub(crate) struct StoreAndForward;

/// The parameter of blocks on a link.
const LINK_BLOCKS: Parameter = Parameter::number(
    "link_blocks",
    "most blocks of a message; by default as many as the fewest steps need",
);

static INFO: Info = Info::new(
    "store-and-forward",
    "blocks hop by hop over any links between ranks, all ports at once",
    "balanced routes, the farthest blocks first; as Leighton, Maggs and Rao 1994",
)
.taking(&[LINK_BLOCKS]);

/// Fills steps with at most `most` blocks on each link.
fn filled(routes: &Routes, most: u32) -> Vec<Sent> {
    let links = routes.links();
    // By link, the blocks that wait: most links ahead, then the most loaded link ahead.
    let mut waiting: Vec<BinaryHeap<(u32, u32, Reverse<u32>)>> = vec![BinaryHeap::new(); links];
    let mut loads = routes.loads();
    let mut taken = vec![0u32; routes.count()];
    let enter = |waiting: &mut [BinaryHeap<_>], loads: &[u32], block: u32, taken: u32| {
        let ahead = &routes.of(block)[taken as usize..];
        if let Some(&next) = ahead.first() {
            let busiest = ahead.iter().map(|&link| loads[link as usize]).max().unwrap_or(0);
            waiting[next as usize].push((ahead.len() as u32, busiest, Reverse(block)));
        }
    };
    for block in 0..routes.count() as u32 {
        enter(&mut waiting, &loads, block, 0);
    }
    let mut sent = Vec::new();
    for step in 0.. {
        let first = sent.len();
        for (link, waiting) in (0..).zip(&mut waiting) {
            let count = waiting.len().min(most as usize);
            let blocks: Vec<u32> =
                (0..count).filter_map(|_| waiting.pop()).map(|(_, _, block)| block.0).collect();
            if !blocks.is_empty() {
                sent.push(Sent { step, link, blocks });
            }
        }
        if sent.len() == first {
            break;
        }
        for message in &sent[first..] {
            loads[message.link as usize] -= message.blocks.len() as u32;
        }
        for block in sent[first..].iter().flat_map(|message| &message.blocks) {
            taken[*block as usize] += 1;
            enter(&mut waiting, &loads, *block, taken[*block as usize]);
        }
    }
    sent
}

/// Estimated seconds of filling steps, and of listing the messages; more for blocks that exceed caches.
fn seconds_of_filling(ranks: u32, diameter: u32) -> f64 {
    const SECONDS_OF_HOP: f64 = 1e-7;
    let hops = f64::from(ranks).powi(2) * f64::from(diameter) / 2.0;
    SECONDS_OF_HOP * hops * (1.0 + f64::from(ranks) / 128.0)
}

/// The most ranks of other networks: every hop of every block is stored, which takes 0.7 GB on a broken 16x8x8.
const MOST_RANKS: (u32, &str) = (1024, "at most 1024 ranks, or a torus of at most 16384");

/// Bytes of a hop of a block, in routes, messages and the rule.
const BYTES_OF_HOP: u128 = 64;

/// Where blocks go.
enum Plan<'r> {
    /// All ranks do the same.
    Offsets(Arc<Offsets>),
    /// Each block has a route of its own.
    Blocks(Links<'r>, Arc<Routes>),
}

impl Plan<'_> {
    /// Blocks that the busiest link carries, and links of the longest route.
    fn largest(&self) -> (u32, u32) {
        match self {
            Self::Offsets(offsets) => (offsets.most_carried(), offsets.longest()),
            Self::Blocks(_, routes) => (routes.most_loaded(), routes.longest()),
        }
    }

    /// As many blocks on a link as end in few steps after the longest route.
    fn most_blocks(&self, spare: u32) -> u32 {
        let (carried, longest) = self.largest();
        carried.div_ceil(longest + spare).max(1)
    }
}

/// Up to this number of ranks each block has a route of its own on tori, too: blocks of half a ring go up from some
/// ranks and down from others, which saves some links a block.
const FEW_RANKS: u32 = 64;

/// The torus of a request on which one rank is planned for all.
fn torus<'r>(request: &Request<'r>) -> Option<Torus<'r>> {
    Torus::of(request.topology).filter(|_| request.problem.ranks > FEW_RANKS)
}

/// The network of a request, if every rank has a port for each of its links.
fn network<'r>(request: &Request<'r>) -> Result<Links<'r>, NotApplicable> {
    let most = if torus(request).is_some() { MOST_EQUIVALENT } else { MOST_RANKS };
    let graph = hops::network(request, most)?;
    let (least, ports) = (hops::all_ports(&graph), request.problem.ports);
    if ports < least {
        return Err(NotApplicable::FewPorts { least, ports });
    }
    Ok(graph)
}

fn plan<'r>(request: &Request<'r>) -> Result<Plan<'r>, NotApplicable> {
    let graph = network(request)?;
    if let Some(torus) = torus(request) {
        let offsets = || Offsets::new(&torus);
        return Ok(Plan::Offsets(request.kept("store-and-forward offsets", offsets)));
    }
    let routes = request.kept("store-and-forward routes", || Routes::new(&graph));
    Ok(Plan::Blocks(graph, routes))
}

impl Algorithm for StoreAndForward {
    fn info(&self) -> &Info {
        &INFO
    }

    /// From as few steps as the longest route has, to a small volume.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let plan = plan(request)?;
        let mut priced: Vec<u32> =
            [0, 1, 2, 4, 8, 16].iter().map(|&spare| plan.most_blocks(spare)).collect();
        priced.dedup();
        let setting = |blocks: u32| {
            Parameters::from([(LINK_BLOCKS.name.to_owned(), u64::from(blocks).into())])
        };
        Ok(priced.into_iter().map(setting).collect())
    }

    /// A message of a block for each link of the longest route at least.
    fn search(&self, request: &Request<'_>, setting: &Parameters) -> Option<Search> {
        let graph = network(request).ok()?;
        let ranks = graph.vertices();
        let links = (0..ranks).map(|rank| graph.leaving(rank).len() as f64).sum::<f64>();
        let steps = graph.diameter();
        let least = Claims { hops_floor: steps.into(), ..Claims::new(steps.into(), 0) };
        // Routes are found once, then steps are filled for each setting.
        let seconds = match torus(request) {
            Some(_) => offsets::seconds(ranks, steps),
            None if setting.is_empty() => routes::seconds(ranks, links),
            None => seconds_of_filling(ranks, steps),
        };
        Some(Search { seconds, least })
    }

    fn memory(&self, request: &Request<'_>) -> u128 {
        let Ok(graph) = network(request) else { return 0 };
        let (ranks, longest) = (u128::from(graph.vertices()), u128::from(graph.diameter()));
        let blocks = if torus(request).is_some() { ranks } else { ranks * ranks };
        BYTES_OF_HOP * blocks * longest / 2
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        network(request)?;
        let given = values.number(LINK_BLOCKS.name, 1, u32::MAX.into())?;
        let plan = plan(request)?;
        let most = given.map_or_else(|| plan.most_blocks(0), |most| most as u32);
        let solution = match &plan {
            Plan::Offsets(offsets) => {
                let (period, largest) = offsets.period(most);
                let claims = Claims::of_period(request.problem.block_bytes, &largest);
                Solution::new(request, values, period, claims)
            }
            Plan::Blocks(graph, routes) => {
                let of = format!("store-and-forward {most}");
                let sent = request.kept(of, || filled(routes, most));
                let of = (&**graph, routes.ends());
                hops::solution(request, values, of, &sent, |block| routes.block(block))
            }
        };
        Ok(solution.with(LINK_BLOCKS.name, u64::from(most)))
    }
}
