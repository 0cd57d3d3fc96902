//! The summary of a run: the same keys everywhere.

use ftlab_core::units;
use ftlab_drive::config::DriveConfig;
use ftlab_drive::instrumented::uncollected;
use ftlab_drive::power::PowerCut;
use ftlab_drive::timed::TimedStats;
use ftlab_ftl::{Backend, Cause, Class, Counts, Ftl, TenantCounts, placement};
use ftlab_trace::filters::FilterReport;
use ftlab_trace::synth::transactions::Transactions;
use serde_json::{Map, Value, json};

use crate::measure::{End, Measured};
use crate::spec::{Precondition, RunSpec};
use crate::table::{Column, Table};
use crate::verdict::{Longer, Verdict};

/// Version of the summary's keys; more may be added under the same version.
pub const SCHEMA: &str = "ftlab.summary/1";

/// Wall times of the parts of a run before the measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    pub precondition_s: f64,
    pub warmup_s: f64,
}

pub struct Facts<'a> {
    pub spec: &'a RunSpec,
    pub config: &'a DriveConfig,
    pub workload: Value,
    pub trace: Option<Value>,
    pub filters: Vec<FilterReport>,
    pub notes: Vec<String>,
    pub before: Before,
    /// By how much time stamps were divided; `None` where requests don't come by them.
    pub speedup: Option<f64>,
    pub longer: Longer,
    /// Names of tenants by number, where the workload has some.
    pub tenant_names: Vec<String>,
    /// Flash reads served from the controller's copy of a page under way; `None` without time.
    pub controller_reads: Option<u64>,
}

pub fn summary<B: Backend>(facts: &Facts<'_>, ftl: &Ftl<B>, measured: &Measured) -> Value {
    let config = facts.config;
    let timed = B::TIMED;
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| all.insert(key.to_owned(), value);
    put("schema", SCHEMA.into());
    put("version", env!("CARGO_PKG_VERSION").into());
    put("complete", matches!(measured.end, End::Done | End::Steady).into());
    put("status", status(&measured.end).into());
    let mut notes = facts.notes.clone();
    notes.extend(nothing_asked(ftl, config));
    notes.extend(ftl.dedup_note());
    notes.extend(ftl.replication_note());
    put("notes", notes.into());
    let is_known = placement::catalogue()
        .names()
        .contains(&config.ftl.placement.name.as_str());
    let mut drive = match is_known {
        true => config.describe(),
        false => config.describe_built(ftl.frontier_count()),
    };
    if matches!(facts.spec.precondition, Precondition::FillShare(share) if share < 1.0) {
        // Theory takes the drive to be overwritten everywhere.
        let laws = drive["theory_waf"].as_object_mut();
        laws.into_iter().flatten().for_each(|(_, waf)| *waf = Value::Null);
    }
    put("drive", drive);
    put("workload", facts.workload.clone());
    if let Some(trace) = &facts.trace {
        put("trace", trace.clone());
    }
    if !facts.filters.is_empty() {
        put("filters", json!(facts.filters));
    }
    put("backend", if timed { "timed" } else { "counting" }.into());
    put("seed", facts.spec.run_seed().into());
    let verdict = measured.settling.verdict(&measured.series, uncollected(ftl));
    put("verdict", verdict.to_json(&facts.longer));
    put("counts", counts(&ftl.counts));
    if let Some(served) = facts.controller_reads {
        put("flash", json!({ "controller_reads": served }));
    }
    put("waf", waf(&ftl.counts));
    put("latency", measured.latencies.summary());
    if timed {
        let seconds = measured.sim_ns as f64 / 1e9;
        put(
            "throughput",
            json!({
                "iops": ratio(measured.requests as f64, seconds),
                "bytes_per_s": ratio(measured.bytes as f64, seconds),
                "read_bytes_per_s": ratio((measured.bytes - measured.written_bytes) as f64, seconds),
                "write_bytes_per_s": ratio(measured.written_bytes as f64, seconds),
                "simulated_s": seconds,
            }),
        );
        put(
            "lateness",
            json!({ "mean_ns": measured.late_mean_ns, "max_ns": measured.late_max_ns }),
        );
    }
    if let Some(overload) = facts.speedup.and_then(|speedup| measured.overload.to_json(speedup)) {
        put("overload", overload);
    }
    if !measured.power_cuts.is_empty() {
        put("power_cuts", measured.power_cuts.iter().map(power_cut).collect());
    }
    let missed: Vec<u64> = facts.missed_cuts(measured);
    if !missed.is_empty() {
        put("power_cuts_missed", json!(missed));
    }
    put(
        "victims",
        json!({
            "collections": ftl.counts.gc_collections,
            "emptiest_instead": ftl.counts.emptiest_instead,
        }),
    );
    if ftl.frontier_counts().len() > 1 {
        put("frontiers", json!(ftl.frontier_counts()));
    }
    if let Some(counts) = ftl.tenant_counts() {
        let named = counts.iter().map(|counts| tenant(counts, &facts.tenant_names));
        put("tenants", named.collect());
    }
    if config.ftl.placement.name == "fdp" {
        put("fdp", fdp_statistics(ftl));
    }
    if config.ftl.dedup.name != "none" {
        put("dedup", dedup(ftl));
    }
    if config.ftl.replication.name != "none" {
        put("replication", replication(ftl));
    }
    put("map_cache", map_cache(ftl));
    put("wear", wear(ftl));
    put("lifetime", lifetime(ftl, facts, measured, &verdict));
    put("memory", memory(ftl));
    put("stream_memory", json!(ftl.stream_memory()));
    let reports = ftl.policy_reports().into_iter().map(|(role, figures)| {
        let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
        (role.to_owned(), Value::Object(figures.collect()))
    });
    put("policies", Value::Object(reports.collect()));
    let host = ftl.map_host_memory();
    put(
        "perf",
        json!({
            "wall_s": measured.wall_s,
            "precondition_s": facts.before.precondition_s,
            "warmup_s": facts.before.warmup_s,
            "requests_per_s": ratio(measured.requests as f64, measured.wall_s),
            "host_units_per_s": ratio((ftl.counts.host_writes + ftl.counts.host_reads) as f64, measured.wall_s),
            "peak_rss_bytes": peak_rss_bytes(),
            "bytes_per_unit": ftl.record.bytes() as f64 / f64::from(ftl.layout.slots()),
            "map_cache_bytes": host.bytes,
            "bytes_per_cached_entry": ratio(host.bytes as f64, host.entries as f64),
        }),
    );
    Value::Object(all)
}

impl Facts<'_> {
    /// Numbers of requests after which the power was to be cut, and was not, as the run was over.
    fn missed_cuts(&self, measured: &Measured) -> Vec<u64> {
        let mut asked = self.spec.power_cuts.clone();
        asked.sort_unstable();
        asked.split_off(measured.power_cuts.len().min(asked.len()))
    }
}

/// What a tenant wrote, and the parts of its write amplification.
fn tenant(counts: &TenantCounts, names: &[String]) -> Value {
    let per_write = |units: u64| ratio(units as f64, counts.host_writes as f64);
    json!({
        "tenant": counts.tenant,
        "name": counts.tenant.and_then(|tenant| names.get(tenant as usize)),
        "host_writes": counts.host_writes,
        "programmed": counts.programmed,
        "survivors": counts.survivors,
        "wear_moves": counts.wear_moves,
        "waf": {
            "total": counts.waf(),
            "host": per_write(counts.programmed),
            "gc": per_write(counts.survivors),
            "wear": per_write(counts.wear_moves),
        },
    })
}

/// The FDP statistics log page: bytes of the host written (HBMW), bytes of the media written (MBMW) and erased (MBE).
fn fdp_statistics<B: Backend>(ftl: &Ftl<B>) -> Value {
    let geometry = &ftl.layout.geometry;
    let (unit, block) = (
        u64::from(geometry.unit_bytes),
        u64::from(geometry.pages) * u64::from(geometry.page_bytes),
    );
    json!({
        "host_bytes_written": ftl.counts.host_writes * unit,
        "media_bytes_written": ftl.counts.total_programmed() * unit,
        "media_bytes_erased": ftl.counts.erases * block,
    })
}

fn power_cut((requests, cut): &(u64, PowerCut)) -> Value {
    json!({
        "after_requests": requests,
        "lost_requests": cut.lost_requests,
        "lost_buffered_units": cut.report.lost_buffered_units,
        "torn_pages": cut.report.torn_pages,
        "checkpoint_units": cut.report.checkpoint_units,
        "scanned_pages": cut.report.scanned_pages,
        "probed_pages": cut.report.probed_pages,
        "recovery_ns": cut.recovery_ns,
    })
}

fn status(end: &End) -> String {
    match end {
        End::Done | End::Limit | End::Steady => "done".to_owned(),
        End::Stopped => "stopped".to_owned(),
        End::Broken(condition) => format!("break: {condition}"),
        End::WornOut => "end of life".to_owned(),
        End::Unsettled => "not steady".to_owned(),
    }
}

/// Counters by the names of the accounting rules; units unless the name says otherwise.
fn counts(c: &Counts) -> Value {
    let causes = ["miss_load", "evict_rmw", "gc_update", "policy"];
    let by_cause = |values: [u64; 4]| {
        Value::Object(
            causes
                .iter()
                .map(|n| (*n).to_owned())
                .zip(values.map(Value::from))
                .collect(),
        )
    };
    json!({
        "host_reads": c.host_reads,
        "host_writes": c.host_writes,
        "host_trims": c.host_trims,
        "host_flushes": c.host_flushes,
        "host_read_requests": c.host_read_requests,
        "host_write_requests": c.host_write_requests,
        "host_trim_requests": c.host_trim_requests,
        "unmapped_reads": c.unmapped_reads,
        "buffer_read_hits": c.buffer_read_hits,
        "buffer_write_hits": c.buffer_write_hits,
        "rmw_reads": c.rmw_reads,
        "data_reads": c.data_page_reads,
        "data_programs": c.data_programs(),
        "gc_data_reads": c.gc_page_reads,
        "gc_data_programs": c.gc_data_programs(),
        "gc_trans_reads": c.gc_trans_reads,
        "gc_trans_programs": c.gc_trans_programs,
        "wear_programs": c.programmed[Cause::Wear as usize],
        "replica_programs": c.programmed[Cause::Replication as usize],
        "metadata_programs": c.programmed[Cause::Metadata as usize],
        "padding": c.padding,
        "trans_reads": by_cause(c.trans_reads),
        "trans_programs": by_cause(c.trans_programs),
        "spare_reads": c.spare_reads,
        "page_programs": c.page_programs,
        "gc_collections": c.gc_collections,
        "gc_background_collections": c.gc_background_collections,
        "gc_victim_valid_mean": ratio(c.victim_valid as f64, (c.gc_collections + c.wear_collections) as f64),
        "wear_collections": c.wear_collections,
        "erases": c.erases,
        "erases_trans": c.erases_trans,
        "retired": c.retired,
        "checkpoints": c.checkpoints,
        "dedup_hits": c.dedup_hits,
        "copied_reads": c.copied_reads,
        "redirected_reads": c.redirected_reads,
        "hedged_reads": c.hedged_reads,
        "hedged_writes": c.hedged_writes,
    })
}

fn waf(c: &Counts) -> Value {
    let host = c.host_writes as f64;
    let mut parts = Map::new();
    parts.insert("total".into(), json!(c.waf()));
    for cause in Cause::ALL {
        parts.insert(cause.name().into(), ratio(c.programmed[cause as usize] as f64, host));
    }
    parts.insert("padding".into(), ratio(c.padding as f64, host));
    Value::Object(parts)
}

/// That a dedup policy had nothing to do, which compared policies would hide: all come out alike.
fn nothing_asked<B: Backend>(ftl: &Ftl<B>, config: &DriveConfig) -> Option<String> {
    let idle = config.ftl.dedup.name != "none" && ftl.counts.host_writes > 0 && ftl.counts.dedup_asked == 0;
    idle.then(|| {
        format!(
            "the dedup policy `{}` was asked about nothing: after no write were the contents of a whole mapping unit ({}) known",
            config.ftl.dedup.name,
            units::show_bytes(u64::from(config.layout.geometry.unit_bytes))
        )
    })
}

/// What the dedup policy was asked in the measurement, and what came of it.
fn dedup<B: Backend>(ftl: &Ftl<B>) -> Value {
    let c = &ftl.counts;
    json!({
        "asked": c.dedup_asked,
        "shared": c.dedup_hits,
        "shared_share": ratio(c.dedup_hits as f64, c.dedup_asked as f64),
        "idle_reads": c.dedup_page_reads,
        "work_ns": ratio(c.dedup_work_ns as f64, c.dedup_asked as f64),
        "values": ftl.indirection().in_use_count().0,
        "rows": ftl.indirection().in_use_count().1,
    })
}

/// Where reads went in the measurement, and what the copies took.
fn replication<B: Backend>(ftl: &Ftl<B>) -> Value {
    let c = &ftl.counts;
    let reads = c.host_reads as f64;
    let copies = c.programmed[Cause::Replication as usize] as f64;
    let further = ftl.further_copies();
    json!({
        "copied_reads": c.copied_reads,
        "copied_share": ratio(c.copied_reads as f64, reads),
        "redirected_reads": c.redirected_reads,
        "redirected_share": ratio(c.redirected_reads as f64, reads),
        "written": c.programmed[Cause::Replication as usize],
        "written_share": ratio(copies, c.total_programmed() as f64),
        "per_host_write": ratio(copies, c.host_writes as f64),
        "copies": further,
        "space_share": ratio(further as f64, f64::from(ftl.layout.slots())),
        "offline_ns": c.offline_ns,
        "offline_times": c.offline_times,
        "reads_tried_twice": c.reads_tried_twice,
        "reads_tried_thrice": c.reads_tried_thrice,
        "writes_tried_twice": c.writes_tried_twice,
        "writes_tried_thrice": c.writes_tried_thrice,
    })
}

fn map_cache<B: Backend>(ftl: &Ftl<B>) -> Value {
    let counts = ftl.map_counts();
    let bytes: u64 = ftl.controller_memory().iter().map(|(_, bytes)| bytes).sum();
    json!({
        "lookups": counts.lookups,
        "hits": counts.hits,
        "deferred": counts.deferred,
        "hit_ratio": ratio(counts.hits as f64, counts.lookups as f64),
        "unread_ratio": ratio((counts.hits + counts.deferred) as f64, counts.lookups as f64),
        "bytes": bytes,
    })
}

fn memory<B: Backend>(ftl: &Ftl<B>) -> Value {
    Value::Object(
        ftl.controller_memory()
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes.into()))
            .collect(),
    )
}

fn wear<B: Backend>(ftl: &Ftl<B>) -> Value {
    let erases: Vec<f64> = ftl.units.rus.iter().map(|ru| f64::from(ru.erases)).collect();
    let mean = ftl.units.mean_erases();
    let variance = erases.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / erases.len() as f64;
    json!({ "mean": mean, "max": erases.iter().copied().fold(0.0, f64::max), "std": variance.sqrt() })
}

/// Terabytes written and drive writes a day: raw capacity × P/E cycles ÷ write amplification (wear taken as even), or what
/// the host had written when the drive reached its end of life; years at the workload's own rate. What would mislead is `null`, and
/// `withheld` and `years_withheld` say why.
fn lifetime<B: Backend>(ftl: &Ftl<B>, facts: &Facts<'_>, measured: &Measured, verdict: &Verdict) -> Value {
    let config = facts.config;
    let unit = f64::from(ftl.layout.geometry.unit_bytes);
    let user = f64::from(ftl.config.logical_units) * unit;
    let worn_out = measured.end == End::WornOut;
    let withheld = verdict.misleads().filter(|_| !worn_out);
    let tbw = if worn_out {
        Some(ftl.tick as f64 * unit)
    } else {
        let raw = f64::from(ftl.layout.slots()) * unit;
        let waf = ftl.counts.waf().filter(|_| withheld.is_none());
        waf.map(|waf| raw * f64::from(config.rated_pe_cycles) / waf)
    };
    let dwpd = tbw.map(|tbw| tbw / (user * 365.0 * config.warranty_years));
    let seconds = measured.sim_ns as f64 / 1e9;
    let rate = ratio_of(ftl.counts.host_writes as f64 * unit, seconds);
    let own_rate = facts.speedup.zip(rate).map(|(speedup, rate)| rate / speedup);
    let years = tbw.zip(own_rate).map(|(tbw, rate)| tbw / rate / (365.0 * 86400.0));
    let years_withheld = match (tbw, facts.speedup) {
        (Some(_), None) if B::TIMED => {
            Some("requests come as fast as the drive completes them: the workload has no rate of its own")
        }
        (Some(_), _) if !B::TIMED => Some("the counting backend has no time"),
        _ => None,
    };
    json!({
        "tbw_bytes": tbw,
        "dwpd": dwpd,
        "years": years,
        "withheld": withheld,
        "years_withheld": years_withheld,
        "pe_cycles": config.rated_pe_cycles,
        "warranty_years": config.warranty_years,
        "worn_out": worn_out,
    })
}

/// What transactions took, with the time in which the dies work, if there is time: what was measured, and how long it took.
pub fn transactions(transactions: &Transactions, timed: Option<(&TimedStats, u64)>) -> Value {
    let seconds = timed.map(|(_, sim_ns)| sim_ns as f64 / 1e9);
    let mut all = transactions.report().to_json(seconds, transactions.policy());
    if let Some((stats, _)) = timed {
        let span = (stats.until_ns - stats.since_ns) as f64 * stats.die_busy_ns.len() as f64;
        let busy = |classes: &[Class]| {
            let of = |die: &[u64; Class::COUNT]| classes.iter().map(|&class| die[class as usize]).sum::<u64>();
            ratio(stats.die_busy_ns.iter().map(of).sum::<u64>() as f64, span)
        };
        all["busy"] = json!({
            "host": busy(&[Class::HostRead, Class::HostWrite]),
            "internal": busy(&[Class::Mapping, Class::Gc, Class::Erase]),
        });
    }
    all
}

/// `null` where there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> Value {
    json!(ratio_of(part, whole))
}

fn ratio_of(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Peak resident memory of this process; 0 where the system does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The `blocks` table: every reclaim unit.
pub fn blocks<B: Backend>(ftl: &Ftl<B>) -> Table {
    let rus = &ftl.units.rus;
    Table::new("blocks")
        .with("ru", Column::U64((0..rus.len() as u64).collect()))
        .with(
            "erases",
            Column::U64(rus.iter().map(|ru| u64::from(ru.erases)).collect()),
        )
        .with(
            "valid_units",
            Column::U64(ftl.units.valid_counts().map(u64::from).collect()),
        )
        .with(
            "state",
            Column::Text(
                rus.iter()
                    .map(|ru| format!("{:?}", ru.state).to_lowercase().into())
                    .collect(),
            ),
        )
}

/// The `dies` and `channels` tables: shares of the measured time.
pub fn utilisation(stats: &TimedStats) -> [Table; 2] {
    let span = (stats.until_ns - stats.since_ns).max(1) as f64;
    let dies = stats.die_busy_ns.len() as u64;
    let mut table = Table::new("dies").with("die", Column::U64((0..dies).collect()));
    for class in Class::ALL {
        let share = stats
            .die_busy_ns
            .iter()
            .map(|busy| busy[class as usize] as f64 / span)
            .collect();
        table = table.with(class.name(), Column::F64(share));
    }
    let channels = stats.channel_busy_ns.len() as u64;
    let busy = stats.channel_busy_ns.iter().map(|busy| *busy as f64 / span).collect();
    let channels = Table::new("channels")
        .with("channel", Column::U64((0..channels).collect()))
        .with("busy", Column::F64(busy));
    [table, channels]
}
