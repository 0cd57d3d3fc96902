//! What an FTL is built from: the meaning of the `[ftl]`, `[gc]` and `[buffer]` tables of a drive file.

use ftlab_core::PolicySpec;

/// Which free blocks and victims belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolScope {
    /// One pool for each lane (a plane, or the planes of a superblock).
    Lane,
    /// One pool for each die (lanes of the same die).
    Die,
    /// One pool for the whole drive.
    Drive,
}

/// Where survivors of collection go when the placement policy leaves them to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Survivors {
    /// To one frontier that those of all streams share.
    #[default]
    Shared,
    /// Back to the frontier (the stream) that they come from.
    Stream,
    /// To an internal stream, which only collection fills, one for each of the host's frontiers; they stay in it.
    Internal,
}

impl Survivors {
    pub const ALL: [Survivors; 3] = [Survivors::Shared, Survivors::Stream, Survivors::Internal];

    /// The word in drive files.
    pub fn name(self) -> &'static str {
        match self {
            Survivors::Shared => "shared",
            Survivors::Stream => "stream",
            Survivors::Internal => "internal",
        }
    }
}

/// Garbage collection of one pool; thresholds count free reclaim units.
#[derive(Clone, Debug, PartialEq)]
pub struct GcConfig {
    pub pool: PoolScope,
    /// Below or at this many free units a write that opens a unit collects until there are more, whatever it costs.
    pub hard: u32,
    /// At or below this many free units preemptible or background collection starts; equal to `hard` when unused.
    pub soft: u32,
    /// Collect in small steps that host requests may overtake, between `soft` and `hard` (timed backend only).
    pub preemptible: bool,
    /// Units moved per step of a preemptible collection.
    pub step_units: u32,
    /// Collect on dies that have been idle for `idle_ns`, while free units are at or below `soft` (timed backend only).
    pub background: bool,
    pub idle_ns: u64,
    pub survivors: Survivors,
}

/// The write buffer of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferConfig {
    /// `none`, `write_through`, `write_back`, `lru`.
    pub policy: PolicySpec,
    /// Mapping units it holds.
    pub capacity_units: u32,
    /// Capacitors bring what is in it to flash when power fails: a flush costs nothing and nothing acknowledged is lost.
    pub power_loss_protected: bool,
}

/// The FTL of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FtlConfig {
    /// U: logical mapping units.
    pub logical_units: u32,
    pub mapping: PolicySpec,
    pub placement: PolicySpec,
    pub victim: PolicySpec,
    pub wear: PolicySpec,
    pub allocation: PolicySpec,
    pub dedup: PolicySpec,
    pub replication: PolicySpec,
    pub gc: GcConfig,
    pub buffer: BufferConfig,
    /// Erases after which a block is retired; `None`: blocks never wear out.
    pub erase_limit: Option<u32>,
    /// Bytes of the controller's memory for what a mapping policy keeps of the map, the directory (GTD) excepted.
    pub map_cache_bytes: u64,
    /// A miss that comes while its translation page is being read shares that read.
    pub share_loads: bool,
    /// Host units between two checkpoints of the map; 0: no recovery information is kept (and none is charged).
    pub checkpoint_units: u64,
    pub seed: u64,
    /// Carry (LPN, version) in every slot and check every read.
    pub verify: bool,
}
