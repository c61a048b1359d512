use std::collections::BTreeSet;
use std::iter::repeat;
use std::sync::Arc;

use topocoll_topology::{Groups, MixedRadix, Rank};

use crate::{Block, Problem, RankClasses, Rule, Schedule, Slot, Step};

impl Schedule {
    /// Schedules on disjoint groups of a machine's ranks, all at the same time: rank i of a group's schedule
    /// is the i-th of the group. Ranks in no group take no part. Readers that look at links then see those of
    /// the whole machine.
    ///
    /// `kinds` has by group the number of its schedule; if it is empty, all groups have the first.
    ///
    /// # Panics
    /// No schedules, a kind without one, or a group of another number of ranks than its schedule's.
    #[must_use]
    pub fn on_groups(schedules: &[Self], groups: &Groups, kinds: &[u32]) -> Self {
        let ranks = |&kind: &u32| schedules[kind as usize].problem.ranks;
        let fits = |(size, kind)| size == ranks(kind);
        assert!(
            groups.sizes().zip(kinds.iter().chain(repeat(&0))).all(fits),
            "groups of as many ranks"
        );
        let largest = schedules.iter().max_by_key(|one| one.problem.ranks).expect("a schedule");
        let (problem, origin) = (largest.problem, largest.origin.clone());
        let cuts = schedules.iter().flat_map(|one| one.rule().cuts()).copied();
        let rule = OnGroups {
            schedules: schedules.into(),
            kinds: kinds.into(),
            groups: groups.clone(),
            cuts: Vec::from_iter(BTreeSet::from_iter(cuts)),
        };
        let problem = Problem { ranks: groups.machine_ranks(), ..problem };
        Self::new(problem, origin, rule).within(groups)
    }
}

struct OnGroups {
    schedules: Arc<[Schedule]>,
    /// By group, its schedule; empty if all have the first.
    kinds: Arc<[u32]>,
    groups: Groups,
    cuts: Vec<u64>,
}

impl OnGroups {
    fn rule(&self, group: u32) -> &dyn Rule {
        let kind = self.kinds.get(group as usize).copied().unwrap_or(0);
        self.schedules[kind as usize].rule()
    }

    /// The block of a slot by the rule of the group of `rank`, at its position there.
    fn block(
        &self,
        rank: Rank,
        slot: Slot,
        of: impl Fn(&dyn Rule, Rank) -> Option<Block>,
    ) -> Option<Block> {
        let (group, position) = self.groups.place(rank)?;
        let rule = Some(self.rule(group)).filter(|rule| slot < rule.slots())?;
        let Block { from, to } = of(rule, position)?;
        let [from, to] = [from, to].map(|end| self.groups.rank(group, end));
        Some(Block { from, to })
    }

    fn most<T: Ord>(&self, of: impl Fn(&dyn Rule) -> T) -> T {
        self.schedules.iter().map(|one| of(one.rule())).max().expect("bug: no schedule")
    }
}

impl Rule for OnGroups {
    fn steps(&self) -> u32 {
        self.most(|rule| rule.steps())
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let Some((group, position)) = self.groups.place(rank) else { return out.clear() };
        let rule = self.rule(group);
        if step >= rule.steps() {
            return out.clear();
        }
        rule.step(position, step, out);
        for transfer in out.sends.iter_mut().chain(&mut out.receives) {
            transfer.peer = self.groups.rank(group, transfer.peer);
        }
    }

    fn slots(&self) -> u64 {
        self.most(|rule| rule.slots())
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.block(rank, slot, |rule, rank| rule.initial_block(rank, slot))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.block(rank, slot, |rule, rank| rule.final_block(rank, slot))
    }

    /// A translation of the machine that maps groups onto groups, and positions as those of the rule.
    fn classes(&self) -> RankClasses {
        let distinct = || RankClasses::distinct(self.groups.machine_ranks());
        let Some(pattern) = self.groups.pattern() else { return distinct() };
        let (sides, apart): (Vec<u32>, Vec<_>) =
            pattern.sides().map(|(side, along)| (along.inside, (side, along))).unzip();
        let inside = periods(&self.schedules[0].rule().classes(), &sides);
        let along =
            apart.into_iter().zip(inside).map(|((side, along), period)| match along.inside {
                // Nearest positions only move together with all of their group.
                inside if inside < side && along.apart == 1 => inside,
                _ => along.apart * period,
            });
        let classes = RankClasses::translations(pattern.radix().clone(), along.collect());
        match pattern.grid() {
            Some(grid) => classes.keeping_ties(grid),
            None => classes,
        }
    }

    fn names_routes(&self, _: &RankClasses) -> bool {
        self.schedules.iter().map(Schedule::rule).any(|rule| rule.names_routes(&rule.classes()))
    }

    /// The same pairs of nodes exchange within each group, if all have one schedule.
    fn class_of_step(&self, step: u32) -> Option<u64> {
        let [all] = &*self.schedules else { return None };
        let rule = all.rule();
        rule.class_of_step(step).filter(|_| rule.equivalent_on_routers().is_none())
    }

    fn cuts(&self) -> &[u64] {
        &self.cuts
    }
}

/// The periods of some classes along these sides of a numbering.
fn periods(classes: &RankClasses, sides: &[u32]) -> Vec<u32> {
    // Sides of 1 are no sides.
    let long =
        |sides: &[u32]| -> Vec<u32> { sides.iter().copied().filter(|&side| side > 1).collect() };
    let radix = classes.radix();
    let own = radix.sides().iter().zip(classes.periods()).filter(|(side, _)| **side > 1);
    let own: Vec<u32> = match MixedRadix::new(&long(sides)) {
        _ if long(radix.sides()) == long(sides) => own.map(|(_, period)| *period).collect(),
        // Of ranks in a row, those by whole lines.
        Ok(lines) => classes.along(&lines, &vec![true; lines.dimensions()]).periods().to_vec(),
        Err(_) => Vec::new(),
    };
    let mut own = own.into_iter();
    sides.iter().map(|&side| if side > 1 { own.next().unwrap_or(side) } else { 1 }).collect()
}
