//! Ways of cutting bytes into chunks, and what each finds.
//!
//! # Model
//! * `fixed:4KiB`: chunks of 4 KiB from the beginning of each file on; the last one may be shorter. `fixed:4KiB+512` shifts all cuts
//!   by 512 bytes: the first chunk of each file has 512 bytes.
//! * `cdc:4KiB`: content-defined chunks that aim at 4 KiB (FastCDC of 2020, normalization level 1) and have a quarter to four times
//!   as much; the mean is told, as it depends on the data.
//! * `zstd:4KiB`: fixed chunks that are compressed one by one (zstd level 3) and stored as they are where that saves nothing.
//!
//! Chunks are equal when hashes of 128 bits are. A hole of a sparse file is as many zeros; most of a long one is not looked at,
//! because a run of zeros is cut into equal chunks.

use std::fmt;

use fastcdc::v2020::{Normalization, cut as content_cut, select_masks};
use ftlab_core::{Error, Result, units};
use xxhash_rust::xxh3::xxh3_128;
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::table::{Seen, Table};

/// Sizes of chunks.
const SIZES: std::ops::RangeInclusive<u64> = 64..=1 << 20;
const LEAST_AVERAGE: u64 = 256;
/// Of zstd: its own default.
const LEVEL: i32 = 3;

/// A way of cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Fixed { size: usize, shift: usize },
    Content { average: usize },
    Packed { size: usize },
}

/// How chunks are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Xxh3,
    Blake3,
}

impl Hash {
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "xxh3" => Ok(Hash::Xxh3),
            "blake3" => Ok(Hash::Blake3),
            _ => Err(Error::input(format!("hash `{name}`: expected xxh3 or blake3"))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Hash::Xxh3 => "xxh3",
            Hash::Blake3 => "blake3",
        }
    }

    /// 128 bits of the hash: all of XXH3's, the first of BLAKE3's.
    #[inline]
    fn of(self, bytes: &[u8]) -> u128 {
        match self {
            Hash::Xxh3 => xxh3_128(bytes),
            Hash::Blake3 => {
                let mut first = [0; 16];
                first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
                u128::from_le_bytes(first)
            }
        }
    }
}

impl Cut {
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| Error::input(format!("cut `{text}`: {what}"));
        let (kind, sizes) = text
            .split_once(':')
            .ok_or_else(|| wrong("expected fixed:SIZE, fixed:SIZE+SHIFT, cdc:SIZE or zstd:SIZE"))?;
        // A number alone is bytes: sectors are what shifts are told in.
        let bytes = |size: &str| match size.parse::<u64>() {
            Ok(bytes) => Ok(bytes),
            Err(_) => units::bytes(size).map_err(|e| wrong(&e.to_string())),
        };
        let (size, shift) = match sizes.split_once('+') {
            Some((size, shift)) => (bytes(size)?, Some(bytes(shift)?)),
            None => (bytes(sizes)?, None),
        };
        if !SIZES.contains(&size) {
            return Err(wrong("expected chunks of 64 B to 1 MiB"));
        }
        if shift.is_some_and(|shift| shift >= size) {
            return Err(wrong("a shift must be less than a chunk"));
        }
        let size_is = size as usize;
        match (kind, shift) {
            ("fixed", shift) => Ok(Cut::Fixed {
                size: size_is,
                shift: shift.unwrap_or(0) as usize,
            }),
            ("cdc", None) if size.is_power_of_two() && size >= LEAST_AVERAGE => Ok(Cut::Content { average: size_is }),
            ("cdc", None) => Err(wrong("expected an average that is a power of two, 256 B to 1 MiB")),
            ("zstd", None) => Ok(Cut::Packed { size: size_is }),
            ("cdc" | "zstd", Some(_)) => Err(wrong("only fixed chunks are shifted")),
            _ => Err(wrong("expected fixed:SIZE, fixed:SIZE+SHIFT, cdc:SIZE or zstd:SIZE")),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Cut::Fixed { .. } => "fixed",
            Cut::Content { .. } => "cdc",
            Cut::Packed { .. } => "zstd",
        }
    }

    pub fn size(&self) -> usize {
        match *self {
            Cut::Fixed { size, .. } | Cut::Packed { size } => size,
            Cut::Content { average } => average,
        }
    }

    pub fn shift(&self) -> usize {
        match *self {
            Cut::Fixed { shift, .. } => shift,
            _ => 0,
        }
    }

    /// The longest chunk.
    fn longest(&self) -> usize {
        match *self {
            Cut::Fixed { size, .. } | Cut::Packed { size } => size,
            Cut::Content { average } => 4 * average,
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}",
            self.kind(),
            units::show_bytes(self.size() as u64).replace(' ', "")
        )?;
        match self.shift() {
            0 => Ok(()),
            shift => write!(f, "+{shift}"),
        }
    }
}

/// FastCDC with its masks at hand.
struct Gear {
    average: usize,
    masks: [u64; 4],
}

impl Gear {
    fn new(average: usize) -> Self {
        let (strict, loose) = select_masks(average, Normalization::Level1);
        Gear {
            average,
            masks: [strict, loose, strict << 1, loose << 1],
        }
    }

    fn end(&self, bytes: &[u8]) -> usize {
        let [strict, loose, strict_2, loose_2] = self.masks;
        let (least, most) = (self.average / 4, 4 * self.average);
        content_cut(bytes, least, self.average, most, strict, loose, strict_2, loose_2).1
    }
}

/// What one way of cutting has found so far.
pub struct Counter {
    pub cut: Cut,
    hash: Hash,
    pub table: Table,
    gear: Option<Gear>,
    zstd: Option<Compressor<'static>>,
    packed: Vec<u8>,
    /// Bytes of a chunk that is not complete.
    carry: Vec<u8>,
    /// Nothing of this file has been cut yet.
    at_start: bool,
    zeros: Zeros,
    pub chunks: u64,
    pub bytes: u64,
    /// Of whole chunks of zeros.
    pub zero_bytes: u64,
    /// Bytes after compression.
    pub packed_bytes: u64,
}

/// The chunk into which a long run of zeros is cut.
struct Zeros {
    length: usize,
    fingerprint: u128,
    packed: u64,
}

impl Counter {
    pub fn new(cut: Cut, hash: Hash, memory: u64) -> Result<Self> {
        let gear = match cut {
            Cut::Content { average } => Some(Gear::new(average)),
            _ => None,
        };
        let zstd = match cut {
            Cut::Packed { .. } => Some(Compressor::new(LEVEL).map_err(|e| Error::Io(format!("zstd: {e}")))?),
            _ => None,
        };
        let mut counter = Counter {
            cut,
            hash,
            table: Table::new(memory, zstd.is_some()),
            gear,
            zstd,
            packed: Vec::new(),
            carry: Vec::new(),
            at_start: true,
            zeros: Zeros {
                length: 0,
                fingerprint: 0,
                packed: 0,
            },
            chunks: 0,
            bytes: 0,
            zero_bytes: 0,
            packed_bytes: 0,
        };
        let zeros = vec![0; cut.longest()];
        let length = counter.gear.as_ref().map_or(cut.size(), |gear| gear.end(&zeros));
        counter.zeros = Zeros {
            length,
            fingerprint: hash.of(&zeros[..length]),
            packed: counter.compressed(&zeros[..length]),
        };
        Ok(counter)
    }

    /// The next bytes of a file.
    pub fn feed(&mut self, bytes: &[u8]) {
        match self.cut {
            Cut::Content { .. } => self.feed_content(bytes),
            _ => self.feed_fixed(bytes),
        }
    }

    /// So many zeros.
    pub fn feed_zeros(&mut self, count: u64) {
        // Within these the chunk that was begun ends, and one of zeros alone is cut, wherever it begins.
        let lead = (4 * self.cut.longest() as u64).min(count);
        let zeros = vec![0; lead as usize];
        self.feed(&zeros);
        let (rest, length) = (count - lead, self.zeros.length as u64);
        // What is carried along now is the beginning of such a chunk: whole ones between change nothing.
        let whole = rest / length;
        self.chunks += whole;
        self.bytes += whole * length;
        self.zero_bytes += whole * length;
        self.packed_bytes += whole * self.zeros.packed;
        self.feed(&zeros[..(rest % length) as usize]);
    }

    /// The file ends here.
    pub fn end_file(&mut self) {
        let carry = std::mem::take(&mut self.carry);
        let mut at = 0;
        while at < carry.len() {
            let rest = &carry[at..];
            let length = self.gear.as_ref().map_or(rest.len(), |gear| gear.end(rest));
            self.chunk(&rest[..length]);
            at += length;
        }
        self.carry = carry;
        self.carry.clear();
        self.at_start = true;
    }

    fn feed_fixed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = match (self.at_start, self.cut.shift()) {
                (true, shift) if shift > 0 => shift,
                _ => self.cut.size(),
            };
            if self.carry.is_empty() && bytes.len() >= length {
                self.chunk(&bytes[..length]);
                bytes = &bytes[length..];
            } else {
                let taken = (length - self.carry.len()).min(bytes.len());
                self.carry.extend_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                if self.carry.len() < length {
                    return;
                }
                let carry = std::mem::take(&mut self.carry);
                self.chunk(&carry);
                self.carry = carry;
                self.carry.clear();
            }
            self.at_start = false;
        }
    }

    /// A chunk is cut once as many bytes are known as it may have at most: then more bytes would not change it.
    fn feed_content(&mut self, bytes: &[u8]) {
        let longest = self.cut.longest();
        let mut at = 0;
        if !self.carry.is_empty() {
            let mut carry = std::mem::take(&mut self.carry);
            let begun = carry.len();
            carry.extend_from_slice(&bytes[..bytes.len().min(longest)]);
            let mut cut = 0;
            while cut < begun && carry.len() - cut >= longest {
                cut += self.content_chunk(&carry[cut..]);
            }
            if cut < begun {
                carry.drain(..cut);
                self.carry = carry;
                return;
            }
            at = cut - begun;
            self.carry = carry;
            self.carry.clear();
        }
        while bytes.len() - at >= longest {
            at += self.content_chunk(&bytes[at..]);
        }
        self.carry.extend_from_slice(&bytes[at..]);
    }

    fn content_chunk(&mut self, bytes: &[u8]) -> usize {
        let length = self.gear.as_ref().map_or(bytes.len(), |gear| gear.end(bytes));
        self.chunk(&bytes[..length]);
        length
    }

    #[inline]
    fn chunk(&mut self, bytes: &[u8]) {
        let (fingerprint, length) = (self.hash.of(bytes), bytes.len() as u32);
        self.chunks += 1;
        self.bytes += u64::from(length);
        if fingerprint == self.zeros.fingerprint && bytes.len() == self.zeros.length {
            self.zero_bytes += u64::from(length);
        }
        let seen = self.table.look_up(fingerprint);
        if self.zstd.is_none() {
            if let Seen::New = seen {
                self.table.insert(fingerprint, length, 0);
            }
            return;
        }
        let packed = match seen {
            Seen::Before { packed } => packed,
            Seen::New | Seen::NotFollowed => self.compressed(bytes) as u32,
        };
        self.packed_bytes += u64::from(packed);
        if let Seen::New = seen {
            self.table.insert(fingerprint, length, packed);
        }
    }

    /// Bytes that a chunk takes when compressed; its own where that is not less. 0 where nothing is compressed.
    fn compressed(&mut self, bytes: &[u8]) -> u64 {
        let Some(zstd) = &mut self.zstd else {
            return 0;
        };
        // With less room than this zstd may give up, though what it makes would have fitted.
        self.packed.resize(compress_bound(bytes.len()), 0);
        let length = zstd.compress_to_buffer(bytes, &mut self.packed).unwrap_or(bytes.len());
        length.min(bytes.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;
    use rustc_hash::FxHashSet;

    use super::*;

    const CUTS: [&str; 8] = [
        "fixed:256B",
        "fixed:4KiB",
        "fixed:4KiB+512",
        "fixed:100B+99",
        "cdc:256B",
        "cdc:1KiB",
        "zstd:4KiB",
        "cdc:16KiB",
    ];

    fn counter(cut: &str) -> Counter {
        Counter::new(Cut::parse(cut).unwrap(), Hash::Xxh3, 1 << 24).unwrap()
    }

    fn random(bytes: usize, seed: u64) -> Vec<u8> {
        let mut random = Stream::new(seed, "bytes");
        (0..bytes).map(|_| random.below(256) as u8).collect()
    }

    fn figures(counter: &Counter) -> (u64, u64, u64, u64, f64) {
        let unique = counter.table.unique().value;
        (
            counter.chunks,
            counter.bytes,
            counter.zero_bytes,
            counter.packed_bytes,
            unique,
        )
    }

    #[test]
    fn names_are_read_as_they_are_shown() {
        for cut in CUTS {
            assert_eq!(Cut::parse(cut).unwrap().to_string(), *cut);
        }
        for (cut, words) in [
            ("fixed:0", "64 B to 1 MiB"),
            ("fixed:3", "64 B to 1 MiB"),
            ("fixed:2MiB", "64 B to 1 MiB"),
            ("fixed:x", "cut `fixed:x`"),
            ("fixed", "expected fixed:SIZE"),
            ("rabin:4KiB", "expected fixed:SIZE"),
            ("fixed:4KiB+4KiB", "less than a chunk"),
            ("cdc:4KiB+512", "only fixed chunks"),
            ("cdc:128", "power of two, 256 B"),
            ("cdc:3000", "power of two"),
        ] {
            let error = Cut::parse(cut).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn how_bytes_arrive_makes_no_difference() {
        let bytes = [
            random(40_000, 1),
            vec![0; 100_000],
            random(77_777, 2),
            random(40_000, 1),
        ]
        .concat();
        for cut in CUTS {
            let mut whole = counter(cut);
            whole.feed(&bytes);
            whole.end_file();
            for pieces in [1, 777, 4096, 65_536] {
                let mut pieced = counter(cut);
                bytes.chunks(pieces).for_each(|piece| pieced.feed(piece));
                pieced.end_file();
                assert_eq!(figures(&pieced), figures(&whole), "{cut} in pieces of {pieces}");
            }
            assert_eq!(whole.bytes, bytes.len() as u64);
        }
    }

    #[test]
    fn holes_count_as_zeros() {
        for cut in CUTS {
            for hole in [0usize, 1, 511, 70_000, 1_234_567] {
                let (mut skipped, mut read) = (counter(cut), counter(cut));
                let (before, behind) = (random(10_001, 1), random(5_000, 2));
                skipped.feed(&before);
                skipped.feed_zeros(hole as u64);
                skipped.feed(&behind);
                read.feed(&[before, vec![0; hole], behind].concat());
                skipped.end_file();
                read.end_file();
                assert_eq!(figures(&skipped), figures(&read), "{cut}, {hole} zeros");
            }
        }
        let mut endless = counter("cdc:4KiB");
        endless.feed_zeros(1 << 50);
        endless.end_file();
        assert_eq!(endless.bytes, 1 << 50);
    }

    #[test]
    fn fixed_chunks_are_those_of_a_naive_set() {
        let mut bytes = random(60_000, 3);
        bytes.extend_from_within(4096 * 3..4096 * 7);
        for (cut, size, shift) in [
            ("fixed:4KiB", 4096, 0),
            ("fixed:4KiB+512", 4096, 512),
            ("fixed:256B", 256, 0),
        ] {
            let mut counted = counter(cut);
            counted.feed(&bytes);
            counted.end_file();
            let (head, rest) = bytes.split_at(shift);
            let mut chunks: Vec<&[u8]> = rest.chunks(size).collect();
            if shift > 0 {
                chunks.push(head);
            }
            let set: FxHashSet<&[u8]> = chunks.iter().copied().collect();
            let unique: usize = set.iter().map(|chunk| chunk.len()).sum();
            assert_eq!(counted.chunks, chunks.len() as u64);
            assert_eq!(counted.table.unique().value, unique as f64, "{cut}");
        }
    }

    #[test]
    fn a_byte_in_front_leaves_content_defined_chunks_equal() {
        let bytes = random(1 << 20, 4);
        let shifted = [vec![7], bytes.clone()].concat();
        let saved = |cut: &str| {
            let mut counted = counter(cut);
            for file in [&bytes, &shifted] {
                counted.feed(file);
                counted.end_file();
            }
            1.0 - counted.table.unique().value / counted.bytes as f64
        };
        assert_eq!(saved("fixed:4KiB"), 0.0);
        assert!(saved("cdc:4KiB") > 0.48, "{}", saved("cdc:4KiB"));
        assert!(saved("cdc:16KiB") > 0.45);
    }

    #[test]
    fn compression_is_counted_for_all_and_for_different_chunks() {
        let text = b"what is repeated is short ".repeat(2000);
        let noise = random(8192, 5);
        let mut counted = counter("zstd:4KiB");
        for file in [&text[..40_960], &noise[..], &noise[..]] {
            counted.feed(file);
            counted.end_file();
        }
        // Noise cannot be compressed and is there twice; the text's chunks differ by where its period stands.
        assert!(counted.packed_bytes >= 16_384 && counted.packed_bytes < 16_384 + 2_000);
        let unique = counted.table.unique_packed().value as u64;
        assert_eq!(unique, counted.packed_bytes - 8192);
    }

    /// Chunks of which zstd spares a few bytes, more or fewer with how many are random: as long as with all the room it asks for.
    #[test]
    fn what_zstd_spares_is_counted_to_the_byte() {
        let mut spared = [0; 3];
        for size in [64, 512, 4096] {
            for noise in 0..200 {
                let mut chunk = random(size, noise);
                let zeros = (size / 10 + noise as usize) % 60;
                chunk[size - zeros.min(size)..].fill(0);
                let mut counted = counter(&format!("zstd:{size}"));
                counted.feed(&chunk);
                counted.end_file();
                let roomy = zstd::bulk::compress(&chunk, LEVEL).unwrap().len();
                assert_eq!(
                    counted.packed_bytes as usize,
                    roomy.min(size),
                    "{size} bytes, {zeros} zeros at the end"
                );
                spared[usize::from(roomy < size) + usize::from(roomy + 20 < size)] += 1;
            }
        }
        assert!(spared.iter().all(|&chunks| chunks > 10), "{spared:?}");
    }

    #[test]
    fn both_hashes_find_the_same() {
        let bytes = [random(50_000, 6), random(50_000, 6)].concat();
        for cut in ["fixed:256B", "cdc:1KiB"] {
            let mut by =
                [Hash::Xxh3, Hash::Blake3].map(|hash| Counter::new(Cut::parse(cut).unwrap(), hash, 1 << 24).unwrap());
            by.iter_mut().for_each(|counter| {
                counter.feed(&bytes);
                counter.end_file();
            });
            assert_eq!(figures(&by[0]), figures(&by[1]));
        }
    }
}
