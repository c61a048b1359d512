//! The conflict report, as several commands show it.

use serde::Serialize;
use topocoll::contention::{Placed, Traffic};
use topocoll::{AnalysisError, Conflict, ConflictReport, ConflictingMessage, Machine, conflicts};

use crate::bar::starting;
use crate::host::memory;
use crate::render::Answer;

/// Most messages shown for one link.
const SHOWN: usize = 4;

#[derive(Serialize)]
pub(super) struct Entry {
    step: u32,
    link: String,
    from: u32,
    to: u32,
    dimension: u32,
    direction: i64,
    messages: u64,
    bytes: u128,
    links_alike: u128,
    listed: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    from: u32,
    to: u32,
    bytes: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<u32>,
}

/// The conflicts, or why they are not listed.
pub(super) fn find(
    traffic: &dyn Traffic,
    machine: &Machine,
    asked: Option<usize>,
) -> anyhow::Result<Result<ConflictReport, String>> {
    starting("counting conflicts", 0);
    match conflicts(traffic, machine, asked, memory()) {
        Ok(report) => Ok(Ok(report)),
        Err(e @ AnalysisError::Work { .. }) => Ok(Err(e.to_string())),
        Err(e) => Err(topocoll::Error::from(e).into()),
    }
}

pub(super) fn entries(
    found: &Result<ConflictReport, String>,
    machine: &Machine,
    placed: Option<&Placed<'_>>,
) -> Option<Vec<Entry>> {
    let report = found.as_ref().ok()?;
    let schedule = |m: &ConflictingMessage| placed.and_then(|p| p.on(m.from)).map(|on| on.0);
    let entry = |conflict: &Conflict| {
        let link = machine.topology.link(conflict.link).expect("bug: it carries messages");
        Entry {
            step: conflict.step,
            link: machine.topology.link_name(conflict.link),
            from: link.from,
            to: link.to,
            dimension: link.class,
            direction: link.direction,
            messages: conflict.messages,
            bytes: conflict.bytes,
            links_alike: conflict.alike,
            listed: (conflict.listed.iter())
                .map(|m| Listed {
                    from: m.from.0,
                    to: m.to.0,
                    bytes: m.bytes,
                    schedule: schedule(m),
                })
                .collect(),
        }
    };
    Some(report.worst.iter().map(entry).collect())
}

/// The report as text; nothing if nothing conflicts.
pub(super) fn add(
    answer: Answer,
    found: &Result<ConflictReport, String>,
    entries: Option<&[Entry]>,
) -> Answer {
    let report = match found {
        Ok(report) => report,
        Err(reason) => {
            return answer.notes(format!(
                "Contended links are not listed: {reason} (--conflicts N lists them)."
            ));
        }
    };
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return answer };
    let heading = format!(
        "Most contended of {} (step, link) pairs (link: coordinates it leaves, direction, dimension):",
        report.conflicts
    );
    let mut out = String::new();
    for entry in entries {
        let listed: Vec<_> = (entry.listed.iter().take(SHOWN))
            .map(|m| match m.schedule {
                Some(schedule) => format!("{}->{} of schedule {schedule}", m.from, m.to),
                None => format!("{}->{}", m.from, m.to),
            })
            .collect();
        let more = match entry.messages as usize - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let equivalent = match entry.links_alike {
            1 => String::new(),
            links => format!(", as on {} equivalent links", links - 1),
        };
        out += &format!(
            "  step {}, {}: {} messages, {} bytes ({}{more}){equivalent}\n",
            entry.step,
            entry.link,
            entry.messages,
            entry.bytes,
            listed.join(", "),
        );
    }
    answer.list(&heading, out)
}
