//! Writes SPC traces, comma separated; the columns are described with the [reader](crate::formats::spc).
//!
//! Times are in seconds with nine decimals. A volume that is not called by a number gets one as its ASU. Sizes are bytes,
//! addresses blocks of 512.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{fixed, number};
use super::{Form, Holds, Keys, VolumeNames};

pub const ENDINGS: &[&str] = &["spc"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        address_unit: 512,
        ..Holds::reads_and_writes()
    };
    let form = rows(b"", |row, out| {
        out.extend_from_slice(row.volume());
        out.push(b',');
        number(out, row.offset() / 512);
        out.push(b',');
        number(out, row.length());
        out.extend_from_slice(row.read_or_not(b",r,", b",w,"));
        fixed(out, row.time_ns(), 9);
        out.push(b'\n');
    });
    Ok((form, holds))
}
