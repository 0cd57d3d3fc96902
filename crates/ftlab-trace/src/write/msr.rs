//! Writes MSR Cambridge lines; the columns are described with the [reader](crate::formats::msr).
//!
//! Times are rounded down to 100 ns and counted from the start of 2007; the response time is 0. A volume called
//! `host.disk` gives both columns, any other is a disk of the host `ftlab`.

use ftlab_core::{OpKind, Result};

use super::rows::rows;
use super::text::number;
use super::{Form, Holds, Keys, VolumeNames};

pub const ENDINGS: &[&str] = &["msr"];

/// 1 January 2007 in 100 ns since 1601.
const START: u64 = 128_120_832_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::HostDisk,
        tick_ns: Some(100),
        // Readers count ns since 1601 in 64 bits.
        latest_ns: u64::MAX - 99 - START * 100,
        ..Holds::reads_and_writes()
    };
    let form = rows(b"", |row, out| {
        number(out, START + row.time_ns() / 100);
        out.push(b',');
        out.extend_from_slice(row.volume());
        out.extend_from_slice(if row.op() == OpKind::Read {
            b",Read,"
        } else {
            b",Write,"
        });
        number(out, row.offset());
        out.push(b',');
        number(out, row.length());
        out.extend_from_slice(b",0\n");
    });
    Ok((form, holds))
}
