//! The buffer pool of a database: which of its pages leaves when another needs the room.

use ftlab_core::index_list::IndexList;
use ftlab_core::{Catalogue, member};

pub mod cflru;
pub mod cflru_e;
pub mod lru;

/// The pages of the pool.
#[derive(Clone, Copy)]
pub struct Pages<'a> {
    /// Whether each is dirty; the least recently used is at the back.
    pages: &'a IndexList<bool>,
}

impl Pages<'_> {
    /// From the least recently used to the most recently used.
    pub fn from_oldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.pages.from_back()
    }

    /// Whether it must be written before it leaves.
    pub fn is_dirty(&self, page: u32) -> bool {
        self.pages.get(page).copied().unwrap_or(false)
    }
}

/// Chooses what leaves.
pub trait PoolPolicy: Send {
    /// A page of the pool, which is not empty.
    fn victim(&mut self, pages: &Pages<'_>) -> Option<u32>;

    /// A page was read from the drive, or written to it, which took so long.
    fn on_io(&mut self, _page: u32, _took_ns: u64) {}
}

/// What a pool policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Room of the pool.
    pub pages: u32,
}

pub fn catalogue() -> Catalogue<dyn PoolPolicy, Setup> {
    member!(Catalogue::new("pool"), cflru, cflru_e, lru)
}

/// The pool: pages in the order of their last use.
pub struct Pool {
    pages: IndexList<bool>,
    room: u32,
    /// Pages for which there is room, and which are still on their way.
    reserved: u32,
    pub policy: Box<dyn PoolPolicy>,
}

impl Pool {
    pub fn new(room: u32, policy: Box<dyn PoolPolicy>) -> Self {
        Pool {
            pages: IndexList::new(room),
            room,
            reserved: 0,
            policy,
        }
    }

    /// Whether the page is there; then it is used now, and dirty if it is written.
    pub fn uses(&mut self, page: u32, writes: bool) -> bool {
        let Some(&dirty) = self.pages.get(page) else {
            return false;
        };
        self.pages.put(page, dirty || writes);
        true
    }

    /// Keeps room for one more page; what had to leave for it, and whether that is dirty.
    pub fn reserve(&mut self) -> Option<(u32, bool)> {
        let full = self.pages.len() + self.reserved >= self.room;
        self.reserved += 1;
        if !full {
            return None;
        }
        let victim = self.policy.victim(&Pages { pages: &self.pages });
        let Some((page, dirty)) = victim.and_then(|page| self.pages.take(page).map(|dirty| (page, dirty))) else {
            unreachable!("a pool with room for every client has a page to give: {victim:?}");
        };
        Some((page, dirty))
    }

    /// A page comes into the room that was reserved.
    pub fn enters(&mut self, page: u32, dirty: bool) {
        self.reserved -= 1;
        self.pages.put(page, dirty);
    }
}

#[cfg(test)]
mod tests;
