//! What a started program needs in its environment to be recorded too.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

use ftlab_record::spool;

use crate::process;
use crate::sys;

const PRELOAD: &str = "LD_PRELOAD";
const CARRIED: [&str; 5] = [
    PRELOAD,
    spool::ENV_DIR,
    spool::ENV_SIGNATURE,
    spool::ENV_CONTENT,
    spool::ENV_READS,
];

/// "NAME=value" of each, as this program was started with; null if it was not set.
static ENTRIES: [AtomicPtr<libc::c_char>; CARRIED.len()] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CARRIED.len()];

/// Called once, before `main`.
pub fn start() {
    for (entry, name) in ENTRIES.iter().zip(CARRIED) {
        if let Some(value) = process::environment(name) {
            let mut text = Vec::with_capacity(name.len() + value.len() + 2);
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value);
            text.push(0);
            entry.store(text.leak().as_mut_ptr().cast(), Ordering::Release);
        }
    }
}

/// Calls `work` with the environment, completed if it lacks something.
pub fn with(environment: usize, work: impl Fn(usize) -> isize) -> isize {
    if process::wiped().is_none() || environment == 0 {
        return work(environment);
    }
    let list = environment as *const *const libc::c_char;
    let mut missing = [true; CARRIED.len()];
    let mut len = 0;
    // SAFETY: the environment of an exec is a list of strings that ends with a null; the kernel reads it next.
    unsafe {
        while !(*list.add(len)).is_null() {
            let entry = CStr::from_ptr(*list.add(len)).to_bytes();
            for (missing, name) in missing.iter_mut().zip(CARRIED) {
                let named = entry
                    .strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"="));
                *missing &= !named;
            }
            len += 1;
        }
    }
    let wanted = |(missing, entry): (&bool, &AtomicPtr<libc::c_char>)| {
        let entry = entry.load(Ordering::Acquire);
        (*missing && !entry.is_null()).then_some(entry)
    };
    if !missing.iter().zip(&ENTRIES).any(|pair| wanted(pair).is_some()) {
        return work(environment);
    }
    // Memory of its own: this may be the child of a vfork, whose parent uses ours, and it is gone with the exec.
    let bytes = ((len + CARRIED.len() + 1) * size_of::<usize>()).next_multiple_of(4096);
    let Some(memory) = sys::map_anonymous(bytes) else {
        return work(environment);
    };
    let copy: *mut *const libc::c_char = memory.cast();
    // SAFETY: room for the old entries, the new ones and the null, in memory that is zero.
    unsafe {
        core::ptr::copy_nonoverlapping(list, copy, len);
        for entry in missing.iter().zip(&ENTRIES).filter_map(wanted) {
            *copy.add(len) = entry;
            len += 1;
        }
    }
    let result = work(copy as usize);
    // SAFETY: the call is over and was the only user.
    unsafe { sys::unmap(memory, bytes) };
    result
}
