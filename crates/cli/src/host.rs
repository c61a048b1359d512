//! The computer that this runs on: its memory and its threads.

use sysinfo::{
    MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System, get_current_pid,
};
use topocoll::{Error, check_memory};

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
        let space = address_space().map(|most| most.saturating_sub(process.virtual_memory()));
        [group, space].into_iter().flatten().fold(available, u64::min)
    });
    u128::from(bytes) / 10 * 8
}

/// Bytes that this process may map, where that has a limit (`ulimit -v`).
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let rest = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Refuses what takes so many bytes for each of so many ranks, before they are taken.
pub(crate) fn check_fits(what: &'static str, ranks: u32, each: u128) -> Result<(), Error> {
    Ok(check_memory(what, u128::from(ranks) * each, memory())?)
}

/// Threads that run at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
