//! Schedules on chosen nodes: one elsewhere than in order, or several at once on parts of a
//! machine.

use topocoll_schedule::Schedule;
use topocoll_topology::{Machine, Rank};

use super::traffic::{SHARED, Share, Traffic, share_of};
use crate::AnalysisError;

/// A schedule and where its ranks sit.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it does.
    pub schedule: Schedule,
    /// The node of each rank.
    pub nodes: Vec<Rank>,
}

/// Jobs that run at the same time on one machine. Their messages take the machine's own routes
/// between the nodes: a schedule's routes are for ranks in order.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    machine: &'a Machine,
    jobs: Vec<Job>,
    /// By node: the job and rank on it, if any.
    on: Vec<Option<(u32, Rank)>>,
}

impl<'a> Placed<'a> {
    /// The jobs on `machine`.
    ///
    /// # Errors
    /// A node the machine lacks, two ranks on one node, or a schedule of more or fewer ranks than
    /// it has nodes.
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
                            "rank {rank} of schedule {number} on node {node}, and nodes end at {last}"
                        ));
                    }
                    Some(Some((job, other))) => {
                        return refuse(format!(
                            "rank {rank} of schedule {number} on node {node}, where rank {other} of schedule {job} is"
                        ));
                    }
                    Some(place) => *place = Some((number as u32, Rank(rank as u32))),
                }
            }
        }
        Ok(Self { machine, jobs, on })
    }

    /// The job on a node, and which of its ranks.
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
        let Job { schedule, nodes } = &self.jobs[job as usize];
        if step >= schedule.rule().steps() {
            return;
        }
        SHARED.with_borrow_mut(|does| {
            schedule.rule().step(rank, step, does);
            share_of(schedule, self.machine, does, out, |send, route| {
                let to = nodes[send.peer.index()];
                self.machine.topology.route(node, to, route);
                to
            });
        });
    }
}

/// Reads the nodes of ranks in order: one number a line, `#` beginning a comment.
///
/// # Errors
/// A line that is no number, with its place.
pub fn read_nodes(text: &str) -> Result<Vec<Rank>, AnalysisError> {
    let mut nodes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            nodes.push(Rank(line.parse().map_err(|_| AnalysisError::Placement {
                what: format!("line {}: `{line}` is not the number of a node", number + 1),
            })?));
        }
    }
    Ok(nodes)
}
