//! Trees to a base: in the step of weight w, a member whose number has lower digits of zero gathers
//! from those w, 2w .. after it, each with the members below it. Backwards, they distribute.

/// The least number of digits to the base for a count: the steps of a tree.
pub(crate) fn digits(base: u64, count: u32) -> u32 {
    let (mut digits, mut reach) = (0, 1);
    while reach < u64::from(count) {
        reach *= base;
        digits += 1;
    }
    digits
}

/// The members below the sender of the largest message, summed over the steps of a tree.
pub(crate) fn passed(base: u64, count: u32) -> u128 {
    let weights = (0..digits(base, count)).map(|x| base.pow(x));
    weights.map(|weight| u128::from(weight.min(u64::from(count) - weight))).sum()
}
