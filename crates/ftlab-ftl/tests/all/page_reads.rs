//! A request reads each flash page once, however its units lie in it.

use ftlab_core::{Lpn, OpKind};
use ftlab_ftl::{FlashOp, FlashOpKind, Ftl, HostRequest, Overrides, Ticket};
use ftlab_testkit::{Case, Double, Late};

const UNIT: u32 = 512;

fn whole(op: OpKind, first: u32, units: u32) -> HostRequest<'static> {
    HostRequest::whole(op, Lpn(first), units)
}

/// The reads of `request` after units 0 to 3 were written together and then unit 1 alone, on pages of four units: page and bytes
/// of each.
fn reads_of(request: &HostRequest<'_>) -> (Vec<(u32, u32)>, Ftl<Late>) {
    let case = Case::plain(16, 16, 4);
    let ftl = case.build(Overrides::default()).unwrap();
    let mut ftl = ftl.with_backend(Late::new(&case.layout, 1));
    ftl.admit(&whole(OpKind::Write, 0, 4), Ticket::NONE);
    ftl.admit(&whole(OpKind::Write, 1, 1), Ticket::NONE);
    while ftl.backend.run(1) {}
    ftl.reset_counts();
    ftl.admit(request, Ticket::NONE);
    let is_read = |op: &FlashOp| op.kind == FlashOpKind::Read;
    let reads = ftl.backend.ready().into_iter().filter(is_read);
    (reads.map(|op| (op.page, op.bytes)).collect(), ftl)
}

/// Unit 0, then 1 of the other page, then 2 and 3.
#[test]
fn a_read_whose_units_alternate_between_two_pages_reads_each_once() {
    let (reads, ftl) = reads_of(&whole(OpKind::Read, 0, 4));
    assert_eq!(reads, [(0, 3 * UNIT), (1, UNIT)]);
    assert_eq!(ftl.counts.data_page_reads, 2);
}

#[test]
fn a_write_whose_two_ends_lie_in_one_page_reads_it_once() {
    let ends = |units| HostRequest {
        head_skip: 128,
        tail_skip: 128,
        ..whole(OpKind::Write, 0, units)
    };
    let (reads, ftl) = reads_of(&ends(4));
    assert_eq!(reads, [(0, 2 * UNIT)]);
    assert_eq!((ftl.counts.data_page_reads, ftl.counts.rmw_reads), (1, 2));
    let (reads, ftl) = reads_of(&ends(2));
    assert_eq!(reads, [(0, UNIT), (1, UNIT)], "units 0 and 1 lie in different pages");
    assert_eq!((ftl.counts.data_page_reads, ftl.counts.rmw_reads), (2, 2));
    let (reads, ftl) = reads_of(&ends(1));
    assert_eq!(reads, [(0, UNIT)]);
    assert_eq!((ftl.counts.data_page_reads, ftl.counts.rmw_reads), (1, 1));
}
