//! What theory says a drive must measure: `ftlab theory --drive`.

use ftlab_core::theory::{self, EffectiveSpare, VictimLaw};
use ftlab_ftl::mapping::tables_in_flash;
use serde_json::{Map, Value, json};

use super::DriveConfig;

/// Choices of the `d_choices` policy when its file names none.
const DEFAULT_D: u32 = 10;

impl DriveConfig {
    /// The law of this drive's victim policy; `None` where theory has none.
    pub fn victim_law(&self) -> Option<VictimLaw> {
        VictimLaw::of(&self.ftl.victim, DEFAULT_D)
    }

    /// No table of the map is paged from flash.
    pub(super) fn has_map_in_memory(&self) -> bool {
        tables_in_flash(&self.ftl.mapping, false, false) == 0
    }
}

/// Spare, write amplification, unloaded latencies and ceilings of `config`. Times in nanoseconds, rates per second.
pub fn theory_report(config: &DriveConfig) -> Value {
    let space = config.space();
    let effective = config.effective_spare();
    // Nothing is known of the pages of a map in flash, which are collected as well.
    let plain = effective.as_ref().filter(|_| config.has_map_in_memory());
    json!({
        "drive": config.name,
        "raw_units": space.raw,
        "logical_units": space.logical,
        "op_ratio": (space.raw - space.logical) as f64 / space.logical as f64,
        "spare_factor": (space.raw - space.logical) as f64 / space.raw as f64,
        "reclaim_unit_units": config.layout.slots_per_ru,
        "reclaim_units": config.layout.rus,
        "free_reserved_units": config.reserved_units(),
        "open_units": space.open_rus * space.per_ru,
        "map_units": space.tables,
        "effective": effective.map(|e| json!({
            "usable_units": e.usable_units,
            "rho": e.rho,
            "spare_factor": e.spare_factor,
            "op_ratio": e.op_ratio,
        })),
        "tolerance": tolerance(config, effective.as_ref()),
        "waf": match plain {
            Some(e) => write_amplification(config, e.rho),
            None if effective.is_some() => json!("not known where the map lies in flash, whose pages are written and collected as well"),
            None => Value::Null,
        },
        "latency": latency(config),
        "ceilings": ceilings(config, plain),
    })
}

/// How near a drive that was filled and overwritten five times must come: 0.5 % from 10,000 reclaim units in a pool and a
/// spare factor of 0.07, 1 % below that. In small pools half a reclaim unit more or less of spare shows as well.
fn tolerance(config: &DriveConfig, effective: Option<&EffectiveSpare>) -> Option<f64> {
    let in_pool = config.layout.rus / config.pools();
    effective.map(|e| match in_pool {
        10_000.. if e.spare_factor >= 0.07 => 0.005,
        10_000.. => 0.01,
        _ => 0.01 + 0.5 / (f64::from(in_pool) * e.spare_factor),
    })
}

fn write_amplification(config: &DriveConfig, rho: f64) -> Value {
    let b = config.layout.slots_per_ru;
    let laws = [
        ("greedy", VictimLaw::Greedy),
        ("fifo", VictimLaw::Fifo),
        ("d_choices:d=10", VictimLaw::DChoices(10)),
        ("d_choices:d=5", VictimLaw::DChoices(5)),
        ("d_choices:d=2", VictimLaw::DChoices(2)),
        ("random", VictimLaw::Random),
    ];
    let uniform: Map<String, Value> = laws
        .iter()
        .map(|&(name, law)| (name.to_owned(), json!(theory::waf(law, rho, b))))
        .collect();
    let skewed: Map<String, Value> = [("80/20", 0.2, 0.8), ("90/10", 0.1, 0.9)]
        .into_iter()
        .map(|(name, units, writes)| {
            let classes = theory::hot_cold(units, writes);
            let split = |law| theory::static_split(law, rho, b, &classes);
            let (fifo, greedy) = (split(VictimLaw::Fifo), split(VictimLaw::Greedy));
            let value = json!({
                "mixed_fifo": theory::fifo_with_classes(rho, &classes),
                "separated_fifo": fifo.waf,
                "separated_greedy": greedy.waf,
                "hot_share_of_spare": greedy.first_share,
            });
            (name.to_owned(), value)
        })
        .collect();
    json!({
        "configured": config.victim_law().map(|law| theory::waf(law, rho, b)),
        "configured_victim": config.ftl.victim.show(),
        "uniform": uniform,
        "sequential": 1.0,
        "hot_cold": skewed,
    })
}

/// One unit read or written on an idle drive, part by part; over the page types: mean, least, most.
fn latency(config: &DriveConfig) -> Value {
    let (t, host) = (&config.timing, &config.host);
    let unit = u64::from(config.layout.geometry.unit_bytes);
    let link = host.transfer_ns(unit);
    let transfer = t.transfer_ns(unit);
    let read_fixed = host.command_ns + host.read_setup_ns + t.read_command_ns + transfer + t.ecc_ns + link;
    let write_fixed = host.command_ns + host.write_setup_ns + link + t.program_command_ns + transfer;
    let total = |fixed: u64, cell: &[u64]| {
        json!({
            "mean_ns": fixed as f64 + mean(cell),
            "min_ns": fixed + cell.iter().min().copied().unwrap_or(0),
            "max_ns": fixed + cell.iter().max().copied().unwrap_or(0),
        })
    };
    json!({
        "unit_bytes": unit,
        "read": {
            "total": total(read_fixed, &t.read_ns),
            "command_ns": host.command_ns,
            "setup_ns": host.read_setup_ns,
            "flash_command_ns": t.read_command_ns,
            "t_r_ns": t.read_ns,
            "transfer_ns": transfer,
            "ecc_ns": t.ecc_ns,
            "link_ns": link,
        },
        "write": {
            "total": total(write_fixed, &t.program_ns),
            "command_ns": host.command_ns,
            "setup_ns": host.write_setup_ns,
            "link_ns": link,
            "flash_command_ns": t.program_command_ns,
            "transfer_ns": transfer,
            "t_prog_ns": t.program_ns,
        },
        "buffered_write_ns": (config.ftl.buffer.policy.name != "none").then_some(host.command_ns + host.write_setup_ns + link),
        "mapping": "a map in memory; each translation page that must be loaded adds a page read",
    })
}

/// What no schedule can exceed: every channel, every die, the link, the controller busy all the time.
fn ceilings(config: &DriveConfig, effective: Option<&EffectiveSpare>) -> Value {
    let (t, g, host) = (&config.timing, &config.layout.geometry, &config.host);
    let (page, unit) = (u64::from(g.page_bytes), u64::from(g.unit_bytes));
    let (channels, dies) = (f64::from(g.channels), f64::from(g.total_dies()));
    // Pages of one number work together; single random units do not meet.
    let together = if t.multi_plane { f64::from(g.planes) } else { 1.0 };
    let (t_r, t_prog) = (mean(&t.read_ns), mean(&t.program_ns));
    // A die holds the data until the channel has taken it, so its transfers count as busy time.
    let bound = |command: u64, cell: f64, bytes: u64, together: f64| {
        let on_channel = (command + t.transfer_ns(bytes)) as f64;
        let channel = channels * 1e9 / on_channel;
        let die = dies * together * 1e9 / (cell + together * on_channel);
        (channel, die)
    };
    let link_rate = |bytes: u64| match host.transfer_ns(bytes) {
        0 => None,
        ns => Some(1e9 / ns as f64),
    };
    let controller = (host.command_ns > 0).then(|| 1e9 / host.command_ns as f64);
    let pages = |command: u64, cell: f64| {
        let (channel, die) = bound(command, cell, page, together);
        let scale = page as f64;
        json!({
            "channel_bytes_per_s": channel * scale,
            "die_bytes_per_s": die * scale,
            "link_bytes_per_s": link_rate(page).map(|rate| rate * scale),
            "bytes_per_s": least(&[Some(channel), Some(die), link_rate(page)]) * scale,
        })
    };
    let (unit_channel, unit_die) = bound(t.read_command_ns, t_r, unit, 1.0);
    let steady = effective.zip(config.victim_law()).map(|(e, law)| {
        let waf = theory::waf(law, e.rho, config.layout.slots_per_ru);
        // Per page of host data: WAF programs, WAF − 1 reads, and its share of erases, on dies that never rest.
        let program = t_prog + together * (t.program_command_ns + t.transfer_ns(page)) as f64;
        let read = t_r + together * (t.read_command_ns + t.transfer_ns(page)) as f64;
        let erase = (t.erase_ns + t.erase_command_ns) as f64 / f64::from(g.pages);
        let busy = (waf * (program + erase) + (waf - 1.0) * read) / together;
        json!({ "waf": waf, "bytes_per_s": dies * 1e9 / busy * page as f64 })
    });
    json!({
        "read_pages": pages(t.read_command_ns, t_r),
        "program_pages": pages(t.program_command_ns, t_prog),
        "random_unit_reads": {
            "channel_iops": unit_channel,
            "die_iops": unit_die,
            "link_iops": link_rate(unit),
            "controller_iops": controller,
            "iops": least(&[Some(unit_channel), Some(unit_die), link_rate(unit), controller]),
        },
        "steady_random_write": steady,
    })
}

fn mean(ns: &[u64]) -> f64 {
    ns.iter().sum::<u64>() as f64 / ns.len() as f64
}

fn least(rates: &[Option<f64>]) -> f64 {
    rates.iter().flatten().copied().fold(f64::INFINITY, f64::min)
}
