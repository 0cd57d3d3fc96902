use ftlab_core::{PolicySpec, Stream};

use super::super::testing::Harness;
use super::super::{Setup, catalogue};

mod changed_entries;
mod looking;
mod mined;
mod prefetching;
mod removal;
mod shared_loads;

/// Translation pages of 16 entries over 256 LPNs, correlated pages of 8 LPNs; so many nodes and entries beside `extra` bytes.
fn harness(params: &str, nodes: u64, entries: u64, extra: u64) -> Harness {
    Harness::new(&format!("cpftl:{params}"), 256, 64, 16 * nodes + 6 * entries + extra)
}

fn count(words: &str, word: &str) -> u64 {
    words.split(' ').filter(|&other| other == word).count() as u64
}

/// All reads of flash that an answer asks for.
fn reads(words: &str) -> u64 {
    ["load", "probe", "evict", "gc"]
        .iter()
        .map(|word| count(words, word))
        .sum()
}

/// Pages are all there from the beginning, and none goes because it brings too little.
const KEPT: &str = "removal=off";
const QUIET: &str = "request_prefetch=false,selective_prefetch=false";

#[test]
fn planted_pairs_hit_every_second_time_where_lru_never_does() {
    // 64 pairs far apart, read in turn: 128 entries, of which a cache of 1000 bytes holds at most 45.
    let pair = |i: u32| (32 * i, 2048 + 32 * (13 * i % 64) + 1);
    let pairs: Vec<String> = (0..64).map(pair).map(|(a, b)| format!("{a}-{b}")).collect();
    // The directory takes 16 bytes and a filter of 64 x 10 / ln 2 = 928 bits for each of two pages.
    for (directory, filtered) in [("search", 0), ("300", 2 * (16 + 116))] {
        let spec = format!("cpftl:dei=off,directory={directory},{KEPT},pairs={}", pairs.join("/"));
        let mut with = Harness::new(&spec, 4096, 512, 1000 + filtered);
        let mut without = Harness::new("tpftl", 4096, 512, 1000);
        // The first read writes two pages of 32 pairs.
        assert_eq!(with.read(4095), "load 31 write 0 write 1");
        without.read(4095);
        let (mut probes, mut loads, mut plain) = (0, 0, 0);
        for _ in 0..3 {
            for (a, b) in (0..64).map(pair) {
                for key in [a, b] {
                    let words = with.read(key);
                    probes += count(&words, "probe");
                    loads += count(&words, "load");
                    plain += count(&without.read(key), "load");
                }
            }
        }
        // The bound: of each pair the second, and the first only if it stayed, which it cannot.
        assert_eq!(with.hits(), (3 * 64, 3 * 128 + 1));
        assert_eq!((loads, plain, without.hits().0), (0, 3 * 128, 0));
        let wrong = with.figure("corr_reads_false") as u64;
        assert_eq!(probes, 3 * 64 + wrong);
        assert!(wrong <= 4 * filtered.min(1), "{wrong}");
        assert_eq!(with.figure("preloaded_used"), 3.0 * 64.0);
    }
}

#[test]
fn a_write_of_one_member_removes_its_page() {
    let spec = format!("dei=off,directory=search,{KEPT},{QUIET},pairs=3-100/5-200/7-130/9-140/11-250");
    let mut h = harness(&spec, 4, 8, 0);
    // Pages of four pairs.
    assert_eq!(h.read(60), "load 3 write 0 write 1");
    assert_eq!(h.read(100), "probe 0");
    assert_eq!(h.policy.cached(0, 3), Some((3, false)));
    // 5 is in page 0, which is read to be sure, and given up.
    assert_eq!(h.write(5), "probe 0 drop 0 load 0");
    assert_eq!(h.read(130), "load 8");
    assert_eq!(h.read(250), "probe 1");
    // As does a move of data, once for all that moved.
    assert_eq!(h.moved(&[11, 250]), "probe 1 drop 1");
    assert_eq!(
        (
            h.figure("corr_removed_by_write"),
            h.figure("corr_removed_by_collection")
        ),
        (1.0, 1.0)
    );
    assert_eq!(h.figure("corr_pages_live"), 0.0);
}

#[test]
fn a_page_that_cannot_be_told_apart_is_read_in_vain_or_given_up_unread() {
    // A filter of 8 bits takes anything near for held.
    let spec = |more: &str| {
        format!("dei=off,directory=40,filter_bits=8,removal=off,{QUIET},pairs=3-100-104-108-112-116-120-124{more}")
    };
    let mut h = harness(&spec(""), 4, 8, 40);
    h.read(60);
    let probed: Vec<u32> = (4..100)
        .filter(|&key| h.read(key).starts_with("probe 0 then load"))
        .collect();
    assert!(probed.len() > 20, "{probed:?}");
    assert_eq!(h.figure("corr_reads_false"), probed.len() as f64);
    assert!(h.figure("corr_false_positive") > 0.2);
    // Beyond the largest LPN it is never asked.
    (125..200).for_each(|key| assert!(!h.read(key).contains("probe")));
    let mut h = harness(&spec(",write_check=directory"), 4, 8, 40);
    h.read(60);
    assert!(h.write(probed[0]).starts_with("drop 0 "));
    // Which of them pass depends on the filter alone, so the one above did; a read in vain leaves the page alone.
    let mut h = harness(&spec(""), 4, 8, 40);
    h.read(60);
    assert!(h.write(probed[0]).starts_with("probe 0 "));
    assert_eq!(h.figure("corr_pages_live"), 1.0);
}

#[test]
fn what_the_directory_does_not_take_is_the_entries() {
    // Room for two nodes of an entry, 22 bytes each, beside one page of 17; for three without.
    let spec = format!("dei=off,directory=17,filter_bits=8,removal=off,{QUIET},pairs=3-100");
    let mut h = harness(&spec, 2, 2, 22);
    let cached = |h: &Harness, keys: [u32; 4]| keys.map(|key| h.policy.cached(0, key).is_some());
    let bytes = |h: &Harness| {
        let memory = h.policy.memory();
        memory
            .iter()
            .find(|(name, _)| *name == "prediction_directory")
            .unwrap()
            .1
    };
    [20, 40, 60].iter().for_each(|&key| drop(h.read(key)));
    assert_eq!(
        (bytes(&h), cached(&h, [20, 40, 60, 3])),
        (17, [false, true, true, false])
    );
    // Its write gives the page up: a third entry fits.
    h.write(3);
    assert_eq!((bytes(&h), cached(&h, [20, 40, 60, 3])), (0, [false, true, true, true]));
}

#[test]
fn pages_come_back_after_a_power_cut_and_with_a_new_run() {
    let mut h = harness(
        &format!("directory=search,dei=off,renew=10,{QUIET},pairs=3-100"),
        4,
        8,
        0,
    );
    h.entries[100] = u32::MAX;
    // One LPN alone is not worth a page.
    assert_eq!(h.read(60), "load 3");
    h.entries[100] = 777;
    let answers: Vec<String> = (0..10).map(|_| h.read(60)).collect();
    assert_eq!(answers.iter().filter(|words| *words == "write 0").count(), 1);
    h.policy.forget();
    assert!(!h.policy.is_live(0));
    assert_eq!(h.read(3), "load 0 write 0");
    assert!(h.policy.is_live(0) && h.policy.own_pages() == 1);
}

#[test]
fn a_load_fills_no_more_than_its_share() {
    // Each of the members has a translation page of its own, 22 bytes. A fifth of 330 bytes is 66: three of them.
    let pairs = "pairs=3-20-36-52-68-84-100";
    for (limit, brought) in [("1", 6), ("0.2", 3), ("0.001", 1)] {
        let mut h = harness(
            &format!("directory=search,dei=off,load_limit={limit},{QUIET},{pairs}"),
            0,
            0,
            330,
        );
        h.read(60);
        assert_eq!(h.read(3), "probe 0");
        // The best supported first.
        let there = [20, 36, 52, 68, 84, 100].map(|key| h.policy.cached(0, key).is_some());
        assert_eq!(there, std::array::from_fn(|member| member < brought), "{limit}");
    }
}

#[test]
fn a_key_brings_its_group_and_a_member_nothing() {
    let spec = |bring| format!("directory=search,dei=off,bring={bring},load_limit=1,{QUIET},pairs=3-100");
    for (bring, by_member) in [("groups", true), ("keyed", false)] {
        let mut h = harness(&spec(bring), 4, 8, 0);
        h.read(60);
        assert_eq!(h.read(100), "probe 0");
        assert_eq!(h.policy.cached(0, 3).is_some(), by_member, "{bring}");
        let mut h = harness(&spec(bring), 4, 8, 0);
        h.read(60);
        assert_eq!(h.read(3), "probe 0");
        assert!(h.policy.cached(0, 100).is_some(), "{bring}");
    }
}

#[test]
fn pages_are_as_full_as_asked_or_as_the_directory_has_room_for() {
    let pairs = "pairs=1-101/2-102/3-103/4-104/5-105/6-106";
    // Pages of eight LPNs; two pages, or three of four LPNs.
    for (page_lpns, pages) in [(0, 2), (4, 3), (2, 6), (8, 2)] {
        let h = harness(&format!("directory=search,page_lpns={page_lpns},{pairs}"), 9, 9, 0);
        assert_eq!(h.policy.own_pages(), pages, "{page_lpns}");
    }
    // A filter of 8 LPNs has 8 x 10 / ln 2 = 116 bits, 15 bytes: 31 with its head. In 25 bytes there is room for 9 of filter,
    // 72 bits, which take 4 LPNs at 14.4 bits each; of such pages one fits, and two do not.
    let mut h = harness(&format!("directory=25,{QUIET},{pairs}"), 9, 9, 25);
    assert_eq!((h.policy.own_pages(), h.figure("corr_pages_left_out")), (1, 2.0));
    h.read(60);
    assert_eq!(h.read(102), "probe 0");
    assert!(!h.read(103).starts_with("probe 0 load"));
    // With the size given, it is refused.
    assert!(refused(&format!("directory=25,page_lpns=8,{pairs}"), 4000).contains("directory: 25 of the 4000 bytes"));
}

/// Random accesses of all kinds; the answers one by one.
fn answers(h: &mut Harness, steps: u32, seed: u64, mut seen: impl FnMut(&Harness, &str)) {
    let mut random = Stream::new(seed, "accesses");
    let units = h.entries.len() as u64;
    for _ in 0..steps {
        // Half of them in a tenth of the keys.
        let limit = if random.below(2) == 0 { units / 10 } else { units };
        let key = random.below(limit) as u32;
        let words = match random.below(10) {
            0..=4 => h.read(key),
            5 => h.read_run(key, 1 + random.below(9).min(units - 1 - u64::from(key)) as u32),
            6..=8 => h.write(key),
            _ => {
                let mut keys: Vec<u32> = (0..6).map(|_| random.below(units) as u32).collect();
                keys.sort_unstable();
                keys.dedup();
                h.moved(&keys)
            }
        };
        seen(h, &words);
    }
}

#[test]
fn without_a_set_it_does_what_its_base_does() {
    for (more, seed) in [("", 1), ("serial=true,order=mru,batch=false", 2)] {
        let mut base = Vec::new();
        let mut h = Harness::new(&format!("tpftl:{more}"), 2000, 512, 700);
        answers(&mut h, 4000, seed, |_, words| base.push(words.to_owned()));
        let hits = h.hits();
        let mut at = 0;
        let mut h = Harness::new(&format!("cpftl:dei=off,{more}"), 2000, 512, 700);
        answers(&mut h, 4000, seed, |_, words| {
            assert_eq!(words, base[at], "access {at}");
            at += 1;
        });
        assert_eq!(h.hits(), hits);
    }
}

/// The words of an answer but for its misses' loads.
fn without_loads(words: &str) -> Vec<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let pairs = words.chunks(2).filter(|pair| pair[0] != "load" && !pair[0].is_empty());
    pairs.map(|pair| pair.join(" ")).collect()
}

/// By default a write reads nothing that its request overwrites. All else is as with the base, to the last entry: so it never needs more.
#[test]
fn without_a_set_it_is_its_base_without_reads_for_writes() {
    for (more, seed) in [
        ("", 1),
        ("request_prefetch=false", 2),
        ("selective_prefetch=false", 3),
        ("threshold=1", 4),
    ] {
        let (mut base, mut held) = (Vec::new(), Vec::new());
        let of = |h: &Harness| (0..2000).map(|key| h.policy.cached(0, key)).collect::<Vec<_>>();
        let mut h = Harness::new(&format!("tpftl:{more}"), 2000, 512, 700);
        answers(&mut h, 4000, seed, |h, words| {
            base.push(words.to_owned());
            held.push(of(h));
        });
        let (mut at, mut saved) = (0, 0);
        let mut h = Harness::new(&format!("cpftl:{more}"), 2000, 512, 700);
        answers(&mut h, 4000, seed, |h, words| {
            assert_eq!(of(h), held[at], "access {at}");
            if words != base[at] {
                let less = count(&base[at], "load") - count(words, "load");
                assert_eq!(without_loads(words), without_loads(&base[at]), "access {at}");
                assert!(less > 0, "access {at}: {words} instead of {}", base[at]);
                saved += less;
            }
            at += 1;
        });
        assert_eq!(h.policy.counts().deferred, saved);
        let loads: u64 = base.iter().map(|words| count(words, "load")).sum();
        assert!(saved > loads / 8, "{more}: {saved} of {loads}");
    }
}

/// Translation pages of 16 entries, all of them loaded ahead: a write whose load would bring more than its own entry makes it.
#[test]
fn a_write_reads_what_is_loaded_ahead_beyond_its_request() {
    let mut h = harness("", 8, 20, 0);
    (0..8).for_each(|page| drop(h.read(16 * page)));
    // A stream switches selective prefetching on: with 0 to 128 in the cache, a miss of 129 would bring one entry behind it.
    (128..160).for_each(|key| drop(h.read(key)));
    assert!(h.figure("selective_prefetch_share") > 0.0);
    let (mut read, mut not) = (0, 0);
    for key in 160..256 {
        match h.write(key).contains("load") {
            true => read += 1,
            false => not += 1,
        }
    }
    // As many loads as the stream of reads makes less one for each page, whose first entry has nothing in front of it; the rest hits.
    assert!(read > 0 && not > 0, "{read} {not}");
    let mut base = Harness::new("tpftl", 256, 64, 16 * 8 + 6 * 20);
    (0..8).for_each(|page| drop(base.read(16 * page)));
    (128..160).for_each(|key| drop(base.read(key)));
    let loads = (160..256).filter(|&key| base.write(key).contains("load")).count();
    assert_eq!(h.figure("writes_deferred") as usize + read, loads);
}

#[test]
fn the_budget_holds_and_no_entry_is_stale() {
    let pairs = "1-900-30-31/40-1500/3-77-1200/901-2/1999-4/600-601-602/17-1000/18-1001/19-1002";
    for (seed, params) in [
        "directory=search",
        "directory=200,false_positive=0.01,dei=skew",
        "directory=30,fit=filters,write_check=directory,removal=off",
        "directory=40,filter_bits=24,dei=on,dirty_share=0.2,write_miss=defer,removal=off",
        "directory=200,dei=off,serial=true,removal=0.5,min_loads=2",
        "directory=60,fit=filters,dei=skew,frequent=3,second_chance=2,serial=true,removal=off",
        "directory=120,online=300,window=30,region=50,online_pages=9",
        "directory=90,fit=filters,online=200,window=50,online_pages=3,after_write_back=clean,write_check=directory,removal=off",
    ]
    .iter()
    .enumerate()
    {
        let spec = format!("cpftl:{params},start=20,renew=150,pairs={pairs}");
        let mut h = Harness::new(&spec, 2000, 512, 700);
        answers(&mut h, 6000, seed as u64, |h, _| {
            let memory = h.policy.memory();
            let used: u64 = memory
                .iter()
                .filter(|(name, _)| !["gtd", "mining_buffer"].contains(name))
                .map(|(_, bytes)| bytes)
                .sum();
            assert!(used <= 700, "{memory:?}");
        });
        // The rule `balance` tries less where pages are written before they serve.
        let least = if params.contains("removal") { 5.0 } else { 0.0 };
        assert!(
            ["corr_programs", "corr_reads_true"].iter().all(|name| h.figure(name) > least),
            "{params}"
        );
        assert!(h.figure("corr_removed_by_write") + h.figure("corr_removed_by_collection") > least);
    }
}

#[test]
fn a_set_comes_from_a_file_of_the_drives_unit() {
    let path = std::env::temp_dir().join(format!("ftlab-cpftl-{}.txt", std::process::id()));
    let text = "ftlab-correlations 1\nunit 64\nwindow 8\nwindows 10\n3 100 5\n3 200 4\n5 300 9\n";
    std::fs::write(&path, text).unwrap();
    let mut h = harness(
        &format!("directory=search,load_limit=1,{QUIET},correlations={}", path.display()),
        8,
        8,
        80,
    );
    h.read(60);
    assert_eq!((h.read(200).as_str(), h.read(100).as_str()), ("probe 0", ""));
    assert_eq!(h.figure("corr_lpns_left_out"), 1.0);
    std::fs::write(&path, text.replace("unit 64", "unit 4096")).unwrap();
    let message = refused(&format!("correlations={}", path.display()), 4000);
    assert!(
        message.contains("mined in units of 4096 bytes; expected 64"),
        "{message}"
    );
    std::fs::remove_file(&path).unwrap();
}

fn refused(params: &str, cache_bytes: u64) -> String {
    let spec = PolicySpec::parse(&format!("cpftl:{params}")).unwrap();
    let mut setup = Setup {
        logical_units: 256,
        values: 0,
        rows: 0,
        unit_bytes: 64,
        cache_bytes,
        layout: None,
        checked: true,
        beside_slot: 0,
    };
    match catalogue().build(&spec, &mut setup) {
        Ok(_) => panic!("{params} is accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    for (params, cache, expected) in [
        (
            "dirty_share=1",
            4000,
            "dirty_share = 1: expected a share above 0 and below 1",
        ),
        ("margin=0", 4000, "margin = 0: expected a share above 0 and at most 1"),
        ("false_positive=0", 4000, "false_positive = 0: expected"),
        (
            "removal=-1",
            4000,
            "removal = -1: expected `balance`, `regular`, `off` or hits per load",
        ),
        ("patience=0", 4000, "patience = 0: expected reads, above 0"),
        (
            "pairs=1-x",
            4000,
            "pairs: `1-x`: expected two different LPNs or more, as in",
        ),
        (
            "pairs=2-3/1-1",
            4000,
            "pairs: `1-1`: expected two different LPNs or more",
        ),
        ("pairs=2-3/7", 4000, "pairs: `7`: expected two different LPNs or more"),
        (
            "pairs=2-3/1-2-2",
            4000,
            "pairs: `1-2-2`: LPN 2 twice: expected each LPN of a group once",
        ),
        (
            "pairs=4294967296-1",
            4000,
            "pairs: `4294967296-1`: LPN 4294967296: expected at most 4294967295",
        ),
        ("pairs=1-", 4000, "pairs: `1-`: expected two different LPNs or more"),
        ("pairs=1-2/", 4000, "pairs: ``: expected two different LPNs or more"),
        ("pairs=/", 4000, "pairs: ``: expected two different LPNs or more"),
        (
            "page_lpns=1",
            4000,
            "page_lpns = 1: expected 0, or 2 to 8, for which a page of 64 bytes has room",
        ),
        ("page_lpns=9", 4000, "page_lpns = 9: expected 0, or 2 to 8"),
        (
            "directory=1GiB",
            4000,
            "directory = 1073741824 bytes: expected less than the 4000 bytes of ftl.map_cache",
        ),
        (
            "directory=0.999",
            4000,
            "directory: 3996 of the 4000 bytes of ftl.map_cache: expected at most 3956, beside which there is room for two entries",
        ),
        (
            "directory=1",
            4000,
            "directory = 1: expected bytes, 17 or more, a share of ftl.map_cache above 0 and below 1, or `search`",
        ),
        (
            "directory=0",
            4000,
            "directory = 0: expected bytes, 17 or more, a share",
        ),
        (
            "directory=16B",
            4000,
            "directory = 16: expected bytes, 17 or more, a share",
        ),
        ("directory=4000", 4000, "directory = 4000 bytes: expected less than"),
        (
            "directory=17,pairs=1-9",
            200,
            "directory: 17 of the 200 bytes of ftl.map_cache: expected room for one page",
        ),
        (
            "directory=17,online=2000",
            170,
            "directory: 17 of the 170 bytes of ftl.map_cache: expected room for one page",
        ),
        (
            "online=1000",
            4000,
            "online = 1000: expected 0, or at least two windows of 512 reads",
        ),
        (
            "online=2000,online_pages=0",
            4000,
            "online_pages = 0: expected at least 1",
        ),
        ("online=2000,region=0", 4000, "region of 0 units: expected at least 1"),
        // What only mining during the run reads is refused without it, too.
        ("confidence=2", 4000, "confidence 2: expected a share from 0 to 1"),
        ("support=7", 4000, "support 7: expected a share from 0 to 1"),
        ("window=0", 4000, "window 0: expected 2 to 65536 accesses"),
        ("region=0", 4000, "region of 0 units: expected at least 1"),
        ("mass=9", 4000, "mass 9: expected a share above 0, at most 1"),
        ("least=0", 4000, "least 0: expected at least 1"),
        ("region_pairs=0", 4000, "region_pairs 0: expected at least 1"),
        ("online_pages=0", 4000, "online_pages = 0: expected at least 1"),
        (
            "load_limit=0",
            4000,
            "load_limit = 0: expected a share above 0, at most 1",
        ),
        (
            "dei=skew",
            80,
            "ftl.map_cache = 80 bytes, 16 of them for the directory and the update counts, 25 for changed",
        ),
        (
            "directory=some",
            4000,
            "directory = some: expected bytes, a share of ftl.map_cache, or `search`",
        ),
        ("directory=-1", 4000, "directory = -1: expected bytes"),
        ("correlations=/nowhere/set", 4000, "/nowhere/set"),
        (
            "correlations=/",
            4000,
            "mapping policy `cpftl`: correlations = /: a folder; expected a file of `ftlab mine`",
        ),
        (
            "pairs=1",
            4000,
            "pairs: `1`: expected two different LPNs or more, as in 1-9/4-30-31",
        ),
        ("pairs=1.5", 4000, "pairs: `1.5`: expected two different LPNs or more"),
    ] {
        let message = refused(params, cache);
        assert!(message.contains(expected), "{params}: {message}");
    }
}
