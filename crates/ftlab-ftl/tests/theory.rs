//! Write amplification against closed forms: uniform random overwrites from a sequential fill.

mod common;

use common::{config, one_lane};
use ftlab_core::theory::{self, VictimLaw};
use ftlab_core::{Lpn, OpKind, PolicySpec, Stream};
use ftlab_ftl::{Ftl, HostRequest, Ticket};

fn write(lpn: u64) -> HostRequest<'static> {
    HostRequest {
        op: OpKind::Write,
        first: Lpn(lpn as u32),
        units: 1,
        head_skip: 0,
        tail_skip: 0,
        fua: false,
        stream: 0,
        pc: 0,
        content: &[],
    }
}

/// Measured write amplification and the theory's value at the drive's effective spare.
fn measure(victim: &str, law: VictimLaw, blocks: u32, pages: u32, spare: f64) -> (f64, f64) {
    let layout = one_lane(blocks, pages);
    let mut config = config(&layout, spare);
    config.victim = PolicySpec::parse(victim).unwrap();
    let units = u64::from(config.logical_units);
    let (hard, slots) = (config.gc.hard, layout.slots());
    let mut ftl = Ftl::new(layout, config).unwrap();
    ftl.precondition_fill();
    let mut random = Stream::new(7, "workload");
    for _ in 0..6 * units {
        ftl.admit(&write(random.below(units)), Ticket::NONE);
    }
    ftl.reset_counts();
    for _ in 0..5 * units {
        ftl.admit(&write(random.below(units)), Ticket::NONE);
    }
    let usable = f64::from(slots) - f64::from(hard * pages) - f64::from(ftl.frontier_count() * pages) / 2.0;
    let rho = units as f64 / usable;
    (ftl.counts.waf().unwrap(), theory::waf(law, rho, pages))
}

#[test]
fn uniform_writes_meet_the_closed_forms() {
    let cases = [
        ("greedy", VictimLaw::Greedy, 0.10),
        ("greedy", VictimLaw::Greedy, 0.20),
        ("fifo", VictimLaw::Fifo, 0.10),
        ("random", VictimLaw::Random, 0.20),
        ("d_choices:d=2", VictimLaw::DChoices(2), 0.20),
        ("d_choices:d=10", VictimLaw::DChoices(10), 0.10),
    ];
    for (victim, law, spare) in cases {
        let (measured, expected) = measure(victim, law, 2000, 64, spare);
        let error = measured / expected - 1.0;
        println!(
            "{victim} {spare}: {measured:.3} against {expected:.3} ({:+.2} %)",
            error * 100.0
        );
        assert!(
            error.abs() < 0.015,
            "{victim} at spare {spare}: {measured} against {expected}"
        );
    }
}
