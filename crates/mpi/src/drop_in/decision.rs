//! Chooses an algorithm or the library for an operation on blocks of a size.

use serde::{Deserialize, Serialize};
use topocoll::exec::Plan;
use topocoll::tune::unaware;
use topocoll::{
    Budget, Collective, Error, Exchange, Machine, Parameters, Problem, Rank, Schedule, spec,
};

use super::library::Library;
use super::place::Place;
use super::settings::Wish;
use super::vector::Sizes;

/// A schedule of ours, as the first rank tells the others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Ours {
    topology: String,
    ports: u32,
    /// By rank of the schedule, the rank of the communicator; `None` if they are equal.
    pub(crate) order: Option<Vec<u32>>,
    algorithm: String,
    parameters: Parameters,
}

/// A decision and its reason.
#[derive(Debug)]
pub(crate) struct Decision {
    /// `None` for the library's call.
    pub(crate) ours: Option<Ours>,
    pub(crate) reason: String,
    /// A requested algorithm that does not apply.
    pub(crate) warning: Option<String>,
}

/// The least predicted gain, as a share of the library's time; predictions have errors.
const GAIN: f64 = 0.1;

/// Decides for blocks of these sizes. A schedule may be for any of the places; predictions use the
/// first.
pub(crate) fn decide(
    places: &[Place],
    wish: Wish,
    library: Library,
    operation: Collective,
    sizes: Sizes,
) -> Decision {
    let block_bytes = sizes.bytes();
    let forward =
        |reason| Decision { ours: None, reason: format!("forwarded, {reason}"), warning: None };
    match wish {
        Wish::Library => forward("TOPOCOLL_ALGORITHM names another operation".to_owned()),
        _ if matches!(sizes, Sizes::Large | Sizes::Unknown) => {
            forward("all blocks of a rank have 2 GiB or more".to_owned())
        }
        Wish::Fastest if sizes == Sizes::Empty => forward("blocks are empty".to_owned()),
        Wish::Fastest if sizes == Sizes::Apart => {
            forward("predictions are for blocks of one size".to_owned())
        }
        Wish::Fastest => fastest(&places[0], library, operation, block_bytes)
            .unwrap_or_else(|error| forward(error.to_string())),
        Wish::Algorithm(name) => {
            let forced = places.iter().map(|place| {
                let problem = problem(&place.machine, operation, block_bytes)?;
                let exchange = Exchange::new(&place.machine, &problem)?;
                let schedule = exchange.schedule(name, &Parameters::new())?;
                Ok(ours(place, &schedule, "forced"))
            });
            let mut refused: Option<Error> = None;
            for outcome in forced {
                match outcome {
                    Ok(decision) => return decision,
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            let warning = refused.map(|error| error.to_string());
            Decision { warning, ..decide(places, Wish::Fastest, library, operation, sizes) }
        }
    }
}

fn problem(machine: &Machine, operation: Collective, block_bytes: u64) -> Result<Problem, Error> {
    Ok(Problem::new(operation, machine.ranks(), machine.ports, block_bytes)?)
}

fn ours(place: &Place, schedule: &Schedule, why: &str) -> Decision {
    let (algorithm, parameters) =
        (schedule.origin.algorithm.to_string(), schedule.origin.parameters.clone());
    let named = parameters.iter().map(|(name, value)| format!(" {name}={value}"));
    let named: String = named.collect();
    let (machine, source) = (&place.machine, place.source);
    let topology = machine.topology.short_form();
    let reason = format!("{algorithm}{named} on {topology} ({source}), {why}");
    let (ports, order) = (machine.ports, place.order.clone());
    let ours = Ours { topology, ports, order, algorithm, parameters };
    Decision { ours: Some(ours), reason, warning: None }
}

/// Our schedule where the model predicts it to be faster than the library.
fn fastest(
    place: &Place,
    library: Library,
    operation: Collective,
    block_bytes: u64,
) -> Result<Decision, Error> {
    let machine = &place.machine;
    let problem = problem(machine, operation, block_bytes)?;
    // In a thread of its own, so that the program keeps no thread pool.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    // The program waits for the result.
    let exchange = Exchange::new(machine, &problem)?.budget(Budget::quick());
    let selection = match &alone {
        Ok(alone) => alone.install(|| exchange.select()),
        Err(_) => exchange.select(),
    }?;
    let uses = library.uses(operation, problem.ranks, block_bytes).iter();
    let theirs = uses.filter_map(|name| {
        let choice = unaware(machine, &problem, name).ok()?;
        Some((*name, choice.price.time.total()))
    });
    let theirs = theirs.min_by(|a, b| a.1.total_cmp(&b.1));
    let topology = machine.topology.short_form();
    let (Some(best), Some((name, their_time))) = (selection.best(), theirs) else {
        let reason = format!("forwarded, nothing to compare on {topology}");
        return Ok(Decision { ours: None, reason, warning: None });
    };
    let time = best.price.time.total();
    let [predicted, against] = [time, their_time].map(|seconds| seconds * 1e6);
    if time < (1.0 - GAIN) * their_time {
        let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
        let why = format!("predicted {predicted:.1} us, the library's {name} {against:.1} us");
        return Ok(ours(place, &schedule, &why));
    }
    let (best, source) = (&best.algorithm, place.source);
    let reason = format!(
        "forwarded, no gain predicted on {topology} ({source}): {best} {predicted:.1} us, the \
         library's {name} {against:.1} us"
    );
    Ok(Decision { ours: None, reason, warning: None })
}

impl Ours {
    /// A rank's plan.
    ///
    /// # Errors
    /// A schedule too large to number; the first rank plans before it tells the others.
    pub(crate) fn plan(
        &self,
        operation: Collective,
        block_bytes: u64,
        rank: u32,
    ) -> Result<Plan, Error> {
        let topology = spec::parse_short_form(&self.topology).map_err(Error::ShortForm)?;
        let mut machine = Machine::of(topology);
        machine.set_ports(self.ports);
        let problem = problem(&machine, operation, block_bytes)?;
        let schedule =
            Exchange::new(&machine, &problem)?.schedule(&self.algorithm, &self.parameters)?;
        Ok(Plan::new(&schedule, Rank(rank))?)
    }
}

#[cfg(test)]
mod tests {
    use crate::drop_in::place::{Known, places};

    use super::*;

    fn on(nodes: &[u32], operation: Collective, bytes: u64) -> Decision {
        let world: Vec<u32> = (0..nodes.len() as u32).collect();
        let places = places(&Known { nodes, grid: None, world: &world, given: None });
        let sizes = Sizes::Equal(bytes.ilog2() as usize);
        decide(&places, Wish::Fastest, Library::OpenMpi, operation, sizes)
    }

    #[test]
    fn nothing_beats_the_library_where_it_does_not_combine_in_shared_memory() {
        for (ranks, bytes) in [(4, 1), (8, 64), (8, 1 << 20), (16, 1 << 10), (16, 1 << 16)] {
            let decision = on(&vec![0; ranks], Collective::AllToAll, bytes);
            assert!(decision.ours.is_none(), "{ranks} {bytes}: {}", decision.reason);
            let decision = on(&vec![0; ranks], Collective::AllGather, bytes);
            assert!(decision.ours.is_none(), "{ranks} {bytes}: {}", decision.reason);
        }
    }

    #[test]
    fn combining_in_shared_memory_is_replaced() {
        for bytes in [4, 64, 256] {
            let decision = on(&[0; 16], Collective::AllToAll, bytes);
            let ours = decision.ours.expect("a gain");
            assert_eq!(ours.ports, 15);
            let plan = ours.plan(Collective::AllToAll, bytes, 3).unwrap();
            assert_eq!((plan.tags(), plan.messages()), (1, 30));
        }
    }

    /// All messages at once keep the ports of the largest node as busy as any order can. Pairs of
    /// nodes in turn (Sanders and Traeff 2002, section 4) gain nothing over that, for nodes of
    /// equal or different sizes, by prediction and by measurement (`docs/src/papers.md`).
    #[test]
    fn pairs_of_nodes_are_not_thought_to_beat_all_messages_at_once() {
        let spread = ["1,2,4,4,2,1", "4,1,4,1,4,1", "3,1,4,2,4,3", "2,4,1,3,1,2"];
        for sizes in ["8*4", "6*4", "2*4", "3,5,2,6"].iter().chain(&spread) {
            let machine = format!("cluster:{sizes}");
            let machine = topocoll::machine(&machine).unwrap();
            let world: Vec<u32> = (0..machine.ranks()).collect();
            let given = Some(&machine);
            let places = places(&Known { nodes: &world, grid: None, world: &world, given });
            let (wish, all) = (Wish::Fastest, Collective::AllToAll);
            let decision = decide(&places, wish, Library::OpenMpi, all, Sizes::Own);
            assert!(decision.ours.is_none(), "{}", decision.reason);
        }
    }

    #[test]
    fn small_blocks_between_nodes_are_combined() {
        let nodes: Vec<u32> = (0..12).map(|rank| rank / 4).collect();
        let decision = on(&nodes, Collective::AllToAll, 8);
        let ours = decision.ours.expect("a gain");
        assert_eq!(ours.algorithm, "node-aware");
    }

    #[test]
    fn a_wish_that_cannot_be_met_is_said() {
        let known = Known { nodes: &[0; 6], grid: None, world: &[0, 1, 2, 3, 4, 5], given: None };
        let wish = Wish::Algorithm("pairwise-xor");
        let sizes = Sizes::Equal(6);
        let decision = decide(&places(&known), wish, Library::OpenMpi, Collective::AllToAll, sizes);
        assert!(decision.warning.is_some_and(|warning| warning.starts_with("pairwise-xor: ")));
    }
}
