//! Bytes of a miner's structures, and the most they have been.

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

/// Bytes that a vector has reserved.
pub(crate) fn reserved<T>(array: &Vec<T>) -> u64 {
    (array.capacity() * size_of::<T>()) as u64
}
