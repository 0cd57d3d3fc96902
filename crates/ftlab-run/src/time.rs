//! The loop of a run on a device with time: requests in at their pace, completions out.

use std::time::Instant;

use ftlab_core::{Batch, BlockDevice, Completion, IoContext, IoRequest, OpKind, Result, Source, Status};
use ftlab_drive::instrumented::{Gauges, Instrumented};

use ftlab_trace::synth::transactions::PageRequest;

use crate::film::{Film, MOST_TILES};
use crate::latency::{Latencies, RequestRow, RequestRows};
use crate::measure::{End, Held, Measured, Plan, present, progress};
use crate::overload::Overload;
use crate::sampler::{Reading, Sampler};
use crate::settling::Settling;
use crate::watch::Watch;
use crate::workload::{Pace, Workload};

/// How far ahead a device is told of a request, so that it can fetch what the request will touch in two steps.
const AHEAD: [usize; 2] = [16, 6];

/// Completions after which the clock is looked at.
const REPORT_PERIOD: usize = 1024;

/// Runs what is `held`, then `workload` on a device with time.
pub fn time<D: BlockDevice + Instrumented>(
    device: &mut D,
    workload: &mut Workload,
    held: Held,
    pace: Pace,
    keep_rows: bool,
    plan: &Plan<'_>,
    watch: &mut Watch<'_>,
) -> Result<Measured> {
    let started = Instant::now();
    let mut feed = Feed::new(workload, held, pace);
    let mut under_way = UnderWay::default();
    let mut tally = Tally::new(keep_rows);
    let mut series = Sampler::timed();
    let mut film = plan
        .film
        .then(|| Film::new(tally.reading(&device.gauges(), 0), device.tiles(MOST_TILES)));
    let mut settling = Settling::new(plan.settles);
    let mut overload = Overload::default();
    let mut completions: Vec<Completion> = Vec::new();
    let mut cuts = plan.power_cuts.iter().copied();
    let mut next_cut = cuts.next();
    let mut power_cuts = Vec::new();
    let (mut now, mut unreported) = (0u64, 0usize);
    let end = 'run: loop {
        if watch.stopped {
            break End::Stopped;
        }
        if device.is_offline() {
            let since = now;
            now = wait_until_back(device, now, &mut completions);
            feed.away_ns += now - since;
        }
        let mut next_arrival = None;
        while under_way.count < feed.limit {
            let Some(arrival) = feed.arrival(now)? else { break };
            if arrival > now {
                next_arrival = Some(arrival);
                break;
            }
            feed.submit(device, &mut under_way, arrival, now);
        }
        let over = (under_way.count == 0 && next_arrival.is_none()) || feed.clients_are_done();
        if over {
            // Background work may go on for ever, and a policy's clock may be far away: the window ends with the last request.
            break End::Done;
        }
        // Those that completed while a mirror served the host count first.
        if completions.is_empty() {
            now = device
                .advance_to_completion(next_arrival, &mut completions)
                .unwrap_or_else(|| unreachable!("{} requests wait for nothing", under_way.count));
        }
        unreported += completions.len();
        for done in &completions {
            let request = under_way.take(done.tag);
            feed.completed(done.tag, done.done_ns);
            overload.completed(request.arrived_ns, done.done_ns, under_way.count);
            if done.status == Status::WornOut {
                break 'run End::WornOut;
            }
            if done.status == Status::Failed {
                if let Some(end) = settling.failed(feed.workload.passes()) {
                    break 'run end;
                }
                continue;
            }
            tally.add(done, request);
            if series.due(tally.requests) {
                let gauges = device.gauges();
                let reading = tally.reading(&gauges, now);
                series.add(reading, tally.latencies.tails());
                if let Some(film) = &mut film {
                    film.look(reading, |most| device.tiles(most));
                }
                let present = present(&gauges, &tally.latencies);
                if let Some(condition) = plan.break_at.filter(|c| c.holds(&present)) {
                    break 'run End::Broken(condition.text().to_owned());
                }
                if let Some(end) = settling.look(&series, feed.workload.passes(), || device.uncollected()) {
                    break 'run end;
                }
            }
        }
        completions.clear();
        if next_cut.is_some_and(|at| tally.requests >= at) {
            next_cut = cuts.next();
            let cut = device.cut_power();
            power_cuts.push((tally.requests, cut));
            // Nothing that was under way completes; the host comes back when the drive does.
            under_way = UnderWay::default();
            now += cut.recovery_ns;
        }
        if unreported >= REPORT_PERIOD {
            unreported = 0;
            if watch.due() && !watch.report(progress(&device.gauges(), plan, tally.requests, tally.bytes, now)) {
                break End::Stopped;
            }
        }
    };
    let last = tally.reading(&device.gauges(), now);
    series.finish(last, tally.latencies.tails());
    if let Some(film) = &mut film {
        film.finish(last, |most| device.tiles(most));
    }
    Ok(Measured {
        end,
        requests: tally.requests,
        bytes: tally.bytes,
        written_bytes: tally.written_bytes,
        wall_s: started.elapsed().as_secs_f64(),
        sim_ns: now - feed.away_ns,
        series,
        film,
        settling,
        latencies: tally.latencies,
        rows: tally.rows,
        late_mean_ns: feed.late_sum_ns as f64 / feed.submitted.max(1) as f64,
        late_max_ns: feed.late_max_ns,
        overload,
        power_cuts,
    })
}

/// While a mirror serves the host, nothing arrives: what is under way completes, and the device does its work. Returns the time
/// afterwards.
fn wait_until_back<D: BlockDevice + Instrumented>(
    device: &mut D,
    mut now: u64,
    completions: &mut Vec<Completion>,
) -> u64 {
    while device.is_offline() {
        let Some(next) = device.next_wakeup() else { break };
        now = now.max(next);
        device.advance(now, completions);
    }
    now
}

/// The requests of a workload one by one, each with its time of arrival.
struct Feed<'a> {
    workload: &'a mut Workload,
    /// They come of clients that wait for their requests, not in batches.
    has_clients: bool,
    batch: Batch,
    /// Nothing is known of the batch's requests but what they are.
    plain: bool,
    next: usize,
    over: bool,
    /// By time stamp, divided by `speedup`; otherwise as soon as there is room.
    open: bool,
    speedup: f64,
    limit: usize,
    /// Stamp of the first request.
    origin_ns: Option<u64>,
    /// Time for which a mirror has served the host: later requests arrive as much later.
    away_ns: u64,
    submitted: u64,
    late_sum_ns: u128,
    late_max_ns: u64,
}

impl<'a> Feed<'a> {
    fn new(workload: &'a mut Workload, held: Held, pace: Pace) -> Self {
        let (open, speedup, limit) = match pace {
            Pace::Open { speedup, limit } => (true, speedup, limit),
            Pace::Closed { depth } => (false, 1.0, depth),
        };
        Feed {
            has_clients: workload.transactions().is_some(),
            workload,
            plain: held.batch.is_plain(),
            batch: held.batch,
            next: held.next,
            over: false,
            open,
            speedup,
            limit: limit as usize,
            origin_ns: None,
            away_ns: 0,
            submitted: 0,
            late_sum_ns: 0,
            late_max_ns: 0,
        }
    }

    /// When the next request arrives; `None` if none is left, or none before another completes.
    #[inline]
    fn arrival(&mut self, now: u64) -> Result<Option<u64>> {
        if self.has_clients {
            return Ok(self
                .workload
                .transactions_mut()
                .and_then(|clients| clients.next_time(now)));
        }
        if self.next == self.batch.len() {
            if !self.over {
                self.workload.next_batch(&mut self.batch)?;
                self.plain = self.batch.is_plain();
                self.next = 0;
                self.over = self.batch.is_empty();
            }
            if self.over {
                return Ok(None);
            }
        }
        if !self.open {
            return Ok(Some(now));
        }
        let stamp = self.batch.time_ns[self.next];
        let since = stamp - *self.origin_ns.get_or_insert(stamp);
        let since = if self.speedup == 1.0 {
            since
        } else {
            (since as f64 / self.speedup) as u64
        };
        Ok(Some(since + self.away_ns))
    }

    /// Submits the next request and announces later ones.
    #[inline]
    fn submit(&mut self, device: &mut impl BlockDevice, under_way: &mut UnderWay, arrived_ns: u64, now: u64) {
        if self.has_clients {
            return self.submit_of_clients(device, under_way, now);
        }
        let late = now - arrived_ns;
        if late > 0 {
            self.late_sum_ns += u128::from(late);
            self.late_max_ns = self.late_max_ns.max(late);
        }
        self.submitted += 1;
        let (i, batch) = (self.next, &self.batch);
        let tag = under_way.enter(Request {
            arrived_ns,
            offset: batch.offset[i],
            length: batch.length[i],
        });
        let known;
        let context = if self.plain {
            IoContext::none()
        } else {
            known = batch.context_of(i);
            &known
        };
        device.submit(tag, &batch.request(i, context), now);
        for ahead in AHEAD {
            if let Some(&offset) = batch.offset.get(i + ahead) {
                device.prefetch(batch.op[i + ahead], offset, ahead);
            }
        }
        self.next += 1;
    }
}

impl Feed<'_> {
    fn submit_of_clients(&mut self, device: &mut impl BlockDevice, under_way: &mut UnderWay, now: u64) {
        let Some(clients) = self.workload.transactions_mut() else {
            return;
        };
        let enters = |request: &PageRequest| {
            under_way.enter(Request {
                arrived_ns: now,
                offset: request.offset,
                length: request.length,
            })
        };
        let Some((tag, request)) = clients.next_request(enters, now) else {
            return;
        };
        self.submitted += 1;
        device.submit(tag, &IoRequest::plain(request.op, request.offset, request.length), now);
    }

    /// The last transaction has been committed: what other clients have under way is nobody's concern.
    fn clients_are_done(&self) -> bool {
        self.has_clients && self.workload.transactions().is_some_and(|clients| clients.are_done())
    }

    #[inline]
    fn completed(&mut self, tag: u64, done_ns: u64) {
        if self.has_clients
            && let Some(clients) = self.workload.transactions_mut()
        {
            clients.completed(tag, done_ns);
        }
    }
}

/// What the completion of a request does not carry.
#[derive(Clone, Copy)]
pub struct Request {
    pub arrived_ns: u64,
    pub offset: u64,
    pub length: u32,
}

/// The requests under way, by tag.
#[derive(Default)]
struct UnderWay {
    requests: Vec<Request>,
    unused: Vec<u64>,
    count: usize,
}

impl UnderWay {
    #[inline]
    fn enter(&mut self, request: Request) -> u64 {
        self.count += 1;
        match self.unused.pop() {
            Some(tag) => {
                self.requests[tag as usize] = request;
                tag
            }
            None => {
                self.requests.push(request);
                self.requests.len() as u64 - 1
            }
        }
    }

    #[inline]
    fn take(&mut self, tag: u64) -> Request {
        self.count -= 1;
        self.unused.push(tag);
        self.requests[tag as usize]
    }
}

/// What has completed.
pub struct Tally {
    pub requests: u64,
    /// Read and written.
    pub bytes: u64,
    pub written_bytes: u64,
    pub latencies: Latencies,
    pub rows: Option<RequestRows>,
}

impl Tally {
    pub fn new(keep_rows: bool) -> Self {
        Tally {
            requests: 0,
            bytes: 0,
            written_bytes: 0,
            latencies: Latencies::default(),
            rows: keep_rows.then(RequestRows::default),
        }
    }

    #[inline]
    pub fn add(&mut self, done: &Completion, request: Request) {
        let latency_ns = done.done_ns - request.arrived_ns;
        self.requests += 1;
        if matches!(done.op, OpKind::Read | OpKind::Write) {
            self.bytes += u64::from(request.length);
        }
        if done.op == OpKind::Write {
            self.written_bytes += u64::from(request.length);
        }
        let late_ns = done.submitted_ns - request.arrived_ns;
        self.latencies.record(done.op, late_ns, latency_ns, &done.parts);
        if let Some(rows) = &mut self.rows {
            rows.push(&RequestRow {
                time_ns: request.arrived_ns,
                op: done.op,
                offset: request.offset,
                length: request.length,
                latency_ns,
                parts: done.parts,
            });
        }
    }

    pub fn reading(&self, gauges: &Gauges, now: u64) -> Reading {
        Reading {
            written_bytes: self.written_bytes,
            ..Reading::new(gauges, &self.latencies, self.requests, self.bytes, now)
        }
    }
}

#[cfg(test)]
mod tests;
