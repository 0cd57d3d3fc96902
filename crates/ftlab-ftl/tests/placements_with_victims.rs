//! Placement policies with a victim rule of their own, on workloads whose answer is known.

mod common;

use common::{config, one_lane, write};
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
            blocks: 1000,
            over_provisioning: 0.15,
            frontiers: 6,
            warmup: 12.0,
            measure: 6.0,
        }
    }

    /// The write amplification, and the drive after it.
    fn run(&self) -> (f64, Ftl<ftlab_ftl::Counting>) {
        let layout = one_lane(self.blocks, 64);
        let mut config = config(&layout, 0.0);
        config.placement = PolicySpec::parse(self.placement).unwrap();
        config.victim = PolicySpec::parse(self.victim).unwrap();
        config.gc.hard = ftlab_ftl::least_reserve(&config, &layout).unwrap();
        config.gc.soft = config.gc.hard;
        let usable = f64::from(self.blocks - config.gc.hard) - f64::from(self.frontiers) / 2.0;
        config.logical_units = (64.0 * usable / (1.0 + self.over_provisioning)) as u32;
        let units = config.logical_units;
        let mut ftl = Ftl::new(layout, config).unwrap();
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

/// For looking: the policies of `FTLAB_SHOW`, separated by blanks.
#[test]
#[ignore = "prints a table"]
fn show() {
    let shown: &'static str = Box::leak(std::env::var("FTLAB_SHOW").unwrap_or_default().into_boxed_str());
    let loads = [
        Load::Uniform,
        Load::Hot(0.2, 0.8),
        Load::Hot(0.1, 0.9),
        Load::Zipf(0.8),
        Load::Zipf(1.0),
    ];
    let only = std::env::var("FTLAB_LOADS").map_or(0..5, |n| {
        let n: usize = n.parse().unwrap();
        n..n + 1
    });
    for name in shown.split(' ') {
        for load in &loads[only.clone()] {
            let load = *load;
            let begun = std::time::Instant::now();
            let (waf, ftl) = Run::new(name, "cost_benefit", load).run();
            println!(
                "{name:30} {load:?} {waf:.3} in {:.1} s, {} rescued",
                begun.elapsed().as_secs_f64(),
                ftl.counts.emptiest_instead
            );
            for (role, figures) in ftl.policy_reports() {
                println!("    {role} {figures:?}");
            }
            for (number, counts) in ftl.frontier_counts().iter().enumerate() {
                let valid = counts.victim_valid as f64 / (64 * counts.collections.max(1)) as f64;
                println!(
                    "    {number}: {} host, {} survivors, {} collections, valid {valid:.3}",
                    counts.host, counts.survivors, counts.collections
                );
            }
        }
    }
}
