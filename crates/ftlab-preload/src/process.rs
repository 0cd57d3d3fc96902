//! What all threads of a recorded process share.
//!
//! # Model
//! [`Wiped`] lies in memory that the kernel zeroes in the child of a fork, whichever way the child was made, so a child
//! notices by itself that it is a new process image: it takes a new id, starts new spools and forgets the descriptors it knew. Locks lie
//! there too: a child is never born with a lock that a thread of its parent held.
//! # Not modelled
//! Children that share our memory (vfork): until they exec they write into the spool of their parent's thread, under its pid.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ftlab_record::spool::{self, NoteKind};

use crate::hooks::ring::{RINGS, Ring};
use crate::sys;

/// Descriptors that have an entry; those above are looked at on every call.
pub const DESCRIPTORS: usize = 1 << 20;
/// Kinds of notes, 0 unused.
const NOTES: usize = 17;

/// Zero in a child of fork.
pub struct Wiped {
    /// Id of the process image; 0 = not begun.
    image: AtomicU64,
    /// Whose image it is; a child that shares our memory has another.
    pid: AtomicU32,
    pub described: AtomicBool,
    /// Bits of the kinds of notes that this image has left word of.
    pub words: AtomicU32,
    pub next_file: AtomicU32,
    pub modules_lock: Lock,
    pub threads_lock: Lock,
    pub mappings_lock: Lock,
    pub rings_lock: Lock,
    pub rings_used: AtomicU32,
    pub rings: [Ring; RINGS],
    pub notes: [AtomicU64; NOTES],
    /// For the text of the maps; whoever holds `modules_lock` uses it.
    pub maps: UnsafeCell<[u8; 4096]>,
    /// See `files`.
    pub descriptors: [AtomicU64; DESCRIPTORS],
}

/// What to record, from the environment.
pub struct Options {
    /// Of spools, without a slash at the end.
    pub folder: [u8; spool::LONGEST_FOLDER],
    pub folder_len: usize,
    /// As `signature::Choice`.
    pub signature: crate::signature::Choice,
    pub content: bool,
    /// Bytes of a chunk with a content id.
    pub chunk: usize,
    pub reads: bool,
}

static WIPED: AtomicPtr<Wiped> = AtomicPtr::new(core::ptr::null_mut());
static OPTIONS: AtomicPtr<Options> = AtomicPtr::new(core::ptr::null_mut());
/// 1: recording.
static STATE: AtomicU8 = AtomicU8::new(0);

/// Reads the environment; called once, before `main`.
pub fn start() {
    let Some(folder) = environment(spool::ENV_DIR) else {
        return;
    };
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    if folder.first() != Some(&b'/') {
        return;
    }
    let mut options = Options {
        folder: [0; spool::LONGEST_FOLDER],
        folder_len: folder.len(),
        signature: crate::signature::Choice::named(environment(spool::ENV_SIGNATURE).unwrap_or(b"auto")),
        content: environment(spool::ENV_CONTENT) == Some(b"1"),
        chunk: spool::chunk_named(environment(spool::ENV_CHUNK).unwrap_or_default()),
        reads: environment(spool::ENV_READS) == Some(b"1"),
    };
    let Some(place) = options.folder.get_mut(..folder.len()) else {
        return;
    };
    place.copy_from_slice(folder);
    let len = size_of::<Wiped>().next_multiple_of(4096);
    let Some(memory) = sys::map_anonymous(len) else { return };
    if !sys::wipe_on_fork(memory, len) {
        // Linux before 4.14: a child could not tell that it is one.
        // SAFETY: nobody knows of it yet.
        unsafe { sys::unmap(memory, len) };
        return;
    }
    WIPED.store(memory.cast(), Ordering::Release);
    OPTIONS.store(Box::into_raw(Box::new(options)), Ordering::Release);
    STATE.store(1, Ordering::Release);
    if let Some(wiped) = wiped() {
        wiped.image();
    }
}

/// The shared state, if this process records.
#[inline]
pub fn wiped() -> Option<&'static Wiped> {
    if STATE.load(Ordering::Acquire) != 1 {
        return None;
    }
    // SAFETY: set before STATE, never unmapped; zeros are a valid `Wiped`, and it is shared by atomics only.
    unsafe { WIPED.load(Ordering::Acquire).as_ref() }
}

#[inline]
pub fn options() -> Option<&'static Options> {
    // SAFETY: set once, never freed.
    unsafe { OPTIONS.load(Ordering::Acquire).as_ref() }
}

/// The process may not make the calls that a record takes: it is left alone.
pub fn leave_alone() {
    STATE.store(3, Ordering::Release);
}

/// What it was left alone for did not happen.
pub fn go_on() {
    STATE.store(1, Ordering::Release);
}

/// Whether this process was recorded once, and is no more.
pub fn is_left_alone() -> bool {
    STATE.load(Ordering::Acquire) == 3
}

/// No more room: this process records no further, and leaves word.
pub fn stop_full() {
    STATE.store(2, Ordering::Release);
    let mut path = sys::PathBuffer::new();
    if full_marker(&mut path)
        && let Ok(fd) = sys::open(path.as_c(), libc::O_CREAT | libc::O_WRONLY, 0o644)
    {
        sys::close(fd);
    }
}

/// Whether some process of the recording found no more room.
pub fn is_full() -> bool {
    let mut path = sys::PathBuffer::new();
    full_marker(&mut path) && sys::status(libc::AT_FDCWD, path.as_c(), true).is_ok()
}

fn full_marker(path: &mut sys::PathBuffer) -> bool {
    path.push(folder()) && path.push(b"/") && path.push(spool::FULL.as_bytes())
}

pub fn folder() -> &'static [u8] {
    options().map_or(&[], |options| options.folder.get(..options.folder_len).unwrap_or(&[]))
}

impl Wiped {
    /// Id of this process image; the first call in a process makes it.
    pub fn image(&self) -> u64 {
        let image = self.image.load(Ordering::Acquire);
        if image != 0 {
            return image;
        }
        self.pid.store(sys::pid(), Ordering::Relaxed);
        let made = spool::mix(sys::now() ^ u64::from(sys::pid()) << 40) | 1;
        match self
            .image
            .compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => made,
            Err(other) => other,
        }
    }

    /// Whether this is the process whose state it is, and not a child that shares its memory until it starts a program.
    pub fn is_own(&self) -> bool {
        self.image();
        self.pid.load(Ordering::Relaxed) == sys::pid()
    }

    /// Whether there are counts that no spool has yet.
    pub fn has_notes(&self) -> bool {
        self.notes.iter().any(|count| count.load(Ordering::Relaxed) != 0)
    }

    pub fn note(&self, what: NoteKind, count: u64) {
        if let Some(counter) = self.notes.get(what as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// A lock held for microseconds. Its holder is never interrupted by itself: hooks do not nest (see `thread`).
pub struct Lock(AtomicU32);

impl Lock {
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut tries = 0u32;
        while self
            .0
            .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            tries = tries.wrapping_add(1);
            // A thread of higher priority must let the holder run.
            if tries.is_multiple_of(64) {
                sys::sleep_briefly();
            } else {
                sys::yield_now();
            }
        }
        let result = work();
        self.0.store(0, Ordering::Release);
        result
    }
}

/// A variable of the environment.
pub fn environment(name: &str) -> Option<&'static [u8]> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: called before `main`, when nobody changes the environment, or where the C library reads it itself next; it is a list
    // of strings that ends with a null.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let entry = CStr::from_ptr(*at).to_bytes();
            if let Some(value) = entry
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
            {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}
