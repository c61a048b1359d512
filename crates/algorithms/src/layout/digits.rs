//! The radix-r digits of distances, and the steps in which blocks move by their values.

use std::ops::Range;

use smallvec::SmallVec;

/// A digit of the distances below a number.
#[derive(Clone, Copy)]
pub(crate) struct Digit {
    /// r^x.
    pub(crate) weight: u64,
    /// The digit is below it.
    pub(crate) values: u32,
    /// The first step of its subphase.
    pub(crate) first_step: u32,
}

/// The digits of the distances below `count`, the lowest first.
#[derive(Clone)]
pub(crate) struct Digits {
    pub(crate) all: SmallVec<[Digit; 8]>,
    pub(crate) radix: u32,
    /// The values that move in a step.
    pub(crate) ports: u32,
    pub(crate) steps: u32,
}

impl Digits {
    pub(crate) fn new(count: u32, radix: u32, ports: u32) -> Self {
        let (mut all, mut weight, mut steps) = (SmallVec::new(), 1, 0);
        while weight < u64::from(count) {
            let values = u64::from(count).div_ceil(weight).min(radix.into()) as u32;
            all.push(Digit { weight, values, first_step: steps });
            steps += (values - 1).div_ceil(ports);
            weight *= u64::from(radix);
        }
        Self { all, radix, ports, steps }
    }

    /// The digit of a step, and those of its values that move.
    pub(crate) fn of_step(&self, step: u32) -> (Digit, Range<u32>) {
        let digit = self.all[self.all.partition_point(|digit| digit.first_step <= step) - 1];
        let first = 1 + (step - digit.first_step) * self.ports;
        (digit, first..first.saturating_add(self.ports).min(digit.values))
    }

    /// The distance after which the values of a digit repeat.
    pub(crate) fn period(&self, digit: Digit) -> u64 {
        digit.weight * u64::from(self.radix)
    }
}
