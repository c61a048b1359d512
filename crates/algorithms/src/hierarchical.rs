//! Hierarchical exchanges: an exchange between nodes, by one rank of each or several, before and after intra-node
//! steps.
//!
//! All nodes have equal sizes, s ranks each. The ranks of a node are divided into `lanes` of w
//! ranks each. First the ranks of a lane gather their blocks at its first rank, the carrier, along
//! a tree. Then the carriers of each lane perform the exchange between nodes: what is a block there
//! are all blocks of the lane for another node. Its routes are those of the nodes. Last, the ranks
//! of a node distribute what has arrived.
//!
//! The ports of a node are shared: `lanes` / `turns` lanes exchange at once, each with its part of
//! the ports, and the others in later turns.
//!
//! Claim, of an exchange of S steps and V blocks between N nodes, with k ports:
//! - the inter-node steps and volume are `turns` S and `turns` V w s in an all-to-all (V w in an
//!   all-gather), and the rearrangements those of every turn;
//! - gathering takes ceil(log_{k+1} w) steps of (w - 1) / k ranks' blocks, rounded by step;
//! - in an all-to-all, a single carrier distributes along a tree, and several in rounds, in which
//!   each sends to the i-th rank after it: ceil((s - 1) / k) steps of w N blocks;
//! - in an all-gather, a carrier broadcasts w N blocks in its lane along a tree; then ranks of
//!   equal place in their lanes gather the other lanes' as in `concat.rs`.
//!
//! # The layout
//! A slot of the exchange between nodes becomes w s slots, by source and then destination; in an
//! all-gather it becomes s, by source. Blocks keep their slots while they are gathered. If an
//! all-to-all has several carriers, each sends what has arrived to a second room, by slot of the
//! exchange and source.

mod schedule;

use std::ops::ControlFlow;

use topocoll_schedule::{Collective, MAX_BLOCK_BYTES, Parameters};
use topocoll_topology::{Clusters, Topology};

use self::schedule::Hierarchical;
use crate::front::front;
use crate::layout::node_rows::Row;
use crate::{
    Algorithm, ByLinks, Claims, NotApplicable, Parameter, Request, Solution, StepsOf, Values,
};

/// The parameter that names the exchange between nodes.
pub(crate) const BETWEEN: Parameter = Parameter::algorithm(
    "between",
    "the exchange between nodes of equal sizes, any of the operation that applies to their network",
);
/// The parameter of turns.
pub(crate) const TURNS: Parameter = Parameter::number(
    "turns",
    "with between, turns of the lanes, from the fewest that a node's ports allow (default) to the lanes",
);

/// Slots of a rank, at most.
const MOST_SLOTS: u128 = 1 << 40;
/// Messages of a node that are looked at where there are too many nodes for looking at all.
const LOOKED_AT: u64 = 64;
/// Messages that are looked at in all, a second, where the nodes are too many for [rows](Row).
const MOST_LOOKED_AT: u64 = 1 << 22;

/// A request for an exchange between nodes.
pub(crate) struct InterNode<'r> {
    request: &'r Request<'r>,
    values: &'r Values<'r>,
    clusters: &'r Clusters,
    /// Ranks of each node.
    size: u32,
}

impl<'r> InterNode<'r> {
    /// The exchange that the parameter names, if it is given.
    pub(crate) fn of(
        request: &'r Request<'r>,
        values: &'r Values<'r>,
    ) -> Result<Option<Self>, NotApplicable> {
        let clusters = request.clusters()?;
        let Some((name, _)) = values.algorithm(BETWEEN.name) else {
            let requires = || format!("{}=NAME", BETWEEN.name);
            let alone = values.is_given(TURNS.name);
            return if alone { Err(values.alone(TURNS.name, requires())) } else { Ok(None) };
        };
        if values.is_given("rounds") {
            return Err(values.refused("rounds", format!("for an exchange with between={name}")));
        }
        if clusters.nodes() == 1 {
            return Err(request.requires("a cluster of several nodes"));
        }
        if clusters.by_node().is_none() {
            return Err(request.requires("a machine with nodes of equal sizes"));
        }
        let size = clusters.largest();
        let slots = u128::from(clusters.ranks()) * u128::from(size);
        if slots > MOST_SLOTS {
            let rule = "nodes times ranks of a node squared to be at most 2^40";
            return Err(NotApplicable::Ranks { rule, ranks: clusters.ranks() });
        }
        Ok(Some(Self { request, values, clusters, size }))
    }

    /// Solves the exchange between nodes with blocks of `blocks` blocks.
    fn solve(&self, blocks: u64, ports: u32) -> Result<Solution, NotApplicable> {
        let part = self.request.part(&**self.clusters.network(), ports, self.request.bytes(blocks));
        let part = part.ok_or_else(|| {
            let rule = "for blocks of two nodes of more than 2^40 bytes";
            self.values.refused(BETWEEN.name, rule)
        })?;
        let solution = self.values.solve_named(BETWEEN.name, &part)?;
        Ok(solution.expect("bug: an exchange between nodes without a name"))
    }

    /// The exchange between nodes, with whole nodes' blocks for each other, if it is an all-to-all
    /// that sends each of them once: straight to its destination, in a message of its own. The nodes may be too many,
    /// if it is `in_rows` at once.
    pub(crate) fn straight(&self, in_rows: bool) -> Result<Option<Solution>, NotApplicable> {
        let size = u64::from(self.size);
        let solution = self.solve(size * size, self.request.carrier_ports())?;
        let (rule, others) = (solution.schedule.rule(), u64::from(self.clusters.nodes()) - 1);
        let classes = rule.classes();
        let too_many = u64::from(classes.count()) * others > MOST_LOOKED_AT;
        let too_large = Row::check(self.clusters).err().filter(|_| in_rows || too_many);
        // Every node sends its blocks for others at least once.
        let straight = |class: u32| {
            let (mut sent, mut single) = (0, true);
            rule.each_step(classes.representative(class), &mut |_, does| {
                for send in &does.sends {
                    sent += 1;
                    single &= send.slots.len() == 1;
                }
                let enough = if too_large.is_some() { sent >= LOOKED_AT } else { sent > others };
                if enough || !single { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            single && (sent == others || too_large.is_some())
        };
        if !straight(0) {
            return Ok(None);
        }
        if let Some(reason) = too_large {
            return Err(reason);
        }
        let all = (1..classes.count()).all(straight);
        Ok(all.then_some(solution))
    }

    /// The hierarchical schedule.
    pub(crate) fn hierarchical(&self) -> Result<Solution, NotApplicable> {
        let (values, ports, size) = (self.values, self.request.problem.both_ports(), self.size);
        let divides = |lanes: &u32| size % lanes == 0;
        let lanes = match values.number("lanes", 1, size.into())?.map(|lanes| lanes as u32) {
            None => (1..=size.min(ports.node)).rev().find(divides).unwrap_or(1),
            Some(lanes) if divides(&lanes) => lanes,
            Some(_) => {
                let rule = format!("a divisor of the {size} ranks of a node");
                return Err(values.refused("lanes", rule));
            }
        };
        let fewest = lanes.div_ceil(ports.node);
        let turns = values.number(TURNS.name, fewest.into(), lanes.into())?;
        let at_once = lanes.div_ceil(turns.map_or(fewest, |turns| turns as u32));
        let turns = lanes.div_ceil(at_once);
        let unit = match self.request.problem.operation {
            Collective::AllToAll => size,
            Collective::AllGather => 1,
        };
        let blocks = u64::from(size / lanes) * u64::from(unit);
        let between = self.solve(blocks, ports.rank.min(ports.node / at_once))?;
        let rule = Hierarchical::new(self, between.schedule.clone(), lanes, at_once)?;
        let inside = rule.inside(self.request.problem.block_bytes);
        let claims = self.claims(inside, &between.claims, turns, at_once);
        let solution = Solution::new(self.request, values, rule, claims);
        Ok(self
            .named(solution, &between)
            .with("lanes", u64::from(lanes))
            .with(TURNS.name, u64::from(turns)))
    }

    /// The claims of a hierarchical schedule: its intra-node steps, and the exchange between nodes in
    /// turns.
    pub(crate) fn claims(
        &self,
        inside: StepsOf,
        between: &Claims,
        turns: u32,
        at_once: u32,
    ) -> Claims {
        let turns = u64::from(turns);
        let all = u128::from(turns);
        let inter_node = StepsOf { steps: turns * between.steps, bytes: all * between.bytes };
        let rearrangements = between.rearrangements.map(|times| times * turns as u32);
        if self.clusters.network().links() == 0 {
            let by_links = ByLinks { intra_node: inside, inter_node, ..ByLinks::default() };
            return Claims { rearrangements, ..Claims::of_cluster(by_links, true) };
        }
        Claims {
            hops: between.hops.map(|hops| all * hops),
            rearrangements,
            contention_free: between.contention_free && at_once == 1,
            link_bytes_floor: inside.bytes + all * between.link_bytes_floor,
            hops_floor: all * between.hops_floor,
            ..Claims::new(inside.steps + inter_node.steps, inside.bytes + inter_node.bytes)
        }
    }

    /// A solution with the parameters of the exchange between nodes, and without those it replaces.
    pub(crate) fn named(&self, solution: Solution, between: &Solution) -> Solution {
        solution.without("rounds").with_named(&BETWEEN, between)
    }
}

/// The settings with which an algorithm is hierarchical, as far as they are worth pricing: one
/// carrier for each node, or all ranks, together or in turn.
pub(crate) fn candidates(request: &Request<'_>) -> Vec<Parameters> {
    let Ok(clusters) = request.clusters() else { return Vec::new() };
    let (network, size, ports) = (clusters.network(), clusters.largest(), request.carrier_ports());
    let operation = request.problem.operation;
    // Where nodes are fully connected, other all-to-alls are as short without intra-node steps.
    let better = network.links() > 0 || operation == Collective::AllGather;
    if clusters.by_node().is_none() || size == 1 || network.ranks() == 1 || !better {
        return Vec::new();
    }
    let bytes = request.bytes(size).min(MAX_BLOCK_BYTES.into());
    let Some(inner) = request.part(&**network, ports, bytes) else { return Vec::new() };
    let named = inner.inner().flat_map(|algorithm| {
        settings(&inner, algorithm)
            .into_iter()
            .map(|own| BETWEEN.naming(&algorithm.info().name, &own))
    });
    let carried = [(1, None), (size, None), (size, Some(size))];
    let some = if request.problem.node_ports > 1 { 3 } else { 2 };
    let carried = named.flat_map(|named| {
        carried[..some].iter().map(move |&(lanes, turns)| {
            let turns = turns.map(|turns| (TURNS.name, turns));
            let both = [("lanes", lanes)].into_iter().chain(turns);
            let numbers = both.map(|(key, value)| (key.to_owned(), u64::from(value).into()));
            named.clone().into_iter().chain(numbers).collect()
        })
    });
    carried.collect()
}

/// Some of an algorithm's settings, on its Pareto front of claimed steps and bytes.
fn settings(request: &Request<'_>, algorithm: &dyn Algorithm) -> Vec<Parameters> {
    /// The most settings.
    const SOME: usize = 4;
    /// The longest search, in seconds.
    const LONGEST: f64 = 0.1;
    let is_short = |setting: &Parameters| {
        request.search(algorithm, setting).is_none_or(|search| search.seconds <= LONGEST)
    };
    if !is_short(&Parameters::new()) {
        return Vec::new();
    }
    let mut settings = request.candidates(algorithm).unwrap_or_default();
    settings.retain(is_short);
    if settings.len() == 1 {
        return settings;
    }
    let claimed = settings.into_iter().filter_map(|setting| {
        let claims = request.solve(algorithm, &setting).ok()?.claims;
        Some((claims.steps, claims.bytes.max(claims.link_bytes_floor), setting))
    });
    front(claimed.collect(), SOME).into_iter().map(|(_, setting)| setting).collect()
}
