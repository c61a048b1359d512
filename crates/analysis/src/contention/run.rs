//! The driver: advances every node through its steps, on any network model.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;
use topocoll_topology::Rank;

use super::chain::{Cause, ChainLink, NONE};
use super::clock::{Clock, Picoseconds, within};
use super::latencies::Latencies;
use super::load::{Load, LoadCount};
use super::network::{Held, InFlight, Network};
use super::ranks::{Ranks, Simulated};
use super::survey::handed;
use super::timeline::RankStep;
use crate::traffic::{Posted, Share, Traffic};
use crate::{AnalysisError, Progress};

/// The most links of the critical chain that are kept.
const CHAIN: usize = 1000;

/// Deliveries between two reports of progress.
const REPORT: u64 = 4096;

/// Lets a caller watch a run and end it early.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Reports messages that are delivered.
    pub progress: Progress<'a>,
    /// Called now and then; the run stops early once it returns true.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Control<'_> {
    /// No reports and no early stop.
    pub const NONE: Self = Self { progress: Progress::UNHEARD, stop: &|| false };
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

/// When a step began and ended, over all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StepTime {
    /// When the first node began it.
    pub start: Picoseconds,
    /// When its last message was delivered.
    pub end: Picoseconds,
}

/// The result of a run over some steps.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The end of the last copy or delivery.
    pub(crate) end: Picoseconds,
    /// When the first message entered the network.
    pub(crate) first_handed: Option<Picoseconds>,
    pub(crate) messages: u64,
    pub(crate) latencies: Latencies,
    pub(crate) load: Option<Load>,
    pub(crate) steps: Vec<StepTime>,
    pub(crate) chain: Vec<NamedLink>,
    pub(crate) chain_length: usize,
    pub(crate) circle: Vec<Held>,
    pub(crate) partial: bool,
    /// By class and step; empty if it is not recorded.
    pub(crate) timeline: Vec<RankStep>,
}

impl Outcome {
    /// Counts all times from `start`.
    pub(super) fn rebase(&mut self, start: Picoseconds) {
        self.end -= start;
        self.first_handed = self.first_handed.map(|first| first - start);
        for time in &mut self.steps {
            (time.start, time.end) = (time.start - start, time.end - start);
        }
        for link in &mut self.chain {
            link.link.at -= start;
        }
    }
}

/// A link of the critical chain, with the channel's name.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NamedLink {
    /// The event.
    pub link: ChainLink,
    /// The channel it waited for.
    pub channel: Option<String>,
}

/// The state of a node.
#[derive(Clone, Default)]
struct Node {
    step: u32,
    /// Messages still to be sent and received in this step.
    open: u32,
    /// Messages that arrived for later steps, as (step, number).
    early: SmallVec<[(u32, u32); 1]>,
    cause: Cause,
}

/// The messages of a node's step that wait for the window.
#[derive(Clone, Default)]
struct Waiting {
    sends: VecDeque<Posted>,
    /// When the node is done with the overheads of those before.
    ready: Picoseconds,
}

struct SimulationRun<'a> {
    traffic: &'a dyn Traffic,
    clock: &'a Clock<'a>,
    steps: Range<u32>,
    ranks: &'a Simulated,
    /// By class.
    nodes: Vec<Node>,
    /// By class; empty without a window.
    waiting: Vec<Waiting>,
    share: Share,
    load: Option<LoadCount>,
    out: Outcome,
}

/// Runs `steps`, from `start` of each rank on. Each node goes on when its own sends and receives of a
/// step are done. With `timeline`, what each rank does in each step is recorded.
///
/// A send is done when the message is delivered. Messages that arrive before their receiver begins
/// their step are kept until then.
pub(crate) fn run(
    traffic: &dyn Traffic,
    clock: &Clock<'_>,
    ranks: &Simulated,
    network: &mut dyn Network,
    steps: Range<u32>,
    (start, timeline): (&dyn Fn(Rank) -> Picoseconds, bool),
    control: &Control<'_>,
) -> Result<Outcome, AnalysisError> {
    let node = Node { step: steps.start, cause: NONE, ..Node::default() };
    let recorded = if timeline { ranks.count() as usize * steps.len() } else { 0 };
    let times = vec![StepTime { start: Picoseconds::MAX, end: 0 }; steps.len()];
    let mut run = SimulationRun {
        traffic,
        clock,
        steps,
        ranks,
        nodes: vec![node; ranks.count() as usize],
        waiting: match clock.window() {
            usize::MAX => Vec::new(),
            _ => vec![Waiting::default(); ranks.count() as usize],
        },
        share: Share::default(),
        load: (traffic.sends_for().filter(|_| clock.window() == usize::MAX))
            .map(|cycles| LoadCount::new(cycles, clock)),
        out: Outcome {
            steps: times,
            timeline: vec![RankStep::NONE; recorded],
            ..Outcome::default()
        },
    };
    for class in 0..ranks.count() {
        run.go_on(network, class as usize, start(ranks.rank(class)));
    }
    let mut last = NONE;
    let (mut stopped, mut delivered) = (false, 0);
    while !stopped && let Some((now, message)) = network.next(control.stop) {
        within(now.into())?;
        run.out.end = run.out.end.max(now);
        delivered += 1;
        run.out.messages += ranks.equivalent;
        run.out.latencies.add_many(now - message.handed, ranks.equivalent);
        if let Some(load) = &mut run.load {
            load.delivered(&message, now);
        }
        let step = &mut run.out.steps[(message.step - run.steps.start) as usize];
        step.end = step.end.max(now);
        let InFlight { from, to, step, cause, .. } = message;
        let what = ChainLink { from, to, step, at: now, waited: None };
        let cause = network.chain().add(what, cause);
        network.chain().drop(std::mem::replace(&mut last, cause));
        run.deliver(network, &message, now, cause);
        if delivered == REPORT {
            (control.progress.done)(std::mem::take(&mut delivered) * ranks.equivalent);
            stopped = (control.stop)();
        }
    }
    (control.progress.done)(delivered * ranks.equivalent);
    run.finish(network, last, stopped || (control.stop)())
}

impl SimulationRun<'_> {
    /// Begins the current step of a node, and later steps as long as a step waits for nothing.
    fn go_on(&mut self, network: &mut dyn Network, class: usize, now: Picoseconds) {
        let (rank, mut begin) = (self.ranks.rank(class as u32), now);
        loop {
            let node = &mut self.nodes[class];
            let step = node.step;
            if step == self.steps.end {
                break;
            }
            let time = &mut self.out.steps[(step - self.steps.start) as usize];
            time.start = time.start.min(begin);
            self.traffic.share(rank, step, &mut self.share);
            let copied = begin.saturating_add(self.clock.rearrangement(self.share.copied));
            time.end = time.end.max(copied);
            self.record(class, step, |own| own.begins(begin, copied));
            begin = copied;
            let node = &mut self.nodes[class];
            let early = node.early.iter().position(|&(number, _)| number == step);
            let early = early.map_or(0, |at| node.early.swap_remove(at).1);
            // More messages may arrive than it waits for.
            node.open = (self.share.sends.len() as u32 + self.share.receives).saturating_sub(early);
            let cause = node.cause;
            let at_once = self.share.sends.len().min(self.clock.window());
            if let Some(waiting) = self.waiting.get_mut(class) {
                waiting.sends.extend(self.share.sends[at_once..].iter().cloned());
            }
            let sends = std::mem::take(&mut self.share.sends);
            for (place, send) in sends[..at_once].iter().enumerate() {
                self.send(network, class, send, (begin, place), cause);
            }
            self.share.sends = sends;
            if self.nodes[class].open > 0 {
                break;
            }
            self.nodes[class].step += 1;
        }
        self.out.end = self.out.end.max(begin);
    }

    /// Adds to the record of a step, if there is one.
    fn record(&mut self, class: usize, step: u32, add: impl FnOnce(&mut RankStep)) {
        let step = (step - self.steps.start) as usize;
        if let Some(own) = self.out.timeline.get_mut(class * self.steps.len() + step) {
            add(own);
        }
    }

    /// Posts a message of the current step at `begin`, after the overheads of `before` others.
    fn send(
        &mut self,
        network: &mut dyn Network,
        class: usize,
        send: &Posted,
        (begin, before): (Picoseconds, usize),
        cause: Cause,
    ) {
        let (rank, ready) = (self.ranks.rank(class as u32), self.clock.ready(begin, before));
        if let Some(waiting) = self.waiting.get_mut(class) {
            waiting.ready = ready;
        }
        let message = InFlight {
            from: rank,
            to: send.to,
            step: self.nodes[class].step,
            bytes: send.bytes,
            transmission: self.clock.transmission(rank, send.to, &send.route, send.bytes),
            handed: handed(self.clock, rank, send, ready),
            cause: network.chain().keep(cause),
        };
        if !self.out.timeline.is_empty() {
            let receiver = self.ranks.class_of(send.to);
            self.record(receiver, message.step, |its| its.is_posted(begin));
        }
        if let Some(load) = &mut self.load {
            load.sent(&message, send.cycle);
        }
        let first = self.out.first_handed.get_or_insert(message.handed);
        *first = (*first).min(message.handed);
        network.post(message, &send.route, send.free);
    }

    fn deliver(
        &mut self,
        network: &mut dyn Network,
        message: &InFlight,
        now: Picoseconds,
        cause: Cause,
    ) {
        if !self.waiting.is_empty() {
            let sender = self.ranks.class_of(message.from);
            let Waiting { sends, ready } = &mut self.waiting[sender];
            let begin = now.max(*ready);
            if let Some(send) = sends.pop_front() {
                self.send(network, sender, &send, (begin, 0), cause);
            }
        }
        let [sender, receiver] = [message.from, message.to].map(|rank| self.ranks.class_of(rank));
        self.record(sender, message.step, |its| its.sent = its.sent.max(now));
        self.record(receiver, message.step, |its| its.received = its.received.max(now));
        for class in [sender, receiver] {
            let node = &mut self.nodes[class];
            if node.step == message.step {
                node.open -= 1;
                if node.open == 0 {
                    node.step += 1;
                    let before = std::mem::replace(&mut node.cause, cause);
                    network.chain().keep(cause);
                    network.chain().drop(before);
                    self.go_on(network, class, now);
                }
            } else {
                match node.early.iter_mut().find(|(step, _)| *step == message.step) {
                    Some((_, count)) => *count += 1,
                    None => node.early.push((message.step, 1)),
                }
            }
        }
    }

    fn finish(
        mut self,
        network: &mut dyn Network,
        last: Cause,
        stopped: bool,
    ) -> Result<Outcome, AnalysisError> {
        for step in &mut self.out.steps {
            step.start = step.start.min(step.end);
        }
        let unfinished = self.nodes.iter().position(|node| node.step < self.steps.end);
        self.out.partial = network.waiting() > 0 || stopped && unfinished.is_some();
        if self.out.partial {
            self.out.end = self.out.end.max(network.now());
            // The times of the others are not known.
            let ended = self.nodes.iter().map(|node| node.step - self.steps.start).min();
            self.out.steps.truncate(ended.unwrap_or(0) as usize);
            if !stopped {
                self.out.circle = network.circle();
            }
        } else if let Some(class) = unfinished {
            let rank = self.ranks.rank(class as u32).0;
            return Err(AnalysisError::Unpaired { rank, step: self.nodes[class].step });
        } else {
            self.out.load = self.load.map(|load| load.summary(self.traffic.nodes()));
        }
        let (mut links, length) = network.chain().leading_to(last, CHAIN);
        connect(&mut links, self.ranks, network);
        let name = |link: ChainLink| NamedLink {
            channel: link.waited.map(|(channel, _, _)| network.channel(channel)),
            link,
        };
        self.out.chain = links.into_iter().map(name).collect();
        self.out.chain_length = length;
        Ok(self.out)
    }
}

/// Moves the links of a chain by translations, from the last one back, so that each message is one
/// of the rank that it delayed. The simulated ranks stand for others.
fn connect(links: &mut [ChainLink], ranks: &Simulated, network: &dyn Network) {
    if ranks.method() == Ranks::Every {
        return;
    }
    // The last message as it was simulated and as it was moved.
    let mut later: Option<(ChainLink, ChainLink)> = None;
    for link in links.iter_mut().rev() {
        let simulated = *link;
        if let Some((before, moved)) = later {
            let one = (link.from, link.to, link.step) == (before.from, before.to, before.step);
            let (from, to) = match one {
                true => (before.from, moved.from),
                false if ranks.class_of(link.to) == ranks.class_of(moved.from) => {
                    (link.to, moved.from)
                }
                false => (link.from, moved.from),
            };
            let moves = |rank| ranks.classes().translated(rank, from, to);
            (link.from, link.to) = (moves(link.from), moves(link.to));
            link.waited = link.waited.map(|(channel, from, to)| {
                (network.moved(channel, &moves), moves(from), moves(to))
            });
        }
        later = Some((simulated, *link));
    }
}
