//! Numbers by chance, the same in every run.

/// A number that depends on all bits of another in no simple way: the finalizer of splitmix64 (Steele, Lea
/// and Flood 2014).
pub(crate) fn drawn(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Numbers that follow each other are far apart in this multiple of them.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
