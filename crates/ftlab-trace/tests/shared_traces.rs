//! Real traces, where they are at hand: their figures must be those of the collection's README.
//!
//! The collection is looked for in `FTLAB_TRACES`, then beside the repository; without it these tests pass and say so.

use std::path::PathBuf;

use ftlab_core::{Batch, Source};
use ftlab_trace::{Fit, FitRule, ReadOptions, TimeUnit, Volumes, open, open_scanned, scan};

fn collection() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let folder = std::env::var_os("FTLAB_TRACES").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no trace collection (FTLAB_TRACES names one)");
    None
}

/// One row of the README. `None` where the README gives no figure, or one for another reading of the columns.
struct Row {
    file: &'static str,
    format: &'static str,
    unit: Option<TimeUnit>,
    requests: u64,
    read_percent: f64,
    mean_bytes: Option<u64>,
    span_gb: Option<f64>,
    unique_4k: Option<u64>,
    written_gb: Option<f64>,
    duration_s: Option<f64>,
}

const ROWS: &[Row] = &[
    row(
        "umass_spc/Financial1_first10k_asu.ascii.zst",
        "mqsim",
        10000,
        40.8,
        (5528, 0.51, 7142, 0.030),
        Some(259.6),
    ),
    row(
        "tpcc/mqsim_tpcc-small.trace.zst",
        "mqsim",
        6999,
        62.6,
        (8532, 232.35, 20422, 0.023),
        Some(0.1),
    ),
    row(
        "msr/prxy_0_reads.trace.zst",
        "disksim",
        29360,
        100.0,
        (9952, 22.20, 20017, 0.0),
        Some(46653.5),
    ),
    row(
        "desktop/desktop.trace.zst",
        "disksim",
        32527,
        38.3,
        (4260, 167.77, 38901, 0.098),
        Some(8877.2),
    ),
    row(
        "desktop/pcmark.trace.zst",
        "disksim",
        56088,
        74.6,
        (113912, 113.13, 581569, 3.092),
        Some(1466.3),
    ),
    row(
        "llm_offload/opt7b_512tok.trace.zst",
        "mqsim",
        36873,
        86.4,
        (151298, 1023.08, 1361958, 2.427),
        Some(34.3),
    ),
    row(
        "ms_ssdext/postmark.trace.zst",
        "disksim",
        62257,
        83.2,
        (227657, 22.89, 1533388, 8.937),
        Some(490.4),
    ),
    row(
        "systor_vdi/2016021612-LUN3_compacted.trace.zst",
        "mqsim",
        202725,
        95.5,
        (6217, 0.34, 81920, 0.440),
        None,
    ),
    row(
        "ycsb_rocksdb/ssdtrace_writes_87k.trace.zst",
        "mqsim",
        87487,
        0.0,
        (83346, 512.06, 483465, 7.292),
        None,
    ),
    Row {
        unit: Some(TimeUnit::Microseconds),
        ..row(
            "msps/DTRS_a.trace.zst",
            "mqsim",
            84695,
            97.5,
            (57250, 163.77, 977619, 0.015),
            Some(231.6),
        )
    },
    // Its sizes are in 4 KiB, which no reader assumes: requests, shares and times only.
    Row {
        mean_bytes: None,
        span_gb: None,
        unique_4k: None,
        written_gb: None,
        ..row(
            "umass_spc/Financial1_first50k_noasu.trace.zst",
            "disksim",
            50000,
            58.4,
            (0, 0.0, 0, 0.0),
            Some(853.4),
        )
    },
];

const fn row(
    file: &'static str,
    format: &'static str,
    requests: u64,
    read_percent: f64,
    (mean, span, unique, written): (u64, f64, u64, f64),
    duration_s: Option<f64>,
) -> Row {
    Row {
        file,
        format,
        unit: None,
        requests,
        read_percent,
        mean_bytes: Some(mean),
        span_gb: Some(span),
        unique_4k: Some(unique),
        written_gb: Some(written),
        duration_s,
    }
}

#[test]
fn figures_are_those_of_the_readme() {
    let Some(folder) = collection() else { return };
    for row in ROWS {
        let options = ReadOptions {
            volumes: Volumes::Merge,
            time_unit: row.unit,
            ..ReadOptions::default()
        };
        let report = scan(&[folder.join(row.file)], &options).unwrap().report;
        let file = row.file;
        assert!(report.complete, "{file}");
        assert_eq!(report.format, row.format, "{file}");
        assert_eq!(
            (report.records, report.skipped_total()),
            (row.requests, 0),
            "{file}: {report:?}"
        );
        let close = |what: &str, value: f64, wanted: Option<f64>, last_digit: f64| {
            if let Some(wanted) = wanted {
                assert!(
                    (value - wanted).abs() <= 0.51 * last_digit,
                    "{file}: {what} {value}, expected {wanted}"
                );
            }
        };
        close("read %", report.read_share * 100.0, Some(row.read_percent), 0.1);
        close("span GB", report.span_bytes as f64 / 1e9, row.span_gb, 0.01);
        close("written GB", report.bytes_written as f64 / 1e9, row.written_gb, 0.001);
        close("duration s", report.duration_ns as f64 / 1e9, row.duration_s, 0.1);
        let mean = (report.bytes_read + report.bytes_written) as f64 / report.records as f64;
        close("mean bytes", mean, row.mean_bytes.map(|m| m as f64), 1.0);
        if let Some(unique) = row.unique_4k {
            assert_eq!(report.footprint_4k, Some(unique), "{file}");
        }
    }
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
    for file in ["arc_nt/P6.lis.zst", "mobile_nexus5/log111_email.txt.zst", "README.md"] {
        let error = open(&[folder.join(file)], &ReadOptions::default())
            .err()
            .map(|e| e.to_string());
        let error = error.unwrap_or_else(|| panic!("{file} was taken"));
        assert!(
            error.contains("line 1: `") && error.contains("known: ftlab, csv"),
            "{error}"
        );
    }
}
