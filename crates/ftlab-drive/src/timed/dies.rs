//! A die: its ready queues, what it is doing, and its clocks.

use ftlab_ftl::{Class, FlashOpKind};

use super::ops::{Kind, NONE, Op, Ops};
use super::ranks::{ClassSet, READS, Ranks, bit};
use crate::schedule::Phase;

/// What a die is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// Nothing; it may have a suspended batch, and it may wait for the channel to start something.
    Idle,
    /// Commands and cell time of reads; the event is their end.
    Sensing,
    /// Reads wait for the channel with their data.
    Holding,
    /// Data goes out; the event is the end of the first of the batch.
    Sending,
    /// Commands, data in and cell time of programs or erases; the event is their end.
    Changing,
    /// The same, being suspended; the event is the end of the suspension command.
    Suspending,
}

/// Operations that run together on different planes of the die, linked by `Op::next`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub first: u32,
    pub count: u32,
    pub kind: FlashOpKind,
    pub class: Class,
    /// GC, wear or erase: counts on the GC clock.
    pub internal: bool,
    pub suspends: u32,
    /// Channel time of the commands of the whole batch.
    pub command_ns: u64,
    pub cell_ns: u64,
}

impl Batch {
    /// What its commands are to the channel.
    pub fn phase(&self) -> Phase {
        match self.kind {
            FlashOpKind::Read => Phase::ReadCommand,
            FlashOpKind::Program => Phase::Program,
            FlashOpKind::Erase => Phase::Erase,
        }
    }
}

/// A suspended batch and the cell time it still needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub batch: Batch,
    pub remaining_ns: u64,
}

/// Whole cache lines, so that its place is found by a shift.
#[repr(align(64))]
pub(super) struct Die {
    heads: [u32; Class::COUNT],
    tails: [u32; Class::COUNT],
    /// Classes with a ready operation.
    pub ready: ClassSet,
    pub doing: Doing,
    pub dirty: bool,
    /// What the die does next, while it waits for the channel to start it.
    pub choice: Class,
    pub channel: u32,
    /// Its place in the channels' table of wishes.
    pub wish: u32,
    pub chip: u32,
    /// Host writes in a row that overtook waiting GC work.
    pub overtaken: u32,
    /// Valid unless `Idle`.
    pub batch: Batch,
    pub parked: Option<Parked>,
    /// A read that may suspend has become ready since the present batch began.
    pub urged: bool,
    /// Cell phase of a `Changing` batch.
    pub cell_from_ns: u64,
    pub cell_until_ns: u64,
    /// Since when the die has been held by the present batch.
    pub held_ns: u64,
    /// Time held by internal batches, up to the last release.
    gc_ns: u64,
    /// The run of reads that the next read of a collection may join; `NONE` if something else has been issued since.
    pub reads: u32,
    /// Operations issued and not completed; those of the GC and erase classes among them.
    pub queued: u32,
    pub internal: u32,
    pub idle_since_ns: u64,
    /// Time held by each class up to the last release.
    pub busy_ns: [u64; Class::COUNT],
}

impl Die {
    pub fn new(channel: u32, wish: u32, chip: u32) -> Self {
        let batch = Batch {
            first: NONE,
            count: 0,
            kind: FlashOpKind::Read,
            class: Class::HostRead,
            internal: false,
            suspends: 0,
            command_ns: 0,
            cell_ns: 0,
        };
        Die {
            heads: [NONE; Class::COUNT],
            tails: [NONE; Class::COUNT],
            ready: 0,
            doing: Doing::Idle,
            dirty: false,
            choice: Class::HostRead,
            channel,
            wish,
            chip,
            overtaken: 0,
            batch,
            parked: None,
            urged: false,
            cell_from_ns: 0,
            cell_until_ns: 0,
            held_ns: 0,
            gc_ns: 0,
            reads: NONE,
            queued: 0,
            internal: 0,
            idle_since_ns: 0,
            busy_ns: [0; Class::COUNT],
        }
    }

    /// Enters an operation that became ready now. Those that became ready at the same instant are in order of issue.
    #[inline]
    pub fn enter(&mut self, ops: &mut Ops, index: u32) {
        let op = ops.at(index);
        let class = op.class as usize;
        let tail = self.tails[class];
        self.ready |= 1 << class;
        if tail == NONE {
            self.heads[class] = index;
            self.tails[class] = index;
        } else if precedes(ops.at(tail), op) {
            ops.at_mut(tail).next = index;
            self.tails[class] = index;
        } else {
            let mut before = NONE;
            let mut at = self.heads[class];
            while precedes(ops.at(at), ops.at(index)) {
                (before, at) = (at, ops.at(at).next);
            }
            ops.at_mut(index).next = at;
            match before {
                NONE => self.heads[class] = index,
                _ => ops.at_mut(before).next = index,
            }
        }
    }

    #[inline(always)]
    pub fn head(&self, class: Class) -> u32 {
        self.heads[class as usize]
    }

    #[inline(always)]
    pub fn is_last(&self, class: Class, index: u32) -> bool {
        self.tails[class as usize] == index
    }

    /// The ready queue of `class` goes on with `index`, which was the second.
    #[inline(always)]
    pub fn set_head(&mut self, class: Class, index: u32) {
        self.heads[class as usize] = index;
        if index == NONE {
            self.tails[class as usize] = NONE;
            self.ready &= !bit(class);
        }
    }

    /// Takes `index`, which follows `before` (`NONE`: is the head), out of its ready queue.
    #[inline]
    pub fn unlink(&mut self, ops: &mut Ops, class: Class, before: u32, index: u32) {
        let next = ops.at(index).next;
        match before {
            NONE => self.heads[class as usize] = next,
            _ => ops.at_mut(before).next = next,
        }
        if next == NONE {
            self.tails[class as usize] = before;
            if before == NONE {
                self.ready &= !bit(class);
            }
        }
        ops.at_mut(index).next = NONE;
    }

    /// Takes a ready operation out wherever it is in its queue.
    pub fn remove(&mut self, ops: &mut Ops, index: u32) {
        let class = ops.at(index).class;
        let (mut before, mut at) = (NONE, self.head(class));
        while at != index {
            (before, at) = (at, ops.at(at).next);
        }
        self.unlink(ops, class, before, index);
    }

    /// A read or program of a collection has completed.
    #[inline(always)]
    pub fn has_copied(&mut self, now: u64) {
        self.queued -= 1;
        self.internal -= 1;
        if self.queued == 0 {
            self.idle_since_ns = now;
        }
    }

    /// The class whose head goes first; while a batch is suspended, only reads of the host and of the mapping may run.
    #[inline(always)]
    pub fn select(&self, ops: &Ops, ranks: &Ranks) -> Option<Class> {
        let set = if self.parked.is_some() {
            self.urgent(ops)
        } else {
            self.ready
        };
        if set & set.wrapping_sub(1) == 0 {
            return Class::ALL.get(set.trailing_zeros() as usize).copied();
        }
        self.select_of(set, ops, ranks)
    }

    /// Of several classes.
    fn select_of(&self, set: ClassSet, ops: &Ops, ranks: &Ranks) -> Option<Class> {
        let first = ranks.first_of(set, self.overtaken);
        if first.only.is_some() {
            return first.only;
        }
        let equal = Class::ALL.into_iter().filter(|&c| first.classes & bit(c) != 0);
        equal.reduce(|a, b| {
            if precedes(ops.at(self.head(b)), ops.at(self.head(a))) {
                b
            } else {
                a
            }
        })
    }

    /// The classes whose head is a read that may suspend other work.
    #[inline]
    pub fn urgent(&self, ops: &Ops) -> ClassSet {
        let mut set = self.ready & READS;
        for class in [Class::Mapping, Class::HostRead] {
            if set & bit(class) != 0 && ops.at(self.head(class)).kind != Kind::Read {
                set &= !bit(class);
            }
        }
        set
    }

    /// Time the die has worked for GC, wear levelling and erases.
    #[inline(always)]
    pub fn gc_clock(&self, now: u64) -> u64 {
        if self.doing != Doing::Idle && self.batch.internal {
            self.gc_ns + (now - self.held_ns)
        } else {
            self.gc_ns
        }
    }

    /// Time held by each class up to `now`.
    pub fn busy_until(&self, now: u64) -> [u64; Class::COUNT] {
        let mut busy = self.busy_ns;
        if self.doing != Doing::Idle {
            busy[self.batch.class as usize] += now - self.held_ns;
        }
        busy
    }

    /// The present batch begins (or goes on) to hold the die.
    #[inline(always)]
    pub fn hold(&mut self, doing: Doing, now: u64) {
        self.doing = doing;
        self.held_ns = now;
    }

    /// The present batch leaves the die, finished or suspended.
    #[inline(always)]
    pub fn let_go(&mut self, now: u64) {
        let held = now - self.held_ns;
        self.busy_ns[self.batch.class as usize] += held;
        if self.batch.internal {
            self.gc_ns += held;
        }
        self.doing = Doing::Idle;
    }
}

/// Order of a ready queue: by time of readiness, then by order of issue.
#[inline(always)]
fn precedes(a: &Op, b: &Op) -> bool {
    a.ready_ns < b.ready_ns || (a.ready_ns == b.ready_ns && a.before(b))
}
