/// What uniform random writes really have to work with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectiveSpare {
    /// T less the free reserve and half of the open units: the space that closed and half-filled units share.
    pub usable_units: f64,
    /// U / usable.
    pub rho: f64,
    /// 1 − rho.
    pub spare_factor: f64,
    /// (usable − U) / U.
    pub op_ratio: f64,
}

/// Takes from `raw_units` the free units that collection keeps and half of every open one, once.
///
/// All four are mapping units. `None` where nothing remains to collect.
pub fn effective_spare(
    raw_units: u64,
    logical_units: u64,
    free_reserved_units: u64,
    open_units: u64,
) -> Option<EffectiveSpare> {
    let usable = raw_units as f64 - free_reserved_units as f64 - open_units as f64 / 2.0;
    let logical = logical_units as f64;
    (logical > 0.0 && usable > logical).then(|| EffectiveSpare {
        usable_units: usable,
        rho: logical / usable,
        spare_factor: 1.0 - logical / usable,
        op_ratio: usable / logical - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_counts_whole_and_open_units_half() {
        // 100 blocks of 64: 6,400 raw, 5,120 logical; 2 free blocks and 2 open ones leave 97 blocks = 6,208 units.
        let spare = effective_spare(6400, 5120, 128, 128).unwrap();
        assert_eq!(spare.usable_units, 6208.0);
        assert!((spare.spare_factor - (1.0 - 5120.0 / 6208.0)).abs() < 1e-12);
        assert_eq!(effective_spare(6400, 6300, 64, 128), None);
    }
}
