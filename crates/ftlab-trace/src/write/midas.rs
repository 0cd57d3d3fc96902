//! Writes MiDAS traces; the columns are described with the [reader](crate::formats::midas).
//!
//! Times are in seconds with nine decimals, addresses in 4 KiB, sizes in bytes. The column of streams is written when the
//! first batch carries them.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named};

pub const ENDINGS: &[&str] = &["midas"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        stream: true,
        address_unit: 4096,
        ..Holds::reads_and_writes()
    };
    Ok((Box::new(Midas { streams: false }), holds.and(OpKind::Trim)))
}

struct Midas {
    streams: bool,
}

impl Form for Midas {
    fn start(&mut self, first: &Batch, _: Named<'_>, holds: &mut Holds, _: &mut Vec<u8>) -> Result<()> {
        self.streams = !first.stream.is_empty();
        holds.stream = self.streams;
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            fixed(out, batch.time_ns[i], 9);
            out.extend_from_slice(match batch.op[i] {
                OpKind::Read => b" 0 ",
                OpKind::Trim => b" 3 ",
                OpKind::Write | OpKind::Flush => b" 1 ",
            });
            number(out, batch.offset[i] / 4096);
            out.push(b' ');
            number(out, batch.length[i].into());
            if self.streams {
                out.push(b' ');
                number(out, batch.stream_of(i).into());
            }
            out.push(b'\n');
        }
        Ok(())
    }
}
