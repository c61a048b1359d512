//! What faults cost: the bounds of a machine without its faults, and its best schedule.

use serde::Serialize;
use topocoll::{Choice, Machine, Parameters, Problem, Selection, best_bounds};

use topocoll_report::words::in_full;

use super::plural;
use crate::render::{Blocks, Bounds, blocks, seconds};

/// The machine without faults and with all its ranks: its bounds, and for `select` its best schedule.
#[derive(Serialize)]
pub(super) struct Whole {
    topology: String,
    ranks: u32,
    #[serde(flatten)]
    bounds: Bounds,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Best>,
}

/// The best schedule of the machine without faults by the steps model.
#[derive(Serialize)]
struct Best {
    algorithm: String,
    parameters: Parameters,
    time_seconds: f64,
    /// The time of the best schedule with faults over this time.
    time_ratio: f64,
    #[serde(skip)]
    named: String,
}

/// The same problem on a machine of other ranks, with that machine's ports.
pub(super) fn problem_on(problem: &Problem, machine: &Machine) -> Problem {
    let Problem { operation, block_bytes, .. } = *problem;
    Problem::new(operation, machine.ranks(), machine.ports, block_bytes)
        .expect("bug: an invalid problem of a whole machine")
}

impl Whole {
    /// `None` for a machine without faults.
    pub(super) fn of(machine: &Machine, problem: &Problem) -> Option<Self> {
        let whole = machine.unbroken()?;
        let problem = problem_on(problem, &whole);
        let bounds = best_bounds(&problem, &whole, None).into();
        let topology = whole.topology.short_form();
        Some(Self { topology, ranks: whole.ranks(), bounds, best: None })
    }

    /// Compares the best schedules with faults and without them, where both are priced. Without faults the
    /// ranks that are left take no longer than all ranks, and no longer than with faults.
    pub(super) fn compare(&mut self, faulty: &Selection, whole: &Selection) {
        let [Some(faulty), Some(mut whole)] = [faulty, whole].map(Selection::best) else { return };
        let time = Choice::ranked_seconds;
        if time(faulty) < time(whole) {
            whole = faulty;
        }
        let time_seconds = time(whole);
        self.best = Some(Best {
            algorithm: whole.algorithm.clone(),
            parameters: whole.parameters.clone(),
            time_seconds,
            time_ratio: if time_seconds > 0.0 { time(faulty) / time_seconds } else { 1.0 },
            named: in_full(whole),
        });
    }

    /// What the faults cost the best schedule, in a sentence.
    pub(super) fn brief(&self) -> String {
        let cost =
            |best: &Best| format!(" Its faults make it {:.2} times as long.", best.time_ratio);
        self.best.as_ref().map_or(String::new(), cost)
    }

    /// The loss in the bounds, and the loss of a schedule that carries `carried` blocks, if given.
    pub(super) fn text(&self, bounds: Bounds, carried: Option<f64>) -> String {
        let Self {
            topology,
            ranks,
            bounds: Bounds { link_blocks: Blocks(whole), time_seconds, .. },
            best,
        } = self;
        let Blocks(bound) = bounds.link_blocks;
        let times = |value: f64| format!("{:.2} times", value / whole.max(f64::MIN_POSITIVE));
        let schedule = carried.map_or(String::new(), |carried| {
            format!(", and this schedule {} ({})", blocks(carried), times(carried))
        });
        let best = best.as_ref().map_or(String::new(), |best| {
            format!(
                "Without faults, the best is {}: {}. With its faults the exchange takes {:.2} times as long.\n",
                best.named,
                seconds(best.time_seconds),
                best.time_ratio,
            )
        });
        format!(
            "Without faults, {topology} with {ranks} rank{} carries at least {} blocks over its busiest link and \
             takes at least {}. With its faults it carries at least {} ({}){schedule}.\n{best}",
            plural(*ranks as usize),
            blocks(*whole),
            seconds(*time_seconds),
            blocks(bound),
            times(bound),
        )
    }
}
