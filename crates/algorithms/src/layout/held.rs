//! The slots that hold blocks before and after an inner exchange.

use topocoll_schedule::{Block, Collective, Schedule, Slot};

/// Slots of all classes whose layouts are looked at, at most.
const MOST_LAYOUTS: u64 = 1 << 22;

/// Runs of inner slots, as (first, number).
pub(crate) type Runs = Vec<(Slot, u64)>;

/// By class of ranks, the slots that hold a block before and after an exchange. `None` if there are
/// too many to look at.
pub(crate) fn held(between: &Schedule, operation: Collective) -> Option<Vec<[Runs; 2]>> {
    let (rule, nodes) = (between.rule(), u64::from(between.problem.ranks));
    let (slots, classes) = (rule.slots(), rule.classes());
    let count = classes.count();
    // Where there are as many slots as blocks, every slot holds one.
    let full = [operation == Collective::AllToAll, true].map(|all| all && slots == nodes);
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
        let node = classes.representative(class);
        [
            runs(full[0], &|out| rule.initial_layout(node, out)),
            runs(full[1], &|out| rule.final_layout(node, out)),
        ]
    };
    Some((0..count).map(of_class).collect())
}
