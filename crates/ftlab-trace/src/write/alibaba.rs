//! Writes Alibaba block traces; the columns are described with the [reader](crate::formats::alibaba).
//!
//! Times are rounded down to 1 µs and counted from the start of 2020 in China, when the original traces begin. A volume
//! that is not called by a number gets one.

use ftlab_core::Result;

use super::rows::rows;
use super::text::number;
use super::{Form, Holds, Keys, VolumeNames};

pub const ENDINGS: &[&str] = &["alibaba"];

/// 1 January 2020, 0:00 at UTC+8, in µs since 1970.
const START: u64 = 1_577_808_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        tick_ns: Some(1000),
        latest_ns: u64::MAX - 999 - START * 1000,
        ..Holds::reads_and_writes()
    };
    let form = rows(b"", |row, out| {
        out.extend_from_slice(row.volume());
        out.extend_from_slice(row.read_or_not(b",R,", b",W,"));
        number(out, row.offset());
        out.push(b',');
        number(out, row.length());
        out.push(b',');
        number(out, START + row.time_ns() / 1000);
        out.push(b'\n');
    });
    Ok((form, holds))
}
