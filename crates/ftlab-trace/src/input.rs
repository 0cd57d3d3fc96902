//! Bytes of a trace: a file or standard input, decompressed, text as UTF-8 lines, in a sliding buffer.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ftlab_core::{Error, Result};

use crate::encoding::readable;
use crate::packing::{MAGIC_BYTES, Packing};

/// Bytes asked of the decompressor at a time.
const BLOCK: usize = 1 << 20;
/// Bytes decompressed at a time: at most so many are lost before damage, as decoders don't say how far they came.
const PIECE: usize = 16 << 10;
/// No line and no block of a binary form is longer; more is a sign that the file is something else.
pub const LONGEST: usize = 64 << 20;

/// The decompressed bytes of one file, seen through a buffer that holds what has not been consumed.
pub struct Input {
    name: String,
    stream: Box<dyn Read + Send>,
    raw: Arc<Mutex<RawState>>,
    packing: Packing,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Why nothing more can be read, once what came before has been given out.
    failed: Option<Error>,
    /// Decompressed bytes consumed so far: the offset of `bytes()[0]`.
    consumed: u64,
}

/// What passed through below the decompressor.
#[derive(Default)]
struct RawState {
    hash: blake3::Hasher,
    read: u64,
    /// Of these, the bytes that the decompressor has used up.
    used: u64,
    size: Option<u64>,
    refused: Option<io::ErrorKind>,
}

impl Input {
    /// Opens `path` (`-` is standard input) and tells compression by its first bytes.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::new("standard input".to_owned(), Box::new(io::stdin()), None);
        }
        let file = File::open(path).map_err(|e| Error::io(path, &e))?;
        let metadata = file.metadata().map_err(|e| Error::io(path, &e))?;
        if metadata.is_dir() {
            let name = path.display();
            return Err(Error::input(format!("{name} is a directory: expected a trace file")));
        }
        let size = metadata.is_file().then_some(metadata.len());
        Self::new(path.display().to_string(), Box::new(file), size)
    }

    /// An input over bytes in memory.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self> {
        let size = bytes.len() as u64;
        Self::new(name.to_owned(), Box::new(io::Cursor::new(bytes)), Some(size))
    }

    fn new(name: String, mut source: Box<dyn Read + Send>, size: Option<u64>) -> Result<Self> {
        let raw = Arc::new(Mutex::new(RawState {
            size,
            ..RawState::default()
        }));
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        (&mut source)
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut magic)
            .map_err(|e| Error::Io(format!("{name}: {e}")))?;
        let packing = Packing::of(&magic);
        let whole = Watched {
            inner: io::Cursor::new(magic).chain(source),
            state: Arc::clone(&raw),
        };
        let stream: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(whole),
            _ => {
                let source = Used {
                    inner: BufReader::with_capacity(BLOCK / 4, whole),
                    state: Arc::clone(&raw),
                };
                packing.unpack(source).map_err(|e| Error::Io(format!("{name}: {e}")))?
            }
        };
        Ok(Input {
            name,
            stream: readable(stream),
            raw,
            packing,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            failed: None,
            consumed: 0,
        })
    }

    /// The file's name as errors show it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What has been read and not yet consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `n` of [`Input::bytes`].
    #[inline]
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        self.consumed += n as u64;
    }

    /// Offset of `bytes()[0]` in the decompressed file.
    pub fn offset(&self) -> u64 {
        self.consumed
    }

    /// True when nothing follows [`Input::bytes`].
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Reads about 1 MiB more behind the present bytes; without effect at the end of the file.
    ///
    /// What could be read before damage is given out first; the error comes when nothing more follows, and stays.
    pub fn fill(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let before = self.end;
        let goal = before + BLOCK;
        while self.end < goal {
            if self.buffer.len() == self.end {
                // By and by, as small files are opened by the thousand.
                self.buffer.resize((2 * self.end).clamp(PIECE, goal), 0);
            }
            let room = goal.min(self.buffer.len());
            let upto = match self.packing {
                Packing::Plain => room,
                _ => room.min(self.end + PIECE),
            };
            match self.stream.read(&mut self.buffer[self.end..upto]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let error = self.broken(&e);
                    self.failed = Some(error.clone());
                    return if self.end > before { Ok(()) } else { Err(error) };
                }
            }
        }
        Ok(())
    }

    /// Share of the file read so far, where its size is known.
    pub fn progress(&self) -> Option<f64> {
        let raw = self.state();
        raw.size
            .filter(|&s| s > 0)
            .map(|s| (raw.read as f64 / s as f64).min(1.0))
    }

    /// BLAKE3 of the bytes as stored; covers the whole file once [`Input::ended`].
    pub fn hash(&self) -> blake3::Hash {
        self.state().hash.finalize()
    }

    fn state(&self) -> MutexGuard<'_, RawState> {
        // A poisoned lock means that a reader panicked elsewhere; the counters are plain data and stay usable.
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self, cause: &io::Error) -> Error {
        let (used, refused) = {
            let raw = self.state();
            (raw.used, raw.refused)
        };
        let name = &self.name;
        if self.packing == Packing::Plain || refused.is_some() {
            return Error::Io(format!("{name}: {cause}"));
        }
        let what = self.packing.name();
        if let Some(limit) = self.packing.memory_limit_mib()
            && cause.to_string().contains("memory")
        {
            return Error::input(format!(
                "{name}: the {what} data asks for too much memory at byte {used} of the file, expected at most {limit} \
                 MiB ({cause})"
            ));
        }
        let state = if cause.kind() == io::ErrorKind::UnexpectedEof {
            "is cut off"
        } else {
            "is damaged"
        };
        Error::input(format!(
            "{name}: the {what} data {state} near byte {used} of the file, expected a complete {what} stream ({cause})"
        ))
    }
}

/// Hashes and counts what passes through.
struct Watched<R> {
    inner: R,
    state: Arc<Mutex<RawState>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let result = self.inner.read(target);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &result {
            Ok(n) => {
                state.hash.update(&target[..*n]);
                state.read += *n as u64;
            }
            Err(e) if e.kind() != io::ErrorKind::Interrupted => state.refused = Some(e.kind()),
            Err(_) => {}
        }
        result
    }
}

/// Counts what the decompressor uses up.
struct Used<R> {
    inner: R,
    state: Arc<Mutex<RawState>>,
}

impl<R: BufRead> Read for Used<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(target)?;
        self.note(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Used<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.note(amount);
    }
}

impl<R> Used<R> {
    fn note(&self, amount: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.used += amount as u64;
    }
}

/// Whether `path` gives its bytes only once: standard input, a pipe.
pub fn is_stream(path: &Path) -> bool {
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn drain(mut input: Input) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            input.fill()?;
            all.extend_from_slice(input.bytes());
            input.consume(input.bytes().len());
            if input.ended() {
                return Ok(all);
            }
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).unwrap()
    }

    type Pack = fn(&[u8]) -> Vec<u8>;

    /// Each packing with what packs a text.
    const PACKERS: [(&str, Pack); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstandard)];

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        let text = b"0 0 1 2 0\n".repeat(1000);
        for (_, pack) in PACKERS {
            assert_eq!(drain(Input::from_bytes("t", pack(&text)).unwrap()).unwrap(), text);
            assert_eq!(drain(Input::from_bytes("t", pack(b"")).unwrap()).unwrap(), b"");
        }
        for plain in [&text[..], b"", b"ab"] {
            assert_eq!(drain(Input::from_bytes("t", plain.to_vec()).unwrap()).unwrap(), plain);
        }
    }

    #[test]
    fn streams_one_after_the_other_are_one() {
        for (kind, pack) in PACKERS {
            let two = [pack(b"one\n"), pack(b"two\n")].concat();
            assert_eq!(
                drain(Input::from_bytes("t", two).unwrap()).unwrap(),
                b"one\ntwo\n",
                "{kind}"
            );
        }
    }

    fn numbers() -> Vec<u8> {
        (0..50_000u32)
            .flat_map(|i| format!("{i} {}\n", i.wrapping_mul(i) ^ 0x5bd1).into_bytes())
            .collect()
    }

    #[test]
    fn what_lies_before_the_damage_comes_first_then_one_sentence_with_a_byte() {
        let text = numbers();
        for (kind, pack) in PACKERS {
            let packed = pack(&text);
            // bzip2 gives out whole blocks of 100 kB only, so the cut lies behind the first.
            let cut = packed.len() * 3 / 4;
            let mut broken = packed.clone();
            broken[cut] ^= 0xff;
            broken[cut + 1] ^= 0xff;
            for (how, bytes) in [("is cut off", packed[..cut].to_vec()), ("is damaged", broken)] {
                let mut input = Input::from_bytes("t.z", bytes).unwrap();
                let mut got = Vec::new();
                let error = loop {
                    if let Err(error) = input.fill() {
                        break error.to_string();
                    }
                    assert!(!input.ended(), "{kind} {how}: no error");
                    got.extend_from_slice(input.bytes());
                    input.consume(input.bytes().len());
                };
                let sentence = format!("t.z: the {kind} data {how} near byte ");
                assert!(error.starts_with(&sentence), "{kind}: {error}");
                let byte = error[sentence.len()..]
                    .split(' ')
                    .next()
                    .unwrap()
                    .parse::<usize>()
                    .unwrap();
                // A decoder may notice the damage later, never before.
                assert!(
                    byte + 1 >= cut.min(packed.len()) && byte <= packed.len(),
                    "{kind}: {cut}: {error}"
                );
                assert!(got.len() > text.len() / 10, "{kind} {how}: {} bytes", got.len());
                // What was decoded near the damage may be wrong where no checksum has been reached.
                let sure = got.len() / 2;
                assert!(text.starts_with(&got[..sure]), "{kind} {how}");
                assert_eq!(input.fill().unwrap_err().to_string(), error, "the error stays");
            }
        }
    }

    #[test]
    fn a_stream_that_asks_for_much_memory_is_refused() {
        use liblzma::stream::{Check, Filters, LzmaOptions, Stream};
        let mut options = LzmaOptions::new_preset(0).unwrap();
        options.dict_size(512 << 20);
        let stream = Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32).unwrap();
        let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        encoder.write_all(b"1 2 3\n").unwrap();
        let greedy_xz = encoder.finish().unwrap();
        // A frame header with the window descriptor 0x98 (2^(10 + 19) bytes) and an empty last block.
        let greedy_zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x98, 0x01, 0x00, 0x00];
        for (kind, limit, bytes) in [("xz", 256, greedy_xz), ("zstd", 128, greedy_zstd)] {
            let error = drain(Input::from_bytes("t", bytes).unwrap()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("t: the {kind} data asks for too much memory at byte ")),
                "{error}"
            );
            assert!(error.contains(&format!("expected at most {limit} MiB")), "{error}");
        }
    }

    #[test]
    fn a_bomb_is_refused_at_the_longest_line() {
        // 200 MiB of zero bytes are a few hundred bytes to some packings.
        let zeros = vec![0u8; 200 << 20];
        for (kind, pack) in [PACKERS[1], PACKERS[3]] {
            let bytes = pack(&zeros);
            assert!(bytes.len() < 1 << 18, "{kind}: {}", bytes.len());
            let options = crate::ReadOptions {
                as_format: Some("msr".into()),
                ..crate::ReadOptions::default()
            };
            let mut batch = ftlab_core::Batch::default();
            let error = crate::open_bytes("t", bytes, &options)
                .and_then(|mut opened| ftlab_core::Source::next_batch(&mut opened, &mut batch))
                .unwrap_err();
            let expected = "t: line 1 is longer than 64 MiB, expected lines of text";
            assert_eq!(error.to_string(), expected, "{kind}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_a_stream() {
        assert!(is_stream(Path::new("-")) && is_stream(Path::new("/dev/null")));
        assert!(!is_stream(Path::new("/no/such/file")) && !is_stream(&std::env::temp_dir()));
    }

    #[test]
    fn the_hash_is_that_of_the_stored_bytes() {
        let packed = gzip(b"some text\n");
        let mut input = Input::from_bytes("t", packed.clone()).unwrap();
        while !input.ended() {
            input.fill().unwrap();
        }
        assert_eq!(input.hash(), blake3::hash(&packed));
        assert_eq!(input.progress(), Some(1.0));
    }
}
