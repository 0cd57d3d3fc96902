//! Write amplification against closed forms and reference tables, on drives small enough for every test run; the long
//! check is `theory_long`.

use crate::common::{config, one_lane, write};
use crate::waf::{Frontiers, Hot, Run, compare};
use ftlab_core::theory::VictimLaw;
use ftlab_ftl::{Ftl, Ticket};

/// 2,000 blocks read up to 1 % off: the mean-field limits are those of many blocks.
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
    let rows = cases.map(|(victim, law, spare)| {
        let run = Run::uniform(victim, 2000, 64, spare);
        (format!("{victim} at spare {spare}"), run, run.theory(law), 0.01)
    });
    compare("uniform writes, 2,000 blocks of 64", rows.to_vec());
}

/// 80/20 at an over-provisioning of 0.28: what the victim policy makes of an oracle's labels.
#[test]
fn hot_and_cold_data_apart_pay_off_as_the_victim_policy_lets_them() {
    let cases = [
        ("greedy", 2.40),
        ("d_choices", 2.06),
        ("cost_benefit", 1.83),
        ("fifo", 2.82),
    ];
    let rows = cases.map(|(victim, expected)| {
        let run = Run {
            hot: Some(Hot {
                units: 0.2,
                writes: 0.8,
            }),
            frontiers: Frontiers::Classes,
            warmup: 8.0,
            measure: 6.0,
            ..Run::uniform(victim, 1000, 64, 1.0 - 1.0 / 1.28)
        };
        // Greedy: see `theory_long` on its ties.
        (
            victim.to_owned(),
            run,
            expected,
            if victim == "greedy" { 0.025 } else { 0.01 },
        )
    });
    compare("80/20, oracle labels, OP 0.28, 1,000 blocks of 64", rows.to_vec());
}

#[test]
fn sequential_overwrite_amplifies_nothing() {
    for victim in ["greedy", "fifo", "cost_benefit", "windowed_greedy"] {
        let layout = one_lane(200, 64);
        let mut config = config(&layout, 0.1);
        config.victim = ftlab_core::PolicySpec::named(victim);
        let units = config.logical_units;
        let mut ftl = Ftl::new(layout, config).unwrap();
        for lpn in (0..5).flat_map(|_| 0..units) {
            ftl.admit(&write(lpn, 0), Ticket::NONE);
        }
        assert_eq!(ftl.counts.waf(), Some(1.0), "{victim}");
        assert!(ftl.counts.erases > 0);
    }
}
