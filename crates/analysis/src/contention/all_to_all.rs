//! All messages of an all-to-all as one step: what a program does that posts them all at once.

use std::cmp::Reverse;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Coordinates, Machine, MixedRadix, Order, Rank};

use super::patterns::shuffle;
use crate::AnalysisError;
use crate::error::check_memory;
use crate::symmetry::{self, Equivalent};
use crate::traffic::{Posted, Share, Traffic};
use crate::visit::Source;

/// Every rank sends a message to every other, over the machine's routes, in the order of its
/// [`endpoint`](Machine::endpoint).
#[derive(Debug)]
pub struct AllToAll<'a> {
    machine: &'a Machine,
    bytes: u64,
    offsets: MixedRadix,
}

impl<'a> AllToAll<'a> {
    /// Messages of `bytes`.
    ///
    /// # Errors
    /// The messages of one rank take more than `memory` bytes.
    pub fn new(machine: &'a Machine, bytes: u64, memory: u128) -> Result<Self, AnalysisError> {
        let needed = u128::from(machine.ranks()) * 2 * size_of::<Posted>() as u128;
        check_memory("the messages of a rank", needed, memory)?;
        Ok(Self { machine, bytes, offsets: symmetry::numbering(&*machine.topology) })
    }

    /// The messages of one rank of each class, which the fluid model simulates.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let source = Source::Traffic(self);
        let Equivalent { classes, .. } =
            source.equivalent(&self.classes(), &*self.machine.topology);
        u64::from(classes.count()) * u64::from(self.machine.ranks() - 1)
    }

    /// The rank at an offset.
    fn at(&self, from: Rank, offset: &Coordinates) -> Rank {
        let moved = |at, (u, &hops): (usize, &u32)| match hops {
            0 => at,
            hops => self.offsets.shifted(at, u, hops.into()),
        };
        offset.iter().enumerate().fold(from, moved)
    }
}

impl Traffic for AllToAll<'_> {
    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }

    fn steps(&self) -> u32 {
        1
    }

    fn share(&self, node: Rank, _step: u32, out: &mut Share) {
        let others = self.machine.ranks() - 1;
        (out.copied, out.receives) = (0, others);
        out.sends.resize_with(others as usize, Posted::default);
        for (offset, send) in (1..=others).zip(&mut out.sends) {
            send.to = self.at(node, &self.offsets.coordinates(Rank(offset)));
            self.machine.topology.route(node, send.to, &mut send.route);
            (send.bytes, send.free, send.packed, send.cycle) = (self.bytes, true, 0, 0);
        }
        match self.machine.endpoint.order {
            Order::FarthestFirst => {
                let topology = &self.machine.topology;
                let links = |send: &Posted| {
                    let mut links = 0;
                    topology.for_each_link(node, &send.route, &mut |_| links += 1);
                    links
                };
                out.sends.sort_by_cached_key(|send| Reverse(links(send)));
            }
            Order::Random(seed) => {
                let mut random = Pcg64::seed_from_u64(seed.wrapping_add(u64::from(node.0)));
                shuffle(&mut random, &mut out.sends);
            }
            _ => {}
        }
    }

    fn classes(&self) -> RankClasses {
        match self.machine.endpoint.order {
            Order::Random(_) => RankClasses::distinct(self.nodes()),
            _ => {
                let one = Coordinates::from_elem(1, self.offsets.dimensions());
                RankClasses::translations(self.offsets.clone(), one)
            }
        }
    }
}
