//! Requests in mapping units, and what stays known of each unit that is written.

use ftlab_core::{IoContext, IoRequest, Lpn, OpKind, flags};

use crate::contents::ListId;

/// One host request in mapping units.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest<'a> {
    pub op: OpKind,
    pub first: Lpn,
    pub units: u32,
    /// Bytes of the first and of the last unit that the request does not cover.
    pub head_skip: u32,
    pub tail_skip: u32,
    pub context: &'a IoContext<'a>,
}

impl<'a> HostRequest<'a> {
    /// A request for whole units of which nothing else is known.
    pub fn whole(op: OpKind, first: Lpn, units: u32) -> Self {
        HostRequest {
            op,
            first,
            units,
            head_skip: 0,
            tail_skip: 0,
            context: &IoContext::NONE,
        }
    }

    /// A request whose bytes lie on the drive; a mapping unit has `1 << unit_shift` bytes.
    #[inline]
    pub fn of_bytes(io: &IoRequest<'a>, unit_shift: u32) -> Self {
        let unit = 1u64 << unit_shift;
        let length = u64::from(io.length);
        let first = io.offset >> unit_shift;
        let end = (io.offset + length + unit - 1) >> unit_shift;
        HostRequest {
            op: io.op,
            first: Lpn(first as u32),
            units: (end - first) as u32,
            head_skip: (io.offset - first * unit) as u32,
            tail_skip: (end * unit - io.offset - length) as u32,
            context: io.context,
        }
    }

    /// Bytes of data that the request carries; 0 for a trim or a flush.
    pub fn bytes(&self, unit_bytes: u32) -> u64 {
        match self.op {
            OpKind::Read | OpKind::Write => {
                let covered = u64::from(self.units) * u64::from(unit_bytes);
                covered.saturating_sub(u64::from(self.head_skip) + u64::from(self.tail_skip))
            }
            OpKind::Trim | OpKind::Flush => 0,
        }
    }

    /// Force unit access: durable when it completes.
    #[inline]
    pub fn fua(&self) -> bool {
        self.context.flags & flags::FUA != 0
    }

    /// Whether its contents are those of whole units, what it does not cover of them included.
    pub(crate) fn says_whole_units(&self) -> bool {
        self.context.flags & flags::WHOLE_UNITS != 0
    }

    /// Whether unit number `step` of the request is covered in part only.
    #[inline]
    pub fn is_partial(&self, step: u32) -> bool {
        (step == 0 && self.head_skip > 0) || (step + 1 == self.units && self.tail_skip > 0)
    }

    /// What stays known of each of its units; content and contents are added unit by unit.
    pub(crate) fn write_context(&self) -> WriteContext {
        let IoContext {
            flags,
            stream,
            volume,
            pc,
            pid,
            label,
            ..
        } = *self.context;
        WriteContext {
            flags,
            stream,
            volume,
            pc,
            pid,
            label,
            content: None,
            stamp: 0,
            request_first: self.first,
            request_units: self.units,
            contents: None,
        }
    }
}

/// What is known of one unit that is being written, beside its address: it waits with the unit in the write buffer and
/// reaches every policy that is asked about it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteContext {
    /// Bits of [`flags`].
    pub flags: u8,
    /// Host stream or placement id; 0 = none.
    pub stream: u16,
    /// Number of the volume that the request came from.
    pub volume: u16,
    /// Program-context signature; 0 = unknown.
    pub pc: u64,
    pub pid: Option<u32>,
    /// Manual label or file kind.
    pub label: Option<u16>,
    /// Content id of the unit, where the request covers it whole and says what it holds.
    pub content: Option<u64>,
    /// What a read of the unit must find again, in checked runs: the number of the version, or of the content. Else 0.
    pub stamp: u32,
    /// The request that wrote it: its first unit and their number.
    pub request_first: Lpn,
    pub request_units: u32,
    /// Contents of the whole request, kept for drives that deduplicate.
    pub(crate) contents: Option<ListId>,
}

impl WriteContext {
    /// Of a request for one whole unit.
    #[inline(always)]
    pub fn of_unit(lpn: Lpn, content: Option<u64>, io: &IoContext<'_>) -> Self {
        WriteContext {
            flags: io.flags,
            stream: io.stream,
            volume: io.volume,
            pc: io.pc,
            pid: io.pid,
            label: io.label,
            content,
            stamp: 0,
            request_first: lpn,
            request_units: 1,
            contents: None,
        }
    }

    /// Nothing is known.
    pub const NOBODY: WriteContext = WriteContext {
        flags: 0,
        stream: 0,
        volume: 0,
        pc: 0,
        pid: None,
        label: None,
        content: None,
        stamp: 0,
        request_first: Lpn(0),
        request_units: 0,
        contents: None,
    };

    /// The same where nobody asks who writes.
    pub fn of_unit_alone(lpn: Lpn, content: u64) -> Self {
        WriteContext {
            content: Some(content),
            request_first: lpn,
            request_units: 1,
            ..WriteContext::NOBODY
        }
    }

    /// The LPN after the last one of its request.
    #[inline]
    pub fn request_end(&self) -> u32 {
        self.request_first.0 + self.request_units
    }

    /// Whether `lpn` is the first unit of its request.
    #[inline]
    pub fn begins_with(&self, lpn: Lpn) -> bool {
        lpn == self.request_first
    }
}

/// How a request ended, as far as the FTL is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    Done,
    /// No free unit can be made: the drive is worn out (or was built too full) and takes no more writes.
    EndOfLife,
}
