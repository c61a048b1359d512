//! An exchange inside another, and the slots in which it holds blocks.

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
    /// By class, the slots that hold a block before and after it.
    held: Vec<[Runs; 2]>,
}

impl Inner {
    /// `None` if there are too many layouts to look at.
    pub(crate) fn new(schedule: Schedule) -> Option<Self> {
        let (classes, held) = (schedule.rule().classes(), held(&schedule)?);
        Some(Self { schedule, classes, held })
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
        &self.held[self.classes.class_of(rank) as usize][usize::from(after)]
    }
}

/// By class of ranks, the slots that hold a block before and after an exchange. `None` if there are
/// too many to look at.
fn held(schedule: &Schedule) -> Option<Vec<[Runs; 2]>> {
    let (rule, ranks) = (schedule.rule(), u64::from(schedule.problem.ranks));
    let (slots, classes) = (rule.slots(), rule.classes());
    let count = classes.count();
    // Where there are as many slots as blocks, every slot holds one.
    let operation = schedule.problem.operation;
    let full = [operation == Collective::AllToAll, true].map(|all| all && slots == ranks);
    if full != [true; 2] && u64::from(count).saturating_mul(slots) > MOST_LAYOUTS {
        return None;
    }
    let mut layout = Vec::new();
    let mut runs = |full: bool, read: &dyn Fn(&mut Vec<Option<Block>>)| -> Runs {
        if full {
            return vec![(0, slots)];
        }
        read(&mut layout);
        let mut runs: Runs = Vec::new();
        for (slot, _) in (0..).zip(&layout).filter(|(_, block)| block.is_some()) {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == slot => *count += 1,
                _ => runs.push((slot, 1)),
            }
        }
        runs
    };
    let of_class = |class| {
        let rank = classes.representative(class);
        [
            runs(full[0], &|out| rule.initial_layout(rank, out)),
            runs(full[1], &|out| rule.final_layout(rank, out)),
        ]
    };
    Some((0..count).map(of_class).collect())
}
