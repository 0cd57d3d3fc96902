//! Bytes of a miner's structures, and the most they have been.
//!
//! An array counts with its length, not with what it has reserved: memory that was never touched is no machine's. One that is emptied
//! and filled again counts with the most it has held. Moments in which an array moves to a larger place are not seen, nor
//! is what the allocator needs.

/// Counts what the miner says it holds. The stream itself is not counted: it is the caller's.
#[derive(Default)]
pub(crate) struct Meter {
    peak: u64,
}

impl Meter {
    /// At this moment these arrays are alive.
    pub(crate) fn alive(&mut self, bytes: &[u64]) {
        self.peak = self.peak.max(bytes.iter().sum());
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }
}

/// Bytes that an array uses.
pub(crate) fn used<T>(array: &[T]) -> u64 {
    size_of_val(array) as u64
}

/// The most bytes that an array has used which is emptied and filled again.
#[derive(Default)]
pub(crate) struct Most(u64);

impl Most {
    pub(crate) fn see<T>(&mut self, array: &[T]) {
        self.0 = self.0.max(used(array));
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0
    }
}
