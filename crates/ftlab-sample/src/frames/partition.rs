//! A partition of frames: read as it is, then unpacked.

use ftlab_core::{Error, Result};

use super::{Frames, Kind, Unpacker, bgzf, zstandard};
use crate::layout::Place;
use crate::read::{LONGEST_RECORD, Loaded, fill};

/// A frame of fewer bytes is read whole where only its beginning is needed.
const SMALL: usize = 32 << 10;
/// The first block of zstd begins within so many bytes, mostly.
const PEEK: usize = 4096;
/// The text of a block, at most: 64 KiB of BGZF.
const BLOCK: usize = 128 << 10;

/// Which text of a partition is its records, and which frames have it.
struct Need {
    /// In the text; none where only line ends tell.
    records: Option<(u64, u64)>,
    first: usize,
    /// Behind the last frame that is unpacked whole.
    whole: usize,
    /// The frame of which the beginning may do.
    partly: Option<usize>,
}

impl Need {
    fn of(frames: &Frames, place: Place<'_>) -> Option<Need> {
        let own = frames.own(place.number);
        let Some(index) = &place.piece.index else {
            return Some(Need {
                records: None,
                first: own.start,
                whole: own.end,
                partly: Some(own.end).filter(|&frame| frame < frames.count()),
            });
        };
        let number = place.number as usize;
        let (start, end) = (index.starts[number].max(place.piece.header), index.starts[number + 1]);
        if start >= end {
            return None;
        }
        let (first, last) = (frames.holds(start), frames.holds(end - 1));
        let partly = Some(last).filter(|&last| last >= own.end);
        Some(Need {
            records: Some((start, end)),
            first,
            whole: partly.unwrap_or(last + 1),
            partly,
        })
    }
}

/// Reads a partition's frames, and of the next as much as the end of its last record needs, mostly.
pub fn load(frames: &Frames, place: Place<'_>, buffer: &mut Vec<u8>) -> Result<Loaded> {
    let Some(need) = Need::of(frames, place) else {
        return Ok(Loaded {
            records: 0..0,
            offset: 0,
            bytes_read: 0,
        });
    };
    let start = frames.borders[need.first].0;
    let own = (frames.borders[need.whole].0 - start) as usize;
    let behind = need.partly.map_or(0, |frame| frames.lengths(frame).0);
    let mut length = own + if behind <= SMALL { behind } else { PEEK };
    fill(place, buffer, start, start + length as u64, 0)?;
    if behind > SMALL {
        let head = &buffer[own..length];
        let first = match frames.kind {
            Kind::Zstd => zstandard::first_block(head),
            Kind::Bgzf => head.first_chunk().and_then(bgzf::length),
        };
        let until = own + first.unwrap_or(behind).min(behind);
        if until > length {
            fill(place, buffer, start + length as u64, start + until as u64, length)?;
            length = until;
        }
    }
    Ok(Loaded {
        records: 0..length,
        offset: start,
        bytes_read: length as u64,
    })
}

/// Puts the text of a partition that was read into the buffer, with its records in it.
pub fn unpack(
    frames: &Frames,
    place: Place<'_>,
    loaded: &mut Loaded,
    buffer: &mut Vec<u8>,
    room: &mut Unpacker,
) -> Result<()> {
    let Some(need) = Need::of(frames, place) else {
        return Ok(());
    };
    std::mem::swap(buffer, &mut room.packed);
    let packed = std::mem::take(&mut room.packed);
    let mut text = Text {
        frames,
        place,
        room,
        text: buffer,
        next: need.whole,
        partly: 0,
        bytes_read: 0,
    };
    let found = text.unpack(&need, &packed[loaded.records.clone()]);
    let bytes_read = text.bytes_read;
    room.packed = packed;
    loaded.records = found?;
    loaded.offset = frames.borders[need.first].1;
    loaded.bytes_read += bytes_read;
    Ok(())
}

struct Text<'a> {
    frames: &'a Frames,
    place: Place<'a>,
    room: &'a mut Unpacker,
    text: &'a mut Vec<u8>,
    /// The next frame that is unpacked whole.
    next: usize,
    /// Bytes of its beginning that are at the end of the text.
    partly: usize,
    /// Beside those that were read before.
    bytes_read: u64,
}

impl Text<'_> {
    /// Where the partition's records stand in the text.
    fn unpack(&mut self, need: &Need, packed: &[u8]) -> Result<std::ops::Range<usize>> {
        let base = self.frames.borders[need.first].1;
        let length = (self.frames.borders[need.whole].1 - base) as usize;
        self.text.resize(length, 0);
        let (mut at, mut to) = (0, 0);
        for frame in need.first..need.whole {
            let (bytes, text) = self.frames.lengths(frame);
            let unpacked = self.room.whole(
                self.frames,
                frame,
                &packed[at..at + bytes],
                &mut self.text[to..to + text],
            );
            unpacked.map_err(|what| self.wrong(frame, &what))?;
            at += bytes;
            to += text;
        }
        let mut behind = &packed[at..];
        if let Some((start, end)) = need.records {
            let (start, end) = ((start - base) as usize, (end - base) as usize);
            while self.text.len() < end && self.more(std::mem::take(&mut behind))? {}
            return Ok(start..end);
        }
        let first = match self.place.number {
            0 => (self.place.piece.header as usize).min(length + 1),
            _ => memchr::memchr(b'\n', self.text).map_or(length + 1, |at| at + 1),
        };
        if first > length {
            return Ok(0..0);
        }
        // The line end of the last record; of one that begins behind a line end at the border as well.
        let mut searched = length;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.text[searched..]) {
                return Ok(first..searched + at + 1);
            }
            searched = self.text.len() - self.partly;
            if self.text.len() as u64 > length as u64 + LONGEST_RECORD {
                return Err(Error::input(format!(
                    "{}: no line end within {LONGEST_RECORD} bytes behind byte {} of the unpacked text, expected shorter records",
                    self.place.piece.path.display(),
                    base + length as u64
                )));
            }
            if !self.more(std::mem::take(&mut behind))? {
                return Ok(first..self.text.len());
            }
        }
    }

    /// Appends more text, of the frame of which `behind` is the beginning or all, or of the next as a whole; false at the end.
    fn more(&mut self, behind: &[u8]) -> Result<bool> {
        let frame = self.next;
        if frame == self.frames.count() {
            return Ok(false);
        }
        let (bytes, length) = self.frames.lengths(frame);
        let before = self.text.len() - self.partly;
        if !behind.is_empty() && behind.len() < bytes {
            self.text.resize(before + length.min(BLOCK), 0);
            let unpacked = self.room.beginning(self.frames, behind, &mut self.text[before..]);
            self.partly = unpacked.map_err(|what| self.wrong(frame, &what))?;
            self.text.truncate(before + self.partly);
            return Ok(true);
        }
        self.text.resize(before + length, 0);
        let mut all = Vec::new();
        let mut packed = behind;
        if behind.is_empty() {
            let (start, end) = (self.frames.borders[frame].0, self.frames.borders[frame + 1].0);
            fill(self.place, &mut all, start, end, 0)?;
            self.bytes_read += end - start;
            packed = &all;
        }
        let unpacked = self.room.whole(self.frames, frame, packed, &mut self.text[before..]);
        unpacked.map_err(|what| self.wrong(frame, &what))?;
        (self.next, self.partly) = (frame + 1, 0);
        Ok(true)
    }

    fn wrong(&self, frame: usize, what: &str) -> Error {
        self.frames.wrong(&self.place.piece.path, frame, what)
    }
}
