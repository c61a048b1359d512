//! Graphviz: a vertex for each rank, an edge for each message, coloured by step.

use std::io::Write;

use topocoll_topology::{Rank, Shape};

use super::local::Local;
use super::{Listing, Source, failed};
use crate::AnalysisError;
use crate::error::check_work;

/// The most edges: Graphviz lays these out in about a minute.
const EDGES: u128 = 20_000;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    check_work("drawing the messages", Listing::of(source.schedule, None).messages, EDGES)?;
    draw(source, out).map_err(failed)
}

fn draw(source: &Source<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let schedule = source.schedule;
    let (name, machine) = (&schedule.origin.algorithm, source.machine.topology.short_form());
    let title = format!("{name} on {machine}").replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(out, "digraph \"{title}\" {{")?;
    writeln!(out, "  node [shape=circle]; edge [colorscheme=dark28];")?;
    for rank in (0..schedule.problem.ranks).map(Rank) {
        match source.machine.topology.shape() {
            // The position for `neato -n`: the last dimension to the right.
            Shape::Grid(grid) if grid.sides().len() == 2 => {
                let [y, x] = [0, 1].map(|u| grid.radix().coordinate(rank, u));
                writeln!(out, "  {rank} [pos=\"{},{}\"];", 90 * x, -90 * i64::from(y))?;
            }
            Shape::Graph(graph)
                if let Some(lattice) = graph.lattice().filter(|l| l.radix().dimensions() == 2) =>
            {
                let [y, x] = [0, 1].map(|u| lattice.radix().coordinate(lattice.place(rank), u));
                writeln!(out, "  {rank} [pos=\"{},{}\"];", 90 * x, -90 * i64::from(y))?;
            }
            Shape::Clustered(clusters) => {
                let node = clusters.node_of(rank);
                writeln!(out, "  subgraph cluster_{node} {{ label=\"node {node}\"; {rank}; }}")?;
            }
            _ => writeln!(out, "  {rank};")?,
        }
    }
    let mut local = Local::new(source);
    for step in 0..schedule.rule().steps() {
        for rank in (0..schedule.problem.ranks).map(Rank) {
            local.look(rank, step);
            for sent in &local.sends {
                let (to, bytes, colour) = (sent.to, sent.bytes, step % 8 + 1);
                writeln!(out, "  {rank} -> {to} [label=\"{step}: {bytes} B\" color={colour}];")?;
            }
        }
    }
    writeln!(out, "}}")?;
    out.flush()
}
