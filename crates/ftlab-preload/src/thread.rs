//! What belongs to one thread: its spool and the caches of its signatures.
//!
//! # Model
//! The state of a thread is made at its first record, and used again by a later thread when it ends. While a record is made
//! the state is marked busy: a signal handler that makes calls of its own just then is not recorded, which is counted.
//! A spool is opened by name for each window and closed again: the program's descriptors stay its own.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use ftlab_record::spool::{self, NoteKind, Start, Writer};

use crate::content;
use crate::process::{self, Wiped};
use crate::signature::Walker;
use crate::space::Files;
use crate::sys;

pub struct Thread {
    busy: AtomicBool,
    /// Process image that the spool belongs to.
    image: u64,
    pub space: Files,
    writer: Option<Writer>,
    pub walker: Walker,
    pub unfinished: content::Unfinished,
    /// For content: a page, aligned for direct I/O.
    pub page: PageBuffer,
    /// For a path; taken out while in use.
    pub path: Option<&'static mut [u8; 4096]>,
    next_free: *mut Thread,
}

#[repr(align(4096))]
pub struct PageBuffer(pub [u8; spool::PAGE]);

thread_local! {
    /// No destructor: the state is given back by the key below.
    static THREAD: Cell<*mut Thread> = const { Cell::new(null_mut()) };
}

/// In the place of a state while a thread takes one or gives it back: a signal handler must not wait for a lock that its own
/// thread holds.
const CHANGING: *mut Thread = core::ptr::dangling_mut();

/// States of threads that ended.
static FREE: AtomicPtr<Thread> = AtomicPtr::new(null_mut());
/// Key whose destructor runs when a thread ends, plus one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Called once, before `main`: a key made so early lies in the part of a thread that needs no memory.
pub fn start() {
    let mut key = 0;
    // SAFETY: makes a key; the destructor takes what `pthread_setspecific` was given.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0 && key < 32 {
        KEY.store(key + 1, Ordering::Release);
    }
}

/// What a record is written with.
pub struct Recording<'a> {
    pub wiped: &'static Wiped,
    pub thread: &'a mut Thread,
}

/// Does `work` with the state of this thread, if it records and is not in the middle of a record.
pub fn with<T>(work: impl FnOnce(&mut Recording<'_>) -> Option<T>) -> Option<T> {
    let wiped = process::wiped()?;
    let mut at = THREAD.with(Cell::get);
    if at == CHANGING {
        wiped.note(NoteKind::Interrupted, 1);
        return None;
    }
    if at.is_null() {
        THREAD.with(|thread| thread.set(CHANGING));
        let taken = take(wiped);
        at = taken.unwrap_or(null_mut());
        THREAD.with(|thread| thread.set(at));
        taken?;
        let key = KEY.load(Ordering::Acquire);
        if key != 0 {
            // SAFETY: the key exists and is one of the first 32, whose values lie in the thread itself.
            unsafe { libc::pthread_setspecific(key - 1, at.cast()) };
        }
    }
    // SAFETY: the state belongs to this thread and is never unmapped; `busy` is the only part looked at before it is known
    // that no other call of this thread is using it.
    let busy = unsafe { &(*at).busy };
    if busy.swap(true, Ordering::Acquire) {
        wiped.note(NoteKind::Interrupted, 1);
        return None;
    }
    // SAFETY: `busy` was free, so this is the only reference.
    let result = work(&mut Recording {
        wiped,
        thread: unsafe { &mut *at },
    });
    busy.store(false, Ordering::Release);
    result
}

impl Recording<'_> {
    /// The writer of the thread's spool, made now if need be, and where it gets room.
    pub fn writer(&mut self) -> Option<(&mut Writer, &mut Files)> {
        let image = self.wiped.image();
        let thread = &mut *self.thread;
        if thread.image != image {
            // A child of fork holds the window of its parent.
            thread.writer = None;
            thread.space.forget();
        }
        if thread.writer.is_none() {
            thread.image = image;
            let (pid, tid) = (sys::pid(), sys::tid());
            let start = Start {
                pid,
                parent: sys::parent_pid(),
                tid,
                clock_ns: sys::now(),
                wall_ns: sys::clock(libc::CLOCK_REALTIME),
                image,
            };
            thread.space.begin(&start)?;
            let mut writer = Writer::begin(&mut thread.space, &start)?;
            if !self.wiped.described.swap(true, Ordering::AcqRel) {
                describe_process(&mut writer, &mut thread.space, &mut thread.page.0);
            }
            thread.writer = Some(writer);
        }
        let writer = thread.writer.as_mut()?;
        // Counts of notes are rare; looking at them costs a few loads.
        for (what, counter) in self.wiped.notes.iter().enumerate().skip(1) {
            if counter.load(Ordering::Relaxed) != 0
                && let Some(kind) = NoteKind::from_stored(what as u8)
            {
                writer.note(&mut thread.space, kind, counter.swap(0, Ordering::Relaxed))?;
            }
        }
        Some((writer, &mut thread.space))
    }

    /// Whether this thread has recorded anything.
    pub fn has_spool(&self) -> bool {
        self.thread.writer.is_some() && self.thread.image == self.wiped.image()
    }

    /// The walker of call paths, and the spool if there is one.
    pub fn parts(&mut self) -> (&mut Walker, Option<(&mut Writer, &mut Files)>) {
        let thread = &mut *self.thread;
        let out = thread.writer.as_mut().map(|writer| (writer, &mut thread.space));
        (&mut thread.walker, out)
    }

    /// Whether a call was made by one of the Java runtime's libraries for files.
    pub fn calls_from_java(&mut self, ip: u64) -> bool {
        self.thread
            .walker
            .module(self.wiped, ip)
            .is_some_and(|module| module.java)
    }

    /// A buffer of a page, and the spool if there is one.
    pub fn page_and_writer(&mut self) -> Option<(&mut [u8; spool::PAGE], (&mut Writer, &mut Files))> {
        let thread = &mut *self.thread;
        Some((&mut thread.page.0, (thread.writer.as_mut()?, &mut thread.space)))
    }

    /// Gives back the room that was not used, keeping a little for what a program still writes while it ends.
    fn trim(&mut self) {
        if let Some(writer) = &mut self.thread.writer {
            self.thread.space.trim(writer);
        }
    }
}

fn describe_process(writer: &mut Writer, space: &mut Files, buffer: &mut [u8]) {
    let mut exe = [0; 512];
    let exe = sys::read_link(c"/proc/self/exe", &mut exe);
    let mut started = [0; 512];
    let exe = started_as(&mut started).unwrap_or(exe);
    let mut len = 0;
    if let Ok(fd) = sys::open(c"/proc/self/cmdline", libc::O_RDONLY, 0) {
        len = sys::read(fd, buffer);
        sys::close(fd);
    }
    let command = buffer.get(..len).unwrap_or(&[]);
    let _ = writer.process(space, spool::Recorder::Library, exe, command);
}

/// The name that the program was started by, which may be a link to another: as it is, from the root on.
fn started_as(place: &mut [u8]) -> Option<&[u8]> {
    // SAFETY: the kernel gives every program the address of a text; 0 if it did not.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    if name.is_null() {
        return None;
    }
    // SAFETY: as above; it lies above the stack and stays.
    let name = unsafe { core::ffi::CStr::from_ptr(name) };
    // Of a script it is the script, and after a change of folder another file or none.
    let (named, own) = (
        sys::status(libc::AT_FDCWD, name, true).ok()?,
        sys::status(libc::AT_FDCWD, c"/proc/self/exe", true).ok()?,
    );
    if (named.device, named.inode) != (own.device, own.inode) {
        return None;
    }
    let mut len = 0;
    if !name.to_bytes().starts_with(b"/") {
        len = sys::read_link(c"/proc/self/cwd", place).len();
        *place.get_mut(len)? = b'/';
        len += 1;
    }
    let name = name.to_bytes().strip_prefix(b"./").unwrap_or(name.to_bytes());
    place.get_mut(len..len + name.len())?.copy_from_slice(name);
    place.get(..len + name.len())
}

fn take(wiped: &'static Wiped) -> Option<*mut Thread> {
    wiped.threads_lock.with(|| {
        let free = FREE.load(Ordering::Acquire);
        if !free.is_null() {
            // SAFETY: a state on the list is nobody's; it is never unmapped.
            unsafe {
                FREE.store((*free).next_free, Ordering::Release);
                (*free).next_free = null_mut();
            }
            return Some(free);
        }
        let memory: *mut Thread = sys::map_anonymous(size_of::<Thread>().next_multiple_of(4096))?.cast();
        // SAFETY: the mapping is large enough, aligned to a page and ours. Zeros are valid for every field but these.
        unsafe {
            (&raw mut (*memory).space).write(Files::new());
            (&raw mut (*memory).writer).write(None);
            (&raw mut (*memory).path).write(vec![0; 4096].leak().try_into().ok());
        }
        Some(memory)
    })
}

/// A thread ends: its spool is cut to its length.
unsafe extern "C" fn ended(state: *mut libc::c_void) {
    let Some(wiped) = process::wiped() else { return };
    crate::accounts::settle(wiped);
    let _ = with(|recording| {
        content::settle(recording, None);
        if recording.thread.image == recording.wiped.image()
            && let Some(writer) = recording.thread.writer.take()
        {
            recording.thread.space.end(&writer);
        }
        recording.thread.writer = None;
        recording.thread.image = 0;
        recording.thread.walker.forget_stack();
        Some(())
    });
    THREAD.with(|thread| thread.set(CHANGING));
    let state: *mut Thread = state.cast();
    wiped.threads_lock.with(|| {
        // SAFETY: this thread's own state, which it has just forgotten.
        unsafe { (*state).next_free = FREE.load(Ordering::Acquire) };
        FREE.store(state, Ordering::Release);
    });
    THREAD.with(|thread| thread.set(null_mut()));
}

/// The process ends in order, or another program takes its place.
pub fn process_ends() {
    let Some(wiped) = process::wiped().filter(|wiped| wiped.is_own()) else {
        return;
    };
    crate::hooks::memory::all_end();
    crate::hooks::ring::all_end();
    crate::accounts::settle(wiped);
    // What is missed is said even if nothing was recorded.
    if wiped.has_notes() {
        crate::tell::pending();
    }
    if THREAD.with(Cell::get).is_null() {
        return;
    }
    let _ = with(|recording| {
        if !recording.has_spool() {
            return None;
        }
        content::settle(recording, None);
        let _ = recording.writer();
        recording.trim();
        Some(())
    });
}
