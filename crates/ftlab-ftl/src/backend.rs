//! What the FTL needs from the flash behind it: operations with dependencies.
//!
//! The FTL's logical state changes when an operation is *issued*; time lives only in the dependencies between
//! operations. A counting backend completes every operation at once; the timed backend runs them on dies and channels.

/// What the die does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FlashOpKind {
    Read,
    Program,
    Erase,
}

/// Why the operation exists (accounting). Not to be confused with its [`Class`] (queueing).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cause {
    Host,
    Gc,
    Map,
    Wear,
    Replication,
    Metadata,
}

impl Cause {
    pub const ALL: [Cause; 6] = [
        Cause::Host,
        Cause::Gc,
        Cause::Map,
        Cause::Wear,
        Cause::Replication,
        Cause::Metadata,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Gc => "gc",
            Cause::Map => "map",
            Cause::Wear => "wear",
            Cause::Replication => "replication",
            Cause::Metadata => "metadata",
        }
    }
}

/// The queue of a die in which the operation waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    Mapping,
    HostRead,
    HostWrite,
    Gc,
    Erase,
}

impl Class {
    pub const COUNT: usize = 5;
    pub const ALL: [Class; Class::COUNT] = [
        Class::Mapping,
        Class::HostRead,
        Class::HostWrite,
        Class::Gc,
        Class::Erase,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Class::Mapping => "mapping",
            Class::HostRead => "host_read",
            Class::HostWrite => "host_write",
            Class::Gc => "gc",
            Class::Erase => "erase",
        }
    }
}

/// An issued operation. Stays valid as a dependency after the operation has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpId {
    pub index: u32,
    pub generation: u32,
}

impl OpId {
    /// An operation that has completed already: depending on it costs nothing.
    pub const DONE: OpId = OpId {
        index: u32::MAX,
        generation: 0,
    };
}

impl Default for OpId {
    fn default() -> Self {
        OpId::DONE
    }
}

/// A host request (or another piece of work) that completes when all operations carrying its ticket have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Nobody waits for this operation.
    pub const NONE: Ticket = Ticket(u32::MAX);
    /// Set in a ticket that is followed; all others are smaller.
    const FOLLOWED: u32 = 1 << 31;

    /// No request waits for the operation itself, but for a join that carries this ticket, and of whichever completes first the
    /// time it took is the ticket's.
    pub fn followed(self) -> Ticket {
        Ticket(self.0 | Ticket::FOLLOWED)
    }

    /// A request waits for the operations that carry it.
    #[inline(always)]
    pub fn is_awaited(self) -> bool {
        self.0 < Ticket::FOLLOWED
    }

    /// Both are of one request, whether it waits for the operation or follows it.
    #[inline(always)]
    pub fn is_of(self, other: Ticket) -> bool {
        (self.0 ^ other.0) & !Ticket::FOLLOWED == 0
    }

    /// The number by which the request is known.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0 & !Ticket::FOLLOWED
    }
}

/// What the FTL asks to be told: that a timer has run out, or that what it waited for has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The collection of a pool may take its next step.
    GcStep { pool: u32 },
    /// It is time to see whether the dies of a pool are idle.
    GcIdle { pool: u32 },
    /// A read that races its copies has taken longer than it should.
    Deadline { race: u32 },
    /// One of the copies has been read.
    Won { race: u32 },
    /// It is time to see whether copies can be made on idle dies.
    IdleCopy,
    /// It is time to see whether stored units can be merged while dies are idle.
    IdleMerge,
    /// None of a write's copies has completed in the time that it should take.
    WriteLate { race: u32 },
    /// One of a write's copies is in flash.
    WriteDone { race: u32 },
    /// What has been ordered behind a mirror so far is in flash.
    Offline,
}

impl Notice {
    const NUMBER_BITS: u32 = 28;

    /// In 32 bits and never 0, for the tables of a backend.
    pub fn packed(self) -> u32 {
        let (kind, number) = match self {
            Notice::GcStep { pool } => (1, pool),
            Notice::GcIdle { pool } => (2, pool),
            Notice::Deadline { race } => (3, race),
            Notice::Won { race } => (4, race),
            Notice::IdleCopy => (5, 0),
            Notice::WriteLate { race } => (6, race),
            Notice::WriteDone { race } => (7, race),
            Notice::IdleMerge => (8, 0),
            Notice::Offline => (9, 0),
        };
        assert!(number >> Self::NUMBER_BITS == 0, "{self:?} has too large a number");
        kind << Self::NUMBER_BITS | number
    }

    /// # Panics
    /// If the number is none that [`Notice::packed`] returned.
    pub fn unpacked(packed: u32) -> Self {
        let number = packed & ((1 << Self::NUMBER_BITS) - 1);
        match packed >> Self::NUMBER_BITS {
            1 => Notice::GcStep { pool: number },
            2 => Notice::GcIdle { pool: number },
            3 => Notice::Deadline { race: number },
            4 => Notice::Won { race: number },
            5 => Notice::IdleCopy,
            6 => Notice::WriteLate { race: number },
            7 => Notice::WriteDone { race: number },
            8 => Notice::IdleMerge,
            9 => Notice::Offline,
            kind => unreachable!("a notice of kind {kind}"),
        }
    }
}

/// One flash operation.
#[derive(Clone, Copy, Debug)]
pub struct FlashOp {
    pub kind: FlashOpKind,
    pub class: Class,
    pub cause: Cause,
    /// Drive-wide page index (see `Layout::address`); for an erase, any page of the block on the plane to erase.
    pub page: u32,
    /// Bytes that cross the channel: what is read of the page, or the whole page for a program; 0 for an erase.
    pub bytes: u32,
    /// Who waits for it.
    pub ticket: Ticket,
    /// Raised when the operation completes.
    pub notice: Option<Notice>,
}

impl FlashOp {
    /// A read of `bytes` of a page for the host.
    #[inline]
    pub fn host_read(page: u32, bytes: u32, ticket: Ticket) -> Self {
        FlashOp {
            kind: FlashOpKind::Read,
            class: Class::HostRead,
            cause: Cause::Host,
            page,
            bytes,
            ticket,
            notice: None,
        }
    }
}

/// Copies of pages that a collection makes, to consecutive pages.
#[derive(Clone, Copy, Debug)]
pub struct PageCopies<'a> {
    /// The pages. A read of the first has been issued.
    pub from: &'a [u32],
    pub read: OpId,
    /// The page that the first goes to.
    pub to: u32,
    /// Bytes of a page.
    pub bytes: u32,
    pub cause: Cause,
}

impl PageCopies<'_> {
    #[inline]
    pub fn read_of(&self, number: usize) -> FlashOp {
        self.op(FlashOpKind::Read, self.from[number])
    }

    #[inline]
    pub fn program_of(&self, number: usize) -> FlashOp {
        self.op(FlashOpKind::Program, self.to + number as u32)
    }

    #[inline]
    fn op(&self, kind: FlashOpKind, page: u32) -> FlashOp {
        FlashOp {
            kind,
            class: Class::Gc,
            cause: self.cause,
            page,
            bytes: self.bytes,
            ticket: Ticket::NONE,
            notice: None,
        }
    }
}

/// How many inputs a join waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    All,
    First,
}

/// What a die is doing, for policies that look at load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Operations waiting or running.
    pub queued: u32,
    /// Operations of the GC and erase classes among them.
    pub internal: u32,
    /// Since when the die has had nothing to do; `None` while it is busy.
    pub idle_since_ns: Option<u64>,
}

/// The flash behind an FTL. Programs of one block start and complete in the order in which they were issued.
pub trait Backend {
    /// False where every operation completes at once: dependencies need not be gathered.
    const TIMED: bool;

    /// Starts `op` once everything in `after` has completed. An erase also waits for every earlier operation on its block.
    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId;

    /// Starts `op`, which waits for nothing and is the only operation that carries its ticket.
    #[inline]
    fn issue_sole(&mut self, op: FlashOp) -> OpId {
        self.issue(op, &[])
    }

    /// Issues a read and a program for each page in turn, the program after the read. Returns the last program.
    fn copy(&mut self, copies: &PageCopies<'_>) -> OpId {
        let mut program = self.issue(copies.program_of(0), &[copies.read]);
        for number in 1..copies.from.len() {
            let read = self.issue(copies.read_of(number), &[]);
            program = self.issue(copies.program_of(number), &[read]);
        }
        program
    }

    /// An operation without a die that completes when all (or the first) of `inputs` have; carries `ticket` and `notice`.
    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId;

    /// Adds an input to a join that has not completed (a race).
    fn join_more(&mut self, join: OpId, input: OpId);

    /// Drops an operation that has not started; one that runs goes on and its result is discarded.
    fn cancel(&mut self, id: OpId);

    fn is_done(&self, id: OpId) -> bool;

    /// Work of an engine of the controller, such as hashing: `ns` long, once everything in `after` has completed. An engine does
    /// one work at a time, in the order in which they can begin, ties by issue.
    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId;

    /// Raises `notice` after `delay_ns`.
    fn arm(&mut self, delay_ns: u64, notice: Notice);

    /// Makes `ticket` wait for every program that has been issued and has not completed (a flush).
    fn barrier(&mut self, ticket: Ticket);

    fn load(&self, die: u32) -> Load;

    /// Simulated time, nanoseconds; 0 where there is none.
    fn now_ns(&self) -> u64;
}

/// Counts only: no time passes and every operation is complete when it is issued.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

impl Backend for Counting {
    const TIMED: bool = false;

    #[inline(always)]
    fn issue(&mut self, _: FlashOp, _: &[OpId]) -> OpId {
        OpId::DONE
    }

    #[inline(always)]
    fn join(&mut self, _: &[OpId], _: Need, _: Ticket, _: Option<Notice>) -> OpId {
        OpId::DONE
    }

    fn join_more(&mut self, _: OpId, _: OpId) {}

    fn cancel(&mut self, _: OpId) {}

    #[inline(always)]
    fn is_done(&self, _: OpId) -> bool {
        true
    }

    fn compute(&mut self, _: u16, _: u64, _: &[OpId], _: Ticket) -> OpId {
        OpId::DONE
    }

    fn arm(&mut self, _: u64, _: Notice) {}

    fn barrier(&mut self, _: Ticket) {}

    #[inline(always)]
    fn load(&self, _: u32) -> Load {
        Load::default()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_survives_packing() {
        let most = (1 << Notice::NUMBER_BITS) - 1;
        for notice in [
            Notice::GcStep { pool: 0 },
            Notice::GcIdle { pool: most },
            Notice::Deadline { race: 7 },
            Notice::Won { race: most },
            Notice::IdleCopy,
            Notice::IdleMerge,
            Notice::WriteLate { race: most },
            Notice::WriteDone { race: 5 },
            Notice::Offline,
        ] {
            assert_ne!(notice.packed(), 0);
            assert_eq!(Notice::unpacked(notice.packed()), notice);
        }
    }
}
