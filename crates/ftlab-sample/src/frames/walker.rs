//! A few bytes here and there of a file, read by pages.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::stop::Stop;

const PAGE: u64 = 4096;

pub(super) struct Walker<'a> {
    pub(super) path: &'a Path,
    file: &'a File,
    stop: &'a Stop,
    /// Of the file.
    pub(super) bytes: u64,
    page: Vec<u8>,
    start: u64,
    /// Bytes read, and those of headers among them.
    pub(super) read: u64,
    pub(super) walked: u64,
}

impl<'a> Walker<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File, bytes: u64, stop: &'a Stop) -> Walker<'a> {
        Walker {
            path,
            file,
            stop,
            bytes,
            page: Vec::new(),
            start: 0,
            read: 0,
            walked: 0,
        }
    }

    /// Bytes at a place; none if the file ends before.
    pub(super) fn at<const N: usize>(&mut self, place: u64) -> Result<Option<[u8; N]>> {
        let mut found = [0; N];
        if place.checked_add(N as u64).is_none_or(|end| end > self.bytes) {
            return Ok(None);
        }
        let mut have = 0;
        while have < N {
            let at = place + have as u64;
            if !(self.start..self.start + self.page.len() as u64).contains(&at) {
                self.turn(at)?;
            }
            let here = &self.page[(at - self.start) as usize..];
            let count = here.len().min(N - have);
            found[have..have + count].copy_from_slice(&here[..count]);
            have += count;
        }
        Ok(Some(found))
    }

    /// Many bytes at once.
    pub(super) fn many(&mut self, place: u64, count: u64) -> Result<Vec<u8>> {
        let mut found = vec![0; count as usize];
        self.file
            .read_exact_at(&mut found, place)
            .map_err(|e| Error::io(self.path, &e))?;
        self.read += count;
        Ok(found)
    }

    /// Reads the page that holds a byte.
    fn turn(&mut self, at: u64) -> Result<()> {
        self.stop.check()?;
        self.start = at - at % PAGE;
        self.page.resize(PAGE.min(self.bytes - self.start) as usize, 0);
        let read = self.file.read_exact_at(&mut self.page, self.start);
        read.map_err(|e| {
            self.page.clear();
            Error::io(self.path, &e)
        })?;
        self.read += self.page.len() as u64;
        Ok(())
    }

    pub(super) fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(Error::input(format!("{}: {what}", self.path.display())))
    }

    /// A frame that goes on behind the file's end.
    pub(super) fn cut_off<T>(&self, name: &str, at: u64) -> Result<T> {
        let bytes = self.bytes;
        self.refuse(&format!(
            "cut off within the {name} at byte {at}: it has {bytes} bytes, expected the whole file"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_when_it_is_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![7; 3 * PAGE as usize]).unwrap();
        let (file, stop) = (File::open(&path).unwrap(), Stop::default());
        let mut walker = Walker::new(&path, &file, 3 * PAGE, &stop);
        assert_eq!(walker.at(PAGE - 1).unwrap(), Some([7, 7]));
        stop.ask();
        assert!(matches!(walker.at::<2>(2 * PAGE), Err(Error::Interrupted)));
    }
}
