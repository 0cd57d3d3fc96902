//! What the members of the placement catalogue answer, by hand, and what they refuse.

use ftlab_core::{Lpn, PolicySpec, Result};
use ftlab_ftl::placement::{self, HostWrite, PlacementPolicy};
use ftlab_ftl::{Frontier, Now, WriteContext};

fn build(spec: &str) -> Result<Box<dyn PlacementPolicy>> {
    let mut setup = placement::Setup {
        logical_units: 10_240,
        unit_bytes: 4096,
        units_per_ru: 64,
        rus: 200,
        lanes: 1,
        survivors: ftlab_ftl::Survivors::Shared,
        seed: 1,
    };
    placement::catalogue().build(&PolicySpec::parse(spec)?, &mut setup)
}

fn made(spec: &str) -> Box<dyn PlacementPolicy> {
    build(spec).unwrap()
}

/// What is known of the units of a request.
fn of_request(first: u32, units: u32) -> WriteContext {
    let mut context = WriteContext::default();
    (context.request_first, context.request_units) = (Lpn(first), units);
    context
}

/// The frontier of a unit.
fn ask(policy: &mut dyn PlacementPolicy, lpn: u32, context: &WriteContext, tick: u64) -> Frontier {
    policy.host(&HostWrite {
        lpn: Lpn(lpn),
        context,
        since: None,
        dies: None,
        now: Now { tick, time_ns: 0 },
    })
}

#[test]
fn an_automatic_stream_follows_how_often_a_chunk_is_written() {
    for (spec, streams) in [("autostream_sfr:chunk_kib=64", 8), ("autostream_mq:chunk_kib=64", 8)] {
        let mut policy = made(spec);
        assert_eq!(policy.host_frontiers(), streams);
        let mut tick = 0;
        let mut place = |policy: &mut Box<dyn PlacementPolicy>, lpn: u32| {
            tick += 1;
            ask(policy.as_mut(), lpn, &of_request(lpn, 1), tick)
        };
        // Chunk 1 is written again and again, chunks 2 to 9 once: none of the writes follows another.
        let hot: Vec<Frontier> = (0..9).map(|step| place(&mut policy, 16 + 2 * (step % 4))).collect();
        assert_eq!(hot, [0, 1, 1, 2, 2, 2, 2, 3, 3], "{spec}");
        for chunk in 2..10 {
            assert_eq!(place(&mut policy, 16 * chunk + 5), 0, "{spec}");
        }
    }
}

#[test]
fn a_sequential_request_takes_the_stream_of_the_one_before() {
    let mut policy = made("autostream_sfr:chunk_kib=64");
    let mut place = |lpn: u32, units: u32, tick: u64| -> Vec<Frontier> {
        let context = of_request(lpn, units);
        (lpn..lpn + units)
            .map(|lpn| ask(policy.as_mut(), lpn, &context, tick))
            .collect()
    };
    for tick in 0..8 {
        place(16 + 2 * (tick as u32 % 2), 1, tick);
    }
    assert_eq!(place(30, 2, 8), [3, 3], "the ninth write of chunk 1");
    // It ends at the border of chunk 1; what follows there belongs to it.
    assert_eq!(place(32, 2, 9), [3, 3]);
    assert_eq!(place(48, 1, 10), [0]);
}

/// Frontiers of requests, each a first unit and a number of units, one tick apart; one frontier for each unit.
fn placed(policy: &mut dyn PlacementPolicy, requests: &[(u32, u32)]) -> Vec<Vec<Frontier>> {
    let mut frontiers = Vec::new();
    for (tick, &(first, units)) in (0..).zip(requests) {
        let context = of_request(first, units);
        frontiers.push(
            (first..first + units)
                .map(|lpn| ask(policy, lpn, &context, tick))
                .collect(),
        );
    }
    frontiers
}

/// By hand, with a threshold of 2: extents split at the bounds of requests, so what is written beside a hot extent is cold.
#[test]
fn eti_counts_requests_in_extents() {
    let mut eti = made("eti:threshold=2,extents=8");
    let requests = [(10, 4), (10, 4), (12, 2), (8, 4), (14, 1)];
    let expected = [
        vec![1; 4],
        vec![0; 4],
        // Within the extent of 10 to 14: it splits, and both parts keep what was counted.
        vec![0; 2],
        // 8 and 9 are new; 10 and 11 have been written three times now.
        vec![1, 1, 0, 0],
        vec![1],
    ];
    assert_eq!(placed(eti.as_mut(), &requests), expected);
    // With room for no other extent the whole drive counts as one, and only requests for all of it.
    let mut one = made("eti:threshold=1,extents=1");
    assert_eq!(placed(one.as_mut(), &[(10, 4), (10, 4)]), [vec![1; 4], vec![1; 4]]);
}

/// By hand: hot at the second write while it is remembered; the candidates forget the oldest, the hot list hands its last back.
#[test]
fn two_level_lru_remembers_candidates_and_hot_units() {
    let mut lru = made("two_level_lru:hot=1,candidates=2");
    let writes = [(1, 0), (2, 0), (1, 1), (3, 0), (2, 1), (1, 1), (4, 0), (5, 0), (2, 0)];
    let requests = writes.map(|(lpn, _)| (lpn, 1));
    let frontiers = placed(lru.as_mut(), &requests).concat();
    assert_eq!(frontiers, writes.map(|(_, frontier)| frontier));
}

/// By hand: four filters of weights 2, 1.5, 1 and 0.5; a unit enters one filter more with each write, and is hot with the fourth.
#[test]
fn bloom_filters_add_up_to_hot_and_age() {
    let mut filters = made("bloom_filters:bits=65536");
    let often: Vec<(u32, u32)> = vec![(7, 1); 5];
    // Entered in filters 0, 1, 2, 3, of which the last is the youngest: 0.5, 1.5, 3 and 5, of which 4 make it hot.
    assert_eq!(placed(filters.as_mut(), &often).concat(), [0, 0, 0, 1, 1]);
    // After three ages it is in the oldest filter only, and enters one more.
    let mut aged = made("bloom_filters:bits=65536,decay=8");
    let mut requests = often.clone();
    requests.extend((100..123).map(|lpn| (lpn, 1)));
    requests.push((7, 1));
    assert_eq!(placed(aged.as_mut(), &requests).concat().last(), Some(&0));
}

/// By hand: hot from the write on that makes the counters 200, and also when they can count no further.
#[test]
fn multi_hash_counters_stay_at_the_greatest_number() {
    let mut counters = made("multi_hash:bits=8,threshold=200,decay=1000");
    let frontiers = placed(counters.as_mut(), &[(7, 1); 400]).concat();
    assert_eq!(frontiers, [vec![0; 199], vec![1; 201]].concat());
}

#[test]
fn members_refuse_what_makes_no_sense() {
    let refused = [
        ("sepbit:segments=0", "segments = 0"),
        ("dac:classes=1", "expected 2 to 64"),
        ("two_level_lru:hot=0", "at least one place"),
        ("multi_hash:threshold=16", "expected 1 to 15"),
        ("bloom_filters:threshold=9", "sum of all weights"),
        ("eti:threshold=0", "1 to 15"),
        ("fadac:base=1", "above 1"),
        ("warcip:period=0", "at least 1"),
        ("asa:classes=1", "expected 2 to 16"),
        ("autostream_sfr:chunk_kib=3", "no whole number of mapping units"),
        ("autostream_mq:streams=0", "expected 1 to 4095"),
        ("pcstream:live_mib=0", "at least 1"),
        ("pcstream:range=4", "unknown field `range`"),
    ];
    for (spec, expected) in refused {
        let fault = build(spec).err().unwrap_or_else(|| panic!("{spec} is accepted"));
        assert!(fault.to_string().contains(expected), "{spec}: {fault}");
    }
}
