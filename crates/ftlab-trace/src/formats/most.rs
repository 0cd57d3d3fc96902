//! MOST's event lists: block-layer events with the type of the file behind each.
//!
//! # Origin
//! ESOS-Lab/MOST (Mobile Storage Analyzer), the `.po` files that its viewer shows; events of blktrace on Android.
//!
//! # Columns
//! Between tabs, padded with blanks:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | since the start of the trace | s |
//! | 2 action | the event: `Q` queued, `D` issued to the driver, `C` completed, and others | |
//! | 3 RWBS | operation and flags, as in blkparse's text | |
//! | 4 sector | first sector | 512 B |
//! | 5 sectors | length | 512 B |
//! | 6 pid | process id | |
//! | 7 process | | |
//! | 8 type | `M` metadata, `J` journal, `D` data of a file | |
//! | 9 path | of the file, in lines of type `D` | |
//!
//! The label is the type of file: `metadata`, `journal`, the ending of the path with its dot (`.db-journal`), or `data`
//! where there is none. Type `M` sets the METADATA flag, as the letter in RWBS does. One event is taken as the request,
//! chosen as for `blkparse`; `event` sets it.
//!
//! # What is dropped
//! Other events, the process's name, the path up to its ending, requests without data that are no flush.

use ftlab_core::{Result, flags};

use super::block_events::{self, Events, Flushes, rwbs};
use super::fields::{Fields, split};
use super::names::Names;
use super::text_format::TextFormat;
use super::{Claim, Sample, Strength};
use crate::health::{Defect, Parsed, left_out};
use crate::lines::{LineParser, Requests};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};

pub struct Most {
    event: u8,
    labels: Names,
    others: Events,
    empty: u64,
}

impl TextFormat for Most {
    const SETTINGS: &[Setting] = &[Setting::Event];
    const DEFAULTS: Settings = Settings::NONE.with_event('Q');
    const REASON: &str = "time, action, RWBS, sectors, process and file type between tabs: MOST";
    const SAMPLE: &[u8] = b"    0.000111615\tQ\tWS\t23004888\t   8\t4767\t     IntentService[]\tM\n\
          \x20   0.000204740\tG\tWS\t23004888\t   8\t4767\t     IntentService[]\tM\n\
          \x20   0.004000000\tQ\tWBS\t 4079792\t 104\t 137\t     jbd2/mmcblk0p28\tJ\n\
          \x20   7.152101611\tC\tWA\t 4800240\t  24\t 135\t         flush-179:0\tD\t/data/cache/data_1\n\
          \x20   7.252101611\tQ\tW\t 4800240\t  24\t 135\t         flush-179:0\tD\t/data/rmq.db-journal\n";

    fn new(settings: &Settings) -> Result<Self> {
        Ok(Most {
            event: block_events::event(settings)?,
            labels: Names::default(),
            others: Events::default(),
            empty: 0,
        })
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut events = Events::default();
        for line in sample.bytes.split(|&b| b == b'\n') {
            let mut fields = Fields::new(line, b'\t');
            if let (Some(_), Some(action)) = (fields.next(), fields.next()) {
                events.count(action);
            }
        }
        let (event, why) = events.choose();
        let guess = Settings::NONE.with_event(event);
        // With the event chosen at least one line is read as a whole.
        if events.of(event) == 0 || !Sample::fits(&sample.lines, &mut Most::new(&guess).ok()?) {
            return None;
        }
        let mut flushes = Flushes::default();
        for line in sample.bytes.split(|&b| b == b'\n') {
            if let [_, action, letters, _, sectors, ..] = split(line, b'\t')[..]
                && action == [event as u8]
                && let Some(rwbs) = rwbs(letters)
            {
                flushes.count(rwbs, sectors != b"0");
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
            guess,
        })
    }
}

impl LineParser for Most {
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut fields = Fields::new(line, b'\t');
        let missing = Defect::whole("time, action, RWBS, sector, sectors, pid, process and type between tabs");
        let stamp = fields.next().ok_or(missing)?;
        let time_ns = fields.time(stamp, TimeUnit::Seconds)?;
        let action = fields.next().ok_or(missing)?;
        if action != [self.event] {
            return self
                .others
                .left_out_line(action, || fields.defect(block_events::AN_ACTION));
        }
        let letters = fields.next().ok_or(missing)?;
        let mut rwbs = rwbs(letters).ok_or_else(|| fields.defect(block_events::LETTERS))?;
        let sector = fields.next().ok_or(missing)?;
        let offset = fields.sectors(sector, "a sector below 2^51")?;
        let sectors = fields.next().ok_or(missing)?;
        let few = "a count below 2^23 sectors";
        let length = u32::try_from(fields.sectors(sectors, few)?).map_err(|_| fields.defect(few))?;
        let pid = fields.next().ok_or(missing)?;
        let pid = u32::try_from(fields.number(pid)?).map_err(|_| fields.defect("a process id"))?;
        fields.next().ok_or(missing)?;
        let kind = fields.next().ok_or(missing)?;
        let label: &[u8] = match kind {
            b"M" => b"metadata",
            b"J" => b"journal",
            b"D" => ending(fields.rest()),
            _ => return Err(fields.defect("the type M, J or D")),
        };
        if kind == b"M" {
            rwbs.flags |= flags::METADATA;
        }
        let requests = rwbs.push(to.batch, time_ns, offset, length, to.volumes.id(b"0")?);
        self.empty += u64::from(requests == 0);
        if requests > 0 {
            let label = self.labels.id(label);
            for _ in 0..requests {
                to.batch.pid.push(pid);
                to.batch.label.push(label);
            }
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        let mut all = self.others.left_out();
        all.extend(left_out(&[("no data and no flush", self.empty)]));
        all
    }

    fn labels(&self) -> &[String] {
        self.labels.all()
    }
}

/// The ending of a path's last part, with its dot, or `data`.
fn ending(path: &[u8]) -> &[u8] {
    let path = path.trim_ascii();
    let file = path.iter().rposition(|&b| b == b'/').map_or(path, |at| &path[at + 1..]);
    match file.iter().rposition(|&b| b == b'.') {
        // A name that only begins with a dot is hidden, and one that ends with it has no ending.
        Some(at) if at > 0 && at + 1 < file.len() => &file[at..],
        _ => b"data",
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::OpKind;

    use super::super::testing::{bad_lines, read, read_as};
    use super::*;

    #[test]
    fn queued_requests_with_file_types() {
        let (format, batch) = read(Most::SAMPLE);
        assert_eq!(format, "most");
        // The barrier is a flush and a durable write.
        assert_eq!(batch.op, [OpKind::Write, OpKind::Flush, OpKind::Write, OpKind::Write]);
        assert_eq!(batch.time_ns, [111_615, 4_000_000, 4_000_000, 7_252_101_611]);
        assert_eq!(batch.offset, [23_004_888 * 512, 0, 4_079_792 * 512, 4_800_240 * 512]);
        assert_eq!(batch.length, [4096, 0, 104 * 512, 24 * 512]);
        let journal = flags::SYNC | flags::FUA;
        assert_eq!(batch.flags, [flags::SYNC | flags::METADATA, flags::SYNC, journal, 0]);
        assert_eq!((batch.pid, batch.label), (vec![4767, 137, 137, 135], vec![0, 1, 1, 2]));
    }

    #[test]
    fn labels_are_the_types_of_files() {
        let (reader, _) = read_as::<Most>(Most::SAMPLE, &Settings::NONE).unwrap();
        assert_eq!(reader.labels(), ["metadata", "journal", ".db-journal"]);
        let counts: Vec<u64> = reader.progress().left_out.iter().map(|s| s.count).collect();
        assert_eq!(counts, [1, 1]);
        for (path, wanted) in [
            ("/a.b/c", "data"),
            ("/.x", "data"),
            ("/a/x.xml ", ".xml"),
            ("", "data"),
            ("a.", "data"),
        ] {
            assert_eq!(ending(path.as_bytes()), wanted.as_bytes(), "{path}");
        }
    }

    #[test]
    fn odd_lines_are_bad_lines() {
        let good = "0.1\tQ\tWS\t8\t8\t1\tx\tM";
        let bad = [
            "0.1\tQ\tWS\t8\t8\t1\tx",
            "0.1\tQ\tWS\t8\t8\t1\tx\tZ",
            "-0.1\tQ\tWS\t8\t8\t1\tx\tM",
            "0.1\tQ\tWS\t8\t8388608\t1\tx\tM",
            "0.1\tQ\tWS\t99999999999999999999\t8\t1\tx\tM",
            "0.1\tQ\tQS\t8\t8\t1\tx\tM",
            "0.1\tZ\tWS\t8\t8\t1\tx\tM",
            "0.1\tQ\tWS\t8\0\t8\t1\tx\tM",
        ];
        bad_lines::<Most>(good, &bad);
    }
}
