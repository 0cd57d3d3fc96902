//! Copies of a collection, many at once.
//!
//! # Why
//! A collection copies hundreds of pages from one block to another. Its reads form a run and so do its programs (`runs.rs`), and each
//! page joins both: what both runs ask of a new member is the same for all pages of the two blocks, and is looked at once.

use ftlab_ftl::{Class, OpId, PageCopies};

use super::Timed;
use super::ops::Kind;
use super::runs::{Fetch, Store};

impl Timed {
    pub(super) fn copy_pages(&mut self, copies: &PageCopies<'_>) -> OpId {
        let mut read = copies.read;
        let mut program = self.issue_op(copies.program_of(0), &[read]);
        let mut number = 1;
        while number < copies.from.len() {
            let joined = self.join_runs(copies, number, read, program);
            if joined > 0 {
                number += joined;
                read.generation = read.generation.wrapping_add(joined as u32);
                program.generation = program.generation.wrapping_add(joined as u32);
            } else {
                read = self.issue_op(copies.read_of(number), &[]);
                program = self.issue_op(copies.program_of(number), &[read]);
                number += 1;
            }
        }
        program
    }

    /// Adds pages from number `at` on to the runs of which `read` and `program`, just issued, are the last. Returns how many.
    fn join_runs(&mut self, copies: &PageCopies<'_>, at: usize, read: OpId, program: OpId) -> usize {
        if self.width > 1 {
            return 0;
        }
        let (Some(reads), Some(programs)) = (self.ops.live(read), self.ops.live(program)) else {
            return 0;
        };
        let (from, to) = (self.ops.at(reads), self.ops.at(programs));
        let source = &self.dies[usize::from(from.die)];
        let fits = (from.kind, to.kind) == (Kind::Reads, Kind::Programs)
            && read.generation == self.ops.last_generation(reads)
            && program.generation == self.ops.last_generation(programs)
            && from.ready_ns == self.now
            && source.reads == reads
            && source.is_last(Class::Gc, reads);
        if !fits {
            return 0;
        }
        let room = u16::MAX - from.left.max(to.left);
        let (block, base, into) = (from.block, from.page - u32::from(from.page_in_block), to.block);
        let first = to.page_in_block + to.left;
        let (fetches, stores) = (
            &mut self.reads.each[from.notice as usize].members,
            &mut self.programs.each[to.notice as usize].members,
        );
        let mut data = read;
        let mut joined = 0;
        for &page in copies.from[at..].iter().take(usize::from(room)) {
            let page_in_block = page.wrapping_sub(base);
            if page_in_block >= self.blocks.pages() || !self.blocks.holds(block, page_in_block as u16) {
                break;
            }
            self.blocks.add_program(into, first + joined);
            joined += 1;
            data.generation = data.generation.wrapping_add(1);
            fetches.push(Fetch {
                page,
                bytes: copies.bytes,
                page_in_block: page_in_block as u16,
            });
            // Each page takes two places in the order of issue, its read the first.
            self.ops.skip_sequence();
            let sequence = self.ops.skip_sequence();
            stores.push(Store { data, sequence });
        }
        self.ops.at_mut(reads).left += joined;
        self.ops.at_mut(programs).left += joined;
        self.programs_outstanding += u32::from(joined);
        for die in [self.ops.at(reads).die, self.ops.at(programs).die] {
            let die = &mut self.dies[usize::from(die)];
            die.queued += u32::from(joined);
            die.internal += u32::from(joined);
        }
        usize::from(joined)
    }
}
