//! A record of blktrace: where its fields are, and what they mean.

use ftlab_core::{OpKind, flags};

use super::super::block_events::Rwbs;
use crate::records::bytes_at;

pub(super) const MAGIC: u32 = 0x6561_7400;
/// Categories, in the high half of the action.
pub(super) const WRITE: u64 = 1 << 17;
pub(super) const FLUSH: u64 = 1 << 18;
pub(super) const SYNC: u64 = 1 << 19;
pub(super) const PASSED_THROUGH: u64 = 1 << 25;
pub(super) const NOTE: u64 = 1 << 26;
pub(super) const AHEAD: u64 = 1 << 27;
pub(super) const META: u64 = 1 << 28;
pub(super) const DISCARD: u64 = 1 << 29;
pub(super) const DRIVER_DATA: u64 = 1 << 30;
pub(super) const FUA: u64 = 1 << 31;
/// In an event or a note: the data begin with a control group's id of 8 bytes.
pub(super) const CGROUP: u64 = 1 << 8;

/// Letters of the events, by number, as blkparse has them; a timer's unplug counts as an unplug.
pub(super) const LETTERS: [u8; 18] = *b"?QMFGSRDCPUUIXBAad";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    pub fn u16(self, record: &[u8], at: usize) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes_at(record, at)),
            Order::Big => u16::from_be_bytes(bytes_at(record, at)),
        }
    }

    #[inline]
    pub fn u32(self, record: &[u8], at: usize) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes_at(record, at)),
            Order::Big => u32::from_be_bytes(bytes_at(record, at)),
        }
    }

    #[inline]
    pub fn u64(self, record: &[u8], at: usize) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes_at(record, at)),
            Order::Big => u64::from_be_bytes(bytes_at(record, at)),
        }
    }
}

/// The fields of a record that are used.
pub(super) struct Event<'a> {
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u64,
    pub pid: u32,
    pub device: u32,
    pub data: &'a [u8],
}

/// What stands at the start of some bytes.
pub(super) enum Next<'a> {
    /// A record, and its length with its data.
    Event(Event<'a>, usize),
    /// A mark, but the record or its data go on behind these bytes.
    More,
    NoMark,
}

impl Order {
    /// The version of the record that begins here.
    #[inline]
    pub fn version(self, bytes: &[u8]) -> Option<u32> {
        let word = self.u32(bytes, 0);
        (word & 0xffff_ff00 == MAGIC).then_some(word & 0xff)
    }

    #[inline]
    pub fn next(self, bytes: &[u8]) -> Next<'_> {
        let size = match self.version(bytes) {
            Some(7) => 48,
            Some(8) => 64,
            _ => return Next::NoMark,
        };
        let Some(record) = bytes.get(..size) else {
            return Next::More;
        };
        let (action, pid, tail) = match size {
            48 => (self.u32(record, 28).into(), self.u32(record, 32), 36),
            _ => (self.u64(record, 32), self.u32(record, 28), 40),
        };
        let length = size + usize::from(self.u16(record, tail + 10));
        let Some(data) = bytes.get(size..length) else {
            return Next::More;
        };
        let event = Event {
            time: self.u64(record, 8),
            sector: self.u64(record, 16),
            bytes: self.u32(record, 24),
            action,
            pid,
            device: self.u32(record, tail),
            data,
        };
        Next::Event(event, length)
    }

    /// Where the next record that can be read may begin, behind the first byte; the last bytes may begin a mark.
    pub fn resume(self, bytes: &[u8]) -> usize {
        let marks = |window: &[u8]| matches!(self.version(window), Some(7 | 8));
        let found = bytes.windows(4).skip(1).position(marks);
        found.map_or(bytes.len().saturating_sub(3).max(1), |at| at + 1)
    }

    /// The order of the first mark in `bytes`.
    pub fn of(bytes: &[u8]) -> Option<(Self, u32)> {
        bytes.windows(4).find_map(|window| {
            let order = [Order::Little, Order::Big].into_iter();
            { order }.find_map(|order| {
                order
                    .version(window)
                    .filter(|v| (5..=8).contains(v))
                    .map(|v| (order, v))
            })
        })
    }
}

impl Event<'_> {
    /// The letter of the event; `?` where there is none.
    #[inline]
    pub fn letter(&self) -> u8 {
        let number = (self.action & 0xffff & !CGROUP) as usize;
        LETTERS.get(number).copied().unwrap_or(b'?')
    }

    /// The name of a process, if this is the note that gives it; notes of the time and messages have other numbers.
    pub fn process_name(&self) -> Option<String> {
        if self.action & 0xffff & !CGROUP != 0 {
            return None;
        }
        let name = match self.action & CGROUP {
            0 => self.data,
            _ => self.data.get(8..)?,
        };
        let name = &name[..name.iter().position(|&b| b == 0).unwrap_or(name.len()).min(64)];
        let shown = |name: &[u8]| String::from_utf8_lossy(name).replace(|c: char| c.is_control(), " ");
        (!name.is_empty()).then(|| shown(name))
    }

    /// What is asked for, as RWBS letters would say it.
    #[inline]
    pub fn rwbs(&self) -> Rwbs {
        let has = |bit: u64| self.action & bit != 0;
        let op = if has(DISCARD) {
            Some(OpKind::Trim)
        } else if has(WRITE) {
            Some(OpKind::Write)
        } else {
            (self.bytes > 0).then_some(OpKind::Read)
        };
        let sync = has(SYNC) && !(has(AHEAD) && op == Some(OpKind::Read));
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        Rwbs {
            op,
            flush_before: has(FLUSH),
            flags: flag(has(FUA), flags::FUA) | flag(sync, flags::SYNC) | flag(has(META), flags::METADATA),
        }
    }
}
