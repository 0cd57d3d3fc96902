//! The named workloads: what was published of each comes out of the generator.

use ftlab_core::{Batch, OpKind, Source};
use ftlab_trace::synth::{self, named};
use rustc_hash::FxHashMap;

use crate::figures::{Figures, figures};

/// Long enough for every published figure, an episode at least.
fn made(name: &str) -> Figures {
    figures(&mut synth::parse(&format!("{name}:requests=200000"), 64 << 30, 4096, 1).unwrap())
}

fn near(what: &str, measured: f64, published: f64, tolerance: f64) {
    let off = (measured / published - 1.0).abs();
    assert!(off <= tolerance, "{what}: {measured}, published {published}");
}

fn points(what: &str, measured: f64, published: f64, tolerance: f64) {
    let off = (measured - published).abs() * 100.0;
    assert!(off <= tolerance, "{what}: {measured}, published {published}");
}

fn mean(f: &Figures, op: usize) -> f64 {
    f.sizes[op].unwrap().0 / 1024.0
}

#[test]
fn every_file_is_a_workload_with_a_title_and_a_source() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    let mut names: Vec<&str> = named::WORKLOADS.iter().map(|workload| workload.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
    for workload in named::WORKLOADS {
        let (model, _) = workload.read().unwrap();
        assert!(!model.title.is_empty() && !model.source.is_empty(), "{}", workload.name);
        assert!(workload.text.contains("assumed"), "{}", workload.name);
        assert!(synth::is_spec(&format!("{}:seed=3", workload.name)));
    }
}

/// Table 3.1 of CPFTL: mean sizes (KB), share of reads, mean time between arrivals. The sizes are dealt from decks, so what
/// remains is the rounding of the decks' cards and, for WebSearch's 200 writes, chance.
#[test]
fn table_3_1_of_cpftl() {
    for (name, read_kb, write_kb, read, gap_ms, write_tolerance) in [
        ("financial2", 2.3, 2.9, 0.823, 11.08, 0.02),
        ("websearch", 15.15, 8.6, 0.999, 2.99, 0.06),
        ("tpcc", 8.0, 8.2, 0.657, 4.35, 0.02),
    ] {
        let f = made(name);
        near(&format!("{name}, size of reads"), mean(&f, 0), read_kb, 0.01);
        near(
            &format!("{name}, size of writes"),
            mean(&f, 1),
            write_kb,
            write_tolerance,
        );
        points(&format!("{name}, reads"), f.read_share, read, 0.2);
        near(&format!("{name}, gap"), f.mean_gap_ns / 1e6, gap_ms, 0.01);
    }
}

/// Figure 3.4a of CPFTL: dirty reads per write in partitions of 1024 requests, 8 to 17 % for Financial, none for WebSearch.
#[test]
fn dirty_reads_of_cpftl() {
    let financial = made("financial2").dirty_reads;
    assert!((0.08..=0.17).contains(&financial), "{financial}");
    let search = made("websearch").dirty_reads;
    assert!(search < 0.005, "{search}");
}

/// The table and the locality of the ASA-FTL slides ("around 1200", "around 280", "around 4700": 10 % are allowed).
#[test]
fn the_workloads_of_asa_ftl() {
    for (name, kb, addresses) in [
        ("financial1", Some(4.5), 1200.0),
        ("cambridge", Some(48.8), 280.0),
        ("tpcc", None, 4700.0),
    ] {
        let f = made(name);
        if let Some(kb) = kb {
            near(&format!("{name}, size of writes"), mean(&f, 1), kb, 0.02);
        }
        near(&format!("{name}, addresses"), f.addresses_10k as f64, addresses, 0.1);
    }
    let f = made("cambridge");
    assert_eq!(f.read_share, 0.0);
    let whole = synth::parse("cambridge", 64 << 30, 4096, 1).unwrap();
    assert_eq!(whole.requests(), Some(1_000_000));
}

/// The assumed reading of Synth n/10: n/10 of the writes go to 1 − n/10 of the addresses.
#[test]
fn synth_n_of_ten() {
    let nine = made("synth9").hot_writes.unwrap();
    points("synth9, writes to the hottest tenth", nine[1], 0.9, 1.0);
    let seven = made("synth7").hot_writes.unwrap();
    points(
        "synth7, writes to two thirds of the hot addresses",
        seven[2],
        0.7 * 2.0 / 3.0,
        2.0,
    );
    let five = made("synth5").hot_writes.unwrap();
    points("synth5, writes to the hottest fifth", five[2], 0.2, 1.0);
}

/// Table III of RR-SSD: share of writes, distinct values per write and per read, requests of 4 KB.
#[test]
fn table_3_of_rr_ssd() {
    for (name, writes, written, read) in [
        ("webvm", 0.77, 0.42, 0.32),
        ("homes", 0.96, 0.66, 0.80),
        ("mail", 0.77, 0.08, 0.80),
        ("hadoop", 0.30, 0.639, 0.175),
        ("trans", 0.55, 0.774, 0.138),
        ("desktop", 0.42, 0.747, 0.497),
    ] {
        let f = made(name);
        points(&format!("{name}, writes"), 1.0 - f.read_share, writes, 0.2);
        let unique = f.unique_values.unwrap();
        points(&format!("{name}, values written"), unique[0], written, 1.0);
        points(&format!("{name}, values read"), unique[1], read, 1.0);
        points(
            &format!("{name}, duplicates"),
            f.duplicates.unwrap(),
            1.0 - written,
            1.0,
        );
        assert_eq!(f.sizes.map(|s| s.unwrap().0), [4096.0; 2], "{name}");
    }
}

/// Figure 4 of RR-SSD: 7 % of webvm's values make 80 % of its reads. (Those of homes and mail contradict table III.)
#[test]
fn value_popularity_of_webvm() {
    points(
        "webvm, values of 80 % of the reads",
        made("webvm").values_of_80.unwrap(),
        0.07,
        0.5,
    );
}

/// Figure 4 of RR-SSD of the values that are read: 7, 14 and 30 % of them make 80 % of the reads.
#[test]
fn popular_reads_of_rr_ssd() {
    for (name, writes, share) in [
        ("webvm_popular", 0.77, 0.07),
        ("homes_popular", 0.96, 0.14),
        ("mail_popular", 0.77, 0.30),
    ] {
        let mut reads = FxHashMap::<u64, u64>::default();
        let mut generator = synth::parse(&format!("{name}:requests=200000"), 64 << 30, 4096, 1).unwrap();
        let mut batch = Batch::default();
        loop {
            generator.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            for (row, op) in batch.op.iter().enumerate() {
                if *op == OpKind::Read {
                    *reads.entry(batch.offset[row]).or_default() += 1;
                }
            }
        }
        let all: u64 = reads.values().sum();
        points(&format!("{name}, writes"), 1.0 - all as f64 / 2e5, writes, 0.2);
        let mut counts: Vec<u64> = reads.values().copied().collect();
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        let most = (share * counts.len() as f64).round() as usize;
        let made = counts[..most].iter().sum::<u64>() as f64 / all as f64;
        points(&format!("{name}, reads of {share} of the values"), made, 0.8, 1.0);
    }
}

/// Figure 1 fixes the mean gap within a phase of 10,000 requests; phases are 84 to 101 ms apart, of which a request has 9.2 us.
#[test]
fn phases_of_rr_ssd() {
    for (name, gap_us) in [
        ("webvm", 7.1),
        ("homes", 8.2),
        ("mail", 6.5),
        ("hadoop", 3.4),
        ("trans", 5.2),
        ("desktop", 4.3),
        ("homes_popular", 8.2),
    ] {
        near(name, made(name).mean_gap_ns / 1e3, gap_us + 9.23, 0.02);
    }
}

#[test]
fn seeds_and_lengths_are_keys() {
    let digest = |spec: &str| {
        let f = figures(&mut synth::parse(spec, 64 << 30, 4096, 1).unwrap());
        (f.requests, f.read_share.to_bits(), f.miss_all.map(f64::to_bits))
    };
    assert_eq!(digest("webvm:requests=20000"), digest("webvm:requests=20000,seed=1"));
    assert_ne!(digest("webvm:requests=20000"), digest("webvm:requests=20000,seed=2"));
    assert_eq!(digest("financial2:requests=1e4").0, 10_000);
}
