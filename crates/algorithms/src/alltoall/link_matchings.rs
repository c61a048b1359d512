//! Every block straight to its destination, in steps in which no link carries more than a given
//! number of messages: the direct complete exchange of any machine with numbered links.
//!
//! Such a machine need not have any symmetry, so all messages are examined, those of the longest
//! routes first. Each goes into the first step in which its ranks and nodes have ports left and one
//! of its shortest routes is free, and takes that route.
//!
//! Then steps are removed. The messages of the step with the fewest hops are inserted into the
//! others, each where the messages that it displaces weigh the least, over any shortest route; these
//! are inserted next. A message weighs more the longer its route, and the more often it has found no
//! room. Such ejection with weights that grow is the route minimization of Nagata and Braysy,
//! Operations Research Letters 37, 2009, for vehicles.
//!
//! Of more than 512 ranks the first fit stays. Messages come by the distance in rank that they go, some distances at a
//! time that are spread over all, and each goes into one of the last steps, so that time grows with the messages: a
//! random graph of 1,024 nodes with 6 links each takes 1,094 steps, and the bound is 1,023.
//!
//! With `link_messages` above 1, several messages share a link in a step: fewer startups. In the same
//! way the messages on a link are then lowered step by step, as far as no step is added, so the volume
//! stays near the bound. A link of c times the bandwidth of its class carries c times as many messages,
//! rounded down, and at least one. Bandwidths in bytes per second are compared with the slowest of
//! them.
//!
//! Claim: as many steps, of one block each, as are left; the charge of links and the hops as counted
//! message by message; no link contention if no link carries two messages of a step. A hypercube of 64
//! ranks and 6 ports takes 33 steps, or 11 that carry 33 messages on a link in all; the bounds are 32 and
//! 11. `tests/correctness/link_matchings.rs` compares others with the bounds.

mod ejection;
mod first_fit;
mod network;

use std::ops::Range;
use std::sync::Arc;

use topocoll_schedule::{Block, Parameters, Rule, Setting, Slot, Step};
use topocoll_topology::{Rank, Shape};

use self::ejection::improve;
use self::first_fit::first_fit;
use self::network::Network;
use crate::layout::matching_layout::MatchingLayout;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Search, Solution, Values};

pub(crate) struct LinkMatchings;

/// Every message is examined and stored.
const MOST_RANKS: u32 = 4096;
/// Ranks up to which steps are removed; beyond, the first fit stays.
const SEARCHED: u32 = 512;

/// The volume that is found, over that of the first fit with one message on a link: on some 200 machines of up to 256
/// ranks at least the first of these less one, and mostly above 0.95; on more ranks, of which the search has less
/// time for each, at least the second, but for dragonflies.
const EXPECTED: [f64; 2] = [0.85, 0.92];

/// The most hops of all messages of a plan that is kept: 128 MB.
const MOST_KEPT: usize = 1 << 25;

/// Messages of all ranks in their steps.
#[derive(Clone)]
struct Assignment {
    steps: u32,
    /// By message.
    step: Vec<u32>,
    /// The bundles of all routes, message by message.
    routes: Vec<u32>,
}

impl Assignment {
    fn new(network: &Network) -> Self {
        let messages = network.ranks() * network.ranks();
        Self { steps: 0, step: vec![0; messages], routes: vec![0; network.hops()] }
    }
}

/// Whether plans are small enough to be kept.
fn fits(network: &Network) -> bool {
    network.hops() <= MOST_KEPT
}

/// The better of two orders, or of many ranks the one that is mostly better.
fn first(network: &Network, link_messages: u32) -> Assignment {
    let first = first_fit(network, link_messages, true);
    if network.ranks() > SEARCHED as usize {
        return first;
    }
    let other = first_fit(network, link_messages, false);
    if other.steps < first.steps { other } else { first }
}

/// The same with one message on a link, which is also looked at before a search.
fn first_of_one(request: &Request<'_>, network: &Network) -> Arc<Assignment> {
    kept(request, "first", fits(network), || first(network, 1))
}

/// The better of two orders, improved.
fn planned(request: &Request<'_>, network: &Network, link_messages: u32) -> Assignment {
    let first = match link_messages {
        1 => Arc::unwrap_or_clone(first_of_one(request, network)),
        _ => first(network, link_messages),
    };
    improve(network, link_messages, first)
}

/// The value, kept unless it is too large.
fn kept<V: Send + Sync + 'static>(
    request: &Request<'_>,
    what: &str,
    fits: bool,
    compute: impl FnOnce() -> V,
) -> Arc<V> {
    if !fits {
        return Arc::new(compute());
    }
    request.kept(format!("link-matchings {what} {:?}", request.problem.both_ports()), compute)
}

struct Matchings {
    network: Arc<Network>,
    steps: u32,
    /// By step, the first of its messages; one more entry at the end.
    first: Vec<usize>,
    /// The messages, step by step: sender and receiver, by sender, and receiver and sender, by receiver.
    sends: Vec<[Rank; 2]>,
    receives: Vec<[Rank; 2]>,
    /// By message sent, the first link of its route; one more entry at the end.
    first_link: Vec<u32>,
    links: Vec<u32>,
    /// The sum over steps of the most hops.
    hops: u64,
    /// By step, the most messages on a link over its capacity, as a fraction of at least 1.
    charges: Vec<(u64, u32)>,
    /// Whether a link carries several messages in a step.
    shared: bool,
}

impl Matchings {
    fn new(request: &Request<'_>, network: Arc<Network>, link_messages: u32) -> Self {
        // Where fewer messages on a link are enough for as few steps as ports allow, they are tried.
        let fewest = network.fewest_link_messages();
        let mut best = planned(request, &network, link_messages.min(fewest));
        if link_messages > fewest && best.steps > network.least_steps(link_messages) {
            let more = planned(request, &network, link_messages);
            if more.steps < best.steps {
                best = more;
            }
        }
        let mut matchings = Self {
            steps: best.steps,
            first: vec![0],
            sends: Vec::new(),
            receives: Vec::new(),
            first_link: vec![0],
            links: Vec::with_capacity(network.hops()),
            hops: 0,
            charges: vec![(1, 1); best.steps as usize],
            shared: false,
            network,
        };
        matchings.settle(&best);
        matchings
    }

    /// Lists the messages of each step, gives each a link of every bundle, and counts.
    fn settle(&mut self, Assignment { step, routes, .. }: &Assignment) {
        let Self { network, first, sends, receives, first_link, links, .. } = self;
        let ranks = network.ranks();
        let mut messages: Vec<usize> = network.messages().collect();
        messages.sort_by_key(|&message| step[message]);
        let (mut carried, mut taken) = (vec![0; network.shared()], Vec::new());
        for messages in messages.chunk_by(|&a, &b| step[a] == step[b]) {
            let (step, mut hops) = (step[messages[0]], 0);
            first.resize(step as usize + 1, sends.len());
            for &message in messages {
                let [from, to] = [message / ranks, message % ranks].map(|end| Rank(end as u32));
                sends.push([from, to]);
                receives.push([to, from]);
                hops = hops.max(network.distance(message));
                for &bundle in &routes[network.hops_of(message)] {
                    let bundle = bundle as usize;
                    if carried[bundle] == 0 {
                        taken.push(bundle);
                    }
                    links.push(network.link(bundle, carried[bundle]));
                    carried[bundle] += 1;
                }
                first_link.push(links.len() as u32);
            }
            receives[sends.len() - messages.len()..].sort_unstable();
            self.hops += u64::from(hops);
            let charge = &mut self.charges[step as usize];
            for bundle in taken.drain(..) {
                let (most, own) = network.load(bundle, std::mem::take(&mut carried[bundle]));
                self.shared |= most > 1;
                let times = |a: u64, b: u32| u128::from(a) * u128::from(b);
                if times(own.0, charge.1) > times(charge.0, own.1) {
                    *charge = own;
                }
            }
        }
        first.resize(self.steps as usize + 1, sends.len());
    }

    /// The sum over steps of the bytes that the busiest link is charged.
    fn link_bytes(&self, block_bytes: u64) -> u128 {
        let charge = |&(blocks, over): &(u64, u32)| {
            (u128::from(blocks) * u128::from(block_bytes)).div_ceil(over.into())
        };
        self.charges.iter().map(charge).sum()
    }

    /// The places of a rank's messages of a step among the messages sent, or received.
    fn places(&self, ends: &[[Rank; 2]], rank: Rank, step: u32) -> Range<usize> {
        let first = self.first[step as usize];
        let of_step = &ends[first..self.first[step as usize + 1]];
        let own = of_step.partition_point(|end| end[0] < rank);
        let count = of_step[own..].iter().take_while(|end| end[0] == rank).count();
        first + own..first + own + count
    }

    fn layout(&self) -> MatchingLayout {
        MatchingLayout::of(self.network.ranks() as u32)
    }
}

/// The schedule of matchings.
struct Planned(Arc<Matchings>);

impl Rule for Planned {
    fn steps(&self) -> u32 {
        self.0.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let Matchings { network, sends, receives, first_link, links, .. } = &*self.0;
        for place in self.0.places(sends, rank, step) {
            let route = &links[first_link[place] as usize..first_link[place + 1] as usize];
            self.0.layout().send(rank, sends[place][1], network.route(route), out);
        }
        for place in self.0.places(receives, rank, step) {
            self.0.layout().receive(rank, receives[place][1], out);
        }
    }

    fn slots(&self) -> u64 {
        self.0.layout().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.layout().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.layout().final_block(rank, slot)
    }
}

/// The most messages that share a link.
const MOST_LINK_MESSAGES: u32 = 1024;

/// The parameter of messages that share a link.
const LINK_MESSAGES: Parameter = Parameter::number(
    "link_messages",
    "messages that may share a link in a step, from 1 (default) to 1024",
);

static INFO: Info = Info::new(
    "link-matchings",
    "every block straight to its destination over any grid or graph, few messages on a link",
    "first fit of routes into steps, the longest first; ejection as in Nagata and Braysy 2009",
)
.taking(&[LINK_MESSAGES]);

/// The links and messages of a request.
fn network(request: &Request<'_>) -> Result<Arc<Network>, NotApplicable> {
    let (topology, ranks) = (request.topology, request.problem.ranks);
    if let Shape::Complete | Shape::Clustered(_) = topology.network() {
        return Err(request.requires("a grid, a graph, or nodes on one"));
    }
    if ranks > MOST_RANKS {
        let rule = "at most 4096 ranks";
        return Err(NotApplicable::Ranks { rule, ranks });
    }
    let new = || Network::new(topology, request.problem.both_ports()).map(Arc::new);
    let network = Option::clone(&kept(request, "network", true, new));
    network.ok_or_else(|| request.requires("a network of at most 67108864 links on all routes"))
}

/// The setting of a search.
fn given(setting: &Parameters) -> Option<u32> {
    match setting.get(LINK_MESSAGES.name)? {
        Setting::Integer(given) => Some(*given as u32),
        _ => None,
    }
}

/// Claims of at least as many steps as ports and links allow for a volume.
fn least(request: &Request<'_>, network: &Network, link_messages: u32, volume: u32) -> Claims {
    let steps = network.least_steps(link_messages).max(volume.div_ceil(link_messages));
    Claims {
        hops_floor: network.least_hops(link_messages).into(),
        link_bytes_floor: request.bytes(steps.max(volume)),
        ..Claims::new(steps.into(), request.bytes(steps))
    }
}

impl Algorithm for LinkMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    /// One message on a link, two, and as few as make ports, not links, limit the steps.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let network = network(request)?;
        let most = network.fewest_link_messages().min(MOST_LINK_MESSAGES);
        let mut priced = vec![1, most.min(2), most];
        priced.dedup();
        let setting = |priced: u32| {
            Parameters::from([(LINK_MESSAGES.name.to_owned(), u64::from(priced).into())])
        };
        Ok(priced.into_iter().map(setting).collect())
    }

    /// At least as many steps as ports and links allow.
    fn search(&self, request: &Request<'_>, setting: &Parameters) -> Option<Search> {
        let (network, given) = (network(request).ok()?, given(setting));
        let fewest = network.fewest_link_messages();
        let most = given.unwrap_or(fewest.min(MOST_LINK_MESSAGES));
        let least = least(request, &network, most, 0);
        // Steps are removed, and then messages on links; for fewer messages on a link, too.
        let searches = match given {
            None => 0,
            Some(1) => 1,
            Some(given) if given <= fewest => 2,
            Some(_) => 4,
        };
        let seconds = f64::from(searches) * ejection::seconds(&network);
        Some(Search { seconds, least })
    }

    /// Not much less volume than the first fit has with one message on a link.
    fn expected(&self, request: &Request<'_>, setting: &Parameters) -> Option<Claims> {
        let (network, link_messages) = (network(request).ok()?, given(setting)?);
        let steps = f64::from(first_of_one(request, &network).steps);
        let share = match request.problem.ranks {
            0..=256 => EXPECTED[0],
            ranks if ranks <= SEARCHED => EXPECTED[1],
            _ => 1.0,
        };
        let volume = (share * steps - 1.0).max(0.0) as u32;
        Some(least(request, &network, link_messages, volume))
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let network = network(request)?;
        let link_messages =
            values.number(LINK_MESSAGES.name, 1, MOST_LINK_MESSAGES.into())?.unwrap_or(1);
        let link_messages = link_messages as u32;
        let plan = || Matchings::new(request, Arc::clone(&network), link_messages);
        let what = format!("of {link_messages}");
        let matchings = kept(request, &what, fits(&network), plan);
        let (steps, hops) = (matchings.steps, u128::from(matchings.hops));
        let claims = Claims {
            hops: Some(hops),
            rearrangements: Some(0),
            copied_bytes: Some(0),
            contention_free: !matchings.shared,
            link_bytes_floor: matchings.link_bytes(request.problem.block_bytes),
            hops_floor: hops,
            ..Claims::new(steps.into(), request.bytes(steps))
        };
        let solution = Solution::new(request, values, Planned(matchings), claims);
        Ok(solution.with(LINK_MESSAGES.name, u64::from(link_messages)))
    }
}
