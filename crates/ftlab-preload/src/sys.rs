//! System calls without the C library: they neither reach our own hooks nor change `errno`.
//!
//! A library that defines `write` cannot call `write`: its own definition would answer.

use core::arch::asm;
use core::ffi::CStr;

/// A system call; the kernel's answer, −4095 … −1 being an error number negated.
///
/// # Safety
/// What the kernel asks of this call and these arguments.
#[inline]
pub unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: the kernel keeps all registers but rax, rcx and r11; the rest is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {{
        #[allow(unused_mut, unused_assignments)]
        let arguments = {
            let mut all = [0usize; 6];
            let mut at = 0;
            $(all[at] = $argument as usize; at += 1;)*
            let _ = at;
            all
        };
        $crate::sys::call(libc::$number, arguments)
    }};
}

/// Answer or error number.
pub fn checked(answer: isize) -> Result<usize, i32> {
    if (-4095..0).contains(&answer) {
        Err(-answer as i32)
    } else {
        Ok(answer as usize)
    }
}

/// Memory of our own: private, zero, not counted before it is used.
pub fn map_anonymous(len: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping at a place the kernel chooses touches nothing that exists.
    let answer = unsafe {
        call!(
            SYS_mmap,
            0,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1isize,
            0
        )
    };
    checked(answer).ok().map(|at| at as *mut u8)
}

/// As `map_anonymous`, but children of fork have the same memory.
pub fn map_shared(len: usize) -> Option<*mut u8> {
    // SAFETY: as above.
    let answer = unsafe {
        call!(
            SYS_mmap,
            0,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1isize,
            0
        )
    };
    checked(answer).ok().map(|at| at as *mut u8)
}

/// Shared and writable mapping of a file.
pub fn map_file(fd: i32, offset: u64, len: usize) -> Option<*mut u8> {
    // SAFETY: as above.
    let answer = unsafe {
        call!(
            SYS_mmap,
            0,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            offset
        )
    };
    checked(answer).ok().map(|at| at as *mut u8)
}

/// Changes what may be done with memory; false: it stays as it was.
pub fn protect(at: usize, len: usize, access: i32) -> bool {
    // SAFETY: callers widen the access, or set back what it was.
    unsafe { call!(SYS_mprotect, at, len, access) == 0 }
}

/// # Safety
/// Nobody uses the memory any more.
pub unsafe fn unmap(at: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { call!(SYS_munmap, at, len) };
}

/// Zeroes the memory in the child of a fork, however it was made. False: this kernel cannot.
pub fn wipe_on_fork(at: *mut u8, len: usize) -> bool {
    const MADV_WIPEONFORK: i32 = 18;
    // SAFETY: advice on our own mapping; it changes nothing in this process.
    unsafe { call!(SYS_madvise, at, len, MADV_WIPEONFORK) == 0 }
}

pub fn open(path: &CStr, flags: i32, mode: u32) -> Result<i32, i32> {
    // SAFETY: the path ends with a NUL and outlives the call.
    checked(unsafe {
        call!(
            SYS_openat,
            libc::AT_FDCWD as isize,
            path.as_ptr(),
            flags | libc::O_CLOEXEC,
            mode
        )
    })
    .map(|fd| fd as i32)
}

/// Opens a path of the program's, which the kernel checks the address of; an empty one is the file of `folder` itself.
pub fn open_at(folder: i32, path: usize, flags: i32) -> Result<i32, i32> {
    // SAFETY: the kernel checks the path's address.
    let answer = unsafe { call!(SYS_openat, folder as isize, path, flags | libc::O_CLOEXEC, 0) };
    match checked(answer) {
        Err(libc::ENOENT) if folder >= 0 => {
            let mut link = PathBuffer::new();
            let named = link.push(b"/proc/self/fd/") && link.push_number(folder as u64);
            if named {
                open(link.as_c(), flags, 0)
            } else {
                Err(libc::ENOENT)
            }
        }
        opened => opened.map(|fd| fd as i32),
    }
}

/// Whether a file has an extended attribute.
pub fn has_attribute(fd: i32, name: &CStr) -> bool {
    // SAFETY: the name ends with a NUL; with length 0 nothing is written.
    unsafe { call!(SYS_fgetxattr, fd, name.as_ptr(), 0, 0) > 0 }
}

/// Real user and group.
pub fn real_ids() -> (u32, u32) {
    // SAFETY: they take nothing.
    unsafe { (call!(SYS_getuid) as u32, call!(SYS_getgid) as u32) }
}

/// Whether programs that this process starts get no rights by their files (`no_new_privs`).
pub fn gains_no_rights() -> bool {
    // SAFETY: it only answers.
    unsafe { call!(SYS_prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 }
}

pub fn close(fd: i32) {
    // SAFETY: only descriptors that we opened are closed.
    unsafe { call!(SYS_close, fd) };
}

pub fn fcntl(fd: i32, command: i32, argument: usize) -> Result<usize, i32> {
    // SAFETY: used with commands that take a number.
    checked(unsafe { call!(SYS_fcntl, fd, command, argument) })
}

pub fn read(fd: i32, buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes into the buffer only.
    checked(unsafe { call!(SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) }).unwrap_or(0)
}

pub fn pread(fd: i32, buffer: &mut [u8], offset: u64) -> Result<usize, i32> {
    // SAFETY: as above.
    checked(unsafe { call!(SYS_pread64, fd, buffer.as_mut_ptr(), buffer.len(), offset) })
}

pub fn pwrite(fd: i32, buffer: &[u8], offset: u64) -> Result<usize, i32> {
    // SAFETY: the kernel reads the buffer only.
    checked(unsafe { call!(SYS_pwrite64, fd, buffer.as_ptr(), buffer.len(), offset) })
}

/// Where the next `read` or `write` of the descriptor begins.
pub fn position(fd: i32) -> Result<u64, i32> {
    // SAFETY: numbers only; moves nothing.
    checked(unsafe { call!(SYS_lseek, fd, 0, libc::SEEK_CUR) }).map(|at| at as u64)
}

/// Makes a symbolic link with a text in it.
pub fn link_to(target: &CStr, path: &CStr) {
    // SAFETY: both end with a NUL and outlive the call.
    unsafe { call!(SYS_symlinkat, target.as_ptr(), libc::AT_FDCWD as isize, path.as_ptr()) };
}

/// Reads memory of this process that may not be there: how many bytes were.
pub fn read_own(address: usize, buffer: &mut [u8]) -> usize {
    let own = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let there = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    gather(&own, core::slice::from_ref(&there))
}

/// As `read_own`, from several pieces one after the other.
pub fn gather(own: &libc::iovec, pieces: &[libc::iovec]) -> usize {
    // SAFETY: the kernel writes into `own` only, which callers have made of a buffer, and checks the other addresses.
    let answer = unsafe {
        call!(
            SYS_process_vm_readv,
            pid(),
            core::ptr::from_ref(own),
            1,
            pieces.as_ptr(),
            pieces.len(),
            0
        )
    };
    checked(answer).unwrap_or(0)
}

/// Where the next data or hole of a file begins, moving nothing that the program sees: `descriptor` is one of ours.
pub fn seek(descriptor: i32, from: u64, whence: i32) -> Result<u64, i32> {
    // SAFETY: numbers only.
    checked(unsafe { call!(SYS_lseek, descriptor, from, whence) }).map(|at| at as u64)
}

pub fn allocate(fd: i32, offset: u64, len: u64) -> Result<(), i32> {
    // SAFETY: numbers only.
    checked(unsafe { call!(SYS_fallocate, fd, 0, offset, len) }).map(|_| ())
}

pub fn truncate(path: &CStr, len: u64) {
    // SAFETY: the path ends with a NUL; used on our own spools only.
    unsafe { call!(SYS_truncate, path.as_ptr(), len) };
}

/// The limit of a process on the size of files.
pub fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit64 {
        rlim_cur: u64::MAX,
        rlim_max: u64::MAX,
    };
    // SAFETY: the kernel writes the struct.
    unsafe { call!(SYS_prlimit64, 0, libc::RLIMIT_FSIZE, 0, &raw mut limit) };
    limit.rlim_cur
}

/// Lets this process have one more descriptor, if it may; gives back the limit that was.
pub fn raise_descriptor_limit() -> Option<libc::rlimit64> {
    let mut limit = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes the struct.
    unsafe { call!(SYS_prlimit64, 0, libc::RLIMIT_NOFILE, 0, &raw mut limit) };
    if limit.rlim_cur >= limit.rlim_max {
        return None;
    }
    let raised = libc::rlimit64 {
        rlim_cur: limit.rlim_cur + 1,
        ..limit
    };
    set_descriptor_limit(&raised);
    Some(limit)
}

pub fn set_descriptor_limit(limit: &libc::rlimit64) {
    // SAFETY: the kernel reads the struct.
    unsafe { call!(SYS_prlimit64, 0, libc::RLIMIT_NOFILE, core::ptr::from_ref(limit), 0) };
}

/// Target of a symbolic link; what does not fit is cut.
pub fn read_link<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: the kernel writes into the buffer only.
    let len = checked(unsafe {
        call!(
            SYS_readlinkat,
            libc::AT_FDCWD as isize,
            path.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len()
        )
    });
    &buffer[..len.unwrap_or(0).min(buffer.len())]
}

/// What the kernel says of a file.
#[derive(Clone, Copy, Default, Debug)]
pub struct Status {
    pub regular: bool,
    pub folder: bool,
    pub device: u64,
    pub inode: u64,
    pub birth_ns: u64,
    pub size: u64,
    pub links: u32,
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
}

/// Of the file of a descriptor (`path` empty), or of a path relative to it. Symbolic links are followed if asked for.
pub fn status(fd: i32, path: &CStr, follow: bool) -> Result<Status, i32> {
    status_at(fd, path.as_ptr() as usize, follow)
}

/// As `status`, of a path that the kernel checks the address of.
pub fn status_at(fd: i32, path: usize, follow: bool) -> Result<Status, i32> {
    let mut flags = libc::AT_STATX_DONT_SYNC | libc::AT_EMPTY_PATH;
    if !follow {
        flags |= libc::AT_SYMLINK_NOFOLLOW;
    }
    let wanted = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: all zeros is a statx; the kernel fills it in.
    let mut found: libc::statx = unsafe { core::mem::zeroed() };
    // SAFETY: as above; the kernel checks the path's address.
    let answer = unsafe { call!(SYS_statx, fd as isize, path, flags, wanted, &raw mut found) };
    checked(answer)?;
    let birth = if found.stx_mask & libc::STATX_BTIME != 0 {
        (found.stx_btime.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(found.stx_btime.tv_nsec.into())
    } else {
        0
    };
    Ok(Status {
        regular: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG,
        folder: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFDIR,
        device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
        inode: found.stx_ino,
        birth_ns: birth,
        size: found.stx_size,
        links: found.stx_nlink,
        mode: found.stx_mode.into(),
        owner: found.stx_uid,
        group: found.stx_gid,
    })
}

pub fn pid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { call!(SYS_getpid) as u32 }
}

pub fn parent_pid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { call!(SYS_getppid) as u32 }
}

pub fn tid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { call!(SYS_gettid) as u32 }
}

pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { call!(SYS_sched_yield) };
}

pub fn sleep_briefly() {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 50_000,
    };
    // SAFETY: reads the struct.
    unsafe { call!(SYS_nanosleep, &raw const pause, 0) };
}

/// Nanoseconds of a clock; through the C library, which reads it without a system call and is not hooked.
pub fn clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the struct.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// A path on the stack with its NUL.
pub struct PathBuffer {
    bytes: [u8; 256],
    len: usize,
}

impl PathBuffer {
    pub const fn new() -> Self {
        Self {
            bytes: [0; 256],
            len: 0,
        }
    }

    /// False if it is full.
    pub fn push(&mut self, text: &[u8]) -> bool {
        // One byte is kept for the NUL.
        let end = self.len + text.len();
        if end >= self.bytes.len() {
            return false;
        }
        self.bytes[self.len..end].copy_from_slice(text);
        self.len = end;
        true
    }

    pub fn push_number(&mut self, mut number: u64) -> bool {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 || at == 0 {
                break;
            }
        }
        self.push(&digits[at..])
    }

    pub fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}
