//! The computer that this runs on: its memory and its threads.
//!
//! If address space is limited (`ulimit -v`), the threads take a quarter of it at most, and the main thread works
//! alone if there is no room for others. Estimates do not count the threads' share as free.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::SIGABRT;
use signal_hook::flag::register_conditional_shutdown;
use topocoll::{Error, check_memory};

/// Address space of a thread in bytes: its stack and the allocator's arena.
const THREAD: u64 = (2 << 20) + (64 << 20);

/// Bytes that the estimates of a command leave out: arguments, tables and the output.
const BESIDE: u64 = 8 << 20;

/// Bytes that a command requires to start: those, and the largest machine's byte for each pair of
/// 4,096 nodes.
const LEAST: u64 = BESIDE + (20 << 20);

/// If address space is limited, threads take at most a quarter of it.
const SHARE: u64 = 4;

/// Starts as many worker threads as fit if address space is limited (`ulimit -v`). Otherwise one
/// thread per core starts on demand.
pub(crate) fn start() -> anyhow::Result<()> {
    let Some(free) = free_addresses() else { return Ok(()) };
    check_memory("the program", LEAST.into(), free.into()).map_err(Error::from)?;
    // If an allocation fails despite the estimates, the program ends as for a bad size.
    let always = Arc::new(AtomicBool::new(true));
    register_conditional_shutdown(SIGABRT, 2, always)
        .context("cannot handle running out of memory")?;
    let threads = cores();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    // A single worker is this thread: another one needs its own stack and memory.
    let pool = if threads == 1 { pool.use_current_thread() } else { pool };
    pool.build_global().with_context(|| format!("cannot start {threads} threads"))?;
    // The allocator reserves the arena of a thread at its first allocation.
    rayon::broadcast(|_| drop(std::hint::black_box(Box::new(0))));
    Ok(())
}

/// Usable bytes of memory: 80 % of the available memory, within the limits of this process and its
/// control groups.
pub(crate) fn memory() -> u128 {
    const UNKNOWN: u64 = 4 << 30;
    let available = number(Path::new("/proc/meminfo"), "MemAvailable:").map(|kib| kib << 10);
    let bytes = available.unwrap_or(UNKNOWN).min(free_in_groups().unwrap_or(u64::MAX));
    let addresses = free_addresses().map(|free| free.saturating_sub(BESIDE));
    u128::from(addresses.map_or(bytes, |addresses| addresses.min(bytes))) / 10 * 8
}

/// Bytes that the control groups of this process leave it, if one has a limit (Linux).
fn free_in_groups() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let free = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        // Version 2 has one hierarchy without names; version 1 has one for memory.
        let (mount, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "anon "),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss ")
            }
            _ => return None,
        };
        let group = Path::new(mount).join(path.trim_start_matches('/'));
        // In a container the group itself may be out of sight: its folder is then the mount.
        let seen = group.ancestors().take_while(|folder| folder.starts_with(mount));
        let free = seen.filter_map(|folder| {
            let limit = number(&folder.join(limit), "")?;
            // The kernel reclaims the file cache of a group on demand.
            Some(limit.saturating_sub(number(&folder.join("memory.stat"), used)?))
        });
        free.min()
    });
    free.min()
}

/// The number that follows a key, at the start of a line of a file.
fn number(file: &Path, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Bytes that this process may still map, if that has a limit (`ulimit -v`).
fn free_addresses() -> Option<u64> {
    let limit = number(Path::new("/proc/self/limits"), "Max address space")?;
    let mapped = number(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0) << 10;
    Some(limit.saturating_sub(mapped))
}

/// Whether an optional thread may start.
pub(crate) fn has_room_for_threads() -> bool {
    free_addresses().is_none_or(|free| free >= SHARE * THREAD)
}

/// Checks, before allocation, that `each` bytes for each rank fit in memory.
pub(crate) fn check_fits(what: &'static str, ranks: u32, each: u128) -> Result<(), Error> {
    Ok(check_memory(what, u128::from(ranks) * each, memory())?)
}

/// Checks that this number of threads, with this one, fits in memory.
pub(crate) fn check_threads(threads: usize) -> Result<(), Error> {
    match free_addresses() {
        Some(_) => {
            let needed = (threads as u128 - 1) * u128::from(THREAD);
            Ok(check_memory("the threads of --threads", needed, memory())?)
        }
        None => Ok(()),
    }
}

/// Threads that run at once: the cores, or fewer if address space is limited.
pub(crate) fn cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let room = free_addresses().map_or(cores, |free| (free / SHARE / THREAD) as usize);
    cores.min(room).max(1)
}
