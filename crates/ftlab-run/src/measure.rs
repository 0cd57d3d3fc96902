//! The loop of a run: requests into the drive, completions out, on either backend.

use std::time::Instant;

use ftlab_core::{Batch, OpKind, Result, Source};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::device::{Completion, Device};
use ftlab_drive::front::FtlFront;
use ftlab_drive::power::{self, PowerCut};
use ftlab_ftl::{Admitted, Backend, Counting, Ftl, HostRequest, Ticket};

use crate::Progress;
use crate::latency::{Latencies, RequestRow, RequestRows};
use crate::sampler::{Reading, Sampler};
use crate::watch::{BreakAt, Present, Watch};
use crate::workload::{Pace, Workload};

/// Requests that the look-ahead brings into the cache before their turn, and half-way there.
const AHEAD_MAP: usize = 16;
const AHEAD_OLD: usize = 8;

/// Host units after which write amplification may end a run.
const SETTLED_UNITS: u64 = 4096;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The workload is over.
    Done,
    /// The observer stopped it.
    Stopped,
    /// The user's condition holds.
    Broken(String),
    /// The drive takes no more writes.
    WornOut,
    /// The limit of a warm-up is reached.
    Limit,
}

/// What a measurement leaves behind, besides the drive.
pub struct Measured {
    pub end: End,
    pub requests: u64,
    pub bytes: u64,
    pub wall_s: f64,
    pub sim_ns: u64,
    pub series: Sampler,
    pub latencies: Latencies,
    pub rows: Option<RequestRows>,
    /// Open loop: how late requests were submitted, mean and most.
    pub late_mean_ns: f64,
    pub late_max_ns: u64,
    /// Requests completed before each power cut, and what it did.
    pub power_cuts: Vec<(u64, PowerCut)>,
}

/// How far a part of a run goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    pub host_units: Option<u64>,
    pub requests: Option<u64>,
}

pub struct Plan<'a> {
    pub phase: &'a str,
    pub total_requests: Option<u64>,
    pub limit: Limit,
    pub break_at: Option<&'a BreakAt>,
    /// Power fails after so many requests; ascending.
    pub power_cuts: &'a [u64],
    pub config: &'a DriveConfig,
}

fn reading<B: Backend>(ftl: &Ftl<B>, requests: u64, bytes: u64, time_ns: u64, sums: &Sums) -> Reading {
    let reading = Reading {
        tick: ftl.tick,
        time_ns,
        requests,
        bytes,
        read_ns: sums.read_ns,
        reads: sums.reads,
        write_ns: sums.write_ns,
        writes: sums.writes,
        free_units: ftl.units.pools.iter().map(|pool| pool.free).sum(),
        ..Reading::default()
    };
    reading.with_counts(&ftl.counts)
}

fn present<B: Backend>(ftl: &Ftl<B>, sums: &Sums) -> Present {
    Present {
        // A ratio of a handful of writes says nothing: one collection would break off every run.
        waf: ftl
            .counts
            .waf()
            .filter(|_| ftl.counts.host_writes >= SETTLED_UNITS)
            .unwrap_or(f64::NAN),
        free: ftl.units.pools.iter().map(|pool| pool.free).min().unwrap_or(0),
        erases: ftl.counts.erases,
        retired: ftl.counts.retired,
        host_writes: ftl.counts.host_writes,
        read_us: sums.read_ns as f64 / 1e3 / (sums.reads.max(1)) as f64,
        write_us: sums.write_ns as f64 / 1e3 / (sums.writes.max(1)) as f64,
    }
}

/// Latency sums so far, for the time series.
#[derive(Clone, Copy, Default)]
struct Sums {
    read_ns: u128,
    reads: u64,
    write_ns: u128,
    writes: u64,
}

/// A batch of which a part has been run: where a warm-up of so many requests ends, the measurement goes on.
#[derive(Default)]
pub struct Held {
    batch: Batch,
    /// The next request of `batch`.
    next: usize,
}

/// Runs what is `held`, then `workload` on the counting backend.
pub fn count(
    ftl: &mut Ftl<Counting>,
    workload: &mut Workload,
    held: &mut Held,
    plan: &Plan<'_>,
    watch: &mut Watch<'_>,
) -> Result<Measured> {
    let started = Instant::now();
    let shift = ftl.layout.geometry.unit_bytes.trailing_zeros();
    let (mut requests, mut bytes) = (0, 0u64);
    let mut series = Sampler::default();
    let Held { batch, next } = held;
    let none = Sums::default();
    let mut cuts = plan.power_cuts.iter().copied().peekable();
    let mut power_cuts = Vec::new();
    let end = 'run: loop {
        if *next == batch.len() {
            workload.next_batch(batch)?;
            *next = 0;
        }
        if batch.is_empty() {
            break End::Done;
        }
        let left = plan.limit.requests.map_or(u64::MAX, |most| most - requests);
        let (first, n) = (*next, batch.len().min(next.saturating_add(left as usize)));
        *next = n;
        let first_unit = |i: usize| (batch.offset[i] >> shift) as u32;
        for i in first..n {
            if i + AHEAD_MAP < n {
                ftl.prefetch_map(first_unit(i + AHEAD_MAP));
            }
            if i + AHEAD_OLD < n {
                ftl.prefetch_old(first_unit(i + AHEAD_OLD));
            }
            if ftl.admit(&HostRequest::of_batch(batch, i, shift), Ticket::NONE) == Admitted::EndOfLife {
                break 'run End::WornOut;
            }
            requests += 1;
            bytes += u64::from(batch.length[i]);
            if cuts.next_if(|&at| requests >= at).is_some() {
                power_cuts.push((requests, power::cut_power(ftl, plan.config)));
            }
            if series.due(requests) {
                series.add(reading(ftl, requests, bytes, 0, &none));
                if let Some(condition) = plan.break_at.filter(|c| c.holds(&present(ftl, &none))) {
                    break 'run End::Broken(condition.text().to_owned());
                }
            }
        }
        if plan.limit.reached(requests, ftl.counts.host_writes) {
            break End::Limit;
        }
        if watch.due() && !watch.report(progress(ftl, plan, requests, bytes, 0)) {
            break End::Stopped;
        }
    };
    series.finish(reading(ftl, requests, bytes, 0, &none));
    Ok(Measured {
        end,
        requests,
        bytes,
        wall_s: started.elapsed().as_secs_f64(),
        sim_ns: 0,
        series,
        latencies: Latencies::default(),
        rows: None,
        late_mean_ns: 0.0,
        late_max_ns: 0,
        power_cuts,
    })
}

impl Limit {
    fn reached(&self, requests: u64, host_units: u64) -> bool {
        self.requests.is_some_and(|most| requests >= most) || self.host_units.is_some_and(|most| host_units >= most)
    }
}

fn progress<B: Backend>(ftl: &Ftl<B>, plan: &Plan<'_>, requests: u64, bytes: u64, sim_time_ns: u64) -> Progress {
    Progress {
        phase: plan.phase.to_owned(),
        done_requests: requests,
        total_requests: plan.total_requests,
        done_bytes: bytes,
        waf: ftl.counts.waf().unwrap_or(f64::NAN),
        sim_time_ns,
        ..Progress::default()
    }
}

/// A request under way: what its completion does not carry.
#[derive(Clone, Copy, Default)]
struct UnderWay {
    arrived_ns: u64,
    offset: u64,
    length: u32,
}

/// The requests of a workload one by one.
struct Feed<'a> {
    workload: &'a mut Workload,
    batch: Batch,
    next: usize,
    over: bool,
}

impl Feed<'_> {
    /// Index of the next request in `batch`; `None` at the end.
    #[inline]
    fn peek(&mut self) -> Result<Option<usize>> {
        if self.next == self.batch.len() && !self.over {
            self.workload.next_batch(&mut self.batch)?;
            self.next = 0;
            self.over = self.batch.is_empty();
        }
        Ok((!self.over).then_some(self.next))
    }
}

/// Runs what is `held`, then `workload` on a device with time.
pub fn time(
    device: &mut Device<FtlFront>,
    workload: &mut Workload,
    held: Held,
    pace: Pace,
    keep_rows: bool,
    plan: &Plan<'_>,
    watch: &mut Watch<'_>,
) -> Result<Measured> {
    let started = Instant::now();
    let shift = device.front().ftl.layout.geometry.unit_bytes.trailing_zeros();
    let (speedup, limit, open) = match pace {
        Pace::Open { speedup, limit } => (speedup, limit, true),
        Pace::Closed { depth } => (1.0, depth, false),
    };
    let mut feed = Feed {
        workload,
        batch: held.batch,
        next: held.next,
        over: false,
    };
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut idle_tags: Vec<u32> = Vec::new();
    let mut completions: Vec<Completion> = Vec::new();
    let mut latencies = Latencies::default();
    let mut rows = keep_rows.then(RequestRows::default);
    let mut series = Sampler::default();
    let (mut sums, mut requests, mut bytes) = (Sums::default(), 0u64, 0u64);
    let (mut late_sum, mut late_max, mut submitted) = (0u128, 0u64, 0u64);
    let mut now = 0u64;
    let mut origin: Option<u64> = None;
    let mut until_report = 1024u32;
    let mut cuts = plan.power_cuts.iter().copied().peekable();
    let mut power_cuts = Vec::new();
    let end = 'run: loop {
        // Submit what may be submitted now.
        let mut next_arrival = None;
        while device.outstanding() < limit as usize {
            let Some(i) = feed.peek()? else { break };
            let arrival = if open {
                let stamp = feed.batch.time_ns[i];
                let since = stamp - *origin.get_or_insert(stamp);
                if speedup == 1.0 {
                    since
                } else {
                    (since as f64 / speedup) as u64
                }
            } else {
                now
            };
            if arrival > now {
                next_arrival = Some(arrival);
                break;
            }
            let late = now - arrival;
            late_sum += u128::from(late);
            late_max = late_max.max(late);
            submitted += 1;
            let tag = idle_tags.pop().unwrap_or(under_way.len() as u32);
            if tag as usize == under_way.len() {
                under_way.push(UnderWay::default());
            }
            under_way[tag as usize] = UnderWay {
                arrived_ns: arrival,
                offset: feed.batch.offset[i],
                length: feed.batch.length[i],
            };
            let request = HostRequest::of_batch(&feed.batch, i, shift);
            device.submit(u64::from(tag), &request, now);
            feed.next += 1;
            if let Some(&ahead) = feed.batch.offset.get(feed.next + limit.min(8) as usize) {
                device.prefetch(ftlab_core::Lpn((ahead >> shift) as u32), 1);
            }
        }
        // Let time pass until something completes or arrives.
        let wakeup = device.next_wakeup();
        now = match (wakeup, next_arrival) {
            (Some(wakeup), Some(arrival)) => wakeup.min(arrival),
            (Some(wakeup), None) => wakeup,
            (None, Some(arrival)) => arrival,
            (None, None) if device.outstanding() == 0 => break End::Done,
            (None, None) => unreachable!("{} requests wait for nothing", device.outstanding()),
        };
        // Background work may go on for ever; the run ends with the last request.
        if device.outstanding() == 0 && next_arrival.is_none() && feed.peek()?.is_none() {
            break End::Done;
        }
        device.advance(now, &mut completions);
        for done in completions.drain(..) {
            let tag = done.tag as usize;
            idle_tags.push(tag as u32);
            let UnderWay {
                arrived_ns,
                offset,
                length,
            } = under_way[tag];
            if done.refused {
                break 'run End::WornOut;
            }
            let latency_ns = done.done_ns - arrived_ns;
            latencies.record(done.op, latency_ns, &done.parts);
            match done.op {
                OpKind::Read => (sums.read_ns, sums.reads) = (sums.read_ns + u128::from(latency_ns), sums.reads + 1),
                OpKind::Write => {
                    (sums.write_ns, sums.writes) = (sums.write_ns + u128::from(latency_ns), sums.writes + 1)
                }
                OpKind::Trim | OpKind::Flush => {}
            }
            if let Some(rows) = &mut rows {
                let row = RequestRow {
                    time_ns: arrived_ns,
                    op: done.op,
                    offset,
                    length,
                    latency_ns,
                    parts: done.parts,
                };
                rows.push(&row);
            }
            requests += 1;
            if matches!(done.op, OpKind::Read | OpKind::Write) {
                bytes += u64::from(length);
            }
            if series.due(requests) {
                let ftl = &device.front().ftl;
                series.add(reading(ftl, requests, bytes, now, &sums));
                if let Some(condition) = plan.break_at.filter(|c| c.holds(&present(ftl, &sums))) {
                    break 'run End::Broken(condition.text().to_owned());
                }
            }
            until_report = until_report.saturating_sub(1);
        }
        if cuts.next_if(|&at| requests >= at).is_some() {
            let cut = device.cut_power(plan.config);
            power_cuts.push((requests, cut));
            // Nothing that was under way completes; the host comes back when the drive does.
            under_way.clear();
            idle_tags.clear();
            now += cut.recovery_ns;
        }
        if until_report < 512 {
            until_report = 1024 + 512;
            if watch.due() {
                let progress = progress(&device.front().ftl, plan, requests, bytes, now);
                if !watch.report(progress) {
                    break End::Stopped;
                }
            }
        }
    };
    series.finish(reading(&device.front().ftl, requests, bytes, now, &sums));
    Ok(Measured {
        end,
        requests,
        bytes,
        wall_s: started.elapsed().as_secs_f64(),
        sim_ns: now,
        series,
        latencies,
        rows,
        late_mean_ns: late_sum as f64 / submitted.max(1) as f64,
        late_max_ns: late_max,
        power_cuts,
    })
}
