//! What the kernel counts of a thread: processor cycles and last-level cache misses where the machine has such counters, context switches.
//!
//! # Model
//! Each event is opened for the calling thread by itself; where the kernel had to share a counter in time, counts are scaled by the time
//! that the event was counted in.
//!
//! # Errors
//! None: an event that cannot be opened comes with the system's reason. Most virtual machines have no hardware counters.
//!
//! # Not modelled
//! Hits of row buffers: the kernel has no event of that name, and the counters of memory controllers, where a processor has them, count for the
//! whole machine.
//!
//! # Source
//! perf_event_open(2).

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

/// An event by the kernel's number.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub name: &'static str,
    pub what: &'static str,
    kind: u32,
    config: u64,
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;

pub const EVENTS: [Event; 4] = [
    Event {
        name: "cycles",
        what: "processor cycles in user mode, as the kernel's generic event counts them",
        kind: HARDWARE,
        config: 0,
    },
    Event {
        name: "llc_references",
        what: "last-level cache accesses, as the kernel's generic event counts them",
        kind: HARDWARE,
        config: 2,
    },
    Event {
        name: "llc_misses",
        what: "last-level cache misses, as the kernel's generic event counts them",
        kind: HARDWARE,
        config: 3,
    },
    Event {
        name: "context_switches",
        what: "context switches of the reading threads, counted by the kernel",
        kind: SOFTWARE,
        config: 3,
    },
];

/// The first version of the kernel's `perf_event_attr`, which every later one reads.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Total times enabled and running beside the count.
const TIMES: u64 = 1 | 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// Counters of the calling thread, which count from now on.
pub struct Counters {
    files: Vec<Result<File, String>>,
}

impl Counters {
    pub fn start() -> Counters {
        Counters {
            files: EVENTS.iter().map(open).collect(),
        }
    }

    /// Counts since the start, in the order of `EVENTS`, or why there are none.
    pub fn read(&mut self) -> Vec<Result<f64, String>> {
        let one = |file: &mut Result<File, String>| {
            let file = file.as_mut().map_err(|why| why.clone())?;
            let mut told = [0u8; 24];
            file.read_exact(&mut told).map_err(|e| e.to_string())?;
            let word = |at: usize| u64::from_ne_bytes(told[at..at + 8].try_into().unwrap_or_default());
            scaled(word(0), word(8), word(16))
        };
        self.files.iter_mut().map(one).collect()
    }
}

fn scaled(count: u64, enabled: u64, running: u64) -> Result<f64, String> {
    if running == 0 {
        return Err("the event was never counted".into());
    }
    Ok(count as f64 * enabled as f64 / running as f64)
}

#[expect(unsafe_code, reason = "the system call has no wrapper")]
fn open(event: &Event) -> Result<File, String> {
    let attributes = Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        read_format: TIMES,
        // The kernel switches threads in its own mode.
        flags: if event.kind == HARDWARE {
            EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR
        } else {
            0
        },
        ..Attributes::default()
    };
    // Proof: the structure is the kernel's and says its own size; the call reads it and gives a descriptor that nobody else owns.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, 0);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error().to_string());
        }
        Ok(File::from_raw_fd(descriptor as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_counted_or_says_why_not() {
        let mut counters = Counters::start();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let found = counters.read();
        assert_eq!(found.len(), EVENTS.len());
        for (event, found) in EVENTS.iter().zip(found) {
            match found {
                // A thread that sleeps leaves its core.
                Ok(count) => assert!(
                    event.name != "context_switches" || count >= 1.0,
                    "{}: {count}",
                    event.name
                ),
                Err(why) => assert!(!why.is_empty()),
            }
        }
        assert_eq!(scaled(10, 300, 100), Ok(30.0));
        assert!(scaled(0, 300, 0).is_err());
    }
}
