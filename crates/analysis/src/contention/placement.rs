//! Schedules on chosen nodes: one in any order, or several at once on parts of a machine.

use std::ops::ControlFlow;

use rayon::prelude::*;
use topocoll_schedule::{Schedule, Transfer};
use topocoll_topology::{Machine, Rank, Route, Shape, parallel};

use crate::AnalysisError;
use crate::traffic::{SHARED, Share, Traffic, share_of};

/// A schedule and the nodes of its ranks.
#[derive(Clone, Debug)]
pub struct Job {
    /// The schedule.
    pub schedule: Schedule,
    /// The node of each rank.
    pub nodes: Vec<Rank>,
}

/// Jobs that run at the same time on one machine.
///
/// A message keeps the route of its schedule if that route, from the sender's node, stays on the
/// machine and ends at the receiver's node. This holds for all messages of a schedule that is
/// translated along sides that wrap, or into a part of a larger machine. A schedule on all nodes of
/// a grid may also be mirrored or rotated, with its routes. Any other message takes the machine's
/// own route; [`Placed::routes`] counts them.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    machine: &'a Machine,
    jobs: Vec<Job>,
    /// By job: the dimension and direction on the machine of +1 along each dimension.
    axes: Vec<Vec<(u32, i64)>>,
    /// By node: the job and rank on it, if any.
    on: Vec<Option<(u32, Rank)>>,
}

/// The numbers of messages that keep the routes of their schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PlacedRoutes {
    /// Messages whose schedule gives a route.
    pub given: u128,
    /// Messages that keep it.
    pub kept: u128,
}

impl PlacedRoutes {
    /// The name in reports: `schedule` if all given routes are kept, `machine` if none is, else
    /// `mixed`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kept {
            kept if kept == self.given => "schedule",
            0 => "machine",
            _ => "mixed",
        }
    }
}

impl<'a> Placed<'a> {
    /// The jobs on `machine`.
    ///
    /// # Errors
    /// A node that the machine does not have, two ranks on one node, a schedule of more or fewer
    /// ranks than nodes, or blocks of different sizes where copies take a time of a block.
    pub fn new(machine: &'a Machine, jobs: Vec<Job>) -> Result<Self, AnalysisError> {
        let mut on = vec![None; machine.ranks() as usize];
        for (number, job) in jobs.iter().enumerate() {
            let (ranks, nodes) = (job.schedule.problem.ranks as usize, job.nodes.len());
            if ranks != nodes {
                let what = format!("{nodes} nodes for the {ranks} ranks of schedule {number}");
                return Err(AnalysisError::Placement { what });
            }
            for (rank, node) in job.nodes.iter().enumerate() {
                let refuse = |what| Err(AnalysisError::Placement { what });
                match on.get_mut(node.index()) {
                    None => {
                        let last = machine.ranks() - 1;
                        return refuse(format!(
                            "rank {rank} of schedule {number} on node {node}: the last node is {last}"
                        ));
                    }
                    Some(Some((job, other))) => {
                        return refuse(format!(
                            "rank {rank} of schedule {number} on node {node}, which has rank {other} of schedule {job}"
                        ));
                    }
                    Some(place) => *place = Some((number as u32, Rank(rank as u32))),
                }
            }
        }
        let mut sizes = jobs.iter().map(|job| job.schedule.problem.block_bytes);
        let first = sizes.next();
        if let Some(other) = sizes.find(|&size| Some(size) != first)
            && machine.timing.per_block > 0.0
        {
            let first = first.unwrap_or_default();
            let rule = "a machine with a time of a copied block requires one size";
            let what = format!("schedules with blocks of {first} and of {other} bytes: {rule}");
            return Err(AnalysisError::Placement { what });
        }
        let axes = jobs.iter().map(|job| axes(machine, &job.nodes)).collect();
        Ok(Self { machine, jobs, axes, on })
    }

    /// Counts the messages that keep the routes of their schedules. Visits every message.
    #[must_use]
    pub fn routes(&self) -> PlacedRoutes {
        let of_node = |route: &mut Route, node: usize| {
            let (mut found, node) = (PlacedRoutes::default(), Rank(node as u32));
            let Some((job, rank)) = self.on(node) else { return found };
            self.jobs[job as usize].schedule.rule().each_step(rank, &mut |_, does| {
                for send in does.sends.iter().filter(|send| !send.route.is_empty()) {
                    found.given += 1;
                    found.kept += u128::from(self.place(job, node, send, route).1);
                }
                ControlFlow::Continue(())
            });
            found
        };
        let nodes = parallel::each(0..self.on.len()).map_init(Route::default, of_node);
        nodes.reduce(PlacedRoutes::default, |a, b| PlacedRoutes {
            given: a.given + b.given,
            kept: a.kept + b.kept,
        })
    }

    /// The receiver's node of a message from `node`, its route, and whether that is the route of
    /// the schedule.
    fn place(&self, job: u32, node: Rank, send: &Transfer, route: &mut Route) -> (Rank, bool) {
        let to = self.jobs[job as usize].nodes[send.peer.index()];
        let axes = &self.axes[job as usize];
        route.clear();
        for segment in send.route.segments() {
            let axis = axes.get(segment.dimension as usize);
            let (dimension, direction) = axis.copied().unwrap_or((segment.dimension, 1));
            route.push(dimension, segment.hops.saturating_mul(direction));
        }
        let topology = &*self.machine.topology;
        let kept = !route.is_empty() && topology.follow(node, route) == Ok(topology.node_of(to));
        if !kept {
            topology.route(node, to, route);
        }
        (to, kept)
    }

    /// The job and the rank on a node.
    #[must_use]
    pub fn on(&self, node: Rank) -> Option<(u32, Rank)> {
        self.on[node.index()]
    }

    /// The jobs.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
}

impl Traffic for Placed<'_> {
    fn block_bytes(&self) -> u64 {
        self.jobs.first().map_or(1, |job| job.schedule.problem.block_bytes)
    }

    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }

    fn steps(&self) -> u32 {
        self.jobs.iter().map(|job| job.schedule.rule().steps()).max().unwrap_or(0)
    }

    fn share(&self, node: Rank, step: u32, out: &mut Share) {
        out.sends.clear();
        (out.copied, out.receives) = (0, 0);
        let Some((job, rank)) = self.on(node) else { return };
        let schedule = &self.jobs[job as usize].schedule;
        if step >= schedule.rule().steps() {
            return;
        }
        SHARED.with_borrow_mut(|does| {
            schedule.rule().step(rank, step, does);
            share_of(schedule, self.machine, does, out, |send, route| {
                self.place(job, node, send, route)
            });
        });
    }
}

/// The dimension and direction on the machine of +1 along each dimension of a grid of ranks, when
/// rank i moves to the i-th of `nodes`; empty if the ranks are not those of a grid.
fn axes(machine: &Machine, nodes: &[Rank]) -> Vec<(u32, i64)> {
    let Shape::Grid(grid) = machine.topology.shape() else { return Vec::new() };
    if nodes.len() != machine.ranks() as usize {
        return Vec::new();
    }
    let mut route = Route::default();
    let axis = |u: usize| {
        let next = grid.radix().shifted(Rank(0), u, 1);
        machine.topology.route(nodes[0], nodes[next.index()], &mut route);
        match route.segments() {
            [segment] if segment.hops.abs() == 1 => (segment.dimension, segment.hops),
            _ => (u as u32, 1),
        }
    };
    (0..grid.sides().len()).map(axis).collect()
}
