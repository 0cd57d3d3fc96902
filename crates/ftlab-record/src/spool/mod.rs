//! The spool: what one thread of a recorded program did, written while it runs.
//!
//! # Model
//! A folder holds a file `<pid>.<tid>.<start in ns>.spool` for each thread that had something to record. The library inside
//! the program writes it through a shared mapping, so that a killed program loses no record but the one being written; the
//! exact tracer writes the same form. The file may be longer than what was written: zeros follow.
//!
//! All numbers are little-endian. The file starts with a header of 64 bytes:
//!
//! | at | bytes | header |
//! | --- | --- | --- |
//! | 0 | 8 | magic `FTLSPOOL` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | pid |
//! | 16 | 4 | pid of the parent |
//! | 20 | 4 | tid |
//! | 24 | 8 | clock: CLOCK_MONOTONIC in ns at the start of the spool |
//! | 32 | 8 | wall: CLOCK_REALTIME in ns at the same moment |
//! | 40 | 8 | image: tells process images apart (a fork and an exec begin a new one); ids of files count within an image |
//! | 48 | 16 | zeros |
//!
//! A process that can have no spool leaves a *word*: a symbolic link `<pid>.<start in ns>.<what>.word`, whose target is the text of a note.
//!
//! Records follow, each a multiple of 8 bytes. The length is written last: a record is there as a whole, or its length is 0,
//! and then it is the end.
//!
//! | at | bytes | every record |
//! | --- | --- | --- |
//! | 0 | 4 | length of the record, this field included, at most 65536; 0 = end of the spool |
//! | 4 | 1 | kind |
//! | 5 | 1 | `a` |
//! | 6 | 2 | `b` |
//!
//! | kind | `a` | `b` | body |
//! | --- | --- | --- | --- |
//! | 1 process | recorder: 1 library, 2 exact tracer | 0 | u32 length of exe, u32 length of command line, exe, command line (a NUL after each argument) |
//! | 2 module | 0 | 0 | u64 id, u64 base, u64 end, u32 length of build id, u32 length of path, build id, path |
//! | 3 context | method | frames n | u64 signature, n × (u64 module id or symbol id, u64 offset), innermost first |
//! | 4 file | 0 | file flags | u32 id, u32 length of path, u64 device, u64 inode, u64 birth in ns (0 unknown), u64 size, path |
//! | 5 op | operation | op flags | u32 file, u32 duration in ns, u64 time (the clock), u64 offset, u64 length, u64 signature |
//! | 6 content | chunks: 0 of 1 KiB, 9 of 512 B, 8 of 256 B | pages n | u64 number of the first page, n × (u64 id of the page, 4, 8 or 16 × u64 id of a chunk) |
//! | 7 note | what | 0 | u64 count, of this note and since the last of its kind; u32 length of text, text: the program it is about, if not the process's own |
//! | 8 symbol | 0 | 0 | u64 id, u32 length of text, u32 0, text |
//!
//! Rules:
//! * A *process* record is in the first spool of its image.
//! * *Modules*, *contexts* and *symbols* are named by hashes that are the same in every process, so each is written when a
//!   process, or the one it was forked from, first sees it; spools are read together. The path of a module may differ
//!   between processes, its id follows its content.
//! * A *file* record describes a file just before the first op that names its id. Its size is that after the op (the old one
//!   for truncate by path, unlink and rename); in [`Op::Rename`] and [`Op::Link`] its path is the new one already.
//!   One file may have many ids: device, inode and birth say what is the same.
//! * *Content* follows the write it belongs to, more than one record if the write is long. Page n covers the bytes
//!   4096 n … 4096 n + 4095 of the file. The id is XXH3-64 (seed 0) of the page after the write, what lies behind the end of the file
//!   counting as zeros; a chunk of 1 KiB wholly behind the end (and what it consists of), and what could not be read back, has id 0, and a
//!   hash of 0 is stored as 1.
//!
//! # Not modelled
//! What the kernel does below the call (that is the replay's part); contents of reads; the order of calls of two threads
//! within one call's duration.
//!
//! # Cost
//! 48 bytes per call, 40 more per page with content ids (136 with chunks of 256 B).

mod ids;
mod layout;
#[cfg(feature = "reading")]
mod read;
mod write;

pub use ids::{frame_sum, mix, page_ids, signature};
pub use layout::*;
#[cfg(feature = "reading")]
pub use read::{Content, Context, File, Frame, Header, Module, Operation, Process, Record, Records, Spool};
pub use write::{FileFacts, OpFacts, Space, Start, Window, Writer};
