//! Writes Tencent CBS traces; the columns are described with the [reader](crate::formats::tencent).
//!
//! Times are whole seconds, counted from 1 October 2018 in China, when the original traces begin. A volume that is not
//! called by a number gets one.

use ftlab_core::Result;

use super::rows::rows;
use super::text::number;
use super::{Form, Holds, Keys, VolumeNames};

pub const ENDINGS: &[&str] = &["tencent"];

/// 1 October 2018, 0:00 at UTC+8, in s since 1970.
const START: u64 = 1_538_323_200;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        tick_ns: Some(1_000_000_000),
        latest_ns: u64::MAX - (START + 1) * 1_000_000_000,
        ..Holds::reads_and_writes().sectors()
    };
    let form = rows(b"", |row, out| {
        number(out, START + row.time_ns() / 1_000_000_000);
        out.push(b',');
        number(out, row.offset() / 512);
        out.push(b',');
        number(out, row.length() / 512);
        out.extend_from_slice(row.read_or_not(b",0,", b",1,"));
        out.extend_from_slice(row.volume());
        out.push(b'\n');
    });
    Ok((form, holds))
}
