//! Which slots hold which pages, which are free, and which pages are worth copies.
//!
//! A slot is *free*, or *taken*: by the present version of a page, by one that the durable map still has (*retired*), or by an access that has not
//! completed (*pinned*). It becomes free when it is none of these.

use ftlab_core::Stream;
use ftlab_ftl::replication::replica_groups::ReplicaGroups;

use crate::map_log::{Copies, PageRecord, Pages, Record, Shape};
use crate::options::Options;

/// Accesses, and late ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accesses {
    pub total: u32,
    pub late: u32,
}

impl Accesses {
    fn count(&mut self, late: bool) {
        if self.total == u32::MAX {
            (self.total, self.late) = (self.total / 2, self.late / 2);
        }
        self.total += 1;
        self.late += u32::from(late);
    }

    pub fn probability(self) -> f64 {
        f64::from(self.late) / f64::from(self.total.max(1))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    pins: u16,
    taken: bool,
    /// It stands in the list of free slots.
    listed: bool,
    /// A write to it failed: it is not used again.
    bad: bool,
}

pub struct Places {
    shape: Shape,
    pub pages: Pages,
    version: u64,
    slots: Vec<Slot>,
    /// By partition; the next to be used is the last.
    free: Vec<Vec<u32>>,
    free_count: usize,
    /// Slots that were taken for a write that has not ended.
    writing: usize,
    retired: Vec<u32>,
    accesses: Vec<Accesses>,
    pub partitions: Vec<Accesses>,
    groups: ReplicaGroups<u32>,
    /// Groups that lost their further copies to others.
    pub evicted: u64,
    mapped: u64,
    space: f64,
    recency: f64,
    threshold: f64,
    history: u32,
    most_copies: usize,
    random: Stream,
}

impl Places {
    /// The pages of a log; `None` if two of them lie in one slot.
    pub fn new(shape: Shape, pages: Pages, options: &Options) -> Option<Self> {
        let mut slots = vec![Slot::default(); shape.all_slots()];
        let mut version = 0;
        let mut mapped = 0;
        for page in pages.records() {
            version = version.max(page.version);
            mapped += 1;
            for &slot in page.copies.slots() {
                let taken = &mut slots.get_mut(slot as usize)?.taken;
                if std::mem::replace(taken, true) {
                    return None;
                }
            }
        }
        let free: Vec<Vec<u32>> = (0..shape.partitions)
            .map(|partition| {
                let all = partition * shape.slots..(partition + 1) * shape.slots;
                all.rev().filter(|&slot| !slots[slot as usize].taken).collect()
            })
            .collect();
        free.iter()
            .flatten()
            .for_each(|&slot| slots[slot as usize].listed = true);
        let mut places = Places {
            free_count: free.iter().map(Vec::len).sum(),
            free,
            slots,
            writing: 0,
            version,
            retired: Vec::new(),
            accesses: vec![Accesses::default(); pages.by_lpn.len()],
            partitions: vec![Accesses::default(); shape.partitions as usize],
            groups: ReplicaGroups::new(0, 0),
            evicted: 0,
            mapped,
            pages,
            shape,
            space: options.space,
            recency: options.recency,
            threshold: options.threshold,
            history: options.history,
            most_copies: options.copies.min(shape.partitions as usize),
            random: Stream::new(shape.id, "partition"),
        };
        places.resize();
        let grouped: Vec<PageRecord> = places.pages.records().copied().collect();
        for page in grouped {
            for _ in page.copies.slots().iter().skip(1) {
                places.groups.add(page.lpn, 0.0);
            }
        }
        Some(places)
    }

    pub fn page(&self, lpn: u32) -> Option<&PageRecord> {
        self.pages.by_lpn.get(lpn as usize)?.as_ref()
    }

    pub fn partition_of(&self, slot: u32) -> usize {
        (slot / self.shape.slots) as usize
    }

    pub fn free_slots(&self) -> usize {
        self.free_count
    }

    pub fn copies_kept(&self) -> u64 {
        self.groups.further()
    }

    pub fn mapped_pages(&self) -> u64 {
        self.mapped
    }

    fn budget(&self) -> u64 {
        (self.mapped as f64 * self.space) as u64
    }

    fn resize(&mut self) {
        let budget = self.budget();
        self.groups.resize(budget, (budget as f64 * self.recency) as u64);
    }

    fn take(&mut self, partition: usize) -> Option<u32> {
        let slot = self.free[partition].pop()?;
        self.free_count -= 1;
        let its = &mut self.slots[slot as usize];
        (its.taken, its.listed, its.pins) = (true, false, 1);
        self.writing += 1;
        Some(slot)
    }

    /// A slot for a page's next version, pinned: in the partition where it is, or where a new page belongs, or in the next with room.
    pub fn take_first(&mut self, lpn: u32) -> Option<u32> {
        let here = self.page(lpn).and_then(|page| page.copies.slots().first().copied());
        let partitions = self.free.len();
        let home = here.map_or(lpn as usize % partitions, |slot| self.partition_of(slot));
        (0..partitions).find_map(|step| self.take((home + step) % partitions))
    }

    /// A slot for a further copy, pinned, in another partition than `others`, each as likely. The last of the room is left to first copies.
    pub fn take_further(&mut self, others: &[u32]) -> Option<u32> {
        if others.len() >= self.most_copies || self.budget() == 0 || self.free_count <= self.slots.len() / 32 {
            return None;
        }
        let used: Vec<usize> = others.iter().map(|&slot| self.partition_of(slot)).collect();
        let open = |partition: &usize| !used.contains(partition) && !self.free[*partition].is_empty();
        let choice: Vec<usize> = (0..self.free.len()).filter(open).collect();
        if choice.is_empty() {
            return None;
        }
        let partition = choice[self.random.below(choice.len() as u64) as usize];
        self.take(partition)
    }

    /// A read of the slot has begun.
    pub fn pin(&mut self, slot: u32) {
        self.slots[slot as usize].pins += 1;
    }

    /// An access to the slot has completed.
    pub fn unpin(&mut self, slot: u32) {
        let its = &mut self.slots[slot as usize];
        its.pins = its.pins.saturating_sub(1);
        self.free_if_unused(slot);
    }

    /// The write that a slot was taken for has ended.
    pub fn written(&mut self, slot: u32) {
        self.writing -= 1;
        self.unpin(slot);
    }

    /// Whether a slot may become free without a durable map: by the end of a write, or of a read of what no map has any longer.
    pub fn frees_when_accesses_end(&self) -> bool {
        self.writing > 0 || self.slots.iter().any(|slot| slot.pins > 0 && !slot.taken && !slot.bad)
    }

    /// No map has the slot, nor will one.
    pub fn give_up(&mut self, slot: u32, bad: bool) {
        let its = &mut self.slots[slot as usize];
        its.taken = false;
        its.bad |= bad;
        self.free_if_unused(slot);
    }

    fn free_if_unused(&mut self, slot: u32) {
        let its = self.slots[slot as usize];
        let partition = self.partition_of(slot);
        if its.pins == 0 && !its.taken && !its.bad && !its.listed {
            self.slots[slot as usize].listed = true;
            self.free[partition].push(slot);
            self.free_count += 1;
        }
    }

    /// A new version of a page lies in `copies`. What the map log must be given.
    pub fn replace(&mut self, lpn: u32, copies: Copies, content: u64, size: u64, changes: &mut Vec<Record>) -> u64 {
        self.version += 1;
        let version = self.version;
        match self.page(lpn).copied() {
            Some(before) => self.retired.extend(before.copies.slots()),
            None => self.mapped += 1,
        }
        let record = Record::Page(PageRecord {
            lpn,
            version,
            size,
            content,
            copies,
        });
        self.pages.apply(&record, self.shape.page);
        if self.accesses.len() < self.pages.by_lpn.len() {
            self.accesses.resize(self.pages.by_lpn.len(), Accesses::default());
        }
        changes.push(record);
        self.resize();
        self.groups.remove(lpn);
        let blocking = self.blocking(lpn, &copies);
        for _ in copies.slots().iter().skip(1) {
            self.groups.add(lpn, blocking);
        }
        self.evict(changes);
        version
    }

    /// One more copy of that version, if it is still the present one; else its slot is given up.
    pub fn adopt(&mut self, lpn: u32, version: u64, slot: u32, changes: &mut Vec<Record>) -> bool {
        let present = self.page(lpn).copied().filter(|page| page.version == version);
        let Some(mut page) = present else {
            self.give_up(slot, false);
            return false;
        };
        if page.copies.slots().len() >= self.most_copies || self.budget() == 0 || !page.copies.push(slot) {
            self.give_up(slot, false);
            return false;
        }
        page.size = self.pages.size;
        self.pages.apply(&Record::Page(page), self.shape.page);
        changes.push(Record::Page(page));
        let blocking = self.blocking(lpn, &page.copies);
        self.groups.add(lpn, blocking);
        self.evict(changes);
        true
    }

    pub fn truncate(&mut self, size: u64, changes: &mut Vec<Record>) {
        let kept = size.div_ceil(u64::from(self.shape.page)) as usize;
        let gone: Vec<PageRecord> = self.pages.by_lpn.iter().skip(kept).flatten().copied().collect();
        for page in gone {
            self.retired.extend(page.copies.slots());
            self.groups.remove(page.lpn);
            self.mapped -= 1;
        }
        let record = Record::Truncation { size };
        self.pages.apply(&record, self.shape.page);
        self.accesses.truncate(kept);
        changes.push(record);
        self.resize();
        self.evict(changes);
    }

    fn evict(&mut self, changes: &mut Vec<Record>) {
        while let Some((lpn, _)) = self.groups.evict() {
            let Some(mut page) = self.page(lpn).copied() else {
                continue;
            };
            self.evicted += 1;
            let (first, further) = page.copies.slots().split_first().map_or((0, &[][..]), |(&a, b)| (a, b));
            self.retired.extend(further);
            page.copies = Copies::one(first);
            page.size = self.pages.size;
            self.pages.apply(&Record::Page(page), self.shape.page);
            changes.push(Record::Page(page));
        }
    }

    /// Gives up all further copies, whose slots are then retired.
    pub fn drop_copies(&mut self, changes: &mut Vec<Record>) {
        self.groups.resize(0, 0);
        self.evict(changes);
        self.resize();
    }

    /// Slots of versions that the map no longer has; they are free once it is durable.
    pub fn take_retired(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.retired)
    }

    /// Whether a durable map would free slots.
    pub fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// An access to a page, and to the partition of its first copy, has ended.
    pub fn accessed(&mut self, lpn: u32, first: u32, late: bool) {
        if let Some(page) = self.accesses.get_mut(lpn as usize) {
            page.count(late);
        }
        let partition = self.partition_of(first);
        self.partitions[partition].count(late);
    }

    /// A read was late: whether a copy is to be written in idle time. A group that there is comes to the head.
    pub fn wants_copy(&mut self, lpn: u32) -> bool {
        let Some(page) = self.page(lpn).copied() else {
            return false;
        };
        let accesses = self.accesses[lpn as usize];
        if page.copies.slots().len() > 1 {
            let blocking = self.blocking(lpn, &page.copies);
            self.groups.touch(lpn, blocking);
            return false;
        }
        self.most_copies > 1 && accesses.total >= self.history && accesses.probability() > self.threshold
    }

    /// Of a group: the page's and those of the partitions of its further copies.
    fn blocking(&self, lpn: u32, copies: &Copies) -> f64 {
        let page = self.accesses.get(lpn as usize).copied().unwrap_or_default();
        let further = copies.slots().iter().skip(1);
        page.probability()
            + further
                .map(|&slot| self.partitions[self.partition_of(slot)].probability())
                .sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        page: 4096,
        partitions: 4,
        slots: 10,
        id: 1,
    };

    fn places(options: &Options) -> Places {
        Places::new(SHAPE, Pages::default(), options).unwrap()
    }

    fn write(places: &mut Places, lpn: u32) -> u32 {
        let slot = places.take_first(lpn).unwrap();
        let size = 4096 * u64::from(lpn + 1);
        places.replace(lpn, Copies::one(slot), 0, size, &mut Vec::new());
        places.written(slot);
        slot
    }

    /// Pages 0 to 3 go to partitions 0 to 3; a second version stays in its partition, and the slot of the first is free when the map is durable.
    #[test]
    fn a_slot_is_used_again_when_no_map_and_no_access_has_it() {
        let mut places = places(&Options::default());
        let first: Vec<u32> = (0..4).map(|lpn| write(&mut places, lpn)).collect();
        assert_eq!(first, [0, 10, 20, 30]);
        assert_eq!((write(&mut places, 0), places.free_slots()), (1, 35));
        places.pin(0);
        for slot in places.take_retired() {
            places.give_up(slot, false);
        }
        assert_eq!(places.free_slots(), 35, "a read of slot 0 has not completed");
        places.unpin(0);
        assert_eq!(places.free_slots(), 36);
        assert_eq!(write(&mut places, 4), 0);
        let bad = places.take_first(4).unwrap();
        places.give_up(bad, true);
        places.written(bad);
        assert_eq!(places.free_slots(), 34, "nothing is written to a slot that failed");
    }

    /// Of twenty pages a tenth is room for two further copies; the third takes the place of another.
    #[test]
    fn further_copies_stay_within_their_space_and_lie_elsewhere() {
        let mut places = places(&Options::default());
        (0..20).for_each(|lpn| _ = write(&mut places, lpn));
        let mut changes = Vec::new();
        for lpn in 0..3 {
            let here = places.page(lpn).unwrap().copies;
            let version = places.page(lpn).unwrap().version;
            let slot = places.take_further(here.slots()).unwrap();
            assert_ne!(places.partition_of(slot), places.partition_of(here.slots()[0]));
            assert!(places.adopt(lpn, version, slot, &mut changes));
            places.written(slot);
        }
        assert_eq!(places.copies_kept(), 2);
        let kept: Vec<usize> = (0..3)
            .map(|lpn| places.page(lpn).unwrap().copies.slots().len())
            .collect();
        assert_eq!(kept, [1, 2, 2], "the least recently used group went");
        let slot = places.take_further(&[0]).unwrap();
        assert!(
            !places.adopt(0, 1_000_000, slot, &mut changes),
            "a version that is not there"
        );
        let mut none = Places::new(
            SHAPE,
            Pages::default(),
            &Options {
                copies: 1,
                ..Options::default()
            },
        )
        .unwrap();
        (0..20).for_each(|lpn| _ = write(&mut none, lpn));
        assert_eq!(none.take_further(&[0]), None);
    }

    #[test]
    fn pages_that_share_a_slot_are_refused() {
        let mut pages = Pages::default();
        for lpn in 0..2 {
            let record = PageRecord {
                lpn,
                version: 1,
                size: 8192,
                content: 0,
                copies: Copies::one(5),
            };
            pages.apply(&Record::Page(record), 4096);
        }
        assert!(Places::new(SHAPE, pages, &Options::default()).is_none());
    }
}
