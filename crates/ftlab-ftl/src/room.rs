//! How much of a drive is not for the host: what collection keeps free, open units, pages of maps, checkpoint and journal.
//!
//! Functions of a configuration tell what to expect of a drive before it is built; [`Ftl::check_room`] knows the policies that
//! it was built of, given ones too, and refuses a drive that could not collect.

use ftlab_core::{Error, Layout, Result};

use crate::backend::Counting;
use crate::config::FtlConfig;
use crate::frontier::{Frontier, Frontiers};
use crate::ftl::Ftl;
use crate::indirection::{ROW_BYTES, VALUE_BYTES};
use crate::recovery::units_behind;
use crate::roles::Roles;
use crate::{mapping, placement, wear};

/// Write frontiers of a drive: its placement policy's, survivors', metadata's, wear levelling's.
///
/// # Errors
/// A placement or wear policy that is in no catalogue, or whose parameters are refused.
pub fn frontiers_of(config: &FtlConfig, layout: &Layout) -> Result<u32> {
    let placement = placement::catalogue().build(&config.placement, &mut placement::Setup::of(config, layout))?;
    let wear = wear::catalogue().build(&config.wear, &mut wear::Setup::default())?;
    let frontiers = Frontiers::new(
        placement.as_ref(),
        &config.gc,
        metadata_frontiers(config),
        wear.moves_cold_data(),
        layout.lanes,
    );
    Ok(u32::from(frontiers.count))
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

/// Translation pages of the tables of values and of rows of chunks, if the drive's mapping keeps them in flash.
///
/// # Errors
/// A dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn pages_behind(config: &FtlConfig, layout: &Layout) -> Result<u64> {
    let roles = Roles::from_config(config, layout)?;
    let keys = [roles.most_values(layout), roles.most_rows(config)];
    let tables = mapping::tables_in_flash(&config.mapping, keys[0] > 0, keys[1] > 0) as usize;
    let pages = keys.iter().zip([VALUE_BYTES, ROW_BYTES]).map(|(&keys, bytes)| {
        let per_page = (layout.geometry.unit_bytes / bytes).max(1);
        u64::from(keys.div_ceil(per_page))
    });
    Ok(pages.take(tables.saturating_sub(1)).sum())
}

/// The most units that the tables of values and of rows of chunks take of a checkpoint.
///
/// # Errors
/// A dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn checkpoint_behind(config: &FtlConfig, layout: &Layout) -> Result<u64> {
    let roles = Roles::from_config(config, layout)?;
    let (values, rows) = (roles.most_values(layout), roles.most_rows(config));
    Ok(units_behind(
        u64::from(values),
        u64::from(rows),
        layout.geometry.unit_bytes,
    ))
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

    /// A drive needs, beyond its logical units, the GC reserve of every pool and an open unit for every frontier and lane;
    /// and, where copies cannot wait in protected memory for a page to fill, what padding loses of every unit. Returns the
    /// units beyond that.
    pub(crate) fn check_room(&self) -> Result<u64> {
        let per_ru = u64::from(self.layout.slots_per_ru);
        let own = u64::from(self.frontiers.count - self.placing.frontiers) * u64::from(self.layout.lanes);
        let open = own + self.placing.most_open(self.layout.lanes);
        let reserve = u64::from(self.config.gc.hard) * self.units.pools.len() as u64;
        let raw = u64::from(self.layout.slots());
        let checkpoint = if self.recovery.is_some() {
            self.most_checkpoint_units()
        } else {
            0
        };
        // The journal may become as long as a checkpoint.
        let tables: u64 = self.translation.pages() + u64::from(self.mapping.own_pages()) + 2 * u64::from(checkpoint);
        let padding = u64::from(self.layout.rus) * u64::from(self.padding_per_collection());
        let beyond = tables + padding + (open + reserve + 1) * per_ru;
        let needed = u64::from(self.config.logical_units) + beyond;
        if needed > raw {
            return Err(Error::input(format!(
                "too little spare: {} logical units, {tables} translation pages, {open} open and {reserve} reserved reclaim \
                 units of {per_ru} units and one more, and {padding} units lost to padding need {needed} units, but the drive \
                 has {raw}; raise ftl.op_ratio above {:.3}",
                self.config.logical_units,
                raw as f64 / raw.saturating_sub(beyond).max(1) as f64 - 1.0
            )));
        }
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
        Ok(raw - needed)
    }
}
