//! The map log: which slots hold which version of each page, as records of 64 bytes with a checksum each.
//!
//! # Model
//! The first record has the shape of the store. A *page* record replaces what is known of a page; a *truncation* forgets pages; a *durable*
//! record says that all data before it is on the disk, and is itself synchronised before anything is acknowledged; then a second one is appended,
//! without waiting for it, as a proof of that. What follows the last durable record counts only where the content that it names is found
//! ([`Found::tail`]). Reading ends at the first record whose checksum is wrong; a proof behind it makes that damage instead of a power cut's end.
//!
//! When it has grown to four times what is needed, the log is written anew beside the former one, and takes its place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::options::MOST_COPIES;

pub const RECORD: usize = 64;
const MAGIC: &[u8; 8] = b"ftlabmap";
const FORMAT: u32 = 1;
const PAGE: u8 = 1;
const TRUNCATION: u8 = 2;
const DURABLE: u8 = 3;
/// A log is not written anew before it is as large as that.
const LEAST_REWRITTEN: u64 = 1 << 20;

/// What never changes in a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Shape {
    pub page: u32,
    pub partitions: u32,
    /// In each partition.
    pub slots: u32,
    /// Distinguishes records of this store from those of others.
    pub id: u64,
}

impl Shape {
    pub fn all_slots(&self) -> usize {
        self.partitions as usize * self.slots as usize
    }

    pub fn bytes(&self) -> u64 {
        self.all_slots() as u64 * u64::from(self.page)
    }
}

/// Slots with one version of a page, the first to be read at the front.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copies {
    slots: [u32; MOST_COPIES],
    count: u8,
}

impl Copies {
    pub fn one(slot: u32) -> Self {
        let mut copies = Copies::default();
        copies.push(slot);
        copies
    }

    pub fn slots(&self) -> &[u32] {
        &self.slots[..usize::from(self.count)]
    }

    /// Whether there was room.
    pub fn push(&mut self, slot: u32) -> bool {
        let Some(place) = self.slots.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = slot;
        self.count += 1;
        true
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRecord {
    pub lpn: u32,
    pub version: u64,
    /// Bytes of the database with this page.
    pub size: u64,
    /// Checksum of the page.
    pub content: u64,
    pub copies: Copies,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    Page(PageRecord),
    Truncation { size: u64 },
    Durable,
}

type Bytes = [u8; RECORD];

fn put(bytes: &mut Bytes, at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u32_at(bytes: &Bytes, at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &Bytes, at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn sealed(mut bytes: Bytes, seed: u64) -> Bytes {
    let sum = xxh3_64_with_seed(&bytes[8..], seed);
    put(&mut bytes, 0, &sum.to_le_bytes());
    bytes
}

fn is_whole(bytes: &Bytes, seed: u64) -> bool {
    u64_at(bytes, 0) == xxh3_64_with_seed(&bytes[8..], seed)
}

impl Record {
    fn encoded(&self, id: u64) -> Bytes {
        let mut bytes = [0; RECORD];
        match self {
            Record::Page(page) => {
                bytes[8] = PAGE;
                bytes[9] = page.copies.count;
                put(&mut bytes, 12, &page.lpn.to_le_bytes());
                put(&mut bytes, 16, &page.version.to_le_bytes());
                put(&mut bytes, 24, &page.size.to_le_bytes());
                put(&mut bytes, 32, &page.content.to_le_bytes());
                for (at, slot) in (40..).step_by(4).zip(page.copies.slots()) {
                    put(&mut bytes, at, &slot.to_le_bytes());
                }
            }
            Record::Truncation { size } => {
                bytes[8] = TRUNCATION;
                put(&mut bytes, 24, &size.to_le_bytes());
            }
            Record::Durable => bytes[8] = DURABLE,
        }
        sealed(bytes, id)
    }

    /// `None` if it is not whole or names a slot that is not there.
    fn decoded(bytes: &Bytes, shape: &Shape) -> Option<Self> {
        if !is_whole(bytes, shape.id) {
            return None;
        }
        match bytes[8] {
            PAGE => {
                let mut copies = Copies::default();
                for number in 0..usize::from(bytes[9]) {
                    let at = 40 + 4 * number;
                    let slot = (at + 4 <= RECORD).then(|| u32_at(bytes, at))?;
                    if slot as usize >= shape.all_slots() || !copies.push(slot) {
                        return None;
                    }
                }
                let lpn = u32_at(bytes, 12);
                // No database is larger than its store.
                if lpn as usize >= shape.all_slots() || copies.count == 0 {
                    return None;
                }
                Some(Record::Page(PageRecord {
                    lpn,
                    version: u64_at(bytes, 16),
                    size: u64_at(bytes, 24),
                    content: u64_at(bytes, 32),
                    copies,
                }))
            }
            TRUNCATION => Some(Record::Truncation {
                size: u64_at(bytes, 24),
            }),
            DURABLE => Some(Record::Durable),
            _ => None,
        }
    }
}

fn header(shape: &Shape) -> Bytes {
    let mut bytes = [0; RECORD];
    put(&mut bytes, 8, MAGIC);
    put(&mut bytes, 16, &FORMAT.to_le_bytes());
    put(&mut bytes, 20, &shape.page.to_le_bytes());
    put(&mut bytes, 24, &shape.partitions.to_le_bytes());
    put(&mut bytes, 28, &shape.slots.to_le_bytes());
    put(&mut bytes, 32, &shape.id.to_le_bytes());
    sealed(bytes, 0)
}

fn shape_in(bytes: &Bytes) -> Option<Shape> {
    let shape = Shape {
        page: u32_at(bytes, 20),
        partitions: u32_at(bytes, 24),
        slots: u32_at(bytes, 28),
        id: u64_at(bytes, 32),
    };
    let whole = is_whole(bytes, 0) && &bytes[8..16] == MAGIC && u32_at(bytes, 16) == FORMAT;
    let sound = matches!(shape.page, 4096 | 8192)
        && (1..=256).contains(&shape.partitions)
        && u64::from(shape.partitions) * u64::from(shape.slots) <= u64::from(u32::MAX);
    (whole && sound).then_some(shape)
}

/// Pages as a log has them.
#[derive(Clone, Default, Debug)]
pub struct Pages {
    pub by_lpn: Vec<Option<PageRecord>>,
    pub size: u64,
}

impl Pages {
    pub fn apply(&mut self, record: &Record, page: u32) {
        match record {
            Record::Page(one) => {
                let at = one.lpn as usize;
                if self.by_lpn.len() <= at {
                    self.by_lpn.resize(at + 1, None);
                }
                self.by_lpn[at] = Some(*one);
                self.size = one.size;
            }
            Record::Truncation { size } => {
                self.size = *size;
                self.by_lpn.truncate(size.div_ceil(u64::from(page)) as usize);
            }
            Record::Durable => {}
        }
    }

    pub fn records(&self) -> impl Iterator<Item = &PageRecord> {
        self.by_lpn.iter().flatten()
    }
}

/// What a log says.
pub struct Found {
    pub shape: Shape,
    /// As of the last durable record.
    pub durable: Pages,
    /// What came after it: true where its content is on the disk.
    pub tail: Vec<Record>,
    /// Behind the last whole record there is something else.
    pub damaged: bool,
    pub bytes: u64,
}

/// Reads a log.
pub fn read(path: &Path) -> Result<Found> {
    let bytes = std::fs::read(path).map_err(|cause| Error::io(path, &cause))?;
    let (records, rest) = bytes.as_chunks::<RECORD>();
    let Some(shape) = records.first().and_then(shape_in) else {
        return Err(Error::input(format!(
            "{}: expected the map log of a replicated database",
            path.display()
        )));
    };
    let mut durable = Pages::default();
    let mut tail: Vec<Record> = Vec::new();
    let mut read = 1;
    for bytes in &records[1..] {
        let Some(record) = Record::decoded(bytes, &shape) else {
            break;
        };
        read += 1;
        if record == Record::Durable {
            tail.drain(..).for_each(|one| durable.apply(&one, shape.page));
        } else {
            tail.push(record);
        }
    }
    // Nothing is appended to a durable record before it is synchronised: behind such a pair nothing can be half written by a power cut.
    let behind = records[read..]
        .iter()
        .filter_map(|bytes| Record::decoded(bytes, &shape));
    if behind.skip_while(|record| *record != Record::Durable).count() > 1 {
        return Err(Error::input(format!(
            "{}: record {read} is damaged, and what follows it is not: expected an unchanged map log",
            path.display()
        )));
    }
    Ok(Found {
        shape,
        durable,
        tail,
        damaged: read < records.len() || !rest.is_empty(),
        bytes: bytes.len() as u64,
    })
}

/// A log that is written to.
pub struct MapLog {
    path: PathBuf,
    file: File,
    at: u64,
    shape: Shape,
    /// Pages when it was last written anew.
    written_pages: u64,
}

impl MapLog {
    /// Writes a log that has these pages and nothing else, durably, in the place of one that may be there.
    pub fn create(path: &Path, shape: Shape, pages: &Pages) -> io::Result<Self> {
        let mut bytes = header(&shape).to_vec();
        for page in pages.records() {
            // The last one says how large the database is.
            let page = PageRecord {
                size: pages.size,
                ..*page
            };
            bytes.extend(Record::Page(page).encoded(shape.id));
        }
        bytes.extend(Record::Truncation { size: pages.size }.encoded(shape.id));
        // With its proof, as the log gets its name when all of it is synchronised.
        bytes.extend(Record::Durable.encoded(shape.id));
        bytes.extend(Record::Durable.encoded(shape.id));
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut how = OpenOptions::new();
        let file = how.write(true).create(true).truncate(true).open(&fresh)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(MapLog {
            path: path.to_owned(),
            file,
            at: bytes.len() as u64,
            shape,
            written_pages: pages.records().count() as u64,
        })
    }

    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.file.write_all_at(&record.encoded(self.shape.id), self.at)?;
        self.at += RECORD as u64;
        Ok(())
    }

    /// Its file, to be synchronised while nobody waits for the log.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    pub fn bytes(&self) -> u64 {
        self.at
    }

    pub fn is_large(&self) -> bool {
        self.at > LEAST_REWRITTEN.max(4 * (self.written_pages + 3) * RECORD as u64)
    }

    /// Writes it anew with these pages.
    pub fn rewrite(&mut self, pages: &Pages) -> io::Result<()> {
        *self = MapLog::create(&self.path, self.shape, pages)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        page: 4096,
        partitions: 2,
        slots: 8,
        id: 77,
    };

    fn page(lpn: u32, version: u64, slot: u32) -> Record {
        Record::Page(PageRecord {
            lpn,
            version,
            size: 4096 * u64::from(lpn + 1),
            content: version * 1000,
            copies: Copies::one(slot),
        })
    }

    /// Page 0 in slot 3 is durable, page 1 in slot 4 follows, and then half a record.
    #[test]
    fn what_follows_the_last_durable_record_is_the_tail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let mut log = MapLog::create(&path, SHAPE, &Pages::default()).unwrap();
        for record in [page(0, 1, 3), Record::Durable, page(1, 2, 4)] {
            log.append(&record).unwrap();
        }
        let found = read(&path).unwrap();
        assert_eq!((found.shape, found.damaged), (SHAPE, false));
        assert_eq!(found.durable.by_lpn.len(), 1);
        assert_eq!((found.durable.size, found.tail), (4096, vec![page(1, 2, 4)]));

        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([1; 30]);
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&path).unwrap().damaged);
        let last = bytes.len() - 31;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(
            (found.damaged, found.tail),
            (true, vec![]),
            "a changed bit ends the log"
        );
        log.append(&Record::Durable).unwrap();
        log.append(&page(1, 3, 5)).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3 * RECORD + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&path).is_err(), "what was durable is damaged");
    }

    #[test]
    fn a_truncation_forgets_pages_and_a_rewritten_log_has_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let mut log = MapLog::create(&path, SHAPE, &Pages::default()).unwrap();
        for record in [
            page(0, 1, 3),
            page(1, 2, 4),
            Record::Truncation { size: 100 },
            Record::Durable,
        ] {
            log.append(&record).unwrap();
        }
        let found = read(&path).unwrap();
        assert_eq!((found.durable.by_lpn.len(), found.durable.size), (1, 100));
        log.rewrite(&found.durable).unwrap();
        let again = read(&path).unwrap();
        assert_eq!((again.bytes, again.durable.size), (5 * RECORD as u64, 100));
        assert_eq!(again.durable.by_lpn[0].map(|page| page.copies), Some(Copies::one(3)));
    }

    #[test]
    fn a_slot_that_is_not_there_ends_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let mut log = MapLog::create(&path, SHAPE, &Pages::default()).unwrap();
        log.append(&page(0, 1, 16)).unwrap();
        assert!(read(&path).unwrap().damaged);
        std::fs::write(&path, b"SQLite format 3").unwrap();
        assert!(read(&path).is_err());
    }
}
