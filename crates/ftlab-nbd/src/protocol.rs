//! The NBD protocol on the wire: numbers, headers, and nothing that waits or decides.
//!
//! # Source
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, fixed newstyle with structured replies.

pub const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the server's greeting and of the client's answer.
pub mod greeting {
    pub const FIXED_NEWSTYLE: u16 = 1;
    pub const NO_ZEROES: u16 = 2;
}

/// Options of the negotiation.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Answers to options.
pub mod answer {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const UNSUPPORTED: u32 = 1 << 31 | 1;
    pub const INVALID: u32 = 1 << 31 | 3;
    pub const UNKNOWN: u32 = 1 << 31 | 6;
    pub const TOO_BIG: u32 = 1 << 31 | 9;
}

/// What an answer to INFO and GO tells.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub mod transmission {
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a command.
pub mod command_flag {
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Errors of a command, numbered as Linux numbers them.
pub mod error {
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const EINVAL: u32 = 22;
    pub const ENOSPC: u32 = 28;
    pub const ENOTSUP: u32 = 95;
    pub const ESHUTDOWN: u32 = 108;

    pub fn of(failure: ftlab_core::faults::Failure) -> u32 {
        match failure {
            ftlab_core::faults::Failure::Io => EIO,
            ftlab_core::faults::Failure::NoSpace => ENOSPC,
            ftlab_core::faults::Failure::ReadOnly => EPERM,
        }
    }
}

/// Kinds of chunks of a structured reply, and the flag of the last one.
pub mod chunk {
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// States of a range in the context `base:allocation`.
pub mod allocation {
    pub const CONTEXT: &str = "base:allocation";
    /// Its number in replies.
    pub const ID: u32 = 1;
    pub const HOLE: u32 = 1;
    pub const ZERO: u32 = 2;
}

/// Longest data of one read or write.
pub const MOST_PAYLOAD: u32 = 32 << 20;
/// Longest data of an option: names have at most 4096 bytes, and so a few of them fit.
pub const MOST_OPTION: u32 = 64 << 10;
/// What requests must be multiples of.
pub const SECTOR: u64 = 512;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    BlockStatus,
    /// Of a number that no server knows, or that was not offered.
    Other(u16),
}

/// The head of a request, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub flags: u16,
    pub command: Command,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

pub const REQUEST_BYTES: usize = 28;

impl RequestHead {
    /// `None`: the magic number is wrong, so nothing that follows can be trusted.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(RequestHead {
            flags: fields.u16()?,
            command: match fields.u16()? {
                0 => Command::Read,
                1 => Command::Write,
                2 => Command::Disconnect,
                3 => Command::Flush,
                4 => Command::Trim,
                6 => Command::WriteZeroes,
                7 => Command::BlockStatus,
                other => Command::Other(other),
            },
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }

    /// The error that the request earns on an export of `size` bytes before anything is done; the payload of a write has been
    /// taken off the wire by then.
    pub fn fault(&self, size: u64) -> Option<u32> {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        let known = match self.command {
            Command::Read => FUA | DF,
            Command::Write | Command::Flush | Command::Trim => FUA,
            Command::WriteZeroes => FUA | NO_HOLE | FAST_ZERO,
            Command::BlockStatus => FUA | REQ_ONE,
            Command::Disconnect => return None,
            Command::Other(_) => return Some(error::EINVAL),
        };
        if self.flags & !known != 0 {
            return Some(error::EINVAL);
        }
        if self.command == Command::Flush {
            return (self.offset != 0 || self.length != 0).then_some(error::EINVAL);
        }
        let aligned = self.offset.is_multiple_of(SECTOR) && u64::from(self.length).is_multiple_of(SECTOR);
        if !aligned || self.length == 0 {
            return Some(error::EINVAL);
        }
        if self.command == Command::Read && self.length > MOST_PAYLOAD {
            return Some(error::EINVAL);
        }
        let beyond = self
            .offset
            .checked_add(u64::from(self.length))
            .is_none_or(|end| end > size);
        match (beyond, self.command) {
            (false, _) => None,
            (true, Command::Write | Command::WriteZeroes) => Some(error::ENOSPC),
            (true, _) => Some(error::EINVAL),
        }
    }
}

/// Big-endian numbers from a slice; `None` when it is used up.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// A text behind its length.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(command: u16, flags: u16, offset: u64, length: u32) -> RequestHead {
        let mut bytes = Vec::from(REQUEST_MAGIC.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(7u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        RequestHead::parse(&bytes.try_into().unwrap()).unwrap()
    }

    #[test]
    fn a_head_is_read_field_by_field() {
        let read = head(0, command_flag::DF, 512, 1024);
        assert_eq!(
            (read.command, read.cookie, read.offset, read.length),
            (Command::Read, 7, 512, 1024)
        );
        assert_eq!(head(5, 0, 0, 512).command, Command::Other(5));
        assert_eq!(RequestHead::parse(&[0; REQUEST_BYTES]), None);
    }

    #[test]
    fn what_no_drive_can_do_is_refused() {
        let size = 1 << 20;
        for (command, flags, offset, length, fault) in [
            (0, 0, 0, 512, None),
            (0, 0, size - 512, 512, None),
            (0, 0, size, 512, Some(error::EINVAL)),
            (1, 0, size, 512, Some(error::ENOSPC)),
            (1, 0, u64::MAX - 511, 512, Some(error::ENOSPC)),
            (0, 0, 1, 512, Some(error::EINVAL)),
            (0, 0, 0, 513, Some(error::EINVAL)),
            (0, 0, 0, 0, Some(error::EINVAL)),
            (0, command_flag::NO_HOLE, 0, 512, Some(error::EINVAL)),
            (3, 0, 0, 0, None),
            (3, 0, 0, 512, Some(error::EINVAL)),
            (6, command_flag::NO_HOLE | command_flag::FUA, 0, 512, None),
            (9, 0, 0, 512, Some(error::EINVAL)),
        ] {
            assert_eq!(
                head(command, flags, offset, length).fault(size),
                fault,
                "{command} at {offset}"
            );
        }
    }
}
