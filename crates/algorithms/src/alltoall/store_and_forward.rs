//! Blocks hop by hop over any network of links between ranks: in each step every link carries a message of
//! the blocks that take it next. For machines without symmetry, such as tori with failed links.
//!
//! First each block gets a route, such that no link carries many more blocks than the others
//! ([`routes`]). Then steps are filled one by one: of the blocks that wait for a link, those with the most
//! links ahead go first, up to `link_blocks` of them. This is list scheduling of packets with routes of
//! congestion C and dilation D, for which about C / `link_blocks` + D steps suffice (Leighton, Maggs and
//! Rao, Combinatorica 14, 1994).
//!
//! Claim: as many steps as are filled, and in each the largest message on a link. No link carries two
//! messages of a step. On `torus:4x4x4` with a failed link and 6 ports it takes 6 steps and a volume of 36;
//! the bound is 33.03. `tests/correctness/store_and_forward.rs` has other failures.

mod routes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use topocoll_schedule::Parameters;
use topocoll_topology::Graph;

use self::routes::Routes;
use crate::hops::{self, Links, Sent};
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

/// The most ranks: every hop of every block is stored, which takes 0.7 GB on a torus of 8x8x16.
const MOST_RANKS: (u32, &str) = (1024, "at most 1024 ranks");

/// The network of a request, if every rank has a port for each of its links.
fn network<'r>(request: &Request<'r>) -> Result<Links<'r>, NotApplicable> {
    let graph = hops::network(request, MOST_RANKS)?;
    let (least, ports) = (hops::all_ports(&graph), request.problem.ports);
    if ports < least {
        return Err(NotApplicable::FewPorts { least, ports });
    }
    Ok(graph)
}

fn routes(request: &Request<'_>, graph: &Graph) -> Arc<Routes> {
    request.kept("store-and-forward routes", || Routes::new(graph))
}

/// As many blocks on a link as end in few steps after the longest route.
fn most_blocks(routes: &Routes, spare: u32) -> u32 {
    routes.most_loaded().div_ceil(routes.longest() + spare).max(1)
}

impl Algorithm for StoreAndForward {
    fn info(&self) -> &Info {
        &INFO
    }

    /// From as few steps as the longest route has, to a small volume.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let graph = network(request)?;
        let routes = routes(request, &graph);
        let mut priced: Vec<u32> =
            [0, 1, 2, 4, 8, 16].iter().map(|&spare| most_blocks(&routes, spare)).collect();
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
        let seconds = match setting.is_empty() {
            true => routes::seconds(ranks, links),
            false => seconds_of_filling(ranks, steps),
        };
        Some(Search { seconds, least })
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let graph = network(request)?;
        let given = values.number(LINK_BLOCKS.name, 1, u32::MAX.into())?;
        let routes = routes(request, &graph);
        let most = given.map_or_else(|| most_blocks(&routes, 0), |most| most as u32);
        let sent = request.kept(format!("store-and-forward {most}"), || filled(&routes, most));
        let of = (&*graph, routes.ends());
        let solution = hops::solution(request, values, of, &sent, |block| routes.block(block));
        Ok(solution.with(LINK_BLOCKS.name, u64::from(most)))
    }
}
