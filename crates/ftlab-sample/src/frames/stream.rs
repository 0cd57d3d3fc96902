//! The text of all frames, from the first on.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Frames, Unpacker};

pub struct Stream<'a> {
    frames: &'a Frames,
    file: &'a File,
    next: usize,
    packed: Vec<u8>,
    text: Vec<u8>,
    given: usize,
    room: Unpacker,
}

impl<'a> Stream<'a> {
    pub fn new(frames: &'a Frames, file: &'a File) -> Stream<'a> {
        Stream {
            frames,
            file,
            next: 0,
            packed: Vec::new(),
            text: Vec::new(),
            given: 0,
            room: Unpacker::default(),
        }
    }
}

/// What is wrong with the file, or what the system said.
pub fn read_error(path: &Path, error: &Error) -> ftlab_core::Error {
    match error.kind() {
        ErrorKind::InvalidData => ftlab_core::Error::input(format!("{}: {error}", path.display())),
        _ => ftlab_core::Error::io(path, error),
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        if self.given == self.text.len() && self.next < self.frames.count() {
            let (bytes, text) = self.frames.lengths(self.next);
            let start = self.frames.borders[self.next].0;
            self.packed.resize(bytes, 0);
            self.text.resize(text, 0);
            self.file
                .read_exact_at(&mut self.packed, start)
                .map_err(|e| match e.kind() {
                    ErrorKind::UnexpectedEof => {
                        let end = start + bytes as u64;
                        let what = format!("ends before byte {end}, expected a file that does not change");
                        Error::new(ErrorKind::InvalidData, what)
                    }
                    _ => e,
                })?;
            let unpacked = self.room.whole(self.frames, self.next, &self.packed, &mut self.text);
            unpacked.map_err(|what| {
                let what = format!("the frame at byte {start} of {bytes} bytes is damaged: {what}");
                Error::new(ErrorKind::InvalidData, what)
            })?;
            self.next += 1;
            self.given = 0;
        }
        let here = &self.text[self.given..];
        let count = here.len().min(to.len());
        to[..count].copy_from_slice(&here[..count]);
        self.given += count;
        Ok(count)
    }
}
