//! What the system calls of interest mean.
//!
//! # Model
//! What a call takes away (a name, a size) is looked at before the kernel makes it, everything else after its success.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::files::{self, Known, Process, Status};
use super::spools::{self, Out};
use super::{Options, Tid, stack};
use ftlab_record::spool::lifetime_hints::{F_SET_FILE_RW_HINT, F_SET_RW_HINT};
use ftlab_record::spool::{NoteKind, Op, OpFacts, PAGE, PAGE_IDS, PageIds, file_flags, most_pages, op_flags, page_ids};

const CWD: i32 = libc::AT_FDCWD;
/// Longest path of the kernel.
const LONGEST_PATH: usize = 4096;

/// A call that the kernel is making.
pub struct Pending {
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
    pub(super) start_ns: u64,
    /// Files named by the call, as they were before.
    named: [Option<Named>; 2],
    /// Of the descriptor's file, for a truncation.
    old_size: u64,
}

struct Named {
    status: Status,
    path: Vec<u8>,
}

/// What came of it.
pub struct Outcome {
    pub tid: Tid,
    pub result: i64,
    pub end_ns: u64,
}

impl Pending {
    /// `None`: the result is of no interest.
    pub fn at_entry(tid: Tid, process: &mut Process, registers: &libc::user_regs_struct) -> Option<Self> {
        let number = registers.orig_rax as i64;
        let arguments = [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ];
        let [a, b, c, d, ..] = arguments;
        let mut pending = Self {
            number,
            arguments,
            start_ns: spools::now(),
            named: [None, None],
            old_size: 0,
        };
        let mut name = |place: usize, dir: i32, path: u64, follow: bool| {
            pending.named[place] = named(tid, process, dir, path, follow);
        };
        match number {
            libc::SYS_unlink => name(0, CWD, a, false),
            libc::SYS_unlinkat => name(0, a as i32, b, false),
            libc::SYS_truncate => name(0, CWD, a, true),
            libc::SYS_rename => {
                name(0, CWD, a, false);
                name(1, CWD, b, false);
            }
            libc::SYS_renameat | libc::SYS_renameat2 => {
                name(0, a as i32, b, false);
                name(1, c as i32, d, false);
            }
            libc::SYS_link => name(0, CWD, a, false),
            libc::SYS_linkat => name(0, a as i32, b, arguments[4] as i32 & libc::AT_SYMLINK_FOLLOW != 0),
            libc::SYS_open if truncates(b) => name(0, CWD, a, true),
            libc::SYS_creat => name(0, CWD, a, true),
            libc::SYS_openat if truncates(c) => name(0, a as i32, b, true),
            libc::SYS_ftruncate => {
                pending.old_size = files::status(&process.link(a as i32), true).map_or(0, |status| status.size);
            }
            libc::SYS_fcntl => match b as i32 {
                libc::F_SETFL | libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | F_SET_RW_HINT | F_SET_FILE_RW_HINT => {}
                _ => return None,
            },
            _ => {}
        }
        Some(pending)
    }

    /// The call succeeded.
    pub fn finish(self, process: &mut Process, outcome: &Outcome, options: &Options, out: &mut Out<'_>) {
        let [a, b, c, d, _, _] = self.arguments;
        let fd = a as i32;
        let result = outcome.result;
        match self.number {
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                self.wrote(process, outcome, options, out);
            }
            libc::SYS_read | libc::SYS_readv => self.at_position(Op::Read, 0, fd, process, outcome, out),
            libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 if result > 0 => {
                let facts = self.facts(Op::Read, 0, d, result as u64, outcome);
                on_descriptor(process, fd, facts, out);
            }
            libc::SYS_copy_file_range | libc::SYS_splice => {
                let offset = if d == 0 { None } else { stack::word(outcome.tid, d) };
                self.copied(c as i32, offset, process, outcome, out);
            }
            libc::SYS_sendfile => self.copied(fd, None, process, outcome, out),
            libc::SYS_fsync => self.plain(Op::Fsync, 0, 0, process, outcome, out),
            libc::SYS_fdatasync => self.plain(Op::Fdatasync, 0, 0, process, outcome, out),
            libc::SYS_sync_file_range => self.plain(Op::SyncRange, b, c, process, outcome, out),
            libc::SYS_ftruncate => self.plain(Op::Truncate, b, self.old_size, process, outcome, out),
            libc::SYS_sync | libc::SYS_syncfs => {
                let facts = self.facts(Op::Sync, 0, 0, 0, outcome);
                let _ = out.op(process, Known { id: 0, flags: 0 }, facts);
            }
            libc::SYS_truncate => {
                if let [Some(named), _] = &self.named {
                    let facts = self.facts(Op::Truncate, 0, b, named.status.size, outcome);
                    on_named(process, named, &named.path, facts, out);
                }
            }
            libc::SYS_fallocate => self.allocated(process, outcome, out),
            libc::SYS_unlink | libc::SYS_unlinkat => {
                if let [Some(named), _] = &self.named {
                    self.unlinked(named, 0, process, outcome, out);
                }
            }
            libc::SYS_link | libc::SYS_linkat => self.linked(process, outcome, out),
            libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => self.moved(process, outcome, out),
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                process.forget(result as i32);
                if let [Some(named), _] = &self.named
                    && named.status.size > 0
                {
                    let facts = self.facts(Op::OpenTruncate, 0, 0, named.status.size, outcome);
                    on_descriptor(process, result as i32, facts, out);
                }
            }
            libc::SYS_close => self.closed(fd, process, outcome, out),
            libc::SYS_dup2 | libc::SYS_dup3 if a as i32 != b as i32 => self.closed(b as i32, process, outcome, out),
            libc::SYS_close_range => process.forget_range(a as u32, b as u32),
            libc::SYS_fcntl => match b as i32 {
                F_SET_RW_HINT | F_SET_FILE_RW_HINT => {
                    if let Some(hint) = stack::word(outcome.tid, c) {
                        self.plain(Op::Hint, 0, hint, process, outcome, out);
                    }
                }
                libc::F_SETFL => process.forget(fd),
                _ => process.forget(result as i32),
            },
            libc::SYS_mmap => self.mapped(process, outcome, options, out),
            libc::SYS_msync => {
                stored(process, a, b, Some(self.start_ns), options, out);
                if c as i32 & libc::MS_SYNC != 0 {
                    for number in process.mappings.within(a, b) {
                        if let Some(file) = process.mapped_file(number, out) {
                            let facts = self.facts(Op::Fdatasync, 0, 0, 0, outcome);
                            let _ = out.op(process, file, facts);
                        }
                    }
                }
            }
            libc::SYS_munmap => {
                self.unmapped(process, (a, b), outcome, options, out);
            }
            libc::SYS_mremap => {
                stored(process, a, b, None, options, out);
                if d as i32 & libc::MREMAP_FIXED != 0 {
                    self.unmapped(process, (result as u64, c), outcome, options, out);
                }
                process.mappings.moved(a, result as u64, c);
            }
            libc::SYS_mprotect => self.made_writable(process, outcome, out),
            libc::SYS_io_uring_setup => process.rings.set_up(result as i32, outcome, b),
            libc::SYS_io_uring_enter => self.entered(process, outcome, options, out),
            libc::SYS_io_uring_register => process.rings.registered(outcome.tid, self.arguments),
            libc::SYS_io_submit => self.submitted(process, outcome, options, out),
            _ => {}
        }
    }

    pub(super) fn facts(&self, op: Op, flags: u16, offset: u64, length: u64, outcome: &Outcome) -> OpFacts {
        let duration = outcome.end_ns.saturating_sub(self.start_ns);
        OpFacts {
            op,
            flags,
            file: 0,
            duration_ns: u32::try_from(duration).unwrap_or(u32::MAX),
            time_ns: self.start_ns,
            offset,
            length,
            signature: 0,
        }
    }

    fn plain(&self, op: Op, offset: u64, length: u64, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let facts = self.facts(op, 0, offset, length, outcome);
        on_descriptor(process, self.arguments[0] as i32, facts, out);
    }

    fn wrote(&self, process: &mut Process, outcome: &Outcome, options: &Options, out: &mut Out<'_>) {
        let [fd, _, _, at, _, wanted] = self.arguments;
        let (fd, length) = (fd as i32, outcome.result as u64);
        let Some(known) = process.file(fd, out).filter(|_| length > 0) else {
            return;
        };
        let with_flags = self.number == libc::SYS_pwritev2;
        let mut flags = 0;
        if with_flags && wanted as i32 & (libc::RWF_SYNC | libc::RWF_DSYNC) != 0 {
            flags |= op_flags::SYNC;
        }
        if with_flags && wanted as i32 & libc::RWF_APPEND != 0 {
            flags |= op_flags::APPEND;
        }
        let positioned = matches!(self.number, libc::SYS_write | libc::SYS_writev) || with_flags && at as i64 == -1;
        let offset = if positioned {
            process
                .position_and_flags(fd)
                .map_or(0, |(position, _)| position.saturating_sub(length))
        } else if (flags | known.op_flags()) & op_flags::APPEND != 0 {
            files::status(&process.link(fd), true).map_or(0, |status| status.size.saturating_sub(length))
        } else {
            at
        };
        let facts = self.facts(Op::Write, flags, offset, length, outcome);
        if out.op(process, known, facts).is_some() && options.content {
            content(process, fd, offset, length, out);
        }
    }

    fn at_position(&self, op: Op, flags: u16, fd: i32, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let length = outcome.result as u64;
        if length == 0 {
            return;
        }
        if let Some(known) = process.file(fd, out) {
            let position = process.position_and_flags(fd).map_or(0, |(position, _)| position);
            let facts = self.facts(op, flags, position.saturating_sub(length), length, outcome);
            let _ = out.op(process, known, facts);
        }
    }

    /// `offset` as the kernel left it, behind what it wrote; `None`: the descriptor's position.
    fn copied(&self, into: i32, offset: Option<u64>, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let length = outcome.result as u64;
        match offset {
            Some(offset) if length > 0 => {
                let facts = self.facts(
                    Op::Write,
                    op_flags::COPIED,
                    offset.saturating_sub(length),
                    length,
                    outcome,
                );
                on_descriptor(process, into, facts, out);
            }
            _ => self.at_position(Op::Write, op_flags::COPIED, into, process, outcome, out),
        }
    }

    fn allocated(&self, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let [_, mode, offset, length, ..] = self.arguments;
        let (op, flags) = allocation(mode as i32);
        on_descriptor(
            process,
            self.arguments[0] as i32,
            self.facts(op, flags, offset, length, outcome),
            out,
        );
    }

    /// A range of memory is not what it was.
    fn unmapped(
        &self,
        process: &mut Process,
        (address, len): (u64, u64),
        outcome: &Outcome,
        options: &Options,
        out: &mut Out<'_>,
    ) {
        let len = len.next_multiple_of(PAGE as u64);
        stored(process, address, len, None, options, out);
        for file in process.mappings.end(address, len) {
            let _ = out.op(process, file, self.facts(Op::Close, 0, 0, 0, outcome));
        }
    }

    fn mapped(&self, process: &mut Process, outcome: &Outcome, options: &Options, out: &mut Out<'_>) {
        let [_, len, _, _, fd, offset] = self.arguments;
        let (fd, address) = (fd as i32, outcome.result as u64);
        process.rings.mapped(fd, offset, address);
        // Another mapping that was there is gone.
        self.unmapped(process, (address, len), outcome, options, out);
        if process.file(fd, out).is_some() {
            // A description of its own, as the mapping outlives the descriptor.
            let link = process.link(fd);
            let described = files::status(&link, true).zip(std::fs::read_link(&link).ok());
            let Some((known, status)) = described.and_then(|(status, path)| {
                let known = process.introduce(&status, 0, path.as_os_str().as_bytes(), out)?;
                Some((known, status))
            }) else {
                return;
            };
            let _ = out.op(process, known, self.facts(Op::Map, 0, offset, len, outcome));
            let unknown = match File::open(link) {
                Ok(reader) => process.mappings.begin((known, status), address, len, offset, reader),
                Err(_) => len.div_ceil(PAGE as u64),
            };
            if unknown > 0 {
                out.note(process, NoteKind::Uncompared, unknown);
            }
        }
    }

    /// Shared mappings in a range that could only be read until now.
    fn made_writable(&self, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let [address, len, ..] = self.arguments;
        for mapping in process.shared_mappings(address, len) {
            if process.mappings.contains(mapping.address) {
                continue;
            }
            let known = files::status(&mapping.reachable, true)
                .filter(|status| status.regular && status.inode == mapping.inode)
                .and_then(|status| Some((process.introduce(&status, 0, &mapping.path, out)?, status)));
            if let Some((known, _)) = known {
                let facts = self.facts(Op::Map, 0, mapping.offset, mapping.len, outcome);
                let _ = out.op(process, known, facts);
            }
            let reader = File::open(&mapping.reachable).ok();
            let unknown = match known.zip(reader) {
                Some((known, reader)) => {
                    process
                        .mappings
                        .begin(known, mapping.address, mapping.len, mapping.offset, reader)
                }
                None => mapping.len / PAGE as u64,
            };
            if unknown > 0 {
                out.note(process, NoteKind::Uncompared, unknown);
            }
        }
    }

    fn unlinked(&self, named: &Named, flags: u16, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let left = u64::from(named.status.links.saturating_sub(1));
        on_named(
            process,
            named,
            &named.path,
            self.facts(Op::Unlink, flags, 0, left, outcome),
            out,
        );
    }

    /// A file is given one more name; its first, if the program has it open and it has none.
    fn linked(&self, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let [a, b, c, d, flags, _] = self.arguments;
        let plain = self.number == libc::SYS_link;
        let (dir, to) = if plain { (CWD, b) } else { (c as i32, d) };
        let Some(to) = stack::string(outcome.tid, to, LONGEST_PATH).map(|to| process_path(process, dir, &to)) else {
            return;
        };
        let from = stack::string(outcome.tid, if plain { a } else { b }, LONGEST_PATH).unwrap_or_default();
        let opened = from
            .strip_prefix(b"/proc/self/fd/")
            .and_then(|fd| std::str::from_utf8(fd).ok()?.parse().ok());
        let empty = !plain && from.is_empty() && flags as i32 & libc::AT_EMPTY_PATH != 0;
        if let Some(fd) = if empty { Some(a as i32) } else { opened } {
            // The name is said by a description of its own, before the call.
            if let Some(known) = process.file(fd, out)
                && let Some(status) = files::status(&process.link(fd), true)
            {
                let _ = process.introduce(&status, file_flags::NAMED, &to, out);
                let _ = out.op(process, known, self.facts(Op::Rename, 0, 0, 0, outcome));
            }
        } else if let [Some(named), _] = &self.named {
            on_named(process, named, &to, self.facts(Op::Link, 0, 0, 0, outcome), out);
        }
    }

    fn moved(&self, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        let [from, replaced] = &self.named;
        let identity = |named: &Named| (named.status.device, named.status.inode);
        let same = from
            .as_ref()
            .zip(replaced.as_ref())
            .is_some_and(|(a, b)| identity(a) == identity(b));
        // Two names of one file: the kernel leaves both.
        if same {
            return;
        }
        let renamed = self.facts(Op::Rename, 0, 0, 0, outcome);
        let new_path = |dir: usize, path: usize| {
            let path = stack::string(outcome.tid, self.arguments[path], LONGEST_PATH)?;
            let at = self.number != libc::SYS_rename;
            Some(process_path(
                process,
                if at { self.arguments[dir] as i32 } else { CWD },
                &path,
            ))
        };
        let rename = self.number == libc::SYS_rename;
        let (old, new) = if rename {
            (new_path(0, 0), new_path(0, 1))
        } else {
            (new_path(0, 1), new_path(2, 3))
        };
        let exchange = self.number == libc::SYS_renameat2 && self.arguments[4] as u32 & libc::RENAME_EXCHANGE != 0;
        if let Some(replaced) = replaced {
            match old {
                Some(old) if exchange => on_named(process, replaced, &old, renamed, out),
                _ => self.unlinked(replaced, op_flags::REPLACED, process, outcome, out),
            }
        }
        if let (Some(from), Some(new)) = (from, new) {
            on_named(process, from, &new, renamed, out);
        }
    }

    pub(super) fn closed(&self, fd: i32, process: &mut Process, outcome: &Outcome, out: &mut Out<'_>) {
        if let Some(known) = process.if_known(fd) {
            let _ = out.op(process, known, self.facts(Op::Close, 0, 0, 0, outcome));
        }
        process.rings.close(fd);
        process.forget(fd);
    }
}

fn truncates(flags: u64) -> bool {
    let flags = flags as i32;
    flags & libc::O_TRUNC != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY
}

fn process_path(process: &Process, dir: i32, path: &[u8]) -> Vec<u8> {
    process.resolve(dir, path).1
}

fn named(tid: Tid, process: &Process, dir: i32, path: u64, follow: bool) -> Option<Named> {
    let path = stack::string(tid, path, LONGEST_PATH)?;
    let (reachable, path) = process.resolve(dir, &path);
    let status = files::status(&reachable, follow)?;
    status.regular.then_some(Named { status, path })
}

fn on_descriptor(process: &mut Process, fd: i32, facts: OpFacts, out: &mut Out<'_>) {
    if let Some(known) = process.file(fd, out) {
        let _ = out.op(process, known, facts);
    }
}

fn on_named(process: &mut Process, named: &Named, path: &[u8], facts: OpFacts, out: &mut Out<'_>) {
    use std::os::unix::ffi::OsStrExt;
    let as_path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    if files::is_interesting(&as_path, out.folder())
        && let Some(known) = process.introduce(&named.status, file_flags::NAMED, path, out)
    {
        let _ = out.op(process, known, facts);
    }
}

/// Content ids of what a write left in the file.
fn content(process: &mut Process, fd: i32, offset: u64, length: u64, out: &mut Out<'_>) {
    let reader = File::open(process.link(fd)).ok();
    let mut page = offset / PAGE as u64;
    let end = (offset + length).div_ceil(PAGE as u64);
    while page < end {
        let chunk = out.chunk;
        let pages = (end - page).min(most_pages(chunk) as u64) as usize;
        let written = out.content(process, page, pages, |page| {
            reader
                .as_ref()
                .map_or([0; PAGE_IDS], |reader| ids_of(reader, page, chunk))
        });
        if written.is_none() {
            break;
        }
        page += pages as u64;
    }
}

fn ids_of(reader: &File, page: u64, chunk: usize) -> PageIds {
    let mut buffer = [0; PAGE];
    let mut held = 0;
    while held < PAGE {
        match reader.read_at(&mut buffer[held..], page * PAGE as u64 + held as u64) {
            Ok(0) => break,
            Ok(read) => held += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return [0; PAGE_IDS],
        }
    }
    page_ids(&buffer, held, chunk)
}

/// What a mode of fallocate does.
pub fn allocation(mode: i32) -> (Op, u16) {
    let taken = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
    let shifted = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;
    let flag = |from: i32, to: u16| if mode & from != 0 { to } else { 0 };
    let op = if mode & (taken | shifted) != 0 {
        Op::Punch
    } else {
        Op::Fallocate
    };
    let flags = flag(libc::FALLOC_FL_KEEP_SIZE, op_flags::KEEP_SIZE)
        | flag(shifted, op_flags::SHIFTED)
        | flag(libc::FALLOC_FL_INSERT_RANGE, op_flags::UP);
    (op, flags)
}

/// Records what was stored into mappings in a range; without a time the process or the mapping has ended.
pub fn stored(
    process: &mut Process,
    address: u64,
    len: u64,
    synced_ns: Option<u64>,
    options: &Options,
    out: &mut Out<'_>,
) {
    // What is unmapped cannot be asked for its pages any more: all of its file is compared.
    let place = PathBuf::from(format!("/proc/{}", process.pid()));
    let runs = process
        .mappings
        .stored(address, len, synced_ns.map(|_| place.as_path()));
    for (number, offset, pages) in runs {
        let Some(mapping) = process.mappings.get(number) else {
            continue;
        };
        let first = offset / PAGE as u64;
        let ids: Vec<PageIds> = match options.content {
            true => (first..first + pages)
                .map(|page| mapping.page_ids(page, out.chunk))
                .collect(),
            false => Vec::new(),
        };
        let facts = OpFacts {
            op: Op::MapSync,
            flags: op_flags::STORED,
            file: 0,
            duration_ns: 0,
            time_ns: synced_ns.unwrap_or_else(spools::now),
            offset,
            length: pages * PAGE as u64,
            signature: 0,
        };
        let file = process.mapped_file(number, out);
        if file.and_then(|file| out.op(process, file, facts)).is_none() {
            return;
        }
        let most = most_pages(out.chunk);
        for (at, ids) in ids.chunks(most).enumerate() {
            let from = first + (at * most) as u64;
            let _ = out.content(process, from, ids.len(), |page| ids[(page - from) as usize]);
        }
    }
}
