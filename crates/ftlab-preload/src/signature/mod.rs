//! The program context of a call: the path of return addresses that led to it, as a number.
//!
//! # Model
//! The signature is the sum, over the frames of the path, of mix(id of the frame's module) + (return address − base of the
//! module), wrapping in 64 bits. Return addresses of the C library and of this library are left out at the inner end. So it
//! does not depend on where the loader put the modules, is the same in every run of one binary and differs between binaries.
//! At most 64 frames, the innermost ones.
//!
//! | method | path |
//! | --- | --- |
//! | `fp` | the chain of frame pointers, while they ascend within the stack and lead into code |
//! | `unwind` | the unwind tables (.eh_frame) of the modules |
//! | `scan` | at most five words of the stack, from the call upwards, that point into code; at most 512 words are looked at |
//! | `auto` | `fp` if the modules of its three innermost frames and all that follow keep frame pointers, else `unwind` |
//!
//! Where less than 128 KiB of stack are left, and on stacks that are not the thread's own (of signal handlers, of coroutines),
//! `unwind` and `auto` scan: the tables need room.
//! # Not modelled
//! Inlined functions have no frame. Code without a file (compiled just in time) ends a path, except in `scan`.
//! # Source
//! The sum, and the scan of five candidates: the program contexts of PCStream (Kim et al.), there of absolute addresses.

mod fp;
mod scan;
mod unwind;

use core::sync::atomic::{AtomicU64, Ordering};

use ftlab_record::spool::{MOST_FRAMES, Method, NoteKind, Writer, frame_sum, mix};

use crate::modules::{self, Module, Table};
use crate::process::Wiped;
use crate::space::Files;

/// What the user chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    None,
    Auto,
    FramePointers,
    Unwind,
    Scan,
}

impl Choice {
    /// Unknown names mean `auto`: `ftlab record` has checked them, and a recorded program is not told.
    pub fn named(name: &[u8]) -> Self {
        match name {
            b"none" => Choice::None,
            b"fp" => Choice::FramePointers,
            b"unwind" => Choice::Unwind,
            b"scan" => Choice::Scan,
            _ => Choice::Auto,
        }
    }
}

/// What the stack looks like at the call of a hook, as its first instructions leave it (see `hooks::hook`).
#[repr(C)]
pub struct CallSite {
    /// The caller's frame pointer.
    pub bp: u64,
    /// Where the hook returns to.
    pub ip: u64,
    /// The caller's stack begins here; the seventh argument of a call lies in its first word.
    pub stack: [u64; 1],
}

/// A return address and what it belongs to.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    module: Option<&'static Module>,
}

const NOWHERE: Place = Place {
    address: 0,
    module: None,
};
/// Bytes of stack that unwinding by tables may take: most of it for rows of the tables, which are large.
const ROOM: u64 = 128 << 10;
/// Places remembered, by their address.
const REMEMBERED: usize = 256;

/// Finds call paths for one thread. Zeros are a valid one.
pub struct Walker {
    stack: core::ops::Range<u64>,
    /// Lowest address of the stack; the highest there is if that is not known.
    lowest: u64,
    path: [Place; MOST_FRAMES],
    len: usize,
    remembered: [Place; REMEMBERED],
    generation: u32,
    unwinding: Option<Box<unwind::Cache>>,
    frames: [(u64, u64); MOST_FRAMES],
}

/// A call path as it is recorded.
pub struct Path<'a> {
    pub signature: u64,
    pub method: Method,
    /// Module id and offset, innermost first.
    pub frames: &'a [(u64, u64)],
}

impl Walker {
    /// The thread's stack is another one from now on.
    pub fn forget_stack(&mut self) {
        self.stack = 0..0;
    }

    /// The path that led to a hook.
    pub fn walk(&mut self, wiped: &Wiped, choice: Choice, at: &CallSite) -> Option<Path<'_>> {
        if choice == Choice::None {
            return None;
        }
        let mut table = modules::table(wiped)?;
        let sp = &raw const at.stack as u64;
        self.find_stack(wiped, sp);
        self.len = 0;
        let choice = if self.has_room(sp) || choice == Choice::FramePointers {
            choice
        } else {
            Choice::Scan
        };
        let method = match choice {
            Choice::None => return None,
            Choice::FramePointers => self.frame_pointers(wiped, &mut table, at.ip, at.bp, sp, false),
            Choice::Scan => self.scan(wiped, &mut table, at.ip, sp),
            Choice::Unwind => self.unwind(wiped, &mut table, at.ip, at.bp, sp),
            Choice::Auto => {
                let found = self.frame_pointers(wiped, &mut table, at.ip, at.bp, sp, true);
                if self.len >= 3 {
                    found
                } else {
                    self.len = 0;
                    self.unwind(wiped, &mut table, at.ip, at.bp, sp)
                }
            }
        };
        Some(self.sum(method))
    }

    /// The module that an address of code belongs to.
    pub fn module(&mut self, wiped: &Wiped, address: u64) -> Option<&'static Module> {
        let mut table = modules::table(wiped)?;
        self.place(wiped, &mut table, address)?.module
    }

    fn sum(&mut self, method: Method) -> Path<'_> {
        let path = self.path.get(..self.len).unwrap_or(&[]);
        let inner = path
            .iter()
            .take_while(|place| place.module.is_some_and(|module| module.runtime))
            .count();
        // A path of nothing but the C library (a thread of its own) is kept as it is.
        let inner = if inner == path.len() { 0 } else { inner };
        let mut signature = 0u64;
        let mut len = 0;
        for (frame, place) in self.frames.iter_mut().zip(path.iter().skip(inner)) {
            *frame = match place.module {
                Some(module) if module.id != modules::ANONYMOUS => (module.id, place.address - module.base),
                _ => (modules::ANONYMOUS, 0),
            };
            signature = signature.wrapping_add(frame_sum(*frame));
            len += 1;
        }
        Path {
            signature,
            method,
            frames: self.frames.get(..len).unwrap_or(&[]),
        }
    }

    /// Looks an address up, in memory first. `None`: it is not code.
    fn place(&mut self, wiped: &Wiped, table: &mut &'static Table, address: u64) -> Option<Place> {
        if self.generation != table.generation {
            self.remembered.fill(NOWHERE);
            self.generation = table.generation;
        }
        let slot = (address ^ address >> 12) as usize % REMEMBERED;
        if let Some(known) = self.remembered.get(slot)
            && known.address == address
        {
            return Some(*known);
        }
        let (module, newer) = table.find_or_look(wiped, address);
        *table = newer;
        let place = Place {
            address,
            module: Some(module?),
        };
        if let Some(slot) = self.remembered.get_mut(slot) {
            *slot = place;
        }
        Some(place)
    }

    /// False: the path is full.
    fn push(&mut self, place: Place) -> bool {
        let Some(slot) = self.path.get_mut(self.len) else {
            return false;
        };
        *slot = place;
        self.len += 1;
        true
    }

    /// Makes `stack` the memory from the stack pointer up that is safe to read, and finds out how far down it reaches.
    fn find_stack(&mut self, wiped: &Wiped, sp: u64) {
        if self.stack.contains(&sp) {
            return;
        }
        self.lowest = u64::MAX;
        let Some(memory) = modules::memory_of(wiped, sp) else {
            self.stack = sp..sp;
            return;
        };
        // The C library keeps a thread's own data at the upper end of its stack; what follows may be somebody else's.
        // SAFETY: the thread pointer; it is only compared.
        let own_data = unsafe { libc::pthread_self() } as u64;
        let own = memory.range.contains(&own_data) && own_data > sp;
        self.stack = memory.range.start..if own { own_data } else { memory.range.end };
        if memory.main_stack {
            self.stack.start = sp.min(self.stack.start);
            self.lowest = 0;
        } else if own {
            self.lowest = memory.range.start;
        }
    }

    /// Whether the stack has room for unwinding by tables: not so for small stacks, and for those whose end is not known
    /// (of signal handlers, of coroutines).
    fn has_room(&self, sp: u64) -> bool {
        sp.saturating_sub(self.lowest) > ROOM
    }

    /// A word of the stack.
    #[inline]
    fn word(stack: &core::ops::Range<u64>, at: u64) -> Option<u64> {
        let inside = at >= stack.start && at.checked_add(8).is_some_and(|end| end <= stack.end) && at.is_multiple_of(8);
        // SAFETY: inside the mapping that holds this thread's stack, at or above its stack pointer (callers see to it).
        inside.then(|| unsafe { (at as *const u64).read_volatile() })
    }
}

/// Signatures whose frames have been written.
static WRITTEN: [AtomicU64; TABLE] = [const { AtomicU64::new(0) }; TABLE];
const TABLE: usize = 1 << 14;

/// Whether a signature is new in this process; then its frames have to be written.
pub fn is_new(wiped: &Wiped, signature: u64) -> bool {
    // 0 stands for an empty place.
    let signature = signature.max(1);
    let home = mix(signature) as usize;
    for step in 0..64 {
        let Some(place) = WRITTEN.get((home.wrapping_add(step)) % TABLE) else {
            return false;
        };
        match place.compare_exchange(0, signature, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(known) if known == signature => return false,
            Err(_) => {}
        }
    }
    wiped.note(NoteKind::ContextsFull, 1);
    false
}

/// Writes the frames of a path, and the modules that were not written yet.
pub fn write(wiped: &Wiped, path: &Path<'_>, writer: &mut Writer, space: &mut Files) -> Option<()> {
    if let Some(table) = modules::table(wiped) {
        for module in table.modules() {
            let named = path.frames.iter().any(|&(id, _)| id == module.id);
            if named && module.id != modules::ANONYMOUS && !module.written.swap(true, Ordering::AcqRel) {
                writer.module(space, module.id, module.base..module.end, module.build_id, module.path)?;
            }
        }
    }
    writer.context(space, path.method, path.signature, path.frames)
}
