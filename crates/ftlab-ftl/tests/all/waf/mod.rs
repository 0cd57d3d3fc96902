//! Write amplification of one-lane drives of one unit a page, from a sequential fill.

use ftlab_core::theory::{self, EffectiveSpare, VictimLaw};
use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Ftl, Survivors, Ticket};

use crate::common::{config, one_lane, write};

/// Which units are written into which open unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontiers {
    /// SWF: host writes and survivors share one.
    Shared,
    /// DWF: survivors have one of their own.
    Separate,
    /// HC: hot and cold data have one each, told by an oracle; survivors return to that of their class.
    Classes,
    /// As `Classes`, but which of the two a write goes to is drawn by lot.
    Lots,
}

/// A share of the units that takes a share of the writes; all else is uniform.
#[derive(Clone, Copy, Debug)]
pub struct Hot {
    pub units: f64,
    pub writes: f64,
}

/// A drive and what is written to it.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub victim: &'static str,
    pub blocks: u32,
    pub pages: u32,
    /// Of the space that is really usable: half of each open unit and the free reserve are taken off first.
    pub spare_factor: f64,
    pub hot: Option<Hot>,
    pub frontiers: Frontiers,
    /// Drive writes before and during the measurement.
    pub warmup: f64,
    pub measure: f64,
}

impl Run {
    /// Uniform writes, 6 drive writes to warm up and 5 to measure.
    pub fn uniform(victim: &'static str, blocks: u32, pages: u32, spare_factor: f64) -> Self {
        Run {
            victim,
            blocks,
            pages,
            spare_factor,
            hot: None,
            frontiers: Frontiers::Separate,
            warmup: 6.0,
            measure: 5.0,
        }
    }

    /// What the drive has to work with when it holds `logical` units.
    fn spare(&self, logical: u64) -> EffectiveSpare {
        let (raw, pages) = (u64::from(self.blocks) * u64::from(self.pages), u64::from(self.pages));
        let open = if self.frontiers == Frontiers::Shared { 1 } else { 2 };
        theory::effective_spare(raw, logical, pages, open * pages).expect("room to collect")
    }

    pub fn theory(&self, law: VictimLaw) -> f64 {
        theory::waf(law, 1.0 - self.spare_factor, self.pages)
    }

    /// The measured write amplification.
    pub fn waf(&self) -> f64 {
        let layout = one_lane(self.blocks, self.pages);
        let units = (self.spare(1).usable_units * (1.0 - self.spare_factor)).round() as u32;
        let mut config = config(&layout, 0.0);
        config.logical_units = units;
        config.victim = PolicySpec::parse(self.victim).unwrap();
        config.gc.survivors = match self.frontiers {
            Frontiers::Separate => Survivors::Shared,
            _ => Survivors::Stream,
        };
        if matches!(self.frontiers, Frontiers::Classes | Frontiers::Lots) {
            config.placement = PolicySpec::parse("manual:streams=2").unwrap();
        }
        let mut ftl = Ftl::new(layout, config).unwrap();
        let hot = self.hot.unwrap_or(Hot {
            units: 0.0,
            writes: 0.0,
        });
        let hot_units = (hot.units * f64::from(units)).round() as u32;
        let mut random = Stream::new(7, "workload");
        let mut lots = Stream::new(7, "labels");
        let mut write = |ftl: &mut Ftl<_>, lpn: u32| {
            let is_first = match self.frontiers {
                Frontiers::Lots => lots.unit() < 0.5,
                _ => lpn < hot_units,
            };
            ftl.admit(&write(lpn, if is_first { 1 } else { 2 }), Ticket::NONE);
        };
        (0..units).for_each(|lpn| write(&mut ftl, lpn));
        for (drive_writes, last) in [(self.warmup, false), (self.measure, true)] {
            for _ in 0..(drive_writes * f64::from(units)) as u64 {
                let lpn = if random.unit() < hot.writes {
                    random.below(u64::from(hot_units)) as u32
                } else {
                    hot_units + random.below(u64::from(units - hot_units)) as u32
                };
                write(&mut ftl, lpn);
            }
            if !last {
                ftl.reset_counts();
            }
        }
        ftl.check().unwrap();
        ftl.counts.waf().unwrap()
    }
}

/// Runs all of `rows` on two threads, prints each beside what is expected, and fails if one differs by more than its
/// tolerance.
pub fn compare(title: &str, rows: Vec<(String, Run, f64, f64)>) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let measured: Vec<std::sync::OnceLock<f64>> = rows.iter().map(|_| Default::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((_, run, _, _)) = rows.get(index) else { return };
                    measured[index].set(run.waf()).expect("each row is run once");
                }
            });
        }
    });
    let mut faults = Vec::new();
    println!("{title}");
    for ((name, _, expected, tolerance), measured) in rows.iter().zip(&measured) {
        let measured = measured.get().expect("every row was run");
        let error = measured / expected - 1.0;
        let line = format!(
            "{name:40} {measured:8.3} {expected:8.3} {:+6.2} % of {:.1} %",
            error * 100.0,
            tolerance * 100.0
        );
        println!("{line}");
        if error.abs() > *tolerance {
            faults.push(line);
        }
    }
    assert!(faults.is_empty(), "{title}:\n{}", faults.join("\n"));
}
