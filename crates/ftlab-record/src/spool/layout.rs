//! Numbers of the spool's form that writer and reader share.

pub const MAGIC: [u8; 8] = *b"FTLSPOOL";
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER: usize = 64;
/// Bytes of a record's head: length, kind, `a`, `b`.
pub const HEAD: usize = 8;
/// Longest record.
pub const MOST: usize = 1 << 16;
/// Most frames of a context.
pub const MOST_FRAMES: usize = 64;
/// Most pages in one content record; a longer write has several.
pub const MOST_PAGES: usize = 1024;

/// Most pages in one content record with ids of chunks of so many bytes.
pub const fn most_pages(chunk: usize) -> usize {
    let fit = (MOST - HEAD - 8) / (8 * (1 + PAGE / chunk));
    if fit < MOST_PAGES { fit } else { MOST_PAGES }
}

/// Bytes of a page of file space with a content id.
pub const PAGE: usize = 4096;
/// Bytes of a chunk with a content id, unless smaller ones are asked for.
pub const CHUNK: usize = 1024;
/// Bytes of a chunk that there may be.
pub const CHUNK_SIZES: [usize; 3] = [CHUNK, 512, 256];
/// Most ids of one page: its own, then those of its chunks.
pub const PAGE_IDS: usize = 1 + PAGE / 256;
/// Ids of one page; behind those of its chunks there are zeros.
pub type PageIds = [u64; PAGE_IDS];
/// Ending of a spool's file name.
pub const ENDING: &str = "spool";
/// Ending of a word's name: a symbolic link whose target is a note, of a process that could have no spool.
pub const WORD: &str = "word";
/// An empty file of this name says that a process found no more room and recorded no further.
pub const FULL: &str = "full";

/// Bytes of a chunk as [`ENV_CHUNK`] says it.
pub fn chunk_named(text: &[u8]) -> usize {
    match text {
        b"256" => 256,
        b"512" => 512,
        _ => CHUNK,
    }
}

/// Bytes of the longest path of a folder of spools that the library takes.
pub const LONGEST_FOLDER: usize = 200;

/// Environment: the folder of the spools (absolute; absent = do not record), and what to record.
pub const ENV_DIR: &str = "FTLAB_RECORD_DIR";
/// `auto`, `fp`, `unwind`, `scan` or `none`.
pub const ENV_SIGNATURE: &str = "FTLAB_RECORD_SIGNATURE";
/// `1`: content ids.
pub const ENV_CONTENT: &str = "FTLAB_RECORD_CONTENT";
/// Bytes of a chunk with a content id; 1024 if it is not there.
pub const ENV_CHUNK: &str = "FTLAB_RECORD_CHUNK";
/// `1`: reads too.
pub const ENV_READS: &str = "FTLAB_RECORD_READS";

/// Declares an enum that is stored as a number, with the way back.
macro_rules! stored {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$vdoc:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr($int)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            pub fn from_stored(number: $int) -> Option<Self> {
                match number { $($value => Some($name::$variant),)* _ => None }
            }
        }
    };
}

stored! {
    /// Kind of a record.
    Kind: u8 {
        Process = 1,
        Module = 2,
        Context = 3,
        File = 4,
        Op = 5,
        Content = 6,
        Note = 7,
        Symbol = 8,
    }
}

stored! {
    /// Who wrote a spool.
    Recorder: u8 {
        /// The library inside the program.
        Library = 1,
        /// The tracer that sees every system call.
        Exact = 2,
    }
}

stored! {
    /// How a call path was found.
    Method: u8 {
        /// Not at all: signature 0.
        None = 0,
        /// By the chain of frame pointers.
        FramePointers = 1,
        /// By the unwind tables of the modules.
        Unwind = 2,
        /// By at most five words of the stack that point into code.
        Scan = 3,
        /// From the stack of the Java virtual machine: ids are those of symbols (methods), offsets are bytecode indexes.
        Java = 4,
    }
}

stored! {
    /// What a call did. Calls that failed are not recorded; `length` is what was transferred, not what was asked for.
    Op: u8 {
        Read = 0,
        Write = 1,
        Fsync = 2,
        Fdatasync = 3,
        /// sync_file_range: of offset and length (0 = to the end).
        SyncRange = 4,
        /// ftruncate or truncate: `offset` is the new size, `length` the old one.
        Truncate = 5,
        /// A name is gone: `length` counts the names that are left. With 0 the data goes when nobody has the file open.
        Unlink = 6,
        /// The file has another name, or its first: that of the description before it.
        Rename = 7,
        /// fallocate that adds room: offset and length.
        Fallocate = 8,
        /// fallocate that takes data away (punch hole, zero range, and everything from `offset` on in collapse and insert range).
        Punch = 9,
        /// open with O_TRUNC or the like: `length` is the old size.
        OpenTruncate = 10,
        /// A shared writable mapping was made over offset and length.
        Map = 11,
        /// Stored into through a shared writable mapping, as was seen at msync or at its end: offset and length.
        MapSync = 12,
        /// A descriptor of the file was closed.
        Close = 13,
        /// sync or syncfs: every file (file 0).
        Sync = 14,
        /// The file has one more name.
        Link = 15,
        /// fcntl that says how long the file's data will live: `length` is the hint, one of `lifetime_hints`.
        Hint = 16,
    }
}

stored! {
    /// What a recorder has to say besides.
    NoteKind: u8 {
        /// Requests handed to io_uring past every library function. Count: requests.
        IoUring = 1,
        /// Asynchronous I/O through libc, libaio or io_uring: recorded when handed in. Count: requests.
        Aio = 2,
        /// Calls made by a signal handler in the middle of a record: not recorded.
        Interrupted = 3,
        /// Calls not recorded for want of a descriptor or of memory.
        NoRoom = 4,
        /// More contexts than the table holds: their frames are not written.
        ContextsFull = 5,
        /// stdio of this libc is not seen.
        StdioUnseen = 6,
        /// Calls whose file could not be told.
        FileUnknown = 7,
        /// Programs started that the library is not loaded into (static, of another machine, set-user-id and the like).
        NotLoaded = 8,
        /// Calls that move data in a way that has no record: count of calls.
        Unsupported = 9,
        /// Bytes that the process wrote by system calls of its own, past the library.
        PastLibrary = 10,
        /// The process forbade itself system calls that a record takes (seccomp): not recorded from then on.
        Sandboxed = 11,
        /// The process put the folder of the spools out of its own reach (chroot, Landlock): recorded while its room lasts.
        Confined = 12,
        /// A program of the Go runtime, which makes its system calls itself.
        Go = 13,
        /// Pages of shared mappings that could not be compared: what was stored in them is not recorded.
        Uncompared = 14,
        /// Programs started where the library cannot be reached.
        Unreachable = 15,
        /// Requests to io_uring and io_submit that were looked at, whether or not they are of interest: for `--check`.
        Taken = 16,
        /// Call paths that end in code which lies in no file, such as runtimes compile while they run. Count: paths.
        Compiled = 17,
    }
}

/// Write-lifetime hints of Linux (`linux/fcntl.h`).
pub mod lifetime_hints {
    /// Commands of fcntl: the hint of a file, and (until Linux 5.17) of what is written by one descriptor.
    pub const F_SET_RW_HINT: i32 = 1036;
    pub const F_SET_FILE_RW_HINT: i32 = 1038;
    /// `RWH_WRITE_LIFE_EXTREME`: hints are not set (0), none (1), short, medium, long and extreme (5).
    pub const LARGEST: u64 = 5;
}

/// Flags of an op.
pub mod op_flags {
    /// Written through to the device before the call returned (O_SYNC, O_DSYNC, RWF_SYNC, RWF_DSYNC).
    pub const SYNC: u16 = 1;
    /// O_DIRECT.
    pub const DIRECT: u16 = 2;
    /// At the end of the file (O_APPEND).
    pub const APPEND: u16 = 4;
    /// From within the C library's buffered streams.
    pub const STDIO: u16 = 8;
    /// The data came from another file or a pipe, within the kernel.
    pub const COPIED: u16 = 16;
    /// Fallocate: the size of the file does not change.
    pub const KEEP_SIZE: u16 = 32;
    /// Unlink: the name now belongs to another file (rename).
    pub const REPLACED: u16 = 64;
    /// Handed in to be done later: the time is that of the call.
    pub const ASYNCHRONOUS: u16 = 128;
    /// Punch: what follows moves down (collapse range) or up (insert range).
    pub const SHIFTED: u16 = 256;
    /// Mapped: every page of the range was stored into.
    pub const STORED: u16 = 512;
    /// Shifted: up (insert range).
    pub const UP: u16 = 1024;
    pub const ALL: u16 = 2047;
}

/// Flags of a file, as its descriptor was opened.
pub mod file_flags {
    pub const SYNC: u16 = 1;
    pub const DIRECT: u16 = 2;
    pub const APPEND: u16 = 4;
    pub const READ_ONLY: u16 = 8;
    pub const WRITE_ONLY: u16 = 16;
    /// Met by its path: there is no descriptor.
    pub const NAMED: u16 = 32;

    /// What the flags of a descriptor mean for its calls: `op_flags`.
    pub const fn of_ops(flags: u16) -> u16 {
        use super::op_flags;
        let sync = if flags & SYNC != 0 { op_flags::SYNC } else { 0 };
        let direct = if flags & DIRECT != 0 { op_flags::DIRECT } else { 0 };
        let append = if flags & APPEND != 0 { op_flags::APPEND } else { 0 };
        sync | direct | append
    }
}

/// Bytes of a record with `body` bytes after its head.
pub(crate) const fn record_len(body: usize) -> usize {
    (HEAD + body).next_multiple_of(8)
}
