//! A traced process and its files, as /proc shows them.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::Tid;
use super::handed::Rings;
use super::spools::{self, Out};
use super::stack::Stack;
use super::stored::Mappings;
use ftlab_record::spool::{FileFacts, file_flags, mix};

pub struct Process {
    pid: Tid,
    image: u64,
    described: bool,
    next_file: u32,
    /// Descriptors that were looked at; `None`: of no interest.
    descriptors: FxHashMap<i32, Option<Known>>,
    pub stack: Stack,
    pub rings: Rings,
    pub mappings: Mappings,
}

/// A shared mapping of a file as /proc shows it.
pub struct Shared {
    pub address: u64,
    pub len: u64,
    pub offset: u64,
    pub inode: u64,
    pub path: Vec<u8>,
    /// As we can open it.
    pub reachable: PathBuf,
}

/// A file that is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub id: u32,
    pub flags: u16,
}

impl Known {
    pub fn op_flags(self) -> u16 {
        file_flags::of_ops(self.flags)
    }
}

/// What the kernel says of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    pub regular: bool,
    pub device: u64,
    pub inode: u64,
    pub birth_ns: u64,
    pub size: u64,
    pub links: u32,
}

impl Process {
    pub fn new(pid: Tid) -> Self {
        Self {
            pid,
            image: mix(spools::now() ^ (pid as u64) << 40) | 1,
            described: false,
            next_file: 0,
            descriptors: FxHashMap::default(),
            stack: Stack::new(pid),
            rings: Rings::default(),
            mappings: Mappings::default(),
        }
    }

    /// Shared mappings of files that begin in a range of memory.
    pub fn shared_mappings(&self, address: u64, len: u64) -> Vec<Shared> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        let shared = |line: &str| {
            let mut fields = line.split_whitespace();
            let (start, end) = fields.next()?.split_once('-')?;
            let hex = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (hex(start)?, hex(end)?);
            let access = fields.next()?;
            let offset = hex(fields.next()?)?;
            let inode = fields.nth(1)?.parse().ok()?;
            let path = &line[line.find('/')?..];
            let within = (address..address.saturating_add(len)).contains(&start);
            (within && access.ends_with('s')).then(|| Shared {
                address: start,
                len: end - start,
                offset,
                inode,
                path: path.as_bytes().to_vec(),
                reachable: self.resolve(libc::AT_FDCWD, path.as_bytes()).0,
            })
        };
        maps.lines().filter_map(shared).collect()
    }

    pub fn pid(&self) -> Tid {
        self.pid
    }

    pub fn image(&self) -> u64 {
        self.image
    }

    /// True once.
    pub fn first_description(&mut self) -> bool {
        !std::mem::replace(&mut self.described, true)
    }

    /// Path of the program, and its command line.
    pub fn describe(&self) -> (Vec<u8>, Vec<u8>) {
        let exe = self
            .started_as()
            .unwrap_or_else(|| std::fs::read_link(exe(self.pid)).unwrap_or_default());
        let command = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        (exe.as_os_str().as_bytes().to_vec(), command)
    }

    /// The name that the program was started by, as the library has it.
    fn started_as(&self) -> Option<PathBuf> {
        const EXECFN: u64 = libc::AT_EXECFN;
        let vector = std::fs::read(format!("/proc/{}/auxv", self.pid)).ok()?;
        let mut pairs = vector.chunks_exact(16).map(|pair| {
            let word = |at: usize| {
                pair[at..at + 8]
                    .iter()
                    .rev()
                    .fold(0u64, |word, &byte| word << 8 | u64::from(byte))
            };
            (word(0), word(8))
        });
        let (_, address) = pairs.find(|&(kind, _)| kind == EXECFN)?;
        let name = super::stack::string(self.pid, address, 4096)?;
        let (reachable, path) = self.resolve(libc::AT_FDCWD, name.strip_prefix(b"./").unwrap_or(&name));
        let (named, own) = (status(&reachable, true)?, status(&exe(self.pid), true)?);
        let same = (named.device, named.inode) == (own.device, own.inode);
        same.then(|| PathBuf::from(OsStr::from_bytes(&path)))
    }

    pub fn parent(&self) -> u32 {
        status_field(self.pid, "PPid:").unwrap_or(0)
    }

    /// The file of a mapping, described in the spool on its first use if the mapping is a parent's.
    pub fn mapped_file(&mut self, number: usize, out: &mut Out<'_>) -> Option<Known> {
        let mapping = self.mappings.get(number)?;
        if mapping.file.is_none() {
            let (status, path) = (mapping.status, mapping.path()?);
            let known = self.introduce(&status, 0, path.as_os_str().as_bytes(), out)?;
            self.mappings.get_mut(number)?.file = Some(known);
        }
        self.mappings.get(number)?.file
    }

    pub fn forget(&mut self, fd: i32) {
        self.descriptors.remove(&fd);
    }

    pub fn forget_range(&mut self, first: u32, last: u32) {
        self.descriptors.retain(|&fd, _| !(first..=last).contains(&(fd as u32)));
    }

    pub fn if_known(&self, fd: i32) -> Option<Known> {
        self.descriptors.get(&fd).copied().flatten()
    }

    /// The file of a descriptor, described in the spool on its first use.
    pub fn file(&mut self, fd: i32, out: &mut Out<'_>) -> Option<Known> {
        if let Some(known) = self.descriptors.get(&fd) {
            return *known;
        }
        let link = self.link(fd);
        let status = status(&link, true)?;
        let path = std::fs::read_link(&link).ok()?;
        let known = if status.regular && is_interesting(&path, out.folder()) {
            let (_, flags) = self.position_and_flags(fd)?;
            Some(self.introduce(&status, stored_flags(flags), path.as_os_str().as_bytes(), out)?)
        } else {
            None
        };
        self.descriptors.insert(fd, known);
        known
    }

    /// Writes what is known of a file under a new id.
    pub fn introduce(&mut self, status: &Status, flags: u16, path: &[u8], out: &mut Out<'_>) -> Option<Known> {
        self.next_file += 1;
        let id = self.next_file;
        let facts = FileFacts {
            id,
            flags,
            device: status.device,
            inode: status.inode,
            birth_ns: status.birth_ns,
            size: status.size,
        };
        out.file(self, &facts, path)?;
        Some(Known { id, flags })
    }

    /// Path in /proc of a descriptor.
    pub fn link(&self, fd: i32) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{fd}", self.pid))
    }

    /// Position and flags (as of open) of a descriptor.
    pub fn position_and_flags(&self, fd: i32) -> Option<(u64, i32)> {
        let text = std::fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", self.pid)).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let position = field("pos:")?.parse().ok()?;
        let flags = i64::from_str_radix(field("flags:")?, 8).ok()?;
        Some((position, flags as i32))
    }

    /// A path of the program as we can open it, and as it is recorded.
    pub fn resolve(&self, dir: i32, path: &[u8]) -> (PathBuf, Vec<u8>) {
        let proc = PathBuf::from(format!("/proc/{}", self.pid));
        if let Some(inside) = path.strip_prefix(b"/") {
            return (proc.join("root").join(OsStr::from_bytes(inside)), path.to_vec());
        }
        let folder = if dir == libc::AT_FDCWD {
            proc.join("cwd")
        } else {
            self.link(dir)
        };
        let mut named = std::fs::read_link(&folder)
            .unwrap_or_default()
            .into_os_string()
            .as_bytes()
            .to_vec();
        named.push(b'/');
        named.extend_from_slice(path);
        (folder.join(OsStr::from_bytes(path)), named)
    }
}

/// The program of a process as it can be opened.
pub fn exe(pid: Tid) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/exe"))
}

/// The process that a thread belongs to.
pub fn process_of(tid: Tid) -> Option<Tid> {
    status_field(tid, "Tgid:").map(|pid| pid as Tid)
}

/// The first number of a line of a thread's status.
pub fn status_field(tid: Tid, name: &str) -> Option<u32> {
    status_numbers(tid, name)?.first().copied()
}

/// The thread's number in its own namespace, which is what it knows itself by.
pub fn own_number(tid: Tid) -> u32 {
    let numbers = status_numbers(tid, "NSpid:").unwrap_or_default();
    numbers.last().copied().unwrap_or(tid as u32)
}

fn status_numbers(tid: Tid, name: &str) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().map(|number| number.parse().ok()).collect()
}

pub fn status(path: &Path, follow: bool) -> Option<Status> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    // SAFETY: all zeros is a statx; the kernel fills it in.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let wanted = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: as above; the path ends with a NUL.
    if unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, wanted, &raw mut found) } != 0 {
        return None;
    }
    let birth = if found.stx_mask & libc::STATX_BTIME != 0 {
        (found.stx_btime.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(found.stx_btime.tv_nsec.into())
    } else {
        0
    };
    Some(Status {
        regular: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG,
        device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
        inode: found.stx_ino,
        birth_ns: birth,
        size: found.stx_size,
        links: found.stx_nlink,
    })
}

/// The same rule as the library's: regular files on drives, and not our own.
pub fn is_interesting(path: &Path, own: &Path) -> bool {
    let elsewhere = ["/proc/", "/sys/", "/dev/", "/memfd:", "/SYSV"];
    let bytes = path.as_os_str().as_bytes();
    bytes.starts_with(b"/")
        && !elsewhere.iter().any(|start| bytes.starts_with(start.as_bytes()))
        && !path.starts_with(own)
}

fn stored_flags(flags: i32) -> u16 {
    let flag = |from: i32, to: u16| if flags & from != 0 { to } else { 0 };
    let mode = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => file_flags::READ_ONLY,
        libc::O_WRONLY => file_flags::WRITE_ONLY,
        _ => 0,
    };
    mode | flag(libc::O_SYNC | libc::O_DSYNC, file_flags::SYNC)
        | flag(libc::O_DIRECT, file_flags::DIRECT)
        | flag(libc::O_APPEND, file_flags::APPEND)
}
