//! Writes MSR Cambridge lines; its columns are described with the [reader](crate::formats::msr).
//!
//! Times are rounded down to 100 ns and counted from the start of 2007; the response time is 0. A volume called
//! `host.disk` gives both columns, any other is disk n of the host `ftlab`. The form has neither trims nor flushes.

use std::io::Write;

use ftlab_core::{Batch, OpKind, Result};

use super::{Names, Text, Writer, refused};

/// 1 January 2007 in 100 ns since 1601.
const START: u64 = 128_120_832_000_000_000;

/// A writer of MSR Cambridge lines.
pub struct Msr {
    text: Text,
    names: Vec<String>,
}

impl Msr {
    pub fn new(sink: Box<dyn Write + Send>, names: &Names) -> Self {
        Msr {
            text: Text::new(sink),
            names: names.volumes.clone(),
        }
    }
}

impl Writer for Msr {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        for i in 0..batch.len() {
            let kind = match batch.op[i] {
                OpKind::Read => "Read",
                OpKind::Write => "Write",
                OpKind::Trim | OpKind::Flush => return Err(refused("msr", batch, i, "it has reads and writes only")),
            };
            let volume = batch.volume[i];
            let (time, offset, length) = (START + batch.time_ns[i] / 100, batch.offset[i], batch.length[i]);
            match self
                .names
                .get(usize::from(volume))
                .and_then(|name| name.rsplit_once('.'))
            {
                Some((host, disk)) => {
                    self.text
                        .line(format_args!("{time},{host},{disk},{kind},{offset},{length},0"));
                }
                None => self
                    .text
                    .line(format_args!("{time},ftlab,{volume},{kind},{offset},{length},0")),
            }
        }
        self.text.pass_on()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.text.finish()
    }
}
