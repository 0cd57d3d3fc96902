//! The dedup policies by what they promise: against a naive account, by hand, and in closed form.

use ftlab_core::{IoContext, Lpn, OpKind, PolicySpec, Stream, flags};
use ftlab_ftl::{Counting, Ftl, HostRequest, Overrides, TenantsBy, Ticket};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::Drives;
use ftlab_testkit::{Case, Late};
use rustc_hash::{FxHashMap, FxHashSet};

fn drive_of(units: u32, dedup: &str) -> Ftl<Counting> {
    drive_with(4 + units / 16, units, dedup)
}

fn drive_with(blocks: u32, units: u32, dedup: &str) -> Ftl<Counting> {
    let mut case = Case::plain(blocks, 32, 1);
    case.config.logical_units = units;
    case.config.dedup = PolicySpec::parse(dedup).expect("a spec of the test's own");
    case.config.buffer.power_loss_protected = true;
    case.build(Overrides::default()).expect("a drive with room")
}

fn write_by(ftl: &mut Ftl<Counting>, lpn: u32, contents: &[u64], pieces: u32, context: IoContext<'_>) {
    write_behind(ftl, lpn, contents, pieces, 0, context);
}

/// The same but for the first `skip` pieces of the first unit, which are not written and have no ids.
fn write_behind(ftl: &mut Ftl<Counting>, lpn: u32, contents: &[u64], pieces: u32, skip: u32, context: IoContext<'_>) {
    let unit_bytes = ftl.layout.geometry.unit_bytes;
    let context = IoContext {
        contents,
        content_bytes: unit_bytes / pieces,
        ..context
    };
    let request = HostRequest {
        context: &context,
        head_skip: skip * unit_bytes / pieces,
        ..HostRequest::whole(OpKind::Write, Lpn(lpn), (contents.len() as u32 + skip) / pieces)
    };
    ftl.admit(&request, Ticket::NONE);
}

fn write(ftl: &mut Ftl<Counting>, lpn: u32, content: u64) {
    write_by(ftl, lpn, &[content], 1, IoContext::NONE);
}

fn write_of(ftl: &mut Ftl<Counting>, lpn: u32, content: u64, pc: u64) {
    let context = IoContext { pc, ..IoContext::NONE };
    write_by(ftl, lpn, &[content], 1, context);
}

fn quarters(ftl: &mut Ftl<Counting>, lpn: u32, contents: [u64; 4]) {
    write_by(ftl, lpn, &contents, 4, IoContext::NONE);
}

fn request(ftl: &mut Ftl<Counting>, op: OpKind, lpn: u32, units: u32) {
    ftl.admit(&HostRequest::whole(op, Lpn(lpn), units), Ticket::NONE);
}

fn figure(ftl: &Ftl<Counting>, name: &str) -> u64 {
    let reports = ftl.policy_reports();
    let (_, report) = reports.iter().find(|(role, _)| *role == "dedup").expect("it reports");
    let found = report.iter().find(|(key, _)| *key == name);
    found.unwrap_or_else(|| panic!("{name} is not in {report:?}")).1 as u64
}

/// Units that flash holds.
fn valid(ftl: &Ftl<Counting>) -> u64 {
    ftl.units.valid_counts().map(u64::from).sum()
}

/// Which contents live, and where: what a table without any limit must find.
#[derive(Default)]
struct Live {
    of: FxHashMap<u32, u64>,
    references: FxHashMap<u64, u32>,
}

impl Live {
    fn gone(&mut self, lpn: u32) {
        if let Some(content) = self.of.remove(&lpn) {
            let left = self.references.get_mut(&content).expect("it has been written");
            *left -= 1;
            if *left == 0 {
                self.references.remove(&content);
            }
        }
    }

    /// Whether the content lives somewhere, so that nothing is programmed.
    fn write(&mut self, lpn: u32, content: u64) -> bool {
        let lives = self.references.contains_key(&content);
        self.gone(lpn);
        self.of.insert(lpn, content);
        *self.references.entry(content).or_default() += 1;
        lives
    }
}

/// Of all members without a limit, and of CAFTL without what lets units pass.
const UNLIMITED: [&str; 6] = [
    "page_dedup:entries=0",
    "page_dedup:entries=0,eviction=lru",
    "page_dedup:entries=0,eviction=two_level",
    "ca_ssd:entries=0",
    "caftl:entries=0,sampling=false,switch=false,out_of_line=false",
    "pcdedup:entries=0,blacklist=false",
];

#[test]
fn an_unlimited_table_programs_what_does_not_live() {
    for dedup in UNLIMITED {
        let mut ftl = drive_of(200, dedup);
        let (mut live, mut random) = (Live::default(), Stream::new(1, "contents"));
        let mut programs = 0;
        for _ in 0..5000 {
            let lpn = random.below(200) as u32;
            if random.below(20) == 0 {
                request(&mut ftl, OpKind::Trim, lpn, 1);
                live.gone(lpn);
                continue;
            }
            let content = random.below(90);
            programs += u64::from(!live.write(lpn, content));
            write(&mut ftl, lpn, content);
        }
        assert_eq!(ftl.counts.data_programs(), programs, "{dedup}");
        let kept: FxHashSet<u64> = live.of.values().copied().collect();
        assert_eq!(figure(&ftl, "fingerprints"), kept.len() as u64, "{dedup}");
        assert_eq!(valid(&ftl), kept.len() as u64, "{dedup}");
        // Whoever refers to a value last takes its page along.
        request(&mut ftl, OpKind::Trim, 0, 200);
        assert_eq!((valid(&ftl), figure(&ftl, "fingerprints")), (0, 0), "{dedup}");
    }
}

/// A request of one whole unit takes a way of its own, unless tenants are counted.
#[test]
fn the_short_way_of_one_unit_leads_where_the_long_one_does() {
    for dedup in [
        "page_dedup:entries=30",
        "caftl",
        "ca_ssd",
        "pcdedup:trial=100",
        "finededup",
    ] {
        for mapping in ["page", "dftl"] {
            let drive = |tenants| {
                let mut case = Case::plain(24, 32, 1);
                case.config.logical_units = 200;
                case.config.dedup = PolicySpec::parse(dedup).expect("a spec of the test's own");
                case.config.mapping = PolicySpec::named(mapping);
                case.config.map_cache_bytes = 600;
                (case.config.gc.hard, case.config.gc.soft) = (6, 6);
                case.build(Overrides {
                    tenants,
                    ..Overrides::default()
                })
                .expect("a drive with room")
            };
            let (mut short, mut long) = (drive(None), drive(Some(TenantsBy::Pid)));
            let mut random = Stream::new(3, "ways");
            for step in 0..4000 {
                let (lpn, content) = (random.below(200) as u32, 1 + random.below(60) * random.below(20));
                let (op, pc) = (random.below(8), random.below(5));
                for ftl in [&mut short, &mut long] {
                    match op {
                        0 => request(ftl, OpKind::Trim, lpn, 1),
                        1 => request(ftl, OpKind::Read, lpn, 1),
                        2 => request(ftl, OpKind::Write, lpn, 1),
                        _ => write_of(ftl, lpn, content, pc),
                    }
                }
                let what = format!("{dedup} on {mapping}, step {step}");
                assert_eq!(short.counts, long.counts, "{what}");
                assert_eq!((short.tick, &short.record.map), (long.tick, &long.record.map), "{what}");
            }
            let (asked, what) = (short.counts.dedup_asked, format!("{dedup} on {mapping}"));
            assert_eq!(short.policy_reports(), long.policy_reports(), "{what}");
            assert!(asked > 1000, "{what} has been asked {asked} times");
        }
    }
}

/// With sampling and the pre-hash some are found late; when there has been time for all, as little is kept as with no limit.
#[test]
fn caftl_merges_out_of_line_what_it_let_pass() {
    let mut ftl = drive_of(400, "caftl:entries=0,idle_units=1");
    let mut random = Stream::new(2, "contents");
    for _ in 0..60 {
        let contents: Vec<u64> = (0..8).map(|_| 7919 * (1 + random.below(60))).collect();
        write_by(&mut ftl, random.below(392) as u32, &contents, 1, IoContext::NONE);
    }
    let passed = figure(&ftl, "skipped_by_sample");
    assert!(passed > 20, "{passed} units passed by their sample");
    // Each write is an idle moment.
    (0..100).for_each(|_| write(&mut ftl, 399, 1));
    let held: FxHashSet<u64> = (0..400).filter_map(|lpn| content_of(&ftl, lpn)).collect();
    assert_eq!(valid(&ftl), held.len() as u64);
    assert!(figure(&ftl, "merged") > 10, "{} merges", figure(&ftl, "merged"));
}

/// Of 68 units that wait, LPN 0 held the oldest and was overwritten: what it holds now is the youngest. An idle moment after 72 units reads
/// the 64 oldest (LPNs 2 to 65); of these the last is in the table with the next moment only.
#[test]
fn what_is_overwritten_while_it_waits_waits_anew() {
    let found = |content: u64| {
        let mut ftl = drive_of(100, "caftl:entries=0,crc=false,switch=false,idle_units=72");
        let first: Vec<u64> = (1..=70).collect();
        // Of each request the last unit is the sample, and the others wait.
        write_by(&mut ftl, 0, &first, 1, IoContext::NONE);
        write_by(&mut ftl, 0, &[101, 102], 1, IoContext::NONE);
        assert_eq!(figure(&ftl, "skipped_by_sample"), 70);
        write(&mut ftl, 90, content);
        assert_eq!(figure(&ftl, "examined"), 64);
        ftl.counts.dedup_hits == 1
    };
    let contents = [3, 65, 66, 67, 69, 101];
    assert_eq!(contents.map(found), [true, true, false, false, false, false]);
}

/// The stamp of an LPN's content.
fn content_of(ftl: &Ftl<Counting>, lpn: u32) -> Option<u64> {
    Some(u64::from(ftl.stamp(Lpn(lpn)))).filter(|&stamp| stamp > 0)
}

/// Of a request of unique units the sample alone is hashed; of one whose sample is a duplicate, all are.
#[test]
fn a_sample_speaks_for_its_request() {
    let mut ftl = drive_of(100, "caftl:entries=0,crc=false,switch=false,out_of_line=false");
    // The greatest low half of an id is that of unit 2.
    write_by(&mut ftl, 0, &[5, 6, 90, 8], 1, IoContext::NONE);
    assert_eq!((figure(&ftl, "hashes"), figure(&ftl, "skipped_by_sample")), (1, 3));
    assert_eq!(figure(&ftl, "fingerprints"), 1);
    write_by(&mut ftl, 10, &[5, 90, 7], 1, IoContext::NONE);
    assert_eq!((figure(&ftl, "hashes"), ftl.counts.dedup_hits), (4, 1));
    assert_eq!(figure(&ftl, "fingerprints"), 3);
    write(&mut ftl, 20, 7);
    assert_eq!(ftl.counts.dedup_hits, 2);
}

/// The CRC keeps nothing from being found, and spares the path of a write the hash of what is unique.
#[test]
fn the_pre_hash_finds_what_the_hash_finds() {
    let drive = |crc: bool| {
        let dedup = format!("caftl:entries=20,sampling=false,switch=false,out_of_line=false,crc={crc}");
        let mut ftl = drive_of(300, &dedup);
        let mut random = Stream::new(3, "contents");
        (0..4000).for_each(|_| {
            let (lpn, content) = (random.below(300) as u32, random.below(40));
            write(&mut ftl, lpn, content);
        });
        ftl
    };
    let (with, without) = (drive(true), drive(false));
    assert_eq!(with.counts.dedup_hits, without.counts.dedup_hits);
    let skipped = figure(&with, "skipped_by_crc");
    assert!(skipped > 100 && skipped < figure(&with, "hashes"), "{skipped}");
}

#[test]
fn a_bounded_table_is_bounded() {
    for dedup in [
        "page_dedup:entries=7",
        "page_dedup:entries=7,eviction=lru",
        "page_dedup:entries=7,eviction=two_level",
        "ca_ssd:entries=7",
        "caftl:entries=7,idle_units=3",
        "pcdedup:entries=7,trial=50",
        "pcdedup:entries=7,eviction=two_level",
        "finededup:entries=7",
    ] {
        let mut ftl = drive_of(100, dedup);
        let mut random = Stream::new(4, "contents");
        for step in 0..3000 {
            let content = random.below(30);
            let contents: Vec<u64> = (0..4).map(|quarter| 4 * content + quarter).collect();
            let context = IoContext {
                pc: content % 3,
                ..IoContext::NONE
            };
            write_by(&mut ftl, random.below(100) as u32, &contents, 4, context);
            assert!(figure(&ftl, "fingerprints") <= 7, "{dedup}, write {step}");
        }
        assert!(figure(&ftl, "evicted") > 100, "{dedup}");
    }
}

/// Each pair is written four times: between two of them 1,600 units are written. A table of 1,700 finds all of them unless those that
/// have been found often stay for ever.
#[test]
fn two_levels_find_what_repeats_a_few_times() {
    let found = |dedup: &str| {
        let mut ftl = drive_of(16_000, dedup);
        let mut lpn = 0;
        // At each step one pair is new, and those of 400, 800 and 1,200 steps before are written again.
        for step in 0..4000u64 {
            for back in [0, 400, 800, 1200] {
                if step >= back {
                    write(&mut ftl, lpn, step - back);
                    lpn += 1;
                }
            }
        }
        ftl.counts.dedup_hits as f64
    };
    let all = found("page_dedup:entries=0");
    let two_level = found("page_dedup:entries=1700,eviction=two_level,second=0.75");
    let count = found("page_dedup:entries=1700,eviction=count");
    assert!(two_level >= 0.9 * all, "{two_level} of {all}");
    assert!(count < 0.7 * all, "{count} of {all}");
}

/// Context 1 repeats itself, context 2 never does.
#[test]
fn a_context_without_duplicates_is_no_longer_hashed() {
    let mut ftl = drive_of(4000, "pcdedup:entries=200,trial=100,halve=0,reexamine=2000");
    let mut random = Stream::new(5, "contents");
    let mut step = |ftl: &mut Ftl<Counting>, n: u32| {
        write_of(ftl, n % 4000, 1_000_000 + u64::from(n), 2);
        write_of(ftl, (n + 2000) % 4000, random.below(50), 1);
    };
    (0..100).for_each(|n| step(&mut ftl, n));
    assert_eq!((figure(&ftl, "blacklisted"), figure(&ftl, "hashes")), (1, 200));
    (100..1000).for_each(|n| step(&mut ftl, n));
    assert_eq!(
        (figure(&ftl, "hashes"), figure(&ftl, "skipped_by_context")),
        (1100, 900)
    );
    // 2,000 host units after that it has another trial, and fails again.
    (1000..1200).for_each(|n| step(&mut ftl, n));
    assert_eq!(figure(&ftl, "blacklistings"), 2);
    assert_eq!(figure(&ftl, "hashes"), 1100 + 200 + 100);
}

/// Unique data of one context drive nothing of another's out of the table.
#[test]
fn the_context_that_is_worth_least_gives_up_its_fingerprints() {
    let hits = |dedup: &str| {
        let mut ftl = drive_of(4000, dedup);
        for n in 0..2000u32 {
            (0..5).for_each(|i| write_of(&mut ftl, (5 * n + i) % 3000, u64::from(1_000_000 + 5 * n + i), 2));
            // 150 values in turn, each written again after 900 units.
            write_of(&mut ftl, 3000 + n % 1000, u64::from(n % 150), 1);
        }
        ftl.counts.dedup_hits
    };
    let contexts = hits("pcdedup:entries=200,blacklist=false");
    let lru = hits("page_dedup:entries=200,eviction=lru");
    assert!(contexts >= 1800, "{contexts} of 1,850");
    assert_eq!(lru, 0);
}

/// A log whose data others find is worth something, though it writes no duplicates itself.
#[test]
fn what_others_find_is_to_the_credit_of_who_wrote_it() {
    let mut ftl = drive_of(4000, "pcdedup:entries=0,trial=100,halve=0");
    for n in 0..1000u32 {
        write_of(&mut ftl, n, u64::from(n), 1);
        write_of(&mut ftl, 2000 + n, u64::from(n), 2);
    }
    assert_eq!((figure(&ftl, "blacklistings"), ftl.counts.dedup_hits), (0, 1000));
}

/// The same two writers, told apart by each thing that may identify a context: who repeats nothing is known by that alone.
#[test]
fn contexts_are_told_apart_by_what_was_asked_for() {
    let all = |by: &str, number: u16| IoContext {
        // Of all else the writers have the same.
        pc: if by == "pc" { u64::from(number) } else { 9 },
        label: Some(if by == "label" { number } else { 9 }),
        pid: Some(if by == "pid" { u32::from(number) } else { 9 }),
        stream: if by == "stream" { number } else { 9 },
        volume: if by == "volume" { number } else { 9 },
        ..IoContext::NONE
    };
    let identities = ["pc", "label", "pid", "stream", "volume"];
    for by in identities {
        for differ in identities {
            let mut ftl = drive_of(1000, &format!("pcdedup:entries=0,by={by},trial=100,rate=0.6,halve=0"));
            for n in 0..200u32 {
                write_by(&mut ftl, n, &[1_000_000 + u64::from(n)], 1, all(differ, 0));
                write_by(&mut ftl, 500 + n, &[1], 1, all(differ, 1));
            }
            let figures = ["contexts", "hashes", "skipped_by_context"].map(|name| figure(&ftl, name));
            // Together they write a duplicate in two units, which is too few here.
            let expected = if by == differ { [2, 300, 100] } else { [1, 100, 300] };
            assert_eq!(figures, expected, "by {by}, which differ by {differ}");
        }
    }
}

#[test]
fn hinted_units_are_not_shared() {
    let mut ftl = drive_of(100, "pcdedup:skip_metadata=true,skip_labels=3-5");
    let marked = |flags, label| IoContext {
        flags,
        label,
        ..IoContext::NONE
    };
    let contexts = [
        marked(0, None),
        marked(flags::METADATA, None),
        marked(0, Some(3)),
        marked(0, Some(5)),
        marked(0, Some(4)),
    ];
    for (lpn, context) in contexts.into_iter().enumerate() {
        write_by(&mut ftl, lpn as u32, &[9], 1, context);
    }
    assert_eq!((ftl.counts.dedup_hits, figure(&ftl, "skipped_by_hint")), (1, 3));
    assert_eq!(valid(&ftl), 4);
}

#[test]
fn unique_data_cost_finededup_what_they_cost_the_plain_drive() {
    let drive = |dedup: &str| {
        let mut ftl = drive_of(600, dedup);
        let mut random = Stream::new(6, "addresses");
        for n in 0..6000u64 {
            let lpn = random.below(600) as u32;
            quarters(&mut ftl, lpn, [4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3]);
            request(&mut ftl, OpKind::Read, random.below(600) as u32, 1);
        }
        let hashed = (ftl.counts.dedup_asked, ftl.counts.dedup_work_ns);
        (ftl.counts.dedup_asked, ftl.counts.dedup_work_ns) = (0, 0);
        (ftl.counts, ftl.tick, hashed)
    };
    let (fine, plain) = (drive("finededup"), drive("none"));
    assert_eq!((fine.0, fine.1), (plain.0, plain.1));
    // Four fingerprints of 10 us for each unit.
    assert_eq!((fine.2, plain.2), ((6000, 6000 * 40_000), (0, 0)));
}

/// A trace with an id a page: what is equal whole is shared, nothing else, and a note says so.
#[test]
fn units_known_by_one_id_are_shared_whole() {
    let mut ftl = drive_of(100, "finededup");
    for (lpn, content) in [7, 8, 7, 9, 8].into_iter().enumerate() {
        write(&mut ftl, lpn as u32, content);
    }
    assert_eq!((valid(&ftl), ftl.counts.dedup_hits), (3, 2));
    assert_eq!((figure(&ftl, "known_whole"), figure(&ftl, "four_found")), (5, 2));
    assert!(ftl.dedup_note().expect("it says so").starts_with("5 of 5 units"));
    let mut ftl = drive_of(100, "finededup");
    quarters(&mut ftl, 0, [1, 2, 3, 4]);
    assert_eq!(ftl.dedup_note(), None);
}

/// Two units of which two quarters each are known: their four new ones share a page; each is read from two.
#[test]
fn new_chunks_of_two_units_fill_one_pack() {
    let mut ftl = drive_of(100, "finededup:read_buffer_kib=0");
    quarters(&mut ftl, 0, [1, 2, 3, 4]);
    quarters(&mut ftl, 1, [1, 2, 13, 14]);
    quarters(&mut ftl, 2, [21, 22, 23, 24]);
    quarters(&mut ftl, 3, [31, 2, 33, 4]);
    assert_eq!(ftl.counts.data_programs(), 3, "two whole units and one pack");
    assert_eq!((figure(&ftl, "in_one_pack"), figure(&ftl, "two_found")), (2, 2));
    let before = ftl.counts.data_page_reads;
    request(&mut ftl, OpKind::Read, 1, 1);
    request(&mut ftl, OpKind::Read, 0, 1);
    assert_eq!(ftl.counts.data_page_reads - before, 2 + 1);
    // A unit that is there as a whole refers to it as a whole; one in another order does not.
    quarters(&mut ftl, 4, [21, 22, 23, 24]);
    quarters(&mut ftl, 5, [22, 21, 23, 24]);
    assert_eq!((ftl.counts.data_programs(), figure(&ftl, "four_found")), (3, 2));
    assert_eq!(ftl.counts.dedup_hits, 2);
}

/// Three quarters that fit nowhere else begin another pack; without packing the four of a unit are split.
#[test]
fn packing_keeps_the_chunks_of_a_unit_together() {
    let reads = |packing: bool| {
        let mut ftl = drive_of(100, &format!("finededup:packing={packing},read_buffer_kib=0"));
        quarters(&mut ftl, 0, [1, 2, 3, 4]);
        quarters(&mut ftl, 1, [1, 12, 13, 14]);
        quarters(&mut ftl, 2, [1, 2, 23, 24]);
        quarters(&mut ftl, 3, [1, 2, 33, 34]);
        quarters(&mut ftl, 4, [41, 42, 43, 44]);
        quarters(&mut ftl, 5, [1, 2, 3, 54]);
        let each = (0..6).map(|lpn| {
            let before = ftl.counts.data_page_reads;
            request(&mut ftl, OpKind::Read, lpn, 1);
            ftl.counts.data_page_reads - before
        });
        let each: Vec<u64> = each.collect();
        (each, ftl.counts.data_programs())
    };
    // Units 0 and 4 whole; 1 and 5, 2 and 3 together.
    assert_eq!(reads(true), (vec![1, 2, 2, 2, 1, 2], 4));
    // 0; 1 with the first of 2; the other of 2, 3 and one of 4; three of 4 and that of 5.
    assert_eq!(reads(false), (vec![1, 2, 3, 2, 2, 2], 4));
}

/// The example of section 5.3.2: the buffer has room for eight chunks, and four of them are kept free. Of three new chunks two go
/// beside the two that wait, and the third waits; with room for twelve all three wait together.
#[test]
fn a_buffer_keeps_room_for_a_whole_unit() {
    let programs = |packs: u32| {
        let mut ftl = drive_of(100, &format!("finededup:chunk_buffer_kib={packs}"));
        quarters(&mut ftl, 0, [1, 2, 3, 4]);
        quarters(&mut ftl, 1, [1, 2, 13, 14]);
        quarters(&mut ftl, 2, [21, 22, 23, 24]);
        quarters(&mut ftl, 3, [1, 32, 33, 34]);
        (ftl.counts.data_programs(), figure(&ftl, "in_several_packs"))
    };
    // Of 512 bytes a unit.
    assert_eq!([programs(1), programs(2)], [(3, 1), (2, 0)]);
}

/// A chunk that is read again is in the chunk read buffer, until it is gone.
#[test]
fn chunks_that_were_read_are_not_read_again() {
    let mut ftl = drive_of(100, "finededup:read_buffer_kib=1,chunk_buffer_kib=1");
    quarters(&mut ftl, 0, [1, 2, 3, 4]);
    quarters(&mut ftl, 1, [1, 2, 13, 14]);
    quarters(&mut ftl, 2, [3, 4, 23, 24]);
    let mut pages = |lpn| {
        let before = ftl.counts.data_page_reads;
        request(&mut ftl, OpKind::Read, lpn, 1);
        ftl.counts.data_page_reads - before
    };
    // 1 KiB holds eight quarters of 512 bytes.
    assert_eq!([pages(1), pages(1), pages(2), pages(1), pages(2)], [2, 0, 2, 0, 0]);
    assert_eq!(pages(0), 1, "units stored whole are not kept there");
}

/// A program that copies reads each unit before it writes it elsewhere; the table holds a tenth of what is copied.
#[test]
fn a_fingerprint_that_had_to_leave_comes_back_when_its_page_is_read() {
    let copied = |dedup: &str| {
        let mut ftl = drive_of(4000, dedup);
        (0..1000).for_each(|lpn| write_of(&mut ftl, lpn, u64::from(lpn) + 1, 1));
        for lpn in 0..1000 {
            request(&mut ftl, OpKind::Read, lpn, 1);
            write_of(&mut ftl, 2000 + lpn, u64::from(lpn) + 1, 2);
        }
        ftl
    };
    for rule in [
        "page_dedup:eviction=lru",
        "page_dedup:eviction=two_level",
        "pcdedup:eviction=lru,blacklist=false",
    ] {
        let without = copied(&format!("{rule},entries=100"));
        let with = copied(&format!("{rule},entries=100,prefetch=true"));
        assert_eq!((without.counts.dedup_hits, with.counts.dedup_hits), (0, 1000), "{rule}");
        // The hundred newest were there still, but not any more when their turn came: others had come back.
        let back = figure(&with, "prefetched");
        assert!((900..=1000).contains(&back), "{rule}: {back}");
        assert!(figure(&with, "fingerprints") <= 100);
    }
}

/// What has been overwritten does not come back, and what has become a value comes back as that.
#[test]
fn a_fingerprint_comes_back_for_what_lives() {
    let mut ftl = drive_of(100, "page_dedup:entries=1,eviction=lru,prefetch=true");
    write(&mut ftl, 0, 7);
    write(&mut ftl, 1, 7);
    write(&mut ftl, 2, 8);
    // LPN 0 reads a value now, whose fingerprint left for that of 8.
    request(&mut ftl, OpKind::Read, 0, 1);
    write(&mut ftl, 3, 7);
    assert_eq!((ftl.counts.dedup_hits, figure(&ftl, "prefetched")), (2, 1));
    // 8 had to leave; LPN 2 holds something else when it is read.
    write(&mut ftl, 2, 9);
    request(&mut ftl, OpKind::Read, 2, 1);
    write(&mut ftl, 4, 8);
    assert_eq!((ftl.counts.dedup_hits, figure(&ftl, "prefetched")), (2, 1));
}

/// Units that passed unhashed and lie elsewhere as well cost a collection nothing but their reads.
#[test]
fn caftl_merges_what_a_collection_would_move() {
    let run = |out_of_line: bool| {
        let dedup = format!(
            "caftl:entries=0,sampling=true,crc=false,switch=false,idle_units=1000000000,out_of_line={out_of_line}"
        );
        let mut ftl = drive_of(512, &dedup);
        let mut random = Stream::new(5, "contents");
        for _ in 0..30_000 {
            // The first of two units is always new and has the greatest first bytes, so the second one passes unhashed.
            let pair = [random.below(1 << 20) | 0xFFF0_0000, 1 + random.below(100)];
            write_by(&mut ftl, 2 * random.below(256) as u32, &pair, 1, IoContext::NONE);
        }
        ftl
    };
    let (with, without) = (run(true), run(false));
    let merged = figure(&with, "merged_in_collections");
    assert!(merged > 500, "{merged}");
    assert_eq!(figure(&with, "merged"), 0);
    let programs = [&with, &without].map(|ftl| ftl.counts.total_programmed());
    assert!(programs[0] + merged / 2 < programs[1], "{programs:?}, {merged} merged");
}

/// Packs of which something has died are moved as they are; only where nothing else frees a slot they are put together.
#[test]
fn packs_are_put_together_if_that_is_asked_for() {
    let run = |repack: bool| {
        let mut ftl = drive_of(256, &format!("finededup:entries=0,chunk_buffer_kib=4,repack={repack}"));
        let mut random = Stream::new(6, "contents");
        let mut new = 1000;
        for _ in 0..6000 {
            // One known chunk and three new ones: a pack of three quarters' new chunks each.
            let contents = std::array::from_fn(|at| {
                new += 1;
                if at == 0 { 1 + random.below(4) } else { new }
            });
            quarters(&mut ftl, random.below(256) as u32, contents);
        }
        ftl
    };
    let (with, without) = (run(true), run(false));
    assert!(valid(&with) < valid(&without), "{} {}", valid(&with), valid(&without));
    assert!(!with.end_of_life && !without.end_of_life);
}

/// A look-up for a merge may lead to a collection, which merges units as well: on a small paged map that happens often.
#[test]
fn both_ways_of_merging_go_together_on_a_paged_map() {
    for seed in 0..20 {
        let mut case = Case::plain(40, 32, 1);
        case.config.logical_units = 940;
        case.config.dedup = PolicySpec::parse("caftl:entries=0,idle_units=150").expect("a spec of the test's own");
        case.config.mapping = PolicySpec::parse("dftl").expect("a spec of the test's own");
        case.config.map_cache_bytes = 64;
        case.config.gc.hard = 5;
        let mut ftl: Ftl<Counting> = case.build(Overrides::default()).expect("a drive with room");
        let mut random = Stream::new(seed, "contents");
        for _ in 0..4000 {
            let units = 1 + random.below(6);
            let mut of_a_unit = || {
                // One in three repeats.
                let values = if random.below(3) == 0 { 3000 } else { 1 << 30 };
                7919 * (1 + random.below(values))
            };
            let contents: Vec<u64> = (0..units).map(|_| of_a_unit()).collect();
            write_by(
                &mut ftl,
                random.below(940 - units) as u32,
                &contents,
                1,
                IoContext::NONE,
            );
        }
        let merged = ["merged", "merged_in_collections"].map(|name| figure(&ftl, name));
        assert!(merged.iter().all(|&units| units > 20), "{merged:?}");
    }
}

/// Without protected memory the journal of a drive that shares chunks may be longer than what collection keeps free: a collection
/// writes what is new of it, and does not begin it anew.
#[test]
fn a_long_journal_does_not_end_a_small_drive() {
    let adapt = |case: &mut Case| {
        let spec = |text: &str| PolicySpec::parse(text).expect("a spec of the test's own");
        let mut geometry = case.layout.geometry.clone();
        (geometry.channels, geometry.ways, geometry.dies, geometry.planes) = (1, 1, 1, 1);
        (geometry.blocks, geometry.pages) = (40, 6);
        (geometry.page_bytes, geometry.unit_bytes) = (512, 512);
        let order = ftlab_ftl::allocation::plane_order(&case.config.allocation).expect("the case's own");
        case.layout =
            ftlab_core::Layout::new(geometry, ftlab_core::ReclaimKind::Block, order).expect("the case's own, larger");
        case.config.dedup = spec("finededup:entries=9,packing=false");
        case.config.placement = spec("warcip:clusters=3,period=2");
        case.config.buffer.policy = spec("write_back:order=lpn");
        case.config.buffer.capacity_units = 5;
        case.config.gc.hard = case.config.gc.hard.min(2);
        case.config.checkpoint_units = 134;
        case.config.logical_units = case.layout.slots() / 7;
    };
    let wish = Wish::stepped(2).cut(Some(false));
    Drives::new(6_000_000..6_000_300, wish, 200).run::<Late>(adapt, |_| Overrides::default(), |_| {});
}

/// A loaded drive shares what it stored before it was saved, as one does that was never saved, and a checked run knows what that is:
/// every member, as the catalogue has it and with options.
#[test]
fn what_was_stored_before_a_drive_was_saved_is_shared_afterwards() {
    let contents: Vec<u64> = (1..=8).map(|content| 7919 * content).collect();
    let go_on = |ftl: &mut Ftl<Counting>| {
        ftl.reset_counts();
        for first in [20, 40, 60] {
            write_by(ftl, first, &contents, 1, IoContext::NONE);
            (0..8).for_each(|_| write(ftl, 199, 1));
            request(ftl, OpKind::Read, 0, 80);
        }
        ftl.counts.dedup_hits
    };
    let mut known: FxHashMap<String, u64> = FxHashMap::default();
    for dedup in ftlab_testkit::case::dedups(4) {
        let spec = dedup.show();
        let mut before = drive_of(200, &spec);
        write_by(&mut before, 0, &contents, 1, IoContext::NONE);
        write_by(&mut before, 8, &contents[..4], 1, IoContext::NONE);
        before.shut_down();
        let mut saved = Vec::new();
        before.save(&mut saved).expect("memory takes everything");
        let mut after = drive_of(200, &spec);
        after.load(&mut saved.as_slice()).expect("what was saved");
        after.resume();
        before.resume();
        let shared = go_on(&mut after);
        assert_eq!(shared, go_on(&mut before), "{spec}");
        // What it shares beyond one that has nothing to remember.
        let new = go_on(&mut drive_of(200, &spec));
        *known.entry(dedup.name).or_default() += shared.saturating_sub(new);
    }
    for name in ftlab_ftl::dedup::catalogue().names() {
        assert!(name == "none" || known[name] > 0, "{name} has shared nothing of before");
    }
}

/// Units of pieces that are shared before and after a drive is saved: every read of a checked run finds what was written last.
#[test]
fn chunks_that_were_stored_before_a_drive_was_saved_are_shared_afterwards() {
    for (seed, dedup) in [
        "finededup:entries=0,chunk_buffer_kib=16",
        "finededup:entries=0,chunk_buffer_kib=16,repack=false",
        "finededup:entries=30,packing=false",
    ]
    .into_iter()
    .enumerate()
    {
        let mut draw = Stream::new(seed as u64, "saved chunks");
        let mut ftl = drive_with(11, 200, dedup);
        let (mut hits, mut moved) = (0, 0);
        for _ in 0..12 {
            for _ in 0..800 {
                let pieces = std::array::from_fn(|_| 7919 * (1 + draw.below(25)));
                let among = if draw.below(6) == 0 { 200 } else { 60 };
                let lpn = draw.below(among) as u32;
                match draw.below(10) {
                    0 => request(&mut ftl, OpKind::Trim, lpn, 1),
                    1..7 => quarters(
                        &mut ftl,
                        lpn,
                        [
                            pieces[0],
                            1 << 40 | draw.next_u64() >> 30,
                            pieces[1],
                            draw.next_u64() >> 30,
                        ],
                    ),
                    7 => quarters(
                        &mut ftl,
                        lpn,
                        [100, 101, 102, 103].map(|piece| 7919 * (piece + 4 * draw.below(3))),
                    ),
                    _ => quarters(&mut ftl, lpn, pieces),
                }
                request(&mut ftl, OpKind::Read, lpn, 1);
            }
            request(&mut ftl, OpKind::Read, 0, 200);
            (hits, moved) = (hits + ftl.counts.dedup_hits, moved + ftl.counts.programmed[1]);
            ftl.shut_down();
            let mut saved = Vec::new();
            ftl.save(&mut saved).expect("memory takes everything");
            ftl = drive_with(11, 200, dedup);
            ftl.load(&mut saved.as_slice()).expect("what was saved");
            ftl.resume();
            ftl.check().expect("a sound drive");
            request(&mut ftl, OpKind::Read, 0, 200);
        }
        assert!(hits > 100 && moved > 100, "{dedup}: {hits} found, {moved} moved");
    }
}

/// Units of one request that share what is stored are read together, whether it is a unit or its quarters.
#[test]
fn what_units_of_a_request_share_is_read_once() {
    for dedup in [
        "page_dedup",
        "finededup:read_buffer_kib=0",
        "finededup:read_buffer_kib=0,packing=false",
    ] {
        let mut ftl = drive_of(100, dedup);
        for lpn in 0..4 {
            quarters(&mut ftl, lpn, [5, 6, 7, 8]);
        }
        quarters(&mut ftl, 4, [9, 10, 11, 12]);
        let before = ftl.counts.data_page_reads;
        request(&mut ftl, OpKind::Read, 0, 5);
        assert_eq!(ftl.counts.data_page_reads - before, 2, "{dedup}");
    }
}

/// A drive that was saved and loaded goes on as the one that was not: what members know of contents is in the state.
#[test]
fn every_member_goes_on_from_a_saved_state() {
    for name in ftlab_ftl::dedup::catalogue().names() {
        let mut draw = Stream::new(7, name);
        let mut ftl = drive_with(24, 400, name);
        let mut go = |ftls: &mut [&mut Ftl<Counting>]| {
            for _ in 0..2500 {
                let units = 1 + draw.below(4) as u32;
                let lpn = draw.below(u64::from(400 - units)) as u32;
                let skip = draw.below(2) as u32 * draw.below(4) as u32;
                let contents: Vec<u64> = (skip..4 * units)
                    .map(|_| 7919 * (1 + draw.below(3) * draw.below(60)))
                    .collect();
                let context = IoContext {
                    pc: 1 + draw.below(3),
                    ..IoContext::NONE
                };
                let trims = draw.below(12) == 0;
                for ftl in ftls.iter_mut() {
                    match trims {
                        true => request(ftl, OpKind::Trim, lpn, units),
                        false => write_behind(ftl, lpn, &contents, 4, skip, context),
                    }
                    request(ftl, OpKind::Read, lpn, 1);
                }
            }
        };
        go(&mut [&mut ftl]);
        ftl.shut_down();
        let mut saved = Vec::new();
        ftl.save(&mut saved).expect("memory takes everything");
        let mut again = drive_with(24, 400, name);
        again.load(&mut saved.as_slice()).expect("what was saved");
        ftl.reset_counts();
        again.reset_counts();
        go(&mut [&mut ftl, &mut again]);
        assert_eq!(ftl.counts, again.counts, "{name}");
        assert_eq!(ftl.policy_reports(), again.policy_reports(), "{name}");
        assert!(name == "none" || ftl.counts.dedup_hits > 0, "{name}");
    }
}

/// A fingerprint that had to leave comes back with a read, also after a read at which another place of its content had it.
#[test]
fn a_read_in_vain_does_not_keep_a_fingerprint_away() {
    let mut ftl = drive_of(100, "page_dedup:entries=2,eviction=lru,prefetch=true");
    for (lpn, content) in [(0, 1), (1, 2), (2, 3), (3, 1)] {
        write(&mut ftl, lpn, content);
    }
    request(&mut ftl, OpKind::Read, 0, 1);
    write(&mut ftl, 4, 4);
    write(&mut ftl, 5, 5);
    request(&mut ftl, OpKind::Read, 0, 1);
    write(&mut ftl, 7, 1);
    assert_eq!(ftl.counts.dedup_hits, 1);
}

/// A host that knows what a unit holds after a write of a part of it says so, and the unit is shared.
#[test]
fn a_unit_written_in_part_is_shared_where_its_content_is_known() {
    for (known, hits) in [(false, 0), (true, 2)] {
        let mut ftl = drive_of(100, "page_dedup:entries=0");
        write(&mut ftl, 0, 77);
        write(&mut ftl, 1, 5);
        write(&mut ftl, 2, 6);
        let unit_bytes = ftl.layout.geometry.unit_bytes;
        let context = IoContext {
            contents: &[77, 77],
            content_bytes: unit_bytes,
            flags: if known { flags::WHOLE_UNITS } else { 0 },
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            head_skip: unit_bytes / 2,
            tail_skip: unit_bytes / 2,
            ..HostRequest::whole(OpKind::Write, Lpn(1), 2)
        };
        ftl.admit(&request, Ticket::NONE);
        assert_eq!(ftl.counts.dedup_hits, hits, "{known}");
        self::request(&mut ftl, OpKind::Read, 0, 3);
    }
}

/// Halves by hand: a unit is shared once all of it is known, by what was written before or because it holds nothing.
#[test]
fn a_unit_written_by_halves_is_shared_once_both_are_known() {
    let mut ftl = drive_of(100, "page_dedup:entries=0");
    let half = |ftl: &mut Ftl<Counting>, lpn: u32, content: u64| {
        write_behind(ftl, lpn, &[content], 2, 1, IoContext::NONE);
        ftl.counts.dedup_hits
    };
    write_by(&mut ftl, 0, &[1, 2], 2, IoContext::NONE);
    write_by(&mut ftl, 1, &[1, 3], 2, IoContext::NONE);
    assert_eq!(half(&mut ftl, 1, 2), 1, "1 and 2");
    assert_eq!(half(&mut ftl, 2, 2), 1, "nothing and 2");
    assert_eq!(half(&mut ftl, 3, 2), 2, "the same once more");
    request(&mut ftl, OpKind::Trim, 1, 1);
    assert_eq!(half(&mut ftl, 1, 2), 3, "the same on a unit that was trimmed");
    request(&mut ftl, OpKind::Write, 1, 1);
    assert_eq!(half(&mut ftl, 1, 2), 3, "not known, and 2");
    // An id of the whole says nothing of halves.
    write_by(&mut ftl, 4, &[1, 3], 2, IoContext::NONE);
    write(&mut ftl, 4, 77);
    assert_eq!(half(&mut ftl, 4, 2), 3, "a half of 77, and 2");
    request(&mut ftl, OpKind::Read, 0, 5);
}
