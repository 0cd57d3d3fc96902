//! The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of what comes out depends on every bit of what
//! goes in, and distinct numbers stay distinct.

/// Mixes the bits of `x`; 0 stays 0.
#[inline]
pub fn finish(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What SplitMix64 adds to its state for each number.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash by which keys are sampled.
#[inline]
pub fn mix(key: u64) -> u64 {
    finish(key.wrapping_add(STEP))
}
