//! How much of a drive is not for the host: what collection keeps free, open units, pages of maps, checkpoint and journal.
//!
//! [`Space`] says it of a configuration before the drive is built, and of the drive that was built, whose policies may be given ones.
//! Both are refused by the same rule if they could not collect.

use ftlab_core::{Error, Layout, ReclaimKind, Result};

use crate::backend::Counting;
use crate::config::{FtlConfig, PoolScope};
use crate::frontier::{Frontier, Frontiers};
use crate::ftl::Ftl;
use crate::indirection::{ROW_BYTES, VALUE_BYTES};
use crate::mapping::paging::SLOT_BYTES;
use crate::placement::PlacementPolicy;
use crate::recovery::units_behind;
use crate::roles::Roles;
use crate::{mapping, placement, wear};

/// Where the raw units of a drive go, in mapping units, and what that comes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// T.
    pub raw: u64,
    /// U.
    pub logical: u64,
    /// Units of a reclaim unit.
    pub per_ru: u64,
    /// Pools, and free reclaim units of each that collection keeps.
    pub pools: u64,
    pub hard: u64,
    /// Reclaim units that may be open: one for each frontier and lane, unless the placement policy keeps fewer open.
    pub open_rus: u64,
    /// Pages of maps in flash, and twice a checkpoint, as the journal may become as long.
    pub tables: u64,
    /// Units left empty because the copies of a collection cannot wait for a full page: at most so many of each reclaim unit.
    pub padding: u64,
}

impl Space {
    /// Of a drive that is built as `config` says. Pages that a mapping policy keeps for itself are not known before it is made,
    /// and none here.
    ///
    /// # Errors
    /// A placement, wear, dedup or replication policy that is in no catalogue, or whose parameters are refused.
    pub fn of(config: &FtlConfig, layout: &Layout) -> Result<Self> {
        let placement = placement::catalogue().build(&config.placement, &mut placement::Setup::of(config, layout))?;
        let roles = Roles::from_config(config, layout)?;
        let unit_bytes = layout.geometry.unit_bytes;
        let pages = |keys: u32, bytes: u32| u64::from(keys.div_ceil((unit_bytes / bytes).max(1)));
        let keys = [roles.most_values(layout), roles.most_rows(config)];
        let tables = [
            pages(config.logical_units, SLOT_BYTES + placement.map_entry_bytes()),
            pages(keys[0], VALUE_BYTES),
            pages(keys[1], ROW_BYTES),
        ];
        let in_flash = mapping::tables_in_flash(&config.mapping, keys[0] > 0, keys[1] > 0) as usize;
        let checkpoint = match config.checkpoint_units {
            0 => 0,
            _ => {
                pages(config.logical_units, SLOT_BYTES)
                    + units_behind(u64::from(keys[0]), u64::from(keys[1]), unit_bytes)
            }
        };
        Ok(Space {
            raw: u64::from(layout.slots()),
            logical: u64::from(config.logical_units),
            per_ru: u64::from(layout.slots_per_ru),
            pools: u64::from(pool_count(layout, config.gc.pool)),
            hard: u64::from(config.gc.hard),
            open_rus: most_open(config, layout, placement.as_ref())?,
            tables: tables.iter().take(in_flash).sum::<u64>() + 2 * checkpoint,
            padding: u64::from(layout.rus) * u64::from(padding_per_collection(config, layout)),
        })
    }

    /// Units that are not for the host: with one reclaim unit to collect.
    fn beyond(&self) -> u64 {
        self.tables + self.padding + (self.pools * self.hard + self.open_rus + 1) * self.per_ru
    }

    /// The raw units that are left when everything has its room.
    ///
    /// # Errors
    /// None are left: the drive could not collect.
    pub fn left(&self) -> Result<u64> {
        let spare = self.raw.saturating_sub(self.logical);
        if let Some(left) = spare.checked_sub(self.beyond()) {
            return Ok(left);
        }
        let in_rus = |units: u64| units as f64 / self.per_ru as f64;
        let some = |units: u64, what: &str| match units {
            0 => String::new(),
            _ => format!(", {} {what}", tenths(in_rus(units))),
        };
        let remedy = match self.raw.checked_sub(self.beyond()) {
            Some(logical) if logical > 0 => {
                let ratio = (self.raw as f64 / logical as f64 - 1.0) * 1e4;
                format!("ftl.op_ratio = {} would do", (ratio + 1e-6).ceil() / 1e4)
            }
            _ => "no op_ratio would do: the drive needs more blocks, or fewer lanes".to_owned(),
        };
        Err(Error::input(format!(
            "too little spare: the drive has {:.1} spare reclaim units and needs {} ({} free for collection ({} pool{} x gc.hard {}), {} \
             open (one for each frontier and lane){}{}, 1 to collect), {} more; {remedy}",
            in_rus(spare),
            tenths(in_rus(self.beyond())),
            self.pools * self.hard,
            self.pools,
            if self.pools == 1 { "" } else { "s" },
            self.hard,
            self.open_rus,
            some(self.tables, "of translation pages, checkpoints and journal"),
            some(self.padding, "lost to padding"),
            tenths(in_rus(self.beyond() - spare)),
        )))
    }
}

/// A number with one decimal, rounded up, or none if it is whole.
fn tenths(number: f64) -> String {
    let tenths = (number * 10.0 - 1e-9).ceil() / 10.0;
    format!("{tenths}")
}

/// Pools of free units and victims.
pub fn pool_count(layout: &Layout, scope: PoolScope) -> u32 {
    match (scope, layout.reclaim) {
        (PoolScope::Drive, _) => 1,
        (PoolScope::Die, ReclaimKind::Block) => layout.geometry.total_dies(),
        (PoolScope::Die, ReclaimKind::Superblock { .. }) | (PoolScope::Lane, _) => layout.lanes,
    }
}

/// Most units that are lost because the last page of a collection's copies may not wait until it is full.
pub(crate) fn padding_per_collection(config: &FtlConfig, layout: &Layout) -> u32 {
    if config.buffer.power_loss_protected {
        0
    } else {
        layout.units_per_page - 1
    }
}

/// Reclaim units that may be open at once: of the placement policy, of survivors, of metadata and of wear levelling.
///
/// # Errors
/// A wear policy that is in no catalogue, or whose parameters are refused.
fn most_open(config: &FtlConfig, layout: &Layout, placement: &dyn PlacementPolicy) -> Result<u64> {
    let wear = wear::catalogue().build(&config.wear, &mut wear::Setup::default())?;
    let frontiers = Frontiers::new(
        placement,
        &config.gc,
        metadata_frontiers(config),
        wear.moves_cold_data(),
        layout.lanes,
    );
    let own = u64::from(frontiers.open_beside()) * u64::from(layout.lanes);
    Ok(own + placement::most_open(placement, layout))
}

/// Frontiers of translation pages, policy-owned pages, journal and checkpoints.
fn metadata_frontiers(config: &FtlConfig) -> Frontier {
    mapping::frontiers(&config.mapping).max(Frontier::from(config.checkpoint_units > 0))
}

/// The least `gc.hard`: a free unit for each frontier of survivors, and one for each frontier and each further table of
/// translation pages, or for the journal and checkpoints.
///
/// # Errors
/// A placement, dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn least_reserve(config: &FtlConfig, layout: &Layout) -> Result<u32> {
    let placement = placement::catalogue().build(&config.placement, &mut placement::Setup::of(config, layout))?;
    let roles = Roles::from_config(config, layout)?;
    let (values, rows) = (roles.most_values(layout) > 0, roles.most_rows(config) > 0);
    let further = mapping::tables_in_flash(&config.mapping, values, rows).saturating_sub(1);
    Ok(u32::from(placement.survivor_frontiers().max(1)) + u32::from(metadata_frontiers(config)) + further)
}

impl Ftl<Counting> {
    /// Units that the journal may take for changes of copied values: without protected memory each write between two checkpoints
    /// may add one, a checkpoint under way doubles that, and half-filled pages double it again.
    pub(crate) fn journal_of_copies(&self) -> u64 {
        const CHANGE_BYTES: u64 = 16;
        if self.recovery.is_none() || self.config.buffer.power_loss_protected {
            return 0;
        }
        let bytes = self.config.checkpoint_units.saturating_mul(4 * CHANGE_BYTES);
        bytes.div_ceil(u64::from(self.layout.geometry.unit_bytes)) + 2
    }

    /// Where the raw units go, with the policies that the drive was built of.
    pub fn space(&self) -> Space {
        let config = &self.config;
        let own = u64::from(self.frontiers.open_beside()) * u64::from(self.layout.lanes);
        let checkpoint = if self.recovery.is_some() {
            self.most_checkpoint_units()
        } else {
            0
        };
        Space {
            raw: u64::from(self.layout.slots())
                - u64::from(self.uncharged) * u64::from(self.layout.lanes) * u64::from(self.layout.slots_per_ru),
            logical: u64::from(config.logical_units),
            per_ru: u64::from(self.layout.slots_per_ru),
            pools: self.units.pools.len() as u64,
            hard: u64::from(config.gc.hard),
            open_rus: own + placement::most_open(self.placement.as_ref(), &self.layout),
            tables: self.translation.pages() + u64::from(self.mapping.own_pages()) + 2 * u64::from(checkpoint),
            padding: u64::from(self.layout.rus) * u64::from(self.padding_per_collection()),
        }
    }

    /// Refuses a drive that could not collect. Returns the units beyond what it needs.
    pub(crate) fn check_room(&self) -> Result<u64> {
        let left = self.space().left()?;
        let most = self.frontiers.survivor_frontiers(self.placement.survivor_frontiers())
            + self.translation.tables_in_flash().saturating_sub(1);
        if self.config.gc.hard < most {
            return Err(Error::input(format!(
                "gc.hard = {}: expected at least {most}, a free unit for each frontier of survivors{}",
                self.config.gc.hard,
                if !self.frontiers.all_metadata().is_empty() {
                    ", and one for each table and frontier of translation pages or for journal and checkpoints"
                } else {
                    ""
                }
            )));
        }
        Ok(left)
    }
}
