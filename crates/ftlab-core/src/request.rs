//! The one record that every source produces: columns of block requests.
//!
//! A trace is a stream of column batches, never a list of objects, so a 100 GB trace runs in constant memory.

use crate::error::Result;

/// What a request asks for. The numbers are those of the binary trace form and must not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum OpKind {
    #[default]
    Read = 0,
    Write = 1,
    Trim = 2,
    Flush = 3,
}

impl OpKind {
    pub const ALL: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Flush];

    pub fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Flush => "flush",
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }
}

/// Bits of the `flags` column.
pub mod flags {
    /// Force unit access: the write is durable when it completes.
    pub const FUA: u8 = 1;
    /// The host waits for it (a synchronous write, a read-ahead's opposite).
    pub const SYNC: u8 = 2;
    /// File-system metadata.
    pub const METADATA: u8 = 4;
    /// The contents are those of whole mapping units, from the first that the request touches on, what it does not cover of them
    /// included.
    pub const WHOLE_UNITS: u8 = 8;
}

/// Bytes that one content id of a trace stands for.
pub const CONTENT_BYTES: u32 = 4096;
/// Bytes that one chunk id stands for, where a source knows that much and no more.
pub const CHUNK_BYTES: u32 = 1024;
/// Chunk ids of one content id, of chunks of [`CHUNK_BYTES`].
pub const CHUNKS: usize = (CONTENT_BYTES / CHUNK_BYTES) as usize;
/// Chunk ids of one content id that there may be: chunks of 1 KiB, 512 and 256 B.
pub const CHUNKS_EACH: [usize; 3] = [CHUNKS, 2 * CHUNKS, 4 * CHUNKS];

/// The id of what several ids stand for, one after the other; `None` of none.
pub fn together(ids: &[u64]) -> Option<u64> {
    together_of(ids.iter().copied())
}

/// The same of ids that do not lie in memory one after the other.
pub fn together_of(mut ids: impl ExactSizeIterator<Item = u64>) -> Option<u64> {
    match ids.len() {
        0 | 1 => ids.next(),
        several => Some(ids.fold(several as u64, paired)),
    }
}

/// One id of two, so that different pairs practically never have the same (splitmix64's finaliser).
pub fn paired(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(23) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(a);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Ids of larger chunks, each of `count` of these; 0, unknown, where one of them is.
pub fn larger(ids: &[u64], count: usize) -> impl Iterator<Item = u64> + '_ {
    let unknown = |ids: &[u64]| ids.contains(&0);
    ids.chunks(count.max(1))
        .map(move |ids| if unknown(ids) { 0 } else { together(ids).unwrap_or(0) })
}

/// What is known of a request beside its operation and its address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoContext<'a> {
    /// Bits of [`flags`].
    pub flags: u8,
    /// Host stream or placement id; 0 = none.
    pub stream: u16,
    /// Number of the volume that the request came from; 0 where the source knows of one only.
    pub volume: u16,
    /// Program-context signature; 0 = unknown.
    pub pc: u64,
    /// Process id.
    pub pid: Option<u32>,
    /// Manual label or file kind, a number among the source's label names.
    pub label: Option<u16>,
    /// Content ids of the request's data, one for each `content_bytes` from its first byte on; empty where unknown.
    pub contents: &'a [u64],
    pub content_bytes: u32,
    /// Ids of the chunks of all that `contents` stand for, one of [`CHUNKS_EACH`] for each; empty where unknown. Those of 0 are
    /// unknown by themselves.
    pub chunks: &'a [u64],
}

impl IoContext<'_> {
    /// Nothing is known.
    pub const NONE: IoContext<'static> = IoContext {
        flags: 0,
        stream: 0,
        volume: 0,
        pc: 0,
        pid: None,
        label: None,
        contents: &[],
        content_bytes: CONTENT_BYTES,
        chunks: &[],
    };

    /// [`IoContext::NONE`] at one place for all, by which it is known at once.
    #[inline(always)]
    pub fn none() -> &'static IoContext<'static> {
        static NONE: IoContext<'static> = IoContext::NONE;
        &NONE
    }

    /// Whether nothing is known.
    #[inline(always)]
    pub fn is_none(&self) -> bool {
        std::ptr::eq(
            std::ptr::from_ref(self).cast::<()>(),
            std::ptr::from_ref(Self::none()).cast(),
        ) || self.is_blank()
    }

    fn is_blank(&self) -> bool {
        let numbers = u64::from(self.flags) | u64::from(self.stream) | u64::from(self.volume) | self.pc;
        numbers == 0 && self.pid.is_none() && self.label.is_none() && self.contents.is_empty()
    }
}

impl Default for IoContext<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

/// One request as a host sends it: bytes of a device, and what is known of them.
#[derive(Clone, Copy, Debug)]
pub struct IoRequest<'a> {
    pub op: OpKind,
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub length: u32,
    pub context: &'a IoContext<'a>,
}

impl<'a> IoRequest<'a> {
    /// A request of which nothing else is known.
    pub fn plain(op: OpKind, offset: u64, length: u32) -> Self {
        IoRequest {
            op,
            offset,
            length,
            context: IoContext::none(),
        }
    }
}

/// A batch of requests in columns. The first six always have the same length; an optional column is empty or as long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Arrival since the start of the trace, nanoseconds; not decreasing within a source.
    pub time_ns: Vec<u64>,
    pub op: Vec<OpKind>,
    /// First byte on the volume.
    pub offset: Vec<u64>,
    /// Bytes; 0 for a flush.
    pub length: Vec<u32>,
    /// Which of the trace's devices; 0 when it has one.
    pub volume: Vec<u16>,
    /// Bits of [`flags`].
    pub flags: Vec<u8>,
    /// Host stream or placement id (0 = none).
    pub stream: Vec<u16>,
    /// Program-context signature.
    pub pc: Vec<u64>,
    /// Process id; 0 = none (Linux's idle task, in which interrupts come, has it).
    pub pid: Vec<u32>,
    /// Manual label or file kind (an index into the source's label names).
    pub label: Vec<u16>,
    /// The number in `label` of requests that have none, where there are such.
    pub unlabelled: Option<u16>,
    /// Content ids of the request's 4 KiB units, concatenated; `content_end[i]` is where request i's ids end.
    pub content: Vec<u64>,
    pub content_end: Vec<u32>,
    /// Ids of chunks, as many for each id in `content` as [`Batch::chunks_each`] says, or empty; 0 is unknown.
    pub chunk: Vec<u64>,
}

impl Batch {
    /// Requests a source puts in one batch unless it has a reason of its own.
    pub const TARGET: usize = 4096;

    pub fn len(&self) -> usize {
        self.op.len()
    }

    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// Empties every column and keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.op.clear();
        self.offset.clear();
        self.length.clear();
        self.volume.clear();
        self.flags.clear();
        self.stream.clear();
        self.pc.clear();
        self.pid.clear();
        self.label.clear();
        self.unlabelled = None;
        self.content.clear();
        self.content_end.clear();
        self.chunk.clear();
    }

    /// Appends a request without optional columns.
    #[inline]
    pub fn push(&mut self, time_ns: u64, op: OpKind, offset: u64, length: u32, volume: u16, flags: u8) {
        self.time_ns.push(time_ns);
        self.op.push(op);
        self.offset.push(offset);
        self.length.push(length);
        self.volume.push(volume);
        self.flags.push(flags);
    }

    /// Host stream of request `i`; 0 (none) where the column is absent.
    #[inline]
    pub fn stream_of(&self, i: usize) -> u16 {
        self.stream.get(i).copied().unwrap_or(0)
    }

    /// Label of request `i`, if it has one.
    #[inline]
    pub fn label_of(&self, i: usize) -> Option<u16> {
        self.label
            .get(i)
            .copied()
            .filter(|&label| self.unlabelled != Some(label))
    }

    /// Program context of request `i`; 0 (unknown) where the column is absent.
    #[inline]
    pub fn pc_of(&self, i: usize) -> u64 {
        self.pc.get(i).copied().unwrap_or(0)
    }

    /// Whether nothing is known of any request beside its operation and its address: each context is [`IoContext::NONE`].
    pub fn is_plain(&self) -> bool {
        let absent = self.stream.is_empty() && self.pc.is_empty() && self.pid.is_empty() && self.label.is_empty();
        absent
            && self.content_end.is_empty()
            && self.flags.iter().all(|&flags| flags == 0)
            && self.volume.iter().all(|&volume| volume == 0)
    }

    /// Request `i`, with what [`Batch::context_of`] says of it.
    #[inline]
    pub fn request<'a>(&self, i: usize, context: &'a IoContext<'a>) -> IoRequest<'a> {
        IoRequest {
            op: self.op[i],
            offset: self.offset[i],
            length: self.length[i],
            context,
        }
    }

    /// What is known of request `i`.
    #[inline(always)]
    pub fn context_of(&self, i: usize) -> IoContext<'_> {
        IoContext {
            flags: self.flags[i],
            stream: self.stream_of(i),
            volume: self.volume[i],
            pc: self.pc_of(i),
            pid: self.pid.get(i).copied(),
            label: self.label_of(i),
            contents: self.content_of(i),
            content_bytes: CONTENT_BYTES,
            chunks: self.chunks_of(i),
        }
    }

    /// Content ids of request `i`, one per 4 KiB; empty where the column is absent.
    #[inline]
    pub fn content_of(&self, i: usize) -> &[u64] {
        self.ids_of(i).map_or(&[], |ids| &self.content[ids])
    }

    /// Whether each request has one content id and nothing is known of its chunks.
    pub fn has_one_content_each(&self) -> bool {
        let ends = self.content_end.iter().zip(1..);
        let is_each = |(&end, number): (&u32, u32)| end == number;
        self.chunk.is_empty()
            && self.content_end.len() == self.len()
            && ends.map(is_each).fold(true, |all, is| all & is)
    }

    /// Appends content ids, and those of their chunks; of two sizes of chunks the larger is kept. What is not known is 0.
    pub fn append_ids(&mut self, content: &[u64], chunks: &[u64]) {
        let there = (!self.chunk.is_empty()).then(|| self.chunks_each());
        let here = (!chunks.is_empty() && !content.is_empty()).then(|| chunks.len() / content.len());
        let before = self.content.len();
        self.content.extend_from_slice(content);
        let Some(each) = [there, here].into_iter().flatten().min() else {
            return;
        };
        if let Some(there) = there.filter(|&there| there > each) {
            self.chunk = larger(&self.chunk, there / each).collect();
        }
        self.chunk.resize(each * before, 0);
        match here {
            Some(here) if here > each => self.chunk.extend(larger(chunks, here / each)),
            _ => self.chunk.extend_from_slice(chunks),
        }
        self.chunk.resize(each * self.content.len(), 0);
    }

    /// Ids of chunks for each content id, which the column's length says: [`CHUNKS`] where there are none.
    #[inline]
    pub fn chunks_each(&self) -> usize {
        match self.content.len() {
            0 => CHUNKS,
            ids => (self.chunk.len() / ids).max(CHUNKS),
        }
    }

    /// Ids of the chunks of request `i`, [`Batch::chunks_each`] for each of its content ids; empty where the column is absent.
    #[inline]
    pub fn chunks_of(&self, i: usize) -> &[u64] {
        if self.chunk.is_empty() {
            return &[];
        }
        let (ids, each) = (self.ids_of(i).unwrap_or(0..0), self.chunks_each());
        &self.chunk[each * ids.start..each * ids.end]
    }

    /// The places of the content ids of request `i`.
    #[inline]
    fn ids_of(&self, i: usize) -> Option<std::ops::Range<usize>> {
        let end = *self.content_end.get(i)?;
        let start = if i == 0 { 0 } else { self.content_end[i - 1] };
        Some(start as usize..end as usize)
    }
}

/// A stream of request batches: a trace reader, a generator, a transformer of another source.
pub trait Source: Send {
    /// Replaces `batch` by the next requests. An empty batch means the end.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()>;

    /// Requests still to come, where the source knows (for progress and ETA).
    fn remaining(&self) -> Option<u64> {
        None
    }

    /// Names of the `volume` column's values seen so far, by number; empty where the source has none.
    fn volume_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of the `label` column's values seen so far, by number; empty where the source has none.
    fn label_names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        (**self).next_batch(batch)
    }

    fn remaining(&self) -> Option<u64> {
        (**self).remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        (**self).volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        (**self).label_names()
    }
}
