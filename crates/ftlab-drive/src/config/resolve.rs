//! From what was written to what is meant: defaults, derived sizes, and sentences for drives that cannot work.

use ftlab_core::{Error, Geometry, Layout, PolicySpec, ReclaimKind, Result};
use ftlab_flash::Timing;
use ftlab_ftl::allocation::plane_order;
use ftlab_ftl::{BufferConfig, FtlConfig, GcConfig, PoolScope, Survivors};

use super::file::{
    Cell, DEFAULT_OP_RATIO, DriveFile, FtlTable, GcTable, GeometryTable, Pool, Reclaim, SurvivorsKey, Suspend,
    TimingTable,
};
use super::quantity::{Size, Time};
use super::space::{self, units_per_pool};
use super::{DriveConfig, HostLink};

pub fn resolve(file: &DriveFile) -> Result<DriveConfig> {
    let layout = layout(&file.geometry, &file.ftl.allocation.0)?;
    let logical_units = logical_units(&file.ftl, &layout)?;
    let gc = gc(&file.gc, &layout)?;
    let mut ftl = FtlConfig {
        logical_units,
        mapping: file.ftl.mapping.0.clone(),
        map_cache_bytes: map_cache(&file.ftl, &layout, logical_units),
        share_loads: file.ftl.share_loads,
        placement: file.ftl.placement.0.clone(),
        victim: file.ftl.victim.0.clone(),
        wear: file.ftl.wear.0.clone(),
        allocation: file.ftl.allocation.0.clone(),
        dedup: file.ftl.dedup.0.clone(),
        replication: file.ftl.replication.0.clone(),
        gc,
        buffer: BufferConfig {
            policy: file.buffer.policy.0.clone(),
            capacity_units: small(
                "buffer.capacity",
                file.buffer.capacity.0 / u64::from(layout.geometry.unit_bytes),
            )?,
            power_loss_protected: file.buffer.power_loss_protected,
        },
        erase_limit: file.ftl.erase_limit,
        checkpoint_units: match file.ftl.checkpoint.0 {
            Some(bytes) => bytes.div_ceil(u64::from(layout.geometry.unit_bytes)),
            None => 0,
        },
        seed: 1,
        verify: false,
    };
    if file.buffer.policy.0.name != "none" && ftl.buffer.capacity_units < layout.units_per_page {
        return Err(Error::input(format!(
            "buffer.capacity = \"{}\": expected at least one flash page (\"{}\")",
            file.buffer.capacity,
            Size(u64::from(layout.geometry.page_bytes))
        )));
    }
    let host = &file.host;
    if host.bandwidth.0 == Some(0) {
        return Err(Error::input(
            "host.bandwidth is zero: expected a rate, or \"none\" for a link that costs nothing",
        ));
    }
    if !(file.lifetime.warranty_years.is_finite() && file.lifetime.warranty_years > 0.0) || file.lifetime.pe_cycles == 0
    {
        return Err(Error::input(
            "lifetime.pe_cycles and lifetime.warranty_years must be above zero",
        ));
    }
    if ftl.erase_limit == Some(0) {
        return Err(Error::input(
            "ftl.erase_limit = 0: expected at least 1, or \"none\" for blocks that never wear out",
        ));
    }
    raise_reserve(&mut ftl, &layout, file.gc.pool)?;
    let config = DriveConfig {
        name: file.drive.name.clone(),
        description: file.drive.description.clone(),
        source: file.drive.source.clone(),
        timing: timing(&file.timing)?,
        cell: file.timing.cell,
        host: HostLink {
            bytes_per_second: host.bandwidth.0,
            packet_payload_bytes: small("host.packet_payload", host.packet_payload.0)?,
            packet_overhead_bytes: small("host.packet_overhead", host.packet_overhead.0)?,
            read_setup_ns: bounded("host.read_setup", host.read_setup)?,
            write_setup_ns: bounded("host.write_setup", host.write_setup)?,
            command_ns: bounded("host.command", host.command)?,
        },
        schedule: file.schedule.policy.0.clone(),
        layout,
        ftl,
        rated_pe_cycles: file.lifetime.pe_cycles,
        warranty_years: file.lifetime.warranty_years,
    };
    space::refuse_too_little(&config)?;
    Ok(config)
}

fn layout(table: &GeometryTable, allocation: &PolicySpec) -> Result<Layout> {
    let page_bytes = small("geometry.page_size", table.page_size.0)?;
    let unit_bytes = match table.unit {
        Some(unit) => small("geometry.unit", unit.0)?,
        None => page_bytes.min(4096),
    };
    let geometry = Geometry {
        channels: table.channels,
        ways: table.ways,
        dies: table.dies,
        planes: table.planes,
        blocks: table.blocks,
        pages: table.pages,
        page_bytes,
        unit_bytes,
        oob_bytes: small("geometry.oob", table.oob.0)?,
    };
    geometry.validate()?;
    let reclaim = match (table.reclaim, table.superblock_dies) {
        (Reclaim::Block, None) => ReclaimKind::Block,
        (Reclaim::Superblock, dies) => ReclaimKind::Superblock {
            dies: dies.unwrap_or(geometry.total_dies()),
        },
        (Reclaim::Block, Some(_)) => {
            return Err(Error::input(
                "geometry.superblock_dies is set, but geometry.reclaim is \"block\": write reclaim = \"superblock\"",
            ));
        }
    };
    Layout::new(geometry, reclaim, plane_order(allocation)?)
}

fn logical_units(table: &FtlTable, layout: &Layout) -> Result<u32> {
    let raw = u64::from(layout.slots());
    let unit = u64::from(layout.geometry.unit_bytes);
    let units = match (table.op_ratio, table.logical_size) {
        (Some(_), Some(_)) => {
            return Err(Error::input(
                "[ftl] has both op_ratio and logical_size: give one, the other follows from it",
            ));
        }
        (_, Some(Size(bytes))) => bytes / unit,
        (op_ratio, None) => {
            let op_ratio = op_ratio.unwrap_or(DEFAULT_OP_RATIO);
            if !(op_ratio > 0.0 && op_ratio <= 1000.0) {
                return Err(Error::input(format!(
                    "ftl.op_ratio = {op_ratio}: expected (raw - logical) / logical, above 0 and at most 1000"
                )));
            }
            (raw as f64 / (1.0 + op_ratio)).round() as u64
        }
    };
    if units == 0 {
        return Err(Error::input("the logical size is below one mapping unit"));
    }
    if units >= raw {
        return Err(Error::input(format!(
            "the logical size (\"{}\") must be below the raw size (\"{}\")",
            Size(units * unit),
            Size(raw * unit)
        )));
    }
    small("ftl.logical_size in units", units)
}

fn map_cache(table: &FtlTable, layout: &Layout, logical_units: u32) -> u64 {
    let units_per_block = layout.geometry.pages * layout.units_per_page;
    let blocks = u64::from(logical_units.div_ceil(units_per_block));
    table.map_cache.bytes(4 * u64::from(logical_units), blocks)
}

/// The op_ratio with the fewest digits that gives exactly this logical size.
pub(super) fn shortest_op_ratio(raw: u64, logical: u64) -> f64 {
    let exact = (raw - logical) as f64 / logical as f64;
    (0..17)
        .filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok())
        .find(|ratio| (raw as f64 / (1.0 + ratio)).round() as u64 == logical)
        .unwrap_or(exact)
}

fn scope(pool: Pool) -> PoolScope {
    match pool {
        Pool::Lane => PoolScope::Lane,
        Pool::Die => PoolScope::Die,
        Pool::Drive => PoolScope::Drive,
    }
}

/// Placement policies that spread survivors over several frontiers need a free unit for each of them.
fn raise_reserve(ftl: &mut FtlConfig, layout: &Layout, pool: Pool) -> Result<()> {
    // A policy that comes with the run is in no catalogue; what is wrong with the name or the parameters of others is said when the
    // drive is built.
    let Ok(least) = ftlab_ftl::least_reserve(ftl, layout) else {
        return Ok(());
    };
    let in_pool = units_per_pool(layout, scope(pool));
    if least >= in_pool && ftl.gc.hard < least {
        return Err(Error::input(format!(
            "placement policy `{}` with mapping policy `{}` needs gc.hard = {least}: a pool of this drive has only {in_pool} \
             reclaim units",
            ftl.placement.name, ftl.mapping.name
        )));
    }
    ftl.gc.hard = ftl.gc.hard.max(least);
    ftl.gc.soft = ftl.gc.soft.max(ftl.gc.hard);
    Ok(())
}

fn gc(table: &GcTable, layout: &Layout) -> Result<GcConfig> {
    let pool = scope(table.pool);
    let in_pool = units_per_pool(layout, pool);
    let hard = table.hard.units(in_pool);
    let soft = table.soft.map_or(hard, |soft| soft.units(in_pool));
    if hard == 0 {
        return Err(Error::input(
            "gc.hard = 0: collection needs at least one free reclaim unit to move survivors into",
        ));
    }
    if soft < hard {
        return Err(Error::input(format!(
            "gc.soft = {soft} is below gc.hard = {hard}: expected at least as many"
        )));
    }
    if soft >= in_pool {
        return Err(Error::input(format!(
            "gc.soft = {soft}, gc.hard = {hard}: a pool of this drive has only {in_pool} reclaim units"
        )));
    }
    if table.step == 0 {
        return Err(Error::input(
            "gc.step = 0: a step of collection moves at least one unit",
        ));
    }
    Ok(GcConfig {
        pool,
        hard,
        soft,
        preemptible: table.preemptible,
        step_units: table.step,
        background: table.background,
        idle_ns: bounded("gc.idle", table.idle)?,
        survivors: match table.survivors {
            SurvivorsKey::Shared => Survivors::Shared,
            SurvivorsKey::Stream => Survivors::Stream,
            SurvivorsKey::Internal => Survivors::Internal,
        },
    })
}

fn timing(table: &TimingTable) -> Result<Timing> {
    let suspends = table.suspend != Suspend::None;
    if suspends && table.max_suspends == 0 {
        return Err(Error::input(format!(
            "timing.suspend = \"{}\" with timing.max_suspends = 0: expected at least 1, or suspend = \"none\"",
            table.suspend.name()
        )));
    }
    Ok(Timing {
        read_ns: by_page_type("read", &table.read.0, table.cell)?,
        program_ns: by_page_type("program", &table.program.0, table.cell)?,
        erase_ns: positive("timing.erase", table.erase)?,
        read_command_ns: bounded("timing.read_command", table.read_command)?,
        program_command_ns: bounded("timing.program_command", table.program_command)?,
        erase_command_ns: bounded("timing.erase_command", table.erase_command)?,
        byte_ps: table.transfer.0,
        ecc_ns: bounded("timing.ecc", table.ecc)?,
        multi_plane: table.multi_plane,
        suspend_program: matches!(table.suspend, Suspend::Program | Suspend::Both),
        suspend_erase: matches!(table.suspend, Suspend::Erase | Suspend::Both),
        suspend_ns: bounded("timing.suspend_time", table.suspend_time)?,
        resume_ns: bounded("timing.resume_time", table.resume_time)?,
        max_suspends: table.max_suspends,
    })
}

/// One time for each page type of the cell; a single time counts for all of them.
fn by_page_type(key: &str, times: &[u64], cell: Cell) -> Result<Vec<u64>> {
    let types = cell.bits();
    for &ns in times {
        positive(&format!("timing.{key}"), Time(ns))?;
    }
    match times {
        [ns] => Ok(vec![*ns; types]),
        _ if times.len() == types => Ok(times.to_vec()),
        _ => Err(Error::input(format!(
            "timing.{key} has {} times: {} has {types} page type{}, so expected {} or one time for all",
            times.len(),
            cell.name(),
            if types == 1 { "" } else { "s" },
            types
        ))),
    }
}

fn small(key: &str, value: u64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::input(format!("{key} = {value}: expected less than 2^32")))
}

/// Times of more than an hour are slips of the unit, and their sums could overflow.
fn bounded(key: &str, time: Time) -> Result<u64> {
    if time.0 <= 3_600_000_000_000 {
        Ok(time.0)
    } else {
        Err(Error::input(format!("{key} = \"{time}\": expected at most \"1h\"")))
    }
}

fn positive(key: &str, time: Time) -> Result<u64> {
    if time.0 == 0 {
        return Err(Error::input(format!("{key} is zero: expected a time such as \"75us\"")));
    }
    bounded(key, time)
}
