//! Writes CSV with a header line; its columns are described with the [reader](crate::formats::csv).
//!
//! Columns: `time_ns,op,offset,length,flags,volume`, and `stream`, `pc`, `pid` where the first batch carries them.
//! Labels and content ids have no place here.

use std::io::Write;

use ftlab_core::{Batch, Result, flags};

use super::{Names, Text, Writer};

/// A writer of CSV.
pub struct Csv {
    text: Text,
    names: Vec<String>,
    /// Whether stream, pc and pid are written; settled by the first batch.
    optional: Option<[bool; 3]>,
}

impl Csv {
    pub fn new(sink: Box<dyn Write + Send>, names: &Names) -> Self {
        Csv {
            text: Text::new(sink),
            names: names.volumes.clone(),
            optional: None,
        }
    }

    fn header(&mut self, batch: &Batch) -> [bool; 3] {
        let has = [!batch.stream.is_empty(), !batch.pc.is_empty(), !batch.pid.is_empty()];
        let mut line = "time_ns,op,offset,length,flags,volume".to_owned();
        for (name, present) in [",stream", ",pc", ",pid"].iter().zip(has) {
            if present {
                line.push_str(name);
            }
        }
        self.text.line(format_args!("{line}"));
        self.optional = Some(has);
        has
    }
}

impl Writer for Csv {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let has = match self.optional {
            Some(has) => has,
            None => self.header(batch),
        };
        for i in 0..batch.len() {
            let volume = usize::from(batch.volume[i]);
            let letters = letters(batch.flags[i]);
            let (time, op, offset, length) = (batch.time_ns[i], batch.op[i].name(), batch.offset[i], batch.length[i]);
            let mut rest = String::new();
            if has[0] {
                rest += &format!(",{}", batch.stream_of(i));
            }
            if has[1] {
                rest += &format!(",{:#x}", batch.pc_of(i));
            }
            if has[2] {
                rest += &format!(",{}", batch.pid.get(i).copied().unwrap_or(0));
            }
            match self.names.get(volume) {
                Some(name) => {
                    self.text
                        .line(format_args!("{time},{op},{offset},{length},{letters},{name}{rest}"));
                }
                None => {
                    self.text
                        .line(format_args!("{time},{op},{offset},{length},{letters},{volume}{rest}"));
                }
            }
        }
        self.text.pass_on()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.optional.is_none() {
            self.header(&Batch::default());
        }
        self.text.finish()
    }
}

fn letters(bits: u8) -> &'static str {
    const NAMES: [&str; 8] = ["", "F", "S", "FS", "M", "FM", "SM", "FSM"];
    const _: () = assert!(flags::FUA == 1 && flags::SYNC == 2 && flags::METADATA == 4);
    NAMES[usize::from(bits & 7)]
}
