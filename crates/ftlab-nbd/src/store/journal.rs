//! What was written to an image and trimmed, in order: a file beside it, from which the map is made again after a crash.
//!
//! # Format
//! A head of 48 bytes: `FTLABJN2`, the size of the image in bytes, the 16 bytes that name the state of the drive from which the
//! records go on (zeros: none), the inode of the image, and the time of its last change before the first record, in nanoseconds since
//! 1970 (zero: not known). Then records of 16 bytes: the first sector, with the highest bit set for a trim; the number of
//! sectors (4 bytes); a checksum over both and the record's number (4 bytes). All numbers are little-endian.
//!
//! # Model
//! A record is in the page cache before the data is, so that what a client was told is always there after the end of the process.
//! Records up to the first that is torn are believed. After the end of the process the rest belongs to requests that nobody was told
//! of, after a power loss of the host to such as were not synchronised; how many there are is told.
//!
//! # Not modelled
//! The order among the records of a journal that was too long: it begins anew with what the image holds, as by one sequential write.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::backing::Backing;
use crate::protocol::SECTOR;

const MAGIC: &[u8; 8] = b"FTLABJN2";
/// What the journals of every version begin with.
const ANY_VERSION: &[u8] = b"FTLABJN";
const HEAD: u64 = 48;
const RECORD: u64 = 16;
const TRIM: u64 = 1 << 63;
/// Records of a journal that begins anew: 256 MiB.
const MOST: u64 = 1 << 24;

/// Names the saved state of a drive; zeros: none.
pub type StateId = [u8; 16];

/// Which file an image is, and when it was changed last, in nanoseconds since 1970 (zero: not known).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileMark {
    pub inode: u64,
    pub changed_ns: u64,
}

/// A write or a trim, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub trim: bool,
    pub offset: u64,
    pub length: u64,
}

/// What a journal says of the past.
#[derive(Debug, PartialEq, Eq)]
pub struct Past {
    /// The state from which the changes go on.
    pub since: StateId,
    /// The image as it was before the first change.
    pub of: FileMark,
    pub changes: Vec<Change>,
    /// Records from the first that is torn on.
    pub torn: u64,
}

pub struct Journal {
    file: Box<dyn Backing>,
    path: PathBuf,
    size: u64,
    records: u64,
}

impl Journal {
    /// Opens the journal of an image of `size` bytes. Of one that is missing, empty or of another image nothing is known.
    pub fn open(path: &Path, size: u64) -> Result<(Self, Option<Past>)> {
        let at = |error: io::Error| Error::io(path, &error);
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        // A pipe would keep us waiting, and a device may have no end.
        if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            return Err(Error::input(format!(
                "{}: not a regular file; the image needs this name beside it",
                path.display()
            )));
        }
        let file = how.open(path).map_err(at)?;
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).map_err(at)?;
        let start = &bytes[..bytes.len().min(ANY_VERSION.len())];
        if !ANY_VERSION.starts_with(start) {
            return Err(Error::input(format!(
                "{}: is not the journal of an image; the image needs this name beside it",
                path.display()
            )));
        }
        let past = past(&bytes, size);
        let records = past.as_ref().map_or(0, |past| past.changes.len() as u64);
        if past.is_some() {
            // What lies behind a torn record must not be believed once that is written again.
            file.set_len(HEAD + RECORD * records).map_err(at)?;
            file.sync_all().map_err(at)?;
        }
        let mut journal = Journal {
            file: Box::new(file),
            path: path.to_owned(),
            size,
            records,
        };
        if past.is_none() {
            journal
                .begin(StateId::default(), FileMark::default(), &[])
                .map_err(at)?;
        }
        Ok((journal, past))
    }

    /// Begins anew with `changes` of an image behind a state. At every moment the old journal is there or the new one, whole.
    pub fn begin(&mut self, since: StateId, of: FileMark, changes: &[Change]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD as usize + changes.len() * RECORD as usize);
        bytes.extend(MAGIC);
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(since);
        bytes.extend(of.inode.to_le_bytes());
        bytes.extend(of.changed_ns.to_le_bytes());
        for (number, change) in (0..).zip(changes) {
            bytes.extend(encoded(*change, number));
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(true);
        let file = how.open(&name)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        std::fs::rename(&name, &self.path)?;
        // Else a later synchronisation would be one of a file without a name.
        sync_folder(&self.path)?;
        (self.file, self.records) = (Box::new(file), changes.len() as u64);
        Ok(())
    }

    /// The same journal on another file.
    #[cfg(test)]
    pub fn on(mut self, file: Box<dyn Backing>) -> Self {
        self.file = file;
        self
    }

    pub fn is_full(&self) -> bool {
        self.records >= MOST
    }

    pub fn append(&mut self, change: Change) -> io::Result<()> {
        let record = encoded(change, self.records);
        self.file.write(HEAD + RECORD * self.records, &record)?;
        self.records += 1;
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// A new name survives a power loss of the host only with its folder.
pub fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn encoded(change: Change, number: u64) -> [u8; RECORD as usize] {
    let place = (change.offset / SECTOR) | if change.trim { TRIM } else { 0 };
    let mut record = [0; RECORD as usize];
    record[..8].copy_from_slice(&place.to_le_bytes());
    record[8..12].copy_from_slice(&((change.length / SECTOR) as u32).to_le_bytes());
    let sum = checksum(&record, number);
    record[12..].copy_from_slice(&sum);
    record
}

fn checksum(record: &[u8], number: u64) -> [u8; 4] {
    let mut summed = [0; 20];
    summed[..12].copy_from_slice(&record[..12]);
    summed[12..].copy_from_slice(&number.to_le_bytes());
    (xxh3_64(&summed) as u32).to_le_bytes()
}

/// What the bytes of a journal say, if it is one of an image of this size.
fn past(bytes: &[u8], size: u64) -> Option<Past> {
    let (head, records) = bytes.split_at_checked(HEAD as usize)?;
    if &head[..8] != MAGIC || head[8..16] != size.to_le_bytes() {
        return None;
    }
    let mut changes = Vec::new();
    for record in records.chunks_exact(RECORD as usize) {
        let place = u64::from_le_bytes(record[..8].try_into().ok()?);
        let sectors = u32::from_le_bytes(record[8..12].try_into().ok()?);
        let end = (place & !TRIM).saturating_add(u64::from(sectors));
        if record[12..] != checksum(record, changes.len() as u64) || end > size / SECTOR {
            break;
        }
        let (offset, length) = ((place & !TRIM) * SECTOR, u64::from(sectors) * SECTOR);
        changes.push(Change {
            trim: place & TRIM != 0,
            offset,
            length,
        });
    }
    let number = |at: usize| Some(u64::from_le_bytes(head[at..at + 8].try_into().ok()?));
    let of = FileMark {
        inode: number(32)?,
        changed_ns: number(40)?,
    };
    let since = head[16..32].try_into().ok()?;
    let torn = records.len() as u64 / RECORD - changes.len() as u64;
    Some(Past {
        since,
        of,
        changes,
        torn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;

    fn change(sector: u64, trim: bool) -> Change {
        Change {
            trim,
            offset: sector * SECTOR,
            length: 8 * SECTOR,
        }
    }

    #[test]
    fn a_journal_goes_on_where_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let (mut journal, past) = Journal::open(&path, SIZE).unwrap();
        assert_eq!(past, None);
        journal.append(change(0, false)).unwrap();
        let (mut journal, past) = Journal::open(&path, SIZE).unwrap();
        assert_eq!(past.unwrap().changes, [change(0, false)]);
        journal.append(change(8, true)).unwrap();
        let (mut journal, past) = Journal::open(&path, SIZE).unwrap();
        let past = past.unwrap();
        assert_eq!((past.changes.len(), past.changes[1]), (2, change(8, true)));
        assert_eq!(past.since, StateId::default());
        let of = FileMark {
            inode: 3,
            changed_ns: 4,
        };
        journal.begin([7; 16], of, &[change(8, false)]).unwrap();
        let since = Past {
            since: [7; 16],
            of,
            changes: vec![change(8, false)],
            torn: 0,
        };
        assert_eq!(Journal::open(&path, SIZE).unwrap().1, Some(since));
        assert_eq!(Journal::open(&path, 2 * SIZE).unwrap().1, None, "of another image");
    }

    /// Whatever is lost of the end, what is whole in front of it is believed, and nothing behind, also when more is written.
    #[test]
    fn a_torn_end_is_left_out_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let (mut journal, _) = Journal::open(&path, SIZE).unwrap();
        (0..4).for_each(|n| journal.append(change(8 * n, false)).unwrap());
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let known = Journal::open(&path, SIZE).unwrap().1.map(|past| past.changes.len());
            let expected = cut.checked_sub(HEAD as usize).map(|rest| rest / RECORD as usize);
            assert_eq!(known, expected, "{cut} bytes");
        }
        // The second record is torn in its middle, and those behind it are whole.
        let mut torn = whole;
        torn[(HEAD + RECORD) as usize + 3] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        let (mut journal, past) = Journal::open(&path, SIZE).unwrap();
        let past = past.unwrap();
        assert_eq!((past.changes.len(), past.torn), (1, 3));
        journal.append(change(8, true)).unwrap();
        let past = Journal::open(&path, SIZE).unwrap().1.unwrap();
        assert_eq!((past.changes.len(), past.torn), (2, 0));
    }

    #[test]
    fn of_a_journal_of_another_version_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        std::fs::write(&path, [&b"FTLABJN1"[..], &[0; 40]].concat()).unwrap();
        assert_eq!(Journal::open(&path, SIZE).unwrap().1, None);
        assert_eq!(Journal::open(&path, SIZE).unwrap().1.unwrap().changes, []);
    }

    #[test]
    fn what_is_no_journal_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(Journal::open(&path, SIZE).is_err(), "it would be read for ever");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a letter").unwrap();
        assert!(Journal::open(&path, SIZE).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    }
}
