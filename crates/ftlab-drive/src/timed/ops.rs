//! The operation graph: operations in an arena with generations, edges (operation → waiter) in another.
//!
//! Nearly every operation has one waiter at most (the program of what was read, the next program of the block): the first edge
//! lies in the operation itself.

use ftlab_core::memory::prefetch;
use ftlab_ftl::{Cause, Class, FlashOpKind, OpId};

use super::table::Table;

/// Absent index in the arenas' links.
pub(super) const NONE: u32 = u32::MAX;

/// In [`Op::successor`]: the waiter is next in the order of the block.
const ORDER: u32 = 1 << 31;

/// What an entry of the arena is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Read,
    Program,
    Erase,
    /// Completes when all inputs have.
    JoinAll,
    /// Completes with its first input.
    JoinFirst,
    /// A read served from the controller's copy of a page whose program is under way.
    Copy,
    /// Reads of a collection, one at a time (`runs.rs`).
    Reads,
    /// Programs of a collection, one at a time.
    Programs,
    /// Work of an engine (`engines.rs`).
    Work,
}

impl Kind {
    #[inline(always)]
    pub fn of(kind: FlashOpKind) -> Self {
        match kind {
            FlashOpKind::Read => Kind::Read,
            FlashOpKind::Program => Kind::Program,
            FlashOpKind::Erase => Kind::Erase,
        }
    }

    /// The flash operation, for those that run on a die.
    #[inline(always)]
    pub fn flash(self) -> Option<FlashOpKind> {
        match self {
            Kind::Read | Kind::Reads => Some(FlashOpKind::Read),
            Kind::Program | Kind::Programs => Some(FlashOpKind::Program),
            Kind::Erase => Some(FlashOpKind::Erase),
            Kind::JoinAll | Kind::JoinFirst | Kind::Copy | Kind::Work => None,
        }
    }

    #[inline(always)]
    pub fn is_program(self) -> bool {
        matches!(self, Kind::Program | Kind::Programs)
    }

    #[inline(always)]
    pub fn is_run(self) -> bool {
        matches!(self, Kind::Reads | Kind::Programs)
    }
}

/// The life of an entry, in this order. `Done` entries are kept only while edges still lead to them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
#[repr(u8)]
pub(super) enum State {
    Waiting,
    Ready,
    Running,
    Decoding,
    Done,
    Free,
}

/// One operation; a cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Op {
    pub ready_ns: u64,
    pub generation: u32,
    /// Order of issue (wraps).
    pub sequence: u32,
    pub page: u32,
    /// Its block, as `places.rs` numbers them.
    pub block: u32,
    /// Bytes to transfer; for an erase, the pending erase of the same block before it.
    pub bytes: u32,
    pub ticket: u32,
    /// In packed form; 0 for none. Of a run, which has none: its number.
    pub notice: u32,
    /// Unmet dependencies; for an erase also the unfinished operations of its block.
    pub deps: u32,
    /// The first that came to wait for this one; [`ORDER`] is set for an edge of [`Dependency::Order`].
    pub successor: u32,
    /// Head of the list of edges to the others that wait, latest first.
    pub edges: u32,
    /// Next in a ready queue, a batch or the free list.
    pub next: u32,
    pub kind: Kind,
    pub class: Class,
    pub cause: Cause,
    pub state: State,
    pub die: u16,
    pub page_in_block: u16,
    /// Members of a run that have not completed; 1 for an operation by itself.
    pub left: u16,
    /// For a program: unmet dependencies that bring its data (all but those of block order). For a read: 1 if it is the only
    /// operation of its ticket, whose path it then goes itself.
    pub inputs: u8,
    /// Erase epoch of the block in which it was issued (wraps).
    pub epoch: u8,
}

const _: () = assert!(size_of::<Op>() == 64, "an operation is one cache line");

impl Op {
    /// An entry in state `Waiting` that waits for nothing and that nobody waits for.
    pub const EMPTY: Op = Op {
        ready_ns: 0,
        generation: 0,
        sequence: 0,
        page: 0,
        block: 0,
        bytes: 0,
        ticket: NONE,
        notice: 0,
        deps: 0,
        successor: NONE,
        edges: NONE,
        next: NONE,
        kind: Kind::JoinAll,
        class: Class::HostRead,
        cause: Cause::Host,
        state: State::Waiting,
        die: 0,
        page_in_block: 0,
        left: 1,
        inputs: 0,
        epoch: 0,
    };

    /// Whether this was issued before `other`; sequence numbers may have wrapped.
    #[inline(always)]
    pub fn before(&self, other: &Op) -> bool {
        (self.sequence.wrapping_sub(other.sequence) as i32) < 0
    }

    /// Nobody waits for its completion but a ticket, and it waits for nobody.
    #[inline(always)]
    pub fn is_alone(&self) -> bool {
        self.successor & self.edges == NONE && self.notice | self.deps == 0 && self.state < State::Done
    }

    /// A read that is the only operation of its ticket.
    #[inline(always)]
    pub fn is_sole(&self) -> bool {
        self.inputs != 0 && self.kind == Kind::Read
    }

    /// GC, wear levelling or erase: what `gc_wait_ns` counts.
    #[inline(always)]
    pub fn is_internal(&self) -> bool {
        matches!(self.class, Class::Gc | Class::Erase) || matches!(self.cause, Cause::Gc | Cause::Wear)
    }
}

/// Why one operation waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dependency {
    /// An `after` of the issuer; brings a program its data.
    Input,
    /// Order within a block.
    Order,
    /// A controller copy that waits until the program has its data, not for the program itself.
    Data,
}

#[derive(Clone, Copy)]
struct Edge {
    /// Of a run: which of its members is waited for.
    generation: u32,
    waiter: u32,
    next: u32,
    dependency: Dependency,
}

/// Both arenas.
pub(super) struct Ops {
    ops: Table<Op>,
    free: u32,
    edges: Table<Edge>,
    free_edge: u32,
    sequence: u32,
}

impl Ops {
    pub fn new() -> Self {
        Ops {
            ops: Table::new(),
            free: NONE,
            edges: Table::new(),
            free_edge: NONE,
            sequence: 0,
        }
    }

    /// Enters `op`, next in order of issue.
    #[inline(always)]
    pub fn insert(&mut self, op: Op) -> u32 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let index = self.free;
        if index == NONE {
            return self.grow(Op { sequence, ..op });
        }
        let entry = &mut self.ops[index as usize];
        self.free = entry.next;
        let generation = entry.generation;
        *entry = Op {
            sequence,
            generation,
            ..op
        };
        index
    }

    #[cold]
    fn grow(&mut self, op: Op) -> u32 {
        assert!(self.ops.len() < ORDER as usize, "too many operations outstanding");
        self.ops.push(op)
    }

    /// Returns an entry nobody refers to any more; ids of it are done from now on.
    #[inline]
    pub fn release(&mut self, index: u32) {
        let free = self.free;
        let op = &mut self.ops[index as usize];
        debug_assert!(
            op.edges == NONE && op.successor == NONE,
            "operation {index} freed with waiters"
        );
        op.generation = op.generation.wrapping_add(u32::from(op.left));
        op.state = State::Free;
        op.next = free;
        self.free = index;
    }

    #[inline(always)]
    pub fn at(&self, index: u32) -> &Op {
        &self.ops[index as usize]
    }

    #[inline(always)]
    pub fn at_mut(&mut self, index: u32) -> &mut Op {
        &mut self.ops[index as usize]
    }

    #[inline(always)]
    pub fn id(&self, index: u32) -> OpId {
        OpId {
            index,
            generation: self.at(index).generation,
        }
    }

    /// The id of what completes last of `index`.
    #[inline(always)]
    pub fn last_generation(&self, index: u32) -> u32 {
        let op = self.at(index);
        op.generation.wrapping_add(u32::from(op.left) - 1)
    }

    /// Takes a place in the order of issue for a member of a run.
    #[inline(always)]
    pub fn skip_sequence(&mut self) -> u32 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }

    /// The entry of `id` if it has not completed.
    #[inline(always)]
    pub fn live(&self, id: OpId) -> Option<u32> {
        let op = self.ops.get(id.index as usize)?;
        let place = id.generation.wrapping_sub(op.generation);
        (place < u32::from(op.left) && op.state < State::Done).then_some(id.index)
    }

    /// Makes `waiter` wait for `source`; of a run, for the member with this generation.
    #[inline]
    pub fn connect(&mut self, source: u32, generation: u32, waiter: u32, dependency: Dependency) {
        self.at_mut(waiter).deps += 1;
        let from = self.at_mut(source);
        let can_be_first = match dependency {
            Dependency::Input => !from.kind.is_run(),
            Dependency::Order => true,
            Dependency::Data => false,
        };
        if can_be_first && from.successor == NONE && from.edges == NONE {
            from.successor = if dependency == Dependency::Order {
                waiter | ORDER
            } else {
                waiter
            };
        } else {
            self.connect_more(source, generation, waiter, dependency);
        }
    }

    fn connect_more(&mut self, source: u32, generation: u32, waiter: u32, dependency: Dependency) {
        let next = self.at(source).edges;
        let edge = Edge {
            generation,
            waiter,
            next,
            dependency,
        };
        let at = if self.free_edge == NONE {
            self.edges.push(edge)
        } else {
            let at = self.free_edge;
            self.free_edge = self.edges[at as usize].next;
            self.edges[at as usize] = edge;
            at
        };
        self.at_mut(source).edges = at;
    }

    /// Takes the edge in `source` itself: who was the first to wait, and why.
    #[inline(always)]
    pub fn take_first(&mut self, source: u32) -> Option<(u32, Dependency)> {
        match std::mem::replace(&mut self.at_mut(source).successor, NONE) {
            NONE => None,
            first if first & ORDER != 0 => Some((first & !ORDER, Dependency::Order)),
            first => Some((first, Dependency::Input)),
        }
    }

    /// Takes the latest edge off `source`'s list.
    pub fn disconnect(&mut self, source: u32) -> Option<(u32, Dependency)> {
        self.take_edge(source, |_| true)
    }

    /// As [`Ops::prefetch`], of what an operation's `successor` names.
    #[inline(always)]
    pub fn prefetch_waiter(&self, successor: u32) {
        self.prefetch(successor & !ORDER);
    }

    /// `index` will be needed soon, if there is such an entry.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        prefetch(&self.ops, index as usize);
    }

    /// The program that follows `index` in its block, if that has been issued.
    #[inline(always)]
    pub fn follower(&self, index: u32) -> u32 {
        let op = self.at(index);
        match op.successor {
            first if first != NONE && first & ORDER != 0 => first & !ORDER,
            _ if op.edges == NONE => NONE,
            _ => self.listed_follower(op.edges),
        }
    }

    fn listed_follower(&self, mut at: u32) -> u32 {
        while at != NONE {
            let Edge {
                waiter,
                next,
                dependency,
                ..
            } = self.edges[at as usize];
            if dependency == Dependency::Order {
                return waiter;
            }
            at = next;
        }
        NONE
    }

    /// Takes the next edge of kind [`Dependency::Data`] off `source`'s list.
    pub fn disconnect_data(&mut self, source: u32) -> Option<u32> {
        let (waiter, _) = self.take_edge(source, |edge| edge.dependency == Dependency::Data)?;
        Some(waiter)
    }

    /// Takes the next edge to who waits for this member off the list of a run.
    pub fn disconnect_member(&mut self, source: u32, generation: u32) -> Option<(u32, Dependency)> {
        self.take_edge(source, |edge| edge.generation == generation)
    }

    fn take_edge(&mut self, source: u32, wanted: impl Fn(&Edge) -> bool) -> Option<(u32, Dependency)> {
        let (mut before, mut at) = (NONE, self.at(source).edges);
        while at != NONE {
            let edge = self.edges[at as usize];
            if wanted(&edge) {
                match before {
                    NONE => self.at_mut(source).edges = edge.next,
                    _ => self.edges[before as usize].next = edge.next,
                }
                self.free_edge_at(at);
                return Some((edge.waiter, edge.dependency));
            }
            (before, at) = (at, edge.next);
        }
        None
    }

    #[inline(always)]
    fn free_edge_at(&mut self, at: u32) {
        self.edges[at as usize].next = self.free_edge;
        self.free_edge = at;
    }

    /// Indices of every entry that has not completed.
    pub fn unfinished(&self) -> Vec<u32> {
        let all = 0..self.ops.len() as u32;
        all.filter(|&index| self.at(index).state < State::Done).collect()
    }

    /// Edges that have been entered so far, those that may be used again included.
    #[cfg(test)]
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// How many operations have been issued since the one with this place in the order of issue (which may have wrapped).
    pub fn age(&self, sequence: u32) -> u32 {
        self.sequence.wrapping_sub(sequence)
    }

    /// Drops everything; all ids given out so far are done.
    pub fn clear(&mut self) {
        self.free = NONE;
        for index in (0..self.ops.len() as u32).rev() {
            let op = self.at_mut(index);
            (op.edges, op.successor) = (NONE, NONE);
            self.release(index);
        }
        self.edges = Table::new();
        self.free_edge = NONE;
    }
}
