//! A request of a ring as a record: what it asks for, when it has been handed in.

use ftlab_record::spool::{NoteKind, Op, op_flags};
use ftlab_record::uring::{Memory, Request, Work};

use super::raw::hand_in;
use super::ring::Ring;
use super::write;
use crate::process::Wiped;
use crate::record::{self, Call};
use crate::signature::CallSite;
use crate::sys;

/// Records a request; false if it is of no interest.
pub(super) fn one(wiped: &Wiped, ring: &Ring, request: &Request, start_ns: u64, at: &CallSite) -> bool {
    if matches!(request.work, Work::Other) {
        return false;
    }
    let Some(fd) = ring.descriptor(request) else {
        wiped.note(NoteKind::FileUnknown, 1);
        return false;
    };
    let call = |op, offset, length| Call {
        op,
        flags: op_flags::ASYNCHRONOUS,
        start_ns,
        offset,
        length,
        at: Some(at),
    };
    match request.work {
        Work::Transfer {
            op,
            offset,
            memory,
            flags,
        } => {
            if op == Op::Read && record::begin_read(fd).is_none() || record::begin(fd).is_none() {
                return false;
            }
            let mut list = [libc::iovec {
                iov_base: core::ptr::null_mut(),
                iov_len: 0,
            }; MOST_PIECES];
            let Some(pieces) = pieces(memory, &mut list) else {
                wiped.note(NoteKind::Unsupported, 1);
                return false;
            };
            let length = pieces
                .iter()
                .fold(0u64, |sum, piece| sum.saturating_add(piece.iov_len as u64));
            let call = Call {
                flags,
                ..call(op, offset.unwrap_or(0), length)
            };
            match offset {
                Some(_) => hand_in(fd, call, pieces),
                None => record::on_descriptor(fd, call, true),
            }
        }
        Work::Sync(op) => record::on_descriptor(fd, call(op, 0, 0), false),
        Work::SyncRange { offset, length } => record::on_descriptor(fd, call(Op::SyncRange, offset, length), false),
        Work::Truncate { size } => record::on_descriptor(fd, call(Op::Truncate, size, record::size(fd)), false),
        Work::Allocate { mode, offset, length } => write::allocated(fd, mode, start_ns, offset, length, at),
        Work::Splice { offset, length } => {
            if record::begin(fd).is_none() {
                return false;
            }
            let flags = op_flags::ASYNCHRONOUS | op_flags::COPIED;
            let call = Call {
                flags,
                ..call(Op::Write, offset.unwrap_or(0), length)
            };
            record::on_descriptor(fd, call, offset.is_none());
        }
        Work::Close => {
            super::descriptors::close_and_forget(fd);
            return false;
        }
        Work::Unrecorded => {
            wiped.note(NoteKind::Unsupported, 1);
            return false;
        }
        Work::Other => return false,
    }
    true
}

/// Pieces of one request that are looked at.
const MOST_PIECES: usize = 64;

fn pieces(memory: Memory, list: &mut [libc::iovec; MOST_PIECES]) -> Option<&[libc::iovec]> {
    let (address, count) = match memory {
        Memory::Bytes { address, length } => {
            list[0] = libc::iovec {
                iov_base: address as *mut libc::c_void,
                iov_len: length as usize,
            };
            return list.get(..1);
        }
        Memory::Pieces { address, count } => (address, usize::try_from(count).ok()?),
    };
    let wanted = list.get_mut(..count)?;
    let len = size_of_val(wanted);
    // SAFETY: the bytes of a list of pieces, which any bytes are.
    let bytes = unsafe { core::slice::from_raw_parts_mut(wanted.as_mut_ptr().cast::<u8>(), len) };
    (sys::read_own(address as usize, bytes) == len).then_some(&*wanted)
}
