//! SimGrid: a platform, a host file, and time-independent traces that `smpirun -replay` reads.
//!
//! The platform names the links of every pair that a message goes between, so SimGrid routes
//! nothing by itself: its own torus turns the other way at half a ring, and has its first dimension
//! fastest. Links have the machine's bandwidth and propagation. Off grids a rank, and on clusters
//! a node for what leaves it, has a link out and a link in. Copies, packing and startup are
//! computation of a host of 1 Gflop/s, so a flop is a nanosecond. Tags are steps.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use topocoll_topology::{LinkId, Rank, Route, Shape};

use super::local::Local;
use super::{Listing, Source, failed};
use crate::AnalysisError;

/// Bytes of the lines of a message at both ends, about.
const MESSAGE: u128 = 60;

/// Pairs whose routes SimGrid reads in some seconds.
const PAIRS: usize = 1 << 21;

type Routes = BTreeMap<(Rank, Rank), Route>;

pub(super) fn write(source: &Source<'_>, folder: &Path) -> Result<(), AnalysisError> {
    Listing::check_messages(source, MESSAGE)?;
    let routes = routes(source)?;
    let fill = |name: &str, fill: &dyn Fn(&mut dyn Write) -> std::io::Result<()>| {
        let mut file = BufWriter::new(File::create(folder.join(name))?);
        fill(&mut file)?;
        file.flush()
    };
    let all = || -> std::io::Result<()> {
        fill("platform.xml", &|out| platform(source, &routes, out))?;
        let ranks = || (0..source.schedule.problem.ranks).map(Rank);
        fill("hostfile", &|out| ranks().try_for_each(|rank| writeln!(out, "n{rank}")))?;
        fill("traces.txt", &|out| ranks().try_for_each(|rank| writeln!(out, "rank-{rank}.txt")))?;
        ranks()
            .try_for_each(|rank| fill(&format!("rank-{rank}.txt"), &|out| trace(source, rank, out)))
    };
    all().map_err(failed)
}

/// The routes between pairs, one each.
fn routes(source: &Source<'_>) -> Result<Routes, AnalysisError> {
    let (mut routes, mut local) = (Routes::new(), Local::new(source));
    for step in 0..source.schedule.rule().steps() {
        for rank in (0..source.schedule.problem.ranks).map(Rank) {
            local.look(rank, step);
            for sent in local.sends.drain(..) {
                let known = routes.entry((rank, sent.to)).or_insert_with(|| sent.route.clone());
                if *known != sent.route {
                    return Err(AnalysisError::TwoRoutes { from: rank, to: sent.to, step });
                }
            }
            if routes.len() > PAIRS {
                let (what, needed) = ("routes between so many pairs", routes.len() as u128);
                return Err(AnalysisError::Work { what, needed, limit: PAIRS as u128 });
            }
        }
    }
    Ok(routes)
}

fn platform(source: &Source<'_>, routes: &Routes, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<?xml version='1.0'?>")?;
    writeln!(out, r#"<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">"#)?;
    writeln!(out, "<platform version=\"4.1\">\n<zone id=\"machine\" routing=\"Full\">")?;
    for rank in 0..source.schedule.problem.ranks {
        writeln!(out, r#"<host id="n{rank}" speed="1Gf"/>"#)?;
    }
    let machine = source.machine;
    let mut link = |id: String, class: usize, latency: f64| {
        // Names may have any number; values are bytes a second, and seconds.
        let per_byte = machine.timing.per_byte.of(class).max(f64::MIN_POSITIVE);
        let bandwidth = (1.0 / per_byte).min(1e18);
        writeln!(out, r#"<link id="{id}" bandwidth="{bandwidth}Bps" latency="{latency}s"/>"#)
    };
    match machine.topology.shape() {
        Shape::Grid(grid) => {
            // Meshes have no link where it would leave them.
            for number in 0..u64::from(machine.ranks()) * 2 * grid.sides().len() as u64 {
                if let Some(there) = machine.topology.link(LinkId(number)) {
                    let class = there.dimension as usize;
                    link(format!("l{number}"), class, machine.timing.per_hop.of(class))?;
                }
            }
        }
        Shape::Complete => {
            for rank in 0..source.schedule.problem.ranks {
                link(format!("out{rank}"), 0, 0.0)?;
                link(format!("in{rank}"), 0, 0.0)?;
            }
        }
        Shape::Clustered(clusters) => {
            for rank in (0..source.schedule.problem.ranks).map(Rank) {
                let inside = machine.topology.link_class(rank, rank);
                link(format!("out{rank}"), inside, 0.0)?;
                link(format!("in{rank}"), inside, 0.0)?;
            }
            for node in 0..clusters.nodes() {
                let first = clusters.first_rank(node);
                let other = clusters.first_rank((node + 1) % clusters.nodes());
                let between = machine.topology.link_class(first, other);
                link(format!("node-out{node}"), between, 0.0)?;
                link(format!("node-in{node}"), between, 0.0)?;
            }
        }
    }
    for (&(from, to), route) in routes {
        write!(out, r#"<route src="n{from}" dst="n{to}" symmetrical="NO">"#)?;
        let mut taken = Vec::new();
        match machine.topology.shape() {
            Shape::Grid(grid) => {
                grid.for_each_link(from, route, |link| taken.push(format!("l{}", link.0)));
            }
            Shape::Clustered(clusters) if clusters.node_of(from) != clusters.node_of(to) => {
                let [a, b] = [from, to].map(|rank| clusters.node_of(rank));
                taken = vec![format!("node-out{a}"), format!("node-in{b}")];
            }
            _ => taken = vec![format!("out{from}"), format!("in{to}")],
        }
        for id in taken {
            write!(out, r#"<link_ctn id="{id}"/>"#)?;
        }
        writeln!(out, "</route>")?;
    }
    writeln!(out, "</zone>\n</platform>")
}

fn trace(source: &Source<'_>, rank: Rank, out: &mut dyn Write) -> std::io::Result<()> {
    let mut local = Local::new(source);
    writeln!(out, "{rank} init")?;
    for step in 0..source.schedule.rule().steps() {
        local.look(rank, step);
        for (from, bytes) in &local.receives {
            writeln!(out, "{rank} irecv {from} {step} {bytes}")?;
        }
        let mut now = 0;
        let mut work = |out: &mut dyn Write, until: u64| {
            let picoseconds = until - std::mem::replace(&mut now, until);
            match picoseconds {
                0 => Ok(()),
                _ => writeln!(out, "{rank} compute {}", picoseconds as f64 / 1e3),
            }
        };
        for sent in &local.sends {
            work(out, sent.begins)?;
            writeln!(out, "{rank} isend {} {step} {}", sent.to, sent.bytes)?;
        }
        if local.sends.is_empty() {
            work(out, local.copies)?;
        }
        if !local.sends.is_empty() || !local.receives.is_empty() {
            writeln!(out, "{rank} waitall")?;
        }
    }
    writeln!(out, "{rank} finalize")
}
