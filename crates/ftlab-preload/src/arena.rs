//! Memory of the library: taken from the kernel, never from the program's `malloc`, which may be what called us.
//!
//! # Model
//! Pieces are cut from mappings of 1 MiB by one atomic addition; nothing is given back. That is enough for what lives as long
//! as the process: tables of modules, and the state of threads, which is used again (see `thread`).

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

const CHUNK: usize = 1 << 20;

pub struct Arena {
    /// Next free address and the end of the chunk share one word: chunks are aligned to their size, so the end follows.
    next: AtomicUsize,
}

#[global_allocator]
static ARENA: Arena = Arena {
    next: AtomicUsize::new(0),
};

// SAFETY: every piece is cut by a compare-and-swap, so no two overlap; it lies in a fresh mapping, which is zero and never unmapped.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > CHUNK / 4 || layout.align() > 4096 {
            let len = layout.size().next_multiple_of(4096);
            return if layout.align() > 4096 {
                null_mut()
            } else {
                sys::map_anonymous(len).unwrap_or(null_mut())
            };
        }
        let mut next = self.next.load(Ordering::Acquire);
        loop {
            let start = next.next_multiple_of(layout.align());
            let end = start + layout.size();
            let chunk_end = next.next_multiple_of(CHUNK);
            if next != 0 && end <= chunk_end && !next.is_multiple_of(CHUNK) {
                match self
                    .next
                    .compare_exchange_weak(next, end, Ordering::AcqRel, Ordering::Acquire)
                {
                    Ok(_) => return start as *mut u8,
                    Err(seen) => next = seen,
                }
                continue;
            }
            // The first bytes stay unused, so that no free address is a multiple of CHUNK except at the end of one.
            let Some(chunk) = aligned_chunk() else {
                return null_mut();
            };
            match self
                .next
                .compare_exchange(next, chunk as usize + 64, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => next = chunk as usize + 64,
                Err(seen) => {
                    // Another thread was faster.
                    // SAFETY: nobody has seen this chunk.
                    unsafe { sys::unmap(chunk, CHUNK) };
                    next = seen;
                }
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// A mapping of a chunk that starts at a multiple of its size.
fn aligned_chunk() -> Option<*mut u8> {
    let wide = sys::map_anonymous(2 * CHUNK)?;
    let start = (wide as usize).next_multiple_of(CHUNK);
    let before = start - wide as usize;
    // SAFETY: the parts before and behind are ours and unused.
    unsafe {
        if before > 0 {
            sys::unmap(wide, before);
        }
        sys::unmap((start + CHUNK) as *mut u8, CHUNK - before);
    }
    Some(start as *mut u8)
}
