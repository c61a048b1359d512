use std::ops::ControlFlow;
use std::sync::Arc;

use topocoll_topology::{Machine, Rank, Route, View};

use crate::{Block, RankClasses, Rule, Schedule, Slot, Step};

impl Schedule {
    /// This schedule for the topology that a view shows, on the machine: ranks, blocks and routes are those of
    /// the machine.
    ///
    /// # Panics
    /// A view of another number of ranks than the schedule's.
    #[must_use]
    pub fn on_view(self, view: View) -> Self {
        assert_eq!(view.shown().ranks(), self.problem.ranks, "a view of as many ranks");
        let (problem, origin, view) = (self.problem, self.origin.clone(), Arc::new(view));
        let rule = OnView { schedule: self.clone(), view: Arc::clone(&view) };
        let mut seen = Self::new(problem, origin, rule);
        seen.view = Some(Arc::new((self, view)));
        seen
    }

    /// The schedule for the topology that a view shows, and the machine as that topology, if this is a schedule
    /// [on a view](Self::on_view) of the machine. Both cost as much as this one on the machine.
    #[must_use]
    pub fn seen(&self, machine: &Machine) -> Option<(Self, Machine)> {
        let (schedule, view) = &**self.view.as_ref()?;
        let mut schedule = schedule.clone();
        schedule.problem = self.problem;
        Some((schedule, view.on(machine)?))
    }
}

struct OnView {
    schedule: Schedule,
    view: Arc<View>,
}

impl OnView {
    fn moved(&self, block: Block) -> Block {
        Block { from: self.view.on_machine(block.from), to: self.view.on_machine(block.to) }
    }

    /// Renames what a rank of the view does.
    fn rename(&self, rank: Rank, does: &mut Step) {
        let mut route = Route::default();
        for send in &mut does.sends {
            self.view.route(rank, send.peer, &send.route, &mut route);
            std::mem::swap(&mut send.route, &mut route);
        }
        for transfer in does.sends.iter_mut().chain(&mut does.receives) {
            transfer.peer = self.view.on_machine(transfer.peer);
        }
    }
}

impl Rule for OnView {
    fn steps(&self) -> u32 {
        self.schedule.rule().steps()
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let rank = self.view.in_view(rank);
        self.schedule.rule().step(rank, step, out);
        self.rename(rank, out);
    }

    fn each_step(&self, rank: Rank, each: &mut dyn FnMut(u32, &Step) -> ControlFlow<()>) {
        let rank = self.view.in_view(rank);
        let mut renamed = Step::default();
        self.schedule.rule().each_step(rank, &mut |step, does| {
            renamed.clone_from(does);
            self.rename(rank, &mut renamed);
            each(step, &renamed)
        });
    }

    fn slots(&self) -> u64 {
        self.schedule.rule().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let block = self.schedule.rule().initial_block(self.view.in_view(rank), slot);
        block.map(|block| self.moved(block))
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let block = self.schedule.rule().final_block(self.view.in_view(rank), slot);
        block.map(|block| self.moved(block))
    }

    fn initial_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.schedule.rule().initial_layout(self.view.in_view(rank), out);
        out.iter_mut().flatten().for_each(|block| *block = self.moved(*block));
    }

    fn final_layout(&self, rank: Rank, out: &mut Vec<Option<Block>>) {
        self.schedule.rule().final_layout(self.view.in_view(rank), out);
        out.iter_mut().flatten().for_each(|block| *block = self.moved(*block));
    }

    /// The translations along the machine's own dimensions that wrap.
    fn classes(&self) -> RankClasses {
        if self.view.is_placed() {
            return self.schedule.rule().classes();
        }
        let Some((machine, grid)) = self.view.grids() else {
            return RankClasses::distinct(self.schedule.problem.ranks);
        };
        let classes = self.schedule.rule().classes().along(grid.radix(), grid.wrap());
        let periods = self.view.along(classes.keeping_ties(grid).periods());
        RankClasses::translations(machine.radix().clone(), periods).keeping_ties(machine)
    }

    fn cuts(&self) -> &[u64] {
        self.schedule.rule().cuts()
    }

    fn names_blocks(&self) -> bool {
        self.schedule.rule().names_blocks()
    }
}
