//! Memory of this machine: pages of 2 MiB where there are any, or a file mapped where it lies, with its frames and reads past the caches.
//!
//! # Errors
//! Memory that the system refuses, a file that cannot be mapped, a page map that cannot be read: one sentence.
//!
//! # Not modelled
//! A mapped file must not be shortened while it is mapped: the system ends a program that reads beyond its end.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ftlab_core::{Error, Result};

pub const SMALL: u64 = 4096;
pub const HUGE: u64 = 2 << 20;

/// How the memory is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reserved pages of 2 MiB.
    Reserved,
    /// Pages of 2 MiB were asked for; the system gives them where it can.
    Transparent,
    /// A file, in place.
    File,
}

/// A mapping of our own, and the part of it that is used.
pub struct Region {
    mapping: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
    pub pages: Pages,
}

impl Region {
    /// So many bytes of memory, written once so that they are there.
    #[expect(unsafe_code, reason = "anonymous mappings of our own, which nothing else knows")]
    pub fn anonymous(bytes: u64) -> Result<Region> {
        let used = (bytes.max(1).next_multiple_of(HUGE)) as usize;
        let map = |bytes: usize, flags: i32| {
            // Proof: a private anonymous mapping with no address asked for touches no memory that exists.
            unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                    -1,
                    0,
                )
            }
        };
        let (mut mapped, mut pages) = (used, Pages::Reserved);
        let mut start = map(mapped, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB);
        if start == libc::MAP_FAILED {
            // One page more, for the alignment.
            (mapped, pages) = (used + HUGE as usize, Pages::Transparent);
            start = map(mapped, 0);
        }
        if start == libc::MAP_FAILED {
            return Err(Error::input(format!(
                "the system refuses {mapped} bytes of memory, expected less"
            )));
        }
        let mapping: *mut u8 = start.cast();
        let aligned = mapping.align_offset(HUGE as usize);
        let region = Region {
            mapping,
            mapped,
            start: mapping.wrapping_add(aligned),
            bytes: used,
            pages,
        };
        // Proof: the part that is used lies within the mapping, which is one page larger where it need not be aligned; advice changes no contents.
        unsafe {
            libc::madvise(region.start.cast(), used, libc::MADV_HUGEPAGE);
            region.start.write_bytes(1, used);
        }
        Ok(region)
    }

    /// A file where it lies; read only.
    #[expect(unsafe_code, reason = "a mapping of a file has no safe interface")]
    pub fn file(path: &Path) -> Result<Region> {
        let file = File::open(path).map_err(|e| Error::io(path, &e))?;
        let bytes = file.metadata().map_err(|e| Error::io(path, &e))?.len() as usize;
        // Proof: a new mapping with no address asked for; the descriptor is open, and the mapping outlives it by itself.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes.max(1),
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::io(path, &std::io::Error::last_os_error()));
        }
        Ok(Region {
            mapping: start.cast(),
            mapped: bytes.max(1),
            start: start.cast(),
            bytes,
            pages: Pages::File,
        })
    }

    #[expect(unsafe_code, reason = "the mapping as a slice")]
    pub fn bytes(&self) -> &[u8] {
        // Proof: `bytes` of the mapping are readable and initialized (written by us, or a file's), and live as long as `self`; nobody has them
        // mutably, since that takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// None of a file, which is only read.
    #[expect(unsafe_code, reason = "the mapping as a slice")]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // Proof: as for `bytes`; the mapping is writable where it is not of a file, and `&mut self` leaves no other reference.
        (self.pages != Pages::File).then(|| unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) })
    }

    /// The frame of every page of 4 KiB; none where the system hides them or there is none yet.
    pub fn frames(&self) -> Result<Vec<Option<u64>>> {
        let pages = self.bytes.div_ceil(SMALL as usize);
        let map = Path::new("/proc/self/pagemap");
        let mut entries = vec![0u8; pages * 8];
        let read = File::open(map).and_then(|file| file.read_exact_at(&mut entries, self.start as u64 / SMALL * 8));
        match read {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Ok(vec![None; pages]),
            Err(e) => return Err(Error::io(map, &e)),
        }
        let number = |entry: &[u8]| {
            let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
            // Bit 63: in memory; the frame's number is 0 where the reader may not see it.
            (entry >> 63 == 1)
                .then_some(entry & ((1 << 55) - 1))
                .filter(|&frame| frame != 0)
        };
        Ok(entries.chunks_exact(8).map(number).collect())
    }

    /// Bytes of the region in pages of 2 MiB, as the kernel counts them for this mapping; for those who may not see frames.
    pub fn in_huge_pages(&self) -> u64 {
        if self.pages == Pages::Reserved {
            return self.bytes as u64;
        }
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        huge_of(&text, self.start as u64)
    }

    /// Takes the lines of a part out of the caches; nothing where the processor has no instruction for it.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "caches can be emptied by instructions only")]
    pub fn flush(&self, from: u64, bytes: u64) {
        let end = (from + bytes).min(self.bytes as u64);
        for at in (from..end).step_by(64) {
            // Proof: the place is within the mapping; flushing a line changes no contents, and every x86-64 processor has the instruction.
            unsafe { std::arch::x86_64::_mm_clflush(self.start.add(at as usize)) };
        }
        // Proof: a fence has no operands.
        unsafe { std::arch::x86_64::_mm_mfence() };
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn flush(&self, _: u64, _: u64) {}

    /// Least ticks of many reads of both lines, in turn and past the caches. The places must be within the region.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "caches can be passed by instructions only")]
    pub fn ticks(&self, one: u64, other: u64) -> u64 {
        use std::arch::x86_64::{__rdtscp, _mm_clflush, _mm_lfence, _mm_mfence};
        assert!(one.max(other) < self.bytes as u64, "{one} or {other} of {}", self.bytes);
        let mut least = u64::MAX;
        let mut processor = 0;
        for _ in 0..40 {
            // Proof: both places are within the mapping, which is readable; flushing a line changes no contents, and every x86-64
            // processor has these instructions.
            unsafe {
                let one = self.start.add(one as usize);
                let other = self.start.add(other as usize);
                _mm_clflush(one);
                _mm_clflush(other);
                _mm_mfence();
                let start = __rdtscp(&raw mut processor);
                _mm_lfence();
                one.read_volatile();
                _mm_lfence();
                other.read_volatile();
                _mm_lfence();
                let end = __rdtscp(&raw mut processor);
                least = least.min(end - start);
            }
        }
        least
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn ticks(&self, _: u64, _: u64) -> u64 {
        0
    }
}

impl Drop for Region {
    #[expect(unsafe_code, reason = "the mapping is ours")]
    fn drop(&mut self) {
        // Proof: start and size are those of the mapping, and no reference into it outlives this.
        unsafe {
            libc::munmap(self.mapping.cast(), self.mapped);
        }
    }
}

/// Bytes in pages of 2 MiB of the mapping that holds an address.
fn huge_of(smaps: &str, address: u64) -> u64 {
    let mut is_ours = false;
    for line in smaps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16))
        {
            is_ours = (from..to).contains(&address);
        } else if is_ours && first == "AnonHugePages:" {
            let kib = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
            return kib.unwrap_or(0) * 1024;
        }
    }
    0
}

/// Nanoseconds of a tick of the time-stamp counter, measured over 20 ms.
pub fn ns_per_tick() -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        let ticks = || {
            #[expect(unsafe_code, reason = "reads a counter")]
            // Proof: reading the counter has no effect.
            unsafe {
                std::arch::x86_64::_rdtsc()
            }
        };
        let (from, start) = (std::time::Instant::now(), ticks());
        std::thread::sleep(std::time::Duration::from_millis(20));
        from.elapsed().as_nanos() as f64 / (ticks() - start) as f64
    }
    #[cfg(not(target_arch = "x86_64"))]
    1.0
}

/// Why a file can be mapped in place, if it can: it lies in memory, or on a device that is memory.
#[expect(unsafe_code, reason = "what a file system is has no safe interface")]
pub fn in_place(path: &Path) -> Result<Option<&'static str>> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::input(format!("{}: expected a name without a zero byte", path.display())))?;
    // A bare call: C libraries older than glibc 2.28 have no name for it.
    // Proof: both structures are plain data for which zeros are a value, the name ends with a zero byte, and the calls write to them only.
    let (extended, system) = unsafe {
        let mut extended: libc::statx = std::mem::zeroed();
        let mut system: libc::statfs = std::mem::zeroed();
        let failed = libc::syscall(
            libc::SYS_statx,
            libc::AT_FDCWD,
            name.as_ptr(),
            0,
            libc::STATX_BASIC_STATS,
            &raw mut extended,
        ) != 0
            || libc::statfs(name.as_ptr(), &raw mut system) != 0;
        if failed {
            return Err(Error::io(path, &std::io::Error::last_os_error()));
        }
        (extended, system)
    };
    /// The kernel's STATX_ATTR_DAX, which not every C library names.
    const DAX: u64 = 0x0020_0000;
    let kind = system.f_type as u64;
    Ok(if extended.stx_attributes & DAX != 0 {
        Some("DAX")
    } else if kind == libc::TMPFS_MAGIC as u64 {
        Some("tmpfs")
    } else if kind == libc::HUGETLBFS_MAGIC as u64 {
        Some("hugetlbfs")
    } else {
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_there_and_holds_what_is_written() {
        let mut region = Region::anonymous(3 << 20).unwrap();
        assert_eq!(region.bytes().len(), 4 << 20);
        region.bytes_mut().unwrap()[3 << 20] = 77;
        region.flush(0, 4 << 20);
        assert_eq!(region.bytes()[3 << 20], 77);
        assert!((region.bytes().as_ptr() as u64).is_multiple_of(HUGE));
        let frames = region.frames().unwrap();
        assert_eq!(frames.len(), 1024);
        let known: Vec<u64> = frames.iter().flatten().copied().collect();
        let mut distinct = known.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // All or none, and no frame twice.
        assert!(known.is_empty() || known.len() == 1024);
        assert_eq!(distinct.len(), known.len());
    }

    #[test]
    fn a_mapped_file_is_the_file() {
        let path = std::env::temp_dir().join(format!("ftlab-nvm-mapped-{:x}", std::process::id()));
        std::fs::write(&path, b"some text").unwrap();
        let mut region = Region::file(&path).unwrap();
        assert_eq!(region.bytes(), b"some text");
        assert!(region.bytes_mut().is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn huge_pages_of_one_mapping_are_counted() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nSize: 8 kB\nAnonHugePages:  2048 kB\n\
                     7000-9000 rw-p 0 00:00 0\nSize: 8 kB\nAnonHugePages:  4096 kB\n";
        assert_eq!(huge_of(smaps, 0x7fff), 4096 * 1024);
        assert_eq!(huge_of(smaps, 0x2fff), 2048 * 1024);
        assert_eq!(huge_of(smaps, 0x5000), 0);
    }
}
