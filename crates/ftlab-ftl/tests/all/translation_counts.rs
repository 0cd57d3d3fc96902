//! What collection costs for the map is told apart from what it costs for data.

use crate::common::{config, one_lane, write};
use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Counting, Ftl, Ticket};

const PAGES: u64 = 64;

/// 320 blocks of 64 pages after so many uniform overwrites.
fn overwritten(mapping: &str, writes: u32) -> Ftl<Counting> {
    let layout = one_lane(320, PAGES as u32);
    let mut config = config(&layout, 0.15);
    config.mapping = PolicySpec::parse(mapping).unwrap();
    config.map_cache_bytes = 900;
    config.gc.hard = 2;
    let units = u64::from(config.logical_units);
    let mut ftl = Ftl::new(layout, config).unwrap();
    ftl.precondition_fill();
    ftl.counts = Default::default();
    let mut random = Stream::new(4, "overwrites");
    for _ in 0..writes {
        ftl.admit(&write(random.below(units) as u32, 0), Ticket::NONE);
    }
    ftl.check().unwrap();
    ftl
}

#[test]
fn translation_blocks_are_erased_as_often_as_they_were_filled() {
    let ftl = overwritten("dftl", 40_000);
    let c = &ftl.counts;
    // A unit is a page here, so that each page that moves is read once, and every move of data is one of data pages.
    assert_eq!(c.gc_trans_reads, c.gc_trans_programs);
    assert_eq!(c.gc_page_reads, c.gc_data_programs());
    assert!(c.gc_trans_programs > 0 && c.gc_trans_programs < c.gc_data_programs());
    // Every translation page that was programmed filled a page of a translation block. Those blocks have been erased, but for
    // what holds the 17 pages that live, and their dead predecessors that greedy collection has not reached: under 20.
    let programmed = c.trans_programs.iter().sum::<u64>() + c.gc_trans_programs;
    let filled = programmed / PAGES;
    assert!(
        c.erases_trans <= filled + 1 && c.erases_trans + 20 > filled,
        "{filled} {c:?}"
    );
    // The same of data: all its programs but what lies in the blocks that are in use now.
    let data = (c.data_programs() + c.gc_data_programs() - c.gc_trans_programs) / PAGES;
    let erased = c.erases - c.erases_trans;
    assert!(erased <= data && erased + 60 > data, "{data} {c:?}");
}

#[test]
fn a_map_in_memory_has_no_translation_blocks() {
    let ftl = overwritten("page", 20_000);
    let c = &ftl.counts;
    assert_eq!((c.gc_trans_reads, c.gc_trans_programs, c.erases_trans), (0, 0, 0));
    assert!(c.erases > 0);
}

#[test]
fn a_scattered_fill_leaves_no_run_for_a_policy_that_compresses_runs() {
    // 17408 units: an S-FTL page of 1024 entries in order takes 128 bytes and one head of 4, so that the 17 pages fit 4096
    // bytes; with a head for each entry one takes 4224, and none fits.
    let misses = |scattered: bool| {
        let layout = one_lane(320, PAGES as u32);
        let mut config = config(&layout, 0.15);
        config.mapping = PolicySpec::parse("sftl:buffer=0.1").unwrap();
        config.map_cache_bytes = 9000;
        config.gc.hard = 2;
        let mut ftl = Ftl::new(layout, config).unwrap();
        if scattered {
            ftl.precondition_scatter();
        } else {
            ftl.precondition_fill();
        }
        ftl.check().unwrap();
        for round in 0..3 {
            for page in 0..17 {
                let read = ftlab_ftl::HostRequest {
                    op: ftlab_core::OpKind::Read,
                    ..write(1024 * page + round, 0)
                };
                ftl.admit(&read, Ticket::NONE);
            }
        }
        assert_eq!(ftl.counts.unmapped_reads, 0);
        ftl.counts.trans_reads[0]
    };
    assert_eq!(misses(false), 17);
    assert_eq!(misses(true), 3 * 17);
}
