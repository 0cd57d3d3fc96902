//! Times in a unit that an option names.

use ftlab_core::Result;

use super::text::{fixed, number};
use super::{Holds, Keys};
use crate::settings::TimeUnit;

/// The option `time_unit`.
pub(super) fn time_unit(keys: &mut Keys, default: TimeUnit) -> Result<TimeUnit> {
    match keys.text("time_unit") {
        None => Ok(default),
        Some(text) => TimeUnit::parse(&text).map_err(|e| keys.wrong_as("time_unit", &e)),
    }
}

/// Times in some unit: whole numbers, or exact to the nanosecond with a fraction.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// One unit is 10^`exponent` ns.
    exponent: i32,
    fraction: bool,
}

impl Times {
    pub fn new(unit: TimeUnit, fraction: bool) -> Self {
        Times {
            exponent: unit.exponent(),
            fraction,
        }
    }

    /// The form's limits on time.
    pub fn limit(self, holds: Holds) -> Holds {
        let up = 10u64.pow(self.exponent.min(0).unsigned_abs());
        let step = 10u64.pow(self.exponent.max(0).unsigned_abs());
        Holds {
            tick_ns: Some(if self.fraction { 1 } else { step }),
            // Readers take nineteen digits.
            latest_ns: u64::MAX / 2 / up,
            ..holds
        }
    }

    #[inline]
    pub fn write(self, out: &mut Vec<u8>, time_ns: u64) {
        let digits = self.exponent.max(0).unsigned_abs();
        match self.exponent {
            ..0 => number(out, time_ns * 10u64.pow(self.exponent.unsigned_abs())),
            _ if self.fraction => fixed(out, time_ns, digits),
            0 => number(out, time_ns),
            _ => number(out, time_ns / 10u64.pow(digits)),
        }
        if self.fraction && self.exponent <= 0 {
            out.extend_from_slice(b".0");
        }
    }
}
