//! The long check against theory: every row of the reference tables. `cargo test --release -p ftlab-ftl -- --ignored`

use crate::waf::{Frontiers, Hot, Run, compare};
use ftlab_core::theory::VictimLaw;

const LAWS: [(&str, VictimLaw); 6] = [
    ("greedy", VictimLaw::Greedy),
    ("fifo", VictimLaw::Fifo),
    ("random", VictimLaw::Random),
    ("d_choices:d=2", VictimLaw::DChoices(2)),
    ("d_choices:d=5", VictimLaw::DChoices(5)),
    ("d_choices:d=10", VictimLaw::DChoices(10)),
];

/// 0.5 % from a spare factor of 0.07, 1 % below.
fn tolerance(spare: f64) -> f64 {
    if spare < 0.07 { 0.01 } else { 0.005 }
}

#[test]
#[ignore = "long: make test-long"]
fn uniform_writes_on_ten_thousand_blocks_of_64() {
    let spares = [
        0.04, 0.05, 0.0654, 0.07, 0.10, 0.125, 0.15, 0.20, 0.25, 0.28, 0.30, 0.40, 0.50,
    ];
    let rows = spares.into_iter().flat_map(|spare| {
        LAWS.map(|(victim, law)| {
            let run = Run::uniform(victim, 10_000, 64, spare);
            (format!("{victim} {spare}"), run, run.theory(law), tolerance(spare))
        })
    });
    compare("uniform writes, 10,000 blocks of 64", rows.collect());
}

#[test]
#[ignore = "long: make test-long"]
fn uniform_writes_on_ten_thousand_blocks_of_256() {
    let rows = [0.07, 0.10, 0.125, 0.20, 0.28].into_iter().flat_map(|spare| {
        LAWS.map(|(victim, law)| {
            let run = Run::uniform(victim, 10_000, 256, spare);
            (format!("{victim} {spare}"), run, run.theory(law), tolerance(spare))
        })
    });
    compare("uniform writes, 10,000 blocks of 256", rows.collect());
}

/// One row of the reference table: over-provisioning, share of the units that is hot, share of the writes it takes, and
/// the values with one frontier, with one for survivors, with one for each class, by victim policy.
type Skewed = (f64, f64, f64, [[f64; 3]; 4]);

const POLICIES: [&str; 4] = ["greedy", "d_choices:d=10", "cost_benefit", "fifo"];

#[rustfmt::skip]
const SKEWED: [Skewed; 6] = [
    (0.07, 0.2, 0.8, [[7.39, 7.37, 6.98], [7.65, 7.09, 5.66], [7.47, 6.44, 4.88], [8.16, 8.20, 8.20]]),
    (0.07, 0.1, 0.9, [[8.17, 7.83, 6.91], [8.31, 5.70, 3.70], [8.11, 4.53, 3.05], [8.85, 8.89, 8.89]]),
    (0.15, 0.2, 0.8, [[4.17, 4.09, 3.80], [4.27, 3.86, 3.15], [4.18, 3.49, 2.73], [4.36, 4.37, 4.37]]),
    (0.15, 0.1, 0.9, [[4.82, 4.42, 3.78], [4.84, 3.15, 2.21], [4.74, 2.59, 1.87], [4.95, 4.96, 4.96]]),
    (0.28, 0.2, 0.8, [[2.75, 2.65, 2.40], [2.79, 2.49, 2.06], [2.74, 2.26, 1.83], [2.82, 2.82, 2.82]]),
    (0.28, 0.1, 0.9, [[3.25, 2.86, 2.39], [3.25, 2.11, 1.58], [3.21, 1.79, 1.39], [3.29, 3.30, 3.30]]),
];

/// 1 % for two drives of 3,000 blocks and a table of three digits; a little more for cost-benefit, whose column was made
/// with 1,500 blocks. Greedy is allowed 2.5 %: the table's tie goes to the unit that lost its last page most recently, ours to
/// the least worn, which under skew is better by up to 2 % (with the table's rule it meets every row within 0.4 %).
fn tolerance_of(victim: &str) -> f64 {
    match victim {
        "greedy" => 0.025,
        "cost_benefit" => 0.015,
        _ => 0.01,
    }
}

fn skewed(frontiers: Frontiers, column: usize) {
    let mut rows = Vec::new();
    for (op, units, writes, values) in SKEWED {
        for (victim, values) in POLICIES.into_iter().zip(values) {
            let run = Run {
                hot: Some(Hot { units, writes }),
                frontiers,
                warmup: 30.0,
                measure: 15.0,
                ..Run::uniform(victim, 3000, 64, 1.0 - 1.0 / (1.0 + op))
            };
            let name = format!("{victim} OP {op}, {writes} on {units}");
            rows.push((name, run, values[column], tolerance_of(victim)));
        }
    }
    compare(&format!("hot and cold, {frontiers:?}, 3,000 blocks of 64"), rows);
}

#[test]
#[ignore = "long: make test-long"]
fn hot_and_cold_through_one_frontier() {
    skewed(Frontiers::Shared, 0);
}

#[test]
#[ignore = "long: make test-long"]
fn hot_and_cold_with_a_frontier_for_survivors() {
    skewed(Frontiers::Separate, 1);
}

#[test]
#[ignore = "long: make test-long"]
fn hot_and_cold_with_oracle_labels() {
    skewed(Frontiers::Classes, 2);
}
