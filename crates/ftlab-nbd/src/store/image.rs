//! Data in a file at logical offsets: any tool can open the image. What is trimmed becomes a hole. A [journal](super::journal)
//! beside it tells what was written and trimmed, and in which order.

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use rustix::fs::FlockOperation;

use super::backing::Backing;
use super::journal::{Change, FileMark, Journal, Past, StateId, sync_folder};
use super::{Refusal, Store};

pub struct Image {
    file: Box<dyn Backing>,
    size: u64,
    inode: u64,
    journal: Journal,
}

/// What an image was found to hold.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// It is new.
    Nothing,
    /// There is data, and no journal of it.
    Data,
    Journal(Past, Likeness),
}

/// Whether an image is what its journal was begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    Same,
    /// Somebody else has changed it since the last service.
    Changed,
    /// It is another file: a copy, or another image by the same name.
    Other,
}

impl Likeness {
    fn of(image: &Metadata, past: &Past) -> Self {
        let known = |ns: u64| ns > 0;
        if past.of.inode != image.ino() {
            return Likeness::Other;
        }
        // From the first change on it is the server that changes the image.
        let untouched = past.changes.is_empty() && past.torn == 0 && known(past.of.changed_ns);
        match untouched && past.of.changed_ns != changed_ns(image) {
            true => Likeness::Changed,
            false => Likeness::Same,
        }
    }
}

fn changed_ns(facts: &Metadata) -> u64 {
    let ns = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
    u64::try_from(ns).unwrap_or(0)
}

impl Image {
    /// Opens the image, or makes one without data, and the journal beside it.
    pub fn open(path: &Path, size: u64) -> Result<(Self, Found)> {
        let existed = path.exists();
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        let file = how.open(path).map_err(|error| Error::io(path, &error))?;
        let facts = file.metadata().map_err(|error| Error::io(path, &error))?;
        if !facts.is_file() {
            return Err(Error::input(format!("image {}: not a regular file", path.display())));
        }
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::input(format!(
                "image {}: another server has it open",
                path.display()
            )));
        }
        if existed && facts.len() > 0 && facts.len() != size {
            return Err(Error::input(format!(
                "image {}: {} bytes, expected the {size} that the drive exports (--size says how many)",
                path.display(),
                facts.len()
            )));
        }
        let (journal, past) = Journal::open(&beside(path, "journal"), size)?;
        if facts.len() != size {
            file.set_len(size).map_err(|error| Error::io(path, &error))?;
        }
        let file = Box::new(file);
        let mut image = Image {
            file,
            size,
            inode: facts.ino(),
            journal,
        };
        let found = match past {
            Some(past) if existed && facts.len() > 0 => {
                let likeness = Likeness::of(&facts, &past);
                Found::Journal(past, likeness)
            }
            None if existed && facts.len() > 0 => Found::Data,
            _ => Found::Nothing,
        };
        if !matches!(found, Found::Journal(..)) {
            image.fold().map_err(|error| Error::io(path, &error))?;
        }
        sync_folder(&resolved(path)).map_err(|error| Error::io(path, &error))?;
        Ok((image, found))
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The journal begins anew behind a saved state of the drive. Nothing may be written to the image `path` afterwards.
    pub fn goes_on_from(&mut self, state: StateId, path: &Path) -> io::Result<()> {
        let of = FileMark {
            inode: self.inode,
            changed_ns: changed_ns(&std::fs::metadata(path)?),
        };
        self.journal.begin(state, of, &[])
    }

    /// The journal begins anew with what the image holds.
    pub fn fold(&mut self) -> io::Result<()> {
        let changes = self.extents()?;
        let of = FileMark {
            inode: self.inode,
            changed_ns: 0,
        };
        self.journal.begin(StateId::default(), of, &changes)
    }

    /// What the image holds, as writes in order of their places.
    pub fn extents(&mut self) -> io::Result<Vec<Change>> {
        let (mut at, mut changes) = (0, Vec::new());
        while at < self.size {
            let (held, until) = self.extent(at, self.size)?;
            if held {
                changes.push(Change {
                    trim: false,
                    offset: at,
                    length: until - at,
                });
            }
            at = until;
        }
        Ok(changes)
    }

    fn note(&mut self, trim: bool, offset: u64, length: u64) -> io::Result<()> {
        if self.journal.is_full() {
            self.fold()?;
        }
        self.journal.append(Change { trim, offset, length })
    }
}

/// What belongs to an image and lies beside it, under whatever link it is opened.
pub fn beside(image: &Path, what: &str) -> PathBuf {
    let mut name = resolved(image).into_os_string();
    name.push(".");
    name.push(what);
    PathBuf::from(name)
}

fn resolved(image: &Path) -> PathBuf {
    image.canonicalize().unwrap_or_else(|_| image.to_owned())
}

impl Store for Image {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, into)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> std::result::Result<(), Refusal> {
        self.note(false, offset, data.len() as u64)?;
        Ok(self.file.write(offset, data)?)
    }

    fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        match self.note(true, offset, length) {
            // On a disk that is full the trim itself makes room for its record.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.file.clear(offset, length)?;
                self.note(true, offset, length)
            }
            noted => {
                noted?;
                self.file.clear(offset, length)
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.journal.sync()?;
        self.file.sync()
    }

    fn extent(&mut self, offset: u64, end: u64) -> io::Result<(bool, u64)> {
        self.file.extent(offset, end)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ftlab_core::Stream;

    use super::*;

    #[test]
    fn an_image_keeps_its_data_and_its_holes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.img");
        let (mut image, found) = Image::open(&path, 1 << 20).unwrap();
        assert_eq!(found, Found::Nothing);
        image.write(65536, &[5; 8192]).unwrap();
        image.clear(65536, 4096).unwrap();
        assert!(Image::open(&path, 1 << 20).is_err(), "opened twice");
        drop(image);
        let (mut image, found) = Image::open(&path, 1 << 20).unwrap();
        let [written, trimmed] = [(65536, 8192), (65536, 4096)].map(|(offset, length)| Change {
            trim: length == 4096,
            offset,
            length,
        });
        let Found::Journal(past, Likeness::Same) = found else {
            panic!("{found:?}");
        };
        assert_eq!(past.changes, [written, trimmed]);
        let mut data = [1; 8192];
        image.read(65536, &mut data).unwrap();
        assert_eq!((data[0], data[4095], data[4096], data[8191]), (0, 0, 5, 5));
        let (held, end) = image.extent(69632, 1 << 20).unwrap();
        assert!(held && end >= 73728, "{end}");
        drop(image);
        assert!(Image::open(&path, 2 << 20).is_err(), "of another size");
        std::fs::remove_file(beside(&path, "journal")).unwrap();
        assert_eq!(Image::open(&path, 1 << 20).unwrap().1, Found::Data);
        let Found::Journal(past, Likeness::Same) = Image::open(&path, 1 << 20).unwrap().1 else {
            panic!("the journal was not begun anew");
        };
        assert!(!past.changes.is_empty() && past.changes.iter().all(|change| !change.trim));
    }

    #[test]
    fn what_others_did_to_an_image_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy, link] = ["drive.img", "copy.img", "link.img"].map(|name| folder.path().join(name));
        let likeness = |path: &Path| match Image::open(path, 1 << 20).unwrap().1 {
            Found::Journal(_, likeness) => likeness,
            found => panic!("{found:?}"),
        };
        let end = || {
            let mut image = Image::open(&path, 1 << 20).unwrap().0;
            image.goes_on_from([1; 16], &path).unwrap();
        };
        let mut image = Image::open(&path, 1 << 20).unwrap().0;
        image.write(0, &[1; 512]).unwrap();
        drop(image);
        assert_eq!(likeness(&path), Likeness::Same, "after a crash");
        end();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(likeness(&path), Likeness::Same);
        assert_eq!(likeness(&link), Likeness::Same, "under another name");
        assert!(!folder.path().join("link.img.journal").exists());
        // The clock of a file system may go in steps of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(30));
        std::os::unix::fs::FileExt::write_all_at(&OpenOptions::new().write(true).open(&path).unwrap(), b"x", 9)
            .unwrap();
        assert_eq!(likeness(&path), Likeness::Changed);
        end();
        assert_eq!(likeness(&path), Likeness::Same);
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(beside(&path, "journal"), beside(&copy, "journal")).unwrap();
        assert_eq!(likeness(&copy), Likeness::Other);
    }

    /// A file of which the host's power loss keeps any sectors that were not synchronised.
    #[derive(Default)]
    struct Losing {
        durable: Vec<u8>,
        /// Writes since; each of its sectors may get lost.
        pending: Vec<(u64, Vec<u8>)>,
    }

    impl Losing {
        fn put(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
            let (start, end) = (offset as usize, offset as usize + data.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(data);
        }

        /// What is left, if a sector of a write gets lost where `loses` says so.
        fn left(&self, mut loses: impl FnMut() -> bool) -> Vec<u8> {
            let mut bytes = self.durable.clone();
            for (offset, data) in &self.pending {
                let mut at = 0;
                while at < data.len() {
                    // Pieces end where sectors do.
                    let step = (512 - (*offset as usize + at) % 512).min(data.len() - at);
                    if !loses() {
                        Self::put(&mut bytes, offset + at as u64, &data[at..at + step]);
                    }
                    at += step;
                }
            }
            bytes
        }
    }

    impl Backing for Arc<Mutex<Losing>> {
        fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            let mut bytes = self.lock().unwrap().left(|| false);
            bytes.resize(bytes.len().max(offset as usize + into.len()), 0);
            into.copy_from_slice(&bytes[offset as usize..offset as usize + into.len()]);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.lock().unwrap().pending.push((offset, data.to_owned()));
            Ok(())
        }

        fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
            self.write(offset, &vec![0; length as usize])
        }

        fn sync(&self) -> io::Result<()> {
            let mut file = self.lock().unwrap();
            file.durable = file.left(|| false);
            file.pending.clear();
            Ok(())
        }

        fn extent(&self, _: u64, end: u64) -> io::Result<(bool, u64)> {
            Ok((true, end))
        }
    }

    /// Whatever subset of the sectors since the last synchronisation is left: what was synchronised is there or has been overwritten
    /// since, and the journal has every change up to then.
    #[test]
    fn what_was_synchronised_survives_the_loss_of_anything_since() {
        const UNITS: u64 = 16;
        const SIZE: u64 = UNITS * 4096;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.img");
        let mut torn_journals = 0;
        for seed in 0..500 {
            let mut random = Stream::new(seed, "loss");
            let [data, records] = [(); 2].map(|()| Arc::new(Mutex::new(Losing::default())));
            drop(Image::open(&path, SIZE).unwrap());
            for (file, name) in [(&data, path.clone()), (&records, beside(&path, "journal"))] {
                file.lock().unwrap().durable = std::fs::read(name).unwrap();
            }
            let journal = Journal::open(&beside(&path, "journal"), SIZE).unwrap().0;
            let mut image = Image {
                file: Box::new(data.clone()),
                size: SIZE,
                inode: std::fs::metadata(&path).unwrap().ino(),
                journal: journal.on(Box::new(records.clone())),
            };
            // Per sector: what may be there. A synchronisation leaves one.
            let mut may_hold = vec![vec![0u8]; SIZE as usize / 512];
            let (mut changes, mut synchronised) = (Vec::new(), 0);
            for step in 0..random.below(40) + 1 {
                let (unit, kind) = (random.below(UNITS), random.below(10));
                if kind == 0 {
                    image.sync().unwrap();
                    may_hold.iter_mut().for_each(|all| drop(all.drain(..all.len() - 1)));
                    synchronised = changes.len();
                    continue;
                }
                let trim = kind < 3;
                let content = if trim { 0 } else { step as u8 + 1 };
                let offset = unit * 4096;
                match trim {
                    true => image.clear(offset, 4096).unwrap(),
                    false => image.write(offset, &[content; 4096]).unwrap(),
                }
                changes.push(Change {
                    trim,
                    offset,
                    length: 4096,
                });
                let first = (offset / 512) as usize;
                may_hold[first..first + 8].iter_mut().for_each(|all| all.push(content));
            }
            let losing = random.below(100);
            for (file, name) in [(&data, path.clone()), (&records, beside(&path, "journal"))] {
                let mut left = file.lock().unwrap().left(|| random.below(100) < losing);
                if name == path {
                    left.resize(SIZE as usize, 0);
                }
                std::fs::write(name, left).unwrap();
            }
            let (mut image, found) = Image::open(&path, SIZE).unwrap();
            let Found::Journal(past, Likeness::Same) = found else {
                panic!("seed {seed}: {found:?}");
            };
            let before = past.changes.len().min(changes.len());
            assert!(
                before >= synchronised,
                "seed {seed}: {before} of {synchronised} changes"
            );
            assert_eq!(past.changes, changes[..before], "seed {seed}");
            torn_journals += usize::from(before < changes.len());
            for (sector, allowed) in may_hold.iter().enumerate() {
                let mut bytes = [0; 512];
                image.read(sector as u64 * 512, &mut bytes).unwrap();
                assert!(allowed.contains(&bytes[0]), "seed {seed}, sector {sector}");
                assert_eq!(bytes, [bytes[0]; 512], "seed {seed}, sector {sector}");
            }
            drop(image);
            std::fs::remove_file(&path).unwrap();
            std::fs::remove_file(beside(&path, "journal")).unwrap();
        }
        assert!(torn_journals > 125, "{torn_journals}");
    }
}
