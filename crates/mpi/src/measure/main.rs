//! Measures the cost of MPI messages, intra-node and inter-node. MPI starts it on all ranks:
//! `topocoll-mpi [ROUNDS [alltoall|allgather [RANKS]]]`. The first rank writes one JSON object: a
//! [`Network`], from which `topocoll calibrate --mpi` makes a machine file; or, with an operation,
//! the [`Times`] of the library among the first RANKS ranks, for `topocoll tune --measured`.
//! `topocoll-mpi compare` measures the library's algorithms and schedules by block size ([`compare`]).
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

mod compare;
mod group;

use std::process::ExitCode;

use mpi_sys as mpi;
use topocoll::tune::Times;
use topocoll::{Collective, Fit, Network, Rank, injection_of, machine, spec};

use crate::group::Group;

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
    // SAFETY: no other thread reads the environment yet. The library's own calls are measured, it reads the number of an
    // algorithm for each new communicator, and all schedules are compared.
    unsafe {
        std::env::remove_var("TOPOCOLL_ALGORITHM");
        std::env::remove_var("TOPOCOLL_TUNE");
        std::env::set_var("OMPI_MCA_coll_topocoll_priority", "0");
        std::env::set_var("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    }
    // SAFETY: MPI is initialized once, here, and finalized once, below.
    if unsafe { mpi::PMPI_Init(std::ptr::null_mut(), std::ptr::null_mut()) } != 0 {
        return ExitCode::FAILURE;
    }
    let world = Group::world();
    let of = world.nodes();
    let code = match asked(&world, &of) {
        Ok(asked) => match answer(&world, &asked, &of) {
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

/// The measurement that the command line names.
enum Asked {
    /// The hosts.
    Detect,
    /// The cost of messages, in a number of rounds.
    Network(usize),
    /// The library's times of an operation between the first ranks.
    Library(usize, Collective, u32),
    Compare(compare::Asked),
}

fn answer(world: &Group, asked: &Asked, of: &[u32]) -> Outcome<String> {
    Ok(match asked {
        Asked::Detect => detected(world, of)?,
        Asked::Network(rounds) => serde_json::to_string(&measured(world, of, *rounds)?)?,
        Asked::Compare(asked) => compare::compared(world, asked)?,
        &Asked::Library(rounds, operation, ranks) => {
            let part = world.split(u32::from(world.rank < ranks));
            let seconds = match world.rank < ranks {
                true => timed(&part, operation, rounds)?,
                false => Vec::new(),
            };
            serde_json::to_string(&Times { ranks, started: world.ranks, seconds })?
        }
    })
}

/// Reads the arguments. All ranks get the same result or error.
fn asked(world: &Group, of: &[u32]) -> Result<Asked, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if world.ranks < 2 {
        return Err("one rank cannot exchange messages: start it with mpirun -np N".into());
    }
    let in_order = |asked| match of.is_sorted() {
        true => Ok(asked),
        false => Err("ranks of a node are not consecutive in MPI_COMM_WORLD, as in a machine: \
                      start them with --map-by slot"
            .to_owned()),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["compare", ref words @ ..] => compare::Asked::read(words).map(Asked::Compare),
        ["detect"] => Ok(Asked::Detect),
        [] => in_order(Asked::Network(ROUNDS)),
        [count] => in_order(Asked::Network(rounds(count)?)),
        [count, operation, ref ranks @ ..] => {
            let operation = operation.parse().map_err(|error| format!("`{operation}`: {error}"))?;
            let ranks = match ranks.first() {
                None => world.ranks,
                Some(text) => {
                    let ranks = text.parse().ok();
                    let ranks = ranks.filter(|ranks| (2..=world.ranks).contains(ranks));
                    let started = world.ranks;
                    ranks
                        .ok_or_else(|| format!("`{text}` ranks: from 2 to the {started} started"))?
                }
            };
            Ok(Asked::Library(rounds(count)?, operation, ranks))
        }
    }
}

/// # Errors
/// Text that is not a number of rounds.
fn rounds(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok().filter(|&rounds| rounds > 0);
    rounds.ok_or_else(|| format!("`{text}` rounds: not a whole number from 1 on"))
}

/// A machine file of the hosts and their ranks; no time is measured.
fn detected(world: &Group, of: &[u32]) -> Outcome<String> {
    let hosts = world.hosts();
    // Nodes are named by their first ranks.
    let mut firsts = of.to_vec();
    firsts.sort_unstable();
    let nodes = firsts.chunk_by(|a, b| a == b).map(|node| (&hosts[node[0] as usize], node.len()));
    let nodes: Vec<_> = nodes.collect();
    let form = match nodes.iter().any(|(_, ranks)| *ranks > 1) && nodes.len() > 1 {
        true => {
            let sizes: Vec<_> = nodes.iter().map(|(_, ranks)| ranks.to_string()).collect();
            format!("cluster:{}", sizes.join(","))
        }
        false => format!("full:{}", world.ranks),
    };
    let mut machine = machine(&form)?;
    if !of.is_sorted() {
        firsts.dedup();
        let node = |first: &u32| Rank(firsts.partition_point(|other| other < first) as u32);
        machine = spec::with_placement(&machine, &of.iter().map(node).collect::<Vec<_>>())?;
        machine.cite("placement", "MPI_Comm_split_type by shared memory".to_owned());
    }
    let slots: Vec<_> = nodes.iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
    machine.cite("title", format!("This computer's MPI, {form}"));
    machine.cite(
        "shape",
        format!(
            "MPI_Comm_split_type by shared memory, MPI_Get_processor_name: {}",
            slots.join(",")
        ),
    );
    let measure = format!("topocoll calibrate --mpi --launch 'mpirun -np {}'", world.ranks);
    for key in ["ports", "startup", "per_byte", "per_hop", "rearrangement", "barrier"] {
        machine.cite(key, format!("assumed; measure it: {measure}"));
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
        let mut run = || world.library(operation, &input, &mut output);
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
    let fit = (own == chosen).then(|| part.fitted(1, rounds, true)).transpose()?;
    let inside = told(world, fit);
    let part = world.split(u32::from(own == world.rank));
    let fit = (own == world.rank).then(|| part.fitted(1, rounds, false)).transpose()?;
    let between = told(world, fit);
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
    let of_node = injection_of(ports, between.per_byte, &in_turn, &at_once);
    let part = world.split(u32::from(own == chosen));
    let of_rank = if own == chosen { part.injection(ports, inside.per_byte, rounds)? } else { 0.0 };
    let injection = [world.most(of_rank), of_node];
    let (inside, between) = (Some(inside), Some(between));
    Ok(Network { nodes, ports, message, injection, inside, between })
}

/// A fit, the same on all ranks that have one, on all ranks. Its values are not negative.
fn told(world: &Group, own: Option<Fit>) -> Fit {
    let most = |value: fn(&Fit) -> f64| world.most(own.as_ref().map_or(0.0, value));
    Fit {
        startup: most(|fit| fit.startup),
        per_byte: most(|fit| fit.per_byte),
        rearrangement: most(|fit| fit.rearrangement),
        per_block: most(|fit| fit.per_block),
        exchange: 0.0,
        threads: u32::MAX,
        error: most(|fit| fit.error),
    }
}
