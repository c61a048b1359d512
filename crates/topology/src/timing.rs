use smallvec::SmallVec;

use crate::{Topology, TopologyError};

/// A timing value for every link class: one for all, or one per class.
#[derive(Clone, PartialEq, Debug)]
pub struct PerClass(SmallVec<[f64; 2]>);

impl PerClass {
    /// The same value for all classes.
    #[must_use]
    pub fn uniform(value: f64) -> Self {
        Self(SmallVec::from_slice(&[value]))
    }

    /// Whether all classes have the same value.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|value| *value == self.0[0])
    }

    /// One value per class, at least one.
    ///
    /// # Panics
    /// No values.
    #[must_use]
    pub fn each(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "a timing value of no class");
        Self(SmallVec::from_slice(values))
    }

    /// These two values, intra-node and inter-node, on the link classes of a machine; all classes of its
    /// network have the second.
    ///
    /// # Errors
    /// Nodes of one rank each.
    pub fn of_nodes(values: [f64; 2], topology: &dyn Topology) -> Result<Self, TopologyError> {
        if topology.nodes() == topology.ranks() {
            let form = topology.short_form();
            return Err(format!(
                "2 values, intra-node and inter-node, require nodes of several ranks, and each node of {form} \
                 has one"
            )
            .into());
        }
        let [inside, between] = values;
        let classes = 0..topology.link_classes().len();
        Ok(Self(classes.map(|class| if class == 0 { inside } else { between }).collect()))
    }

    /// The value of `class`.
    #[must_use]
    pub fn of(&self, class: usize) -> f64 {
        if self.0.len() == 1 { self.0[0] } else { self.0[class] }
    }

    /// The one of two classes with the larger value; the second if they are equal.
    #[must_use]
    pub fn slower(&self, one: usize, other: usize) -> usize {
        if self.of(one) > self.of(other) { one } else { other }
    }

    /// The sum over all classes of amount times value. Classes beyond the end of `amounts` have
    /// amount 0. Where all values are equal, the amounts are added first and multiplied once.
    #[must_use]
    pub fn sum(&self, amounts: &[u128]) -> f64 {
        if self.is_uniform() {
            let sum = amounts.iter().fold(0, |sum: u128, &amount| sum.saturating_add(amount));
            return sum as f64 * self.0[0];
        }
        self.0.iter().zip(amounts).map(|(value, &amount)| amount as f64 * value).sum()
    }

    /// The smallest value of any class.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The same with another value for each.
    #[must_use]
    pub fn map(&self, to: impl Fn(f64) -> f64) -> Self {
        Self::each(&self.0.iter().map(|&value| to(value)).collect::<Vec<_>>())
    }

    /// The values: one for all classes, or one per class.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

/// Seconds of a barrier: `fixed + per_doubling * log2(ranks)`, never below 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Barrier {
    /// The part that does not depend on the ranks. It may be negative where `per_doubling` is
    /// positive.
    pub fixed: f64,
    /// Seconds added by each doubling of the ranks.
    pub per_doubling: f64,
}

impl Barrier {
    /// Seconds of one barrier of `ranks` ranks.
    #[must_use]
    pub fn seconds(self, ranks: u32) -> f64 {
        (self.fixed + self.per_doubling * f64::from(ranks).log2()).max(0.0)
    }
}

/// The timing values of a machine, in seconds (Suh and Shin 2001, section 2).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// The machine they belong to.
    pub name: String,
    /// Start-up of a message, `t_s`.
    pub startup: PerClass,
    /// Transmission of a byte, `t_c`.
    pub per_byte: PerClass,
    /// Propagation over a link, `t_l`.
    pub per_hop: PerClass,
    /// Rearrangement of a byte, rho.
    pub rearrangement_per_byte: f64,
    /// Rearrangement of a block, besides its bytes.
    pub per_block: f64,
    /// Barrier between steps, `t_b`.
    pub barrier: Barrier,
    /// Whether the hardware sends from scattered memory, so that messages need no packing.
    pub gather: bool,
    /// What ranks and nodes can put into the network.
    pub injection: Injection,
    /// What a large message waits for besides its startup.
    pub rendezvous: Rendezvous,
    /// How loads of link classes beyond the largest message add up in a step.
    pub contention: Contention,
}

/// The time in which a sender and a receiver agree on a message above a size; 0 where they do not.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rendezvous {
    /// The most bytes of a message that is sent at once.
    pub above: u64,
    /// Seconds of each larger one.
    pub time: f64,
}

impl Rendezvous {
    /// Seconds of a message.
    #[must_use]
    pub fn of(self, bytes: u128) -> f64 {
        if bytes > self.above.into() { self.time } else { 0.0 }
    }
}

/// The exponents p, at least 1, of the norm by which the loads of several link classes beyond the largest
/// message add up: 1 is their sum. Infinity is their maximum: classes do not hinder each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contention {
    /// Of steps in which each rank sends one message at most.
    pub alone: f64,
    /// Of other steps.
    pub several: f64,
}

impl Default for Contention {
    fn default() -> Self {
        Self { alone: f64::INFINITY, several: f64::INFINITY }
    }
}

impl Contention {
    /// The norm of some seconds.
    #[must_use]
    pub fn norm(p: f64, seconds: impl Iterator<Item = f64>) -> f64 {
        match p {
            1.0 => seconds.sum(),
            f64::INFINITY => seconds.fold(0.0, f64::max),
            p => seconds.map(|each| each.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }
}

/// Seconds in which a rank or a node sends a byte into the network, and in which it receives one,
/// over all its ports together; 0 where only the links limit it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Injection {
    /// Of a rank, for all its messages.
    pub rank: f64,
    /// Of a node, for its messages to and from other nodes.
    pub node: f64,
}

impl Injection {
    /// Whether neither is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.rank == 0.0 && self.node == 0.0
    }

    /// The same for a machine in which each rank is a node by itself: both limit the rank.
    #[must_use]
    pub fn of_single_ranks(self) -> Self {
        Self { rank: self.rank.max(self.node), node: 0.0 }
    }
}

impl Timing {
    /// The default values: startup 1 us, 1e9 B/s, 50 ns a hop, no rearrangement time, no barrier.
    #[must_use]
    pub fn generic() -> Self {
        Self {
            name: "generic".to_owned(),
            startup: PerClass::uniform(1e-6),
            per_byte: PerClass::uniform(1e-9),
            per_hop: PerClass::uniform(50e-9),
            rearrangement_per_byte: 0.0,
            per_block: 0.0,
            barrier: Barrier::default(),
            gather: false,
            injection: Injection::default(),
            rendezvous: Rendezvous::default(),
            contention: Contention::default(),
        }
    }

    /// Seconds in which a rank copies `bytes` of blocks of `block_bytes`, and those of them that do not depend on
    /// the size of the blocks.
    #[must_use]
    pub fn copies(&self, bytes: u128, block_bytes: u64) -> [f64; 2] {
        let blocks = if bytes == 0 { 0.0 } else { bytes as f64 / block_bytes as f64 };
        let of_blocks = blocks * self.per_block;
        [bytes as f64 * self.rearrangement_per_byte + of_blocks, of_blocks]
    }

    /// Checks that values given per link class of `from`, their own machine, fit the link classes
    /// of `topology`.
    ///
    /// # Errors
    /// The classes of both.
    pub fn fits(&self, from: &dyn Topology, topology: &dyn Topology) -> Result<(), TopologyError> {
        let (theirs, ours) = (from.link_classes(), topology.link_classes());
        let each = [&self.startup, &self.per_byte, &self.per_hop]
            .iter()
            .any(|value| value.values().len() > 1);
        if each && theirs != ours {
            let (timing, topology) = (self.name.clone(), topology.short_form());
            let (theirs, ours) = (theirs.join(", "), ours.join(", "));
            return Err(format!(
                "timing `{timing}` has values for its link classes ({theirs}), but {topology} has other classes \
                 ({ours})"
            )
            .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grid;

    #[test]
    fn values_are_uniform_if_they_are_the_same() {
        assert!(PerClass::uniform(1.0).is_uniform() && PerClass::each(&[2.0, 2.0]).is_uniform());
        assert!(!PerClass::each(&[1.0, 1.0, 2.0]).is_uniform());
    }

    #[test]
    fn two_values_are_those_inside_nodes_and_between_them() {
        for (form, count) in [("cluster:4,4,2", 2), ("torus:4x4*2", 3), ("fat-tree:2,3*8", 3)] {
            let machine = crate::spec::parse_short_form(form).unwrap();
            let values = PerClass::of_nodes([1.0, 2.0], &*machine).unwrap();
            assert_eq!(values.values(), [&[1.0][..], &vec![2.0; count - 1]].concat(), "{form}");
        }
        for form in ["full:8", "torus:4x4", "cluster:1,1,1", "fat-tree:2,3"] {
            let machine = crate::spec::parse_short_form(form).unwrap();
            let refused = PerClass::of_nodes([1.0, 2.0], &*machine).unwrap_err().message;
            assert!(refused.contains("require nodes of several ranks"), "{refused}");
        }
    }

    #[test]
    fn equal_values_multiply_the_sum_of_all_amounts() {
        let amounts = [3, 7, 11];
        assert_eq!(
            PerClass::each(&[0.1, 0.2, 0.1]).sum(&amounts),
            0.1 * 3.0 + 0.2 * 7.0 + 0.1 * 11.0
        );
        for same in [PerClass::uniform(0.1), PerClass::each(&[0.1; 3])] {
            assert_eq!(same.sum(&amounts), 0.1 * 21.0);
        }
    }

    #[test]
    fn values_for_each_class_fit_machines_of_the_same_classes() {
        let grid = |sides: &[u32]| Grid::torus(sides).unwrap();
        let (two, three) = (grid(&[4, 4]), grid(&[4, 4, 4]));
        let mut timing = Timing::generic();
        assert_eq!(timing.fits(&two, &three), Ok(()));
        timing.per_hop = PerClass::each(&[1e-9, 2e-9]);
        assert_eq!(timing.fits(&two, &grid(&[8, 2])), Ok(()));
        assert!(timing.fits(&two, &three).is_err());
    }
}
