//! Under barriers no rank begins a step before all have ended the last one; free-running ranks do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use common::{edited, problem, schedule_of};
use fastrand::Rng;
use topocoll::exec::{
    Arrival, Driver, Endpoint, ExecError, Memory, Plan, StepFault, ThreadedDriver, Transport,
    plan_all,
};
use topocoll::{Collective, Parameters, Rank, RankClasses, Schedule, Step, Subset, Sync, machine};

const LONG: Duration = Duration::from_secs(30);

/// Schedules that send every block straight, of several steps. In those on nodes some ranks are idle in
/// some steps.
const STRAIGHT: [(&str, &str); 5] = [
    ("full:9", "direct"),
    ("full:8", "pairwise-xor"),
    ("torus:4x2", "link-matchings"),
    ("mesh:3x3/1,1", "link-matchings"),
    ("cluster:1,3,2", "clustered-matchings"),
];

fn schedule(on: &str, algorithm: &str) -> Schedule {
    let machine = machine(on).unwrap();
    let problem = problem(&machine, Collective::AllToAll, 4);
    schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap()
}

fn step(schedule: &Schedule, rank: u32, number: u32) -> Step {
    let mut step = Step::default();
    schedule.rule().step(Rank(rank), number, &mut step);
    step
}

/// A rank waits in one step for a message that is not sent. Returns whether some rank has received a
/// message of a later step by then.
fn overtakes(schedule: &Schedule, sync: Sync, random: &mut Rng) -> bool {
    let (ranks, steps) = (schedule.problem.ranks, schedule.rule().steps());
    let (silent, at) = loop {
        let (rank, at) = (random.u32(..ranks), random.u32(..steps - 1));
        if !step(schedule, rank, at).sends.is_empty() {
            break (rank, at);
        }
    };
    let broken = edited(schedule, RankClasses::distinct(ranks), move |rank, step, out| {
        if (rank, step) == (Rank(silent), at) {
            out.sends.clear();
        }
    });
    let blocks = (ranks * ranks) as usize;
    let (input, mut output) = (vec![1; blocks], vec![0; blocks]);
    let mut driver = ThreadedDriver::new(plan_all(&broken).unwrap(), random.usize(1..5));
    driver.set_sync(sync);
    let error = driver.exchange(1u64, &input, &mut output).unwrap_err();
    let ExecError::InStep { step: waits, fault: StepFault::Stalled { .. }, .. } = error else {
        panic!("{error}")
    };
    assert!(sync == Sync::Free || waits == at, "{error}");
    let mut later = false;
    for (to, number) in (0..ranks).flat_map(|to| (0..steps).map(move |number| (to, number))) {
        for receive in step(schedule, to, number).receives {
            let has = output[(to * ranks + receive.peer.0) as usize] == 1;
            assert!(has || number >= at, "step {number} of rank {to} is before step {at}");
            later |= has && number > at;
        }
    }
    later
}

#[test]
fn threads_keep_ranks_in_step() {
    let (mut random, mut free) = (Rng::with_seed(3), 0);
    for (on, algorithm) in STRAIGHT {
        let schedule = schedule(on, algorithm);
        for _ in 0..20 {
            let overtaken = overtakes(&schedule, Sync::Barrier, &mut random);
            assert!(!overtaken, "{algorithm} on {on}: a rank is ahead of a barrier");
            free += u32::from(overtakes(&schedule, Sync::Free, &mut random));
        }
    }
    assert!(free > 50, "{free} of 100 exchanges without barriers have a rank ahead");
}

/// What happens, in this order: an exchange, a step of it, and whether a rank begins to send in it or
/// has received a message of it.
type Log = Vec<(u32, u32, bool)>;

/// By rank, how its exchanges ended.
type Ends = Vec<Vec<Result<(), ExecError>>>;

/// A rank's end of channels; some messages are late.
struct Channels {
    rank: Rank,
    to: Vec<Sender<Arrival>>,
    from: Receiver<Arrival>,
    tags: u32,
    log: Arc<Mutex<Log>>,
    random: Rng,
    /// A barrier of the transport's own, and how often it is passed.
    own: Option<Arc<(Barrier, AtomicUsize)>>,
}

impl Channels {
    fn log(&self, tag: u32, begins: bool, bytes: &[u8]) {
        let (exchange, step) = (tag / (2 * self.tags), tag % (2 * self.tags));
        if step < self.tags {
            self.log.lock().unwrap().push((exchange, step, begins));
        } else {
            // That of a barrier, or of a rank that has left.
            assert!(bytes.is_empty(), "a message with the tag of a barrier");
            assert!(self.own.is_none(), "a message in place of the transport's barrier");
        }
    }
}

impl Transport for Channels {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        if self.random.u8(..8) == 0 {
            thread::sleep(Duration::from_micros(self.random.u64(..1500)));
        }
        self.log(tag, true, bytes);
        let arrival = Arrival { from: self.rank, tag, bytes: bytes.to_vec() };
        self.to[to.index()].send(arrival).map_err(|error| error.to_string())
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        let arrival = self.from.recv_timeout(patience).ok();
        if let Some(arrival) = &arrival {
            self.log(arrival.tag, false, &arrival.bytes);
        }
        Ok(arrival)
    }

    fn barrier(&mut self, _: &Plan, _: Duration) -> Option<Result<(), String>> {
        let (barrier, passed) = &**self.own.as_ref()?;
        barrier.wait();
        passed.fetch_add(1, Ordering::Relaxed);
        Some(Ok(()))
    }
}

/// Exchanges one after the other by one driver of each rank, and checks their bytes. Rank i has
/// `syncs(i)`, and `patience` in the first exchange. Returns what happened, and each rank's results.
fn driven(
    plans: &[Arc<Plan>],
    machine: u32,
    syncs: impl Fn(usize) -> Vec<Sync>,
    own: bool,
    patience: Duration,
    seed: u64,
) -> (Log, Ends) {
    const BLOCK: u64 = 2;
    let (log, ranks) = (Arc::new(Mutex::new(Log::new())), plans.len());
    let (to, from): (Vec<_>, Vec<_>) = (0..machine).map(|_| channel()).unzip();
    let mut from: Vec<_> = from.into_iter().map(Some).collect();
    let barrier = own.then(|| Arc::new((Barrier::new(ranks), AtomicUsize::new(0))));
    let mut random = Rng::with_seed(seed);
    let results = thread::scope(|scope| {
        let threads = plans.iter().enumerate().map(|(at, plan)| {
            let mut endpoint = Endpoint::new(Arc::clone(plan), BLOCK);
            let rank = endpoint.rank();
            let (to, from) = (to.clone(), from[rank.index()].take().unwrap());
            let (log, own, random) = (Arc::clone(&log), barrier.clone(), random.fork());
            let channels = Channels { rank, to, from, tags: plan.tags(), log, random, own };
            let (mut driver, syncs) = (Driver::new(channels), syncs(at));
            scope.spawn(move || {
                let input: Vec<u8> = (0..ranks).flat_map(|to| [at as u8, to as u8]).collect();
                let expected: Vec<u8> = (0..ranks).flat_map(|of| [of as u8, at as u8]).collect();
                let mut work = vec![0; endpoint.workspace_bytes() as usize];
                let patiences = std::iter::once(patience).chain(std::iter::repeat(LONG));
                let results = syncs.into_iter().zip(patiences).map(|(sync, patience)| {
                    let mut output = vec![0; input.len()];
                    let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
                    driver.set_sync(sync);
                    let ended = driver.drive(&mut endpoint, &mut memory, patience);
                    assert!(ended.is_err() || output == expected, "wrong bytes of rank {rank}");
                    endpoint.begin(BLOCK);
                    ended
                });
                results.collect()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    if let Some(barrier) = &barrier {
        let steps = (plans[0].tags() - 1) as usize;
        assert_eq!(barrier.1.load(Ordering::Relaxed) % (steps * ranks), 0);
        assert!(barrier.1.load(Ordering::Relaxed) > 0);
    }
    let log = std::mem::take(&mut *log.lock().unwrap());
    (log, results)
}

/// Whether a step of an exchange begins before the last one has ended.
fn is_overtaken(log: &[(u32, u32, bool)], exchange: u32) -> bool {
    let of_exchange: Vec<_> = log.iter().filter(|event| event.0 == exchange).collect();
    let mut most = 0;
    of_exchange.iter().any(|&&(_, step, begins)| {
        if begins {
            most = most.max(step);
        }
        step < most
    })
}

#[test]
fn drivers_keep_ranks_in_step() {
    let (mut random, mut free) = (Rng::with_seed(5), 0);
    for (i, (on, algorithm)) in STRAIGHT
        .into_iter()
        .chain([("torus:4x4", "suh-shin"), ("cluster:3,4", "node-aware")])
        .enumerate()
    {
        let schedule = schedule(on, algorithm);
        let (ranks, more) = (schedule.problem.ranks, random.u32(..4));
        let mut among: Vec<_> = (0..ranks + more).map(Rank).collect();
        random.shuffle(&mut among);
        let subset = Subset::new(&among[..ranks as usize], ranks + more).unwrap();
        let plan = |&rank| Arc::new(Plan::in_subset(&schedule, rank, &subset).unwrap());
        let plans: Vec<_> = subset.ranks().iter().map(plan).collect();
        let syncs: Vec<_> = (0..6)
            .map(|_| *random.choice(&[Sync::Free, Sync::Barrier]).unwrap())
            .chain([Sync::Free, Sync::Barrier])
            .collect();
        let (log, results) =
            driven(&plans, ranks + more, |_| syncs.clone(), i % 3 == 2, LONG, random.u64(..));
        assert!(results.iter().flatten().all(Result::is_ok), "{algorithm} on {on}");
        for (exchange, sync) in (0..).zip(syncs) {
            let overtaken = is_overtaken(&log, exchange);
            assert!(
                sync == Sync::Free || !overtaken,
                "{algorithm} on {on}: a rank is ahead of a barrier"
            );
            free += u32::from(overtaken);
        }
    }
    assert!(free > 7, "{free} exchanges without barriers have a rank ahead");
}

/// One rank has no barriers: all end with an error or the right bytes, and the next exchange is whole.
#[test]
fn ranks_that_differ_in_barriers_fail_in_one_exchange_only() {
    let plans = plan_all(&schedule("full:6", "direct")).unwrap();
    for odd in [Sync::Free, Sync::Barrier] {
        let other = if odd == Sync::Free { Sync::Barrier } else { Sync::Free };
        let syncs = |rank| vec![if rank == 2 { odd } else { other }, odd, other];
        let (_, results) = driven(&plans, 6, syncs, false, Duration::from_millis(300), 1);
        assert!(results.iter().any(|of_rank| of_rank[0].is_err()), "{odd}: {results:?}");
        let later = results.iter().flat_map(|of_rank| &of_rank[1..]);
        assert!(later.clone().all(Result::is_ok), "{odd}: {results:?}");
    }
}
