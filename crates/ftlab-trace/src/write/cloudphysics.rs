//! Writes CloudPhysics' vSCSI traces as CSV; the columns are described with the [reader](crate::formats::cloudphysics).
//!
//! Reads and writes are the SCSI commands 28 and 2a, flushes 35; trims have no place, since an UNMAP's ranges are outside
//! the record.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`, whole numbers; a reader must be told unless it is s | `s` |

use ftlab_core::{Batch, OpKind, Result};

use super::mqsim::{Times, time_unit};
use super::text::number;
use super::{Form, Holds, Keys, Named};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["cloudphysics"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let times = Times::new(time_unit(keys, TimeUnit::Seconds)?, false);
    let holds = Holds {
        address_unit: 512,
        ..times.limit(Holds::reads_and_writes())
    };
    Ok((Box::new(CloudPhysics { times }), holds.and(OpKind::Flush)))
}

struct CloudPhysics {
    times: Times,
}

impl Form for CloudPhysics {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"version,time,op,size,lbn\n");
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            out.extend_from_slice(b"1,");
            self.times.write(out, batch.time_ns[i]);
            out.extend_from_slice(match batch.op[i] {
                OpKind::Read => b",28,",
                OpKind::Flush => b",35,",
                OpKind::Write | OpKind::Trim => b",2a,",
            });
            number(out, batch.length[i].into());
            out.push(b',');
            number(out, batch.offset[i] / 512);
            out.push(b'\n');
        }
        Ok(())
    }
}
