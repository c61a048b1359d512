//! What the repair of each failure gives back.

use anyhow::bail;
use serde::Serialize;
use topocoll::{Machine, Problem, Shape, best_bounds};

use super::whole::problem_on;
use crate::bar::{PROGRESS, starting};
use crate::render::{Blocks, Field, Table, blocks, table};

/// The machine with one failure repaired.
#[derive(Serialize)]
pub(super) struct Repair {
    repaired: String,
    ranks: u32,
    link_blocks: Blocks,
    /// The most blocks that a rank sends in the time in which a link carries one, over the same of the
    /// machine without faults.
    rate_ratio: f64,
}

/// All repairs, the best first.
pub(super) fn of(machine: &Machine, problem: &Problem) -> anyhow::Result<Vec<Repair>> {
    let lattice = match machine.topology.shape() {
        Shape::Graph(graph) => graph.lattice().filter(|lattice| !lattice.failures().is_empty()),
        _ => None,
    };
    let (Some(lattice), Some(whole)) = (lattice, machine.unbroken()) else {
        bail!("--repair: {} has no failed nodes or links", machine.topology.short_form());
    };
    let bound = |machine: &Machine| {
        let problem = problem_on(problem, machine);
        let bound = best_bounds(&problem, machine, None).link_blocks;
        (bound, f64::from(machine.ranks() - 1) / bound.max(f64::MIN_POSITIVE))
    };
    let (_, most) = bound(&whole);
    let mut repairs = Vec::new();
    starting("trying repairs", lattice.failures().len() as u64);
    for failure in lattice.failures() {
        (PROGRESS.done)(1);
        // A node whose links have all failed cannot be repaired alone.
        let Ok(topology) = lattice.repaired(failure) else { continue };
        let repaired = machine.on(topology);
        let (link_blocks, rate) = bound(&repaired);
        repairs.push(Repair {
            repaired: failure.name().to_owned(),
            ranks: repaired.ranks(),
            link_blocks: Blocks(link_blocks),
            rate_ratio: rate / most,
        });
    }
    repairs.sort_by(|a, b| b.rate_ratio.total_cmp(&a.rate_ratio));
    Ok(repairs)
}

pub(super) fn listed(repairs: &[Repair]) -> Table {
    let rows = repairs.iter().map(|repair| {
        vec![
            Field::Text(repair.repaired.clone()),
            repair.ranks.to_string().into(),
            blocks(repair.link_blocks.0).into(),
            format!("{:.1} %", 100.0 * repair.rate_ratio).into(),
        ]
    });
    table(&["repaired", "ranks", "charged volume", "rate of the whole"], 1, rows)
}
