//! `simulate --heatmap`: the traffic of every link.

use std::path::Path;

use topocoll::contention::{Share, Traffic};
use topocoll::{Failure, Graph, Lattice, LinkId, Machine, Rank, Shape, Topology};

use crate::args::Simulate;
use crate::bar::{PROGRESS, starting};
use crate::render::{Heat, Links, bytes, check_picture, write_picture};

/// Most ranks of a grid, and of other machines, which are drawn by pairs.
const GRID: u32 = 4096;
const PAIRS: u32 = 256;

/// Most shares of steps that are examined, which takes seconds.
const WORK: u64 = 1 << 25;

/// Checks that the requested picture is possible, before other work.
pub(super) fn check(args: &Simulate, machine: &Machine) -> anyhow::Result<()> {
    let Some(path) = &args.heatmap else { return Ok(()) };
    check_picture(path)?;
    let (most, what, there) = match machine.topology.network() {
        Shape::Grid(_) => (GRID, "nodes", machine.topology.nodes()),
        Shape::Graph(graph) if graph.lattice().is_some() => (GRID, "nodes", graph.vertices()),
        Shape::Graph(graph) => (PAIRS, "nodes and switches", graph.vertices()),
        Shape::Complete | Shape::Clustered(_) => (PAIRS, "ranks", machine.ranks()),
    };
    anyhow::ensure!(
        there <= most,
        "--heatmap draws at most {most} {what} of such a machine, and {} has {there}",
        machine.topology.short_form()
    );
    Ok(())
}

/// Checks that drawing takes seconds, before a file is written.
pub(super) fn check_work(args: &Simulate, traffic: &dyn Traffic) -> anyhow::Result<()> {
    let shares = u64::from(traffic.nodes()) * u64::from(traffic.steps());
    anyhow::ensure!(
        args.heatmap.is_none() || shares <= WORK,
        "--heatmap examines every rank in every step: {shares} pairs, more than {WORK}"
    );
    Ok(())
}

/// Draws link traffic into the requested file, if any; `who` is the sender, `title` the place.
pub(super) fn draw(
    args: &Simulate,
    machine: &Machine,
    traffic: &dyn Traffic,
    title: &str,
    who: &str,
) -> anyhow::Result<()> {
    let Some(path) = &args.heatmap else { return Ok(()) };
    write(path, machine, traffic, title, who)
}

fn write(
    path: &Path,
    machine: &Machine,
    traffic: &dyn Traffic,
    title: &str,
    who: &str,
) -> anyhow::Result<()> {
    let ranks = machine.ranks() as usize;
    let topology = &*machine.topology;
    let numbered = topology.link_numbers();
    let all = if numbered > 0 { numbered as usize } else { ranks * ranks };
    starting("drawing steps", traffic.steps().into());
    let mut carried = vec![0u128; all];
    let mut share = Share::default();
    for step in 0..traffic.steps() {
        (PROGRESS.done)(1);
        for node in (0..machine.ranks()).map(Rank) {
            traffic.share(node, step, &mut share);
            for send in &share.sends {
                let bytes = u128::from(send.bytes);
                match numbered {
                    0 => carried[node.index() * ranks + send.to.index()] += bytes,
                    _ => topology.for_each_link(node, &send.route, &mut |link| {
                        carried[link.0 as usize] += bytes;
                    }),
                }
            }
        }
    }
    let links = if numbered > 0 { topology.links() } else { (ranks * (ranks - 1)) as u64 };
    let heat = Heat {
        caption: [
            title.to_owned(),
            format!("{who}: traffic of every link, topocoll {}", env!("CARGO_PKG_VERSION")),
            facts(&carried, links) + &failed(machine),
        ],
        links: match topology.network() {
            Shape::Grid(grid) => on_grid(grid.sides(), grid.wrap(), &carried),
            Shape::Graph(graph) => on_graph(graph, &carried),
            Shape::Complete | Shape::Clustered(_) => between(&carried, ranks, "rank"),
        },
    };
    write_picture(path, &heat)
}

/// The busiest link, the mean, and the number of idle links.
fn facts(carried: &[u128], links: u64) -> String {
    let most = carried.iter().max().copied().unwrap_or(0);
    let used = carried.iter().filter(|&&bytes| bytes > 0).count() as u64;
    let mean = carried.iter().sum::<u128>() as f64 / links.max(1) as f64;
    let ratio = if mean > 0.0 { most as f64 / mean } else { 0.0 };
    let most = bytes(u64::try_from(most).unwrap_or(u64::MAX));
    format!("busiest {most}, {ratio:.2} times the mean; {} of {links} links idle", links - used)
}

/// What has failed, as its links look like idle ones.
fn failed(machine: &Machine) -> String {
    /// The most failures that a caption has room for.
    const NAMED: usize = 3;
    let Shape::Graph(graph) = machine.topology.network() else { return String::new() };
    let failures = graph.lattice().map_or(&[][..], Lattice::failures);
    let names: Vec<_> = failures.iter().take(NAMED).map(Failure::name).collect();
    match failures.len() - names.len() {
        _ if names.is_empty() => String::new(),
        0 => format!("; failed {}", names.join(" ")),
        more => format!("; failed {} and {more} more", names.join(" ")),
    }
}

/// The bytes from each of some vertices to each other.
fn between(bytes: &[u128], vertices: usize, what: &str) -> Links {
    let rows = bytes.chunks(vertices.max(1)).map(<[u128]>::to_vec).collect();
    let (from, to) = (format!("from {what}"), format!("to {what}"));
    Links::Panels { panels: vec![(String::new(), rows)], rows: from, columns: to }
}

fn on_graph(graph: &Graph, carried: &[u128]) -> Links {
    let links = carried
        .iter()
        .enumerate()
        .filter_map(|(number, &bytes)| graph.link(LinkId(number as u64)).map(|link| (link, bytes)));
    if let Some(lattice) = graph.lattice() {
        let width = 2 * lattice.radix().dimensions();
        // By place; missing nodes carry nothing.
        let mut by_place = vec![0; lattice.radix().ranks() as usize * width];
        for (link, bytes) in links {
            let way = 2 * link.class as usize + usize::from(link.direction < 0);
            by_place[lattice.place(Rank(link.from)).index() * width + way] = bytes;
        }
        return on_grid(lattice.radix().sides(), lattice.wrap(), &by_place);
    }
    let vertices = graph.vertices() as usize;
    let mut bytes = vec![0; vertices * vertices];
    for (link, carried) in links {
        bytes[link.from as usize * vertices + link.to as usize] += carried;
    }
    between(&bytes, vertices, "node or switch")
}

fn on_grid(sides: &[u32], wrap: &[bool], carried: &[u128]) -> Links {
    let dimensions = sides.len();
    if let (&[rows, columns], &[down, right]) = (sides, wrap) {
        let bytes = carried.chunks(4).map(|ways| [ways[0], ways[1], ways[2], ways[3]]).collect();
        return Links::Plane { sides: [rows, columns], wrap: [down, right], bytes };
    }
    let across = *sides.last().expect("a grid has a side") as usize;
    let panel = |way: usize| {
        let name = format!("{}{}", if way % 2 == 0 { '+' } else { '-' }, way / 2);
        let column = carried.iter().skip(way).step_by(2 * dimensions).copied().collect::<Vec<_>>();
        (name, column.chunks(across).map(<[u128]>::to_vec).collect())
    };
    let long = (0..2 * dimensions).filter(|way| sides[way / 2] > 1);
    let slower: Vec<_> = (0..dimensions - 1).map(|u| u.to_string()).collect();
    Links::Panels {
        panels: long.map(panel).collect(),
        rows: match slower.len() {
            0 => String::new(),
            1 => "leaving, along dimension 0".to_owned(),
            _ => format!("leaving, lines of dimensions {}", slower.join(", ")),
        },
        columns: format!("links by direction, leaving along dimension {}", dimensions - 1),
    }
}
