//! What a run reads off a device besides its completions, and what it may do to it.

use ftlab_core::Lpn;
use ftlab_ftl::{Backend, Ftl};

use crate::clocked::Clocked;
use crate::device::Device;
use crate::front::FtlFront;
use crate::power::{self, PowerCut};
use crate::tiles::{self, Tile};

/// A device that shows its gauges. One without flash has nothing to tell.
pub trait Instrumented {
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// As [`uncollected`].
    fn uncollected(&self) -> f64 {
        0.0
    }

    /// As [`tiles::tiles`].
    fn tiles(&self, _most: usize) -> Vec<Tile> {
        Vec::new()
    }

    /// Mean erases of a reclaim unit since the drive was new.
    fn mean_erases(&self) -> f64 {
        0.0
    }

    /// A mirror serves the host at present: the device is to be left alone until this is over.
    fn is_offline(&self) -> bool {
        false
    }

    /// A die fails: how many mapping units can't be read now (`ftlab_ftl::Ftl::fail_die`).
    fn fail_die(&mut self, _die: u32) -> u64 {
        0
    }

    /// Whether what the mapping unit holds can't be read, because its die failed.
    fn is_lost(&self, _unit: u64) -> bool {
        false
    }

    /// Power fails and comes back at once: requests under way are lost. The device takes requests again after the time that
    /// is returned.
    fn cut_power(&mut self) -> PowerCut {
        PowerCut::default()
    }
}

/// What the drives of a device have counted since their counters were reset, and what they have left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Host units written since the drive was new.
    pub tick: u64,
    pub host_writes: u64,
    /// Units programmed by cause, in the order of `Cause`, and units of padding.
    pub programmed: [u64; 6],
    pub padding: u64,
    pub collections: u64,
    /// Collections of units that were filled before the counters were reset.
    pub old_victims: u64,
    pub erases: u64,
    pub retired: u64,
    /// Free reclaim units, in all and in the pool that has the fewest.
    pub free_units: u32,
    pub least_free_units: u32,
}

impl Gauges {
    pub fn of<B: Backend>(ftl: &Ftl<B>) -> Self {
        let free = || ftl.units.pools.iter().map(|pool| pool.free);
        Gauges {
            tick: ftl.tick,
            host_writes: ftl.counts.host_writes,
            programmed: ftl.counts.programmed,
            padding: ftl.counts.padding,
            collections: ftl.counts.gc_collections,
            old_victims: ftl.counts.old_victims,
            erases: ftl.counts.erases,
            retired: ftl.counts.retired,
            free_units: free().sum(),
            least_free_units: free().min().unwrap_or(0),
        }
    }

    /// Write amplification; `None` before the first write.
    pub fn waf(&self) -> Option<f64> {
        let programmed = self.programmed.iter().sum::<u64>() + self.padding;
        (self.host_writes > 0).then(|| programmed as f64 / self.host_writes as f64)
    }
}

/// Of the invalid space in closed reclaim units, the share in those that were filled before the counters were reset: what
/// collection has not yet got hold of. Looks at every reclaim unit.
pub fn uncollected<B: Backend>(ftl: &Ftl<B>) -> f64 {
    let (old, all) = ftl.invalid_units();
    old as f64 / all.max(1) as f64
}

impl<B: Clocked> Instrumented for Device<FtlFront<B>> {
    fn gauges(&self) -> Gauges {
        Gauges::of(&self.front().ftl)
    }

    fn uncollected(&self) -> f64 {
        uncollected(&self.front().ftl)
    }

    fn tiles(&self, most: usize) -> Vec<Tile> {
        tiles::tiles(&self.front().ftl, most)
    }

    fn mean_erases(&self) -> f64 {
        self.front().ftl.units.mean_erases()
    }

    fn is_offline(&self) -> bool {
        self.front().ftl.is_offline()
    }

    fn fail_die(&mut self, die: u32) -> u64 {
        self.front_mut().ftl.fail_die(die)
    }

    fn is_lost(&self, unit: u64) -> bool {
        self.front().ftl.is_lost(Lpn(unit as u32))
    }

    /// # Panics
    /// If the drive keeps no recovery information (`ftl.checkpoint = "none"`).
    fn cut_power(&mut self) -> PowerCut {
        let lost_requests = self.outstanding() as u64;
        let report = self.front_mut().ftl.power_cut();
        self.reset();
        let front = self.front_mut();
        front.ftl.power_on();
        PowerCut {
            report,
            lost_requests,
            recovery_ns: power::recovery_ns(&front.timing, &front.ftl.layout.geometry, &report),
        }
    }
}
