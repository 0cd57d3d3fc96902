//! Writes the Nexus 5 traces' form; the columns are described with the [reader](crate::formats::nexus5).
//!
//! Times are counted from 1 April 2014; all four of a request are its arrival, and it did not wait.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{fixed, number};
use super::{Form, Holds, Keys};

pub const ENDINGS: &[&str] = &["nexus5"];

/// 1 April 2014 in ns since 1970.
const START: u64 = 1_396_310_400_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        latest_ns: u64::MAX - START,
        ..Holds::reads_and_writes().sectors()
    };
    let form = rows(b"", |row, out| {
        number(out, row.offset() / 512);
        out.extend_from_slice(b"\t\t");
        number(out, row.length() / 512);
        out.extend_from_slice(b"\t\t");
        number(out, row.length());
        // Bit 0: a write. Bit 2: it did not wait.
        out.extend_from_slice(row.read_or_not(b"\t\t4", b"\t\t5"));
        for _ in 0..4 {
            out.extend_from_slice(b"\t\t");
            fixed(out, START + row.time_ns(), 9);
        }
        out.push(b'\n');
    });
    Ok((form, holds))
}
