//! Days, at whose ends copies are made: by the drive's clock, or by what the host has written.

use serde::{Deserialize, Serialize};

use crate::Now;

/// When the present day began, and how long days are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Days {
    pub time_ns: u64,
    /// Host units; where there is a clock only if `by_units`.
    pub units: u64,
    pub by_units: bool,
    pub began_ns: u64,
    pub began_tick: u64,
}

impl Days {
    /// Whether a day is over; then another one begins.
    pub fn over(&mut self, now: Now) -> bool {
        // The clock begins anew after preparation.
        self.began_ns = self.began_ns.min(now.time_ns);
        let by_units = self.by_units || now.time_ns == 0;
        let over = match by_units {
            true => now.tick >= self.began_tick + self.units,
            false => now.time_ns >= self.began_ns + self.time_ns,
        };
        if over {
            (self.began_ns, self.began_tick) = (now.time_ns, now.tick);
        }
        over
    }

    /// How often to look whether a day is over: a thousandth of a day, of 1 ms to a minute.
    pub fn look_ns(&self) -> u64 {
        match self.by_units {
            true => 1_000_000,
            false => (self.time_ns / 1000).clamp(1_000_000, 60_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_once() {
        let mut days = Days {
            time_ns: 100,
            units: 10,
            by_units: false,
            began_ns: 0,
            began_tick: 0,
        };
        let at = |time_ns, tick| Now { tick, time_ns };
        assert!(!days.over(at(99, 50)) && days.over(at(120, 50)) && !days.over(at(219, 90)) && days.over(at(220, 90)));
        assert!(
            !days.over(at(0, 99)) && days.over(at(0, 100)),
            "without a clock by units"
        );
        days.by_units = true;
        assert!(!days.over(at(900, 109)) && days.over(at(900, 110)));
    }
}
