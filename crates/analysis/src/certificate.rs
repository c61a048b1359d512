//! Certificates: the steps of one rank of each class, in the format that the crate
//! `topocoll-certificate` documents and checks.

mod network;

use std::fmt::{self, Write as _};
use std::io;

use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;
use topocoll_schedule::{Block, Collective, Part, RankClasses, Schedule, SlotSet, Step, Strided};
use topocoll_topology::{Machine, Rank};

use network::Network;
pub use network::check_certifiable;

use crate::bounds::least_startups;
use crate::error::check_ranks;
use crate::error::failed;
use crate::paths::MEMBERS_COMPARED;
use crate::{AnalysisError, Counts, check_named, check_of_all};

/// The most bytes of a certificate, and the bytes of a message or copy.
const LIMIT: u128 = 256 << 20;
const LINE: u128 = 40;

/// Writes the certificate of a schedule that delivers and has these counts. Returns its digest in
/// hexadecimal.
///
/// The certificate has the steps of one rank of each class, if a few members of each class agree
/// with it; otherwise, if layouts or copies differ, those of every rank. Copies before the first
/// message and after the last are written as the layouts they make.
///
/// # Errors
/// A machine that [`check_certifiable`] refuses; a schedule that names no blocks, or of other ranks
/// than the machine's; a certificate of more than 256 MiB; copies of parts of blocks; or a failure to
/// write.
pub fn write_certificate(
    schedule: &Schedule,
    machine: &Machine,
    counts: &Counts,
    out: &mut dyn io::Write,
) -> Result<String, AnalysisError> {
    check_named(schedule)?;
    check_of_all(schedule)?;
    check_ranks(schedule.problem.ranks, machine)?;
    let network = Network::new(&schedule.problem, machine)?;
    let every_rank = RankClasses::distinct(schedule.problem.ranks);
    // Routes that are not listed for the machine are listed for every message.
    let claimed = if network.lists_routes { schedule.rule().classes() } else { every_rank.clone() };
    let by_classes = Writer::new(schedule, &network, claimed)?;
    let writer = if by_classes.members_agree()? {
        by_classes
    } else {
        Writer::new(schedule, &network, every_rank)?
    };
    let mut digest = Sha256::new();
    let mut write = |text: &str| {
        digest.update(text);
        out.write_all(text.as_bytes()).map_err(failed)
    };
    write(&writer.head(counts))?;
    for class in 0..writer.classes.count() {
        let Share { start, finish, steps } = writer.share(writer.classes.representative(class))?;
        let (start, finish) = (writer.rows(&start), writer.rows(&finish));
        write(&format!("class {class}\nstart{start}\nfinish{finish}\n{steps}"))?;
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(out, "sha256 {digest}").map_err(failed)?;
    Ok(digest)
}

struct Writer<'a> {
    schedule: &'a Schedule,
    network: &'a Network<'a>,
    classes: RankClasses,
    /// The byte offsets between the pieces of a block, 0 and its end included.
    cuts: Vec<u64>,
    /// The first step with a message and the last.
    moving: (u32, u32),
}

impl<'a> Writer<'a> {
    fn new(
        schedule: &'a Schedule,
        network: &'a Network<'a>,
        classes: RankClasses,
    ) -> Result<Self, AnalysisError> {
        let (rule, problem) = (schedule.rule(), schedule.problem);
        let (mut does, mut lines) = (Step::default(), 0u128);
        let mut moving = None;
        for class in 0..classes.count() {
            for step in 0..rule.steps() {
                rule.step(classes.representative(class), step, &mut does);
                let messages = does.sends.len() + does.receives.len();
                lines += (messages + does.copies.len()) as u128;
                if messages > 0 {
                    let (first, last) = moving.unwrap_or((step, step));
                    moving = Some((first.min(step), last.max(step)));
                }
            }
            if lines * LINE > LIMIT {
                // An estimate from the classes so far.
                let bytes = lines * LINE * u128::from(classes.count()) / u128::from(class + 1);
                return Err(AnalysisError::Listing { bytes, limit: LIMIT });
            }
        }
        let mut cuts = vec![0];
        cuts.extend(rule.cuts().iter().filter(|cut| (1..problem.block_bytes).contains(cut)));
        cuts.push(problem.block_bytes);
        Ok(Self {
            schedule,
            network,
            classes,
            cuts,
            moving: moving.unwrap_or((rule.steps(), rule.steps())),
        })
    }

    /// Whether a few members of each class have the share of its representative.
    fn members_agree(&self) -> Result<bool, AnalysisError> {
        if self.classes.count() == self.schedule.problem.ranks {
            return Ok(true);
        }
        for class in 0..self.classes.count() {
            let share = self.share(self.classes.representative(class))?;
            for member in 0..MEMBERS_COMPARED {
                if self.share(self.classes.member(class, member))? != share {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn head(&self, counts: &Counts) -> String {
        let Self { schedule, network, classes, .. } = self;
        let problem = &schedule.problem;
        let radix = classes.radix();
        let side = |(u, side): (usize, &u32)| match radix.shifts().get(u) {
            None | Some(0) => side.to_string(),
            Some(twist) => format!("{side}+{twist}"),
        };
        let sides: Vec<_> = radix.sides().iter().enumerate().map(side).collect();
        let periods: Vec<_> = classes.periods().iter().map(ToString::to_string).collect();
        let settings: String = schedule
            .origin
            .parameters
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        // The name of a schedule from a file can be any text.
        let algorithm = format!("{}{settings}", schedule.origin.algorithm);
        let node_ports = problem.own_node_ports(&*network.machine.topology);
        let node_ports = node_ports.map_or(String::new(), |ports| format!("node_ports {ports}\n"));
        let pieces: Vec<_> =
            self.cuts.windows(2).map(|cut| (cut[1] - cut[0]).to_string()).collect();
        format!(
            "topocoll certificate 1\n\
             {}operation {}\n\
             ports {}\n\
             {}block {}\n\
             algorithm {}\n\
             ranks {} by {}\n\
             slots {}\n\
             pieces {}\n\
             counts steps={} messages={} bytes={} link_bytes={} hops={} link_conflicts={} \
             max_link_sharing={} contended_steps={} contention_free_steps={} port_violations={} \
             inter_node_steps={}\n\
             bounds steps={} link_bytes={}\n",
            network.lines,
            problem.operation,
            problem.ports,
            node_ports,
            problem.block_bytes,
            algorithm.escape_default(),
            sides.join("x"),
            periods.join("x"),
            schedule.rule().slots(),
            pieces.join(";"),
            counts.steps,
            counts.messages,
            counts.bytes,
            counts.link_bytes,
            counts.hops,
            counts.link_conflicts,
            counts.link_contention,
            counts.contended_steps,
            counts.contention_free_steps,
            counts.port_violations,
            counts.inter_node_steps,
            least_startups(problem, network.machine),
            network.least_link_bytes,
        )
    }

    fn share(&self, rank: Rank) -> Result<Share, AnalysisError> {
        let rule = self.schedule.rule();
        let start = self.displaced(&self.start(rank)?, rank, |block| block.to);
        let finish = self.displaced(&self.finish(rank)?, rank, |block| block.from);
        let (mut text, (first, last)) = (String::new(), self.moving);
        self.classes.each_step(rule, rank, &mut |step, does| {
            // Copies before the first message and after the last are part of the layouts.
            let copies = if step == first { &[][..] } else { &does.copies };
            let idle = copies.is_empty() && does.sends.is_empty() && does.receives.is_empty();
            if !(first..=last).contains(&step) || idle {
                return step < last;
            }
            let _ = writeln!(text, "step {step}");
            for copy in copies {
                let _ = writeln!(text, "copy {} {}", self.slots(&copy.from), self.slots(&copy.to));
            }
            for send in &does.sends {
                let route = self.network.route(rank, &self.classes.placed(rank, send));
                let _ = writeln!(text, "send {} {route} {}", send.peer, self.slots(&send.slots));
            }
            for receive in &does.receives {
                let _ = writeln!(text, "receive {} {}", receive.peer, self.slots(&receive.slots));
            }
            true
        });
        Ok(Share { start, finish, steps: text })
    }

    /// The layout of a rank before the first message.
    fn start(&self, rank: Rank) -> Result<Vec<Option<Block>>, AnalysisError> {
        let rule = self.schedule.rule();
        let (mut layout, mut does) = (Vec::new(), Step::default());
        rule.initial_layout(rank, &mut layout);
        for step in 0..rule.steps().min(self.moving.0 + 1) {
            rule.step(rank, step, &mut does);
            let pairs = pairs(&does)?;
            let taken: Vec<_> = pairs.iter().map(|&(from, _)| layout[from].take()).collect();
            for (block, &(_, to)) in taken.into_iter().zip(&pairs) {
                layout[to] = block;
            }
        }
        Ok(layout)
    }

    /// The layout of a rank after the last message.
    fn finish(&self, rank: Rank) -> Result<Vec<Option<Block>>, AnalysisError> {
        let rule = self.schedule.rule();
        let (mut layout, mut does) = (Vec::new(), Step::default());
        rule.final_layout(rank, &mut layout);
        for step in (self.moving.1 + 1..rule.steps()).rev() {
            rule.step(rank, step, &mut does);
            let pairs = pairs(&does)?;
            let wanted: Vec<_> = pairs.iter().map(|&(_, to)| layout[to].take()).collect();
            for (block, &(from, _)) in wanted.into_iter().zip(&pairs) {
                layout[from] = block.or(layout[from]);
            }
        }
        Ok(layout)
    }

    /// The slots of a layout, each with the displacement of the rank at the other end of its block.
    fn displaced(
        &self,
        layout: &[Option<Block>],
        rank: Rank,
        other: fn(&Block) -> Rank,
    ) -> Vec<(u64, u32)> {
        let other = |block: &Block| match self.schedule.problem.operation {
            Collective::AllToAll => other(block),
            Collective::AllGather => block.from,
        };
        let blocks = (0..).zip(layout).filter_map(|(slot, block)| Some((slot, block.as_ref()?)));
        blocks
            .map(|(slot, block)| (slot, self.classes.displacement(rank, other(block)).0))
            .collect()
    }

    /// A layout in few rows.
    fn rows(&self, layout: &[(u64, u32)]) -> String {
        let row = |&(slot, displacement)| LayoutRow { slot, displacement, axes: SmallVec::new() };
        let mut rows: Vec<LayoutRow> = layout.iter().map(row).collect();
        loop {
            let before = rows.len();
            // Several sequences may be interleaved.
            let turns = [1, 2, 4, 8].map(|turns| {
                let each = (0..turns).map(|first| rows.iter().skip(first).step_by(turns));
                each.flat_map(|rows| self.joined(rows)).collect::<Vec<_>>()
            });
            rows = turns.into_iter().min_by_key(Vec::len).expect("bug: no turns");
            rows.sort_unstable_by_key(|row| row.slot);
            if rows.len() == before {
                return rows.iter().map(|row| format!(" {row}")).collect();
            }
        }
    }

    /// Joins consecutive rows that are equal and equally far apart to one row with one axis more.
    fn joined<'r>(&self, rows: impl Iterator<Item = &'r LayoutRow>) -> Vec<LayoutRow> {
        let mut joined: Vec<LayoutRow> = Vec::new();
        // The last of the rows joined to the last row, and their number.
        let mut last: Option<(&LayoutRow, u64)> = None;
        for row in rows {
            if let Some((before, times)) = last
                && let Some(group) = joined.last_mut()
                && before.axes == row.axes
            {
                let by = Axis {
                    count: times + 1,
                    slots: row.slot - before.slot,
                    displacement: self
                        .classes
                        .displacement(Rank(before.displacement), Rank(row.displacement))
                        .0,
                };
                let goes_on = times == 1 || Axis { count: times, ..by } == group.axes[0];
                if goes_on {
                    if times == 1 {
                        group.axes.insert(0, by);
                    } else {
                        group.axes[0] = by;
                    }
                    last = Some((row, times + 1));
                    continue;
                }
            }
            joined.push(row.clone());
            last = Some((row, 1));
        }
        joined
    }

    /// The runs of a set for each piece of a block.
    fn slots(&self, set: &SlotSet) -> String {
        let slots = self.schedule.rule().slots();
        let mut words = Vec::new();
        for (piece, ends) in (0..).zip(self.cuts.windows(2)) {
            for run in set.runs() {
                let moves = match run.part {
                    Part::Whole => true,
                    Part::Bytes { first, end } => first <= ends[0] && ends[1] <= end,
                };
                if moves {
                    words.push(strided(run.slots, piece * slots));
                }
            }
        }
        words.join(";")
    }
}

/// The steps of a rank, with displacements for peers: equal for equivalent ranks.
#[derive(PartialEq, Eq)]
struct Share {
    start: Vec<(u64, u32)>,
    finish: Vec<(u64, u32)>,
    steps: String,
}

/// Slots with blocks: the first, the displacement of its block's other end, and the axes along
/// which both grow, the slowest first.
#[derive(Clone)]
struct LayoutRow {
    slot: u64,
    displacement: u32,
    axes: SmallVec<[Axis; 4]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Axis {
    count: u64,
    slots: u64,
    displacement: u32,
}

impl fmt::Display for LayoutRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.slot, self.displacement)?;
        let mut axes = self.axes.iter();
        axes.try_for_each(|axis| write!(f, ",{},{},{}", axis.count, axis.slots, axis.displacement))
    }
}

/// A run of slots, shifted by `by` places.
fn strided(run: Strided, by: u64) -> String {
    let Strided { base, outer, inner } = run;
    let base = base + by;
    match (outer.count, inner.count) {
        (1, 1) => base.to_string(),
        (1, _) => format!("{base},{},{}", inner.count, inner.stride),
        (_, 1) => format!("{base},{},{}", outer.count, outer.stride),
        _ => format!("{base},{},{},{},{}", outer.count, outer.stride, inner.count, inner.stride),
    }
}

/// The slots that copies read and write, one by one.
fn pairs(does: &Step) -> Result<Vec<(usize, usize)>, AnalysisError> {
    let mut pairs = Vec::new();
    for copy in &does.copies {
        for ((from, part), (to, _)) in copy.from.slots().zip(copy.to.slots()) {
            if part != Part::Whole {
                let what = "copies of parts of blocks before the first message or after the last";
                return Err(AnalysisError::Unwritten { what });
            }
            pairs.push((from as usize, to as usize));
        }
    }
    Ok(pairs)
}
