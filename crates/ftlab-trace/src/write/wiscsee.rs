//! Writes WiscSee's event lists; the columns are described with the [reader](crate::formats::wiscsee).
//!
//! One line D (issued) per request. Of the flags only SYNC has a place.

use ftlab_core::{OpKind, Result, flags};

use super::rows::rows;
use super::text::{fixed, number};
use super::{Form, Holds, Keys};

pub const ENDINGS: &[&str] = &["wiscsee", "events"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        flags: flags::SYNC,
        flush_flags: flags::SYNC,
        pid: true,
        needs_pid: true,
        ..Holds::reads_and_writes()
    };
    let mut last_ns = None;
    let form = rows(b"", move |row, out| {
        let time = row.time_ns();
        number(out, row.pid());
        out.extend_from_slice(match row.op() {
            OpKind::Read => b" D read ",
            OpKind::Write => b" D write ",
            OpKind::Trim => b" D discard ",
            OpKind::Flush => b" D flush ",
        });
        number(out, row.offset());
        out.push(b' ');
        number(out, row.length());
        out.push(b' ');
        fixed(out, time, 9);
        out.push(b' ');
        fixed(out, time - last_ns.replace(time).unwrap_or(time).min(time), 9);
        let sync = row.flags() & flags::SYNC != 0;
        out.extend_from_slice(if sync { b" True\n" } else { b" False\n" });
    });
    Ok((form, holds.and(OpKind::Trim).and(OpKind::Flush)))
}
