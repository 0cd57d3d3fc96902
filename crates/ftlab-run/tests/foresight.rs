//! What a run tells a placement policy of the future comes true, through preconditioning, warm-up, filters and buffers.

use ftlab_run::{Members, Unobserved, parse_spec, run};
use ftlab_testkit::members::Seer;
use serde_json::{Value, json};

/// Deaths that came when they had been foretold, and survivors whose death was known.
fn witnessed(spec: &Value) -> ftlab_core::Result<(u64, u64)> {
    let mut members = Members::default();
    members
        .add_placement("witness", Box::new(|_| Ok(Box::new(Seer::new(1000)))))
        .unwrap();
    let outcome = run(&parse_spec(&spec.to_string())?, &members, &mut Unobserved)?;
    assert_eq!(outcome.summary["complete"], true);
    let figures = &outcome.summary["policies"]["placement"];
    let count = |name: &str| figures[name].as_f64().expect("a figure") as u64;
    Ok((count("deaths"), count("survivors")))
}

fn spec(backend: &str, workload: &str, set: &[&str]) -> Value {
    let set: Vec<&str> = [&["ftl.placement=witness", "ftl.op_ratio=0.28"], set].concat();
    json!({
        "drive": {"name": "tiny", "set": set},
        "workload": {"generator": {"spec": workload}},
        "backend": backend,
        "precondition": "fill",
        "warmup": "0.3x",
        "verify": true,
    })
}

const WRITES: &str = "zipf:bytes=1.5x,align=4KiB";

#[test]
fn the_future_comes_true() {
    for (backend, set) in [
        ("counting", vec![]),
        (
            "counting",
            vec![
                "ftl.victim=cost_benefit",
                "ftl.mapping=dftl",
                "ftl.map_cache=10%",
                "gc.hard=2",
                "gc.soft=2",
            ],
        ),
        ("counting", vec!["buffer.policy=lru", "buffer.capacity=1MiB"]),
        (
            "counting",
            vec![
                "buffer.policy=write_back",
                "buffer.capacity=256KiB",
                "buffer.power_loss_protected=true",
            ],
        ),
        ("timed", vec![]),
    ] {
        let (deaths, survivors) = witnessed(&spec(backend, WRITES, &set)).unwrap();
        assert!(
            deaths > 5000 && survivors > 1000,
            "{backend} {set:?}: {deaths}, {survivors}"
        );
    }
}

/// Ageing is host writes too, and repetitions are foreseen as they come.
#[test]
fn ageing_and_filters_are_foreseen() {
    let mut aged = spec("counting", WRITES, &["ftl.victim=cost_benefit"]);
    aged["precondition"] = "theory".into();
    let (deaths, _) = witnessed(&aged).unwrap();
    assert!(deaths > 20_000, "{deaths}");
    let mut repeated = spec("counting", "zipf:bytes=0.5x,align=4KiB", &[]);
    repeated["filters"] = json!(["repeat:times=3"]);
    let (deaths, _) = witnessed(&repeated).unwrap();
    assert!(deaths > 10_000, "{deaths}");
}

#[test]
fn a_future_that_cannot_be_known_is_refused() {
    let refused = |spec: &Value, part: &str| {
        let error = witnessed(spec).unwrap_err().to_string();
        let start = "placement policy `witness` knows the future, ";
        assert!(error.starts_with(start) && error.contains(part), "{error}");
    };
    let buffered = ["buffer.policy=lru", "buffer.capacity=1MiB"];
    refused(&spec("timed", WRITES, &buffered), "on the counting backend only");
    let mut cut = spec("counting", WRITES, &["ftl.checkpoint=1GiB", "gc.hard=2", "gc.soft=2"]);
    cut["power_cuts"] = json!([100]);
    refused(&cut, "--power-cut");
    let mut piped = spec("counting", WRITES, &[]);
    piped["workload"] = json!({"trace": {"paths": ["-"], "format": "csv"}});
    piped["warmup"] = Value::Null;
    refused(&piped, "standard input");
}
