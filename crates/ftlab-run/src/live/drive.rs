//! The drive that clients use, and what is told of it as of a run.

use ftlab_core::{BlockDevice, Completion, DeviceGeometry, IoRequest, LiveDrive, Lpn, PowerLoss, flags};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::device::Device;
use ftlab_drive::front::FtlFront;
use ftlab_drive::instrumented::{Gauges, Instrumented};
use ftlab_drive::power::PowerCut;
use ftlab_drive::timed::Timed;
use ftlab_ftl::Class;
use serde_json::{Map, Value, json};

use crate::Progress;
use crate::sampler::Sampler;
use crate::table::{Column, Table};
use crate::time::{Request, Tally};
use crate::watch::Watch;

/// A simulated drive that a server drives.
pub struct Live<'a, 'b> {
    pub(super) device: Device<FtlFront<Timed>>,
    pub(super) config: &'a DriveConfig,
    pub(super) watch: &'a mut Watch<'b>,
    pub(super) tally: Tally,
    pub(super) series: Sampler,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) power_cuts: Vec<(u64, PowerCut)>,
    /// When the figures began.
    pub(super) since_ns: u64,
    /// The time that was seen last.
    pub(super) now_ns: u64,
}

/// Every request that entered the drive.
#[derive(Default)]
pub(super) struct Arrivals {
    time_ns: Vec<u64>,
    op: Vec<std::borrow::Cow<'static, str>>,
    offset: Vec<u64>,
    length: Vec<u64>,
    volume: Vec<u64>,
    flags: Vec<u64>,
}

impl Arrivals {
    fn push(&mut self, io: &IoRequest<'_>, now_ns: u64) {
        self.time_ns.push(now_ns);
        self.op.push(io.op.name().into());
        self.offset.push(io.offset);
        self.length.push(u64::from(io.length));
        self.volume.push(u64::from(io.context.volume));
        // What is said of contents is not recorded, as contents are not.
        self.flags.push(u64::from(io.context.flags & !flags::WHOLE_UNITS));
    }

    /// The `arrivals` table: a trace.
    pub(super) fn table(self) -> Table {
        Table::new("arrivals")
            .with("time_ns", Column::U64(self.time_ns))
            .with("op", Column::Text(self.op))
            .with("offset", Column::U64(self.offset))
            .with("length", Column::U64(self.length))
            .with("volume", Column::U64(self.volume))
            .with("flags", Column::U64(self.flags))
    }
}

impl BlockDevice for Live<'_, '_> {
    fn geometry(&self) -> DeviceGeometry {
        self.device.geometry()
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.device.submit(tag, io, now_ns);
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.device.next_wakeup()
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        self.device.advance(now_ns, out);
    }

    fn advance_to_completion(&mut self, until_ns: Option<u64>, out: &mut Vec<Completion>) -> Option<u64> {
        self.device.advance_to_completion(until_ns, out)
    }
}

impl LiveDrive for Live<'_, '_> {
    fn submitted(&mut self, io: &IoRequest<'_>, now_ns: u64) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push(io, now_ns);
        }
    }

    fn completed(&mut self, done: &Completion, offset: u64, length: u32) {
        let request = Request {
            arrived_ns: done.submitted_ns,
            offset,
            length,
        };
        self.tally.add(done, request);
        self.now_ns = self.now_ns.max(done.done_ns);
        if self.series.due(self.tally.requests) {
            let gauges = self.device.gauges();
            let reading = self.tally.reading(&gauges, self.now_ns - self.since_ns);
            self.series.add(reading, self.tally.latencies.tails());
        }
    }

    fn wear(&self) -> f64 {
        self.device.mean_erases() / f64::from(self.config.rated_pe_cycles)
    }

    fn wears_out(&self) -> bool {
        self.config.ftl.erase_limit.is_some()
    }

    fn fail_die(&mut self, die: u32) -> u64 {
        self.device.fail_die(die)
    }

    fn is_lost(&self, unit: u64) -> bool {
        self.device.is_lost(unit)
    }

    fn version(&self, unit: u64) -> Option<u32> {
        let ftl = &self.device.front().ftl;
        (self.config.ftl.checkpoint_units > 0).then(|| ftl.stamp(Lpn(unit as u32)))
    }

    fn keeps_what_it_acknowledged(&self) -> bool {
        let ftl = &self.config.ftl;
        let writes_through = ["none", "write_through"].contains(&ftl.buffer.policy.name.as_str());
        // What deduplication has shared is in the journal, which a flush writes.
        ftl.buffer.power_loss_protected || (writes_through && ftl.dedup.name == "none")
    }

    fn cut_power(&mut self) -> PowerLoss {
        let cut = self.device.cut_power();
        self.power_cuts.push((self.tally.requests, cut));
        PowerLoss {
            recovery_ns: cut.recovery_ns,
        }
    }

    fn figures(&mut self, now_ns: u64) -> Value {
        let gauges = self.device.gauges();
        let seconds = now_ns.saturating_sub(self.since_ns) as f64 / 1e9;
        let per_write = |units: u64| (gauges.host_writes > 0).then(|| units as f64 / gauges.host_writes as f64);
        let [host, gc, map, wear, replication, metadata] = gauges.programmed;
        let ftl = &self.device.front().ftl;
        let counts = ftl.map_counts();
        let stats = ftl.backend.stats();
        let busy_s = |class: Class| stats.die_busy_ns.iter().map(|die| die[class as usize]).sum::<u64>() as f64 / 1e9;
        let die_busy_s: Map<String, Value> = Class::ALL
            .into_iter()
            .map(|class| (class.name().to_owned(), json!(busy_s(class))))
            .collect();
        json!({
            "drive": self.config.name,
            "device_s": seconds,
            "requests": self.tally.requests,
            "bytes": self.tally.bytes,
            "written_bytes": self.tally.written_bytes,
            "latency": self.tally.latencies.summary(),
            "waf": {
                "total": gauges.waf(), "host": per_write(host), "gc": per_write(gc), "map": per_write(map),
                "wear": per_write(wear), "replication": per_write(replication), "metadata": per_write(metadata),
                "padding": per_write(gauges.padding),
            },
            "host_writes": gauges.host_writes,
            "erases": gauges.erases,
            "retired": gauges.retired,
            "collections": gauges.collections,
            "free_units": gauges.free_units,
            "units": ftl.units.rus.len(),
            "dies": stats.die_busy_ns.len(),
            "die_busy_s": die_busy_s,
            "map_cache": { "lookups": counts.lookups, "hits": counts.hits },
            "end_of_life": ftl.end_of_life,
        })
    }

    fn reset(&mut self, now_ns: u64) {
        let ftl = &mut self.device.front_mut().ftl;
        ftl.reset_counts();
        ftl.backend.clear_stats();
        self.tally = Tally::new(self.tally.rows.is_some());
        self.series = Sampler::timed();
        self.since_ns = now_ns;
        self.now_ns = now_ns;
    }

    fn goes_on(&mut self, now_ns: u64) -> bool {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.watch.due() {
            return !self.watch.stopped;
        }
        let gauges: Gauges = self.device.gauges();
        self.watch.report(Progress {
            phase: "serve".to_owned(),
            done_requests: self.tally.requests,
            done_bytes: self.tally.bytes,
            waf: gauges.waf().unwrap_or(f64::NAN),
            sim_time_ns: now_ns,
            ..Progress::default()
        })
    }

    fn content_bytes(&self) -> Option<u32> {
        let unit = self.config.layout.geometry.unit_bytes;
        match self.config.ftl.dedup.name.as_str() {
            "none" => None,
            // It looks at quarters of units.
            "finededup" if unit >= 2048 => Some(unit / 4),
            _ => Some(unit),
        }
    }
}
