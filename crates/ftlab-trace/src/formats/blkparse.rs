//! blkparse's text, in its default format.
//!
//! # Origin
//! `blkparse` of the blktrace tools prints Linux block-layer events, one line each (its manual page; sdsc/blktrace,
//! `blkparse_fmt.c`).
//!
//! # Columns
//! Between blanks:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 device | major,minor: the volume, shown as `8.16` | |
//! | 2 cpu, 3 sequence | skipped | |
//! | 4 time | since the start of the trace | s, nine decimals |
//! | 5 pid | process id | |
//! | 6 action | the event: `Q` queued, `D` issued to the driver, `C` completed, and others | |
//! | 7 RWBS | operation and flags, see below | |
//! | 8 sector | first sector | 512 B |
//! | 9 `+`, 10 count | length; both are missing in a request without data; the `+` is missing in output of `-f` with `%S %n` | 512 B |
//! | rest | `[process]`, the label; the error code in a C line; a time in parentheses before it is skipped | |
//!
//! RWBS: an optional `F` in front (flush before), then `R` read, `W` write, `D` discard, `F` flush or `N` no data, then any
//! of `F` force unit access, `S` synchronous, `M` metadata, `A` ahead, `B` barrier (flush before, and durable). A flush
//! before data becomes a request of its own at the same time.
//!
//! One event is taken as the request; `event` selects it. The default is D, which is what the device received. It is Q
//! if the beginning of the file has fewer than half as many D as Q, because then most requests were merged by the
//! traced machine's scheduler. It is C if there is neither. A Q of a stacked device (`A` lines) is also one of the
//! lower device: the volumes distinguish them.
//!
//! # What is dropped
//! Other events, messages, plugging; the summary at the end; packet commands and requests without data that are no
//! flush; completion errors. A requeued request was issued twice, and is read twice from D events. C lines name no
//! process. Output with other columns (`-f`, `-F`) is refused; it is read as CSV when `columns` names them
//! (`device,-,-,time_s,pid,event,rwbs,sector,sectors`).

use ftlab_core::Result;

use super::block_events::{self, Events, Flushes, rwbs};
use super::names::Names;
use super::text_format::TextFormat;
use super::{Claim, Sample, Strength};
use crate::columns::Columns;
use crate::health::{Defect, Parsed, left_out};
use crate::lines::{LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};

/// How lines of the summary begin, blanks in front left out.
const SUMMARY: [&[u8]; 14] = [
    b"CPU",
    b"Total",
    b"Reads ",
    b"Read ",
    b"Writes ",
    b"Write ",
    b"IO unplugs",
    b"Throughput",
    b"Events",
    b"Skips",
    b"Input file",
    b"Device:",
    b"Allocation wait",
    b"Dispatch wait",
];

pub struct Blkparse {
    /// The event that stands for a request.
    event: u8,
    labels: Names,
    others: Events,
    summary: u64,
    empty: u64,
}

impl Blkparse {
    /// A line that does not begin with a device: one of the summary, or damage.
    #[cold]
    fn not_an_event(&mut self, line: &[u8]) -> Parsed {
        let line = line.trim_ascii_start();
        if !SUMMARY.iter().any(|start| line.starts_with(start)) {
            return Err(Defect {
                at: 1,
                expected: "a device as major,minor (of blkparse's output only the default format is read)",
            });
        }
        self.summary += 1;
        Ok(())
    }
}

/// The columns up to the action, where the line begins as an event does: the device, and the action.
#[inline]
fn event<'a>(columns: &mut Columns<'a, b' '>) -> Parsed<(&'a [u8], u64, u64, &'a [u8])> {
    let device = columns.key()?;
    columns.key()?;
    columns.key()?;
    let time_ns = columns.time(TimeUnit::Seconds)?;
    let pid = columns.number()?;
    Ok((device, time_ns, pid, columns.key()?))
}

#[inline]
fn begins_with_device(line: &[u8]) -> bool {
    let from = line
        .iter()
        .position(|b| !matches!(b, b' ' | b'\t'))
        .unwrap_or(line.len());
    let digits = |from: usize| line[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let comma = from + digits(from);
    if comma == from || line.get(comma) != Some(&b',') {
        return false;
    }
    let end = comma + 1 + digits(comma + 1);
    end > comma + 1 && matches!(line.get(end), Some(b' ' | b'\t'))
}

impl TextFormat for Blkparse {
    const SETTINGS: &[Setting] = &[Setting::Event];
    const DEFAULTS: Settings = Settings::NONE.with_event('D');
    const REASON: &str = "lines of a device as major,minor, cpu, sequence, time, pid, action: blkparse";
    const SAMPLE: &[u8] = b"  8,16   5        1     0.000000000 18615  A   R 1444645666 + 256 <- (8,17) 1444645632\n\
          \x20 8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]\n\
          \x20 8,16   5        4     0.000008750 18615  P   N [java]\n\
          \x20 8,16   5        7     0.000046560 18615  U   N [java] 1\n\
          \x20 8,16   5        8     0.000047000 18615  D   R 1444645666 + 256 [java]\n\
          \x20 8,16   2        1     0.001000000   301  D FWS [jbd2/sda1-8]\n\
          \x20 8,0    2        0     0.001500000     0  m   N cfq18615S / insert_request\n\
          \x20 8,0    2        2     0.002000000   301  D WFSM 2056 + 8 [Intent[]]\n\
          \x20 8,0    2        3     0.002100000     0  C  WS 507928 [0]\n\
          CPU5 (8,16):\n\x20Reads Queued:           1,      128KiB\t Writes Queued:           0,        0KiB\n";

    fn new(settings: &Settings) -> Result<Self> {
        Ok(Blkparse {
            event: block_events::event(settings)?,
            labels: Names::default(),
            others: Events::default(),
            summary: 0,
            empty: 0,
        })
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut parser = Blkparse::new(&Self::DEFAULTS).ok()?;
        if !Sample::fits(&sample.lines, &mut parser) && !Sample::fits_but_one(&sample.lines, &mut parser) {
            return None;
        }
        let lines = || {
            let lines = sample.bytes.split(|&b| b == b'\n');
            lines.filter(|line| begins_with_device(line))
        };
        let mut events = Events::default();
        let mut met = 0;
        for line in lines() {
            if let Ok((.., action)) = event(&mut Columns::new(line)) {
                met += u64::from(events.count(action));
            }
        }
        if met == 0 {
            return None;
        }
        let (chosen, why) = events.choose();
        let mut flushes = Flushes::default();
        for line in lines() {
            let mut columns = Columns::new(line);
            if let Ok((.., action)) = event(&mut columns)
                && action == [chosen as u8]
                && let Some(rwbs) = columns.key().ok().and_then(rwbs)
            {
                flushes.count(rwbs, data(line, &mut columns).is_ok_and(|(_, length)| length > 0));
            }
        }
        Some(Claim {
            strength: Strength::Likely,
            reason: format!(
                "{}{}{}",
                Self::REASON,
                block_events::clause(sample, &why),
                flushes.clause()
            ),
            guess: Settings::NONE.with_event(chosen),
        })
    }
}

impl LineParser for Blkparse {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        if !begins_with_device(line) {
            return self.not_an_event(line);
        }
        let mut columns = Columns::<b' '>::new(line);
        let (device, time_ns, pid, action) = event(&mut columns)?;
        if action != [self.event] {
            return self
                .others
                .left_out_line(action, || columns.defect(block_events::AN_ACTION));
        }
        let pid = u32::try_from(pid).map_err(|_| columns.defect("a process id"))?;
        let rwbs = rwbs(columns.key()?).ok_or_else(|| columns.defect(block_events::LETTERS))?;
        let (offset, length) = data(line, &mut columns)?;
        let rest = &line[columns.position()..];
        let volume = to.volumes.id(device)?;
        let requests = rwbs.push(to.batch, time_ns, offset, length, volume);
        if requests == 0 {
            self.empty += 1;
            return Ok(());
        }
        let label = (self.event != b'C').then(|| self.labels.id(in_brackets(rest)));
        for _ in 0..requests {
            to.batch.pid.push(pid);
            to.batch.label.extend(label);
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        let mut all = self.others.left_out();
        all.extend(left_out(&[
            ("no data and no flush, or a packet command", self.empty),
            ("a line of blkparse's summary", self.summary),
        ]));
        all
    }

    fn labels(&self) -> &[String] {
        self.labels.all()
    }
}

/// The first byte and the length; both 0 in a request without data, which has no sector or a lone one.
#[inline]
fn data(line: &[u8], columns: &mut Columns<'_, b' '>) -> Parsed<(u64, u32)> {
    match line.get(columns.position()) {
        Some(b'0'..=b'9') => {}
        Some(b'[' | b'(') | None => return Ok((0, 0)),
        Some(_) => return columns.number().map(|_| (0, 0)),
    }
    let offset = columns.address(512, "a sector below 2^51")?;
    match line.get(columns.position()) {
        Some(b'+') => columns.skip(),
        // `-f` with `%S %n`.
        Some(b'0'..=b'9') => {}
        _ => return Ok((0, 0)),
    }
    Ok((offset, columns.length(512, "a count below 2^23 sectors")?))
}

/// The process: what is between the first `[` and the last `]`, which may be part of the name.
#[inline]
fn in_brackets(rest: &[u8]) -> &[u8] {
    let rest = rest.trim_ascii_end();
    let Some(rest) = rest.strip_suffix(b"]") else {
        return b"";
    };
    let from = match rest.first() {
        Some(b'[') => 0,
        _ => rest.iter().position(|&b| b == b'[').unwrap_or(rest.len()),
    };
    rest.get(from + 1..).unwrap_or(b"")
}

#[cfg(test)]
mod tests {
    use ftlab_core::{Batch, OpKind, flags};

    use super::super::testing::{bad_lines, read, read_as};
    use super::*;

    fn read_events(text: &[u8], event: char) -> (Batch, Vec<String>, Vec<Skipped>) {
        let (reader, batch) = read_as::<Blkparse>(text, &Settings::NONE.with_event(event)).unwrap();
        (batch, reader.labels().to_vec(), reader.progress().left_out)
    }

    #[test]
    fn issued_requests_with_their_flags_and_processes() {
        let (batch, labels, left_out) = read_events(Blkparse::SAMPLE, 'D');
        assert_eq!(batch.time_ns, [47_000, 1_000_000, 2_000_000]);
        assert_eq!(batch.op, [OpKind::Read, OpKind::Flush, OpKind::Write]);
        assert_eq!(batch.offset, [1_444_645_666 * 512, 0, 2056 * 512]);
        assert_eq!(batch.length, [131_072, 0, 4096]);
        assert_eq!(batch.volume, [0, 0, 1]);
        assert_eq!(
            batch.flags,
            [0, flags::SYNC, flags::FUA | flags::SYNC | flags::METADATA]
        );
        assert_eq!((batch.pid, batch.label), (vec![18615, 301, 301], vec![0, 1, 2]));
        assert_eq!(labels, ["java", "jbd2/sda1-8", "Intent[]"]);
        let counts: Vec<(&str, u64)> = left_out.iter().map(|s| (&s.reason[..7], s.count)).collect();
        let events = ["event Q", "event C", "event A", "event P", "event U", "event m"];
        assert_eq!(counts[..6], events.map(|e| (e, 1)));
        assert_eq!(counts[6..], [("a line ", 2)]);
    }

    #[test]
    fn completions_have_an_error_code_and_no_name() {
        let text = b"  8,16 3 7 0.000011950 0 C R 4938888 + 256 [0]\n\
                       8,16 3 8 0.000012000 0 C WSM 8192 [0]\n\
                       8,16 3 9 0.000013000 0 C  FN 0 [0]\n\
                       8,16 3 9 0.000014000 0 C  R 36 (12 00 00 24) [0]\n\
                       8,16 3 9 0.000015000 0 C  W 16 + 8 (     471) [-5]\n";
        let (batch, labels, left_out) = read_events(text, 'C');
        assert_eq!(batch.op, [OpKind::Read, OpKind::Flush, OpKind::Write]);
        assert_eq!((batch.label.len(), labels.len()), (0, 0));
        assert_eq!(batch.pid, [0, 0, 0]);
        assert_eq!(left_out[0].count, 2);
    }

    #[test]
    fn a_flush_before_data_is_read_as_two_requests() {
        let (batch, labels, _) = read_events(
            b"8,0 0 1 0.5 7 Q FWFSM 8 + 8 [a b]\n8,0 0 2 0.6 7 Q W 8 + 8 ( 12) [c]\n",
            'Q',
        );
        assert_eq!(batch.op, [OpKind::Flush, OpKind::Write, OpKind::Write]);
        assert_eq!(batch.time_ns, [500_000_000, 500_000_000, 600_000_000]);
        assert_eq!((batch.pid.len(), batch.label), (3, vec![0, 0, 1]));
        assert_eq!(labels, ["a b", "c"]);
    }

    #[test]
    fn the_event_follows_from_the_whole_beginning() {
        let line = |action: &str, i: u32| format!("8,0 1 {i} 0.{i:09} 5 {action} WS {} + 8 [x]\n", i * 8);
        let text = |queued, issued| {
            let queued = (0..queued).map(|i| line("Q", i));
            queued.chain((0..issued).map(|i| line("D", i))).collect::<String>()
        };
        let (format, batch) = read(text(300, 150).as_bytes());
        assert_eq!((format, batch.len()), ("blkparse", 150));
        assert_eq!(read(text(300, 149).as_bytes()).1.len(), 300);
    }

    #[test]
    fn a_short_text_with_a_bad_line_is_told_by_the_others() {
        let (good, bad) = ("8,0 1 1 0.1 5 D WS 8 + 8 [x]\n", "8,0 1 1 0.2 5 D WS oops + 8 [x]\n");
        let options = crate::ReadOptions::default();
        for text in [[good, bad, good], [bad, good, good]] {
            let mut opened = crate::open_bytes("t", text.concat().into_bytes(), &options).unwrap();
            let mut batch = Batch::default();
            ftlab_core::Source::next_batch(&mut opened, &mut batch).unwrap();
            let report = opened.report();
            assert_eq!((report.format.as_str(), batch.len()), ("blkparse", 2));
            let first = report.first_bad.unwrap();
            assert_eq!(first.text, bad.trim_end());
            assert_eq!(first.reason, "column 8: expected a whole number");
        }
        // Two lines of which one is bad tell nothing.
        assert!(crate::open_bytes("t", [good, bad].concat().into_bytes(), &options).is_err());
    }

    #[test]
    fn odd_lines_are_bad_lines() {
        let good = "8,0 1 1 0.1 5 D WS 8 + 8 [x]";
        let bad = [
            "8,0 1 1 0.1 5 D WS 8 + ",
            "8,0 1 1 -0.1 5 D WS 8 + 8 [x]",
            "8,0 1 1 0.1 99999999999 D WS 8 + 8 [x]",
            "8,0 1 1 0.1 5 D WS 99999999999999999999 + 8 [x]",
            "8,0 1 1 0.1 5 D WS 8 + 8388608 [x]",
            "8,0 1 1 0.1 5 D QS 8 + 8 [x]",
            "8,0 1 1 0.1 5 Z WS 8 + 8 [x]",
            "8,0 1 1",
            "8,0\0 1 1 0.1 5 D WS 8 + 8 [x]",
            "8:0 1 1 0.1 5 D WS 8 + 8 [x]",
        ];
        bad_lines::<Blkparse>(good, &bad);
    }

    #[test]
    fn a_count_may_stand_without_its_plus() {
        let (batch, labels, _) = read_events(b"8,0 0 1 0.5 7 D WS 8 16 [a b]\n8,0 0 2 0.6 7 D R 8 8\n", 'D');
        assert_eq!(
            (batch.length, labels),
            (vec![8192, 4096], vec!["a b".to_owned(), "unknown".to_owned()])
        );
    }

    #[test]
    fn other_output_of_blkparse_is_refused_with_a_clear_sentence() {
        let text = b"0.000001 java Q 1444645666 256\n".repeat(20);
        let error = read_as::<Blkparse>(&text, &Settings::NONE).err().unwrap().to_string();
        assert!(
            error.contains("of blkparse's output only the default format is read"),
            "{error}"
        );
    }
}
