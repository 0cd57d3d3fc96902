//! Chunks of the address space, for policies that learn from addresses, and levels of how often they are written.

use ftlab_core::{Error, Result};

use super::Setup;

/// Most streams of a device besides the default one: each has an open unit on every lane.
pub(super) const MOST_STREAMS: u16 = 4095;

/// Mapping units of a chunk of `kib` KiB.
///
/// # Errors
/// A chunk that is not a whole number of mapping units.
pub(super) fn units_of(kib: u32, policy: &str, setup: &Setup) -> Result<u32> {
    let bytes = u64::from(kib) * 1024;
    let unit = u64::from(setup.unit_bytes);
    if bytes < unit || !bytes.is_multiple_of(unit) {
        return Err(Error::input(format!(
            "placement policy `{policy}`: {kib} KiB are no whole number of mapping units of {unit} bytes"
        )));
    }
    Ok((bytes / unit) as u32)
}

/// ⌊log_base(count)⌋, below `levels`; 0 for no count.
pub(super) fn level(count: u64, base: f64, levels: u16) -> u16 {
    let (mut level, mut limit) = (0, base);
    while level + 1 < levels && count as f64 >= limit {
        level += 1;
        limit *= base;
    }
    level
}

/// # Errors
/// A number of streams that no device has, or a base that makes no levels.
pub(super) fn check(policy: &str, streams: u16, log_base: f64) -> Result<()> {
    if !(1..=MOST_STREAMS).contains(&streams) {
        return Err(Error::input(format!(
            "placement policy `{policy}`: streams = {streams}, expected 1 to {MOST_STREAMS}"
        )));
    }
    if !(log_base > 1.0 && log_base.is_finite()) {
        return Err(Error::input(format!(
            "placement policy `{policy}`: log_base = {log_base}, expected above 1"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_powers_of_the_base() {
        let levels = [0, 1, 2, 3, 4, 7, 8, 1 << 40].map(|count| level(count, 2.0, 8));
        assert_eq!(levels, [0, 0, 1, 1, 2, 2, 3, 7]);
        assert_eq!(
            [2, 3, 7, 8].map(|count| level(count, std::f64::consts::E, 3)),
            [0, 1, 1, 2]
        );
    }
}
