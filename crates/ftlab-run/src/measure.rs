//! What a measurement is made of, and its loop on the counting backend. `time` has the loop of devices with time.

use std::ops::Range;
use std::time::Instant;

use ftlab_core::request::CONTENT_BYTES;
use ftlab_core::{Batch, IoContext, Lpn, OpKind, Result, Source};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::instrumented::{Gauges, uncollected};
use ftlab_drive::power::{self, PowerCut};
use ftlab_drive::tiles::tiles;
use ftlab_ftl::look_ahead::GROUP;
use ftlab_ftl::{Admitted, Counting, Ftl, HostRequest, Ticket};

use crate::Progress;
use crate::film::{Film, MOST_TILES};
use crate::latency::{Latencies, RequestRows};
use crate::overload::Overload;
use crate::sampler::{Reading, Sampler};
use crate::settling::{Settles, Settling};
use crate::watch::{BreakAt, Present, Watch};
use crate::workload::Workload;

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
    /// The run was to go on until it is steady, and is.
    Steady,
    /// The run was to go on until it is steady, and is not after all that it may write.
    Unsettled,
}

/// What a measurement leaves behind, besides the drive.
pub struct Measured {
    pub end: End,
    pub requests: u64,
    pub bytes: u64,
    /// Of `bytes`; counted where there is time.
    pub written_bytes: u64,
    pub wall_s: f64,
    pub sim_ns: u64,
    pub series: Sampler,
    /// If it was asked for.
    pub film: Option<Film>,
    pub settling: Settling,
    pub latencies: Latencies,
    pub rows: Option<RequestRows>,
    /// Open loop: how late requests were submitted, mean and most.
    pub late_mean_ns: f64,
    pub late_max_ns: u64,
    pub overload: Overload,
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
    pub settles: Settles,
    /// Whether a film is made.
    pub film: bool,
}

/// What an observer's condition may name.
pub fn present(gauges: &Gauges, latencies: &Latencies) -> Present {
    let mean_us = |op| {
        let (sum_ns, count) = latencies.sum_of(op);
        sum_ns as f64 / 1e3 / (count.max(1)) as f64
    };
    Present {
        // A ratio of a handful of writes says nothing: one collection would break off every run.
        waf: gauges
            .waf()
            .filter(|_| gauges.host_writes >= SETTLED_UNITS)
            .unwrap_or(f64::NAN),
        free: gauges.least_free_units,
        erases: gauges.erases,
        retired: gauges.retired,
        host_writes: gauges.host_writes,
        read_us: mean_us(OpKind::Read),
        write_us: mean_us(OpKind::Write),
    }
}

/// A batch of which a part has been run: where a warm-up of so many requests ends, the measurement goes on.
#[derive(Default)]
pub struct Held {
    pub batch: Batch,
    /// The next request of `batch`.
    pub next: usize,
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
    let mut settling = Settling::new(plan.settles);
    let Held { batch, next } = held;
    let latencies = Latencies::default();
    let first = |ftl: &Ftl<Counting>| Reading::new(&Gauges::of(ftl), &latencies, 0, 0, 0);
    let mut film = plan.film.then(|| Film::new(first(ftl), tiles(ftl, MOST_TILES)));
    let mut cuts = plan.power_cuts.iter().copied();
    let mut next_cut = cuts.next().unwrap_or(u64::MAX);
    let mut power_cuts = Vec::new();
    let end = 'run: loop {
        // Stopped in what came before: a run that is not warmed up as asked is no measurement.
        if watch.stopped {
            break End::Stopped;
        }
        if *next == batch.len() {
            workload.next_batch(batch)?;
            *next = 0;
        }
        if batch.is_empty() {
            break End::Done;
        }
        let left = plan.limit.requests.map_or(u64::MAX, |most| most - requests);
        let (mut first, n) = (*next, batch.len().min(next.saturating_add(left as usize)));
        *next = n;
        let mut way = Way::of(ftl, batch);
        while first < n {
            // Nothing is looked at before so many requests.
            let undisturbed = next_cut.min(series.next_due()).saturating_sub(requests).max(1);
            let end = n.min(first.saturating_add(undisturbed as usize));
            let admitted = admit_each(ftl, batch, first..end, shift, way, &mut bytes);
            requests += admitted as u64;
            if admitted < end - first {
                break 'run End::WornOut;
            }
            first = end;
            if requests >= next_cut {
                power_cuts.push((requests, power::cut_power(ftl, plan.config)));
                next_cut = cuts.next().unwrap_or(u64::MAX);
                way = Way::of(ftl, batch);
            }
            if series.due(requests) {
                let gauges = Gauges::of(ftl);
                let reading = Reading::new(&gauges, &latencies, requests, bytes, 0);
                series.add(reading, latencies.tails());
                if let Some(film) = &mut film {
                    film.look(reading, |most| tiles(ftl, most));
                }
                if let Some(condition) = plan.break_at.filter(|c| c.holds(&present(&gauges, &latencies))) {
                    break 'run End::Broken(condition.text().to_owned());
                }
                if let Some(end) = settling.look(&series, workload.passes(), || uncollected(ftl)) {
                    break 'run end;
                }
            }
        }
        if plan.limit.reached(requests, ftl.counts.host_writes) {
            break End::Limit;
        }
        if watch.due() && !watch.report(progress(&Gauges::of(ftl), plan, requests, bytes, 0)) {
            break End::Stopped;
        }
    };
    let last = Reading::new(&Gauges::of(ftl), &latencies, requests, bytes, 0);
    series.finish(last, latencies.tails());
    if let Some(film) = &mut film {
        film.finish(last, |most| tiles(ftl, most));
    }
    Ok(Measured {
        end,
        requests,
        bytes,
        written_bytes: 0,
        wall_s: started.elapsed().as_secs_f64(),
        sim_ns: 0,
        series,
        film,
        settling,
        latencies,
        rows: None,
        late_mean_ns: 0.0,
        late_max_ns: 0,
        overload: Overload::default(),
        power_cuts,
    })
}

/// What is the same for all requests of a batch.
#[derive(Clone, Copy)]
struct Way {
    /// Nothing is known of any request beside its address.
    plain: bool,
    /// A write of one whole unit asks nobody.
    bare: bool,
    /// Such a write asks the placement policy alone.
    bare_placed: bool,
    /// Such a write asks the dedup policy alone; each request has one content.
    bare_content: bool,
    /// Contents are looked up in a table, which is looked at ahead together with the map.
    looks_up: bool,
}

impl Way {
    fn of(ftl: &Ftl<Counting>, batch: &Batch) -> Self {
        Way {
            plain: batch.is_plain(),
            bare: ftl.is_bare(),
            bare_placed: ftl.is_bare_but_for_placement(),
            bare_content: ftl.layout.geometry.unit_bytes == CONTENT_BYTES
                && ftl.is_bare_but_for_contents()
                && batch.has_one_content_each(),
            looks_up: !batch.content.is_empty() && ftl.looks_contents_up(),
        }
    }
}

/// Carries out the requests `range` of `batch` and adds their bytes. Returns how many it was before the end of the drive's life.
///
/// A function by itself, as its few variables stay in registers.
#[inline(never)]
fn admit_each(
    ftl: &mut Ftl<Counting>,
    batch: &Batch,
    range: Range<usize>,
    shift: u32,
    way: Way,
    bytes: &mut u64,
) -> usize {
    let n = batch.len();
    let (ops, offsets, lengths) = (&batch.op[..n], &batch.offset[..n], &batch.length[..n]);
    let unit = 1u64 << shift;
    let first_unit = |i: usize| (offsets[i] >> shift) as u32;
    let first = range.start;
    for i in range.start..range.end.min(n) {
        if way.looks_up {
            if (i - first).is_multiple_of(GROUP) {
                look_ahead(ftl, batch, i, shift, way);
            }
        } else {
            if i + AHEAD_MAP < n {
                ftl.prefetch_map(first_unit(i + AHEAD_MAP));
            }
            if i + AHEAD_OLD < n {
                ftl.prefetch_old(first_unit(i + AHEAD_OLD));
            }
        }
        let is_one_unit = u64::from(lengths[i]) == unit && offsets[i] & (unit - 1) == 0;
        let is_plain_write = ops[i] == OpKind::Write && is_one_unit;
        let admitted = if way.bare && is_plain_write {
            ftl.write_bare(Lpn(first_unit(i)))
        } else if way.bare_placed && is_plain_write {
            write_placed(ftl, batch, i, shift, way)
        } else if way.bare_content && is_plain_write {
            write_content(ftl, batch, i, shift)
        } else {
            admit_one(ftl, batch, i, shift, way)
        };
        if admitted == Admitted::EndOfLife {
            return i - first;
        }
        *bytes += u64::from(lengths[i]);
    }
    range.len()
}

/// A request that writes one whole unit.
#[inline(never)]
fn write_placed(ftl: &mut Ftl<Counting>, batch: &Batch, i: usize, shift: u32, way: Way) -> Admitted {
    let lpn = Lpn((batch.offset[i] >> shift) as u32);
    if way.plain {
        ftl.write_bare_placed(lpn, IoContext::none())
    } else {
        ftl.write_bare_placed(lpn, &batch.context_of(i))
    }
}

/// A request that writes one whole unit, of a batch whose requests have one content each.
#[inline(never)]
fn write_content(ftl: &mut Ftl<Counting>, batch: &Batch, i: usize, shift: u32) -> Admitted {
    let lpn = Lpn((batch.offset[i] >> shift) as u32);
    ftl.write_bare_content(lpn, batch.content[i], || batch.context_of(i))
}

/// Looks ahead for the group of requests that begins with number `i`.
#[inline(never)]
fn look_ahead(ftl: &Ftl<Counting>, batch: &Batch, i: usize, shift: u32, way: Way) {
    let n = batch.len();
    let group = |ahead: usize| (i + ahead * GROUP).min(n)..(i + (ahead + 1) * GROUP).min(n);
    let lpn = move |offset: &u64| Lpn((offset >> shift) as u32);
    if way.bare_content {
        ftl.prefetch_contents(|ahead| {
            let (offsets, contents) = (&batch.offset[group(ahead)], &batch.content[group(ahead)]);
            offsets.iter().map(lpn).zip(contents.iter().copied())
        });
    } else {
        ftl.prefetch_contents(|ahead| {
            let units = |i: usize| {
                let first = lpn(&batch.offset[i]).0;
                // Units of a long request follow each other in memory.
                let contents = batch.content_of(i).iter().take(GROUP);
                (first..).map(Lpn).zip(contents.copied())
            };
            group(ahead).flat_map(units)
        });
    }
}

#[inline(never)]
fn admit_one(ftl: &mut Ftl<Counting>, batch: &Batch, i: usize, shift: u32, way: Way) -> Admitted {
    let known;
    let context = if way.plain {
        IoContext::none()
    } else {
        known = batch.context_of(i);
        &known
    };
    ftl.admit(&HostRequest::of_bytes(&batch.request(i, context), shift), Ticket::NONE)
}

impl Limit {
    fn reached(&self, requests: u64, host_units: u64) -> bool {
        self.requests.is_some_and(|most| requests >= most) || self.host_units.is_some_and(|most| host_units >= most)
    }
}

pub fn progress(gauges: &Gauges, plan: &Plan<'_>, requests: u64, bytes: u64, sim_time_ns: u64) -> Progress {
    Progress {
        phase: plan.phase.to_owned(),
        done_requests: requests,
        total_requests: plan.total_requests,
        done_bytes: bytes,
        waf: gauges.waf().unwrap_or(f64::NAN),
        sim_time_ns,
        ..Progress::default()
    }
}
