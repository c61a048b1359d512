//! An explicit-state search: a few ranks, the faults of a plan, and every order in which words and
//! messages can arrive. Each rank runs the [`Protocol`]. The model adds channels that keep the
//! order of each pair of ranks, and exchanges in which every rank sends a message to every other
//! rank and ends when it has received one from each. The library performs some calls without words:
//! each rank counts its calls, and a call of the library ends when all ranks make it.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;

/// A rank's fault in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Its arguments are refused.
    Refused,
    /// Only the library understands its arguments.
    Unsure,
    /// Its size has no decision.
    Other,
    /// It cannot follow the decision.
    CannotServe,
    /// It fails after it has sent this many messages.
    Sends(u32),
    /// It fails after the exchange.
    After,
}

/// By rank and call.
type Plan = Vec<(u32, usize, Fault)>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Outcome {
    Ours,
    Library,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Words,
    Exchange,
    GivesUp,
    Library,
    Ended,
}

#[derive(Clone, Hash)]
struct Actor {
    protocol: Protocol,
    doing: Doing,
    /// The decided numbers, all decided for an exchange.
    known: BTreeSet<u64>,
    /// The call's number, if the call decides it.
    asks: Option<u64>,
    /// The calls since the decision, as this rank counts them.
    counted: usize,
    outcomes: Vec<Outcome>,
}

/// All ranks, and the words and messages under way, by sender and receiver.
#[derive(Clone, Hash)]
struct World {
    actors: Vec<Actor>,
    words: Vec<VecDeque<Word>>,
    /// Messages, by their call.
    messages: Vec<VecDeque<usize>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A rank hears a word of another.
    Hear(usize, usize),
    /// A rank has a message from every other.
    Complete(usize),
    /// A rank that ends its exchange waits for no other rank.
    GaveUp(usize),
    /// All ranks make the library's call.
    Library,
}

const SIZE: u64 = 5;
const OTHER: u64 = 7;
const REASON: Failed = Failed(1);

impl World {
    /// Forgets words to ranks that have ended.
    fn drop_words(&mut self) {
        let n = self.actors.len();
        for (channel, words) in self.words.iter_mut().enumerate() {
            if self.actors[channel % n].doing == Doing::Ended {
                words.clear();
            }
        }
    }
}

struct Search {
    ranks: usize,
    calls: usize,
    plan: Plan,
    /// A rank that exchanges only empty blocks in a call.
    apart: Option<(usize, usize)>,
    /// Whether every call decides, the first with a plan.
    again: bool,
    /// The library performs these calls since the decision without words, as bits.
    library: usize,
    seen: HashSet<u64>,
    path: Vec<Step>,
}

impl Search {
    /// Visits all reachable states.
    fn run(ranks: usize, calls: usize, plan: &Plan, apart: Option<(usize, usize)>) {
        for again in [false, true] {
            Self::states(ranks, calls, plan.clone(), apart, (again, 0));
        }
    }

    fn states(
        ranks: usize,
        calls: usize,
        plan: Plan,
        apart: Option<(usize, usize)>,
        (again, library): (bool, usize),
    ) {
        let (seen, path) = (HashSet::new(), Vec::new());
        let mut search = Self { ranks, calls, plan, apart, again, library, seen, path };
        let actor = |rank| Actor {
            protocol: Protocol::new(rank as u32, ranks as u32),
            doing: Doing::Words,
            known: BTreeSet::new(),
            asks: None,
            counted: 0,
            outcomes: Vec::new(),
        };
        let mut world = World {
            actors: (0..ranks).map(actor).collect(),
            words: vec![VecDeque::new(); ranks * ranks],
            messages: vec![VecDeque::new(); ranks * ranks],
        };
        for rank in 0..ranks {
            search.begin(&mut world, rank);
        }
        search.visit(&world);
    }

    fn visit(&mut self, world: &World) {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        let steps = self.steps(world);
        if steps.is_empty() {
            self.check(world);
        }
        for step in steps {
            let mut next = world.clone();
            self.path.push(step);
            self.take(&mut next, step);
            self.visit(&next);
            self.path.pop();
        }
    }

    fn must(&self, holds: bool, what: &str) {
        assert!(
            holds,
            "{what}: {} ranks, {:?}, apart {:?}, library {:b}, {:?}",
            self.ranks, self.plan, self.apart, self.library, self.path
        );
    }

    fn fault(&self, rank: usize, call: usize) -> Option<Fault> {
        let mut faults = self.plan.iter();
        faults.find(|fault| (fault.0 as usize, fault.1) == (rank, call)).map(|fault| fault.2)
    }

    /// The ranks that a rank exchanges messages with.
    fn partners(&self, rank: usize, call: usize) -> impl Iterator<Item = usize> {
        let apart = self.apart.filter(|apart| apart.1 == call).map(|apart| apart.0);
        let others = (0..self.ranks).filter(move |&other| other != rank);
        others.filter(move |&other| apart.is_none_or(|apart| apart != rank && apart != other))
    }

    /// The possible events. A word that does not change its receiver is heard at once, which loses
    /// no states.
    fn steps(&self, world: &World) -> Vec<Step> {
        let (mut steps, n) = (Vec::new(), self.ranks);
        if world.actors.iter().all(|actor| actor.doing == Doing::Library) {
            return vec![Step::Library];
        }
        for (rank, actor) in world.actors.iter().enumerate() {
            for from in 0..n {
                let Some(word) = world.words[from * n + rank].front() else { continue };
                let mut told = actor.protocol.clone();
                told.hear(from as u32, word.clone());
                if *word == Word::Left || told == actor.protocol {
                    return vec![Step::Hear(rank, from)];
                }
                steps.push(Step::Hear(rank, from));
            }
            match actor.doing {
                Doing::Exchange => {
                    let mut partners = self.partners(rank, actor.outcomes.len());
                    if partners.all(|from| !world.messages[from * n + rank].is_empty()) {
                        steps.push(Step::Complete(rank));
                    }
                }
                Doing::GivesUp => {
                    let taken = |to: usize| world.messages[rank * n + to].is_empty();
                    if (0..n).all(|to| taken(to) || actor.protocol.has_left(to as u32)) {
                        return vec![Step::GaveUp(rank)];
                    }
                }
                _ => {}
            }
        }
        steps
    }

    fn take(&self, world: &mut World, step: Step) {
        let n = self.ranks;
        match step {
            Step::Hear(rank, from) => {
                let word = world.words[from * n + rank].pop_front().unwrap();
                let actor = &mut world.actors[rank];
                actor.protocol.hear(from as u32, word);
                match actor.doing {
                    Doing::Words => self.advance(world, rank),
                    Doing::Exchange => {
                        if let Err(failed) = actor.protocol.look() {
                            self.give_up(world, rank, failed);
                        }
                    }
                    Doing::GivesUp | Doing::Library | Doing::Ended => {}
                }
            }
            Step::Complete(rank) => {
                let call = world.actors[rank].outcomes.len();
                for from in self.partners(rank, call) {
                    let of = world.messages[from * n + rank].pop_front();
                    self.must(of == Some(call), "a message of another call");
                }
                if self.fault(rank, call) == Some(Fault::After) {
                    self.give_up(world, rank, REASON);
                } else {
                    self.end(world, rank, Outcome::Ours);
                }
            }
            Step::GaveUp(rank) => self.advance(world, rank),
            Step::Library => {
                for rank in 0..n {
                    world.actors[rank].doing = Doing::Words;
                }
                (0..n).for_each(|rank| self.end(world, rank, Outcome::Library));
            }
        }
    }

    fn begin(&self, world: &mut World, rank: usize) {
        let actor = &mut world.actors[rank];
        if actor.outcomes.len() == self.calls {
            actor.doing = Doing::Ended;
            world.drop_words();
            return;
        }
        let fault = self.fault(rank, actor.outcomes.len());
        let size = if fault == Some(Fault::Other) { OTHER } else { SIZE };
        if actor.protocol.is_lost() {
            actor.doing = Doing::Library;
            return;
        }
        let strange = matches!(fault, Some(Fault::Refused | Fault::Unsure | Fault::Other));
        if actor.known.contains(&SIZE) && !self.again {
            let is_library = self.library >> actor.counted & 1 == 1;
            // A rank that does not know the others' decision does not count their call, unless the
            // library performs it: then its arguments are the library's business.
            if is_library || !strange {
                actor.counted += 1;
            }
            if is_library {
                actor.doing = Doing::Library;
                return;
            }
        }
        actor.asks = None;
        let ask = match fault {
            Some(Fault::Refused) => Stage::Failed(REASON),
            Some(Fault::Unsure) => Stage::Library,
            _ if actor.known.contains(&size) && !self.again => Stage::Follow,
            _ => {
                actor.asks = Some(size);
                Stage::Number(size)
            }
        };
        actor.doing = Doing::Words;
        actor.protocol.begin(ask, Vec::new());
        self.advance(world, rank);
    }

    /// Performs a rank's actions up to its next wait for words.
    fn advance(&self, world: &mut World, rank: usize) {
        let (n, call) = (self.ranks, world.actors[rank].outcomes.len());
        let fault = self.fault(rank, call);
        loop {
            let actor = &mut world.actors[rank];
            let next = actor.protocol.next();
            for (to, word) in actor.protocol.take_out() {
                world.words[rank * n + to as usize].push_back(word);
            }
            world.drop_words();
            let actor = &mut world.actors[rank];
            match next {
                Stage::Number(_) | Stage::Serves(_) => {
                    actor.doing = Doing::Words;
                    return;
                }
                Stage::Decide => actor.protocol.decided(SIZE.to_string()),
                Stage::Plan(text) => {
                    self.must(text == SIZE.to_string(), "another decision");
                    let new = !actor.known.contains(&SIZE);
                    actor.protocol.planned(new.then_some(fault != Some(Fault::CannotServe)));
                }
                Stage::Follow => {
                    if actor.asks.take().is_some_and(|size| actor.known.insert(size)) {
                        actor.counted = 1;
                    }
                    if let Err(failed) = actor.protocol.look() {
                        return self.give_up(world, rank, failed);
                    }
                    actor.doing = Doing::Exchange;
                    let old = |from: usize| world.messages[from * n + rank].front().copied();
                    let old = (0..n).any(|from| old(from).is_some_and(|of| of < call));
                    self.must(!old, "a message of an earlier call");
                    let sends = match fault {
                        Some(Fault::Sends(sends)) => sends as usize,
                        _ => n,
                    };
                    for to in self.partners(rank, call).take(sends) {
                        world.messages[rank * n + to].push_back(call);
                    }
                    if sends < n {
                        self.give_up(world, rank, REASON);
                    }
                    return;
                }
                Stage::Library => {
                    actor.doing = Doing::Library;
                    return;
                }
                Stage::Failed(_) if actor.doing == Doing::GivesUp => {
                    return self.end(world, rank, Outcome::Failed);
                }
                Stage::Failed(failed) => return self.give_up(world, rank, failed),
            }
        }
    }

    fn give_up(&self, world: &mut World, rank: usize, failed: Failed) {
        let actor = &mut world.actors[rank];
        actor.protocol.fail(failed);
        actor.protocol.leave();
        actor.doing = Doing::GivesUp;
        for (to, word) in actor.protocol.take_out() {
            world.words[rank * self.ranks + to as usize].push_back(word);
        }
        world.drop_words();
    }

    fn end(&self, world: &mut World, rank: usize, outcome: Outcome) {
        world.actors[rank].outcomes.push(outcome);
        self.begin(world, rank);
    }

    /// Checks a final state.
    fn check(&self, world: &World) {
        let ended = world.actors.iter().all(|actor| actor.doing == Doing::Ended);
        self.must(ended, "a rank waits for ever");
        let well = world.actors.iter().filter(|actor| !actor.protocol.is_broken());
        let known: BTreeSet<_> = well.map(|actor| &actor.known).collect();
        self.must(known.len() <= 1, "decisions differ");
        let mut last = None;
        for call in 0..self.calls {
            let outcomes = world.actors.iter().map(|actor| actor.outcomes[call]);
            let has = |outcome| outcomes.clone().any(|other| other == outcome);
            let faults = self.plan.iter().filter(|fault| fault.1 == call);
            let sends_nothing = |fault: &(_, _, Fault)| {
                use Fault::{Other, Refused, Sends, Unsure};
                matches!(fault.2, Refused | Unsure | Other | Sends(0))
            };
            let apart = self.apart.is_some_and(|apart| apart.1 == call);
            let early = !apart && faults.clone().any(sends_nothing);
            last = if faults.clone().count() > 0 { Some(call) } else { last };
            if !apart
                && self.plan.len() == 1
                && faults.clone().any(|fault| fault.2 == Fault::Unsure)
            {
                self.must(has(Outcome::Library), "the library's own answer");
            }
            if has(Outcome::Library) {
                let all = !has(Outcome::Ours) && !has(Outcome::Failed);
                self.must(all, "the library's call for some ranks only");
            }
            if early && has(Outcome::Failed) {
                self.must(!has(Outcome::Ours), "blocks without a rank that failed before it sent");
            }
            let later = if self.apart.is_some() { 1 } else { 0 };
            if last.is_none_or(|last| call > last + later) {
                self.must(!has(Outcome::Failed), "a failure without a fault");
            }
        }
    }
}

/// Every fault of the first rank and of another rank in every call except the last. All ranks
/// except the first are interchangeable.
fn plans(ranks: u32, calls: usize) -> Vec<Plan> {
    use Fault::{After, CannotServe, Other, Refused, Sends, Unsure};
    let each = |rank: u32| {
        let early = [Refused, Unsure, Other, CannotServe].into_iter();
        let faults = early.chain((0..ranks).map(Sends)).chain([After]);
        faults.flat_map(move |fault| (0..calls - 1).map(move |call| vec![(rank, call, fault)]))
    };
    (0..2).flat_map(each).collect()
}

fn search(ranks: u32, calls: usize, plans: impl Iterator<Item = Plan>) {
    plans.for_each(|plan| Search::run(ranks as usize, calls, &plan, None));
}

#[test]
fn no_failure_leaves_a_rank_waiting() {
    for ranks in 2..=5 {
        search(ranks, 3, std::iter::once(Vec::new()));
    }
    for ranks in 2..=3 {
        search(ranks, 4, plans(ranks, 4).into_iter());
    }
    search(4, 3, plans(4, 3).into_iter());
}

#[test]
#[ignore = "takes a minute"]
fn no_failure_of_four_or_five_ranks_leaves_a_rank_waiting() {
    search(4, 4, plans(4, 4).into_iter());
    search(5, 3, plans(5, 3).into_iter());
}

/// The library performs some calls without words, before and after the failure.
#[test]
fn no_failure_leaves_a_rank_in_the_library() {
    for (ranks, calls) in [(2, 5), (3, 4)] {
        for plan in plans(ranks, calls) {
            for library in (0..1 << (calls - 1)).map(|bits| bits << 1) {
                Search::states(ranks as usize, calls, plan.clone(), None, (false, library));
            }
        }
    }
}

/// Two ranks fail, or one fails twice, in the same call or one after the other.
#[test]
fn no_two_failures_leave_a_rank_waiting() {
    for (ranks, calls) in [(2, 4), (3, 3)] {
        let plans = plans(ranks, calls);
        let first = |i: usize| plans[..i].iter().map(move |other| (i, other));
        let pairs =
            (0..plans.len()).flat_map(first).map(|(i, other)| [&plans[i][..], other].concat());
        let apart = |plan: &Plan| (plan[0].0, plan[0].1) != (plan[1].0, plan[1].1);
        search(ranks, calls, pairs.filter(apart));
    }
}

/// Ranks that end a call without a failed rank come back to it in the next.
#[test]
fn no_failure_of_a_rank_without_blocks_leaves_a_rank_waiting() {
    for ranks in 2..=3 {
        for plan in plans(ranks, 4) {
            for call in [0, 1] {
                let apart = Some((plan[0].0 as usize, call));
                Search::run(ranks as usize, 4, &plan, apart);
            }
        }
    }
}

#[test]
fn the_first_rank_decides_with_all_reports_and_a_long_answer_arrives_in_parts() {
    let text = "é".repeat(PART + 7);
    let (mut first, mut other) = (Protocol::new(0, 2), Protocol::new(1, 2));
    let tell = |from: &mut Protocol, to: &mut Protocol| {
        for (_, word) in from.take_out() {
            let encoded = serde_json::to_vec(&word).unwrap();
            assert!(encoded.len() <= PART + 64);
            to.hear(from.rank, serde_json::from_slice(&encoded).unwrap());
        }
    };
    let report = vec![Sample { nanoseconds: 7, bytes: u64::MAX }];
    for (protocol, report) in [(&mut first, Vec::new()), (&mut other, report.clone())] {
        protocol.begin(Stage::Number(3), report);
        assert_eq!(protocol.next(), Stage::Number(3));
    }
    tell(&mut other, &mut first);
    assert_eq!(first.next(), Stage::Decide);
    assert_eq!(first.reports().collect::<Vec<_>>(), [&report]);
    first.decided(text.clone());
    tell(&mut first, &mut other);
    assert_eq!(first.next(), Stage::Plan(text.clone()));
    assert_eq!(other.next(), Stage::Plan(text));
}
