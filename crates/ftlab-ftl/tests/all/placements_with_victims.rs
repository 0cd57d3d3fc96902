//! Placement policies with a victim rule of their own, on workloads whose answer is known.

use crate::common::{config, one_lane, write};
use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Ftl, Ticket};

/// What is written to a drive of so many units.
#[derive(Clone, Copy, Debug)]
enum Load {
    Uniform,
    /// A share of the units takes a share of the writes.
    Hot(f64, f64),
    /// Zipf's law with this exponent.
    Zipf(f64),
}

/// The units that a load writes, one after the other.
struct Draw {
    load: Load,
    units: u32,
    random: Stream,
    /// Shares of the writes up to each rank, under Zipf's law.
    cumulative: Vec<f64>,
}

impl Draw {
    fn new(load: Load, units: u32) -> Self {
        let mut sum = 0.0;
        let weight = |rank: u32, exponent: f64| f64::from(rank + 1).powf(-exponent);
        let cumulative = match load {
            Load::Zipf(exponent) => (0..units)
                .map(|rank| {
                    sum += weight(rank, exponent);
                    sum
                })
                .collect(),
            _ => Vec::new(),
        };
        Draw {
            load,
            units,
            random: Stream::new(7, "workload"),
            cumulative,
        }
    }

    fn next(&mut self) -> u32 {
        let units = u64::from(self.units);
        match self.load {
            Load::Uniform => self.random.below(units) as u32,
            Load::Hot(share, writes) => {
                let hot = (share * units as f64) as u64;
                if self.random.unit() < writes {
                    self.random.below(hot) as u32
                } else {
                    (hot + self.random.below(units - hot)) as u32
                }
            }
            Load::Zipf(_) => {
                let all = self.cumulative[self.units as usize - 1];
                let at = self.random.unit() * all;
                let rank = self.cumulative.partition_point(|&sum| sum < at) as u64;
                // Ranks are scattered over the addresses.
                (rank * 7919 % units) as u32
            }
        }
    }
}

/// A drive of 64-unit blocks, and what is written to it.
#[derive(Clone, Copy, Debug)]
struct Run {
    placement: &'static str,
    victim: &'static str,
    load: Load,
    blocks: u32,
    over_provisioning: f64,
    /// Frontiers whose half-open units and reserve are taken off first.
    frontiers: u32,
    /// Drive writes before and during the measurement.
    warmup: f64,
    measure: f64,
}

impl Run {
    fn new(placement: &'static str, victim: &'static str, load: Load) -> Self {
        Run {
            placement,
            victim,
            load,
            blocks: 500,
            over_provisioning: 0.15,
            frontiers: 6,
            warmup: 12.0,
            measure: 6.0,
        }
    }

    /// The mapping units of the drive that the host sees.
    fn units(&self) -> u32 {
        self.config().logical_units
    }

    fn config(&self) -> ftlab_ftl::FtlConfig {
        let layout = one_lane(self.blocks, 64);
        let mut config = config(&layout, 0.0);
        config.placement = PolicySpec::parse(self.placement).unwrap();
        config.victim = PolicySpec::parse(self.victim).unwrap();
        config.gc.hard = ftlab_ftl::least_reserve(&config, &layout).unwrap();
        config.gc.soft = config.gc.hard;
        let usable = f64::from(self.blocks - config.gc.hard) - f64::from(self.frontiers) / 2.0;
        config.logical_units = (64.0 * usable / (1.0 + self.over_provisioning)) as u32;
        config
    }

    /// The write amplification, and the drive after it.
    fn run(&self) -> (f64, Ftl<ftlab_ftl::Counting>) {
        let units = self.units();
        let mut ftl = Ftl::new(one_lane(self.blocks, 64), self.config()).unwrap();
        let mut draw = Draw::new(self.load, units);
        (0..units).for_each(|lpn| {
            ftl.admit(&write(lpn, 0), Ticket::NONE);
        });
        for (drive_writes, last) in [(self.warmup, false), (self.measure, true)] {
            for _ in 0..(drive_writes * f64::from(units)) as u64 {
                ftl.admit(&write(draw.next(), 0), Ticket::NONE);
            }
            if !last {
                ftl.reset_counts();
            }
        }
        ftl.check().unwrap();
        (ftl.counts.waf().unwrap(), ftl)
    }

    fn waf(&self) -> f64 {
        self.run().0
    }
}

/// 80/20 and 90/10 at an over-provisioning of 0.15, where cost-benefit alone makes 3.49 and 2.59, an oracle's labels with it 2.73 and
/// 1.87, and the best static split of the spare among FIFO logs 2.832 and 1.930.
#[test]
fn two_classes_part() {
    let of = |placement, hot, writes| Run::new(placement, "cost_benefit", Load::Hot(hot, writes)).waf();
    for (hot, writes, split) in [(0.2, 0.8, 2.832), (0.1, 0.9, 1.930)] {
        let none = of("none", hot, writes);
        for placement in ["sfs:victim=drive", "multilog", "multilog:victim=drive", "midas"] {
            let waf = of(placement, hot, writes);
            assert!(waf < none, "{placement}: {waf:.3}, without {none:.3}");
        }
        let multilog = of("multilog:levels=2", hot, writes);
        assert!((multilog / split - 1.0).abs() < 0.08, "{multilog:.3} against {split}");
        // Every survivor sinks: hot units keep going to the cold log.
        let always = of("multilog:sink=always", hot, writes);
        assert!(always > 1.3 * multilog, "{always:.3} against {multilog:.3}");
    }
    // Groups of like hotness under cost-benefit are as good as an oracle's.
    let sfs = of("sfs:victim=drive", 0.1, 0.9);
    assert!((sfs / 1.87 - 1.0).abs() < 0.03, "{sfs:.3}");
}

#[test]
fn zipf_writes_part() {
    let of = |placement| Run::new(placement, "cost_benefit", Load::Zipf(1.0)).waf();
    let (none, sepbit) = (of("none"), of("sepbit"));
    for placement in ["multilog", "midas"] {
        let waf = of(placement);
        assert!(waf < none, "{placement}: {waf:.3}, without {none:.3}");
    }
    let sfs = of("sfs:victim=drive");
    assert!(sfs < sepbit, "{sfs:.3}, SepBIT {sepbit:.3}");
}

/// Uniform writes have nothing to part. MultiLog collects first in, first out, which makes 4.016 where cost-benefit makes 3.80.
#[test]
fn uniform_writes_cost_little_more_than_without() {
    let of = |placement| Run::new(placement, "cost_benefit", Load::Uniform).waf();
    let none = of("none");
    for (placement, expected, tolerance) in [("sfs", none, 0.03), ("midas", none, 0.02), ("multilog", 4.016, 0.03)] {
        let waf = of(placement);
        assert!(
            (waf / expected - 1.0).abs() < tolerance,
            "{placement}: {waf:.3} against {expected:.3}"
        );
    }
}

/// Under a load that stays, what is predicted comes true and nothing is merged. Another load makes groups irregular: they are
/// merged, and the search goes on.
#[test]
fn midas_applies_and_merges_configurations() {
    let run = Run::new("midas:epoch=2", "cost_benefit", Load::Hot(0.1, 0.9));
    let (_, mut ftl) = run.run();
    let figure = |ftl: &Ftl<ftlab_ftl::Counting>, name: &str| {
        let reports = ftl.policy_reports();
        let (_, figures) = &reports[0];
        figures.iter().find(|(key, _)| *key == name).expect("a figure").1
    };
    assert!(figure(&ftl, "epochs") >= 8.0 && figure(&ftl, "applied") >= 1.0);
    let groups = figure(&ftl, "groups");
    assert!(groups >= 3.0 && figure(&ftl, "merged") == 0.0, "{groups}");
    let units = run.units();
    let mut draw = Draw::new(Load::Uniform, units);
    let mut writes = 0;
    while figure(&ftl, "merged") == 0.0 {
        ftl.admit(&write(draw.next(), 0), Ticket::NONE);
        writes += 1;
        assert!(writes < 5 * units, "nothing was merged in two epochs of another load");
    }
    assert!(figure(&ftl, "groups") < groups);
    let applied = figure(&ftl, "applied");
    let mut back = Draw::new(run.load, units);
    (0..8 * units).for_each(|_| {
        ftl.admit(&write(back.next(), 0), Ticket::NONE);
    });
    assert!(figure(&ftl, "applied") > applied && figure(&ftl, "groups") >= 3.0);
    ftl.check().unwrap();
}

/// Sizes of groups that suit a drive three fifths full stay in force while the rest of it is filled, once. What is invalid then lies
/// in the first group, which is within its size, and the last one is all valid: the guard merges them before the epoch's own look at
/// its groups, which comes when as much has been written in it as the drive holds. Without the guard the write amplification is above 50 here.
#[test]
fn midas_merges_groups_that_keep_what_is_invalid() {
    let run = Run {
        blocks: 200,
        ..Run::new("midas:epoch=2", "greedy", Load::Hot(0.1, 0.9))
    };
    let units = run.units();
    let some = units * 3 / 5;
    let mut ftl = Ftl::new(one_lane(run.blocks, 64), run.config()).unwrap();
    let figures = |ftl: &Ftl<ftlab_ftl::Counting>| {
        let (_, figures) = &ftl.policy_reports()[0];
        ["groups", "merged", "epochs"].map(|name| figures.iter().find(|(key, _)| *key == name).expect("a figure").1)
    };
    let mut draw = Draw::new(run.load, some);
    let mut next = 0;
    while figures(&ftl)[2] < 6.0 {
        let lpn = if next < some { next } else { draw.next() };
        next += 1;
        ftl.admit(&write(lpn, 0), Ticket::NONE);
    }
    assert_eq!(figures(&ftl), [2.0, 0.0, 6.0]);
    ftl.reset_counts();
    for step in 0..units * 9 / 10 {
        let lpn = if some + step < units { some + step } else { draw.next() };
        ftl.admit(&write(lpn, 0), Ticket::NONE);
    }
    assert_eq!(figures(&ftl), [1.0, 1.0, 6.0]);
    let waf = ftl.counts.waf().unwrap();
    assert!(waf < 3.0, "{waf:.3}");
    ftl.check().unwrap();
}

/// The paper has MiDAS at SepBIT's write amplification or below it; here it comes within 4 % under Zipf's law and two classes, far
/// below no placement.
#[test]
fn midas_comes_near_to_sepbit() {
    for load in [
        Load::Zipf(0.8),
        Load::Zipf(1.0),
        Load::Hot(0.1, 0.9),
        Load::Hot(0.2, 0.8),
    ] {
        let of = |placement| Run::new(placement, "cost_benefit", load).waf();
        let (none, sepbit, midas) = (of("none"), of("sepbit"), of("midas"));
        assert!(
            midas < 1.04 * sepbit && midas < 0.96 * none,
            "{load:?}: {midas:.3}, SepBIT {sepbit:.3}, none {none:.3}"
        );
    }
    // A hot group is what it takes under Zipf's law.
    let of = |placement| Run::new(placement, "cost_benefit", Load::Zipf(1.0)).run();
    let (waf, with) = of("midas");
    let (without, _) = of("midas:hot=false");
    assert!(waf < 0.95 * without, "{waf:.3}, without a hot group {without:.3}");
    assert!(with.policy_reports()[0].1.contains(&("uses_hot_group", 1.0)));
}

/// For looking: `FTLAB_SHOW="none sepbit" cargo test … -- --ignored --nocapture`.
#[test]
#[ignore = "prints the policies of FTLAB_SHOW, separated by blanks, on each load"]
fn show() {
    let shown: &'static str = Box::leak(std::env::var("FTLAB_SHOW").unwrap_or_default().into_boxed_str());
    for placement in shown.split_whitespace() {
        for load in [
            Load::Uniform,
            Load::Hot(0.2, 0.8),
            Load::Hot(0.1, 0.9),
            Load::Zipf(0.8),
            Load::Zipf(1.0),
        ] {
            let (waf, ftl) = Run::new(placement, "cost_benefit", load).run();
            println!("{placement:30} {load:?} {waf:.3} {:?}", ftl.policy_reports());
        }
    }
}
