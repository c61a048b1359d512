//! The wormhole model, event driven (Dally and Seitz 1987 for the routing and the dateline).
//!
//! A message is a worm. Its header takes one channel after another: a sending port, a virtual
//! channel of each link of its route, a receiving port. It asks for the next channel one hop later.
//! If none is free it waits, in order of arrival, and holds its channels. A channel is free again
//! when the tail has passed.
//!
//! # Where the tail is
//! A worm's full speed is the rate of the slowest channel it takes: a link, or the injection or
//! ejection of its ranks and nodes. Worms that move over a channel have equal shares of its rate,
//! and each worm runs at its smallest share, at most at full speed. On links of one rate that is 1/c
//! of full speed while the most crowded of them carries c moving worms. So each worm has one count
//! of bytes, phi, which runs at that speed; bytes are measured as time at full speed. Let `S_k` be phi when the header gets channel k, m the
//! length, and B the bytes that fit between two headers (a buffer, or the bytes in flight over a
//! link if that is more). The tail passes channel i when phi reaches
//!
//! ```text
//! m + max over k >= i with B (k - i) < m of  S_k - B (k - i):
//! ```
//!
//! bytes without room before k cannot pass i. Without waiting that is `S_i + m`, and the whole
//! message takes exactly startup + m + hops.
//!
//! A worm that waits stops using bandwidth once it has filled its buffers.
//!
//! # Validated
//! Two latencies of contended permutations in `BookSim` 2, within 3 %; no machine was measured
//! (`docs/src/validation.md`).
//!
//! # What it leaves out
//! Arbitration flit by flit, the time of credits, and adaptive routing. A header passes a router in
//! no time. The share of a worm that cannot use it is not given to others.

mod crowds;
mod event;
mod hops;
mod lane;
mod worm;

use std::sync::Arc;

use smallvec::SmallVec;
use topocoll_topology::{LinkId, Machine, Route};

use self::event::{Event, Kind};
use self::hops::Hops;
use self::lane::Lane;
use self::worm::{Rest, Worm};
use super::calendar::{self, Calendar};
use super::chain::{Chain, ChainLink};
use super::channels::Channels;
use super::classes::ChannelClasses;
use super::clock::{Clock, Picoseconds, picoseconds};
use super::network::{Contents, Held, InFlight, Interval, LinkUse, Network, cycle};
use super::settings::{Dateline, Settings};

/// No worm.
const NOBODY: u32 = u32::MAX;

/// Lanes for headers; links of other latencies take the calendar.
const LANES: usize = 16;

/// Events between two calls of `stop`.
const PATIENCE: u32 = 1 << 16;

/// The free channels of a pool, and the last of the worms that wait for one: a circle, in which the
/// first follows the last.
#[derive(Clone, Copy)]
struct Pool {
    free: u32,
    last: u32,
}

pub(crate) struct Wormhole<'a> {
    channels: Channels<'a>,
    calendar: Calendar<Event>,
    /// Headers on links, by latency: first in, first out.
    lanes: Vec<Lane>,
    now: Picoseconds,
    pools: Vec<Pool>,
    /// The worms that move over each shared channel.
    movers: Vec<SmallVec<[u32; 4]>>,
    worms: Vec<Worm>,
    rest: Vec<Rest>,
    hops: Hops,
    idle: Vec<u32>,
    /// The pools of the message that is posted.
    route: Vec<u32>,
    /// By kind of link, or one for all, the time of a header over it, and its lane if it has one.
    over_link: Vec<(Picoseconds, Option<usize>)>,
    /// Bytes of a buffer, and the time in which bytes fill the slowest link.
    buffer_bytes: f64,
    slowest: Picoseconds,
    links: Vec<LinkUse>,
    chain: Chain,
    records: bool,
    intervals: Vec<Interval>,
}

/// Bytes of memory of a machine and its messages: those in flight, and about one cause of waiting
/// for each message.
pub(crate) fn memory(machine: &Machine, settings: &Settings, contents: &Contents) -> u128 {
    let channels = Channels::new(machine, settings, Dateline::Entry, None);
    let links = channels.links() as u128 * size_of::<LinkUse>() as u128;
    let spilled = if settings.vcs > 4 { 4 * settings.vcs.next_power_of_two() as usize } else { 0 };
    let shared = size_of::<SmallVec<[u32; 4]>>() + spilled;
    let worm =
        size_of::<Worm>() + size_of::<Rest>() + (contents.hops as usize + 2) * Hops::HOP + 160;
    u128::from(channels.pools()) * size_of::<Pool>() as u128
        + links
        + u128::from(channels.shared()) * shared as u128
        + contents.live * worm as u128
        + contents.messages * Chain::CAUSE as u128
}

impl<'a> Wormhole<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        settings: &Settings,
        clock: &Clock<'_>,
        (dateline, classes): (Dateline, Option<Arc<ChannelClasses>>),
        records: bool,
    ) -> Self {
        let channels = Channels::new(machine, settings, dateline, classes);
        let links = channels.links();
        let mut latencies = clock.hops.clone();
        latencies.sort_unstable();
        latencies.dedup();
        let lane = |hop| {
            let lane = latencies.partition_point(|&known| known < hop);
            (hop, (lane < LANES).then_some(lane))
        };
        let mut over_link: Vec<_> = clock.hops.iter().map(|&hop| lane(hop)).collect();
        over_link.truncate(if latencies.len() == 1 { 1 } else { over_link.len() });
        let slowest = latencies.last().copied().unwrap_or(0);
        let pool = |pool| Pool { free: channels.size(pool), last: NOBODY };
        let pools = (0..channels.pools()).map(pool).collect();
        Self {
            calendar: Calendar::new(slowest.max(clock.cycle), machine.ranks() as usize),
            lanes: (0..LANES.min(latencies.len())).map(|_| Lane::default()).collect(),
            now: 0,
            pools,
            movers: vec![SmallVec::new(); channels.shared() as usize],
            worms: Vec::new(),
            rest: Vec::new(),
            hops: Hops::new(records),
            idle: Vec::new(),
            route: Vec::new(),
            over_link,
            buffer_bytes: f64::from(settings.buffer_flits) * settings.flit_bytes as f64,
            slowest,
            links: vec![LinkUse::default(); links],
            chain: Chain::default(),
            records,
            intervals: Vec::new(),
            channels,
        }
    }

    /// The next event. Between events of equal time, headers on links come last.
    #[inline]
    fn event(&mut self) -> Option<(Picoseconds, Event)> {
        let lanes = self.lanes.iter_mut().filter_map(|lane| Some((lane.first()?, lane)));
        let lane = lanes.min_by_key(|&(time, _)| time);
        let first = self.calendar.first();
        if let Some((time, lane)) = lane
            && first.is_none_or(|first| time < first)
        {
            return Some(lane.take());
        }
        self.calendar.next()
    }

    /// The header of a worm asks for its next channel, which is of this pool.
    fn ask(&mut self, worm: u32, pool: u32) {
        let place = &mut self.pools[pool as usize];
        if place.free > 0 {
            place.free -= 1;
            let w = &mut self.worms[worm as usize];
            w.settle(self.now);
            let first = w.tail == w.head;
            self.take(worm, pool);
            if first {
                self.plan_tail(worm);
            }
            self.go_on(worm, pool);
        } else {
            self.wait(worm, pool);
        }
    }

    /// Adds a worm to those that wait for a channel of a pool.
    fn wait(&mut self, worm: u32, pool: u32) {
        let w = &mut self.worms[worm as usize];
        let rest = &mut self.rest[worm as usize];
        rest.waits = Some(self.now);
        rest.next = worm;
        w.held = rest.held(w.head);
        let room = u64::from(w.head - w.tail).saturating_mul(rest.buffer - self.slowest);
        let fill = w.time_of(room);
        if fill > 0 {
            let event = Event { kind: Kind::Still, worm, pool };
            rest.fills = self.calendar.add(self.now.saturating_add(fill), event);
        }
        let last = std::mem::replace(&mut self.pools[pool as usize].last, worm);
        if last != NOBODY {
            let first = std::mem::replace(&mut self.rest[last as usize].next, worm);
            self.rest[worm as usize].next = first;
        }
        if fill == 0 {
            self.stand(worm);
        }
    }

    /// Gives a worm the channel that its header asked for and waited for since `since`.
    fn take_late(&mut self, worm: u32, pool: u32, since: Picoseconds) {
        let w = &mut self.worms[worm as usize];
        w.settle(self.now);
        w.held = u32::MAX;
        let passes = self.hops.place(worm, w.tail)..self.hops.place(worm, w.head);
        let rest = &mut self.rest[worm as usize];
        w.relax(&mut self.hops.passes[passes], rest.buffer);
        if rest.fills != calendar::NONE {
            self.calendar.remove(std::mem::replace(&mut rest.fills, calendar::NONE));
        }
        if let Some(link) = self.channels.link_of(pool.into()) {
            let waited = &mut self.links[link as usize].waited;
            *waited = waited.saturating_add(self.now - since);
        }
        self.move_again(worm);
        self.take(worm, pool);
        self.plan_tail(worm);
        self.go_on(worm, pool);
    }

    /// Gives a worm, whose bytes are counted up to now, its next channel. The caller plans its tail.
    #[inline(always)]
    fn take(&mut self, worm: u32, pool: u32) {
        let w = &mut self.worms[worm as usize];
        let place = self.hops.place(worm, w.head);
        self.hops.passes[place] = w.phi.saturating_add(w.length);
        if self.records {
            self.hops.got[place] = self.now;
        }
        w.head += 1;
        self.join(pool, worm);
    }

    /// Sets the time at which a header that just got a channel asks for the next.
    #[inline(always)]
    fn go_on(&mut self, worm: u32, pool: u32) {
        let w = &self.worms[worm as usize];
        if w.head == w.hops {
            return;
        }
        let next = self.hops.pools[self.hops.place(worm, w.head)];
        let Some(link) = self.channels.link_of(pool.into()) else {
            // The header goes from a sending port to the first link in no time.
            return self.ask(worm, next);
        };
        let (hop, lane) = match self.over_link[..] {
            [all] => all,
            ref by_kind => by_kind[self.channels.kind(LinkId(link.into()))],
        };
        let at = self.now.saturating_add(hop);
        match lane {
            Some(lane) => self.lanes[lane].add(at, worm, next),
            None => {
                self.calendar.add(at, Event { kind: Kind::Head, worm, pool: next });
            }
        }
    }

    /// Sets the time at which the tail passes its next channel, if it is known.
    #[inline(always)]
    fn plan_tail(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        if w.planned != calendar::NONE {
            self.calendar.remove(std::mem::replace(&mut w.planned, calendar::NONE));
        }
        if w.is_held() {
            return;
        }
        let place = self.hops.place(worm, w.tail);
        let left = self.hops.passes[place].saturating_sub(w.phi);
        // `since` is not after `now`, and `phi` is the value at `since`.
        let at = w.since.saturating_add(w.time_of(left)).max(self.now);
        let event = Event { kind: Kind::Tail, worm, pool: self.hops.pools[place] };
        w.planned = self.calendar.add(at, event);
    }

    /// Lets the tail pass all channels that it can by now, the first of this pool, and sets the time
    /// of the next. Returns whether it passed the last.
    #[inline(always)]
    fn pass(&mut self, worm: u32, mut pool: u32) -> bool {
        let w = &mut self.worms[worm as usize];
        w.settle(self.now);
        w.planned = calendar::NONE;
        loop {
            let w = &mut self.worms[worm as usize];
            let place = self.hops.place(worm, w.tail);
            if w.is_held() || w.phi < self.hops.passes[place] {
                self.plan_tail(worm);
                return false;
            }
            w.tail += 1;
            let last = w.tail == w.hops;
            if !w.still {
                self.leave(pool, worm);
            }
            if self.records {
                self.record(pool, self.hops.got[place], worm);
            }
            let free = &mut self.pools[pool as usize];
            if free.last == NOBODY {
                free.free += 1;
            } else {
                self.hand_over(pool, worm);
            }
            if last {
                return true;
            }
            pool = self.hops.pools[place + 1];
        }
    }

    /// Records that a worm held a channel since `start`.
    fn record(&mut self, pool: u32, start: Picoseconds, worm: u32) {
        let Some(link) = self.channels.link_of(pool.into()) else { return };
        let message = &self.rest[worm as usize].message;
        self.intervals.push(Interval {
            link: LinkId(link.into()),
            start,
            end: self.now,
            from: message.from,
            to: message.to,
            step: message.step,
            bytes: message.bytes,
        });
    }

    /// Gives a channel that a worm held to the first worm that waits for it.
    fn hand_over(&mut self, pool: u32, by: u32) {
        let place = &mut self.pools[pool as usize];
        let last = place.last;
        let first = self.rest[last as usize].next;
        if first == last {
            place.last = NOBODY;
        } else {
            self.rest[last as usize].next = self.rest[first as usize].next;
        }
        let by = &self.rest[by as usize].message;
        let (holder, before) = ((by.from, by.to), self.chain.keep(by.cause));
        let rest = &mut self.rest[first as usize];
        let message = &mut rest.message;
        let what = ChainLink {
            from: message.from,
            to: message.to,
            step: message.step,
            at: self.now,
            waited: Some((u64::from(pool), holder.0, holder.1)),
        };
        let cause = self.chain.add(what, before);
        self.chain.drop(std::mem::replace(&mut message.cause, cause));
        let since = rest.waits.take().expect("bug: a worm that does not wait");
        self.take_late(first, pool, since);
    }

    /// Takes back the use of links that messages in flight did not get, and the bytes that did not pass
    /// those that they hold, as none will move again.
    fn uncount(&mut self) {
        for (worm, w) in (0..).zip(&mut self.worms) {
            w.settle(self.now);
            for k in w.tail..w.hops {
                let place = self.hops.place(worm, k);
                let Some(link) = self.channels.link_of(self.hops.pools[place].into()) else {
                    continue;
                };
                let left = match k < w.head {
                    true => self.hops.passes[place].saturating_sub(w.phi).min(w.length),
                    false => w.length,
                };
                let used = &mut self.links[link as usize];
                let bytes = u128::from(self.rest[worm as usize].message.bytes);
                used.bytes -= (bytes * u128::from(left)).div_ceil(w.length.max(1).into());
                used.messages -= u64::from(k >= w.head);
            }
        }
    }
}

impl Network for Wormhole<'_> {
    fn post(&mut self, message: InFlight, route: &Route, _free: bool) {
        self.route.clear();
        self.channels.along(message.from, message.to, route, |pool, _| {
            // A link counts every message whose route leads over it.
            if let Some(link) = self.channels.link_of(pool) {
                let used = &mut self.links[link as usize];
                used.bytes += u128::from(message.bytes);
                used.messages += 1;
            }
            self.route.push(pool as u32);
        });
        let (pace, seconds) = self.channels.message_pace(message.from, message.to, route);
        let buffer = picoseconds(self.buffer_bytes * seconds).max(self.slowest);
        let new = Worm::new(&message, pace, self.route.len() as u32);
        let worm = match self.idle.pop() {
            Some(worm) => {
                self.worms[worm as usize] = new;
                self.rest[worm as usize].set(message, buffer);
                worm
            }
            None => {
                self.worms.push(new);
                self.rest.push(Rest::new(message, buffer));
                self.rest.len() as u32 - 1
            }
        };
        self.hops.set(worm, &self.route);
        let event = Event { kind: Kind::Head, worm, pool: self.route[0] };
        self.calendar.add(message.handed, event);
    }

    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)> {
        let mut patience = PATIENCE;
        while let Some((time, event)) = self.event() {
            self.now = time;
            let Event { kind, worm, pool } = event;
            match kind {
                Kind::Head => self.ask(worm, pool),
                Kind::Tail => {
                    if self.pass(worm, pool) {
                        self.idle.push(worm);
                        return Some((time, self.rest[worm as usize].message));
                    }
                }
                Kind::Still => {
                    self.rest[worm as usize].fills = calendar::NONE;
                    self.stand(worm);
                }
            }
            patience -= 1;
            if patience == 0 {
                patience = PATIENCE;
                if stop() {
                    break;
                }
            }
        }
        self.uncount();
        None
    }

    fn now(&self) -> Picoseconds {
        self.now
    }

    fn waiting(&self) -> usize {
        self.worms.len() - self.idle.len()
    }

    fn circle(&self) -> Vec<Held> {
        let pool = |worm, k| self.hops.pools[self.hops.place(worm, k)];
        let waits = |&worm: &u32| self.rest[worm as usize].waits.is_some();
        let waiting: Vec<u32> = (0..self.rest.len() as u32).filter(waits).collect();
        let mut holders = hashbrown::HashMap::new();
        for &worm in &waiting {
            let w = &self.worms[worm as usize];
            for k in w.tail..w.head {
                holders.entry(pool(worm, k)).or_insert(worm);
            }
        }
        let wanted = |worm| pool(worm, self.worms[worm as usize].head);
        let first = waiting.first().copied();
        (cycle(first, |worm| holders.get(&wanted(worm)).copied()).into_iter())
            .map(|worm| {
                let InFlight { from, to, step, .. } = self.rest[worm as usize].message;
                Held { from, to, step, waits_for: self.channels.name(wanted(worm).into()) }
            })
            .collect()
    }

    fn links(&self) -> &[LinkUse] {
        &self.links
    }

    fn chain(&mut self) -> &mut Chain {
        &mut self.chain
    }

    fn channel(&self, number: u64) -> String {
        self.channels.name(number)
    }

    fn take_intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }
}
