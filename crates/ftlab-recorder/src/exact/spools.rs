//! The spools of the traced threads.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::io::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Tid;
use super::files::{Known, Process};
use super::stack::{self, Binaries};
use ftlab_record::spool::{
    ENDING, FULL, FileFacts, Method, NoteKind, Op, OpFacts, Recorder, Space, Start, Window, Writer,
};

const WINDOW: usize = 256 << 10;
const PAGE: u64 = 4096;

pub struct Spools {
    folder: PathBuf,
    open: FxHashMap<Tid, Spool>,
    contexts: FxHashSet<u64>,
    modules: FxHashSet<u64>,
    full: bool,
}

struct Spool {
    writer: Writer,
    file: SpoolFile,
}

struct SpoolFile {
    path: PathBuf,
    mapped: Option<(NonNull<u8>, usize)>,
    full: bool,
}

impl Spools {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            open: FxHashMap::default(),
            contexts: FxHashSet::default(),
            modules: FxHashSet::default(),
            full: false,
        }
    }

    /// Ends a thread's spool: cut to its length.
    pub fn end(&mut self, tid: Tid) {
        if let Some(mut spool) = self.open.remove(&tid) {
            spool.file.unmap();
            let written = spool.writer.written();
            if let Ok(file) = OpenOptions::new().write(true).open(&spool.file.path) {
                // What cannot be cut is zeros, which readers take for the end.
                let _ = file.set_len(written);
            }
        }
    }

    pub fn end_all(&mut self) {
        let all: Vec<Tid> = self.open.keys().copied().collect();
        for tid in all {
            self.end(tid);
        }
    }

    /// The spool of a thread, begun at its first record. `None`: no more room, nothing is recorded any more.
    fn of(&mut self, tid: Tid, process: &mut Process) -> Option<&mut Spool> {
        if self.full {
            return None;
        }
        if !self.open.contains_key(&tid) {
            let clock_ns = now();
            let start = Start {
                pid: process.pid() as u32,
                parent: process.parent(),
                tid: tid as u32,
                clock_ns,
                wall_ns: clock(libc::CLOCK_REALTIME),
                image: process.image(),
            };
            let path = self.folder.join(format!("{}.{tid}.{clock_ns}.{ENDING}", process.pid()));
            let mut file = SpoolFile {
                path,
                mapped: None,
                full: false,
            };
            let Some(mut writer) = Writer::begin(&mut file, &start) else {
                self.stop();
                return None;
            };
            if process.first_description() {
                let (exe, command) = process.describe();
                writer.process(&mut file, Recorder::Exact, &exe, &command)?;
            }
            self.open.insert(tid, Spool { writer, file });
        }
        self.open.get_mut(&tid)
    }

    /// The program goes on unrecorded.
    fn stop(&mut self) {
        self.full = true;
        let _ = std::fs::write(self.folder.join(FULL), "");
    }
}

/// Where the record of one call goes.
pub struct Out<'a> {
    pub spools: &'a mut Spools,
    pub binaries: &'a Binaries,
    pub path: stack::Path,
    pub tid: Tid,
    /// Bytes of a chunk with a content id.
    pub chunk: usize,
}

impl Out<'_> {
    /// Of the spools.
    pub fn folder(&self) -> &Path {
        &self.spools.folder
    }

    fn write(
        &mut self,
        process: &mut Process,
        record: impl FnOnce(&mut Writer, &mut SpoolFile) -> Option<()>,
    ) -> Option<()> {
        let spool = self.spools.of(self.tid, process)?;
        let written = record(&mut spool.writer, &mut spool.file);
        if written.is_none() && spool.file.full {
            self.spools.stop();
        }
        written
    }

    pub fn file(&mut self, process: &mut Process, facts: &FileFacts, path: &[u8]) -> Option<()> {
        self.write(process, |writer, file| writer.file(file, facts, path))
    }

    pub fn op(&mut self, process: &mut Process, file: Known, mut facts: OpFacts) -> Option<()> {
        facts.file = file.id;
        facts.flags |= file.op_flags();
        if facts.op != Op::Close && !self.path.frames.is_empty() {
            facts.signature = self.path.signature();
            self.context(process, facts.signature)?;
        }
        self.write(process, |writer, file| writer.op(file, &facts))
    }

    fn context(&mut self, process: &mut Process, signature: u64) -> Option<()> {
        if !self.spools.contexts.insert(signature) {
            return Some(());
        }
        let frames = std::mem::take(&mut self.path.frames);
        for &(id, _) in &frames {
            if self.spools.modules.insert(id)
                && let Some(module) = process.stack.module(id)
            {
                let (range, path) = (module.range.clone(), module.path.clone());
                let build_id = self.binaries.build_id(id);
                self.write(process, |writer, file| writer.module(file, id, range, build_id, &path))?;
            }
        }
        self.write(process, |writer, file| {
            writer.context(file, Method::Unwind, signature, &frames)
        })?;
        self.path.frames = frames;
        if self.path.compiled {
            self.note(process, NoteKind::Compiled, 1);
        }
        Some(())
    }

    pub fn content(
        &mut self,
        process: &mut Process,
        first: u64,
        pages: usize,
        ids: impl FnMut(u64) -> ftlab_record::spool::PageIds,
    ) -> Option<()> {
        let chunk = self.chunk;
        self.write(process, |writer, file| writer.content(file, chunk, first, pages, ids))
    }

    pub fn note(&mut self, process: &mut Process, what: NoteKind, count: u64) {
        let _ = self.write(process, |writer, file| writer.note(file, what, count));
    }
}

impl SpoolFile {
    fn unmap(&mut self) {
        if let Some((base, len)) = self.mapped.take() {
            // SAFETY: our own mapping; its writer is not used again before the next window.
            unsafe { libc::munmap(base.as_ptr().cast(), len) };
        }
    }

    fn map(&self, start: u64) -> Option<NonNull<u8>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(0o644)
            .truncate(false)
            .open(&self.path)
            .ok()?;
        let fd = file.as_raw_fd();
        // Stores into pages without blocks would kill us when the disk is full.
        // SAFETY: numbers only.
        if unsafe { libc::posix_fallocate(fd, start as libc::off_t, WINDOW as libc::off_t) } != 0 {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                WINDOW,
                access,
                libc::MAP_SHARED,
                fd,
                start as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            None
        } else {
            NonNull::new(base.cast())
        }
    }
}

impl Space for SpoolFile {
    fn next(&mut self, _: Option<Window>, at: u64) -> Option<Window> {
        let start = at / PAGE * PAGE;
        let Some(base) = self.map(start) else {
            self.full = true;
            return None;
        };
        self.unmap();
        self.mapped = Some((base, WINDOW));
        // SAFETY: a fresh mapping of so many bytes, aligned to a page, zero where nothing was written; ours alone.
        Some(unsafe { Window::new(base, WINDOW, start) })
    }
}

pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the struct.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}
