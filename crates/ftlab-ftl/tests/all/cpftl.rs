//! CPFTL on a drive: pairs that are read together cost half of the translation reads, until one of them moves.

use crate::common::{config, one_lane, write};
use ftlab_core::{OpKind, PolicySpec, Stream};
use ftlab_ftl::{Counting, Ftl, HostRequest, Ticket};

/// 100 pairs, the halves far apart and each in its own place of a map of 17 translation pages.
fn pair(i: u32) -> (u32, u32) {
    (37 * i, 8000 + 41 * (7 * i % 100))
}

fn drive(mapping: &str) -> Ftl<Counting> {
    let layout = one_lane(320, 64);
    let mut config = config(&layout, 0.15);
    config.mapping = PolicySpec::parse(mapping).unwrap();
    config.map_cache_bytes = 900;
    config.gc.hard = 2;
    config.verify = true;
    let mut ftl = Ftl::new(layout, config).unwrap();
    ftl.precondition_fill();
    ftl
}

fn read(lpn: u32) -> HostRequest<'static> {
    HostRequest {
        op: OpKind::Read,
        ..write(lpn, 0)
    }
}

/// Translation and correlated pages read by so many passes over all pairs.
fn reads(ftl: &mut Ftl<Counting>, passes: u32) -> u64 {
    let total = |ftl: &Ftl<Counting>| ftl.counts.trans_reads.iter().sum::<u64>();
    let before = total(ftl);
    for _ in 0..passes {
        for (a, b) in (0..100).map(pair) {
            ftl.admit(&read(a), Ticket::NONE);
            ftl.admit(&read(b), Ticket::NONE);
        }
    }
    ftl.check().unwrap();
    total(ftl) - before
}

#[test]
fn reads_fall_to_one_a_pair_and_come_back_when_the_page_is_stale() {
    let pairs: Vec<String> = (0..100).map(pair).map(|(a, b)| format!("{a}-{b}")).collect();
    // 200 LPNs take a filter of 361 bytes; what is left for entries is 900 - 377 - 17 bytes, against 900 of the base.
    let mut ftl = drive(&format!("cpftl:directory=400,pairs={}", pairs.join("/")));
    let mut base = drive("tpftl");
    // The first read programs the page; then each pass costs one read a pair.
    ftl.admit(&read(0), Ticket::NONE);
    assert_eq!(ftl.counts.trans_programs, [0, 0, 0, 1]);
    let with = reads(&mut ftl, 10);
    assert_eq!(with, 1000);
    assert_eq!(ftl.counts.trans_reads[3], 1000);
    let without = reads(&mut base, 10);
    assert!(without > 1500, "{without}");
    // A write of any of them, and the page is gone: all reads are translation reads again.
    ftl.admit(&write(pair(50).1, 0), Ticket::NONE);
    let stale = reads(&mut ftl, 10);
    assert!(stale > 1500 && ftl.counts.trans_reads[3] == 1001, "{stale}");
}

#[test]
fn collections_give_up_what_they_make_stale_and_move_what_they_do_not() {
    let mut ftl = drive("cpftl:directory=search,pairs=3-9000/4-9001");
    ftl.admit(&read(100), Ticket::NONE);
    let figure = |ftl: &Ftl<Counting>, name: &str| {
        let reports = ftl.policy_reports();
        let (_, report) = reports.iter().find(|(role, _)| *role == "mapping").unwrap();
        report.iter().find(|(key, _)| *key == name).unwrap().1
    };
    assert_eq!(figure(&ftl, "corr_pages_live"), 1.0);
    // Overwrites far from the four: their blocks stay full, and collection leaves them alone, but it
    // moves the policy's page, whose block holds translation pages that die.
    let mut random = Stream::new(4, "overwrites");
    for _ in 0..40_000 {
        ftl.admit(&write(256 + random.below(7744) as u32, 0), Ticket::NONE);
    }
    ftl.check().unwrap();
    assert_eq!(
        (figure(&ftl, "corr_pages_live"), figure(&ftl, "corr_updates")),
        (1.0, 0.0)
    );
    assert!(figure(&ftl, "corr_pages_moved") > 0.0);
    // Their neighbours are overwritten: the blocks of the four become victims.
    for lpn in (0..256)
        .chain(8900..9100)
        .filter(|lpn| ![3, 4, 9000, 9001].contains(lpn))
    {
        ftl.admit(&write(lpn, 0), Ticket::NONE);
    }
    for _ in 0..10_000 {
        ftl.admit(&write(256 + random.below(7744) as u32, 0), Ticket::NONE);
    }
    ftl.check().unwrap();
    assert_eq!(
        (
            figure(&ftl, "corr_pages_live"),
            figure(&ftl, "corr_removed_by_collection")
        ),
        (0.0, 1.0)
    );
}
