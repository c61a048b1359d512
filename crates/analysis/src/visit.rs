//! One visitor of steps, classes of ranks, messages and their links, for all that counts them.

use topocoll_schedule::{RankClasses, Schedule, SlotSet, Step, Transfer};
use topocoll_topology::{LinkId, Machine, Rank, Route, Shape, Topology};

use crate::loads::Loads;
use crate::route_links::RouteLinks;
use crate::shift::{Cyclic, Shift};
use crate::symmetry::Equivalent;
use crate::traffic::{Share, Traffic};

/// Whose messages are visited.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Schedule(&'a Schedule),
    Traffic(&'a dyn Traffic),
}

impl<'a> Source<'a> {
    /// The schedule of traffic, or traffic without one.
    pub(crate) fn of(traffic: &'a dyn Traffic) -> Self {
        traffic.schedule().map_or(Self::Traffic(traffic), Self::Schedule)
    }

    pub(crate) fn schedule(self) -> Option<&'a Schedule> {
        match self {
            Self::Schedule(schedule) => Some(schedule),
            Self::Traffic(_) => None,
        }
    }

    /// Equivalent ranks on a machine, where the source has these classes.
    pub(crate) fn equivalent(self, classes: &RankClasses, topology: &dyn Topology) -> Equivalent {
        Equivalent::of(classes, topology, || !self.names_routes(classes))
    }

    /// Whether a message has a route of its own.
    fn names_routes(self, classes: &RankClasses) -> bool {
        match self {
            Self::Schedule(schedule) => schedule.rule().names_routes(classes),
            Self::Traffic(traffic) => {
                let mut share = Share::default();
                (0..traffic.steps()).any(|step| {
                    classes.representatives().any(|rank| {
                        traffic.share(rank, step, &mut share);
                        share.sends.iter().any(|send| !send.free)
                    })
                })
            }
        }
    }
}

/// The sizes of the blocks of a schedule in slots.
#[derive(Clone, Copy)]
pub(crate) enum Weights<'w> {
    /// All blocks have the size of the problem.
    Equal,
    /// The bytes in each slot, rank by rank, and the slots of a rank. A message of no bytes is not sent.
    Each(&'w [u64], usize),
}

/// Visits one rank of each class.
pub(crate) struct Visitor<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) machine: &'a Machine,
    pub(crate) ranks: Equivalent,
    /// Where link loads have a closed form. Then the classes of ranks are those of the rule.
    pub(crate) cyclic: Option<Cyclic<'a>>,
    /// On a dragonfly, if all ranks send to equal shifts of their number, the nodes of a router.
    pub(crate) on_router: Option<u32>,
}

/// A message that a rank sends or receives.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) peer: Rank,
    pub(crate) bytes: u128,
    /// Bytes that must be packed.
    pub(crate) packed: u128,
}

/// What one rank does in a step.
#[derive(Default)]
pub(crate) struct Does {
    step: Step,
    share: Share,
    route: Route,
    links: Vec<LinkId>,
    pub(crate) sent: Vec<Sent>,
}

impl<'a> Visitor<'a> {
    /// The classes must be those of the source, or finer.
    pub(crate) fn new(source: Source<'a>, machine: &'a Machine, classes: &RankClasses) -> Self {
        let topology = &*machine.topology;
        let cyclic = source.schedule().and_then(|_| Cyclic::new(classes, topology));
        let cyclic =
            cyclic.filter(|cyclic| cyclic.grid().is_some() || !source.names_routes(classes));
        let ranks = match (cyclic, source) {
            (Some(_), _) => Equivalent { classes: classes.clone(), orbits: None },
            (None, Source::Schedule(_)) => source.equivalent(classes, topology),
            (None, Source::Traffic(_)) => Equivalent::by_numbering(classes, topology),
        };
        let groups = match (topology.shape(), source) {
            (Shape::Graph(graph), Source::Schedule(_)) => graph.groups(),
            _ => None,
        };
        let on_router = groups.map(|[.., nodes]| nodes).filter(|_| {
            (classes.radix().sides(), classes.periods()) == (&[topology.ranks()], &[1])
                && !source.names_routes(classes)
        });
        let whole = |nodes: &u32| *nodes > 1 && ranks.classes.count().is_multiple_of(*nodes);
        Self { source, machine, on_router: on_router.filter(whole), ranks, cyclic }
    }

    /// The same with no more classes than the numbering of the machine gives.
    pub(crate) fn by_numbering(
        source: Source<'a>,
        machine: &'a Machine,
        classes: &RankClasses,
    ) -> Self {
        let topology = &*machine.topology;
        let cyclic = source.schedule().and_then(|_| Cyclic::new(classes, topology));
        let cyclic = cyclic.filter(|cyclic| cyclic.grid().is_some());
        let ranks = match cyclic {
            Some(_) => Equivalent { classes: classes.clone(), orbits: None },
            None => Equivalent::by_numbering(classes, topology),
        };
        Self { source, machine, ranks, cyclic, on_router: None }
    }

    /// The loads of links, all 0.
    pub(crate) fn loads(&self) -> Loads {
        Loads::new(&self.ranks, &*self.machine.topology)
    }

    /// The bytes that they take, or those of a closed form.
    pub(crate) fn memory_of_loads(&self) -> u128 {
        match self.cyclic {
            Some(cyclic) => cyclic.memory(),
            None => Loads::memory(&self.ranks, &*self.machine.topology),
        }
    }

    /// Calls `each` with the representatives that take part in a step, and perhaps with others.
    pub(crate) fn each_active(&self, step: u32, each: &mut dyn FnMut(Rank)) {
        match self.source {
            Source::Schedule(schedule) => schedule.rule().active(step, &self.ranks.classes, each),
            Source::Traffic(_) => self.ranks.classes.representatives().for_each(each),
        }
    }

    /// Reads the messages that a rank sends in a step. Returns the bytes that it copies before.
    pub(crate) fn read(
        &self,
        (rank, step): (Rank, u32),
        weights: Weights<'_>,
        does: &mut Does,
    ) -> u128 {
        does.sent.clear();
        match self.source {
            Source::Schedule(schedule) => {
                schedule.rule().step(rank, step, &mut does.step);
                let bytes = |slots: &SlotSet| bytes_of(schedule, weights, rank, slots);
                if matches!(weights, Weights::Each(..)) {
                    does.step.sends.retain(|send| bytes(&send.slots) > 0);
                }
                does.sent.extend(does.step.sends.iter().map(|send| {
                    let bytes = bytes(&send.slots);
                    let contiguous = send.slots.is_contiguous(schedule.problem.block_bytes);
                    Sent { peer: send.peer, bytes, packed: if contiguous { 0 } else { bytes } }
                }));
                does.step.copies.iter().map(|copy| bytes(&copy.to)).sum()
            }
            Source::Traffic(traffic) => {
                traffic.share(rank, step, &mut does.share);
                does.sent.extend(does.share.sends.iter().map(|send| Sent {
                    peer: send.to,
                    bytes: send.bytes.into(),
                    packed: send.packed.into(),
                }));
                does.share.copied
            }
        }
    }

    /// The messages that the rank read receives, where they are known: of equal blocks.
    pub(crate) fn received(&self, does: &Does) -> impl ExactSizeIterator<Item = Sent> + Clone {
        let (transfers, block_bytes): (&[Transfer], _) = match self.source {
            Source::Schedule(schedule) => (&does.step.receives, schedule.problem.block_bytes),
            Source::Traffic(_) => (&[], 0),
        };
        transfers.iter().map(move |receive| Sent {
            peer: receive.peer,
            bytes: receive.slots.bytes(block_bytes),
            packed: 0,
        })
    }

    /// The links of a message of the rank read.
    pub(crate) fn route_links<'w>(
        &self,
        rank: Rank,
        message: usize,
        does: &'w mut Does,
    ) -> RouteLinks<'w> {
        let topology = &*self.machine.topology;
        let Does { step, share, route, links, .. } = does;
        let route = match self.source {
            Source::Schedule(_) => {
                let send = &step.sends[message];
                if let (true, Shape::Graph(graph)) = (send.route.is_empty(), topology.network())
                    && graph.on_grid().is_none()
                {
                    let [from, to] = [rank, send.peer].map(|end| Rank(topology.node_of(end)));
                    if from != to {
                        links.clear();
                        graph.own_links(from, to, links);
                        return RouteLinks::Links(links);
                    }
                }
                send.route_from(rank, topology, route)
            }
            Source::Traffic(_) => &share.sends[message].route,
        };
        if route.is_empty() { RouteLinks::Unnumbered } else { RouteLinks::Route(route) }
    }

    /// Calls `each` with all messages of a step of equal blocks, each with its sender and its links.
    pub(crate) fn each_message(
        &self,
        step: u32,
        does: &mut Does,
        each: &mut dyn FnMut(Rank, Sent, RouteLinks<'_>),
    ) {
        self.each_active(step, &mut |rank| {
            self.read((rank, step), Weights::Equal, does);
            for i in 0..does.sent.len() {
                let sent = does.sent[i];
                each(rank, sent, self.route_links(rank, i, does));
            }
        });
    }

    /// Calls `each` with the messages between nodes of a step of equal blocks whose link loads have a
    /// closed form.
    pub(crate) fn each_shift(
        &self,
        cyclic: &Cyclic<'_>,
        step: u32,
        does: &mut Does,
        each: &mut dyn FnMut(Rank, Sent, Shift),
    ) {
        self.each_active(step, &mut |rank| {
            self.read((rank, step), Weights::Equal, does);
            for &sent in &does.sent {
                let shifts = cyclic.shifts(sent.peer, sent.bytes);
                shifts.filter(|shift| shift.node > 0).for_each(|shift| each(rank, sent, shift));
            }
        });
    }
}

/// Bytes of some slots of a rank.
fn bytes_of(schedule: &Schedule, weights: Weights<'_>, rank: Rank, slots: &SlotSet) -> u128 {
    match weights {
        Weights::Equal => slots.bytes(schedule.problem.block_bytes),
        Weights::Each(bytes, each) => {
            let first = rank.index() * each;
            slots.slots().map(|(slot, _)| u128::from(bytes[first + slot as usize])).sum()
        }
    }
}
