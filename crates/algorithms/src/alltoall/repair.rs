//! Repair: any all-to-all of a whole torus or mesh, changed for failed nodes and links.
//!
//! 1. The schedule gives *connections*: which ranks exchange a message in a step, and over which links.
//!    A message whose route has failed takes the shortest route over links that are free in its step.
//!    A message without such a route is cut.
//! 2. More steps may come first. They repeat the steps in which the largest messages are cut.
//! 3. Blocks of cut messages get other paths over the connections of all steps: shortest paths in the
//!    time-expanded network, by lengths that avoid making the largest message of a step larger.
//! 4. The largest message of each step is made smaller as long as the blocks in excess find other paths.
//!    Blocks then get other paths of the same cost at random, and this is tried again.
//!
//! A block keeps its path unless it was cut or moves in 4. With fewer steps than the schedule has, those of
//! the fewest messages are left out, and their blocks get other paths. So a schedule of single blocks
//! becomes one of fewer startups.
//!
//! Claim: as many steps as are used, and in each the largest message. There is no link contention if the
//! schedule has none, so one port is enough. On `torus:8x8` with a failed link and 1 port, `strided-rings`
//! takes 14 steps and 137 blocks instead of 14 and 112. `tests/correctness/repair.rs` has other failures.

mod connections;
mod follow;
mod paths;

use std::sync::Arc;

use topocoll_schedule::{Block, Message, Origin, Parameters, Part, Problem, Recorder, Schedule};
use topocoll_topology::{Graph, Rank, Shape, Topology};

use self::connections::{Connection, NONE, Steps};
use self::follow::Followed;
use self::paths::{Paths, Piece, reach_all};
use super::coloured_rings::ColouredRings;
use super::link_matchings::LinkMatchings;
use crate::front::front;
use crate::{
    Algorithm, Catalogue, Claims, Info, NotApplicable, Parameter, Request, Solution, Values,
};

pub(crate) struct Repair;

/// Every block's path is stored.
const MOST_RANKS: u32 = 512;

/// Steps of the result, at most.
const MOST_STEPS: u64 = 4096;

/// Steps that are added, at most, where their number is not given.
const MOST_ADDED: usize = 16;

const OF: Parameter =
    Parameter::algorithm("of", "the all-to-all that is repaired, coloured-rings by default");
const ON: Parameter = Parameter::words(
    "on",
    &[
        ("whole", "the all-to-all is for the machine without failures"),
        ("failed", "for the machine with failures"),
    ],
);
const STEPS: Parameter = Parameter::number(
    "steps",
    "steps of the result, from 1 to 4096; by default as many as it has, or as few more as suffice",
);

static INFO: Info = Info::new(
    "repair",
    "an all-to-all of the whole machine with other paths for what met failed nodes and links",
    "balanced paths in the time-expanded network of a schedule",
)
.taking(&[OF, ON, STEPS]);

/// Beyond this number of ranks, settings are not priced unless asked for.
const MOST_RANKED: u32 = 64;

/// Schedules of the whole machine that are priced, at most.
const MOST_PRICED: usize = 8;

/// Steps that are added to each of them in a second setting.
const LONGER: u64 = 8;

/// A repaired schedule.
struct Repaired {
    messages: Vec<Message>,
    steps: u32,
    /// Sums over steps of the largest message, in bytes if blocks are split and in blocks if not, and of the
    /// most hops.
    volume: u128,
    hops: u128,
    shared: bool,
}

/// A machine with failures, and the machine of the schedule that is repaired.
struct Machines<'r> {
    request: Request<'r>,
    graph: &'r Graph,
    /// The machine without failures, if the schedule is for it.
    whole: Option<Arc<dyn Topology>>,
    /// By rank of the schedule, its node if it has not failed.
    nodes: Vec<Option<u32>>,
}

impl<'r> Machines<'r> {
    fn new(request: &Request<'r>, on: &str) -> Result<Self, NotApplicable> {
        let needs = "a torus or mesh with failed nodes or links";
        let Shape::Graph(graph) = request.topology.shape() else {
            return Err(request.requires(needs));
        };
        let lattice = graph.lattice().filter(|lattice| !lattice.faults().is_empty());
        let lattice = lattice.ok_or_else(|| request.requires(needs))?;
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKS {
            return Err(NotApplicable::Ranks { rule: "at most 512 ranks", ranks });
        }
        if on == "failed" {
            let nodes = (0..ranks).map(Some).collect();
            return Ok(Self { request: *request, graph, whole: None, nodes });
        }
        let whole = lattice.unbroken();
        let mut nodes = vec![None; whole.ranks() as usize];
        for node in 0..ranks {
            nodes[lattice.place(Rank(node)).index()] = Some(node);
        }
        Ok(Self { request: *request, graph, whole: Some(whole), nodes })
    }

    /// The request for the schedule that is repaired.
    fn origin(&self) -> Request<'_> {
        let Some(whole) = &self.whole else { return self.request };
        let of = self.request.problem;
        let problem = Problem::new(of.operation, whole.ranks(), of.ports, of.block_bytes);
        Request::new(&problem.expect("bug: an invalid problem of the whole machine"), &**whole)
    }

    /// The repaired schedule, of `steps` steps or as many as suffice; none if some block cannot arrive.
    fn repair(&self, schedule: &Schedule, steps: Option<usize>) -> Option<Repaired> {
        let followed = Followed::new(schedule);
        let machine = self.origin().topology;
        let found = Steps::new(self.graph, machine, &self.nodes, schedule.problem.ports, &followed);
        let numbers = match steps {
            Some(steps) => steps..=steps,
            None => found.count()..=found.count() + MOST_ADDED,
        };
        let ranks = self.request.problem.ranks as usize;
        let mut tried = numbers.map(|steps| found.connections(steps, followed.sent.len()));
        let connections = tried.find(|connections| reach_all(connections, ranks))?;
        let pieces = followed.pieces().filter_map(|(from, to, part, messages)| {
            let path = messages.iter().map(|&one| connections.of_message[one as usize]);
            let path: Vec<u32> = path.collect();
            let path = if path.contains(&NONE) { Vec::new() } else { path };
            let (from, to) = (self.nodes[from]?, self.nodes[to]?);
            let size = followed.sizes[part];
            (from != to).then_some(Piece { from, to, part, size, path })
        });
        let paths = Paths::new(&connections, ranks, pieces.collect());
        let mut carried = vec![Vec::new(); connections.all.len()];
        for Piece { from, to, part, path, .. } in &paths.pieces {
            let block = Block { from: Rank(*from), to: Rank(*to) };
            path.iter().for_each(|&one| carried[one as usize].push((block, followed.parts[*part])));
        }
        let mut repaired = Repaired {
            messages: Vec::new(),
            steps: 0,
            volume: paths.volume().into(),
            hops: 0,
            shared: found.shared,
        };
        for step in 0..connections.count() {
            let mut farthest = 0;
            for one in connections.of_step(step) {
                let mut blocks: Vec<(Block, Part)> = std::mem::take(&mut carried[one]);
                if blocks.is_empty() {
                    continue;
                }
                blocks.sort_by_key(|(block, _)| (block.to, block.from));
                let Connection { from, to, route, .. } = &connections.all[one];
                farthest = route.hops().max(farthest);
                let (from, to, route) = (Rank(*from), Rank(*to), Some(route.clone()));
                repaired.messages.push(Message { step: repaired.steps, from, to, route, blocks });
            }
            repaired.steps += u32::from(farthest > 0);
            repaired.hops += u128::from(farthest);
        }
        Some(repaired)
    }
}

/// The setting that repairs a schedule.
fn repairing(Origin { algorithm, parameters }: &Origin, on: &str) -> Parameters {
    let mut setting = OF.naming(algorithm, parameters);
    setting.insert(ON.name.to_owned(), on.into());
    setting
}

/// Settings for schedules without link contention, each with its steps, on the Pareto front of all.
fn settings(request: &Request<'_>) -> Vec<(u64, Parameters)> {
    let catalogue = Catalogue::standard();
    let mut all = Vec::new();
    for algorithm in catalogue.iter().filter(|one| !one.info().by_demand) {
        let free = request.solutions(algorithm).filter(|found| found.claims.contention_free);
        all.extend(free.map(|Solution { schedule, claims }| {
            (claims.steps, claims.bytes, repairing(&schedule.origin, "whole"))
        }));
    }
    front(all, MOST_PRICED)
}

impl Algorithm for Repair {
    fn info(&self) -> &Info {
        &INFO
    }

    /// The schedules of the whole machine that are not beaten, and the matchings of this one in fewer steps.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let machines = Machines::new(request, "whole")?;
        let ranks = request.problem.ranks;
        if ranks > MOST_RANKED {
            return Err(NotApplicable::Unranked { why: "more than 64 ranks take minutes" });
        }
        let whole = settings(&machines.origin()).into_iter().flat_map(|(steps, setting)| {
            let mut longer = setting.clone();
            longer.insert(STEPS.name.to_owned(), (steps + LONGER).into());
            [setting, longer]
        });
        let matchings = request.solve(&LinkMatchings, &Parameters::new())?;
        let steps = matchings.claims.steps;
        let fewer = [10, 5].map(|share| {
            let mut fewer = repairing(&matchings.schedule.origin, "failed");
            fewer.insert(STEPS.name.to_owned(), (steps - steps / share).into());
            fewer
        });
        Ok(whole.chain(fewer).collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let on = values.word(ON.name);
        let machines = Machines::new(request, on)?;
        let part = machines.origin();
        let inner = match values.solve_named(OF.name, &part)? {
            Some(inner) => inner,
            None => part.solve(&ColouredRings, &Parameters::new())?,
        };
        let steps = values.number(STEPS.name, 1, MOST_STEPS)?.map(|steps| steps as usize);
        // All that the paths depend on.
        let Origin { algorithm, parameters } = &inner.schedule.origin;
        let Problem { ports, block_bytes, .. } = part.problem;
        let (cut, unit) = match inner.schedule.rule().cuts() {
            [] => (0, block_bytes),
            _ => (block_bytes, 1),
        };
        let key = format!("{algorithm} {parameters:?} {on} {steps:?} {ports} {cut}");
        let key: Vec<u32> = key.chars().map(u32::from).collect();
        let repaired = machines.graph.plan(&key, || machines.repair(&inner.schedule, steps));
        let Some(repaired) = &*repaired else {
            return Err(values.refused(STEPS.name, "enough for all blocks to arrive"));
        };
        let mut recorder = Recorder::new(request.problem);
        repaired.messages.iter().for_each(|message| recorder.push(message));
        let claims = Claims {
            hops: Some(repaired.hops),
            hops_floor: repaired.hops,
            rearrangements: Some(0),
            contention_free: !repaired.shared,
            ..Claims::new(repaired.steps.into(), repaired.volume * u128::from(unit))
        };
        let solution = Solution::new(request, values, recorder.finish(), claims);
        let solution = match steps {
            Some(steps) => solution.with(STEPS.name, steps as u64),
            None => solution,
        };
        Ok(solution.with_named(&OF, &inner))
    }
}
