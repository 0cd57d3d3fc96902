//! What a run tells a placement policy of the future comes true, through preconditioning, warm-up, filters and buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ftlab_core::Lpn;
use ftlab_ftl::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::{Frontier, Now};
use ftlab_run::{Members, Unobserved, parse_spec, run};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

/// Overwrites and trims that came when they had been foretold, and survivors whose death was known.
#[derive(Default)]
struct Seen {
    deaths: AtomicU64,
    survivors: AtomicU64,
}

/// Holds every death against what was said when the version was placed.
struct Witness {
    said: FxHashMap<u32, Option<u64>>,
    seen: Arc<Seen>,
}

impl Witness {
    fn dies(&mut self, lpn: Lpn, tick: u64) {
        if let Some(said) = self.said.remove(&lpn.0) {
            assert_eq!(said, Some(tick), "{lpn:?} dies at tick {tick}");
            self.seen.deaths.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl PlacementPolicy for Witness {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn asks(&self) -> Asks {
        Asks {
            future: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.dies(write.lpn, write.now.tick);
        self.said.insert(write.lpn.0, write.dies);
        Frontier::from(write.dies.is_none_or(|tick| tick > write.now.tick + 1000))
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        if let Some(dies) = survivor.dies {
            assert!(dies >= survivor.now.tick, "{:?} survives its death", survivor.lpn);
            self.seen.survivors.fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.dies(lpn, now.tick);
        }
    }
}

fn witnessed(spec: &Value) -> ftlab_core::Result<(u64, u64)> {
    let seen = Arc::new(Seen::default());
    let mut members = Members::default();
    let told = seen.clone();
    members
        .add_placement(
            "witness",
            Box::new(move |_| {
                Ok(Box::new(Witness {
                    said: FxHashMap::default(),
                    seen: told.clone(),
                }))
            }),
        )
        .unwrap();
    let outcome = run(&parse_spec(&spec.to_string())?, &members, &mut Unobserved)?;
    assert_eq!(outcome.summary["complete"], true);
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    Ok((count(&seen.deaths), count(&seen.survivors)))
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
