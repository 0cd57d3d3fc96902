//! Writes MQSim ASCII, five columns; they are described with the [reader](crate::formats::mqsim).
//!
//! Requests are in order of time, as MQSim expects; a volume that is not called by a number gets one.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`, whole numbers: MQSim's workload file must name the same | `ns` |

use ftlab_core::Result;

use super::rows::rows;
use super::text::number;
use super::times::{Times, time_unit};
use super::{Form, Holds, Keys, VolumeNames};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["mqsim"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    five_columns(Times::new(time_unit(keys, TimeUnit::Nanoseconds)?, false))
}

/// `time device sector sectors code`, 1 = read.
pub(super) fn five_columns(times: Times) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        ..Holds::reads_and_writes().sectors()
    };
    let form = rows(b"", move |row, out| {
        times.write(out, row.time_ns());
        out.push(b' ');
        out.extend_from_slice(row.volume());
        out.push(b' ');
        number(out, row.offset() / 512);
        out.push(b' ');
        number(out, row.length() / 512);
        out.extend_from_slice(row.read_or_not(b" 1\n", b" 0\n"));
    });
    Ok((form, times.limit(holds)))
}
