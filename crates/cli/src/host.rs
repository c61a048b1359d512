//! The computer that this runs on: its memory and its threads.
//!
//! If address space is limited (`ulimit -v`), the threads take a quarter of it at most, and the main thread works
//! alone if there is no room for others. Estimates do not count the threads' share as free.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::SIGABRT;
use signal_hook::flag::register_conditional_shutdown;
use sysinfo::{
    MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System, get_current_pid,
};
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
/// control group.
pub(crate) fn memory() -> u128 {
    const UNKNOWN: u64 = 4 << 30;
    let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let bytes = System::new_with_specifics(kind).map_or(UNKNOWN, |mut system| {
        let available = system.available_memory();
        let Ok(pid) = get_current_pid() else { return available };
        let (this, kind) = ([pid], ProcessRefreshKind::nothing().with_memory());
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&this), true, kind);
        let Some(process) = system.process(pid) else { return available };
        // The kernel reclaims the file cache of a group on demand.
        let group =
            process.cgroup_limits().map(|group| group.total_memory.saturating_sub(group.rss));
        group.map_or(available, |group| available.min(group))
    });
    // The thread that waits for signals may start later.
    let beside = BESIDE + if has_room_for_threads() { THREAD } else { 0 };
    let addresses = free_addresses().map(|free| free.saturating_sub(beside));
    u128::from(addresses.map_or(bytes, |addresses| addresses.min(bytes))) / 10 * 8
}

/// Bytes that this process may still map, if that has a limit (`ulimit -v`).
fn free_addresses() -> Option<u64> {
    let number = |file, key| {
        let text = std::fs::read_to_string(file).ok()?;
        let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let limit = number("/proc/self/limits", "Max address space")?;
    let mapped = number("/proc/self/status", "VmSize:").unwrap_or(0) << 10;
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
            Ok(check_memory("the threads", needed, memory())?)
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
