//! Writes Alibaba block traces; the columns are described with the [reader](crate::formats::alibaba).
//!
//! Times are rounded down to 1 µs and counted from the start of 2020 in China, when the original traces begin. A volume
//! that is not called by a number gets one.

use ftlab_core::{Batch, OpKind, Result};

use super::text::number;
use super::{Form, Holds, Keys, Named, VolumeNames};

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
    Ok((Box::new(Alibaba), holds))
}

struct Alibaba;

impl Form for Alibaba {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            out.extend_from_slice(named.volume(batch, i));
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b",R," } else { b",W," });
            number(out, batch.offset[i]);
            out.push(b',');
            number(out, batch.length[i].into());
            out.push(b',');
            number(out, START + batch.time_ns[i] / 1000);
            out.push(b'\n');
        }
        Ok(())
    }
}
