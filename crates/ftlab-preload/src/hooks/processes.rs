//! Calls that start other programs: the recording goes along.
//!
//! # Model
//! A program that is started with an environment of its own gets what this library needs added to it, if it is missing. One that
//! the library will not be loaded into is noted beforehand, as nobody is there to do so afterwards. A library that is closed makes room
//! for another.
//! # Not modelled
//! execle with an environment of its own; posix_spawn of glibc before 2.15. Programs that cannot be read; an exec that fails although
//! the file may be executed.

use core::ffi::CStr;

use ftlab_record::loading::{self, Content, Ownership};
use ftlab_record::spool::NoteKind;

use super::{Real, hooks};
use crate::{environment, process, sys, thread};

hooks! {
    execv => |arguments, _, real| { starts(Program::At(libc::AT_FDCWD, arguments[0])); real.call(arguments) };
    execvp => |arguments, _, real| { starts(Program::Named(arguments[0])); real.call(arguments) };
    execve => |arguments, _, real| replaced(Program::At(libc::AT_FDCWD, arguments[0]), 2, arguments, real);
    execvpe => |arguments, _, real| replaced(Program::Named(arguments[0]), 2, arguments, real);
    fexecve => |arguments, _, real| replaced(Program::At(arguments[0] as i32, c"".as_ptr() as usize), 2, arguments, real);
    execveat => |arguments, _, real| replaced(Program::At(arguments[0] as i32, arguments[1]), 3, arguments, real);
    posix_spawn => |arguments, _, real| replaced(Program::At(libc::AT_FDCWD, arguments[1]), 5, arguments, real);
    posix_spawnp => |arguments, _, real| replaced(Program::Named(arguments[1]), 5, arguments, real);
    dlclose => |arguments, _, real| {
        let done = real.call(arguments);
        crate::modules::forget();
        done
    };
}

/// Defines hooks of functions with any number of arguments: they look, and hand over to the function with everything in its place.
macro_rules! lookers {
    ($($name:ident => $look:expr;)*) => {
        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "push rbp",
                    ".cfi_def_cfa_offset 16",
                    ".cfi_offset rbp, -16",
                    "mov rbp, rsp",
                    ".cfi_def_cfa_register rbp",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    // How many vector registers hold arguments.
                    "push rax",
                    "sub rsp, 8",
                    "call {look}",
                    "mov r11, rax",
                    "add rsp, 8",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rbp",
                    ".cfi_def_cfa rsp, 8",
                    "jmp r11",
                    ".cfi_endproc",
                    look = sym looks::$name,
                )
            }
        )*

        mod looks {
            use super::*;
            $(
                /// Gives back the function's address.
                pub extern "C" fn $name(first: usize) -> usize {
                    let look: fn(usize) = $look;
                    look(first);
                    functions::$name.address()
                }
            )*
        }

        #[allow(non_upper_case_globals)]
        mod functions {
            use super::*;
            $(
                pub static $name: Real = Real::new(
                    // SAFETY: ends with the only NUL.
                    unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
                );
            )*
        }

        /// As `resolve`.
        pub fn resolve_lookers() {
            $(functions::$name.resolve();)*
        }
    };
}

lookers! {
    execl => |path| starts(Program::At(libc::AT_FDCWD, path));
    execle => |path| starts(Program::At(libc::AT_FDCWD, path));
    execlp => |name| starts(Program::Named(name));
}

/// How a call names a program; texts are the program's pointers.
#[derive(Clone, Copy)]
pub enum Program {
    /// A path from a folder on, or an open file if it is empty.
    At(i32, usize),
    /// A name that is looked for in PATH, unless it is a path.
    Named(usize),
}

/// A program starts; its environment is the argument at `place`.
pub fn replaced(program: Program, place: usize, arguments: [usize; 6], real: &Real) -> isize {
    starts(program);
    environment::with(arguments[place], |environment| {
        let mut arguments = arguments;
        arguments[place] = environment;
        real.call(arguments)
    })
}

/// Leaves word of a program that the library will not be loaded into.
pub fn starts(program: Program) {
    let Some(wiped) = process::wiped() else { return };
    let loaded = match program {
        Program::At(folder, path) => is_loaded(folder, path),
        Program::Named(name) => is_found_loaded(name),
    };
    if loaded == Some(false) {
        thread::with(|recording| {
            wiped.note(NoteKind::NotLoaded, 1);
            recording.writer().map(|_| ())
        });
    }
}

/// `None`: there is no such program, or it cannot be read.
fn is_found_loaded(name: usize) -> Option<bool> {
    if name == 0 {
        return None;
    }
    // SAFETY: the C library reads the name next, to look for a slash.
    let text = unsafe { CStr::from_ptr(name as *const libc::c_char) }.to_bytes();
    if text.contains(&b'/') {
        return is_loaded(libc::AT_FDCWD, name);
    }
    let folders = process::environment("PATH").unwrap_or(b"/bin:/usr/bin");
    folders.split(|&byte| byte == b':').find_map(|folder| {
        let mut path = sys::PathBuffer::new();
        let folder = if folder.is_empty() { b"." } else { folder };
        (path.push(folder) && path.push(b"/") && path.push(text)).then_some(())?;
        is_loaded(libc::AT_FDCWD, path.as_c().as_ptr() as usize)
    })
}

/// Whether the library is loaded into a program: a file, its interpreter, and so on, as deep as the kernel goes.
fn is_loaded(folder: i32, path: usize) -> Option<bool> {
    const DEEPEST: usize = 5;
    let mut interpreter;
    let mut at = (folder, path);
    for _ in 0..DEEPEST {
        let status = sys::status_at(at.0, at.1, true).ok()?;
        if !status.regular || status.mode & 0o111 == 0 {
            return None;
        }
        let mut head = [0; loading::HEAD];
        let fd = sys::open_at(at.0, at.1, libc::O_RDONLY | libc::O_NONBLOCK).ok()?;
        let len = sys::read(fd, &mut head);
        let capabilities = sys::has_attribute(fd, loading::CAPABILITIES);
        sys::close(fd);
        match loading::content(head.get(..len)?) {
            Content::NotLoaded(_) => return Some(false),
            Content::Loaded => {
                let (user, users_group) = sys::real_ids();
                let ownership = Ownership {
                    mode: status.mode,
                    owner: status.owner,
                    group: status.group,
                    capabilities,
                    user,
                    users_group,
                };
                return Some(sys::gains_no_rights() || !ownership.gives_rights());
            }
            Content::Script(path) => {
                interpreter = sys::PathBuffer::new();
                interpreter.push(path).then_some(())?;
                at = (libc::AT_FDCWD, interpreter.as_c().as_ptr() as usize);
            }
        }
    }
    None
}
