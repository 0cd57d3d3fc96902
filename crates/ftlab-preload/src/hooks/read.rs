//! Reads, if they are asked for.
//!
//! # Not modelled
//! Reads of the loader, which are made before any library is there or within it.

use ftlab_record::spool::Op;

use super::transfer::transfer;
use super::{Real, hooks};
use crate::signature::CallSite;

hooks! {
    read => at_position;
    __read_chk => at_position;
    pread => at_offset;
    pread64 => at_offset;
    __pread_chk => at_offset;
    __pread64_chk => at_offset;
    readv => at_position;
    preadv => at_offset;
    preadv64 => at_offset;
    preadv2 => with_flags;
    preadv64v2 => with_flags;
}

pub fn at_position(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(Op::Read, arguments[0] as i32, None, 0, arguments, at, real)
}

/// The offset is the fourth argument.
pub fn at_offset(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    transfer(
        Op::Read,
        arguments[0] as i32,
        Some(arguments[3]),
        0,
        arguments,
        at,
        real,
    )
}

/// Offset −1 means the descriptor's position.
pub fn with_flags(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    if arguments[3] as isize == -1 {
        at_position(arguments, at, real)
    } else {
        at_offset(arguments, at, real)
    }
}
