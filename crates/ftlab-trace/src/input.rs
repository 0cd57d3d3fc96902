//! Bytes of a trace: a file or standard input, decompressed, in a sliding buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::read::MultiGzDecoder;
use ftlab_core::{Error, Result};

/// Bytes asked of the decompressor at a time.
const BLOCK: usize = 1 << 20;
/// No line and no block of a binary form is longer; more is a sign that the file is something else.
pub const LONGEST: usize = 64 << 20;
/// Zstandard streams may ask for a window this large (as a power of two) and no larger.
const WINDOW_LOG: u32 = 27;

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
    /// Decompressed bytes consumed so far: the offset of `bytes()[0]`.
    consumed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    Plain,
    Gzip,
    Zstandard,
}

/// What passed through below the decompressor.
#[derive(Default)]
struct RawState {
    hash: blake3::Hasher,
    read: u64,
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
        let mut magic = Vec::with_capacity(4);
        (&mut source)
            .take(4)
            .read_to_end(&mut magic)
            .map_err(|e| Error::Io(format!("{name}: {e}")))?;
        let packing = match magic.as_slice() {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zstandard,
            _ => Packing::Plain,
        };
        let whole = Watched {
            inner: io::Cursor::new(magic).chain(source),
            state: Arc::clone(&raw),
        };
        let stream: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(whole),
            Packing::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK / 4, whole))),
            Packing::Zstandard => {
                let mut decoder = zstd::Decoder::new(whole).map_err(|e| Error::Io(format!("{name}: {e}")))?;
                decoder
                    .window_log_max(WINDOW_LOG)
                    .map_err(|e| Error::Io(format!("{name}: {e}")))?;
                Box::new(decoder)
            }
        };
        Ok(Input {
            name,
            stream,
            raw,
            packing,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
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
    pub fn fill(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let goal = self.end + BLOCK;
        if self.buffer.len() < goal {
            self.buffer.resize(goal, 0);
        }
        while self.end < goal {
            match self.stream.read(&mut self.buffer[self.end..goal]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broken(&e)),
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

    fn broken(&mut self, cause: &io::Error) -> Error {
        self.ended = true;
        let (read, refused) = {
            let raw = self.state();
            (raw.read, raw.refused)
        };
        let name = &self.name;
        let what = match (self.packing, refused) {
            (Packing::Plain, _) | (_, Some(_)) => return Error::Io(format!("{name}: {cause}")),
            (Packing::Gzip, None) => "gzip",
            (Packing::Zstandard, None) => "zstd",
        };
        let state = if cause.kind() == io::ErrorKind::UnexpectedEof {
            "is cut off"
        } else {
            "is damaged"
        };
        Error::input(format!(
            "{name}: the {what} data {state} near byte {read} of the file, expected a complete {what} stream ({cause})"
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

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        let text = b"0 0 1 2 0\n".repeat(1000);
        for packed in [text.clone(), gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            assert_eq!(drain(Input::from_bytes("t", packed).unwrap()).unwrap(), text);
        }
        assert_eq!(drain(Input::from_bytes("t", vec![]).unwrap()).unwrap(), b"");
        assert_eq!(drain(Input::from_bytes("t", b"ab".to_vec()).unwrap()).unwrap(), b"ab");
    }

    #[test]
    fn gzip_members_one_after_the_other_are_one_stream() {
        let two = [gzip(b"one\n"), gzip(b"two\n")].concat();
        assert_eq!(drain(Input::from_bytes("t", two).unwrap()).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_cut_stream_is_one_sentence_with_a_byte() {
        let text: Vec<u8> = (0..5000)
            .flat_map(|i: u32| format!("{i} {}\n", i * i).into_bytes())
            .collect();
        for (kind, packed) in [("gzip", gzip(&text)), ("zstd", zstd::encode_all(&text[..], 3).unwrap())] {
            let cut = packed[..packed.len() / 2].to_vec();
            let error = drain(Input::from_bytes("t.z", cut).unwrap()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("t.z: the {kind} data is cut off near byte")),
                "{error}"
            );
        }
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
