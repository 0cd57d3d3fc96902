//! Compressed text that can be entered in the middle: zstd of many frames, and BGZF.
//!
//! # Model
//! A frame is what can be unpacked by itself. A partition is a number of frames, one behind the other, of about equal shares of the text, and of as many bytes of the file as were asked for
//! on average; one frame where frames are larger. Disks' threads read frames as they are, and threads that count unpack them.
//!
//! Which frames there are is told by a table at the file's end (zstd's seekable format), by an index beside it (`FILE.gzi`), else by headers, which are walked once and kept in the
//! user's cache (`cached`).
//!
//! Whether a record begins at the first byte of a frame only the frame in front of it tells. So a record belongs to the partition that holds the line end in front of it, and the
//! first record of a file to the first: nearly always the one that holds its first byte, and always exactly one. Where quoted fields hold line ends the index knows of every
//! partition where its first record begins (`index`).
//!
//! Of the frames that are a partition's own all is checked: sums of the format, of the table, and lengths. Of the frame behind them, which has the end of the last record, only the first block is read
//! where it is large, and that is not checked.
//!
//! # Not modelled
//! Dictionaries of zstd. Frames of one thread's work unpacked by several.
//!
//! # Errors
//! One frame that is larger than a partition, frames without the size of their text, files that are cut off, tables and indices that contradict their file, frames that are damaged or of more than 1 GiB.
//!
//! # Cost
//! 16 bytes a frame, 4 more where a table has checks, and 16 a partition. Walking reads a page of 4 KiB for each block, often one that the block before has read: of 12 MB of BGZF 17 %, of 14 MB of zstd in frames of 1 MiB 8 %.
//!
//! # Source
//! RFC 8878 (zstd); zstd's contrib/seekable_format, version 0.1.0; RFC 1952 (gzip); SAM format specification, section 4.1 (BGZF); htslib's bgzip (`.gzi`).

mod bgzf;
mod partition;
mod stream;
mod unpacker;
mod walker;
mod zstandard;

pub use partition::{load, unpack};
pub use stream::{Stream, read_error};
pub use unpacker::Unpacker;

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::cached;
use crate::stop::Stop;
use walker::Walker;

/// Who tells of frames where there is no table.
const HEADERS: &str = "its header";
/// The text of a frame or partition, at most, and its bytes in the file.
const LARGEST: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zstd,
    Bgzf,
}

/// A place in the file, and the place in the text that it goes with.
type Border = (u64, u64);

#[derive(Debug)]
pub struct Frames {
    kind: Kind,
    /// Where frames begin and where the last ends; those without text are parts of the next.
    borders: Vec<Border>,
    /// Of the text of each frame, the lower half of its XXH64, where a table has them.
    checks: Vec<u32>,
    /// The first frame of each partition, and the number of frames.
    cuts: Vec<usize>,
    /// The same in the text.
    starts: Vec<u64>,
    /// Who says where frames are, for sentences.
    teller: &'static str,
    /// Bytes read to find the frames: of tables, and of headers.
    pub table_bytes: u64,
    pub walked_bytes: u64,
}

/// Frames as their teller has them.
struct Told {
    /// Of every frame: its bytes in the file and in the text.
    lengths: Vec<Border>,
    checks: Vec<u32>,
    teller: &'static str,
    bytes: u64,
}

impl Frames {
    /// The frames of a file that begins with `head`; none if it is not made of any.
    pub fn open(
        path: &Path,
        file: &File,
        meta: &Metadata,
        head: &[u8],
        partition_bytes: u64,
        stop: &Stop,
    ) -> Result<Option<Frames>> {
        let refuse = |what: String| Error::input(format!("{}: {what}", path.display()));
        let mut walker = Walker::new(path, file, meta.len(), stop);
        let (kind, told) = if bgzf::begins(head) {
            bgzf::expect_end(&mut walker)?;
            (Kind::Bgzf, bgzf::told(path, &mut walker)?)
        } else if zstandard::begins(head) {
            (Kind::Zstd, zstandard::told(&mut walker)?)
        } else {
            return Ok(None);
        };
        let told = match told {
            Some(told) => told,
            None => {
                let kept = cached::place(path, meta, "frames");
                let known = kept.as_deref().and_then(cached::load);
                let lengths = match known.and_then(|numbers| lengths_of(&numbers, meta.len())) {
                    Some(lengths) => lengths,
                    None => {
                        let before = walker.read;
                        let lengths = match kind {
                            Kind::Zstd => zstandard::walk(&mut walker)?,
                            Kind::Bgzf => bgzf::walk(&mut walker, 0)?,
                        };
                        if let Some(kept) = kept {
                            // Without a cache they are walked again next time.
                            let numbers: Vec<u64> = lengths.iter().flat_map(|&(bytes, text)| [bytes, text]).collect();
                            let _ = cached::save(&kept, &numbers);
                        }
                        walker.walked = walker.read - before;
                        lengths
                    }
                };
                Told {
                    lengths,
                    checks: Vec::new(),
                    teller: HEADERS,
                    bytes: 0,
                }
            }
        };
        let mut frames = Frames {
            kind,
            borders: vec![(0, 0)],
            checks: Vec::new(),
            cuts: Vec::new(),
            starts: Vec::new(),
            teller: told.teller,
            table_bytes: told.bytes + walker.read - walker.walked,
            walked_bytes: walker.walked,
        };
        let (mut bytes, mut text) = (0, 0u64);
        for (number, &(own_bytes, own_text)) in told.lengths.iter().enumerate() {
            let start = bytes;
            bytes += own_bytes;
            if own_text == 0 {
                continue;
            }
            text = text
                .checked_add(own_text)
                .filter(|_| own_text <= LARGEST && bytes - frames.end().0 <= LARGEST)
                .ok_or_else(|| {
                    refuse(format!(
                        "the frame at byte {start} has {own_bytes} bytes and {own_text} unpacked, expected at most 1 GiB"
                    ))
                })?;
            frames.borders.push((bytes, text));
            frames.checks.extend(told.checks.get(number));
        }
        if kind == Kind::Zstd && walker.bytes > partition_bytes && frames.count() == 1 && frames.teller == HEADERS {
            return walker.refuse(zstandard::ONE_FRAME).map(Some);
        }
        if text > 0 {
            frames.cut(partition_bytes);
        }
        Ok(Some(frames))
    }

    /// Where the last frame ends, in the file and in the text.
    fn end(&self) -> Border {
        self.borders[self.borders.len() - 1]
    }

    /// Makes partitions: at most one border within each equal share of the text, the first of a frame there.
    fn cut(&mut self, partition_bytes: u64) {
        let (bytes, text) = self.end();
        let count = bytes.div_ceil(partition_bytes).max(text.div_ceil(LARGEST));
        let frames = self.count();
        for number in 0..count {
            let from = (u128::from(number) * u128::from(text)).div_ceil(u128::from(count)) as u64;
            let frame = self.borders.partition_point(|&(_, text)| text < from);
            if frame < frames && self.cuts.last().is_none_or(|&last| last < frame) {
                self.cuts.push(frame);
            }
        }
        self.cuts.push(frames);
        self.starts = self.cuts.iter().map(|&frame| self.borders[frame].1).collect();
    }

    fn count(&self) -> usize {
        self.borders.len() - 1
    }

    /// Unpacked.
    pub fn text_bytes(&self) -> u64 {
        self.end().1
    }

    pub fn partitions(&self) -> u64 {
        (self.cuts.len().max(1) - 1) as u64
    }

    /// Where partitions begin in the text, and where the last ends.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Where a partition lies in the file.
    pub fn place(&self, partition: u64) -> Range<u64> {
        let own = self.own(partition);
        self.borders[own.start].0..self.borders[own.end].0
    }

    /// The most bytes of a partition, as it is read.
    pub fn largest(&self) -> u64 {
        let bytes = |partition| self.place(partition).end - self.place(partition).start;
        (0..self.partitions()).map(bytes).max().unwrap_or(0)
    }

    /// The frames of a partition.
    fn own(&self, partition: u64) -> Range<usize> {
        let partition = partition as usize;
        self.cuts[partition]..self.cuts[partition + 1]
    }

    /// Bytes of a frame in the file, and in the text.
    fn lengths(&self, frame: usize) -> (usize, usize) {
        let ((start, from), (end, to)) = (self.borders[frame], self.borders[frame + 1]);
        ((end - start) as usize, (to - from) as usize)
    }

    /// The frame that holds a byte of the text.
    fn holds(&self, place: u64) -> usize {
        self.borders.partition_point(|&(_, text)| text <= place) - 1
    }

    fn wrong(&self, path: &Path, frame: usize, what: &str) -> Error {
        Error::input(format!(
            "{}: the frame at byte {} of {} bytes is damaged: {what}",
            path.display(),
            self.borders[frame].0,
            self.lengths(frame).0
        ))
    }
}

/// What was kept, if it can be of a file of so many bytes.
fn lengths_of(numbers: &[u64], bytes: u64) -> Option<Vec<Border>> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    let all = pairs.iter().try_fold(0u64, |all, pair| all.checked_add(pair[0]))?;
    (rest.is_empty() && all <= bytes).then(|| pairs.iter().map(|&[bytes, text]| (bytes, text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lengths: &[Border], partition_bytes: u64) -> Frames {
        let mut borders = vec![(0, 0)];
        for &(bytes, text) in lengths {
            let (before, above) = borders[borders.len() - 1];
            borders.push((before + bytes, above + text));
        }
        let mut frames = Frames {
            kind: Kind::Zstd,
            borders,
            checks: Vec::new(),
            cuts: Vec::new(),
            starts: Vec::new(),
            teller: "",
            table_bytes: 0,
            walked_bytes: 0,
        };
        frames.cut(partition_bytes);
        frames
    }

    /// Ten frames of 10 bytes and 100 of text: partitions of 25 bytes are four, from text 0, 250, 500 and 750 on; of 5 bytes each frame is one.
    #[test]
    fn partitions_have_equal_shares_of_the_text_and_one_frame_at_least() {
        let even = frames(&[(10, 100); 10], 25);
        assert_eq!(even.starts(), [0, 300, 500, 800, 1000]);
        assert_eq!(even.place(1), 30..50);
        assert_eq!((even.partitions(), even.largest()), (4, 30));
        assert_eq!(frames(&[(10, 100); 10], 5).partitions(), 10);
        assert_eq!(frames(&[(10, 100); 10], 100).starts(), [0, 1000]);
        // Shares begin at 0, 100, ... 900; behind the first no frame begins before 970.
        let uneven = frames(&[(1, 10), (96, 960), (1, 10), (2, 20)], 10);
        assert_eq!(uneven.starts(), [0, 970, 1000]);
        assert_eq!([0, 9, 10, 969, 970].map(|place| uneven.holds(place)), [0, 0, 1, 1, 2]);
    }
}
