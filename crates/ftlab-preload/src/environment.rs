//! What a started program needs in its environment to be recorded too.
//!
//! # Model
//! What is missing is added, and this library is put before others in `LD_PRELOAD`. A program that is started for another recording
//! keeps what that has given it. Where the library cannot be reached (another root), and from a process that is left alone, what is ours
//! is taken out instead: the loader would print that it finds nothing.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ftlab_record::spool::{self, NoteKind};

use crate::{process, sys, tell};

const PRELOAD: &str = "LD_PRELOAD";
const CARRIED: [&str; 6] = [
    PRELOAD,
    spool::ENV_DIR,
    spool::ENV_SIGNATURE,
    spool::ENV_CONTENT,
    spool::ENV_CHUNK,
    spool::ENV_READS,
];
/// Entries of an environment that need no memory of their own.
const FEW: usize = 192;

/// "NAME=value" of each, as this program was started with; null if it was not set.
static ENTRIES: [AtomicPtr<libc::c_char>; CARRIED.len()] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CARRIED.len()];
/// "LD_PRELOAD=" with this library alone, and how long that is.
static ALONE: AtomicPtr<libc::c_char> = AtomicPtr::new(core::ptr::null_mut());
static ALONE_LEN: AtomicUsize = AtomicUsize::new(0);

type Entry = *const libc::c_char;

fn entry(name: &str, value: &[u8]) -> &'static mut [u8] {
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value);
    text.push(0);
    text.leak()
}

/// Called once, before `main`.
pub fn start() {
    for (place, name) in ENTRIES.iter().zip(CARRIED) {
        if let Some(value) = process::environment(name) {
            place.store(entry(name, value).as_mut_ptr().cast(), Ordering::Release);
        }
    }
    // SAFETY: zeros are a value; the function fills it in, and its texts live as long as this library.
    let mut own: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: an address of this library.
    let found = unsafe { libc::dladdr(start as *const libc::c_void, &raw mut own) };
    if found != 0 && !own.dli_fname.is_null() {
        // SAFETY: as above.
        let alone = entry(PRELOAD, unsafe { CStr::from_ptr(own.dli_fname) }.to_bytes());
        ALONE_LEN.store(alone.len() - 1, Ordering::Release);
        ALONE.store(alone.as_mut_ptr().cast(), Ordering::Release);
    }
}

/// "LD_PRELOAD=" and the path of this library.
fn alone() -> Option<&'static [u8]> {
    let at = ALONE.load(Ordering::Acquire);
    // SAFETY: made once by `start`, never freed.
    (!at.is_null()).then(|| unsafe { core::slice::from_raw_parts(at.cast::<u8>(), ALONE_LEN.load(Ordering::Acquire)) })
}

/// Path of this library.
fn library() -> Option<&'static CStr> {
    let at = ALONE.load(Ordering::Acquire);
    if at.is_null() {
        return None;
    }
    // SAFETY: as above; it ends with a NUL, and the name and its sign come before the path.
    Some(unsafe { CStr::from_ptr(at.add(PRELOAD.len() + 1)) })
}

fn value<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// What an environment has of ours.
struct Found {
    len: usize,
    missing: [bool; CARRIED.len()],
    /// Place of an `LD_PRELOAD` without this library, or with it if it has to go.
    preload: Option<usize>,
    /// It is for another recording.
    other: bool,
}

/// # Safety
/// `list` is null or a list of strings that ends with a null.
unsafe fn look(list: *const Entry) -> Found {
    let mut found = Found {
        len: 0,
        missing: [true; CARRIED.len()],
        preload: None,
        other: false,
    };
    if list.is_null() {
        return found;
    }
    let own = library().map_or(&[][..], CStr::to_bytes);
    // SAFETY: the caller's promise.
    unsafe {
        while !(*list.add(found.len)).is_null() {
            let entry = CStr::from_ptr(*list.add(found.len)).to_bytes();
            for (missing, name) in found.missing.iter_mut().zip(CARRIED) {
                *missing &= value(entry, name).is_none();
            }
            if let Some(libraries) = value(entry, PRELOAD) {
                let mut each = libraries.split(|byte| matches!(byte, b':' | b' '));
                if !each.any(|library| library == own) {
                    found.preload = Some(found.len);
                }
            }
            if let Some(folder) = value(entry, spool::ENV_DIR) {
                found.other |= folder.strip_suffix(b"/").unwrap_or(folder) != process::folder();
            }
            found.len += 1;
        }
    }
    found
}

/// Calls `work` with the environment as the program that is started needs it; `program` is its name, for a note.
pub fn with(environment: usize, program: &[u8], work: impl Fn(usize) -> isize) -> isize {
    let recorded = process::wiped().is_some();
    if !recorded && !process::is_left_alone() {
        return work(environment);
    }
    let list = environment as *const Entry;
    // SAFETY: the environment of an exec is a list of strings that ends with a null, or null for none; the kernel reads it next.
    let found = unsafe { look(list) };
    if found.other {
        return work(environment);
    }
    let reachable = library().is_none_or(|path| sys::status(libc::AT_FDCWD, path, true).is_ok());
    if !recorded || !reachable {
        if recorded {
            tell::note(NoteKind::Unreachable, 1, program);
        }
        return without(list, found.len, work);
    }
    if found.preload.is_none() && !found.missing.contains(&true) {
        return work(environment);
    }
    copied(list, found.len, found.len + CARRIED.len() + 1, |copy| {
        let mut len = found.len;
        for (place, name) in CARRIED.iter().enumerate() {
            if !found.missing[place] {
                continue;
            }
            let entry = ENTRIES[place].load(Ordering::Acquire);
            let entry = if *name == PRELOAD {
                ALONE.load(Ordering::Acquire)
            } else {
                entry
            };
            if !entry.is_null() {
                // SAFETY: room for the old entries, the new ones and the null.
                unsafe { copy.add(len).write(entry) };
                len += 1;
            }
        }
        match found.preload {
            None => work(copy as usize),
            // SAFETY: an entry of the list, as `look` found.
            Some(place) => before(unsafe { CStr::from_ptr(*list.add(place)) }.to_bytes(), |entry| {
                // SAFETY: a place of the copy.
                unsafe { copy.add(place).write(entry) };
                work(copy as usize)
            }),
        }
    })
}

/// `work` with an entry of `LD_PRELOAD` that has this library before the others of `theirs`.
fn before(theirs: &[u8], work: impl Fn(Entry) -> isize) -> isize {
    let own = alone().unwrap_or(&[]);
    let others = value(theirs, PRELOAD).unwrap_or(&[]);
    let bytes = (own.len() + others.len() + 2).next_multiple_of(4096);
    let Some(memory) = sys::map_anonymous(bytes) else {
        return work(theirs.as_ptr().cast());
    };
    // SAFETY: room for both, a colon and the NUL, in memory that is zero.
    unsafe {
        core::ptr::copy_nonoverlapping(own.as_ptr(), memory, own.len());
        if !others.is_empty() {
            memory.add(own.len()).write(b':');
            core::ptr::copy_nonoverlapping(others.as_ptr(), memory.add(own.len() + 1), others.len());
        }
    }
    let result = work(memory.cast());
    // SAFETY: the call is over and was the only user.
    unsafe { sys::unmap(memory, bytes) };
    result
}

/// `work` with an environment that says nothing of the recording.
fn without(list: *const Entry, len: usize, work: impl Fn(usize) -> isize) -> isize {
    copied(list, 0, len + 1, |copy| {
        let mut kept = 0;
        for place in 0..len {
            // SAFETY: within the list, as `look` found; room for as many entries.
            unsafe {
                let entry = *list.add(place);
                let text = CStr::from_ptr(entry).to_bytes();
                let ours = CARRIED[1..].iter().any(|name| value(text, name).is_some());
                // Other libraries stay: then the loader says that it does not find this one.
                if !ours && Some(text) != alone() {
                    copy.add(kept).write(entry);
                    kept += 1;
                }
            }
        }
        // SAFETY: as above.
        unsafe { copy.add(kept).write(core::ptr::null()) };
        work(copy as usize)
    })
}

/// `work` with a list of `room` places that begins like `list` and is zero behind: on the stack, as this may be the child of a vfork,
/// whose parent would keep a mapping.
fn copied(list: *const Entry, len: usize, room: usize, work: impl Fn(*mut Entry) -> isize) -> isize {
    if room <= FEW {
        let mut few = [core::ptr::null(); FEW];
        if len > 0 {
            // SAFETY: as many entries, and room for them.
            unsafe { core::ptr::copy_nonoverlapping(list, few.as_mut_ptr(), len) };
        }
        return work(few.as_mut_ptr());
    }
    let bytes = (room * size_of::<Entry>()).next_multiple_of(4096);
    let Some(memory) = sys::map_anonymous(bytes) else {
        return work(list.cast_mut());
    };
    let copy: *mut Entry = memory.cast();
    if len > 0 {
        // SAFETY: as above.
        unsafe { core::ptr::copy_nonoverlapping(list, copy, len) };
    }
    let result = work(copy);
    // SAFETY: the call is over and was the only user.
    unsafe { sys::unmap(memory, bytes) };
    result
}
