//! Calls that move bytes between a descriptor's file and memory.

use ftlab_record::spool::Op;

use super::Real;
use crate::accounts;
use crate::record::{self, Call};
use crate::signature::CallSite;

/// Makes the call and records the bytes that it says it moved, at `offset`, or where the descriptor stands.
pub fn transfer(
    op: Op,
    fd: i32,
    offset: Option<usize>,
    flags: u16,
    arguments: [usize; 6],
    at: &CallSite,
    real: &Real,
) -> isize {
    let begun = match op {
        Op::Read => record::begin_read(fd),
        _ => record::begin(fd),
    };
    let Some(start_ns) = begun else {
        let done = real.call(arguments);
        if op == Op::Write {
            accounts::pass(done);
        }
        return done;
    };
    let done = real.call(arguments);
    if op == Op::Write {
        accounts::pass(done);
    }
    if done > 0 {
        let call = Call {
            op,
            flags,
            start_ns,
            offset: offset.unwrap_or(0) as u64,
            length: done as u64,
            at: Some(at),
        };
        match offset {
            Some(_) => record::at_offset(fd, call),
            None => record::on_descriptor(fd, call, true),
        }
    }
    done
}
