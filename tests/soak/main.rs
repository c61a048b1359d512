//! Random exchanges over threads, and sequences of them over channels and sockets that fail, for as
//! long as asked. Each returns the right bytes or an error, none hangs, and memory use stays constant.
//!
//! `MALLOC_ARENA_MAX=1 TOPOCOLL_SOAK_MINUTES=60 cargo test --release --test soak -- --ignored
//! --nocapture` goes on for an hour, `TOPOCOLL_SOAK_SEED` draws other exchanges. Without the first variable
//! glibc keeps the freed memory of each thread, and resident memory varies by some tens of MiB.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use common::{edited, schedule_of, serving};
use fastrand::Rng;
use topocoll::exec::{
    Arrival, BlockSizes, Driver, Endpoint, Memory, Plan, PlannedSizes, ThreadedDriver, Transport,
    plan_all,
};
use topocoll::{
    Collective, Machine, Problem, Rank, RankClasses, Schedule, Strided, Subset, Sync, machine,
};

/// An exchange that takes longer counts as hanging.
const HANGS: Duration = Duration::from_secs(20);

/// The noise of resident memory between two samples.
const NOISE: u64 = 32 << 20;

/// A shape, an algorithm with a setting and a block size.
fn random_schedule(random: &mut Rng) -> Schedule {
    let list = |random: &mut Rng, count: usize, most: u32, between: &str| {
        let numbers: Vec<_> = (0..count).map(|_| random.u32(1..=most).to_string()).collect();
        numbers.join(between)
    };
    let form = match random.u8(..5) {
        0 => format!("full:{}", random.u32(2..48)),
        1 => format!("torus:{}", list(random, 2, 8, "x")),
        2 => format!("mesh:{}", list(random, 2, 8, "x")),
        3 => format!("torus:{}", list(random, 3, 4, "x")),
        _ => {
            let nodes = random.usize(1..7);
            format!("cluster:{}", list(random, nodes, 6, ","))
        }
    };
    random_schedule_on(machine(&form).unwrap(), random)
}

fn random_schedule_on(mut machine: Machine, random: &mut Rng) -> Schedule {
    machine.set_ports(random.u32(1..4));
    let block_bytes = 1 << random.u32(0..12);
    let serving = serving(&machine, block_bytes);
    let (algorithm, problem, setting) = &serving[random.usize(..serving.len())];
    schedule_of(&machine, problem, &algorithm.info().name, setting).unwrap()
}

fn random_sync(random: &mut Rng) -> Sync {
    if random.bool() { Sync::Barrier } else { Sync::Free }
}

/// All ranks' input, and the output they must get.
fn data(problem: &Problem, random: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let (ranks, bytes) = (problem.ranks as usize, problem.block_bytes as usize);
    let blocks = problem.blocks_at_start() as usize;
    let mut input = vec![0; ranks * blocks * bytes];
    random.fill(&mut input);
    let mut output = Vec::new();
    for (to, from) in (0..ranks).flat_map(|to| (0..ranks).map(move |from| (to, from))) {
        let block = match problem.operation {
            Collective::AllToAll => from * ranks + to,
            Collective::AllGather => from,
        };
        output.extend_from_slice(&input[block * bytes..][..bytes]);
    }
    (input, output)
}

/// One rank deviates in one step.
fn broken(schedule: &Schedule, random: &mut Rng) -> Schedule {
    let faulty = Rank(random.u32(..schedule.problem.ranks));
    let at = random.u32(..schedule.rule().steps().max(1));
    let how = random.u8(..4);
    let classes = RankClasses::distinct(schedule.problem.ranks);
    edited(schedule, classes, move |rank, step, out| {
        if (rank, step) != (faulty, at) {
            return;
        }
        match how {
            0 => out.sends.clear(),
            1 => out.receives.clear(),
            2 => out.clear(),
            _ => {
                if let Some(send) = out.sends.first_mut() {
                    send.slots.push(Strided::contiguous(0, 1));
                }
            }
        }
    })
}

/// An exchange by the threaded driver, sometimes of a broken schedule; returns whether it ended well.
fn threaded(schedule: &Schedule, random: &mut Rng) -> bool {
    let whole = random.u8(..4) > 0;
    let schedule = if whole { schedule.clone() } else { broken(schedule, random) };
    let Ok(plans) = plan_all(&schedule) else {
        assert!(!whole, "{schedule:?}");
        return false;
    };
    let (input, expected) = data(&schedule.problem, random);
    let mut driver = ThreadedDriver::new(plans, random.usize(1..5));
    let mut output = vec![0xee; expected.len()];
    for _ in 0..3 {
        output.fill(0xee);
        driver.set_sync(random_sync(random));
        match driver.exchange(schedule.problem.block_bytes, &input, &mut output) {
            // The verifier, not the driver, checks the output of a broken schedule.
            Ok(_) => assert!(!whole || output == expected, "wrong bytes: {schedule:?}"),
            Err(error) if whole => panic!("{schedule:?}: {error}"),
            Err(_) => return false,
        }
    }
    true
}

/// The way to another rank.
enum Way {
    Channel(Sender<Arrival>),
    Socket(UnixStream),
}

impl Way {
    fn send(&mut self, arrival: Arrival) {
        // A peer that has stopped receives nothing.
        let _ = match self {
            Self::Channel(to) => to.send(arrival).is_ok(),
            Self::Socket(to) => {
                let header = [arrival.tag, arrival.bytes.len() as u32].map(u32::to_le_bytes);
                to.write_all(&[header.as_flattened(), &arrival.bytes].concat()).is_ok()
            }
        };
    }

    /// Ways of all ranks to one, over sockets that threads read, or without.
    fn all_to(to: &Sender<Arrival>, ranks: u32, sockets: bool) -> Vec<Self> {
        let way = |from| {
            let to = to.clone();
            if !sockets {
                return Self::Channel(to);
            }
            let (near, far) = UnixStream::pair().unwrap();
            thread::spawn(move || read(Rank(from), far, &to).is_err());
            Self::Socket(near)
        };
        (0..ranks).map(way).collect()
    }
}

fn read(from: Rank, mut socket: UnixStream, to: &Sender<Arrival>) -> std::io::Result<()> {
    loop {
        let mut header = [[0; 4]; 2];
        socket.read_exact(header.as_flattened_mut())?;
        let [tag, length] = header.map(u32::from_le_bytes);
        let mut bytes = vec![0; length as usize];
        socket.read_exact(&mut bytes)?;
        let _ = to.send(Arrival { from, tag, bytes });
    }
}

/// Ways between threads that sometimes disturb messages.
struct Channels {
    rank: u32,
    to: Vec<Way>,
    from: Receiver<Arrival>,
    random: Rng,
    /// One of this number of messages has a fault; none for 0.
    one_in: u32,
}

impl Transport for Channels {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let mut arrival = Arrival { from: Rank(self.rank), tag, bytes: bytes.to_vec() };
        if self.one_in > 0 && self.random.u32(..self.one_in) == 0 {
            match self.random.u8(..5) {
                0 => return Err("cable cut".to_owned()),
                1 => return Ok(()),
                2 => arrival.bytes.truncate(bytes.len() / 2),
                3 => arrival.tag = u32::MAX,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
        self.to[to.index()].send(arrival);
        Ok(())
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.from.recv_timeout(patience).ok())
    }
}

/// One of a sequence of exchanges: the ranks that take part with their plans, and the sizes of blocks.
struct Turn {
    subset: Subset,
    plans: Vec<Arc<Plan>>,
    block: u64,
    sync: Sync,
    /// For blocks that differ.
    planned: Option<Vec<Arc<PlannedSizes>>>,
}

impl Turn {
    fn random(schedule: &Schedule, ranks: u32, random: &mut Rng) -> Self {
        let mut among: Vec<_> = (0..ranks).map(Rank).collect();
        if schedule.problem.ranks < ranks {
            random.shuffle(&mut among);
        }
        let subset = Subset::new(&among[..schedule.problem.ranks as usize], ranks).unwrap();
        let plan = |&rank| Arc::new(Plan::in_subset(schedule, rank, &subset).unwrap());
        let plans: Vec<_> = subset.ranks().iter().map(plan).collect();
        let (block, sync) = (random.u64(1..300), random_sync(random));
        let mut turn = Self { subset, plans, block, sync, planned: None };
        if random.bool() {
            // None where a schedule passes blocks on.
            let planned = turn.plans.iter().map(|plan| {
                let (row, column) = turn.sizes(plan);
                PlannedSizes::of_rank(plan, &row, &column).map(Arc::new)
            });
            turn.planned = planned.collect::<Result<_, _>>().ok();
        }
        turn
    }

    /// Different sizes of the blocks that a rank has, and of those that it gets.
    fn sizes(&self, plan: &Plan) -> (Vec<u64>, Vec<u64>) {
        let (own, ranks) = (u64::from(plan.rank().0), u64::from(plan.problem().ranks));
        let gathers = plan.problem().operation == Collective::AllGather;
        let size =
            |from: u64, to: u64| (self.block + 5 * from + if gathers { 0 } else { 3 * to }) % 29;
        let given = (0..u64::from(plan.input_blocks())).map(|to| size(own, to));
        (given.collect(), (0..ranks).map(|from| size(from, own)).collect())
    }

    /// A rank's exchange over its driver; returns whether it ended well.
    fn run(&self, rank: Rank, driver: &mut Driver<Channels>, patience: Duration) -> bool {
        let Some(at) = self.subset.position(rank) else { return true };
        let plan = &self.plans[at as usize];
        let gathers = plan.problem().operation == Collective::AllGather;
        let block = |from: u32, to: u32, bytes: u64| {
            let first =
                self.block + u64::from(7 * from) + if gathers { 0 } else { 13 * u64::from(to) };
            (0..bytes).map(move |i| (first + 31 * i) as u8)
        };
        let planned = self.planned.as_ref().map(|planned| &planned[at as usize]);
        let (given, wanted) = match planned {
            Some(_) => self.sizes(plan),
            None => {
                (vec![self.block; plan.input_blocks() as usize], vec![self.block; self.plans.len()])
            }
        };
        let input: Vec<u8> =
            (0..).zip(given).flat_map(|(to, bytes)| block(at, to, bytes)).collect();
        let expected: Vec<u8> =
            (0..).zip(wanted).flat_map(|(from, bytes)| block(from, at, bytes)).collect();
        let sizes = planned.map_or(BlockSizes::from(self.block), BlockSizes::from);
        let mut output = vec![0xee; expected.len()];
        let mut work = vec![0; plan.workspace_bytes(sizes.clone()) as usize];
        let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
        let mut endpoint = Endpoint::new(Arc::clone(plan), sizes);
        driver.set_sync(self.sync);
        let ended = driver.drive(&mut endpoint, &mut memory, patience).is_ok();
        assert!(!ended || output == expected, "wrong bytes of rank {rank}, and no error");
        ended
    }
}

/// A sequence of exchanges of several plans, sizes and subsets, with a thread for each rank, which goes
/// on after an error or ends; returns whether all ended well.
fn by_transports(schedule: &Schedule, random: &mut Rng) -> bool {
    let ranks = schedule.problem.ranks;
    let mut turns = vec![Turn::random(schedule, ranks, random)];
    for _ in 0..random.u8(..6) {
        let among = machine(&format!("full:{}", random.u32(1..=ranks))).unwrap();
        let other = random.bool().then(|| random_schedule_on(among, random));
        turns.push(Turn::random(other.as_ref().unwrap_or(schedule), ranks, random));
    }
    let one_in = if random.bool() { 0 } else { random.u32(2..200) };
    let goes_on = random.bool();
    let patience = if one_in == 0 { HANGS } else { Duration::from_millis(100) };
    let (to, from): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
    let sockets = ranks <= 12 && random.bool();
    // By receiver, the ways of all senders.
    let mut ways: Vec<_> =
        to.into_iter().map(|to| Way::all_to(&to, ranks, sockets).into_iter()).collect();
    let ended = thread::scope(|scope| {
        let threads = from.into_iter().zip(0..).map(|(from, rank)| {
            let to = ways.iter_mut().map(|ways| ways.next().unwrap()).collect();
            let mut driver =
                Driver::new(Channels { rank, to, from, random: random.fork(), one_in });
            let turns = turns.iter();
            scope.spawn(move || {
                let mut ended = turns.map(|turn| turn.run(Rank(rank), &mut driver, patience));
                if goes_on {
                    ended.filter(|ended| !ended).count() == 0
                } else {
                    ended.all(|ended| ended)
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|ended| *ended).count()
    });
    let whole = ended == ranks as usize;
    assert!(one_in > 0 || whole, "{schedule:?}");
    whole
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Aborts the process if exchanges hang.
fn watched(ended: &'static AtomicU64) {
    thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            thread::sleep(Duration::from_secs(1));
            let now = ended.load(Ordering::Relaxed);
            if now > last {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() > HANGS {
                eprintln!("exchange {last} hangs");
                std::process::abort();
            }
        }
    });
}

fn soak(time: Duration, seed: u64) {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    static WATCH: OnceLock<()> = OnceLock::new();
    WATCH.get_or_init(|| watched(&ENDED));
    let mut random = Rng::with_seed(seed);
    let (start, mut whole, mut all) = (Instant::now(), 0, 0);
    let mut settled = None;
    while start.elapsed() < time {
        let schedule = random_schedule(&mut random);
        let ended = if random.u8(..3) == 0 && schedule.problem.ranks <= 32 {
            by_transports(&schedule, &mut random)
        } else {
            threaded(&schedule, &mut random)
        };
        (whole, all) = (whole + u64::from(ended), all + 1);
        ENDED.fetch_add(1, Ordering::Relaxed);
        if start.elapsed() > time / 5 {
            settled.get_or_insert_with(resident);
        }
    }
    let (before, after) = (settled.unwrap_or_else(resident), resident());
    eprintln!(
        "seed {seed}: {all} exchanges, {whole} of them whole, {} MiB after a fifth, {} MiB at the end",
        before >> 20,
        after >> 20
    );
    assert!(after <= before + NOISE, "{before} bytes grew to {after}");
    assert!(whole > 0 && whole < all, "{whole} of {all}");
}

#[test]
fn exchanges_for_a_few_seconds() {
    soak(Duration::from_secs(3), 1);
}

#[test]
#[ignore = "a few seconds of it always run"]
fn exchanges_for_minutes() {
    let minutes = std::env::var("TOPOCOLL_SOAK_MINUTES");
    let minutes: f64 = minutes.map_or(1.0, |minutes| minutes.parse().expect("minutes"));
    let seed = std::env::var("TOPOCOLL_SOAK_SEED");
    let seed = seed.map_or(2, |seed| seed.parse().expect("a seed"));
    soak(Duration::from_secs_f64(60.0 * minutes), seed);
}
