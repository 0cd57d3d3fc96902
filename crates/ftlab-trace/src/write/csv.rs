//! Writes CSV with a header line; its columns are described with the [reader](crate::formats::csv).
//!
//! Columns: `time_ns,op,offset,length,flags,volume`, and of `stream`, `pc`, `pid`, `label` and `content` those that the
//! first batch carries. Content ids are hexadecimal, joined by `+`; a label without a name is written as its number.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `columns` | optional columns to write whatever the first batch carries, joined by `+`: `pid+label` | |

use ftlab_core::{Batch, Result, flags};

use super::text::{hexadecimal, number};
use super::{Content, Form, Holds, Keys, LabelNames, Named, VolumeNames, pid_of};

pub const ENDINGS: &[&str] = &["csv"];

const OPTIONAL: [&str; 5] = ["stream", "pc", "pid", "label", "content"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let mut has = [false; 5];
    if let Some(text) = keys.text("columns") {
        for name in text.split('+') {
            let at = OPTIONAL.iter().position(|known| *known == name.trim());
            let at =
                at.ok_or_else(|| keys.wrong("columns", name, "some of stream, pc, pid, label, content, joined by +"))?;
            has[at] = true;
        }
    }
    let holds = Holds {
        volumes: VolumeNames::Words,
        label: LabelNames::Names,
        chunks: false,
        ..Holds::everything()
    };
    Ok((Box::new(Csv { has }), holds))
}

struct Csv {
    /// Which of the optional columns are written.
    has: [bool; 5],
}

impl Form for Csv {
    fn start(&mut self, first: &Batch, _: Named<'_>, holds: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        let carried = [
            !first.stream.is_empty(),
            !first.pc.is_empty(),
            !first.pid.is_empty(),
            !first.label.is_empty(),
            !first.content_end.is_empty(),
        ];
        out.extend_from_slice(b"time_ns,op,offset,length,flags,volume");
        for (i, name) in OPTIONAL.iter().enumerate() {
            self.has[i] |= carried[i];
            if self.has[i] {
                out.push(b',');
                out.extend_from_slice(name.as_bytes());
            }
        }
        out.push(b'\n');
        [holds.stream, holds.pc, holds.pid, ..] = self.has;
        if !self.has[3] {
            holds.label = LabelNames::None;
        }
        if !self.has[4] {
            holds.content = Content::None;
        }
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let [stream, pc, pid, label, content] = self.has;
        for i in 0..batch.len() {
            number(out, batch.time_ns[i]);
            out.push(b',');
            out.extend_from_slice(batch.op[i].name().as_bytes());
            out.push(b',');
            number(out, batch.offset[i]);
            out.push(b',');
            number(out, batch.length[i].into());
            out.push(b',');
            out.extend_from_slice(letters(batch.flags[i]));
            out.push(b',');
            out.extend_from_slice(named.volume(batch, i));
            if stream {
                out.push(b',');
                number(out, batch.stream_of(i).into());
            }
            if pc {
                out.extend_from_slice(b",0x");
                hexadecimal(out, batch.pc_of(i));
            }
            if pid {
                out.push(b',');
                if let id @ 1.. = pid_of(batch, i) {
                    number(out, id.into());
                }
            }
            if label {
                out.push(b',');
                out.extend_from_slice(named.label(batch, i, ""));
            }
            if content {
                out.push(b',');
                for (k, &id) in batch.content_of(i).iter().enumerate() {
                    if k > 0 {
                        out.push(b'+');
                    }
                    hexadecimal(out, id);
                }
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

fn letters(bits: u8) -> &'static [u8] {
    const NAMES: [&[u8]; 8] = [b"", b"F", b"S", b"FS", b"M", b"FM", b"SM", b"FSM"];
    const _: () = assert!(flags::FUA == 1 && flags::SYNC == 2 && flags::METADATA == 4);
    NAMES[usize::from(bits & 7)]
}
