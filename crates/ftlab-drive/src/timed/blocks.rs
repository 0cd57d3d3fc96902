//! Blocks: programs one after the other, an erase after everything before it, reads of what is programmed only.

use ftlab_core::memory::prefetch;

use super::ops::{Dependency, Kind, NONE, Op, Ops};
use super::table::Table;

/// What is under way on one block of one plane.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Unfinished operations issued since the last erase was issued (the erase itself not counted).
    outstanding: u32,
    /// The last unfinished program or erase.
    tail: u32,
    /// The first unfinished program issued since the last erase was issued.
    head: u32,
    /// The last unfinished erase; earlier ones are linked through `Op::bytes`.
    erase: u32,
    /// Programs of pages below this one have completed (0 where not known).
    oldest: u16,
    /// Programs of pages below this one have been issued since the last erase was, or [`UNKNOWN`].
    filled: u16,
    /// Counts erases issued (wraps), so that a completion knows which erase waits for it.
    epoch: u8,
}

/// Nobody has said what a block holds, and it has not been erased: what is done to it cannot be checked.
const UNKNOWN: u16 = u16::MAX;

/// Most pages of a block.
pub(super) const MOST_PAGES: u32 = UNKNOWN as u32 - 1;

/// Where a read finds its page.
pub(super) enum Found {
    /// In flash, in this erase epoch.
    Flash { epoch: u8 },
    /// In the controller: the unfinished program that carries it.
    Controller(u32),
}

/// All blocks, numbered as in `places.rs`.
pub(super) struct Blocks {
    /// Numbers of blocks come from `places.rs`, which refuses pages that the drive has not.
    each: Table<Block>,
    pages: u16,
}

impl Blocks {
    pub fn new(count: usize, pages: u32) -> Self {
        let unknown = Block {
            outstanding: 0,
            tail: NONE,
            head: NONE,
            erase: NONE,
            oldest: 0,
            filled: UNKNOWN,
            epoch: 0,
        };
        Blocks {
            each: (0..count).map(|_| unknown).collect(),
            pages: pages as u16,
        }
    }

    /// The first `pages` pages of a block are programmed, the others are erased.
    pub fn set_filled(&mut self, block: u32, pages: u32) {
        self.each[block as usize].filled = pages as u16;
    }

    /// Pages of a block.
    #[inline(always)]
    pub fn pages(&self) -> u32 {
        u32::from(self.pages)
    }

    #[inline(always)]
    pub fn prefetch(&self, block: u32) {
        prefetch(&self.each, block as usize);
    }

    /// # Panics
    /// If the page is not programmed.
    #[inline(always)]
    fn check_read(&self, block: u32, page: u16) -> &Block {
        let state = &self.each[block as usize];
        assert!(
            page < state.filled,
            "read of page {page} of block {block}, of which {} are programmed",
            state.filled
        );
        state
    }

    /// Whether a page is in flash, and not in the controller until its program has completed.
    #[inline(always)]
    pub fn holds(&self, block: u32, page: u16) -> bool {
        let state = self.check_read(block, page);
        state.tail == NONE || page < state.oldest
    }

    /// Enters a new read, or finds the program it can be served from (then it does not count as work on the block).
    #[inline(always)]
    pub fn enter_read(&mut self, ops: &Ops, block: u32, page: u16) -> Found {
        if !self.holds(block, page)
            && let Some(program) = carrier(ops, self.each[block as usize].head, page)
        {
            return Found::Controller(program);
        }
        let state = &mut self.each[block as usize];
        state.outstanding += 1;
        Found::Flash { epoch: state.epoch }
    }

    /// Takes a completed read off its block, as [`Blocks::leave`] does. False if an erase waits for it.
    #[inline(always)]
    pub fn leave_read(&mut self, op: &Op) -> bool {
        let block = &mut self.each[op.block as usize];
        let is_of_epoch = op.epoch == block.epoch;
        block.outstanding -= u32::from(is_of_epoch);
        is_of_epoch
    }

    /// The last unfinished program or erase of a block.
    #[inline(always)]
    pub fn last(&self, block: u32) -> Option<u32> {
        let tail = self.each[block as usize].tail;
        (tail != NONE).then_some(tail)
    }

    /// One more page of a block is programmed.
    ///
    /// # Panics
    /// If it is not the next one.
    #[inline(always)]
    pub fn add_program(&mut self, number: u32, page: u16) {
        let block = &mut self.each[number as usize];
        if block.filled != UNKNOWN {
            assert!(
                page == block.filled && page < self.pages,
                "program of page {page} of block {number}, of which {} are programmed",
                block.filled
            );
            block.filled += 1;
        }
    }

    /// Enters a new program after the unfinished program or erase before it.
    #[inline(always)]
    pub fn enter_program(&mut self, ops: &mut Ops, index: u32) {
        let op = ops.at_mut(index);
        self.add_program(op.block, op.page_in_block);
        let block = &mut self.each[op.block as usize];
        op.epoch = block.epoch;
        block.outstanding += 1;
        if block.tail != NONE {
            ops.connect(block.tail, ops.last_generation(block.tail), index, Dependency::Order);
        }
        if block.head == NONE {
            block.head = index;
        }
        block.tail = index;
    }

    /// The page that a run of programs shows is in flash.
    #[inline(always)]
    pub fn has_programmed(&mut self, op: &Op) {
        let block = &mut self.each[op.block as usize];
        if op.epoch == block.epoch {
            block.oldest = op.page_in_block + 1;
        }
    }

    /// Enters a new erase after everything outstanding on the block.
    pub fn enter_erase(&mut self, ops: &mut Ops, index: u32) {
        let op = ops.at_mut(index);
        let block = &mut self.each[op.block as usize];
        op.epoch = block.epoch;
        op.deps += block.outstanding;
        op.bytes = block.erase;
        // Programs since an unfinished erase are counted and follow it; without any, the erase itself is awaited.
        if block.tail != NONE && ops.at(block.tail).kind == Kind::Erase {
            ops.connect(block.tail, ops.last_generation(block.tail), index, Dependency::Order);
        }
        *block = Block {
            outstanding: 0,
            tail: index,
            head: NONE,
            erase: index,
            oldest: 0,
            filled: 0,
            epoch: block.epoch.wrapping_add(1),
        };
    }

    /// Takes a completed operation off its block. Returns the erase that was waiting for it, if any.
    #[inline]
    pub fn leave(&mut self, ops: &Ops, index: u32) -> Option<u32> {
        let op = ops.at(index);
        let block = &mut self.each[op.block as usize];
        if block.tail == index {
            block.tail = NONE;
        }
        if op.kind == Kind::Erase {
            if block.erase == index {
                block.erase = NONE;
            }
            return None;
        }
        if op.epoch == block.epoch {
            block.outstanding -= 1;
            if op.kind.is_program() {
                block.oldest = op.page_in_block + 1;
                block.head = ops.follower(index);
            }
            return None;
        }
        // The erase that closed the operation's epoch is unfinished, and so are all later ones on the way to it.
        let mut erase = block.erase;
        while ops.at(erase).epoch != op.epoch {
            erase = ops.at(erase).bytes;
        }
        Some(erase)
    }

    /// Nothing is under way any more. A block on which something has been programmed must be erased before it is programmed
    /// again; whether one that was to be erased is erased depends on how long power lasted.
    pub fn clear(&mut self) {
        for block in self.each.iter_mut() {
            let filled = match block.filled {
                0 if block.tail != NONE => UNKNOWN,
                0 => 0,
                UNKNOWN => UNKNOWN,
                _ => self.pages,
            };
            *block = Block {
                outstanding: 0,
                tail: NONE,
                head: NONE,
                erase: NONE,
                oldest: 0,
                filled,
                epoch: block.epoch,
            };
        }
    }
}

/// The unfinished program of `page` among those from `at` on, or the run that it is in.
fn carrier(ops: &Ops, mut at: u32, page: u16) -> Option<u32> {
    while at != NONE {
        let op = ops.at(at);
        if page.wrapping_sub(op.page_in_block) < op.left {
            return Some(at);
        }
        at = ops.follower(at);
    }
    None
}
