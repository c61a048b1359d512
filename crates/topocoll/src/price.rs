//! The cost of a setting of an algorithm on a machine: counted, bounded from below, or printed.

use topocoll_algorithms::{ByLinks, Claims, Solution, StepsOf};
use topocoll_analysis::{
    BestBounds, Counts, Measure, RankSample, Time, bounds, count, count_while, counting_work,
    largest_messages, longer_startups,
};
use topocoll_schedule::Schedule;
use topocoll_topology::{INTER_NODE, INTRA_NODE, Machine, PerClass, Ports, Rendezvous, Timing};

use crate::Exchange;

/// The most steps times ranks whose messages are read for their rendezvous.
const READ: u128 = 1 << 21;

/// The source of a price.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Priced {
    /// Counted over every step and link, or by claims that give all terms.
    Exactly,
    /// A lower bound by a closed form: the machine is too large to count.
    AtLeast,
    /// By counts that a paper prints, for a schedule that is not implemented here.
    Published,
}

impl Priced {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exactly => "exactly",
            Self::AtLeast => "at_least",
            Self::Published => "published",
        }
    }
}

/// The cost of one setting.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Price {
    /// Its source.
    pub priced: Priced,
    /// Predicted seconds.
    pub time: Time,
    /// C1.
    pub steps: u64,
    /// C2 in blocks.
    pub blocks: f64,
    /// Charged C2 in blocks.
    pub link_blocks: f64,
    /// Most messages on one link in one step; 0 if not counted, or if links have no numbers.
    pub link_contention: u64,
}

impl Price {
    /// The price of a counted schedule.
    pub(crate) fn counted(counts: &Counts) -> Self {
        Self {
            priced: Priced::Exactly,
            time: counts.time,
            steps: counts.steps,
            blocks: counts.in_blocks(counts.bytes),
            link_blocks: counts.in_blocks(counts.link_bytes),
            link_contention: counts.link_contention,
        }
    }

    /// Seconds that do not depend on the block size, and seconds per byte of block; without rendezvous, which
    /// follows the block size in leaps.
    #[must_use]
    pub fn line(&self, block_bytes: u64) -> (f64, f64) {
        let Time { startup, transmission, propagation, barrier, .. } = self.time;
        let Time { rendezvous, rearrangement, block_copies, .. } = self.time;
        let fixed = startup - rendezvous + propagation + barrier + block_copies;
        (fixed, (transmission + (rearrangement - block_copies)) / block_bytes as f64)
    }

    /// This price for blocks of `from` bytes, converted to blocks of `to` bytes, without rendezvous. The
    /// schedule's messages must have the same whole blocks at both sizes.
    #[must_use]
    pub fn scaled(mut self, from: u64, to: u64) -> Self {
        let (factor, time) = (to as f64 / from as f64, &mut self.time);
        time.transmission *= factor;
        time.rearrangement = (time.rearrangement - time.block_copies) * factor + time.block_copies;
        time.startup -= std::mem::take(&mut time.rendezvous);
        self
    }

    /// This price, which has none, with the rendezvous of its steps. Those with a message above the size are `counted`
    /// only if the size of the blocks, and whether messages are of whole ones, do not tell.
    pub(crate) fn waiting(
        mut self,
        rendezvous: Rendezvous,
        (block_bytes, whole): (u64, bool),
        counted: impl FnOnce() -> u64,
    ) -> Self {
        // Every step has a message of a block.
        let others = if whole { self.steps.saturating_sub(1) as f64 } else { 0.0 };
        let largest = ((self.blocks - others) * block_bytes as f64).ceil() as u128;
        let seconds = match rendezvous {
            _ if rendezvous.of(largest) == 0.0 => 0.0,
            _ if whole && rendezvous.of(block_bytes.into()) > 0.0 => {
                rendezvous.time * self.steps as f64
            }
            _ => rendezvous.time * counted() as f64,
        };
        self.time.startup += seconds;
        self.time.rendezvous = seconds;
        self
    }
}

/// Steps with a message above the size of a rendezvous.
fn steps_above(rendezvous: Rendezvous, schedule: &Schedule) -> u64 {
    let largest = largest_messages(schedule).into_iter();
    largest.filter(|(bytes, _)| rendezvous.of(*bytes) > 0.0).map(|(_, steps)| steps).sum()
}

/// Whether all messages have whole blocks.
pub(crate) fn moves_whole_blocks(solution: &Solution) -> bool {
    let bytes = u128::from(solution.schedule.problem.block_bytes);
    solution.schedule.rule().cuts().is_empty() && solution.claims.bytes % bytes == 0
}

/// The fastest exact price, otherwise the least floor; of equal prices the first.
pub(crate) fn least<T>(
    priced: impl IntoIterator<Item = T>,
    price: impl Fn(&T) -> &Price,
) -> Option<T> {
    priced.into_iter().min_by(|a, b| {
        let (a, b) = (price(a), price(b));
        let floor = |price: &Price| price.priced == Priced::AtLeast;
        floor(a).cmp(&floor(b)).then(a.time.total().total_cmp(&b.time.total()))
    })
}

/// The least exact time.
pub(crate) fn best_time<'p>(prices: impl Iterator<Item = &'p Price>) -> f64 {
    let exact = prices.filter(|price| price.priced == Priced::Exactly);
    exact.map(|price| price.time.total()).fold(f64::INFINITY, f64::min)
}

/// Prices the solutions of one exchange.
pub(crate) struct Pricing<'a> {
    pub(crate) exchange: &'a Exchange<'a>,
    /// Lower bounds of link blocks and hops.
    link_blocks: f64,
    hops: f64,
    /// Seconds by which steps between nodes start longer, at least.
    longer: f64,
    /// Seconds of a byte of a message, and of its propagation, at least.
    per_byte: [f64; 2],
    propagation: f64,
    /// Lower bounds of the seconds of any schedule, and of their transmission.
    seconds: f64,
    transmission: f64,
    /// The timing values if a rank sends one message in a step: a byte takes as long as its link or
    /// the injection of its rank and node, whichever is slower.
    timing: Timing,
}

impl<'a> Pricing<'a> {
    pub(crate) fn new(exchange: &'a Exchange<'a>) -> Self {
        let all = bounds(exchange.problem(), exchange.machine());
        let most = |measure: Measure| {
            let every = all.iter().filter(|bound| bound.condition.is_empty());
            let own = every.filter(|bound| bound.measure == measure);
            own.fold(0.0, |most: f64, bound| most.max(bound.value))
        };
        let link_blocks = most(Measure::LinkBlocks).max(most(Measure::Blocks));
        let timing = limited(exchange.machine());
        let hops = most(Measure::Hops);
        let BestBounds { seconds, transmission, .. } = exchange.bounds();
        let (machine, clustered) = (exchange.machine(), exchange.machine().first_class() > 0);
        let between = machine.least_per_byte_of_nodes();
        let within = if clustered { machine.timing.per_byte.of(INTRA_NODE) } else { between };
        let propagation = if clustered { 0.0 } else { machine.least_latency() };
        let per_byte = [between, between.min(within)];
        let longer = longer_startups(exchange.problem(), machine);
        Self {
            exchange,
            link_blocks,
            hops,
            longer,
            per_byte,
            propagation,
            seconds,
            transmission,
            timing,
        }
    }

    /// The price of a solution: by its claims if they give all terms, otherwise counted if it has
    /// at most `work` segments.
    pub(crate) fn price(&self, solution: &Solution, work: u128) -> Price {
        if let Some(exact) = self.exactly(solution) {
            return exact;
        }
        let machine = self.exchange.machine();
        if counting_work(&solution.schedule, machine, None) <= work
            && let Ok(counts) =
                count(&solution.schedule, machine, None, self.exchange.limits().memory)
        {
            return Price::counted(&counts);
        }
        self.at_least(&solution.claims)
    }

    /// The price of a schedule whose floor is known, counted step by step, all of its ranks or a sample of them.
    /// A higher floor of a sample, or if `go_on` returned false, which gets how many steps were counted and the
    /// floor by then. `None` if counting exceeds the memory limit.
    pub(crate) fn counted(
        &self,
        schedule: &Schedule,
        floor: &Price,
        sample: Option<RankSample>,
        mut go_on: impl FnMut(u32, &Price) -> bool,
    ) -> Option<Price> {
        let (machine, memory) = (self.exchange.machine(), self.exchange.limits().memory);
        let is_sample = sample.is_some();
        let raised = |counts: &Counts| self.after(counts, floor, is_sample);
        let counted = count_while(schedule, machine, memory, sample, |steps, counts| {
            go_on(steps, &raised(counts))
        });
        let (steps, counts) = counted.ok()?;
        Some(if !is_sample && steps == schedule.rule().steps() {
            Price::counted(&counts)
        } else {
            raised(&counts)
        })
    }

    /// The floor of a schedule with this floor, after some of its steps were counted, of all ranks or a sample.
    fn after(&self, counts: &Counts, floor: &Price, is_sample: bool) -> Price {
        let steps = floor.steps.saturating_sub(counts.steps) as f64;
        let all = floor.blocks * self.exchange.problem().block_bytes as f64;
        // Other ranks may send more in the steps counted, and then less is left for the others.
        let bytes = if is_sample { 0.0 } else { (all - counts.bytes as f64).max(0.0) };
        let Time { startup, transmission, propagation, rearrangement, .. } = floor.time;
        let some = &counts.time;
        let least = some.startup - some.rendezvous + steps * self.timing.startup.least();
        let time = Time {
            startup: startup.max(least),
            transmission: transmission.max(some.transmission + bytes * self.per_byte[1]),
            propagation: propagation.max(some.propagation + steps * self.propagation),
            rearrangement: rearrangement.max(some.rearrangement),
            block_copies: some.block_copies,
            ..floor.time
        };
        Price { time, ..*floor }
    }

    /// The price by claims: exact if they give all its terms, else a floor.
    pub(crate) fn claimed(&self, solution: &Solution) -> Price {
        self.exactly(solution).unwrap_or_else(|| self.at_least(&solution.claims))
    }

    /// The price by claims, with the rendezvous of the messages.
    pub(crate) fn exactly(&self, solution: &Solution) -> Option<Price> {
        let (schedule, rendezvous) =
            (&solution.schedule, self.exchange.machine().timing.rendezvous);
        let price = self.by_claims(solution)?;
        let sizes = (schedule.problem.block_bytes, moves_whole_blocks(solution));
        Some(price.waiting(rendezvous, sizes, || steps_above(rendezvous, schedule)))
    }

    /// The price by claims, without link contention, if the claims give the link classes of each
    /// step, or all classes have the same values; without rendezvous, for which few messages may have to be read.
    pub(crate) fn by_claims(&self, solution: &Solution) -> Option<Price> {
        let (timing, claims, rule) = (&self.timing, &solution.claims, solution.schedule.rule());
        let read = || u128::from(rule.steps()) * u128::from(rule.classes().count());
        if timing.rendezvous.time > 0.0 && read() > READ {
            return None;
        }
        // Several messages of a rank share its injection.
        let alone = self.exchange.problem().both_ports() == Ports::from(1);
        if !self.exchange.machine().links_are_of_class() {
            return None;
        }
        let overhead = self.exchange.machine().endpoint.message_overhead;
        let of_each = timing.injection.is_unlimited() && overhead == 0.0;
        if !alone && !of_each {
            return None;
        }
        let hops = claims.hops.filter(|_| claims.contention_free)?;
        let (startup, transmission) = link_seconds(timing, claims)?;
        let uniform = timing.per_hop.is_uniform() || hops == 0;
        let propagation = uniform.then(|| hops as f64 * timing.per_hop.least())?;
        // Packing is charged like a rearrangement, unless the machine gathers in hardware.
        let copied = match (claims.copied_bytes, claims.rearrangements) {
            _ if timing.copies(1, 1)[0] == 0.0 => 0,
            (Some(0), _) => 0,
            (_, Some(0)) if timing.gather => 0,
            (Some(copied), _) if !timing.gather => copied,
            _ => return None,
        };
        let block_bytes = self.exchange.problem().block_bytes;
        let [rearrangement, block_copies] = timing.copies(copied, block_bytes);
        let blocks = claims.bytes as f64 / block_bytes as f64;
        let links = self.exchange.machine().topology.links() > 0 && claims.steps > 0;
        Some(Price {
            priced: Priced::Exactly,
            time: Time {
                startup: startup + overhead * claims.steps as f64,
                transmission,
                propagation,
                rearrangement,
                block_copies,
                barrier: self.barriers(claims.steps),
                ..Time::default()
            },
            steps: claims.steps,
            blocks,
            link_blocks: blocks,
            link_contention: u64::from(links),
        })
    }

    /// The floor of schedules that claim at least this much.
    pub(crate) fn at_least(&self, claims: &Claims) -> Price {
        let (timing, block_bytes) = (&self.timing, self.exchange.problem().block_bytes as f64);
        let link_blocks = (claims.link_bytes_floor as f64 / block_bytes).max(self.link_blocks);
        // A link's load may come from many ranks, whose injection does not add up.
        let machine = self.exchange.machine();
        let volume = (link_blocks * block_bytes * machine.least_per_byte())
            .max(claims.carried_floor as f64 * self.per_byte[0])
            .max(claims.bytes as f64 * self.per_byte[1])
            .max(self.transmission);
        let of_class = machine.links_are_of_class();
        let by_claims = if of_class { link_seconds(timing, claims) } else { None };
        let (startup, transmission) = by_claims.unwrap_or_default();
        let startup = startup.max(claims.steps as f64 * timing.startup.least() + self.longer);
        // Links with a latency of their own may be faster than their class.
        let hops = if of_class { self.hops.max(claims.hops_floor as f64) } else { 0.0 };
        let time = Time {
            startup,
            transmission: transmission.max(volume),
            propagation: (hops * timing.per_hop.least())
                .max(claims.steps as f64 * self.propagation),
            barrier: self.barriers(claims.steps),
            ..Time::default()
        };
        Price {
            priced: Priced::AtLeast,
            time,
            steps: claims.steps,
            blocks: claims.bytes as f64 / block_bytes,
            link_blocks,
            link_contention: 0,
        }
    }

    /// The price, or for a floor at least the bound, which knows the classes of links.
    pub(crate) fn raised(&self, mut price: Price) -> Price {
        if price.priced == Priced::AtLeast {
            price.time.transmission += (self.seconds - price.time.total()).max(0.0);
        }
        price
    }

    fn barriers(&self, steps: u64) -> f64 {
        let barrier = self.exchange.machine().timing.barrier.seconds(self.exchange.problem().ranks);
        barrier * steps.saturating_sub(1) as f64
    }
}

/// The timing values of messages that have the injection of their rank and node for themselves.
fn limited(machine: &Machine) -> Timing {
    let (mut timing, limits) = (machine.timing.clone(), machine.injection());
    if !limits.is_unlimited() {
        let classes = 0..machine.topology.link_classes().len();
        let value = |class| {
            let node = if class >= INTER_NODE { limits.node } else { 0.0 };
            timing.per_byte.of(class).max(limits.rank).max(node)
        };
        timing.per_byte = PerClass::each(&classes.map(value).collect::<Vec<_>>());
    }
    timing
}

/// Seconds of startups and of transmission, by claims of a schedule without link contention, if the
/// links in use are known or all links have the same values.
fn link_seconds(timing: &Timing, claims: &Claims) -> Option<(f64, f64)> {
    let seconds = |values: &PerClass, of: fn(&StepsOf) -> u128, all: f64| match claims.by_links {
        _ if values.is_uniform() => Some(all * values.least()),
        None => None,
        Some(ByLinks { intra_node, inter_node, both }) => {
            let mut amounts = [of(&intra_node), of(&inter_node)];
            amounts[values.slower(INTRA_NODE, INTER_NODE)] += of(&both);
            Some(values.sum(&amounts))
        }
    };
    let startup = seconds(&timing.startup, |of| of.steps.into(), claims.steps as f64)?;
    Some((startup, seconds(&timing.per_byte, |of| of.bytes, claims.bytes as f64)?))
}
