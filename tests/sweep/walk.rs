//! The walk: which cases, in which order, and what a failure says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Case, algorithms, check_delivery, problem};
use topocoll::{Algorithm, Machine, Method, Parameters, Request, Setting, View};

use crate::checks::{self, CHECKS};

/// Up to this number of ranks every schedule is replayed, beyond it those without equivalent ranks.
const REPLAY_UP_TO: u32 = 256;

/// A case is walked if its hash is a multiple of this number.
const ONE_IN: u64 = 4;

/// Machines of a family in a walk that is not long, and their ranks at most.
const SAMPLE: usize = 12;
const SAMPLE_RANKS: u32 = 144;

/// Which settings of an algorithm are cases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cases {
    /// The first, the last and a few others.
    Chosen,
    /// The same, and in a long walk all, of radices some.
    OfFamily,
}

/// How much is walked.
#[derive(Clone, Copy)]
enum Effort {
    Quarter,
    Until(Instant),
    /// A part, from 0, and the number of parts.
    Part(usize, usize),
}

fn effort() -> Effort {
    let rule = "TOPOCOLL_SWEEP is minutes, a part such as 3/100, or `all`";
    let Ok(text) = std::env::var("TOPOCOLL_SWEEP") else { return Effort::Quarter };
    if text == "all" {
        return Effort::Part(0, 1);
    }
    if let Some((part, of)) = text.split_once('/') {
        let [part, of] = [part, of].map(|number| number.parse().expect(rule));
        assert!((1..=of).contains(&part), "{rule}");
        return Effort::Part(part - 1, of);
    }
    let minutes: u64 = text.parse().expect(rule);
    Effort::Until(Instant::now() + Duration::from_secs(60 * minutes / FAMILIES))
}

/// Lists of machines that share the minutes.
const FAMILIES: u64 = 6;

/// FNV-1a: the same on every computer and in every version.
pub(crate) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    hash ^ hash >> 32
}

/// The settings of an algorithm that are cases.
fn settings(machine: &Machine, algorithm: &dyn Algorithm, all: bool) -> Vec<Parameters> {
    let problem = problem(machine, algorithm.info().operation, 3);
    let request = Request::new(&problem, &*machine.topology);
    let mut candidates = request.candidates(algorithm).unwrap_or_default();
    if all {
        let ranks = u64::from(machine.ranks());
        let named = |radix: u64| radix <= 8 || radix == ranks || radix == ranks.isqrt();
        candidates.retain(|setting| match setting.get("radix") {
            Some(&Setting::Integer(radix)) => named(radix),
            _ => true,
        });
        return candidates;
    }
    let apart = candidates.len().div_ceil(4).max(1);
    let last = candidates.len().checked_sub(1).filter(|last| last % apart > 0);
    let some = candidates.iter().step_by(apart).chain(last.map(|last| &candidates[last]));
    some.cloned().chain(on_a_view(machine, algorithm)).collect()
}

/// A setting of an algorithm on a view of the machine.
fn on_a_view(machine: &Machine, algorithm: &dyn Algorithm) -> Option<Parameters> {
    let views = View::all(machine);
    let (name, problem) =
        (&*algorithm.info().name, problem(machine, algorithm.info().operation, 3));
    let number = hash(&format!("{name} {}", machine.name));
    let view = views.get((number % views.len().max(1) as u64) as usize)?;
    let candidates = Request::new(&problem, view.shown()).candidates(algorithm).ok()?;
    let mut setting =
        candidates.get((number / 8 % candidates.len().max(1) as u64) as usize)?.clone();
    let words = View::WORDS.into_iter().zip(view.words());
    setting.extend(words.filter_map(|(name, word)| Some((name.to_owned(), (&*word?).into()))));
    Some(setting)
}

/// The name of a case: what `TOPOCOLL_CASE` takes.
fn name_of(machine: &Machine, algorithm: &dyn Algorithm, setting: &Parameters) -> String {
    let words: String = setting.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let (algorithm, ports) = (&algorithm.info().name, machine.ports);
    format!("{algorithm}{words} on {} with {ports} ports", machine.name)
}

/// Results of a walk.
#[derive(Default)]
struct Walked {
    /// Whether every case passes through every check.
    all_checks: bool,
    machines: AtomicUsize,
    cases: AtomicUsize,
    /// Cases and nanoseconds of solving, of the delivery, and of each check.
    spent: [(AtomicU64, AtomicU64); CHECKS.len() + 2],
    failures: Mutex<Vec<String>>,
}

impl Walked {
    /// Does the work and adds its time.
    fn timed<T>(&self, at: usize, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        self.spent[at].0.fetch_add(1, Ordering::Relaxed);
        self.spent[at].1.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        done
    }

    /// Solves a case once and hands it to every check.
    fn visit(&self, machine: &Machine, algorithm: &dyn Algorithm, setting: &Parameters, hash: u64) {
        let problem = problem(machine, algorithm.info().operation, 3);
        let case = self.timed(0, || Case::solve(machine, algorithm, &problem, setting));
        // A candidate that does not apply is not a case.
        let Ok(case) = case else { return };
        self.cases.fetch_add(1, Ordering::Relaxed);
        let counts = self.timed(1, || {
            let replays = machine.ranks() <= REPLAY_UP_TO || case.is_of_distinct_ranks();
            check_delivery(&case, if replays { Method::Replay } else { Method::Classes })
        });
        for (at, check) in CHECKS.iter().enumerate() {
            let chosen = hash / ONE_IN % check.one_in == 0;
            if machine.ranks() <= check.ranks && (chosen || self.all_checks) {
                self.timed(at + 2, || (check.passes)(&case, &counts));
            }
        }
    }

    fn report(&self, what: &str, begin: Instant) {
        let (machines, cases) = (&self.machines, &self.cases);
        let seconds = begin.elapsed().as_secs_f64();
        println!("{what}: {cases:?} cases on {machines:?} machines, {seconds:.0} s");
        let names = ["solved", "delivers within its ports"].into_iter();
        for (name, (cases, spent)) in
            names.chain(CHECKS.iter().map(|check| check.name)).zip(&self.spent)
        {
            let seconds = spent.load(Ordering::Relaxed) as f64 * 1e-9;
            println!("  {name:<42} {:>6} {seconds:8.1} s", cases.load(Ordering::Relaxed));
        }
    }
}

/// Walks over the cases on these machines, at least that number; fails at the end, with all failures.
pub(crate) fn walk(
    what: &str,
    mut machines: Vec<Box<dyn FnOnce() -> Machine + Send>>,
    cases: Cases,
    least: usize,
) {
    let (begin, effort, asked) = (Instant::now(), effort(), std::env::var("TOPOCOLL_CASE").ok());
    let of_family = cases == Cases::OfFamily;
    let long = !matches!(effort, Effort::Quarter);
    let walked = Walked { all_checks: long || asked.is_some(), ..Walked::default() };
    if of_family {
        fastrand::Rng::with_seed(20_260_101).shuffle(&mut machines);
    }
    match effort {
        Effort::Part(part, of) => machines = machines.into_iter().skip(part).step_by(of).collect(),
        Effort::Quarter | Effort::Until(_) => {}
    }
    let visit = |machine: &Machine| {
        let of_this = format!(" on {} with {} ports", machine.name, machine.ports);
        if asked.as_ref().is_some_and(|asked| !asked.ends_with(&of_this)) {
            return;
        }
        walked.machines.fetch_add(1, Ordering::Relaxed);
        for algorithm in algorithms() {
            for setting in settings(machine, algorithm, of_family && long) {
                let name = name_of(machine, algorithm, &setting);
                let hash = hash(&name);
                // Large machines take long: one in three of their cases.
                let one_in = if machine.ranks() > REPLAY_UP_TO { 3 * ONE_IN } else { ONE_IN };
                let chosen = match &asked {
                    Some(asked) => *asked == name,
                    None => long || hash % one_in == 0,
                };
                let visit = || walked.visit(machine, algorithm, &setting, hash);
                if chosen && catch_unwind(AssertUnwindSafe(visit)).is_err() {
                    walked.failures.lock().unwrap().push(name);
                }
            }
        }
    };
    let over = || matches!(effort, Effort::Until(end) if Instant::now() > end);
    let sampled = of_family && !long && asked.is_none();
    let small = |machine: &Machine| !sampled || machine.ranks() <= SAMPLE_RANKS;
    let most = if sampled { SAMPLE } else { usize::MAX };
    let machines = machines.into_iter().map(|machine| machine()).filter(small).take(most);
    // Threads of their own: those of rayon would begin another case in the middle of one.
    let queue = Mutex::new(machines);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    match next {
                        Some(machine) if !over() => visit(&machine),
                        _ => break,
                    }
                }
            });
        }
    });
    checks::finish();
    walked.report(what, begin);
    let failures = walked.failures.into_inner().unwrap();
    let repeat =
        |name: &String| format!("TOPOCOLL_CASE='{name}' cargo test --test sweep -- --nocapture\n");
    let commands: String = failures.iter().map(repeat).collect();
    assert!(failures.is_empty(), "{} cases fail. To repeat them:\n{commands}", failures.len());
    let (cases, all_checks) = (walked.cases.into_inner(), walked.all_checks);
    assert!(all_checks || cases >= least, "{what}: {cases} cases, fewer than {least}");
}
