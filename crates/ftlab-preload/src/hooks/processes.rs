//! Calls that start other programs: the recording goes along.
//!
//! # Model
//! A started program gets what this library needs added to its environment, if it is missing there: also where the program that
//! starts it has emptied its own, or lists its own libraries. One that the library will not be loaded into is noted beforehand, by name, as nobody is
//! there to do so afterwards. What a process image leaves is told before another replaces it. A library that is closed makes room for
//! another.
//! # Not modelled
//! posix_spawn of glibc before 2.15. Programs that cannot be read; an exec that fails although the file may be executed.

use core::ffi::CStr;

use ftlab_record::loading::{self, Content, Ownership};
use ftlab_record::spool::NoteKind;

use super::{Real, hooks};
use crate::{environment, process, sys, tell, thread};

#[expect(non_snake_case, reason = "the C library's own name")]
mod ends {
    use super::{hooks, thread};

    hooks! {
        _exit => |arguments, _, real| { thread::process_ends(); real.call(arguments) };
        _Exit => |arguments, _, real| { thread::process_ends(); real.call(arguments) };
    }
}

hooks! {
    execve => |arguments, _, real| replaced(Program::At(libc::AT_FDCWD, arguments[0]), 2, arguments, real);
    execvpe => |arguments, _, real| replaced(Program::Named(arguments[0]), 2, arguments, real);
    execv => |arguments, _, _| replaced(Program::At(libc::AT_FDCWD, arguments[0]), 2, with_own(arguments), &real::execve);
    execvp => |arguments, _, _| replaced(Program::Named(arguments[0]), 2, with_own(arguments), &real::execvpe);
    fexecve => |arguments, _, real| replaced(Program::At(arguments[0] as i32, c"".as_ptr() as usize), 2, arguments, real);
    execveat => |arguments, _, real| replaced(Program::At(arguments[0] as i32, arguments[1]), 3, arguments, real);
    posix_spawn => |arguments, _, real| started(Program::At(libc::AT_FDCWD, arguments[1]), 5, arguments, real);
    posix_spawnp => |arguments, _, real| started(Program::Named(arguments[1]), 5, arguments, real);
    system => by_a_shell;
    popen => by_a_shell;
    dlclose => |arguments, _, real| {
        let done = real.call(arguments);
        crate::modules::forget();
        done
    };
}

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// The program's environment, whatever it has made of it.
fn own() -> usize {
    // SAFETY: the functions that are stood in for read it in the same moment.
    unsafe { environ as usize }
}

/// The arguments of `execv` become those of `execve`.
fn with_own(mut arguments: [usize; 6]) -> [usize; 6] {
    arguments[2] = own();
    arguments
}

/// `system` and `popen` start a shell with the program's own environment, which is completed meanwhile.
fn by_a_shell(arguments: [usize; 6], _: &crate::signature::CallSite, real: &Real) -> isize {
    let before = own();
    environment::with(before, b"/bin/sh", |completed| {
        if completed == before {
            return real.call(arguments);
        }
        // SAFETY: a list with the same entries and more; put back unless the program has set another.
        unsafe { environ = completed as *mut *mut libc::c_char };
        let done = real.call(arguments);
        if own() == completed {
            // SAFETY: what it was before.
            unsafe { environ = before as *mut *mut libc::c_char };
        }
        done
    })
}

/// Defines hooks of functions with any number of arguments: they get the words in registers, and where the others lie.
macro_rules! variadic {
    ($($name:ident => $code:expr;)*) => {
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
                    "push r9",
                    "push r8",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    "push rdi",
                    "mov rdi, rsp",
                    "lea rsi, [rbp + 16]",
                    "call {code}",
                    "leave",
                    ".cfi_def_cfa rsp, 8",
                    "ret",
                    ".cfi_endproc",
                    code = sym listed::$name,
                )
            }
        )*

        mod listed {
            use super::*;
            $(
                pub extern "C" fn $name(registers: *const usize, others: *const usize) -> isize {
                    let code: fn(&Words) -> isize = $code;
                    code(&Words { registers, others })
                }
            )*
        }
    };
}

variadic! {
    execl => |words| words.replaced(Program::At(libc::AT_FDCWD, words.at(0)), false, &real::execve);
    execle => |words| words.replaced(Program::At(libc::AT_FDCWD, words.at(0)), true, &real::execve);
    execlp => |words| words.replaced(Program::Named(words.at(0)), false, &real::execvpe);
}

/// The arguments of a function that takes any number of them.
struct Words {
    registers: *const usize,
    others: *const usize,
}

impl Words {
    fn at(&self, place: usize) -> usize {
        // SAFETY: the caller has put as many there as it says by the null that ends them, behind which nothing is looked at but
        // the environment of `execle`.
        unsafe {
            match place.checked_sub(6) {
                None => self.registers.add(place).read(),
                Some(other) => self.others.add(other).read(),
            }
        }
    }

    /// As `execve` or `execvpe`: the words behind the first, up to a null, are the program's arguments.
    fn replaced(&self, program: Program, has_environment: bool, real: &Real) -> isize {
        const FEW: usize = 64;
        let count = (1..).take_while(|&place| self.at(place) != 0).count();
        let environment = if has_environment { self.at(count + 2) } else { own() };
        let call = |list: *mut usize| {
            for place in 0..count {
                // SAFETY: room for them and the null, in memory that is zero.
                unsafe { list.add(place).write(self.at(place + 1)) };
            }
            replaced(program, 2, [self.at(0), list as usize, environment, 0, 0, 0], real)
        };
        if count < FEW {
            return call([0; FEW].as_mut_ptr());
        }
        let bytes = ((count + 1) * size_of::<usize>()).next_multiple_of(4096);
        let Some(memory) = sys::map_anonymous(bytes) else {
            // SAFETY: the thread's own error number.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            return -1;
        };
        let done = call(memory.cast());
        // SAFETY: the call is over and was the only user.
        unsafe { sys::unmap(memory, bytes) };
        done
    }
}

/// How a call names a program; texts are the program's pointers.
#[derive(Clone, Copy)]
pub enum Program {
    /// A path from a folder on, or an open file if it is empty.
    At(i32, usize),
    /// A name that is looked for in PATH, unless it is a path.
    Named(usize),
}

/// Another program takes the place of this one; its environment is the argument at `place`.
pub fn replaced(program: Program, place: usize, arguments: [usize; 6], real: &Real) -> isize {
    // A program that cannot be started leaves this one as it was, and all is told when it ends.
    if found(program) {
        thread::process_ends();
    }
    started(program, place, arguments, real)
}

/// A program starts; its environment is the argument at `place`.
fn started(program: Program, place: usize, arguments: [usize; 6], real: &Real) -> isize {
    starts(program);
    environment::with(arguments[place], name(program), |environment| {
        let mut arguments = arguments;
        arguments[place] = environment;
        real.call(arguments)
    })
}

/// As the call has it.
fn name(program: Program) -> &'static [u8] {
    let (Program::At(_, text) | Program::Named(text)) = program;
    let mut first = [0];
    if text == 0 || sys::read_own(text, &mut first) != 1 {
        return b"";
    }
    // SAFETY: a text of the program's, which can be read and which the kernel reads next.
    unsafe { CStr::from_ptr(text as *const libc::c_char) }.to_bytes()
}

/// Whether there is a file of this name; one that is looked for in PATH counts.
fn found(program: Program) -> bool {
    match program {
        Program::At(folder, path) => sys::status_at(folder, path, true).is_ok(),
        Program::Named(_) => true,
    }
}

/// Leaves word of a program that the library will not be loaded into.
fn starts(program: Program) {
    if process::wiped().is_none() {
        return;
    }
    let loaded = match program {
        Program::At(folder, path) => is_loaded(folder, path),
        Program::Named(name) => is_found_loaded(name),
    };
    if loaded == Some(false) {
        tell::note(NoteKind::NotLoaded, 1, name(program));
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

/// As `resolve`, of the functions that end the process.
pub fn resolve_ends() {
    ends::resolve();
}
