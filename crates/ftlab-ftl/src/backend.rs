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

/// A host request (or another piece of work) that completes when all operations carrying its ticket have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Nobody waits for this operation.
    pub const NONE: Ticket = Ticket(u32::MAX);
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
    /// If not 0, `Event::Notice(key)` is raised when the operation completes.
    pub notice: u32,
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
            notice: 0,
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

    /// An operation without a die that completes when all (or the first) of `inputs` have; carries `ticket` and `notice`.
    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: u32) -> OpId;

    /// Adds an input to a join that has not completed (a hedged read).
    fn join_more(&mut self, join: OpId, input: OpId);

    /// Drops an operation that has not started; one that runs goes on and its result is discarded.
    fn cancel(&mut self, id: OpId);

    fn is_done(&self, id: OpId) -> bool;

    /// Raises `Event::Notice(key)` after `delay_ns`.
    fn arm(&mut self, delay_ns: u64, key: u32);

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
    fn join(&mut self, _: &[OpId], _: Need, _: Ticket, _: u32) -> OpId {
        OpId::DONE
    }

    fn join_more(&mut self, _: OpId, _: OpId) {}

    fn cancel(&mut self, _: OpId) {}

    #[inline(always)]
    fn is_done(&self, _: OpId) -> bool {
        true
    }

    fn arm(&mut self, _: u64, _: u32) {}

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
