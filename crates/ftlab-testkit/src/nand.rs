//! The rules of flash, held against operations in the order in which they are issued.
//!
//! A page is programmed once per erase and in order within its block; only programmed pages are read.

use ftlab_core::Layout;
use ftlab_ftl::{FlashOp, FlashOpKind};

/// What each block would look like if everything issued had completed.
#[derive(Clone, Debug)]
pub struct Nand {
    layout: Layout,
    /// Next page to program, of each block of each plane.
    next: Vec<u32>,
    pub programs: u64,
    pub erases: u64,
}

impl Nand {
    pub fn new(layout: &Layout) -> Self {
        let blocks = layout.geometry.total_planes() * layout.geometry.blocks;
        Nand {
            layout: layout.clone(),
            next: vec![0; blocks as usize],
            programs: 0,
            erases: 0,
        }
    }

    /// The block that holds `page`.
    pub fn block_of(&self, page: u32) -> usize {
        let address = self.layout.address(page);
        (address.plane * self.layout.geometry.blocks + address.block) as usize
    }

    /// # Panics
    /// If flash does not allow the operation.
    pub fn issue(&mut self, op: &FlashOp) {
        let address = self.layout.address(op.page);
        let block = self.block_of(op.page);
        let next = &mut self.next[block];
        match op.kind {
            FlashOpKind::Read => assert!(
                address.page < *next,
                "read of {address:?}, but only {next} pages of its block are programmed: {op:?}"
            ),
            FlashOpKind::Program => {
                assert!(
                    address.page == *next,
                    "program of {address:?}, but page {next} is the next of its block: {op:?}"
                );
                *next += 1;
                self.programs += 1;
            }
            FlashOpKind::Erase => {
                *next = 0;
                self.erases += 1;
            }
        }
    }

    /// Whether `page` has been programmed since its block was erased.
    pub fn holds(&self, page: u32) -> bool {
        self.layout.address(page).page < self.next[self.block_of(page)]
    }

    pub fn is_blank(&self, block: usize) -> bool {
        self.next[block] == 0
    }

    /// The block may hold anything: it must be erased before it is programmed again.
    pub fn spoil(&mut self, block: usize) {
        self.next[block] = self.layout.geometry.pages;
    }

    pub fn blocks(&self) -> usize {
        self.next.len()
    }
}
