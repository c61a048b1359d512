//! GOAL text, what `txt2bin` of LogGOPSim reads (Hoefler, Schneider, Lumsdaine 2010).
//!
//! Message costs are the simulator's own parameters; what a rank copies and packs is a `calc`, in
//! nanoseconds. A step begins when the one before has ended at the rank, which a `calc 0` stands
//! for. Tags are steps.

use std::io::Write;

use topocoll_topology::Rank;

use super::local::Local;
use super::{Listing, Source, failed};
use crate::AnalysisError;

/// Bytes of the lines of a message at both ends, about.
const MESSAGE: u128 = 160;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    Listing::check_messages(source, MESSAGE)?;
    lines(source, out).map_err(failed)
}

fn lines(source: &Source<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let problem = &source.schedule.problem;
    let per_byte = source.machine.timing.rearrangement_per_byte * 1e9;
    let nanoseconds = |bytes: f64| (bytes * per_byte).round() as u64;
    writeln!(out, "num_ranks {}", problem.ranks)?;
    let mut local = Local::new(source);
    for rank in (0..problem.ranks).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        // Labels of what the next step waits for.
        let mut before: Vec<String> = Vec::new();
        for step in 0..source.schedule.rule().steps() {
            local.look(rank, step);
            if local.is_idle() {
                continue;
            }
            let copied = (local.copies as f64 / 1e3).round() as u64;
            let begin = format!("b{step}");
            writeln!(out, "{begin}: calc {copied}")?;
            for label in before.drain(..) {
                writeln!(out, "{begin} requires {label}")?;
            }
            for (i, (from, bytes)) in local.receives.iter().enumerate() {
                let label = format!("r{step}_{i}");
                writeln!(out, "{label}: recv {bytes}b from {from} tag {step}")?;
                writeln!(out, "{label} requires {begin}")?;
                before.push(label);
            }
            for (i, sent) in local.sends.iter().enumerate() {
                let (label, mut ready) = (format!("s{step}_{i}"), begin.clone());
                if sent.packed > 0 && per_byte > 0.0 {
                    ready = format!("p{step}_{i}");
                    writeln!(out, "{ready}: calc {}", nanoseconds(sent.packed as f64))?;
                    writeln!(out, "{ready} requires {begin}")?;
                }
                writeln!(out, "{label}: send {}b to {} tag {step}", sent.bytes, sent.to)?;
                writeln!(out, "{label} requires {ready}")?;
                before.push(label);
            }
            if before.is_empty() {
                before.push(begin);
            }
        }
        writeln!(out, "}}")?;
    }
    out.flush()
}
