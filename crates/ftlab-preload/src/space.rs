//! Where the windows of a spool come from: stretches of its file, allocated before they are mapped.
//!
//! # Model
//! A store into a mapped page that the disk has no room for kills the program with SIGBUS. So every window's blocks are
//! allocated first (fallocate; zeros written where the file system cannot), within the process's own limit on file sizes, since going
//! beyond it raises SIGXFSZ. When that fails, this process records no further and leaves the file `full` if it can.
//! # Not modelled
//! A file system that takes back what it had allocated (a network mount that goes away).

use core::ptr::NonNull;

use ftlab_record::spool::{ENDING, NoteKind, Space, Start, Window, Writer};

use crate::{process, sys, tell};

const FIRST: usize = 128 << 10;
const NEXT: usize = 1 << 20;
const PAGE: u64 = 4096;
/// Descriptors of ours get numbers from here on, if the process may: out of the way of the program's own.
const HIGH: usize = 900;

pub struct Files {
    path: sys::PathBuffer,
    /// The mapping of the current window.
    mapped: *mut u8,
    len: usize,
}

impl Files {
    pub const fn new() -> Self {
        Self {
            path: sys::PathBuffer::new(),
            mapped: core::ptr::null_mut(),
            len: 0,
        }
    }

    /// Names the spool.
    pub fn begin(&mut self, start: &Start) -> Option<()> {
        self.forget();
        self.path = sys::PathBuffer::new();
        let path = &mut self.path;
        let named = path.push(process::folder())
            && path.push(b"/")
            && path.push_number(start.pid.into())
            && path.push(b".")
            && path.push_number(start.tid.into())
            && path.push(b".")
            && path.push_number(start.clock_ns)
            && path.push(b".")
            && path.push(ENDING.as_bytes());
        named.then_some(())
    }

    /// Lets go of the window without touching the file.
    pub fn forget(&mut self) {
        if !self.mapped.is_null() {
            // SAFETY: our mapping; the writer that used it is gone with it.
            unsafe { sys::unmap(self.mapped, self.len) };
            self.mapped = core::ptr::null_mut();
        }
    }

    /// Ends the spool: cut to what was written.
    pub fn end(&mut self, writer: &Writer) {
        self.forget();
        sys::truncate(self.path.as_c(), writer.written());
    }

    /// Gives back what lies a page or more behind what was written; the writer's window becomes as short.
    pub fn trim(&mut self, writer: &mut Writer) {
        let window = writer.window();
        let keep = (writer.written().next_multiple_of(PAGE) + PAGE).saturating_sub(window.start());
        if let Ok(keep) = usize::try_from(keep)
            && keep < window.len()
        {
            writer.shorten(keep);
            sys::truncate(self.path.as_c(), window.start() + keep as u64);
        }
    }

    fn map(&mut self, start: u64, len: usize) -> Option<*mut u8> {
        let end = start + len as u64;
        if end > sys::file_size_limit() || process::is_full() {
            process::stop_full();
            return None;
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW;
        let fd = match sys::open(self.path.as_c(), flags, 0o644) {
            Ok(fd) => fd,
            // The program has as many as it may: one more, for as long as it takes to map the spool.
            Err(libc::EMFILE) => {
                let Some(limit) = sys::raise_descriptor_limit() else {
                    self.refused(libc::EMFILE);
                    return None;
                };
                let opened = sys::open(self.path.as_c(), flags, 0o644);
                sys::set_descriptor_limit(&limit);
                let Ok(fd) = opened else {
                    self.refused(libc::EMFILE);
                    return None;
                };
                let mapped = self.allocate_and_map(fd, start, len);
                sys::close(fd);
                return mapped;
            }
            Err(error) => {
                self.refused(error);
                return None;
            }
        };
        let fd = match sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, HIGH) {
            Ok(high) => {
                sys::close(fd);
                high as i32
            }
            Err(_) => fd,
        };
        let mapped = self.allocate_and_map(fd, start, len);
        sys::close(fd);
        mapped
    }

    fn allocate_and_map(&self, fd: i32, start: u64, len: usize) -> Option<*mut u8> {
        // Another thread may have closed our descriptor and opened a file of its own under its number: nothing is written
        // unless it is still the spool.
        let (ours, named) = (
            sys::status(fd, c"", true).ok()?,
            sys::status(libc::AT_FDCWD, self.path.as_c(), false).ok()?,
        );
        if (ours.device, ours.inode) != (named.device, named.inode) {
            return None;
        }
        let allocated = match sys::allocate(fd, start, len as u64) {
            Err(libc::EOPNOTSUPP | libc::ENOSYS) => write_zeros(fd, ours.size.max(start), start + len as u64),
            other => other,
        };
        if allocated.is_err() {
            process::stop_full();
            return None;
        }
        sys::map_file(fd, start, len)
    }

    fn refused(&self, error: i32) {
        match error {
            libc::ENOSPC | libc::EDQUOT | libc::EROFS => process::stop_full(),
            _ => {
                if let Some(wiped) = process::wiped() {
                    wiped.note(NoteKind::NoRoom, 1);
                    tell::word(NoteKind::NoRoom, b"");
                }
            }
        }
    }
}

fn write_zeros(fd: i32, mut from: u64, to: u64) -> Result<(), i32> {
    static ZEROS: [u8; 4096] = [0; 4096];
    while from < to {
        let len = (to - from).min(ZEROS.len() as u64) as usize;
        let written = sys::pwrite(fd, ZEROS.get(..len).unwrap_or(&[]), from)?;
        if written == 0 {
            return Err(libc::ENOSPC);
        }
        from += written as u64;
    }
    Ok(())
}

impl Space for Files {
    fn next(&mut self, old: Option<Window>, at: u64) -> Option<Window> {
        let start = at / PAGE * PAGE;
        let len = if old.is_none() { FIRST } else { NEXT };
        let mapped = self.map(start, len)?;
        self.forget();
        self.mapped = mapped;
        self.len = len;
        // SAFETY: a fresh mapping of `len` bytes, aligned to a page; zero behind what was written, as the file was extended
        // with zeros; no other thread or process writes this file.
        NonNull::new(mapped).map(|base| unsafe { Window::new(base, len, start) })
    }
}
