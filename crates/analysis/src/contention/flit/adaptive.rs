//! Minimal adaptive routes with escape channels (Duato 1993), after `min_adapt_mesh` and
//! `min_adapt_torus` of `BookSim` 2.
//!
//! Virtual channel 0 of a link is its escape channel; on a side that wraps there are two, 0 and 1. The
//! adaptive channels are all others, but on a side that wraps one: channel 3, or the last if there are
//! three. Channels left over only inject and eject. A header asks for the escape channel in dimension
//! order, and for the adaptive channels in that dimension; after [`WAIT`] cycles also for those of all
//! other dimensions that are left. At half a ring it asks for both directions. A packet in an escape
//! channel goes on in escape channels, in dimension order, with the classes of the dateline as in
//! dimension order. So do messages with a route of the schedule, which must be in dimension order.
//!
//! One iteration of iSLIP: each free virtual channel grants one of its requests, each header accepts
//! one of its grants, both round robin. Pointers move only past what was accepted. A header asks for
//! the switch in the cycle after it gets a channel, and one behind another packet is routed after the
//! tail in front has left.
//!
//! # Why it does not deadlock
//! Assume that nothing moves any more. Escape channels can be numbered so that every packet takes them
//! in ascending order: dimension by dimension, and on a ring by the classes of the dateline. Take the
//! highest one that holds a flit or belongs to a packet. A packet in front of its buffer is at its
//! receiver, or asks for a higher one, which is free: it moves. If the buffer is empty, the next flit
//! of the packet is in front of another buffer, and there is room: it moves. So all escape channels
//! are free.
//!
//! Then a header in front of a buffer gets its escape channel. So no header is in front: each is
//! behind the tail of another packet, in an adaptive channel. It *follows* that packet, and no other.
//! A packet may enter an adaptive channel that still holds flits only while no packet follows it, so it
//! cannot close a circle. The packet at the end of the chain follows none: its header is in front, or
//! ejected. It moves.
//!
//! # Where `BookSim` differs
//! - It keeps one range of channels of each priority (`OutputSet`), so a header asks for a single
//!   adaptive direction, the first: with `min_adapt` no packet leaves dimension order. There [`WAIT`]
//!   is infinite. 16 cycles agree with its latencies below saturation within 10 %, and packets go
//!   around links that are blocked.
//! - It has no rule against circles of packets that follow each other. They can deadlock, unless
//!   `wait_for_tail_credit` is set.
//! - At half a ring its adaptive channels go downwards.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use topocoll_topology::{Grid, Machine, Rank, Route, Shape};

use super::Flits;
use super::routers::Routers;
use crate::AnalysisError;
use crate::contention::settings::{Routing, Settings};

/// Cycles that a header waits before it asks for links of other dimensions.
const WAIT: u64 = 16;

/// The hops of a packet that are left in one dimension.
#[derive(Clone, Copy, Default)]
struct Left {
    hops: i32,
    /// Whether they are half a ring, so that the other direction is as short.
    half: bool,
}

/// The adaptive route of a packet.
#[derive(Default)]
pub(super) struct Course {
    /// Whether it may take any shortest route. In escape channels it may not.
    free: bool,
    /// Whether a packet follows it, or may do so.
    followed: bool,
    left: SmallVec<[Left; 4]>,
}

impl Course {
    /// The packet takes a link. Returns whether it needs a new escape route.
    pub(super) fn take(&mut self, link: u32) -> bool {
        if !self.free {
            return false;
        }
        let dimensions = self.left.len() as u32;
        let left = &mut self.left[(link % (2 * dimensions) / 2) as usize];
        let direction = if link % 2 == 0 { 1 } else { -1 };
        left.hops = if left.half { direction * left.hops.abs() } else { left.hops } - direction;
        left.half = false;
        true
    }
}

pub(super) struct Adaptive<'a> {
    machine: &'a Machine,
    grid: &'a Grid,
    /// Adaptive channels of links, by dimension.
    channels: SmallVec<[Range<u32>; 4]>,
    /// By virtual channel of an input, the round robin position of the next accepted grant.
    accept_pointers: Vec<u32>,
    /// By virtual channel of an output, its last packet.
    last: Vec<u32>,
}

/// The adaptive channels of a link.
fn channels(vcs: u32, wraps: bool) -> Range<u32> {
    if wraps { vcs.min(4) - 1..vcs.min(4) } else { 1..vcs }
}

fn wraps(grid: &Grid, dimension: usize) -> bool {
    grid.wrap()[dimension] && grid.sides()[dimension] > 1
}

/// Checks that the flit model has adaptive routes on a machine.
///
/// # Errors
/// A machine whose nodes form no grid, too few virtual channels, or a dateline.
pub(crate) fn check(machine: &Machine, settings: &Settings) -> Result<(), AnalysisError> {
    let refuse = |rule: String| Err(AnalysisError::Routing { rule });
    let Shape::Grid(grid) = machine.topology.network() else {
        return refuse(format!(
            "adaptive routing requires a grid between the nodes in the flit model, which {} is not",
            machine.topology.short_form()
        ));
    };
    if settings.dateline.is_some() {
        return refuse(
            "dateline is for dimension order: adaptive routing chooses its own escape channels"
                .into(),
        );
    }
    let wraps = (0..grid.sides().len()).any(|u| wraps(grid, u));
    let least = if wraps { 3 } else { 2 };
    if settings.vcs < least {
        let sides = if wraps { "where a side wraps" } else { "on a mesh" };
        return refuse(format!(
            "vcs={}: adaptive routing requires at least {least} virtual channels {sides}",
            settings.vcs
        ));
    }
    Ok(())
}

impl<'a> Adaptive<'a> {
    /// Bytes for the virtual channels of a machine.
    pub(super) fn memory(machine: &Machine, settings: &Settings) -> u128 {
        match settings.routing {
            Routing::DimensionOrder => 0,
            Routing::Adaptive => Routers::all_inputs(machine) * u128::from(settings.vcs) * 8,
        }
    }

    /// Bytes for the route of a packet.
    pub(super) fn packet_bytes(settings: &Settings) -> u128 {
        match settings.routing {
            Routing::DimensionOrder => 0,
            Routing::Adaptive => size_of::<Course>() as u128 + 256,
        }
    }

    /// The adaptive routes of a machine, if that is the routing; `count` are all virtual channels of
    /// inputs, and of outputs.
    pub(super) fn new(machine: &'a Machine, settings: &Settings, count: usize) -> Option<Self> {
        let Shape::Grid(grid) = machine.topology.network() else { return None };
        let dimensions = 0..grid.sides().len();
        (settings.routing == Routing::Adaptive).then(|| Self {
            machine,
            grid,
            channels: dimensions.map(|u| channels(settings.vcs, wraps(grid, u))).collect(),
            accept_pointers: vec![0; count],
            last: vec![0; count],
        })
    }

    /// The course of a packet between two ranks.
    pub(super) fn course(&self, from: Rank, to: Rank) -> Course {
        let [from, to] = [from, to].map(|rank| Rank(self.machine.topology.node_of(rank)));
        let left = (0..self.grid.sides().len()).map(|u| {
            let [from, to] = [from, to].map(|node| self.grid.radix().coordinate(node, u));
            let hops = self.grid.nearest(u, from, to) as i32;
            let side = u64::from(self.grid.sides()[u]);
            let half = self.grid.wrap()[u] && 2 * u64::from(hops.unsigned_abs()) == side;
            Left { hops, half }
        });
        Course { free: true, followed: false, left: left.collect() }
    }

    /// The route in dimension order from a node on. At half a ring it goes up from even positions and
    /// down from odd ones.
    fn escape(&self, node: u32, course: &Course) -> Route {
        let mut route = Route::default();
        for (u, left) in course.left.iter().enumerate().filter(|(_, left)| left.hops != 0) {
            let odd = self.grid.radix().coordinate(Rank(node), u) % 2 == 1;
            let hops = match (left.half, odd) {
                (false, _) => left.hops,
                (true, false) => left.hops.abs(),
                (true, true) => -left.hops.abs(),
            };
            route.push(u as u32, hops.into());
        }
        route
    }
}

impl Flits<'_> {
    /// Gives free virtual channels of outputs to headers with adaptive and with given routes.
    pub(super) fn route_adaptive(&mut self, router: u32) {
        let vcs = self.vcs;
        let (inputs, outputs) = (self.routers.inputs(router), self.routers.outputs(router));
        let (base, per_router) = (inputs.start * vcs, inputs.len() as u32 * vcs);
        let (first, channels) = (outputs.start * vcs, outputs.len() as u32 * vcs);
        // By virtual channel of an output, the inputs that ask for it.
        let mut requests: SmallVec<[u128; 48]> = smallvec![0; channels as usize];
        let mut requested = 0u128;
        let mut asking = self.asking(router);
        while asking != 0 {
            let i = asking.trailing_zeros();
            asking &= asking - 1;
            let packet = self.inputs[(base + i) as usize].flits[0].packet;
            self.plan_escape(router, packet);
            self.for_each_channel(router, base + i, |channel| {
                requests[(channel - first) as usize] |= 1 << i;
                requested |= 1 << (channel - first);
            });
        }
        if requested == 0 {
            return;
        }
        // By virtual channel of an input, the outputs that grant it.
        let mut grants: SmallVec<[u128; 48]> = smallvec![0; per_router as usize];
        let mut granted = 0u128;
        while requested != 0 {
            let channel = requested.trailing_zeros();
            requested &= requested - 1;
            let pointer = self.outputs[(first + channel) as usize].pointer;
            let i = next_from(requests[channel as usize], pointer);
            grants[i as usize] |= 1 << channel;
            granted |= 1 << i;
        }
        while granted != 0 {
            let i = granted.trailing_zeros();
            granted &= granted - 1;
            let adaptive = self.adaptive.as_mut().expect("bug: no adaptive routing");
            let pointer = &mut adaptive.accept_pointers[(base + i) as usize];
            let channel = next_from(grants[i as usize], *pointer);
            *pointer = (channel + 1) % channels;
            self.outputs[(first + channel) as usize].pointer = (i + 1) % per_router;
            self.accept(router, base + i, first + channel);
        }
    }

    /// A header accepts a virtual channel of an output.
    fn accept(&mut self, router: u32, input: u32, channel: u32) {
        let outputs = self.routers.outputs(router);
        let output = &mut self.outputs[channel as usize];
        output.taken = true;
        output.since = self.cycle.saturating_mul(self.cycle_time);
        let holds_flits = output.credits < self.buffer;
        let place = &mut self.inputs[input as usize];
        place.granted = Some((channel, channel / self.vcs - outputs.start));
        // The switch is asked in the next cycle.
        place.flits[0].ready = place.flits[0].ready.max(self.cycle + self.front.min(1));
        let packet = place.flits[0].packet;
        let Some(link) = self.routers.link(channel / self.vcs) else { return };
        let adaptive = self.adaptive.as_mut().expect("bug: no adaptive routing");
        let before = std::mem::replace(&mut adaptive.last[channel as usize], packet);
        let dimension = link as usize / 2 % adaptive.channels.len();
        if !adaptive.channels[dimension].contains(&(channel % self.vcs)) {
            if let Some(course) = &mut self.packets[packet as usize].course {
                course.free = false;
            }
        } else if holds_flits && let Some(course) = &mut self.packets[before as usize].course {
            course.followed = true;
        }
    }

    /// Finds the escape route of a packet with an adaptive route, from a router on.
    fn plan_escape(&mut self, router: u32, packet: u32) {
        let packet = &mut self.packets[packet as usize];
        let Some(course) = &packet.course else { return };
        if !course.free || !packet.pools.is_empty() {
            return;
        }
        let adaptive = self.adaptive.as_ref().expect("bug: no adaptive routing");
        let (route, pools) = (adaptive.escape(router, course), &mut packet.pools);
        self.channels.along_grid(adaptive.grid, router, &route, &mut |pool, _| {
            pools.push(pool as u32);
        });
    }

    /// Calls `visit` with the free virtual channels of outputs for which the header in front of an
    /// input asks.
    fn for_each_channel(&self, router: u32, input: u32, mut visit: impl FnMut(u32)) {
        let front = self.inputs[input as usize].flits[0];
        let packet = &self.packets[front.packet as usize];
        let mut visit_free = |channel: u32| {
            if !self.outputs[channel as usize].taken {
                visit(channel);
            }
        };
        let Some(&escape) = packet.pools.get(packet.hop as usize) else {
            let ports = self.machine.ports.node;
            let output = self.routers.outputs(router).end - ports + packet.message % ports;
            return (0..self.vcs).for_each(|vc| visit_free(output * self.vcs + vc));
        };
        let [output, _] = self.routers.ends(escape / 2);
        visit_free(output * self.vcs + escape % 2);
        let Some(course) = packet.course.as_ref().filter(|course| course.free) else { return };
        let adaptive = self.adaptive.as_ref().expect("bug: no adaptive routing");
        let dimensions = adaptive.channels.len() as u32;
        let left = (0..).zip(&course.left).filter(|(_, left)| left.hops != 0);
        let waited = (self.cycle + 1).saturating_sub(front.ready);
        let asked = if waited < WAIT { 1 } else { dimensions as usize };
        for (u, left) in left.take(asked) {
            for down in [false, true] {
                if !left.half && down != (left.hops < 0) {
                    continue;
                }
                let link = 2 * (router * dimensions + u) + u32::from(down);
                let [output, _] = self.routers.ends(link);
                for vc in adaptive.channels[u as usize].clone() {
                    let channel = output * self.vcs + vc;
                    let holds_flits = self.outputs[channel as usize].credits < self.buffer;
                    if !(holds_flits && course.followed) {
                        visit_free(channel);
                    }
                }
            }
        }
    }

    /// The tail of a packet has left a buffer.
    pub(super) fn tail_has_left(&mut self, input: u32, packet: u32) {
        if let Some(course) = &mut self.packets[packet as usize].course {
            course.followed = false;
        }
        // The next header is routed from the next cycle on.
        if let Some(next) = self.inputs[input as usize].flits.front_mut() {
            next.ready = next.ready.max(self.cycle + 1 + self.front);
        }
    }
}

/// The first bit of a set at or above a position, or else the first one.
fn next_from(set: u128, position: u32) -> u32 {
    let above = set >> position << position;
    if above != 0 { above } else { set }.trailing_zeros()
}
