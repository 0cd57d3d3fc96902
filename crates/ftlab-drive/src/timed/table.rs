//! Tables whose entries are found by numbers that the timed backend itself hands out.
//!
//! # Why
//! An operation looks up some hundred entries on its way: its own, those of its die, its channel, its ticket. The numbers come from
//! the links between these entries, so that comparing each with the length of the table finds nothing; it took a tenth of the
//! time of a run.
//!
//! # Invariant
//! A table never becomes shorter while something refers to its entries. A number that is used to index was returned by [`Table::push`],
//! is an entry's place in a table of fixed size, or is checked first: whatever comes from outside the timed backend goes
//! through [`Table::known`] or `get`. Debug builds, and so the tests, check every look-up.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// Entries by number.
pub(super) struct Table<T>(Vec<T>);

impl<T> Table<T> {
    pub fn new() -> Self {
        Table(Vec::new())
    }

    /// Adds an entry; its number.
    pub fn push(&mut self, entry: T) -> u32 {
        self.0.push(entry);
        (self.0.len() - 1) as u32
    }

    /// The entry of a number that somebody else has kept.
    ///
    /// # Panics
    /// If there is no such entry: the caller is wrong.
    #[inline(always)]
    pub fn known(&mut self, index: u32) -> &mut T {
        &mut self.0[index as usize]
    }
}

impl<T> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Table(entries.into_iter().collect())
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline(always)]
    #[expect(unsafe_code, reason = "numbers are those of entries: the invariant of the module")]
    fn index(&self, index: usize) -> &T {
        debug_assert!(index < self.0.len(), "entry {index} of {}", self.0.len());
        // Proof: `index` is below the length, by the invariant.
        unsafe { self.0.get_unchecked(index) }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    #[expect(unsafe_code, reason = "numbers are those of entries: the invariant of the module")]
    fn index_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < self.0.len(), "entry {index} of {}", self.0.len());
        // Proof: `index` is below the length, by the invariant.
        unsafe { self.0.get_unchecked_mut(index) }
    }
}
