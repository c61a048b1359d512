//! Ejection: fewer steps, by repeated insertion of messages that displace others.

use std::ops::Range;

use smallvec::SmallVec;

use super::network::{Hop, Network, Onward};
use super::{Assignment, SEARCHED};

/// The most entries of [`Search::held`]: 64 MB.
const MOST_HELD: usize = 1 << 24;

/// Entries of [`Search::costs`] that one search computes, and more for the cube of the ranks.
const WORK: u64 = 1 << 28;
const WORK_OF_RANKS: u64 = 1 << 6;
/// Entries of it without any success: for each pair of few ranks up to a limit, and for each of many ranks; and as many
/// times those up to the last success, at most.
const PATIENCE: u64 = 1 << 26;
const PATIENCE_OF_PAIR: [u64; 2] = [1 << 18, 1 << 12];
const PATIENCE_OF_WORK: u64 = 8;
/// The work of an insertion besides its costs, and more for each message on a link.
const WORK_OF_INSERTION: u64 = 1 << 12;
const WORK_OF_MESSAGES: u64 = 1 << 9;

/// An assignment, and messages without a step.
struct Search<'n> {
    network: &'n Network,
    now: Assignment,
    /// By step, the messages on a link.
    limits: Vec<u32>,
    /// Steps of a row of the following tables.
    stride: usize,
    /// By bundle or port, its first entry in `held`, and the entries of a step: one for each message that it
    /// can have there.
    first: Vec<(usize, usize)>,
    held: Vec<u32>,
    /// By bundle or port, and step, the number of its messages.
    counts: Vec<u32>,
    /// By bundle or port, and step, the weight of its lightest message if there is no room for
    /// another, else 0.
    prices: Vec<u16>,
    /// By message: how hard it is to insert.
    weights: Vec<u16>,
    /// Messages without a step.
    pool: Vec<usize>,
    onward: Onward,
    /// By place and step, the least weight that a message displaces up to there.
    costs: Vec<u16>,
    random: fastrand::Rng,
    /// Places of `costs` that may be computed in all, without any success, before the next one, and that are
    /// computed; and as how many of them an insertion counts.
    most_work: u64,
    patience: u64,
    work: u64,
    done: u64,
    work_of_insertion: u64,
}

/// The most work of one search.
fn most_work(ranks: u32) -> u64 {
    WORK + WORK_OF_RANKS * u64::from(ranks).pow(3)
}

/// Estimated seconds of one search and the first fit before it, or of the first fit where nothing is searched.
pub(super) fn seconds(network: &Network) -> f64 {
    const SECONDS_OF_WORK: f64 = 1e-10;
    /// Of the first fit, by message and by link on its shortest routes.
    const SECONDS_OF_MESSAGE: f64 = 5e-7;
    const SECONDS_OF_LINK: f64 = 9e-9;
    let ranks = network.ranks() as u32;
    let work = if ranks <= SEARCHED { most_work(ranks) } else { 0 };
    let of_message = SECONDS_OF_MESSAGE + SECONDS_OF_LINK * network.links_of_message();
    SECONDS_OF_WORK * work as f64 + f64::from(ranks).powi(2) * of_message
}

/// Removes steps of an assignment, then lowers the messages on links of each step. An assignment
/// too large for the search stays as it is.
pub(super) fn improve(network: &Network, link_messages: u32, first: Assignment) -> Assignment {
    if network.ranks() > SEARCHED as usize {
        return first;
    }
    let (mut best, least) = (first, network.least_steps(link_messages));
    if best.steps > least
        && let Some(mut search) = Search::new(network, &best, link_messages)
    {
        while search.now.steps > least && search.close_step() {
            best.clone_from(&search.now);
            search.be_patient();
        }
    }
    if link_messages > 1
        && let Some(mut search) = Search::new(network, &best, link_messages)
    {
        search.limit_to_needed();
        let least = network.least_volume().ceil() as u32;
        while search.limits.iter().sum::<u32>() > least && search.lower_limit() {
            best.clone_from(&search.now);
            search.be_patient();
        }
    }
    best
}

impl<'n> Search<'n> {
    /// The search that begins with an assignment, unless it is too large.
    fn new(network: &'n Network, now: &Assignment, link_messages: u32) -> Option<Self> {
        let (ranks, stride) = (network.ranks(), now.steps as usize);
        let (mut first, mut entries) = (Vec::new(), 0usize);
        for most in network.most_held(link_messages) {
            first.push((entries, most as usize));
            entries += stride.saturating_mul(most as usize);
            if entries > MOST_HELD {
                return None;
            }
        }
        let most_work = most_work(ranks as u32);
        let [few, many] = PATIENCE_OF_PAIR.map(|of_pair| of_pair * (ranks as u64).pow(2));
        let patience = PATIENCE.min(few).max(many).min(most_work);
        let weight = |message| 5 * network.distance(message).clamp(1, 1 << 10);
        let mut search = Self {
            network,
            now: now.clone(),
            limits: vec![link_messages; stride],
            stride,
            held: vec![0; entries],
            first,
            counts: vec![0; network.shared() * stride],
            prices: vec![0; network.shared() * stride],
            weights: (0..ranks * ranks).map(weight).collect(),
            pool: Vec::new(),
            onward: Onward::default(),
            costs: Vec::new(),
            random: fastrand::Rng::with_seed(0),
            most_work,
            patience,
            work: patience,
            done: 0,
            work_of_insertion: WORK_OF_INSERTION + WORK_OF_MESSAGES * u64::from(link_messages),
        };
        for message in network.messages() {
            search.place(message, now.step[message]);
        }
        Some(search)
    }

    /// After a success, searches for the next one.
    fn be_patient(&mut self) {
        self.work = (PATIENCE_OF_WORK * self.done).clamp(self.patience, self.most_work);
    }

    /// The bundles and ports of a message.
    fn shared(&self, message: usize) -> impl Iterator<Item = usize> + use<> {
        let route = &self.now.routes[self.network.hops_of(message)];
        let route: SmallVec<[usize; 16]> = route.iter().map(|&bundle| bundle as usize).collect();
        route.into_iter().chain(self.network.ports_of(message))
    }

    /// The entries of a bundle or port in a step, the first of them with messages.
    fn entries(&self, shared: usize, step: usize) -> Range<usize> {
        let (first, most) = self.first[shared];
        first + step * most..first + (step + 1) * most
    }

    /// The messages of a bundle or port in a step.
    fn held(&self, shared: usize, step: usize) -> &[u32] {
        let first = self.entries(shared, step).start;
        &self.held[first..][..self.counts[shared * self.stride + step] as usize]
    }

    fn room(&self, shared: usize, step: usize) -> usize {
        self.network.room(shared, self.limits[step]) as usize
    }

    /// Puts a message with its route into a step.
    fn place(&mut self, message: usize, step: u32) {
        self.now.step[message] = step;
        for shared in self.shared(message) {
            let step = step as usize;
            let count = &mut self.counts[shared * self.stride + step];
            *count += 1;
            let end = *count as usize;
            let entries = self.entries(shared, step);
            self.held[entries][end - 1] = message as u32;
            self.reprice(shared, step);
        }
    }

    /// Takes a message out of its step.
    fn remove(&mut self, message: usize) {
        let step = self.now.step[message] as usize;
        for shared in self.shared(message) {
            let entries = self.entries(shared, step);
            let count = &mut self.counts[shared * self.stride + step];
            let entries = &mut self.held[entries][..*count as usize];
            let place = entries.iter().position(|&held| held == message as u32);
            entries.swap(place.expect("bug: a message is not in its step"), *count as usize - 1);
            *count -= 1;
            self.reprice(shared, step);
        }
    }

    /// The lightest message of a bundle or port in a step.
    fn lightest(&self, shared: usize, step: usize) -> Option<usize> {
        let held = self.held(shared, step).iter().map(|&message| message as usize);
        held.min_by_key(|&message| self.weights[message])
    }

    /// Takes the lightest messages of a bundle or port out of a step until there are at most `most`.
    fn displace(&mut self, shared: usize, step: usize, most: usize) {
        while self.held(shared, step).len() > most {
            let lightest = self.lightest(shared, step).expect("bug: no message");
            self.remove(lightest);
            self.pool.push(lightest);
        }
    }

    fn reprice(&mut self, shared: usize, step: usize) {
        let full = self.held(shared, step).len() >= self.room(shared, step);
        let lightest = if full { self.lightest(shared, step) } else { None };
        self.prices[shared * self.stride + step] =
            lightest.map_or(0, |message| self.weights[message]);
    }

    /// Moves the messages of the step with the fewest hops to other steps; the last step takes its
    /// number. False if there is no work left.
    fn close_step(&mut self) -> bool {
        let mut hops = vec![0u64; self.now.steps as usize];
        for message in self.network.messages() {
            hops[self.now.step[message] as usize] += u64::from(self.network.distance(message));
        }
        let (last, steps) = (self.now.steps - 1, 0..self.now.steps);
        let closed = steps.rev().min_by_key(|&step| hops[step as usize]).unwrap_or(last);
        let all: Vec<usize> = self.network.messages().collect();
        let of = |search: &Self, step| -> Vec<usize> {
            all.iter().copied().filter(|&message| search.now.step[message] == step).collect()
        };
        for message in of(self, closed) {
            self.remove(message);
            self.pool.push(message);
        }
        if closed != last {
            for message in of(self, last) {
                self.remove(message);
                self.place(message, closed);
            }
        }
        self.now.steps -= 1;
        self.insert_all()
    }

    /// Lowers the messages on a link of each step as far as no message has to move.
    fn limit_to_needed(&mut self) {
        for step in 0..self.stride {
            let fits = |limit: &u32| {
                let room = |shared| self.network.room(shared, *limit) as usize;
                (0..self.network.shared()).all(|i| self.held(i, step).len() <= room(i))
            };
            let needed = (1..self.limits[step]).find(fits);
            self.limits[step] = needed.unwrap_or(self.limits[step]);
            for shared in 0..self.network.shared() {
                self.reprice(shared, step);
            }
        }
    }

    /// Lowers the messages on a link of the step in which the fewest are then too many, and moves
    /// these. False if no step has several messages on a link, or there is no work left.
    fn lower_limit(&mut self) -> bool {
        let too_many = |search: &Self, step: usize| -> usize {
            let places = (0..search.network.shared()).map(|shared| {
                let room = search.network.room(shared, search.limits[step] - 1);
                search.held(shared, step).len().saturating_sub(room as usize)
            });
            places.sum()
        };
        let steps = (0..self.limits.len()).filter(|&step| self.limits[step] > 1);
        let Some(step) = steps.min_by_key(|&step| too_many(self, step)) else { return false };
        self.limits[step] -= 1;
        for shared in 0..self.network.shared() {
            self.displace(shared, step, self.room(shared, step));
            self.reprice(shared, step);
        }
        self.insert_all()
    }

    /// Inserts the messages of the pool and all that they displace; false if there is no work left.
    fn insert_all(&mut self) -> bool {
        while let Some(message) = self.pool.pop() {
            if !self.insert(message) {
                return false;
            }
        }
        true
    }

    /// Inserts a message where those that it displaces weigh the least.
    fn insert(&mut self, message: usize) -> bool {
        let steps = self.now.steps as usize;
        self.onward.find(self.network, message, self.random.usize(..1 << 16));
        let places = self.onward.places();
        let work = (steps * (self.onward.hops.len() + places)) as u64 + self.work_of_insertion;
        if self.work < self.done + work {
            return false;
        }
        self.done += work;
        self.costs.clear();
        self.costs.resize(places * steps, u16::MAX);
        let ports = self.network.ports_of(message);
        self.costs[..steps].fill(0);
        for &port in &ports {
            let prices = &self.prices[port * self.stride..][..steps];
            for (cost, price) in self.costs.iter_mut().zip(prices) {
                *cost = cost.saturating_add(*price);
            }
        }
        for hop in &self.onward.hops {
            let (before, after) = self.costs.split_at_mut(hop.to * steps);
            let prices = &self.prices[hop.bundle * self.stride..][..steps];
            let before = &before[hop.from * steps..][..steps];
            for ((cost, before), price) in after[..steps].iter_mut().zip(before).zip(prices) {
                *cost = (*cost).min(before.saturating_add(*price));
            }
        }
        let costs = &self.costs[(places - 1) * steps..];
        let first = self.random.usize(..steps);
        let best = (first..steps).chain(0..first).min_by_key(|&step| costs[step]);
        let step = best.expect("bug: no steps");
        if costs[step] == u16::MAX {
            self.pool.insert(0, message);
            return true;
        }
        let displaces = costs[step] > 0;
        let (costs, prices) = (&self.costs, &self.prices);
        let least = |hop: &Hop| {
            let price = prices[hop.bundle * self.stride + step];
            costs[hop.from * steps + step].saturating_add(price) == costs[hop.to * steps + step]
        };
        self.onward.take(least, &mut self.now.routes[self.network.hops_of(message)]);
        if displaces {
            self.weights[message] = self.weights[message].saturating_add(1);
            for shared in self.shared(message) {
                self.displace(shared, step, self.room(shared, step) - 1);
            }
        }
        self.place(message, step as u32);
        true
    }
}
