//! Hash functions of addresses, the same on every machine.

/// Hash function `number` of `key`, below `limit` (splitmix64, Steele, Lea and Flood 2014; then multiply and shift).
#[inline]
pub(super) fn hash(key: u32, number: u32, limit: u32) -> usize {
    let mixed = mix(u64::from(number) << 32 | u64::from(key));
    (((mixed >> 32) * u64::from(limit)) >> 32) as usize
}

/// A number below `limit` for event `number` of a run with this seed: as good as drawn, and nothing to save.
#[inline]
pub(super) fn drawn(seed: u64, number: u64, limit: u64) -> u64 {
    let mixed = mix(seed ^ mix(number));
    ((u128::from(mixed) * u128::from(limit)) >> 64) as u64
}

#[inline]
fn mix(key: u64) -> u64 {
    let mut mixed = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_even_and_functions_differ() {
        let mut bins = [[0u32; 8]; 2];
        let mut same = 0;
        for key in 0..8000 {
            let places = [hash(key, 0, 8), hash(key, 1, 8)];
            same += u32::from(places[0] == places[1]);
            bins[0][places[0]] += 1;
            bins[1][places[1]] += 1;
        }
        assert!(
            bins.iter().flatten().all(|&count| (880..1120).contains(&count)),
            "{bins:?}"
        );
        assert!((880..1120).contains(&same), "{same}");
    }
}
