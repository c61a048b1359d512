use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use topocoll_topology::text::printable;
use topocoll_topology::{Groups, Rank, View};

use crate::{Block, Kinds, Problem, RankClasses, Slot, Step};

/// A communication schedule as a pure function of rank and step. Implement it for your own
/// schedules. New methods will have defaults.
pub trait Rule: Send + Sync {
    /// Number of steps; the same for every rank.
    fn steps(&self) -> u32;

    /// Overwrites `out` with the copies, sends and receives of `rank` in `step`. Never allocates
    /// after the first call.
    fn step(&self, rank: Rank, step: u32, out: &mut Step);

    /// Calls `each` with every step in which `rank` is not idle, in order, until `each` breaks.
    /// Rules whose ranks are idle in most steps override it.
    fn each_step(&self, rank: Rank, each: &mut dyn FnMut(u32, &Step) -> ControlFlow<()>) {
        let mut does = Step::default();
        for step in 0..self.steps() {
            self.step(rank, step, &mut does);
            if !does.is_idle() && each(step, &does).is_break() {
                return;
            }
        }
    }

    /// Number of slots of every rank's buffer.
    fn slots(&self) -> u64;

    /// The layout before the first step: the block that `slot` of `rank` holds, if any.
    ///
    /// The caller puts its blocks in this order. That is not a rearrangement: as in the papers,
    /// counts begin and end with blocks in the order of the algorithm.
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block>;

    /// The layout after the last step: the block that `slot` of `rank` must hold, if any.
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block>;

    /// The whole layout before the first step: overwrites `out` with
    /// [`initial_block`](Self::initial_block) of every slot in turn.
    /// Rules that compute all slots together faster than one by one override it.
    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        out.extend((0..self.slots()).map(|slot| self.initial_block(rank, slot)));
    }

    /// The whole layout after the last step: overwrites `out` with
    /// [`final_block`](Self::final_block) of every slot in turn.
    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        out.clear();
        out.extend((0..self.slots()).map(|slot| self.final_block(rank, slot)));
    }

    /// Classes of equivalent ranks. Under [`RankClasses::cyclic`], where every rank sends to itself
    /// + s (mod P), messages must take the machine's own routes.
    ///
    /// The default has every rank in a class of its own, as many as end with a block at rank 0. Rules
    /// of equivalent ranks override it: analyses take time in proportion to the classes.
    fn classes(&self) -> RankClasses {
        let mut last = Vec::new();
        self.final_layout(Rank(0), &mut last);
        let ranks = last.iter().flatten().map(|block| block.from.0.saturating_add(1)).max();
        RankClasses::distinct(ranks.unwrap_or(1))
    }

    /// Calls `each` with the representatives of some classes that are not idle in `step`, each once.
    /// Idle ones may be among them. The classes are those of the rule, or finer ones.
    /// Rules of many ranks whose ranks are idle in most steps override it.
    fn active(&self, _step: u32, classes: &RankClasses, each: &mut dyn FnMut(Rank)) {
        classes.representatives().for_each(each);
    }

    /// Tells which ranks do the same in `step` by their coordinates on a grid, beyond the classes:
    /// writes the kinds of positions along all sides, and returns true. The default is false.
    ///
    /// Ranks whose coordinates are of equal kinds along every side copy equally many bytes, and list
    /// equally many sends and receives, which in their order move equally many bytes. Their sends
    /// take equal routes, which are named, and are equally contiguous or not.
    ///
    /// Rules of many classes override it.
    fn kinds(&self, _step: u32, _kinds: &mut Kinds) -> bool {
        false
    }

    /// Whether a message has a route of its own. The classes are those of the rule, or finer ones.
    ///
    /// The default looks at all messages of one rank of each class, but of no steps that have classes. Rules of
    /// many messages without routes override it.
    fn names_routes(&self, classes: &RankClasses) -> bool {
        let mut does = Step::default();
        let has_classes = self.steps() > 0 && self.class_of_step(0).is_some();
        (0..if has_classes { 0 } else { self.steps() }).any(|step| {
            let mut named = false;
            self.active(step, classes, &mut |rank| {
                self.step(rank, step, &mut does);
                named |= does.sends.iter().any(|send| !send.route.is_empty());
            });
            named
        })
    }

    /// The class of a step, if the rule knows classes of equivalent steps. In equivalent steps the same pairs of
    /// nodes exchange equally many messages. These have equal bytes, are equally contiguous, and take the
    /// machine's own routes. The numbers of messages that the ranks of a node send, and receive, are equal up to
    /// the order of the ranks. Readers count one step of a class.
    ///
    /// A rule gives classes to all steps or, as the default, to none.
    fn class_of_step(&self, _step: u32) -> Option<u64> {
        None
    }

    /// The groups of a dragonfly, the routers of each and the nodes of each, if in the classes of steps all nodes of a
    /// router count as one node. There every node sends, or receives, as many messages in equivalent steps. On other
    /// networks readers use no classes.
    fn equivalent_on_routers(&self) -> Option<[u32; 3]> {
        None
    }

    /// The byte offsets at which blocks are ever split, ascending; empty if all blocks move whole.
    fn cuts(&self) -> &[u64] {
        &[]
    }

    /// Whether the layouts name blocks. They do not in a list of message sizes, of which delivery
    /// cannot be verified.
    fn names_blocks(&self) -> bool {
        true
    }

    /// In a list of messages, the number from 0 of the last one that `rank` sends, or receives, in `step` with
    /// the block of `slot`, and that block.
    fn listed(&self, _step: u32, _rank: Rank, _slot: Slot, _sends: bool) -> Option<(u32, Block)> {
        None
    }
}

/// A value of an algorithm's parameter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Setting {
    /// A number.
    Integer(u64),
    /// A word.
    Text(String),
}

impl From<u64> for Setting {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// Parameters by name, in alphabetical order. Given to the algorithm again, they reproduce the
/// schedule.
pub type Parameters = BTreeMap<String, Setting>;

/// The algorithm and parameters that a schedule comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The algorithm's name.
    pub algorithm: String,
    /// Its parameters, including those chosen by default.
    pub parameters: Parameters,
}

impl Origin {
    fn printable(self) -> Self {
        let setting = |(name, value): (String, Setting)| {
            let value = match value {
                Setting::Text(text) => Setting::Text(printable(&text)),
                number @ Setting::Integer(_) => number,
            };
            (printable(&name), value)
        };
        Self {
            algorithm: printable(&self.algorithm),
            parameters: self.parameters.into_iter().map(setting).collect(),
        }
    }
}

/// A problem and the rule that solves it.
#[derive(Clone)]
pub struct Schedule {
    /// The problem it solves.
    pub problem: Problem,
    /// Its algorithm and parameters.
    pub origin: Origin,
    /// The groups that exchange, if not all ranks do with all.
    pub(crate) groups: Option<Groups>,
    /// The schedule that is seen on a view.
    pub(crate) view: Option<Arc<(Schedule, Arc<View>)>>,
    rule: Arc<dyn Rule>,
}

impl Schedule {
    /// The schedule of `rule`. Characters of the origin that are not printable are escaped
    /// ([`printable`]), as readers write it into comments and headings.
    pub fn new(problem: Problem, origin: Origin, rule: impl Rule + 'static) -> Self {
        Self { problem, origin: origin.printable(), groups: None, view: None, rule: Arc::new(rule) }
    }

    /// The same for ranks that exchange within groups only: no block has ends in two groups.
    ///
    /// # Panics
    /// Groups of a machine with other ranks.
    #[must_use]
    pub fn within(self, groups: &Groups) -> Self {
        assert_eq!(groups.machine_ranks(), self.problem.ranks, "groups of as many ranks");
        Self { groups: Some(groups.clone()), ..self }
    }

    /// The groups that exchange, if not all ranks do with all.
    #[must_use]
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Whether a rank needs the block of `from` at the end: of all ranks, or of those of its group.
    #[must_use]
    pub fn wants(&self, from: Rank, rank: Rank) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.joins(from, rank))
    }

    /// The number of ranks that take part: all, or [on groups](Self::on_groups) those of
    /// the largest.
    #[must_use]
    pub fn participants(&self) -> u32 {
        let largest = |groups: &Groups| groups.sizes().max();
        self.groups.as_ref().and_then(largest).unwrap_or(self.problem.ranks)
    }

    /// The rule.
    #[must_use]
    #[inline]
    pub fn rule(&self) -> &dyn Rule {
        &*self.rule
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("problem", &self.problem)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
