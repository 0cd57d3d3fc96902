//! Writes reference strings in the form of the ARC paper; the columns are described with the
//! [reader](crate::formats::arc).
//!
//! Blocks have 512 bytes. The form has neither times nor operations: reads and writes become references, anything else
//! is left out. The third column is 0, the fourth counts the references from 0.

use ftlab_core::Result;

use super::rows::rows;
use super::text::number;
use super::{Form, Holds, Keys};

pub const ENDINGS: &[&str] = &["lis"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        tells_operations: false,
        tick_ns: None,
        ..Holds::reads_and_writes().sectors()
    };
    let mut request = 0;
    let form = rows(b"", move |row, out| {
        number(out, row.offset() / 512);
        out.push(b' ');
        number(out, row.length() / 512);
        out.extend_from_slice(b" 0 ");
        number(out, request);
        out.push(b'\n');
        request += 1;
    });
    Ok((form, holds))
}
