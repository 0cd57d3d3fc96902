//! What a write will look up in the table, brought into the processor's cache before its turn.

use std::hint::select_unpredictable;

use ftlab_core::memory::prefetch_or_last;

use super::{By, Fingerprints, NONE, Place};

impl Fingerprints {
    /// Brings where a content is looked for, and a place, into the processor's cache.
    #[inline(always)]
    pub fn prefetch_content(&self, content: u64) {
        self.nodes.prefetch_chain(By::Content, content);
    }

    #[inline(always)]
    pub fn prefetch_place(&self, place: Place) {
        self.nodes.prefetch_chain(By::Place, place);
    }

    /// The same of the first fingerprints there.
    #[inline(always)]
    pub fn prefetch_at_content(&self, content: u64) {
        self.prefetch_node(self.nodes.first_of(By::Content, content));
    }

    #[inline(always)]
    pub fn prefetch_at_place(&self, place: Place) {
        self.prefetch_node(self.nodes.first_of(By::Place, place));
    }

    /// The same of a fingerprint, with its links.
    #[inline(always)]
    fn prefetch_node(&self, number: u32) {
        self.nodes.prefetch(number);
        prefetch_or_last(&self.links, number as usize);
    }

    /// The same of what may leave after fingerprint `number`, which is about to, a step at a time: the fifth after it, where the third
    /// is looked for, and which fingerprints stand there before the first. Each was asked for two evictions ago.
    #[inline]
    pub(super) fn prefetch_evictions_after(&self, number: u32) {
        let behind = |number: u32| self.links.get(number as usize).map_or(NONE, |links| links[0]);
        let first = behind(number);
        let Some(node) = self.nodes.get(first) else { return };
        self.nodes.prefetch(self.nodes.first_of(By::Content, node.content));
        self.nodes.prefetch(self.nodes.first_of(By::Place, node.place));
        let third = behind(behind(first));
        let Some(node) = self.nodes.get(third) else { return };
        self.nodes.prefetch_chain(By::Content, node.content);
        self.nodes.prefetch_chain(By::Place, node.place);
        self.prefetch_node(behind(behind(third)));
    }

    /// The same of what a hit touches beside the fingerprint. The place that it stands for; 0 if the first fingerprint there is
    /// another.
    #[inline(always)]
    pub fn prefetch_hit(&self, content: u64) -> Place {
        let number = self.nodes.first_of(By::Content, content);
        self.prefetch_beside(number);
        let Some(node) = self.nodes.get_or_last(number) else {
            return 0;
        };
        select_unpredictable(node.content == content, node.place, 0)
    }

    /// The same of what the end of the fingerprint at `place` touches, if it is the first there.
    #[inline(always)]
    pub fn prefetch_end(&self, place: Place) {
        let number = self.nodes.first_of(By::Place, place);
        self.prefetch_beside(number);
        if let Some(node) = self.nodes.get_or_last(number) {
            self.nodes.prefetch_chain(By::Content, node.content);
        }
    }

    #[inline(always)]
    fn prefetch_beside(&self, number: u32) {
        let last = self.links.len().wrapping_sub(1);
        if let Some(&[before, after]) = self.links.get((number as usize).min(last)) {
            prefetch_or_last(&self.links, before as usize);
            prefetch_or_last(&self.links, after as usize);
        }
    }
}
