//! Writes the Nexus 5 traces' form; the columns are described with the [reader](crate::formats::nexus5).
//!
//! Times are counted from 1 April 2014; all four of a request are its arrival, and it did not wait.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named};

pub const ENDINGS: &[&str] = &["nexus5"];

/// 1 April 2014 in ns since 1970.
const START: u64 = 1_396_310_400_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        latest_ns: u64::MAX - START,
        ..Holds::reads_and_writes().sectors()
    };
    Ok((Box::new(Nexus5), holds))
}

struct Nexus5;

impl Form for Nexus5 {
    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            number(out, batch.offset[i] / 512);
            out.extend_from_slice(b"\t\t");
            number(out, u64::from(batch.length[i] / 512));
            out.extend_from_slice(b"\t\t");
            number(out, batch.length[i].into());
            // Bit 0: a write. Bit 2: it did not wait.
            out.extend_from_slice(if batch.op[i] == OpKind::Read {
                b"\t\t4"
            } else {
                b"\t\t5"
            });
            for _ in 0..4 {
                out.extend_from_slice(b"\t\t");
                fixed(out, START + batch.time_ns[i], 9);
            }
            out.push(b'\n');
        }
        Ok(())
    }
}
