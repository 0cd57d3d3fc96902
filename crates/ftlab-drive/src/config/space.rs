//! Where the raw units of a drive go, and whether enough of them are left to collect.

use ftlab_core::theory::{self, EffectiveSpare};
use ftlab_core::{Error, Layout, ReclaimKind, Result};
use ftlab_ftl::PoolScope;

use super::DriveConfig;

/// Where the raw units of a drive go, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// T.
    pub raw: u64,
    /// U.
    pub logical: u64,
    /// In the free reclaim units that collection keeps (the threshold at which it starts, times the pools).
    pub reserve: u64,
    /// In open reclaim units: one for each frontier and lane.
    pub open: u64,
    /// Translation pages of a mapping that keeps its map in flash (estimate: 4 bytes a unit; 8 a value and 16 a row of chunks where
    /// it keeps these tables too), and checkpoint and journal.
    pub map: u64,
}

impl DriveConfig {
    /// GC pools of the drive.
    pub fn pools(&self) -> u32 {
        pools(&self.layout, self.ftl.gc.pool)
    }

    /// Write frontiers of the drive. A placement policy that is in no catalogue (one in Python) counts as `none`.
    pub fn frontiers(&self) -> u32 {
        ftlab_ftl::frontiers_of(&self.ftl, &self.layout).unwrap_or_else(|_| {
            1 + u32::from(self.ftl.gc.separate_frontier || self.ftl.gc.internal_streams)
                + u32::from(self.maps_in_flash())
        })
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

    pub fn space(&self) -> Space {
        let unit = u64::from(self.layout.slots_per_ru);
        Space {
            raw: u64::from(self.layout.slots()),
            logical: u64::from(self.ftl.logical_units),
            reserve: u64::from(self.pools()) * u64::from(self.reserve_per_pool()) * unit,
            open: u64::from(self.frontiers()) * u64::from(self.layout.lanes) * unit,
            map: u64::from(self.maps_in_flash()) * self.map_units()
                + ftlab_ftl::pages_behind(&self.ftl, &self.layout).unwrap_or(0)
                + 2 * self.checkpoint_units(),
        }
    }

    /// The most units of a checkpoint.
    fn checkpoint_units(&self) -> u64 {
        if self.ftl.checkpoint_units == 0 {
            return 0;
        }
        self.map_units() + ftlab_ftl::checkpoint_behind(&self.ftl, &self.layout).unwrap_or(0)
    }

    fn map_units(&self) -> u64 {
        self.map_bytes().div_ceil(u64::from(self.layout.geometry.unit_bytes))
    }

    /// Bytes of the whole logical-to-physical map at 4 bytes a unit.
    pub fn map_bytes(&self) -> u64 {
        4 * u64::from(self.ftl.logical_units)
    }

    /// The spare that uniform writes have to work with, once the reserve of collection, half of every open unit and the
    /// translation pages are taken off; `None` where nothing is left.
    pub fn effective_spare(&self) -> Option<EffectiveSpare> {
        let space = self.space();
        theory::effective_spare(
            space.raw.saturating_sub(space.map),
            space.logical,
            space.reserve,
            space.open,
        )
    }

    fn maps_in_flash(&self) -> bool {
        self.ftl.mapping.name != "page"
    }
}

fn pools(layout: &Layout, scope: PoolScope) -> u32 {
    match (scope, layout.reclaim) {
        (PoolScope::Drive, _) => 1,
        (PoolScope::Die, ReclaimKind::Block) => layout.geometry.total_dies(),
        (PoolScope::Die, ReclaimKind::Superblock { .. }) | (PoolScope::Lane, _) => layout.lanes,
    }
}

/// Reclaim units of one GC pool.
pub fn units_per_pool(layout: &Layout, scope: PoolScope) -> u32 {
    layout.rus / pools(layout, scope)
}

/// T − U must hold what collection keeps free, an open unit for each frontier and lane, one unit of garbage, and the map.
pub(super) fn refuse_too_little(config: &DriveConfig) -> Result<()> {
    let layout = &config.layout;
    let per_ru = u64::from(layout.slots_per_ru);
    let space = config.space();
    let pools = u64::from(config.pools());
    let hard = pools * u64::from(config.ftl.gc.hard);
    let open = space.open / per_ru;
    let map = space.map.div_ceil(per_ru);
    let needed = hard + open + map + 1;
    let spare = space.raw - space.logical;
    if spare >= needed * per_ru {
        return Ok(());
    }
    let missing = (needed * per_ru - spare).div_ceil(per_ru);
    let parts = format!(
        "{hard} free for collection ({pools} pool{} x gc.hard {}), {open} open ({} frontiers x {} lane{}){}, 1 to collect",
        if pools == 1 { "" } else { "s" },
        config.ftl.gc.hard,
        config.frontiers(),
        layout.lanes,
        if layout.lanes == 1 { "" } else { "s" },
        if map > 0 {
            format!(", {map} of translation pages")
        } else {
            String::new()
        },
    );
    let remedy = match space.raw.checked_sub(needed * per_ru) {
        Some(logical) if logical > 0 => {
            let ratio = (space.raw as f64 / logical as f64 - 1.0) * 1e4;
            format!("ftl.op_ratio = {} would do", (ratio + 1e-6).ceil() / 1e4)
        }
        _ => "no op_ratio would do: the drive needs more blocks, or fewer lanes".to_owned(),
    };
    Err(Error::input(format!(
        "too little spare: the drive has {:.1} spare reclaim units and needs {needed} ({parts}), {missing} more; {remedy}",
        spare as f64 / per_ru as f64
    )))
}
