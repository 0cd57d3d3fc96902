//! Bins of whole numbers, 2^`BITS` of them to the octave: counts of values over many decades.
//!
//! Values below 2^(`BITS` + 1) have a bin each; above, a bin is at most one 2^`BITS`-th of its lower end wide.

/// How many bins there are.
pub const fn bins<const BITS: u32>() -> usize {
    (65 - BITS as usize) << BITS
}

/// The bin of a value.
#[inline(always)]
pub const fn bin_of<const BITS: u32>(value: u64) -> usize {
    let exact = (2u64 << BITS) - 1;
    let shift = (value | exact).ilog2() - BITS;
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Least value of a bin.
pub const fn lower<const BITS: u32>(bin: usize) -> u64 {
    let shift = (bin >> BITS).saturating_sub(1);
    ((bin - (shift << BITS)) as u64) << shift
}

/// Largest value of a bin.
pub const fn last<const BITS: u32>(bin: usize) -> u64 {
    match bin + 1 < bins::<BITS>() {
        true => lower::<BITS>(bin + 1) - 1,
        false => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contiguous<const BITS: u32>() {
        for bin in 0..bins::<BITS>() {
            let (low, high) = (lower::<BITS>(bin), last::<BITS>(bin));
            assert_eq!((bin_of::<BITS>(low), bin_of::<BITS>(high)), (bin, bin));
            assert!(bin < 2 << BITS || high - low < low >> BITS);
        }
        assert_eq!(last::<BITS>(bins::<BITS>() - 1), u64::MAX);
    }

    #[test]
    fn bins_are_contiguous_and_hold_their_values() {
        contiguous::<0>();
        contiguous::<3>();
        contiguous::<8>();
        contiguous::<10>();
    }
}
