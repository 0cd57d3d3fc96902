//! Writes CloudPhysics' vSCSI traces as CSV; the columns are described with the [reader](crate::formats::cloudphysics).
//!
//! Reads and writes are the SCSI commands 28 and 2a, flushes 35; trims are not written, because an UNMAP's ranges are
//! outside the record.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`, whole numbers; readers need `--time-unit` unless it is s | `s` |

use ftlab_core::{OpKind, Result};

use super::rows::rows;
use super::text::number;
use super::times::{Times, time_unit};
use super::{Form, Holds, Keys};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["cloudphysics"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let times = Times::new(time_unit(keys, TimeUnit::Seconds)?, false);
    let holds = Holds {
        address_unit: 512,
        ..times.limit(Holds::reads_and_writes())
    };
    let form = rows(b"version,time,op,size,lbn\n", move |row, out| {
        out.extend_from_slice(b"1,");
        times.write(out, row.time_ns());
        out.extend_from_slice(match row.op() {
            OpKind::Read => b",28,",
            OpKind::Flush => b",35,",
            OpKind::Write | OpKind::Trim => b",2a,",
        });
        number(out, row.length());
        out.push(b',');
        number(out, row.offset() / 512);
        out.push(b'\n');
    });
    Ok((form, holds.and(OpKind::Flush)))
}
