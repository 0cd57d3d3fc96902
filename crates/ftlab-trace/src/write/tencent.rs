//! Writes Tencent CBS traces; the columns are described with the [reader](crate::formats::tencent).
//!
//! Times are whole seconds, counted from 1 October 2018 in China, when the original traces begin. A volume that is not
//! called by a number gets one.

use ftlab_core::{Batch, OpKind, Result};

use super::text::number;
use super::{Form, Holds, Keys, Named, VolumeNames};

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
    Ok((Box::new(Tencent), holds))
}

struct Tencent;

impl Form for Tencent {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            number(out, START + batch.time_ns[i] / 1_000_000_000);
            out.push(b',');
            number(out, batch.offset[i] / 512);
            out.push(b',');
            number(out, u64::from(batch.length[i] / 512));
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b",0," } else { b",1," });
            out.extend_from_slice(named.volume(batch, i));
            out.push(b'\n');
        }
        Ok(())
    }
}
