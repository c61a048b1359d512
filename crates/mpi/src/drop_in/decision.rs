//! Chooses an algorithm or the library for an operation on blocks of a size.

use topocoll::tune::{Library, unaware};
use topocoll::{Budget, Choice, Error, Parameters, Sync};

use super::library::uses;
use super::ours::{Ours, Subject};
use super::place::Place;
use super::settings::Wish;
use super::vector::Sizes;

/// A decision and its reason.
#[derive(Debug)]
pub(crate) struct Decision {
    /// The schedule to run, or schedules to try; empty for the library's call.
    pub(crate) ours: Vec<Ours>,
    /// Whether measurement decides between these and the library's call.
    pub(crate) tries: bool,
    pub(crate) reason: String,
    /// A requested algorithm that does not apply.
    pub(crate) warning: Option<String>,
}

/// The least predicted gain, as a share of the library's time; predictions have errors.
const GAIN: f64 = 0.1;

/// Algorithms whose leaders carry the blocks of their nodes. The best of them, or on one node the best
/// of all, is tried with a shared window too, whatever its predicted time: predictions do not know the
/// window.
const LEADERS: [&str; 2] = ["node-aware", "node-gather"];

/// The most schedules to try, without one with barriers.
const TRIED: usize = 3;

/// Schedules are tried if their predicted times are at most this many times the library's;
/// predictions have errors.
const PLAUSIBLE: f64 = 1.5;

/// The rules of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    pub(crate) wish: Wish,
    /// Predictions only propose schedules, and measurement decides.
    pub(crate) tries: bool,
    /// Schedules may use a shared window.
    pub(crate) has_window: bool,
    /// The synchronization of all schedules. `None`: free, and where links may be shared only because
    /// ranks are not in step, one is tried with barriers too.
    pub(crate) sync: Option<Sync>,
}

/// Decides for a subject. A schedule may be for any of the places; predictions use the first.
pub(crate) fn decide(
    places: &[Place],
    rules: Rules,
    library: Option<&Library>,
    subject: Subject,
) -> Decision {
    let Subject { operation, sizes, .. } = subject;
    let block_bytes = sizes.bytes();
    let forward = |reason| Decision::forward(format!("forwarded, {reason}"));
    match rules.wish {
        Wish::Library => forward("another operation is forced".to_owned()),
        _ if matches!(sizes, Sizes::Large | Sizes::Unknown) => {
            forward("all blocks of a rank have 2 GiB or more".to_owned())
        }
        Wish::Fastest if sizes == Sizes::Empty => forward("blocks are empty".to_owned()),
        Wish::Fastest if sizes == Sizes::Apart => {
            forward("predictions are for blocks of one size".to_owned())
        }
        Wish::Fastest => fastest(&places[0], rules, library, subject)
            .unwrap_or_else(|error| forward(error.to_string())),
        Wish::Algorithm { name, window } => {
            let forced = places.iter().map(|place| {
                let exchange = place.exchange(operation, block_bytes)?;
                let schedule = exchange.schedule(name, &Parameters::new())?;
                let window = window && rules.has_window;
                let ours = Ours { window, ..Ours::new(place, &schedule, rules.sync) };
                ours.plan(Subject { vector: false, ..subject }, 0)?;
                let reason = format!("{ours} on {place}, forced");
                Ok(Decision { ours: vec![ours], tries: false, reason, warning: None })
            });
            let mut refused: Option<Error> = None;
            for outcome in forced {
                match outcome {
                    Ok(decision) => return decision,
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            let warning = refused.map(|error| error.to_string());
            Decision {
                warning,
                ..decide(places, Rules { wish: Wish::Fastest, ..rules }, library, subject)
            }
        }
    }
}

/// Our schedules that the model predicts to be fast enough.
fn fastest(
    place: &Place,
    rules: Rules,
    library: Option<&Library>,
    subject: Subject,
) -> Result<Decision, Error> {
    let (operation, block_bytes) = (subject.operation, subject.sizes.bytes());
    // In a thread of its own, so that the program keeps no thread pool.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    // The program waits for the result.
    let exchange = place.exchange(operation, block_bytes)?.budget(Budget::quick());
    let selection = match &alone {
        Ok(alone) => alone.install(|| exchange.select()),
        Err(_) => exchange.select(),
    }?;
    let uses = uses(library, operation, exchange.problem().ranks, block_bytes).iter();
    let theirs = uses.filter_map(|name| {
        let choice = unaware(&exchange, name).ok()?;
        Some((*name, choice.price.time.total()))
    });
    let theirs = theirs.min_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(best), Some((name, their_time))) = (selection.best(), theirs) else {
        return Ok(Decision::forward(format!("forwarded, nothing to compare on {place}")));
    };
    let time = best.price.time.total();
    let ours = |choice: &Choice| -> Result<Ours, Error> {
        let schedule = exchange.schedule(&choice.algorithm, &choice.parameters)?;
        let ours = Ours::new(place, &schedule, rules.sync);
        ours.plan(subject, 0).map(|_| ours)
    };
    let [predicted, against] = [time, their_time].map(|seconds| seconds * 1e6);
    let (mut proposed, mut reason): (Vec<Ours>, _) = (Vec::new(), String::new());
    if rules.tries {
        let limit = PLAUSIBLE * their_time;
        if rules.has_window {
            let is_leaders = |choice: &&Choice| LEADERS.contains(&choice.algorithm.as_str());
            let leaders = selection.choices.iter().filter(is_leaders);
            let all = selection.choices.iter().filter(|_| place.is_one_node);
            let through = leaders.chain(all).find_map(|choice| ours(choice).ok());
            proposed.extend(through.map(|ours| Ours { window: true, ..ours }));
        }
        for choice in &selection.choices {
            let known =
                proposed.iter().any(|ours| ours.algorithm == choice.algorithm && !ours.window);
            if choice.price.time.total() <= limit && !known {
                proposed.extend(ours(choice));
            }
            if proposed.len() == TRIED {
                break;
            }
        }
        if rules.sync.is_none() {
            let in_step = selection.choices.iter().filter(|choice| {
                let price = &choice.price;
                price.link_contention == 1 && price.steps > 1 && price.time.total() <= limit
            });
            let time = |choice: &Choice| choice.price.time.total();
            let best = in_step.min_by(|a, b| time(a).total_cmp(&time(b)));
            let best = best.and_then(|choice| ours(choice).ok());
            proposed.extend(best.map(|ours| Ours { sync: Sync::Barrier, ..ours }));
        }
        let names: Vec<String> = proposed.iter().map(Ours::to_string).collect();
        reason = format!("tries {} on {place}", names.join(", "));
    } else if time < (1.0 - GAIN) * their_time {
        let ours = ours(best)?;
        reason = format!(
            "{ours} on {place}, predicted {predicted:.1} us, the library's {name} {against:.1} us"
        );
        proposed.push(ours);
    }
    if proposed.is_empty() {
        let best = &best.algorithm;
        return Ok(Decision::forward(format!(
            "forwarded, no gain predicted on {place}: {best} {predicted:.1} us, the library's \
             {name} {against:.1} us"
        )));
    }
    Ok(Decision { ours: proposed, tries: rules.tries, reason, warning: None })
}

impl Decision {
    fn forward(reason: String) -> Self {
        Self { ours: Vec::new(), tries: false, reason, warning: None }
    }
}

#[cfg(test)]
mod tests {
    use topocoll::Collective;
    use topocoll::tune::LIBRARIES;

    use super::*;
    use crate::drop_in::place::{Known, places};

    fn rules(tries: bool) -> Rules {
        Rules { wish: Wish::Fastest, tries, has_window: tries, sync: None }
    }

    /// Ranks on these nodes, or one on each node of a machine.
    fn on_nodes(nodes: &[u32]) -> Vec<Place> {
        let world: Vec<u32> = (0..nodes.len() as u32).collect();
        places(&Known { nodes, grid: None, world: &world, given: None, groups: None })
    }

    fn on_machine(name: &str) -> Vec<Place> {
        let machine = topocoll::machine(name).unwrap();
        let world: Vec<u32> = (0..machine.ranks()).collect();
        places(&Known {
            nodes: &world,
            grid: None,
            world: &world,
            given: Some(&machine),
            groups: None,
        })
    }

    fn decided(places: &[Place], rules: Rules, kind: (Collective, bool, Sizes)) -> Decision {
        let (operation, vector, sizes) = kind;
        decide(places, rules, LIBRARIES.first(), Subject { operation, vector, sizes })
    }

    fn on(nodes: &[u32], operation: Collective, bytes: u64) -> Decision {
        let sizes = Sizes::Equal(bytes.ilog2() as usize);
        decided(&on_nodes(nodes), rules(false), (operation, false, sizes))
    }

    #[test]
    fn nothing_beats_the_library_where_it_does_not_combine_in_shared_memory() {
        for (ranks, bytes) in [(4, 1), (8, 64), (8, 1 << 20), (16, 1 << 10), (16, 1 << 16)] {
            for operation in [Collective::AllToAll, Collective::AllGather] {
                let decision = on(&vec![0; ranks], operation, bytes);
                assert!(decision.ours.is_empty(), "{ranks} {bytes}: {}", decision.reason);
            }
        }
    }

    #[test]
    fn combining_in_shared_memory_is_replaced() {
        for bytes in [4, 64, 256] {
            let decision = on(&[0; 16], Collective::AllToAll, bytes);
            let [ours] = &decision.ours[..] else { panic!("{}", decision.reason) };
            assert_eq!(ours.ports, 15);
            let sizes = Sizes::Equal(bytes.ilog2() as usize);
            let subject = Subject { operation: Collective::AllToAll, vector: false, sizes };
            let plan = ours.plan(subject, 3).unwrap();
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
            let places = on_machine(&format!("cluster:{sizes}"));
            let decision = decided(&places, rules(false), (Collective::AllToAll, true, Sizes::Own));
            assert!(decision.ours.is_empty(), "{}", decision.reason);
        }
    }

    #[test]
    fn small_blocks_between_nodes_are_combined() {
        let nodes: Vec<u32> = (0..12).map(|rank| rank / 4).collect();
        let decision = on(&nodes, Collective::AllToAll, 8);
        let [ours] = &decision.ours[..] else { panic!("{}", decision.reason) };
        assert_eq!(ours.algorithm, "node-aware");
    }

    #[test]
    fn predictions_propose_different_algorithms_to_try() {
        let apart = on_nodes(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        let tried = |operation, vector, sizes| {
            let decision = decided(&apart, rules(true), (operation, vector, sizes));
            assert!(decision.tries, "{}", decision.reason);
            decision.ours.into_iter().map(|ours| (ours.algorithm, ours.window)).collect::<Vec<_>>()
        };
        // The leaders' schedule with a shared window is one of the candidates.
        let (all_to_all, all_gather) = (Collective::AllToAll, Collective::AllGather);
        let small = tried(all_to_all, false, Sizes::Equal(3));
        let first = small.iter().map(|(name, window)| (name.as_str(), *window)).take(2);
        assert_eq!(first.collect::<Vec<_>>(), [("node-aware", true), ("node-aware", false)]);
        assert!(small.len() == TRIED && small[2].0 != "node-aware", "{small:?}");
        // With sizes that only two ranks know, only schedules that send every block straight serve.
        let straight =
            |(name, window): &(String, bool)| name != "bruck" && name != "node-aware" && !window;
        let own = tried(all_to_all, true, Sizes::Own);
        assert!(!own.is_empty() && own.iter().all(straight), "{own:?}");
        // With sizes that all ranks know, leaders carry blocks, and so through a window too.
        let about = tried(all_gather, true, Sizes::About(3));
        assert_eq!(about[0], ("node-gather".to_owned(), true), "{about:?}");
        // On one node there are no leaders: the best of all is tried through a window.
        for kind in [
            (all_to_all, false, Sizes::Equal(12)),
            (all_to_all, true, Sizes::Own),
            (all_gather, true, Sizes::About(12)),
        ] {
            let ours = decided(&on_nodes(&[0; 12]), rules(true), kind).ours;
            assert_eq!((ours[0].window, &ours[0].algorithm), (true, &ours[1].algorithm));
            assert!(ours[1..].iter().all(|ours| !ours.window), "{ours:?}");
        }
    }

    /// On links the schedule that is best in step is tried with barriers too. Without links nothing is.
    #[test]
    fn trials_have_a_schedule_with_barriers_where_ranks_in_step_share_no_links() {
        let tried = |machine: &str, operation, vector, sync| {
            let sizes = if vector { Sizes::Own } else { Sizes::Equal(16) };
            let rules = Rules { sync, ..rules(true) };
            decided(&on_machine(machine), rules, (operation, vector, sizes)).ours
        };
        let (all_to_all, all_gather) = (Collective::AllToAll, Collective::AllGather);
        for (machine, operation, vector) in [
            ("torus:4x4", all_to_all, false),
            ("torus:4x4", all_to_all, true),
            ("torus:4x4/0,0+0", all_to_all, false),
            ("mesh:4x4", all_gather, false),
            ("full:16", all_to_all, false),
            ("cluster:4*4", all_to_all, false),
        ] {
            let both = tried(machine, operation, vector, None);
            let (with, free): (Vec<_>, Vec<_>) =
                both.iter().partition(|ours| ours.sync == Sync::Barrier);
            let on_links = usize::from(!machine.starts_with(['f', 'c']));
            assert_eq!(with.len(), on_links, "{machine}: {both:?}");
            assert!((1..=TRIED).contains(&free.len()), "{machine}: {both:?}");
            for sync in [Sync::Free, Sync::Barrier] {
                let all = tried(machine, operation, vector, Some(sync));
                assert!(all.iter().all(|ours| ours.sync == sync), "{machine}: {all:?}");
                assert_eq!(all.len(), free.len(), "{machine}: {all:?}");
            }
        }
    }

    #[test]
    fn a_wish_that_cannot_be_met_is_said() {
        let wish = Wish::Algorithm { name: "pairwise-xor", window: false };
        let rules = Rules { wish, ..rules(false) };
        let kind = (Collective::AllToAll, false, Sizes::Equal(6));
        let decision = decided(&on_nodes(&[0; 6]), rules, kind);
        assert!(decision.warning.is_some_and(|warning| warning.starts_with("pairwise-xor: ")));
    }
}
