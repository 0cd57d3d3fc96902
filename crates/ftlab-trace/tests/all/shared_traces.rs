//! Real traces, where they are at hand: their figures must be those of the collection's README.

use std::path::PathBuf;

use crate::collection::collection;
use ftlab_core::{Batch, Source};
use ftlab_trace::{Fit, FitRule, ReadOptions, TraceReport, Volumes, open, open_scanned, scan};

/// One row of the README's table; `None` where it gives no figure.
#[derive(Debug)]
struct Row {
    file: String,
    requests: Option<f64>,
    read_percent: Option<f64>,
    discards: Option<f64>,
    mean_bytes: Option<f64>,
    span_gb: Option<f64>,
    unique_4k: Option<f64>,
    written_gb: Option<f64>,
    duration_s: Option<f64>,
}

/// The rows of the first table of the README: a file's name, its family, then eight figures.
fn rows(readme: &str) -> Vec<Row> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let lines = readme.lines().map(cells).filter(|cells| cells.len() == 12);
    let files = lines.filter(|cells| cells[1].contains('/') && cells[1].ends_with(".zst"));
    let figure = |cells: &[String], i: usize| match cells[i].as_str() {
        "-" | "fake" => None,
        text => Some(text.parse().unwrap_or_else(|_| panic!("`{text}` in {cells:?}"))),
    };
    let row = |cells: Vec<String>| Row {
        requests: figure(&cells, 3),
        read_percent: figure(&cells, 4),
        discards: figure(&cells, 5),
        mean_bytes: figure(&cells, 6),
        span_gb: figure(&cells, 7),
        unique_4k: figure(&cells, 8),
        written_gb: figure(&cells, 9),
        duration_s: figure(&cells, 10),
        file: cells[1].clone(),
    };
    files.map(row).collect()
}

/// Where our reading differs from the README's figures on purpose: the file, the figures that are ours, and why.
struct Exception {
    file: &'static str,
    why: &'static str,
    apply: fn(&mut Row),
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "desktop/desktop.trace.zst",
        why: "the README infers sizes of 512 B; but two thirds of the requests begin where an earlier one ends if sizes \
              count 4 KiB, against 0.4 % otherwise",
        apply: |row| {
            row.mean_bytes = Some(34_077.5);
            row.span_gb = Some(167.773);
            row.unique_4k = Some(195_409.0);
            row.written_gb = Some(0.785_854);
        },
    },
    Exception {
        file: "mobile_nexus5/log176_Booting.txt.zst",
        why: "the README's duration begins when the clock was set; the 0.81 s before, while it showed 1970, count here",
        apply: |row| row.duration_s = Some(112.86),
    },
    Exception {
        file: "mobile_nexus5/log250_RadioWebBrowse.txt.zst",
        why: "one request has no bytes, and the README counts a page for it",
        apply: |row| row.unique_4k = Some(51_958.0),
    },
    Exception {
        file: "mobile_most/android_filetype_2k_events.po.zst",
        why: "23 writes of no bytes at sector 0 are barriers, so flushes here; the README lets them touch page 0",
        apply: |row| {
            row.requests = Some(569.0);
            row.mean_bytes = Some(4096.0);
            row.span_gb = Some(10.178);
            row.unique_4k = Some(532.0);
        },
    },
    Exception {
        file: "android_hash/android_music_5k.tsv.zst",
        why: "the README counts runs of equal rows; here the rows of concurrent requests that interleave are put together, \
              so that each request's size counts once",
        apply: |row| {
            row.requests = Some(1_159.0);
            row.read_percent = Some(31.23);
            row.mean_bytes = Some(18_038.0);
        },
    },
];

/// What of a row the reading of its file misses.
fn misses(row: &Row, report: &TraceReport) -> Vec<String> {
    let mut misses = Vec::new();
    let mut close = |what: &str, value: f64, wanted: Option<f64>, last_digit: f64| {
        if let Some(wanted) = wanted.filter(|wanted| (value - wanted).abs() > 0.51 * last_digit) {
            misses.push(format!("{what} {value}, expected {wanted}"));
        }
    };
    // The README counts rows, those of no bytes too, which are left out here.
    let empty = report
        .left_out
        .iter()
        .filter(|left| left.reason == "a request of no bytes");
    let data = (report.reads + report.writes + empty.map(|left| left.count).sum::<u64>()) as f64;
    close("requests", data + report.trims as f64, row.requests, 1.0);
    close(
        "read %",
        report.read_share.unwrap_or(0.0) * 100.0,
        row.read_percent,
        0.1,
    );
    close("discards", report.trims as f64, row.discards, 1.0);
    close(
        "mean bytes",
        (report.bytes_read + report.bytes_written) as f64 / data,
        row.mean_bytes,
        1.0,
    );
    close("span GB", report.span_bytes as f64 / 1e9, row.span_gb, 0.01);
    close("unique 4K", report.footprint_4k.unwrap_or(0) as f64, row.unique_4k, 1.0);
    close("written GB", report.bytes_written as f64 / 1e9, row.written_gb, 0.001);
    close("duration s", report.duration_ns as f64 / 1e9, row.duration_s, 0.1);
    if !report.complete || report.skipped_total() > 0 {
        misses.push(format!("bad lines {:?}", report.first_bad));
    }
    misses
}

/// Opened without options but for the README's own rule that volumes share one range of addresses.
#[test]
fn figures_are_those_of_the_readme() {
    let Some(folder) = collection() else { return };
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut rows = rows(&readme);
    assert!(rows.len() >= 50, "{} rows in the README's table", rows.len());
    let options = ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    };
    let mut failed = Vec::new();
    for row in &mut rows {
        let exception = EXCEPTIONS.iter().find(|exception| exception.file == row.file);
        let paths = [folder.join(&row.file)];
        let report = match scan(&paths, &options) {
            Ok(scan) => scan.report,
            Err(error) => {
                failed.push(format!("{}: {error}", row.file));
                continue;
            }
        };
        let choices: Vec<String> = report
            .choices
            .iter()
            .map(|c| format!("{}={}", c.setting, c.value))
            .collect();
        eprintln!("{}: {} {choices:?}; {}", row.file, report.format, report.reason);
        if let Some(exception) = exception {
            // An exception that is none any more must go.
            assert!(
                !misses(row, &report).is_empty(),
                "{} needs no exception: {}",
                row.file,
                exception.why
            );
            (exception.apply)(row);
        }
        failed.extend(
            misses(row, &report)
                .into_iter()
                .map(|miss| format!("{} ({}): {miss}", row.file, report.format)),
        );
    }
    assert!(
        failed.is_empty(),
        "{} differences:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn volumes_of_a_real_trace_lie_side_by_side_and_compact_onto_a_small_drive() {
    let Some(folder) = collection() else { return };
    let paths = [folder.join("tpcc/mqsim_tpcc-small.trace.zst")];
    let options = ReadOptions::default();
    let scan = scan(&paths, &options).unwrap();
    let volumes = &scan.report.volumes;
    assert!(volumes.len() >= 13);
    assert!(volumes.windows(2).all(|w| w[1].base >= w[0].base + w[0].end_byte));
    // The lazy scan of `open` gives the same addresses as the one made beforehand.
    let read = |mut source: ftlab_trace::Opened| {
        let (mut batch, mut offsets) = (Batch::default(), Vec::new());
        loop {
            source.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                return offsets;
            }
            offsets.extend_from_slice(&batch.offset);
        }
    };
    assert_eq!(
        read(open(&paths, &options).unwrap()),
        read(open_scanned(&paths, &options, &scan).unwrap())
    );

    let drive = scan.touched.units() * 4096;
    let trace = open_scanned(&paths, &options, &scan).unwrap();
    let mut fitted = Fit::trace(trace, FitRule::Compact, drive, Some(&scan)).unwrap();
    let (mut batch, mut records) = (Batch::default(), 0);
    loop {
        fitted.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        records += batch.len();
        assert!((0..batch.len()).all(|i| batch.offset[i] + u64::from(batch.length[i]) <= drive));
    }
    assert_eq!(records, 6999);
    assert!(
        Fit::trace(
            open(&paths, &options).unwrap(),
            FitRule::Compact,
            drive - 1,
            Some(&scan)
        )
        .is_err()
    );
}

#[test]
fn the_bundled_recording_has_the_figures_of_its_readme() {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../recordings/db_bench.csv.zst"
    ));
    if !path.is_file() {
        eprintln!("skipped: no bundled recording");
        return;
    }
    let report = scan(&[path], &ReadOptions::default()).unwrap().report;
    assert_eq!(
        (report.format.as_str(), report.records, report.skipped_total()),
        ("csv", 126_028, 0)
    );
    assert_eq!(
        (report.reads, report.writes, report.trims, report.flushes),
        (62_983, 38_217, 6_207, 18_621)
    );
    assert_eq!(
        (report.bytes_read, report.bytes_written),
        (4_349_997_056, 4_573_990_912)
    );
    assert_eq!(
        (report.bytes_trimmed, report.footprint_4k),
        (11_874_410_496, Some(127_388))
    );
    assert_eq!(report.end_byte, 512 << 20);
    assert!((report.duration_ns as f64 / 1e9 - 97.2).abs() <= 0.05);
}

#[test]
fn files_in_no_known_format_are_refused_in_one_sentence() {
    let Some(folder) = collection() else { return };
    let error = open(&[folder.join("README.md")], &ReadOptions::default()).err();
    let error = error.expect("README.md was taken for a trace").to_string();
    assert!(
        error.contains("line 1: `") && error.contains("known: ftlab, "),
        "{error}"
    );
}
