//! The kernel's page cache: which pages of files are in memory, which of them are dirty and since when.
//!
//! # Model
//! Pages of 4 KiB in order of use; a dirty page knows who wrote it last. A file is dirty since its oldest dirty page became
//! so, and is written back as a whole, as the kernel does with inodes (`fs/fs-writeback.c`). This file keeps the state; when
//! something is written back is decided by [`super::Replay`].
//! # Not modelled
//! The two lists of the kernel's page reclaim (active and inactive): order of use is least recently used.

use std::collections::{BTreeMap, BTreeSet};

/// Who wrote a page, and what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of the program context in the recording; 0 is none.
    pub context: u32,
    /// Number of the process in the recording.
    pub process: u32,
    pub content: Content,
}

/// What is in a page, as numbers that are equal when the contents are; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub page: u64,
    /// Its four pieces of 1 KiB.
    pub chunks: [u64; 4],
}

const NONE: u32 = u32::MAX;

struct Page {
    file: u32,
    number: u64,
    dirty: bool,
    written: Written,
    older: u32,
    newer: u32,
}

#[derive(Default)]
struct CachedFile {
    /// Places in `pages`, by the page's number in the file.
    pages: BTreeMap<u64, u32>,
    dirty: BTreeSet<u64>,
    dirty_since: u64,
}

pub struct PageCache {
    pages: Vec<Page>,
    unused: Vec<u32>,
    oldest: u32,
    newest: u32,
    files: Vec<CachedFile>,
    /// Dirty files by the time since when they are.
    dirty_files: BTreeSet<(u64, u32)>,
    dirty: u64,
    held: u64,
}

impl Default for PageCache {
    fn default() -> Self {
        PageCache {
            pages: Vec::new(),
            unused: Vec::new(),
            oldest: NONE,
            newest: NONE,
            files: Vec::new(),
            dirty_files: BTreeSet::new(),
            dirty: 0,
            held: 0,
        }
    }
}

impl PageCache {
    /// Pages held, and how many of them are dirty.
    pub fn held(&self) -> (u64, u64) {
        (self.held, self.dirty)
    }

    pub fn contains(&self, file: u32, page: u64) -> bool {
        self.file(file).is_some_and(|f| f.pages.contains_key(&page))
    }

    /// Puts a page in, or moves it to the newest place.
    pub fn touch(&mut self, file: u32, number: u64) {
        let at = self.place(file, number);
        self.unlink(at);
        self.link(at);
    }

    /// A page is written: it becomes dirty.
    pub fn write(&mut self, file: u32, number: u64, written: Written, now: u64) {
        self.touch(file, number);
        let at = self.place(file, number);
        let page = &mut self.pages[at as usize];
        page.written = written;
        if !std::mem::replace(&mut page.dirty, true) {
            self.dirty += 1;
            let cached = &mut self.files[file as usize];
            if cached.dirty.is_empty() {
                cached.dirty_since = now;
                self.dirty_files.insert((now, file));
            }
            cached.dirty.insert(number);
        }
    }

    /// The dirty file that has been so the longest, and since when.
    pub fn oldest_dirty(&self) -> Option<(u64, u32)> {
        self.dirty_files.first().copied()
    }

    /// Numbers of all dirty files.
    pub fn dirty_files(&self) -> Vec<u32> {
        self.dirty_files.iter().map(|&(_, file)| file).collect()
    }

    /// Makes up to `most` dirty pages of a file in `first..past` clean: their numbers and who wrote them, ascending.
    pub fn clean(&mut self, file: u32, first: u64, past: u64, most: u64) -> Vec<(u64, Written)> {
        let Some(cached) = self.files.get_mut(file as usize).filter(|_| first < past) else {
            return Vec::new();
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let numbers: Vec<u64> = cached.dirty.range(first..past).take(most).copied().collect();
        let mut written = Vec::with_capacity(numbers.len());
        for number in numbers {
            cached.dirty.remove(&number);
            if let Some(&at) = cached.pages.get(&number) {
                let page = &mut self.pages[at as usize];
                page.dirty = false;
                written.push((number, page.written));
            }
        }
        self.dirty -= written.len() as u64;
        if cached.dirty.is_empty() && !written.is_empty() {
            self.dirty_files.remove(&(cached.dirty_since, file));
        }
        written
    }

    /// Forgets the pages of a file in `first..past`, dirty ones as well.
    pub fn forget(&mut self, file: u32, first: u64, past: u64) {
        let Some(cached) = self.files.get_mut(file as usize).filter(|_| first < past) else {
            return;
        };
        let gone: Vec<(u64, u32)> = cached.pages.range(first..past).map(|(&n, &at)| (n, at)).collect();
        let was_dirty = !cached.dirty.is_empty();
        for &(number, _) in &gone {
            cached.pages.remove(&number);
            if cached.dirty.remove(&number) {
                self.dirty -= 1;
            }
        }
        if was_dirty && cached.dirty.is_empty() {
            self.dirty_files.remove(&(cached.dirty_since, file));
        }
        for (_, at) in gone {
            self.unlink(at);
            self.unused.push(at);
            self.held -= 1;
        }
    }

    /// The page used the longest ago: its file, number, and whether it is dirty.
    pub fn coldest(&self) -> Option<(u32, u64, bool)> {
        self.pages
            .get(self.oldest as usize)
            .map(|page| (page.file, page.number, page.dirty))
    }

    fn file(&self, file: u32) -> Option<&CachedFile> {
        self.files.get(file as usize)
    }

    /// Place of a page, which is put in at the newest place if it was not there.
    fn place(&mut self, file: u32, number: u64) -> u32 {
        if self.files.len() <= file as usize {
            self.files.resize_with(file as usize + 1, CachedFile::default);
        }
        if let Some(&at) = self.files[file as usize].pages.get(&number) {
            return at;
        }
        let page = Page {
            file,
            number,
            dirty: false,
            written: Written::default(),
            older: NONE,
            newer: NONE,
        };
        let at = self.unused.pop().unwrap_or(self.pages.len() as u32);
        if at as usize == self.pages.len() {
            self.pages.push(page);
        } else {
            self.pages[at as usize] = page;
        }
        self.files[file as usize].pages.insert(number, at);
        self.held += 1;
        self.link(at);
        at
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        let page = &mut self.pages[at as usize];
        (page.older, page.newer) = (newest, NONE);
        match self.pages.get_mut(newest as usize) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let (older, newer) = (self.pages[at as usize].older, self.pages[at as usize].newer);
        match self.pages.get_mut(older as usize) {
            Some(page) => page.newer = newer,
            None => self.oldest = newer,
        }
        match self.pages.get_mut(newer as usize) {
            Some(page) => page.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(context: u32) -> Written {
        Written {
            context,
            ..Written::default()
        }
    }

    #[test]
    fn a_file_is_dirty_since_its_oldest_dirty_page_and_the_last_writer_counts() {
        let mut cache = PageCache::default();
        cache.write(1, 5, by(7), 10);
        cache.write(0, 0, by(7), 20);
        cache.write(1, 6, by(7), 30);
        cache.write(1, 5, by(8), 40);
        assert_eq!((cache.held(), cache.oldest_dirty()), ((3, 3), Some((10, 1))));
        assert_eq!(cache.clean(1, 0, 6, 9), [(5, by(8))]);
        // Page 6 is still dirty, and the file since time 10, as the kernel has it.
        assert_eq!((cache.held(), cache.oldest_dirty()), ((3, 2), Some((10, 1))));
        assert_eq!(cache.clean(1, 0, 100, 9), [(6, by(7))]);
        assert_eq!(cache.oldest_dirty(), Some((20, 0)));
        assert!(cache.clean(1, 0, 100, 9).is_empty());
        cache.forget(0, 0, 1);
        assert_eq!((cache.held(), cache.oldest_dirty()), ((2, 0), None));
    }

    #[test]
    fn the_coldest_page_is_the_one_used_the_longest_ago() {
        let mut cache = PageCache::default();
        for page in 0..3 {
            cache.touch(0, page);
        }
        cache.touch(0, 0);
        assert_eq!(cache.coldest(), Some((0, 1, false)));
        cache.forget(0, 1, 2);
        assert_eq!(cache.coldest(), Some((0, 2, false)));
        cache.forget(0, 0, 9);
        assert_eq!((cache.coldest(), cache.held()), (None, (0, 0)));
        cache.write(3, 0, by(1), 1);
        assert_eq!((cache.coldest(), cache.contains(3, 0)), (Some((3, 0, true)), true));
    }
}
