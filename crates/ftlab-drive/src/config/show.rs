//! The resolved drive, written down: as a drive file that loads again, and as figures.

use std::fmt::Write;

use ftlab_core::theory::{self, VictimLaw};
use ftlab_core::{PolicySpec, ReclaimKind};
use ftlab_ftl::{PoolScope, Space};
use serde_json::{Value, json};

use super::DriveConfig;
use super::file::Suspend;
use super::quantity::{Bandwidth, ByteTime, Interval, Policy, Size, Time};
use super::resolve::shortest_op_ratio;
use super::space::units_per_pool;

impl DriveConfig {
    /// Every key with its value and unit: a drive file that loads as this same drive.
    pub fn resolved_toml(&self) -> String {
        let mut text = String::new();
        for (section, keys) in self.tables() {
            if !text.is_empty() {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "[{section}]");
            for (key, value) in keys {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }

    /// Tables and keys in the order of the reference, values as TOML.
    fn tables(&self) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let g = &self.layout.geometry;
        let t = &self.timing;
        let ftl = &self.ftl;
        let superblock_dies = match self.layout.reclaim {
            ReclaimKind::Block => quoted("all"),
            ReclaimKind::Superblock { dies } => dies.to_string(),
        };
        let erase_limit = ftl.erase_limit.map_or(quoted("none"), |erases| erases.to_string());
        let unit = u64::from(g.unit_bytes);
        let checkpoint = Interval((ftl.checkpoint_units > 0).then(|| ftl.checkpoint_units * unit));
        vec![
            (
                "drive",
                vec![
                    ("name", quoted(&self.name)),
                    ("description", quoted(&self.description)),
                    ("source", quoted(&self.source)),
                ],
            ),
            (
                "geometry",
                vec![
                    ("channels", g.channels.to_string()),
                    ("ways", g.ways.to_string()),
                    ("dies", g.dies.to_string()),
                    ("planes", g.planes.to_string()),
                    ("blocks", g.blocks.to_string()),
                    ("pages", g.pages.to_string()),
                    ("page_size", quoted(Size(u64::from(g.page_bytes)))),
                    ("unit", quoted(Size(unit))),
                    ("oob", quoted(Size(u64::from(g.oob_bytes)))),
                    ("reclaim", quoted(reclaim_name(self.layout.reclaim))),
                    ("superblock_dies", superblock_dies),
                ],
            ),
            (
                "timing",
                vec![
                    ("cell", quoted(self.cell.name())),
                    ("read", times(&t.read_ns)),
                    ("program", times(&t.program_ns)),
                    ("erase", quoted(Time(t.erase_ns))),
                    ("read_command", quoted(Time(t.read_command_ns))),
                    ("program_command", quoted(Time(t.program_command_ns))),
                    ("erase_command", quoted(Time(t.erase_command_ns))),
                    ("transfer", quoted(ByteTime(t.byte_ps))),
                    ("ecc", quoted(Time(t.ecc_ns))),
                    ("multi_plane", t.multi_plane.to_string()),
                    ("suspend", quoted(self.suspend().name())),
                    ("suspend_time", quoted(Time(t.suspend_ns))),
                    ("resume_time", quoted(Time(t.resume_ns))),
                    ("max_suspends", t.max_suspends.to_string()),
                ],
            ),
            (
                "host",
                vec![
                    ("bandwidth", quoted(Bandwidth(self.host.bytes_per_second))),
                    (
                        "packet_payload",
                        quoted(Size(u64::from(self.host.packet_payload_bytes))),
                    ),
                    (
                        "packet_overhead",
                        quoted(Size(u64::from(self.host.packet_overhead_bytes))),
                    ),
                    ("read_setup", quoted(Time(self.host.read_setup_ns))),
                    ("write_setup", quoted(Time(self.host.write_setup_ns))),
                    ("command", quoted(Time(self.host.command_ns))),
                ],
            ),
            ("schedule", vec![("policy", policy(&self.schedule))]),
            (
                "ftl",
                vec![
                    ("op_ratio", format!("{:?}", self.op_ratio())),
                    ("mapping", policy(&ftl.mapping)),
                    ("map_cache", quoted(Size(ftl.map_cache_bytes))),
                    ("share_loads", ftl.share_loads.to_string()),
                    ("victim", policy(&ftl.victim)),
                    ("placement", policy(&ftl.placement)),
                    ("wear", policy(&ftl.wear)),
                    ("allocation", policy(&ftl.allocation)),
                    ("dedup", policy(&ftl.dedup)),
                    ("replication", policy(&ftl.replication)),
                    ("erase_limit", erase_limit),
                    ("checkpoint", quoted(checkpoint)),
                ],
            ),
            (
                "gc",
                vec![
                    ("pool", quoted(pool_name(ftl.gc.pool))),
                    ("hard", ftl.gc.hard.to_string()),
                    ("soft", ftl.gc.soft.to_string()),
                    ("preemptible", ftl.gc.preemptible.to_string()),
                    ("step", ftl.gc.step_units.to_string()),
                    ("background", ftl.gc.background.to_string()),
                    ("idle", quoted(Time(ftl.gc.idle_ns))),
                    ("survivors", quoted(ftl.gc.survivors.name())),
                ],
            ),
            (
                "buffer",
                vec![
                    ("policy", policy(&ftl.buffer.policy)),
                    ("capacity", quoted(Size(u64::from(ftl.buffer.capacity_units) * unit))),
                    ("power_loss_protected", ftl.buffer.power_loss_protected.to_string()),
                ],
            ),
            (
                "lifetime",
                vec![
                    ("pe_cycles", self.rated_pe_cycles.to_string()),
                    ("warranty_years", format!("{:?}", self.warranty_years)),
                ],
            ),
        ]
    }

    /// (T − U) / U, with no more digits than it takes to give this drive's U.
    pub fn op_ratio(&self) -> f64 {
        shortest_op_ratio(u64::from(self.layout.slots()), u64::from(self.ftl.logical_units))
    }

    fn suspend(&self) -> Suspend {
        match (self.timing.suspend_program, self.timing.suspend_erase) {
            (false, false) => Suspend::None,
            (false, true) => Suspend::Erase,
            (true, false) => Suspend::Program,
            (true, true) => Suspend::Both,
        }
    }

    /// What follows from the drive file: sizes, both ratios, thresholds, and what theory expects under uniform writes.
    pub fn describe(&self) -> Value {
        self.describe_with(&self.space())
    }

    /// As [`DriveConfig::describe`], of a drive with as many write frontiers as it has been built with: of a placement policy that
    /// is in no catalogue the file does not tell.
    pub fn describe_built(&self, frontiers: u32) -> Value {
        let open_rus = u64::from(frontiers) * u64::from(self.layout.lanes);
        self.describe_with(&Space {
            open_rus,
            ..self.space()
        })
    }

    fn describe_with(&self, space: &Space) -> Value {
        let layout = &self.layout;
        let g = &layout.geometry;
        let unit = u64::from(g.unit_bytes);
        let gc = &self.ftl.gc;
        let effective = self.effective_spare_of(space);
        // Nothing is known of the pages of a map in flash, which are collected as well.
        let plain = effective.filter(|_| self.has_map_in_memory());
        let waf = |law| plain.map(|e| theory::waf(law, e.rho, layout.slots_per_ru));
        json!({
            "name": self.name,
            "description": self.description,
            "source": self.source,
            "raw_bytes": space.raw * unit,
            "logical_bytes": space.logical * unit,
            "raw_units": space.raw,
            "logical_units": space.logical,
            "op_ratio": (space.raw - space.logical) as f64 / space.logical as f64,
            "spare_factor": (space.raw - space.logical) as f64 / space.raw as f64,
            "unit_bytes": unit,
            "units_per_page": layout.units_per_page,
            "page_bytes": g.page_bytes,
            "block_bytes": u64::from(g.pages) * u64::from(g.page_bytes),
            "channels": g.channels,
            "dies": g.total_dies(),
            "planes": g.total_planes(),
            "reclaim": reclaim_name(layout.reclaim),
            "reclaim_unit_bytes": u64::from(layout.slots_per_ru) * unit,
            "reclaim_unit_units": layout.slots_per_ru,
            "reclaim_units": layout.rus,
            "lanes": layout.lanes,
            "frontiers": space.open_rus / u64::from(layout.lanes),
            "map_bytes": self.map_bytes(),
            "gc": {
                "pool": pool_name(gc.pool),
                "pools": self.pools(),
                "units_per_pool": units_per_pool(layout, gc.pool),
                "hard": gc.hard,
                "soft": gc.soft,
            },
            "buffer_bytes": if self.ftl.buffer.policy.name == "none" { 0 } else { u64::from(self.ftl.buffer.capacity_units) * unit },
            "policies": {
                "mapping": self.ftl.mapping.show(),
                "victim": self.ftl.victim.show(),
                "placement": self.ftl.placement.show(),
                "wear": self.ftl.wear.show(),
                "allocation": self.ftl.allocation.show(),
                "dedup": self.ftl.dedup.show(),
                "replication": self.ftl.replication.show(),
                "schedule": self.schedule.show(),
                "buffer": self.ftl.buffer.policy.show(),
            },
            "effective_spare_factor": effective.map(|e| e.spare_factor),
            "effective_op_ratio": effective.map(|e| e.op_ratio),
            "theory_waf": {
                "greedy": waf(VictimLaw::Greedy),
                "fifo": waf(VictimLaw::Fifo),
                "random": waf(VictimLaw::Random),
            },
        })
    }
}

fn quoted(value: impl std::fmt::Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

fn policy(spec: &PolicySpec) -> String {
    Policy(spec.clone()).to_string()
}

fn times(ns: &[u64]) -> String {
    let shown: Vec<String> = ns.iter().map(|&ns| quoted(Time(ns))).collect();
    match &shown[..] {
        [one] => one.clone(),
        _ => format!("[{}]", shown.join(", ")),
    }
}

fn reclaim_name(reclaim: ReclaimKind) -> &'static str {
    match reclaim {
        ReclaimKind::Block => "block",
        ReclaimKind::Superblock { .. } => "superblock",
    }
}

fn pool_name(pool: PoolScope) -> &'static str {
    match pool {
        PoolScope::Lane => "lane",
        PoolScope::Die => "die",
        PoolScope::Drive => "drive",
    }
}
