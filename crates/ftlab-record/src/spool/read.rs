//! Reads a spool, trusting nothing in it.
//!
//! # Errors
//! Not a spool; another version; a record that does not fit, or says what none can: one sentence each with its place. What
//! came before a damaged record has been given already, so a reader may keep it and say so.

use ftlab_core::{Error, Result};

use super::layout::*;
use super::write::{FileFacts, OpFacts, Start};

pub type Header = Start;
pub type Operation = OpFacts;

/// A spool in memory.
#[derive(Debug, Clone)]
pub struct Spool<'a> {
    pub header: Header,
    name: &'a str,
    bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    Process(Process<'a>),
    Module(Module<'a>),
    Context(Context<'a>),
    File(File<'a>),
    Op(Operation),
    Content(Content<'a>),
    /// What, how many, and the program it is about; empty: the process's own.
    Note(NoteKind, u64, &'a [u8]),
    Symbol(u64, &'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process<'a> {
    pub recorder: Recorder,
    pub exe: &'a [u8],
    /// A NUL after each argument.
    pub command: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Module<'a> {
    pub id: u64,
    /// Where it was mapped in the process that wrote the record.
    pub base: u64,
    pub end: u64,
    pub build_id: &'a [u8],
    pub path: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    pub signature: u64,
    pub method: Method,
    /// 16 bytes each.
    frames: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Id of the module, or of the symbol if the method is [`Method::Java`].
    pub module: u64,
    /// Of the return address from the module's base, or the bytecode index.
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    pub facts: FileFacts,
    pub path: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    pub first_page: u64,
    /// Bytes of a chunk.
    pub chunk: usize,
    ids: &'a [u8],
}

impl<'a> Context<'a> {
    /// Innermost first.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame> + 'a {
        let frames = self.frames;
        (0..frames.len() / 16).map(move |i| Frame {
            module: u64_at(frames, 16 * i),
            offset: u64_at(frames, 16 * i + 8),
        })
    }
}

impl<'a> Content<'a> {
    /// Number of the page, its id and those of its chunks.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = (u64, PageIds)> + 'a {
        let (ids, first) = (self.ids, self.first_page);
        ids.chunks_exact(8 * (1 + PAGE / self.chunk))
            .enumerate()
            .map(move |(i, ids)| {
                let mut page = [0; PAGE_IDS];
                let ids = ids.as_chunks::<8>().0.iter().map(|&id| u64::from_le_bytes(id));
                page.iter_mut().zip(ids).for_each(|(to, id)| *to = id);
                (first + i as u64, page)
            })
    }
}

impl<'a> Spool<'a> {
    /// `name` is for error messages.
    pub fn parse(name: &'a str, bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < HEADER || bytes[..8] != MAGIC {
            return Err(Error::input(format!(
                "{name}: not a spool (a spool starts with `FTLSPOOL` and has {HEADER} bytes at least)"
            )));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(Error::input(format!(
                "{name}: a spool of version {version}, this ftlab reads version {VERSION}"
            )));
        }
        let header = Start {
            pid: u32_at(bytes, 12),
            parent: u32_at(bytes, 16),
            tid: u32_at(bytes, 20),
            clock_ns: u64_at(bytes, 24),
            wall_ns: u64_at(bytes, 32),
            image: u64_at(bytes, 40),
        };
        Ok(Self { header, name, bytes })
    }

    pub fn records(&self) -> Records<'a> {
        Records {
            name: self.name,
            bytes: self.bytes,
            at: HEADER,
        }
    }

    /// The records from a place on that [`Records::at`] gave.
    pub fn records_from(&self, at: usize) -> Records<'a> {
        Records { at, ..self.records() }
    }
}

impl Records<'_> {
    /// Where the next record starts.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// The records in order; ends at the first damaged one, with its error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    name: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..)?;
        if rest.len() < 4 {
            // Nothing more, or the file was cut within a length.
            return None;
        }
        let len = u32_at(rest, 0) as usize;
        if len == 0 {
            return None;
        }
        let at = std::mem::replace(&mut self.at, usize::MAX);
        let place = |what: String| Error::input(format!("{}: at byte {at}: {what}", self.name));
        if len < HEAD || !len.is_multiple_of(8) || len > MOST {
            return Some(Err(place(format!(
                "a record of {len} bytes; records have {HEAD} to {MOST}, in steps of 8"
            ))));
        }
        let Some(record) = rest.get(..len) else {
            return Some(Err(place(format!(
                "the spool ends within a record of {len} bytes, {} of them there",
                rest.len()
            ))));
        };
        match decode(record) {
            Ok(record) => {
                self.at = at + len;
                Some(Ok(record))
            }
            Err(what) => Some(Err(place(what))),
        }
    }
}

fn decode(record: &[u8]) -> std::result::Result<Record<'_>, String> {
    let (kind, a, b) = (record[4], record[5], u16::from_le_bytes([record[6], record[7]]));
    let kind = Kind::from_stored(kind).ok_or_else(|| format!("a record of kind {kind}; kinds are 1 to 8"))?;
    let mut body = Body {
        kind,
        rest: &record[HEAD..],
    };
    let unknown = |what: &str, number: u64| format!("{kind:?} with {what} {number}, which there is not");
    let decoded = match kind {
        Kind::Process => {
            let recorder = Recorder::from_stored(a).ok_or_else(|| unknown("recorder", a.into()))?;
            let (exe, command) = (body.u32()?, body.u32()?);
            Record::Process(Process {
                recorder,
                exe: body.take(exe as usize)?,
                command: body.take(command as usize)?,
            })
        }
        Kind::Module => {
            let (id, base, end) = (body.u64()?, body.u64()?, body.u64()?);
            let (build_id, path) = (body.u32()?, body.u32()?);
            if end < base {
                return Err(format!("a module that ends at {end:#x}, before its base {base:#x}"));
            }
            Record::Module(Module {
                id,
                base,
                end,
                build_id: body.take(build_id as usize)?,
                path: body.take(path as usize)?,
            })
        }
        Kind::Context => {
            if usize::from(b) > MOST_FRAMES {
                return Err(format!("a context of {b} frames; there are at most {MOST_FRAMES}"));
            }
            Record::Context(Context {
                method: Method::from_stored(a).ok_or_else(|| unknown("method", a.into()))?,
                signature: body.u64()?,
                frames: body.take(16 * usize::from(b))?,
            })
        }
        Kind::File => {
            let (id, path) = (body.u32()?, body.u32()?);
            let facts = FileFacts {
                id,
                flags: b,
                device: body.u64()?,
                inode: body.u64()?,
                birth_ns: body.u64()?,
                size: body.u64()?,
            };
            Record::File(File {
                facts,
                path: body.take(path as usize)?,
            })
        }
        Kind::Op => {
            if b & !op_flags::ALL != 0 {
                return Err(unknown("flags", b.into()));
            }
            let operation = OpFacts {
                op: Op::from_stored(a).ok_or_else(|| unknown("operation", a.into()))?,
                flags: b,
                file: body.u32()?,
                duration_ns: body.u32()?,
                time_ns: body.u64()?,
                offset: body.u64()?,
                length: body.u64()?,
                signature: body.u64()?,
            };
            // Offsets of files are signed in the kernel, so neither can be half of the numbers or more.
            if operation
                .offset
                .checked_add(operation.length)
                .is_none_or(|end| end > 1 << 63)
            {
                return Err(format!(
                    "an operation on offset {} and length {}, beyond any file",
                    operation.offset, operation.length
                ));
            }
            Record::Op(operation)
        }
        Kind::Content => {
            let chunk = match a {
                0 => CHUNK,
                8 | 9 => 1 << a,
                _ => return Err(unknown("size of chunks", a.into())),
            };
            if usize::from(b) > most_pages(chunk) {
                return Err(format!(
                    "content of {b} pages; a record has at most {}",
                    most_pages(chunk)
                ));
            }
            let first_page = body.u64()?;
            if first_page > 1 << 52 {
                return Err(format!("content of page {first_page}, beyond any file"));
            }
            Record::Content(Content {
                first_page,
                chunk,
                ids: body.take(8 * (1 + PAGE / chunk) * usize::from(b))?,
            })
        }
        Kind::Note => {
            let what = NoteKind::from_stored(a).ok_or_else(|| unknown("subject", a.into()))?;
            let (count, program) = (body.u64()?, body.u32()?);
            Record::Note(what, count, body.take(program as usize)?)
        }
        Kind::Symbol => {
            let (id, text, _) = (body.u64()?, body.u32()?, body.u32()?);
            Record::Symbol(id, body.take(text as usize)?)
        }
    };
    Ok(decoded)
}

struct Body<'a> {
    kind: Kind,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn take(&mut self, len: usize) -> std::result::Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| {
            format!(
                "{:?} is too short: {len} bytes wanted, {} there",
                self.kind,
                self.rest.len()
            )
        })?;
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> std::result::Result<u32, String> {
        Ok(u32_at(self.take(4)?, 0))
    }

    fn u64(&mut self) -> std::result::Result<u64, String> {
        Ok(u64_at(self.take(8)?, 0))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::{Space, Window, Writer};

    /// Memory in the place of a file: windows of `step` bytes that begin on a multiple of 4096.
    struct Memory {
        bytes: Vec<u64>,
        step: usize,
        limit: usize,
    }

    impl Memory {
        fn new(step: usize, limit: usize) -> Self {
            Self {
                bytes: vec![0; limit / 8],
                step,
                limit,
            }
        }

        fn bytes(&self) -> Vec<u8> {
            self.bytes.iter().flat_map(|word| word.to_ne_bytes()).collect()
        }
    }

    #[expect(unsafe_code, reason = "windows over a vector that is never resized")]
    impl Space for Memory {
        fn next(&mut self, _: Option<Window>, at: u64) -> Option<Window> {
            let start = at as usize / 4096 * 4096;
            (start + self.step <= self.limit).then(|| {
                let base = std::ptr::NonNull::new(self.bytes.as_mut_ptr().cast::<u8>()).unwrap();
                // SAFETY: within the vector, by the check above; aligned to 8 as its elements are.
                unsafe { Window::new(base.add(start), self.step, start as u64) }
            })
        }
    }

    const START: Start = Start {
        pid: 7,
        parent: 6,
        tid: 8,
        clock_ns: 1_000,
        wall_ns: 2_000,
        image: 9,
    };

    fn op(number: u64) -> OpFacts {
        OpFacts {
            op: Op::Write,
            flags: op_flags::SYNC,
            file: 3,
            duration_ns: 44,
            time_ns: 1_000 + number,
            offset: number * 100,
            length: 100,
            signature: 0xdead,
        }
    }

    fn all_kinds() -> Vec<u8> {
        let mut memory = Memory::new(128 << 10, 128 << 10);
        let mut writer = Writer::begin(&mut memory, &START).unwrap();
        writer
            .process(&mut memory, Recorder::Library, b"/bin/a", b"a\0-b\0")
            .unwrap();
        writer
            .module(&mut memory, 5, 0x1000..0x9000, &[1, 2, 3], b"/lib/x.so")
            .unwrap();
        writer
            .context(&mut memory, Method::Unwind, 0xdead, &[(5, 0x10), (5, 0x20)])
            .unwrap();
        let facts = FileFacts {
            id: 3,
            flags: file_flags::SYNC,
            device: 1,
            inode: 2,
            birth_ns: 3,
            size: 4,
        };
        writer.file(&mut memory, &facts, b"/tmp/f").unwrap();
        writer.op(&mut memory, &op(0)).unwrap();
        let ids = |page| std::array::from_fn(|i| if i == 0 { page } else { i as u64 });
        writer.content(&mut memory, CHUNK, 10, 2, ids).unwrap();
        writer.note(&mut memory, NoteKind::IoUring, 2).unwrap();
        writer.symbol(&mut memory, 77, "A.b".as_bytes()).unwrap();
        memory.bytes()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = all_kinds();
        let spool = Spool::parse("s", &bytes).unwrap();
        assert_eq!(spool.header, START);
        let records: Vec<Record> = spool.records().map(|record| record.unwrap()).collect();
        assert_eq!(records.len(), 8);
        assert!(matches!(records[0], Record::Process(p) if p.exe == b"/bin/a" && p.command == b"a\0-b\0"));
        assert!(
            matches!(records[1], Record::Module(m) if m.id == 5 && m.base == 0x1000 && m.end == 0x9000
            && m.build_id == [1, 2, 3] && m.path == b"/lib/x.so")
        );
        let Record::Context(context) = records[2] else {
            panic!("{:?}", records[2])
        };
        let frames: Vec<Frame> = context.frames().collect();
        assert_eq!((context.signature, context.method), (0xdead, Method::Unwind));
        assert_eq!(
            frames,
            [
                Frame {
                    module: 5,
                    offset: 0x10
                },
                Frame {
                    module: 5,
                    offset: 0x20
                }
            ]
        );
        assert!(
            matches!(records[3], Record::File(f) if f.facts.inode == 2 && f.facts.size == 4 && f.path == b"/tmp/f")
        );
        assert_eq!(records[4], Record::Op(op(0)));
        let Record::Content(content) = records[5] else {
            panic!("{:?}", records[5])
        };
        let pages: Vec<_> = content.pages().map(|(page, ids)| (page, ids[..6].to_vec())).collect();
        assert_eq!(pages, [(10, vec![10, 1, 2, 3, 4, 0]), (11, vec![11, 1, 2, 3, 4, 0])]);
        assert_eq!(records[6], Record::Note(NoteKind::IoUring, 2, b""));
        assert_eq!(records[7], Record::Symbol(77, b"A.b"));
    }

    /// As many pages as a record has room for come back with all their ids, whatever the size of chunks.
    #[test]
    fn chunks_of_each_size_are_read_as_they_were_written() {
        for chunk in CHUNK_SIZES {
            let mut memory = Memory::new(128 << 10, 128 << 10);
            let mut writer = Writer::begin(&mut memory, &START).unwrap();
            let ids = |page: u64| std::array::from_fn(|i| if i <= PAGE / chunk { 100 * page + i as u64 } else { 0 });
            writer.content(&mut memory, chunk, 7, usize::MAX, ids).unwrap();
            let bytes = memory.bytes();
            let Some(Ok(Record::Content(content))) = Spool::parse("t", &bytes).unwrap().records().next() else {
                panic!("no content");
            };
            assert_eq!((content.chunk, content.pages().len()), (chunk, most_pages(chunk)));
            assert!(content.pages().zip(7..).all(|(read, page)| read == (page, ids(page))));
        }
    }

    /// Windows of 128 KiB at multiples of 4096 in a file of 1 MiB: the last one starts at 0xe0000 at the latest, so at least
    /// (0xe0000 − 64) / 48 = 19113 records fit, and at most all of (1 MiB − 64) / 48 = 21844.
    #[test]
    fn records_cross_windows_whole_and_stop_when_there_is_no_room() {
        let mut memory = Memory::new(128 << 10, 1 << 20);
        let mut writer = Writer::begin(&mut memory, &START).unwrap();
        let mut written = 0;
        while writer.op(&mut memory, &op(written)).is_some() {
            written += 1;
        }
        assert!((19_113..=21_844).contains(&written), "{written}");
        let bytes = memory.bytes();
        let spool = Spool::parse("s", &bytes).unwrap();
        let mut read = 0;
        for record in spool.records() {
            assert_eq!(record.unwrap(), Record::Op(op(read)));
            read += 1;
        }
        assert_eq!(read, written);
    }

    /// A process killed while it writes leaves a record without its length.
    #[test]
    fn a_record_without_length_is_the_end() {
        let mut bytes = all_kinds();
        let second = HEADER + u32_at(&bytes, HEADER) as usize;
        bytes[second..second + 4].fill(0);
        assert_eq!(Spool::parse("s", &bytes).unwrap().records().count(), 1);
    }

    #[test]
    fn damage_is_one_sentence_with_its_place() {
        let sound = all_kinds();
        let message = |bytes: &[u8]| match Spool::parse("s", bytes) {
            Err(error) => error.to_string(),
            Ok(spool) => spool.records().find_map(|record| record.err()).unwrap().to_string(),
        };
        assert_eq!(
            message(b"abc"),
            "s: not a spool (a spool starts with `FTLSPOOL` and has 64 bytes at least)"
        );
        let mut other = sound.clone();
        other[8] = 9;
        assert_eq!(message(&other), "s: a spool of version 9, this ftlab reads version 1");
        assert_eq!(
            message(&sound[..HEADER + 16]),
            "s: at byte 64: the spool ends within a record of 32 bytes, 16 of them there"
        );
        let mut kind = sound.clone();
        kind[HEADER + 4] = 99;
        assert_eq!(message(&kind), "s: at byte 64: a record of kind 99; kinds are 1 to 8");
        let mut length = sound.clone();
        length[HEADER] = 13;
        assert_eq!(
            message(&length),
            "s: at byte 64: a record of 13 bytes; records have 8 to 65536, in steps of 8"
        );
        let mut inner = sound;
        inner[HEADER + 8] = 200;
        assert_eq!(
            message(&inner),
            "s: at byte 64: Process is too short: 200 bytes wanted, 16 there"
        );
    }

    #[test]
    fn nothing_is_read_after_damage() {
        let mut bytes = all_kinds();
        bytes[HEADER + 4] = 99;
        let spool = Spool::parse("s", &bytes).unwrap();
        let records: Vec<_> = spool.records().collect();
        assert_eq!(records.len(), 1);
        assert!(records[0].is_err());
    }
}
