//! Writes the Pixel 6a traces' CSV; the columns are described with the [reader](crate::formats::pixel6a).
//!
//! Times are rounded down to 1 µs. The label and the process id stand in the first column; `<...>`, as the tracer writes
//! for a process it cannot name, where there is no label.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{fixed, number};
use super::{Form, Holds, Keys, LabelNames, VolumeNames};

pub const ENDINGS: &[&str] = &["pixel6a"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Words,
        pid: true,
        needs_pid: true,
        label: LabelNames::Names,
        tick_ns: Some(1000),
        ..Holds::reads_and_writes().sectors()
    };
    // The first name is misspelt there.
    let form = rows(b"proces,device,rw_flag,sector,size,timestamp\n", |row, out| {
        out.extend_from_slice(row.label("<...>"));
        out.push(b'-');
        number(out, row.pid());
        out.push(b',');
        out.extend_from_slice(row.volume());
        out.extend_from_slice(row.read_or_not(b",R,", b",W,"));
        number(out, row.offset() / 512);
        out.push(b',');
        number(out, row.length() / 512);
        out.push(b',');
        fixed(out, row.time_ns() / 1000, 6);
        out.push(b'\n');
    });
    Ok((form, holds))
}
