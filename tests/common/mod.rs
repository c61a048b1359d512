//! The corpus that the promises are tested on: every machine file, and shapes that files lack.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use topocoll::Rank;
use topocoll::{
    ALGORITHMS, Algorithm, Block, Collective, Machine, Parameters, Problem, RankClasses, Rule,
    Schedule, Slot, Step, machine, shipped,
};

/// Bytes that readers may use in tests.
pub(crate) const MEMORY: u128 = 4 << 30;

/// Every shipped machine, then shapes chosen for their corners.
pub(crate) fn machines() -> Vec<Machine> {
    const SHAPES: [&str; 27] = [
        "full:1",
        "full:2",
        "full:3",
        "full:7",
        "full:16",
        "full:33",
        "torus:4x4",
        "torus:8x4",
        "torus:8x8x4",
        "torus:8",
        "torus:2",
        "torus:5x3",
        "torus:2x2x2",
        "torus:1x4",
        "mesh:2x4",
        "mesh:3x3x3",
        "mesh:7",
        "grid:4~x6",
        "grid:3x8~",
        "mesh:6x6",
        "mesh:4x2x6",
        "torus:10x6",
        "grid:6~x1x4",
        "grid:8~x8~x2",
        "cluster:1,2,3",
        "cluster:3*2,1",
        "cluster:5",
    ];
    let files = shipped().map(|(name, _)| machine(name).unwrap());
    files.chain(SHAPES.iter().map(|text| machine(text).unwrap())).collect()
}

/// Every shape of the corpus with one port, and with three.
pub(crate) fn machines_and_ports() -> Vec<Machine> {
    let mut machines = machines();
    for machine in machines.clone() {
        let mut more = machine;
        more.set_ports(if more.ports == 3 { 1 } else { 3 });
        machines.push(more);
    }
    machines
}

pub(crate) fn problem(machine: &Machine, operation: Collective, block_bytes: u64) -> Problem {
    Problem::new(operation, machine.ranks(), machine.ports, block_bytes).unwrap()
}

/// The algorithms that serve on a machine, each with some of its settings.
pub(crate) fn serving(
    machine: &Machine,
    block_bytes: u64,
) -> Vec<(&'static dyn Algorithm, Problem, Parameters)> {
    let mut out = Vec::new();
    for &algorithm in ALGORITHMS {
        let problem = problem(machine, algorithm.operation(), block_bytes);
        let settings = algorithm.settings(&problem, &*machine.topology);
        // The ends, and a few between them.
        let some = settings.len().div_ceil(4).max(1);
        let last = settings.last().cloned();
        out.extend(
            settings
                .into_iter()
                .step_by(some)
                .chain(last)
                .map(|setting| (algorithm, problem, setting)),
        );
    }
    out
}

/// A rule without its classes: every rank for itself.
pub(crate) struct Plain(pub(crate) Schedule);

impl Plain {
    pub(crate) fn of(schedule: &Schedule) -> Schedule {
        Schedule::new(schedule.problem, schedule.origin.clone(), Self(schedule.clone()))
    }
}

impl Rule for Plain {
    fn steps(&self) -> u32 {
        self.0.rule().steps()
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        self.0.rule().step(rank, step, out);
    }
    fn slots(&self) -> u64 {
        self.0.rule().slots()
    }
    fn start(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.rule().start(rank, slot)
    }
    fn finish(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.rule().finish(rank, slot)
    }
    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.0.problem.ranks)
    }
    fn cuts(&self) -> &[u64] {
        self.0.rule().cuts()
    }
}
