//! Opening traces: files merged by time, the clock made to start at 0, volumes laid out, figures kept.

mod scan;

use std::path::{Path, PathBuf};

use ftlab_core::{Batch, Error, Result, Source};
use rustc_hash::FxHashMap;

use crate::files::Files;
use crate::input::is_stream;
use crate::options::{ReadOptions, Volumes};
use crate::report::{TraceReport, VolumeReport};
use crate::rows;
use crate::stats::Stats;

pub use self::scan::{Scan, scan, scan_bytes, survey};

/// In place of a base: no request of the scanned trace is of this volume.
const NO_PLACE: u64 = u64::MAX;

/// A trace being read: a [`Source`] that knows what it has seen.
///
/// Requests of a batch come in order of time, the first request of the trace at time 0. An error is final: what was
/// read before it has been delivered, and every later call repeats it.
pub struct Opened {
    paths: Vec<PathBuf>,
    options: ReadOptions,
    files: Files,
    volumes: VolumeChoice,
    stats: Stats,
    scanned: Option<ScanFacts>,
    complete: bool,
    failed: Option<Error>,
}

/// What a reading pass takes from an earlier scan.
struct ScanFacts {
    records: u64,
    footprint_4k: Option<u64>,
}

/// How this trace's volumes are treated.
enum VolumeChoice {
    /// Addresses stay as they are.
    Untouched,
    /// Only this one; its number, once it has appeared.
    Only(String, Option<u16>),
    /// Side by side, and no second volume has appeared yet: the first one lies at 0 whatever follows.
    FirstOnly,
    /// Side by side at these places, by name and (as they appear) by number.
    Bases(FxHashMap<String, u64>, Vec<u64>),
}

/// Opens one trace made of these files (merged by time if several; `-` is standard input).
///
/// A file `NAME.ftlab.toml` beside a trace completes the options: `as = "msr"`, `time_unit = "us"`, `volumes = "merge"`.
/// Where volumes have to be laid side by side, the files are scanned when a second volume appears, once.
pub fn open(paths: &[PathBuf], options: &ReadOptions) -> Result<Opened> {
    let (options, sidecar) = options.with_sidecar(paths)?;
    Opened::new(Files::open(paths, &options, sidecar.as_deref())?, paths, &options)
}

/// Like [`open`], with the result of an earlier [`scan`] of the same files with the same options.
pub fn open_scanned(paths: &[PathBuf], options: &ReadOptions, scan: &Scan) -> Result<Opened> {
    let mut opened = open(paths, options)?;
    opened.use_scan(scan);
    Ok(opened)
}

/// Opens a trace held in memory; errors call it `name`.
pub fn open_bytes(name: &str, bytes: Vec<u8>, options: &ReadOptions) -> Result<Opened> {
    Opened::new(Files::from_bytes(name, bytes, options)?, &[], options)
}

impl Opened {
    fn new(files: Files, paths: &[PathBuf], options: &ReadOptions) -> Result<Self> {
        let volumes = match &options.volumes {
            Volumes::Merge => VolumeChoice::Untouched,
            Volumes::SideBySide if files.one_address_space() => VolumeChoice::Untouched,
            Volumes::SideBySide => VolumeChoice::FirstOnly,
            Volumes::Only(name) => VolumeChoice::Only(name.clone(), None),
        };
        Ok(Opened {
            paths: paths.to_vec(),
            options: options.clone(),
            files,
            volumes,
            stats: Stats::default(),
            scanned: None,
            complete: false,
            failed: None,
        })
    }

    /// What is known so far; complete when the stream has been read to its end.
    pub fn report(&self) -> TraceReport {
        let bases = match &self.volumes {
            VolumeChoice::Bases(_, bases) => bases.as_slice(),
            _ => &[],
        };
        self.report_with(bases)
    }

    /// Share of the input read so far, 0 to 1, where its size is known.
    pub fn progress(&self) -> Option<f64> {
        self.files.progress()
    }

    /// Where request `i` of the last batch stands: file and line, in a text format.
    pub fn place(&self, i: usize) -> Option<String> {
        match self.volumes {
            // Left-out requests make the place within the batch unknown.
            VolumeChoice::Only(..) => None,
            _ => self.files.place(i),
        }
    }

    /// Whether the files say that their volumes lie in one address range already.
    pub fn one_address_space(&self) -> bool {
        self.files.one_address_space()
    }

    /// Names of the volumes seen so far, by number.
    pub fn volume_names(&self) -> &[String] {
        self.files.volumes()
    }

    /// Names of the `label` column's values, where the format carries labels.
    pub fn label_names(&self) -> &[String] {
        self.files.labels()
    }

    fn use_scan(&mut self, scan: &Scan) {
        self.scanned = Some(ScanFacts {
            records: scan.report.records,
            footprint_4k: scan.report.footprint_4k,
        });
        if let VolumeChoice::FirstOnly = self.volumes {
            let places = scan.report.volumes.iter().map(|v| (v.name.clone(), v.base)).collect();
            self.volumes = VolumeChoice::Bases(places, Vec::new());
        }
    }

    fn report_with(&self, bases: &[u64]) -> TraceReport {
        let names = self.files.volumes();
        let mut report = self.files.report();
        self.stats.enter(&mut report, bases);
        report.volumes = self
            .stats
            .volumes()
            .map(|(number, figures)| VolumeReport {
                name: names.get(number).cloned().unwrap_or_else(|| number.to_string()),
                base: bases.get(number).copied().unwrap_or(0),
                end_byte: figures.end,
                records: figures.records,
            })
            .collect();
        report.complete = self.complete;
        let stamps_differ = report.duration_ns > 0 || report.out_of_order + report.stray_times > 0;
        report.timed &= !self.complete || report.records < 2 || stamps_differ;
        report.read_share = report.read_share.filter(|_| report.has_operations);
        report.footprint_4k = self.scanned.as_ref().and_then(|s| s.footprint_4k);
        report
    }

    fn advance(&mut self, batch: &mut Batch) -> Result<()> {
        loop {
            batch.clear();
            let before = self.stats.records();
            self.files.read(batch).map_err(|error| after(error, before))?;
            if batch.is_empty() {
                self.complete = true;
                return self.check_only();
            }
            if let VolumeChoice::Only(name, number) = &mut self.volumes {
                if number.is_none() {
                    let found = self.files.volumes().iter().position(|n| n == name);
                    *number = found.and_then(|n| u16::try_from(n).ok());
                }
                let wanted = *number;
                rows::retain(batch, |batch, i| Some(batch.volume[i]) == wanted);
                if batch.is_empty() {
                    continue;
                }
            }
            self.stats.add(batch);
            return self.lay_out(batch);
        }
    }

    /// At the end: the one volume asked for must have existed.
    fn check_only(&self) -> Result<()> {
        match &self.volumes {
            VolumeChoice::Only(name, None) => {
                let known: Vec<&str> = self.files.volumes().iter().map(String::as_str).take(20).collect();
                Err(ftlab_core::error::unknown("volume", name, &known))
            }
            _ => Ok(()),
        }
    }

    fn lay_out(&mut self, batch: &mut Batch) -> Result<()> {
        if matches!(self.volumes, VolumeChoice::FirstOnly) && batch.volume.iter().any(|&v| v != 0) {
            let stream = self.paths.iter().find(|path| is_stream(path));
            if self.paths.is_empty() || stream.is_some() {
                return Err(Error::input(format!(
                    "the trace has several volumes, and {} cannot be read twice to lay them side by side: expected a file, \
                     or volumes `merge` or `only:NAME`",
                    stream.map_or("memory".to_owned(), |path| stream_name(path))
                )));
            }
            let scan = scan(&self.paths, &self.options)?;
            self.use_scan(&scan);
        }
        if let VolumeChoice::Bases(places, bases) = &mut self.volumes {
            let names = self.files.volumes();
            // A volume that only refused lines name has no request.
            bases.extend(
                names[bases.len()..]
                    .iter()
                    .map(|name| places.get(name).copied().unwrap_or(NO_PLACE)),
            );
            if bases.iter().any(|&base| base > 0) {
                for (offset, &volume) in batch.offset.iter_mut().zip(&batch.volume) {
                    let base = bases.get(usize::from(volume)).copied().unwrap_or(0);
                    if base == NO_PLACE {
                        let name = &names[usize::from(volume)];
                        return Err(Error::input(format!(
                            "volume {name} (number {volume}) was not in the scan: the trace has changed since"
                        )));
                    }
                    *offset = offset.saturating_add(base);
                }
            }
        }
        Ok(())
    }
}

/// An error with the number of requests that were read before it; none are not worth a word.
fn after(error: Error, requests: u64) -> Error {
    let add = |sentence: String| match requests {
        0 => sentence,
        1 => format!("{sentence}, after 1 request"),
        n => format!("{sentence}, after {n} requests"),
    };
    match error {
        Error::Input(sentence) => Error::Input(add(sentence)),
        Error::Io(sentence) => Error::Io(add(sentence)),
        Error::Interrupted => Error::Interrupted,
    }
}

fn stream_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

impl Source for Opened {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        if let Some(error) = &self.failed {
            batch.clear();
            return Err(error.clone());
        }
        let result = if self.complete {
            batch.clear();
            Ok(())
        } else {
            self.advance(batch)
        };
        if let Err(error) = &result {
            batch.clear();
            self.failed = Some(error.clone());
        }
        result
    }

    fn remaining(&self) -> Option<u64> {
        let total = self.scanned.as_ref()?.records;
        Some(total.saturating_sub(self.stats.records()))
    }

    fn volume_names(&self) -> Vec<String> {
        self.files.volumes().to_vec()
    }

    fn label_names(&self) -> Vec<String> {
        self.files.labels().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{Fit, FitRule};

    const TWO_VOLUMES: &[u8] = b"100 7 0 8 0\n200 3 10 8 1\n150 7 8 8 0\n";

    fn read(mut opened: Opened) -> Result<(Batch, TraceReport)> {
        let (mut all, mut batch) = (Batch::default(), Batch::default());
        loop {
            opened.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok((all, opened.report()));
            }
            (0..batch.len()).for_each(|i| rows::append(&mut all, &batch, i));
        }
    }

    fn with(volumes: Volumes) -> ReadOptions {
        ReadOptions {
            volumes,
            ..ReadOptions::default()
        }
    }

    /// A file in the system's temporary folder that goes away with the value.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("ftlab-trace-{}-{name}", std::process::id()));
            std::fs::write(&path, bytes).unwrap();
            File(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn the_clock_starts_at_zero_and_never_goes_back() {
        let (batch, report) = read(open_bytes("t", TWO_VOLUMES.to_vec(), &with(Volumes::Merge)).unwrap()).unwrap();
        assert_eq!(batch.time_ns, [0, 100, 100]);
        assert_eq!((report.out_of_order, report.late, report.duration_ns), (1, 1, 100));
    }

    #[test]
    fn merged_logs_are_sorted_and_others_where_the_order_is_time() {
        let order = |report: &TraceReport| {
            let found = report.choices.iter().find(|choice| choice.setting == "order");
            found.map(|choice| (choice.value.clone(), choice.given))
        };
        let by_time = ReadOptions {
            settings: crate::Settings {
                order: Some(crate::Order::Time),
                ..crate::Settings::default()
            },
            ..with(Volumes::Merge)
        };
        let (batch, report) = read(open_bytes("t", TWO_VOLUMES.to_vec(), &by_time).unwrap()).unwrap();
        assert_eq!((batch.time_ns, batch.volume), (vec![0, 50, 100], vec![0, 0, 1]));
        assert_eq!((report.out_of_order, report.late), (1, 0));
        assert_eq!(order(&report), Some(("time".to_owned(), true)));
        let log = b"8,0 0 1 0.1 1 D R 8 + 8 [a]\n8,0 0 2 0.3 1 D R 16 + 8 [a]\n8,0 1 1 0.2 1 D R 24 + 8 [a]\n";
        let (batch, report) = read(open_bytes("t", log.to_vec(), &ReadOptions::default()).unwrap()).unwrap();
        assert_eq!(batch.offset, [4096, 12_288, 8192]);
        assert_eq!(batch.time_ns, [0, 100_000_000, 200_000_000]);
        assert_eq!((report.out_of_order, report.late), (1, 0));
        assert_eq!(order(&report), Some(("time".to_owned(), false)));
        let as_it_stands = ReadOptions {
            settings: crate::Settings {
                order: Some(crate::Order::File),
                ..crate::Settings::default()
            },
            ..ReadOptions::default()
        };
        let (batch, report) = read(open_bytes("t", log.to_vec(), &as_it_stands).unwrap()).unwrap();
        assert_eq!(batch.time_ns, [0, 200_000_000, 200_000_000]);
        assert_eq!((report.out_of_order, report.late), (1, 1));
    }

    #[test]
    fn stamps_that_descend_are_times_all_the_same() {
        let rows = |n: u64| {
            let rows = (0..n).map(|i| format!("{},R,{},512\n", (n - i) * 1000, i * 512));
            ("time_ns,op,offset,length\n".to_owned() + &rows.collect::<String>()).into_bytes()
        };
        let (batch, report) = read(open_bytes("t.csv", rows(9000), &ReadOptions::default()).unwrap()).unwrap();
        assert_eq!((report.timed, report.duration_ns), (true, 8_999_000));
        assert_eq!((batch.offset[0], batch.offset[8999]), (8999 * 512, 0));
        let error = read(open_bytes("t.csv", rows(100_000), &ReadOptions::default()).unwrap()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("t.csv: the time stamps go back for more than 16384 requests"),
            "{error}"
        );
    }

    #[test]
    fn one_stamp_too_late_is_no_lack_of_times() {
        let rows = "time_ns,op,offset,length\n90000000,R,0,512\n1000,R,0,512\n2000,R,0,512\n3000,R,0,512\n";
        let (batch, report) = read(open_bytes("t.csv", rows.into(), &ReadOptions::default()).unwrap()).unwrap();
        assert_eq!(batch.time_ns, [0, 0, 1000, 2000]);
        assert_eq!((report.timed, report.stray_times), (true, 1));
    }

    #[test]
    fn a_report_is_complete_at_the_end() {
        let (_, report) = read(open_bytes("t", TWO_VOLUMES.to_vec(), &with(Volumes::Merge)).unwrap()).unwrap();
        assert!(report.complete);
        assert_eq!(
            (report.lines, report.records, report.reads, report.writes),
            (3, 3, 1, 2)
        );
        assert_eq!((report.bytes_read, report.bytes_written), (4096, 8192));
        assert_eq!((report.first_byte, report.end_byte, report.span_bytes), (0, 9216, 9216));
        assert_eq!(report.checksum, Some(blake3::hash(TWO_VOLUMES).to_hex().to_string()));
        let names: Vec<&str> = report.volumes.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["7", "3"]);
        assert!((report.read_share.unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn volumes_lie_side_by_side_in_the_order_of_their_appearance() {
        let file = File::new("side", TWO_VOLUMES);
        let paths = [file.0.clone()];
        let options = ReadOptions::default();
        let (batch, report) = read(open(&paths, &options).unwrap()).unwrap();
        // Volume 7 ends at 8192, so volume 3 begins at the next multiple of 512 units.
        assert_eq!(batch.offset, [0, (2 << 20) + 5120, 4096]);
        let scan = scan(&paths, &options).unwrap();
        assert_eq!(scan.report.volumes, report.volumes);
        assert_eq!(
            (scan.report.end_byte, report.end_byte),
            ((2 << 20) + 9216, (2 << 20) + 9216)
        );
        assert_eq!((scan.report.footprint_4k, report.footprint_4k), (Some(4), Some(4)));
        let opened = open_scanned(&paths, &options, &scan).unwrap();
        assert_eq!(opened.remaining(), Some(3));
        assert_eq!(read(opened).unwrap().0, batch);
    }

    #[test]
    fn one_volume_may_be_taken_alone() {
        let (batch, report) =
            read(open_bytes("t", TWO_VOLUMES.to_vec(), &with(Volumes::Only("3".into()))).unwrap()).unwrap();
        assert_eq!((batch.len(), batch.offset[0]), (1, 5120));
        assert_eq!(report.volumes.len(), 1);
        let error = read(open_bytes("t", TWO_VOLUMES.to_vec(), &with(Volumes::Only("9".into()))).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "unknown volume `9`; did you mean `3`? (known: 7, 3)");
    }

    #[test]
    fn what_cannot_be_read_twice_says_what_to_do() {
        let error = read(open_bytes("t", TWO_VOLUMES.to_vec(), &ReadOptions::default()).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("expected a file, or volumes `merge`"),
            "{error}"
        );
        assert!(scan(&["-".into()], &ReadOptions::default()).is_err());
    }

    #[test]
    fn files_are_merged_by_time() {
        let one = File::new("one", b"100,a,0,Write,0,512,0\n300,a,0,Write,1,512,0\n");
        let two = File::new(
            "two",
            b"50,b,0,Read,2,512,0\n100,b,0,Read,3,512,0\n400,a,0,Read,4,512,0\n",
        );
        let paths = [one.0.clone(), two.0.clone()];
        let (batch, report) = read(open(&paths, &with(Volumes::Merge)).unwrap()).unwrap();
        assert_eq!(batch.offset, [2, 0, 3, 1, 4]);
        assert_eq!(batch.time_ns, [0, 5_000, 5_000, 25_000, 35_000]);
        // Numbers go by the files' order, names are shared.
        assert_eq!(batch.volume, [1, 0, 1, 0, 0]);
        assert!(report.reason.ends_with("2 files merged by time"), "{}", report.reason);
        assert_eq!(report.out_of_order, 0);
        let mixed = File::new("three", TWO_VOLUMES);
        let error = open(&[one.0.clone(), mixed.0.clone()], &ReadOptions::default())
            .err()
            .unwrap();
        assert!(error.to_string().contains("expected one format"), "{error}");
    }

    /// The second request has no label, also between files that number their labels otherwise; what is called
    /// `unknown` is none, as writers of text call it so.
    #[test]
    fn an_empty_label_is_none() {
        let one = File::new(
            "labels-1",
            b"time_ns,op,offset,length,label\n0,write,0,512,log\n20,write,512,512,\n",
        );
        let two = File::new(
            "labels-2",
            b"time_ns,op,offset,length,label\n10,write,0,512,unknown\n30,write,512,512,log\n",
        );
        let labels = |batch: &Batch| -> Vec<_> { (0..batch.len()).map(|i| batch.context_of(i).label).collect() };
        let read_all = |paths: &[PathBuf]| read(open(paths, &with(Volumes::Merge)).unwrap()).unwrap().0;
        let alone = read_all(std::slice::from_ref(&one.0));
        assert_eq!((labels(&alone), alone.label), (vec![Some(0), None], vec![0, 1]));
        let first = read_all(std::slice::from_ref(&two.0));
        assert_eq!(labels(&first), [None, Some(1)]);
        let both = read_all(&[one.0.clone(), two.0.clone()]);
        assert_eq!(labels(&both), [Some(0), None, None, Some(0)]);
    }

    #[test]
    fn an_error_is_final() {
        let bytes = zstd::encode_all(&TWO_VOLUMES.repeat(100_000)[..], 1).unwrap();
        let mut options = with(Volumes::Merge);
        options.settings.order = Some(crate::Order::File);
        let mut opened = open_bytes("t", bytes[..bytes.len() - 20].to_vec(), &options).unwrap();
        let (mut batch, mut requests) = (Batch::default(), 0);
        let first = loop {
            match opened.next_batch(&mut batch) {
                Ok(()) => assert!(!batch.is_empty()),
                Err(error) => break error,
            }
            requests += batch.len();
        };
        assert!(first.to_string().contains("the zstd data is cut off"), "{first}");
        // zstd gives out whole blocks of 128 KiB, about 11,000 lines: all but the last or two.
        assert!(requests > 270_000, "{requests}");
        assert!(
            first.to_string().ends_with(&format!(", after {requests} requests")),
            "{first}"
        );
        assert_eq!(opened.next_batch(&mut batch), Err(first));
        assert!(batch.is_empty() && !opened.report().complete);
    }

    #[test]
    fn a_request_beyond_the_drive_is_named_with_its_line() {
        let opened = open_bytes("t.trace", TWO_VOLUMES.to_vec(), &with(Volumes::Merge)).unwrap();
        let mut fit = Fit::trace(opened, FitRule::Error, 8192, None).unwrap();
        let error = fit.next_batch(&mut Batch::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("t.trace, line 2: request 2, a read of 4096 bytes at offset 5120, ends at byte 9216"),
            "{error}"
        );
        assert!(
            error.contains("the drive has 8192 bytes (8 KiB)") && error.contains("--fit compact"),
            "{error}"
        );
    }

    #[test]
    fn a_sidecar_settles_what_the_content_leaves_open() {
        let file = File::new("side.trace", TWO_VOLUMES);
        let _sidecar = File::new("side.trace.ftlab.toml", b"time_unit = \"us\"\nvolumes = \"merge\"\n");
        let paths = [file.0.clone()];
        let (batch, report) = read(open(&paths, &ReadOptions::default()).unwrap()).unwrap();
        assert_eq!(
            (&batch.time_ns[..], batch.offset[1]),
            (&[0, 100_000, 100_000][..], 5120)
        );
        assert!(report.reason.ends_with("side.trace.ftlab.toml"), "{}", report.reason);
        let options = ReadOptions {
            settings: crate::Settings {
                time_unit: Some(crate::TimeUnit::Milliseconds),
                ..crate::Settings::default()
            },
            ..ReadOptions::default()
        };
        assert_eq!(
            read(open(&paths, &options).unwrap()).unwrap().1.duration_ns,
            100_000_000
        );
        let _sidecar = File::new("side.trace.ftlab.toml", b"\ntimeunit = \"us\"\n");
        let error = open(&paths, &ReadOptions::default()).err().unwrap().to_string();
        assert!(
            error.contains("side.trace.ftlab.toml, line 2: unknown field `timeunit`"),
            "{error}"
        );
    }

    #[test]
    fn missing_files_and_no_files_are_errors() {
        assert!(matches!(
            open(&["/no/such/file".into()], &ReadOptions::default()),
            Err(Error::Io(_))
        ));
        assert!(matches!(open(&[], &ReadOptions::default()), Err(Error::Input(_))));
        assert!(
            open(&[std::env::temp_dir()], &ReadOptions::default())
                .err()
                .unwrap()
                .to_string()
                .contains("directory")
        );
    }
}
