//! Deduplication: whether a unit (or a quarter of it) needs writing at all.
//!
//! A member knows contents; the mechanism knows places. A unit is stored directly, and its LPN is what it is known by. When a
//! second LPN is to share it, it becomes a value with a virtual page number, of which the policy is told
//! ([`Event::Became`]). So a drive of unique data keeps a direct map. Units may also consist of four chunks, each in a pack of
//! four or a quarter of a unit that was stored whole.

use ftlab_core::{Catalogue, Lpn, member};

use crate::Now;
use crate::contents::RequestContents;
use crate::indirection::{CHUNKS, ChunkId, ChunkRow, Indirection, Of, Vpn};
use crate::request::WriteContext;
use fingerprints::Fingerprints;

pub mod ca_ssd;
pub mod caftl;
pub mod finededup;
pub mod fingerprints;
mod hashing;
mod nodes;
pub mod none;
pub mod page_dedup;
pub mod pcdedup;
mod quarters;
pub(crate) mod units;

/// A host write of a unit whose content is known, as a dedup policy sees it: when the unit leaves the write buffer, or when the
/// request is admitted.
#[derive(Clone, Copy)]
pub struct DedupWrite<'a> {
    pub lpn: Lpn,
    /// Content id of the unit.
    pub content: u64,
    /// Contents of all units of the request that wrote it, and which of them this one is.
    pub contents: &'a RequestContents,
    pub step: u32,
    pub context: &'a WriteContext,
    pub packs: Packs<'a>,
    /// How much of the write buffer's room for programs under way is taken, 0 to 1, if the policy
    /// [asks](DedupPolicy::asks_pressure) and there is time and a write-back buffer.
    pub pressure: f64,
    pub now: Now,
}

impl DedupWrite<'_> {
    /// Content ids of the unit's quarters, where the request says as much.
    pub fn quarters(&self) -> Option<[u64; CHUNKS]> {
        self.contents.quarters(self.step)
    }
}

/// The packs that are being filled.
#[derive(Clone, Copy)]
pub struct Packs<'a>(pub(crate) &'a Indirection);

impl Packs<'_> {
    /// Chunks in open pack `number`, 0 to 3: a full one is programmed, and so may others be (a flush, a collection).
    pub fn filled(&self, number: u16) -> u32 {
        self.0.filled(usize::from(number))
    }
}

/// Work of an engine of the controller, such as hashing. The works of one engine are done one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub engine: u16,
    pub ns: u64,
    pub after: After,
}

/// What must have ended before a work can begin, beside the earlier works of its engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Nothing,
    /// The work that was asked for before it.
    Previous,
    /// Work number n of the request, counted over its units.
    OfRequest(u8),
}

impl Work {
    pub fn new(engine: u16, ns: u64) -> Self {
        Work {
            engine,
            ns,
            after: After::Nothing,
        }
    }
}

/// One chunk of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkSource {
    Existing(ChunkId),
    /// A quarter of a unit that is stored: whole, or in chunks.
    Quarter {
        of: Of,
        quarter: u8,
    },
    /// To be stored in the open pack with this number, below [`DedupPolicy::packs`]; the mechanism answers with
    /// [`Event::ChunkStored`].
    New {
        content: u64,
        pack: u16,
    },
}

/// What happens to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is mapped to what lies there, which has the same content. The LPN itself, if its old version is the same, costs
    /// nothing. Should there be no number left for a new value, the unit is stored.
    Share(Of),
    /// It is stored; the mechanism answers with [`Event::Stored`].
    Store,
    /// Quarter by quarter. Should there be no number left for a pack, the unit is stored.
    Chunks([ChunkSource; CHUNKS]),
}

/// A unit that a request writes alone, where no time passes and nothing is known of it but its content and, if the policy
/// [asks](DedupPolicy::asks_writer), who writes.
#[derive(Clone, Copy)]
pub struct AloneWrite<'a> {
    pub content: u64,
    pub writer: &'a WriteContext,
    pub tick: u64,
}

/// What happens to such a unit: as [`Decision`], in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    Share(Of),
    Store,
    /// The policy is to be asked by [`DedupPolicy::write`].
    Ask,
}

/// What a policy is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The unit of `lpn` has been stored whole and is known as `of`: the LPN, or a value if there are copies of it.
    Stored { lpn: Lpn, of: Of },
    /// The chunk of `content` has been put into a pack.
    ChunkStored { content: u64, chunk: ChunkId },
    /// The unit of `lpn`, which was known by it, is `vpn` from now on: it has been shared or copied.
    Became { lpn: Lpn, vpn: Vpn },
    /// An LPN: its unit, which was known by it, has been overwritten or trimmed. A VPN: nothing refers to the value any more.
    Gone(Of),
    /// No row refers to the chunk any more, nor does an LPN refer to the unit that it is a quarter of.
    ChunkGone(ChunkId),
}

/// The drive in an idle moment, as a dedup policy sees it.
#[derive(Clone, Copy)]
pub struct Idle<'a> {
    pub now: Now,
    pub(crate) ends: u32,
    pub(crate) indirection: &'a Indirection,
}

impl Idle<'_> {
    /// References to a value; 0 if there is none with this number.
    pub fn references(&self, vpn: Vpn) -> u32 {
        match self.indirection.is_used(vpn) {
            true => self.indirection.references(vpn),
            false => 0,
        }
    }

    /// The LPN after the last one.
    pub fn logical_units(&self) -> u32 {
        self.ends
    }
}

/// Work for an idle moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleWork {
    /// The stored unit of `lpn` is read, and the works that were asked for with this are done on it.
    Examine { lpn: Lpn },
    /// The stored unit of `lpn` has the same content as `of`: it is mapped there, and its own place is given up. Passed over
    /// where either holds nothing or no number for a value is left.
    Merge { lpn: Lpn, into: Of },
}

/// What has been merged that the policy wanted merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merged {
    WhenIdle,
    WhenCollected,
}

pub trait DedupPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// What a reader of the results must know of what was written, in one sentence.
    fn note(&self) -> Option<String> {
        None
    }

    /// Packs of chunks that may be filled at once; 0: no unit is ever stored in chunks.
    fn packs(&self) -> u16 {
        0
    }

    /// Whether it wants to know how full the write buffer is.
    fn asks_pressure(&self) -> bool {
        false
    }

    /// Whether it wants to know who writes: of a write context more than which units the request has.
    fn asks_writer(&self) -> bool {
        true
    }

    /// What happens to a unit. The works added to `works` are done first, as far as there is time: the unit's program waits for
    /// them, and without one the request does.
    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision;

    /// As [`DedupPolicy::write`], for policies that can say at less cost what it would answer; with the time of its works, in
    /// nanoseconds. Nothing has happened to the policy if it answers [`Alone::Ask`].
    fn write_alone(&mut self, _write: AloneWrite<'_>) -> (Alone, u64) {
        (Alone::Ask, 0)
    }

    /// Something happened that the policy did not decide, or what it decided has been done.
    fn on(&mut self, _event: Event, _now: Now) {}

    /// The unit of `lpn`, which was known by it, has been overwritten by one that was stored whole: both events at once, for policies
    /// that can save themselves half of the work.
    fn replaced(&mut self, lpn: Lpn, now: Now) {
        let of = Of::Lpn(lpn);
        self.on(Event::Gone(of), now);
        self.on(Event::Stored { lpn, of }, now);
    }

    /// The host reads a unit that consists of these chunks. Those that lie in the policy's memory are not read from flash; the others
    /// may enter it.
    fn read_buffered(&mut self, _row: ChunkRow) -> [bool; CHUNKS] {
        [false; CHUNKS]
    }

    /// The table in which a write looks its unit up, so that a run that knows what comes next can have it in the processor's cache.
    fn fingerprints(&self) -> Option<&Fingerprints> {
        None
    }

    /// Whether a collection puts together what is left of several packs. If not, their pages are moved as they are, as long as other
    /// victims free anything.
    fn repacks(&self) -> bool {
        true
    }

    /// Whether it wants to be told what the host reads.
    fn asks_reads(&self) -> bool {
        false
    }

    /// The host reads a unit stored whole from flash.
    fn read(&mut self, _of: Of, _now: Now) {}

    /// Whether it wants to be asked about units that a collection moves.
    fn asks_collected(&self) -> bool {
        false
    }

    /// Whether one that wants to be asked about them would merge any now. Where none waits, a collection does not look at its units twice.
    fn may_merge_collected(&self) -> bool {
        true
    }

    /// A collection has read the unit of `lpn` to move it. The works are done on it; what it is merged with, if its content lies
    /// elsewhere as well.
    fn when_collected(&mut self, _lpn: Lpn, _works: &mut Vec<Work>) -> Option<Of> {
        None
    }

    /// How long a lane must be idle before `when_idle` is asked, and how often it is (backends with time); `None`: never.
    fn idle_ns(&self) -> Option<u64> {
        None
    }

    /// Without time, `when_idle` is asked after the request with which so many further host units have been written; `None`:
    /// never.
    fn idle_units(&self) -> Option<u64> {
        None
    }

    /// What to do in an idle moment: asked again after each answer, until it is `None` or has been asked 64 times.
    fn when_idle(&mut self, _idle: &Idle<'_>, _works: &mut Vec<Work>) -> Option<IdleWork> {
        None
    }

    /// What [`DedupPolicy::when_idle`] or [`DedupPolicy::when_collected`] wanted merged has been: it is not where no number for a value
    /// is left.
    fn merged(&mut self, _when: Merged) {}

    /// Power has failed, and memory is not protected: what was known of contents is lost.
    fn forget(&mut self) {}

    /// Bytes of the controller's memory that it needs.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// What the policy knows, for a saved state.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Contents that are known of stored units: a checked run of a loaded drive holds what is shared with them against these.
    fn contents(&self) -> Vec<(Of, u64)> {
        Vec::new()
    }

    /// Takes over what [`DedupPolicy::save`] wrote.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    fn load(&mut self, _saved: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// What a dedup policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    pub raw_units: u32,
    pub unit_bytes: u32,
}

/// Fingerprints for a hundredth of the drive, as CAFTL keeps them.
fn a_hundredth(logical_units: u32) -> u32 {
    (logical_units / 100).max(1)
}

pub fn catalogue() -> Catalogue<dyn DedupPolicy, Setup> {
    member!(
        Catalogue::new("dedup"),
        none,
        page_dedup,
        caftl,
        ca_ssd,
        pcdedup,
        finededup
    )
}
