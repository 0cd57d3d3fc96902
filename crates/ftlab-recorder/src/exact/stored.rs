//! Stores into shared mappings of files, found by comparison.
//!
//! # Model
//! When a shared mapping that can be written to is made, its file is read, and of each page an id kept (holes are zeros and not read). At
//! msync, at the end of the mapping, of the program or of the process, the pages that the process has touched are compared with
//! that; those that differ were stored into. The tracer keeps the file open meanwhile, so that nothing is lost when the process is killed.
//!
//! A child has its parent's mappings, and they share what is known: what a child finds at msync is not found again. Of processes that have
//! a mapping in common, the last to have it compares all of it at its end.
//! # Not modelled
//! When a page was stored into, and what it held in between; which of the processes that share a mapping did, unless it calls msync. What
//! others write into a page that is mapped counts as a store.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::io::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::files::{Known, Status};
use ftlab_record::spool::{PAGE, PAGE_IDS, PageIds, page_ids};

/// Pages of a mapping that are known: 16 GiB.
const MOST_PAGES: u64 = 4 << 20;
const ZEROS: u64 = 0;

/// The mappings of a process.
#[derive(Default)]
pub struct Mappings(Vec<Mapping>);

pub struct Mapping {
    address: u64,
    len: u64,
    offset: u64,
    /// In the spools of this process; `None`: they do not have it yet.
    pub file: Option<Known>,
    pub status: Status,
    reader: Rc<File>,
    /// One for each page that is known. Children share them.
    ids: Rc<RefCell<Vec<u64>>>,
}

impl Mappings {
    /// A mapping was made; how many of its pages will not be known.
    pub fn begin(&mut self, (file, status): (Known, Status), address: u64, len: u64, offset: u64, reader: File) -> u64 {
        let len = len.next_multiple_of(PAGE as u64);
        let pages = len / PAGE as u64;
        let mapping = Mapping {
            address,
            len,
            offset,
            file: Some(file),
            status,
            reader: Rc::new(reader),
            ids: Rc::new(RefCell::new(vec![ZEROS; pages.min(MOST_PAGES) as usize])),
        };
        mapping.compare(None, 0, usize::MAX);
        self.0.push(mapping);
        pages - pages.min(MOST_PAGES)
    }

    /// Those of a child that is born now.
    pub fn of_child(&self) -> Self {
        let inherited = |mapping: &Mapping| Mapping {
            file: None,
            reader: Rc::clone(&mapping.reader),
            ids: Rc::clone(&mapping.ids),
            ..*mapping
        };
        Self(self.0.iter().map(inherited).collect())
    }

    pub fn contains(&self, address: u64) -> bool {
        self.0
            .iter()
            .any(|mapping| (mapping.address..mapping.address + mapping.len).contains(&address))
    }

    /// The runs of pages in a range of memory that were stored into since the last time: mapping, first byte in the file, pages. `process`: where
    /// in /proc the process is, if it still is.
    pub fn stored(&self, address: u64, len: u64, process: Option<&Path>) -> Vec<(usize, u64, u64)> {
        let pagemap = process.and_then(|process| File::open(process.join("pagemap")).ok());
        let mut found = Vec::new();
        for (number, mapping) in self.0.iter().enumerate() {
            let (from, to) = mapping.overlap(address, len);
            // What another process still has mapped is compared as a whole by the last that has it.
            if from >= to || process.is_none() && Rc::strong_count(&mapping.ids) > 1 {
                continue;
            }
            let first = (from - mapping.address) / PAGE as u64;
            let past = (to - mapping.address).div_ceil(PAGE as u64);
            let runs = mapping.compare(pagemap.as_ref(), first as usize, past as usize);
            let offset = mapping.offset;
            let run = |(first, pages): (usize, usize)| (number, offset + (first * PAGE) as u64, pages as u64);
            found.extend(runs.into_iter().map(run));
        }
        found
    }

    pub fn get(&self, number: usize) -> Option<&Mapping> {
        self.0.get(number)
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut Mapping> {
        self.0.get_mut(number)
    }

    /// Numbers of the mappings in a range.
    pub fn within(&self, address: u64, len: u64) -> Vec<usize> {
        let within = self.0.iter().enumerate().filter(|(_, mapping)| {
            let (from, to) = mapping.overlap(address, len);
            from < to
        });
        within.map(|(number, _)| number).collect()
    }

    /// A range of memory is no longer mapped. The files of mappings of which nothing is left.
    pub fn end(&mut self, address: u64, len: u64) -> Vec<Known> {
        let mut behind: Vec<Mapping> = Vec::new();
        let mut gone_files = Vec::new();
        self.0.retain_mut(|mapping| {
            let (from, to) = mapping.overlap(address, len);
            if from >= to {
                return true;
            }
            let end = mapping.address + mapping.len;
            if to < end {
                let gone = to - mapping.address;
                let ids = mapping.ids.borrow();
                let left = ids.get((gone / PAGE as u64) as usize..).unwrap_or(&[]).to_vec();
                behind.push(Mapping {
                    address: to,
                    len: end - to,
                    offset: mapping.offset + gone,
                    reader: Rc::clone(&mapping.reader),
                    ids: Rc::new(RefCell::new(left)),
                    ..*mapping
                });
            }
            mapping.len = from - mapping.address;
            if mapping.len == 0
                && let Some(file) = mapping.file
            {
                gone_files.push(file);
            }
            mapping.len > 0
        });
        self.0.append(&mut behind);
        gone_files.retain(|gone| {
            let is_left = |mapping: &Mapping| mapping.file.is_some_and(|file| file.id == gone.id);
            !self.0.iter().any(is_left)
        });
        gone_files
    }

    /// A mapping has another place and length.
    pub fn moved(&mut self, old: u64, new: u64, len: u64) {
        let len = len.next_multiple_of(PAGE as u64);
        if let Some(mapping) = self.0.iter_mut().find(|mapping| mapping.address == old) {
            let mut ids = mapping.ids.borrow().clone();
            let known = ids.len();
            ids.resize((len / PAGE as u64).min(MOST_PAGES) as usize, ZEROS);
            mapping.ids = Rc::new(RefCell::new(ids));
            (mapping.address, mapping.len) = (new, len);
            mapping.compare(None, known, usize::MAX);
        }
    }
}

impl Mapping {
    fn overlap(&self, address: u64, len: u64) -> (u64, u64) {
        let end = self.address + self.len;
        (self.address.max(address), end.min(address.saturating_add(len)))
    }

    /// The name that its file has now.
    pub fn path(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.reader.as_raw_fd())).ok()
    }

    /// Ids of a page's content now, and of its chunks of `chunk` bytes.
    pub fn page_ids(&self, page: u64, chunk: usize) -> PageIds {
        let mut buffer = [0; PAGE];
        match read(&self.reader, page * PAGE as u64, &mut buffer) {
            Some(_) => page_ids(&buffer, PAGE, chunk),
            None => [0; PAGE_IDS],
        }
    }

    /// Runs of pages that differ from what is known, which is what they hold from then on: first page and number.
    fn compare(&self, pagemap: Option<&File>, first: usize, past: usize) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        let mut buffer = [0; PAGE];
        let mut data = 0;
        let mut ids = self.ids.borrow_mut();
        let pages = ids.len().min((self.len / PAGE as u64) as usize);
        for (page, known) in ids.iter_mut().enumerate().take(past.min(pages)).skip(first) {
            if pagemap.is_some_and(|pagemap| !is_present(pagemap, self.address / PAGE as u64 + page as u64)) {
                continue;
            }
            let at = self.offset + (page * PAGE) as u64;
            if at >= data {
                data = next_data(&self.reader, at);
            }
            let now = if data >= at + PAGE as u64 {
                ZEROS
            } else {
                read(&self.reader, at, &mut buffer).map_or(*known, |_| id(&buffer))
            };
            // The stretch of data goes on until it is looked for again.
            if data < at + PAGE as u64 {
                data = at + PAGE as u64;
            }
            if std::mem::replace(known, now) != now {
                match runs.last_mut().filter(|(start, pages)| start + pages == page) {
                    Some((_, pages)) => *pages += 1,
                    None => runs.push((page, 1)),
                }
            }
        }
        runs
    }
}

fn id(page: &[u8; PAGE]) -> u64 {
    if page.iter().all(|&byte| byte == 0) {
        ZEROS
    } else {
        xxhash_rust::xxh3::xxh3_64(page).max(1)
    }
}

fn read(file: &File, at: u64, buffer: &mut [u8; PAGE]) -> Option<()> {
    buffer.fill(0);
    let mut held = 0;
    while held < PAGE {
        match file.read_at(&mut buffer[held..], at + held as u64) {
            Ok(0) => break,
            Ok(read) => held += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// Where the next data of a file begins.
fn next_data(file: &File, at: u64) -> u64 {
    // SAFETY: a descriptor of our own; numbers only.
    let found = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, libc::SEEK_DATA) };
    match found {
        -1 if std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => u64::MAX,
        -1 => at,
        found => found as u64,
    }
}

fn is_present(pagemap: &File, page: u64) -> bool {
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, 8 * page).is_err() || u64::from_le_bytes(entry) >> 62 != 0
}
