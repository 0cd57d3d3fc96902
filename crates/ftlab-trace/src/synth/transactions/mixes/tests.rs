//! Of every mix: it stays in its database, and touches what its benchmark says.

use ftlab_core::PolicySpec;

use super::*;

const PAGES: u32 = 300_000;

fn mix(name: &str, pages: u32) -> Result<Box<dyn Mix>> {
    let mut setup = Setup {
        pages,
        page_bytes: 8192,
        clients: 10,
    };
    catalogue().build(&PolicySpec::parse(name).unwrap(), &mut setup)
}

fn drawn(name: &str, pages: u32, transactions: u32, mut each: impl FnMut(usize, &[Access])) {
    let mut mix = mix(name, pages).unwrap();
    let mut random = Stream::new(1, "mix");
    let mut accesses = Vec::new();
    for transaction in 0..transactions {
        accesses.clear();
        let kind = mix.draw(transaction % 10, &mut random, &mut accesses);
        each(kind, &accesses);
    }
}

#[test]
fn every_access_lies_in_the_database_and_most_of_it_is_used() {
    for (name, least) in [("tpcb", 2500), ("tpcc", 16_000), ("tm1", 2500)] {
        for pages in [least, PAGES] {
            let mut highest = 0;
            drawn(name, pages, 20_000, |_, accesses| {
                assert!(!accesses.is_empty());
                for access in accesses {
                    assert!(access.page < pages, "{name}: page {} of {pages}", access.page);
                    assert!(
                        !access.is_new || access.writes,
                        "{name}: a new page that is not written"
                    );
                    highest = highest.max(access.page);
                }
            });
            assert!(
                f64::from(highest) > 0.7 * f64::from(pages),
                "{name}: {highest} of {pages}"
            );
        }
    }
}

#[test]
fn kinds_come_as_often_as_the_benchmarks_say() {
    for (name, percent) in [
        ("tpcc", &tpcc::PERCENT[..]),
        ("tm1", &tm1::PERCENT[..]),
        ("tpcb", &[100]),
    ] {
        let mut counts = vec![0u32; percent.len()];
        drawn(name, PAGES, 40_000, |kind, _| counts[kind] += 1);
        for (count, share) in counts.iter().zip(percent) {
            let expected = 400.0 * *share as f64;
            // Five standard deviations of a binomial count.
            let spread = 5.0 * expected.max(1.0).sqrt();
            assert!((f64::from(*count) - expected).abs() <= spread, "{name}: {counts:?}");
        }
        assert_eq!(mix(name, PAGES).unwrap().kinds().len(), percent.len());
    }
}

/// TPC-B changes an account, a teller, a branch and the history, after the pages of one path through the index; four fifths of TM-1
/// change nothing.
#[test]
fn what_transactions_change() {
    drawn("tpcb", PAGES, 1000, |_, accesses| {
        let changed: Vec<bool> = accesses.iter().map(|access| access.writes).collect();
        assert_eq!(
            changed,
            [false, false, false, true, true, true, true],
            "an index of three levels"
        );
        let locked = accesses.iter().filter(|access| access.lock == Lock::Exclusive).count();
        assert_eq!(locked, 3);
    });
    let mut changing = 0u32;
    drawn("tm1", PAGES, 20_000, |_, accesses| {
        changing += u32::from(accesses.iter().any(|access| access.writes));
    });
    assert!((3800..4200).contains(&changing), "{changing} of 20000");
}

/// A new order has 5 to 15 lines, each with a page of stock that changes, besides district, order, new order and the pages of its lines.
#[test]
fn new_orders_change_the_stock_of_their_lines() {
    let mut sum = (0u32, 0u32);
    drawn("tpcc", PAGES, 20_000, |kind, accesses| {
        if kind == 0 {
            let changed = accesses.iter().filter(|a| a.lock == Lock::Exclusive).count() as u32;
            assert!((5 + 4..=15 + 5).contains(&changed), "{changed}");
            sum = (sum.0 + changed, sum.1 + 1);
        }
    });
    let mean = f64::from(sum.0) / f64::from(sum.1);
    assert!((14.0..14.5).contains(&mean), "10 + 3 + 1.1 pages of lines: {mean}");
}

#[test]
fn rows_that_are_appended_fill_pages_of_their_own() {
    let mut pages = Pages::new(8192);
    // 8192 / (100 + 28): 64 rows a page.
    let mut tail = Appended::new(pages.table(640, 100), 2);
    let mut accesses = Vec::new();
    for _ in 0..65 {
        tail.append(0, &mut accesses);
    }
    tail.append(1, &mut accesses);
    let at: Vec<(u32, bool)> = accesses.iter().map(|access| (access.page, access.is_new)).collect();
    assert_eq!(at[0], (0, true));
    assert!(at[1..64].iter().all(|&one| one == (0, false)));
    assert_eq!(at[64..], [(1, true), (2, true)]);
}

#[test]
fn a_database_that_is_too_small_is_refused() {
    for (name, unit) in [("tpcb", "branch"), ("tpcc", "warehouse"), ("tm1", "subscriber")] {
        let error = mix(name, 5).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!(
                "mix `{name}`: a database of 40 KiB has no room for one {unit}"
            )),
            "{error}"
        );
    }
    let error = mix("tpcb:history=0.9", PAGES).err().unwrap().to_string();
    assert!(
        error.contains("history = 0.9, expected a share from 0.01 to 0.5"),
        "{error}"
    );
}
