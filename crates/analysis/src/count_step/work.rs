//! The work of counting, estimated before it is done.

use hashbrown::HashSet;
use topocoll_schedule::{Schedule, Step};
use topocoll_topology::{Grid, Shape};

use super::Counter;
use crate::kinds::Boxes;
use crate::sample;
use crate::visit::Visitor;

impl Counter<'_> {
    /// About the most route segments that are visited, if traffic has one message of each rank in each step.
    pub(crate) fn work(&self) -> u128 {
        let Visitor { machine, ranks, cyclic, source, on_router } = &self.visitor;
        let node_ports = source.schedule().map_or(1, |of| of.problem.node_ports);
        let ports = source.schedule().map_or(1, |of| self.ports_used(of));
        let dimensions = |grid: &Grid| grid.sides().len() as u128;
        // Of a message between nodes.
        let segments = match (machine.topology.network(), cyclic) {
            // Lines of a shift differ in the carries of all messages of a step.
            (Shape::Grid(grid), Some(_)) => ports * dimensions(grid),
            (Shape::Grid(grid), None) => dimensions(grid),
            (Shape::Graph(_), Some(cyclic)) => cyclic.segments(),
            (Shape::Graph(graph), None) if let Some(on) = graph.on_grid() => dimensions(on.grid),
            // Every hop of a route is visited.
            (Shape::Graph(graph), None) => graph.diameter().max(1).into(),
            (Shape::Complete | Shape::Clustered(_), _) => 1,
        };
        // The ranks of a node share its ports.
        let per_rank = match machine.ranks() / machine.topology.nodes() {
            size if size > 1 && machine.topology.link_numbers() > 0 => {
                let of_node = u128::from(node_ports) * segments / u128::from(size);
                ports + of_node.min(ports * segments)
            }
            _ => ports * segments,
        };
        if let Some(ranks) = self.ranks_counted() {
            let nodes = u128::from(self.nodes.count());
            return ranks
                .iter()
                .map(|ranks| ranks + (nodes * u128::from(node_ports)).min(ranks * ports) * segments)
                .sum();
        }
        // Two routes from each router to others.
        let of_routers = on_router.map_or(1, |nodes| nodes / 2);
        u128::from(self.steps()) * u128::from(ranks.classes.count() / of_routers) * per_rank
    }

    /// The most messages of a rank in a step: as many as its ports, or as some ranks send in some steps. The ranks of
    /// a node may have more ports than their node has for all of them.
    fn ports_used(&self, schedule: &Schedule) -> u128 {
        /// Of steps, of ranks, and of messages in all.
        const SOME: [u32; 3] = [16, 32, 1 << 12];
        let (rule, ports) = (schedule.rule(), schedule.problem.ports);
        if ports == 1 {
            return 1;
        }
        let (classes, mut does) = (&self.visitor.ranks.classes, Step::default());
        let (mut most, mut looked_at) = (1, 0);
        for class in sample::spread(classes.count(), SOME[1]) {
            for step in sample::spread(rule.steps(), SOME[0]) {
                rule.step(classes.representative(class), step, &mut does);
                most = most.max(does.sends.len() as u32);
                looked_at += does.sends.len() as u32;
                if most >= ports || looked_at > SOME[2] {
                    return most.min(ports).into();
                }
            }
        }
        most.into()
    }

    /// The ranks that are visited in one step of each class, if there are classes of steps.
    fn ranks_counted(&self) -> Option<Vec<u128>> {
        /// The most steps that are compared.
        const COMPARED: u32 = 1 << 25;
        /// The most ranks that are listed; further steps are taken to have as many as those before.
        const LISTED: u128 = 1 << 24;
        let rule = self.visitor.source.schedule()?.rule();
        if self.steps() > COMPARED || self.steps() == 0 {
            return None;
        }
        self.class_of_step(0)?;
        let (mut seen, mut latest) = (HashSet::new(), None);
        let new = (0..self.steps()).filter(|&step| {
            let class = rule.class_of_step(step);
            latest.replace(class) != Some(class) && seen.insert(class)
        });
        let (mut listed, mut steps) = (0u128, 0);
        let ranks = |step| {
            if listed > LISTED {
                return listed / steps;
            }
            let mut ranks = 0;
            rule.active(step, &self.visitor.ranks.classes, &mut |_| ranks += 1);
            (listed, steps) = (listed + ranks, steps + 1);
            ranks
        };
        Some(new.map(ranks).collect())
    }

    /// The work of all steps if ranks act by kinds of coordinates in each; `None` if it is more than a
    /// limit.
    pub(crate) fn work_by_kinds(&self, limit: u128) -> Option<u128> {
        let (grid, rule) = (self.kinds?, self.visitor.source.schedule()?.rule());
        let mut boxes = Boxes::default();
        (0..rule.steps()).try_fold(0u128, |work, step| {
            let few = boxes.take(rule, step, grid, self.visitor.ranks.classes.count());
            (few && work <= limit).then(|| work + boxes.work())
        })
    }
}
