//! Writes FIU I/O deduplication traces; the columns are described with the [reader](crate::formats::fiu).
//!
//! Rows of 4 KiB, each with a digest that begins with the content id and goes on with zeros; a longer request becomes
//! several rows, one without content ids is left out. The label stands in the column of the process, and `unknown` where
//! there is none. A volume called `major.minor` keeps these numbers, any other is a device of major number 259.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{digest, number};
use super::{Content, Form, Holds, Keys, LabelNames, VolumeNames};

pub const ENDINGS: &[&str] = &["fiu"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::MajorMinor,
        pid: true,
        needs_pid: true,
        label: LabelNames::Words,
        content: Content::Needed,
        // Readers take nineteen digits.
        latest_ns: u64::MAX / 2,
        longest: 4096,
        ..Holds::reads_and_writes().sectors()
    };
    let form = rows(b"", |row, out| {
        number(out, row.time_ns());
        out.push(b' ');
        number(out, row.pid());
        out.push(b' ');
        out.extend_from_slice(row.label("unknown"));
        out.push(b' ');
        number(out, row.offset() / 512);
        out.push(b' ');
        number(out, row.length() / 512);
        out.extend_from_slice(row.read_or_not(b" R ", b" W "));
        out.extend(row.volume().iter().map(|&b| if b == b',' { b' ' } else { b }));
        out.push(b' ');
        // The row has one unit, and with it one id.
        digest(out, row.content().first().copied().unwrap_or(0));
        out.push(b'\n');
    });
    Ok((form, holds))
}
