//! The curve against runs: the hits of every size must be those that a run counts.

use super::*;
use crate::{Unobserved, parse_spec, run};

const TRACE: &str = "time_us,op,offset,length,flags\n";

/// What `tiny` needs to keep its map in flash.
const IN_FLASH: &[&str] = &["ftl.mapping=dftl:policy=lru", "gc.hard=2"];

/// Spec of a run: a generator or trace on `tiny`, and more keys.
fn spec(workload: &str, set: &[&str], extra: &str) -> String {
    format!(
        r#"{{"drive": {{"name": "tiny", "set": {}}}, "workload": {workload}, "backend": "counting"{extra}}}"#,
        json!(set)
    )
}

fn generator(text: &str) -> String {
    json!({ "generator": { "spec": text } }).to_string()
}

fn curves(run: &str, sizes: &[&str]) -> Result<Value> {
    let spec = MrcSpec::parse(&format!(r#"{{"run": {run}, "sizes": {}}}"#, json!(sizes)))?;
    mrc(&spec, &Members::default(), &mut Unobserved)
}

/// Look-ups and hits of a run.
fn of_run(spec: &str) -> (u64, u64, Value) {
    let outcome = run(&parse_spec(spec).unwrap(), &Members::default(), &mut Unobserved).unwrap();
    let cache = &outcome.summary["map_cache"];
    (
        cache["lookups"].as_u64().unwrap(),
        cache["hits"].as_u64().unwrap(),
        outcome.summary,
    )
}

/// Holds the curve of `entries` against runs of each size; the summary of the last run.
fn agrees(workload: &str, set: &[&str], extra: &str, sizes: &[&str]) -> Value {
    let answer = curves(&spec(workload, set, extra), sizes).unwrap();
    let points = answer["curves"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), sizes.len());
    let mut last = Value::Null;
    for point in points {
        let bytes = format!("ftl.map_cache={}B", point["bytes"]);
        let set: Vec<&str> = [set, IN_FLASH, &[&bytes]].concat();
        let (lookups, hits, summary) = of_run(&spec(workload, &set, extra));
        assert_eq!(answer["lookups"]["all"], lookups, "{workload} {set:?}");
        assert_eq!(point["hits"], hits, "{workload} {set:?}");
        last = summary;
    }
    assert!(
        points[0]["hits"].as_u64() < points[points.len() - 1]["hits"].as_u64(),
        "{points:?}"
    );
    last
}

const SIZES: &[&str] = &["16B", "100B", "3000B", "16KiB", "50KiB", "128KiB", "1GiB"];

#[test]
fn reads_and_writes_hit_as_in_a_run() {
    // Several units a request, some only in part; a full drive that collects: 80,000 writes of 4 to 20 KiB on 64 MiB.
    let summary = agrees(
        &generator("zipf:read=0.5,size=6KiB,align=2KiB,requests=40000"),
        &[],
        "",
        SIZES,
    );
    assert!(summary["counts"]["gc_collections"].as_u64() > Some(0), "{summary}");
    assert!(summary["counts"]["rmw_reads"].as_u64() > Some(0), "{summary}");
}

#[test]
fn a_warm_cache_hits_as_in_a_run() {
    let zipf = generator("zipf:read=0.3,size=4KiB,requests=20000");
    agrees(&zipf, &[], r#", "warmup": "0.5x""#, SIZES);
    agrees(
        &zipf,
        &["ftl.victim=cost_benefit"],
        r#", "precondition": "theory""#,
        SIZES,
    );
    // A drive that has DFTL already keeps the size of its entries.
    let set = ["ftl.mapping=dftl:entry_bytes=12", "gc.hard=2"];
    let answer = curves(&spec(&zipf, &set, ""), &["12KiB"]).unwrap();
    assert_eq!(answer["curves"][0]["points"][0]["items"], 1024);
    assert_eq!(answer["curves"][0]["item_bytes"], 12);
}

#[test]
fn a_write_buffer_delays_look_ups_as_in_a_run() {
    let zipf = generator("zipf:read=0.4,size=4KiB,requests=20000");
    let summary = agrees(&zipf, &["buffer.policy=write_back", "buffer.capacity=1MiB"], "", SIZES);
    assert!(summary["counts"]["buffer_write_hits"].as_u64() > Some(0), "{summary}");
}

/// Writes, trims and reads of 2,000 units: what is trimmed already is not looked up again.
#[test]
fn trims_are_looked_up_as_in_a_run() {
    let folder = std::env::temp_dir().join(format!("ftlab-mrc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("trims.csv");
    let mut text = TRACE.to_owned();
    let mut random = ftlab_core::Stream::new(3, "trims");
    for i in 0..20_000u64 {
        let unit = random.below(2000) * random.below(2000) / 2000;
        let op = ["write", "read", "trim"][random.below(3) as usize];
        let (offset, length) = (unit * 4096 + random.below(2) * 512, 4096 * (1 + random.below(4)));
        text += &format!("{i},{op},{offset},{length},\n");
    }
    std::fs::write(&path, text).unwrap();
    let trace = json!({ "trace": { "paths": [path] } }).to_string();
    for precondition in ["none", "fill"] {
        let extra = format!(r#", "precondition": "{precondition}""#);
        agrees(&trace, &[], &extra, SIZES);
        let answer = curves(&spec(&trace, &[], &extra), SIZES).unwrap();
        let count = |key: &str| answer["lookups"][key].as_u64().unwrap();
        assert!(count("trims") > 0);
        assert_eq!(count("all"), count("reads") + count("writes") + count("trims"));
        let whole = &answer["curves"][0];
        assert_eq!(whole["points"][6]["hit_ratio"], whole["best_hit_ratio"]);
        assert_eq!(
            whole["enough_bytes"].as_u64(),
            whole["curve"]["bytes"].as_array().unwrap().last().unwrap().as_u64()
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn time_does_not_change_what_is_looked_up() {
    let zipf = generator("zipf:read=0.5,size=8KiB,requests=5000,qd=16");
    let timed = |set: &[&str]| spec(&zipf, set, "").replace("counting", "timed");
    let answer = curves(&timed(&[]), &["4KiB"]).unwrap();
    let (lookups, hits, _) = of_run(&timed(&[IN_FLASH, &["ftl.map_cache=4KiB"]].concat()));
    assert_eq!(answer["lookups"]["all"], lookups);
    assert_eq!(answer["curves"][0]["points"][0]["hits"], hits);
}

/// One after the other, twice, over 16 MiB: 4096 units, four translation pages of 1024.
#[test]
fn a_sequential_scan_by_hand() {
    let scan = generator("sequential:read=1,size=4KiB,span=16MiB,requests=8192");
    let answer = curves(&spec(&scan, &[], ""), &["32760B", "32KiB"]).unwrap();
    let [entries, pages] = [&answer["curves"][0], &answer["curves"][1]];
    // Every unit comes back when 4095 others have been touched: 4095 entries hit nothing, 4096 the second round.
    assert_eq!(entries["points"][0]["items"], 4095);
    assert_eq!(
        (&entries["points"][0]["hits"], &entries["points"][1]["hits"]),
        (&json!(0), &json!(4096))
    );
    assert_eq!(
        (&entries["touched"], &entries["enough_bytes"]),
        (&json!(4096), &json!(32768))
    );
    assert_eq!(entries["best_hit_ratio"], 0.5);
    assert_eq!(entries["knees"][0], json!({ "hit_ratio": 0.5, "bytes": 32768 }));
    assert_eq!(entries["knees"][1]["bytes"], Value::Null);
    // Of a translation page's look-ups all but one hit at once; four pages hold the second round as well.
    assert_eq!(pages["points"][0]["items"], 7);
    assert_eq!(pages["points"][0]["hits"], 8192 - 4);
    assert_eq!(pages["curve"]["bytes"], json!([4096, 8192, 12288, 16384]));
    assert_eq!(pages["curve"]["hit_ratio"][0], (8192.0 - 8.0) / 8192.0);
    assert_eq!((&pages["touched"], &pages["item_bytes"]), (&json!(4), &json!(4096)));
    assert_eq!(answer["lookups"]["reads"], 8192);
}

#[test]
fn the_table_has_sizes_of_its_own() {
    let spec = |set: &[&str]| {
        let run = spec(&generator("zipf:read=0.5,requests=5000"), set, "");
        MrcSpec::parse(&format!(r#"{{"run": {run}}}"#)).unwrap()
    };
    let sizes = |set: &[&str]| -> Vec<u64> {
        let answer = mrc(&spec(set), &Members::default(), &mut Unobserved).unwrap();
        let points = answer["curves"][0]["points"].as_array().unwrap();
        points.iter().map(|point| point["bytes"].as_u64().unwrap()).collect()
    };
    let plain = sizes(&[]);
    assert!(
        plain.len() > 8 && plain.iter().all(|size| size.is_power_of_two()),
        "{plain:?}"
    );
    let own = sizes(&["ftl.mapping=tpftl", "ftl.map_cache=5000B", "gc.hard=2"]);
    assert_eq!(
        own.iter().filter(|size| !size.is_power_of_two()).collect::<Vec<_>>(),
        [&5000]
    );
    // A share is one of the whole map, as that of `ftl.map_cache` is.
    let answer = curves(
        &self::spec(&generator("uniform:requests=100"), &[], ""),
        &["50%", "25%"],
    )
    .unwrap();
    let shares: Vec<&Value> = answer["curves"][0]["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| &point["share"])
        .collect();
    assert_eq!(shares, [&json!(0.25), &json!(0.5)]);
}

#[test]
fn specs_that_make_no_sense_are_refused() {
    let workload = generator("uniform:requests=100");
    for (extra, sizes, words) in [
        ("", "[]", "sizes: expected at least one"),
        ("", r#"["big"]"#, "`big`: expected bytes"),
        ("", r#"["8B"]"#, "size 8 B: expected room for at least 2 entries"),
        (r#", "break_at": "waf>3""#, "null", "break_at: belongs to a run"),
        (r#", "power_cuts": [3]"#, "null", "power_cuts: belongs to a run"),
        (r#", "qd": 0"#, "null", "qd"),
    ] {
        let json = format!(r#"{{"run": {}, "sizes": {sizes}}}"#, spec(&workload, &[], extra));
        let refused = MrcSpec::parse(&json).and_then(|spec| mrc(&spec, &Members::default(), &mut Unobserved));
        let sentence = refused.unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
}
