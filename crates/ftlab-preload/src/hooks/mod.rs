//! The functions of the C library that a recorded program calls, seen on their way.
//!
//! # Model
//! Each hook makes the program's call through the function it stands before, gives back what that gave back, and makes its record
//! after a success. A hook's entry is a few instructions that keep the caller's registers where the signature's walkers find
//! them; exceptions and thread cancellation unwind through it. Functions that take variable arguments are hooked with a fixed number
//! of them: they arrive in the same registers.

pub mod descriptors;
pub mod memory;
pub mod names;
pub mod processes;
pub mod raw;
pub mod read;
pub mod ring;
mod ring_request;
pub mod sandbox;
pub mod stdio;
mod stored;
pub mod sync;
mod transfer;
pub mod write;

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The function that a hook stands before.
pub struct Real {
    name: &'static CStr,
    address: AtomicUsize,
    /// For `syscall`: the number, which comes before the arguments.
    number: Option<usize>,
}

type Six = extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;
type Seven = extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;

impl Real {
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicUsize::new(0),
            number: None,
        }
    }

    /// `function` is `syscall`: calls with this number.
    pub fn numbered(function: &Real, number: usize) -> Self {
        Self {
            name: function.name,
            address: AtomicUsize::new(function.address()),
            number: Some(number),
        }
    }

    /// A function that is found in another way.
    pub fn set(&self, address: usize) {
        self.address.store(address, Ordering::Relaxed);
    }

    /// Looked up before `main` by `resolve`, since a lookup takes the loader's lock; earlier calls (of other libraries'
    /// constructors) look for themselves.
    pub fn address(&self) -> usize {
        let address = self.address.load(Ordering::Relaxed);
        if address != 0 {
            return address;
        }
        let mut found = self.resolve();
        if found == 0 {
            found = self.among_local();
            self.address.store(found, Ordering::Relaxed);
        }
        found
    }

    pub fn resolve(&self) -> usize {
        // SAFETY: a name with its NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(found, Ordering::Relaxed);
        found
    }

    /// In libraries that may have been loaded for their users alone (`RTLD_LOCAL`), which a search by name leaves out.
    fn among_local(&self) -> usize {
        const LIBRARIES: [&CStr; 4] = [c"libaio.so.1", c"libaio.so.1t64", c"liburing.so.2", c"librt.so.1"];
        // SAFETY: names with their NULs; a library that is not there is not loaded. It is given back at once, and stays as long as
        // whoever calls this function of it has it.
        let find = |library: &&CStr| unsafe {
            let library = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            let found = libc::dlsym(library, self.name.as_ptr()) as usize;
            libc::dlclose(library);
            // A library that does not have it itself finds it here.
            let mut place: libc::Dl_info = core::mem::zeroed();
            let mut own: libc::Dl_info = core::mem::zeroed();
            let known = libc::dladdr(found as *const libc::c_void, &raw mut place) != 0
                && libc::dladdr(resolve as *const libc::c_void, &raw mut own) != 0;
            (found != 0 && known && place.dli_fbase != own.dli_fbase).then_some(found)
        };
        LIBRARIES.iter().find_map(find).unwrap_or(0)
    }

    /// Calls it. A function that this C library does not have fails as an unknown system call does.
    #[inline]
    pub fn call(&self, arguments: [usize; 6]) -> isize {
        let address = self.address();
        if address == 0 {
            // SAFETY: the thread's own error number.
            unsafe { *libc::__errno_location() = libc::ENOSYS };
            return -1;
        }
        let [a, b, c, d, e, f] = arguments;
        if let Some(number) = self.number {
            // SAFETY: `syscall` takes a number and at most six words.
            let function: Seven = unsafe { core::mem::transmute(address) };
            return function(number, a, b, c, d, e, f);
        }
        // SAFETY: all these functions take at most six words in registers and give back one; superfluous ones do no harm.
        let function: Six = unsafe { core::mem::transmute(address) };
        function(a, b, c, d, e, f)
    }
}

/// Defines hooks: exported entries that call their Rust function with six words and the call site.
///
/// The entry makes an ordinary frame; the frame pointer then points at the caller's frame pointer, return address and stack,
/// which is a [`crate::signature::CallSite`].
macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident => $code:expr;)*) => {
        $(
            $(#[$doc])*
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
                    "sub rsp, 8",
                    "push rbp",
                    "call {code}",
                    "leave",
                    ".cfi_def_cfa rsp, 8",
                    "ret",
                    ".cfi_endproc",
                    code = sym entry::$name,
                )
            }
        )*

        mod entry {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[allow(clippy::too_many_arguments)]
                pub extern "C" fn $name(
                    a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, at: &$crate::signature::CallSite,
                ) -> isize {
                    let code: fn([usize; 6], &$crate::signature::CallSite, &$crate::hooks::Real) -> isize = $code;
                    code([a, b, c, d, e, f], at, &real::$name)
                }
            )*
        }

        #[allow(non_upper_case_globals)]
        mod real {
            $(
                pub static $name: $crate::hooks::Real = $crate::hooks::Real::new(
                    // SAFETY: ends with the only NUL.
                    unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
                );
            )*
        }

        /// Looks up the functions that the hooks of this file stand before.
        #[allow(dead_code, reason = "streams are found in another way")]
        pub fn resolve() {
            $(real::$name.resolve();)*
        }
    };
}
pub(crate) use hooks;

/// Called once, before `main`.
pub fn resolve() {
    descriptors::resolve();
    memory::resolve();
    names::resolve();
    processes::resolve();
    processes::resolve_ends();
    raw::resolve();
    read::resolve();
    ring::resolve();
    sandbox::resolve();
    sync::resolve();
    write::resolve();
    stdio::start();
}
