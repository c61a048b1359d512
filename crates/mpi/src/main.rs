//! Measures the cost of MPI messages, intra-node and inter-node. MPI starts it on all ranks:
//! `topocoll-mpi [ROUNDS [alltoall|allgather [RANKS]]]`. The first rank writes one JSON object: a
//! [`Network`], from which `topocoll calibrate --mpi` makes a machine file; or, with an operation,
//! the [`Times`] of the library among the first RANKS ranks, for `topocoll tune --measured`.
//! `topocoll-mpi detect` measures nothing: the first rank writes a machine file of the hosts of all ranks.
//!
//! Each all-to-all with each setting runs on the ranks of the largest node, and on one rank of each
//! node. The terms of the steps model are fitted to the fastest runs. With one node, or one rank
//! per node, each group has all ranks; the ports of a rank are the speedup of one-byte messages
//! that are all under way at once. Otherwise the ports of a node are the speedup of messages of 64
//! KiB between all ranks of two nodes, all at once compared with one after the other.
//!
//! With two ports or more, the injection of a rank is the speedup of long messages that it sends to
//! as many others, or receives from them, at once; the slower direction counts. With several ranks a
//! node its peers are on its node, and the injection of a node is the speedup of the messages between
//! two nodes. Both are left out if they are within the noise of the ports.

use std::ffi::c_int;
use std::process::ExitCode;

use mpi_sys as mpi;
use topocoll::tune::Times;
use topocoll::{
    Collective, Fit, Machine, Network, Parameters, Problem, fit_processes, injection_of, machine,
    samples, spec,
};
use topocoll_mpi::Exchange;

/// Block sizes, and the most bytes of all blocks of a rank.
const BLOCKS: [u64; 7] = [1, 64, 512, 2048, 8192, 32_768, 131_072];
const LARGEST: u64 = 1 << 20;
/// The same for the library's calls.
const MOST: u64 = 1 << 24;

/// The least seconds of a measurement. Shorter runs are repeated, so that clocks and barriers do
/// not matter.
const LEAST: f64 = 2e-4;

/// Default number of rounds.
const ROUNDS: usize = 9;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    // SAFETY: MPI is initialized once, here, and finalized once, below.
    if unsafe { mpi::PMPI_Init(std::ptr::null_mut(), std::ptr::null_mut()) } != 0 {
        return ExitCode::FAILURE;
    }
    let world = Group::world();
    let code = match asked(&world) {
        Ok(asked) => match answer(&world, &asked) {
            Ok(text) => {
                if world.rank == 0 {
                    println!("{text}");
                }
                0
            }
            Err(error) => {
                eprintln!("error: rank {}: {error}", world.rank);
                // SAFETY: MPI is initialized. Others may wait for this rank.
                unsafe { mpi::PMPI_Abort(world.comm, 2) };
                2
            }
        },
        Err(error) => {
            if world.rank == 0 {
                eprintln!("error: {error}");
            }
            2
        }
    };
    // SAFETY: MPI is not used afterwards.
    unsafe { mpi::PMPI_Finalize() };
    ExitCode::from(code)
}

/// The measurements asked for.
struct Asked {
    rounds: usize,
    /// The operation of the library, and its ranks.
    own: Option<(Collective, u32)>,
    /// By rank, its node: the lowest rank there.
    of: Vec<u32>,
    /// Whether only the hosts are asked for.
    detects: bool,
}

fn answer(world: &Group, asked: &Asked) -> Outcome<String> {
    let Asked { rounds, own, of, detects } = asked;
    Ok(match *own {
        None if *detects => detected(world, of)?,
        None => serde_json::to_string(&measured(world, of, *rounds)?)?,
        Some((operation, ranks)) => {
            let part = world.split(u32::from(world.rank < ranks));
            let seconds = match world.rank < ranks {
                true => timed(&part, operation, *rounds)?,
                false => Vec::new(),
            };
            serde_json::to_string(&Times { ranks, started: world.ranks, seconds })?
        }
    })
}

/// Reads the arguments. All ranks get the same result or error.
fn asked(world: &Group) -> Result<Asked, String> {
    let detects = std::env::args().nth(1).is_some_and(|first| first == "detect");
    let rounds = match std::env::args().nth(1).filter(|_| !detects) {
        None => ROUNDS,
        Some(text) => text
            .parse()
            .ok()
            .filter(|&rounds| rounds > 0)
            .ok_or_else(|| format!("`{text}` rounds: not a whole number from 1 on"))?,
    };
    let ranks = match std::env::args().nth(3) {
        None => world.ranks,
        Some(text) => {
            let ranks = text.parse().ok().filter(|ranks| (2..=world.ranks).contains(ranks));
            ranks.ok_or_else(|| format!("`{text}` ranks: from 2 to the {} started", world.ranks))?
        }
    };
    let own = match std::env::args().nth(2) {
        None => None,
        Some(text) => Some((text.parse().map_err(|error| format!("`{text}`: {error}"))?, ranks)),
    };
    if world.ranks < 2 {
        return Err("one rank cannot exchange messages: start it with mpirun -np N".into());
    }
    let of = world.nodes();
    if own.is_none() && !of.is_sorted() {
        return Err("ranks of a node are not consecutive in MPI_COMM_WORLD, as in a machine: \
                    start them with --map-by slot"
            .into());
    }
    Ok(Asked { rounds, own, of, detects })
}

/// Ranks that measure together.
struct Group {
    comm: mpi::MPI_Comm,
    rank: u32,
    ranks: u32,
}

impl Group {
    fn world() -> Self {
        // SAFETY: MPI is initialized.
        Self::of(unsafe { mpi::RSMPI_COMM_WORLD })
    }

    fn of(comm: mpi::MPI_Comm) -> Self {
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: a communicator, and places for the answers.
        unsafe {
            mpi::PMPI_Comm_rank(comm, &raw mut rank);
            mpi::PMPI_Comm_size(comm, &raw mut ranks);
        }
        Self { comm, rank: rank as u32, ranks: ranks as u32 }
    }

    /// The ranks of this rank's colour. All ranks call it.
    fn split(&self, colour: u32) -> Self {
        // SAFETY: all ranks of the communicator call it.
        unsafe {
            let mut part = mpi::RSMPI_COMM_NULL;
            mpi::PMPI_Comm_split(self.comm, colour as c_int, self.rank as c_int, &raw mut part);
            Self::of(part)
        }
    }

    /// By rank, the lowest rank of those that share memory with it.
    fn nodes(&self) -> Vec<u32> {
        let (mut own, mut all) = (self.rank, vec![0u32; self.ranks as usize]);
        // SAFETY: all ranks call it; room for all; the communicator is freed.
        unsafe {
            let mut node = mpi::RSMPI_COMM_NULL;
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            let word = mpi::RSMPI_UINT32_T;
            mpi::PMPI_Comm_split_type(self.comm, shared, own as c_int, info, &raw mut node);
            mpi::PMPI_Bcast((&raw mut own).cast(), 1, word, 0, node);
            mpi::PMPI_Comm_free(&raw mut node);
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            mpi::PMPI_Allgather(from, 1, word, to, 1, word, self.comm);
        }
        all
    }

    /// By rank, the name of its host.
    fn hosts(&self) -> Vec<String> {
        /// At least as long as any MPI's name.
        const LONGEST: usize = 256;
        let (mut own, mut all) = ([0u8; LONGEST], vec![0u8; LONGEST * self.ranks as usize]);
        // SAFETY: all ranks call it; room for a name, and for those of all.
        unsafe {
            let (mut length, byte) = (0, mpi::RSMPI_UINT8_T);
            mpi::PMPI_Get_processor_name(own.as_mut_ptr().cast(), &raw mut length);
            let (from, to, count) =
                (own.as_ptr().cast(), all.as_mut_ptr().cast(), LONGEST as c_int);
            mpi::PMPI_Allgather(from, count, byte, to, count, byte, self.comm);
        }
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        all.chunks(LONGEST).map(name).collect()
    }

    /// The largest value of all ranks.
    fn most(&self, own: f64) -> f64 {
        let mut most = 0.0f64;
        // SAFETY: all ranks call it, each with a number and a place for the answer.
        unsafe {
            let (from, to) = ((&raw const own).cast(), (&raw mut most).cast());
            mpi::PMPI_Allreduce(from, to, 1, mpi::RSMPI_DOUBLE, mpi::RSMPI_MAX, self.comm);
        }
        most
    }

    /// The mean seconds of `times` runs, on the slowest rank.
    fn seconds(&self, times: u32, mut run: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        // SAFETY: all ranks call it.
        let begin = unsafe {
            mpi::PMPI_Barrier(self.comm);
            mpi::PMPI_Wtime()
        };
        for _ in 0..times {
            run()?;
        }
        // SAFETY: MPI is initialized.
        let own = unsafe { mpi::PMPI_Wtime() } - begin;
        Ok(self.most(own) / f64::from(times))
    }

    /// The mean seconds of runs that take long enough together.
    fn mean(&self, mut run: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        let once = self.seconds(1, &mut run)?;
        let times = (LEAST / once.max(1e-7)).ceil().max(1.0) as u32;
        self.seconds(times, run)
    }

    /// By schedule, the least time of several rounds, each with one exchange of each schedule.
    fn quickest(
        &self,
        exchanges: &mut [Exchange],
        block_bytes: u64,
        rounds: usize,
    ) -> Outcome<Vec<f64>> {
        let bytes = u64::from(self.ranks) * block_bytes;
        let (input, mut output) = (vec![1; bytes as usize], vec![0; bytes as usize]);
        let mut least = vec![f64::INFINITY; exchanges.len()];
        for _ in 0..rounds {
            for (exchange, least) in exchanges.iter_mut().zip(&mut least) {
                let run = || Ok(exchange.exchange(block_bytes, &input, &mut output)?);
                *least = least.min(self.mean(run)?);
            }
        }
        Ok(least)
    }

    /// Measures every all-to-all of a complete graph with these ports, and fits the terms.
    /// Inter-node fits have no copy terms, which a few nodes cannot separate from message terms.
    fn fitted(&self, ports: u32, rounds: usize, inside: bool) -> Outcome<Fit> {
        let machine = self.complete(ports)?;
        let mut all = Vec::new();
        for block_bytes in BLOCKS {
            if u64::from(self.ranks) * block_bytes > LARGEST {
                break;
            }
            let (mut counted, mut exchanges) = (Vec::new(), Vec::new());
            for (sample, schedule) in samples(&machine, block_bytes, self.ranks)? {
                // SAFETY: all ranks of the group call this; dropped before MPI is finalized.
                exchanges.push(unsafe { Exchange::new(self.comm, &schedule)? });
                counted.push(sample);
            }
            let least = self.quickest(&mut exchanges, block_bytes, rounds)?;
            for (sample, seconds) in counted.iter_mut().zip(least) {
                sample.seconds = seconds;
                sample.copied_bytes *= u128::from(inside);
            }
            all.append(&mut counted);
        }
        Ok(fit_processes(&all))
    }

    /// Seconds in which the first rank injects a byte, where a byte on a link takes `per_byte`: 0 if
    /// only its ports limit it.
    fn injection(&self, ports: u32, per_byte: f64, rounds: usize) -> Outcome<f64> {
        let peers = ports.min(self.ranks - 1);
        if peers < 2 {
            return Ok(0.0);
        }
        let bytes = (MOST / u64::from(peers)).clamp(1 << 16, LARGEST) as usize;
        let held = if self.rank == 0 { peers as usize } else { 1 };
        let mut slowest = 0.0f64;
        for receives in [false, true] {
            let mut memories = vec![vec![1u8; bytes]; held];
            let mut seconds = [Vec::new(), Vec::new()];
            for _ in 0..rounds {
                for (at_once, seconds) in [false, true].into_iter().zip(&mut seconds) {
                    let run = || self.long_messages(peers, receives, at_once, &mut memories);
                    seconds.push(self.mean(run)?);
                }
            }
            let [in_turn, at_once] = seconds;
            slowest = slowest.max(injection_of(peers, per_byte, &in_turn, &at_once));
        }
        Ok(slowest)
    }

    /// Messages between the first rank and `peers` others, at once or one after the other. The first
    /// rank has a memory for each, the others have one.
    fn long_messages(
        &self,
        peers: u32,
        receives: bool,
        at_once: bool,
        memories: &mut [Vec<u8>],
    ) -> Outcome<()> {
        let mut open = Vec::with_capacity(memories.len());
        let others = match self.rank {
            0 => 1..peers + 1,
            rank => 0..u32::from(rank <= peers),
        };
        for (other, memory) in others.zip(memories) {
            let (count, other) = (memory.len() as c_int, other as c_int);
            let (at, comm) = (memory.as_mut_ptr().cast(), self.comm);
            // SAFETY: the memory has `count` bytes and outlives the message, which ends below.
            let (code, request) = unsafe {
                let (mut request, byte) = (mpi::RSMPI_REQUEST_NULL, mpi::RSMPI_UINT8_T);
                let code = match (self.rank == 0) == receives {
                    true => mpi::PMPI_Irecv(at, count, byte, other, 0, comm, &raw mut request),
                    false => mpi::PMPI_Isend(at, count, byte, other, 0, comm, &raw mut request),
                };
                (code, request)
            };
            ended(code)?;
            open.push(request);
            if !at_once {
                wait(&mut open)?;
            }
        }
        wait(&mut open)
    }

    fn complete(&self, ports: u32) -> Outcome<Machine> {
        let mut machine = machine(&format!("full:{}", self.ranks))?;
        machine.set_ports(ports);
        Ok(machine)
    }

    /// Seconds of a direct exchange with `ports`.
    fn direct(&self, ports: u32, block_bytes: u64, rounds: usize) -> Outcome<f64> {
        let machine = self.complete(ports)?;
        let problem = Problem::new(Collective::AllToAll, self.ranks, machine.ports, block_bytes)?;
        let schedule =
            topocoll::Exchange::new(&machine, &problem)?.schedule("direct", &Parameters::new())?;
        // SAFETY: as above.
        let exchange = unsafe { Exchange::new(self.comm, &schedule)? };
        Ok(self.quickest(&mut [exchange], block_bytes, rounds)?[0])
    }
}

/// Ends messages.
fn wait(open: &mut Vec<mpi::MPI_Request>) -> Outcome<()> {
    // SAFETY: a status is plain numbers; two arrays of one length.
    let code = unsafe {
        let mut statuses = vec![std::mem::zeroed::<mpi::MPI_Status>(); open.len()];
        mpi::PMPI_Waitall(open.len() as c_int, open.as_mut_ptr(), statuses.as_mut_ptr())
    };
    open.clear();
    ended(code)
}

fn ended(code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(format!("a message: MPI's error {code}").into()) }
}

/// A machine file of the hosts and their ranks; no time is measured.
fn detected(world: &Group, of: &[u32]) -> Outcome<String> {
    let hosts = world.hosts();
    let nodes = of.chunk_by(|a, b| a == b).map(|node| (&hosts[node[0] as usize], node.len()));
    let nodes: Vec<_> = nodes.collect();
    let form = match nodes.iter().any(|(_, ranks)| *ranks > 1) && nodes.len() > 1 {
        true => {
            let sizes: Vec<_> = nodes.iter().map(|(_, ranks)| ranks.to_string()).collect();
            format!("cluster:{}", sizes.join(","))
        }
        false => format!("full:{}", world.ranks),
    };
    let mut machine = machine(&form)?;
    let mut cite = |key: &str, source| machine.sources.push((key.to_owned(), source));
    let slots: Vec<_> = nodes.iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
    cite("title", format!("This computer's MPI, {form}"));
    cite(
        "shape",
        format!(
            "MPI_Comm_split_type by shared memory, MPI_Get_processor_name: {}",
            slots.join(",")
        ),
    );
    let measure = format!("topocoll calibrate --mpi --launch 'mpirun -np {}'", world.ranks);
    for key in ["ports", "startup", "per_byte", "per_hop", "rearrangement", "barrier"] {
        cite(key, format!("assumed; measure it: {measure}"));
    }
    Ok(spec::write_file(&machine)?)
}

/// Runs on all ranks; each gets the same result.
fn measured(world: &Group, of: &[u32], rounds: usize) -> Outcome<Network> {
    let nodes: Vec<u32> = of.chunk_by(|a, b| a == b).map(|node| node.len() as u32).collect();
    let largest = *nodes.iter().max().expect("bug: no nodes");
    if nodes.len() == 1 || largest == 1 {
        let in_turn = world.direct(1, 1, rounds)?;
        let at_once = world.direct(world.ranks - 1, 1, rounds)?;
        let others = f64::from(world.ranks - 1);
        let ports = (in_turn / at_once).round() as u32;
        let (ports, message) = (ports.clamp(1, world.ranks - 1), at_once / others);
        let one = nodes.len() == 1;
        let fit = world.fitted(ports, rounds, one)?;
        let injection = [world.injection(ports, fit.per_byte, rounds)?, 0.0];
        let (inside, between) = if one { (Some(fit), None) } else { (None, Some(fit)) };
        return Ok(Network { nodes, ports, message, injection, inside, between });
    }
    apart(world, of, nodes, largest, rounds)
}

/// Block sizes, and seconds of the library's call.
fn timed(world: &Group, operation: Collective, rounds: usize) -> Outcome<Vec<(u64, f64)>> {
    let mut seconds = Vec::new();
    let sizes = (0..).map(|i| 1u64 << (2 * i));
    for block_bytes in sizes.take_while(|bytes| bytes * u64::from(world.ranks) <= MOST) {
        let bytes = u64::from(world.ranks) * block_bytes;
        let (input, mut output) = (vec![1u8; bytes as usize], vec![0u8; bytes as usize]);
        let mut run = || {
            // SAFETY: buffers of a block for each rank, and all ranks call it.
            let code = unsafe {
                let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
                let (count, byte) = (block_bytes as c_int, mpi::RSMPI_UINT8_T);
                match operation {
                    Collective::AllToAll => {
                        mpi::PMPI_Alltoall(from, count, byte, to, count, byte, world.comm)
                    }
                    Collective::AllGather => {
                        mpi::PMPI_Allgather(from, count, byte, to, count, byte, world.comm)
                    }
                }
            };
            if code == 0 { Ok(()) } else { Err(format!("{operation}: MPI's error {code}").into()) }
        };
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            least = least.min(world.mean(&mut run)?);
        }
        seconds.push((block_bytes, least));
    }
    Ok(seconds)
}

/// Nodes of several ranks.
fn apart(
    world: &Group,
    of: &[u32],
    nodes: Vec<u32>,
    largest: u32,
    rounds: usize,
) -> Outcome<Network> {
    let own = of[world.rank as usize];
    let size = |first: u32| of.iter().filter(|&&node| node == first).count() as u32;
    let chosen = *of.iter().find(|&&node| size(node) == largest).expect("bug: no largest node");
    let other = *of.iter().find(|&&node| node != chosen).expect("bug: one node");
    // One group measures at a time; the others wait at their next split.
    let part = world.split(u32::from(own == chosen));
    let inside = if own == chosen { numbers(&part.fitted(1, rounds, true)?) } else { [0.0; 4] };
    let inside = told(world, chosen, inside);
    let part = world.split(u32::from(own == world.rank));
    let between =
        if own == world.rank { numbers(&part.fitted(1, rounds, false)?) } else { [0.0; 4] };
    let between = told(world, 0, between);
    // Pairs of ranks of two nodes: one pair alone, and all pairs at once.
    let pairs = largest.min(size(other));
    let pair = [chosen, other].iter().find_map(|&first| {
        let place = world.rank.checked_sub(first)?;
        (own == first && place < pairs).then_some(place)
    });
    let part = world.split(pair.unwrap_or(pairs));
    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (i, seconds) in seconds.iter_mut().enumerate() {
            let runs = pair.is_some_and(|place| i == 1 || place == 0);
            let own = if runs { part.direct(1, 1 << 16, 1)? } else { 0.0 };
            seconds.push(world.most(own));
        }
    }
    let [alone, at_once] = seconds;
    let in_turn: Vec<f64> = alone.iter().map(|seconds| f64::from(pairs) * seconds).collect();
    let least = |seconds: &[f64]| seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let ports = (least(&in_turn) / least(&at_once)).round() as u32;
    let (ports, message) = (ports.clamp(1, largest), least(&at_once) / f64::from(pairs));
    let (inside, between) = (of_numbers(inside), of_numbers(between));
    let of_node = injection_of(ports, between.per_byte, &in_turn, &at_once);
    let part = world.split(u32::from(own == chosen));
    let of_rank = if own == chosen { part.injection(ports, inside.per_byte, rounds)? } else { 0.0 };
    let injection = [world.most(of_rank), of_node];
    let (inside, between) = (Some(inside), Some(between));
    Ok(Network { nodes, ports, message, injection, inside, between })
}

/// A rank's nonnegative values, on all ranks.
fn told(world: &Group, rank: u32, own: [f64; 4]) -> [f64; 4] {
    own.map(|value| world.most(if world.rank == rank { value } else { 0.0 }))
}

fn numbers(fit: &Fit) -> [f64; 4] {
    [fit.startup, fit.per_byte, fit.rearrangement, fit.error]
}

fn of_numbers([startup, per_byte, rearrangement, error]: [f64; 4]) -> Fit {
    Fit { startup, per_byte, rearrangement, exchange: 0.0, threads: u32::MAX, error }
}
