//! What a write will look up in the table, brought into the processor's cache before its turn.

use ftlab_core::memory;

use super::{By, Fingerprints, NONE, Place};

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
        self.prefetch_node(self.nodes.first_of(By::Content, content));
    }

    #[inline]
    pub fn prefetch_at_place(&self, place: Place) {
        self.prefetch_node(self.nodes.first_of(By::Place, place));
    }

    /// The same of a fingerprint, with its links.
    #[inline]
    fn prefetch_node(&self, number: u32) {
        self.nodes.prefetch(number);
        memory::prefetch(&self.links, number as usize);
    }

    /// The same of what may leave after fingerprint `number`, which is about to, a step at a time: the third after it, where the second
    /// is looked for, and which fingerprints stand there before the first. Each was asked for an eviction ago.
    #[inline]
    pub(super) fn prefetch_evictions_after(&self, number: u32) {
        let behind = |number: u32| self.links.get(number as usize).map_or(NONE, |links| links[0]);
        let first = behind(number);
        let Some(node) = self.nodes.get(first) else { return };
        self.nodes.prefetch(self.nodes.first_of(By::Content, node.content));
        self.nodes.prefetch(self.nodes.first_of(By::Place, node.place));
        let second = behind(first);
        let Some(node) = self.nodes.get(second) else { return };
        self.nodes.prefetch_chain(By::Content, node.content);
        self.nodes.prefetch_chain(By::Place, node.place);
        self.prefetch_node(behind(second));
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
