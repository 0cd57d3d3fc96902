//! Writes SPC traces, comma separated; the columns are described with the [reader](crate::formats::spc).
//!
//! Times are in seconds with nine decimals. A volume that is not called by a number gets one as its ASU. Sizes are bytes,
//! addresses blocks of 512.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["spc"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        address_unit: 512,
        ..Holds::reads_and_writes()
    };
    Ok((Box::new(Spc), holds))
}

struct Spc;

impl Form for Spc {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            out.extend_from_slice(named.volume(batch, i));
            out.push(b',');
            number(out, batch.offset[i] / 512);
            out.push(b',');
            number(out, batch.length[i].into());
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b",r," } else { b",w," });
            fixed(out, batch.time_ns[i], 9);
            out.push(b'\n');
        }
        Ok(())
    }
}
