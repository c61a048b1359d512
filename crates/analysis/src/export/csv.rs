//! Comma-separated values: a message a line, ordered by step, then sender.

use std::io::Write;

use topocoll_topology::Rank;

use super::local::Local;
use super::{Listing, Source, failed};
use crate::AnalysisError;

/// Bytes of a line, about.
const LINE: u128 = 60;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    Listing::check_messages(source, LINE)?;
    let mut local = Local::new(source);
    writeln!(out, "step,from,to,bytes,packed,route").map_err(failed)?;
    for step in 0..source.schedule.rule().steps() {
        let all = (0..source.schedule.problem.ranks).map(Rank);
        for rank in all.filter(|&rank| source.only.is_none_or(|only| only == rank)) {
            local.look(rank, step);
            for sent in &local.sends {
                // Dimension and signed hops of each segment, in the order travelled.
                let segments = sent.route.segments().iter();
                let route: Vec<String> =
                    segments.map(|s| format!("{}:{:+}", s.dimension, s.hops)).collect();
                let (to, bytes, packed) = (sent.to, sent.bytes, sent.packed);
                let route = route.join(" ");
                writeln!(out, "{step},{rank},{to},{bytes},{packed},{route}").map_err(failed)?;
            }
        }
    }
    out.flush().map_err(failed)
}
