//! The operation graph: operations in an arena with generations, edges (operation → waiter) in another.

use ftlab_ftl::{Cause, Class, FlashOpKind, OpId};

/// Absent index in the arenas' links.
pub(super) const NONE: u32 = u32::MAX;

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
            Kind::Read => Some(FlashOpKind::Read),
            Kind::Program => Some(FlashOpKind::Program),
            Kind::Erase => Some(FlashOpKind::Erase),
            Kind::JoinAll | Kind::JoinFirst | Kind::Copy => None,
        }
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
    /// `plane · blocks + block`.
    pub plane_block: u32,
    pub page_in_block: u32,
    /// Bytes to transfer; for an erase, the pending erase of the same block before it.
    pub bytes: u32,
    pub ticket: u32,
    pub notice: u32,
    /// Unmet dependencies; for an erase also the unfinished operations of its block.
    pub deps: u32,
    /// Head of the list of edges to those that wait for this one.
    pub edges: u32,
    /// Link in a ready queue, a batch or the free list.
    pub next: u32,
    /// For a program: the unfinished program or erase of the block before it.
    pub previous: u32,
    pub kind: Kind,
    pub class: Class,
    pub cause: Cause,
    pub state: State,
    pub die: u16,
    /// For a program: unmet dependencies that bring its data (all but those of block order).
    pub inputs: u8,
    /// Erase epoch of the block in which it was issued (wraps).
    pub epoch: u8,
}

const _: () = assert!(size_of::<Op>() == 64, "an operation is one cache line");

impl Op {
    const EMPTY: Op = Op {
        ready_ns: 0,
        generation: 0,
        sequence: 0,
        page: 0,
        plane_block: 0,
        page_in_block: 0,
        bytes: 0,
        ticket: NONE,
        notice: 0,
        deps: 0,
        edges: NONE,
        next: NONE,
        previous: NONE,
        kind: Kind::JoinAll,
        class: Class::HostRead,
        cause: Cause::Host,
        state: State::Free,
        die: 0,
        inputs: 0,
        epoch: 0,
    };

    /// Whether this was issued before `other`; sequence numbers may have wrapped.
    #[inline(always)]
    pub fn before(&self, other: &Op) -> bool {
        (self.sequence.wrapping_sub(other.sequence) as i32) < 0
    }

    /// GC, wear levelling or erase: what `gc_wait_ns` counts.
    #[inline(always)]
    pub fn is_internal(&self) -> bool {
        matches!(self.class, Class::Gc | Class::Erase) || matches!(self.cause, Cause::Gc | Cause::Wear)
    }
}

/// Why one operation waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// An `after` of the issuer; brings a program its data.
    Input,
    /// Order within a block.
    Order,
    /// A controller copy that waits until the program has its data, not for the program itself.
    Data,
}

#[derive(Clone, Copy)]
struct Edge {
    waiter: u32,
    next: u32,
    link: Link,
}

/// Both arenas.
#[derive(Default)]
pub(super) struct Ops {
    ops: Vec<Op>,
    free: u32,
    edges: Vec<Edge>,
    free_edge: u32,
    sequence: u32,
}

impl Ops {
    pub fn new() -> Self {
        Ops {
            free: NONE,
            free_edge: NONE,
            ..Ops::default()
        }
    }

    /// A fresh entry in state `Waiting`: no dependencies, nobody waiting, next in order of issue.
    #[inline]
    pub fn allocate(&mut self) -> u32 {
        let index = if self.free == NONE {
            assert!(self.ops.len() < (1 << 31), "too many operations outstanding");
            self.ops.push(Op::EMPTY);
            (self.ops.len() - 1) as u32
        } else {
            self.free
        };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let op = &mut self.ops[index as usize];
        if self.free == index {
            self.free = op.next;
        }
        op.sequence = sequence;
        op.deps = 0;
        op.edges = NONE;
        op.next = NONE;
        op.previous = NONE;
        op.inputs = 0;
        op.state = State::Waiting;
        index
    }

    /// Returns an entry nobody refers to any more; ids of it are done from now on.
    #[inline]
    pub fn release(&mut self, index: u32) {
        let free = self.free;
        let op = &mut self.ops[index as usize];
        debug_assert!(op.edges == NONE, "operation {index} freed with waiters");
        op.generation = op.generation.wrapping_add(1);
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

    /// The entry of `id` if it has not completed.
    #[inline(always)]
    pub fn live(&self, id: OpId) -> Option<u32> {
        let op = self.ops.get(id.index as usize)?;
        (op.generation == id.generation && op.state < State::Done).then_some(id.index)
    }

    /// Makes `waiter` wait for `source`.
    #[inline]
    pub fn connect(&mut self, source: u32, waiter: u32, link: Link) {
        let next = self.at(source).edges;
        let edge = Edge { waiter, next, link };
        let at = if self.free_edge == NONE {
            self.edges.push(edge);
            (self.edges.len() - 1) as u32
        } else {
            let at = self.free_edge;
            self.free_edge = self.edges[at as usize].next;
            self.edges[at as usize] = edge;
            at
        };
        self.at_mut(source).edges = at;
        self.at_mut(waiter).deps += 1;
    }

    /// Takes one edge off `source`'s list: who waited, and why. The order is that of the list, latest first.
    #[inline]
    pub fn disconnect(&mut self, source: u32) -> Option<(u32, Link)> {
        let at = self.at(source).edges;
        if at == NONE {
            return None;
        }
        let Edge { waiter, next, link } = self.edges[at as usize];
        self.at_mut(source).edges = next;
        self.free_edge_at(at);
        Some((waiter, link))
    }

    /// Takes the next edge of kind [`Link::Data`] off `source`'s list.
    pub fn disconnect_data(&mut self, source: u32) -> Option<u32> {
        let (mut before, mut at) = (NONE, self.at(source).edges);
        while at != NONE {
            let Edge { waiter, next, link } = self.edges[at as usize];
            if link == Link::Data {
                match before {
                    NONE => self.at_mut(source).edges = next,
                    _ => self.edges[before as usize].next = next,
                }
                self.free_edge_at(at);
                return Some(waiter);
            }
            (before, at) = (at, next);
        }
        None
    }

    #[inline(always)]
    fn free_edge_at(&mut self, at: u32) {
        self.edges[at as usize].next = self.free_edge;
        self.free_edge = at;
    }

    /// Indices of every entry that has not completed, in order of issue.
    pub fn unfinished(&self) -> Vec<u32> {
        let mut live: Vec<u32> = (0..self.ops.len() as u32)
            .filter(|&i| self.at(i).state < State::Done)
            .collect();
        // Distance to the next number to be given: smaller for later operations, whatever has wrapped.
        live.sort_by_key(|&i| std::cmp::Reverse(self.sequence.wrapping_sub(self.at(i).sequence)));
        live
    }

    /// Drops everything; all ids given out so far are done.
    pub fn clear(&mut self) {
        self.free = NONE;
        for index in (0..self.ops.len() as u32).rev() {
            self.at_mut(index).edges = NONE;
            self.release(index);
        }
        self.edges.clear();
        self.free_edge = NONE;
    }
}
