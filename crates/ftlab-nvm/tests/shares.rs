//! What a run says of time: shares of the time until all is written are at most one, and long pauses and long times cost nothing.

mod common;

use common::{memory, read, serve, write};
use ftlab_nvm::run::{self, RunSpec};
use serde_json::{Value, json};

fn run(workload: &str, memory: &str, set: &[&str]) -> ftlab_core::Result<Value> {
    let spec = json!({"workload": workload, "memory": memory, "set": set});
    run::run(&RunSpec::parse(&spec.to_string())?, &mut || Ok(()))
}

fn shares(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(shares).collect(),
        Value::Object(bank) => shares(&bank["busy"]),
        number => vec![number.as_f64().unwrap()],
    }
}

/// Every memory that comes with ftlab, and keys that bound the time of a bank in another way.
#[test]
fn shares_of_time_are_at_most_one() {
    let memories: [(&str, &[&str]); 9] = [
        ("archsampler", &[]),
        ("pcm", &[]),
        ("stt-mram", &[]),
        ("optane-like", &[]),
        ("ddr5", &[]),
        ("cxl", &[]),
        ("pcm", &["timing.t_rtp=0ns", "timing.t_ccd=40ns"]),
        (
            "archsampler",
            &["write.at_once=0", "write.pause_step=50ns", "write.buffer=16"],
        ),
        (
            "archsampler",
            &[
                "write.at_once=0",
                "controller.look_ahead=true",
                "timing.t_rtp=1ns",
                "timing.t_ccd=9ns",
            ],
        ),
    ];
    for (memory, set) in memories {
        for workload in [
            "random:requests=30,read=0",
            "random:requests=3000,read=0.5",
            "chain:requests=3000,bank=0,outstanding=4",
            "random:requests=3000,read=0.6,gap=5ns,arrivals=poisson",
        ] {
            let measured = &run(workload, memory, set).unwrap()["measured"];
            let of = format!("{workload} on {memory} {set:?}");
            let (finished, drained) = (&measured["finished_ns"], &measured["drained_ns"]);
            assert!(
                finished.as_f64() <= drained.as_f64() && drained.as_f64() > Some(0.0),
                "{of}"
            );
            let busy = [&measured["banks"], &measured["heat"]["busy"], &measured["bus_busy"]];
            for share in busy.into_iter().flat_map(shares) {
                assert!((0.0..=1.0 + 1e-9).contains(&share), "{of}: {share}");
            }
            let rate = measured["bytes_per_s"].as_f64().unwrap();
            let wanted = measured["requests"].as_f64().unwrap() * 64.0 / (drained.as_f64().unwrap() * 1e-9);
            assert!((rate / wanted - 1.0).abs() < 1e-9, "{of}: {rate} for {wanted}");
        }
    }
}

/// Posted writes of two rows of one bank are done at once. Column commands at 100 and, the row closed, later: by write cost the line is in the row buffer
/// at 124, closing it takes 300 + 10, opening 100, the data of the other end 24 later; or recovery holds the row until 424 and the last one's ends 300 after its data.
#[test]
fn posted_writes_drain_after_the_last_is_done() {
    let of = |cost: &str| {
        let set = [&format!("write.cost={cost}"), "write.buffer=8"];
        let (found, system) = serve(&memory(&set), &[write(0, 0, 1, 0), write(0, 0, 2, 0)]);
        assert_eq!(found, [0, 0]);
        system.measured.drained
    };
    assert_eq!(of("row"), (124 + 300 + 10 + 124) * 1000);
    assert_eq!(of("recovery"), (424 + 10 + 124 + 300) * 1000);
}

/// Refreshes at every microsecond for 200 ns, and reads around one after a long pause: 50 ns before it is due, with it, 50 after it, long after it.
#[test]
fn refreshes_of_a_pause_are_all_counted() {
    let memory = memory(&["refresh.t_refi=1us", "refresh.t_rfc=200ns"]);
    let pause = 9_000_000_000_i64;
    for (after, latency, refreshes) in [
        (-50, 124, 9_000_000 - 1),
        (0, 200 + 124, 9_000_000),
        (50, 150 + 124, 9_000_000),
        (500, 124, 9_000_000),
    ] {
        let at = (pause + after) as u64;
        let (found, system) = serve(&memory, &[read(0, 0, 1, 0), read(at, 0, 1, 1)]);
        assert_eq!(found, [124, at + latency], "{after}");
        assert_eq!(system.channels[0].banks[0].counts.misses, 2);
        // Of the read that is owned as a refresh comes due, the refresh follows at once.
        assert!(system.channels[0].counts.refreshes.abs_diff(refreshes) <= u64::from(after < 0));
    }
}

/// A pause in which writes stay in their buffer: refreshes go over them, and they are written in the end.
#[test]
fn a_pause_leaves_writes_in_their_buffer() {
    let set = [
        "refresh.t_refi=1us",
        "refresh.t_rfc=200ns",
        "write.buffer=8",
        "write.when_idle=false",
    ];
    let (found, system) = serve(&memory(&set), &[write(0, 0, 1, 0), read(9_000_000_500, 1, 1, 0)]);
    assert_eq!(found, [0, 9_000_000_624]);
    assert_eq!(system.channels[0].banks[0].counts.writes, 1);
}

#[test]
fn times_beyond_a_hundred_days_are_refused() {
    for workload in [
        "random:requests=1e4,gap=1e6s",
        "random:requests=1e4,gap=1844674s",
        "random:requests=1e4,gap=1e6s,arrivals=poisson",
        "random:requests=1e4,think=1e6s",
        "random:requests=1e4,think=1e8s",
        "random:requests=10,cores=1,outstanding=1,gap=1e9s",
    ] {
        let said = run(workload, "archsampler", &[]).unwrap_err().to_string();
        assert!(
            said.contains("2^63 ps (106 days)") && !said.contains('\n'),
            "{workload}: {said}"
        );
    }
    run("random:requests=1e2,gap=10s", "ddr5", &[]).unwrap();
}
