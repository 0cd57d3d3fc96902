//! Values and chunks on drives that deduplicate: when a write is acknowledged, and that checked reads can fail.

use ftlab_core::{Lpn, OpKind};
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Ftl, HostRequest, Overrides, Ticket};
use ftlab_testkit::bench::write_content;
use ftlab_testkit::members::{ChunkDedup, UnitDedup};
use ftlab_testkit::{Case, Double, Late};

fn drive(dedup: impl DedupPolicy + 'static) -> Ftl<Late> {
    let case = Case::plain(40, 8, 1);
    let given = Overrides {
        roles: Some(Roles::given(Some(Box::new(dedup)), None)),
        ..Overrides::default()
    };
    let ftl = case.build(given).unwrap();
    let late = Late::new(&case.layout, 1);
    ftl.with_backend(late)
}

fn read(ftl: &mut Ftl<Late>, lpn: u32) {
    ftl.admit(&HostRequest::whole(OpKind::Read, Lpn(lpn), 1), Ticket(100));
}

/// The second write finds its content in a page whose program is under way, or in a pack that is not full.
#[test]
fn a_hit_is_acknowledged_when_what_it_refers_to_is_in_flash() {
    let members: [Box<dyn Fn() -> Ftl<Late>>; 2] = [
        Box::new(|| drive(UnitDedup::default())),
        Box::new(|| drive(ChunkDedup::default())),
    ];
    for make in members {
        let mut ftl = make();
        write_content(&mut ftl, 0, 4, Ticket(1));
        write_content(&mut ftl, 1, 4, Ticket(2));
        assert_eq!(ftl.counts.dedup_hits, 1);
        assert!(
            !ftl.backend.is_acknowledged(Ticket(2)),
            "nothing has been programmed yet"
        );
        while ftl.backend.run(1) {}
        assert!(ftl.backend.is_acknowledged(Ticket(2)));
        read(&mut ftl, 1);
    }
}

/// Two units have each other's rows.
#[test]
#[should_panic(expected = "from its chunks, the last written is")]
fn a_read_of_the_wrong_row_is_noticed() {
    let mut ftl = drive(ChunkDedup::default());
    write_content(&mut ftl, 0, 4, Ticket(1));
    // Each shares a quarter with the unit before it.
    write_content(&mut ftl, 0, 5, Ticket(2));
    write_content(&mut ftl, 1, 6, Ticket(3));
    read(&mut ftl, 0);
    ftl.record.map.swap(0, 1);
    read(&mut ftl, 0);
}

/// Two units have each other's values.
#[test]
#[should_panic(expected = "reads version")]
fn a_read_of_the_wrong_value_is_noticed() {
    let mut ftl = drive(UnitDedup::default());
    write_content(&mut ftl, 0, 4, Ticket(1));
    write_content(&mut ftl, 1, 8, Ticket(2));
    read(&mut ftl, 0);
    ftl.record.map.swap(0, 1);
    read(&mut ftl, 0);
}
