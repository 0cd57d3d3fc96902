//! The file under an image or a journal, as far as they write to it while they serve; tests put one that loses things in its place.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

pub trait Backing: Send {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Zeros from now on, and a hole where that is possible.
    fn clear(&self, offset: u64, length: u64) -> io::Result<()>;

    fn sync(&self) -> io::Result<()>;

    /// Whether `offset` holds data, and where that changes, at `end` at the latest.
    fn extent(&self, offset: u64, end: u64) -> io::Result<(bool, u64)>;
}

impl Backing for File {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, hole, offset, length) {
            Ok(()) => Ok(()),
            // A file system without holes gets zeros.
            Err(Errno::OPNOTSUPP) => {
                let zeros = vec![0; length.min(1 << 20) as usize];
                let (mut at, end) = (offset, offset + length);
                while at < end {
                    let count = (end - at).min(zeros.len() as u64);
                    self.write_all_at(&zeros[..count as usize], at)?;
                    at += count;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn extent(&self, offset: u64, end: u64) -> io::Result<(bool, u64)> {
        // The next byte that is wanted; the end where there is none.
        let seek = |wanted: SeekFrom| match rustix::fs::seek(self, wanted) {
            Ok(found) => Ok(found.min(end)),
            Err(Errno::NXIO) => Ok(end),
            Err(error) => Err(io::Error::from(error)),
        };
        let data = seek(SeekFrom::Data(offset))?;
        if data > offset {
            return Ok((false, data));
        }
        Ok((true, seek(SeekFrom::Hole(offset))?))
    }
}
