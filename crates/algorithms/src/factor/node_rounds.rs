//! Floors of what links carry where nodes exchange all their blocks in rounds.

use topocoll_topology::Shape;

use crate::alltoall::{direct, one_factor};
use crate::{Claims, Request};

/// The nodes that exchange in a round.
#[derive(Clone, Copy)]
pub(crate) enum Rounds {
    /// Every node sends to the node i after it.
    Shifts,
    /// Pairs of nodes, a factor of their complete graph.
    Factors,
}

impl Claims {
    /// These claims, of a schedule that sends the blocks between two nodes straight, in the steps of
    /// their round. At most `together` rounds share a step, whose busiest link carries at least that
    /// part of the sum of their loads.
    pub(crate) fn of_rounds(self, request: &Request<'_>, rounds: Rounds, together: u32) -> Self {
        let (Shape::Grid(grid), Shape::Clustered(clusters)) =
            (request.topology.network(), request.topology.shape())
        else {
            return self;
        };
        let Some(size) = clusters.equal_size() else { return self };
        let nodes = clusters.nodes();
        let load = match rounds {
            Rounds::Shifts => direct::link_load(grid.sides()),
            Rounds::Factors => {
                u128::from(nodes - 1) * one_factor::least_load(grid.sides()[0], nodes)
            }
        };
        let blocks = load * u128::from(size).pow(2) / u128::from(together);
        let carried_floor = request.bytes(blocks);
        Self { link_bytes_floor: self.link_bytes_floor.max(carried_floor), carried_floor, ..self }
    }
}
