//! A write buffer with a fault, to see that checked runs notice it.

use ftlab_core::Lpn;
use ftlab_ftl::WriteContext;
use ftlab_ftl::buffer::{BufferPolicy, Replaced};

/// What is wrong with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Nothing,
    /// Every fifth dirty unit that should leave is forgotten.
    Loses,
    /// Every seventh write gets the data of the write before it.
    MixesUp,
    /// Every seventh unit that leaves does so with the data of the one before it.
    LeavesAsAnother,
    /// Clean units stay when the mechanism says that they are out of date.
    Keeps,
}

/// Passes everything on, but for its fault.
pub struct BrokenBuffer {
    inner: Box<dyn BufferPolicy>,
    fault: Fault,
    last_in: WriteContext,
    last_out: WriteContext,
    writes: u32,
    evictions: u32,
}

impl BrokenBuffer {
    pub fn new(inner: Box<dyn BufferPolicy>, fault: Fault) -> Self {
        BrokenBuffer {
            inner,
            fault,
            last_in: WriteContext::default(),
            last_out: WriteContext::default(),
            writes: 0,
            evictions: 0,
        }
    }
}

impl BufferPolicy for BrokenBuffer {
    fn write_back(&self) -> bool {
        self.inner.write_back()
    }

    fn is_none(&self) -> bool {
        self.inner.is_none()
    }

    fn write(&mut self, lpn: Lpn, context: &WriteContext) -> Replaced {
        self.writes += 1;
        let before = std::mem::replace(&mut self.last_in, *context);
        let wrong = self.fault == Fault::MixesUp && self.writes.is_multiple_of(7);
        self.inner.write(lpn, if wrong { &before } else { context })
    }

    fn read(&mut self, lpn: Lpn, in_flash: u32) -> bool {
        self.inner.read(lpn, in_flash)
    }

    fn held(&self, lpn: Lpn) -> Option<u32> {
        self.inner.held(lpn)
    }

    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.inner.is_dirty(lpn)
    }

    fn evict(&mut self, all: bool) -> Option<(Lpn, WriteContext)> {
        let (mut lpn, mut context) = self.inner.evict(all)?;
        self.evictions += 1;
        if self.fault == Fault::Loses && self.evictions.is_multiple_of(5) {
            self.inner.forget(lpn);
            (lpn, context) = self.inner.evict(all)?;
        }
        let before = std::mem::replace(&mut self.last_out, context);
        if self.fault == Fault::LeavesAsAnother && self.evictions.is_multiple_of(7) {
            context = before;
        }
        Some((lpn, context))
    }

    fn forget(&mut self, lpn: Lpn) -> Option<WriteContext> {
        if self.fault == Fault::Keeps && !self.inner.is_dirty(lpn) {
            return None;
        }
        self.inner.forget(lpn)
    }

    fn dirty(&self) -> Vec<Lpn> {
        self.inner.dirty()
    }

    fn clear(&mut self) {
        self.inner.clear();
    }
}
