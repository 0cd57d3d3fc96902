//! Tiny drives that between them use every member of every seam.

use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{Geometry, Layout, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::{BufferConfig, Ftl, FtlConfig, GcConfig, Overrides, PoolScope};

/// One drive of a property test.
#[derive(Clone, Debug)]
pub struct Case {
    pub layout: Layout,
    pub config: FtlConfig,
}

/// What a test wants of the drives that are drawn for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Keeps recovery information.
    pub recovers: bool,
    /// Collects in steps and in the background.
    pub steps: bool,
    /// Power-loss protection: as drawn, or as given.
    pub protected: Option<bool>,
    /// Blocks wear out.
    pub wears_out: bool,
    /// A mapping or role is given by the test, which needs a larger reserve.
    pub reserve: u32,
    /// Keeps the map in flash, with a member of the mapping family in front of it.
    pub mapping: bool,
}

pub const VICTIMS: [&str; 9] = [
    "greedy",
    "cost_benefit",
    "fifo",
    "random",
    "d_choices",
    "windowed_greedy",
    "d_choices:d=3,replacement=false",
    "cost_benefit:formula=cat",
    "windowed_greedy:window=0.4",
];
pub const WEARS: [&str; 3] = ["none", "dynamic", "static:threshold=2,interval=3"];
pub const ALLOCATIONS: [&str; 7] = [
    "round_robin",
    "least_loaded",
    "CWDP",
    "PDWC",
    "WCPD",
    "DPCW",
    "round_robin:order=PCWD",
];
pub const PLACEMENTS: [&str; 2] = ["none", "manual:streams=2"];
/// Members of the mapping family with a cache in front of translation pages, their options included.
pub const MAPPINGS: [&str; 23] = [
    "dftl",
    "dftl:policy=lru,batch=true",
    "dftl:policy=flashsim_age,serial=true",
    "dftl:protected=0",
    "dftl:protected=1,batch=true,serial=true",
    "cdftl:first_level=0.2",
    "cdftl:first_level=0.25,window=1,serial=true",
    "sftl",
    "sftl:bitmap_bits=2,buffer=0.2,sparse=30,serial=true",
    "sftl:buffer=0,sparse=0",
    "tpftl",
    "tpftl:threshold=1,order=mru,serial=true",
    "tpftl:clean_first=false,batch=false,selective_prefetch=false",
    "leaftl:buffer=8,compact=50",
    "leaftl:gamma=4,buffer=16",
    "leaftl:gamma=16,buffer=12,group=24,compact=30,serial=true",
    "cpftl",
    "cpftl:dei=off,serial=true,directory=search,start=60,renew=40,pairs=0-60-33/1-90/2-7-70-110/5-41-42/80-3/81-4/82-6",
    "cpftl:dei=off,fit=filters,directory=90,start=60,renew=40,pairs=0-60-33/1-90/2-7-70-110/5-41-42/80-3/81-4/82-6",
    "cpftl:fit=filters,directory=60,start=90,renew=25,after_write_back=clean,page_lpns=6,bring=keyed,pairs=0-60-33/1-90-33-34-35/2-7-70-110/5-41-42/80-3/150-4/182-6",
    "cpftl:write_check=directory,filter_bits=40,directory=90,start=30,renew=20,write_miss=defer,frequent=2,pairs=0-60-33/1-90/3-4-5-6/99-12",
    "cpftl:online=48,window=6,online_pages=3,directory=120,region=32,renew=20,min_loads=4",
    "cpftl:dei=on,dirty_share=0.2,directory=search,min_loads=2,removal=0.4,start=50,renew=30,serial=true,pairs=0-60/1-61/2-62/7-9-77/140-141",
];
pub const BUFFERS: [&str; 4] = ["none", "write_through", "write_back", "lru"];

impl Case {
    /// Drive number `number`: consecutive numbers go through all members of every seam; the rest is drawn from `number`.
    pub fn draw(number: u64, wish: Wish) -> Case {
        let mut random = Stream::new(number, "case");
        let mut pick = |of: usize| random.below(of as u64) as usize;
        // The turns differ, so that members of different seams meet; a turn that is one less than a multiple of a divisor of
        // the number of names would leave some of them out.
        let cycle = |names: &[&str], turn: u64| {
            let name = names[((number / turn + number) % names.len() as u64) as usize];
            PolicySpec::parse(name).expect("a policy of the catalogue")
        };
        let units = [1, 4][pick(2)];
        let geometry = Geometry {
            channels: [1, 2, 4][pick(3)],
            ways: [1, 1, 2][pick(3)],
            dies: 1,
            planes: [1, 1, 2][pick(3)],
            blocks: 0,
            pages: [4, 6, 8][pick(3)],
            page_bytes: 512 * units,
            unit_bytes: 512,
            oob_bytes: 16,
        };
        let geometry = Geometry {
            channels: geometry.channels.min(8 / geometry.ways / geometry.planes),
            ..geometry
        };
        let dies = geometry.total_dies();
        let reclaim = [
            ReclaimKind::Block,
            ReclaimKind::Block,
            ReclaimKind::Superblock { dies },
            ReclaimKind::Superblock { dies: 1 },
        ][pick(4)];
        let placement = cycle(&PLACEMENTS, 2);
        let allocation = cycle(&ALLOCATIONS, 1);
        let (separate_frontier, internal_streams) = [(true, false), (false, false), (false, true)][pick(3)];
        let preemptible = wish.steps && pick(2) == 0;
        let checkpoints = wish.recovers || pick(3) == 0;
        let reserve = wish.reserve.max(u32::from(wish.mapping));
        let hard = 1 + reserve.max(u32::from(checkpoints)) + pick(2) as u32;
        let gc = GcConfig {
            pool: [PoolScope::Lane, PoolScope::Die, PoolScope::Drive][pick(3)],
            hard,
            soft: hard + if wish.steps { 1 + pick(3) as u32 } else { 0 },
            preemptible,
            step_units: 1 + pick(6) as u32,
            background: wish.steps && !preemptible,
            idle_ns: [0, 100_000][pick(2)],
            separate_frontier,
            internal_streams,
        };
        let policy = cycle(&BUFFERS, 4);
        let buffer = BufferConfig {
            capacity_units: if policy.name == "none" { 0 } else { 1 + pick(24) as u32 },
            power_loss_protected: wish.protected.unwrap_or_else(|| pick(2) == 0),
            policy,
        };
        let order = ftlab_ftl::allocation::plane_order(&allocation).expect("an order");
        let blocks = 8 + gc.hard + 8 * u32::from(placement.name == "manual") + pick(8) as u32;
        let mut config = FtlConfig {
            logical_units: 0,
            mapping: match wish.mapping {
                true => cycle(&MAPPINGS, 2),
                false => PolicySpec::named("page"),
            },
            placement,
            victim: cycle(&VICTIMS, 5),
            wear: cycle(&WEARS, 4),
            allocation,
            dedup: PolicySpec::named("none"),
            replication: PolicySpec::named("none"),
            gc,
            buffer,
            erase_limit: wish.wears_out.then(|| 3 + pick(6) as u32),
            map_cache_bytes: if wish.mapping { [700, 1200, 4000][pick(3)] } else { 0 },
            share_loads: number.is_multiple_of(2),
            checkpoint_units: if checkpoints { 20 + pick(600) as u64 } else { 0 },
            seed: number,
            verify: true,
        };
        let layout = Layout::new(Geometry { blocks, ..geometry }, reclaim, order).expect("a tiny drive");
        let most = most_units(&layout, &config);
        config.logical_units = match pick(3) {
            0 => most,
            1 => most * 9 / 10,
            _ => most / 2,
        }
        .max(1);
        Case { layout, config }
    }

    /// The case in a few lines, for the report of a failure.
    pub fn show(&self) -> String {
        let (layout, c) = (&self.layout, &self.config);
        let policies: Vec<String> = [
            &c.mapping,
            &c.victim,
            &c.wear,
            &c.allocation,
            &c.placement,
            &c.buffer.policy,
        ]
        .iter()
        .map(|policy| policy.show())
        .collect();
        format!(
            "{} lanes of {} units of {} x {} slots ({:?}), {} logical units, {} bytes of map cache\n  {}\n  {:?}\n  buffer of {}, protected {}, erase limit {:?}, checkpoint {}",
            layout.lanes,
            layout.geometry.blocks,
            layout.pages_per_ru,
            layout.units_per_page,
            layout.reclaim,
            c.logical_units,
            c.map_cache_bytes,
            policies.join(" "),
            c.gc,
            c.buffer.capacity_units,
            c.buffer.power_loss_protected,
            c.erase_limit,
            c.checkpoint_units
        )
    }

    /// One lane of `blocks` blocks of `pages` pages with `units` units each; a plain drive to start from.
    pub fn plain(blocks: u32, pages: u32, units: u32) -> Case {
        Self::plain_lanes(1, blocks, pages, units)
    }

    /// The same with several lanes (channels).
    pub fn plain_lanes(lanes: u32, blocks: u32, pages: u32, units: u32) -> Case {
        let geometry = Geometry {
            channels: lanes,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks,
            pages,
            page_bytes: 512 * units,
            unit_bytes: 512,
            oob_bytes: 16,
        };
        let order = PlaneOrder::parse("CWDP").expect("an order");
        let layout = Layout::new(geometry, ReclaimKind::Block, order).expect("a tiny drive");
        let named = PolicySpec::named;
        let mut config = FtlConfig {
            logical_units: 0,
            mapping: named("page"),
            placement: named("none"),
            victim: named("greedy"),
            wear: named("none"),
            allocation: named("round_robin"),
            dedup: named("none"),
            replication: named("none"),
            gc: GcConfig {
                pool: PoolScope::Lane,
                hard: 1,
                soft: 1,
                preemptible: false,
                step_units: 4,
                background: false,
                idle_ns: 0,
                separate_frontier: true,
                internal_streams: false,
            },
            buffer: BufferConfig {
                policy: named("none"),
                capacity_units: 0,
                power_loss_protected: false,
            },
            erase_limit: None,
            map_cache_bytes: 0,
            share_loads: true,
            checkpoint_units: 0,
            seed: 1,
            verify: true,
        };
        config.logical_units = most_units(&layout, &config) * 9 / 10;
        Case { layout, config }
    }

    /// The drive, some of whose policies may be given.
    pub fn build(&self, given: Overrides) -> ftlab_core::Result<Ftl<ftlab_ftl::Counting>> {
        Ftl::with(self.layout.clone(), self.config.clone(), given)
    }
}

/// The most logical units that the FTL accepts on this drive.
pub fn most_units(layout: &Layout, config: &FtlConfig) -> u32 {
    let mut config = config.clone();
    let (mut low, mut high) = (1, layout.slots());
    while low + 1 < high {
        let middle = (low + high) / 2;
        config.logical_units = middle;
        match Ftl::new(layout.clone(), config.clone()) {
            Ok(_) => low = middle,
            Err(_) => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_drawn() {
        let wish = Wish {
            mapping: true,
            ..Wish::default()
        };
        let cases: Vec<FtlConfig> = (0..100).map(|number| Case::draw(number, wish).config).collect();
        let drawn = |names: &[&str], of: fn(&FtlConfig) -> &PolicySpec| {
            for name in names {
                let spec = PolicySpec::parse(name).expect("a policy of the catalogue");
                assert!(cases.iter().any(|case| of(case).show() == spec.show()), "{name}");
            }
        };
        drawn(&MAPPINGS, |case| &case.mapping);
        drawn(&VICTIMS, |case| &case.victim);
        drawn(&WEARS, |case| &case.wear);
        drawn(&ALLOCATIONS, |case| &case.allocation);
        drawn(&PLACEMENTS, |case| &case.placement);
        drawn(&BUFFERS, |case| &case.buffer.policy);
    }
}
