//! Writes the Pixel 6a traces' CSV; the columns are described with the [reader](crate::formats::pixel6a).
//!
//! Times are rounded down to 1 µs. The label and the process id stand in the first column; `<...>`, as the tracer writes
//! for a process it cannot name, where there is no label.

use ftlab_core::{Batch, OpKind, Result};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, LabelNames, Named, VolumeNames, pid_of};

pub const ENDINGS: &[&str] = &["pixel6a"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Words,
        pid: true,
        label: LabelNames::Names,
        tick_ns: Some(1000),
        ..Holds::reads_and_writes().sectors()
    };
    Ok((Box::new(Pixel6a), holds))
}

struct Pixel6a;

impl Form for Pixel6a {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        // The first name is misspelt there.
        out.extend_from_slice(b"proces,device,rw_flag,sector,size,timestamp\n");
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            out.extend_from_slice(named.label(batch, i, "<...>"));
            out.push(b'-');
            number(out, pid_of(batch, i).into());
            out.push(b',');
            out.extend_from_slice(named.volume(batch, i));
            out.extend_from_slice(if batch.op[i] == OpKind::Read { b",R," } else { b",W," });
            number(out, batch.offset[i] / 512);
            out.push(b',');
            number(out, u64::from(batch.length[i] / 512));
            out.push(b',');
            fixed(out, batch.time_ns[i] / 1000, 6);
            out.push(b'\n');
        }
        Ok(())
    }
}
