//! Writes SYSTOR '17 traces; the columns are described with the [reader](crate::formats::systor).
//!
//! Times have nine decimals and are counted from 22 February 2016, when the original traces begin; response times are 0. A
//! volume that is not called by a number gets one as its LUN.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["systor"];

/// 22 February 2016 in ns since 1970.
const START: u64 = 1_456_099_200_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers(u64::from(u32::MAX)),
        latest_ns: u64::MAX - START,
        ..Holds::reads_and_writes()
    };
    Ok((Box::new(Systor), holds))
}

struct Systor;

impl Form for Systor {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"Timestamp,Response,IOType,LUN,Offset,Size\n");
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            fixed(out, START + batch.time_ns[i], 9);
            out.extend_from_slice(if batch.op[i] == OpKind::Read {
                b",0.000000000,R,"
            } else {
                b",0.000000000,W,"
            });
            out.extend_from_slice(named.volume(batch, i));
            out.push(b',');
            number(out, batch.offset[i]);
            out.push(b',');
            number(out, batch.length[i].into());
            out.push(b'\n');
        }
        Ok(())
    }
}
