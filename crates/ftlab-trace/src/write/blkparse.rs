//! Writes blkparse's text in its default format; the columns are described with the
//! [reader](crate::formats::blkparse).
//!
//! One event per request, of CPU 0. A trim is a discard (`D`), a flush an empty request with a flush before it (`FN`). The
//! label stands in the brackets of the process, and `unknown` where there is none. A volume called `major.minor` keeps
//! these numbers, any other is a device of major number 259 (NVMe's).
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `event` | the event that is written: `Q` queued, `D` issued | `D` |

use ftlab_core::{OpKind, Result, flags};

use super::rows::rows;
use super::text::{align_right, fixed, number, padded};
use super::{ALL_FLAGS, Form, Holds, Keys, LabelNames, VolumeNames};

pub const ENDINGS: &[&str] = &["blkparse"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let event = event(keys)?;
    let holds = Holds {
        flags: ALL_FLAGS,
        flush_flags: flags::SYNC,
        volumes: VolumeNames::MajorMinor,
        pid: true,
        needs_pid: true,
        label: LabelNames::Names,
        ..Holds::reads_and_writes().sectors()
    };
    let mut sequence = 0;
    let form = rows(b"", move |row, out| {
        sequence += 1;
        let from = out.len();
        out.extend_from_slice(b"  ");
        out.extend_from_slice(row.volume());
        out.resize(out.len().max(from + 7), b' ');
        out.extend_from_slice(b"  0 ");
        padded(out, sequence, 8);
        out.push(b' ');
        let from = out.len();
        fixed(out, row.time_ns(), 9);
        align_right(out, from, 15);
        out.push(b' ');
        padded(out, row.pid(), 5);
        out.extend_from_slice(&[b' ', b' ', event, b' ', b' ']);
        rwbs(out, row.op(), row.flags());
        out.push(b' ');
        if row.op() != OpKind::Flush {
            number(out, row.offset() / 512);
            out.extend_from_slice(b" + ");
            number(out, row.length() / 512);
            out.push(b' ');
        }
        out.push(b'[');
        out.extend_from_slice(row.label("unknown"));
        out.extend_from_slice(b"]\n");
    });
    Ok((form, holds.and(OpKind::Trim).and(OpKind::Flush)))
}

/// The option `event`.
pub(super) fn event(keys: &mut Keys) -> Result<u8> {
    match keys.text("event").as_deref() {
        None | Some("D") => Ok(b'D'),
        Some("Q") => Ok(b'Q'),
        Some(other) => Err(keys.wrong("event", other, "Q (queued) or D (issued)")),
    }
}

/// Appends the letters of an operation and its flags, as Linux's `blk_fill_rwbs` orders them.
pub(super) fn rwbs(out: &mut Vec<u8>, op: OpKind, bits: u8) {
    out.extend_from_slice(match op {
        OpKind::Read => b"R",
        OpKind::Write => b"W",
        OpKind::Trim => b"D",
        OpKind::Flush => b"FN",
    });
    let data = op != OpKind::Flush;
    for (bit, letter) in [(flags::FUA, b'F'), (flags::SYNC, b'S'), (flags::METADATA, b'M')] {
        if bits & bit != 0 && (data || bit == flags::SYNC) {
            out.push(letter);
        }
    }
}
