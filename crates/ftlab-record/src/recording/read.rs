//! Reads a recording, whatever the bytes are.

use std::io::Read;

use ftlab_core::{Error, Result};

use super::columns::{Calls, Limits, Newest, decode};
use super::{BLOCK_HEADER, EXTENDED, MAGIC, Tables, VERSION};

/// Most bytes of a block before and after compression. The tables of a build with a million files have 200 MB.
const LONGEST: usize = 256 << 20;

/// Reads the tables at once and calls block by block, from any stream of bytes.
pub struct Reader<R> {
    name: String,
    from: R,
    tables: Tables,
    limits: Limits,
    time_before: u64,
    newest: Newest,
    /// Numbers of the smaller chunks of each chunk of 1 KiB so far.
    pieces: Vec<u64>,
    at: u64,
    read: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// `name` is what errors call the file.
    pub fn new(name: &str, from: R) -> Result<Self> {
        let mut reader = Reader {
            name: name.to_owned(),
            from,
            tables: Tables::default(),
            limits: Limits {
                files: 0,
                contexts: 0,
                processes: 0,
                pieces: 1,
            },
            time_before: 0,
            newest: Newest::default(),
            pieces: Vec::new(),
            at: 0,
            read: 0,
            ended: false,
        };
        let head = reader.take(12, "the 12 bytes at the start of a recording")?;
        if head[..8] != MAGIC {
            return Err(reader.damaged(0, "expected the magic number of a recording"));
        }
        let version = u32_at(&head, 8);
        if ![VERSION, EXTENDED].contains(&version) {
            return Err(reader.damaged(
                8,
                &format!("version {version} of the recording form is not known, expected {VERSION} or {EXTENDED}: record again with this ftlab, or read it with the one that made it"),
            ));
        }
        let (_, json) = reader.block("the tables of a recording")?;
        let tables: Tables = serde_json::from_slice(&json)
            .map_err(|e| reader.damaged(12, &format!("expected the tables of a recording as JSON: {e}")))?;
        reader.check(&tables)?;
        if tables.version() != version || ![0, 256, 512].contains(&tables.chunk) {
            let chunk = tables.chunk;
            let hints = if tables.hints { "with" } else { "without" };
            return Err(reader.damaged(
                12,
                &format!("version {version} with chunks of {chunk} B, {hints} hints"),
            ));
        }
        reader.limits = Limits {
            files: tables.files.len(),
            contexts: tables.contexts.len(),
            processes: tables.processes.len(),
            pieces: tables.pieces(),
        };
        reader.tables = tables;
        Ok(reader)
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Numbers of the smaller chunks that the chunks of 1 KiB consist of which have been read, as many for each as [`Tables::pieces`]
    /// says, the chunk of number 1 first; empty where there are none.
    pub fn pieces(&self) -> &[u64] {
        &self.pieces
    }

    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// Replaces `calls` by those of the next block; none is the end.
    pub fn read(&mut self, calls: &mut Calls) -> Result<()> {
        calls.clear();
        if self.ended {
            return Ok(());
        }
        let start = self.at;
        let (n, columns) = self.block("a block of calls (the file has no end)")?;
        if n == 0 {
            let said: Option<[u8; 8]> = columns.as_slice().try_into().ok();
            if said.map(u64::from_le_bytes) != Some(self.read) {
                let read = self.read;
                return Err(self.damaged(
                    start,
                    &format!("the end does not say {read}, the number of calls before it"),
                ));
            }
            self.ended = true;
            let mut one = [0];
            return match self.from.read(&mut one) {
                Ok(0) => Ok(()),
                Ok(_) => Err(self.damaged(self.at, "expected nothing behind the end")),
                Err(e) => Err(self.refused(&e)),
            };
        }
        let decoded = decode(
            &columns,
            n as usize,
            self.time_before,
            &mut self.newest,
            self.limits,
            calls,
        );
        if let Err(what) = decoded {
            calls.clear();
            return Err(self.damaged(start, &format!("a block of calls has {what}")));
        }
        self.pieces.extend_from_slice(&calls.pieces);
        self.time_before = calls.ops.last().map_or(self.time_before, |op| op.time_ns);
        self.read += u64::from(n);
        Ok(())
    }

    fn check(&self, tables: &Tables) -> Result<()> {
        let bad = |what: &str| Err(self.damaged(12, what));
        let frames = tables.contexts.iter().flat_map(|context| &context.frames);
        if frames
            .into_iter()
            .any(|frame| frame.module as usize >= tables.modules.len())
        {
            return bad("a frame lies in a module that is not in the table");
        }
        if tables
            .contexts
            .iter()
            .any(|c| c.process as usize >= tables.processes.len())
        {
            return bad("a program context has a process that is not in the table");
        }
        for file in &tables.files {
            let inside =
                |&(at, place, length): &(u64, u64, u64)| [at, place].iter().all(|&n| n <= 1 << 60) && length <= 1 << 50;
            let sorted = file.extents.windows(2).all(|w| w[0].0.saturating_add(w[0].2) <= w[1].0);
            if file.size > 1 << 60 || !file.extents.iter().all(inside) || !sorted {
                return bad("a file has a size or extents that are not possible");
            }
        }
        Ok(())
    }

    fn block(&mut self, what: &str) -> Result<(u32, Vec<u8>)> {
        let start = self.at;
        let header = self.take(BLOCK_HEADER, what)?;
        let (n, length, packed) = (
            u32_at(&header, 0),
            u32_at(&header, 4) as usize,
            u32_at(&header, 8) as usize,
        );
        if length > LONGEST || packed > LONGEST {
            return Err(self.damaged(start, "expected a block of at most 256 MiB"));
        }
        let bytes = self.take(packed, what)?;
        if super::checksum(&header[..12], &bytes) != u32_at(&header, 12) {
            return Err(self.damaged(start, &format!("the checksum of {what} does not match")));
        }
        let unpacked = zstd::bulk::decompress(&bytes, length);
        match unpacked.ok().filter(|unpacked| unpacked.len() == length) {
            Some(unpacked) => Ok((n, unpacked)),
            None => Err(self.damaged(start, &format!("{what} cannot be decompressed"))),
        }
    }

    /// Exactly `n` bytes, or a sentence that the file is cut off.
    fn take(&mut self, n: usize, what: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // `take` bounds what a wrong length can make it hold to what is there.
        let read = (&mut self.from).take(n as u64).read_to_end(&mut bytes);
        read.map_err(|e| self.refused(&e))?;
        if bytes.len() < n {
            let missing = n - bytes.len();
            let kept = match self.read {
                0 => String::new(),
                calls => format!("; the {calls} calls before it can be used"),
            };
            return Err(self.damaged(
                self.at,
                &format!("cut off, expected {what}: {missing} bytes are missing{kept}"),
            ));
        }
        self.at += n as u64;
        Ok(bytes)
    }

    fn damaged(&self, at: u64, what: &str) -> Error {
        Error::input(format!("{}, byte {at}: {what}", self.name))
    }

    fn refused(&self, cause: &std::io::Error) -> Error {
        // A stream of ours says itself what is wrong, and where.
        let own = cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        own.cloned()
            .unwrap_or_else(|| Error::Io(format!("{}: {cause}", self.name)))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

#[cfg(test)]
mod tests {
    use super::super::{Call, Op, Writer, sample};
    use super::*;

    fn read(bytes: &[u8]) -> Result<usize> {
        let mut reader = Reader::new("t.ftlrec", bytes)?;
        let (mut calls, mut all) = (Calls::default(), 0);
        loop {
            reader.read(&mut calls)?;
            if calls.ops.is_empty() {
                return Ok(all);
            }
            all += calls.ops.len();
        }
    }

    #[test]
    fn a_recording_cut_anywhere_says_so_in_one_sentence() {
        let whole = sample().unwrap();
        assert_eq!(read(&whole), Ok(6));
        for end in 0..whole.len() {
            let error = read(&whole[..end]).unwrap_err().to_string();
            assert!(
                error.starts_with("t.ftlrec, byte ") && error.contains("cut off"),
                "{end}: {error}"
            );
        }
        // The end alone is missing: the calls are there.
        let error = read(&whole[..whole.len() - 1]).unwrap_err().to_string();
        assert!(error.contains("the 6 calls before it can be used"), "{error}");
    }

    #[test]
    fn a_damaged_bit_is_found_wherever_it_is() {
        let whole = sample().unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            let error = read(&bytes).unwrap_err().to_string();
            assert!(
                error.starts_with("t.ftlrec, byte ") && !error.contains('\n'),
                "{at}: {error}"
            );
        }
    }

    /// Readers that know no hints refuse the version, and what has none is as it was before there were any.
    #[test]
    fn only_recordings_with_hints_have_the_second_version() {
        let hinted = |hint| {
            let tables = Tables {
                hints: true,
                ..Reader::new("t", sample().unwrap().as_slice()).unwrap().tables().clone()
            };
            let mut writer = Writer::new(Vec::new(), &tables).unwrap();
            let call = Op {
                time_ns: 0,
                duration_ns: 0,
                call: Call::Hint,
                flags: 0,
                file: 1,
                offset: 0,
                length: hint,
                context: 0,
                process: 0,
                tid: 7,
            };
            writer.push(call, &[]).unwrap();
            writer.finish().unwrap().1
        };
        assert_eq!((sample().unwrap()[8], hinted(5)[8]), (1, 2));
        let bytes = hinted(5);
        let (mut reader, mut calls) = (Reader::new("t", bytes.as_slice()).unwrap(), Calls::default());
        reader.read(&mut calls).unwrap();
        assert_eq!((calls.ops[0].call, calls.ops[0].length), (Call::Hint, 5));
        assert!(reader.tables().hints);
        let error = read(&hinted(6)).unwrap_err().to_string();
        assert!(error.contains("more bytes than possible"), "{error}");
    }

    /// The pieces of twelve chunks of 1 KiB come back; a recording that says another size than its version is refused.
    #[test]
    fn smaller_chunks_are_known_by_their_kib() {
        let whole = super::super::sample_of_small_chunks().unwrap();
        let mut reader = Reader::new("t.ftlrec", whole.as_slice()).unwrap();
        let mut calls = Calls::default();
        while reader.read(&mut calls).is_ok() && !calls.ops.is_empty() {}
        assert_eq!((reader.tables().pieces(), reader.pieces().len()), (4, 48));
        assert_eq!(reader.pieces()[..12], [1, 2, 1, 2, 3, 4, 1, 2, 5, 6, 1, 2]);
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err());
        }
        let mut other = whole;
        other[8] = 1;
        let error = read(&other).unwrap_err().to_string();
        assert!(error.contains("version 1 with chunks of 256 B"), "{error}");
    }

    #[test]
    fn another_version_and_bytes_behind_the_end_are_refused() {
        let mut bytes = sample().unwrap();
        bytes[8] = 9;
        let error = read(&bytes).unwrap_err().to_string();
        assert!(
            error.contains("version 9") && error.contains("expected 1 or 2"),
            "{error}"
        );
        let mut bytes = sample().unwrap();
        bytes.push(0);
        assert!(read(&bytes).unwrap_err().to_string().contains("nothing behind the end"));
        assert!(
            read(b"once upon a time")
                .unwrap_err()
                .to_string()
                .contains("magic number")
        );
    }
}
