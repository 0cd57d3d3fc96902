//! A host's page cache in front of the drive: only misses pass.
//!
//! # Model
//! A cache of 4 KiB pages with least-recently-used replacement, filled by reads and writes alike, lies between the trace and
//! the drive. It is empty at first.
//!
//! * **Reads**: cached pages vanish from the request. Each run of missing pages passes as a request of its own, with
//!   the bytes of the original (`align` behind this filter rounds them out to pages).
//! * **Writes** with `write=through` all pass as they are, and fill the cache. With `write=back` they make pages dirty
//!   (by sectors of 512 B) and vanish. A dirty page that is evicted is written at the time of the request that needs
//!   its place, with its dirty bytes and with flags, stream, program context, process, label and content of its last
//!   writer. With `cluster=run` its neighbours that the same request wrote and that are still dirty are written with
//!   it, as one request, and stay in the cache clean. With `cluster=page` each page is written alone. A write with the
//!   FUA flag passes at once. With `write=miss` writes are treated as reads: those that hit vanish and are never
//!   written.
//! * **Trims** pass, and remove the pages that they cover from the cache, dirty or not.
//! * **Flushes** pass. With `write=back,flush=write` they first write all dirty pages, those dirty for the longest time first.
//! * **At the end** of `write=back`, `end=drop` leaves dirty pages unwritten, as they would stay in the host's memory
//!   when recording stops: a burst of writes at one moment is no part of the workload. `end=flush` writes them at the
//!   time of the last request.
//!
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `share` | size as a share of what `of` says | above 0, to 1 | 0.05 |
//! | `of` | `span`: from the lowest to the highest byte that the stream reads or writes; `footprint`: the 4 KiB units it touches | | `span` |
//! | `bytes` | size in bytes; instead of `share` and `of` | at least a page | |
//! | `write` | what becomes of writes | `through`, `back`, `miss` | `through` |
//! | `cluster` | of `back`: what goes along with a dirty page that leaves | `run`, `page` | `run` |
//! | `flush` | of `back`: what a flush does | `write`, `pass` | `write` |
//! | `end` | of `back`: what becomes of dirty pages at the end | `drop`, `flush` | `drop` |
//!
//! `share` needs a pass over the stream beforehand; `bytes` doesn't.
//! # Not modelled
//! Time in the cache: hits take none, and do not slow a closed loop. Periodic write-back and dirty limits, read-ahead,
//! readers of raw devices. The read of the rest of a page that is written in part: such a page counts as cached whole.
//! Ids of the chunks of pages that are written back. Memory is about 120 bytes per page that is cached.
//! # Source
//! The evaluation of correlation-aware page-level mapping (CPFTL) puts "a host side LRU cache" of "5% of the total storage
//! size" in front of its traces and gives their figures before and after:
//!
//! | | read/write KB | reads | mean gap | read/write KB behind | reads behind | mean gap behind |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | Financial | 2.3/2.9 | 82.3 % | 11.08 ms | 2.1/2.4 | 65.6 % | 9.08 ms |
//! | WebSearch | 15.15/8.6 | 99.9 % | 2.99 ms | 17.5/9.8 | 99.9 % | 1.33 ms |
//! | TPC-C | 8/8.2 | 65.7 % | 4.35 ms | 8/8 | 57.9 % | 3.7 ms |
//!
//! It does not say how the cache treats writes. Their share grows (Financial's from 17.7 to 34.4 %) and Financial's
//! reads become smaller: a cache that takes reads away and lets writes through does both. On the first 50,000 requests
//! of Financial1 (58.4 % reads of 7.5 KiB) reads are 41.6 % of 6.3 KiB behind `through`, 73.5 % behind `back`, 71.6 %
//! behind `miss`: writes of such workloads fall on pages that were just read or written, so a cache that may hold them
//! back hides more of them than of the reads. Hence the default. No filter gives two things in the figures. A filter
//! cannot shrink the mean gap, because it removes requests from the same span of time, and `through` cannot change the
//! sizes of writes. So the figures behind the cache must be of another part of the traces, or of another clock. The
//! cache changes no times; `head`, `skip` and `scale` do.

use std::ops::Range;

use ftlab_core::{Batch, Error, OpKind, Result, flags, units};

use super::frame::{Rewrite, Stage, rewriting};
use super::page_cache::{MOST_PAGES, PageCache, Place, SECTORS, Writer};
use super::{Context, Keys};
use crate::rows;

const PAGE: u64 = 4096;
const SECTOR: u64 = 512;
/// Most pages written as one request (2 GiB): its length must fit 32 bits.
const LONGEST_RUN: u64 = 1 << 19;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let bytes = keys.text("bytes");
    let given_share = keys.number("share", f64::NAN)?;
    let of = keys.text("of");
    let write = match keys.text("write").as_deref() {
        None | Some("through") => Writes::Through,
        Some("back") => Writes::Back,
        Some("miss") => Writes::Miss,
        Some(other) => return Err(keys.wrong("write", other, "through, back or miss")),
    };
    let cluster = of_back(keys, write, "cluster", ["run", "page"])?;
    let flush_writes = of_back(keys, write, "flush", ["write", "pass"])?;
    let end_drops = of_back(keys, write, "end", ["drop", "flush"])?;
    let cache = move |pages: u64| Lru {
        capacity: pages as usize,
        write,
        cluster,
        flush_writes,
        end_writes: !end_drops,
        cache: PageCache::new(),
        requests: 0,
        now: 0,
        has_content: false,
        content: Vec::new(),
    };
    if let Some(text) = bytes {
        if !given_share.is_nan() || of.is_some() {
            return Err(Error::input("filter `lru` has either `bytes` or `share` (and `of`)"));
        }
        let bytes = units::bytes(&text).map_err(|e| keys.wrong_as("bytes", &e))?;
        if bytes < PAGE || bytes / PAGE > MOST_PAGES {
            return Err(keys.wrong("bytes", &text, "a page of 4 KiB to 16 TiB"));
        }
        return Ok(rewriting(cache(bytes / PAGE)));
    }
    let share = if given_share.is_nan() { 0.05 } else { given_share };
    if !(share > 0.0 && share <= 1.0) {
        return Err(keys.wrong("share", &share.to_string(), "a share above 0, at most 1"));
    }
    let span = match of.as_deref() {
        None | Some("span") => true,
        Some("footprint") => false,
        Some(other) => return Err(keys.wrong("of", other, "span or footprint")),
    };
    Ok(Box::new(move |upstream| {
        let report = &upstream.survey(4096)?.report;
        let (whole, what) = match span {
            true => (report.span_bytes, "span"),
            false => (report.footprint_4k.unwrap_or(0) * PAGE, "footprint"),
        };
        let pages = ((share * whole as f64) as u64 / PAGE).clamp(1, MOST_PAGES);
        upstream.note(format!(
            "a cache of {} ({pages} pages), {share} of the stream's {what} of {}",
            units::show_bytes(pages * PAGE),
            units::show_bytes(whole)
        ));
        upstream.rewritten(cache(pages))
    }))
}

/// Whether `key`, which belongs to `write=back`, is the first of two words, its default.
fn of_back(keys: &mut Keys, write: Writes, key: &'static str, [first, second]: [&str; 2]) -> Result<bool> {
    match keys.text(key).as_deref() {
        None => Ok(true),
        Some(_) if write != Writes::Back => Err(Error::input(format!("filter `lru`: `{key}` belongs to write=back"))),
        Some(word) if word == first => Ok(true),
        Some(word) if word == second => Ok(false),
        Some(other) => Err(keys.wrong(key, other, &format!("{first} or {second}"))),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    Back,
    Through,
    Miss,
}

struct Lru {
    capacity: usize,
    write: Writes,
    /// Neighbours of one writer go together.
    cluster: bool,
    /// A flush writes what is dirty.
    flush_writes: bool,
    end_writes: bool,
    cache: PageCache,
    /// Requests so far: the number of a writer.
    requests: u64,
    now: u64,
    has_content: bool,
    /// Content ids of the run being written.
    content: Vec<u64>,
}

impl Lru {
    /// Makes page `number` the most recent; evicts one where there is no room. Answers its place and whether it was there.
    fn touch(&mut self, number: u64, output: &mut Batch) -> (Place, bool) {
        if let Some(place) = self.cache.find(number) {
            self.cache.touch(place);
            return (place, true);
        }
        if self.cache.len() >= self.capacity
            && let Some(oldest) = self.cache.oldest()
        {
            self.write_out(oldest, output);
            self.cache.remove(oldest);
        }
        (self.cache.insert(number), false)
    }

    /// A read, or a write that is treated as one: runs of missing pages go on.
    fn read(&mut self, input: &Batch, i: usize, output: &mut Batch) {
        let request = Extent::of(input, i);
        let go_on = |from: u64, to: u64, output: &mut Batch| {
            rows::append_part(output, input, i, from, (to - from) as u32, from - request.start);
        };
        let mut missing: Option<u64> = None;
        for number in request.pages() {
            let part = request.within(number);
            let (_, hit) = self.touch(number, output);
            match (hit, missing) {
                (true, Some(since)) => {
                    go_on(since, part.start, output);
                    missing = None;
                }
                (false, None) => missing = Some(part.start),
                _ => {}
            }
        }
        if let Some(since) = missing {
            go_on(since, request.end, output);
        }
    }

    /// A write that stays in the cache.
    fn absorb(&mut self, input: &Batch, i: usize, output: &mut Batch) {
        let request = Extent::of(input, i);
        let mut writer = Writer {
            request: self.requests,
            context: rows::context(input, i),
            content: None,
        };
        let ids = input.content_of(i);
        for number in request.pages() {
            let part = request.within(number);
            // The unit of the request that begins in this page.
            let unit = (part.start - request.start).div_ceil(PAGE);
            let begins = unit * PAGE < part.end - request.start;
            writer.content = ids.get(unit as usize).copied().filter(|_| begins);
            let (place, _) = self.touch(number, output);
            self.cache.set_dirty(place, part.sectors_touched(), writer);
        }
    }

    /// A write that goes on as it is: the drive has its newest version.
    fn pass(&mut self, input: &Batch, i: usize, output: &mut Batch) {
        let request = Extent::of(input, i);
        for number in request.pages() {
            let (place, _) = self.touch(number, output);
            self.cache.set_clean(place, request.within(number).sectors_covered());
        }
        rows::append(output, input, i);
    }

    fn trim(&mut self, input: &Batch, i: usize, output: &mut Batch) {
        let request = Extent::of(input, i);
        let pages = request.pages();
        for number in self.cache.within(pages.start, pages.end) {
            let part = request.within(number);
            if let Some(place) = self.cache.find(number) {
                self.cache.set_clean(place, part.sectors_covered());
                if part.end - part.start == PAGE {
                    self.cache.remove(place);
                }
            }
        }
        rows::append(output, input, i);
    }

    /// Writes a dirty page, and with it its neighbours of the same writer.
    fn write_out(&mut self, place: Place, output: &mut Batch) {
        if self.cache.dirty_sectors(place) == 0 {
            return;
        }
        let (number, writer) = (self.cache.number(place), *self.cache.writer(place));
        let (mut first, mut last) = (number, number);
        if self.cluster {
            while last - first < LONGEST_RUN && first > 0 && self.together(first - 1, first, writer.request) {
                first -= 1;
            }
            while last - first < LONGEST_RUN && self.together(last, last + 1, writer.request) {
                last += 1;
            }
        }
        let mut run: Option<Extent> = None;
        for number in first..=last {
            let Some(place) = self.cache.find(number) else { continue };
            let sectors = self.cache.dirty_sectors(place);
            for sector in (0..SECTORS).filter(|sector| sectors >> sector & 1 == 1) {
                let start = number * PAGE + sector * SECTOR;
                match &mut run {
                    Some(run) if run.end == start => run.end += SECTOR,
                    _ => {
                        self.put(run.take(), &writer.context, output);
                        run = Some(Extent {
                            start,
                            end: start + SECTOR,
                        });
                    }
                }
            }
            // Of a page that is written in several runs, the last has its content.
            self.content.extend(self.cache.writer(place).content);
            self.cache.set_clean(place, u8::MAX);
        }
        self.put(run, &writer.context, output);
    }

    /// Whether both pages are dirty where they meet, by the writer `request`.
    fn together(&self, left: u64, right: u64, request: u64) -> bool {
        let dirty = |number: u64, sector: u64| {
            self.cache.find(number).is_some_and(|place| {
                self.cache.dirty_sectors(place) >> sector & 1 == 1 && self.cache.writer(place).request == request
            })
        };
        dirty(left, SECTORS - 1) && dirty(right, 0)
    }

    fn put(&mut self, run: Option<Extent>, context: &rows::Context, output: &mut Batch) {
        if let Some(Extent { start, end }) = run {
            let content = self.has_content.then_some(self.content.as_slice());
            rows::append_write(output, self.now, start, (end - start) as u32, context, content);
            self.content.clear();
        }
    }
}

impl Rewrite for Lru {
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()> {
        self.requests += 1;
        self.now = input.time_ns[i];
        self.has_content |= !input.content_end.is_empty();
        match input.op[i] {
            OpKind::Flush => {
                if self.flush_writes {
                    while let Some(oldest) = self.cache.oldest_dirty() {
                        self.write_out(oldest, output);
                    }
                }
                rows::append(output, input, i);
            }
            _ if input.length[i] == 0 => rows::append(output, input, i),
            OpKind::Trim => self.trim(input, i, output),
            OpKind::Read => self.read(input, i, output),
            OpKind::Write => match self.write {
                Writes::Miss => self.read(input, i, output),
                Writes::Back if input.flags[i] & flags::FUA == 0 => self.absorb(input, i, output),
                Writes::Back | Writes::Through => self.pass(input, i, output),
            },
        }
        Ok(())
    }

    fn finish(&mut self, output: &mut Batch) -> Result<()> {
        while self.end_writes
            && output.len() < Batch::TARGET
            && let Some(oldest) = self.cache.oldest_dirty()
        {
            self.write_out(oldest, output);
        }
        Ok(())
    }
}

/// A range of bytes.
#[derive(Clone, Copy)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    fn of(batch: &Batch, i: usize) -> Self {
        let start = batch.offset[i];
        Extent {
            start,
            end: start + u64::from(batch.length[i]),
        }
    }

    fn pages(self) -> Range<u64> {
        self.start / PAGE..self.end.div_ceil(PAGE)
    }

    /// The part of it in page `number`, which it touches.
    fn within(self, number: u64) -> Self {
        Extent {
            start: self.start.max(number * PAGE),
            end: self.end.min((number + 1) * PAGE),
        }
    }

    /// Of a part within a page: a bit per sector that it touches.
    fn sectors_touched(self) -> u8 {
        let (from, to) = (self.start % PAGE, (self.end - 1) % PAGE + 1);
        bits(from / SECTOR, to.div_ceil(SECTOR))
    }

    /// Of a part within a page: a bit per sector that it covers whole.
    fn sectors_covered(self) -> u8 {
        let (from, to) = (self.start % PAGE, (self.end - 1) % PAGE + 1);
        bits(from.div_ceil(SECTOR), to / SECTOR)
    }
}

fn bits(first: u64, past: u64) -> u8 {
    (first..past).fold(0, |bits, sector| bits | 1 << sector)
}

#[cfg(test)]
mod tests;
