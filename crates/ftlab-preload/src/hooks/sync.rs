//! Calls that ask for data to reach the device.

use ftlab_record::spool::Op;

use super::{Real, hooks};
use crate::record::{self, Call};
use crate::signature::CallSite;

hooks! {
    fsync => |arguments, at, real| whole(Op::Fsync, arguments, at, real);
    fdatasync => |arguments, at, real| whole(Op::Fdatasync, arguments, at, real);
    sync_file_range => range;
    syncfs => |arguments, at, real| everything(arguments, at, real);
    sync => |arguments, at, real| everything(arguments, at, real);
}

pub fn whole(op: Op, arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let fd = arguments[0] as i32;
    let Some(start_ns) = record::begin(fd) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        record::on_descriptor(
            fd,
            Call {
                op,
                flags: 0,
                start_ns,
                offset: 0,
                length: 0,
                at: Some(at),
            },
            false,
        );
    }
    done
}

pub fn range(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let [fd, offset, length, ..] = arguments;
    let Some(start_ns) = record::begin(fd as i32) else {
        return real.call(arguments);
    };
    let done = real.call(arguments);
    if done as i32 == 0 {
        let call = Call {
            op: Op::SyncRange,
            flags: 0,
            start_ns,
            offset: offset as u64,
            length: length as u64,
            at: Some(at),
        };
        record::on_descriptor(fd as i32, call, false);
    }
    done
}

pub fn everything(arguments: [usize; 6], at: &CallSite, real: &Real) -> isize {
    let start_ns = crate::sys::now();
    let done = real.call(arguments);
    record::on_everything(Call {
        op: Op::Sync,
        flags: 0,
        start_ns,
        offset: 0,
        length: 0,
        at: Some(at),
    });
    done
}
