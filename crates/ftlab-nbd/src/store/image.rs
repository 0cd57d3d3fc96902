//! Data in a file at logical offsets: any tool can open the image. What is trimmed becomes a hole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ftlab_core::{Error, Result};
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::Errno;

use super::{Refusal, Store};

pub struct Image {
    file: File,
    size: u64,
}

impl Image {
    /// Opens the image, or makes one without data. Says whether it was there.
    pub fn open(path: &Path, size: u64) -> Result<(Self, bool)> {
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
        file.set_len(size).map_err(|error| Error::io(path, &error))?;
        Ok((Image { file, size }, existed && facts.len() > 0))
    }

    /// The next byte from `offset` on that `where_to` finds; the end where there is none.
    fn seek(&self, where_to: SeekFrom) -> io::Result<u64> {
        match rustix::fs::seek(&self.file, where_to) {
            Ok(found) => Ok(found.min(self.size)),
            Err(Errno::NXIO) => Ok(self.size),
            Err(error) => Err(error.into()),
        }
    }
}

impl Store for Image {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> std::result::Result<(), Refusal> {
        Ok(self.file.write_all_at(data, offset)?)
    }

    fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, hole, offset, length) {
            Ok(()) => Ok(()),
            // A file system without holes gets zeros.
            Err(Errno::OPNOTSUPP) => {
                let zeros = vec![0; length.min(1 << 20) as usize];
                let (mut at, end) = (offset, offset + length);
                while at < end {
                    let count = (end - at).min(zeros.len() as u64);
                    self.file.write_all_at(&zeros[..count as usize], at)?;
                    at += count;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn extent(&mut self, offset: u64, end: u64) -> io::Result<(bool, u64)> {
        let data = self.seek(SeekFrom::Data(offset))?;
        if data > offset {
            return Ok((false, data.min(end)));
        }
        Ok((true, self.seek(SeekFrom::Hole(offset))?.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_keeps_its_data_and_its_holes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.img");
        let (mut image, existed) = Image::open(&path, 1 << 20).unwrap();
        assert!(!existed);
        image.write(65536, &[5; 8192]).unwrap();
        image.clear(65536, 4096).unwrap();
        assert!(Image::open(&path, 1 << 20).is_err(), "opened twice");
        drop(image);
        let (mut image, existed) = Image::open(&path, 1 << 20).unwrap();
        assert!(existed);
        let mut data = [1; 8192];
        image.read(65536, &mut data).unwrap();
        assert_eq!((data[0], data[4095], data[4096], data[8191]), (0, 0, 5, 5));
        let (held, end) = image.extent(69632, 1 << 20).unwrap();
        assert!(held && end >= 73728, "{end}");
        drop(image);
        assert!(Image::open(&path, 2 << 20).is_err(), "of another size");
    }
}
