//! Which files are open while the calls of a recording are put in order: the data of one without a name live as long as it is.
//!
//! # Model
//! A descriptor counts as open from its first call to its close, or to the last call of its process; so does a shared mapping that can be
//! written to, which keeps its file when the descriptor is closed. When the last name of a file goes
//! while descriptors are open, that is said in the call; and of the closes of such a file only the last one is kept. A file that has no
//! name when it is met first (`O_TMPFILE`, or unlinked before it was used) loses it then, unless it is given one later.
//! # Not modelled
//! Descriptors and mappings that a child has from its parent and does not use; those handed to other processes.

use rustc_hash::{FxHashMap, FxHashSet};

use ftlab_record::recording::{Call, Op, op_flags};

/// A descriptor: process image and number of the file's description in it.
pub type Descriptor = (u64, u32);

#[derive(Default)]
pub struct Opened {
    /// By the file's number in the recording.
    open: FxHashMap<u32, FxHashSet<Descriptor>>,
    removed: FxHashSet<u32>,
}

impl Opened {
    /// A call by a descriptor (none: by a path). Gives the calls that it is: none, itself, or one more before it. `nameless`: the file had no
    /// name when the descriptor was met.
    pub fn pass(&mut self, mut op: Op, by: Option<Descriptor>, nameless: bool) -> [Option<Op>; 2] {
        let file = op.file;
        match op.call {
            Call::Remove => {
                self.removed.insert(file);
                if self.open.get(&file).is_some_and(|open| !open.is_empty()) {
                    op.flags |= op_flags::OPEN;
                }
                [None, Some(op)]
            }
            Call::Close => {
                let open = self.open.entry(file).or_default();
                if let Some(by) = by {
                    open.remove(&by);
                }
                let last = open.is_empty() || !self.removed.contains(&file);
                [None, last.then_some(op)]
            }
            _ => {
                let Some(by) = by else {
                    return [None, Some(op)];
                };
                self.open.entry(file).or_default().insert(by);
                let loses = nameless && self.removed.insert(file);
                let remove = Op {
                    call: Call::Remove,
                    flags: op_flags::OPEN,
                    offset: 0,
                    length: 0,
                    duration_ns: 0,
                    ..op
                };
                [loses.then_some(remove), Some(op)]
            }
        }
    }

    /// A file was mapped, by a description that is the mapping's own.
    pub fn mapped(&mut self, file: u32, by: Descriptor) {
        self.open.entry(file).or_default().insert(by);
    }

    /// A process image has ended: the files that only it had open, and that have no name, in order.
    pub fn end(&mut self, image: u64) -> Vec<u32> {
        let mut gone = Vec::new();
        for (&file, open) in &mut self.open {
            let before = open.len();
            open.retain(|&(of, _)| of != image);
            if open.len() < before && open.is_empty() && self.removed.contains(&file) {
                gone.push(file);
            }
        }
        gone.sort_unstable();
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(call: Call) -> Op {
        Op {
            time_ns: 0,
            duration_ns: 0,
            call,
            flags: 0,
            file: 1,
            offset: 0,
            length: 0,
            context: 0,
            process: 0,
            tid: 0,
        }
    }

    #[test]
    fn a_file_without_a_name_lives_until_its_last_descriptor_is_closed() {
        let mut opened = Opened::default();
        let (one, two) = (Some((7, 1)), Some((8, 1)));
        opened.pass(op(Call::Write), one, false);
        opened.pass(op(Call::Write), two, false);
        let removed = opened.pass(op(Call::Remove), None, false)[1].unwrap();
        assert_eq!(removed.flags, op_flags::OPEN);
        assert_eq!(opened.pass(op(Call::Close), one, false), [None, None]);
        // The other process ends without closing it.
        assert_eq!((opened.end(9), opened.end(8)), (vec![], vec![1]));
    }

    #[test]
    fn a_file_that_is_mapped_keeps_its_data_when_descriptor_and_name_are_gone() {
        let mut opened = Opened::default();
        let (descriptor, mapping) = (Some((7, 1)), Some((7, 2)));
        opened.pass(op(Call::Write), descriptor, false);
        opened.mapped(1, (7, 2));
        opened.pass(op(Call::Close), descriptor, false);
        assert_eq!(
            opened.pass(op(Call::Remove), None, false)[1].unwrap().flags,
            op_flags::OPEN
        );
        // What is stored is still written; the end of the mapping is the last close.
        assert!(opened.pass(op(Call::Mapped), mapping, false)[1].is_some());
        assert!(opened.pass(op(Call::Close), mapping, false)[1].is_some());
    }

    #[test]
    fn a_temporary_file_loses_its_name_when_it_is_met() {
        let mut opened = Opened::default();
        let calls = opened.pass(op(Call::Write), Some((7, 1)), true);
        assert_eq!(
            calls.map(|call| call.map(|op| (op.call, op.flags))),
            [Some((Call::Remove, op_flags::OPEN)), Some((Call::Write, 0))]
        );
        assert_eq!(opened.pass(op(Call::Write), Some((7, 1)), true)[0], None);
        assert!(opened.pass(op(Call::Close), Some((7, 1)), true)[1].is_some());
    }

    #[test]
    fn a_file_that_nobody_has_open_goes_at_once_and_closes_of_others_are_kept() {
        let mut opened = Opened::default();
        opened.pass(op(Call::Write), Some((7, 1)), false);
        assert!(opened.pass(op(Call::Close), Some((7, 1)), false)[1].is_some());
        assert_eq!(opened.pass(op(Call::Remove), None, false)[1].unwrap().flags, 0);
    }
}
