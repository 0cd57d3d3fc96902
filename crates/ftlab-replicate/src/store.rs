//! A store of pages on a disk: RRead, RWrite, and what makes both durable.
//!
//! # Model
//! * **RWrite**: a page is written to a free slot of its partition. If that is not done within D, or fails, it is written to one of another
//!   partition as well, drawn at random, up to `copies`. The first to complete ends the write; those that complete later become further copies
//!   of the page if it has not been written again.
//! * **RRead**: the first copy is read. If that is not done within D, or fails, or what comes back is not what was written, the copy in the
//!   partition with the lowest blocking probability is read as well (below a difference of 0.05 the one with the shorter queue), and so on.
//! * **Sync**: the data, then the map log with a record that all before it is durable. Slots of former versions are free after that.
//! * **Start**: the map as of the last durable record; what follows it counts where the content that it names is there.
//!
//! A failed synchronisation leaves unknown what is on the disk: from then on nothing is written or acknowledged.
//! # Cost
//! A record of 64 bytes for each page written, and two for each synchronisation; two synchronisations instead of one. Some 90 bytes of memory a page, 12 a slot.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ftlab_core::{Error, Result};
use serde_json::{Value, json};

use crate::counters::{Counters, Races};
use crate::disk::{Access, Disk, FileDisk, Modelled};
use crate::hold;
use crate::map_log::{self, Copies, Found, MapLog, PageRecord, Pages, Record, Shape};
use crate::options::{Deadline, MOST_COPIES, Options};
use crate::page::Page;
use crate::places::Places;
use crate::queue::Queue;
use crate::race::{Finish, Race};
use crate::report;

/// Where the blocking probabilities of two copies differ by less, the shorter queue decides.
const SIMILAR: f64 = 0.05;
const DEFAULT_PARTITIONS: u32 = 16;
const DEFAULT_PAGE: u32 = 4096;
/// Partition tables and file systems have something in as much of a device.
const FIRST_BYTES: usize = 128 << 10;
/// The report beside the database is written no more often than that.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Why an access could not be done.
#[derive(Debug)]
pub enum Fault {
    /// No copy could be read or written, or an earlier synchronisation failed.
    Device(String),
    Full,
}

impl From<io::Error> for Fault {
    fn from(cause: io::Error) -> Self {
        if matches!(cause.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) {
            return Fault::Full;
        }
        Fault::Device(cause.to_string())
    }
}

/// Why a store could not be opened.
#[derive(Debug)]
pub enum Refusal {
    /// Another process has it.
    Busy(Error),
    Other(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Other(error)
    }
}

struct Map {
    places: Places,
    log: MapLog,
    /// A synchronisation runs: what comes meanwhile is logged after it, as its data may not be on the disk.
    syncing: bool,
    held_back: Vec<Record>,
    /// Since the last durable record.
    changed: bool,
    broken: Option<String>,
}

struct Inner {
    disk: Arc<dyn Disk>,
    shape: Shape,
    options: Options,
    queues: Vec<Queue>,
    map: Mutex<Map>,
    /// Of the map: an access or a synchronisation has ended, so that slots may have become free.
    ended: Condvar,
    counters: Mutex<Counters>,
    /// One write at a time, as a database has one writer.
    writing: Mutex<()>,
    syncing: Mutex<()>,
    /// Median time of a write to the disk, followed in small steps.
    write_ns: AtomicU64,
    report: PathBuf,
    reported: Mutex<Option<Instant>>,
}

/// A store of pages; its queues end with it.
pub struct Store {
    inner: Arc<Inner>,
}

/// The map log beside a database.
pub fn map_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-ftlab-map");
    name.into()
}

impl Store {
    /// Opens the store of the database `path`, or makes one in an empty or new file, or on a block device that `path` has no map log for.
    pub fn open(path: &Path, options: Options, create: bool) -> std::result::Result<Self, Refusal> {
        let model = options.model.clone();
        Self::open_through(path, options, create, |disk| match model {
            Some(model) => Arc::new(Modelled::new(disk, model)),
            None => Arc::new(disk),
        })
    }

    /// As `open`; all accesses to pages go through what `above` makes of the disk.
    fn open_through(
        path: &Path,
        options: Options,
        create: bool,
        above: impl FnOnce(FileDisk) -> Arc<dyn Disk>,
    ) -> std::result::Result<Self, Refusal> {
        let access = if create { Access::Create } else { Access::Write };
        let map = map_beside(path);
        let database = path;
        let path = options.disk.as_deref().unwrap_or(database).to_owned();
        let path = path.as_path();
        let is_new = create && !path.exists();
        let mut disk = FileDisk::open(path, access, options.direct)?;
        if disk.is_device() && options.disk.is_none() {
            return Err(Error::input(format!(
                "{}: a device, beside which no journal is safe: expected disk={} and a database with a name of its own",
                path.display(),
                path.display()
            ))
            .into());
        }
        if !disk.hold() {
            return Err(Refusal::Busy(Error::input(format!(
                "{}: another process has it open",
                path.display()
            ))));
        }
        let (shape, pages) = if map.exists() {
            let found = map_log::read(&map)?;
            check_shape(path, &found, &options, &disk)?;
            recovered(&disk, found)
        } else {
            let shape = fresh_shape(path, &disk, &options).inspect_err(|_| {
                if is_new {
                    // What is refused leaves no empty file behind.
                    let _ = std::fs::remove_file(path);
                }
            })?;
            (shape, Pages::default())
        };
        let Some(places) = Places::new(shape, pages.clone(), &options) else {
            return Err(Error::input(format!("{}: has two pages in one slot", map.display())).into());
        };
        // What is recovered must be durable before the log says so.
        disk.sync().map_err(|cause| Error::io(path, &cause))?;
        let log = MapLog::create(&map, shape, &pages).map_err(|cause| Error::unwritable(&map, &cause))?;
        // After the map log, as a file that is not empty and has none is somebody else's.
        if disk.size() < shape.bytes() {
            disk.grow(shape.bytes()).map_err(|cause| Error::io(path, &cause))?;
        }
        let disk = above(disk);
        let queues = (0..shape.partitions as usize).map(|number| Queue::start(number, options.idle));
        let queues = queues
            .collect::<io::Result<_>>()
            .map_err(|cause| Error::io(path, &cause))?;
        let counters = Counters {
            map_log_bytes: log.bytes(),
            map_log_syncs: 1,
            ..Counters::default()
        };
        Ok(Store {
            inner: Arc::new(Inner {
                disk,
                shape,
                options,
                queues,
                map: Mutex::new(Map {
                    places,
                    log,
                    syncing: false,
                    held_back: Vec::new(),
                    changed: false,
                    broken: None,
                }),
                ended: Condvar::new(),
                counters: Mutex::new(counters),
                writing: Mutex::new(()),
                syncing: Mutex::new(()),
                write_ns: AtomicU64::new(1_000_000),
                report: report::beside(&map),
                reported: Mutex::new(None),
            }),
        })
    }

    /// Bytes of the database.
    pub fn size(&self) -> u64 {
        hold(&self.inner.map).places.pages.size
    }

    pub fn page_size(&self) -> u32 {
        self.inner.shape.page
    }

    /// Reads from a place of the database; how many bytes there are. What was never written is zeros.
    pub fn read(&self, at: u64, into: &mut [u8]) -> std::result::Result<usize, Fault> {
        let there = self.size().saturating_sub(at).min(into.len() as u64) as usize;
        let mut done = 0;
        while done < there {
            let (lpn, within) = self.inner.place(at + done as u64)?;
            let part = (there - done).min(self.inner.shape.page as usize - within);
            let target = &mut into[done..done + part];
            match self.inner.read_page(lpn)? {
                Some(page) => target.copy_from_slice(&page.bytes()[within..within + part]),
                None => target.fill(0),
            }
            done += part;
        }
        Ok(there)
    }

    /// Writes to a place of the database, which grows if need be.
    pub fn write(&self, at: u64, from: &[u8]) -> std::result::Result<(), Fault> {
        let _one = hold(&self.inner.writing);
        let mut done = 0;
        while done < from.len() {
            let (lpn, within) = self.inner.place(at + done as u64)?;
            let size = self.inner.shape.page as usize;
            let part = (from.len() - done).min(size - within);
            let mut page = Page::zeros(size);
            if part < size
                && let Some(before) = self.inner.read_page(lpn)?
            {
                page.bytes_mut().copy_from_slice(before.bytes());
            }
            page.bytes_mut()[within..within + part].copy_from_slice(&from[done..done + part]);
            done += part;
            let end = self.size().max(at + done as u64);
            self.inner.write_page(lpn, Arc::new(page), end)?;
        }
        Ok(())
    }

    pub fn truncate(&self, size: u64) -> std::result::Result<(), Fault> {
        let _one = hold(&self.inner.writing);
        let (lpn, within) = self.inner.place(size)?;
        if within > 0
            && size < self.size()
            && let Some(before) = self.inner.read_page(lpn)?
        {
            // What is cut off must not come back when the database grows again.
            let mut page = Page::zeros(self.inner.shape.page as usize);
            page.bytes_mut()[..within].copy_from_slice(&before.bytes()[..within]);
            self.inner.write_page(lpn, Arc::new(page), self.size())?;
        }
        let mut map = self.inner.usable()?;
        let mut changes = Vec::new();
        map.places.truncate(size, &mut changes);
        self.inner.log(&mut map, &changes)
    }

    /// All that was written is durable.
    pub fn sync(&self) -> std::result::Result<(), Fault> {
        hold(&self.inner.counters).syncs += 1;
        self.inner.sync()?;
        let mut reported = hold(&self.inner.reported);
        if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            *reported = Some(Instant::now());
            self.write_report();
        }
        Ok(())
    }

    /// What the store is and has done since it was opened.
    pub fn report(&self) -> Value {
        self.inner.report()
    }

    fn write_report(&self) {
        // Figures only: a disk without room for them still keeps the database.
        let _ = std::fs::write(&self.inner.report, format!("{:#}\n", self.inner.report()));
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.inner.queues.iter().for_each(Queue::end);
        self.write_report();
    }
}

fn check_shape(path: &Path, found: &Found, options: &Options, disk: &FileDisk) -> Result<()> {
    let (shape, size) = (&found.shape, disk.size());
    let asked = [
        ("page", options.page, shape.page),
        ("partitions", options.partitions, shape.partitions),
    ];
    for (name, asked, there) in asked {
        if let Some(asked) = asked.filter(|&asked| asked != there) {
            return Err(Error::input(format!(
                "{}: was made with {name}={there}, expected that or nothing, not {asked}",
                path.display()
            )));
        }
    }
    let is_new = size == 0 && found.durable.by_lpn.is_empty() && !disk.is_device();
    if size < shape.bytes() && !is_new {
        return Err(Error::input(format!(
            "{}: {size} bytes, expected the {} that its map log names",
            path.display(),
            shape.bytes()
        )));
    }
    Ok(())
}

fn fresh_shape(path: &Path, disk: &FileDisk, options: &Options) -> Result<Shape> {
    let is_device = disk.is_device();
    if disk.size() > 0 && !is_device {
        return Err(Error::input(format!(
            "{}: is not empty and has no map log: expected a new file",
            path.display()
        )));
    }
    if is_device {
        let mut first = Page::zeros(FIRST_BYTES);
        disk.read(0, first.bytes_mut())
            .map_err(|cause| Error::io(path, &cause))?;
        if first.bytes().iter().any(|&byte| byte != 0) {
            return Err(Error::input(format!(
                "{}: has something on it, expected zeros in its first {FIRST_BYTES} bytes (blkdiscard or dd)",
                path.display()
            )));
        }
    }
    let page = options.page.unwrap_or(DEFAULT_PAGE);
    let partitions = options.partitions.unwrap_or(DEFAULT_PARTITIONS);
    let size = if is_device { disk.size() } else { options.size };
    let slots = size / u64::from(page) / u64::from(partitions);
    if slots < 8 || slots * u64::from(partitions) > u64::from(u32::MAX) {
        return Err(Error::input(format!(
            "{}: {size} bytes in {partitions} partitions, expected at least 8 pages of {page} bytes in each, and at most \
             4294967295 in all",
            path.display()
        )));
    }
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Shape {
        page,
        partitions,
        slots: slots as u32,
        id: now.as_nanos() as u64 ^ u64::from(std::process::id()) << 48,
    })
}

/// The pages of a log: of what is not known to be durable, what the disk has.
fn recovered(disk: &FileDisk, found: Found) -> (Shape, Pages) {
    let shape = found.shape;
    let mut pages = found.durable;
    let mut page = Page::zeros(shape.page as usize);
    for record in found.tail {
        let Record::Page(one) = record else {
            pages.apply(&record, shape.page);
            continue;
        };
        let mut copies = Copies::default();
        for &slot in one.copies.slots() {
            let at = u64::from(slot) * u64::from(shape.page);
            if disk.read(at, page.bytes_mut()).is_ok() && page.checksum() == one.content {
                copies.push(slot);
            }
        }
        if !copies.slots().is_empty() {
            pages.apply(&Record::Page(PageRecord { copies, ..one }), shape.page);
        }
    }
    (shape, pages)
}

/// A finish whose content is the page.
fn checked(page: Page, content: u64) -> io::Result<Page> {
    if page.checksum() == content {
        return Ok(page);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "the content is not what was written",
    ))
}

impl Inner {
    fn place(&self, at: u64) -> std::result::Result<(u32, usize), Fault> {
        let page = u64::from(self.shape.page);
        let lpn = at / page;
        if lpn >= self.shape.all_slots() as u64 {
            return Err(Fault::Full);
        }
        Ok((lpn as u32, (at % page) as usize))
    }

    fn at(&self, slot: u32) -> u64 {
        u64::from(slot) * u64::from(self.shape.page)
    }

    fn deadline(&self) -> Duration {
        match self.options.deadline {
            Deadline::After(time) => time,
            Deadline::Auto => Duration::from_nanos(2 * self.write_ns.load(Ordering::Relaxed)),
        }
    }

    /// A sixteenth towards what was seen: half of the steps go up, half down, where the median is.
    fn follow(&self, took: Duration) {
        let median = self.write_ns.load(Ordering::Relaxed);
        let step = (median / 16).max(1);
        let next = if took.as_nanos() > u128::from(median) {
            median + step
        } else {
            median - step
        };
        self.write_ns
            .store(next.clamp(20_000, 10_000_000_000), Ordering::Relaxed);
    }

    /// The map, if what it says can still be relied on.
    fn usable(&self) -> std::result::Result<std::sync::MutexGuard<'_, Map>, Fault> {
        let map = hold(&self.map);
        match &map.broken {
            Some(why) => Err(Fault::Device(why.clone())),
            None => Ok(map),
        }
    }

    fn log(&self, map: &mut Map, changes: &[Record]) -> std::result::Result<(), Fault> {
        if map.syncing {
            map.held_back.extend(changes);
            return Ok(());
        }
        for record in changes {
            if let Err(cause) = map.log.append(record) {
                map.broken = Some(format!("the map log could not be written: {cause}"));
                return Err(Fault::from(cause));
            }
        }
        map.changed |= !changes.is_empty();
        hold(&self.counters).map_log_bytes += (changes.len() * map_log::RECORD) as u64;
        Ok(())
    }

    fn read_page(self: &Arc<Self>, lpn: u32) -> std::result::Result<Option<Arc<Page>>, Fault> {
        let began = Instant::now();
        let race = Arc::new(Race::new());
        let mut map = hold(&self.map);
        let Some(of) = map.places.page(lpn).copied() else {
            return Ok(None);
        };
        let first = of.copies.slots().first().copied().unwrap_or(0);
        map.places.pin(first);
        // All are pinned now: a copy that is evicted meanwhile keeps its content until the race is over.
        let mut left: Vec<u32> = of.copies.slots().iter().skip(1).copied().collect();
        left.iter().for_each(|&slot| map.places.pin(slot));
        drop(map);
        self.start_read(first, of.content, &race);
        let deadline = self.deadline();
        let (mut issued, mut running, mut late, mut failed) = (1, 1, false, 0);
        let mut cause = String::new();
        let won = loop {
            let finished = race.wait((!left.is_empty() || !late).then_some(deadline));
            if finished.is_empty() && !late {
                late = true;
                hold(&self.counters).reads.deadlines_missed += 1;
            }
            running -= finished.len();
            let mut won = None;
            for finish in finished {
                match finish.result {
                    Ok(page) => won = won.or(Some((finish.slot, page))),
                    Err(error) => {
                        failed += 1;
                        cause = error.to_string();
                    }
                }
            }
            if won.is_some() {
                break won;
            }
            match self.next_copy(&mut left) {
                Some(slot) => {
                    issued += 1;
                    running += 1;
                    self.start_read(slot, of.content, &race);
                }
                None if running == 0 => break None,
                None => {}
            }
        };
        let mut map = hold(&self.map);
        race.decide();
        left.iter().for_each(|&slot| self.unpin(&mut map, slot));
        map.places.accessed(lpn, first, late);
        let copy = late && map.places.wants_copy(lpn);
        drop(map);
        let won_by_further = won.as_ref().is_some_and(|&(slot, _)| slot != first);
        self.count(|counters| &mut counters.reads, began, issued, won_by_further, failed);
        let Some((_, page)) = won else {
            return Err(Fault::Device(format!("page {lpn}: no copy can be read: {cause}")));
        };
        let page = Arc::new(page);
        if copy {
            self.defer_copy(of, &page);
        }
        Ok(Some(page))
    }

    fn start_read(self: &Arc<Self>, slot: u32, content: u64, race: &Arc<Race<Page>>) {
        let (inner, race) = (Arc::clone(self), Arc::clone(race));
        let partition = (slot / self.shape.slots) as usize;
        self.queues[partition].add(Box::new(move || {
            let mut page = Page::zeros(inner.shape.page as usize);
            let read = inner.disk.read(inner.at(slot), page.bytes_mut());
            let result = read.and_then(|()| checked(page, content));
            race.finish(Finish { slot, result });
            inner.unpin(&mut hold(&inner.map), slot);
        }));
    }

    /// The best of the copies that have not been tried.
    fn next_copy(&self, left: &mut Vec<u32>) -> Option<u32> {
        let map = hold(&self.map);
        let blocking = |slot: u32| map.places.partitions[map.places.partition_of(slot)].probability();
        let lowest = left.iter().map(|&slot| blocking(slot)).fold(f64::INFINITY, f64::min);
        let similar = (0..left.len()).filter(|&at| blocking(left[at]) - lowest < SIMILAR);
        let best = similar.min_by_key(|&at| self.queues[map.places.partition_of(left[at])].len())?;
        Some(left.remove(best))
    }

    fn write_page(self: &Arc<Self>, lpn: u32, page: Arc<Page>, size: u64) -> std::result::Result<(), Fault> {
        let began = Instant::now();
        let content = page.checksum();
        let first = self.first_slot(lpn)?;
        let race = Arc::new(Race::new());
        let ticket = Ticket {
            lpn,
            version: Arc::new(AtomicU64::new(0)),
        };
        self.start_write(first, &page, &race, &ticket);
        let deadline = self.deadline();
        let mut tried = vec![first];
        let (mut running, mut late, mut failed) = (1, false, 0);
        let mut cause = None;
        let mut may_copy = true;
        let mut done = Copies::default();
        while done.slots().is_empty() {
            let finished = race.wait((may_copy || !late).then_some(deadline));
            if finished.is_empty() && !late {
                late = true;
                hold(&self.counters).writes.deadlines_missed += 1;
            }
            running -= finished.len();
            for finish in finished {
                match finish.result {
                    Ok(()) => _ = done.push(finish.slot),
                    Err(error) => {
                        failed += 1;
                        cause = Some(error);
                    }
                }
            }
            if !done.slots().is_empty() {
                break;
            }
            let next = if running == 0 && tried.len() < MOST_COPIES {
                // What failed is tried elsewhere whatever the space for copies.
                hold(&self.map).places.take_first(lpn)
            } else if may_copy {
                hold(&self.map).places.take_further(&tried)
            } else {
                None
            };
            match next {
                Some(slot) => {
                    tried.push(slot);
                    running += 1;
                    self.start_write(slot, &page, &race, &ticket);
                }
                None if running == 0 => break,
                None => may_copy = false,
            }
        }
        let winner = done.slots().first().copied();
        self.count(
            |counters| &mut counters.writes,
            began,
            tried.len(),
            winner.is_some_and(|slot| slot != first),
            failed,
        );
        let mut map = self.usable()?;
        // Those that complete from here on wait for the map and find the new version in it.
        for finish in race.decide() {
            if finish.result.is_ok() {
                done.push(finish.slot);
            }
        }
        map.places.accessed(lpn, first, late);
        if winner.is_none() {
            return Err(cause.map_or(Fault::Full, Fault::from));
        }
        let mut changes = Vec::new();
        let version = map.places.replace(lpn, done, content, size, &mut changes);
        ticket.version.store(version, Ordering::Relaxed);
        self.log(&mut map, &changes)
    }

    /// A free slot. For want of one what is written is made durable, which frees those of former versions, and if there are none of these,
    /// copies are given up. What then is held by accesses under way, as by a late write that a further copy has overtaken, is waited for:
    /// there is room as soon as they end.
    fn first_slot(self: &Arc<Self>, lpn: u32) -> std::result::Result<u32, Fault> {
        let mut has_waited = false;
        loop {
            let mut map = self.usable()?;
            if let Some(slot) = map.places.take_first(lpn) {
                return Ok(slot);
            }
            if !map.places.has_retired() && !map.syncing {
                let mut changes = Vec::new();
                map.places.drop_copies(&mut changes);
                self.log(&mut map, &changes)?;
            }
            if map.places.has_retired() {
                drop(map);
                hold(&self.counters).forced_syncs += 1;
                self.sync()?;
            } else if map.syncing || map.places.frees_when_accesses_end() {
                hold(&self.counters).slot_waits += u64::from(!std::mem::replace(&mut has_waited, true));
                drop(self.ended.wait(map).unwrap_or_else(PoisonError::into_inner));
            } else {
                return Err(Fault::Full);
            }
        }
    }

    /// The access to a pinned slot has ended.
    fn unpin(&self, map: &mut Map, slot: u32) {
        map.places.unpin(slot);
        self.ended.notify_all();
    }

    /// The write to a slot that was taken for it has ended.
    fn written(&self, map: &mut Map, slot: u32) {
        map.places.written(slot);
        self.ended.notify_all();
    }

    fn start_write(self: &Arc<Self>, slot: u32, page: &Arc<Page>, race: &Arc<Race<()>>, ticket: &Ticket) {
        let (inner, page, race, ticket) = (Arc::clone(self), Arc::clone(page), Arc::clone(race), ticket.clone());
        let partition = (slot / self.shape.slots) as usize;
        self.queues[partition].add(Box::new(move || {
            let began = Instant::now();
            let result = inner.disk.write(inner.at(slot), page.bytes());
            inner.follow(began.elapsed());
            let failed = result.is_err();
            let late = race.finish(Finish { slot, result });
            let mut map = hold(&inner.map);
            if failed {
                map.places.give_up(slot, true);
            } else if late.is_some() {
                inner.adopt(&mut map, ticket.lpn, ticket.version.load(Ordering::Relaxed), slot);
            }
            inner.written(&mut map, slot);
        }));
    }

    fn adopt(&self, map: &mut Map, lpn: u32, version: u64, slot: u32) -> bool {
        let mut changes = Vec::new();
        let kept = map.places.adopt(lpn, version, slot, &mut changes);
        // A log that fails here says so to the next write.
        let _ = self.log(map, &changes);
        kept
    }

    /// Writes a copy of that version when a random other partition has nothing else to do.
    fn defer_copy(self: &Arc<Self>, of: PageRecord, page: &Arc<Page>) {
        let Some(slot) = hold(&self.map).places.take_further(of.copies.slots()) else {
            return;
        };
        let (inner, page) = (Arc::clone(self), Arc::clone(page));
        let partition = (slot / self.shape.slots) as usize;
        let deferred = self.queues[partition].defer(Box::new(move || {
            let mut map = hold(&inner.map);
            if map.places.page(of.lpn).is_none_or(|page| page.version != of.version) {
                map.places.give_up(slot, false);
                inner.written(&mut map, slot);
                return;
            }
            drop(map);
            let result = inner.disk.write(inner.at(slot), page.bytes());
            let mut map = hold(&inner.map);
            if result.is_err() {
                map.places.give_up(slot, true);
            } else if inner.adopt(&mut map, of.lpn, of.version, slot) {
                hold(&inner.counters).idle_copies += 1;
            }
            inner.written(&mut map, slot);
        }));
        if !deferred {
            let mut map = hold(&self.map);
            map.places.give_up(slot, false);
            self.written(&mut map, slot);
        }
    }

    fn sync(self: &Arc<Self>) -> std::result::Result<(), Fault> {
        let _one = hold(&self.syncing);
        let mut map = self.usable()?;
        if !map.changed {
            return Ok(());
        }
        map.syncing = true;
        map.changed = false;
        let retired = map.places.take_retired();
        drop(map);
        let data = self.disk.sync();
        let mut map = hold(&self.map);
        let written = data.and_then(|()| {
            map.log.append(&Record::Durable)?;
            map.log.file()
        });
        drop(map);
        let durable = written.and_then(|file| file.sync_data());
        let mut map = hold(&self.map);
        map.syncing = false;
        self.ended.notify_all();
        if let Err(cause) = durable {
            map.broken = Some(format!("a synchronisation failed: {cause}"));
            return Err(Fault::Device(cause.to_string()));
        }
        for slot in retired {
            map.places.give_up(slot, false);
        }
        // The proof that what is before it was synchronised. Nothing is owed to it: a log that is full says so to the next record.
        let proof = map.log.append(&Record::Durable);
        let held_back = std::mem::take(&mut map.held_back);
        if map.log.is_large() && held_back.is_empty() {
            let Map { places, log, .. } = &mut *map;
            if let Err(cause) = log.rewrite(&places.pages) {
                map.broken = Some(format!("the map log could not be written anew: {cause}"));
                return Err(Fault::from(cause));
            }
            let mut counters = hold(&self.counters);
            counters.map_log_rewrites += 1;
            counters.map_log_syncs += 1;
            counters.map_log_bytes += map.log.bytes();
        }
        self.log(&mut map, &held_back)?;
        let mut counters = hold(&self.counters);
        counters.data_syncs += 1;
        counters.map_log_syncs += 1;
        counters.map_log_bytes += (1 + usize::from(proof.is_ok())) as u64 * map_log::RECORD as u64;
        Ok(())
    }

    fn count(
        &self,
        of: impl Fn(&mut Counters) -> &mut Races,
        began: Instant,
        accesses: usize,
        won_by_further: bool,
        failed: u64,
    ) {
        let mut counters = hold(&self.counters);
        let races = of(&mut counters);
        races.by_accesses[accesses.clamp(1, MOST_COPIES) - 1] += 1;
        races.won_by_further += u64::from(won_by_further);
        races.failed_copies += failed;
        races.time.record(began.elapsed().as_nanos() as u64);
    }

    fn report(&self) -> Value {
        let map = hold(&self.map);
        let partitions: Vec<Value> = map
            .places
            .partitions
            .iter()
            .map(|of| json!({"accesses": of.total, "late": of.late}))
            .collect();
        let store = json!({
            "page": self.shape.page,
            "partitions": self.shape.partitions,
            "slots": self.shape.all_slots(),
            "free_slots": map.places.free_slots(),
            "size": map.places.pages.size,
            "pages": map.places.mapped_pages(),
            "further_copies": map.places.copies_kept(),
            "evicted_groups": map.places.evicted,
            "map_log_bytes": map.log.bytes(),
            "broken": map.broken,
        });
        drop(map);
        let mut done = hold(&self.counters).to_json();
        done["deadline_ns"] = json!(self.deadline().as_nanos() as u64);
        done["by_partition"] = json!(partitions);
        json!({"store": store, "since_open": done})
    }
}

/// Which version a late write was of; 0 while that is not decided.
#[derive(Clone)]
struct Ticket {
    lpn: u32,
    version: Arc<AtomicU64>,
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    const NEVER_LATE: (&str, &str) = ("deadline", "100000000");

    fn options(pairs: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (key, value) in [("size", "4MiB"), ("partitions", "4")].iter().chain(pairs) {
            options.set(key, value).unwrap();
        }
        options
    }

    fn open(path: &Path, pairs: &[(&str, &str)]) -> Store {
        Store::open(path, options(pairs), true).unwrap_or_else(|refusal| panic!("{refusal:?}"))
    }

    fn content(store: &Store) -> Vec<u8> {
        let mut bytes = vec![7; store.size() as usize];
        assert_eq!(store.read(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    /// Writes of odd lengths at odd places, against a vector of bytes; opened again in between.
    #[test]
    fn reads_back_what_a_vector_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let mut random = ftlab_core::Stream::new(5, "writes");
        let mut naive: Vec<u8> = Vec::new();
        for round in 0..4 {
            let store = open(&path, &[]);
            assert!(content(&store) == naive, "round {round}");
            for step in 0..60 {
                let at = random.below(300_000) as usize;
                let bytes = vec![random.below(256) as u8; 1 + random.below(20_000) as usize];
                naive.resize(naive.len().max(at + bytes.len()), 0);
                naive[at..at + bytes.len()].copy_from_slice(&bytes);
                store.write(at as u64, &bytes).unwrap();
                match step % 10 {
                    3 => store.sync().unwrap(),
                    7 => {
                        let size = random.below(naive.len() as u64);
                        naive.truncate(size as usize);
                        store.truncate(size).unwrap();
                    }
                    _ => {}
                }
            }
            assert!(content(&store) == naive, "at the end of round {round}");
        }
    }

    #[test]
    fn what_is_refused_leaves_no_file_and_removes_none() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "").unwrap();
        for (path, is_there) in [(&new, false), (&old, true)] {
            let refused = Store::open(path, options(&[("partitions", "256")]), true);
            assert!(matches!(refused, Err(Refusal::Other(_))), "4 pages in each partition");
            assert_eq!((path.exists(), map_beside(path).exists()), (is_there, false));
        }
    }

    /// 2^32 pages, in whatever partitions: the limit is of all together.
    #[test]
    fn too_many_pages_are_told_by_the_limit_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = [("size", "16TiB"), ("page", "4096"), ("partitions", "16")];
        let Err(Refusal::Other(refused)) = Store::open(&folder.path().join("new"), options(&wanted), true) else {
            panic!("2^32 pages are one too many");
        };
        let expected = "expected at least 8 pages of 4096 bytes in each, and at most 4294967295 in all";
        assert!(refused.to_string().ends_with(expected), "{refused}");
    }

    /// A disk of eight parts, the partitions of a store, that can be shut one at a time: a write to it ends when it is opened again.
    #[derive(Clone)]
    struct Gate {
        below: Arc<FileDisk>,
        shut: Arc<(Mutex<Option<u64>>, Condvar)>,
    }

    impl Gate {
        fn set(&self, part: Option<u64>) {
            *hold(&self.shut.0) = part;
            self.shut.1.notify_all();
        }
    }

    impl Disk for Gate {
        fn size(&self) -> u64 {
            self.below.size()
        }

        fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
            self.below.read(at, into)
        }

        fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
            let part = at / (self.size() / 8);
            let shut = hold(&self.shut.0);
            // An end, so that a store that waits for the part alone fails its test in place of hanging.
            let most = Duration::from_secs(10);
            let waited = self.shut.1.wait_timeout_while(shut, most, |shut| *shut == Some(part));
            if waited.is_ok_and(|(_, time)| time.timed_out()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.below.write(at, from)
        }

        fn sync(&self) -> io::Result<()> {
            self.below.sync()
        }
    }

    /// A store of 32 pages over eight partitions, of which page p was written once to partition p mod 8.
    fn gated(path: &Path, copies: &str) -> (Store, Gate) {
        gated_of(path, &[("copies", copies)], 32)
    }

    /// The same of so many pages, with further options.
    fn gated_of(path: &Path, more: &[(&str, &str)], pages: u64) -> (Store, Gate) {
        let with = |deadline| {
            let pairs = [&[("partitions", "8"), ("space", "0.5"), deadline], more].concat();
            let mut gate = None;
            let above = |disk: FileDisk| -> Arc<dyn Disk> {
                let made = Gate {
                    below: Arc::new(disk),
                    shut: Arc::default(),
                };
                gate = Some(made.clone());
                Arc::new(made)
            };
            let store = Store::open_through(path, options(&pairs), true, above);
            (store.unwrap_or_else(|refusal| panic!("{refusal:?}")), gate.unwrap())
        };
        let (store, gate) = with(NEVER_LATE);
        (0..pages).for_each(|lpn| store.write(lpn * 4096, &[200; 4096]).unwrap());
        store.sync().unwrap();
        // The disk as well, which nobody else may have open.
        drop((store, gate));
        with(("deadline", "2000"))
    }

    fn writes(store: &Store, key: &str) -> u64 {
        store.report()["since_open"]["writes"][key].as_u64().unwrap()
    }

    /// One partition after another is shut while all pages are written: what would be written there is written elsewhere, whatever else is late.
    #[test]
    fn late_writes_go_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (store, gate) = gated(&folder.path().join("db"), "3");
        let home = |lpn: u32| {
            let map = hold(&store.inner.map);
            map.places.partition_of(map.places.page(lpn).unwrap().copies.slots()[0]) as u64
        };
        let mut held = 0;
        for part in 0..8 {
            gate.set(Some(part));
            for lpn in 0..32 {
                held += u64::from(home(lpn) == part);
                store.write(u64::from(lpn) * 4096, &[part as u8; 4096]).unwrap();
                assert_ne!(home(lpn), part, "page {lpn}");
            }
            gate.set(None);
            store.sync().unwrap();
        }
        let report = store.report();
        assert!(held >= 4, "four pages lay in the first partition: {held}");
        for key in ["won_by_further", "deadlines_missed", "further"] {
            assert!(writes(&store, key) >= held, "{key}, {held} held: {report}");
        }
        assert_eq!(writes(&store, "failed_copies"), 0, "{report}");
        assert!(content(&store).iter().all(|&byte| byte == 7));
    }

    /// In a store of 64 slots, 63 of pages and the last of a write that a further copy has overtaken, a page is written: there is room when
    /// that write ends, and none when all 64 have pages.
    #[test]
    fn a_late_write_that_holds_the_last_slot_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (store, gate) = gated_of(&folder.path().join("db"), &[("copies", "3"), ("size", "256KiB")], 60);
        let page = |lpn: u64| store.write(lpn * 4096, &[lpn as u8; 4096]);
        // Partitions 0 to 3 are full, so that page 0 goes to the one slot of partition 4.
        gate.set(Some(4));
        page(0).unwrap();
        assert_eq!(writes(&store, "won_by_further"), 1);
        store.sync().unwrap();
        (60..63).for_each(|lpn| page(lpn).unwrap());
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| page(63).unwrap());
            while store.report()["since_open"]["slot_waits"] == 0 && !writer.is_finished() {
                std::thread::yield_now();
            }
            assert!(!writer.is_finished(), "there is no slot before partition 4 is open");
            gate.set(None);
        });
        assert!(matches!(page(0), Err(Fault::Full)), "64 pages in 64 slots");
        let bytes = content(&store);
        assert!((0..64).all(|lpn| bytes[lpn * 4096] == if (1..60).contains(&lpn) { 200 } else { lpn as u8 }));
    }

    /// With one copy of each page a late write is late, and is written nowhere else.
    #[test]
    fn late_writes_stay_where_nothing_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (store, gate) = gated(&folder.path().join("db"), "1");
        gate.set(Some(3));
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| store.write(3 * 4096, &[5; 4096]).unwrap());
            while writes(&store, "deadlines_missed") == 0 && !writer.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!(writes(&store, "count"), 0, "ended before its partition did");
            gate.set(None);
        });
        let report = store.report();
        let counts = ["count", "deadlines_missed", "further", "failed_copies"].map(|key| writes(&store, key));
        assert_eq!(counts, [1, 1, 0, 0], "{report}");
        assert_eq!(content(&store)[3 * 4096..4 * 4096], [5; 4096]);
    }

    /// Each third access fails: with copies nothing is lost, as what fails is tried elsewhere.
    #[test]
    fn a_failed_copy_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let fails = [("model", "read_us=0,write_us=0,fail=3"), ("space", "1"), NEVER_LATE];
        let store = open(&path, &fails);
        let mut written = Vec::new();
        for lpn in 0..40_u64 {
            store.write(lpn * 4096, &[lpn as u8 + 1; 4096]).unwrap();
            written.push(lpn);
        }
        store.sync().unwrap();
        // Of 59 accesses each third.
        assert_eq!(writes(&store, "failed_copies"), 19);
        drop(store);
        let store = open(&path, &[]);
        let mut page = [0; 4096];
        for lpn in written {
            store.read(lpn * 4096, &mut page).unwrap();
            assert!(page.iter().all(|&byte| byte == lpn as u8 + 1), "page {lpn}");
        }
        drop(store);
        let broken = open(&path, &[("model", "read_us=0,write_us=0,fail=1")]);
        assert!(matches!(broken.read(0, &mut page), Err(Fault::Device(_))));
        assert!(matches!(broken.write(0, &page), Err(Fault::Device(_))));
        drop(broken);
        let store = open(&path, &[]);
        store.read(0, &mut page).unwrap();
        assert!(
            page.iter().all(|&byte| byte == 1),
            "what was there before a failed write still is"
        );
    }

    /// What was changed behind its back is not handed out, but its copy is.
    #[test]
    fn a_changed_copy_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let (store, gate) = gated(&path, "2");
        gate.set(Some(0));
        store.write(0, &[1; 4096]).unwrap();
        gate.set(None);
        // A store that ends waits for what is late: page 0 has two copies then, and page 1 one. The next says so durably.
        drop((store, gate));
        drop(open(&path, &[("partitions", "8")]));
        let changed = |lpn: usize, copy: usize| {
            let pages = map_log::read(&map_beside(&path)).unwrap().durable;
            let slot = pages.by_lpn[lpn].unwrap().copies.slots()[copy];
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[9], u64::from(slot) * 4096 + 5).unwrap();
        };
        let read = |lpn: u64| {
            let mut page = [0; 4096];
            let store = open(&path, &[("partitions", "8"), NEVER_LATE]);
            store.read(lpn * 4096, &mut page).map(|_| page)
        };
        changed(0, 0);
        assert_eq!(read(0).unwrap(), [1; 4096]);
        changed(0, 1);
        assert!(matches!(read(0), Err(Fault::Device(_))));
        changed(1, 0);
        assert!(matches!(read(1), Err(Fault::Device(_))));
    }

    /// A database with room for little more than itself is written over and over without a sync.
    #[test]
    fn slots_come_back_without_a_sync_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let store = open(&path, &[("size", "256KiB"), NEVER_LATE]);
        for round in 0..20 {
            for lpn in 0..48_u64 {
                store.write(lpn * 4096, &[round; 4096]).unwrap();
            }
        }
        assert!(store.report()["since_open"]["forced_syncs"].as_u64().unwrap() > 20);
        assert!(matches!(store.write(64 * 4096, &[0; 10]), Err(Fault::Full)));
        let grown: Vec<bool> = (48..64)
            .map(|lpn| store.write(lpn * 4096, &[3; 4096]).is_ok())
            .collect();
        assert!(
            grown.iter().all(|&done| done),
            "each slot can hold a page of the database"
        );
        assert!(
            matches!(store.write(0, &[4; 4096]), Err(Fault::Full)),
            "no room for a second version"
        );
        assert_eq!(content(&store)[0], 19);
    }

    #[test]
    fn refuses_what_is_not_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        std::fs::write(&path, b"SQLite format 3").unwrap();
        let why = |pairs: &[(&str, &str)]| match Store::open(&path, options(pairs), true) {
            Err(Refusal::Other(error) | Refusal::Busy(error)) => error.to_string(),
            Ok(_) => panic!("opened"),
        };
        assert!(why(&[]).contains("is not empty and has no map log"));
        std::fs::remove_file(&path).unwrap();
        assert!(why(&[("size", "4KiB")]).contains("expected at least 8"));
        let held = open(&path, &[]);
        assert!(why(&[]).contains("another process"));
        drop(held);
        assert!(why(&[("partitions", "8")]).contains("was made with partitions=4"));
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(4096)
            .unwrap();
        assert!(why(&[]).contains("expected the 4194304"));
    }

    /// After a power cut the log may end anywhere behind what was synchronised, and each slot that was written since may have either content:
    /// every page is then as it was at the sync or at a later write of it.
    #[test]
    fn a_power_cut_leaves_the_synchronised_or_something_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let pairs = [("size", "1MiB"), ("direct", "off"), ("deadline", "50"), ("space", "1")];
        let mut random = ftlab_core::Stream::new(9, "cuts");
        let store = open(&path, &pairs);
        let fill = |lpn: u64, value: u8| store.write(lpn * 4096, &[value; 4096]).unwrap();
        (0..24).for_each(|lpn| fill(lpn, 1));
        (0..24).step_by(2).for_each(|lpn| fill(lpn, 2));
        store.sync().unwrap();
        let before = std::fs::read(&path).unwrap();
        let durable = std::fs::metadata(map_beside(&path)).unwrap().len();
        for value in 3..7 {
            (0..24).step_by(3).for_each(|lpn| fill(lpn, value));
        }
        drop(store);
        let after = std::fs::read(&path).unwrap();
        let log = std::fs::read(map_beside(&path)).unwrap();
        assert!(log.len() as u64 >= durable + 32 * 64);
        for cut in 0..40 {
            let mut data = after.clone();
            for slot in 0..data.len() / 4096 {
                if random.below(2) == 0 {
                    let bytes = slot * 4096..(slot + 1) * 4096;
                    data[bytes.clone()].copy_from_slice(&before[bytes]);
                }
            }
            let end = durable + random.below(log.len() as u64 - durable + 1);
            std::fs::write(&path, &data).unwrap();
            std::fs::write(map_beside(&path), &log[..end as usize]).unwrap();
            let store = open(&path, &pairs);
            assert_eq!(store.size(), 24 * 4096);
            let mut page = [0; 4096];
            for lpn in 0..24_u64 {
                store.read(lpn * 4096, &mut page).unwrap();
                let synchronised = if lpn % 2 == 0 { 2 } else { 1 };
                let later = lpn % 3 == 0 && (3..7).contains(&page[0]);
                assert!(page[0] == synchronised || later, "cut {cut}, page {lpn}: {}", page[0]);
                assert!(page.iter().all(|&byte| byte == page[0]), "cut {cut}, page {lpn}");
            }
        }
    }
    /// A bit that changed in the log of a database that was closed is either refused or loses nothing that was synchronised.
    #[test]
    fn a_changed_bit_in_the_log_never_takes_what_was_synchronised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let pairs = [("size", "1MiB"), ("direct", "off"), ("copies", "1")];
        let store = open(&path, &pairs);
        (0..8).for_each(|lpn| store.write(lpn * 4096, &[1; 4096]).unwrap());
        store.sync().unwrap();
        (2..5).for_each(|lpn| store.write(lpn * 4096, &[2; 4096]).unwrap());
        store.sync().unwrap();
        drop(store);
        let appended = std::fs::read(map_beside(&path)).unwrap();
        // Opening writes the log anew.
        drop(open(&path, &pairs));
        let anew = std::fs::read(map_beside(&path)).unwrap();
        for (log, least) in [(&appended, 11), (&anew, 8)] {
            let mut refused = 0;
            for record in 1..log.len() / map_log::RECORD {
                let mut changed = log.clone();
                changed[record * map_log::RECORD + 20] ^= 1;
                std::fs::write(map_beside(&path), &changed).unwrap();
                let options = options(&pairs);
                let store = match Store::open(&path, options, true) {
                    Ok(store) => store,
                    Err(Refusal::Other(error)) => {
                        assert!(
                            error.to_string().contains("is damaged, and what follows it is not"),
                            "{error}"
                        );
                        refused += 1;
                        continue;
                    }
                    Err(Refusal::Busy(error)) => panic!("{error}"),
                };
                let mut page = [0; 4096];
                for lpn in 0..8 {
                    store.read(lpn * 4096, &mut page).unwrap();
                    let last = if (2..5).contains(&lpn) { 2 } else { 1 };
                    assert_eq!(page, [last; 4096], "record {record}, page {lpn}");
                }
            }
            assert!(refused >= least, "{refused} of {}", log.len() / map_log::RECORD);
        }
    }
}
