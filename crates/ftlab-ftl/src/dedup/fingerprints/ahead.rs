//! What a write will look up in the table, brought into the processor's cache before its turn.

use ftlab_core::memory;

use super::{By, Fingerprints, Place};

impl Fingerprints {
    /// Brings where a content is looked for, and a place, into the processor's cache.
    #[inline]
    pub fn prefetch_content(&self, content: u64) {
        self.nodes.prefetch_chain(By::Content, content);
    }

    #[inline]
    pub fn prefetch_place(&self, place: Place) {
        self.nodes.prefetch_chain(By::Place, place);
    }

    /// The same of the first fingerprints there.
    #[inline]
    pub fn prefetch_at_content(&self, content: u64) {
        self.nodes.prefetch_first(By::Content, content);
    }

    #[inline]
    pub fn prefetch_at_place(&self, place: Place) {
        self.nodes.prefetch_first(By::Place, place);
    }

    /// The same of what a hit touches beside the fingerprint. The place that it stands for.
    #[inline]
    pub fn prefetch_hit(&self, content: u64) -> Option<Place> {
        let number = self.nodes.with_content(content)?;
        self.prefetch_beside(number);
        Some(self.nodes[number].place)
    }

    /// The same of what the end of the fingerprint at `place` touches.
    #[inline]
    pub fn prefetch_end(&self, place: Place) {
        if let Some(number) = self.nodes.at_place(place) {
            self.prefetch_beside(number);
            self.nodes.prefetch_chain(By::Content, self.nodes[number].content);
        }
    }

    #[inline]
    fn prefetch_beside(&self, number: u32) {
        for neighbour in self.links.get(number as usize).into_iter().flatten() {
            memory::prefetch(&self.links, *neighbour as usize);
        }
    }
}
