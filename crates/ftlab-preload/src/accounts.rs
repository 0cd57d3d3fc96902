//! What the kernel says that a thread has written, beside what its functions did.
//!
//! # Model
//! `/proc/thread-self/io` counts the bytes of all calls of a thread that write, whatever to. What it has more than the functions that are seen
//! were given went past them: by instructions of the program's own, or from within the C library. Settled when a thread ends that
//! has recorded something, and for the thread that ends the process. (The process's own counter has its children's bytes as well.)
//! # Not modelled
//! Requests of io_uring and asynchronous ones, and stores into mappings, which the kernel does not count there. What is written by a process
//! that is killed, and by threads of which no call was ever seen. Children that share our memory count as less.

use core::cell::Cell;

use ftlab_record::elf;
use ftlab_record::spool::NoteKind;

use crate::process::{self, Wiped};
use crate::{sys, tell};

/// Of a thread, in one process image.
#[derive(Clone, Copy)]
struct Account {
    image: u64,
    /// Bytes that it wrote through functions that are seen, whatever to.
    passed: u64,
    /// Bytes that the kernel has counted and that are accounted for, besides.
    accounted: u64,
}

thread_local! {
    static ACCOUNT: Cell<Account> = const {
        Cell::new(Account {
            image: 0,
            passed: 0,
            accounted: 0,
        })
    };
}

/// The account of this thread; a child of fork begins a new one, as the kernel does.
fn account(wiped: &Wiped) -> Account {
    let found = ACCOUNT.with(Cell::get);
    let image = wiped.image();
    if found.image == image {
        return found;
    }
    Account {
        image,
        passed: 0,
        accounted: 0,
    }
}

/// Called once, before `main`: what was written before is another program's.
pub fn start() {
    let Some(wiped) = process::wiped() else { return };
    let accounted = written().unwrap_or(0);
    let begun = account(wiped);
    ACCOUNT.with(|account| account.set(Account { accounted, ..begun }));
    if is_go() {
        tell::note(NoteKind::Go, 1, b"");
    }
}

/// A call that is seen wrote so many bytes, to whatever it was.
#[inline]
pub fn pass(done: isize) {
    if done > 0
        && let Some(wiped) = process::wiped()
    {
        let before = account(wiped);
        let passed = before.passed + done as u64;
        ACCOUNT.with(|account| account.set(Account { passed, ..before }));
    }
}

/// The thread or the process ends.
pub fn settle(wiped: &Wiped) {
    let Some(written) = written() else { return };
    let found = account(wiped);
    let unseen = written.saturating_sub(found.accounted).saturating_sub(found.passed);
    if unseen > 0 {
        let accounted = found.accounted + unseen;
        ACCOUNT.with(|account| account.set(Account { accounted, ..found }));
        wiped.note(NoteKind::PastLibrary, unseen);
        tell::pending();
    }
}

/// Bytes of all calls of this thread that wrote.
fn written() -> Option<u64> {
    let mut text = [0; 512];
    let fd = sys::open(c"/proc/thread-self/io", libc::O_RDONLY, 0).ok()?;
    let len = sys::read(fd, &mut text);
    sys::close(fd);
    let mut lines = text.get(..len)?.split(|&byte| byte == b'\n');
    let digits = lines.find_map(|line| line.strip_prefix(b"wchar: "))?;
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = (*digit as char).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Whether the program carries the note of Go's linker.
fn is_go() -> bool {
    // SAFETY: the kernel gives each program where its headers lie, how many there are and how long each is; they stay mapped.
    unsafe {
        let (headers, count) = (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM) as usize);
        if headers == 0 || libc::getauxval(libc::AT_PHENT) != size_of::<libc::Elf64_Phdr>() as u64 {
            return false;
        }
        let headers = core::slice::from_raw_parts(headers as *const libc::Elf64_Phdr, count);
        let own = headers.iter().find(|header| header.p_type == libc::PT_PHDR);
        let base = own.map_or(0, |own| (headers.as_ptr() as u64).wrapping_sub(own.p_vaddr));
        headers.iter().filter(|header| header.p_type == elf::NOTE).any(|note| {
            let at = base.wrapping_add(note.p_vaddr) as *const u8;
            let bytes = core::slice::from_raw_parts(at, note.p_memsz.min(4096) as usize);
            elf::note(bytes, b"Go\0\0", 4).is_some()
        })
    }
}
