//! Writes MQSim ASCII, five columns; they are described with the [reader](crate::formats::mqsim).
//!
//! Requests are in order of time, as MQSim expects; a volume that is not called by a number gets one.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`, whole numbers: MQSim's workload file must name the same | `ns` |

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named, VolumeNames};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["mqsim"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let times = Times::new(time_unit(keys, TimeUnit::Nanoseconds)?, false);
    let holds = times.limit(five_columns());
    Ok((Box::new(FiveColumns { times }), holds))
}

/// What the five columns hold, in any of their forms.
pub(super) fn five_columns() -> Holds {
    Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        ..Holds::reads_and_writes().sectors()
    }
}

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

/// `time device sector sectors code`, 1 = read.
pub(super) struct FiveColumns {
    pub times: Times,
}

impl Form for FiveColumns {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            self.times.write(out, batch.time_ns[i]);
            out.push(b' ');
            out.extend_from_slice(named.volume(batch, i));
            out.push(b' ');
            number(out, batch.offset[i] / 512);
            out.push(b' ');
            number(out, u64::from(batch.length[i] / 512));
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b" 1\n" } else { b" 0\n" });
        }
        Ok(())
    }
}
