//! A recording: the calls of a program on its files, in order of time, with who made them and what was written.
//!
//! # Origin
//! ftlab, version 1, or 2 where calls give write-lifetime hints or chunks of less than 1 KiB have ids. All numbers are little-endian.
//! # Columns
//! | part | bytes |
//! | --- | --- |
//! | magic `89 46 54 4c 52 45 43 0a` | 8 |
//! | version, 1 or 2 | 4 |
//! | a block with the tables ([`Tables`]) as JSON | |
//! | blocks of calls ([`columns`]) | |
//! | the end: a block of 0 calls with their number as a u64 | |
//!
//! | block | bytes |
//! | --- | --- |
//! | calls n; 0 in the first block and in the end | 4 |
//! | length before compression | 4 |
//! | length | 4 |
//! | CRC-32 of the 12 bytes before and of what follows | 4 |
//! | the columns, compressed by zstd | as given |

mod columns;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use self::columns::Calls;
pub use self::read::Reader;
pub use self::write::Writer;
pub use crate::spool::lifetime_hints::LARGEST as LARGEST_HINT;

pub const MAGIC: [u8; 8] = *b"\x89FTLREC\n";
/// Of recordings that every reader understands.
const VERSION: u32 = 1;
/// Of recordings with hints, or with ids of chunks of less than 1 KiB.
const EXTENDED: u32 = 2;
const BLOCK_HEADER: usize = 16;

/// CRC-32 of a block's header and what follows it.
fn checksum(head: &[u8], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(head);
    crc.update(body);
    crc.finalize()
}

/// What a call did to a file. The numbers are those of the file and must not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Call {
    Read = 0,
    Write = 1,
    /// `fsync`, and `msync` of a mapping.
    Sync = 2,
    /// `fdatasync`.
    SyncData = 3,
    /// `sync_file_range` that starts or waits for writing.
    SyncRange = 4,
    /// `sync` and `syncfs`: every file.
    SyncAll = 5,
    /// The file's size becomes `offset`.
    Truncate = 6,
    /// The last name of the file is gone, by `unlink` or a `rename` over it.
    Remove = 7,
    /// `fallocate`: room is taken.
    Allocate = 8,
    /// `fallocate` that makes a hole.
    Punch = 9,
    /// `msync` of a shared mapping, or its end: the pages of which contents are given were written.
    Mapped = 10,
    /// A descriptor of the file is gone.
    Close = 11,
    /// `fcntl`: what is written to the file will live as long as the hint `length` says, 0 to [`LARGEST_HINT`].
    Hint = 12,
}

impl Call {
    pub const ALL: [Call; 13] = [
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::SyncData,
        Call::SyncRange,
        Call::SyncAll,
        Call::Truncate,
        Call::Remove,
        Call::Allocate,
        Call::Punch,
        Call::Mapped,
        Call::Close,
        Call::Hint,
    ];

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Bits of [`Op::flags`].
pub mod op_flags {
    /// The file was opened with `O_DIRECT`.
    pub const DIRECT: u8 = 1;
    /// `O_SYNC` or `O_DSYNC`, or `RWF_SYNC` and the like: the call returns when the data is durable.
    pub const SYNC: u8 = 2;
    /// `fallocate` that leaves the file's size.
    pub const KEEP_SIZE: u8 = 4;
    /// [`Call::Mapped`](super::Call::Mapped): every page of the range was stored into.
    pub const STORED: u8 = 8;
    /// [`Call::Punch`](super::Call::Punch): a hole into which what follows moves down (collapse range), or up, with [`UP`] (insert range).
    pub const SHIFTED: u8 = 8;
    /// With [`SHIFTED`], which keeps no size.
    pub const UP: u8 = 4;
    /// [`Call::Remove`](super::Call::Remove): descriptors are open, and the data go when the last of them is closed.
    pub const OPEN: u8 = 8;
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Start of the call since the start of the recording, ns; not decreasing.
    pub time_ns: u64,
    pub duration_ns: u32,
    pub call: Call,
    /// Bits of [`op_flags`].
    pub flags: u8,
    /// Number in [`Tables::files`].
    pub file: u32,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes; 0 where the call has none.
    pub length: u64,
    /// Number in [`Tables::contexts`]; 0 is the unknown one.
    pub context: u32,
    /// Number in [`Tables::processes`].
    pub process: u32,
    pub tid: u32,
}

impl FileEntry {
    /// Its last name, and the first where that is another one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let first = (!self.first_path.is_empty()).then_some(self.first_path.as_str());
        std::iter::once(self.path.as_str()).chain(first)
    }
}

impl Op {
    /// First page that the call touches, and the page behind the last one.
    pub fn pages(&self) -> (u64, u64) {
        let end = self.offset.saturating_add(self.length);
        (self.offset / 4096, end.div_ceil(4096))
    }
}

/// Everything that calls refer to by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Version of ftlab that made the file.
    pub ftlab: String,
    /// Wall-clock time of the start, ns since 1970.
    pub started_ns: u64,
    /// How signatures were taken: `fp`, `unwind`, `scan` or `auto`.
    pub signature: String,
    /// Whether every system call was seen (`--exact`), or the calls of libraries.
    pub exact: bool,
    /// Whether reads were recorded.
    pub reads: bool,
    /// Whether contents were compared.
    pub content: bool,
    /// Whether calls give write-lifetime hints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hints: bool,
    /// Bytes of the smallest chunks with ids where they are smaller than 1 KiB: 512 or 256; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chunk: u32,
    /// What was missed, and what is worth knowing, a sentence each.
    pub notes: Vec<String>,
    pub processes: Vec<Process>,
    pub files: Vec<FileEntry>,
    pub modules: Vec<Module>,
    pub contexts: Vec<Context>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Tables {
    /// How many of the smallest chunks with ids a chunk of 1 KiB consists of: 1, 2 or 4.
    pub fn pieces(&self) -> usize {
        match self.chunk {
            512 => 2,
            256 => 4,
            _ => 1,
        }
    }

    fn version(&self) -> u32 {
        if self.pieces() == 1 && !self.hints {
            VERSION
        } else {
            EXTENDED
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// Path of the program.
    pub program: String,
    pub command: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// The last name that it had.
    pub path: String,
    /// The name that it was first seen by, where that is another one; empty where it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub first_path: String,
    /// Bytes when it was first seen.
    pub size: u64,
    /// Where it lay when the recording ended: first byte in the file, byte on the device, bytes. Empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<(u64, u64, u64)>,
}

/// A program file or library that frames lie in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    pub path: String,
    pub build_id: String,
}

/// A program context: one path of calls that led to calls on files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub signature: u64,
    /// Number of the process that was seen with it first.
    pub process: u32,
    /// The innermost first.
    pub frames: Vec<Frame>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Number in [`Tables::modules`].
    pub module: u32,
    /// Return address less the place where the module lay.
    pub offset: u64,
    /// Name of the function; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A recording of one block with these columns, whatever they are: for fuzzing.
pub fn with_columns(calls: u32, columns: &[u8]) -> ftlab_core::Result<Vec<u8>> {
    let sample = sample()?;
    let reader = Reader::new("sample", sample.as_slice())?;
    let mut writer = Writer::new(Vec::new(), reader.tables())?;
    writer.push_columns(calls, columns)?;
    Ok(writer.finish()?.1)
}

/// A small recording: a log that is written and removed, a table that is written twice.
pub fn sample() -> ftlab_core::Result<Vec<u8>> {
    sample_of(0)
}

/// The same with chunks of 256 B: the third and fourth of each KiB are equal in all of them.
pub fn sample_of_small_chunks() -> ftlab_core::Result<Vec<u8>> {
    sample_of(256)
}

fn sample_of(chunk: u32) -> ftlab_core::Result<Vec<u8>> {
    use crate::replay::Content;
    let named = |path: &str| FileEntry {
        path: path.to_owned(),
        ..FileEntry::default()
    };
    let tables = Tables {
        command: vec!["store".to_owned()],
        signature: "auto".to_owned(),
        content: true,
        chunk,
        processes: vec![Process {
            pid: 7,
            program: "/usr/bin/store".to_owned(),
            ..Process::default()
        }],
        files: vec![named(""), named("/data/1.log"), named("/data/table")],
        modules: vec![Module::default()],
        contexts: [0, 0xa1, 0xb2]
            .map(|signature| Context {
                signature,
                frames: vec![Frame::default(); usize::from(signature > 0)],
                ..Context::default()
            })
            .into(),
        ..Tables::default()
    };
    let mut writer = Writer::new(Vec::new(), &tables)?;
    let call = |time_ns, call, file, offset, length| Op {
        time_ns,
        duration_ns: 1000,
        call,
        flags: 0,
        file,
        offset,
        length,
        context: file,
        process: 0,
        tid: 7,
    };
    let page = |page| Content {
        page,
        chunks: [4 * page - 3, 4 * page - 2, 4 * page - 1, 4 * page],
    };
    if chunk > 0 {
        // New chunks of 1 KiB begin with two new ones each, and number 1 and 2 of all are theirs as well.
        let pieces = |kib: u64| {
            if kib == 1 {
                [3, 4, 1, 2]
            } else {
                [2 * kib + 1, 2 * kib + 2, 1, 2]
            }
        };
        writer.push_pieces(&[1, 2, 1, 2]);
        (2..=12).for_each(|kib| writer.push_pieces(&pieces(kib - 1)));
    }
    writer.push(call(0, Call::Write, 1, 0, 4096), &[page(1)])?;
    writer.push(call(1_000_000, Call::Sync, 1, 0, 0), &[])?;
    writer.push(call(2_000_000, Call::Write, 2, 0, 8192), &[page(2), page(1)])?;
    writer.push(call(40_000_000_000, Call::Write, 2, 4096, 4096), &[page(3)])?;
    writer.push(call(41_000_000_000, Call::Remove, 1, 0, 0), &[])?;
    writer.push(call(42_000_000_000, Call::Read, 2, 0, 8192), &[])?;
    Ok(writer.finish()?.1)
}
