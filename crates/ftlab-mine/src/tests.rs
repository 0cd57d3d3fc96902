//! Both miners against counting in the plainest way, and on streams whose correlations are known.

use std::collections::{BTreeMap, BTreeSet};

use ftlab_core::{Batch, OpKind, Result, Stream};
use proptest::prelude::*;

use crate::{CMiner, Clustered, CorrelationSet, Coverage, Cut, Items, Mined, Projection, Reads, Report, Threshold};

pub(crate) fn reads(lpns: &[u32]) -> Reads {
    let mut reads = Reads::new(4096, Items::Pages).unwrap();
    let mut batch = Batch::default();
    for &lpn in lpns {
        batch.push(0, OpKind::Read, u64::from(lpn) * 4096, 4096, 0, 0);
    }
    (0..lpns.len()).for_each(|i| reads.add(&batch, i).unwrap());
    reads
}

fn clustered(miner: &Clustered, lpns: &[u32]) -> Mined {
    miner.mine(&reads(lpns), "test", &mut |_| Ok(())).unwrap()
}

fn cminer(miner: &CMiner, lpns: &[u32]) -> Mined {
    miner.mine(&reads(lpns), "test", &mut |_| Ok(())).unwrap()
}

fn support(support: f64, least: u32) -> Threshold {
    Threshold {
        support,
        least,
        ..Threshold::default()
    }
}

fn keys(set: &CorrelationSet) -> BTreeMap<(u32, u32), u32> {
    set.pairs()
        .iter()
        .map(|pair| ((pair.first.0, pair.second.0), pair.windows))
        .collect()
}

/// Windows with x somewhere before y, for all x ≠ y.
fn ordered_pairs(lpns: &[u32], window: usize) -> BTreeMap<(u32, u32), u32> {
    let mut counts = BTreeMap::new();
    for accesses in lpns.chunks(window) {
        let mut present = BTreeSet::new();
        for (i, &x) in accesses.iter().enumerate() {
            present.extend(accesses[i + 1..].iter().filter(|&&y| y != x).map(|&y| (x, y)));
        }
        for pair in present {
            *counts.entry(pair).or_insert(0) += 1;
        }
    }
    counts
}

/// All sequences of 2 and 3 pages with their support, from the definition: in each segment, from the first x, the first
/// y ≠ x within the gap, from there the first z ≠ y.
fn sequences(lpns: &[u32], segment: usize, gap: usize) -> BTreeMap<Vec<u32>, u32> {
    fn end(accesses: &[u32], sequence: &[u32], gap: usize) -> Option<usize> {
        let mut at = accesses.iter().position(|&page| page == sequence[0])?;
        for &page in &sequence[1..] {
            let ahead = accesses[at + 1..].iter().position(|&next| next == page)? + 1;
            if ahead > gap {
                return None;
            }
            at += ahead;
        }
        Some(at)
    }
    let pages: BTreeSet<u32> = lpns.iter().copied().collect();
    let mut counts = BTreeMap::new();
    let mut add = |sequence: Vec<u32>| {
        let support = lpns
            .chunks(segment)
            .filter(|accesses| end(accesses, &sequence, gap).is_some())
            .count();
        counts.insert(sequence, support as u32);
    };
    for &x in &pages {
        for &y in pages.iter().filter(|&&y| y != x) {
            add(vec![x, y]);
            for &z in pages.iter().filter(|&&z| z != y) {
                add(vec![x, y, z]);
            }
        }
    }
    counts
}

fn contains(long: &[u32], short: &[u32]) -> bool {
    let mut rest = long.iter();
    short.iter().all(|page| rest.any(|other| other == page))
}

#[test]
fn a_stream_by_hand() {
    // Windows of 4: [1 2 3 1] [2 1 2 3] [1 3]. 1→2: both full windows (the second through 1, 2). 2→1: both. 1→3: all. 3→1: the
    // first. 2→3: the first two.
    let lpns = [1, 2, 3, 1, 2, 1, 2, 3, 1, 3];
    let miner = Clustered {
        region: None,
        window: 4,
        threshold: support(0.0, 2),
        ..Clustered::default()
    };
    let mined = clustered(&miner, &lpns);
    let listed: Vec<_> = mined
        .set
        .pairs()
        .iter()
        .map(|p| (p.first.0, p.second.0, p.windows))
        .collect();
    assert_eq!(listed, [(1, 3, 3), (1, 2, 2), (2, 1, 2), (2, 3, 2)]);
    assert_eq!(
        (mined.report.windows, mined.report.needed, mined.report.mass),
        (3, 2, Some(1.0))
    );
    // C-Miner, gap 1: 1→2 in the first two segments, 2→3 only in the first (the first 2 of the second segment has 1 behind
    // it), 1→3 in the third, 2→1 in the second, 3→1 in the first.
    let mined = cminer(
        &CMiner {
            window: 4,
            gap: 1,
            length: 2,
            threshold: support(0.0, 1),
            ..CMiner::default()
        },
        &lpns,
    );
    let listed: Vec<_> = mined
        .set
        .pairs()
        .iter()
        .map(|p| (p.first.0, p.second.0, p.windows))
        .collect();
    assert_eq!(listed, [(1, 2, 2), (1, 3, 1), (2, 1, 1), (2, 3, 1), (3, 1, 1)]);
}

proptest! {
    #[test]
    fn windows_of_the_stream_are_the_same_for_all_regions(
        lpns in proptest::collection::vec(0u32..20, 0..300),
        region in 1u32..9,
        window in 2u32..20,
        least in 1u32..4,
    ) {
        let mut expected = ordered_pairs(&lpns, window as usize);
        expected.retain(|_, &mut n| n >= least);
        let threshold = support(0.0, least);
        let region = Some(region);
        let miner = Clustered { region, window, threshold, mass: 1.0, region_pairs: 9999, cut: Cut::Stream };
        prop_assert_eq!(keys(&clustered(&miner, &lpns).set), expected);
    }

    #[test]
    fn one_region_gives_what_exhaustive_counting_gives(
        lpns in proptest::collection::vec(0u32..12, 0..200),
        window in 2u32..20,
        least in 1u32..5,
    ) {
        let mut expected = ordered_pairs(&lpns, window as usize);
        expected.retain(|_, &mut n| n >= least);
        for region in [None, Some(12), Some(u32::MAX)] {
            let miner = Clustered { region, window, threshold: support(0.0, least), ..Clustered::default() };
            prop_assert_eq!(&keys(&clustered(&miner, &lpns).set), &expected);
        }
    }

    #[test]
    fn each_pair_of_regions_gives_what_counting_its_accesses_gives(
        lpns in proptest::collection::vec(0u32..20, 0..300),
        region in 1u32..9,
        window in 2u32..20,
        least in 1u32..4,
    ) {
        let mut expected = BTreeMap::new();
        for a in 0..20 / region + 1 {
            for b in a..20 / region + 1 {
                let of_both: Vec<u32> = lpns.iter().copied().filter(|l| [a, b].contains(&(l / region))).collect();
                let across = |x: u32, y: u32| (x / region, y / region) == (a, b) || (x / region, y / region) == (b, a);
                let counted = ordered_pairs(&of_both, window as usize).into_iter();
                expected.extend(counted.filter(|&((x, y), n)| across(x, y) && n >= least));
            }
        }
        let miner = Clustered { region: Some(region), window, threshold: support(0.0, least), mass: 1.0, region_pairs: 9999, cut: Cut::Filtered };
        let found = keys(&clustered(&miner, &lpns).set);
        // Two regions that never share a window have no mass and are not mined, nor is a region that lies in too few windows.
        let windows = || lpns.chunks(window as usize);
        let of = |w: &[u32], r: u32| w.iter().filter(|&&l| l / region == r).count();
        let often = |r: u32| windows().filter(|w| of(w, r) > 0).count() >= least as usize;
        let chosen = |(x, y): (u32, u32)| {
            let (a, b) = (x / region, y / region);
            let shared = windows().any(|w| if a == b { of(w, a) > 1 } else { of(w, a) > 0 && of(w, b) > 0 });
            shared && often(a) && often(b)
        };
        expected.retain(|&pair, _| chosen(pair));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn c_miner_finds_the_closed_sequences_of_the_definition(
        lpns in proptest::collection::vec(0u32..6, 0..80),
        window in 2u32..14,
        gap in 1u32..8,
        least in 1u32..4,
    ) {
        let mut frequent = sequences(&lpns, window as usize, gap as usize);
        frequent.retain(|_, &mut n| n >= least);
        let closed: BTreeMap<_, _> = frequent
            .iter()
            .filter(|(short, n)| {
                !frequent.iter().any(|(long, m)| m == *n && long.len() > short.len() && contains(long, short))
            })
            .collect();
        let mut pairs = BTreeMap::new();
        for (sequence, &n) in &closed {
            for i in 0..sequence.len() {
                for j in i + 1..sequence.len() {
                    if sequence[i] != sequence[j] {
                        let best = pairs.entry((sequence[i], sequence[j])).or_insert(0);
                        *best = (*n).max(*best);
                    }
                }
            }
        }
        let threshold = support(0.0, least);
        let mined = cminer(&CMiner { window, gap, length: 3, threshold, ..CMiner::default() }, &lpns);
        prop_assert_eq!(keys(&mined.set), pairs);
        prop_assert_eq!(mined.report.sequences, Some(frequent.len() as u64));
        prop_assert_eq!(mined.report.closed, Some(closed.len() as u64));
    }
}

proptest! {
    #[test]
    fn copied_suffixes_give_what_places_give(
        lpns in proptest::collection::vec(0u32..9, 0..200),
        window in 2u32..20,
        gap in 1u32..12,
        length in 2u32..4,
        least in 1u32..4,
        confidence in 0.0..1.0,
    ) {
        let threshold = Threshold { confidence, ..support(0.0, least) };
        let pseudo = CMiner { window, gap, length, threshold, projection: Projection::Pseudo };
        let physical = CMiner { projection: Projection::Physical, ..pseudo.clone() };
        let [places, copies] = [pseudo, physical].map(|miner| cminer(&miner, &lpns));
        prop_assert_eq!(&places.set, &copies.set);
        let no_memory = |report: Report| Report { peak_bytes: 0, peak_with_stream_bytes: 0, ..report };
        prop_assert_eq!(no_memory(places.report), no_memory(copies.report));
    }
}

#[test]
fn memory_by_hand() {
    let peaks = |report: &Report| (report.peak_bytes, report.peak_with_stream_bytes);
    // Windows [1 2 3 1] [2 1 2 3] [1 3], 8 pages of windows in all.
    let lpns = [1, 2, 3, 1, 2, 1, 2, 3, 1, 3];
    let threshold = support(0.0, 1);
    let gaps = CMiner {
        window: 4,
        gap: 1,
        length: 2,
        threshold,
        ..CMiner::default()
    };
    // Pages 3·4, stream 10·4, starts 4·4, places 8·4: 100. Five pairs of 12 and their marks of 1: 65. Growth: support and round of
    // 3 pages, at most 2 pages reached: 32.
    assert_eq!(peaks(&cminer(&gaps, &lpns).report), (197, 237));
    // Instead of 32 bytes of places 12 accesses behind them (3 + 2 + 1, 3 + 2 + 0, 1 + 0) and 8 ends: 80.
    let copied = CMiner {
        projection: Projection::Physical,
        ..gaps.clone()
    };
    assert_eq!(peaks(&cminer(&copied, &lpns).report), (245, 285));
    // Pages 3·4, entries 8·8, ends of rows 3·4, columns 4·4, rows 8·4: 136. One pair of regions 16, four pairs found 48, a counter for
    // each page 12, at most 2 pages reached 8.
    let all = Clustered {
        region: None,
        window: 4,
        threshold: support(0.0, 2),
        ..Clustered::default()
    };
    assert_eq!(peaks(&clustered(&all, &lpns).report), (220, 260));

    // Twice [1 2 3 4], sequences of three. Pages 16, stream 32, starts 20, places 32: 100. Pairs 12, 23, 34 with marks 39, and 13, 24,
    // which are apart, 24. Growth: 16 + 16 + 4, two places of 8 of each page's only follower.
    let lpns = [1, 2, 3, 4, 1, 2, 3, 4];
    let threshold = support(0.0, 2);
    let gaps = CMiner {
        length: 3,
        threshold,
        ..gaps
    };
    assert_eq!(peaks(&cminer(&gaps, &lpns).report), (215, 247));
    // 12 accesses and 8 ends for 8 places; and twice [3 4], what follows 1 2, with 2 ends.
    let copied = CMiner {
        projection: Projection::Physical,
        ..gaps
    };
    assert_eq!(peaks(&cminer(&copied, &lpns).report), (215 + 48 + 24, 247 + 48 + 24));
}

#[test]
fn copied_suffixes_take_half_a_window_for_each_access() {
    // Three windows of 512 pages, each once: the suffixes of a window are 511, 510, …, 0 accesses long.
    let lpns: Vec<u32> = (0..3).flat_map(|_| 0..512).collect();
    let places = CMiner {
        length: 2,
        ..CMiner::default()
    };
    let copies = CMiner {
        projection: Projection::Physical,
        ..places.clone()
    };
    let [places, copies] = [places, copies].map(|miner| cminer(&miner, &lpns).report);
    assert_eq!(copies.peak_bytes - places.peak_bytes, 4 * 3 * 512 * 511 / 2);
}

/// `pairs` planted pairs (i, i + 2^20), each of whose first pages is followed by its second after a few other accesses;
/// half of the accesses go anywhere.
fn planted(pairs: u64, accesses: usize, seed: u64) -> (Vec<u32>, BTreeSet<(u32, u32)>) {
    const APART: u32 = 1 << 20;
    let mut draw = Stream::new(seed, "planted");
    let mut lpns: Vec<u32> = Vec::new();
    while lpns.len() < accesses {
        let a = draw.below(pairs) as u32;
        lpns.push(a);
        for _ in 0..draw.below(4) {
            lpns.push(4_000_000 + draw.below(300_000) as u32);
        }
        lpns.push(a + APART);
    }
    (lpns, (0..pairs as u32).map(|i| (i, i + APART)).collect())
}

#[test]
fn planted_pairs_are_found_and_nothing_else() {
    let (lpns, truth) = planted(2000, 200_000, 1);
    // 391 windows; a pair comes about 28 times, mostly in windows of its own. In windows of the stream, a page is in one of
    // 14, two unrelated ones together in one of 200, so in 2 windows: 12 windows by chance are out of question.
    let stream = Clustered {
        threshold: support(0.03, 2),
        ..Clustered::default()
    };
    // A filtered window of the first pages alone holds 512 of them, so each page is in a quarter of those 111 windows, and two
    // unrelated ones are together in six by chance, every seventh of the first page's. A planted pair is in nearly all of
    // the windows of its first page.
    let threshold = Threshold {
        confidence: 0.75,
        ..support(0.02, 2)
    };
    let filtered = Clustered {
        threshold,
        cut: Cut::Filtered,
        ..Clustered::default()
    };
    let gaps = CMiner {
        threshold: support(0.03, 2),
        ..CMiner::default()
    };
    for found in [
        clustered(&stream, &lpns).set,
        clustered(&filtered, &lpns).set,
        cminer(&gaps, &lpns).set,
    ] {
        let pairs: BTreeSet<_> = keys(&found).into_keys().collect();
        let (missed, strangers) = (truth.difference(&pairs).count(), pairs.difference(&truth).count());
        assert!(
            missed * 10 <= truth.len(),
            "{}: {missed} of {} missed",
            found.about().miner,
            truth.len()
        );
        assert_eq!(strangers, 0, "{}", found.about().miner);
        // On other accesses of the same kind, every second page is announced.
        let (later, _) = planted(2000, 50_000, 2);
        let (coverage, _) = Coverage::of(&found, &reads(&later));
        let seconds = later.iter().filter(|&&lpn| (1 << 20..4_000_000).contains(&lpn)).count() as u64;
        assert!(
            coverage.announced * 100 >= seconds * 90 && coverage.announced <= seconds,
            "{coverage:?}, {seconds}"
        );
        assert!(coverage.seen * 100 >= coverage.pairs * 99, "{coverage:?}");
    }
}

#[test]
fn unrelated_reads_give_no_pairs() {
    let mut draw = Stream::new(3, "unrelated");
    let lpns: Vec<u32> = (0..50_000).map(|_| draw.below(1 << 20) as u32).collect();
    let threshold = support(0.05, 2);
    assert_eq!(
        clustered(
            &Clustered {
                threshold: threshold.clone(),
                ..Clustered::default()
            },
            &lpns
        )
        .report
        .pairs,
        0
    );
    assert_eq!(
        cminer(
            &CMiner {
                threshold,
                ..CMiner::default()
            },
            &lpns
        )
        .report
        .pairs,
        0
    );
}

#[test]
fn the_same_reads_give_the_same_file() {
    let text = |mined: Mined| {
        let mut text = Vec::new();
        mined.set.write(&mut text).unwrap();
        (text, mined.report)
    };
    let (lpns, _) = planted(300, 20_000, 4);
    for _ in 0..2 {
        assert_eq!(
            text(clustered(&Clustered::default(), &lpns)),
            text(clustered(&Clustered::default(), &lpns))
        );
        assert_eq!(
            text(cminer(&CMiner::default(), &lpns)),
            text(cminer(&CMiner::default(), &lpns))
        );
    }
}

#[test]
fn memory_goes_with_the_accesses_and_the_pairs_kept() {
    // Every page meets every other: a table of candidates would hold 4000 · 3999 pairs.
    let mut draw = Stream::new(5, "dense");
    let lpns: Vec<u32> = (0..400_000).map(|_| draw.below(4000) as u32).collect();
    let threshold = Threshold {
        support: 0.0,
        least: 2,
        most: 1000,
        confidence: 0.0,
    };
    let mined = clustered(
        &Clustered {
            threshold,
            ..Clustered::default()
        },
        &lpns,
    );
    assert_eq!(mined.set.pairs().len(), 1000);
    assert!(
        mined.report.counted > 10_000_000 && mined.report.left_out > 1_000_000,
        "{:?}",
        mined.report
    );
    // 12 bytes for each page of each window, and the kept pairs.
    let bound = 12 * 400_000 + (1 << 18);
    assert!(mined.report.peak_bytes < bound, "{:?}", mined.report);
    assert_eq!(mined.report.stream_bytes, 1_600_000);
}

#[test]
fn streams_without_pairs_and_at_the_end_of_the_address_space() {
    for lpns in [&[][..], &[5], &[5, 5, 5], &[u32::MAX - 1, 0], &[0, u32::MAX - 1]] {
        let all = Clustered {
            threshold: support(0.0, 1),
            ..Clustered::default()
        };
        let one = Clustered {
            region: None,
            ..all.clone()
        };
        let expected = ordered_pairs(lpns, 512);
        assert_eq!(keys(&clustered(&all, lpns).set), expected);
        assert_eq!(keys(&clustered(&one, lpns).set), expected, "{lpns:?}");
        let gaps = CMiner {
            threshold: support(0.0, 1),
            ..CMiner::default()
        };
        assert_eq!(keys(&cminer(&gaps, lpns).set), expected);
    }
}

#[test]
fn parameters_out_of_range_are_refused_and_a_miner_can_be_stopped() {
    let refused = |miner: Clustered| {
        miner
            .mine(&reads(&[1, 2]), "", &mut |_| Ok(()))
            .unwrap_err()
            .to_string()
    };
    let default = Clustered::default;
    assert!(
        refused(Clustered {
            region: Some(0),
            ..default()
        })
        .contains("region of 0 units")
    );
    assert!(refused(Clustered { window: 1, ..default() }).contains("window 1: expected 2 to 65536"));
    assert!(
        refused(Clustered {
            window: 70_000,
            ..default()
        })
        .contains("window 70000")
    );
    assert!(
        refused(Clustered {
            mass: f64::NAN,
            ..default()
        })
        .contains("mass NaN")
    );
    assert!(
        refused(Clustered {
            region_pairs: 0,
            ..default()
        })
        .contains("region_pairs 0")
    );
    assert!(
        refused(Clustered {
            threshold: support(1.5, 1),
            ..default()
        })
        .contains("support 1.5")
    );
    assert!(
        refused(Clustered {
            threshold: support(0.5, 0),
            ..default()
        })
        .contains("least 0")
    );
    let refused = |miner: CMiner| {
        miner
            .mine(&reads(&[1, 2]), "", &mut |_| Ok(()))
            .unwrap_err()
            .to_string()
    };
    assert!(
        refused(CMiner {
            gap: 0,
            ..CMiner::default()
        })
        .contains("gap 0")
    );
    assert!(
        refused(CMiner {
            length: 4,
            ..CMiner::default()
        })
        .contains("length 4")
    );
    let mut stop = |_: f64| -> Result<()> { Err(ftlab_core::Error::Interrupted) };
    assert_eq!(
        Clustered::default().mine(&reads(&[1, 2]), "", &mut stop),
        Err(ftlab_core::Error::Interrupted)
    );
}
