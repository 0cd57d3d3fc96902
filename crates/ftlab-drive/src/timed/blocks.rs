//! Order within a block: programs one after the other, an erase after everything before it.

use super::ops::{Kind, Link, NONE, Ops};

/// What is under way on one block of one plane.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Unfinished operations issued since the last erase was issued (the erase itself not counted).
    outstanding: u32,
    /// The last unfinished program or erase.
    tail: u32,
    /// The last unfinished erase; earlier ones are linked through `Op::bytes`.
    erase: u32,
    /// Programs of pages below this one have completed (0 where not known).
    oldest: u32,
    /// Counts erases issued (wraps), so that a completion knows which erase waits for it.
    epoch: u8,
}

/// Where a read finds its page.
pub(super) enum Found {
    /// In flash.
    Flash,
    /// In the controller: the unfinished program that carries it.
    Controller(u32),
}

/// All blocks, by `plane · blocks + block`.
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub fn new(count: usize) -> Self {
        let idle = Block {
            outstanding: 0,
            tail: NONE,
            erase: NONE,
            oldest: 0,
            epoch: 0,
        };
        Blocks(vec![idle; count])
    }

    /// Enters a new read, or finds the program it can be served from (then it does not count as work on the block).
    #[inline]
    pub fn enter_read(&mut self, ops: &mut Ops, index: u32) -> Found {
        let op = ops.at_mut(index);
        let (plane_block, page) = (op.plane_block as usize, op.page_in_block);
        let block = &mut self.0[plane_block];
        if block.tail != NONE && page >= block.oldest {
            if let Some(program) = carrier(ops, block.tail, page) {
                return Found::Controller(program);
            }
            // An unfinished erase before this read: the page cannot hold anything.
            assert!(
                block.erase == NONE,
                "read of page {page} of plane-block {plane_block}, which is being erased"
            );
        }
        ops.at_mut(index).epoch = block.epoch;
        block.outstanding += 1;
        Found::Flash
    }

    /// Enters a new program after the unfinished program or erase before it.
    #[inline]
    pub fn enter_program(&mut self, ops: &mut Ops, index: u32) {
        let op = ops.at_mut(index);
        let block = &mut self.0[op.plane_block as usize];
        op.epoch = block.epoch;
        op.previous = block.tail;
        block.outstanding += 1;
        if block.tail != NONE {
            ops.connect(block.tail, index, Link::Order);
        }
        block.tail = index;
    }

    /// Enters a new erase after everything outstanding on the block.
    pub fn enter_erase(&mut self, ops: &mut Ops, index: u32) {
        let op = ops.at_mut(index);
        let block = &mut self.0[op.plane_block as usize];
        op.epoch = block.epoch;
        op.deps += block.outstanding;
        op.bytes = block.erase;
        // Programs since an unfinished erase are counted and follow it; without any, the erase itself is awaited.
        if block.tail != NONE && ops.at(block.tail).kind == Kind::Erase {
            ops.connect(block.tail, index, Link::Order);
        }
        *block = Block {
            outstanding: 0,
            tail: index,
            erase: index,
            oldest: 0,
            epoch: block.epoch.wrapping_add(1),
        };
    }

    /// Takes a completed operation off its block. Returns the erase that was waiting for it, if any.
    #[inline]
    pub fn leave(&mut self, ops: &Ops, index: u32) -> Option<u32> {
        let op = ops.at(index);
        let block = &mut self.0[op.plane_block as usize];
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
            if op.kind == Kind::Program {
                block.oldest = op.page_in_block + 1;
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

    pub fn clear(&mut self) {
        let count = self.0.len();
        *self = Blocks::new(count);
    }
}

/// The unfinished program of `page` in the chain that ends at `tail`.
fn carrier(ops: &Ops, tail: u32, page: u32) -> Option<u32> {
    let mut at = tail;
    while at != NONE && ops.at(at).kind == Kind::Program {
        if ops.at(at).page_in_block == page {
            return Some(at);
        }
        at = ops.at(at).previous;
    }
    None
}
