//! With many requests under way loads are shared: what then saves hardly anything is left alone.

use ftlab_core::Stream;

use super::{QUIET, count, harness};
use crate::mapping::testing::Harness;
use crate::mapping::{Charge, MapCause};

/// Tells the policy that all loads of the answer but one in four were under way already; `nth` counts them.
fn share(h: &mut Harness, words: &str, nth: &mut u64) {
    for _ in 0..count(words, "load") {
        *nth += 1;
        if !(*nth).is_multiple_of(4) {
            h.policy.shared(Charge::Load {
                table: 0,
                tvpn: 0,
                cause: MapCause::MissLoad,
            });
        }
    }
}

/// Random single accesses, one in `writes` of them a write, answered by a drive that shares loads: answers, and writes deferred.
fn answers(spec: &str, writes: u64) -> (Vec<String>, f64) {
    let mut h = Harness::new(spec, 2000, 512, 700);
    let (mut random, mut nth) = (Stream::new(7, "accesses"), 0);
    let mut words = Vec::new();
    for step in 0..4000 {
        let key = random.below(2000) as u32;
        words.push(match step > 100 && random.below(writes) == 0 {
            true => h.write(key),
            false => h.read(key),
        });
        let last = words.last().unwrap().clone();
        share(&mut h, &last, &mut nth);
    }
    (words, h.policy.counts().deferred as f64)
}

/// A fiftieth of the misses, a quarter of which is read: they could save half a percent of the reads.
#[test]
fn few_writes_do_as_the_base_does_where_loads_are_shared() {
    let (base, _) = answers("tpftl", 50);
    let (words, deferred) = answers("cpftl", 50);
    assert_eq!((words, deferred), (base, 0.0));
}

/// Half of the misses are of writes: an eighth of the reads.
#[test]
fn many_writes_are_deferred_all_the_same() {
    let (_, deferred) = answers("cpftl", 2);
    assert!(deferred > 1000.0, "{deferred}");
}

/// 3 brings 100, which is used each time: a page that pays where each load is a read, and hardly where one in four is.
#[test]
fn a_set_switches_itself_off_where_loads_are_shared() {
    let round = |shared: bool| {
        let mut h = harness(&format!("directory=search,{QUIET},pairs=3-100"), 2, 2, 30);
        let mut nth = 0;
        for _ in 0..200 {
            for key in [3, 100, 150, 200, 60, 230, 180] {
                let words = h.read(key);
                if shared {
                    share(&mut h, &words, &mut nth);
                }
            }
        }
        ["corr_programs", "corr_pages_live", "corr_reads_true"].map(|name| h.figure(name))
    };
    let [written, live, reads] = round(false);
    assert_eq!((written, live), (1.0, 1.0));
    assert!(reads > 150.0, "{reads}");
    let [written, live, reads] = round(true);
    // And there is no other trial.
    assert!(
        written == 1.0 && live == 0.0 && reads < 10.0,
        "{written} {live} {reads}"
    );
}

/// Where loads take time, a page is tried once enough of them were reads; where they are shared, never.
#[test]
fn nothing_is_tried_before_it_is_known_whether_loads_are_shared() {
    let loads_before_a_write = |shared: bool| {
        let mut h = Harness::new(&format!("cpftl:directory=search,{QUIET},pairs=3-1000"), 2000, 512, 700);
        h.policy.loads_take_time();
        let (mut random, mut loads, mut nth) = (Stream::new(7, "reads"), 0, 0);
        for _ in 0..20_000 {
            let words = h.read(random.below(2000) as u32);
            loads += count(&words, "load");
            if count(&words, "write") > 0 {
                return Some(loads);
            }
            if shared {
                share(&mut h, &words, &mut nth);
            }
        }
        None
    };
    // 128 are seen, and the rule takes its memory with the next.
    assert_eq!(loads_before_a_write(false), Some(129));
    assert_eq!(loads_before_a_write(true), None);
}

/// A read of the page that is under way costs nothing.
#[test]
fn reads_of_a_page_under_way_cost_it_nothing() {
    let rounds = |shared: bool| {
        // The filter of one byte says yes to nearly everything: reads in vain.
        let params = format!("filter_bits=8,directory=20,patience=10,{QUIET},pairs=3-255");
        // All entries fit, so the page does not go for want of room.
        let mut h = harness(&params, 2, 2, 2000);
        let mut random = Stream::new(3, "reads");
        let mut probes = 0;
        for _ in 0..800 {
            let words = h.read(4 + random.below(250) as u32);
            let reads = count(&words, "probe");
            probes += reads;
            if shared {
                (0..reads).for_each(|_| h.policy.shared(Charge::Probe { page: 0 }));
            }
        }
        (probes, h.figure("corr_pages_live"))
    };
    let (probes, live) = rounds(false);
    assert!(live == 0.0 && probes < 40, "{live} {probes}");
    let (shared, live) = rounds(true);
    assert!(live == 1.0 && shared > probes, "{shared} {live}");
}
