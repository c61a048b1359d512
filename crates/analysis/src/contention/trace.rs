//! The use of links for other programs: a trace for Chrome and Perfetto, and a table.

use std::io::Write;

use topocoll_topology::{LinkId, Machine};

use super::clock::in_seconds;
use super::network::{Interval, LinkUse};
use crate::AnalysisError;
use crate::error::failed;

/// Writes the intervals in the JSON trace format of Chrome, which Perfetto reads: one thread per
/// link, times in microseconds.
///
/// # Errors
/// Output that cannot be written.
pub fn write_trace(
    machine: &Machine,
    intervals: &[Interval],
    out: &mut dyn Write,
) -> Result<(), AnalysisError> {
    let mut links: Vec<LinkId> = intervals.iter().map(|interval| interval.link).collect();
    links.sort_unstable();
    links.dedup();
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[").map_err(failed)?;
    write!(out, "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"links of {}\"}}}}", machine.topology.short_form()).map_err(failed)?;
    for link in links {
        let name = machine.topology.link_name(link);
        write!(out, ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{link},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}}").map_err(failed)?;
    }
    let mut sorted: Vec<&Interval> = intervals.iter().collect();
    sorted.sort_by_key(|i| (i.start, i.link, i.end, i.from, i.to));
    for i in sorted {
        // Picoseconds as microseconds, exactly.
        let micro = |ps: u64| format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000);
        write!(
            out,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{}->{}\",\"cat\":\"msg\",\"ts\":{},\"dur\":{},\"args\":{{\"step\":{},\"bytes\":{}}}}}",
            i.link, i.from, i.to, micro(i.start), micro(i.end - i.start), i.step, i.bytes
        )
        .map_err(failed)?;
    }
    writeln!(out, "\n]}}").map_err(failed)?;
    out.flush().map_err(failed)
}

/// Writes one comma-separated line per link: bytes, messages, the seconds of the bytes, and the
/// seconds that messages waited for it.
///
/// # Errors
/// Output that cannot be written.
pub fn write_links(
    machine: &Machine,
    links: &[LinkUse],
    out: &mut dyn Write,
) -> Result<(), AnalysisError> {
    writeln!(out, "link,from,to,dimension,direction,bytes,messages,busy_seconds,waited_seconds")
        .map_err(failed)?;
    for (number, used) in links.iter().enumerate() {
        let Some(link) = machine.topology.link(LinkId(number as u64)) else { continue };
        let busy = used.bytes as f64 * machine.seconds_per_byte(LinkId(number as u64));
        writeln!(
            out,
            "{number},{},{},{},{:+},{},{},{busy:e},{:e}",
            link.from,
            link.to,
            link.class,
            link.direction,
            used.bytes,
            used.messages,
            in_seconds(used.waited)
        )
        .map_err(failed)?;
    }
    out.flush().map_err(failed)
}
