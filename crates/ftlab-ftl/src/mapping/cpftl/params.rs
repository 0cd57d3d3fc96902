//! The parameters of `cpftl`, and what is refused of them.

use ftlab_core::{Error, Result, units};
use ftlab_mine::{Clustered, Threshold};
use serde::{Deserialize, Deserializer, Serialize};

use super::super::Setup;
use super::super::tpftl::{self, NodeOrder};
use super::correlated::PAIR_BYTES;
use super::directory::HEAD_BYTES;
use super::online::Online;
use super::plan::Plan;

/// Least bytes of a directory: one page's, and a filter of a byte.
const LEAST: u64 = HEAD_BYTES + 1;
/// Most reads that are buffered for mining: 1 GiB.
const MOST_READS: u32 = 1 << 28;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub correlations: String,
    #[serde(deserialize_with = "text_or_number")]
    pub pairs: String,
    pub start: u64,
    pub renew: u64,
    pub online: u32,
    pub online_pages: u32,
    pub support: f64,
    pub least: u32,
    pub confidence: f64,
    pub window: u32,
    pub region: u32,
    pub mass: f64,
    pub region_pairs: u32,
    pub directory: DirectorySize,
    pub false_positive: f64,
    pub filter_bits: u32,
    pub fit: Fit,
    pub page_lpns: u32,
    pub bring: Bring,
    pub load_limit: f64,
    pub write_check: WriteCheck,
    pub removal: Removal,
    pub patience: f64,
    pub removal_floor: f64,
    pub min_loads: u32,
    pub removal_window: u64,
    pub dei: Dei,
    pub dirty_share: f64,
    pub margin: f64,
    pub after_write_back: AfterWriteBack,
    pub second_chance: u32,
    pub frequent: f64,
    pub write_miss: WriteMiss,
    pub own_blocks: bool,
    pub request_prefetch: bool,
    pub selective_prefetch: bool,
    pub clean_first: bool,
    pub batch: bool,
    pub threshold: i32,
    pub order: NodeOrder,
    pub entry_bytes: u32,
    pub node_bytes: u32,
    pub serial: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected bytes, a share of ftl.map_cache, or `search`")]
pub enum DirectorySize {
    /// Below 1 a share of the cache, else bytes.
    Number(f64),
    /// Bytes with their unit, or `search`.
    Text(String),
}

impl DirectorySize {
    /// Bytes of a cache of so many; none: full search.
    fn bytes(&self, cache_bytes: u64) -> Result<Option<u64>> {
        let refused = |given: &dyn std::fmt::Display| {
            Error::input(format!(
                "mapping policy `cpftl`: directory = {given}: expected bytes, a share of ftl.map_cache, or `search`"
            ))
        };
        let bytes = match self {
            DirectorySize::Number(share) if (0.0..1.0).contains(share) => (share * cache_bytes as f64) as u64,
            DirectorySize::Number(bytes) if *bytes >= 1.0 && bytes.is_finite() => *bytes as u64,
            DirectorySize::Number(number) => return Err(refused(number)),
            DirectorySize::Text(text) if text == "search" => return Ok(None),
            DirectorySize::Text(text) => units::bytes(text).map_err(|_| refused(text))?,
        };
        if bytes < LEAST && !matches!(self, DirectorySize::Number(share) if (f64::MIN_POSITIVE..1.0).contains(share)) {
            return Err(Error::input(format!(
                "mapping policy `cpftl`: directory = {bytes}: expected bytes, {LEAST} or more, a share of ftl.map_cache above 0 and \
                 below 1, or `search`"
            )));
        }
        if bytes >= cache_bytes.max(1) {
            return Err(Error::input(format!(
                "mapping policy `cpftl`: directory = {bytes} bytes: expected less than the {cache_bytes} bytes of ftl.map_cache"
            )));
        }
        Ok(Some(bytes))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    Pages,
    Filters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteCheck {
    Load,
    Directory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bring {
    Groups,
    Keyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterWriteBack {
    Room,
    Read,
    Clean,
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected balance, regular, off, or hits per load")]
pub enum Removal {
    Below(f64),
    Named(RemovalKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalKind {
    Balance,
    Regular,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dei {
    Off,
    Shared,
    On,
    Skew,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMiss {
    Load,
    Defer,
}

/// Of one filter; a correlated page has no use for more.
const MOST_FILTER_BITS: u32 = 1 << 24;

impl Default for Params {
    fn default() -> Self {
        let base = tpftl::Params::default();
        let miner = Clustered::default();
        Params {
            correlations: String::new(),
            pairs: String::new(),
            start: 0,
            renew: 0,
            online: 0,
            online_pages: 293,
            support: miner.threshold.support,
            least: miner.threshold.least,
            confidence: miner.threshold.confidence,
            window: miner.window,
            region: miner.region.unwrap_or(u32::MAX),
            mass: miner.mass,
            region_pairs: miner.region_pairs,
            directory: DirectorySize::Number(0.06),
            false_positive: 0.001,
            filter_bits: 0,
            fit: Fit::Pages,
            page_lpns: 0,
            bring: Bring::Groups,
            load_limit: 0.25,
            write_check: WriteCheck::Load,
            removal: Removal::Named(RemovalKind::Balance),
            patience: 8.0,
            removal_floor: 0.1,
            min_loads: 16,
            removal_window: 65536,
            dei: Dei::Shared,
            dirty_share: 0.4,
            margin: 0.0625,
            after_write_back: AfterWriteBack::Room,
            second_chance: 16,
            frequent: 0.05,
            write_miss: WriteMiss::Defer,
            own_blocks: false,
            request_prefetch: base.request_prefetch,
            selective_prefetch: base.selective_prefetch,
            clean_first: base.clean_first,
            batch: base.batch,
            threshold: base.threshold,
            order: base.order,
            entry_bytes: base.entry_bytes,
            node_bytes: base.node_bytes,
            serial: base.serial,
        }
    }
}

/// What looks like a number is refused as the group that it is not.
fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected groups of two different LPNs or more, as in 1-9/4-30-31"
    )]
    enum Given {
        Text(String),
        Whole(i64),
        Number(f64),
    }
    Ok(match Given::deserialize(from)? {
        Given::Text(text) => text,
        Given::Whole(number) => number.to_string(),
        Given::Number(number) => number.to_string(),
    })
}

impl Params {
    pub(super) fn base(&self) -> tpftl::Params {
        tpftl::Params {
            request_prefetch: self.request_prefetch,
            selective_prefetch: self.selective_prefetch,
            clean_first: self.clean_first,
            batch: self.batch,
            threshold: self.threshold,
            order: self.order,
            entry_bytes: self.entry_bytes,
            node_bytes: self.node_bytes,
            serial: self.serial,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |name: &str, value: f64, expected: &str| {
            Err(Error::input(format!(
                "mapping policy `cpftl`: {name} = {value}: expected {expected}"
            )))
        };
        if self.threshold < 1 {
            return refuse("threshold", f64::from(self.threshold), "at least 1");
        }
        if self.entry_bytes == 0 {
            return refuse("entry_bytes", 0.0, "at least 1");
        }
        if !(self.dirty_share > 0.0 && self.dirty_share < 1.0) {
            return refuse("dirty_share", self.dirty_share, "a share above 0 and below 1");
        }
        if !(self.margin > 0.0 && self.margin <= 1.0) {
            return refuse("margin", self.margin, "a share above 0 and at most 1");
        }
        if !(self.false_positive > 0.0 && self.false_positive < 1.0) {
            return refuse("false_positive", self.false_positive, "a share above 0 and below 1");
        }
        if !(self.load_limit > 0.0 && self.load_limit <= 1.0) {
            return refuse("load_limit", self.load_limit, "a share above 0, at most 1");
        }
        if !(self.frequent > 0.0 && self.frequent < 256.0) {
            return refuse("frequent", self.frequent, "a share above 0 or a count below 256");
        }
        if self.filter_bits > MOST_FILTER_BITS {
            return refuse("filter_bits", f64::from(self.filter_bits), "0 to 2^24");
        }
        if self.removal_window == 0 {
            return refuse("removal_window", 0.0, "at least 1");
        }
        let rate = |rate: f64| rate >= 0.0 && rate.is_finite();
        if !rate(self.removal_floor) {
            return refuse("removal_floor", self.removal_floor, "hits per load, 0 or more");
        }
        if !(self.patience > 0.0 && self.patience.is_finite()) {
            return refuse("patience", self.patience, "reads, above 0");
        }
        match self.removal {
            Removal::Below(below) if !rate(below) => {
                refuse("removal", below, "`balance`, `regular`, `off` or hits per load")
            }
            _ => Ok(()),
        }
    }

    /// Entries that memory of so many bytes would hold.
    pub(super) fn keys_in(&self, bytes: u64) -> u64 {
        bytes / u64::from(self.entry_bytes)
    }

    /// The buffer and the miner for mining during the run, if that is wanted. Without it, too, their parameters must be in range.
    pub(super) fn online(&self, setup: &Setup) -> Result<Option<Online>> {
        let refuse = |what: String| Err(Error::input(format!("mapping policy `cpftl`: {what}")));
        let miner = Clustered {
            region: Some(self.region),
            window: self.window,
            mass: self.mass,
            region_pairs: self.region_pairs,
            threshold: Threshold {
                support: self.support,
                least: self.least,
                confidence: self.confidence,
                ..Threshold::default()
            },
            ..Clustered::default()
        };
        if let Err(cause) = miner.check() {
            return refuse(cause.to_string());
        }
        if self.online_pages == 0 {
            return refuse("online_pages = 0: expected at least 1".to_owned());
        }
        if self.online == 0 {
            return Ok(None);
        }
        if u64::from(self.online) < 2 * u64::from(self.window) || self.online > MOST_READS {
            return refuse(format!(
                "online = {}: expected 0, or at least two windows of {} reads and at most {MOST_READS}",
                self.online, self.window
            ));
        }
        match Online::new(miner, self.online, setup.unit_bytes) {
            Ok(online) => Ok(Some(online)),
            Err(cause) => refuse(cause.to_string()),
        }
    }

    pub(super) fn plan(&self, setup: &Setup) -> Result<Plan> {
        let room = (setup.unit_bytes / PAIR_BYTES).max(2);
        let page_lpns = match self.page_lpns {
            0 => room,
            lpns => lpns,
        };
        if !(2..=room).contains(&page_lpns) {
            return Err(Error::input(format!(
                "mapping policy `cpftl`: page_lpns = {page_lpns}: expected 0, or 2 to {room}, for which a page of {} bytes has room",
                setup.unit_bytes
            )));
        }
        let budget = self.directory.bytes(setup.cache_bytes)?;
        let least = 2 * (u64::from(self.entry_bytes) + u64::from(self.node_bytes));
        if let Some(bytes) = budget
            && setup.cache_bytes >= least
            && setup.cache_bytes - bytes < least
        {
            return Err(Error::input(format!(
                "mapping policy `cpftl`: directory: {bytes} of the {} bytes of ftl.map_cache: expected at most {}, beside which there \
                 is room for two entries",
                setup.cache_bytes,
                setup.cache_bytes - least
            )));
        }
        Ok(Plan {
            page_lpns,
            may_be_smaller: self.page_lpns == 0 && self.fit == Fit::Pages && self.filter_bits == 0,
            budget,
            cache_bytes: setup.cache_bytes,
            units: setup.logical_units,
            most_pages: match self.online {
                0 => usize::MAX,
                _ => self.online_pages as usize,
            },
            false_positive: self.false_positive,
            filter_bits: self.filter_bits,
            fit: self.fit,
        })
    }
}
