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
//! # What it leaves out
//! Arbitration flit by flit, the time of credits, and adaptive routing. A header passes a router in
//! no time. The share of a worm that cannot use it is not given to others.

mod crowds;
mod event;
mod worm;

use std::collections::VecDeque;

use smallvec::SmallVec;
use topocoll_topology::{LinkId, Machine, Route};

use self::event::{Event, Kind};
use self::worm::{Hop, Worm};
use super::calendar::Calendar;
use super::chain::{Chain, ChainLink, NONE};
use super::channels::Channels;
use super::clock::{Clock, Picoseconds, picoseconds};
use super::network::{Contents, Held, InFlight, Interval, LinkUse, Network, cycle};
use super::settings::{Dateline, Settings};

/// No worm.
const NOBODY: u32 = u32::MAX;

/// Lanes for headers; links of other latencies take the calendar.
const LANES: usize = 16;

/// Events between two calls of `stop`.
const PATIENCE: u32 = 1 << 16;

#[derive(Clone, Copy)]
struct Pool {
    free: u32,
    first: u32,
    last: u32,
}

/// Headers on links of one latency, by when they ask for their next channel.
#[derive(Default)]
struct Lane {
    headers: VecDeque<(Picoseconds, u32)>,
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
    idle: Vec<u32>,
    /// By kind of link, the time of a header over it, and its lane if it has one.
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
    let channels = Channels::new(machine, settings, Dateline::Entry);
    let links = channels.links() as u128 * size_of::<LinkUse>() as u128;
    let spilled = if settings.vcs > 4 { 4 * settings.vcs.next_power_of_two() as usize } else { 0 };
    let shared = size_of::<SmallVec<[u32; 4]>>() + spilled;
    let hop = size_of::<Hop>() + size_of::<Picoseconds>();
    let worm = size_of::<Worm>() + (contents.hops as usize + 2) * hop + 160;
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
        dateline: Dateline,
        records: bool,
    ) -> Self {
        let channels = Channels::new(machine, settings, dateline);
        let links = channels.links();
        let mut latencies = clock.hops.clone();
        latencies.sort_unstable();
        latencies.dedup();
        let lane = |hop| {
            let lane = latencies.partition_point(|&known| known < hop);
            (hop, (lane < LANES).then_some(lane))
        };
        let over_link = clock.hops.iter().map(|&hop| lane(hop)).collect();
        let slowest = latencies.last().copied().unwrap_or(0);
        let pool = |pool| Pool { free: channels.size(pool), first: NOBODY, last: NOBODY };
        let pools = (0..channels.pools()).map(pool).collect();
        Self {
            calendar: Calendar::new(slowest.max(clock.cycle), machine.ranks() as usize),
            lanes: (0..LANES.min(latencies.len())).map(|_| Lane::default()).collect(),
            now: 0,
            pools,
            movers: vec![SmallVec::new(); channels.shared() as usize],
            worms: Vec::new(),
            idle: Vec::new(),
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
    fn event(&mut self) -> Option<(Picoseconds, Event)> {
        let lane = (self.lanes.iter_mut())
            .filter(|lane| !lane.headers.is_empty())
            .min_by_key(|lane| lane.headers[0].0);
        let Some(lane) = lane else { return self.calendar.next() };
        let (time, worm) = lane.headers[0];
        if self.calendar.first().is_some_and(|first| first <= time) {
            return self.calendar.next();
        }
        lane.headers.pop_front();
        Some((time, Event::new(Kind::Head, worm, 0)))
    }

    /// The link of a pool, if it has one.
    fn link(&self, pool: u32) -> Option<usize> {
        let link = pool as usize / 2;
        (link < self.links.len()).then_some(link)
    }

    /// The header of a worm asks for its next channel.
    fn ask(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        let pool = &mut self.pools[w.hops[w.head as usize].pool as usize];
        if pool.free > 0 {
            pool.free -= 1;
            self.take(worm);
            return;
        }
        w.waits = Some(self.now);
        w.wait_turn += 1;
        w.next = NOBODY;
        let room = u64::from(w.head - w.tail).saturating_mul(w.buffer - self.slowest);
        let (turn, fill) = (w.wait_turn, w.time_of(room));
        let last = std::mem::replace(&mut pool.last, worm);
        match last {
            NOBODY => pool.first = worm,
            last => self.worms[last as usize].next = worm,
        }
        match fill {
            0 => self.stand(worm),
            fill => self
                .calendar
                .add(self.now.saturating_add(fill), Event::new(Kind::Still, worm, turn)),
        }
    }

    /// Gives a worm the channel that its header asked for.
    fn take(&mut self, worm: u32) {
        self.settle(worm);
        let w = &mut self.worms[worm as usize];
        let k = w.head as usize;
        let waited = w.waits.take();
        if let Some(since) = waited {
            w.relax();
            let pool = w.hops[k].pool;
            if let Some(link) = self.link(pool) {
                self.links[link].waited = self.links[link].waited.saturating_add(self.now - since);
            }
            self.move_again(worm);
        }
        let w = &mut self.worms[worm as usize];
        w.hops[k].phi = w.phi;
        if self.records {
            w.got.push(self.now);
        }
        w.head += 1;
        let (pool, bytes, more) =
            (w.hops[k].pool, w.message.bytes, (w.head as usize) < w.hops.len());
        let kind = w.hops[k].kind;
        let link = self.link(pool);
        if let Some(link) = link {
            self.links[link].bytes += u128::from(bytes);
            self.links[link].messages += 1;
        }
        self.join(k, worm);
        if waited.is_some() || self.worms[worm as usize].tail as usize == k {
            self.plan_tail(worm);
        }
        if more && link.is_some() {
            let (hop, lane) = self.over_link[kind as usize];
            let at = self.now.saturating_add(hop);
            match lane {
                Some(lane) => self.lanes[lane].headers.push_back((at, worm)),
                None => self.calendar.add(at, Event::new(Kind::Head, worm, 0)),
            }
        } else if more {
            // The header goes from a sending port to the first link in no time.
            self.ask(worm);
        }
    }

    /// Counts the bytes of a worm up to now.
    fn settle(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        w.phi += w.bytes_in(self.now - w.since);
        w.since = self.now;
    }

    /// Sets the time at which the tail passes its next channel, if it is known.
    fn plan_tail(&mut self, worm: u32) {
        let w = &mut self.worms[worm as usize];
        w.tail_turn += 1;
        if w.tail == w.head || w.is_held() {
            return;
        }
        let length = w.message.transmission;
        let left = w.hops[w.tail as usize].phi.saturating_add(length).saturating_sub(w.phi);
        // `since` is not after `now`, and `phi` is the value at `since`.
        let at = w.since.saturating_add(w.time_of(left)).max(self.now);
        self.calendar.add(at, Event::new(Kind::Tail, worm, w.tail_turn));
    }

    /// Lets the tail pass all channels that it can by now and sets the time of the next. Returns
    /// whether it passed the last.
    fn pass(&mut self, worm: u32) -> bool {
        self.settle(worm);
        loop {
            let w = &mut self.worms[worm as usize];
            let tail = w.tail as usize;
            if tail == w.hops.len() {
                return true;
            }
            let hop = w.hops[tail];
            if w.tail == w.head
                || w.is_held()
                || w.phi < hop.phi.saturating_add(w.message.transmission)
            {
                self.plan_tail(worm);
                return false;
            }
            w.tail += 1;
            let (still, message, got) = (w.still, w.message, w.got.get(tail).copied());
            if !still {
                self.leave(tail, worm);
            }
            if let Some(link) = self.link(hop.pool)
                && let Some(start) = got
            {
                self.intervals.push(Interval {
                    link: LinkId(link as u64),
                    start,
                    end: self.now,
                    from: message.from,
                    to: message.to,
                    step: message.step,
                    bytes: message.bytes,
                });
            }
            self.release(hop.pool, &message);
        }
    }

    /// Gives a channel to the first worm that waits for it.
    fn release(&mut self, pool: u32, by: &InFlight) {
        let place = &mut self.pools[pool as usize];
        let first = place.first;
        if first == NOBODY {
            place.free += 1;
            return;
        }
        let w = &mut self.worms[first as usize];
        place.first = w.next;
        if w.next == NOBODY {
            place.last = NOBODY;
        }
        let message = w.message;
        let what = ChainLink {
            from: message.from,
            to: message.to,
            step: message.step,
            at: self.now,
            waited: Some((u64::from(pool), by.from, by.to)),
        };
        let before = self.chain.keep(by.cause);
        w.message.cause = self.chain.add(what, before);
        self.chain.drop(message.cause);
        self.take(first);
    }
}

impl Network for Wormhole<'_> {
    fn post(&mut self, message: InFlight, route: &Route) {
        let worm = self.idle.pop().unwrap_or_else(|| {
            self.worms.push(Worm {
                message,
                hops: Vec::new(),
                got: Vec::new(),
                head: 0,
                tail: 0,
                phi: 0,
                since: 0,
                pace: 1,
                shares: SmallVec::new(),
                slowed: 1,
                buffer: 0,
                waits: None,
                still: false,
                tail_turn: 0,
                wait_turn: 0,
                next: NOBODY,
            });
            self.worms.len() as u32 - 1
        });
        let (pace, seconds) = self.channels.message_pace(message.from, message.to, route);
        let w = &mut self.worms[worm as usize];
        w.message = message;
        (w.head, w.tail, w.phi, w.since) = (0, 0, 0, message.handed);
        (w.pace, w.slowed) = (pace, pace);
        w.buffer = picoseconds(self.buffer_bytes * seconds).max(self.slowest);
        w.hops.clear();
        w.got.clear();
        let hops = &mut w.hops;
        self.channels.along(message.from, message.to, route, |pool, kind| {
            hops.push(Hop { pool: pool as u32, kind, ..Hop::default() });
        });
        self.calendar.add(message.handed, Event::new(Kind::Head, worm, 0));
    }

    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<(Picoseconds, InFlight)> {
        let mut patience = PATIENCE;
        while let Some((time, event)) = self.event() {
            self.now = time;
            let worm = event.worm;
            let w = &self.worms[worm as usize];
            match event.kind() {
                Kind::Head => self.ask(worm),
                Kind::Tail if event.is_of(w.tail_turn) => {
                    if self.pass(worm) {
                        self.idle.push(worm);
                        return Some((time, self.worms[worm as usize].message));
                    }
                }
                Kind::Still if event.is_of(w.wait_turn) && w.waits.is_some() => self.stand(worm),
                Kind::Tail | Kind::Still => {}
            }
            patience -= 1;
            if patience == 0 {
                patience = PATIENCE;
                if stop() {
                    return None;
                }
            }
        }
        None
    }

    fn waiting(&self) -> usize {
        self.worms.len() - self.idle.len()
    }

    fn circle(&self) -> Vec<Held> {
        let mut holders = hashbrown::HashMap::new();
        let waiting: Vec<&Worm> = self.worms.iter().filter(|w| w.waits.is_some()).collect();
        for (i, w) in waiting.iter().enumerate() {
            for hop in &w.hops[w.tail as usize..w.head as usize] {
                holders.entry(hop.pool).or_insert(i);
            }
        }
        let wanted = |i: usize| waiting[i].hops[waiting[i].head as usize].pool;
        let first = if waiting.is_empty() { None } else { Some(0) };
        (cycle(first, |i| holders.get(&wanted(i)).copied()).into_iter())
            .map(|i| Held {
                from: waiting[i].message.from,
                to: waiting[i].message.to,
                step: waiting[i].message.step,
                waits_for: self.channels.name(wanted(i).into()),
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

const _: () = assert!(NONE == NOBODY);
