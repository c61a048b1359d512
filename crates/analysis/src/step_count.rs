//! What is counted of a step, and the sums over steps.

use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

use crate::Time;
use crate::charges::{Charged, Charges, Rates};
use crate::loads::Busiest;

/// The counts of one step over all ranks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct StepCount {
    /// Messages between ranks.
    pub messages: u128,
    /// Bytes of the largest message, or of the most loaded port of a rank or node that has fewer ports
    /// than messages.
    pub largest_message: u128,
    /// Bytes on the busiest directed link; 0 where links are not shared.
    pub largest_load: u128,
    /// Most messages on one directed link; 0 where links have no numbers.
    pub link_contention: u64,
    /// Directed links that carry several messages.
    pub shared_links: u128,
    /// Most hops of a message.
    pub hops: u64,
    /// Bytes of the largest message that must be packed.
    pub packed: u128,
    /// Most bytes that one rank copies before the step.
    pub copied: u128,
    /// Most messages that one rank sends.
    pub sent: u32,
    /// Whether a message is above the size of the machine's rendezvous.
    pub rendezvous: bool,
    /// Most messages that one node of a cluster sends to others, or receives from them.
    pub inter_node: u32,
    /// Ranks or nodes that send, or receive, more messages than they have ports.
    pub port_violations: u64,
    /// The charges for startup, transmission and propagation.
    pub(crate) charges: Charges,
}

impl StepCount {
    /// Adds links of `class` that carry `messages` of `bytes` together; `shared` of them
    /// carry several.
    pub(crate) fn load(
        &mut self,
        rates: &Rates<'_>,
        class: usize,
        messages: u64,
        bytes: u128,
        shared: u128,
    ) {
        self.link_contention = self.link_contention.max(messages);
        self.largest_load = self.largest_load.max(bytes);
        self.shared_links += shared;
        self.charges.link(rates, class, bytes);
    }

    /// Adds the busiest links of each class; each represents `equivalent` links.
    pub(crate) fn load_busiest(&mut self, rates: &Rates<'_>, busiest: &[Busiest], equivalent: u64) {
        for (class, most) in busiest.iter().enumerate().filter(|(_, most)| most.messages > 0) {
            let shared = u128::from(most.shared) * u128::from(equivalent);
            self.load(rates, rates.first_class() + class, most.messages, most.of_class, shared);
            self.largest_load = self.largest_load.max(most.bytes);
            self.charges.during(rates, most.attoseconds);
        }
    }

    /// Adds `ranks` ranks, or nodes, that send or receive these bytes, which take these attoseconds, if
    /// they exceed their ports: a port carries several messages in turn.
    pub(crate) fn exceed(
        &mut self,
        rates: &Rates<'_>,
        ports: u32,
        [bytes, time]: [Amounts; 2],
        ranks: u64,
    ) {
        if bytes.messages > ports {
            self.port_violations += ranks;
            self.largest_message = self.largest_message.max(bytes.of_port(ports));
            self.charges.during(rates, time.of_port(ports));
        }
    }

    /// Adds what the loads of several link classes beyond the largest message add up to.
    pub(crate) fn contend(&mut self, rates: &Rates<'_>) {
        self.charges.contend(rates, self.largest_message, self.sent > 1);
    }

    /// Seconds of the slowest startup, the slowest transmission with shared links charged in full,
    /// the slowest propagation, and the rearrangement of blocks of a size; without the barrier.
    #[must_use]
    pub fn time(&self, machine: &Machine, block_bytes: u64) -> Time {
        let mut sums = Sums::default();
        sums.add(self);
        sums.charge(machine, block_bytes, 1).time
    }
}

/// The counts of a schedule, and its predicted time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Bytes of a block, to turn bytes into blocks.
    pub block_bytes: u64,
    /// C1: steps in which a message moves between ranks.
    pub steps: u64,
    /// Messages between ranks.
    pub messages: u128,
    /// C2: sum over steps of the largest message. In a step with more messages than ports those of a rank
    /// or node are distributed over its ports, and the bytes of a port are summed: at least the mean of
    /// its ports, and at least the smallest message times the most messages of a port.
    pub bytes: u128,
    /// Sum over steps of the largest message or link load, whichever is more.
    pub link_bytes: u128,
    /// Sum over steps of the largest hop count.
    pub hops: u128,
    /// Groups of local copies.
    pub rearrangements: u64,
    /// Bytes that one rank copies in all of them.
    pub rearranged_bytes: u128,
    /// Sum over steps of the largest message that must be packed.
    pub packed_bytes: u128,
    /// Bytes on the busiest directed link of any step.
    pub largest_load: u128,
    /// Pairs of a step and a directed link that carries several messages.
    pub link_conflicts: u128,
    /// Most messages on one directed link in one step; 0 where links have no numbers.
    pub link_contention: u64,
    /// Steps with a link that carries several messages.
    pub contended_steps: u64,
    /// Steps needed when every contended step is split.
    pub contention_free_steps: u128,
    /// Cases of a step, a rank or node, and a direction that exceed the port model.
    pub port_violations: u64,
    /// Steps in which a message crosses between nodes of a cluster.
    pub inter_node_steps: u64,
    /// Most messages that one rank sends in a step, summed over steps.
    pub sent: u64,
    /// Steps with a message above the size of the machine's rendezvous.
    pub rendezvous_steps: u64,
    /// Seconds that links are busy, summed over links.
    pub link_seconds: f64,
    /// The predicted time, term by term.
    pub time: Time,
}

impl Counts {
    /// `bytes` in blocks.
    #[must_use]
    pub fn in_blocks(&self, bytes: u128) -> f64 {
        bytes as f64 / self.block_bytes as f64
    }
}

/// Sums over steps. All are integers, so the order of addition does not matter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    counts: Counts,
    charged: Charged,
}

impl Sums {
    pub(crate) fn add(&mut self, step: &StepCount) {
        let Self { counts, charged } = self;
        let moves = step.messages > 0;
        counts.steps += u64::from(moves);
        counts.messages += step.messages;
        counts.bytes += step.largest_message;
        counts.link_bytes += step.largest_message.max(step.largest_load);
        counts.largest_load = counts.largest_load.max(step.largest_load);
        counts.hops += u128::from(step.hops);
        counts.rearrangements += u64::from(step.copied > 0);
        counts.rearranged_bytes += step.copied;
        counts.packed_bytes += step.packed;
        counts.sent += u64::from(step.sent);
        counts.rendezvous_steps += u64::from(step.rendezvous);
        counts.link_conflicts += step.shared_links;
        counts.link_contention = counts.link_contention.max(step.link_contention);
        counts.contended_steps += u64::from(step.link_contention > 1);
        counts.contention_free_steps += u128::from(step.link_contention.max(u64::from(moves)));
        counts.port_violations += step.port_violations;
        counts.inter_node_steps += u64::from(step.inter_node > 0);
        charged.add(&step.charges, moves);
    }

    /// The counts of a schedule's steps, and their seconds.
    pub(crate) fn close(&self, schedule: &Schedule, machine: &Machine) -> Counts {
        self.charge(machine, schedule.problem.block_bytes, schedule.participants())
    }

    /// The counts of blocks of a size, and their seconds with barriers of `ranks` ranks.
    pub(crate) fn charge(&self, machine: &Machine, block_bytes: u64, ranks: u32) -> Counts {
        let (Self { counts, charged }, timing) = (*self, &machine.timing);
        let packed = if timing.gather { 0 } else { counts.packed_bytes };
        let copied = counts.rearranged_bytes + packed;
        let [rearrangement, block_copies] = timing.copies(copied, block_bytes);
        let barriers = counts.steps.saturating_sub(1);
        let rendezvous = timing.rendezvous.time * counts.rendezvous_steps as f64;
        let overheads = machine.endpoint.message_overhead * counts.sent as f64;
        let mut time = Time {
            rearrangement,
            block_copies,
            rendezvous,
            barrier: timing.barrier.seconds(ranks) * barriers as f64,
            ..charged.time(timing)
        };
        time.startup += overheads + rendezvous;
        let link_seconds = charged.link_seconds(&timing.per_byte);
        Counts { block_bytes, time, link_seconds, ..counts }
    }
}

/// Amounts of the messages that a rank, or a node, sends in one step, or that it receives.
#[derive(Clone, Copy, Default)]
pub(crate) struct Amounts {
    pub(crate) messages: u32,
    pub(crate) sum: u128,
    pub(crate) least: u128,
}

impl Amounts {
    pub(crate) fn add(&mut self, times: u32, amount: u128) {
        if times > 0 {
            self.least = if self.messages == 0 { amount } else { self.least.min(amount) };
            self.sum = self.sum.saturating_add(amount.saturating_mul(times.into()));
            self.messages += times;
        }
    }

    /// The least that the most loaded of some ports carries, besides the largest message.
    fn of_port(&self, ports: u32) -> u128 {
        let whole = u128::from(self.messages.div_ceil(ports)).saturating_mul(self.least);
        whole.max(self.sum.div_ceil(ports.into()))
    }
}
