//! Exchanges of groups of ranks at the same time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use topocoll_exec::{Plan, plan_all, plan_subset};
use topocoll_schedule::{Demand, Origin, Parameters, Schedule};
use topocoll_topology::{Along, Groups, Machine, Rank, Shape, Topology};

use crate::{Error, Exchange};

/// Groups of ranks, and the machines that they form.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(crate) groups: Groups,
    /// Different ones, that of the largest group first.
    pub(crate) machines: Vec<Machine>,
    /// By group, its machine; empty if all have the first.
    kinds: Vec<u32>,
}

impl Grouped {
    pub(crate) fn new(groups: &Groups, machine: &Machine) -> Self {
        let own = |group| machine.subset(&groups.group(group));
        let (mut machines, mut kinds) = (vec![own(groups.largest())], Vec::new());
        if groups.pattern().is_none() && groups.count() > 1 {
            let mut known = BTreeMap::from([(machines[0].topology.short_form(), 0)]);
            for group in 0..groups.count() {
                let one = own(group);
                let kind = known.entry(one.topology.short_form()).or_insert_with(|| {
                    machines.push(one);
                    machines.len() as u32 - 1
                });
                kinds.push(*kind);
            }
        }
        let count = groups.count();
        if count > 1 {
            machines[0].name = format!("one of {count} groups of {}", machine.name);
        }
        Self { groups: groups.clone(), machines, kinds }
    }

    /// Whether no two groups meet on a link or a node, so that all take as long as one by itself.
    pub(crate) fn are_apart(&self, topology: &dyn Topology) -> bool {
        let Some(pattern) = self.groups.pattern() else {
            return matches!(topology.shape(), Shape::Complete) && self.others().is_empty();
        };
        let sides: Vec<_> = pattern.sides().collect();
        let is_whole = |&(side, along): &(u32, Along)| along.inside == side;
        // Routes in a box do not leave it.
        let is_box = |of: &(u32, Along)| is_whole(of) || of.1.apart == 1;
        match (topology.shape(), topology.network()) {
            (Shape::Complete, _) => true,
            (Shape::Grid(_), _) => sides.iter().all(is_box),
            (Shape::Clustered(_), network) => {
                let Some((ranks, nodes)) = sides.split_last() else { return false };
                let between = match network {
                    Shape::Complete | Shape::Clustered(_) => true,
                    Shape::Grid(_) => pattern.grid().is_some() && nodes.iter().all(is_box),
                    Shape::Graph(_) => false,
                };
                nodes.iter().all(|(_, along)| along.inside == 1) || is_whole(ranks) && between
            }
            (Shape::Graph(_), _) => false,
        }
    }

    /// The machines of groups that form another one than the first.
    pub(crate) fn others(&self) -> &[Machine] {
        &self.machines[1..]
    }
}

impl Exchange<'_> {
    /// A schedule as the links of the whole machine see it: on the ranks of all groups.
    ///
    /// # Errors
    /// Groups form different machines, and the algorithm of the schedule does not apply to one.
    ///
    /// # Panics
    /// A schedule of another number of ranks than the largest group.
    pub fn placed<'s>(&self, schedule: &'s Schedule) -> Result<Cow<'s, Schedule>, Error> {
        let Some(of) = &self.groups else { return Ok(Cow::Borrowed(schedule)) };
        let schedules = self.of_machines(of, schedule)?;
        Ok(Cow::Owned(Schedule::on_groups(&schedules, &of.groups, &of.kinds)))
    }

    /// The schedules of the machines that groups form.
    fn of_machines(&self, of: &Grouped, schedule: &Schedule) -> Result<Vec<Schedule>, Error> {
        let others = of.others().iter().map(|machine| self.on_group(machine, schedule));
        std::iter::once(Ok(schedule.clone())).chain(others).collect()
    }

    /// The demand matrix as the whole machine sees it: the same in all groups.
    #[must_use]
    pub fn placed_demand(&self) -> Option<Cow<'_, Demand>> {
        let demand = self.sizes()?;
        Some(match &self.groups {
            Some(of) => Cow::Owned(demand.on_groups(&of.groups)),
            None => Cow::Borrowed(demand),
        })
    }

    /// The schedule of a group that forms this machine, by the algorithm of another one: with its parameters, or
    /// where these do not apply with those that the algorithm chooses.
    pub(crate) fn on_group(
        &self,
        machine: &Machine,
        schedule: &Schedule,
    ) -> Result<Schedule, Error> {
        let other = self.of_group(machine)?;
        let Origin { algorithm, parameters } = &schedule.origin;
        let found = other.solve(algorithm, parameters);
        Ok(found.or_else(|_| other.solve(algorithm, &Parameters::new()))?.schedule)
    }

    /// The plans of all ranks that take part, group after group, with peers as the whole machine numbers them.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plans(&self, schedule: &Schedule) -> Result<Vec<Arc<Plan>>, Error> {
        let Some(of) = &self.groups else { return Ok(plan_all(schedule)?) };
        let (schedules, mut plans) = (self.of_machines(of, schedule)?, Vec::new());
        for group in 0..of.groups.count() {
            let own = &schedules[of.kinds.get(group as usize).map_or(0, |&kind| kind as usize)];
            plans.extend(plan_subset(own, &of.groups.group(group))?);
        }
        Ok(plans)
    }

    /// The plan of one rank, with peers as the whole machine numbers them: of its group's schedule, where
    /// groups form different machines.
    ///
    /// # Errors
    /// The rank takes no part, or cannot run the schedule, or as [`placed`](Self::placed).
    pub fn plan(&self, schedule: &Schedule, rank: Rank) -> Result<Plan, Error> {
        let Some(of) = &self.groups else { return Ok(Plan::new(schedule, rank)?) };
        let group = of.groups.place(rank).map_or(of.groups.largest(), |(group, _)| group);
        let subset = of.groups.group(group);
        Ok(match of.kinds.get(group as usize) {
            None | Some(0) => Plan::in_subset(schedule, rank, &subset)?,
            Some(&kind) => {
                let own = self.on_group(&of.machines[kind as usize], schedule)?;
                Plan::in_subset(&own, rank, &subset)?
            }
        })
    }
}
