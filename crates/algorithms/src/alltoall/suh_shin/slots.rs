//! The digits of a slot, and the other end of the block that it is for.

use topocoll_schedule::Slot;
use topocoll_topology::{Coordinates, Rank};

use super::{GridIndex, TravelOrder};
use crate::layout::mixed_radix_layout::Ends;

impl GridIndex {
    /// The digits h and l of a slot before any rotation: `i(dst) xor i(src)` by dimension. All are
    /// bits, l by dimension and above them h against the order of phases.
    pub(super) fn inner(&self, order: &TravelOrder, slot: Slot) -> Coordinates {
        let n = self.dimensions();
        let mut inner = Coordinates::from_elem(0, self.radix().dimensions());
        for (bit, &u) in self.long.iter().enumerate() {
            inner[u] = (slot >> bit & 1) as u32;
        }
        if self.inner_bits() == 2 {
            for (bit, p) in (n..).zip((0..n).rev()) {
                inner[order.dimension(p)] |= (slot >> bit & 1) as u32 * 2;
            }
        }
        inner
    }

    /// The digits k of a slot before any rotation, by dimension.
    pub(super) fn rings(&self, order: &TravelOrder, slot: Slot) -> Coordinates {
        let mut rest = (slot >> (self.inner_bits() * self.dimensions())) as u32;
        let mut k = Coordinates::from_elem(0, self.radix().dimensions());
        for u in (0..self.dimensions()).rev().map(|p| order.dimension(p)) {
            k[u] = rest % self.ring(u);
            rest /= self.ring(u);
        }
        k
    }

    /// The other end of a block: `coordinates` moved by `k` rings along `direction` times its
    /// signs, and by `inner` within its submesh.
    pub(super) fn other_end(
        &self,
        coordinates: &[u32],
        order: &TravelOrder,
        k: &[u32],
        inner: &[u32],
        direction: i64,
    ) -> Rank {
        let rank = self.long.iter().map(|&u| {
            self.ring_part(coordinates, order, u, k[u], direction)
                + ((coordinates[u] % self.stride) ^ inner[u]) * self.radix().stride(u)
        });
        Rank(rank.sum())
    }

    /// The change of the other end of a block in dimension u by its digit k.
    pub(super) fn ring_part(
        &self,
        coordinates: &[u32],
        order: &TravelOrder,
        u: usize,
        k: u32,
        direction: i64,
    ) -> u32 {
        let ring = self.ring(u);
        let forward = if direction * order.sign(u) > 0 { k } else { ring - k };
        let a = coordinates[u] / self.stride + forward;
        (if a >= ring { a - ring } else { a }) * self.stride * self.radix().stride(u)
    }

    /// The digits k put in front, in a travel order.
    pub(super) fn prepend_rings(
        &self,
        ends: &mut Ends,
        coordinates: &[u32],
        order: &TravelOrder,
        direction: i64,
    ) {
        for u in (0..self.dimensions()).rev().map(|p| order.dimension(p)) {
            ends.prepend(self.ring(u), |k| self.ring_part(coordinates, order, u, k, direction));
        }
    }

    /// The travel order of a slot's block, before any rotation, and its digits h and l.
    ///
    /// The l digits give the source's parities, these its order, that the h digits, and these its
    /// residues and so its signs.
    pub(super) fn travel_order_here(
        &self,
        coordinates: &[u32],
        slot: Slot,
    ) -> (TravelOrder, Coordinates) {
        let mut residues = Coordinates::from_slice(coordinates);
        for (bit, &u) in self.long.iter().enumerate() {
            residues[u] ^= (slot >> bit & 1) as u32;
        }
        let inner = self.inner(&self.travel_order(&residues), slot);
        for &u in &self.long {
            residues[u] = coordinates[u] ^ inner[u];
        }
        (self.travel_order(&residues), inner)
    }
}
