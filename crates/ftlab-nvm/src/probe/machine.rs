//! Pairs in this machine's memory: 2 MiB pages, their frames from /proc/self/pagemap, and reads past the caches.
//!
//! # Errors
//! An architecture without `clflush`, memory that the system refuses, pages that are not huge: one sentence.
//!
//! # Not modelled
//! DAX mappings. Where the page map hides frames (without root), addresses are those within one 2 MiB page.

use ftlab_core::{Error, Result, Stream};

use super::Pairs;

const PAGE: u64 = 2 << 20;
const LINE: u64 = 64;

pub struct Machine {
    buffer: Buffer,
    /// Frame of each page of the buffer, as a multiple of 2 MiB, and its place in the buffer; in the order of frames.
    frames: Vec<(u64, u64)>,
    /// Whether frames are known, so that addresses are physical.
    pub is_physical: bool,
    ns_per_tick: f64,
}

impl Machine {
    /// Takes so many bytes of memory and finds out where they are.
    pub fn new(bytes: u64) -> Result<Self> {
        let pages = (bytes / PAGE).max(1);
        let buffer = Buffer::new(pages)?;
        let found: Vec<Option<u64>> = (0..pages).map(|page| buffer.frame(page)).collect::<Result<_>>()?;
        let known: Option<Vec<u64>> = found.into_iter().collect();
        let is_physical = known.is_some();
        let mut frames: Vec<(u64, u64)> = match known {
            Some(frames) => frames.into_iter().zip(0..).collect(),
            None => vec![(0, 0)],
        };
        frames.sort_unstable();
        Ok(Machine {
            buffer,
            frames,
            is_physical,
            ns_per_tick: ns_per_tick(),
        })
    }

    fn place(&self, address: u64) -> Option<u64> {
        let at = self
            .frames
            .binary_search_by_key(&(address / PAGE), |(frame, _)| *frame)
            .ok()?;
        Some(self.frames[at].1 * PAGE + address % PAGE)
    }
}

impl Pairs for Machine {
    fn bits(&self) -> u64 {
        let first = self.frames[0].0;
        let differ = self.frames.iter().fold(0, |bits, (frame, _)| bits | (frame ^ first));
        (differ * PAGE) | ((PAGE - 1) & !(LINE - 1))
    }

    fn random(&mut self, random: &mut Stream) -> u64 {
        let frame = self.frames[random.below(self.frames.len() as u64) as usize].0;
        frame * PAGE + random.below(PAGE / LINE) * LINE
    }

    fn has(&self, address: u64) -> bool {
        self.place(address).is_some()
    }

    fn time(&mut self, one: u64, other: u64) -> f64 {
        let (Some(one), Some(other)) = (self.place(one), self.place(other)) else {
            return f64::NAN;
        };
        self.buffer.ticks(one, other) as f64 * self.ns_per_tick
    }
}

/// Memory in huge pages, written once so that it is there.
struct Buffer {
    start: *mut u8,
    bytes: usize,
    aligned: usize,
}

impl Buffer {
    #[expect(unsafe_code, reason = "an anonymous mapping of our own, which nothing else knows")]
    fn new(pages: u64) -> Result<Self> {
        let bytes = ((pages + 1) * PAGE) as usize;
        // Proof: a private anonymous mapping with no address asked for touches no memory that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::input(format!(
                "the system refuses {bytes} bytes of memory, expected less (--size)"
            )));
        }
        let aligned = start.align_offset(PAGE as usize);
        let buffer = Buffer {
            start: start.cast(),
            bytes,
            aligned,
        };
        // Proof: both stay within the mapping, whose last page is left over for the alignment; advice changes no contents.
        unsafe {
            libc::madvise(start.byte_add(aligned), (pages * PAGE) as usize, libc::MADV_HUGEPAGE);
            buffer.start.add(aligned).write_bytes(1, (pages * PAGE) as usize);
        }
        Ok(buffer)
    }

    /// Where the page lies, in 2 MiB; none if the system hides it.
    fn frame(&self, page: u64) -> Result<Option<u64>> {
        use std::os::unix::fs::FileExt;
        let map = std::path::Path::new("/proc/self/pagemap");
        let file = std::fs::File::open(map).map_err(|e| Error::io(map, &e))?;
        let address = self.start as u64 + self.aligned as u64 + page * PAGE;
        let mut entries = [0u8; 16];
        for (half, offset) in [(0, 0), (8, PAGE - 4096)] {
            file.read_exact_at(&mut entries[half..half + 8], (address + offset) / 4096 * 8)
                .map_err(|e| Error::io(map, &e))?;
        }
        let number =
            |at: usize| u64::from_le_bytes(entries[at..at + 8].try_into().unwrap_or_default()) & ((1 << 55) - 1);
        let (first, last) = (number(0), number(8));
        if first == 0 {
            return Ok(None);
        }
        if first % 512 != 0 || last != first + 511 {
            return Err(Error::input(
                "the system gives no pages of 2 MiB, expected /sys/kernel/mm/transparent_hugepage/enabled to be always or madvise",
            ));
        }
        Ok(Some(first / 512))
    }

    /// Least ticks of many reads of both lines, in turn and past the caches.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "caches can be passed by instructions only")]
    fn ticks(&self, one: u64, other: u64) -> u64 {
        use std::arch::x86_64::{__rdtscp, _mm_clflush, _mm_lfence, _mm_mfence};
        let mut least = u64::MAX;
        let mut processor = 0;
        for _ in 0..40 {
            // Proof: both places are within the mapping (`place` gives no others), which is readable; flushing a line changes no contents, and every x86-64
            // processor has these instructions.
            unsafe {
                let one = self.start.add(self.aligned + one as usize);
                let other = self.start.add(self.aligned + other as usize);
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
    fn ticks(&self, _: u64, _: u64) -> u64 {
        0
    }
}

impl Drop for Buffer {
    #[expect(unsafe_code, reason = "the mapping is ours")]
    fn drop(&mut self) {
        // Proof: start and size are those of the mapping, and no reference into it outlives this.
        unsafe {
            libc::munmap(self.start.cast(), self.bytes);
        }
    }
}

/// Nanoseconds of a tick of the time-stamp counter, measured over 20 ms.
fn ns_per_tick() -> f64 {
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
