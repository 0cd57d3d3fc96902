//! What a question to files is made of, and which of it is refused.

use ftlab_core::{Error, Result, units};
use rustc_hash::FxHashSet;
use serde::Deserialize;

use crate::asked_json;
use crate::bootstrap::least_replicates;
use crate::layout;
use crate::sql::{Plan, Shows};

use super::keyed::Taken;

const MOST_REPLICATES: usize = 100_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    pub query: String,
    /// Share of the partitions, above 0 and at most 1.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// With `ratio`: the share that quick disks may give beyond theirs, so that slow ones are not waited for.
    #[serde(default)]
    pub drop: Option<f64>,
    /// Half-width over value.
    #[serde(default)]
    pub error: Option<f64>,
    /// Share of the keys of a join that count on both sides, which are read whole.
    #[serde(default)]
    pub join_keys: Option<f64>,
    /// A time: `2s`.
    #[serde(default)]
    pub within: Option<String>,
    #[serde(default = "default_level")]
    pub level: f64,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub disks: Vec<String>,
    /// A size: `64KiB`.
    #[serde(default = "default_partition")]
    pub partition: String,
    /// Share of the records of a drawn partition.
    #[serde(default = "default_records")]
    pub records: f64,
    /// Partitions of the pilot of `error`.
    #[serde(default = "default_pilot")]
    pub pilot: u64,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub delimiter: Option<String>,
    #[serde(default = "yes")]
    pub header: bool,
    #[serde(default)]
    pub no_quoted_newlines: bool,
    #[serde(default)]
    pub direct: bool,
    #[serde(default)]
    pub threads: Option<usize>,
    #[serde(default = "default_depth")]
    pub depth: usize,
    /// Replicates of the bootstrap, of medians and quantiles.
    #[serde(default = "default_replicates")]
    pub replicates: usize,
    /// Where the answer is to be written: none of the files that are read.
    #[serde(default)]
    pub output: Option<String>,
    /// Of statistics: the machine that the disks belong to.
    #[serde(default)]
    pub node: Option<String>,
    /// Of statistics: the number of the first disk among those of all machines.
    #[serde(default)]
    pub first_disk: u64,
    /// Of statistics: how many disks all machines have together.
    #[serde(default)]
    pub all_disks: Option<u64>,
}

/// Disks of all machines together, at most.
pub(super) const MOST_DISKS: u64 = 1 << 20;

fn default_level() -> f64 {
    0.95
}
fn default_partition() -> String {
    "64KiB".to_owned()
}
fn default_records() -> f64 {
    1.0
}
fn default_pilot() -> u64 {
    100
}
fn default_replicates() -> usize {
    1000
}
fn default_depth() -> usize {
    4
}
fn yes() -> bool {
    true
}

/// Whether two names are of one folder; of what is none, whether they are written alike.
fn is_same(one: &str, other: &str) -> bool {
    let whole = |name| std::fs::canonicalize(name).ok();
    one == other || whole(one).is_some_and(|one| whole(other) == Some(one))
}

impl SampleSpec {
    pub fn parse(json: &str) -> Result<SampleSpec> {
        let spec: SampleSpec = asked_json::read("sample", json)?;
        spec.check()?;
        Ok(spec)
    }

    pub fn partition_bytes(&self) -> Result<u64> {
        layout::partition_option(&self.partition)
    }

    /// A stored LDD was cut when it was loaded.
    pub(super) fn refuse_cuts(&self, name: &str) -> Result<()> {
        let given = [
            ("disk", !self.disks.is_empty()),
            ("partition", self.partition != default_partition()),
            ("format", self.format.is_some()),
            ("delimiter", self.delimiter.is_some()),
            ("no-header", !self.header),
            ("no-quoted-newlines", self.no_quoted_newlines),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Error::input(format!(
                "--{option}: expected none with ldd('{name}'), which has its own"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn within_ns(&self) -> Result<Option<u64>> {
        let Some(within) = &self.within else { return Ok(None) };
        match units::nanoseconds(within) {
            Ok(ns) if ns > 0 => Ok(Some(ns)),
            _ => Err(Error::input(format!(
                "--within {within}: expected a time, such as 2s or 500ms"
            ))),
        }
    }

    /// Whether the intervals of quantiles can be made: of the replicates, one in each tail is outside.
    pub(super) fn check_replicates(&self) -> Result<()> {
        let least = least_replicates(self.level);
        if self.replicates >= least {
            return Ok(());
        }
        Err(Error::input(match least > MOST_REPLICATES {
            true => format!(
                "--level {}: expected a lower one with a quantile, as it would need {least} replicates",
                self.level
            ),
            false => format!(
                "--replicates {}: expected at least {least}, so that one in each tail is outside of --level {}",
                self.replicates, self.level
            ),
        }))
    }

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |what: &str, value: String, expected: &str| {
            Err(Error::input(format!("--{what} {value}: expected {expected}")))
        };
        let asked = [
            self.ratio.is_some(),
            self.error.is_some(),
            self.within.is_some(),
            self.join_keys.is_some(),
        ];
        if asked.iter().filter(|&&one| one).count() != 1 {
            return Err(Error::input(
                "expected one of --ratio, --error and --within, or --join-keys",
            ));
        }
        if let Some(ratio) = self.ratio.filter(|r| !(*r > 0.0 && *r <= 1.0)) {
            return refuse("ratio", ratio.to_string(), "more than 0 and at most 1 (100%)");
        }
        if let Some(error) = self.error.filter(|e| !(*e > 0.0 && *e < 1.0)) {
            return refuse("error", error.to_string(), "more than 0 and less than 1 (100%)");
        }
        if let Some(keys) = self.join_keys.filter(|k| !(*k > 0.0 && *k <= 1.0)) {
            return refuse("join-keys", keys.to_string(), "more than 0 and at most 1 (100%)");
        }
        if self.join_keys.is_some() && self.records < 1.0 {
            return refuse(
                "records",
                self.records.to_string(),
                "none with --join-keys, which samples keys",
            );
        }
        if let Some(drop) = self.drop.filter(|d| !(*d > 0.0 && *d <= 1.0)) {
            return refuse("drop", drop.to_string(), "more than 0 and at most 1 (100%)");
        }
        if let (Some(drop), None) = (self.drop, self.ratio) {
            return refuse(
                "drop",
                drop.to_string(),
                "--ratio beside it, which says how much all disks give",
            );
        }
        self.within_ns()?;
        if !(self.level > 0.0 && self.level < 1.0) {
            return refuse(
                "level",
                self.level.to_string(),
                "more than 0 and less than 1, such as 0.95",
            );
        }
        if !(self.records > 0.0 && self.records <= 1.0) {
            return refuse("records", self.records.to_string(), "more than 0 and at most 1 (100%)");
        }
        if !(2..=MOST_REPLICATES).contains(&self.replicates) {
            return refuse(
                "replicates",
                self.replicates.to_string(),
                &format!("2 to {MOST_REPLICATES}"),
            );
        }
        self.partition_bytes()?;
        if self.pilot < 20 {
            return refuse("pilot", self.pilot.to_string(), "at least 20 partitions");
        }
        if self.threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return refuse("threads", self.threads.unwrap_or(0).to_string(), "1 to 1024");
        }
        if !(1..=256).contains(&self.depth) {
            return refuse("depth", self.depth.to_string(), "1 to 256");
        }
        if let Some(all) = self.all_disks.filter(|all| !(1..=MOST_DISKS).contains(all)) {
            return refuse("all-disks", all.to_string(), &format!("1 to {MOST_DISKS}"));
        }
        if self.first_disk > 0 && self.all_disks.is_none() {
            return refuse(
                "first-disk",
                self.first_disk.to_string(),
                "--all-disks N beside it: how many disks all machines have",
            );
        }
        if let Some(twice) = self
            .disks
            .iter()
            .enumerate()
            .find(|(at, disk)| self.disks[..*at].iter().any(|known| is_same(known, disk)))
        {
            return refuse("disk", twice.1.clone(), "each folder once");
        }
        Ok(())
    }

    /// Which keys of a join count, where both sides are sampled.
    pub(super) fn taken(&self) -> Option<Taken> {
        self.join_keys.map(|share| Taken {
            share,
            seed: self.seed,
            certain: FxHashSet::default(),
        })
    }

    /// Refuses a sample of keys of a question that it does not answer.
    pub(super) fn check_keys(&self, plan: &Plan) -> Result<()> {
        let Some(share) = self.join_keys else { return Ok(()) };
        if plan.keys.is_none() {
            return Err(Error::input(format!(
                "--join-keys {share}: expected a query with `join`, of whose keys it takes a share"
            )));
        }
        if let Some(column) = plan.columns.iter().find(|c| matches!(c.shows, Shows::Quantile(_))) {
            return Err(Error::input(format!(
                "`{}`: expected none with --join-keys, whose intervals are those of sums; --ratio has medians and quantiles",
                column.name
            )));
        }
        Ok(())
    }

    /// Refuses what only statistics have.
    pub(super) fn check_alone(&self) -> Result<()> {
        let given = [
            ("node", self.node.is_some()),
            ("first-disk", self.first_disk > 0),
            ("all-disks", self.all_disks.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Error::input(format!(
                "--{name}: expected with --statistics only, of which one machine's are a part"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses disks whose numbers go beyond those of all.
    pub(super) fn check_disks(&self, disks: u64) -> Result<()> {
        match self.all_disks {
            Some(all) if self.first_disk.saturating_add(disks) > all => Err(Error::input(format!(
                "--first-disk {}: {disks} disks from there on, expected numbers below --all-disks {all}",
                self.first_disk
            ))),
            _ => Ok(()),
        }
    }
}
