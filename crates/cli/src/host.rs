//! The computer that this runs on: its memory and its threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::SIGABRT;
use signal_hook::flag::register_conditional_shutdown;
use sysinfo::{
    MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System, get_current_pid,
};
use topocoll::{Error, check_memory};

/// Bytes of addresses that a thread takes: its stack, and what the allocator sets aside for it.
const THREAD: u64 = (2 << 20) + (64 << 20);

/// Bytes that a command takes beside those that it estimates: arguments, tables and the output.
const BESIDE: u64 = 8 << 20;

/// Bytes without which no command starts: those, and what the largest machine takes, a byte for each
/// pair of 4,096 nodes.
const LEAST: u64 = BESIDE + (20 << 20);

/// Where addresses are limited, threads take at most one part in four.
const SHARE: u64 = 4;

/// Starts the threads that share the work where addresses are limited (`ulimit -v`): as many as have
/// room. Elsewhere they start when they are needed, one for each core.
pub(crate) fn start() -> anyhow::Result<()> {
    let Some(free) = free_addresses() else { return Ok(()) };
    check_memory("the program", LEAST.into(), free.into()).map_err(Error::from)?;
    // An allocation that fails although the estimates allowed it ends the program like a bad size.
    let always = Arc::new(AtomicBool::new(true));
    register_conditional_shutdown(SIGABRT, 2, always)
        .context("cannot handle running out of memory")?;
    let threads = cores();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    // The one thread is this one: another would need a stack and memory of its own.
    let pool = if threads == 1 { pool.use_current_thread() } else { pool };
    pool.build_global().with_context(|| format!("cannot start {threads} threads"))?;
    // What the allocator sets aside for a thread counts from its first allocation on.
    rayon::broadcast(|_| drop(std::hint::black_box(Box::new(0))));
    Ok(())
}

/// Bytes of memory that may be used: most of what is available, and of what this process and its
/// control group may have yet.
pub(crate) fn memory() -> u128 {
    const UNKNOWN: u64 = 4 << 30;
    let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let bytes = System::new_with_specifics(kind).map_or(UNKNOWN, |mut system| {
        let available = system.available_memory();
        let Ok(pid) = get_current_pid() else { return available };
        let (this, kind) = ([pid], ProcessRefreshKind::nothing().with_memory());
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&this), true, kind);
        let Some(process) = system.process(pid) else { return available };
        // What a group's files take is given back when it is asked for.
        let group =
            process.cgroup_limits().map(|group| group.total_memory.saturating_sub(group.rss));
        group.map_or(available, |group| available.min(group))
    });
    // The thread that waits for signals may start later.
    let beside = BESIDE + if has_room_for_threads() { THREAD } else { 0 };
    let addresses = free_addresses().map(|free| free.saturating_sub(beside));
    u128::from(addresses.map_or(bytes, |addresses| addresses.min(bytes))) / 10 * 8
}

/// Bytes that this process may still map, where that has a limit (`ulimit -v`).
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

/// Whether a thread may start that the work does not need.
pub(crate) fn has_room_for_threads() -> bool {
    free_addresses().is_none_or(|free| free >= SHARE * THREAD)
}

/// Refuses what takes so many bytes for each of so many ranks, before they are taken.
pub(crate) fn check_fits(what: &'static str, ranks: u32, each: u128) -> Result<(), Error> {
    Ok(check_memory(what, u128::from(ranks) * each, memory())?)
}

/// Refuses more threads beside this one than have room.
pub(crate) fn check_threads(threads: usize) -> Result<(), Error> {
    match free_addresses() {
        Some(_) => {
            let needed = (threads as u128 - 1) * u128::from(THREAD);
            Ok(check_memory("the threads", needed, memory())?)
        }
        None => Ok(()),
    }
}

/// Threads that run at once: the cores, and no more than have room where addresses are limited.
pub(crate) fn cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let room = free_addresses().map_or(cores, |free| (free / SHARE / THREAD) as usize);
    cores.min(room).max(1)
}
