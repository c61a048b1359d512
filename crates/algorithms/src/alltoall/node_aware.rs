//! All-to-all on clusters in messages of whole nodes: few startups, for small blocks (the leader,
//! multi-leader and node-aware exchanges; Bienz, Gropp and Olson 2019, Kinkead et al. 2025).
//!
//! First the ranks of a node exchange: blocks for their own node go to their destination, blocks
//! for other nodes to the rank that carries them. Then nodes exchange: the blocks of U for V are
//! one message, from a carrier of U to a carrier of V. Last, carriers distribute the received
//! blocks intra-node. `lanes` ranks of a node carry, or all if it has fewer. One is the node's
//! leader; several are leaders for a part of the other nodes each; with as many lanes as ranks, all
//! carry equally.
//!
//! Claim, on N nodes of s ranks: with one port 2 (s - 1) + N - 1 steps, and s^2 (N - 1) blocks
//! inter-node, the bound of the node's port; intra-node s - 1 messages of 1 + s c blocks and as
//! many of s c, c = ceil((N - 1) / lanes). With k ports, k rounds make a step; if the ports of a
//! node are more and no node has fewer ranks than lanes, k rounds of each of several carriers, all
//! of them where a node has as many ports: then ceil(c / k) steps inter-node.
//!
//! # Nodes of different sizes
//! Nodes leave in order of size. With `rounds=whole` a round is as long as the largest of all
//! messages of nodes i apart. With `rounds=cut` messages are cut where the clustered 1-factor
//! algorithm cuts them (`clustered_factor.rs`): the phase of node sizes done to current is for the
//! ranks done..current of the smaller node and all of the larger. That takes a round for every
//! phase and other node of its, and exactly max(size) (p - max(size)) blocks, the bound of the
//! largest node.
//!
//! # The layout
//! Every message is sent from consecutive slots. Four rooms: by rank of the node, the block for it
//! and those it carries; at a carrier the blocks it sends, by destination's node and then source (by
//! source last from a larger node, which cuts a message by destination), its own there from the
//! start; the blocks it receives, by rank of its node and then source; blocks that have arrived, by
//! source. Nodes are in order of distance from the own node in the order of falling sizes, and those
//! of a carrier are next to each other in it, so that what is received lands in a few strided runs,
//! and nothing is copied.

mod index;
mod steps;

use topocoll_schedule::{Parameters, Rule, Schedule};
use topocoll_topology::{Ports, Topology};

use self::index::Index;
use crate::factor::node_rounds::Rounds;
use crate::hierarchical::{BETWEEN, InterNode, TURNS, candidates};
use crate::layout::digits::Digits;
use crate::layout::node_rows::{Nodes, Row};
use crate::{
    Algorithm, ByLinks, Claims, Info, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

pub(crate) struct NodeAware;

struct Lanes {
    row: Row,
    ports: u32,
    /// Rounds of a carrier in a step between nodes.
    carrier_ports: u32,
    lanes: u32,
    /// Parts of the rounds, each with carriers of its own, and how many of them share steps.
    parts: u32,
    at_once: u32,
    cut: bool,
    /// The exchange between nodes, if it is not in the rounds of the phases.
    between_nodes: Option<Schedule>,
    /// Ranges of node sizes, the nodes active in each, and its first inter-node step; by the parts
    /// of the rounds that share steps.
    phases: Vec<Phase>,
    /// Steps of an intra-node exchange, and inter-node.
    inside: u32,
    between: u32,
    /// Slots of the two rooms of a carrier.
    rooms: [u64; 2],
}

#[derive(Clone, Copy)]
struct Phase {
    done: u32,
    current: u32,
    active: u32,
    /// The first of its parts of the rounds.
    part: u32,
    first: u32,
}

/// Nodes of a carrier: those at these distances, and their ranks in a row.
struct Chunk {
    distances: std::ops::Range<u32>,
    /// The position of the first of them.
    first: u32,
    ranks: u32,
}

impl Lanes {
    fn new(
        nodes: Nodes,
        ports: Ports,
        lanes: u32,
        cut: bool,
        between_nodes: Option<Schedule>,
    ) -> Self {
        let largest = nodes.clusters().largest();
        let count = nodes.clusters().nodes();
        let smallest = nodes.sizes()[0].1;
        let sizes = if cut { nodes.sizes() } else { vec![(0, largest, count)] };
        let carrier_ports = ports.rank.min(ports.node);
        let mut all = Self {
            row: Row::new(nodes),
            ports: ports.rank,
            carrier_ports,
            lanes,
            parts: 1,
            at_once: 1,
            cut,
            between_nodes,
            phases: Vec::new(),
            inside: (largest - 1).div_ceil(ports.rank),
            between: 0,
            rooms: [0; 2],
        };
        // Where a round has the same carrier on all nodes, several carriers send at once. A part
        // has as many rounds as a carrier has ports, or is a carrier's.
        let at_once = ports.node / carrier_ports;
        if !cut && lanes <= smallest && count > 1 && at_once > 1 {
            all.parts = lanes.min((count - 1).div_ceil(carrier_ports));
            all.at_once = at_once.min(all.parts);
        }
        for (done, current, active) in sizes {
            for part in (0..all.parts).step_by(all.at_once as usize) {
                let phase = Phase { done, current, active, part, first: all.between };
                all.between += all.steps_of(&phase);
                all.phases.push(phase);
            }
        }
        if let Some(schedule) = &all.between_nodes {
            all.between = schedule.rule().steps();
        }
        for position in 0..all.row.count() {
            let size = u64::from(all.row.size(position));
            let (out, back) = all.most_carried(position);
            all.rooms = [all.rooms[0].max(size * out), all.rooms[1].max(size * back)];
        }
        all
    }

    /// The rounds of the parts of a phase.
    fn parts_of(&self, phase: &Phase) -> impl Iterator<Item = std::ops::Range<u32>> {
        let active = phase.active;
        let parts = phase.part..self.parts.min(phase.part + self.at_once);
        parts.map(move |part| match self.parts {
            1 => 1..active,
            parts => self.row.distances(parts, part),
        })
    }

    fn steps_of(&self, phase: &Phase) -> u32 {
        let longest = self.parts_of(phase).map(|rounds| rounds.len() as u32).max();
        longest.unwrap_or(0).div_ceil(self.carrier_ports)
    }

    /// The rounds of a step of a phase.
    fn rounds(&self, phase: &Phase, step: u32) -> impl Iterator<Item = u32> {
        let ports = self.carrier_ports;
        self.parts_of(phase).flat_map(move |rounds| {
            let first = rounds.start.saturating_add(step.saturating_mul(ports));
            first..rounds.end.min(first.saturating_add(ports))
        })
    }

    /// The largest message of a round between nodes of these sizes, in blocks.
    fn largest(&self, phase: &Phase, round: u32, sizes: &[(u32, u32, u32)]) -> u64 {
        if self.cut {
            // The largest node takes part in every round.
            return u64::from(phase.current - phase.done) * u64::from(self.row.size(0));
        }
        // Nodes stand by falling size: of those of one size the first sends to the largest, unless
        // the last of them reach around.
        let larger = sizes[1..].iter().map(|&(.., nodes)| nodes).chain([0]);
        let product = |(&(_, size, end), first): (&(u32, u32, u32), u32)| {
            let to = first + round;
            let to = if to < phase.active && end + round > phase.active { 0 } else { to };
            u64::from(size) * u64::from(self.row.size(to % phase.active))
        };
        sizes.iter().zip(larger).map(product).max().unwrap_or(0)
    }

    /// The intra-node steps.
    fn inside(&self, block_bytes: u64) -> StepsOf {
        let mut inside = 0u128;
        // Every carrier takes part in all intra-node rounds.
        let carried: Vec<(u32, (u64, u64))> = (0..self.row.count())
            .map(|position| (self.row.size(position), self.most_carried(position)))
            .collect();
        for step in 0..self.inside {
            let round = 1 + step * self.ports;
            let (out, back) = (carried.iter().filter(|(size, _)| *size > round))
                .fold((0, 0), |most, (_, carried)| (carried.0.max(most.0), carried.1.max(most.1)));
            inside += u128::from(1 + out) + u128::from(back);
        }
        StepsOf::new((self.steps() - self.between).into(), inside, block_bytes)
    }

    /// The intra-node and the inter-node steps of the phases.
    fn by_links(&self, block_bytes: u64) -> ByLinks {
        let mut between = 0u128;
        let sizes = self.row.nodes().sizes();
        for phase in &self.phases {
            for step in 0..self.steps_of(phase) {
                let rounds = self.rounds(phase, step);
                let most = rounds.map(|round| self.largest(phase, round, &sizes)).max();
                between += u128::from(most.unwrap_or(0));
            }
        }
        ByLinks {
            intra_node: self.inside(block_bytes),
            inter_node: StepsOf::new(self.between.into(), between, block_bytes),
            ..ByLinks::default()
        }
    }
}

/// The parameter of exchanges inside nodes by digits.
const RADIX: &str = "radix";

/// Radices that are priced, if they take fewer steps than rounds. Beyond, steps grow faster than the volume falls.
/// Where there are too many nodes for rounds, the ranks of a node are priced too, which is as good.
const DIGITS: [u32; 4] = [2, 4, 8, 16];

/// The schedule whose ranks exchange inside nodes by digits.
fn index(
    request: &Request<'_>,
    values: &Values<'_>,
    between: Option<&InterNode<'_>>,
) -> Result<Solution, NotApplicable> {
    let clusters = request.clusters()?;
    let Some(size) = clusters.equal_size().filter(|_| clusters.nodes() > 1) else {
        return Err(request.requires("a cluster of several nodes of equal sizes"));
    };
    for name in ["rounds", TURNS.name] {
        if values.is_given(name) {
            return Err(values.refused(name, "for exchanges inside nodes in rounds: without radix"));
        }
    }
    let lanes = values.number("lanes", 1, size.into())?.map_or(size, |lanes| lanes as u32);
    let radix = values.number(RADIX, 2, size.into())?.unwrap_or_default() as u32;
    let inner = match between.map(|between| between.straight(false)).transpose()? {
        Some(None) => {
            let rule = "for an exchange between nodes that forwards blocks";
            return Err(values.refused(RADIX, rule));
        }
        inner => inner.flatten(),
    };
    let ports = request.problem.both_ports();
    let schedule = inner.as_ref().map(|inner| inner.schedule.clone());
    let rule = Index::new(clusters, ports, lanes, radix, schedule);
    if rule.most_slots() > index::MOST_SLOTS {
        let rule =
            "ranks of a node squared times the nodes for which a rank carries to be at most 2^25";
        return Err(NotApplicable::Ranks { rule, ranks: clusters.ranks() });
    }
    let block_bytes = request.problem.block_bytes;
    let together = request.problem.ports.max(rule.together());
    let solution = match (between, inner) {
        (Some(between), Some(inner)) => {
            let inside = rule.inside_nodes(block_bytes);
            let claims = between.claims(inside, &inner.claims, 1, 1);
            let claims = Claims { rearrangements: Some(0), copied_bytes: None, ..claims };
            let solution = Solution::new(request, values, rule, claims);
            between.named(solution, &inner)
        }
        _ => {
            let claims = Claims::of_cluster(rule.by_links(block_bytes), true);
            let claims = claims.of_rounds(request, Rounds::Shifts, together);
            Solution::new(request, values, rule, claims).without("rounds")
        }
    };
    Ok(solution.with("lanes", u64::from(lanes)).with(RADIX, u64::from(radix)))
}

static INFO: Info = Info::new(
    "node-aware",
    "ranks of a node collect the blocks for another node, one message between any two nodes",
    "after Bienz, Gropp and Olson 2019 and Kinkead et al. 2025; rounds of Sanders and Traeff 2002",
)
.by_node()
.taking(&[
    Parameter::number(
        "lanes",
        "ranks of a node that carry for it, 1 (a leader) to those of the largest node; by default \
         all, or with a between that forwards blocks as many as the ports allow",
    ),
    Parameter::number(
        RADIX,
        "on nodes of equal sizes, of the digits by which ranks of a node exchange, 2 (fewest steps) to the ranks \
         of a node (least volume); without it they exchange in rounds",
    ),
    BETWEEN,
    TURNS,
])
.with_internal(&[Parameter::words(
    "rounds",
    &[
        ("whole", "one message from node to node"),
        ("cut", "by node sizes, so that no node waits for larger ones"),
    ],
)]);

impl Algorithm for NodeAware {
    fn info(&self) -> &Info {
        &INFO
    }

    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let clusters = request.clusters()?;
        let largest = clusters.largest();
        let powers = (0..32).map(|i| 1 << i).take_while(|&lanes| lanes < largest);
        let differ = clusters.groups().any(|(.., size)| size != largest);
        let mut rounds = self.info().combinations();
        rounds.truncate(if differ { 2 } else { 1 });
        let setting = |lanes: u32, rounds: &Parameters| {
            let mut setting = rounds.clone();
            setting.insert("lanes".to_owned(), u64::from(lanes).into());
            setting
        };
        let settings = powers
            .chain([largest])
            .flat_map(|lanes| rounds.iter().map(move |rounds| setting(lanes, rounds)));
        let mut all: Vec<Parameters> = settings.chain(candidates(request)).collect();
        if differ || clusters.nodes() == 1 {
            return Ok(all);
        }
        // By digits, too, where all ranks of a node carry, in rounds or by a straight exchange between nodes.
        let carry = |setting: &&Parameters| {
            let lanes = Some(&u64::from(largest).into());
            setting.get("lanes") == lanes && !setting.contains_key(TURNS.name)
        };
        let no_rounds = Row::check(clusters).is_err().then_some(largest);
        let ports = request.problem.ports;
        let is_shorter = |&radix: &u32| {
            let rounds = (largest - 1).div_ceil(ports);
            radix < largest
                && (no_rounds.is_some() || Digits::new(largest, radix, ports).steps < rounds)
        };
        let radices = DIGITS.into_iter().filter(is_shorter).chain(no_rounds);
        let by_digits = radices.flat_map(|radix: u32| {
            all.iter().filter(carry).map(move |setting| {
                let mut setting = setting.clone();
                setting.remove("rounds");
                setting.insert(RADIX.to_owned(), u64::from(radix).into());
                setting
            })
        });
        let by_digits: Vec<Parameters> = by_digits.collect();
        all.extend(by_digits);
        Ok(all)
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let clusters = request.clusters()?;
        let largest = clusters.largest();
        let between = InterNode::of(request, values)?;
        if values.is_given(RADIX) {
            return index(request, values, between.as_ref());
        }
        let straight = between.as_ref().map_or(Ok(None), |between| between.straight(true))?;
        if let (Some(between), None) = (&between, &straight) {
            return between.hierarchical();
        }
        let lanes = values.number("lanes", 1, largest.into())?;
        Row::check(clusters)?;
        let lanes = lanes.map_or(largest, |lanes| lanes as u32);
        let nodes = Nodes::new(clusters);
        let ports = request.problem.both_ports();
        if let (Some(between), Some(inner)) = (&between, &straight) {
            values.number(TURNS.name, 1, 1)?;
            let rule = Lanes::new(nodes, ports, lanes, false, Some(inner.schedule.clone()));
            let inside = rule.inside(request.problem.block_bytes);
            // The copies of the exchange between nodes are left out.
            let claims = Claims {
                rearrangements: Some(0),
                copied_bytes: Some(0),
                ..between.claims(inside, &inner.claims, 1, 1)
            };
            let solution = Solution::new(request, values, rule, claims);
            return Ok(between.named(solution, inner).with("lanes", u64::from(lanes)));
        }
        let cut = values.is("rounds", "cut");
        let rule = Lanes::new(nodes, ports, lanes, cut, None);
        let together = request.problem.ports.max(rule.at_once * rule.carrier_ports);
        let claims = Claims::of_cluster(rule.by_links(request.problem.block_bytes), false);
        let claims = claims.of_rounds(request, Rounds::Shifts, together);
        Ok(Solution::new(request, values, rule, claims).with("lanes", u64::from(lanes)))
    }
}
