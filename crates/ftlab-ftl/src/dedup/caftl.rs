//! CAFTL: deduplication inside the drive, of what can be hashed in time, and of the rest when the drive is idle.
//!
//! # Model
//! A unique unit is mapped directly; when a second LPN shares it, it becomes a virtual page, which collection moves by
//! one update (the secondary map). The fingerprint store is small: it evicts the fingerprint with the fewest hits. Not
//! all units that are written are hashed:
//! * **Sampling**: of a request of several units, the unit with the greatest sample (32 bits of it) is hashed first. If it is
//!   not in the store, no other unit of the request is hashed.
//! * **Pre-hash** (`crc`): the CRC-32 of a unit is computed first, and the fingerprint only if the store has one with
//!   that CRC. Otherwise the unit is stored at once, and its fingerprint is computed later.
//! * **Switch**: when programs under way take the share `high` of their room in the write buffer or more, and more than `low`, hashing
//!   stops until they take `low` or less.
//!
//! Data that was stored without a fingerprint is read, hashed and merged **out of line**: in idle moments, oldest data
//! first; and when a collection has read it anyway, instead of moving it. What is found then is a hit of its fingerprint, as at
//! writing. A unit that is overwritten while it waits begins to wait anew.
//!
//! # Parameters
//! * `entries` (count, default a hundredth of the logical units; 0: any number), `eviction` (`count`, `lru` or `two_level`, default
//!   `count`), `second` (share, default 0.5): the store, as in `page_dedup`.
//! * `sampling`, `crc`, `switch`, `out_of_line` (bools, default true).
//! * `high`, `low` (shares, default 0.95 and 0.5): of the switch.
//! * `hash_us` (µs, default 12), `hash_units` (count, default 1): time of a fingerprint, and engines that compute them side by side.
//! * `crc_us` (µs, default 1): time of a CRC, on an engine of its own.
//! * `idle_us` (µs, default 1000, at least 1): how long a lane must be idle for work out of line, and how often this is checked.
//! * `idle_units` (count, default 1024): without time, an idle moment comes after so many host units, at the end of the write with
//!   which they are complete: never within a request, and once however many units that has.
//!
//! In each idle moment, also with time, at most 64 units are hashed, or 32 if all of them are merged. The last of 64 has
//! been read, and counts among `hashes` and `examined`; its fingerprint enters the store, or leads to a merge, at the
//! beginning of the next moment, unless a collection meets the unit before: it reads and hashes the unit again. A power cut without
//! protected memory forgets which units wait.
//!
//! # Not modelled
//! The first four bytes of a unit, which the source samples: the lower 32 bits of its content id stand for them. The
//! order of the store in segments and buckets. Pages of metadata that hold the LPN and fingerprint of each page. Without time or without a write buffer hashing is
//! never stopped. Units of a request that leave the write buffer between those of others are sampled again. The engine's
//! time for fingerprints computed later (they are counted).
//!
//! # Errors
//! An unknown `eviction`; shares outside 0 to 1, or `low` above `high`; 0 engines.
//!
//! # Cost
//! O(1) a unit, O(units of the request) for a sample. 40 bytes a fingerprint, 1 bit a logical unit (not yet hashed), both of the drive's memory.
//!
//! # Source
//! Chen, Luo and Zhang, "CAFTL: A Content-Aware Flash Translation Layer Enhancing the Lifespan of Flash Memory based Solid State
//! Drives", FAST 2011. Watermarks, time of a CRC and idle times are ours.

use std::collections::VecDeque;

use ftlab_core::{Error, Lpn, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, PlainEviction, Room};
use super::hashing::{Hashing, nanoseconds};
use super::units::{Looked, SavedUnits, Units};
use super::{
    After, Alone, AloneWrite, Decision, DedupPolicy, DedupWrite, Event, Idle, IdleWork, Merged, Setup, Work,
    a_hundredth,
};
use crate::indirection::Of;
use crate::{Now, learnt};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub entries: Option<u32>,
    pub eviction: PlainEviction,
    pub second: f64,
    pub sampling: bool,
    pub crc: bool,
    pub switch: bool,
    pub out_of_line: bool,
    pub high: f64,
    pub low: f64,
    pub hash_us: f64,
    pub hash_units: u16,
    pub crc_us: f64,
    pub idle_us: f64,
    pub idle_units: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            entries: None,
            eviction: PlainEviction::Count,
            second: 0.5,
            sampling: true,
            crc: true,
            switch: true,
            out_of_line: true,
            high: 0.95,
            low: 0.5,
            hash_us: 12.0,
            hash_units: 1,
            crc_us: 1.0,
            idle_us: 1000.0,
            idle_units: 1024,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    let fault = |text: String| Error::input(format!("dedup policy `caftl`: {text}"));
    if !(0.0..=1.0).contains(&params.low) || !(params.low..=1.0).contains(&params.high) {
        return Err(fault(format!(
            "low = {} and high = {}, expected 0 to 1, low not above high",
            params.low, params.high
        )));
    }
    if !(1.0..=60e6).contains(&params.idle_us) {
        return Err(fault(format!("idle_us = {}, expected 1 to 60000000", params.idle_us)));
    }
    if params.idle_units == 0 {
        return Err(fault("idle_units = 0, expected at least 1".to_owned()));
    }
    let room = Room {
        entries: params.entries.unwrap_or_else(|| a_hundredth(setup.logical_units)),
        eviction: params.eviction.into(),
        second: params.second,
    };
    let hashing = Hashing::new("caftl", params.hash_us, params.hash_units)?;
    Ok(Box::new(Caftl {
        crc: params.crc.then_some(Work::new(
            hashing.engine_after(),
            nanoseconds("caftl", "crc_us", params.crc_us)?,
        )),
        nobody: Work::new(hashing.engine_after() + 1, 0),
        idle_ns: nanoseconds("caftl", "idle_us", params.idle_us)?,
        hashing,
        units: Units::new("caftl", room)?,
        sample: None,
        is_off: false,
        passing: None,
        unhashed: Unhashed::default(),
        figures: Figures::default(),
        logical_units: setup.logical_units,
        params,
    }))
}

struct Caftl {
    params: Params,
    hashing: Hashing,
    crc: Option<Work>,
    /// No time, of an engine that nobody uses.
    nobody: Work,
    idle_ns: u64,
    units: Units,
    /// Of the request that was sampled last.
    sample: Option<Sample>,
    /// The switch is off.
    is_off: bool,
    /// Content of the unit that is being stored without a fingerprint.
    passing: Option<u64>,
    unhashed: Unhashed,
    figures: Figures,
    logical_units: u32,
}

/// The unit of a request that was hashed for all of them.
#[derive(Clone, Copy, Debug)]
struct Sample {
    request: u64,
    step: u32,
    is_duplicate: bool,
    /// The work of the request with which this is known.
    known: u8,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Figures {
    /// Units not hashed because of their sample, their CRC, and the switch.
    by_sample: u64,
    by_crc: u64,
    by_switch: u64,
    examined: u64,
    merged: u64,
    merged_in_collections: u64,
}

/// Units stored without a fingerprint. What they hold is what reading them would show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "SavedUnhashed", into = "SavedUnhashed")]
struct Unhashed {
    contents: FxHashMap<u32, Waiting>,
    /// In the order in which they were stored; some have gone since, or wait again further back.
    waiting: VecDeque<u32>,
    /// How many have been taken off the front.
    taken: u64,
    examined: Option<u32>,
}

/// Units that may have gone from the queue, beyond as many as wait.
const MOST_GONE: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    content: u64,
    /// Among all that have ever waited.
    place: u64,
}

/// The same without what has gone.
#[derive(Serialize, Deserialize)]
struct SavedUnhashed {
    #[serde(serialize_with = "learnt::sorted")]
    contents: FxHashMap<u32, u64>,
    waiting: Vec<u32>,
    examined: Option<u32>,
}

impl From<Unhashed> for SavedUnhashed {
    fn from(unhashed: Unhashed) -> Self {
        let Unhashed { contents, taken, .. } = &unhashed;
        let still = |(place, lpn)| {
            contents
                .get(lpn)
                .is_some_and(|unit| unit.place == place)
                .then_some(*lpn)
        };
        SavedUnhashed {
            waiting: (*taken..).zip(&unhashed.waiting).filter_map(still).collect(),
            contents: contents.iter().map(|(&lpn, unit)| (lpn, unit.content)).collect(),
            examined: unhashed.examined,
        }
    }
}

impl From<SavedUnhashed> for Unhashed {
    fn from(saved: SavedUnhashed) -> Self {
        let places: FxHashMap<u32, u64> = saved.waiting.iter().copied().zip(0..).collect();
        // The unit that has just been read waits no longer.
        let place = |lpn: u32| places.get(&lpn).copied().unwrap_or(u64::MAX);
        let unit = |(lpn, content)| {
            (
                lpn,
                Waiting {
                    content,
                    place: place(lpn),
                },
            )
        };
        Unhashed {
            contents: saved.contents.into_iter().map(unit).collect(),
            waiting: saved.waiting.into(),
            taken: 0,
            examined: saved.examined,
        }
    }
}

impl Unhashed {
    fn add(&mut self, lpn: Lpn, content: u64) {
        if self.waiting.len() > 2 * self.contents.len() + MOST_GONE {
            self.close_up();
        }
        let place = self.taken + self.waiting.len() as u64;
        self.contents.insert(lpn.0, Waiting { content, place });
        self.waiting.push_back(lpn.0);
    }

    /// Nothing is known any more of what the LPN held, even if it has just been read.
    fn gone(&mut self, lpn: Lpn) {
        if !self.contents.is_empty() {
            self.contents.remove(&lpn.0);
        }
        self.examined = self.examined.filter(|&examined| examined != lpn.0);
    }

    /// Those that have gone, or wait again further back, leave the queue: where nothing takes from it, it would grow with every write.
    #[cold]
    fn close_up(&mut self) {
        let mut still = VecDeque::with_capacity(self.contents.len());
        for (place, lpn) in (self.taken..).zip(self.waiting.drain(..)) {
            if let Some(unit) = self.contents.get_mut(&lpn).filter(|unit| unit.place == place) {
                unit.place = self.taken + still.len() as u64;
                still.push_back(lpn);
            }
        }
        self.waiting = still;
    }

    fn next(&mut self) -> Option<u32> {
        while let Some(lpn) = self.waiting.pop_front() {
            let place = self.taken;
            self.taken += 1;
            if self.contents.get(&lpn).is_some_and(|unit| unit.place == place) {
                return Some(lpn);
            }
        }
        None
    }
}

impl Caftl {
    /// Whether the switch lets units be hashed.
    fn is_on(&mut self, taken: f64) -> bool {
        if self.params.switch {
            self.is_off = match self.is_off {
                true => taken > self.params.low,
                false => taken >= self.params.high && taken > self.params.low,
            };
        }
        !self.is_off
    }

    /// The sample of the request, which is hashed when the first unit of the request comes.
    fn sample_of(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Sample {
        let request = write.contents.number();
        if let Some(last) = self.sample
            && last.request == request
        {
            return last;
        }
        let first_bytes = |content: u64| content as u32;
        let greatest = write
            .contents
            .units()
            .max_by_key(|&(step, content)| (first_bytes(content), !step));
        let (step, content) = greatest.unwrap_or((write.step, write.content));
        let before = works.len();
        self.hash(content, After::Nothing, works);
        let sample = Sample {
            known: (works.len() - before - 1) as u8,
            request,
            step,
            is_duplicate: self.units.table.find(content).is_some(),
        };
        self.sample = Some(sample);
        sample
    }

    /// Computes a fingerprint: at once, or later where no other can be the same by its CRC.
    fn hash(&mut self, content: u64, after: After, works: &mut Vec<Work>) {
        works.extend(self.crc.map(|crc| Work { after, ..crc }));
        if self.is_hashed_at_once(content) {
            let after = if self.crc.is_none() { after } else { After::Previous };
            self.hashing.hash_after(after, works);
        }
    }

    /// Whether the fingerprint is computed at once; else it counts as computed later. 32 bits of a hash of the content id stand for the
    /// CRC.
    #[inline]
    fn is_hashed_at_once(&mut self, content: u64) -> bool {
        let at_once = self.crc.is_none() || self.units.table.has_hash_of(content);
        if !at_once {
            self.figures.by_crc += 1;
            self.hashing.hash_later();
        }
        at_once
    }

    /// A unit stored without a fingerprint has been read, and is hashed; it may be overwritten before the fingerprint is known.
    fn examine(&mut self, works: &mut Vec<Work>) {
        self.figures.examined += 1;
        self.hashing.hash(works);
    }

    /// The fingerprint of a unit stored without one is known now: where else its content lies, or else it comes into the store.
    fn hashed(&mut self, lpn: Lpn) -> Option<Of> {
        let Waiting { content, .. } = self.unhashed.contents.remove(&lpn.0)?;
        let elsewhere = self.units.elsewhere(content);
        if elsewhere.is_none() {
            self.units.knows(content, lpn);
        }
        elsewhere
    }

    fn pass(&mut self, content: u64) -> Decision {
        self.units.pass();
        self.passing = Some(content);
        Decision::Store
    }
}

impl DedupPolicy for Caftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let mut report = vec![("hashes", self.hashing.count as f64)];
        report.extend(self.units.report());
        let Figures {
            by_sample,
            by_crc,
            by_switch,
            examined,
            merged,
            merged_in_collections,
        } = self.figures;
        report.extend([
            ("skipped_by_sample", by_sample as f64),
            ("skipped_by_crc", by_crc as f64),
            ("skipped_by_switch", by_switch as f64),
            ("examined", examined as f64),
            ("merged", merged as f64),
            ("merged_in_collections", merged_in_collections as f64),
        ]);
        report
    }

    fn asks_writer(&self) -> bool {
        false
    }

    fn asks_pressure(&self) -> bool {
        self.params.switch
    }

    fn fingerprints(&self) -> Option<&Fingerprints> {
        Some(&self.units.table)
    }

    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        self.passing = None;
        if !self.is_on(write.pressure) {
            self.figures.by_switch += 1;
            return self.pass(write.content);
        }
        let sampled = self.params.sampling && write.context.request_units > 1;
        let sample = sampled.then(|| self.sample_of(write, works));
        if let Some(sample) = sample.filter(|_| works.is_empty()) {
            // What becomes of the unit is known with the sample of its request, which was hashed with another unit.
            works.push(Work {
                after: After::OfRequest(sample.known),
                ..self.nobody
            });
        }
        match sample {
            Some(sample) if sample.step == write.step => {}
            Some(sample) if !sample.is_duplicate => {
                self.figures.by_sample += 1;
                return self.pass(write.content);
            }
            Some(sample) => self.hash(write.content, After::OfRequest(sample.known), works),
            None => self.hash(write.content, After::Nothing, works),
        }
        match self.units.look_up(write.content, 0) {
            Looked::Shared { of, .. } => Decision::Share(of),
            Looked::New => Decision::Store,
        }
    }

    fn write_alone(&mut self, write: AloneWrite<'_>) -> (Alone, u64) {
        let content = write.content;
        self.passing = None;
        if !self.is_on(0.0) {
            self.figures.by_switch += 1;
            self.pass(content);
            return (Alone::Store, 0);
        }
        let crc_ns = self.crc.map_or(0, |crc| crc.ns);
        if self.is_hashed_at_once(content) {
            let ns = crc_ns + self.hashing.hash_alone();
            return (self.units.look_up(content, 0).alone(), ns);
        }
        // No fingerprint has its CRC, so that none is of its content.
        self.units.look_for_absent(content, 0);
        (Alone::Store, crc_ns)
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Stored { lpn, of: Of::Lpn(_) } if self.passing.is_some() => {
                if let (Some(content), true) = (self.passing.take(), self.params.out_of_line) {
                    self.unhashed.add(lpn, content);
                }
            }
            Event::Stored { .. } => {
                self.units.on(event);
            }
            Event::Became { lpn, .. } | Event::Gone(Of::Lpn(lpn)) => {
                self.unhashed.gone(lpn);
                self.units.on(event);
            }
            Event::Gone(Of::Vpn(_)) => {
                self.units.on(event);
            }
            Event::ChunkStored { .. } | Event::ChunkGone(_) => {}
        }
    }

    fn replaced(&mut self, lpn: Lpn, now: Now) {
        self.unhashed.gone(lpn);
        if self.passing.is_some() {
            let of = Of::Lpn(lpn);
            self.units.gone(of);
            self.on(Event::Stored { lpn, of }, now);
        } else {
            self.units.replaced(lpn);
        }
    }

    fn idle_ns(&self) -> Option<u64> {
        self.params.out_of_line.then_some(self.idle_ns)
    }

    fn idle_units(&self) -> Option<u64> {
        self.params.out_of_line.then_some(self.params.idle_units)
    }

    fn when_idle(&mut self, _: &Idle<'_>, works: &mut Vec<Work>) -> Option<IdleWork> {
        if let Some(lpn) = self.unhashed.examined.take()
            && let Some(into) = self.hashed(Lpn(lpn))
        {
            return Some(IdleWork::Merge { lpn: Lpn(lpn), into });
        }
        let lpn = self.unhashed.next()?;
        self.unhashed.examined = Some(lpn);
        self.examine(works);
        Some(IdleWork::Examine { lpn: Lpn(lpn) })
    }

    fn asks_collected(&self) -> bool {
        self.params.out_of_line
    }

    fn may_merge_collected(&self) -> bool {
        !self.unhashed.contents.is_empty()
    }

    fn when_collected(&mut self, lpn: Lpn, works: &mut Vec<Work>) -> Option<Of> {
        if !self.unhashed.contents.contains_key(&lpn.0) {
            return None;
        }
        self.examine(works);
        self.hashed(lpn)
    }

    fn merged(&mut self, when: Merged) {
        match when {
            Merged::WhenIdle => self.figures.merged += 1,
            Merged::WhenCollected => self.figures.merged_in_collections += 1,
        }
    }

    fn forget(&mut self) {
        self.units.forget();
        (self.sample, self.is_off, self.passing) = (None, false, None);
        self.unhashed = Unhashed::default();
    }

    fn memory_bytes(&self) -> u64 {
        let waiting = if self.params.out_of_line {
            u64::from(self.logical_units).div_ceil(8)
        } else {
            0
        };
        self.units.table.bytes() + waiting
    }

    fn contents(&self) -> Vec<(Of, u64)> {
        let unhashed = self.unhashed.contents.iter();
        let unhashed = unhashed.map(|(&lpn, unit)| (Of::Lpn(Lpn(lpn)), unit.content));
        self.units.contents().into_iter().chain(unhashed).collect()
    }

    fn save(&self) -> Vec<u8> {
        let rest = (&self.unhashed, self.figures, self.is_off);
        learnt::save(&(self.hashing.count, self.units.to_saved(), rest))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        type Saved = (u64, SavedUnits, (Unhashed, Figures, bool));
        let (hashes, units, (unhashed, figures, is_off)): Saved = learnt::load(saved)?;
        self.hashing.count = hashes;
        self.units.take_over(units)?;
        (self.unhashed, self.figures, self.is_off) = (unhashed, figures, is_off);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 units, written again and again in any order: the queue stays short, and its order is that of the last writes.
    #[test]
    fn a_queue_that_nothing_takes_from_stays_short() {
        let mut unhashed = Unhashed::default();
        let mut last = FxHashMap::default();
        for write in 0..100_000_u64 {
            let lpn = (write * write / 7 % 300) as u32;
            unhashed.gone(Lpn(lpn));
            unhashed.add(Lpn(lpn), write);
            last.insert(lpn, write);
            if write == 50_000 {
                last.retain(|_, &mut write| write > 49_990);
                unhashed.contents.retain(|lpn, _| last.contains_key(lpn));
            }
            assert!(unhashed.waiting.len() <= 2 * unhashed.contents.len() + MOST_GONE + 1);
        }
        let mut order: Vec<(u64, u32)> = last.into_iter().map(|(lpn, write)| (write, lpn)).collect();
        order.sort_unstable();
        let taken: Vec<u32> = std::iter::from_fn(|| unhashed.next()).collect();
        assert_eq!(taken, order.iter().map(|&(_, lpn)| lpn).collect::<Vec<_>>());
    }
}
