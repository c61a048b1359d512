//! An exchange inside another, and the slots in which it holds blocks.

use std::sync::OnceLock;

use topocoll_schedule::{Block, Collective, RankClasses, Rule, Schedule, Slot, Step};
use topocoll_topology::Rank;

/// Slots of all classes whose layouts are looked at, at most.
const MOST_LAYOUTS: u64 = 1 << 22;

/// Steps of all classes whose routes are looked at, at most.
const MOST_STEPS: u64 = 1 << 18;

/// Runs of slots, as (first, number).
type Runs = Vec<(Slot, u64)>;

/// An inner exchange.
pub(crate) struct Inner {
    schedule: Schedule,
    pub(crate) classes: RankClasses,
    /// Whether all slots hold a block before the exchange, and after it.
    full: [bool; 2],
    /// By class, the slots that hold a block before and after it, from when they are asked for.
    held: Vec<OnceLock<[Runs; 2]>>,
}

impl Inner {
    /// `None` if there are too many layouts to look at.
    pub(crate) fn new(schedule: Schedule) -> Option<Self> {
        let (rule, ranks) = (schedule.rule(), u64::from(schedule.problem.ranks));
        let (slots, classes) = (rule.slots(), rule.classes());
        let count = classes.count();
        // Where there are as many slots as blocks, every slot holds one.
        let operation = schedule.problem.operation;
        let full = [operation == Collective::AllToAll, true].map(|all| all && slots == ranks);
        if full != [true; 2] && u64::from(count).saturating_mul(slots) > MOST_LAYOUTS {
            return None;
        }
        let held = (0..count).map(|_| OnceLock::new()).collect();
        Some(Self { schedule, classes, full, held })
    }

    pub(crate) fn rule(&self) -> &dyn Rule {
        self.schedule.rule()
    }

    /// Whether all messages are known to take the machine's own routes.
    pub(crate) fn takes_own_routes(&self) -> bool {
        let (rule, mut does) = (self.rule(), Step::default());
        let few = u64::from(rule.steps()) * u64::from(self.classes.count()) <= MOST_STEPS;
        let mut own = |rank: Rank, step: u32| {
            rule.step(rank, step, &mut does);
            does.sends.iter().all(|send| send.route.is_empty())
        };
        few && self
            .classes
            .representatives()
            .all(|rank| (0..rule.steps()).all(|step| own(rank, step)))
    }

    /// The slots of a rank that hold a block before the exchange, or after it.
    pub(crate) fn held(&self, rank: Rank, after: bool) -> &[(Slot, u64)] {
        let class = self.classes.class_of(rank);
        let held = self.held[class as usize].get_or_init(|| {
            let (rule, rank) = (self.rule(), self.classes.representative(class));
            [
                runs(rule, self.full[0], |out| rule.initial_layout(rank, out)),
                runs(rule, self.full[1], |out| rule.final_layout(rank, out)),
            ]
        });
        &held[usize::from(after)]
    }
}

/// The slots of a layout that hold a block, or all.
fn runs(rule: &dyn Rule, full: bool, read: impl FnOnce(&mut Vec<Option<Block>>)) -> Runs {
    if full {
        return vec![(0, rule.slots())];
    }
    let (mut layout, mut runs) = (Vec::new(), Runs::new());
    read(&mut layout);
    for (slot, _) in (0..).zip(&layout).filter(|(_, block)| block.is_some()) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == slot => *count += 1,
            _ => runs.push((slot, 1)),
        }
    }
    runs
}
