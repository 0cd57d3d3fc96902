//! Writes FIU I/O deduplication traces; the columns are described with the [reader](crate::formats::fiu).
//!
//! Rows of 4 KiB, each with a digest that begins with the content id and goes on with zeros; a longer request becomes
//! several rows, one without content ids is left out. The label stands in the column of the process, and `unknown` where
//! there is none. A volume called `major.minor` keeps these numbers, any other is a device of major number 259.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{digest, number};
use super::{Content, Form, Holds, Keys, LabelNames, Named, VolumeNames, pid_of};

pub const ENDINGS: &[&str] = &["fiu"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::MajorMinor,
        pid: true,
        label: LabelNames::Words,
        content: Content::Needed,
        // Readers take nineteen digits.
        latest_ns: u64::MAX / 2,
        longest: 4096,
        ..Holds::reads_and_writes().sectors()
    };
    Ok((Box::new(Fiu), holds))
}

struct Fiu;

impl Form for Fiu {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            number(out, batch.time_ns[i]);
            out.push(b' ');
            number(out, pid_of(batch, i).into());
            out.push(b' ');
            out.extend_from_slice(named.label(batch, i, "unknown"));
            out.push(b' ');
            number(out, batch.offset[i] / 512);
            out.push(b' ');
            number(out, u64::from(batch.length[i] / 512));
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b" R " } else { b" W " });
            let device = named.volume(batch, i);
            out.extend(device.iter().map(|&b| if b == b',' { b' ' } else { b }));
            out.push(b' ');
            // The row has one unit, and with it one id.
            digest(out, batch.content_of(i).first().copied().unwrap_or(0));
            out.push(b'\n');
        }
        Ok(())
    }
}
