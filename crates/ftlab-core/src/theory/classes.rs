//! Two or more classes of data, each written uniformly: mixed under FIFO, or perfectly separated.

use super::{VictimLaw, waf};

/// A share of the logical units and the share of the writes that go to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    pub units: f64,
    pub writes: f64,
}

/// Hot and cold: `hot_units` of the units take `hot_writes` of the writes.
pub fn hot_cold(hot_units: f64, hot_writes: f64) -> [Class; 2] {
    [
        Class {
            units: hot_units,
            writes: hot_writes,
        },
        Class {
            units: 1.0 - hot_units,
            writes: 1.0 - hot_writes,
        },
    ]
}

/// WAF of one FIFO pool that mixes the classes: the fixed point of `Σ r / (1 − exp(−(r/f) x / WAF))`, `x = 1/ρ`.
pub fn fifo_with_classes(rho: f64, classes: &[Class]) -> f64 {
    let next = |waf: f64| -> f64 {
        let pass = |c: &Class| -(-c.writes / c.units / (rho * waf)).exp_m1();
        classes.iter().map(|c| c.writes / pass(c)).sum()
    };
    // The right side grows with the WAF but more slowly than it (its slope is below 1 at the solution): bisect on the sign.
    let (mut low, mut high) = (1.0, 2.0);
    while next(high) > high && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if next(middle) > middle {
            low = middle
        } else {
            high = middle
        }
    }
    0.5 * (low + high)
}

/// The best WAF of two separate pools, and the share of the spare that the first gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitPools {
    pub waf: f64,
    pub first_share: f64,
}

/// Two classes in pools of their own, each under `law`, with the split of the spare that costs least.
pub fn static_split(law: VictimLaw, rho: f64, b: u32, classes: &[Class; 2]) -> SplitPools {
    let spare = 1.0 / rho - 1.0;
    let cost = |share: f64| -> f64 {
        let parts = [(classes[0], share), (classes[1], 1.0 - share)];
        parts
            .iter()
            .map(|(c, share)| c.writes * waf(law, c.units / (c.units + share * spare), b))
            .sum()
    };
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (cost(left), cost(right));
    while high - low > 1e-6 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = cost(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = cost(right);
        }
    }
    let first_share = 0.5 * (low + high);
    SplitPools {
        waf: cost(first_share),
        first_share,
    }
}
