//! The seccomp filter: which system calls stop the program for the tracer.

use libc::{SYS_close, c_long, sock_filter};

/// Calls that give a file data.
pub const WRITES: &[c_long] = &[
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
];

/// The others that are looked at.
const CALLS: &[c_long] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_mmap,
    libc::SYS_msync,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_submit,
];

const READS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
];

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Where `seccomp_data` holds the number and the architecture of a call, and its arguments.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;
const AT_ARGUMENTS: u32 = 16;

pub struct Filter(Vec<sock_filter>);

impl Filter {
    /// Everything that a recording has.
    pub fn recording(reads: bool) -> Self {
        let reads = if reads { READS } else { &[] };
        Self::of(&[WRITES, CALLS, reads].concat())
    }

    /// Calls that give a file data, and those that hand in requests for later.
    pub fn counting() -> Self {
        Self::of(&[WRITES, &[libc::SYS_io_submit, libc::SYS_io_uring_enter]].concat())
    }

    fn of(calls: &[c_long]) -> Self {
        let load = |at: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
        let give = |answer: u32| statement(libc::BPF_RET | libc::BPF_K, answer);
        // Calls of other architectures have other numbers: they run unseen.
        let mut program = vec![
            load(AT_ARCHITECTURE),
            jump_equal(AUDIT_ARCH_X86_64, 1, 0),
            give(libc::SECCOMP_RET_ALLOW),
            load(AT_NUMBER),
        ];
        if calls.contains(&libc::SYS_mmap) {
            // Only shared mappings (bit 0 of the flags, the low word of the fourth argument) that can be written to (bit 1 of
            // the third).
            program.extend([
                jump_equal(libc::SYS_mmap as u32, 0, 6),
                load(AT_ARGUMENTS + 3 * 8),
                jump_set(libc::MAP_SHARED as u32, 0, 3),
                load(AT_ARGUMENTS + 2 * 8),
                jump_set(libc::PROT_WRITE as u32, 0, 1),
                give(libc::SECCOMP_RET_TRACE),
                give(libc::SECCOMP_RET_ALLOW),
            ]);
        }
        if calls.contains(&libc::SYS_mprotect) {
            program.extend([
                jump_equal(libc::SYS_mprotect as u32, 0, 4),
                load(AT_ARGUMENTS + 2 * 8),
                jump_set(libc::PROT_WRITE as u32, 0, 1),
                give(libc::SECCOMP_RET_TRACE),
                give(libc::SECCOMP_RET_ALLOW),
            ]);
        }
        let calls = calls
            .iter()
            .copied()
            .filter(|&call| call != libc::SYS_mmap && call != libc::SYS_mprotect);
        for call in calls {
            program.push(jump_equal(call as u32, 0, 1));
            program.push(give(libc::SECCOMP_RET_TRACE));
        }
        program.push(give(libc::SECCOMP_RET_ALLOW));
        Self(program)
    }

    /// Makes it the filter of this process and all it starts.
    pub fn install(&self) -> std::io::Result<()> {
        let program = libc::sock_fprog {
            len: self.0.len() as libc::c_ushort,
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: numbers, and a program that outlives the calls; the kernel checks and copies it.
        let install = || {
            super::check(
                unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }.into(),
            )
        };
        install().or_else(|_| {
            // Who has no rights over others may forbid calls only to programs that cannot gain any.
            // SAFETY: numbers.
            super::check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
            install()
        })
    }
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump_equal(k: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: then,
        jf: otherwise,
        k,
    }
}

fn jump_set(k: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16,
        jt: then,
        jf: otherwise,
        k,
    }
}
