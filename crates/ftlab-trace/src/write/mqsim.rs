//! Writes MQSim ASCII with times in ns; its columns are described with the [reader](crate::formats::mqsim).
//!
//! The form has neither trims nor flushes, and counts in sectors of 512 bytes.

use std::io::Write;

use ftlab_core::{Batch, OpKind, Result};

use super::{Text, Writer, refused};

/// A writer of MQSim ASCII.
pub struct Mqsim {
    text: Text,
}

impl Mqsim {
    pub fn new(sink: Box<dyn Write + Send>) -> Self {
        Mqsim { text: Text::new(sink) }
    }
}

impl Writer for Mqsim {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        for i in 0..batch.len() {
            let code = match batch.op[i] {
                OpKind::Write => 0,
                OpKind::Read => 1,
                OpKind::Trim | OpKind::Flush => return Err(refused("mqsim", batch, i, "it has reads and writes only")),
            };
            let (offset, length) = (batch.offset[i], batch.length[i]);
            if !offset.is_multiple_of(512) || !length.is_multiple_of(512) {
                return Err(refused("mqsim", batch, i, "it counts in sectors of 512 bytes"));
            }
            let (time, volume) = (batch.time_ns[i], batch.volume[i]);
            self.text
                .line(format_args!("{time} {volume} {} {} {code}", offset / 512, length / 512));
        }
        self.text.pass_on()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.text.finish()
    }
}
