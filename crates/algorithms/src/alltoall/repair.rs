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
//! With `moved=cut` only blocks that were cut move, each so that the fewest steps get longer. It requires a schedule
//! without copies in which many ranks do the same, which is followed by one rank of each class ([`equivalent`]). The
//! result is the schedule of the whole machine with tables of these blocks ([`exceptions`]). Time and memory grow with
//! the messages of all ranks, and with the blocks that meet failures: of 4,096 ranks about 40,000 a failed node. So
//! 4,096 ranks, which have 16 million blocks, take seconds.
//!
//! If any block may move, paths of parts of blocks are found for blocks of one size, and those of other sizes take
//! them. With `moved=cut`, which is fast, they are found for each size.
//!
//! Claim: as many steps as are used, and in each the largest message. There is no link contention if the
//! schedule has none, so one port is enough. On `torus:8x8` with a failed link and 1 port, `coloured-rings`
//! takes 28 steps and 114 blocks instead of 28 and 108. `tests/correctness/repair.rs` has other failures.

mod connections;
mod equivalent;
mod exceptions;
mod follow;
mod listed;
mod paths;

use std::sync::Arc;

use topocoll_schedule::{Message, Origin, Parameters, Problem, Schedule};
use topocoll_topology::{Graph, Rank, Shape, Topology};

use self::connections::{Connections, Steps};
use self::equivalent::{can_follow, translations};
use self::exceptions::{Excepted, Exceptions, Whole};
use self::follow::{Followed, NONE, parts};
use self::listed::{messages, recorded};
use self::paths::{Near, Paths, Piece, reach_all};
use super::coloured_rings::ColouredRings;
use super::link_matchings::LinkMatchings;
use super::neighbour_rings::NeighbourRings;
use crate::front::front;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct Repair;

/// Ranks, at most, if any block may move: every block's path is listed.
const MOST_LISTED: u32 = 512;

/// Pieces of blocks whose paths are listed, at most, if only blocks that were cut move.
const MOST_EXCEPTIONS: usize = 1 << 18;

/// The size of the blocks for whose parts paths are found, in bytes, if any block may move.
const USUAL_BYTES: u64 = 1024;

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
const MOVED: Parameter = Parameter::words(
    "moved",
    &[
        ("all", "any block may take another path; for at most 512 ranks"),
        (
            "cut",
            "only blocks that met failures may; for at most 4096 ranks, of which many do the same without copies",
        ),
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
.taking(&[OF, STEPS])
.with_internal(&[MOVED, ON]);

/// Beyond this number of ranks, longer schedules and those for the machine with failures are not priced unless
/// asked for;
const MOST_TRIED: u32 = 64;

/// and beyond this one only schedules hop by hop.
const MOST_RANKED: u32 = 256;

/// Schedules of the whole machine that are priced, at most.
const MOST_PRICED: usize = 8;

/// Steps of those that are followed by class, at most.
const MOST_STEPS_FOLLOWED: u64 = 128;

/// Steps that are added to each of them in a second setting.
const LONGER: u64 = 8;

/// A repaired schedule.
struct Repaired {
    made: Made,
    steps: u32,
    /// The sum over steps of the most hops.
    hops: u128,
    shared: bool,
}

enum Made {
    Listed(Vec<Message>),
    /// With the sum over steps of the largest message, in bytes if blocks are split and in blocks if not.
    Exceptions(Arc<Exceptions>, u128),
}

/// Why a schedule is not repaired.
enum Unfit {
    /// Some block cannot arrive.
    Steps,
    /// Ranks do not do the same, or not hop by hop.
    Ranks,
    /// Too many blocks are cut.
    Blocks,
}

/// A machine with failures, and the machine of the schedule that is repaired.
struct Machines<'r> {
    request: Request<'r>,
    graph: &'r Graph,
    /// The machine without failures, if the schedule is for it.
    whole: Option<Arc<Arc<dyn Topology>>>,
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
        if on == "failed" {
            let nodes = (0..ranks).map(Some).collect();
            return Ok(Self { request: *request, graph, whole: None, nodes });
        }
        let whole = request.kept("whole machine", || lattice.unbroken());
        let mut nodes = vec![None; whole.ranks() as usize];
        for node in 0..ranks {
            nodes[lattice.place(Rank(node)).index()] = Some(node);
        }
        Ok(Self { request: *request, graph, whole: Some(whole), nodes })
    }

    /// The request for the schedule that is repaired.
    fn origin(&self) -> Request<'_> {
        let Some(whole) = &self.whole else { return self.request };
        let part =
            self.request.part(&***whole, self.request.problem.ports, self.request.bytes(1u32));
        part.expect("bug: an invalid problem of the whole machine")
    }

    /// The repaired schedule, of `steps` steps or as many as suffice.
    fn repair(
        &self,
        schedule: &Schedule,
        steps: Option<usize>,
        moves_all: bool,
    ) -> Result<Repaired, Unfit> {
        let machine = self.origin().topology;
        let followed = if moves_all {
            Followed::listed(schedule)
        } else {
            Followed::equivalent(schedule, machine).ok_or(Unfit::Ranks)?
        };
        let found = Steps::new(self.graph, machine, &self.nodes, schedule.problem.ports, &followed);
        let numbers = match steps {
            Some(steps) => steps..=steps,
            None => found.count()..=found.count() + MOST_ADDED,
        };
        let ranks = self.request.problem.ranks as usize;
        let connected = |steps| {
            let connections = found.connections(steps, followed.sent.len());
            reach_all(&connections, ranks).then_some(connections)
        };
        // With more steps, ranks reach all that they reach with fewer.
        let (mut fewest, most) = numbers.into_inner();
        let mut connections = connected(fewest).or_else(|| connected(most)).ok_or(Unfit::Steps)?;
        while fewest + 1 < connections.count() {
            let middle = fewest.midpoint(connections.count());
            match connected(middle) {
                Some(fewer) => connections = fewer,
                None => fewest = middle,
            }
        }
        let (pieces, loads) = self.pieces(&followed, &connections)?;
        let places = (0..).zip(&self.nodes).filter(|(_, node)| node.is_some());
        let places: Vec<Rank> = places.map(|(rank, _)| Rank(rank)).collect();
        let near = followed.equivalent.as_ref();
        let near =
            near.and_then(|equivalent| Near::new(equivalent, (&self.nodes, &places), machine));
        let paths = Paths::new(&connections, near, (ranks, moves_all), pieces, loads);
        // Steps without messages are left out.
        let (mut used, mut hops) = (Vec::new(), 0);
        for step in 0..connections.count() {
            let sent = connections.of_step(step).filter(|&one| paths.loads[one] > 0);
            if let Some(farthest) = sent.map(|one| connections.all[one].route.hops()).max() {
                used.push(step);
                hops += u128::from(farthest);
            }
        }
        let (steps, volume) = (used.len() as u32, paths.volume().into());
        let Paths { pieces, .. } = paths;
        let made = match followed.equivalent {
            None => Made::Listed(messages(&connections, &used, &followed.parts, &pieces)),
            Some(equivalent) => {
                let whole = Whole { schedule: schedule.clone(), equivalent, parts: followed.parts };
                let nodes = (self.nodes.clone(), places);
                let made = Exceptions::new(whole, nodes, (&connections, &used), &pieces);
                Made::Exceptions(Arc::new(made), volume)
            }
        };
        Ok(Repaired { made, steps, hops, shared: found.shared })
    }

    /// The pieces that may move, with the paths that they have; and by connection the size of all others.
    fn pieces(
        &self,
        followed: &Followed,
        connections: &Connections,
    ) -> Result<(Vec<Piece>, Vec<u64>), Unfit> {
        let (mut pieces, mut loads) = (Vec::new(), vec![0; connections.all.len()]);
        let Followed { sizes, .. } = followed;
        let mut list = |[from, to]: [usize; 2],
                        part: usize,
                        messages: &mut dyn Iterator<Item = u32>| {
            let (Some(from), Some(to)) = (self.nodes[from], self.nodes[to]) else { return };
            let path: Vec<u32> = messages.map(|one| connections.of_message[one as usize]).collect();
            let path = if path.contains(&NONE) { Vec::new() } else { path };
            if from != to {
                pieces.push(Piece { from, to, part, size: sizes[part], path });
            }
        };
        let Some(equivalent) = &followed.equivalent else {
            for (block, paths) in followed.blocks() {
                for (part, path) in paths.iter().enumerate() {
                    list(block, part, &mut path.iter().copied());
                }
            }
            return Ok((pieces, loads));
        };
        // The loads of all messages, then without the blocks that are cut or have failed.
        let mut messages = Vec::new();
        for (message, &connection) in (0..).zip(&connections.of_message) {
            match connection {
                NONE => messages.push(message),
                _ => loads[connection as usize] = equivalent.size(message),
            }
        }
        // A block may be in several of them.
        let mut cut = equivalent.blocks(&messages, 8 * MOST_EXCEPTIONS).ok_or(Unfit::Blocks)?;
        cut.extend(equivalent.failed(&self.nodes));
        cut.sort_unstable();
        cut.dedup();
        for &block in &cut {
            for (piece, size) in sizes.iter().enumerate() {
                let messages = || equivalent.messages(block, piece).map(|(message, _)| message);
                for message in messages() {
                    let connection = connections.of_message[message as usize];
                    if connection != NONE {
                        loads[connection as usize] -= size;
                    }
                }
                let mut path: Vec<u32> = messages().collect();
                path.reverse();
                list(block.map(Rank::index), piece, &mut path.into_iter());
            }
        }
        if pieces.len() > MOST_EXCEPTIONS { Err(Unfit::Blocks) } else { Ok((pieces, loads)) }
    }
}

/// The setting that repairs a schedule.
fn repairing(Origin { algorithm, parameters }: &Origin, on: &str, moved: &str) -> Parameters {
    let mut setting = OF.naming(algorithm, parameters);
    setting.insert(ON.name.to_owned(), on.into());
    setting.insert(MOVED.name.to_owned(), moved.into());
    setting
}

/// Settings for schedules without link contention, each with its steps, on the Pareto front of all, and the
/// default.
fn settings(request: &Request<'_>) -> Vec<(u64, Parameters)> {
    let mut all = Vec::new();
    let ruled = |one: &&dyn Algorithm| request.search(*one, &Parameters::new()).is_none();
    for algorithm in request.inner().filter(ruled) {
        let free = request.solutions(algorithm).filter(|found| found.claims.contention_free);
        all.extend(free.map(|Solution { schedule, claims }| {
            (claims.steps, claims.bytes, repairing(&schedule.origin, "whole", "all"))
        }));
    }
    let mut kept = front(all, MOST_PRICED);
    if let Ok(Solution { schedule, claims }) =
        request.solve_inner(&ColouredRings, &Parameters::new())
    {
        let default = (claims.steps, repairing(&schedule.origin, "whole", "all"));
        if !kept.contains(&default) {
            kept.insert(0, default);
        }
    }
    kept
}

/// Settings for schedules without link contention of which one rank of each class is followed, on the Pareto front of
/// all.
fn followed(request: &Request<'_>) -> Vec<Parameters> {
    let mut all = Vec::new();
    let ruled = |one: &&dyn Algorithm| request.search(*one, &Parameters::new()).is_none();
    for algorithm in request.inner().filter(ruled) {
        let fits = |Solution { schedule, claims }: &Solution| {
            claims.contention_free
                && claims.rearrangements == Some(0)
                && claims.steps <= MOST_STEPS_FOLLOWED
                && can_follow(schedule, request.topology)
        };
        let fitting = request.solutions(algorithm).filter(fits);
        all.extend(fitting.map(|Solution { schedule, claims }| {
            (claims.steps, claims.bytes, repairing(&schedule.origin, "whole", "cut"))
        }));
    }
    let most = if request.problem.ranks > MOST_LISTED { MOST_PRICED / 4 } else { MOST_PRICED };
    front(all, most).into_iter().map(|(_, setting)| setting).collect()
}

/// Settings for schedules hop by hop in which all ranks do the same, on the Pareto front of all and on that of
/// schedules of whole blocks: parts of blocks may be too many to move. Their repair takes seconds.
fn hop_by_hop(request: &Request<'_>) -> Vec<Parameters> {
    let found = request.solutions(&NeighbourRings);
    let of_one_class = |found: &Solution| {
        translations(&found.schedule, request.topology).is_some_and(|one| one.count() == 1)
    };
    let found = found.filter(of_one_class);
    let counted = found.map(|Solution { schedule, claims }| {
        let setting = repairing(&schedule.origin, "whole", "cut");
        (schedule.rule().cuts().is_empty(), (claims.steps, claims.bytes, setting))
    });
    let counted: Vec<_> = counted.collect();
    let on_front = |of_whole_blocks: bool| {
        let kept = counted.iter().filter(|(is_whole, _)| *is_whole || !of_whole_blocks);
        front(kept.map(|(_, counts)| counts.clone()).collect(), MOST_PRICED)
    };
    let mut settings = [on_front(false), on_front(true)].concat();
    settings.sort();
    settings.dedup();
    settings.into_iter().map(|(_, setting)| setting).collect()
}

impl Algorithm for Repair {
    fn info(&self) -> &Info {
        &INFO
    }

    /// The schedules of the whole machine that are not beaten, and the matchings of this one in fewer steps.
    fn candidates(&self, request: &Request<'_>) -> Result<Vec<Parameters>, NotApplicable> {
        let machines = Machines::new(request, "whole")?;
        let ranks = request.problem.ranks;
        let origin = machines.origin();
        let of = |what: &str| format!("repair {what} {:?}", origin.problem);
        let whole = match ranks {
            0..=MOST_RANKED => (*origin.kept(of("free"), || settings(&origin))).clone(),
            _ => Vec::new(),
        };
        if ranks > MOST_TRIED {
            // On one port they are slow, and those of longer routes faster.
            let mut found = match request.problem.ports {
                1 if ranks > MOST_LISTED => Vec::new(),
                _ => (*origin.kept(of("by hop"), || hop_by_hop(&origin))).clone(),
            };
            if ranks > MOST_RANKED {
                found.extend((*origin.kept(of("by class"), || followed(&origin))).clone());
            }
            // These are of neighbour-rings.
            let name = NeighbourRings.info().name.as_ref();
            let is_other = |setting: &Parameters| {
                found.is_empty() || setting.get(OF.name) != Some(&name.into())
            };
            let others = whole.into_iter().map(|(_, setting)| setting).filter(is_other);
            found.extend(others.collect::<Vec<_>>());
            let why = "more than 256 ranks of a mesh take minutes";
            return if found.is_empty() { Err(NotApplicable::Unranked { why }) } else { Ok(found) };
        }
        let whole = whole.into_iter().flat_map(|(steps, setting)| {
            let mut longer = setting.clone();
            longer.insert(STEPS.name.to_owned(), (steps + LONGER).into());
            [setting, longer]
        });
        let matchings = request.solve(&LinkMatchings, &Parameters::new())?;
        let steps = matchings.claims.steps;
        let fewer = [10, 5].map(|share| {
            let mut fewer = repairing(&matchings.schedule.origin, "failed", "all");
            fewer.insert(STEPS.name.to_owned(), (steps - steps / share).into());
            fewer
        });
        Ok(whole.chain(fewer).collect())
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let moves_all = values.is(MOVED.name, "all");
        let ranks = request.problem.ranks;
        if moves_all && ranks > MOST_LISTED {
            return Err(NotApplicable::Ranks { rule: "at most 512 ranks, or moved=cut", ranks });
        }
        let steps = values.number(STEPS.name, 1, MOST_STEPS)?.map(|steps| steps as usize);
        let on = values.word(ON.name);
        let machines = Machines::new(request, on)?;
        let part = machines.origin();
        let solved = |part: &Request<'_>| match values.solve_named(OF.name, part)? {
            Some(inner) => Ok(inner),
            None => part.solve_inner(&ColouredRings, &Parameters::new()),
        };
        let inner = solved(&part)?;
        let Origin { algorithm, parameters } = &inner.schedule.origin;
        let Problem { ports, block_bytes, .. } = part.problem;
        let cuts = inner.schedule.rule().cuts().len();
        // The schedule of a caller's algorithm may depend on the size.
        let own = request.planner.catalogue().is_own(algorithm);
        let usual = || {
            let part = part.part(part.topology, ports, USUAL_BYTES.into())?;
            let usual = solved(&part).ok()?.schedule;
            (usual.rule().cuts().len() == cuts).then_some(usual)
        };
        let usual = if moves_all && cuts > 0 && !own { usual() } else { None };
        let usual = usual.as_ref().unwrap_or(&inner.schedule);
        // All that the paths depend on.
        let bytes = (own || cuts > 0).then_some(usual.problem.block_bytes);
        let of = format!("{algorithm} {parameters:?} {on} {moves_all} {steps:?} {ports} {bytes:?}");
        let repaired = request.kept(of, || machines.repair(usual, steps, moves_all));
        let repaired = match &*repaired {
            Ok(repaired) => repaired,
            Err(Unfit::Steps) if steps.is_none() => {
                let needs = "a machine on which all blocks arrive in at most 16 steps more";
                return Err(request.requires(needs));
            }
            Err(Unfit::Steps) => {
                return Err(values.refused(STEPS.name, "enough for all blocks to arrive"));
            }
            Err(Unfit::Ranks) => {
                let rule = "all, as too many ranks of the schedule differ, or some copy blocks";
                return Err(values.refused(MOVED.name, rule));
            }
            Err(Unfit::Blocks) => {
                let rule = "all, as more than 262144 pieces of blocks are cut";
                return Err(values.refused(MOVED.name, rule));
            }
        };
        let claims = |bytes| Claims {
            hops: Some(repaired.hops),
            hops_floor: repaired.hops,
            rearrangements: Some(0),
            contention_free: !repaired.shared,
            ..Claims::new(repaired.steps.into(), bytes)
        };
        let solution = match &repaired.made {
            Made::Listed(messages) => {
                let parts = [usual, &inner.schedule].map(parts);
                let (recorder, bytes) = recorded(messages, &parts, request.problem);
                Solution::new(request, values, recorder.finish(), claims(bytes))
            }
            Made::Exceptions(made, volume) => {
                let unit = if cuts > 0 { 1 } else { block_bytes };
                let made = Excepted(Arc::clone(made));
                Solution::new(request, values, made, claims(volume * u128::from(unit)))
            }
        };
        let solution = match steps {
            Some(steps) => solution.with(STEPS.name, steps as u64),
            None => solution,
        };
        Ok(solution.with_named(&OF, &inner))
    }
}
