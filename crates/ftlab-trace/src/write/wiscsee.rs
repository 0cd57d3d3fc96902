//! Writes WiscSee's event lists; the columns are described with the [reader](crate::formats::wiscsee).
//!
//! One line D (issued) per request. Of the flags only SYNC has a place.

use ftlab_core::{Batch, OpKind, Result, flags};

use super::text::{fixed, number};
use super::{Form, Holds, Keys, Named, pid_of};

pub const ENDINGS: &[&str] = &["wiscsee", "events"];

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        flags: flags::SYNC,
        flush_flags: flags::SYNC,
        pid: true,
        ..Holds::reads_and_writes()
    };
    let form = Wiscsee { last_ns: None };
    Ok((Box::new(form), holds.and(OpKind::Trim).and(OpKind::Flush)))
}

struct Wiscsee {
    last_ns: Option<u64>,
}

impl Form for Wiscsee {
    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            let time = batch.time_ns[i];
            number(out, pid_of(batch, i).into());
            out.extend_from_slice(match batch.op[i] {
                OpKind::Read => b" D read ",
                OpKind::Write => b" D write ",
                OpKind::Trim => b" D discard ",
                OpKind::Flush => b" D flush ",
            });
            number(out, batch.offset[i]);
            out.push(b' ');
            number(out, batch.length[i].into());
            out.push(b' ');
            fixed(out, time, 9);
            out.push(b' ');
            fixed(out, time - self.last_ns.unwrap_or(time).min(time), 9);
            self.last_ns = Some(time);
            out.extend_from_slice(if batch.flags[i] & flags::SYNC != 0 {
                b" True\n"
            } else {
                b" False\n"
            });
        }
        Ok(())
    }
}
