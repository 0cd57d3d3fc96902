//! Writes the hash-carrying Android rows; the columns are described with the [reader](crate::formats::android).
//!
//! A request of n units of 4 KiB takes n rows that differ in their digest only, which begins with the content id and goes on
//! with zeros. Requests without content ids are left out. Times are counted from the start of 2017; the label stands in the
//! column of the process, and `unknown` where there is none.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{digest, fixed, number};
use super::{Content, Form, Holds, Keys, LabelNames, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["android", "tsv"];

/// 1 January 2017 in ns since 1970.
const START: u64 = 1_483_228_800_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Words,
        label: LabelNames::Names,
        content: Content::Needed,
        latest_ns: u64::MAX - START,
        address_unit: 512,
        ..Holds::reads_and_writes()
    };
    Ok((Box::new(Android), holds))
}

struct Android;

impl Form for Android {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut row = Vec::new();
        for i in 0..batch.len() {
            row.clear();
            fixed(&mut row, START + batch.time_ns[i], 9);
            row.extend_from_slice(if batch.op[i] == OpKind::Read {
                b"\tR\t"
            } else {
                b"\tW\t"
            });
            number(&mut row, batch.offset[i] / 512);
            row.push(b'\t');
            number(&mut row, batch.length[i].into());
            row.push(b'\t');
            row.extend_from_slice(named.label(batch, i, "unknown"));
            row.push(b'\t');
            row.extend_from_slice(named.volume(batch, i));
            row.push(b'\t');
            let units = batch.length[i].div_ceil(4096) as usize;
            for &id in batch.content_of(i).iter().take(units) {
                out.extend_from_slice(&row);
                digest(out, id);
                out.push(b'\n');
            }
        }
        Ok(())
    }
}
