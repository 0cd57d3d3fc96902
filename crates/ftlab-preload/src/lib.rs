//! The library inside a recorded program: it sees the program's file calls and writes them to spools.
//!
//! # Model
//! Loaded by `LD_PRELOAD` when the environment names a folder for the spools; without that it passes every call on. It
//! stands before the functions of the C library that touch files ([`hooks`]), and behind its buffered streams, keeps in
//! mind which descriptor is which file ([`files`]), and writes a record for each call into the spool of the thread
//! ([`thread`], [`space`]) with the signature of the call path ([`signature`]).
//!
//! The program must not notice: errors and results are passed on as they are, `errno` stays (system calls are made past
//! the C library, see [`sys`]), nothing is printed, no signal is touched, `malloc` is never called (the program may be inside it),
//! no descriptor is held, no lock outlives a fork.
//! # Not modelled
//! Programs without a dynamic loader (static ones), set-user-id programs, and system calls that no library function makes: what can
//! be told of them is a note ([`accounts`], [`tell`]). Clones of extents (FICLONE). A seccomp filter that was there when the program was
//! started.

#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#![expect(
    unsafe_code,
    reason = "stands between a program, its C library and the kernel; each place has its proof"
)]

mod accounts;
mod arena;
mod bpf;
mod content;
mod environment;
mod files;
mod hooks;
mod java;
mod modules;
mod process;
mod record;
mod signature;
mod space;
mod sys;
mod tell;
mod thread;

/// Run by the loader before `main`, and when the process ends by `exit`.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    process::start();
    if process::wiped().is_some() {
        thread::start();
        modules::start();
        environment::start();
        hooks::resolve();
        accounts::start();
        // Run last by `quick_exit`, as it was asked for first; that runs nothing else of a library.
        // SAFETY: a function that stays as long as the process.
        unsafe { __cxa_at_quick_exit(quick_end, core::ptr::null_mut()) };
    }
}

unsafe extern "C" {
    /// What `at_quick_exit` of the C library calls, which is no function of the shared library.
    fn __cxa_at_quick_exit(run: extern "C" fn(*mut libc::c_void), library: *mut libc::c_void) -> i32;
}

extern "C" fn quick_end(_: *mut libc::c_void) {
    thread::process_ends();
}

extern "C" fn end() {
    thread::process_ends();
}
