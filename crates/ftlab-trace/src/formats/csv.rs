//! CSV with named columns: the easiest form to write a trace in, and the form in which other tables of requests are read.
//!
//! # Origin
//! ftlab's own (the bundled recordings are in it), and any table of requests whose header names its columns.
//!
//! # Columns
//! Named by the header line, or by the last comment (`#`) before the rows, in any order and letter case, between commas, tabs,
//! semicolons, bars or blanks. The first name of each row is ftlab's own; the units of `offset` and `length` together are fixed.
//!
//! | column | also called | meaning | unit |
//! | --- | --- | --- | --- |
//! | `time_ns`, `time_us`, `time_ms`, `time_s` | timestamp, ts, arrival, … with or without a unit | arrival, fractions allowed; dates such as `2023-01-05T12:34:56.789Z` | as named, else guessed |
//! | `op` | rw, rwbs, type, opcode, … | read, write, trim, flush or their first letters; discard or `d` is trim; RWBS letters as in blkparse's text; SCSI opcodes; 0 and 1 | |
//! | `offset` | lba, slba, sector, lbn, blkno, block: 512 B; page: 4 KiB; address, position | where it begins; may be empty for a flush | bytes |
//! | `length` | bytes; sectors, blocks: 512 B; pages: 4 KiB; size, count; nlb: 512 B, from 0 | may be empty for a flush | bytes |
//! | | end, end_lba, last_sector, … in place of a length | the last unit of the request or the first one behind it: the choice that gives more lengths that are multiples of eight | as the address |
//! | `flags` | | letters: `F` force unit access, `S` synchronous, `M` metadata; empty or `-` is none | |
//! | `volume` | device, dev, disk, lun, asu, vm, minor, … | any word; behind a column host, hostname, server or major it is `host.volume` | |
//! | `stream` | stream_id, placement_id | host stream or placement id | |
//! | `pc` | context | program context, decimal or `0x` hexadecimal | |
//! | `pid` | process_id | process id; empty or 0 is none | |
//! | `label` | file_type, kind, category; or else process, proc, comm, app, task | any words; empty or `unknown` is none | |
//! | `content` | | ids of the request's 4 KiB units, hexadecimal, between `+` or `;`; of each the first 16 digits count | |
//! | | action, event | letters of blkparse's events: one is taken as the request, as in the format `blkparse` | |
//! | | hash, md5, sha1, digest, fingerprint | a digest of the request, or one of each 4 KiB or 512 B, one after the other or between `+` or `;` | |
//!
//! A unit may follow any name of a time, an address or a size: `time_us`, `Time (100ns)`, `address_4k`, `offset_mib`,
//! `size_kb`. A comma is a decimal comma where it does not separate columns. SCSI opcodes are hexadecimal, with or
//! without `0x`. They are decimal if the rows have 40, 42, 136, 138 and the like and nothing that only hexadecimal has,
//! such as 28, 2a or `0x`. A fraction of a unit is allowed if it makes whole bytes (`32.5` KiB are 33280 B); any other
//! makes a bad line.
//!
//! An option overrides a unit in a column's name, also the bytes of `offset` and `length`; but codes are refused if no
//! operation is a code. Everything that names leave open is guessed from up to 5000 rows and can be set: the unit of
//! times from dates and rates, the units of addresses and sizes from multiples of 512, codes of 0 and 1. Other units
//! (bytes, sectors, 4 KiB) are taken if with them far more requests begin where others end, and no name says a unit:
//! byte addresses with sizes in sectors, or the reverse. `lba`, `block` and the like suggest sectors but do not fix
//! them. A file without a header is read when `columns` names its columns in these words; `-` skips one.
//!
//! A content id is the first 8 bytes of a digest; if a request of several 4 KiB has one digest, each unit gets an id of
//! its own from it. A row with more ids than one for each 4 KiB is a bad line. A flush that RWBS letters put before data
//! is a request of its own. A field in double quotes may hold separators, and quotes, each written as two (RFC 4180),
//! but no line end. A trim of 4 GiB or more is read as parts of 2 GiB.
//!
//! # What is dropped
//! Columns of other names, such as latencies; requests of no bytes; rows with an empty operation or `N`; the first of two
//! names for one optional column counts.

use std::borrow::Cow;

use ftlab_core::{Batch, Error, OpKind, Result};

use super::block_events::{self, Events};
use super::csv_header::{Column, Names as Header};
use super::csv_layout::Layout;
use super::fields::{Fields, split};
use super::names::Names;
use super::operations::{flag_letters, operation};
use super::{Claim, Reader, Sample, Strength, digest};
use crate::columns::{LARGEST, to_length};
use crate::health::{Defect, Parsed, left_out, show_line};
use crate::input::Input;
use crate::lines::{EMPTY, LineParser, Requests, TextReader, VolumeTable};
use crate::report::Skipped;
use crate::settings::{Codes, Setting, Settings, TimeUnit};

/// Trims longer than the record's length column are split; beyond this many bytes they are taken for damage.
const LONGEST_TRIM: u64 = 1 << 44;
const TRIM_PART: u64 = 1 << 31;

struct Csv {
    separator: u8,
    columns: Vec<Option<Column>>,
    time_unit: TimeUnit,
    address_unit: u64,
    size_unit: u64,
    /// Bytes that a size says too few: it counts from 0, or is an end that belongs to the request.
    size_beyond: u64,
    codes: Option<Codes>,
    decimal_opcodes: bool,
    /// The event that stands for a request, where the table has several.
    event: Option<u8>,
    events: Events,
    has: Optional,
    labels: Names,
    volume_key: Vec<u8>,
    empty: u64,
    no_operation: u64,
}

/// Which optional columns the header names.
#[derive(Clone, Copy, Default)]
struct Optional {
    host: bool,
    stream: bool,
    pc: bool,
    pid: bool,
    label: bool,
    content: bool,
}

/// A row's optional values.
#[derive(Default)]
struct Extras<'a> {
    stream: u16,
    pc: u64,
    pid: u32,
    label: Cow<'a, [u8]>,
    content: &'a [u8],
    digests: &'a [u8],
}

impl Csv {
    fn new(layout: &Layout, settings: &Settings) -> Self {
        let names = &layout.names;
        let mut columns: Vec<Option<Column>> = names.columns.iter().map(|n| n.map(|n| n.column)).collect();
        let label = names.has(Column::Label);
        for column in &mut columns {
            match column {
                Some(Column::Process) if label => *column = None,
                Some(Column::Process) => *column = Some(Column::Label),
                Some(Column::Hash) if names.has(Column::Content) => *column = None,
                Some(Column::Event) if settings.event.is_none() => *column = None,
                _ => {}
            }
        }
        // Nothing behind the last column that matters is looked at.
        while let Some(None) = columns.last() {
            columns.pop();
        }
        Csv {
            separator: layout.separator,
            time_unit: settings.time_unit.unwrap_or(TimeUnit::Nanoseconds),
            address_unit: settings.address_unit.map_or(1, u64::from),
            size_unit: settings.size_unit.map_or(1, u64::from),
            size_beyond: match layout.one_beyond {
                true => settings.size_unit.map_or(1, u64::from),
                false => 0,
            },
            codes: settings.codes,
            decimal_opcodes: layout.decimal_opcodes,
            event: settings.event.map(|event| event as u8),
            events: Events::default(),
            has: Optional {
                host: names.has(Column::Host),
                stream: names.has(Column::Stream),
                pc: names.has(Column::Pc),
                pid: names.has(Column::Pid),
                label: label || names.has(Column::Process),
                content: names.has(Column::Content) || names.has(Column::Hash),
            },
            columns,
            labels: Names::default(),
            volume_key: Vec::new(),
            empty: 0,
            no_operation: 0,
        }
    }

    /// The number of the volume that these two words name.
    #[inline]
    fn volume(&mut self, host: &[u8], volume: &[u8], volumes: &mut VolumeTable) -> Parsed<u16> {
        let volume = if volume.is_empty() { b"0" } else { volume };
        if !self.has.host {
            return volumes.id(volume);
        }
        self.volume_key.clear();
        self.volume_key.extend_from_slice(host);
        self.volume_key.push(b',');
        self.volume_key.extend_from_slice(volume);
        volumes.id(&self.volume_key)
    }

    /// Appends what every request of a row has beyond the first six columns. Content belongs to the last one.
    #[inline]
    fn push_extras(&mut self, requests: usize, extras: &Extras<'_>, batch: &mut Batch) {
        let label = if self.has.label {
            self.labels.id(&extras.label)
        } else {
            0
        };
        for _ in 0..requests {
            if self.has.stream {
                batch.stream.push(extras.stream);
            }
            if self.has.pc {
                batch.pc.push(extras.pc);
            }
            if self.has.pid {
                batch.pid.push(extras.pid);
            }
            if self.has.label {
                batch.label.push(label);
            }
        }
    }
}

impl LineParser for Csv {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut row = Fields::new(line, self.separator);
        let (mut time_ns, mut op, mut offset, mut length, mut end) = (None, None, None, None, None);
        let (mut flag_bits, mut host, mut volume) = (0, Cow::default(), Cow::default());
        let mut extras = Extras::default();
        for column in &self.columns {
            let Some(field) = row.next() else { break };
            let Some(column) = column else { continue };
            match column {
                Column::Time => time_ns = Some(row.time(field, self.time_unit)?),
                Column::Op => {
                    let found = operation(field, self.codes, self.decimal_opcodes);
                    op = Some(found.ok_or_else(|| row.defect("an operation such as read, W, trim, flush or WS"))?);
                }
                Column::Offset if field.is_empty() => {}
                Column::Offset => {
                    let bytes = row.bytes(field, self.address_unit)?.filter(|&bytes| bytes <= LARGEST);
                    offset = Some(bytes.ok_or_else(|| row.defect("an address below 2^60 bytes"))?);
                }
                Column::Length | Column::End if field.is_empty() => {}
                Column::Length => {
                    let bytes = row.bytes(field, self.size_unit)?;
                    let bytes = bytes.and_then(|bytes| bytes.checked_add(self.size_beyond));
                    length = Some(bytes.ok_or_else(|| row.defect("a size below 2^64 bytes"))?);
                }
                Column::End => {
                    let bytes = row.bytes(field, self.size_unit)?;
                    let bytes = bytes.and_then(|bytes| bytes.checked_add(self.size_beyond));
                    end = Some(bytes.ok_or_else(|| row.defect("an end below 2^64 bytes"))?);
                }
                Column::Event if Some(field) == self.event.as_ref().map(std::slice::from_ref) => {}
                Column::Event => {
                    return self.events.left_out_line(field, || row.defect(block_events::AN_ACTION));
                }
                Column::Flags => {
                    flag_bits = flag_letters(field).ok_or_else(|| row.defect("flags among F, S and M"))?;
                }
                Column::Host => host = row.text(field),
                Column::Volume => volume = row.text(field),
                Column::Stream => {
                    let stream = u16::try_from(number_or_0(&row, field)?);
                    extras.stream = stream.map_err(|_| row.defect("a stream number below 65536"))?;
                }
                Column::Pc => extras.pc = number_or_0(&row, field)?,
                Column::Pid => {
                    let pid = u32::try_from(number_or_0(&row, field)?);
                    extras.pid = pid.map_err(|_| row.defect("a process id"))?;
                }
                Column::Label | Column::Process => extras.label = row.text(field),
                Column::Content => extras.content = field,
                Column::Hash => extras.digests = field,
            }
        }
        let (Some(time_ns), Some(mut op)) = (time_ns, op) else {
            return Err(Defect::whole("as many columns as the header has"));
        };
        op.flags |= flag_bits;
        let Some(kind) = op.op else {
            self.no_operation += 1;
            return Ok(());
        };
        if let (Some(offset), Some(end)) = (offset, end) {
            let bytes = end.checked_sub(offset);
            length = Some(bytes.ok_or(Defect::whole("an end behind the address"))?);
        }
        let (offset, length) = match (kind, offset, length) {
            (OpKind::Flush, ..) => (0, 0),
            (_, Some(offset), Some(length)) => (offset, length),
            _ => return Err(Defect::whole("an address and a size")),
        };
        if length == 0 && kind != OpKind::Flush {
            self.empty += 1;
            return Ok(());
        }
        let longest = if kind == OpKind::Trim {
            LONGEST_TRIM
        } else {
            u64::from(u32::MAX)
        };
        if length > longest {
            return Err(Defect::whole("a size below 4 GiB (16 TiB for a trim)"));
        }
        let volume = self.volume(&host, &volume, to.volumes)?;
        let batch = &mut *to.batch;
        let ids = batch.content.len();
        push_ids(&extras, length, &mut batch.content).inspect_err(|_| batch.content.truncate(ids))?;
        let from = batch.len();
        match to_length(length) {
            Some(length) => {
                op.push(batch, time_ns, offset, length, volume);
            }
            None if kind == OpKind::Flush => {
                op.push(batch, time_ns, 0, 0, volume);
            }
            None => {
                for done in (0..length).step_by(TRIM_PART as usize) {
                    let part = TRIM_PART.min(length - done) as u32;
                    batch.push(time_ns, kind, offset + done, part, volume, op.flags);
                }
            }
        }
        let requests = batch.len() - from;
        self.push_extras(requests, &extras, batch);
        if self.has.content {
            batch.content_end.extend((1..requests).map(|_| ids as u32));
            batch.content_end.push(batch.content.len() as u32);
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        let mut all = self.events.left_out();
        all.extend(left_out(&[("no operation", self.no_operation), (EMPTY, self.empty)]));
        all
    }

    fn labels(&self) -> &[String] {
        self.labels.all()
    }
}

#[inline]
fn number_or_0(row: &Fields<'_>, field: &[u8]) -> Parsed<u64> {
    if matches!(field, b"" | b"-") {
        Ok(0)
    } else {
        row.number(field)
    }
}

/// Appends the content ids of a row.
#[inline]
fn push_ids(extras: &Extras<'_>, length: u64, to: &mut Vec<u64>) -> Parsed {
    let expect = |good: bool, what| if good { Ok(()) } else { Err(Defect::whole(what)) };
    let is_none = |text: &[u8]| matches!(text, b"" | b"-");
    match (extras.content, extras.digests) {
        (content, _) if !is_none(content) => {
            let from = to.len();
            expect(digest::each(content, to), "content ids in hexadecimal")?;
            let pages = length.div_ceil(4096);
            expect(
                (to.len() - from) as u64 <= pages,
                "at most one content id for each 4 KiB",
            )
        }
        (_, digests) if is_none(digests) || length > u64::from(u32::MAX) => Ok(()),
        (_, digests) => {
            let (units, sectors) = (length.div_ceil(4096) as usize, length.div_ceil(512) as usize);
            let good = if digests.iter().any(digest::is_between) {
                digest::ids_apart(digests, units, sectors, to)
            } else {
                digest::ids(digests, units, sectors, to)
            };
            expect(good, "hexadecimal digests, of the request or of each 4 KiB or 512 B")
        }
    }
}

pub const SETTINGS: &[Setting] = &[
    Setting::TimeUnit,
    Setting::Codes,
    Setting::AddressUnit,
    Setting::SizeUnit,
    Setting::Columns,
    Setting::Event,
];

pub fn sample() -> Vec<u8> {
    b"op,time_us,length,offset,flags,volume,stream,pc,pid,process,content,comment\n\
      write,1.5,4096,8192,SM,a,3,0xff,77,\"b, c\",1f+2,x\n\
      T,2,5000000000,0,,b,,,,,,\n\
      flush,3,,,-,a,0,12,1,d,,x\n\
      1,3,512,1024,,a,0,12,1,d,,x\n"
        .to_vec()
}

/// Refuses names of columns that mean nothing here, or not enough.
pub fn check_columns(columns: &str) -> Result<()> {
    let problem = Header::given(columns).err();
    problem.map_or(Ok(()), |problem| {
        Err(Error::input(format!("columns {columns}: {problem}")))
    })
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    match Layout::of(sample, sample.columns) {
        Ok(layout) => Some(Claim {
            strength: match sample.columns.is_some() || layout.names.is_explicit() {
                true => Strength::Sure,
                // Formats that know their own header by heart come first.
                false => Strength::Likely,
            },
            reason: layout.reason,
            guess: layout.guess,
        }),
        // Half a header, and names that do not fit, are taken too, so that the error says what is missing.
        Err(problem) => {
            let meant = sample.columns.is_some() || is_half_a_header(sample);
            meant.then(|| Claim::new(Strength::Fits, problem))
        }
    }
}

/// Whether the first line names at least two needed columns and holds no number.
fn is_half_a_header(sample: &Sample<'_>) -> bool {
    let Some(first) = sample.lines.first() else {
        return false;
    };
    let fields = [b',', b'\t', b';'].into_iter().map(|separator| split(first, separator));
    let Some(fields) = fields.max_by_key(Vec::len) else {
        return false;
    };
    let no_number = fields
        .iter()
        .all(|field| !field.first().is_some_and(u8::is_ascii_digit));
    fields.len() >= 3 && no_number && Header::needed_in(fields.into_iter()) >= 2
}

pub fn open(mut input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    let mut lines = 0;
    input.fill()?;
    loop {
        let end = memchr::memchr(b'\n', input.bytes()).unwrap_or(input.bytes().len());
        let line = input.bytes()[..end].trim_ascii();
        if end == input.bytes().len() || !(line.is_empty() || line[0] == b'#') {
            break;
        }
        input.consume(end + 1);
        // The next line may be cut; but the buffer must not grow with every line before the header.
        if memchr::memchr(b'\n', input.bytes()).is_none() {
            input.fill()?;
        }
        lines += 1;
    }
    if lines > 0 {
        // Guesses look at rows.
        input.fill()?;
    }
    let end = memchr::memchr(b'\n', input.bytes()).unwrap_or(input.bytes().len());
    let sample = Sample::new(input.bytes(), input.ended());
    let layout = Layout::of(&sample, settings.columns.as_deref()).map_err(|problem| {
        let (name, shown) = (input.name(), show_line(&input.bytes()[..end]));
        Error::input(format!("{name}, line {}: `{shown}`: {problem}", lines + 1))
    })?;
    if let (Some(event), false) = (settings.event, layout.names.has(Column::Event)) {
        return Err(Error::input(format!(
            "{}: event {event} was given, but no column says what each row is (event, action): expected none",
            input.name()
        )));
    }
    if let (Some(codes), true) = (settings.codes, layout.has_only_words) {
        return Err(Error::input(format!(
            "{}: codes {} was given, but no operation is 0 or 1: expected none",
            input.name(),
            codes.name()
        )));
    }
    let parser = Csv::new(&layout, &settings.or(&layout.guess));
    if layout.header {
        input.consume((end + 1).min(input.bytes().len()));
        lines += 1;
    }
    Ok(Box::new(TextReader::after_lines(parser, input, lines)))
}

#[cfg(test)]
mod tests;
