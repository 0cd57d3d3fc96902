//! CSV with named columns: the easy form to write a trace in, and what other people's tables are read as.
//!
//! # Origin
//! ftlab's own (the bundled recordings are in it), and any table of requests whose header says what its columns are.
//!
//! # Columns
//! Named by the header line, in any order and letter case, between commas, tabs, semicolons or blanks. The first name of
//! each row is ftlab's own; the units of the own names are fixed.
//!
//! | column | also called | meaning | unit |
//! | --- | --- | --- | --- |
//! | `time_ns`, `time_us`, `time_ms`, `time_s` | timestamp, ts, arrival, … with or without a unit | arrival, fractions allowed | as named, else guessed |
//! | `op` | rw, rwbs, type, opcode, … | read, write, trim, flush or their first letters; discard or `d` is trim; RWBS letters as in blkparse's text; SCSI opcodes; 0 and 1 | |
//! | `offset` | lba, sector, lbn, blkno, block: 512 B; page: 4 KiB; address, position | where it begins; may be empty for a flush | bytes |
//! | `length` | bytes; sectors, blocks: 512 B; pages: 4 KiB; size, count | may be empty for a flush | bytes |
//! | `flags` | | letters: `F` force unit access, `S` synchronous, `M` metadata; empty or `-` is none | |
//! | `volume` | device, dev, disk, lun, asu, vm, minor, … | any word; behind a column host, hostname, server or major it is `host.volume` | |
//! | `stream` | stream_id, placement_id | host stream or placement id | |
//! | `pc` | context | program context, decimal or `0x` hexadecimal | |
//! | `pid` | process_id | process id | |
//! | `label` | file_type, kind, category; or else process, proc, comm, app, task | any words | |
//! | `content` | | ids of the request's 4 KiB units, hexadecimal, between `+` or `;` | |
//! | | hash, md5, sha1, digest, fingerprint | a digest of the request, or one of each 4 KiB or 512 B, one after the other or between `+` or `;` | |
//!
//! Units may stand behind any name of a time, an address or a size: `time_us`, `Time (us)`, `address_4k`, `size_kb`.
//! SCSI opcodes are hexadecimal, with or without `0x`; but decimal where the rows have 40, 42, 136, 138 and the like and nothing that
//! only hexadecimal has, such as 28, 2a or `0x`. A fraction of a unit counts where it makes whole bytes (`32.5` KiB are
//! 33280 B); any other makes a bad line.
//!
//! What names leave open is guessed from up to 5000 rows and can be set: the unit of times from dates and rates, the units
//! of addresses and sizes from what is a multiple of 512, codes of 0 and 1. A file without a header is read when `columns`
//! names its columns in these words, `-` passing one over.
//!
//! A content id is the first 8 bytes of a digest; one digest of a request of several 4 KiB gives each its own id. A flush
//! that RWBS letters put before data is a request of its own. A field in double quotes may hold separators, but no line end.
//! A trim of 4 GiB or more is read as parts of 2 GiB.
//!
//! # What is dropped
//! Columns of other names, such as latencies; requests of no bytes; rows with an empty operation or `N`; the first of two
//! names for one optional column counts.

use ftlab_core::{Batch, Error, OpKind, Result, flags};

use super::block_events::{Rwbs, rwbs};
use super::csv_header::{Column, Names as Header};
use super::csv_layout::Layout;
use super::fields::{Fields, split};
use super::names::Names;
use super::{Claim, Reader, Sample, Strength, digest, scsi};
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
    codes: Option<Codes>,
    decimal_opcodes: bool,
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
    label: &'a [u8],
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
            codes: settings.codes,
            decimal_opcodes: layout.decimal_opcodes,
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
            self.labels.id(extras.label)
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
        let (mut time_ns, mut op, mut offset, mut length) = (None, None, None, None);
        let (mut flag_bits, mut host, mut volume) = (0, &b""[..], &b""[..]);
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
                Column::Length if field.is_empty() => {}
                Column::Length => {
                    let bytes = row.bytes(field, self.size_unit)?;
                    length = Some(bytes.ok_or_else(|| row.defect("a size below 2^64 bytes"))?);
                }
                Column::Flags => {
                    flag_bits = flag_letters(field).ok_or_else(|| row.defect("flags among F, S and M"))?;
                }
                Column::Host => host = field,
                Column::Volume => volume = field,
                Column::Stream => {
                    let stream = u16::try_from(number_or_0(&row, field)?);
                    extras.stream = stream.map_err(|_| row.defect("a stream number below 65536"))?;
                }
                Column::Pc => extras.pc = number_or_0(&row, field)?,
                Column::Pid => {
                    let pid = u32::try_from(number_or_0(&row, field)?);
                    extras.pid = pid.map_err(|_| row.defect("a process id"))?;
                }
                Column::Label | Column::Process => extras.label = field,
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
        let volume = self.volume(host, volume, to.volumes)?;
        let batch = &mut *to.batch;
        let ids = batch.content.len();
        if !push_ids(&extras, length, &mut batch.content) {
            batch.content.truncate(ids);
            return Err(Defect::whole("content ids in hexadecimal"));
        }
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
        left_out(&[("no operation", self.no_operation), (EMPTY, self.empty)])
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

/// Reads one letter; other words are rarer.
#[inline]
fn operation(field: &[u8], codes: Option<Codes>, decimal_opcodes: bool) -> Option<Rwbs> {
    let plain = |op| Rwbs {
        op,
        flush_before: false,
        flags: 0,
    };
    match field {
        b"R" | b"r" | b"read" => Some(plain(Some(OpKind::Read))),
        b"W" | b"w" | b"write" => Some(plain(Some(OpKind::Write))),
        b"0" | b"1" => codes?.operation(u64::from(field[0] - b'0')).map(|op| plain(Some(op))),
        b"T" | b"t" => Some(plain(Some(OpKind::Trim))),
        b"" => Some(plain(None)),
        _ if decimal_opcodes && field[0].is_ascii_digit() => Some(plain(Some(scsi::decimal(field)?))),
        _ => operation_word(field, codes, plain),
    }
}

fn operation_word(field: &[u8], codes: Option<Codes>, plain: impl Fn(Option<OpKind>) -> Rwbs) -> Option<Rwbs> {
    if let Some(rwbs) = rwbs(field) {
        return Some(rwbs);
    }
    let mut word = [0; 16];
    let word = word.get_mut(..field.len())?;
    word.copy_from_slice(field);
    word.make_ascii_lowercase();
    let op = match &*word {
        b"read" | b"rd" | b"28" | b"0x28" | b"88" | b"0x88" | b"a8" | b"0xa8" => OpKind::Read,
        b"write" | b"wr" | b"2a" | b"0x2a" | b"8a" | b"0x8a" | b"aa" | b"0xaa" => OpKind::Write,
        b"trim" | b"discard" | b"unmap" | b"deallocate" | b"42" | b"0x42" => OpKind::Trim,
        b"flush" | b"sync" | b"fsync" | b"35" | b"0x35" | b"91" | b"0x91" => OpKind::Flush,
        b"none" | b"nan" => return Some(plain(None)),
        b"true" => codes?.operation(1)?,
        b"false" => codes?.operation(0)?,
        word => {
            // RWBS letters in lower case.
            let mut upper = [0; 16];
            let upper = upper.get_mut(..word.len())?;
            upper.copy_from_slice(word);
            upper.make_ascii_uppercase();
            return rwbs(upper);
        }
    };
    Some(plain(Some(op)))
}

#[inline]
fn flag_letters(field: &[u8]) -> Option<u8> {
    field.iter().try_fold(0, |bits, letter| match letter {
        b'F' | b'f' => Some(bits | flags::FUA),
        b'S' | b's' => Some(bits | flags::SYNC),
        b'M' | b'm' => Some(bits | flags::METADATA),
        b'-' => Some(bits),
        _ => None,
    })
}

/// Appends the content ids of a row; false when they are none.
#[inline]
fn push_ids(extras: &Extras<'_>, length: u64, to: &mut Vec<u64>) -> bool {
    let each = |text: &[u8], to: &mut Vec<u64>| {
        text.split(|&b| matches!(b, b'+' | b';'))
            .all(|id| digest::id(id.trim_ascii()).map(|id| to.push(id)).is_some())
    };
    let is_none = |text: &[u8]| matches!(text, b"" | b"-");
    match (extras.content, extras.digests) {
        (content, _) if !is_none(content) => each(content, to),
        (_, digests) if is_none(digests) || length > u64::from(u32::MAX) => true,
        (_, digests) if digests.iter().any(|&b| matches!(b, b'+' | b';')) => each(digests, to),
        (_, digests) => {
            let (units, sectors) = (length.div_ceil(4096) as usize, length.div_ceil(512) as usize);
            digest::ids(digests, units, sectors, to)
        }
    }
}

pub const SETTINGS: &[Setting] = &[
    Setting::TimeUnit,
    Setting::Codes,
    Setting::AddressUnit,
    Setting::SizeUnit,
    Setting::Columns,
];

pub fn sample() -> Vec<u8> {
    b"op,time_us,length,offset,flags,volume,stream,pc,pid,process,content,comment\n\
      write,1.5,4096,8192,SM,a,3,0xff,77,\"b, c\",1f+2,x\n\
      T,2,5000000000,0,,b,,,,,,\n\
      flush,3,,,-,a,0,12,1,d,,x\n\
      1,3,512,1024,,a,0,12,1,d,,x\n"
        .to_vec()
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
        // Half a header is taken too, so that the error says what is missing.
        Err(problem) => is_half_a_header(sample).then(|| Claim::new(Strength::Fits, problem)),
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
    let parser = Csv::new(&layout, &settings.or(&layout.guess));
    if layout.header {
        input.consume((end + 1).min(input.bytes().len()));
        lines += 1;
    }
    Ok(Box::new(TextReader::after_lines(parser, input, lines)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read, read_all};
    use super::*;

    fn open_with(text: &str, columns: Option<&str>) -> Result<Box<dyn Reader>> {
        let settings = Settings {
            columns: columns.map(str::to_owned),
            ..Settings::default()
        };
        open(Input::from_bytes("t.csv", text.as_bytes().to_vec()).unwrap(), &settings)
    }

    #[test]
    fn four_lines_with_every_column() {
        let (format, batch) = read(
            b"op,\"time_us\",length,offset,flags,volume,stream,pc,pid,label,content,comment\n\
              write,1.5,8192,8192,SM,a,3,0xff,77,\"b, c\",1f+2,hello there\n\
              T,2,1048576,0,,b,,,,,,\n\
              flush,3,,,-,a,0,12,1,d,-,x\n\
              1,4,512,512,,a,0,12,1,d,,x\n",
        );
        assert_eq!(format, "csv");
        assert_eq!(batch.time_ns, [1500, 2000, 3000, 4000]);
        assert_eq!(batch.op, [OpKind::Write, OpKind::Trim, OpKind::Flush, OpKind::Read]);
        assert_eq!(batch.offset, [8192, 0, 0, 512]);
        assert_eq!(batch.length, [8192, 1 << 20, 0, 512]);
        assert_eq!(batch.flags, [flags::SYNC | flags::METADATA, 0, 0, 0]);
        assert_eq!((batch.volume, batch.stream), (vec![0, 1, 0, 0], vec![3, 0, 0, 0]));
        assert_eq!((batch.pc, batch.pid), (vec![255, 0, 12, 12], vec![77, 0, 1, 1]));
        assert_eq!((batch.label, batch.content), (vec![0, 1, 2, 2], vec![0x1f, 2]));
        assert_eq!(batch.content_end, [2, 2, 2, 2]);
    }

    #[test]
    fn fractions_of_a_unit_count_and_those_of_a_byte_are_bad() {
        let (format, batch) = read(b"time_us,op,offset_kib,size_kib\n1,W,0.5,32.5\n2,W,4,4.0\n3,W,1e1,4\n");
        assert_eq!(format, "csv");
        assert_eq!(
            (batch.offset, batch.length),
            (vec![512, 4096, 10_240], vec![33_280, 4096, 4096])
        );
        let mut reader = open_with(
            "time_us,op,offset,size\n1,W,0,512\n2,W,0.5,512\n3,W,0,512.25\n4,W,0,8\n",
            None,
        )
        .unwrap();
        assert_eq!(read_all(reader.as_mut()).unwrap().time_ns, [1000, 4000]);
        assert_eq!(reader.progress().skipped.len(), 2);
    }

    #[test]
    fn opcodes_are_decimal_where_only_that_makes_sense() {
        use OpKind::{Flush, Read, Trim, Write};
        let ops = |codes: &[&str]| {
            let rows: String = codes.iter().map(|code| format!("1,{code},0,512\n")).collect();
            read(format!("time_us,opcode,offset,length\n{rows}").as_bytes()).1.op
        };
        assert_eq!(ops(&["42", "40", "53", "138", "66"]), [Write, Read, Flush, Write, Trim]);
        assert_eq!(ops(&["42", "42"]), [Write, Write]);
        assert_eq!(ops(&["2a", "42", "28"]), [Write, Trim, Read]);
        assert_eq!(ops(&["0x42", "42"]), [Trim, Trim]);
        let text = b"time_us,opcode,offset,length\n1,42,0,512\n";
        let reason = detect(&Sample::new(text, true)).unwrap().reason;
        assert!(reason.contains("SCSI opcodes in decimal"), "{reason}");
    }

    #[test]
    fn labels_are_the_process_unless_there_is_a_label() {
        let text = "time_ns,op,offset,length,process,label\n0,R,0,1,java,\"db, wal\"\n";
        let mut reader = open_with(text, None).unwrap();
        assert_eq!(read_all(reader.as_mut()).unwrap().label, [0]);
        assert_eq!(reader.labels(), ["db, wal"]);
        let mut reader = open_with(&text.replace("label", "other"), None).unwrap();
        read_all(reader.as_mut()).unwrap();
        assert_eq!(reader.labels(), ["java"]);
    }

    #[test]
    fn tables_of_other_people() {
        // RWBS letters, sectors, names with blanks.
        let (format, batch) = read(
            b"time_s,pid,process,rwbs,sector,sectors\n0.000000000,12565,DataXceiver for,RM,732579889,1\n\
              2.370937968,36841,,FWS,271389368,88\n3.0,1,x,N,0,0\n3.5,1,x,W,0,0\n",
        );
        assert_eq!(format, "csv");
        assert_eq!(batch.op, [OpKind::Read, OpKind::Flush, OpKind::Write]);
        assert_eq!(batch.length, [512, 0, 88 * 512]);
        assert_eq!((batch.pid, batch.label), (vec![12565, 36841, 36841], vec![0, 1, 1]));
        // Tabs, upper case, host and disk.
        let (_, batch) =
            read(b"Host\tDisk\tTime (ms)\tType\tLBA\tCount\na\t0\t1.5\tRead\t8\t3\nb\t0\t2\tWRITE\t9\t8\n");
        assert_eq!((batch.time_ns, batch.volume), (vec![1_500_000, 2_000_000], vec![0, 1]));
        assert_eq!((batch.offset, batch.length), (vec![4096, 4608], vec![1536, 4096]));
        // Semicolons, SCSI opcodes, a digest for two pages.
        let (_, batch) = read(
            b"ts_us;opcode;lba;bytes;md5\n1;0x2A;8;8192;8686b0d3553eb6f980fbbe2c927be5e9\n\
              2;28;8;8192;8686b0d3553eb6f980fbbe2c927be5e945ae785d59f0609ed7b1becba0685afd\n",
        );
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read]);
        assert_eq!(batch.content_end, [2, 4]);
        assert_eq!(batch.content[2..], [0x8686_b0d3_553e_b6f9, 0x45ae_785d_59f0_609e]);
        assert_ne!(batch.content[0], batch.content[1]);
        // Blanks.
        let (_, batch) = read(b"time_ns op  offset length\n1   read 0 512\n 2 w 512 512\n");
        assert_eq!((batch.time_ns, batch.offset), (vec![1, 2], vec![0, 512]));
    }

    #[test]
    fn columns_may_be_named_by_a_setting() {
        let columns = "time_us,-,op,lba,sectors";
        for text in [
            "1,x,r,8,1\n2,x,w,9,2\n",
            "when,x,what,where,much\n1,x,r,8,1\n2,x,w,9,2\n",
        ] {
            let batch = read_all(open_with(text, Some(columns)).unwrap().as_mut()).unwrap();
            assert_eq!(
                (batch.time_ns, batch.length),
                (vec![1000, 2000], vec![512, 1024]),
                "{text}"
            );
        }
        let sample = Sample {
            columns: Some(columns),
            ..Sample::new(b"1,x,r,8,1\n", true)
        };
        assert_eq!(detect(&sample).unwrap().strength, Strength::Sure);
    }

    #[test]
    fn a_trim_of_a_whole_drive_is_split() {
        let (_, batch) = read(b"# made by hand\ntime_ns,op,offset,length\n0,trim,4096,5000000000\n");
        assert_eq!(batch.length.iter().map(|&l| u64::from(l)).sum::<u64>(), 5_000_000_000);
        assert_eq!(batch.offset, [4096, 4096 + (1 << 31), 4096 + (1 << 32)]);
    }

    #[test]
    fn a_header_without_a_needed_column_is_named() {
        let error = open_with("time_ns,op,offset\n1,read,0\n", None)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with("t.csv, line 1: `time_ns,op,offset`: no column is named for the size"),
            "{error}"
        );
        let sample = Sample::new(b"time_ns,op,offset\n1,read,0\n", true);
        assert_eq!(detect(&sample).unwrap().strength, Strength::Fits);
        assert!(detect(&Sample::new(b"once upon a time\n", true)).is_none());
    }

    #[test]
    fn comments_before_the_header_do_not_fill_the_memory() {
        let text = "# a comment\n".repeat(1000) + "time_ns,op,offset,length\n" + &"1,r,0,512\n".repeat(1 << 20);
        let mut reader = open_with(&text, None).unwrap();
        let buffered = reader.input().bytes().len();
        assert!(buffered < 3 << 20, "{buffered} bytes");
        assert_eq!(read_all(reader.as_mut()).unwrap().len(), 1 << 20);
    }

    #[test]
    fn odd_lines_are_bad_lines_and_leave_no_trace() {
        let good = "1,r,0,512,a,7\n";
        for bad in [
            "1,r,0\n",
            "-1,r,0,512,a,7\n",
            "1,q,0,512,a,7\n",
            "1,r,-8,512,a,7\n",
            "1,r,0,4294967296,a,7\n",
            "1,r,0,512,a,x\n",
            "1,r,0,512,a,7+\n",
            "1,r,99999999999999999999,512,a,7\n",
            "1,r,0,51\x002,a,7\n",
        ] {
            let text = format!("time_ns,op,offset,length,volume,content\n{good}{bad}{good}");
            let mut reader = open_with(&text, None).unwrap();
            let batch = read_all(reader.as_mut()).unwrap();
            assert_eq!((batch.len(), batch.content_end), (2, vec![1, 2]), "{bad}");
            assert_eq!(reader.progress().skipped.len(), 1, "{bad}");
        }
    }
}
