//! What is written in a drive file, table by table. `drives/reference.toml` explains every key.

use serde::Deserialize;

use super::quantity::{
    Bandwidth, ByteTime, Interval, MapCache, Policy, Size, Threshold, Time, Times, count_or_all, count_or_none,
};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveFile {
    #[serde(default)]
    pub drive: About,
    pub geometry: GeometryTable,
    pub timing: TimingTable,
    #[serde(default)]
    pub host: HostTable,
    #[serde(default)]
    pub schedule: ScheduleTable,
    #[serde(default)]
    pub ftl: FtlTable,
    #[serde(default)]
    pub gc: GcTable,
    #[serde(default)]
    pub buffer: BufferTable,
    #[serde(default)]
    pub lifetime: LifetimeTable,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct About {
    pub name: String,
    pub description: String,
    pub source: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reclaim {
    #[default]
    Block,
    Superblock,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryTable {
    pub channels: u32,
    pub ways: u32,
    pub dies: u32,
    pub planes: u32,
    pub blocks: u32,
    pub pages: u32,
    pub page_size: Size,
    /// Absent: 4 KiB, or the page if that is smaller.
    pub unit: Option<Size>,
    #[serde(default)]
    pub oob: Size,
    #[serde(default)]
    pub reclaim: Reclaim,
    /// `None`: all dies of the drive.
    #[serde(default, deserialize_with = "count_or_all")]
    pub superblock_dies: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Cell {
    #[default]
    #[serde(rename = "SLC")]
    Slc,
    #[serde(rename = "MLC")]
    Mlc,
    #[serde(rename = "TLC")]
    Tlc,
    #[serde(rename = "QLC")]
    Qlc,
}

impl Cell {
    /// Bits per cell, and so page types per word line.
    pub fn bits(self) -> usize {
        match self {
            Cell::Slc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }

    pub fn name(self) -> &'static str {
        ["SLC", "MLC", "TLC", "QLC"][self.bits() - 1]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspend {
    #[default]
    None,
    Erase,
    Program,
    Both,
}

impl Suspend {
    pub fn name(self) -> &'static str {
        match self {
            Suspend::None => "none",
            Suspend::Erase => "erase",
            Suspend::Program => "program",
            Suspend::Both => "both",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingTable {
    pub cell: Cell,
    pub read: Times,
    pub program: Times,
    pub erase: Time,
    #[serde(default)]
    pub read_command: Time,
    #[serde(default)]
    pub program_command: Time,
    #[serde(default)]
    pub erase_command: Time,
    pub transfer: ByteTime,
    #[serde(default)]
    pub ecc: Time,
    #[serde(default)]
    pub multi_plane: bool,
    #[serde(default)]
    pub suspend: Suspend,
    #[serde(default)]
    pub suspend_time: Time,
    #[serde(default)]
    pub resume_time: Time,
    #[serde(default = "one")]
    pub max_suspends: u32,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostTable {
    pub bandwidth: Bandwidth,
    pub packet_payload: Size,
    pub packet_overhead: Size,
    pub read_setup: Time,
    pub write_setup: Time,
    pub command: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleTable {
    pub policy: Policy,
}

impl Default for ScheduleTable {
    fn default() -> Self {
        ScheduleTable {
            policy: Policy::named("read_first"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FtlTable {
    /// One of the two; neither: [`DEFAULT_OP_RATIO`].
    pub op_ratio: Option<f64>,
    pub logical_size: Option<Size>,
    pub mapping: Policy,
    pub map_cache: MapCache,
    pub share_loads: bool,
    pub victim: Policy,
    pub placement: Policy,
    pub wear: Policy,
    pub allocation: Policy,
    pub dedup: Policy,
    pub replication: Policy,
    #[serde(deserialize_with = "count_or_none")]
    pub erase_limit: Option<u32>,
    pub checkpoint: Interval,
}

/// MQSim's and many a client drive's "7 %", here as (T − U) / U.
pub const DEFAULT_OP_RATIO: f64 = 0.07;

impl Default for FtlTable {
    fn default() -> Self {
        FtlTable {
            op_ratio: None,
            logical_size: None,
            mapping: Policy::named("page"),
            map_cache: MapCache::BlockTable,
            share_loads: true,
            victim: Policy::named("greedy"),
            placement: Policy::named("none"),
            wear: Policy::named("dynamic"),
            allocation: Policy::named("CWDP"),
            dedup: Policy::named("none"),
            replication: Policy::named("none"),
            erase_limit: None,
            checkpoint: Interval(None),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    #[default]
    Lane,
    Die,
    Drive,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurvivorsKey {
    #[default]
    Shared,
    Stream,
    Internal,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcTable {
    pub pool: Pool,
    pub hard: Threshold,
    /// Absent: as `hard`.
    pub soft: Option<Threshold>,
    pub preemptible: bool,
    pub step: u32,
    pub background: bool,
    pub idle: Time,
    pub survivors: SurvivorsKey,
}

impl Default for GcTable {
    fn default() -> Self {
        GcTable {
            pool: Pool::Lane,
            hard: Threshold::Units(2),
            soft: None,
            preemptible: false,
            step: 16,
            background: false,
            idle: Time(1_000_000),
            survivors: SurvivorsKey::Shared,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BufferTable {
    pub policy: Policy,
    pub capacity: Size,
    pub power_loss_protected: bool,
}

impl Default for BufferTable {
    fn default() -> Self {
        BufferTable {
            policy: Policy::named("none"),
            capacity: Size(1 << 20),
            power_loss_protected: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LifetimeTable {
    pub pe_cycles: u32,
    pub warranty_years: f64,
}

impl Default for LifetimeTable {
    fn default() -> Self {
        LifetimeTable {
            pe_cycles: 3000,
            warranty_years: 5.0,
        }
    }
}
