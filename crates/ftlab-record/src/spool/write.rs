//! Writes a spool into memory that somebody else maps: no allocation, no locks, no system calls.
//!
//! # Model
//! The writer fills a [`Window`], a stretch of the file that is mapped; when it is used up, [`Space::next`] gives the next
//! one, which starts at or before the place reached, so that a record is never split. A record's body is written first and
//! its length last, with release order: whoever reads the file sees the record as a whole or an end.
//! # Not modelled
//! Durability: the kernel writes the mapped pages when it likes; a crash of the machine loses what it had not written.

#![expect(
    unsafe_code,
    reason = "the window is memory mapped by the recorder; proofs at each use"
)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::layout::*;

/// A mapped stretch of the spool, zeroed where nothing was written.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    base: NonNull<u8>,
    len: usize,
    /// Where it starts in the file; a multiple of 8.
    start: u64,
}

impl Window {
    /// # Safety
    /// `base` points to `len` bytes, aligned to 8, that stay mapped and are written by nobody else until the next window or the
    /// end of the writer; they are zero from the place on that the writer has reached.
    pub unsafe fn new(base: NonNull<u8>, len: usize, start: u64) -> Self {
        Self { base, len, start }
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it starts in the file.
    pub fn start(&self) -> u64 {
        self.start
    }
}

/// Where windows come from.
pub trait Space {
    /// The window after `old`, holding at least `MOST` bytes from offset `at` of the file on; `None`: there is no more room, and the
    /// old window is still there or is not used again.
    fn next(&mut self, old: Option<Window>, at: u64) -> Option<Window>;
}

/// Writes one spool.
#[derive(Debug)]
pub struct Writer {
    window: Window,
    /// Place in the window.
    at: usize,
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub pid: u32,
    pub parent: u32,
    pub tid: u32,
    pub clock_ns: u64,
    pub wall_ns: u64,
    pub image: u64,
}

impl Writer {
    /// Begins a spool; `None` if there is no room for it.
    pub fn begin(space: &mut impl Space, start: &Start) -> Option<Self> {
        let window = space.next(None, 0)?;
        if window.len < HEADER + MOST {
            return None;
        }
        let mut writer = Self { window, at: 0 };
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&start.pid.to_le_bytes());
        header[16..20].copy_from_slice(&start.parent.to_le_bytes());
        header[20..24].copy_from_slice(&start.tid.to_le_bytes());
        header[24..32].copy_from_slice(&start.clock_ns.to_le_bytes());
        header[32..40].copy_from_slice(&start.wall_ns.to_le_bytes());
        header[40..48].copy_from_slice(&start.image.to_le_bytes());
        writer.bytes(0, HEADER).copy_from_slice(&header);
        writer.at = HEADER;
        Some(writer)
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.window.start + self.at as u64
    }

    pub fn window(&self) -> Window {
        self.window
    }

    /// Gives up the end of the window: only its first `len` bytes are used from now on, and at least what was written.
    pub fn shorten(&mut self, len: usize) {
        self.window.len = len.clamp(self.at, self.window.len);
    }

    /// The command line has a NUL after each argument. What is too long is cut.
    pub fn process(&mut self, space: &mut impl Space, recorder: Recorder, exe: &[u8], command: &[u8]) -> Option<()> {
        let exe = cut(exe, 4096);
        let command = cut(command, 32 << 10);
        self.record(
            space,
            Kind::Process,
            recorder as u8,
            0,
            8 + exe.len() + command.len(),
            |body| {
                body.u32(exe.len() as u32)
                    .u32(command.len() as u32)
                    .put(exe)
                    .put(command);
            },
        )
    }

    pub fn module(
        &mut self,
        space: &mut impl Space,
        id: u64,
        range: core::ops::Range<u64>,
        build_id: &[u8],
        path: &[u8],
    ) -> Option<()> {
        let build_id = cut(build_id, 64);
        let path = cut(path, 4096);
        self.record(space, Kind::Module, 0, 0, 32 + build_id.len() + path.len(), |body| {
            body.u64(id).u64(range.start).u64(range.end);
            body.u32(build_id.len() as u32)
                .u32(path.len() as u32)
                .put(build_id)
                .put(path);
        })
    }

    /// Frames are module (or symbol) and offset, innermost first; more than [`MOST_FRAMES`] are cut.
    pub fn context(
        &mut self,
        space: &mut impl Space,
        method: Method,
        signature: u64,
        frames: &[(u64, u64)],
    ) -> Option<()> {
        let frames = &frames[..frames.len().min(MOST_FRAMES)];
        self.record(
            space,
            Kind::Context,
            method as u8,
            frames.len() as u16,
            8 + 16 * frames.len(),
            |body| {
                body.u64(signature);
                for &(module, offset) in frames {
                    body.u64(module).u64(offset);
                }
            },
        )
    }

    pub fn file(&mut self, space: &mut impl Space, file: &FileFacts, path: &[u8]) -> Option<()> {
        let path = cut(path, 4096);
        self.record(space, Kind::File, 0, file.flags, 40 + path.len(), |body| {
            body.u32(file.id).u32(path.len() as u32);
            body.u64(file.device)
                .u64(file.inode)
                .u64(file.birth_ns)
                .u64(file.size)
                .put(path);
        })
    }

    pub fn op(&mut self, space: &mut impl Space, op: &OpFacts) -> Option<()> {
        self.record(space, Kind::Op, op.op as u8, op.flags, 40, |body| {
            body.u32(op.file).u32(op.duration_ns);
            body.u64(op.time_ns).u64(op.offset).u64(op.length).u64(op.signature);
        })
    }

    /// Ids of `pages` pages from `first` on, with chunks of `chunk` bytes; `ids` gives those of one of them, in order. At most
    /// [`most_pages`] are written.
    pub fn content(
        &mut self,
        space: &mut impl Space,
        chunk: usize,
        first: u64,
        pages: usize,
        mut ids: impl FnMut(u64) -> PageIds,
    ) -> Option<()> {
        let (pages, each) = (pages.min(most_pages(chunk)), 1 + PAGE / chunk);
        let said = if chunk == CHUNK { 0 } else { chunk.ilog2() as u8 };
        self.record(space, Kind::Content, said, pages as u16, 8 + 8 * each * pages, |body| {
            body.u64(first);
            for page in 0..pages as u64 {
                for &id in ids(first + page).iter().take(each) {
                    body.u64(id);
                }
            }
        })
    }

    /// A note about the process itself.
    pub fn note(&mut self, space: &mut impl Space, what: NoteKind, count: u64) -> Option<()> {
        self.note_about(space, what, count, b"")
    }

    /// A note about a program; an empty name stands for the process's own.
    pub fn note_about(&mut self, space: &mut impl Space, what: NoteKind, count: u64, program: &[u8]) -> Option<()> {
        let program = cut(program, 4096);
        self.record(space, Kind::Note, what as u8, 0, 12 + program.len(), |body| {
            body.u64(count).u32(program.len() as u32).put(program);
        })
    }

    pub fn symbol(&mut self, space: &mut impl Space, id: u64, text: &[u8]) -> Option<()> {
        let text = cut(text, 1024);
        self.record(space, Kind::Symbol, 0, 0, 16 + text.len(), |body| {
            body.u64(id).u32(text.len() as u32).u32(0).put(text);
        })
    }

    /// One record; `None`: no more room, and nothing was written.
    fn record(
        &mut self,
        space: &mut impl Space,
        kind: Kind,
        a: u8,
        b: u16,
        body: usize,
        fill: impl FnOnce(&mut Body<'_>),
    ) -> Option<()> {
        let len = record_len(body);
        debug_assert!(len <= MOST);
        if self.at + len > self.window.len {
            let reached = self.written();
            let window = space.next(Some(self.window), reached)?;
            let at = usize::try_from(reached.checked_sub(window.start)?).ok()?;
            if at % 8 != 0 || at + len > window.len {
                return None;
            }
            self.window = window;
            self.at = at;
        }
        let at = self.at;
        let bytes = self.bytes(at, len);
        bytes[4] = kind as u8;
        bytes[5] = a;
        bytes[6..8].copy_from_slice(&b.to_le_bytes());
        fill(&mut Body {
            rest: &mut bytes[HEAD..HEAD + body],
        });
        // SAFETY: `at` is a multiple of 8 (the header is, and every record), so the place is aligned, and it lies in the window
        // as `bytes` above did.
        let length = unsafe { AtomicU32::from_ptr(self.window.base.as_ptr().add(at).cast()) };
        length.store((len as u32).to_le(), Ordering::Release);
        self.at += len;
        Some(())
    }

    fn bytes(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at + len <= self.window.len);
        // SAFETY: inside the window, which is ours alone (`Window::new`); the borrow of `self` keeps others away.
        unsafe { core::slice::from_raw_parts_mut(self.window.base.as_ptr().add(at), len) }
    }
}

// SAFETY: a writer owns its window (`Window::new`); nothing in it is bound to a thread.
unsafe impl Send for Writer {}

/// A file as the recorder first met it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileFacts {
    pub id: u32,
    pub flags: u16,
    pub device: u64,
    pub inode: u64,
    pub birth_ns: u64,
    pub size: u64,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpFacts {
    pub op: Op,
    pub flags: u16,
    pub file: u32,
    pub duration_ns: u32,
    pub time_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub signature: u64,
}

/// The rest of a record's body. What does not fit is a mistake of the caller's length; it is dropped, the program goes on.
struct Body<'a> {
    rest: &'a mut [u8],
}

impl Body<'_> {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        debug_assert!(bytes.len() <= self.rest.len());
        let len = bytes.len().min(self.rest.len());
        let (head, tail) = core::mem::take(&mut self.rest).split_at_mut(len);
        head.copy_from_slice(&bytes[..len]);
        self.rest = tail;
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.put(&number.to_le_bytes())
    }
}

fn cut(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[..bytes.len().min(most)]
}
