//! Writes reference strings in the form of the ARC paper; the columns are described with the
//! [reader](crate::formats::arc).
//!
//! Blocks have 512 bytes. There are neither times nor operations in it: reads and writes become references, anything else
//! is left out. The third column is 0, the fourth counts the references from 0.

use ftlab_core::{Batch, Result};

use super::text::number;
use super::{Form, Holds, Keys, Named};

pub const ENDINGS: &[&str] = &["lis"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        tells_operations: false,
        tick_ns: None,
        ..Holds::reads_and_writes().sectors()
    };
    Ok((Box::new(Arc { request: 0 }), holds))
}

struct Arc {
    request: u64,
}

impl Form for Arc {
    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            number(out, batch.offset[i] / 512);
            out.push(b' ');
            number(out, u64::from(batch.length[i] / 512));
            out.extend_from_slice(b" 0 ");
            number(out, self.request);
            out.push(b'\n');
            self.request += 1;
        }
        Ok(())
    }
}
