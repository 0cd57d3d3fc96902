//! By hand, on pages of 16 entries.

use super::super::testing::Harness;
use super::super::{Setup, catalogue};
use ftlab_core::PolicySpec;

/// Pages of 16 entries, 64 bytes; room for `pages` pages and `entries` entries.
fn harness(params: &str, pages: u64, entries: u64) -> Harness {
    let (pages, entries) = (64 * pages, 8 * entries);
    let share = entries as f64 / (pages + entries) as f64 + 1e-9;
    Harness::new(&format!("cdftl:first_level={share},{params}"), 256, 64, pages + entries)
}

#[test]
fn neighbours_hit_in_the_second_level() {
    let mut h = harness("", 2, 4);
    assert_eq!(h.read(0), "load 0");
    assert_eq!(
        (h.read(1), h.read(15), h.read(0)),
        (String::new(), String::new(), String::new())
    );
    assert_eq!((h.figure("page_hits"), h.figure("entry_hits")), (2.0, 1.0));
}

#[test]
fn a_dirty_entry_is_merged_into_its_page_and_the_page_programmed_without_a_read() {
    let mut h = harness("window=1", 1, 2);
    assert_eq!(h.write(0), "load 0");
    h.read(1);
    // 0 leaves for 2 and is merged; then page 1 replaces page 0, which is dirty.
    assert_eq!(h.read(2), "");
    assert_eq!(h.figure("merged_entries"), 1.0);
    assert_eq!(h.read(16), "store 0 load 1");
}

#[test]
fn without_its_page_a_dirty_entry_costs_a_rewrite_that_takes_the_others_with_it() {
    let mut h = harness("window=1", 1, 3);
    h.write(0);
    h.write(1);
    assert_eq!(h.read(16), "load 1");
    assert_eq!(h.read(17), "evict 0");
    // 1 is clean now.
    assert_eq!(h.read(18), "");
    assert_eq!(h.figure("batched_entries"), 2.0);
}

#[test]
fn what_costs_nothing_goes_first() {
    let mut h = harness("window=3", 1, 3);
    h.write(0);
    h.read(16);
    h.read(17);
    // 0 is the least recent, but dirty and without its page: 16 goes.
    assert_eq!(h.read(18), "");
    assert!(h.policy.cached(0, 0).is_some());
}

#[test]
fn collection_changes_both_levels() {
    let mut h = harness("", 2, 2);
    h.read(0);
    assert_eq!(h.moved(&[0, 1, 16, 17]), "gc 1");
    // Page 0 became dirty with 1.
    h.read(32);
    assert_eq!(h.read(48), "store 0 load 3");
}

/// A cache of 3 pages of 64 bytes for entries of 8, and 36 bytes for what has left: 8 keys and a page.
fn adapting(share: f64, every: u32) -> Harness {
    Harness::new(
        &format!("cdftl:first_level={share},adapt={every}"),
        256,
        64,
        3 * 64 + 36,
    )
}

#[test]
fn entries_that_are_missed_take_a_page_of_the_second_level() {
    // A page of memory, 8 entries, for the first level, two pages for the second.
    let mut h = adapting(0.334, 40);
    let sizes = |h: &Harness| (h.figure("capacity_entries"), h.figure("capacity_pages"));
    assert_eq!(sizes(&h), (8.0, 2.0));
    // Ten entries of ten pages in turn: each is missed soon after it left, its page long after.
    let misses: Vec<bool> = (0..80).map(|i| !h.read(i % 10 * 16).is_empty()).collect();
    assert!(misses[..40].iter().all(|&miss| miss));
    assert_eq!(sizes(&h), (16.0, 1.0));
    assert_eq!(
        (h.figure("first_level_grew"), h.figure("second_level_grew")),
        (1.0, 0.0)
    );
    // From then on all ten fit.
    assert!(misses[50..].iter().all(|&miss| !miss), "{misses:?}");
}

#[test]
fn pages_that_are_missed_take_a_page_of_entries() {
    // 16 entries and one page.
    let mut h = adapting(0.667, 40);
    let sizes = |h: &Harness| (h.figure("capacity_entries"), h.figure("capacity_pages"));
    assert_eq!(sizes(&h), (16.0, 1.0));
    // Two pages in turn, an entry of each once: the page that left last is missed each time, no entry ever.
    let charges: Vec<String> = (0..32).map(|i| h.read(i % 2 * 16 + i / 2)).collect();
    assert!(charges.iter().all(|charge| !charge.is_empty()));
    // Eight entries leave at the fortieth look-up, without a charge, as they are clean.
    assert_eq!(
        (0..10)
            .map(|i| h.read(i % 2 * 16 + 16 * 2 + i / 2))
            .filter(|c| c.contains("store"))
            .count(),
        0
    );
    assert_eq!(sizes(&h), (8.0, 2.0));
    assert_eq!(h.figure("second_level_grew"), 1.0);
    // Two more pages in turn are loaded once each.
    let loads = (0..16)
        .map(|i| h.read(i % 2 * 16 + 16 * 4 + i / 2))
        .filter(|c| !c.is_empty())
        .count();
    assert_eq!(loads, 2);
}

#[test]
fn neither_level_goes_below_what_it_needs() {
    // Entries are missed all the time, but the second level has one page only.
    let mut h = adapting(0.667, 10);
    (0..200).for_each(|i| drop(h.read(i % 20 * 16 % 256)));
    assert_eq!((h.figure("capacity_pages"), h.figure("first_level_grew")), (1.0, 0.0));
    // Pages are missed all the time, but the first level's eight entries are less than a page and two.
    let mut h = adapting(0.334, 10);
    (0..200).for_each(|i| drop(h.read(i % 3 * 16 + i / 3 % 16)));
    assert_eq!(
        (h.figure("capacity_entries"), h.figure("second_level_grew")),
        (8.0, 0.0)
    );
}

#[test]
fn entries_without_a_size_or_larger_than_a_page_are_refused() {
    let refused = |spec: &str| {
        let mut setup = Setup {
            logical_units: 256,
            values: 0,
            rows: 0,
            unit_bytes: 64,
            cache_bytes: 1000,
            layout: None,
            checked: true,
            beside_slot: 0,
        };
        let spec = PolicySpec::parse(spec).unwrap();
        let made = catalogue().build(&spec, &mut setup);
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused("cdftl:entry_bytes=0").contains("expects room for at least 2"));
    assert!(refused("cdftl:adapt=5,entry_bytes=0").contains("expected entries of 1 to 64 bytes"));
    assert!(refused("cdftl:adapt=5,entry_bytes=65").contains("expected entries of 1 to 64 bytes"));
    assert_eq!(refused("cdftl:adapt=5,entry_bytes=64"), "");
}
