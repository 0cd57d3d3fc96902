//! Writes SYSTOR '17 traces; the columns are described with the [reader](crate::formats::systor).
//!
//! Times have nine decimals and are counted from 22 February 2016, when the original traces begin; response times are 0. A
//! volume that is not called by a number gets one as its LUN.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{fixed, number};
use super::{Form, Holds, Keys, VolumeNames};

pub const ENDINGS: &[&str] = &["systor"];

/// 22 February 2016 in ns since 1970.
const START: u64 = 1_456_099_200_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        latest_ns: u64::MAX - START,
        ..Holds::reads_and_writes()
    };
    let form = rows(b"Timestamp,Response,IOType,LUN,Offset,Size\n", |row, out| {
        fixed(out, START + row.time_ns(), 9);
        out.extend_from_slice(row.read_or_not(b",0.000000000,R,", b",0.000000000,W,"));
        out.extend_from_slice(row.volume());
        out.push(b',');
        number(out, row.offset());
        out.push(b',');
        number(out, row.length());
        out.push(b'\n');
    });
    Ok((form, holds))
}
