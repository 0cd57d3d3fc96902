//! Where the raw units of a drive go, as its file says, and the spare that is left to collect.

use ftlab_core::theory::{self, EffectiveSpare};
use ftlab_core::{Layout, PolicySpec, Result};
use ftlab_ftl::{FtlConfig, PoolScope, Space};

use super::DriveConfig;

impl DriveConfig {
    /// GC pools of the drive.
    pub fn pools(&self) -> u32 {
        ftlab_ftl::pool_count(&self.layout, self.ftl.gc.pool)
    }

    /// Free reclaim units at which collection starts, in one pool: where a drive in steady state stays (the counting
    /// backend, which collects neither early nor in steps, stays at `hard`).
    pub fn reserve_per_pool(&self) -> u32 {
        let gc = &self.ftl.gc;
        if gc.preemptible || gc.background {
            gc.soft
        } else {
            gc.hard
        }
    }

    /// Where its units go. A policy that is in no catalogue (one in Python) counts as `none`.
    pub fn space(&self) -> Space {
        Space::of(&self.ftl, &self.layout).unwrap_or_else(|_| {
            let none = || PolicySpec::named("none");
            let known = FtlConfig {
                placement: none(),
                wear: none(),
                dedup: none(),
                replication: none(),
                ..self.ftl.clone()
            };
            Space::of(&known, &self.layout).expect("`none` is in every catalogue and has no parameters")
        })
    }

    /// Units of the free reclaim units that collection keeps: the threshold at which it starts, times the pools.
    pub fn reserved_units(&self) -> u64 {
        u64::from(self.pools()) * u64::from(self.reserve_per_pool()) * u64::from(self.layout.slots_per_ru)
    }

    /// Bytes of the whole logical-to-physical map at 4 bytes a unit.
    pub fn map_bytes(&self) -> u64 {
        4 * u64::from(self.ftl.logical_units)
    }

    /// The spare that uniform writes have to work with, once the reserve of collection, half of every open unit and the
    /// translation pages are taken off; `None` where nothing is left.
    pub fn effective_spare(&self) -> Option<EffectiveSpare> {
        self.effective_spare_of(&self.space())
    }

    pub(super) fn effective_spare_of(&self, space: &Space) -> Option<EffectiveSpare> {
        let open = space.open_rus * space.per_ru;
        theory::effective_spare(
            space.raw.saturating_sub(space.tables),
            space.logical,
            self.reserved_units(),
            open,
        )
    }
}

/// Reclaim units of one GC pool.
pub fn units_per_pool(layout: &Layout, scope: PoolScope) -> u32 {
    layout.rus / ftlab_ftl::pool_count(layout, scope)
}

/// T − U must hold what collection keeps free, an open unit for each frontier and lane, one unit to collect, and the maps.
pub(super) fn refuse_too_little(config: &DriveConfig) -> Result<()> {
    config.space().left().map(|_| ())
}
