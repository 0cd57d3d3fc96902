//! Hot and cold accesses of a sample, brought into the proportion that they have in the trace.
//!
//! # Model
//! Keys are sampled by hash, so a key with a large share of all accesses is either missing or counts 2^level times:
//! alone it would spoil every share. Therefore the first 15 accesses of a key are *cold* and the rest *hot*. Cold
//! accesses are well estimated (no key has more than 15), and the number of all accesses is known exactly; so the hot
//! ones are scaled to what is left: their distribution comes from the hot keys of the sample, their number does not.
//! Without a hot key in the sample the cold ones stand for all. Where nothing was left out the scale is 1.
//! # Source
//! Post-stratification; the correction of SHARDS (FAST 2015, section 3.3) is the case in which all hot accesses are
//! taken to be at distance 0.

use super::octaves::Octaves;

/// The access of a key with this number (from 1) is its first hot one.
pub const HOT_FROM: u32 = 16;

/// Counts of both kinds.
#[derive(Default)]
pub struct Strata {
    pub cold: Octaves,
    pub hot: Octaves,
}

impl Strata {
    #[inline]
    pub fn add(&mut self, hot: bool, value: u64, weight: u64) {
        (if hot { &mut self.hot } else { &mut self.cold }).add(value, weight);
    }

    /// Both in their true proportion.
    pub fn together(&self, scale: Scale) -> Octaves {
        let mut all = self.cold.clone();
        for (bin, &weight) in self.hot.bins().iter().enumerate() {
            all.add_to_bin(bin, scale.of(weight));
        }
        all
    }
}

/// What hot weights are multiplied by.
#[derive(Clone, Copy)]
pub struct Scale {
    to: u64,
    from: u64,
}

impl Scale {
    /// For `accesses` in all, of which the sample stands for `cold` and `hot` ones.
    pub fn new(accesses: u64, cold: u64, hot: u64) -> Self {
        if hot == 0 {
            return Scale { to: 1, from: 1 };
        }
        Scale {
            to: accesses.saturating_sub(cold),
            from: hot,
        }
    }

    pub fn of(self, weight: u64) -> u64 {
        let scaled = (u128::from(weight) * u128::from(self.to) + u128::from(self.from / 2)) / u128::from(self.from);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    pub fn factor(self) -> f64 {
        self.to as f64 / self.from as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_accesses_fill_up_what_the_cold_ones_leave() {
        let mut strata = Strata::default();
        strata.add(false, 3, 60);
        strata.add(true, 0, 300);
        strata.add(true, 1, 100);
        // 100 accesses in all: 60 cold, so 40 hot ones, three quarters of them at 0.
        let all = strata.together(Scale::new(100, 60, 400));
        assert_eq!(
            (all.bins()[0], all.bins()[1], all.bins()[3], all.total()),
            (30, 10, 60, 100)
        );
        assert_eq!(strata.together(Scale::new(460, 60, 400)).total(), 460);
        assert_eq!(Scale::new(100, 60, 0).of(7), 7);
        assert_eq!(Scale::new(50, 60, 5).of(7), 0);
    }
}
