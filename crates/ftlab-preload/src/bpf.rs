//! What a seccomp filter says to the system calls that a record takes.
//!
//! # Model
//! The filter is run here before the kernel has it, on each call that this library may make, with arguments like those it makes. A filter
//! that allows them all lets the recording go on.
//! # Source
//! seccomp(2); Linux `kernel/seccomp.c` (what is checked and how it runs), `include/uapi/linux/filter.h`.

use libc::{c_long, sock_filter};

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Bytes of `seccomp_data`: number, architecture, instruction pointer, six arguments.
const DATA: usize = 64;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const LOG: u32 = libc::SECCOMP_RET_LOG;

const ANY_FD: u64 = 900;
const ANY_ADDRESS: u64 = 0x7f00_0000_1000;
const HERE: u64 = libc::AT_FDCWD as u64;

/// The calls of a record, with arguments like its own.
const CALLS: &[(c_long, [u64; 6])] = &[
    (
        libc::SYS_openat,
        [
            HERE,
            ANY_ADDRESS,
            (libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64,
            0o644,
            0,
            0,
        ],
    ),
    (libc::SYS_openat, [HERE, ANY_ADDRESS, libc::O_CLOEXEC as u64, 0, 0, 0]),
    (libc::SYS_close, [ANY_FD, 0, 0, 0, 0, 0]),
    (libc::SYS_fcntl, [ANY_FD, libc::F_DUPFD_CLOEXEC as u64, ANY_FD, 0, 0, 0]),
    (libc::SYS_fcntl, [ANY_FD, libc::F_GETFL as u64, 0, 0, 0, 0]),
    (
        libc::SYS_mmap,
        [
            0,
            1 << 20,
            (libc::PROT_READ | libc::PROT_WRITE) as u64,
            libc::MAP_SHARED as u64,
            ANY_FD,
            0,
        ],
    ),
    (
        libc::SYS_mmap,
        [
            0,
            1 << 20,
            (libc::PROT_READ | libc::PROT_WRITE) as u64,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64,
            u64::MAX,
            0,
        ],
    ),
    (libc::SYS_munmap, [ANY_ADDRESS, 1 << 20, 0, 0, 0, 0]),
    (libc::SYS_statx, [ANY_FD, ANY_ADDRESS, 0, 0xfff, ANY_ADDRESS, 0]),
    (libc::SYS_fallocate, [ANY_FD, 0, 0, 1 << 20, 0, 0]),
    (libc::SYS_read, [ANY_FD, ANY_ADDRESS, 4096, 0, 0, 0]),
    (libc::SYS_pread64, [ANY_FD, ANY_ADDRESS, 4096, 0, 0, 0]),
    (libc::SYS_readlinkat, [HERE, ANY_ADDRESS, ANY_ADDRESS, 4096, 0, 0]),
    (libc::SYS_lseek, [ANY_FD, 0, libc::SEEK_CUR as u64, 0, 0, 0]),
    (libc::SYS_truncate, [ANY_ADDRESS, 4096, 0, 0, 0, 0]),
    (
        libc::SYS_prlimit64,
        [0, libc::RLIMIT_FSIZE as u64, 0, ANY_ADDRESS, 0, 0],
    ),
    (libc::SYS_getpid, [0; 6]),
    (libc::SYS_getppid, [0; 6]),
    (libc::SYS_gettid, [0; 6]),
    (libc::SYS_sched_yield, [0; 6]),
    (libc::SYS_nanosleep, [ANY_ADDRESS, 0, 0, 0, 0, 0]),
    (libc::SYS_process_vm_readv, [1, ANY_ADDRESS, 1, ANY_ADDRESS, 1, 0]),
];

/// Whether a filter allows every call of a record.
pub fn allows_records(program: &[sock_filter]) -> bool {
    CALLS.iter().all(|&(number, arguments)| {
        let answer = run(program, &data(number, arguments));
        matches!(
            answer.map(|answer| answer & libc::SECCOMP_RET_ACTION_FULL),
            Some(ALLOW | LOG)
        )
    })
}

fn data(number: c_long, arguments: [u64; 6]) -> [u8; DATA] {
    let mut data = [0; DATA];
    data[..4].copy_from_slice(&(number as u32).to_le_bytes());
    data[4..8].copy_from_slice(&AUDIT_ARCH_X86_64.to_le_bytes());
    for (place, argument) in data[16..].chunks_exact_mut(8).zip(arguments) {
        place.copy_from_slice(&argument.to_le_bytes());
    }
    data
}

/// What the filter answers; `None`: it is none that the kernel would take.
fn run(program: &[sock_filter], data: &[u8; DATA]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0usize;
    loop {
        let sock_filter { code, jt, jf, k } = *program.get(at)?;
        at += 1;
        let code = u32::from(code);
        let source = if code & libc::BPF_X != 0 { x } else { k };
        match code & 7 {
            libc::BPF_LD | libc::BPF_LDX => {
                let value = match code & 0xe0 {
                    libc::BPF_IMM => k,
                    libc::BPF_ABS => {
                        let bytes = data.get(k as usize..k as usize + 4)?;
                        u32::from_le_bytes(bytes.try_into().ok()?)
                    }
                    libc::BPF_MEM => *memory.get(k as usize)?,
                    libc::BPF_LEN => DATA as u32,
                    _ => return None,
                };
                if code & 7 == libc::BPF_LD { a = value } else { x = value }
            }
            libc::BPF_ST => *memory.get_mut(k as usize)? = a,
            libc::BPF_STX => *memory.get_mut(k as usize)? = x,
            libc::BPF_ALU => {
                a = match code & 0xf0 {
                    libc::BPF_ADD => a.wrapping_add(source),
                    libc::BPF_SUB => a.wrapping_sub(source),
                    libc::BPF_MUL => a.wrapping_mul(source),
                    libc::BPF_DIV => a.checked_div(source)?,
                    libc::BPF_OR => a | source,
                    libc::BPF_AND => a & source,
                    libc::BPF_LSH => a.checked_shl(source).unwrap_or(0),
                    libc::BPF_RSH => a.checked_shr(source).unwrap_or(0),
                    libc::BPF_XOR => a ^ source,
                    libc::BPF_NEG => a.wrapping_neg(),
                    _ => return None,
                }
            }
            libc::BPF_JMP => {
                let holds = match code & 0xf0 {
                    libc::BPF_JA => {
                        at = at.checked_add(k as usize)?;
                        continue;
                    }
                    libc::BPF_JEQ => a == source,
                    libc::BPF_JGT => a > source,
                    libc::BPF_JGE => a >= source,
                    libc::BPF_JSET => a & source != 0,
                    _ => return None,
                };
                at += usize::from(if holds { jt } else { jf });
            }
            libc::BPF_RET => {
                return match code & 0x18 {
                    0 => Some(k),
                    0x10 => Some(a),
                    _ => None,
                };
            }
            // MISC: TAX and TXA.
            _ => {
                if code & 0x80 == 0 {
                    x = a;
                } else {
                    a = x;
                }
            }
        }
    }
}
