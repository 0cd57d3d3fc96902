//! The FTL on the timed backend under random operations and power cuts, on random drives under every schedule: each LPN
//! reads its last acknowledged version, and no rule of order is broken.

use crate::support::checked::{Checked, draw_schedule};
use ftlab_core::{Geometry, Layout, Stream};
use ftlab_ftl::Overrides;
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::roles::Roles;
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::{Drives, tries};
use ftlab_testkit::members::{OutOfLine, TwoCopies, UnitDedup};
use ftlab_testkit::{Case, fuzz_drive};

/// Chips of one die and chips of two.
fn chips(case: &mut Case) {
    let geometry = case.layout.geometry.clone();
    if case.config.seed.is_multiple_of(2) && geometry.ways == 2 {
        let order = ftlab_ftl::allocation::plane_order(&case.config.allocation).expect("an order");
        let geometry = Geometry {
            ways: 1,
            dies: 2,
            ..geometry
        };
        case.layout = Layout::new(geometry, case.layout.reclaim, order).expect("as many dies as before");
    }
}

fn drive(drives: &Drives) {
    drives.run::<Checked>(chips, |_| Overrides::default(), |_| {});
}

fn steps() -> Wish {
    Wish::stepped(0)
}

#[test]
fn every_schedule_serves_the_last_version_and_breaks_no_rule() {
    drive(&Drives::new(100_000..100_200, steps(), 400));
    let mapping = Wish {
        mapping: true,
        ..steps()
    };
    drive(&Drives::new(200_000..200_100, mapping, 300));
}

#[test]
fn power_cuts_at_any_instant_lose_only_what_the_standard_allows() {
    for (first, protected) in [(300_000, true), (400_000, false)] {
        let wish = Wish {
            recovers: true,
            protected: Some(protected),
            ..steps()
        };
        drive(&Drives::new(first..first + 150, wish, 300));
    }
}

#[test]
fn worn_out_drives_stay_readable() {
    let wish = Wish {
        wears_out: true,
        ..steps()
    };
    drive(&Drives::new(500_000..500_060, wish, 600));
}

/// Reads that race, are late and are cancelled.
#[test]
fn racing_copies_serve_the_last_version() {
    let half = |case: &mut Case| {
        chips(case);
        case.config.logical_units = (case.config.logical_units / (2 * case.layout.units_per_page)).max(4);
    };
    let with_copies = |case: &Case| {
        let policy = TwoCopies::new(case.config.logical_units, case.config.seed.is_multiple_of(2));
        Overrides {
            roles: Some(Roles::given(None, Some(Box::new(policy)))),
            ..Overrides::default()
        }
    };
    Drives::new(600_000..600_080, steps(), 300).run::<Checked>(half, with_copies, |_| {});
}

/// Hashing on two engines, which programs and acknowledgements wait for, and units that are merged in idle moments.
#[test]
fn deduplicated_units_hold_the_content_written() {
    let with = |dedup: Box<dyn DedupPolicy>| Overrides {
        roles: Some(Roles::given(Some(dedup), None)),
        ..Overrides::default()
    };
    let inline = |_: &Case| with(Box::<UnitDedup>::default());
    let out_of_line = |_: &Case| with(Box::<OutOfLine>::default());
    Drives::new(700_000..700_060, steps(), 300).run::<Checked>(chips, inline, |_| {});
    Drives::new(710_000..710_060, steps(), 300).run::<Checked>(chips, out_of_line, |_| {});
    let cuts = Wish {
        recovers: true,
        ..steps()
    };
    Drives::new(720_000..720_060, cuts, 300).run::<Checked>(chips, inline, |_| {});
    Drives::new(730_000..730_060, cuts, 300).run::<Checked>(chips, out_of_line, |_| {});
}

#[test]
fn arbitrary_bytes_are_a_drive_that_works() {
    for number in 0..tries(100) {
        let mut random = Stream::new(number, "fuzz");
        let length = random.below(1500);
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        if let Err(fault) = std::panic::catch_unwind(|| fuzz_drive::<Checked>(&bytes)) {
            eprintln!("input {number} of {length} bytes fails");
            std::panic::resume_unwind(fault);
        }
    }
}

#[test]
fn every_schedule_is_drawn() {
    let drawn: Vec<String> = (100_000..100_200).map(|seed| draw_schedule(seed).show()).collect();
    for name in ftlab_drive::schedule::catalogue().names() {
        assert!(drawn.iter().any(|spec| spec == name), "{name}");
    }
    assert!(drawn.iter().any(|spec| spec.contains("gc_after=")), "{drawn:?}");
}
