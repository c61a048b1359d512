//! What the tests share: machines, questions in one call, and the promises of a schedule.
#![forbid(unsafe_code)]

mod ask;
mod certificates;
mod classes;
mod forgery;
mod moving;
mod networks;
mod promises;

pub use ask::*;
pub use certificates::{body, certificate_of, check_certificate, sealed};
pub use classes::{check_classes, check_kinds, check_translations, set_values};
pub use forgery::{Forger, expand};
pub use moving::{check_in_place, check_moves, check_plans, check_seeded, check_threaded};
pub use networks::{as_listed, drawn_graphs, drawn_symmetric};
pub use promises::{Case, check_bounds, check_claims, check_delivery, check_promises};

use topocoll::contention::{
    MODELS, Posted, Request, Settings, Share, Simulation, Sync, Traffic, simulate,
};
use topocoll::formats::Target;
use topocoll::{
    Algorithm, Block, Collective, Machine, Parameters, PerClass, Ports, Problem, Rank, RankClasses,
    Route, Rule, Schedule, Slot, Step, machine, shipped, spec,
};

/// Bytes that readers may use in tests.
pub const MEMORY: u128 = 4 << 30;

/// Of two sizes of a sweep, the first; in a long run, which has `TOPOCOLL_SWEEP`, the second.
pub fn reach<T>(short: T, long: T) -> T {
    if std::env::var_os("TOPOCOLL_SWEEP").is_some() { long } else { short }
}

/// A reader's target: that machine.
pub fn target(machine: &Machine) -> Target<'_> {
    Target::new(machine, MEMORY)
}

/// Every shipped machine, then shapes chosen for their corners.
pub fn machines() -> Vec<Machine> {
    const SHAPES: [&str; 39] = [
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
        "twisted-torus:2x4",
        "mesh:3x4/1,1/0,2+1/2,3",
        "cluster:1,2,3",
        "cluster:3*2,1",
        "cluster:5",
        "torus:4x2*2",
        "mesh:3x2*2,1,3,1,1,2",
        "grid:4~x3*3",
        "twisted-torus:2x4*2",
        "mesh:3x3/1,1*2",
        "hypercube:3",
        "hyperx:3x2*2",
        "fat-tree:2,2,2",
        "fat-tree:2,2,3/2*2",
        "dragonfly:1,2,1*2",
    ];
    let files = shipped().map(|(name, _)| machine(name).unwrap());
    let ties = spec::parse_file("balanced-ties", include_str!("../machines/ties.toml")).unwrap();
    files.chain(SHAPES.iter().map(|text| machine(text).unwrap())).chain([ties]).collect()
}

/// Networks whose links join ranks, some with failures.
pub const BETWEEN_RANKS: [&str; 10] = [
    "hypercube:4",
    "hyperx:3x4",
    "twisted-torus:2x4",
    "twisted-torus:2x2x4",
    "torus:4x4/0,0+0",
    "torus:4x4/1,1",
    "torus:5x2/0,0",
    "torus:3x3x3/0,0,0/1,1,1+2",
    "mesh:4x3/0,0",
    "torus:6/0+0",
];

/// A machine with these ports.
pub fn with_ports(text: &str, ports: impl Into<Ports>) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.set_ports(ports);
    machine
}

/// Every machine with one port and with three.
pub fn machines_and_ports() -> Vec<Machine> {
    let mut machines = machines();
    for machine in machines.clone() {
        let mut more = machine;
        more.set_ports(if more.ports == Ports::from(3) { 1 } else { 3 });
        machines.push(more);
    }
    machines
}

pub fn problem(machine: &Machine, operation: Collective, block_bytes: u64) -> Problem {
    Problem::new(operation, machine.ranks(), machine.ports, block_bytes).unwrap()
}

/// The algorithms that serve on a machine, each with some of its settings.
pub fn serving(
    machine: &Machine,
    block_bytes: u64,
) -> Vec<(&'static dyn Algorithm, Problem, Parameters)> {
    let mut out = Vec::new();
    for algorithm in algorithms() {
        let problem = problem(machine, algorithm.info().operation, block_bytes);
        let settings = all_settings(algorithm, &problem, &*machine.topology);
        // The first, the last and a few others.
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

/// A rule with altered steps, and the classes that it claims.
struct Edited<E> {
    schedule: Schedule,
    classes: RankClasses,
    edit: E,
}

/// A schedule with `edit` applied to each step of each rank.
pub fn edited(
    schedule: &Schedule,
    classes: RankClasses,
    edit: impl Fn(Rank, u32, &mut Step) + Send + std::marker::Sync + 'static,
) -> Schedule {
    let (problem, origin) = (schedule.problem, schedule.origin.clone());
    Schedule::new(problem, origin, Edited { schedule: schedule.clone(), classes, edit })
}

/// A schedule without its classes: every rank is its own class.
pub fn without_classes(schedule: &Schedule) -> Schedule {
    edited(schedule, RankClasses::distinct(schedule.problem.ranks), |_, _, _| ())
}

impl<E: Fn(Rank, u32, &mut Step) + Send + std::marker::Sync> Rule for Edited<E> {
    fn steps(&self) -> u32 {
        self.schedule.rule().steps()
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        self.schedule.rule().step(rank, step, out);
        (self.edit)(rank, step, out);
    }
    fn slots(&self) -> u64 {
        self.schedule.rule().slots()
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule.rule().initial_block(rank, slot)
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.schedule.rule().final_block(rank, slot)
    }
    fn classes(&self) -> RankClasses {
        self.classes.clone()
    }
    fn cuts(&self) -> &[u64] {
        self.schedule.rule().cuts()
    }
}

/// Messages by step: sender, receiver, bytes, and flit times after the step begins.
pub struct Script<'a> {
    pub machine: &'a Machine,
    pub messages: Vec<(u32, u32, u32, u64, u64)>,
}

impl<'a> Script<'a> {
    /// Messages posted at once: sender, receiver, bytes.
    pub fn posted(machine: &'a Machine, messages: Vec<(u32, u32, u64)>) -> Self {
        let messages = messages.into_iter().map(|(from, to, bytes)| (0, from, to, bytes, 0));
        Self { machine, messages: messages.collect() }
    }

    /// With `edit` applied to the share of each node in each step.
    pub fn edited(self, edit: impl Fn(u32, &mut Share) + std::marker::Sync) -> impl Traffic {
        EditedScript { script: self, edit }
    }
}

struct EditedScript<'a, E> {
    script: Script<'a>,
    edit: E,
}

impl<E: Fn(u32, &mut Share) + std::marker::Sync> Traffic for EditedScript<'_, E> {
    fn nodes(&self) -> u32 {
        self.script.nodes()
    }
    fn steps(&self) -> u32 {
        self.script.steps()
    }
    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        self.script.share(node, step, out);
        (self.edit)(step, out);
    }
}

impl Traffic for Script<'_> {
    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }
    fn steps(&self) -> u32 {
        self.messages.iter().map(|message| message.0 + 1).max().unwrap_or(0)
    }
    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        out.sends.clear();
        let of_step = || self.messages.iter().filter(|message| message.0 == step);
        for &(_, _, to, bytes, cycle) in of_step().filter(|message| message.1 == node.0) {
            let mut route = Route::default();
            self.machine.topology.route(node, Rank(to), &mut route);
            let to = Rank(to);
            out.sends.push(Posted { to, bytes, route, free: true, cycle, ..Posted::default() });
        }
        out.receives = of_step().filter(|message| message.2 == node.0).count() as u32;
    }
}

/// Traffic of these classes whose schedule is not known.
pub struct OfClasses<'a>(pub &'a dyn Traffic, pub RankClasses);

impl Traffic for OfClasses<'_> {
    fn nodes(&self) -> u32 {
        self.0.nodes()
    }
    fn steps(&self) -> u32 {
        self.0.steps()
    }
    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        self.0.share(node, step, out);
    }
    fn classes(&self) -> RankClasses {
        self.1.clone()
    }
}

/// A request to a model for messages on a machine.
pub fn request<'a>(
    traffic: &'a dyn Traffic,
    machine: &'a Machine,
    model: &str,
    settings: Settings,
    sync: Sync,
) -> Request<'a> {
    let model = MODELS.iter().find(|known| known.name == model).unwrap();
    let mut request = Request::new(traffic, machine, model, MEMORY);
    (request.settings, request.sync) = (settings, sync);
    request
}

/// The result of a model without barriers between steps.
pub fn run(
    traffic: &dyn Traffic,
    machine: &Machine,
    model: &str,
    settings: Settings,
) -> Simulation {
    simulate(&request(traffic, machine, model, settings, Sync::Free)).unwrap()
}

/// A machine without startups, so that times are those of the network.
pub fn network(text: &str, per_hop: f64) -> Machine {
    let mut machine = machine(text).unwrap();
    machine.timing.startup = PerClass::uniform(0.0);
    machine.timing.per_hop = PerClass::uniform(per_hop);
    machine
}

/// A machine on which every message and copy costs time, and each link class has its own values:
/// `startup` and `per_hop` are those of the first.
pub fn priced(text: &str, startup: f64, per_hop: f64) -> Machine {
    let mut machine = machine(text).unwrap();
    let classes = machine.topology.link_classes().len().max(1);
    let each = |unit: f64| {
        let values: Vec<f64> = (0..classes).map(|class| unit * (1.0 + class as f64)).collect();
        PerClass::each(&values)
    };
    machine.timing.startup = each(startup);
    machine.timing.per_byte = each(2e-9);
    machine.timing.per_hop = each(per_hop);
    machine.timing.rearrangement_per_byte = 1e-9;
    machine
}

/// Parameters of the models.
pub fn settings(vcs: u32, buffer_flits: u32, flit_bytes: u64, hop_cycles: Option<u32>) -> Settings {
    let mut settings = Settings::default();
    (settings.vcs, settings.buffer_flits) = (vcs, buffer_flits);
    (settings.flit_bytes, settings.hop_cycles) = (flit_bytes, hop_cycles);
    settings
}

/// Routers of flits of a byte, five cycles a hop.
pub fn routers(vcs: u32) -> Settings {
    settings(vcs, 8, 1, Some(5))
}
