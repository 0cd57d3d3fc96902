//! The flash translation layer: the record, the mechanism, and a folder per policy role.
//!
//! Reading order: `record` and `units` (the state), `ftl` (host operations), `gc` (collection), then any policy folder.

pub mod allocation;
pub mod backend;
mod bare;
pub mod buffer;
mod changes;
pub mod check;
mod chunks;
pub mod config;
pub mod contents;
mod copies;
pub mod counts;
pub mod dedup;
pub mod frontier;
pub mod ftl;
pub mod future;
mod gc;
mod host_read;
mod host_write;
mod idle_copies;
mod idle_merges;
pub mod indirection;
mod late_writes;
mod learnt;
pub mod look_ahead;
mod lost;
pub mod mapping;
mod old_versions;
pub mod owner;
mod pages_to_read;
pub mod parts;
pub mod placement;
mod placing;
pub mod precondition;
mod program;
mod races;
pub mod record;
pub mod recovery;
mod replicas;
pub mod replication;
mod reports;
pub mod request;
pub mod roles;
mod room;
mod sharing;
pub mod since;
mod stand_ins;
mod state;
mod stream_memory;
mod surviving;
mod tenants;
mod translation;
pub mod units;
mod values;
pub mod verify;
pub mod victim;
pub mod wear;

pub use backend::{
    Backend, Cause, Class, Counting, FlashOp, FlashOpKind, Load, Need, Notice, OpId, PageCopies, Ticket,
};
pub use config::{BufferConfig, FtlConfig, GcConfig, PoolScope, Survivors};
pub use counts::Counts;
pub use frontier::Frontier;
pub use ftl::{Ftl, Overrides};
pub use placing::FrontierCounts;
pub use request::{Admitted, HostRequest, WriteContext};
pub use room::{Space, least_reserve, pool_count};
pub use stream_memory::{StreamBuffers, StreamMemory};
pub use tenants::{TenantCounts, TenantsBy};

/// Time as policies see it: host units written since the drive was new, and nanoseconds where there is time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub tick: u64,
    /// 0 on the counting backend.
    pub time_ns: u64,
}
