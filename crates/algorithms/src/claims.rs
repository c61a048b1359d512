use topocoll_schedule::{Largest, SlotSet};
use topocoll_topology::{Grid, Shape, Ties, Topology};

/// Counts that an algorithm's formulas give. The tests compare each with the counts found in the
/// schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Claims {
    /// Steps in which a message moves, C1.
    pub steps: u64,
    /// Sum over steps of the largest message, in bytes, C2.
    pub bytes: u128,
    /// Sum over steps of the largest hop count, if the paper gives it.
    pub hops: Option<u128>,
    /// Local rearrangements, if the paper gives them.
    pub rearrangements: Option<u32>,
    /// The sum of the bytes that one rank copies in them, and of the bytes of the largest messages
    /// that must be packed; if known.
    pub copied_bytes: Option<u128>,
    /// Whether there is no link contention, even if the topology does not guarantee it.
    pub contention_free: bool,
    /// A lower bound of `link_bytes`, for machines too large for counting.
    pub link_bytes_floor: u128,
    /// A lower bound of the bytes on the busiest link between nodes, summed over steps, for the same
    /// machines.
    pub carried_floor: u128,
    /// A lower bound of `hops`, for the same machines.
    pub hops_floor: u128,
    /// On a cluster, the charge of steps by the links in use, if known. Such a schedule has no
    /// hops.
    pub by_links: Option<ByLinks>,
}

/// The steps of a cluster's schedule, by the kind of links that their messages use, with the sums
/// of their largest messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByLinks {
    /// Steps with only intra-node messages.
    pub intra_node: StepsOf,
    /// Steps with only inter-node messages.
    pub inter_node: StepsOf,
    /// Steps with messages of both kinds; the largest of both kinds are equal.
    pub both: StepsOf,
}

/// Steps of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepsOf {
    /// Their number.
    pub steps: u64,
    /// Sum over them of the largest message, in bytes.
    pub bytes: u128,
}

impl StepsOf {
    /// Steps whose largest messages are `blocks` of `block_bytes` in all.
    #[must_use]
    pub fn new(steps: u64, blocks: u128, block_bytes: u64) -> Self {
        Self { steps, bytes: blocks * u128::from(block_bytes) }
    }
}

impl Claims {
    /// Claims of only steps and bytes.
    #[must_use]
    pub fn new(steps: u64, bytes: u128) -> Self {
        Self {
            steps,
            bytes,
            hops: None,
            rearrangements: None,
            copied_bytes: None,
            contention_free: false,
            link_bytes_floor: bytes,
            carried_floor: 0,
            hops_floor: 0,
            by_links: None,
        }
    }

    /// Claims of a schedule without link contention and rearrangements: its messages in each step, one of
    /// each kind, with their slots and hops.
    pub(crate) fn of_messages(
        block_bytes: u64,
        all_steps: u32,
        messages: impl Fn(u32, &mut dyn FnMut(&SlotSet, u64)),
    ) -> Self {
        let (mut steps, mut bytes, mut hops, mut packed) = (0, 0, 0, 0);
        for step in 0..all_steps {
            let (mut largest, mut farthest, mut scattered) = (0, 0, 0);
            messages(step, &mut |slots, hops| {
                if slots.is_empty() {
                    return;
                }
                let size = slots.bytes(block_bytes);
                (largest, farthest) = (size.max(largest), hops.max(farthest));
                if !slots.is_contiguous(block_bytes) {
                    scattered = size.max(scattered);
                }
            });
            steps += u64::from(largest > 0);
            bytes += largest;
            hops += u128::from(farthest);
            packed += scattered;
        }
        Self {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            copied_bytes: Some(packed),
            contention_free: true,
            ..Self::new(steps, bytes)
        }
    }

    /// Claims of a [`Period`](topocoll_schedule::Period) without link contention, by the largest message of
    /// each step.
    #[must_use]
    pub fn of_period(block_bytes: u64, largest: &[Largest]) -> Self {
        let sum = |of: fn(&Largest) -> u64| largest.iter().map(|one| u128::from(of(one))).sum();
        let (blocks, hops): (u128, u128) = (sum(|one| one.blocks), sum(|one| one.hops));
        let steps = largest.iter().filter(|one| one.blocks > 0).count();
        Self {
            hops: Some(hops),
            hops_floor: hops,
            rearrangements: Some(0),
            contention_free: true,
            ..Self::new(steps as u64, blocks * u128::from(block_bytes))
        }
    }

    /// The claims on this topology. A cluster's schedule is one for any network, but its claims about
    /// links are those of fully connected nodes. Claims about links of a grid take all ties upwards.
    pub(crate) fn on(self, topology: &dyn Topology) -> Self {
        let mut claims = self;
        if claims.by_links.is_some() && topology.link_numbers() > 0 {
            claims = Self { hops: None, contention_free: false, by_links: None, ..claims };
        }
        let upwards = |grid: &Grid| grid.ties() == Ties::Up;
        if matches!(topology.network(), Shape::Grid(grid) if !upwards(grid)) {
            claims.contention_free = false;
            (claims.link_bytes_floor, claims.carried_floor) = (claims.bytes, 0);
        }
        claims
    }

    /// The claims that hold over any links.
    pub(crate) fn without_links(self) -> Self {
        let Self { rearrangements, copied_bytes, .. } = self;
        Self { rearrangements, copied_bytes, ..Self::new(self.steps, self.bytes) }
    }

    /// Claims of a cluster's schedule; if `copies` is false, it copies and packs nothing.
    pub(crate) fn of_cluster(by_links: ByLinks, copies: bool) -> Self {
        let ByLinks { intra_node, inter_node, both } = by_links;
        let steps = intra_node.steps + inter_node.steps + both.steps;
        Self {
            hops: Some(0),
            rearrangements: Some(0),
            copied_bytes: (!copies).then_some(0),
            contention_free: true,
            by_links: Some(by_links),
            ..Self::new(steps, intra_node.bytes + inter_node.bytes + both.bytes)
        }
    }
}
