//! What a written form can hold, as data: the engine reduces requests to it, reports say it, tests compare with it.

use ftlab_core::{OpKind, flags};
use serde::Serialize;

use crate::columns::LARGEST;

/// Flags of all kinds.
pub const ALL_FLAGS: u8 = flags::FUA | flags::SYNC | flags::METADATA;

/// What a form can say about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// By operation: read, write, trim, flush.
    pub operations: [bool; 4],
    /// False in a reference string, where a read looks like a write.
    pub tells_operations: bool,
    /// Bits of [`flags`] that it has for requests with data.
    pub flags: u8,
    /// Bits of [`flags`] that it has for flushes.
    pub flush_flags: u8,
    pub volumes: VolumeNames,
    pub stream: bool,
    pub pc: bool,
    pub pid: bool,
    /// Every request must have one.
    pub needs_pid: bool,
    pub label: LabelNames,
    pub content: Content,
    /// Ids of chunks of 1 KiB beside those of 4 KiB.
    pub chunks: bool,
    /// Nanoseconds of its clock's step; times are rounded down to it. `None`: it has no times.
    pub tick_ns: Option<u64>,
    /// The last time it can say; later ones become this.
    pub latest_ns: u64,
    /// Bytes: offsets are rounded down to a multiple.
    pub address_unit: u32,
    /// Bytes: ends are rounded up so that the length is a multiple.
    pub length_unit: u32,
    /// Bytes of the longest request; a longer one becomes several.
    pub longest: u32,
    /// Requests that end beyond this byte are left out.
    pub end: u64,
}

/// What a form calls volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum VolumeNames {
    /// One address space, no volumes.
    One,
    /// As they are.
    Any,
    /// Whole numbers up to this one.
    Numbers(u64),
    /// `host.disk`, the disk being a whole number.
    HostDisk,
    /// `major.minor` device numbers.
    MajorMinor,
    /// Words of printable ASCII without commas, quotes and blanks.
    Words,
}

/// How a form spells labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LabelNames {
    None,
    /// As they are.
    Any,
    /// Printable ASCII with blanks inside, without commas and double quotes; what else there is becomes `_`.
    Names,
    /// The same without blanks, single quotes and plus signs.
    Words,
}

/// How a form stands to content ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Content {
    None,
    Held,
    /// It has only requests with an id for each of their 4 KiB units.
    Needed,
}

impl Holds {
    /// Every column, exactly.
    pub fn everything() -> Self {
        Holds {
            operations: [true; 4],
            tells_operations: true,
            flags: ALL_FLAGS,
            flush_flags: ALL_FLAGS,
            volumes: VolumeNames::Any,
            stream: true,
            pc: true,
            pid: true,
            needs_pid: false,
            label: LabelNames::Any,
            content: Content::Held,
            chunks: true,
            tick_ns: Some(1),
            latest_ns: u64::MAX,
            address_unit: 1,
            length_unit: 1,
            longest: u32::MAX,
            end: LARGEST,
        }
    }

    /// Reads and writes with exact times on one volume, in bytes, and nothing else; forms add what they have.
    pub fn reads_and_writes() -> Self {
        Holds {
            operations: [true, true, false, false],
            flags: 0,
            flush_flags: 0,
            volumes: VolumeNames::One,
            stream: false,
            pc: false,
            pid: false,
            needs_pid: false,
            label: LabelNames::None,
            content: Content::None,
            chunks: false,
            ..Self::everything()
        }
    }

    /// Addresses and lengths in sectors of 512 bytes.
    pub fn sectors(self) -> Self {
        Holds {
            address_unit: 512,
            length_unit: 512,
            longest: u32::MAX - 511,
            ..self
        }
    }

    /// With this operation as well.
    pub fn and(mut self, op: OpKind) -> Self {
        self.operations[op as usize] = true;
        self
    }

    pub fn has(&self, op: OpKind) -> bool {
        self.operations[op as usize]
    }

    /// The operations as a sentence's end: "reads and writes only".
    pub(super) fn operations_sentence(&self) -> String {
        let names: Vec<String> = OpKind::ALL
            .into_iter()
            .filter(|&op| self.has(op))
            .map(|op| {
                if op == OpKind::Flush {
                    "flushes".to_owned()
                } else {
                    format!("{}s", op.name())
                }
            })
            .collect();
        match names.split_last() {
            Some((last, [])) => format!("{last} only"),
            Some((last, rest)) => format!("{} and {last} only", rest.join(", ")),
            None => "no operations".to_owned(),
        }
    }
}
